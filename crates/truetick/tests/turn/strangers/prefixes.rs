//! One IPv6 sender has a prefix of addresses: all of them together are one source.

use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use testkit::{Requirement, measured, require};

use super::{PATIENCE, first_allocate};
use crate::operators::namespaces::Network;
use crate::server::Server;
use crate::wire::{self, Reading, Writer};

/// Sources of the sender's prefix.
const SOURCES: u64 = 100_000;
/// A client of another prefix asks after so many of them.
const EVERY: u64 = 1_000;
/// No more requests than a receive buffer holds are unanswered.
const BATCH: u64 = 64;
/// Excess bytes that pass a second and at once, by default (docs/turn-operators.md): of all, and of one source.
const TOTAL: [f64; 2] = [1_048_576.0, 1_048_576.0];
const OF_SOURCE: [f64; 2] = [65_536.0, 262_144.0];

/// An address of the prefix with this number; each has 64 bits.
fn address(prefix: u64, host: u64) -> SocketAddr {
    let bits = 0x2A00_0088 << 96 | u128::from(prefix) << 64 | u128::from(host);
    SocketAddr::new(Ipv6Addr::from_bits(bits).into(), 0)
}

fn exchange(socket: &UdpSocket, request: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = [0; 2_048];
    socket.send(request).unwrap();
    socket.recv(&mut bytes).ok().map(|length| bytes[..length].to_vec())
}

fn connected(from: SocketAddr, server: SocketAddr, patience: Duration) -> UdpSocket {
    let socket = UdpSocket::bind(from).unwrap();
    socket.connect(server).unwrap();
    socket.set_read_timeout(Some(patience)).unwrap();
    socket
}

/// What came of a request without attributes from each source of the prefix.
#[derive(Debug)]
struct Came {
    unanswered: u64,
    /// Bytes of the answers beyond three times their requests.
    excess: f64,
    elapsed: Duration,
    /// Clients of other prefixes that were challenged at once.
    others: u64,
}

fn from_one_prefix(flags: &[&str]) -> Came {
    // The longest realm makes the longest challenge.
    let realm = "\u{1F600}".repeat(127);
    let fixed = ["--listen", "[2a00:77::1]:0", "--workers", "1", "--realm", &realm];
    let server = Server::start(&[&fixed[..], flags].concat());
    let listen = server.listen[0];
    let own = connected("[2a00:77::1]:0".parse().unwrap(), listen, PATIENCE);
    let mut bare = first_allocate(0)[..20].to_vec();
    bare[2..4].copy_from_slice(&[0, 0]);
    let longest = exchange(&connected(address(1, 0), listen, PATIENCE), &bare).expect("a challenge").len();
    let (started, mut others) = (Instant::now(), 0);
    for number in 1..=SOURCES {
        // Addresses that differ in all of their 64 bits.
        let from = address(1, number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        UdpSocket::bind(from).unwrap().send_to(&bare, listen).unwrap();
        if number.is_multiple_of(BATCH) {
            assert!(exchange(&own, &Writer::new(wire::BINDING, 0, [7; 12]).0).is_some());
        }
        if number.is_multiple_of(EVERY) {
            let other = connected(address(1 + number / EVERY, 1), listen, super::RETRANSMIT);
            let reply = exchange(&other, &first_allocate(number));
            others += u64::from(reply.is_some_and(|reply| Reading::of(&reply).code() == 401));
        }
    }
    let elapsed = started.elapsed();
    let farewell = server.stop();
    let unanswered = farewell.dropped;
    assert!(unanswered == 0 || farewell.line.contains(&format!("error_budget {unanswered}")), "{}", farewell.line);
    let answered = farewell.received - unanswered - others - SOURCES / BATCH - 1;
    let excess = answered as f64 * (longest - 3 * bare.len()) as f64;
    Came { unanswered, excess, elapsed, others }
}

/// A /64 is one source with default limits; with single addresses as sources each has a budget.
#[test]
fn a_hundred_thousand_sources_of_one_ipv6_prefix_have_one_budget() {
    let lines = [
        "-n {s} addr add 2a00:77::1/128 dev lo nodad",
        "-n {s} -6 route add local 2a00:88::/32 dev lo",
        "netns exec {s} sysctl -q -w net.ipv6.ip_nonlocal_bind=1",
    ];
    let Some(network) = require(Requirement::NetNamespace, Network::make(&["s"], &lines)) else { return };
    let came = network.on(0, || from_one_prefix(&[]));
    println!("{came:?}");
    let passes = |[rate, burst]: [f64; 2]| burst + rate * came.elapsed.as_secs_f64();
    assert!(came.excess <= passes(TOTAL) + passes(OF_SOURCE), "{came:?}");
    assert!(came.unanswered > 0 && came.others == SOURCES / EVERY, "{came:?}");
    measured(
        "IPv6 prefix",
        format_args!("{} of {SOURCES} sources of a /64 unanswered, {} others challenged", came.unanswered, came.others),
    );
    let folder = tempfile::tempdir().unwrap();
    let single = folder.path().join("truetick.toml");
    std::fs::write(&single, "[turn.quotas]\nipv6_prefix_bits = 128\n").unwrap();
    let came = network.on(0, || from_one_prefix(&["--config", single.to_str().unwrap()]));
    println!("{came:?}");
    assert_eq!((came.unanswered, came.others), (0, SOURCES / EVERY), "{came:?}");
}
