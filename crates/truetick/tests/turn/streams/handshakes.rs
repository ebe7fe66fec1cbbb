//! TLS handshakes: how many there may be, who gets a place, and sessions that resume.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;

use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConnection, StreamOwned};
use serde_json::Value;
use testkit::measured;

use super::bounds::configuration;
use super::{count, probe, shown, start, text};
use crate::certificates::Certificates;
use crate::server::{Server, is_given};
use crate::stream_client::{StreamClient, connect_from, connect_tls};

/// The first bytes of a ClientHello.
const GREETING: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";

fn with(certificates: &Certificates, limits: &str) -> Server {
    let (_folder, path) = configuration(limits);
    let files = certificates.flags();
    start(&[&files.each_ref().map(String::as_str)[..], &["--config", &path]].concat())
}

/// The number of a metric without labels.
fn metric(server: &Server, name: &str) -> u64 {
    let metrics = text(server, "/metrics");
    let line = metrics.lines().find(|line| line.split(' ').next() == Some(name)).unwrap();
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Four sources hold every place and a hundred wait behind each: another source, and Bindings, do not.
#[test]
fn a_source_with_fewer_handshakes_takes_the_place_of_one_with_more() {
    let certificates = Certificates::new();
    let server = with(&certificates, "handshakes_max = 8\nhandshake_s = 600");
    let mut greeted: Vec<TcpStream> = Vec::new();
    for number in 0..400 {
        let mut stream = connect_from([127, 0, 0, 2 + (number % 4) as u8], server.tcp[0]);
        stream.write_all(GREETING).unwrap();
        greeted.push(stream);
    }
    // The first source lost some of its eight places to the others.
    let displaced = |streams: &Value| count(&streams["ended"], "handshake_displaced");
    let streams = shown(&server, "streams", |streams| {
        streams["accepted"] == 400 && streams["handshakes_in_progress"] == 400 - displaced(streams)
    });
    let before = displaced(&streams);
    let config = certificates.client(rustls::ALL_VERSIONS, &[]);
    for _ in 0..5 {
        let mut client = StreamClient::new(connect_tls(server.tls[0], &config).unwrap());
        client.allocate().unwrap();
    }
    probe(&server);
    let streams = shown(&server, "streams", |streams| displaced(streams) > before);
    // From eight places of one source to two of each: four to the second, then two each to the third and the fourth. Each
    // of the five clients had none and took one.
    assert!(displaced(&streams) <= 4 + 2 + 2 + 5, "{streams}");
    assert_eq!(count(&streams["refused"], "source_half_open"), 0, "{streams}");
    let name = "truetick_turn_connections_handshakes_in_progress";
    assert!((385..400).contains(&metric(&server, name)));
    drop(greeted);
    shown(&server, "streams", |streams| streams["handshakes_in_progress"] == 0);
    assert_eq!(metric(&server, name), 0);
}

/// Half-done handshakes end at the deadline, those that waited for a place too.
#[test]
fn a_handshake_ends_at_its_deadline_whether_it_has_begun_or_not() {
    let certificates = Certificates::new();
    let server = with(&certificates, "handshakes_max = 3\nhandshake_s = 1\nfirst_message_s = 600");
    let mut greeted: Vec<TcpStream> = (0..12).map(|_| connect_from([127, 0, 0, 2], server.tcp[0])).collect();
    greeted.iter_mut().for_each(|stream| stream.write_all(GREETING).unwrap());
    let streams = shown(&server, "streams", |streams| count(&streams["ended"], "handshake_deadline") == 12);
    assert_eq!((&streams["open"], &streams["handshakes"]), (&0.into(), &0.into()), "{streams}");
    probe(&server);
}

#[test]
fn a_session_resumes_on_every_worker_until_the_certificate_changes() {
    let certificates = Certificates::new();
    let server = with(&certificates, "");
    for version in [&TLS12, &TLS13] {
        let config = certificates.client(&[version], &[]);
        for _ in 0..9 {
            let mut client = StreamClient::new(connect_tls(server.tls[0], &config).unwrap());
            client.binding();
        }
    }
    let streams = shown(&server, "streams", |streams| streams["handshakes"] == 18);
    assert_eq!(streams["handshakes_resumed"], 16, "{streams}");
    assert_eq!(metric(&server, "truetick_turn_connections_handshakes_resumed_total"), 16);
}

/// A thousand clients over TCP and as many over TLS behind one address begin in the same second, with default limits;
/// another source is served meanwhile.
#[test]
fn an_office_behind_one_address_connects_at_once() {
    tt_net::raise_descriptor_limit().unwrap();
    let certificates = Certificates::new();
    // A program that is not optimised may take longer than the deadlines.
    let server = with(&certificates, if is_given() { "" } else { "handshake_s = 60\nfirst_message_s = 60" });
    let started = Instant::now();
    let config = certificates.client(rustls::ALL_VERSIONS, &[]);
    let office = || connect_from([127, 0, 0, 2], server.tcp[0]);
    let mut plain: Vec<_> = (0..1_000).map(|_| StreamClient::new(office())).collect();
    let mut tls: Vec<_> = (0..1_000)
        .map(|_| {
            let name = ServerName::try_from("127.0.0.1").unwrap();
            let mut stream = StreamOwned::new(ClientConnection::new(Arc::clone(&config), name).unwrap(), office());
            stream.conn.write_tls(&mut stream.sock).unwrap();
            StreamClient::new(stream)
        })
        .collect();
    StreamClient::new(connect_tls(server.tls[0], &config).unwrap()).allocate().unwrap();
    for client in &mut plain {
        client.binding();
    }
    for client in &mut tls {
        client.binding();
    }
    let took = started.elapsed();
    let streams = shown(&server, "streams", |streams| streams["handshakes"] == 1_001);
    assert_eq!((&streams["open"], &streams["half_open"]), (&2_000.into(), &0.into()), "{streams}");
    measured("connections", format_args!("1,000 TCP and 1,000 TLS clients of one address served in {took:.1?}"));
    probe(&server);
}
