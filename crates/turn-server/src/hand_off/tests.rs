use std::sync::mpsc::sync_channel;
use std::thread;

use super::*;
use crate::poll_key::relay_of;

fn pair() -> (WorkerLinks, InboundRings) {
    let (new_rings, arrivals) = sync_channel(1);
    let waker = tt_net::Poller::new(1).expect("a poller").waker();
    (WorkerLinks::new(vec![WorkerEndpoint { new_rings, waker }]), InboundRings::new(arrivals))
}

fn bytes(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|place| (number + place * 3 + place / 256) as u8).collect()
}

#[test]
fn a_hand_off_arrives_unchanged() {
    let (mut links, mut arrivals) = pair();
    let mut inbox = Inbox::new(8, 65_536);
    let addresses = ["192.0.2.1:9", "[2001:db8::1]:65535", "[fe80::1%7]:3", "[::ffff:192.0.2.1]:9"];
    let relay = Target::Relay(RelayId(70_000));
    for (number, len) in [0, 1, 55, 56, 57, 112, 1_200, 65_507, 65_535].into_iter().enumerate() {
        let bytes = bytes(number, len);
        for text in addresses {
            let from: SocketAddr = text.parse().expect("an address");
            for to in [Target::Flow(from), relay] {
                let hand_off = HandOff { to, from, traffic_class: 0xb9, hop_limit: 63, bytes: &bytes };
                assert!(links.push(WorkerId(0), &hand_off));
                let taken = arrivals.take(&mut inbox, 8, |server| (server == from).then_some(5));
                assert_eq!((taken.hand_offs, taken.lost), (1, 0));
                let datagram = inbox.datagram(0);
                assert_eq!((datagram.from, datagram.traffic_class, datagram.hop_limit), (from, 0xb9, 63));
                assert!(datagram.bytes == bytes);
                match to {
                    Target::Flow(server) => assert_eq!((datagram.key, datagram.to), (5, server)),
                    Target::Relay(id) => assert_eq!(relay_of(datagram.key), Some(id)),
                }
                inbox.clear();
            }
        }
    }
}

#[test]
fn a_full_ring_rejects_whole_hand_offs_and_recovers() {
    let (mut links, mut arrivals) = pair();
    let mut inbox = Inbox::new(1, 65_536);
    let from = "192.0.2.1:9".parse().expect("an address");
    let long = bytes(1, 65_507);
    let hand_off = HandOff { to: Target::Relay(RelayId(1)), from, traffic_class: 0, hop_limit: 0, bytes: &long };
    for _ in 0..3 {
        let pushed = (0..10).take_while(|_| links.push(WorkerId(0), &hand_off)).count();
        assert_eq!(pushed, SLOTS / (1 + 65_507usize.div_ceil(SLOT_LEN)));
        for left in (0..pushed).rev() {
            let taken = arrivals.take(&mut inbox, 8, |_| None);
            assert_eq!((taken.hand_offs, taken.lost, taken.has_more), (1, 0, true), "{left} are left");
            assert!(inbox.datagram(0).bytes == long);
            inbox.clear();
        }
        assert_eq!(arrivals.take(&mut inbox, 8, |_| None), Taken::default());
    }
    assert!(!links.push(WorkerId(7), &hand_off), "no such worker");
}

#[test]
fn one_thread_pushes_while_another_pops() {
    let (mut links, mut arrivals) = pair();
    let from = "192.0.2.1:9".parse().expect("an address");
    let count = 20_000usize;
    let producer = thread::spawn(move || {
        let mut pushed = 0;
        while pushed < count {
            let bytes = bytes(pushed, pushed % 400);
            let to = Target::Relay(RelayId(pushed as u32));
            let hand_off = HandOff { to, from, traffic_class: 0, hop_limit: 0, bytes: &bytes };
            if links.push(WorkerId(0), &hand_off) {
                pushed += 1;
            } else {
                thread::yield_now();
            }
        }
    });
    let mut inbox = Inbox::new(16, 65_536);
    let mut seen = 0;
    while seen < count {
        arrivals.take(&mut inbox, 16, |_| None);
        for index in 0..inbox.len() {
            let datagram = inbox.datagram(index);
            assert_eq!(relay_of(datagram.key), Some(RelayId(seen as u32)));
            assert!(datagram.bytes == bytes(seen, seen % 400), "{seen}");
            seen += 1;
        }
        inbox.clear();
    }
    producer.join().expect("it ends");
}
