//! Servers with certificates of every kind.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::*;

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// What becomes of TLS with `localhost`, whose server has a certificate of `name` by `issuer`, valid in these years.
async fn outcome(name: &str, issuer: &Issuer, years: [i32; 2], trusted: &Issuer) -> Result<(), String> {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.not_before = date_time_ymd(years[0], 1, 1);
    params.not_after = date_time_ymd(years[1], 1, 1);
    let certificate = params.signed_by(&key, issuer).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key);
    let acceptor = TlsAcceptor::from(Arc::new(config.unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(trusted.der().clone()).unwrap();
    let served = async {
        let (stream, _) = listener.accept().await.unwrap();
        // The client may refuse.
        let _ = acceptor.accept(stream).await;
    };
    let clock = tt_os::clock::clock();
    let dialled = async {
        let stream = TcpStream::connect(addr).await.unwrap();
        let last_read = LastRead(Rc::new(Cell::new(clock.end())));
        secured(Stamped { stream, clock, last_read }, "localhost", roots).await
    };
    let (_, dialled) = tokio::join!(served, dialled);
    dialled.map(drop).map_err(|error| format!("{error:?}"))
}

#[tokio::test]
async fn case_m48_a_certificate_of_another_host_out_of_date_or_of_a_stranger_is_refused() {
    let (ours, stranger) = (authority("ours"), authority("a stranger"));
    assert_eq!(outcome("localhost", &ours, [2020, 2120], &ours).await, Ok(()));
    for (name, issuer, years, expected) in [
        ("another.example", &ours, [2020, 2120], "not valid for name"),
        ("localhost", &ours, [2020, 2021], "expired"),
        ("localhost", &ours, [2119, 2120], "not valid yet"),
        ("localhost", &stranger, [2020, 2120], "UnknownIssuer"),
    ] {
        let refused = outcome(name, issuer, years, &ours).await.unwrap_err();
        assert!(refused.contains(expected), "{expected}: {refused}");
    }
}

#[tokio::test]
async fn case_m48_the_shipped_roots_do_not_trust_this_machine() {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key);
    let acceptor = TlsAcceptor::from(Arc::new(config.unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri: Uri = format!("wss://localhost:{}/", listener.local_addr().unwrap().port()).parse().unwrap();
    let served = async {
        let (stream, _) = listener.accept().await.unwrap();
        let _ = acceptor.accept(stream).await;
    };
    let (_, dialled) = tokio::join!(served, dial(&uri, tt_os::clock::clock()));
    let refused = format!("{:?}", dialled.map(drop).unwrap_err());
    assert!(refused.contains("UnknownIssuer"), "{refused}");
}
