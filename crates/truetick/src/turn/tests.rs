//! A fault of the program in one worker. In process: nothing from outside makes a worker panic.

#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use super::orders::Order;
use super::*;

#[allow(dead_code, reason = "each test uses its part of it")]
#[path = "../../tests/turn/client.rs"]
mod client;

use client::Client;

const PATIENCE: Duration = Duration::from_secs(60);

fn wait(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "never: {what}");
        std::thread::yield_now();
    }
}

fn ready_status(http: SocketAddr) -> u16 {
    let mut stream = TcpStream::connect(http).unwrap();
    write!(stream, "GET /readyz HTTP/1.1\r\nHost: {http}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

fn relays(client: &mut Client, peer: &UdpSocket) {
    client.send_channel(0x4000, b"on");
    let (length, relayed) = peer.recv_from(&mut [0; 64]).unwrap();
    assert_eq!(length, 2);
    peer.send_to(b"back", relayed).unwrap();
    assert_eq!(client.receive_channel(), (0x4000, b"back".to_vec()));
}

/// A83: the others relay on, health is red until the worker serves again, and no quota, lock or count is left behind.
#[test]
fn case_a83_a_workers_panic_is_its_own() {
    let mut config = TurnConfig::on("127.0.0.1:0".parse().unwrap());
    config.workers = 4;
    config.users.push(User::parse("ann:secret").unwrap());
    config.allow_peers.push("127.0.0.0/8".parse().unwrap());
    let running = start(&config).unwrap();
    let state = http::State { turn: Some(running.reading()), ..http::State::default() };
    let control = http::start("127.0.0.1:0".parse().unwrap(), state).unwrap();
    let peer = UdpSocket::bind("127.0.0.2:0").unwrap();
    peer.set_read_timeout(Some(PATIENCE)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let desk = running.desk();

    let mut clients: Vec<(usize, Client)> = Vec::new();
    // The kernel spreads them; with this many each of two workers has one, or the kernel is broken.
    for _ in 0..32 {
        let mut client = Client::new(running.listen()[0], "ann", "secret");
        let relayed = client.allocate().unwrap();
        assert_eq!(client.bind_channel(0x4000, peer.local_addr().unwrap()), 0);
        let row = runtime.block_on(desk.find(relayed)).unwrap().unwrap();
        clients.push((row.worker, client));
    }
    let broken = clients[0].0;
    let (mut gone, mut others): (Vec<_>, Vec<_>) = clients.into_iter().partition(|(worker, _)| *worker == broken);
    assert!(!others.is_empty());
    assert_eq!(ready_status(control.listen()), 200);

    assert!(running.posts[broken].send(Order::Panic));
    let reading = running.reading();
    wait("the worker is down", || reading().workers_down == 1);
    assert_eq!(ready_status(control.listen()), 503);
    others.iter_mut().for_each(|(_, client)| relays(client, &peer));
    wait("the worker serves again", || reading().workers_down == 0);
    assert_eq!((ready_status(control.listen()), reading().panics), (200, 1));

    assert_eq!(running.allocations() as usize, others.len(), "quotas are given back");
    others.iter_mut().for_each(|(_, client)| relays(client, &peer));
    for (_, client) in &mut gone {
        assert_eq!(client.refresh(600), 437, "its allocation has ended");
        client.allocate().unwrap();
        assert_eq!(client.bind_channel(0x4000, peer.local_addr().unwrap()), 0);
        relays(client, &peer);
    }
    wait("the count is published", || reading().allocations.live as usize == others.len() + gone.len());
    assert_eq!(reading().allocations.ended as usize, gone.len());
    control.stop();
    let ledger = running.stop().ledger();
    assert!(ledger.closes, "{ledger:?}");
}
