//! ICMP errors about what was sent, and the DF bit, over loopback.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::time::Duration;

use tt_net::{IcmpInbox, IcmpReport, Inbox, Outbox, Outgoing, Poller, UdpSocket};

const PATIENCE: Duration = Duration::from_secs(10);
const LOOPBACKS: [&str; 2] = ["127.0.0.1:0", "[::1]:0"];

fn bind(addr: &str) -> UdpSocket {
    UdpSocket::bind(addr.parse().unwrap()).unwrap()
}

fn push(outbox: &mut Outbox, to: SocketAddr, byte: u8) {
    outbox.head()[0] = byte;
    assert!(outbox.push(Outgoing::of_head(0, to, 1)));
}

/// An address with a closed port.
fn closed(addr: &str) -> SocketAddr {
    StdSocket::bind(addr).unwrap().local_addr().unwrap()
}

#[test]
fn reports_a_closed_port_with_the_inner_destination() {
    // RFC 792 and RFC 4443: port unreachable.
    for (addr, kind, code) in [(LOOPBACKS[0], 3, 3), (LOOPBACKS[1], 1, 4)] {
        let (socket, closed) = (bind(addr), closed(addr));
        socket.enable_icmp_errors().unwrap();
        let mut poller = Poller::new(1).unwrap();
        poller.add(&socket, 7).unwrap();
        let mut outbox = Outbox::new(1, 1);
        push(&mut outbox, closed, b'x');
        assert_eq!(outbox.flush(&Inbox::new(1, 1), |_| Some(&socket)).datagrams, 1);
        assert_eq!(poller.wait(Some(PATIENCE)).unwrap(), [7]);
        assert_eq!(poller.faulted(), [7]);
        let (mut inbox, mut reports) = (IcmpInbox::default(), Vec::new());
        assert!(inbox.receive(&socket, |report| reports.push(report)).unwrap());
        assert_eq!(reports, [IcmpReport { destination: closed, kind, code, mtu: 0 }]);
        assert!(inbox.receive(&socket, |report| panic!("{report:?}")).unwrap());
    }
}

#[test]
fn a_late_refusal_stops_no_batch_and_loses_nothing() {
    for addr in LOOPBACKS {
        let (socket, closed) = (bind(addr), closed(addr));
        socket.enable_icmp_errors().unwrap();
        let open = StdSocket::bind(addr).unwrap();
        open.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut outbox = Outbox::new(64, 64);
        for number in 0..40 {
            push(&mut outbox, if number % 2 == 0 { closed } else { open.local_addr().unwrap() }, number);
        }
        let sent = outbox.flush(&Inbox::new(1, 1), |_| Some(&socket));
        assert_eq!((sent.datagrams, sent.refused.total()), (40, 0), "{addr}");
        let mut bytes = [0; 8];
        for number in (1..40).step_by(2) {
            assert_eq!(open.recv(&mut bytes).unwrap(), 1);
            assert_eq!(bytes[0], number, "{addr}");
        }
        // Nor does one stand before what is received.
        push(&mut outbox, closed, 0);
        assert_eq!(outbox.flush(&Inbox::new(1, 1), |_| Some(&socket)).datagrams, 1);
        open.send_to(b"answer", socket.local_addr()).unwrap();
        let mut inbox = Inbox::new(4, 64);
        assert_eq!(inbox.receive(&socket, 0, 4).unwrap().count, 1, "{addr}");
        assert_eq!(inbox.datagram(0).bytes, b"answer");
        let (mut reports, mut icmp) = (0, IcmpInbox::default());
        while !icmp.receive(&socket, |_| reports += 1).unwrap() {}
        assert!((1..=21).contains(&reports), "{addr}: {reports}");
    }
}

/// Whether the bit is on the wire is seen by a raw socket in the tests of the binary.
#[test]
fn datagrams_with_a_df_bit_are_sent_after_the_others() {
    for addr in LOOPBACKS {
        let (socket, receiver) = (bind(addr), StdSocket::bind(addr).unwrap());
        socket.enable_icmp_errors().unwrap();
        receiver.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut outbox = Outbox::new(64, 64);
        for number in 0..64 {
            outbox.head()[0] = number;
            let outgoing = Outgoing::of_head(0, receiver.local_addr().unwrap(), 1);
            assert!(outbox.push(Outgoing { dont_fragment: number % 2 == 1, ..outgoing }));
        }
        let sent = outbox.flush(&Inbox::new(1, 1), |_| Some(&socket));
        assert_eq!((sent.datagrams, sent.refused.total()), (64, 0), "{addr}");
        let mut bytes = [0; 8];
        for number in (0..64).step_by(2).chain((1..64).step_by(2)) {
            assert_eq!(receiver.recv_from(&mut bytes).unwrap(), (1, socket.local_addr()));
            assert_eq!(bytes[0], number, "{addr}: those with a DF bit of 1 last, each in order");
        }
    }
}
