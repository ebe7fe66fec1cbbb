//! A reload with other balancers, prefixes of sources and limits of TLS handshakes, which all workers share.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use super::operated::{Operated, peer, wait};
use crate::certificates::Certificates;
use crate::stream_client::{StreamClient, connect, connect_from, connect_tls};

const KEYS: &str = "allow_own_host = [\"127.0.0.0/8\"]";
const BALANCER: [u8; 4] = [127, 0, 0, 2];
/// The begin of a TLS record that never ends.
const GREETING: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";

fn reloaded(server: &Operated, from: &str, to: &str) {
    server.edit(|text| text.replace(from, to));
    let reported = server.reload();
    assert!(reported.contains("configuration reloaded") && !reported.contains("restart"), "{to}: {reported}");
}

fn behind(server: &Operated, client: &str) -> TcpStream {
    let mut stream = connect_from(BALANCER, server.tcp.unwrap());
    let family = if client.contains(':') { "TCP6" } else { "TCP4" };
    let own = if client.contains(':') { "2001:db8::2" } else { "198.51.100.2" };
    // At once: after a part of it, a server that expects none closes the connection already.
    stream.write_all(format!("PROXY {family} {client} {own} 5000 3478\r\n").as_bytes()).unwrap();
    stream
}

/// Whether the server closes the connection without an answer to a Binding request.
fn is_closed(stream: TcpStream) -> bool {
    let mut client = StreamClient::new(stream);
    let request = client.binding_request();
    if client.stream.write_all(&request).is_err() {
        return true;
    }
    let mut answer = Vec::new();
    !matches!(client.stream.take(20).read_to_end(&mut answer), Ok(20))
}

fn streams(server: &Operated) -> Value {
    server.ask("GET", "/api/v1/turn/streams", None).json()
}

fn ended(server: &Operated, name: &str) -> u64 {
    let all = &streams(server)["ended"];
    all.as_array().unwrap().iter().find(|end| end["name"] == name).unwrap()["count"].as_u64().unwrap()
}

#[test]
fn a_balancer_comes_and_goes_and_its_clients_stay() {
    let server = Operated::start(KEYS, &[]);
    assert!(is_closed(behind(&server, "192.0.2.7")), "before it is listed");
    reloaded(&server, "workers = 2\n", "workers = 2\nproxy_protocol_from = [\"127.0.0.2\"]\n");
    let mut client = StreamClient::of_user(behind(&server, "192.0.2.7"), "ann", "ann-secret");
    assert_eq!(client.binding(), "192.0.2.7:5000".parse().unwrap());
    client.allocate().unwrap();
    let peer = peer();
    assert_eq!(client.bind_channel(0x4000, peer.local_addr().unwrap()), 0);
    reloaded(&server, "[\"127.0.0.2\"]", "[\"127.0.0.9\"]");
    assert!(is_closed(behind(&server, "192.0.2.8")), "it is listed no more");
    client.send_channel(0x4000, b"still here");
    let mut bytes = [0; 16];
    assert_eq!(peer.recv(&mut bytes).unwrap(), 10);
    assert_eq!(client.refresh(600), 0);
    assert_eq!(ended(&server, "proxy_header_unlisted"), 2);
    let mut plain = StreamClient::new(connect_from(BALANCER, server.tcp.unwrap()));
    assert_eq!(plain.binding(), plain.stream.local_addr().unwrap());
}

/// Two networks of 64 bits are one source as soon as 48 bits count, and two again with 64.
#[test]
fn ipv6_sources_are_counted_by_the_prefix_of_the_reload() {
    let keys = "proxy_protocol_from = [\"127.0.0.2\"]\nstreams = { connections_per_source = 1 }\n\
        quotas = { ipv6_prefix_bits = 64 }";
    let server = Operated::start(keys, &[]);
    let mut first = StreamClient::new(behind(&server, "2001:db8:0:1::1"));
    first.binding();
    assert!(is_closed(behind(&server, "2001:db8:0:1::2")), "the same 64 bits");
    assert!(!is_closed(behind(&server, "2001:db8:0:2::1")), "another 64 bits");
    wait("it is gone", || streams(&server)["open"] == 1);
    reloaded(&server, "ipv6_prefix_bits = 64", "ipv6_prefix_bits = 48");
    // A connection keeps the key with which it was counted; one of now has the key of all its neighbours.
    let mut second = StreamClient::new(behind(&server, "2001:db8:0:3::1"));
    second.binding();
    assert!(is_closed(behind(&server, "2001:db8:0:2::1")), "the same 48 bits");
    assert!(!is_closed(behind(&server, "2001:db8:1:2::1")), "another 48 bits");
    reloaded(&server, "ipv6_prefix_bits = 48", "ipv6_prefix_bits = 64");
    assert!(!is_closed(behind(&server, "2001:db8:0:2::1")), "another 64 bits again");
    assert!(is_closed(behind(&server, "2001:db8:0:1::2")), "the first is still counted");
    drop((first, second));
    wait("all are gone", || streams(&server)["open"] == 0);
    assert!(!is_closed(behind(&server, "2001:db8:0:1::2")), "nothing is left of the first");
}

/// Three handshakes of one source that never end hold all places: a fourth waits for the reload that gives it one.
#[test]
fn limits_of_handshakes_follow_a_reload() {
    let certificates = Certificates::new();
    let (cert, key) = (certificates.cert(), certificates.key());
    let keys = format!(
        "cert = {cert:?}\nkey = {key:?}\n\
         streams = {{ handshakes_max = 3, handshake_s = 600, first_message_s = 600 }}"
    );
    let server = Operated::start(&keys, &[]);
    let greeted: Vec<TcpStream> = (0..3)
        .map(|_| {
            let mut stream = connect(server.tcp.unwrap());
            stream.write_all(GREETING).unwrap();
            stream
        })
        .collect();
    wait("three are in progress", || streams(&server)["handshakes_in_progress"] == 3);
    let (to, config) = (server.tcp.unwrap(), certificates.client(rustls::ALL_VERSIONS, &[]));
    let fourth = std::thread::spawn(move || {
        let mut client = StreamClient::new(connect_tls(to, &config).unwrap());
        client.binding();
    });
    wait("the fourth waits", || streams(&server)["handshakes_in_progress"] == 4);
    assert!(!fourth.is_finished());
    reloaded(&server, "handshakes_max = 3", "handshakes_max = 4");
    fourth.join().unwrap();
    // The deadline of those in progress stays, and a new one has the new deadline.
    reloaded(&server, "handshake_s = 600", "handshake_s = 1");
    let mut late = connect(server.tcp.unwrap());
    late.write_all(GREETING).unwrap();
    wait("the new one has ended", || ended(&server, "handshake_deadline") == 1);
    assert_eq!(streams(&server)["handshakes_in_progress"], 3);
    drop(greeted);
}
