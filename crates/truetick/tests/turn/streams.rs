//! The built binary over TCP and TLS, on loopback, with a client written from the RFCs.

mod bounds;
mod framing;
mod handshakes;
mod names;
mod proxied;
mod realms;
mod relaying;
mod reservations;
mod tls;

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::Instant;

use serde_json::Value;

use crate::server::{Server, USER};
use crate::stream_client::PATIENCE;

/// Four workers on loopback that let relays reach loopback.
const FLAGS: [&str; 8] =
    ["--listen", "127.0.0.1:0", "--workers", "4", "--allow-own-host", "127.0.0.0/8", "--http", "127.0.0.1:0"];

fn start(flags: &[&str]) -> Server {
    Server::start(&[&FLAGS[..], flags].concat())
}

fn peer() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// The body of `GET path` from the control plane.
fn text(server: &Server, path: &str) -> String {
    let http = server.http.unwrap();
    let mut stream = TcpStream::connect(http).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {http}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

fn get(server: &Server, path: &str) -> Value {
    serde_json::from_str(&text(server, path)).unwrap()
}

/// The number of `name` in a list of counts.
fn count(counts: &Value, name: &str) -> u64 {
    let counts = counts.as_array().unwrap();
    counts.iter().find(|count| count["name"] == name).unwrap()["count"].as_u64().unwrap()
}

/// What `/api/v1/turn/{path}` shows, as soon as it is as `suits` wants it.
fn shown(server: &Server, path: &str, suits: impl Fn(&Value) -> bool) -> Value {
    let started = Instant::now();
    loop {
        let value = get(server, &format!("/api/v1/turn/{path}"));
        if suits(&value) {
            return value;
        }
        assert!(started.elapsed() < PATIENCE, "{value}");
        testkit::pause();
    }
}

/// The server serves a stranger over UDP and over TCP: no case has hurt it.
fn probe(server: &Server) {
    let mut client = testkit::turn_client::Client::new(server.listen[0], USER, crate::server::PASSWORD);
    assert_eq!(client.binding(), client.socket.local_addr().unwrap());
    let mut client = crate::stream_client::StreamClient::new(crate::stream_client::connect(server.tcp[0]));
    assert_eq!(client.binding(), client.stream.local_addr().unwrap());
}

/// Reads until the server has closed `stream`, and returns what came.
fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "it stays open"),
    }
    bytes
}
