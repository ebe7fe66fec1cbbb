//! A venue behind TLS, with right and wrong certificates.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use sim::Venue;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::patient::{Patient, simulator};

/// Signs certificates.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, "an authority for tests");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// A certificate for `name` that ends with the year before `until`.
    fn certify(&self, name: &str, until: i32) -> ServerConfig {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let chain = vec![certificate.der().clone()];
        ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap()
    }
}

/// TLS in front of `venue`, until the sender is dropped.
fn front(config: ServerConfig, venue: SocketAddr) -> (SocketAddr, oneshot::Sender<()>) {
    let (message, address) = std::sync::mpsc::channel();
    let (stop, mut stopped) = oneshot::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            message.send(listener.local_addr().unwrap()).unwrap();
            let acceptor = TlsAcceptor::from(Arc::new(config));
            loop {
                let (stream, _) = tokio::select! {
                    accepted = listener.accept() => accepted.unwrap(),
                    _ = &mut stopped => return,
                };
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // A client that does not trust the certificate goes away.
                    if let Ok(mut outside) = acceptor.accept(stream).await {
                        let mut inside = TcpStream::connect(venue).await.unwrap();
                        let _ = copy_bidirectional(&mut outside, &mut inside).await;
                    }
                });
            }
        });
    });
    (address.recv().unwrap(), stop)
}

fn visit(at: SocketAddr, authority: Option<&Path>) -> Patient {
    let url = format!("wss://localhost:{}/v5/public/linear", at.port());
    Patient::trusting(authority, &["--venue", "bybit_linear", "--url", &url])
}

#[test]
fn a_certificate_is_shown_or_refused_with_its_reason() {
    let sim = simulator(1);
    let venue = sim.address(Venue::Bybit);
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let trusted = folder.path().join("authority.pem");
    std::fs::write(&trusted, &authority.pem).unwrap();

    let (at, _front) = front(authority.certify("localhost", 2100), venue);
    let (steps, verdict, status) = visit(at, Some(&trusted)).finish();
    assert_eq!((status, verdict["verdict"].as_str()), (0, Some("ok")), "{steps:?}");
    let of = |name: &str| steps.iter().find(|step| step["step"] == name).unwrap();
    assert_eq!((of("resolve")["outcome"].as_str(), of("tls")["outcome"].as_str()), (Some("ok"), Some("ok")));
    assert_eq!(of("tls")["facts"]["not_after_unix_s"], 4_102_444_800_i64, "2100-01-01: {}", of("tls"));
    assert!(of("tls")["text"].as_str().unwrap().contains("an authority for tests"), "{}", of("tls"));

    let failed = visit(at, None).failure("tls");
    assert!(failed["text"].as_str().unwrap().contains("has no trusted issuer"), "{failed}");
    assert!(failed["advice"].as_str().unwrap().contains("SSL_CERT_FILE"), "{failed}");

    let (at, _front) = front(authority.certify("venue.example", 2100), venue);
    let failed = visit(at, Some(&trusted)).failure("tls");
    assert!(failed["text"].as_str().unwrap().contains("is not for localhost"), "{failed}");

    let (at, _front) = front(authority.certify("localhost", 2021), venue);
    let failed = visit(at, Some(&trusted)).failure("tls");
    assert!(failed["text"].as_str().unwrap().contains("has expired"), "{failed}");

    // Plain HTTP where TLS is expected.
    let failed = visit(venue, Some(&trusted)).failure("tls");
    assert!(failed["advice"].as_str().unwrap().contains("no TLS"), "{failed}");
    sim.stop();
}
