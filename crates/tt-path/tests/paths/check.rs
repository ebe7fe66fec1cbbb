//! One frame through the reference relay and the program: the same action, reason, bytes, counts and proof.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tt_path::Reason;

use crate::packet::{ETH_LEN, is_accepted, seal, sum};
use crate::relay::{Checksum, Relay, Verdict};
use crate::subject::{Done, IFINDEX, Subject};
use crate::vectors::udp_at;

const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;
const XDP_TX: u32 = 3;
const XDP_REDIRECT: u32 = 4;

/// Compares both, and returns the counted reason.
pub(crate) fn frame(subject: &mut impl Subject, relay: &mut Relay, frame: &[u8]) -> Option<Reason> {
    let before = subject.reasons();
    let expected = relay.handle(subject.now(), frame);
    let done = subject.run(frame);
    let after = subject.reasons();
    let grown: Vec<Reason> = Reason::ALL
        .into_iter()
        .zip(before.iter().zip(&after))
        .flat_map(|(reason, (before, after))| (*before..*after).map(move |_| reason))
        .collect();
    let reason = match &expected {
        Verdict::Up(reason) => {
            assert_eq!(done.action, XDP_PASS, "expected {expected:?} for {frame:02x?}, counted {grown:?}");
            assert_eq!(done.frame, frame, "a frame that goes up is unchanged");
            *reason
        }
        Verdict::Drop(reason) => {
            assert_eq!(done.action, XDP_DROP, "expected {expected:?}, counted {grown:?}");
            Some(*reason)
        }
        Verdict::Out { frame: new, ifindex, checksum } => {
            let action = if *ifindex == IFINDEX { XDP_TX } else { XDP_REDIRECT };
            assert_eq!(done.action, action, "{frame:02x?}, counted {grown:?}");
            if action == XDP_REDIRECT {
                assert!(done.redirected.is_none_or(|redirected| redirected == *ifindex));
            }
            same_packet(&done, new, *checksum);
            Some(Reason::Relayed)
        }
    };
    assert_eq!(grown, Vec::from_iter(reason), "{frame:02x?}");
    assert_eq!(subject.proof(), relay.proof);
    reason
}

fn same_packet(done: &Done, expected: &[u8], checksum: Checksum) {
    let (mut expected, at) = (expected.to_vec(), udp_at(expected));
    if at == 34 {
        let ip = &done.frame[ETH_LEN..34];
        assert_eq!(sum(&[ip]), 0xffff, "the IPv4 checksum");
        let dont_fragment = ip[6] & 0x40 != 0;
        if !dont_fragment {
            // RFC 791: any identification that others do not have at the same time.
            expected[18..20].copy_from_slice(&ip[4..6]);
            seal(&mut expected[ETH_LEN..34]);
        }
    }
    let len = usize::from(u16::from_be_bytes([done.frame[at + 4], done.frame[at + 5]]));
    let (from, to) = addresses(&done.frame);
    let udp = &done.frame[at..at + len];
    match checksum {
        Checksum::Right => assert!(is_accepted(from, to, udp), "the UDP checksum"),
        Checksum::Absent => assert_eq!(udp[6..8], [0, 0]),
        Checksum::Wrong => {
            assert!(!is_accepted(from, to, udp), "a wrong checksum became right");
            expected[at + 6..at + 8].copy_from_slice(&udp[6..8]);
        }
    }
    assert_eq!(done.frame, expected);
}

fn addresses(frame: &[u8]) -> (IpAddr, IpAddr) {
    let ip4 = |at: usize| IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(&frame[at..at + 4]).unwrap()));
    let ip6 = |at: usize| IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(&frame[at..at + 16]).unwrap()));
    if udp_at(frame) == 34 { (ip4(26), ip4(30)) } else { (ip6(22), ip6(38)) }
}
