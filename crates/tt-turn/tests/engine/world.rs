//! A server in virtual time with a client's means of asking it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tt_meter::Off;
use tt_model::{ByteRange, FiveTuple, Nanos, Transport};
use tt_turn::config::{Capacity, Config};
use tt_turn::credential::Secrets;
use tt_turn::relay::{IcmpError, PeerPath, RelayAddress, RelayId, RelayNeed, Reservation, ReservationEnd};
use tt_turn::shared::{Budget, Quotas, Shared};
use tt_turn::{DropReason, IpFields, Output, ReplyStatus, Server, WorkerId};

use super::wire::{self, Reading, Writer};

pub(crate) const REALM: &str = "example.org";
pub(crate) const PASSWORD: &str = "correct horse";
pub(crate) const WALL_S: u64 = 1_800_000_000;
pub(crate) const UDP: [u8; 4] = [17, 0, 0, 0];
/// The attributes of every answer that asks for credentials, and no others.
pub(crate) const CHALLENGE: [u16; 4] = [wire::ERROR_CODE, wire::REALM, wire::NONCE, wire::PASSWORD_ALGORITHMS];

pub(crate) fn addr(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// What [`Output`] said, with the bytes kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Out {
    Reply(Vec<u8>),
    ToPeer { relay: RelayId, peer: SocketAddr, payload: Vec<u8> },
    ToClient { client: SocketAddr, bytes: Vec<u8> },
    ToWorker { worker: WorkerId, path: PeerPath, payload: Vec<u8> },
    HandOff(WorkerId),
    Drop(DropReason),
}

impl Out {
    /// The bytes that a caller sends after `datagram`, with `out` as the engine left it.
    fn of(output: Output, datagram: &[u8], out: &[u8]) -> Self {
        let quoted = |payload: ByteRange| datagram[payload.to_range()].to_vec();
        match output {
            Output::Reply { len, status } => {
                let code = match status {
                    ReplyStatus::Success => 0,
                    ReplyStatus::Rejected { code, .. } => code.code(),
                };
                assert_eq!(Reading::of(&out[..len]).code(), code, "{status:?}");
                Self::Reply(out[..len].to_vec())
            }
            Output::ToPeer { relay, peer, payload, ip: _ } => Self::ToPeer { relay, peer, payload: quoted(payload) },
            Output::ToClient { client, header_len, payload, padding_len } => {
                assert!(padding_len <= 3);
                let bytes = [&out[..header_len], &quoted(payload), &vec![0; usize::from(padding_len)]].concat();
                Self::ToClient { client: client.client, bytes }
            }
            Output::ToWorker { worker, path, payload } => Self::ToWorker { worker, path, payload: quoted(payload) },
            Output::HandOff(worker) => Self::HandOff(worker),
            Output::Drop(reason) => Self::Drop(reason),
        }
    }

    pub(crate) fn reply(&self) -> Reading {
        match self {
            Self::Reply(bytes) => Reading::of(bytes),
            Self::ToPeer { .. } | Self::ToClient { .. } | Self::ToWorker { .. } | Self::HandOff(_) | Self::Drop(_) => {
                panic!("{self:?}")
            }
        }
    }
}

/// The reserved relays of all workers, and the number that each had, by their tokens.
pub(crate) type Reserved = Arc<Mutex<BTreeMap<u64, (RelayId, Reservation)>>>;

pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) reserved: Reserved,
    pub(crate) shared: Arc<Shared>,
    pub(crate) now: Nanos,
    pub(crate) listener: SocketAddr,
    pub(crate) transport: Transport,
    pub(crate) transactions: u64,
    pub(crate) out: Vec<u8>,
    /// What the last datagram to a peer was to be sent with.
    pub(crate) ip: Option<IpFields>,
}

pub(crate) fn config() -> Config {
    Config::new(REALM)
}

pub(crate) fn quotas() -> Quotas {
    Quotas { error_excess: Budget::UNLIMITED, user_allocation_rate: Budget::UNLIMITED, ..Quotas::default() }
}

pub(crate) fn capacity() -> Capacity {
    Capacity {
        allocations: 64,
        permissions: 512,
        permissions_per_allocation: 16,
        channels: 512,
        channels_per_allocation: 16,
        relays: 64,
    }
}

pub(crate) fn secrets(seed: u8) -> Secrets {
    let mut secrets = Secrets::new([seed; 32], [77; 32]);
    secrets.add_user(b"alice", REALM, PASSWORD.as_bytes());
    secrets.add_user(b"bob", REALM, PASSWORD.as_bytes());
    secrets
}

pub(crate) fn key(name: &str) -> [u8; 16] {
    wire::md5_key(name, REALM, PASSWORD)
}

/// The relay's number, or another one that is free.
fn vacant(server: &Server, id: RelayId) -> RelayId {
    let all = (0..capacity().relays).map(RelayId);
    std::iter::once(id).chain(all).find(|id| !server.has_relay(*id)).expect("a free number")
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(config(), quotas(), capacity(), secrets(1))
    }

    pub(crate) fn with(config: Config, quotas: Quotas, capacity: Capacity, secrets: Secrets) -> Self {
        let shared = Arc::new(Shared::new(quotas, capacity.allocations, 42));
        let mut world = Self::sharing(config, capacity, secrets, &shared, 0);
        for relay in 0..32 {
            let bound = SocketAddr::new([198, 41, 0, 9].into(), 50_000 + relay as u16);
            world.server.add_relay(RelayId(relay), RelayAddress { bound, external: bound }).expect("a relay");
        }
        world
    }

    /// One of several workers, without relays.
    pub(crate) fn sharing(
        config: Config,
        capacity: Capacity,
        secrets: Secrets,
        shared: &Arc<Shared>,
        worker: u16,
    ) -> Self {
        let mut server = Server::new(config, capacity, Arc::clone(shared), WorkerId(worker), secrets);
        let now = Nanos::from_secs(5_000);
        server.set_wall_clock(now, Nanos::from_secs(WALL_S));
        let (listener, transport) = (addr("198.41.0.9:3478"), Transport::Udp);
        Self {
            server,
            reserved: Reserved::default(),
            shared: Arc::clone(shared),
            now,
            listener,
            transport,
            transactions: 0,
            out: vec![0xEE; 1_500],
            ip: None,
        }
    }

    pub(crate) fn tid(&mut self) -> [u8; 12] {
        self.transactions += 1;
        let mut tid = [0x5A; 12];
        tid[..8].copy_from_slice(&self.transactions.to_be_bytes());
        tid
    }

    pub(crate) fn pass_s(&mut self, seconds: u64) {
        self.now = self.now.saturating_add(Nanos::from_secs(seconds));
    }

    /// Seconds pass, and what the server wants done at their end is done.
    pub(crate) fn run_s(&mut self, seconds: u64) {
        self.pass_s(seconds);
        while self.server.poll_timeout().is_some_and(|at| at <= self.now) {
            self.server.handle_timeout(self.now);
        }
        let mut reserved = self.reserved.lock().expect("no panic");
        reserved.retain(|_, (id, reservation)| {
            if reservation.expires() > self.now {
                return true;
            }
            let id = vacant(&self.server, *id);
            let end = self.server.end_reservation(self.now, id, reservation).expect("a free number");
            assert_eq!(end, ReservationEnd::Retired);
            false
        });
    }

    /// Adds the relay that an Allocate claims, as a driver does.
    pub(crate) fn lend(&mut self, from: SocketAddr, datagram: &[u8]) -> Option<RelayId> {
        let need = self.server.relay_need(self.now, &self.flow(from), datagram);
        let Some(RelayNeed::Reserved(token)) = need else { return None };
        let (id, reservation) = self.reserved.lock().expect("no panic").get(&token).copied()?;
        let id = vacant(&self.server, id);
        self.server.add_reserved(id, reservation).expect("a free number");
        Some(id)
    }

    /// Takes the relays that an Allocate has reserved, and the one that was lent for it, unless it is claimed.
    pub(crate) fn settle(&mut self, lent: Option<RelayId>, datagram: &[u8]) {
        let mut reserved = self.reserved.lock().expect("no panic");
        while let Some((id, reservation)) = self.server.poll_reservation() {
            assert!(!self.server.has_relay(id));
            reserved.insert(reservation.token(), (id, reservation));
        }
        if lent.is_some_and(|id| !self.server.withdraw_relay(id)) {
            let token =
                Reading::of(datagram).get(wire::RESERVATION_TOKEN).map(|token| token.try_into().expect("8 bytes"));
            reserved.remove(&u64::from_be_bytes(token.expect("a token")));
        }
    }

    pub(crate) fn flow(&self, from: SocketAddr) -> FiveTuple {
        FiveTuple { client: from, server: self.listener, transport: self.transport }
    }

    pub(crate) fn client(&mut self, from: SocketAddr, datagram: &[u8]) -> Out {
        let lent = self.lend(from, datagram);
        let out = self.handle(from, datagram);
        self.settle(lent, datagram);
        out
    }

    /// The engine alone, without the relays that a driver adds and takes.
    pub(crate) fn handle(&mut self, from: SocketAddr, datagram: &[u8]) -> Out {
        let flow = self.flow(from);
        self.out.fill(0xEE);
        let output = self.server.handle_client(self.now, &flow, datagram, &mut self.out, &mut Off);
        if let Output::ToPeer { ip, .. } = output {
            self.ip = Some(ip);
        }
        let out = Out::of(output, datagram, &self.out);
        assert!(self.server.counters().is_balanced(), "{:?}", self.server.counters());
        out
    }

    pub(crate) fn peer(&mut self, relay: RelayId, peer: SocketAddr, datagram: &[u8]) -> Out {
        self.out.fill(0xEE);
        let path = PeerPath { relay, peer };
        let output = self.server.handle_peer(self.now, path, datagram, &mut self.out[..64], &mut Off);
        let out = Out::of(output, datagram, &self.out);
        assert!(self.server.counters().is_balanced(), "{:?}", self.server.counters());
        out
    }

    pub(crate) fn icmp(&mut self, error: IcmpError) -> Out {
        self.out.fill(0xEE);
        let output = self.server.handle_icmp(self.now, error, &mut self.out[..64], &mut Off);
        let out = Out::of(output, &[], &self.out);
        assert!(self.server.counters().is_balanced(), "{:?}", self.server.counters());
        out
    }

    /// The 401 for a request without credentials.
    pub(crate) fn challenge(&mut self, from: SocketAddr) -> Reading {
        let tid = self.tid();
        let reply = self.client(from, &Writer::new(wire::REFRESH, 0, tid).0).reply();
        assert_eq!(reply.code(), 401);
        reply
    }

    /// A nonce for the client, from a 401.
    pub(crate) fn nonce(&mut self, from: SocketAddr) -> Vec<u8> {
        self.challenge(from).get(wire::NONCE).expect("a nonce").to_vec()
    }

    /// A request with credentials, up to its MESSAGE-INTEGRITY.
    pub(crate) fn unsigned(&mut self, from: SocketAddr, name: &str, method: u16, attrs: &[(u16, Vec<u8>)]) -> Writer {
        let nonce = self.nonce(from);
        let tid = self.tid();
        let mut writer = Writer::new(method, 0, tid);
        for (kind, value) in attrs {
            writer = writer.attr(*kind, value);
        }
        writer.attr(wire::USERNAME, name.as_bytes()).attr(wire::REALM, REALM.as_bytes()).attr(wire::NONCE, &nonce)
    }

    /// Asks with right credentials; the answer is signed and for this transaction.
    pub(crate) fn ask_as(&mut self, name: &str, from: SocketAddr, method: u16, attrs: &[(u16, Vec<u8>)]) -> Reading {
        let request = self.unsigned(from, name, method, attrs).integrity(&key(name)).0;
        let reply = self.client(from, &request).reply();
        assert_eq!((&reply.bytes[8..20], reply.method), (&request[8..20], method));
        assert!(reply.is_signed(&key(name)), "{reply:?}");
        reply
    }

    pub(crate) fn ask(&mut self, from: SocketAddr, method: u16, attrs: &[(u16, Vec<u8>)]) -> Reading {
        self.ask_as("alice", from, method, attrs)
    }

    /// Allocates and returns the relay and its address.
    pub(crate) fn allocate(&mut self, from: SocketAddr) -> (RelayId, SocketAddr) {
        let reply = self.ask(from, wire::ALLOCATE, &[(wire::TRANSPORT, UDP.to_vec())]);
        assert_eq!(reply.code(), 0);
        let relayed = reply.address(wire::RELAYED_ADDRESS).expect("an address");
        (RelayId(u32::from(relayed.port() - 50_000)), relayed)
    }

    pub(crate) fn permit(&mut self, from: SocketAddr, peer: SocketAddr) -> u16 {
        let attr = self.peer_attr(peer);
        self.ask(from, wire::CREATE_PERMISSION, &[attr]).code()
    }

    pub(crate) fn bind(&mut self, from: SocketAddr, number: u16, peer: SocketAddr) -> u16 {
        let attr = self.peer_attr(peer);
        let number = [number.to_be_bytes(), [0, 0]].concat();
        self.ask(from, wire::CHANNEL_BIND, &[(wire::CHANNEL_NUMBER, number), attr]).code()
    }

    /// XOR-PEER-ADDRESS for the next signed request.
    pub(crate) fn peer_attr(&mut self, peer: SocketAddr) -> (u16, Vec<u8>) {
        // The nonce takes one transaction, the request the next.
        let (before, _) = (self.transactions, self.tid());
        let tid = self.tid();
        self.transactions = before;
        (wire::PEER_ADDRESS, Writer::new(0, 0, tid).address(0, peer).0[24..].to_vec())
    }

    pub(crate) fn send(&mut self, from: SocketAddr, peer: SocketAddr, payload: &[u8]) -> Out {
        let tid = self.tid();
        let message = Writer::new(wire::SEND, 1, tid).address(wire::PEER_ADDRESS, peer).attr(wire::DATA, payload);
        self.client(from, &message.0)
    }

    pub(crate) fn channel_data(&mut self, from: SocketAddr, number: u16, payload: &[u8]) -> Out {
        let length = payload.len() as u16;
        self.client(from, &[&number.to_be_bytes()[..], &length.to_be_bytes(), payload].concat())
    }

    /// The fixed probe: a Binding and an authenticated relay echo still pass.
    pub(crate) fn probe(&mut self) {
        let (client, peer) = (addr("192.0.2.200:7000"), addr("8.8.4.4:9"));
        let tid = self.tid();
        let reply = self.client(client, &Writer::new(wire::BINDING, 0, tid).0).reply();
        assert_eq!(reply.address(wire::MAPPED_ADDRESS), Some(client));
        let (relay, _) = self.allocate(client);
        assert_eq!(self.permit(client, peer), 0);
        let payload = b"echo".to_vec();
        assert_eq!(self.send(client, peer, &payload), Out::ToPeer { relay, peer, payload: payload.clone() });
        let Out::ToClient { bytes, .. } = self.peer(relay, peer, &payload) else { panic!("not relayed") };
        assert_eq!(Reading::of(&bytes).get(wire::DATA), Some(&payload[..]));
        assert_eq!(self.ask(client, wire::REFRESH, &[(wire::LIFETIME, vec![0; 4])]).code(), 0);
        while let Some(tt_turn::relay::RelayDemand::Retire(id)) = self.server.poll_relay() {
            let bound = SocketAddr::new([198, 41, 0, 9].into(), 50_000 + id.0 as u16);
            self.server.add_relay(id, RelayAddress { bound, external: bound }).expect("a relay");
        }
    }

    /// Asserts that `datagram` is dropped for `reason` and nothing else happens.
    pub(crate) fn dropped(&mut self, from: SocketAddr, datagram: &[u8], reason: DropReason) {
        let (before, live) = (*self.server.counters(), self.server.allocations());
        assert_eq!(self.client(from, datagram), Out::Drop(reason), "{datagram:02x?}");
        let after = *self.server.counters();
        assert_eq!(after.dropped(reason), before.dropped(reason) + 1);
        assert_eq!(after.drops.iter().sum::<u64>(), before.drops.iter().sum::<u64>() + 1);
        assert_eq!(
            (after.replied, after.relayed(), self.server.allocations()),
            (before.replied, before.relayed(), live)
        );
    }
}
