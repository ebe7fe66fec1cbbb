//! Clients behind a balancer that speaks the PROXY protocol.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use serde_json::Value;
use testkit::{Requirement, find_program, require};

use super::bounds::configuration;
use super::{count, get, peer, probe, read_to_end, shown, start};
use crate::certificates::Certificates;
use crate::stream_client::{PATIENCE, StreamClient, connect, connect_from};

/// A listed balancer.
const BALANCER: [u8; 4] = [127, 0, 0, 2];
const LISTED: [&str; 2] = ["--proxy-protocol-from", "127.0.0.2"];
const LINE: &[u8] = b"PROXY TCP4 192.0.2.7 198.51.100.2 5000 3478\r\n";
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Version 2: PROXY, TCP over IPv6, from [2001:db8::7]:5000 to [2001:db8::2]:3478, with an authority.
fn binary() -> Vec<u8> {
    let ip = |last: u8| [&[0x20, 1, 0xd, 0xb8][..], &[0; 11], &[last]].concat();
    let rest = [&ip(7)[..], &ip(2), &5000_u16.to_be_bytes(), &3478_u16.to_be_bytes(), &[2, 0, 4], b"turn"].concat();
    [SIGNATURE, &[0x21, 0x21, 0, rest.len() as u8], &rest].concat()
}

/// Version 2: LOCAL.
fn local() -> Vec<u8> {
    [SIGNATURE, &[0x20, 0, 0, 0]].concat()
}

fn behind(balancer: [u8; 4], server: SocketAddr, header: &[u8]) -> TcpStream {
    let mut stream = connect_from(balancer, server);
    stream.write_all(header).unwrap();
    stream
}

fn ended(streams: &Value, name: &str) -> u64 {
    count(&streams["ended"], name)
}

/// Every accepted connection is open or has ended under a name.
fn assert_adds_up(streams: &Value) {
    let ended: u64 = streams["ended"].as_array().unwrap().iter().map(|end| end["count"].as_u64().unwrap()).sum();
    assert_eq!(streams["accepted"].as_u64().unwrap(), streams["open"].as_u64().unwrap() + ended, "{streams}");
}

#[test]
fn clients_have_the_address_that_the_header_names_over_tcp_and_tls() {
    let certificates = Certificates::new();
    let flags = certificates.flags();
    let server = start(&[&LISTED[..], &flags.each_ref().map(String::as_str)].concat());
    let cases = [(LINE.to_vec(), "192.0.2.7:5000"), (binary(), "[2001:db8::7]:5000")];
    for (header, seen) in &cases {
        let mut client = StreamClient::new(behind(BALANCER, server.tcp[0], header));
        assert_eq!(client.binding(), seen.parse().unwrap());
        client.allocate().unwrap();
        let config = certificates.client(rustls::ALL_VERSIONS, &[]);
        let tls = ClientConnection::new(config, ServerName::try_from("127.0.0.1").unwrap()).unwrap();
        let mut client = StreamClient::new(StreamOwned::new(tls, behind(BALANCER, server.tls[0], header)));
        assert_eq!(client.binding(), seen.parse().unwrap());
    }
    for header in [local(), b"PROXY UNKNOWN\r\n".to_vec()] {
        let mut client = StreamClient::new(behind(BALANCER, server.tcp[0], &header));
        assert_eq!(client.binding(), client.stream.local_addr().unwrap());
    }
    probe(&server);
}

#[test]
fn a_client_behind_a_balancer_relays_and_is_listed_under_its_address() {
    let folder = tempfile::tempdir().unwrap();
    let records = folder.path().join("records");
    let server = start(&[&LISTED[..], &["--cdr", records.to_str().unwrap()]].concat());
    let mut client = StreamClient::new(behind(BALANCER, server.tcp[0], LINE));
    let relayed = client.allocate().unwrap();
    let peer = peer();
    let addr = peer.local_addr().unwrap();
    assert_eq!(client.permit(addr), 0);
    client.send_indication(addr, b"hello");
    let mut bytes = [0; 16];
    assert_eq!(peer.recv_from(&mut bytes).unwrap(), (5, relayed));
    peer.send_to(b"answer", relayed).unwrap();
    assert_eq!(client.receive_indication(), (addr, b"answer".to_vec()));
    drop(client);
    shown(&server, "streams", |streams| streams["open"] == 0);
    server.stop();
    let records = std::fs::read_to_string(records).unwrap();
    assert!(records.lines().count() == 2 && records.lines().all(|line| line.contains("192.0.2.7:5000")), "{records}");
    assert!(records.contains("198.51.100.2:3478") && !records.contains("127.0.0.2"), "{records}");
}

#[test]
fn a_header_from_an_address_that_is_not_listed_closes_the_connection() {
    for flags in [&LISTED[..], &[]] {
        let server = start(flags);
        for header in [LINE, &binary(), &local(), b"PROXY UNKNOWN\r\n"] {
            let request = StreamClient::new(connect(server.tcp[0])).binding_request();
            let mut stream = behind([127, 0, 0, 3], server.tcp[0], &[header, &request].concat());
            assert_eq!(read_to_end(&mut stream), b"");
        }
        let streams = shown(&server, "streams", |streams| ended(streams, "proxy_header_unlisted") == 4);
        assert_adds_up(&streams);
        probe(&server);
    }
}

#[test]
fn a_second_header_closes_the_connection() {
    let server = start(&LISTED);
    let mut stream = behind(BALANCER, server.tcp[0], &[LINE, LINE].concat());
    assert_eq!(read_to_end(&mut stream), b"");
    shown(&server, "streams", |streams| ended(streams, "proxy_header_unlisted") == 1);
}

#[test]
fn a_balancer_without_a_true_header_in_time_is_closed_under_a_name() {
    let (_folder, path) = configuration("proxy_header_s = 1\nfirst_message_s = 600");
    let server = start(&[&LISTED[..], &["--config", &path]].concat());
    let request = StreamClient::new(connect(server.tcp[0])).binding_request();
    let mut long = binary();
    long[14..16].copy_from_slice(&4_081_u16.to_be_bytes());
    let cases: [(&[u8], &str); 6] = [
        (&request, "proxy_header_missing"),
        (b"\x16\x03\x01\x02\x00\x01", "proxy_header_missing"),
        (b"PROXY TCP4 192.0.2.7 198.51.100.2 65536 3478\r\n", "proxy_header_invalid"),
        (&[SIGNATURE, &[0x11, 0, 0, 0]].concat(), "proxy_header_invalid"),
        (&long, "proxy_header_too_long"),
        (&[LINE[..11].to_vec(), vec![b'1'; 96]].concat(), "proxy_header_too_long"),
    ];
    for (bytes, _) in cases {
        assert_eq!(read_to_end(&mut behind(BALANCER, server.tcp[0], bytes)), b"", "{bytes:?}");
    }
    let mut silent: Vec<_> =
        [&b""[..], &LINE[..20], &binary()[..30]].map(|part| behind(BALANCER, server.tcp[0], part)).into();
    for stream in &mut silent {
        assert_eq!(read_to_end(stream), b"");
    }
    let streams = shown(&server, "streams", |streams| ended(streams, "proxy_header_deadline") == 3);
    for name in ["proxy_header_missing", "proxy_header_invalid", "proxy_header_too_long"] {
        assert_eq!(ended(&streams, name), 2, "{name}: {streams}");
    }
    assert_adds_up(&streams);
    probe(&server);
}

#[test]
fn a_header_may_come_byte_by_byte() {
    let server = start(&LISTED);
    for (header, seen) in [(LINE.to_vec(), "192.0.2.7:5000"), (binary(), "[2001:db8::7]:5000")] {
        let mut stream = connect_from(BALANCER, server.tcp[0]);
        stream.set_nodelay(true).unwrap();
        header.iter().for_each(|byte| stream.write_all(&[*byte]).unwrap());
        assert_eq!(StreamClient::new(stream).binding(), seen.parse().unwrap());
    }
}

#[test]
fn limits_of_connections_are_those_of_the_client() {
    let (_folder, path) = configuration("connections_per_source = 3\nhalf_open_per_source = 2");
    let server = start(&[&LISTED[..], &["--config", &path]].concat());
    let line = |host: u8| format!("PROXY TCP4 192.0.2.{host} 198.51.100.2 5000 3478\r\n").into_bytes();
    // More clients than one source may be.
    let mut others: Vec<_> =
        (10..20).map(|host| StreamClient::new(behind(BALANCER, server.tcp[0], &line(host)))).collect();
    for client in &mut others {
        client.binding();
    }
    let silent = [(); 2].map(|()| behind(BALANCER, server.tcp[0], &line(7)));
    shown(&server, "streams", |streams| streams["half_open"] == 2 && streams["open"] == 12);
    let mut rejected = behind(BALANCER, server.tcp[0], &line(7));
    assert_eq!(read_to_end(&mut rejected), b"");
    let streams = shown(&server, "streams", |streams| ended(streams, "proxied_source_limit") == 1);
    assert_adds_up(&streams);
    drop(silent);
    shown(&server, "streams", |streams| streams["open"] == 10);
    assert_eq!(StreamClient::new(behind(BALANCER, server.tcp[0], &line(7))).binding().to_string(), "192.0.2.7:5000");
    for client in &mut others {
        client.binding();
    }
}

/// haproxy, killed when dropped.
struct Balancer(Child);

impl Drop for Balancer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn haproxy_names_its_clients_in_both_versions() {
    let Some(haproxy) = require(Requirement::Program, find_program("haproxy", "haproxy")) else { return };
    let certificates = Certificates::new();
    let flags = certificates.flags();
    let server = start(&[&LISTED[..], &flags.each_ref().map(String::as_str)].concat());
    let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (first, second) = (free(), free());
    let target = server.tcp[0];
    let section = |name: &str, at: SocketAddr, option: &str| {
        format!("listen {name}\n bind {at}\n server turn {target} source 127.0.0.2 {option}\n")
    };
    let config = "defaults\n mode tcp\n timeout connect 10s\n timeout client 60s\n timeout server 60s\n".to_owned()
        + &section("one", first, "send-proxy check")
        + &section("two", second, "send-proxy-v2 check");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("haproxy.cfg");
    std::fs::write(&path, config).unwrap();
    let _balancer = Balancer(Command::new(haproxy).arg("-db").arg("-f").arg(&path).spawn().unwrap());
    for at in [first, second] {
        let listens = testkit::wait_until(PATIENCE, || TcpStream::connect(at).is_ok());
        assert!(listens, "haproxy does not listen on {at}");
        let mut client = StreamClient::new(connect(at));
        assert_eq!(client.binding(), client.stream.local_addr().unwrap());
        client.allocate().unwrap();
        let config = certificates.client(rustls::ALL_VERSIONS, &[]);
        let tls = ClientConnection::new(Arc::clone(&config), ServerName::try_from("127.0.0.1").unwrap()).unwrap();
        let mut client = StreamClient::new(StreamOwned::new(tls, connect(at)));
        assert_eq!(client.binding(), client.stream.sock.local_addr().unwrap());
    }
    let streams = get(&server, "/api/v1/turn/streams");
    let names =
        ["missing", "invalid", "too_long", "unlisted"].map(|name| ended(&streams, &format!("proxy_header_{name}")));
    assert_eq!(names, [0; 4], "{streams}");
}
