//! The crate's promises, kept by the kernel over loopback.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket as StdSocket};
use std::thread;
use std::time::{Duration, Instant};

use tt_model::ByteRange;
use tt_net::{Datagram, Inbox, IoFault, Outbox, Outgoing, Poller, UdpSocket};

const PATIENCE: Duration = Duration::from_secs(10);

fn client(addr: &str) -> StdSocket {
    let socket = StdSocket::bind(addr).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn listener(addr: &str) -> UdpSocket {
    UdpSocket::listeners(addr.parse().unwrap(), 1).unwrap().remove(0)
}

/// Waits for readiness and takes all there is; fails after `PATIENCE`.
fn take_ready(poller: &mut Poller, inbox: &mut Inbox, socket: &UdpSocket, key: u64) {
    assert_eq!(poller.wait(Some(PATIENCE)).unwrap(), [key]);
    inbox.receive(socket, key, usize::MAX - 1024).unwrap();
}

/// Answers what is in the inbox with the same bytes from the address that was asked.
fn echo(inbox: &Inbox, outbox: &mut Outbox, key: u64) {
    for index in 0..inbox.len() {
        let datagram = inbox.datagram(index);
        let mut outgoing = Outgoing::quoting(key, datagram.from, index, ByteRange::new(0, datagram.bytes.len() as u32));
        outgoing.traffic_class = datagram.traffic_class;
        outgoing.source = Some(datagram.to.ip());
        assert!(outbox.push(outgoing));
    }
}

#[test]
fn replies_leave_from_the_address_that_was_asked() {
    for (wildcard, from, asked) in [
        ("0.0.0.0:0", "127.0.0.1:0", "127.0.0.77"),
        ("0.0.0.0:0", "127.0.0.1:0", "127.0.0.1"),
        ("[::]:0", "[::1]:0", "::1"),
    ] {
        let server = listener(wildcard);
        let mut poller = Poller::new(4).unwrap();
        poller.add(&server, 1).unwrap();
        let (mut inbox, mut outbox) = (Inbox::new(4, 2048), Outbox::new(4, 64));
        let client = client(from);
        let asked = SocketAddr::new(asked.parse().unwrap(), server.local_addr().port());
        client.send_to(b"who answers", asked).unwrap();

        take_ready(&mut poller, &mut inbox, &server, 1);
        assert_eq!(inbox.datagram(0).to, asked);
        assert_eq!(inbox.datagram(0).from, client.local_addr().unwrap());
        echo(&inbox, &mut outbox, 1);
        assert_eq!(outbox.flush(&inbox, |_| Some(&server)).datagrams, 1);

        let mut bytes = [0; 64];
        let (len, from) = client.recv_from(&mut bytes).unwrap();
        assert_eq!((&bytes[..len], from), (&b"who answers"[..], asked));
    }
}

#[test]
fn dscp_and_ecn_are_read_and_written() {
    for (addr, wildcard) in [("127.0.0.1:0", "0.0.0.0:0"), ("[::1]:0", "[::]:0")] {
        let (server, client) = (listener(wildcard), UdpSocket::bind(addr.parse().unwrap()).unwrap());
        let asked = SocketAddr::new(client.local_addr().ip(), server.local_addr().port());
        let (mut inbox, mut outbox) = (Inbox::new(4, 64), Outbox::new(4, 64));
        // Expedited forwarding with CE, then the default.
        for class in [0xbb, 0] {
            outbox.head()[0] = b'x';
            assert!(outbox.push(Outgoing { traffic_class: class, ..Outgoing::of_head(0, asked, 1) }));
            assert_eq!(outbox.flush(&inbox, |_| Some(&client)).datagrams, 1);
            assert_eq!(inbox.receive(&server, 0, 4).unwrap().count, 1);
            assert_eq!(inbox.datagram(0).traffic_class, class, "{addr}");
            echo(&inbox, &mut outbox, 0);
            assert_eq!(outbox.flush(&inbox, |_| Some(&server)).datagrams, 1);
            inbox.clear();
            assert_eq!(inbox.receive(&client, 0, 4).unwrap().count, 1);
            assert_eq!((inbox.datagram(0).traffic_class, inbox.datagram(0).from), (class, asked), "{addr}");
            inbox.clear();
        }
    }
}

#[test]
fn head_quote_and_padding_leave_as_one_datagram() {
    let server = listener("127.0.0.1:0");
    let (mut inbox, mut outbox) = (Inbox::new(4, 2048), Outbox::new(4, 64));
    let mut poller = Poller::new(4).unwrap();
    poller.add(&server, 1).unwrap();
    let client = client("127.0.0.1:0");
    client.send_to(b"....payload", server.local_addr()).unwrap();
    take_ready(&mut poller, &mut inbox, &server, 1);

    for head in [*b"AAAA", *b"BBBB"] {
        outbox.head()[..4].copy_from_slice(&head);
        let mut outgoing = Outgoing::quoting(1, client.local_addr().unwrap(), 0, ByteRange::new(4, 11));
        (outgoing.head_len, outgoing.padding) = (4, 1);
        assert!(outbox.push(outgoing));
    }
    outbox.head()[0] = b'C';
    assert!(outbox.push(Outgoing::of_head(1, client.local_addr().unwrap(), 1)));
    let sent = outbox.flush(&inbox, |_| Some(&server));
    assert_eq!((sent.datagrams, sent.quoting), (3, 2));
    let mut bytes = [9; 64];
    for expected in [b"AAAApayload\0", b"BBBBpayload\0"] {
        let len = client.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..len], expected);
    }
}

#[test]
fn one_edge_brings_everything_and_short_reads_end_it() {
    let server = listener("127.0.0.1:0");
    let mut poller = Poller::new(4).unwrap();
    poller.add(&server, 3).unwrap();
    let client = client("127.0.0.1:0");
    for number in 0..20u8 {
        client.send_to(&[number; 3], server.local_addr()).unwrap();
    }
    assert_eq!(poller.wait(Some(PATIENCE)).unwrap(), [3]);
    let mut inbox = Inbox::new(32, 64);
    let first = inbox.receive(&server, 3, 8).unwrap();
    assert_eq!((first.count, first.drained), (8, false));
    let rest = inbox.receive(&server, 3, 16).unwrap();
    assert_eq!((rest.count, rest.drained), (12, true));
    for index in 0..20 {
        assert_eq!(inbox.datagram(index).bytes, [index as u8; 3]);
    }
    assert_eq!(poller.wait(Some(Duration::ZERO)).unwrap(), [0u64; 0], "no second edge without a datagram");
    inbox.clear();
    client.send_to(b"again", server.local_addr()).unwrap();
    take_ready(&mut poller, &mut inbox, &server, 3);
    assert_eq!(inbox.datagram(0).bytes, b"again");
}

#[test]
fn longer_than_a_slot_is_marked() {
    let server = listener("127.0.0.1:0");
    let client = client("127.0.0.1:0");
    client.send_to(&[1; 100], server.local_addr()).unwrap();
    client.send_to(&[2; 60], server.local_addr()).unwrap();
    let mut poller = Poller::new(1).unwrap();
    poller.add(&server, 0).unwrap();
    let mut inbox = Inbox::new(4, 64);
    take_ready(&mut poller, &mut inbox, &server, 0);
    assert_eq!(inbox.datagram(0).bytes, [1; 64]);
    assert!(inbox.datagram(0).truncated);
    assert_eq!(inbox.datagram(1).bytes, [2; 60]);
    assert!(!inbox.datagram(1).truncated);
}

#[test]
fn a_group_shares_a_port_and_a_client_stays_with_one() {
    let group = UdpSocket::listeners("127.0.0.1:0".parse().unwrap(), 4).unwrap();
    let addr = group[0].local_addr();
    assert!(group.iter().all(|socket| socket.local_addr() == addr));
    let clients: Vec<_> = (0..64).map(|_| client("127.0.0.1:0")).collect();
    let mut homes = vec![BTreeSet::new(); clients.len()];
    for _ in 0..3 {
        for (number, client) in clients.iter().enumerate() {
            client.send_to(&[number as u8], addr).unwrap();
        }
        let mut inbox = Inbox::new(256, 64);
        let mut seen = 0;
        while seen < clients.len() {
            for (home, socket) in group.iter().enumerate() {
                let before = inbox.len();
                seen += inbox.receive(socket, home as u64, 64).unwrap().count;
                for index in before..inbox.len() {
                    homes[usize::from(inbox.datagram(index).bytes[0])].insert(home);
                }
            }
        }
    }
    assert!(homes.iter().all(|home| home.len() == 1), "a five-tuple has one worker");
    let used: BTreeSet<_> = homes.iter().flatten().collect();
    assert_eq!(used.len(), 4, "64 clients meet all four");
}

#[test]
fn a_port_that_is_taken_is_an_error_even_by_a_group() {
    let group = UdpSocket::listeners("127.0.0.1:0".parse().unwrap(), 2).unwrap();
    let error = UdpSocket::listeners(group[0].local_addr(), 2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert_eq!(IoFault::of(&error), IoFault::BadAddress);
}

#[test]
fn reports_datagrams_that_the_kernel_drops() {
    let server = listener("127.0.0.1:0");
    server.set_buffers(4096, false).unwrap();
    let client = client("127.0.0.1:0");
    let sent = 500;
    for _ in 0..sent {
        client.send_to(&[7; 1000], server.local_addr()).unwrap();
    }
    let mut inbox = Inbox::new(1024, 2048);
    let held = inbox.receive(&server, 0, 1024).unwrap();
    assert!(held.drained && held.count < sent);
    // The count rides on datagrams that were queued after the loss.
    client.send_to(&[8; 10], server.local_addr()).unwrap();
    let after = inbox.receive(&server, 0, 8).unwrap();
    assert_eq!(after.count, 1);
    assert_eq!(held.count as u64 + held.lost + after.lost, sent as u64);
}

#[test]
fn a_refused_datagram_does_not_hold_up_the_others() {
    let server = listener("127.0.0.1:0");
    let client = client("127.0.0.1:0");
    let mut outbox = Outbox::new(8, 64);
    let unreachable: SocketAddr = "[2001:db8::1]:9".parse().unwrap();
    for to in [client.local_addr().unwrap(), unreachable, client.local_addr().unwrap()] {
        outbox.head()[0] = b'x';
        assert!(outbox.push(Outgoing::of_head(0, to, 1)));
    }
    outbox.head()[0] = b'y';
    assert!(outbox.push(Outgoing::of_head(1, client.local_addr().unwrap(), 1)));
    let sent = outbox.flush(&Inbox::new(1, 1), |key| (key == 0).then_some(&server));
    assert_eq!((sent.datagrams, sent.refused.total(), sent.orphaned), (2, 1, 1));
    assert_eq!(sent.refused.of(IoFault::BadAddress), 1);
    let mut bytes = [0; 8];
    assert_eq!(client.recv(&mut bytes).unwrap(), 1);
    assert_eq!(client.recv(&mut bytes).unwrap(), 1);
}

#[test]
fn a_full_outbox_says_so() {
    let to = "127.0.0.1:9".parse().unwrap();
    let mut outbox = Outbox::new(2, 8);
    assert!(outbox.push(Outgoing::of_head(0, to, 6)));
    assert!(!outbox.push(Outgoing::of_head(0, to, 3)), "two bytes of heads are left");
    assert!(outbox.push(Outgoing::of_head(0, to, 2)));
    assert!(!outbox.push(Outgoing::of_head(0, to, 0)), "two datagrams is all");
}

#[test]
fn a_datagram_that_came_another_way_is_quoted_like_any_other() {
    let server = listener("127.0.0.1:0");
    let client = client("127.0.0.1:0");
    let (mut inbox, mut outbox) = (Inbox::new(2, 16), Outbox::new(2, 16));
    let (from, to) = (client.local_addr().unwrap(), server.local_addr());
    let came = |bytes| Datagram { key: 0, from, to, bytes, truncated: false, traffic_class: 0, hop_limit: 0 };
    assert!(!inbox.insert(came(&[0; 17])), "longer than a slot");
    assert!(inbox.insert(came(b"another way")));
    assert_eq!((inbox.datagram(0).from, inbox.datagram(0).to), (client.local_addr().unwrap(), server.local_addr()));
    echo(&inbox, &mut outbox, 0);
    assert_eq!(outbox.flush(&inbox, |_| Some(&server)).quoting, 1);
    let mut bytes = [0; 64];
    let len = client.recv(&mut bytes).unwrap();
    assert_eq!(&bytes[..len], b"another way");
    assert!(inbox.insert(came(b"")));
    assert!(!inbox.insert(came(b"")), "two datagrams is all");
}

#[test]
fn wakes_from_another_thread_again_and_again() {
    let mut poller = Poller::new(1).unwrap();
    for _ in 0..3 {
        let waker = poller.waker();
        let started = Instant::now();
        let other = thread::spawn(move || waker.wake());
        assert_eq!(poller.wait(Some(PATIENCE)).unwrap(), [0u64; 0]);
        assert!(started.elapsed() < PATIENCE, "woken, not timed out");
        other.join().unwrap();
        // The thread may have been slow: a wake-up is never lost, and never felt twice.
        let _ = poller.wait(Some(Duration::ZERO)).unwrap();
    }
}

#[test]
fn one_address_each_is_bound_exclusively() {
    let first = UdpSocket::bind(SocketAddr::new(IpAddr::from([127, 0, 0, 1]), 0)).unwrap();
    assert_eq!(UdpSocket::bind(first.local_addr()).unwrap_err().kind(), ErrorKind::AddrInUse);
}
