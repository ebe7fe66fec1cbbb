//! GSO and GRO batches over loopback: every byte, in order.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::time::Duration;

use nix::sys::socket::setsockopt;
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};
use tt_model::ByteRange;
use tt_net::{Datagram, Inbox, Outbox, Outgoing, Sent, UdpSocket};

const PATIENCE: Duration = Duration::from_secs(10);
const LOOPBACKS: [&str; 2] = ["127.0.0.1:0", "[::1]:0"];

sockopt_impl!(
    /// `SO_NO_CHECK`: without checksums the kernel rejects GSO batches.
    NoCheck,
    Both,
    libc::SOL_SOCKET,
    libc::SO_NO_CHECK,
    bool
);

fn bind(addr: &str) -> UdpSocket {
    UdpSocket::bind(addr.parse().unwrap()).unwrap()
}

fn receiver(addr: &str) -> StdSocket {
    let socket = StdSocket::bind(addr).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Bytes that identify the datagram `number` and every position in it.
fn payload(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|place| (number * 31 + place * 7 + place / 251) as u8).collect()
}

/// Sends one datagram of each length in one flush: the first four bytes are its head, the rest quotes `inbox`.
fn send(socket: &UdpSocket, to: SocketAddr, lens: &[usize]) -> Sent {
    let mut inbox = Inbox::new(lens.len(), 65_536);
    let mut outbox = Outbox::new(lens.len(), 4 * lens.len());
    for (number, len) in lens.iter().enumerate() {
        let bytes = payload(number, *len);
        let datagram =
            Datagram { key: 0, from: to, to, bytes: &bytes, truncated: false, traffic_class: 0, hop_limit: 0 };
        assert!(inbox.insert(datagram));
        let head_len = bytes.len().min(4);
        outbox.head()[..head_len].copy_from_slice(&bytes[..head_len]);
        assert!(outbox.push(Outgoing {
            head_len,
            ..Outgoing::quoting(0, to, number, ByteRange::new(head_len as u32, bytes.len() as u32))
        }));
    }
    outbox.flush(&inbox, |_| Some(socket))
}

#[test]
fn what_leaves_together_arrives_as_the_datagrams_that_it_was() {
    let mixed = [[100; 5].as_slice(), &[60, 100, 100, 0, 0, 100, 200, 200, 1, 1, 1, 7]].concat();
    let long = [20_000, 20_000, 20_000, 20_000, 5];
    for addr in LOOPBACKS {
        for lens in [mixed.as_slice(), &long, &[1_200; 150], &[65_507, 9], &[0], &[1_000, 999, 1_000, 999]] {
            let (sender, receiver) = (bind(addr), receiver(addr));
            // One after the other, so that no queue overflows.
            for (start, lens) in lens.chunks(40).enumerate() {
                let sent = send(&sender, receiver.local_addr().unwrap(), lens);
                assert_eq!(
                    (sent.datagrams, sent.gso_batches_rejected, sent.refused.total()),
                    (lens.len() as u64, 0, 0)
                );
                let mut bytes = vec![0; 65_536];
                for (number, len) in lens.iter().enumerate() {
                    let (received, from) = receiver.recv_from(&mut bytes).unwrap();
                    assert!(bytes[..received] == payload(number, *len), "{addr} {start} {number}: {received} of {len}");
                    assert_eq!(from, sender.local_addr());
                }
            }
        }
    }
}

#[test]
fn a_gro_batch_is_one_arrival_and_is_split() {
    for addr in LOOPBACKS {
        let (sender, receiver) = (bind(addr), bind(addr));
        receiver.enable_gro().unwrap();
        for (lens, arrivals) in [
            (vec![500; 64], 1),
            (vec![500; 65], 2),
            (vec![300, 300, 300, 20], 1),
            (vec![300, 20, 300, 300], 2),
            (vec![700; 93], 2),
            (vec![65_507], 1),
            (vec![0], 1),
            (vec![0, 0, 4], 3),
            (vec![30_000, 30_000, 30_000], 2),
        ] {
            assert_eq!(send(&sender, receiver.local_addr(), &lens).datagrams, lens.len() as u64);
            let mut inbox = Inbox::new(8, 65_536);
            for left in (0..arrivals).rev() {
                let received = inbox.receive(&receiver, 3, 1).unwrap();
                assert!(received.count > 0 && !received.drained, "{lens:?}: {left} arrivals are missing");
            }
            assert_eq!(inbox.receive(&receiver, 3, 1).unwrap().count, 0);
            assert_eq!((inbox.len(), inbox.room()), (lens.len(), 8 - arrivals));
            for (number, len) in lens.iter().enumerate() {
                let datagram = inbox.datagram(number);
                assert!(datagram.bytes == payload(number, *len), "{addr} {number} of {lens:?}");
                assert_eq!((datagram.key, datagram.from, datagram.truncated), (3, sender.local_addr(), false));
            }
        }
    }
}

#[test]
fn without_gro_a_batch_arrives_as_datagrams() {
    let (sender, receiver) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    assert_eq!(send(&sender, receiver.local_addr(), &[500; 8]).datagrams, 8);
    let mut inbox = Inbox::new(16, 1_500);
    assert_eq!(inbox.receive(&receiver, 0, 16).unwrap().count, 8);
    assert_eq!(inbox.room(), 8);
}

#[test]
fn distinguishes_the_receivers_of_one_round() {
    let sender = bind("127.0.0.1:0");
    let receivers: Vec<_> = (0..3).map(|_| receiver("127.0.0.1:0")).collect();
    let mut outbox = Outbox::new(64, 64);
    for number in 0..30u8 {
        outbox.head()[0] = number;
        let to = receivers[usize::from(number) % 3].local_addr().unwrap();
        assert!(outbox.push(Outgoing::of_head(0, to, 1)));
    }
    assert_eq!(outbox.flush(&Inbox::new(1, 1), |_| Some(&sender)).datagrams, 30);
    let mut bytes = [0; 8];
    for number in 0..30u8 {
        assert_eq!(receivers[usize::from(number) % 3].recv(&mut bytes).unwrap(), 1);
        assert_eq!(bytes[0], number);
    }
}

#[test]
fn header_fields_split_a_batch() {
    let (sender, receiver) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    receiver.enable_gro().unwrap();
    let mut outbox = Outbox::new(8, 64);
    let fields = [(0, 64), (0, 64), (0xb8, 64), (0xb8, 63), (0xb9, 63)];
    for (traffic_class, hop_limit) in fields {
        outbox.head()[0] = b'x';
        let plain = Outgoing::of_head(0, receiver.local_addr(), 1);
        assert!(outbox.push(Outgoing { traffic_class, hop_limit, ..plain }));
    }
    assert_eq!(outbox.flush(&Inbox::new(1, 1), |_| Some(&sender)).datagrams, 5);
    let mut inbox = Inbox::new(8, 65_536);
    inbox.receive(&receiver, 0, 8).unwrap();
    let received: Vec<_> = (0..inbox.len()).map(|index| inbox.datagram(index)).collect();
    assert_eq!(received.iter().map(|one| (one.traffic_class, one.hop_limit)).collect::<Vec<_>>(), fields);
    assert_eq!(inbox.room(), 8 - 4);
}

#[test]
fn a_rejected_batch_is_sent_one_by_one() {
    let (sender, receiver) = (bind("127.0.0.1:0"), receiver("127.0.0.1:0"));
    setsockopt(&sender, NoCheck, &true).unwrap();
    let lens = [400, 400, 400, 100, 400];
    let sent = send(&sender, receiver.local_addr().unwrap(), &lens);
    assert_eq!((sent.datagrams, sent.quoting, sent.gso_batches_rejected, sent.refused.total()), (5, 5, 1, 0));
    let mut bytes = vec![0; 2_048];
    for (number, len) in lens.iter().enumerate() {
        let received = receiver.recv(&mut bytes).unwrap();
        assert!(bytes[..received] == payload(number, *len), "{number}");
    }
}

#[test]
fn the_hop_limit_is_read_and_written() {
    for addr in LOOPBACKS {
        let (sender, receiver) = (bind(addr), bind(addr));
        let mut inbox = Inbox::new(4, 64);
        for (set, received) in [(0, 64), (1, 1), (63, 63), (255, 255)] {
            let mut outbox = Outbox::new(1, 8);
            outbox.head()[0] = b'x';
            let outgoing = Outgoing { hop_limit: set, ..Outgoing::of_head(0, receiver.local_addr(), 1) };
            assert!(outbox.push(outgoing));
            assert_eq!(outbox.flush(&inbox, |_| Some(&sender)).datagrams, 1);
            inbox.clear();
            assert_eq!(inbox.receive(&receiver, 0, 4).unwrap().count, 1);
            assert_eq!(inbox.datagram(0).hop_limit, received, "{addr}");
        }
    }
}
