//! The built binary with default settings: senders without credentials take no error reply from anybody else.

mod prefixes;

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use testkit::measured;
use testkit::turn_client::Client;

use crate::certificates::Certificates;
use crate::operators::operated::{Operated, wait};
use crate::server::{PASSWORD, Server, USER, is_given};
use crate::stream_client::{StreamClient, connect, connect_tls};
use crate::wire::{self, ALLOCATE, Reading, Writer};

const PATIENCE: Duration = Duration::from_secs(20);
/// The bound of the case for all clients of an address, judged with an optimised program.
const CHALLENGED_MAX: Duration = Duration::from_secs(2);
/// RFC 8489 section 6.2.1: a client sends its request again after 500 ms.
const RETRANSMIT: Duration = Duration::from_millis(500);
const JUNK_PER_SECOND: u64 = 500;

fn first_allocate(number: u64) -> Vec<u8> {
    let mut id = [0x11; 12];
    id[4..].copy_from_slice(&number.to_be_bytes());
    Writer::new(ALLOCATE, 0, id).attr(wire::TRANSPORT, &[17, 0, 0, 0]).0
}

/// Sends a request from every socket that has had no answer, and waits for answers until `patience` is over.
fn transmit(waiting: &mut Vec<(u64, UdpSocket)>, patience: Duration) {
    let mut bytes = [0; 1_500];
    let started = Instant::now();
    let mut receive = |waiting: &mut Vec<(u64, UdpSocket)>| {
        waiting.retain(|(number, socket)| match socket.recv(&mut bytes) {
            Ok(length) => {
                let reply = Reading::of(&bytes[..length]);
                assert_eq!((reply.code(), &reply.bytes[8..20]), (401, &first_allocate(*number)[8..20]));
                false
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                true
            }
        });
    };
    for (number, socket) in &*waiting {
        socket.send(&first_allocate(*number)).unwrap();
    }
    while !waiting.is_empty() && started.elapsed() < patience {
        receive(waiting);
    }
}

#[test]
fn a_thousand_clients_of_one_address_are_challenged_within_two_transmissions() {
    tt_net::raise_descriptor_limit().unwrap();
    let server = Server::start(&["--listen", "127.0.0.1:0"]);
    let socket = |number| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(server.listen[0]).unwrap();
        socket.set_nonblocking(true).unwrap();
        (number, socket)
    };
    let mut waiting: Vec<_> = (0..1_000).map(socket).collect();
    let started = Instant::now();
    transmit(&mut waiting, RETRANSMIT);
    let late = waiting.len();
    transmit(&mut waiting, PATIENCE);
    assert!(waiting.is_empty(), "{} of 1,000 were not challenged, {late} at the first transmission", waiting.len());
    let took = started.elapsed();
    measured(
        "error replies",
        format_args!("1,000 clients challenged in {took:.0?}, {late} at the second transmission"),
    );
    assert!(!is_given() || took <= CHALLENGED_MAX, "{took:?}");
    assert_eq!(server.stop().dropped, 0);
}

/// Sends useless requests from the address of everybody in this test, until `is_over`.
fn send_junk(server: SocketAddr, sent: &AtomicU64, is_over: &AtomicBool) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let started = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        // A second's worth at once, then the rate.
        let due = JUNK_PER_SECOND + started.elapsed().as_millis() as u64 * JUNK_PER_SECOND / 1_000;
        while sent.load(Ordering::Relaxed) < due {
            let number = sent.fetch_add(1, Ordering::Relaxed);
            let bare = &mut first_allocate(number)[..20];
            bare[2..4].copy_from_slice(&[0, 0]);
            socket.send_to(bare, server).unwrap();
        }
        thread::park_timeout(Duration::from_millis(2));
    }
}

#[test]
fn junk_in_the_name_of_an_address_takes_nothing_from_its_clients() {
    let certificates = Certificates::new();
    let secrets = tempfile::tempdir().unwrap();
    let nonce_keys = secrets.path().join("nonce-keys");
    let write_key = |digit: &str| {
        std::fs::write(&nonce_keys, digit.repeat(64)).unwrap();
        std::fs::set_permissions(&nonce_keys, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    };
    write_key("1");
    let server = Operated::start(&format!("nonce_key_file = \"{}\"", nonce_keys.display()), &[]);
    let mut live: Vec<_> = (0..4).map(|_| server.client("ann")).collect();
    for client in &mut live {
        client.allocate().unwrap();
    }
    // Their nonces become stale, as those of every call do within the hour.
    write_key("2");
    assert!(server.reload().contains("configuration reloaded"));
    wait("the new key", || live.iter_mut().all(|client| client.refresh(600) == 438));

    let tls = Server::start(
        &[&["--listen", "127.0.0.1:0"][..], &certificates.flags().each_ref().map(|flag| &flag[..])].concat(),
    );
    let (sent, is_over) = ([AtomicU64::new(0), AtomicU64::new(0)], AtomicBool::new(false));
    thread::scope(|scope| {
        for (listen, sent) in [server.listen, tls.listen[0]].into_iter().zip(&sent) {
            let is_over = &is_over;
            scope.spawn(move || send_junk(listen, sent, is_over));
        }
        wait("the junk", || sent.iter().all(|sent| sent.load(Ordering::Relaxed) >= JUNK_PER_SECOND));
        for client in &mut live {
            assert_eq!(client.refresh(600), 438, "a live allocation");
        }
        for _ in 0..20 {
            let mut client = server.client("ann");
            client.retransmits_after = Some(RETRANSMIT);
            client.allocate().unwrap();
            assert_eq!(client.sent, 2, "a challenge and an allocation, neither sent twice");
            let mut client = StreamClient::new(connect(tls.tcp[0]));
            client.allocate().unwrap();
        }
        let config = certificates.client(rustls::ALL_VERSIONS, &[]);
        for _ in 0..5 {
            let mut client = StreamClient::new(connect_tls(tls.tls[0], &config).unwrap());
            client.allocate().unwrap();
            let mut client = Client::new(tls.listen[0], USER, PASSWORD);
            client.retransmits_after = Some(RETRANSMIT);
            client.allocate().unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    measured("error replies", "junk in their name: challenged at once: 20 of 20 UDP, 20 of 20 TCP, 5 of 5 TLS clients");
    measured("stale nonces", format_args!("{0} of {0} live allocations got theirs", live.len()));
}
