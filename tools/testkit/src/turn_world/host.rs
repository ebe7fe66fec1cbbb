//! The server's machine: the real engine, its workers, relay sockets and clocks.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use tt_meter::Off;
use tt_model::{ByteRange, FiveTuple, IpFamily, Nanos};
use tt_turn::config::{Capacity, Config, ExpiryCheck, IcmpIndications, LapsedPermissions, PasswordAlgorithms};
use tt_turn::credential::Secrets;
use tt_turn::event::AllocationEvent;
use tt_turn::policy::{Cidr, PeerPolicy, PeerRange};
use tt_turn::relay::{IcmpError, PeerPath, RelayAddress, RelayDemand, RelayId, RelayNeed, Reservation, ReservationEnd};
use tt_turn::shared::{Budget, Quotas, Shared};
use tt_turn::{Counters, DropReason, Output, Server, WorkerId};

use super::credentials::{PASSWORD, SECRET, user_name};
use super::limits;
use super::model::RelayPlace;
use super::planted::Planted;
use super::topology::{PeerRule, PeerRuleKind, REALM, Topology, WALL_S, listener, relay_ip};
use crate::draw::mix;

/// What the engine did with a datagram, with the bytes kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Done {
    Reply { to: FiveTuple, bytes: Vec<u8> },
    ToPeer { relay: RelayPlace, peer: SocketAddr, payload: Vec<u8> },
    ToClient { client: FiveTuple, bytes: Vec<u8>, payload_at: usize, payload_len: usize },
    HandOver(u16),
    Drop(DropReason),
}

impl Done {
    /// Bytes of a response, 0 of anything else.
    pub(super) fn reply_len(&self) -> usize {
        match self {
            Self::Reply { bytes, .. } => bytes.len(),
            Self::ToPeer { .. } | Self::ToClient { .. } | Self::HandOver(_) | Self::Drop(_) => 0,
        }
    }
}

/// How much a worker holds: what unauthenticated input must not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tables {
    pub(super) allocations: usize,
    pub(super) permissions: usize,
    pub(super) channels: usize,
    pub(super) pooled: usize,
    pub(super) shared: u32,
}

/// The relay sockets of all workers. A relay has the same number at every worker.
struct Relays {
    /// Relays that each worker starts with.
    each: u32,
    addresses: BTreeMap<SocketAddr, RelayPlace>,
    /// Reserved ones, by token: no worker has them.
    reserved: BTreeMap<u64, Reservation>,
    /// The worker of each that was reserved and is another worker's now.
    moved: BTreeMap<RelayPlace, u16>,
}

impl Relays {
    fn id(&self, (worker, relay): RelayPlace) -> RelayId {
        RelayId(u32::from(worker) * self.each + relay)
    }

    fn place(&self, id: RelayId) -> RelayPlace {
        ((id.0 / self.each) as u16, id.0 % self.each)
    }

    fn worker(&self, place: RelayPlace) -> u16 {
        self.moved.get(&place).copied().unwrap_or(place.0)
    }

    fn reserved_id(&self, reservation: &Reservation) -> RelayId {
        self.id(self.addresses[&reservation.address().bound])
    }
}

pub(super) struct Host {
    workers: Vec<Server>,
    pub(super) shared: Arc<Shared>,
    nonce_start: u64,
    seeds: (u64, u64),
    relays: Relays,
    out: Vec<u8>,
    pub(super) planted: Option<Planted>,
    plant: u64,
    snoozed_until: Nanos,
    has_snoozed: bool,
}

impl Host {
    /// The server started at `now`, for the `starts`th time.
    pub(super) fn start(topology: &Topology, seed: u64, starts: u64, now: Nanos, wall_jump_ns: i64) -> Self {
        let rules = &topology.rules;
        let mut config = Config::new(REALM);
        config.lifetime_default_s = rules.lifetime_default_s;
        config.lifetime_max_s = rules.lifetime_max_s;
        config.nonce_lifetime_s = rules.nonce_lifetime_s;
        if !rules.offers_sha256 {
            config.password_algorithms = PasswordAlgorithms::Md5;
        }
        config.icmp_indications = IcmpIndications::Always;
        if rules.strict_expiry {
            config.expiry_check = ExpiryCheck::EveryRequest;
        }
        if rules.strict_permissions {
            config.lapsed_permissions = LapsedPermissions::ChannelStops;
        }
        config.peer_policy = policy(&topology.peer_rules, &[]);
        let none = Budget { per_second: 0, burst: 0 };
        let (error_excess, error_excess_per_source) = match rules.error_budget {
            Some((per_second, burst)) => (none, Budget { per_second, burst }),
            None => (Budget::UNLIMITED, none),
        };
        let quotas = Quotas {
            allocations_per_user: rules.allocations_per_user,
            allocations_total: rules.allocations_total,
            error_excess,
            error_excess_per_source,
            ..limits::quotas(&rules.rates, &rules.shares)
        };
        let capacity = Capacity {
            allocations: rules.allocations,
            permissions: rules.permissions,
            permissions_per_allocation: rules.permissions_per_allocation,
            channels: rules.channels,
            channels_per_allocation: rules.channels_per_allocation,
            relays: (topology.relays_v4 + topology.relays_v6) * u32::from(topology.workers),
        };
        let all = rules.allocations * u32::from(topology.workers);
        let shared = Arc::new(Shared::with_pools(quotas, all, rules.shares.pools, mix(seed, starts)));
        let nonce_start = if rules.keeps_nonce_key { 0 } else { starts };
        let workers = (0..topology.workers)
            .map(|worker| {
                let secrets = secrets(topology, (seed, starts), nonce_start, worker, 0);
                let mut server = Server::new(config.clone(), capacity, Arc::clone(&shared), WorkerId(worker), secrets);
                server.set_wall_clock(now, unix(now, wall_jump_ns));
                server
            })
            .collect();
        Self {
            workers,
            shared,
            nonce_start,
            seeds: (seed, starts),
            relays: Relays {
                each: topology.relays_v4 + topology.relays_v6,
                addresses: BTreeMap::new(),
                reserved: BTreeMap::new(),
                moved: BTreeMap::new(),
            },
            out: vec![0xEE; 1_500],
            planted: None,
            plant: 0,
            snoozed_until: now,
            has_snoozed: false,
        }
    }

    /// The address of a relay, and whether it is one of the topology's.
    pub(super) fn relay_addr(topology: &Topology, (worker, relay): RelayPlace) -> SocketAddr {
        let is_ipv4 = relay < topology.relays_v4;
        let each = topology.relays_v4.max(topology.relays_v6).next_multiple_of(2);
        let number = u32::from(worker) * each + if is_ipv4 { relay } else { relay - topology.relays_v4 };
        SocketAddr::new(relay_ip(is_ipv4), 10_000 + number as u16)
    }

    /// Registers a relay; its address.
    pub(super) fn add_relay(&mut self, topology: &Topology, place: RelayPlace) -> SocketAddr {
        let bound = Self::relay_addr(topology, place);
        let given = match self.planted {
            // Two sockets on one address.
            Some(Planted::SharedAddress) if place.1 % 4 >= 2 => Self::relay_addr(topology, (place.0, place.1 - 2)),
            Some(_) | None => bound,
        };
        let (address, id) = (RelayAddress { bound: given, external: given }, self.relays.id(place));
        if let Some(worker) = self.relays.moved.remove(&place) {
            self.workers[usize::from(worker)].end_rest(id);
        }
        self.workers[usize::from(place.0)].add_relay(id, address).expect("the relay was free");
        self.relays.addresses.insert(bound, place);
        bound
    }

    /// Registers two relays on an even port and the next; the even one's address.
    pub(super) fn add_pair(&mut self, topology: &Topology, worker: u16, even: u32, odd: u32) -> SocketAddr {
        let [first, second] = [even, odd].map(|relay| {
            let bound = Self::relay_addr(topology, (worker, relay));
            self.relays.addresses.insert(bound, (worker, relay));
            (self.relays.id((worker, relay)), RelayAddress { bound, external: bound })
        });
        self.workers[usize::from(worker)].add_relay_pair(first, second).expect("the relays were free");
        first.1.bound
    }

    /// The relay that listens on an address.
    pub(super) fn relay_on(&self, addr: SocketAddr) -> Option<RelayPlace> {
        self.relays.addresses.get(&addr).copied()
    }

    /// The worker that has a relay: the first one, or the one that a token was claimed at.
    pub(super) fn worker_of(&self, place: RelayPlace) -> u16 {
        self.relays.worker(place)
    }

    /// The engines' number of a relay.
    pub(super) fn relay_id(&self, place: RelayPlace) -> RelayId {
        self.relays.id(place)
    }

    pub(super) fn set_wall_clock(&mut self, now: Nanos, wall_jump_ns: i64) {
        for worker in &mut self.workers {
            worker.set_wall_clock(now, unix(now, wall_jump_ns));
        }
    }

    /// A datagram arrives at a worker.
    pub(super) fn client(&mut self, now: Nanos, worker: u16, flow: &FiveTuple, bytes: &[u8]) -> Vec<Done> {
        if self.planted == Some(Planted::TrustsAnybody) {
            self.trust(now, worker, flow, bytes);
        }
        let server = &mut self.workers[usize::from(worker)];
        let lent = match server.relay_need(now, flow, bytes) {
            Some(RelayNeed::Reserved(token)) => self.relays.reserved.get(&token).copied(),
            Some(RelayNeed::Free { .. }) | None => None,
        };
        let lent = lent.map(|reservation| (self.relays.reserved_id(&reservation), reservation));
        if let Some((id, reservation)) = lent {
            server.add_reserved(id, reservation).expect("the number was free");
        }
        let output = server.handle_client(now, flow, bytes, &mut self.out, &mut Off);
        while let Some((_, reservation)) = server.poll_reservation() {
            self.relays.reserved.insert(reservation.token(), reservation);
        }
        if let Some((id, reservation)) = lent.filter(|(id, _)| !server.withdraw_relay(*id)) {
            self.relays.reserved.remove(&reservation.token());
            self.relays.moved.insert(self.relays.place(id), worker);
        }
        let done = vec![keep(flow, (output, bytes, &self.out), &self.relays)];
        self.mar(flow, bytes, done)
    }

    /// A datagram arrives at a relay.
    pub(super) fn peer(&mut self, now: Nanos, relay: RelayPlace, peer: SocketAddr, bytes: &[u8]) -> Vec<Done> {
        let server = &mut self.workers[usize::from(self.relays.worker(relay))];
        let path = PeerPath { relay: self.relays.id(relay), peer };
        let no_client = FiveTuple { client: peer, server: peer, transport: tt_model::Transport::Udp };
        let output = server.handle_peer(now, path, bytes, &mut self.out, &mut Off);
        let done = vec![keep(&no_client, (output, bytes, &self.out), &self.relays)];
        self.mar(&no_client, bytes, done)
    }

    /// The nonce key of this generation, and the one before it.
    pub(super) fn rotate(&mut self, now: Nanos, topology: &Topology, generation: u64) {
        for (number, worker) in (0..).zip(&mut self.workers) {
            worker.replace_secrets(now, &secrets(topology, self.seeds, self.nonce_start, number, generation));
        }
    }

    /// These rules count from now on, and these listeners of this host.
    pub(super) fn replace_policy(&mut self, rules: &[PeerRule], listeners: &[SocketAddr]) {
        for worker in &mut self.workers {
            worker.replace_policy(policy(rules, listeners));
        }
    }

    /// What a worker reports next.
    pub(super) fn event(&mut self, worker: u16) -> Option<AllocationEvent> {
        self.workers[usize::from(worker)].poll_event()
    }

    /// Whether a worker had more to report at once than it keeps, which it counts.
    pub(super) fn has_lost_events(&self, worker: u16) -> bool {
        self.workers[usize::from(worker)].events_lost() > 0
    }

    /// A relay receives an ICMP error.
    pub(super) fn icmp(&mut self, now: Nanos, worker: u16, error: IcmpError) -> Vec<Done> {
        let server = &mut self.workers[usize::from(worker)];
        let no_client = FiveTuple { client: error.peer, server: error.peer, transport: tt_model::Transport::Udp };
        let output = server.handle_icmp(now, error, &mut self.out, &mut Off);
        vec![keep(&no_client, (output, &[], &self.out), &self.relays)]
    }

    /// A client's connection is closed: every worker may have its allocation.
    pub(super) fn close(&mut self, now: Nanos, flow: &FiveTuple) {
        for worker in &mut self.workers {
            worker.close_flow(now, flow);
        }
    }

    /// When a worker wants its timer, and which.
    pub(super) fn next_timeout(&self) -> Option<(Nanos, u16)> {
        let timeouts = self.workers.iter().filter_map(|server| Some((server.poll_timeout()?, server.worker().0)));
        let ends = self.relays.reserved.values().map(|held| (held.expires(), self.ends_at(held)));
        let due = timeouts.chain(ends).min()?;
        match self.planted {
            Some(Planted::LateTimers | Planted::HoardsPermissions) => Some((due.0.max(self.snoozed_until), due.1)),
            Some(_) | None => Some(due),
        }
    }

    /// Time for what a worker wanted to do; `ends_allocation` says whether the model expects an allocation's end.
    pub(super) fn timeout(&mut self, now: Nanos, worker: u16, ends_allocation: bool) {
        if self.planted == Some(Planted::HoardsPermissions) && !ends_allocation {
            self.snoozed_until = now.saturating_add(Nanos::from_millis(100));
            return;
        }
        if self.planted == Some(Planted::LateTimers) && ends_allocation && !std::mem::take(&mut self.has_snoozed) {
            self.snoozed_until = now.saturating_add(Nanos::from_secs(3));
            self.has_snoozed = true;
            return;
        }
        self.workers[usize::from(worker)].handle_timeout(now);
        let is_due = |held: &&Reservation| held.expires() <= now && self.ends_at(held) == worker;
        for held in self.relays.reserved.values().filter(is_due).copied().collect::<Vec<_>>() {
            let id = self.relays.reserved_id(&held);
            let end = self.workers[usize::from(worker)].end_reservation(now, id, &held);
            assert_eq!(end, Ok(ReservationEnd::Retired), "no other worker claims it");
            self.relays.reserved.remove(&held.token());
            self.relays.moved.insert(self.relays.place(id), worker);
        }
    }

    /// The worker that ends a reservation: not the one that made it, if there are several.
    fn ends_at(&self, held: &Reservation) -> u16 {
        let (maker, _) = self.relays.addresses[&held.address().bound];
        (maker + 1) % self.workers.len() as u16
    }

    /// A relay of the worker that has served.
    pub(super) fn retired(&mut self, worker: u16) -> Option<RelayPlace> {
        let RelayDemand::Retire(relay) = self.workers[usize::from(worker)].poll_relay()?;
        Some(self.relays.place(relay))
    }

    pub(super) fn counters(&self, worker: u16) -> Counters {
        let mut counters = *self.workers[usize::from(worker)].counters();
        if self.planted == Some(Planted::LosesCount) && counters.dropped(DropReason::NoPermission) > 3 {
            counters.drops[DropReason::NoPermission as usize] -= 1;
        }
        counters
    }

    pub(super) fn tables(&self, worker: u16) -> Tables {
        let server = &self.workers[usize::from(worker)];
        Tables {
            allocations: server.allocations(),
            permissions: server.permissions(),
            channels: server.channels(),
            pooled: IpFamily::ALL.map(|family| server.relays_pooled(family)).iter().sum(),
            shared: self.shared.allocations(),
        }
    }

    pub(super) fn allocations(&self) -> usize {
        self.workers.iter().map(Server::allocations).sum()
    }

    /// A request without credentials is answered 401, and yet its allocation is made.
    fn trust(&mut self, now: Nanos, worker: u16, flow: &FiveTuple, bytes: &[u8]) {
        let server = &mut self.workers[usize::from(worker)];
        if let Some(forged) = super::planted::forge(flow, bytes, |ask| {
            match server.handle_client(now, flow, ask, &mut self.out, &mut Off) {
                Output::Reply { len, .. } => Some(self.out[..len].to_vec()),
                Output::ToPeer { .. }
                | Output::ToClient { .. }
                | Output::ToWorker { .. }
                | Output::HandOff(_)
                | Output::Drop(_) => None,
            }
        }) {
            let _ = server.handle_client(now, flow, &forged, &mut self.out, &mut Off);
        }
    }

    /// What a broken server would have done instead.
    fn mar(&mut self, flow: &FiveTuple, bytes: &[u8], done: Vec<Done>) -> Vec<Done> {
        let Some(planted) = self.planted else { return done };
        self.plant += 1;
        super::planted::mar(planted, self.plant, (flow, bytes), done)
    }
}

/// What a caller does after `datagram`, with `out` as the engine left it.
fn keep(from: &FiveTuple, (output, datagram, out): (Output, &[u8], &[u8]), relays: &Relays) -> Done {
    let quoted = |payload: ByteRange| &datagram[payload.to_range()];
    match output {
        Output::Reply { len, .. } => Done::Reply { to: *from, bytes: out[..len].to_vec() },
        Output::ToPeer { relay, peer, payload, ip: _ } => {
            Done::ToPeer { relay: relays.place(relay), peer, payload: quoted(payload).to_vec() }
        }
        Output::ToClient { client, header_len, payload, padding_len } => Done::ToClient {
            client,
            bytes: [&out[..header_len], quoted(payload), &vec![0; usize::from(padding_len)]].concat(),
            payload_at: header_len,
            payload_len: payload.len(),
        },
        // Between workers a payload takes its time, as between hosts.
        Output::ToWorker { worker, path, payload } => {
            let end = relays.place(path.relay);
            assert_eq!(relays.worker(end), worker.0, "another worker's relay");
            let end = relays.addresses.iter().find(|(_, place)| **place == end);
            let (peer, relay) = (*end.expect("a relay of the worker").0, relays.addresses[&path.peer]);
            Done::ToPeer { relay, peer, payload: quoted(payload).to_vec() }
        }
        Output::HandOff(worker) => Done::HandOver(worker.0),
        Output::Drop(reason) => Done::Drop(reason),
    }
}

fn policy(rules: &[PeerRule], listeners: &[SocketAddr]) -> PeerPolicy {
    let mut policy = PeerPolicy::new();
    policy.deny_listener(listener(true));
    policy.deny_listener(listener(false));
    listeners.iter().for_each(|listener| policy.deny_listener(*listener));
    for rule in rules {
        let range = PeerRange::from(Cidr::new(rule.ip, rule.prefix_bits as u8).expect("a prefix"));
        let range = range.with_ports(rule.ports.0, rule.ports.1).expect("ports in order");
        match rule.kind {
            PeerRuleKind::Allow => policy.allow(range),
            PeerRuleKind::Deny => policy.deny(range),
            PeerRuleKind::CloseHost => policy.close_host(range),
            PeerRuleKind::OpenHost => policy.open_host(range),
        }
    }
    policy
}

/// What a worker of the server's start number `starts` knows, with the nonce key of a generation and the one before.
fn secrets(topology: &Topology, (seed, starts): (u64, u64), nonce_start: u64, worker: u16, generation: u64) -> Secrets {
    let nonce_key = |generation: u64| key(seed, nonce_start << 32 | generation << 16 | 0xFFFF);
    let mut secrets = Secrets::new(key(seed, starts << 32 | u64::from(worker)), nonce_key(generation));
    if generation > 0 {
        secrets.accept_nonce_key(nonce_key(generation - 1));
    }
    for user in (0..topology.users).filter(|user| !topology.rules.is_limited(*user)) {
        secrets.add_user(&user_name(user), REALM, PASSWORD.as_bytes());
    }
    if topology.rules.limited_from < topology.users {
        secrets.add_auth_secret(SECRET);
    }
    secrets
}

fn key(seed: u64, number: u64) -> [u8; 32] {
    let mut key = [0; 32];
    for (at, word) in key.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        *word = mix(mix(seed, number), at as u64).to_le_bytes();
    }
    key
}

fn unix(now: Nanos, wall_jump_ns: i64) -> Nanos {
    Nanos(((WALL_S * Nanos::PER_SECOND + now.0) as i64 + wall_jump_ns) as u64)
}
