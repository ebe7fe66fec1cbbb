use std::sync::mpsc::sync_channel;
use std::thread;

use super::*;
use crate::turn::relays::relay_of;

fn pair() -> (Ways, Arrivals) {
    let (mail, arrivals) = sync_channel(1);
    let waker = tt_net::Poller::new(1).expect("a poller").waker();
    (Ways::new(vec![Neighbour { mail, waker }]), Arrivals::new(arrivals))
}

fn bytes(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|place| (number + place * 3 + place / 256) as u8).collect()
}

#[test]
fn what_is_taken_is_what_was_given() {
    let (mut ways, mut arrivals) = pair();
    let mut inbox = Inbox::new(8, 65_536);
    let addresses = ["192.0.2.1:9", "[2001:db8::1]:65535", "[fe80::1%7]:3", "[::ffff:192.0.2.1]:9"];
    let relay = Addressee::Relay(RelayId(70_000));
    for (number, len) in [0, 1, 55, 56, 57, 112, 1_200, 65_507, 65_535].into_iter().enumerate() {
        let bytes = bytes(number, len);
        for text in addresses {
            let from: SocketAddr = text.parse().expect("an address");
            for to in [Addressee::Flow(from), relay] {
                let parcel = Parcel { to, from, traffic_class: 0xb9, hop_limit: 63, bytes: &bytes };
                assert!(ways.push(WorkerId(0), &parcel));
                let taken = arrivals.take(&mut inbox, 8, |server| (server == from).then_some(5));
                assert_eq!((taken.parcels, taken.lost), (1, 0));
                let datagram = inbox.datagram(0);
                assert_eq!((datagram.from, datagram.traffic_class, datagram.hop_limit), (from, 0xb9, 63));
                assert!(datagram.bytes == bytes);
                match to {
                    Addressee::Flow(server) => assert_eq!((datagram.key, datagram.to), (5, server)),
                    Addressee::Relay(id) => assert_eq!(relay_of(datagram.key), Some(id)),
                }
                inbox.clear();
            }
        }
    }
}

#[test]
fn a_full_ring_refuses_whole_parcels_and_recovers() {
    let (mut ways, mut arrivals) = pair();
    let mut inbox = Inbox::new(1, 65_536);
    let from = "192.0.2.1:9".parse().expect("an address");
    let long = bytes(1, 65_507);
    let parcel = Parcel { to: Addressee::Relay(RelayId(1)), from, traffic_class: 0, hop_limit: 0, bytes: &long };
    for _ in 0..3 {
        let given = (0..10).take_while(|_| ways.push(WorkerId(0), &parcel)).count();
        assert_eq!(given, LINES / (1 + 65_507usize.div_ceil(LINE_LEN)));
        for left in (0..given).rev() {
            let taken = arrivals.take(&mut inbox, 8, |_| None);
            assert_eq!((taken.parcels, taken.lost, taken.is_left), (1, 0, true), "{left} are left");
            assert!(inbox.datagram(0).bytes == long);
            inbox.clear();
        }
        assert_eq!(arrivals.take(&mut inbox, 8, |_| None), Taken::default());
    }
    assert!(!ways.push(WorkerId(7), &parcel), "there is no such worker");
}

#[test]
fn one_thread_gives_while_another_takes() {
    let (mut ways, mut arrivals) = pair();
    let from = "192.0.2.1:9".parse().expect("an address");
    let count = 20_000usize;
    let giver = thread::spawn(move || {
        let mut given = 0;
        while given < count {
            let bytes = bytes(given, given % 400);
            let to = Addressee::Relay(RelayId(given as u32));
            let parcel = Parcel { to, from, traffic_class: 0, hop_limit: 0, bytes: &bytes };
            if ways.push(WorkerId(0), &parcel) {
                given += 1;
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
    giver.join().expect("it ends");
}
