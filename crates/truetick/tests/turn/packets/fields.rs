//! Fields of the IP header, from a datagram that comes in to the one that goes out (RFC 8656 sections 13 and 14).

use std::io::Read;
use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tt_net::{Inbox, Outbox, Outgoing, Poller, UdpSocket};

use super::{CHANNEL, PATIENCE, wait_for_drops};
use testkit::{Requirement, require};

use crate::server::{PASSWORD, Server, USER};
use testkit::turn_client::Client;

/// A client with a channel to a peer, and the server with its control plane.
struct Relayed {
    server: Server,
    client: Client,
    relayed: SocketAddr,
    peer: UdpSocket,
    poller: Poller,
    inbox: Inbox,
}

impl Relayed {
    fn new(listen: &str) -> Self {
        Self::with(listen, &[])
    }

    fn with(listen: &str, more: &[&str]) -> Self {
        let flags = [
            "--listen",
            listen,
            "--allow-own-host",
            "127.0.0.0/8",
            "--allow-own-host",
            "::1/128",
            "--http",
            "127.0.0.1:0",
        ];
        let server = Server::start(&[&flags[..], &["--icmp-indications", "always"], more].concat());
        let mut client = Client::new(server.listen[0], USER, PASSWORD);
        let relayed = client.allocate().unwrap();
        let peer = UdpSocket::bind(SocketAddr::new(relayed.ip(), 0)).unwrap();
        assert_eq!(client.bind_channel(CHANNEL, peer.local_addr()), 0);
        let poller = Poller::new(1).unwrap();
        poller.add(&peer, 0).unwrap();
        Self { server, client, relayed, peer, poller, inbox: Inbox::new(64, 65_536) }
    }

    /// The traffic class and hop limit of the one datagram that reaches the peer.
    fn at_peer(&mut self) -> (u8, u8) {
        self.inbox.clear();
        assert_eq!(self.poller.wait(Some(PATIENCE)).unwrap(), [0]);
        assert_eq!(self.inbox.receive(&self.peer, 0, 8).unwrap().count, 1);
        let datagram = self.inbox.datagram(0);
        (datagram.traffic_class, datagram.hop_limit)
    }

    fn set_client_hops(&self, hops: u32) {
        let socket = SockRef::from(&self.client.socket);
        match self.relayed.is_ipv4() {
            true => socket.set_ttl_v4(hops).unwrap(),
            false => socket.set_unicast_hops_v6(hops).unwrap(),
        }
    }

    /// The peer sends a datagram with these fields.
    fn peer_sends(&mut self, traffic_class: u8, hop_limit: u8) {
        let mut outbox = Outbox::new(1, 8);
        outbox.head()[..4].copy_from_slice(b"back");
        assert!(outbox.push(Outgoing { traffic_class, hop_limit, ..Outgoing::of_head(0, self.relayed, 4) }));
        assert_eq!(outbox.flush(&self.inbox, |_| Some(&self.peer)).datagrams, 1);
    }
}

const LOOPBACKS: [&str; 2] = ["127.0.0.1:0", "[::1]:0"];

#[test]
fn rfc_r114_a_relay_takes_one_hop_and_no_mark_away() {
    for listen in LOOPBACKS {
        let mut world = Relayed::new(listen);
        for hops in [2, 63, 64, 255] {
            world.set_client_hops(hops);
            world.client.send_channel(CHANNEL, b"onward");
            assert_eq!(world.at_peer(), (0, hops as u8 - 1), "{listen}");
            world.client.send_indication(world.peer.local_addr(), b"onward");
            assert_eq!(world.at_peer(), (0, hops as u8 - 1), "{listen}");
        }
        if world.relayed.is_ipv4() {
            // Expedited forwarding with ECT(0), then CE.
            for class in [0xba, 0xbb] {
                SockRef::from(&world.client.socket).set_tos_v4(class).unwrap();
                world.client.send_channel(CHANNEL, b"marked");
                assert_eq!(world.at_peer(), (class as u8, 254));
            }
        }
        for (class, hops) in [(0, 200), (0xb9, 2)] {
            world.peer_sends(class, hops);
            assert_eq!(world.client.receive_channel(), (CHANNEL, b"back".to_vec()));
        }
        assert_eq!(world.server.stop().dropped, 0);
    }
}

/// DSCP 46 and 10 are WebRTC's (RFC 8837), CS7 is the network's; ECN stays.
#[test]
fn a_relayed_datagram_keeps_the_marks_that_the_operator_allows() {
    for (flags, kept) in [
        (&[][..], [0xba, 0x29, 0x02]),
        (&["--dscp-allow", "all"], [0xba, 0x29, 0xe2]),
        (&["--dscp-allow", "10,56"], [0x02, 0x29, 0xe2]),
        (&["--dscp-allow", "none"], [0x02, 0x01, 0x02]),
    ] {
        let mut world = Relayed::with(LOOPBACKS[0], flags);
        for (sent, kept) in [0xba, 0x29, 0xe2].into_iter().zip(kept) {
            SockRef::from(&world.client.socket).set_tos_v4(sent).unwrap();
            world.client.send_channel(CHANNEL, b"marked");
            assert_eq!(world.at_peer().0, kept, "{flags:?} {sent:#x}");
        }
    }
}

#[test]
fn case_a77_what_has_no_hop_left_is_dropped_and_counted() {
    for listen in LOOPBACKS {
        let mut world = Relayed::new(listen);
        world.set_client_hops(1);
        for _ in 0..100 {
            world.client.send_channel(CHANNEL, b"at its end");
        }
        let http = world.server.http.unwrap();
        wait_for_drops(http, "hop_limit", 100);
        for _ in 0..100 {
            world.peer_sends(0, 1);
        }
        wait_for_drops(http, "hop_limit", 200);
        assert!(world.client.is_silent());
        // A request is for the server itself, and it has arrived.
        assert_eq!(world.client.binding(), world.client.socket.local_addr().unwrap());
        world.set_client_hops(64);
        world.client.send_channel(CHANNEL, b"onward");
        assert_eq!(world.at_peer(), (0, 63), "the first that reaches the peer");
        let farewell = world.server.stop();
        assert_eq!(farewell.dropped, 200, "{}", farewell.line);
    }
}

/// The DF bits of what arrives at `to`, in the order of arrival, until `count` have come.
fn df_bits(raw: &mut Socket, to: SocketAddr, count: usize) -> Vec<bool> {
    let mut bits = Vec::new();
    let mut packet = [0; 2_048];
    while bits.len() < count {
        let len = raw.read(&mut packet).expect("a packet in time");
        // RFC 791 section 3.1: the header's length in words, then the flags; RFC 768: the destination port.
        let header_len = usize::from(packet[0] & 0x0f) * 4;
        let port = u16::from_be_bytes([packet[header_len + 2], packet[header_len + 3]]);
        if len >= header_len + 8 && port == to.port() {
            bits.push(packet[6] & 0x40 != 0);
        }
    }
    bits
}

/// A socket that is given every IP packet of UDP from `from` to `to`.
fn require_raw(from: SocketAddr, to: SocketAddr) -> Option<Socket> {
    let raw = require(Requirement::Privilege, Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::UDP)))?;
    raw.bind(&SocketAddr::new(to.ip(), 0).into()).unwrap();
    raw.connect(&SocketAddr::new(from.ip(), 0).into()).unwrap();
    raw.set_read_timeout(Some(PATIENCE)).unwrap();
    Some(raw)
}

#[test]
fn rfc_r114_df_is_set_where_the_client_asks_for_it_and_nowhere_else() {
    // On a separate address, because a raw socket has no port.
    let mut world = Relayed::new("127.0.77.1:0");
    let (peer, client) = (world.peer.local_addr(), world.client.socket.local_addr().unwrap());
    let Some(mut to_peer) = require_raw(world.relayed, peer) else { return };
    let Some(mut to_client) = require_raw(world.server.listen[0], client) else { return };
    // One after the other: a train would be one packet to the raw socket.
    for _ in 0..3 {
        world.client.send_channel(CHANNEL, b"may be fragmented");
        assert_eq!(df_bits(&mut to_peer, peer, 1), [false]);
        world.client.send_indication(peer, b"may be fragmented");
        assert_eq!(df_bits(&mut to_peer, peer, 1), [false]);
        world.client.send_whole(peer, b"must not");
        assert_eq!(df_bits(&mut to_peer, peer, 1), [true]);
    }
    // What is longer than any MTU is fragmented, and put together again.
    world.client.send_channel(CHANNEL, &[7; 60_000]);
    assert_eq!(df_bits(&mut to_peer, peer, 1), [false]);
    world.peer_sends(0, 64);
    assert_eq!(world.client.receive_channel(), (CHANNEL, b"back".to_vec()));
    assert_eq!(
        df_bits(&mut to_client, client, 1),
        [false],
        "RFC 8656 section 14: the incoming DF bit is assumed to be 0"
    );
}

/// One descriptor for each allocation: those that send with a DF bit of 1 need no other.
#[test]
fn twenty_thousand_descriptors_are_enough_for_ten_thousand_allocations_with_df() {
    let flags = "--listen 127.0.77.2:0 --allow-own-host 127.0.0.0/8 --allocations-max 16384 --user-share-percent 100 \
                 --user-allocations-per-second 0";
    let server = Server::start_with_descriptors(20_000, &flags.split_whitespace().collect::<Vec<_>>());
    let mut last = None;
    for number in 0..10_000u16 {
        // The allocations stay when their sockets close: no address is used again.
        let ip = [127, 2, (number / 250) as u8, 1 + (number % 250) as u8];
        let mut client = Client::on(ip.into(), server.listen[0], USER, PASSWORD);
        match client.allocate() {
            Ok(relayed) => last = Some((client, relayed)),
            Err(code) => panic!("{code} at allocation {number}"),
        }
    }
    let (mut client, relayed) = last.unwrap();
    let open = StdSocket::bind((relayed.ip(), 0)).unwrap();
    let peer = open.local_addr().unwrap();
    assert_eq!(client.permit(peer), 0);
    let Some(mut to_peer) = require_raw(relayed, peer) else { return };
    for _ in 0..3 {
        client.send_whole(peer, b"must not be fragmented");
        assert_eq!(df_bits(&mut to_peer, peer, 1), [true]);
        client.send_indication(peer, b"may be");
        assert_eq!(df_bits(&mut to_peer, peer, 1), [false]);
    }
}

#[test]
fn a_relay_receives_all_after_it_has_sent_with_df() {
    let mut world = Relayed::new("127.0.0.1:0");
    let peers: Vec<_> = (0..40).map(|_| StdSocket::bind("127.0.0.1:0").unwrap()).collect();
    world.client.send_whole(world.peer.local_addr(), b"sets the DF bit");
    let _ = world.at_peer();
    for (number, peer) in (0u8..).zip(&peers) {
        peer.send_to(&[number], world.relayed).unwrap();
        assert_eq!(world.client.receive_indication(), (peer.local_addr().unwrap(), vec![number]));
    }
    // Nor are its ICMP errors lost.
    let closed = StdSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    world.client.send_whole(closed, b"to a closed port");
    assert_eq!(world.client.receive_icmp(), (closed, 3, 3, [0; 4]));
    world.client.socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(world.client.refresh(0), 0);
    assert_eq!(world.server.stop().dropped, 0);
}
