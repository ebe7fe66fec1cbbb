//! TLS: what is agreed on, what is refused, and a certificate that changes.

use std::io::Write;

use rustls::version::{TLS12, TLS13};
use turn_server::{CertificateFiles, TurnConfig, User};

use super::{count, probe, read_to_end, shown, start};
use crate::certificates::Certificates;
use crate::server::{PASSWORD, Server, USER};
use crate::stream_client::{StreamClient, connect, connect_tls};

fn with(certificates: &Certificates, flags: &[&str]) -> Server {
    let files = certificates.flags();
    start(&[&files.each_ref().map(String::as_str)[..], flags].concat())
}

#[test]
fn one_port_takes_plain_tcp_and_tls_1_2_and_1_3_and_a_tls_port_takes_tls_alone() {
    let certificates = Certificates::new();
    let server = with(&certificates, &["--listen-tls", "127.0.0.1:0"]);
    assert_eq!((server.tcp.len(), server.tls.len(), server.tls[0]), (1, 2, server.tcp[0]));
    for tls in &server.tls {
        for version in [&TLS12, &TLS13] {
            let stream = connect_tls(*tls, &certificates.client(&[version], &[])).unwrap();
            let mut client = StreamClient::new(stream);
            assert_eq!(client.binding(), client.stream.sock.local_addr().unwrap());
            assert_eq!(client.stream.conn.protocol_version(), Some(version.version));
        }
    }
    let mut plain = connect(server.tls[1]);
    plain.write_all(&StreamClient::new(connect(server.tcp[0])).binding_request()).unwrap();
    assert_eq!(read_to_end(&mut plain), b"");
    probe(&server);
}

#[test]
fn a_client_names_stun_or_nothing_as_its_protocol() {
    let certificates = Certificates::new();
    let server = with(&certificates, &[]);
    for (offered, agreed) in [
        (&["stun.turn"][..], Some(&b"stun.turn"[..])),
        (&["h2", "stun.nat-discovery"], Some(b"stun.nat-discovery")),
        (&[], None),
    ] {
        let mut client =
            StreamClient::new(connect_tls(server.tls[0], &certificates.client(rustls::ALL_VERSIONS, offered)).unwrap());
        client.binding();
        assert_eq!(client.stream.conn.alpn_protocol(), agreed);
    }
    let refused = connect_tls(server.tls[0], &certificates.client(rustls::ALL_VERSIONS, &["h2", "http/1.1"]));
    let message = refused.err().unwrap().to_string();
    assert!(message.contains("NoApplicationProtocol"), "{message}");
    probe(&server);
}

/// A ClientHello of `version` (and no newer) that offers `suites`, as one record.
fn hello(version: u16, suites: &[u16]) -> Vec<u8> {
    let suites: Vec<u8> = suites.iter().flat_map(|suite| suite.to_be_bytes()).collect();
    // supported_groups: x25519, secp256r1; ec_point_formats; signature_algorithms: RSA-PSS, ECDSA and RSA with SHA-256.
    let extensions =
        [&[0, 10, 0, 6, 0, 4, 0, 29, 0, 23][..], &[0, 11, 0, 2, 1, 0], &[0, 13, 0, 8, 0, 6, 8, 4, 4, 3, 4, 1]].concat();
    let mut body = version.to_be_bytes().to_vec();
    body.extend([0x5a; 32]);
    body.push(0);
    body.extend((suites.len() as u16).to_be_bytes());
    body.extend(&suites);
    body.extend([1, 0]);
    body.extend((extensions.len() as u16).to_be_bytes());
    body.extend(&extensions);
    let handshake = [&[1, 0][..], &(body.len() as u16).to_be_bytes(), &body].concat();
    [&[0x16, 3, 1][..], &(handshake.len() as u16).to_be_bytes(), &handshake].concat()
}

/// The description of the alert that the server sends, which must be fatal and the last thing that it sends.
fn alert(answer: &[u8]) -> u8 {
    assert!(answer.len() == 7 && answer[0] == 0x15 && answer[5] == 2, "{answer:?}");
    answer[6]
}

const ECDHE_ECDSA_AES128_GCM: u16 = 0xC02B;

#[test]
fn case_a78_old_versions_and_records_too_long_get_an_alert() {
    let certificates = Certificates::new();
    let server = with(&certificates, &[]);
    let answer_to = |bytes: &[u8]| {
        let mut stream = connect(server.tls[0]);
        stream.write_all(bytes).unwrap();
        read_to_end(&mut stream)
    };
    // RFC 8446 section 6: protocol_version is 70.
    for version in [0x0300, 0x0301, 0x0302] {
        assert_eq!(alert(&answer_to(&hello(version, &[ECDHE_ECDSA_AES128_GCM]))), 70, "{version:x}");
    }
    let too_long = [&[0x16, 3, 3, 0x48, 0x01][..], &[0; 32]].concat();
    assert!(matches!(alert(&answer_to(&too_long)), 22 | 50), "record_overflow, or decode_error as some libraries say");
    // A stray ChangeCipherSpec, alert or application record does not begin a connection: neither TLS nor STUN.
    for kind in [0x14, 0x15, 0x17] {
        assert_eq!(answer_to(&[kind, 3, 3, 0, 2, 1, 0]), b"");
    }
    let streams = shown(&server, "streams", |streams| streams["open"] == 0);
    assert_eq!((count(&streams["ended"], "tls"), &streams["handshakes"]), (4, &0.into()), "{streams}");
    probe(&server);
}

#[test]
fn rfc_r019_only_suites_with_forward_secrecy_and_no_old_cipher() {
    let certificates = Certificates::new();
    let server = with(&certificates, &[]);
    let answer_to = |suites: &[u16]| {
        let mut stream = connect(server.tls[0]);
        stream.write_all(&hello(0x0303, suites)).unwrap();
        read_to_end(&mut stream)
    };
    // RSA key exchange with AES, 3DES, DES and RC4; ECDHE with RC4 and with 3DES. handshake_failure is 40.
    for suite in [0x009C, 0x002F, 0x000A, 0x0009, 0x0005, 0xC007, 0xC008] {
        assert_eq!(alert(&answer_to(&[suite])), 40, "{suite:x}");
    }
    // The same hello with an additional suite with forward secrecy selects that one.
    let mut stream = connect(server.tls[0]);
    stream.write_all(&hello(0x0303, &[0x009C, 0x0005, ECDHE_ECDSA_AES128_GCM])).unwrap();
    let mut answer = [0; 128];
    std::io::Read::read_exact(&mut stream, &mut answer).unwrap();
    let session_id_len = usize::from(answer[43]);
    assert_eq!((answer[0], answer[5]), (0x16, 2), "a ServerHello");
    assert_eq!(answer[44 + session_id_len..47 + session_id_len], [0xC0, 0x2B, 0], "the suite, and no compression");
    probe(&server);
}

#[test]
fn a_lowest_version_and_a_list_of_suites_are_all_that_is_offered() {
    let certificates = Certificates::new();
    let with_version = |version| certificates.client(&[version], &[]);
    let server = with(&certificates, &["--tls-version-min", "1.3"]);
    let message = connect_tls(server.tls[0], &with_version(&TLS12)).err().unwrap().to_string();
    assert!(message.contains("ProtocolVersion"), "{message}");
    connect_tls(server.tls[0], &with_version(&TLS13)).unwrap();
    let suites = ["--tls-ciphers", "ECDHE-ECDSA-AES256-GCM-SHA384", "--tls-ciphers", "ECDHE-RSA-AES128-GCM-SHA256"];
    let server = with(&certificates, &suites);
    let stream = connect_tls(server.tls[0], &with_version(&TLS12)).unwrap();
    let agreed = stream.conn.negotiated_cipher_suite().unwrap().suite();
    assert_eq!(agreed, rustls::CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384);
    let mut stream = connect(server.tls[0]);
    stream.write_all(&hello(0x0303, &[ECDHE_ECDSA_AES128_GCM])).unwrap();
    assert_eq!(alert(&read_to_end(&mut stream)), 40, "handshake_failure");
    connect_tls(server.tls[0], &with_version(&TLS13)).unwrap();
}

#[test]
fn junk_inside_of_tls_is_closed_too() {
    let certificates = Certificates::new();
    let server = with(&certificates, &[]);
    let mut client =
        StreamClient::new(connect_tls(server.tls[0], &certificates.client(rustls::ALL_VERSIONS, &[])).unwrap());
    client.write(b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(client.receive(), None);
    let streams = shown(&server, "streams", |streams| streams["open"] == 0);
    assert_eq!(count(&streams["ended"], "not_stun"), 1, "{streams}");
    probe(&server);
}

#[test]
fn a_renewed_certificate_is_for_new_handshakes_and_old_connections_live_on() {
    let certificates = Certificates::new();
    let mut config = TurnConfig::on("127.0.0.1:0".parse().unwrap());
    config.certificates = vec![CertificateFiles { cert: certificates.cert(), key: certificates.key() }];
    config.users = vec![User::parse(&format!("{USER}:{PASSWORD}")).unwrap()].into();
    config.workers = 2;
    let running = turn_server::start(&config).unwrap();
    let addr = running.streams()[0].addr;
    let client = certificates.client(rustls::ALL_VERSIONS, &[]);
    let mut old = StreamClient::new(connect_tls(addr, &client).unwrap());
    old.allocate().unwrap();
    let shown_to = |client: &StreamClient<crate::stream_client::TlsStream>| {
        client.stream.conn.peer_certificates().unwrap()[0].to_vec()
    };
    let renewed = certificates.renew();
    assert_ne!(shown_to(&old), renewed);
    running.reload(config.clone()).unwrap();
    let new = StreamClient::new(connect_tls(addr, &client).unwrap());
    assert_eq!(shown_to(&new), renewed);
    assert_eq!(old.refresh(600), 0, "the old connection and its allocation live on");
    // An unusable one changes nothing, and the error names it.
    std::fs::write(certificates.key(), "no key").unwrap();
    let message = format!("{:#}", running.reload(config.clone()).unwrap_err());
    assert!(message.contains("key.pem") && message.contains("private key"), "{message}");
    let new = StreamClient::new(connect_tls(addr, &client).unwrap());
    assert_eq!(shown_to(&new), renewed);
    assert_eq!(old.refresh(600), 0);
    running.stop();
}
