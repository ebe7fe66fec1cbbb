//! Nothing is allocated after `new`: counted, at full capacity.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tt_meter::Off;
use tt_model::{FiveTuple, IpFamily, Nanos, Transport};
use tt_turn::codec::{Class, Emitter, HmacSha1, Method, attribute};
use tt_turn::config::Capacity;
use tt_turn::path::{PathChange, PathTraffic};
use tt_turn::relay::{IcmpError, PeerPath, RelayAddress, RelayDemand, RelayId, ReservationEnd};
use tt_turn::shared::{Quotas, Shared};
use tt_turn::{Output, ReplyStatus, Server, WorkerId};

use super::world;

const LIVE: u32 = 256;

/// A client that allocates nothing either.
struct Ground {
    server: Server,
    key: HmacSha1,
    now: Nanos,
    out: [u8; 1_500],
    /// Transactions so far.
    count: u64,
    /// Paths that were opened.
    opened: u64,
}

fn flow(number: u64) -> FiveTuple {
    let client = SocketAddr::new(Ipv4Addr::from_bits(0x0B00_0000 + number as u32).into(), 5_000);
    FiveTuple { client, server: SocketAddr::new([198, 41, 0, 9].into(), 3_478), transport: Transport::Udp }
}

impl Ground {
    fn new(quotas: Quotas) -> Self {
        let capacity = Capacity {
            allocations: LIVE,
            permissions: 2 * LIVE,
            permissions_per_allocation: 2,
            channels: LIVE,
            channels_per_allocation: 1,
            relays: LIVE,
        };
        let shared = Arc::new(Shared::new(quotas, LIVE, 5));
        let mut server = Server::new(world::config(), capacity, shared, WorkerId(0), world::secrets(1));
        for relay in 0..LIVE {
            server.add_relay(RelayId(relay), address(relay)).expect("a relay");
        }
        let key = tt_turn::credential::long_term_key(b"alice", world::REALM.as_bytes(), world::PASSWORD.as_bytes());
        Self { server, key, now: Nanos::from_secs(100), out: [0; 1_500], count: 0, opened: 0 }
    }

    /// Sends one datagram; whether it was answered with a success or relayed.
    fn pass(&mut self, flow: &FiveTuple, datagram: &[u8]) -> bool {
        match self.server.handle_client(self.now, flow, datagram, &mut self.out, &mut Off) {
            Output::Reply { status, .. } => status == ReplyStatus::Success,
            Output::ToPeer { .. } => true,
            Output::ToClient { .. } | Output::ToWorker { .. } | Output::HandOff(_) | Output::Drop(_) => false,
        }
    }

    fn nonce(&mut self, flow: &FiveTuple) -> [u8; 28] {
        let mut bytes = [0; 20];
        let request = Emitter::begin(&mut bytes, Method::Refresh, Class::Request, [9; 12]).finish().expect("room");
        let reply = self.server.handle_client(self.now, flow, request, &mut self.out, &mut Off);
        let Output::Reply { len, .. } = reply else { panic!("no reply") };
        let message = tt_turn::codec::Message::parse(&self.out[..len]).expect("a message");
        let nonce = message.attributes().find(|(kind, _)| *kind == attribute::NONCE).expect("a nonce").1;
        nonce.try_into().expect("the nonce's length")
    }

    fn ask(&mut self, flow: &FiveTuple, nonce: &[u8; 28], method: Method, fill: impl Fn(&mut Emitter<'_>)) -> bool {
        self.count += 1;
        let mut tid = [1; 12];
        tid[..8].copy_from_slice(&self.count.to_be_bytes());
        let mut bytes = [0; 300];
        let mut request = Emitter::begin(&mut bytes, method, Class::Request, tid);
        fill(&mut request);
        request.attribute(attribute::USERNAME, b"alice");
        request.attribute(attribute::REALM, world::REALM.as_bytes());
        request.attribute(attribute::NONCE, nonce);
        request.message_integrity(&self.key);
        let request = request.finish().expect("room");
        self.pass(flow, request)
    }

    /// One whole life up to its relayed packets: an allocation, two permissions, a channel, data both ways.
    fn live(&mut self, number: u64) {
        let flow = flow(number);
        let nonce = self.nonce(&flow);
        assert!(
            self.ask(&flow, &nonce, Method::Allocate, |it| it
                .attribute(attribute::REQUESTED_TRANSPORT, &[17, 0, 0, 0]))
        );
        let peer = |host: u8| SocketAddr::new([8, 8, host, (number % 250) as u8].into(), 53);
        assert!(
            self.ask(&flow, &nonce, Method::CreatePermission, |it| it
                .xor_address(attribute::XOR_PEER_ADDRESS, peer(1)))
        );
        assert!(self.ask(&flow, &nonce, Method::ChannelBind, |it| {
            it.attribute(attribute::CHANNEL_NUMBER, &[0x40, 0, 0, 0]);
            it.xor_address(attribute::XOR_PEER_ADDRESS, peer(2));
        }));
        // A new user's bandwidth begins with nothing.
        self.now.0 += 1_000;
        assert!(self.pass(&flow, &[0x40, 0, 0, 1, 7]));
    }

    /// Relays that have rested, of paths that are closed.
    fn register(&mut self) {
        while let Some(change) = self.server.poll_path(self.now) {
            self.opened += u64::from(matches!(change, PathChange::Open(..)));
            if let PathChange::Close(id) = change {
                self.server.count_path(id, PathTraffic { packets_to_peer: 1, ..PathTraffic::default() });
                assert!(self.server.path_closed(id));
            }
        }
        while let Some(RelayDemand::Retire(id)) = self.server.poll_relay() {
            self.server.add_relay(id, address(id.0)).expect("a relay");
        }
    }
}

/// Quotas whose meters are in use.
fn limited() -> Quotas {
    Quotas { bytes_per_second_per_user: 1_000_000_000, ..world::quotas() }
}

fn address(relay: u32) -> RelayAddress {
    let bound = SocketAddr::new([198, 41, 0, 9].into(), 40_000 + relay as u16);
    RelayAddress { bound, external: bound }
}

/// Lives come and go at full capacity, by Refresh and by expiry; four inserts and four removals each.
fn churn(ground: &mut Ground, lives: u64) {
    for number in 0..u64::from(LIVE) {
        ground.live(number);
    }
    for number in u64::from(LIVE)..lives {
        let oldest = flow(number - u64::from(LIVE));
        if number % 2 == 0 {
            let nonce = ground.nonce(&oldest);
            assert!(ground.ask(&oldest, &nonce, Method::Refresh, |it| it.attribute(attribute::LIFETIME, &[0; 4])));
        } else {
            // Everybody else asks for more; the oldest expires.
            let end = ground.now.saturating_add(Nanos::from_secs(601));
            for live in number - u64::from(LIVE) + 1..number {
                let flow = flow(live);
                let nonce = ground.nonce(&flow);
                assert!(ground.ask(&flow, &nonce, Method::Refresh, |it| {
                    it.attribute(attribute::LIFETIME, &700u32.to_be_bytes());
                }));
            }
            ground.now = end;
            ground.server.handle_timeout(end);
        }
        ground.register();
        assert_eq!(ground.server.allocations(), LIVE as usize - 1);
        ground.live(number);
        let path = PeerPath { relay: RelayId(number as u32 % LIVE), peer: SocketAddr::new([8, 8, 1, 1].into(), 53) };
        let output = ground.server.handle_peer(ground.now, path, b"late", &mut ground.out, &mut Off);
        assert!(matches!(output, Output::ToClient { .. } | Output::Drop(_)));
        assert!(ground.server.counters().is_balanced());
    }
}

#[test]
fn nothing_is_allocated_after_new() {
    let mut ground = Ground::new(limited());
    let lives = if cfg!(debug_assertions) { 600 } else { 20_000 };
    let counted = allocation_counter::measure(|| churn(&mut ground, lives));
    assert_eq!((counted.count_total, counted.bytes_total), (0, 0));
    assert_eq!(ground.server.counters().allocations_made, lives);
}

#[test]
fn nothing_is_allocated_by_paths() {
    let mut ground = Ground::new(world::quotas());
    ground.server.offer_paths(512);
    let lives = if cfg!(debug_assertions) { 600 } else { 20_000 };
    let counted = allocation_counter::measure(|| churn(&mut ground, lives));
    assert_eq!((counted.count_total, counted.bytes_total), (0, 0));
    // A life that expires before the next poll has no path.
    assert!(ground.opened >= lives / 2, "{} of {lives}", ground.opened);
}

/// One round of what an allocation may have in addition: an address of each family, a port in reserve that is
/// claimed, another one that is not, and ICMP errors.
fn rarities(ground: &mut Ground, round: u64) {
    let [dual, holder, claimer] = [0, 1, 2].map(|place| flow(3 * round + place));
    let nonce = ground.nonce(&dual);
    assert!(ground.ask(&dual, &nonce, Method::Allocate, |it| {
        it.attribute(attribute::REQUESTED_TRANSPORT, &[17, 0, 0, 0]);
        it.attribute(attribute::ADDITIONAL_ADDRESS_FAMILY, &[2, 0, 0, 0]);
        it.attribute(attribute::DONT_FRAGMENT, &[]);
    }));
    for peer in ["8.8.8.8:53", "[2606:4700::1]:53"].map(world::addr) {
        assert!(ground.ask(&dual, &nonce, Method::ChannelBind, |it| {
            it.attribute(attribute::CHANNEL_NUMBER, &[0x40, u8::from(peer.is_ipv4()), 0, 0]);
            it.xor_address(attribute::XOR_PEER_ADDRESS, peer);
        }));
        ground.now.0 += 1_000;
        assert!(ground.pass(&dual, &[0x40, u8::from(peer.is_ipv4()), 0, 1, 7]));
        let relay = ground.server.live_allocations().position(|live| live.flow == dual).map_or(0, |place| place as u32);
        let error = IcmpError { relay: RelayId(relay), peer, kind: 3, code: 1, mtu: 0 };
        let output = ground.server.handle_icmp(ground.now, error, &mut ground.out, &mut Off);
        assert!(matches!(output, Output::ToClient { .. } | Output::Drop(_)));
    }
    assert!(ground.ask(&dual, &nonce, Method::Refresh, |it| {
        it.attribute(attribute::REQUESTED_ADDRESS_FAMILY, &[1, 0, 0, 0]);
        it.attribute(attribute::LIFETIME, &[0; 4]);
    }));
    let nonce = ground.nonce(&holder);
    assert!(ground.ask(&holder, &nonce, Method::Allocate, |it| {
        it.attribute(attribute::REQUESTED_TRANSPORT, &[17, 0, 0, 0]);
        it.attribute(attribute::EVEN_PORT, &[0x80]);
    }));
    let length = 20 + usize::from(u16::from_be_bytes([ground.out[2], ground.out[3]]));
    let reply = tt_turn::codec::Message::parse(&ground.out[..length]).expect("a message");
    let token = reply.attributes().find(|(kind, _)| *kind == attribute::RESERVATION_TOKEN).expect("a token").1;
    let token: [u8; 8] = token.try_into().expect("8 bytes");
    let (id, reservation) = ground.server.poll_reservation().expect("a reserved relay");
    if round.is_multiple_of(2) {
        ground.server.add_reserved(id, reservation).expect("its number is free");
        let nonce = ground.nonce(&claimer);
        assert!(ground.ask(&claimer, &nonce, Method::Allocate, |it| {
            it.attribute(attribute::REQUESTED_TRANSPORT, &[17, 0, 0, 0]);
            it.attribute(attribute::RESERVATION_TOKEN, &token);
        }));
        assert!(!ground.server.withdraw_relay(id), "it is claimed");
    }
    ground.now = ground.now.saturating_add(Nanos::from_secs(601));
    ground.server.handle_timeout(ground.now);
    if !round.is_multiple_of(2) {
        assert_eq!(ground.server.end_reservation(ground.now, id, &reservation), Ok(ReservationEnd::Retired));
    }
    assert_eq!((ground.server.allocations(), ground.server.poll_timeout()), (0, None));
    let mut pair = None;
    while let Some(RelayDemand::Retire(id)) = ground.server.poll_relay() {
        match (id.0, pair) {
            (200.., _) => ground.server.add_relay(id, v6_address(id.0)).expect("a relay"),
            // The pair's two sockets have rested; the even one has the lower number.
            (..2, None) => pair = Some(id),
            (..2, Some(_)) => add_pair(&mut ground.server),
            (2..200, _) => ground.server.add_relay(id, address(id.0)).expect("a relay"),
        }
    }
}

fn v6_address(relay: u32) -> RelayAddress {
    let bound = SocketAddr::new([0x2a00, 0, 0, 0, 0, 0, 0, 9].into(), 40_000 + relay as u16);
    RelayAddress { bound, external: bound }
}

fn add_pair(server: &mut Server) {
    server.add_relay_pair((RelayId(0), address(0)), (RelayId(1), address(1))).expect("a pair");
}

#[test]
fn nothing_is_allocated_by_what_is_rare() {
    let mut ground = Ground::new(limited());
    let capacity = Capacity { relays: LIVE, ..Capacity::for_allocations(16) };
    let quotas = limited();
    let shared = Arc::new(Shared::new(quotas, 16, 5));
    ground.server = Server::new(world::config(), capacity, Arc::clone(&shared), WorkerId(0), world::secrets(1));
    add_pair(&mut ground.server);
    for relay in 2..10 {
        ground.server.add_relay(RelayId(relay), address(relay)).expect("a relay");
    }
    for relay in 200..204 {
        ground.server.add_relay(RelayId(relay), v6_address(relay)).expect("a relay");
    }
    let counted = allocation_counter::measure(|| (0..200).for_each(|round| rarities(&mut ground, round)));
    assert_eq!((counted.count_total, counted.bytes_total), (0, 0));
    assert_eq!(
        (shared.allocations(), ground.server.relays_pooled(IpFamily::V4), ground.server.relays_pooled(IpFamily::V6)),
        (0, 10, 4)
    );
    assert!(ground.server.counters().is_balanced());
}
