//! Several certificates: the client chooses by name.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use testkit::{Requirement, find_program, require};
use turn_server::{CertificateFiles, TurnConfig};

use super::{probe, start};
use crate::certificates::Certificates;
use crate::stream_client::{StreamClient, connect};

const FIRST: &[&str] = &["turn.first.test", "127.0.0.1"];
const SECOND: &[&str] = &["second.test", "*.second.test"];

/// Two certificates, and what they are in DER.
fn two(certificates: &Certificates) -> ([CertificateFiles; 2], [Vec<u8>; 2]) {
    let files = ["first", "second"].map(|stem| {
        let (cert, key) = certificates.files(stem);
        CertificateFiles { cert, key }
    });
    let ders = [(&files[0], FIRST), (&files[1], SECOND)]
        .map(|(files, names)| certificates.issue(&files.cert, &files.key, names));
    (files, ders)
}

/// The certificate that a client gets which asks for `name`, and trusts the authority.
fn shown_to(addr: SocketAddr, config: &Arc<ClientConfig>, name: &str) -> Result<Vec<u8>, std::io::Error> {
    let tls = ClientConnection::new(Arc::clone(config), ServerName::try_from(name.to_owned()).unwrap()).unwrap();
    let mut stream = StreamOwned::new(tls, connect(addr));
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    let shown = stream.conn.peer_certificates().unwrap()[0].to_vec();
    let local = stream.sock.local_addr()?;
    assert_eq!(StreamClient::new(stream).binding(), local);
    Ok(shown)
}

fn flags(files: &[CertificateFiles]) -> Vec<String> {
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let pair =
        |files: &CertificateFiles| ["--cert".to_owned(), path(&files.cert), "--key".to_owned(), path(&files.key)];
    files.iter().flat_map(pair).collect()
}

#[test]
fn a_client_gets_the_certificate_of_the_name_that_it_asks_for() {
    let certificates = Certificates::new();
    let (files, [first, second]) = two(&certificates);
    let flags = flags(&files);
    let server = start(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let client = certificates.client(&[version], &[]);
        for (name, expected) in [
            ("turn.first.test", &first),
            ("second.test", &second),
            ("a.second.test", &second),
            ("A.Second.TEST", &second),
            ("127.0.0.1", &first),
        ] {
            assert_eq!(&shown_to(server.tls[0], &client, name).unwrap(), expected, "{name}");
        }
        for unknown in ["first.test", "a.b.second.test", "other.test"] {
            let error = shown_to(server.tls[0], &client, unknown).unwrap_err().to_string();
            assert!(error.contains("not valid for name"), "{unknown}: {error}");
        }
        let mut silent = ClientConfig::clone(&client);
        silent.enable_sni = false;
        assert_eq!(shown_to(server.tls[0], &Arc::new(silent), "turn.first.test").unwrap(), first);
    }
    probe(&server);
}

#[test]
fn openssl_gets_the_same_certificates() {
    let Some(openssl) = require(Requirement::Program, find_program("openssl", "openssl")) else { return };
    let certificates = Certificates::new();
    let (files, [first, second]) = two(&certificates);
    let flags = flags(&files);
    let server = start(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    let cases: [(&[&str], &Vec<u8>); 5] = [
        (&["-servername", "a.second.test"], &second),
        (&["-servername", "turn.first.test"], &first),
        (&["-servername", "other.test"], &first),
        (&["-noservername"], &first),
        (&["-servername", "second.test", "-tls1_2"], &second),
    ];
    for (arguments, expected) in cases {
        let mut command = Command::new(&openssl);
        command.args(["s_client", "-connect", &server.tls[0].to_string()]).args(arguments).stdin(Stdio::null());
        let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let pem = output.split("-----BEGIN CERTIFICATE-----").nth(1).unwrap_or_else(|| panic!("{output}"));
        let pem: String = pem.split("-----END").next().unwrap().split_whitespace().collect();
        assert_eq!(&BASE64_STANDARD.decode(pem).unwrap(), expected, "{arguments:?}");
    }
}

#[test]
fn a_reload_replaces_all_certificates_or_none() {
    let certificates = Certificates::new();
    let (files, before) = two(&certificates);
    let mut config = TurnConfig::on("127.0.0.1:0".parse().unwrap());
    config.certificates = files.to_vec();
    config.workers = 1;
    let running = turn_server::start(&config).unwrap();
    let addr = running.streams()[0].addr;
    let client = certificates.client(rustls::ALL_VERSIONS, &[]);
    let shown = || ["turn.first.test", "second.test"].map(|name| shown_to(addr, &client, name).unwrap());
    assert_eq!(shown(), before);
    let (_, after) = two(&certificates);
    let key = std::fs::read(&files[1].key).unwrap();
    std::fs::write(&files[1].key, "no key").unwrap();
    let message = format!("{:#}", running.reload(config.clone()).unwrap_err());
    assert!(message.contains("second-key.pem"), "{message}");
    assert_eq!(shown(), before, "the first one is new, and is not used either");
    std::fs::write(&files[1].key, key).unwrap();
    running.reload(config.clone()).unwrap();
    assert_eq!(shown(), after);
    running.stop();
}
