//! What the built binary does with IP packets, over loopback: header fields, ICMP, payloads that never leave it.

mod fields;
mod hairpin;
mod icmp;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(20);
const CHANNEL: u16 = 0x4001;

/// Waits until the server reports at `http` that it has dropped `count` datagrams as `name`.
fn wait_for_drops(http: SocketAddr, name: &str, count: u64) {
    let started = Instant::now();
    loop {
        let mut stream = TcpStream::connect(http).unwrap();
        write!(stream, "GET /api/v1/turn/drops HTTP/1.1\r\nHost: {http}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let ledger: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        let drops = ledger["drops"].as_array().unwrap();
        let found = drops.iter().find(|drop| drop["name"] == name).unwrap()["count"].as_u64().unwrap();
        if found == count {
            return;
        }
        assert!(found < count && started.elapsed() < PATIENCE, "{ledger}");
        testkit::pause();
    }
}
