//! The run: virtual time, from event to event.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use tt_model::{FiveTuple, Nanos};

use super::clients::Client;
use super::credentials::Credential;
use super::event::{Entry, Event};
use super::healing::LIVENESS;
use super::host::{Done, Host};
use super::invariants::{self, Delivery, Failure, Lesson};
use super::link::Weather;
use super::model::{Codes, Expected, Flow, Model, RelayPlace};
use super::planted::Planted;
use super::script::Script;
use super::stream::Stream;
use super::topology::WALL_S;
use super::wire::{self, Reading};
use crate::draw::{Draw, mix};
use crate::trace::Trace;

/// Datagrams that attackers remember.
pub(super) const CAPTURED_MAX: usize = 64;

/// Whether a run keeps its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// Only the hash.
    Hash,
    /// Every event, as text.
    Lines,
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events of virtual time.
    pub events: u64,
    /// Datagrams that arrived at the server, from clients and from peers.
    pub delivered: u64,
    /// Payloads that the server relayed.
    pub relayed: u64,
    /// Requests that were granted.
    pub granted: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Datagrams that one worker handed to another.
    pub handed_over: u64,
    /// Clients that had to relay at the end, and did.
    pub reached: u64,
    /// Clients that the reference model says had to be refused at the end: quotas or relays were used up.
    pub excused: u64,
    /// Virtual seconds.
    pub virtual_s: u64,
}

/// Result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The hash of everything that happened.
    pub hash: u64,
    /// The first broken invariant.
    pub failure: Option<Failure>,
    /// The counts.
    pub tally: Tally,
    /// The lines, where they were asked for.
    pub lines: Vec<String>,
}

/// Plays a script, on a server with an optional injected fault.
#[must_use]
pub fn play(script: &Script, planted: Option<Planted>, telling: Telling) -> Outcome {
    let mut world = World::new(script, planted, telling);
    let failure = world.run().err();
    world.tally.events = world.trace.events;
    world.tally.virtual_s = world.now.0 / Nanos::PER_SECOND;
    Outcome { hash: world.trace.hash(), failure, tally: world.tally, lines: world.trace.take_lines() }
}

pub(super) struct World<'s> {
    pub(super) script: &'s Script,
    pub(super) now: Nanos,
    pub(super) events: BinaryHeap<Reverse<Entry>>,
    numbers: u64,
    pub(super) host: Host,
    pub(super) model: Model,
    pub(super) clients: Vec<Client>,
    /// Which client has an address at its NAT.
    pub(super) mappings: BTreeMap<SocketAddr, usize>,
    pub(super) ports: u16,
    pub(super) weather: Weather,
    pub(super) weather_of: Vec<Weather>,
    pub(super) weather_of_peers: Weather,
    /// End times of faults: link faults, squeezes, send errors.
    pub(super) clears: Vec<super::deeds::Clear>,
    pub(super) links: Vec<Draw>,
    pub(super) peer_link: Draw,
    /// Of clients over TCP and TLS.
    pub(super) streams: Vec<Stream>,
    pub(super) captured: VecDeque<(FiveTuple, Vec<u8>)>,
    pub(super) steering: u64,
    pub(super) squeezes: u32,
    pub(super) send_errors: u64,
    pub(super) is_up: bool,
    pub(super) is_healed: bool,
    /// Calls of the engine.
    settled: u64,
    /// Users whose traffic was limited after the faults had stopped.
    pub(super) limited: BTreeSet<usize>,
    pub(super) starts: u64,
    pub(super) trace: Trace,
    pub(super) tally: Tally,
}

impl<'s> World<'s> {
    fn new(script: &'s Script, planted: Option<Planted>, telling: Telling) -> Self {
        let (seed, topology) = (script.seed, &script.topology);
        let model = Model::new(topology.rules, &topology.peer_rules, topology.users, topology.workers);
        let mut host = Host::start(topology, seed, 0, Nanos(0), 0);
        host.planted = planted;
        let mut clients = Vec::with_capacity(topology.clients.len());
        let mut mappings = BTreeMap::new();
        for (number, place) in topology.clients.iter().enumerate() {
            let addr = SocketAddr::new(place.ip, 20_000 + number as u16);
            mappings.insert(addr, number);
            let credential = match topology.rules.is_limited(place.user) {
                true => Credential::limited(place.user, WALL_S + place.credential_s),
                false => Credential::lasting(place.user),
            };
            clients.push(Client::new(*place, addr, credential, mix(seed, number as u64)));
        }
        let links = (0..clients.len()).map(|number| Draw::new(mix(seed ^ 0x6C69_6E6B, number as u64))).collect();
        let mut world = Self {
            script,
            now: Nanos(0),
            events: BinaryHeap::new(),
            numbers: 0,
            host,
            model,
            mappings,
            ports: 30_000,
            weather: Weather::default(),
            weather_of: vec![Weather::default(); clients.len()],
            weather_of_peers: Weather::default(),
            clears: Vec::new(),
            links,
            peer_link: Draw::new(mix(seed, 0x7065_6572)),
            streams: clients.iter().map(|_| Stream::default()).collect(),
            clients,
            captured: VecDeque::new(),
            steering: 0,
            squeezes: 0,
            send_errors: 0,
            is_up: true,
            is_healed: false,
            settled: 0,
            limited: BTreeSet::new(),
            starts: 0,
            trace: Trace::new(telling == Telling::Lines),
            tally: Tally::default(),
        };
        world.register_relays();
        world
    }

    pub(super) fn register_relays(&mut self) {
        let topology = &self.script.topology;
        for worker in 0..topology.workers {
            let mut relay = 0;
            while relay < topology.relays_v4 + topology.relays_v6 {
                let next = topology.is_pair(relay).then_some(relay + 1);
                let addr = match next {
                    Some(next) => self.host.add_pair(topology, worker, relay, next),
                    None => self.host.add_relay(topology, (worker, relay)),
                };
                self.model.relay_added((worker, relay), addr, next);
                if let Some(next) = next {
                    let addr = Host::relay_addr(topology, (worker, next));
                    self.model.relay_added((worker, next), addr, Some(relay));
                }
                relay += if next.is_some() { 2 } else { 1 };
            }
        }
    }

    fn run(&mut self) -> Result<(), Failure> {
        let end = Nanos::from_secs(self.script.topology.duration_s);
        let mut actions = self.script.actions.iter().peekable();
        loop {
            let at = actions.peek().map_or(end, |action| action.at);
            self.until(at)?;
            match actions.next() {
                Some(action) => self.act(action)?,
                None => break,
            }
        }
        self.heal()?;
        self.until(self.now.saturating_add(LIVENESS))?;
        self.judge_goals()?;
        for relay in self.forget_events() {
            self.rested(self.starts, relay);
        }
        let expiry_s = u64::from(self.script.topology.rules.lifetime_max_s) + self.script.topology.rules.rest_s + 2;
        self.until(self.now.saturating_add(Nanos::from_secs(expiry_s)))?;
        self.judge_emptiness()
    }

    /// Everything that happens up to `end`: the server's timers first, then what arrives.
    pub(super) fn until(&mut self, end: Nanos) -> Result<(), Failure> {
        loop {
            let timeout = self.host.next_timeout().filter(|_| self.is_up);
            let arrival = self.events.peek().map(|Reverse(entry)| entry.at);
            let next = [timeout.map(|(at, _)| at), arrival].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            match timeout.filter(|(at, _)| *at <= self.now) {
                Some((_, worker)) => {
                    self.trace.note(self.now, 1, &worker.to_le_bytes());
                    let is_due = self.model.earliest_end().is_some_and(|at| at <= self.now);
                    self.host.timeout(self.now, worker, is_due);
                    self.settle(worker)?;
                }
                None => {
                    let Some(Reverse(entry)) = self.events.pop() else { break };
                    self.happen(entry.event)?;
                }
            }
        }
        self.now = self.now.max(end);
        Ok(())
    }

    pub(super) fn later(&mut self, delay: Nanos, event: Event) {
        self.numbers += 1;
        self.events.push(Reverse(Entry { at: self.now.saturating_add(delay), number: self.numbers, event }));
    }

    fn happen(&mut self, event: Event) -> Result<(), Failure> {
        match event {
            Event::AtServer { flow, bytes } if self.is_up && self.is_open(&flow) => {
                self.model.seen.insert(Flow::of(&flow));
                let worker = self.steer(&flow);
                return self.serve(worker, &flow, &bytes, 0);
            }
            Event::HandedOver { worker, flow, bytes, hops } if self.is_up && self.is_open(&flow) => {
                return self.serve(worker, &flow, &bytes, hops);
            }
            Event::AtRelay { relay, from, bytes } if self.is_up => return self.receive(relay, from, &bytes),
            Event::Icmp { error, relay } if self.is_up => return self.learn_of_error(relay, error),
            Event::AtServer { .. } | Event::HandedOver { .. } | Event::AtRelay { .. } | Event::Icmp { .. } => {}
            Event::AtClient { flow, bytes } => self.client_receives(&flow, &bytes),
            Event::AtPeer { peer, from, bytes } => self.peer_receives(peer, from, bytes),
            Event::Patience { client, timer } => self.lose_patience(client, timer),
            Event::Rested { starts, relay } => self.rested(starts, relay),
            Event::Flush { client, way, number } => self.flush(client, way, number),
            Event::Piece { client, flow, way, number, bytes } => {
                return self.piece(client, (&flow, number), way, &bytes);
            }
            Event::Closed { flow } if self.is_up => return self.close(&flow),
            Event::Closed { .. } => {}
            Event::Restart => self.restart(),
            Event::Clear { clears } => self.clear(clears),
        }
        Ok(())
    }

    /// Which worker the kernel gives a flow's datagrams to; streams stay where they were accepted.
    pub(super) fn steer(&self, flow: &FiveTuple) -> u16 {
        let ip = match flow.client.ip() {
            IpAddr::V4(ip) => u64::from(ip.to_bits()),
            IpAddr::V6(ip) => ip.to_bits() as u64 ^ (ip.to_bits() >> 64) as u64,
        };
        let steering = if flow.transport == tt_model::Transport::Udp { self.steering } else { 0 };
        let hash = mix(mix(ip, u64::from(flow.client.port())), steering);
        (hash % u64::from(self.script.topology.workers)) as u16
    }

    /// Whether a flow's bytes can arrive: datagrams always, a stream's while it is connected.
    fn is_open(&self, flow: &FiveTuple) -> bool {
        let client = self.mappings.get(&flow.client).map(|client| &self.clients[*client]);
        flow.transport == tt_model::Transport::Udp || client.is_some_and(|client| !client.is_cut)
    }

    /// The server sees the end of a stream, and ends its allocation.
    fn close(&mut self, flow: &FiveTuple) -> Result<(), Failure> {
        self.pass()?;
        let owner = self.model.owner(&Flow::of(flow)).unwrap_or(0);
        self.host.close(self.now, flow);
        self.model.close(self.now, &Flow::of(flow));
        self.settle(owner)
    }

    /// A worker handles a client's datagram, and everything about that is checked.
    pub(super) fn serve(&mut self, worker: u16, flow: &FiveTuple, bytes: &[u8], hops: u8) -> Result<(), Failure> {
        self.pass()?;
        self.tally.delivered += 1;
        let delivery = Delivery { now: self.now, worker, flow, bytes };
        let place = Flow::of(flow);
        let before = self.host.tables(worker);
        let expected = self.model.expect_of_client(self.now, worker, &place, bytes);
        let done = self.host.client(self.now, worker, flow, bytes);
        self.note(&delivery, &expected, &done);
        if let [Done::HandOver(owner)] = done[..]
            && self.model.owner(&place) == Some(owner)
            && owner != worker
            && hops < 2
        {
            invariants::unproven(&delivery, before, self.host.tables(worker))?;
            self.tally.handed_over += 1;
            let handed = Event::HandedOver { worker: owner, flow: *flow, bytes: bytes.to_vec(), hops: hops + 1 };
            self.later(Nanos(20_000), handed);
            return self.settle(worker);
        }
        let second = self.second_hop(worker, &expected);
        let is_limited = self.meter(&expected, second.as_ref().map(|(_, _, second)| second), (&done, bytes.len()))?;
        let lesson = match second {
            _ if is_limited => Lesson::Nothing,
            None => invariants::check(&delivery, &self.model, &expected, &done)?,
            Some((no_client, bytes, second)) => {
                let delivery = Delivery { now: self.now, worker, flow: &no_client, bytes };
                invariants::check(&delivery, &self.model, &second, &done)?
            }
        };
        done.iter().for_each(|done| self.count(worker, &expected, done));
        if !matches!(expected, Expected::Answer(Codes { user: Some(_), .. })) {
            invariants::unproven(&delivery, before, self.host.tables(worker))?;
        }
        self.learn_from(&delivery, (&expected, &done), lesson)?;
        self.settle(worker)?;
        self.route(done);
        Ok(())
    }

    /// What must become of a payload that is expected to go to a relay of the same worker: it arrives there at once.
    fn second_hop<'b>(&self, worker: u16, first: &Expected<'b>) -> Option<(FiveTuple, &'b [u8], Expected<'static>)> {
        let Expected::ToPeer { sure: first, relay, peer, payload } = first else { return None };
        let end = self.host.relay_on(*peer);
        let end = end.filter(|end| self.host.worker_of(*end) == worker && self.model.is_relayed(*peer))?;
        let from = Host::relay_addr(&self.script.topology, *relay);
        let mut second = self.model.expect_of_peer(self.now, end, from);
        if let Expected::ToClient { sure, .. } = &mut second {
            *sure = (*sure).min(*first);
        }
        let no_client = FiveTuple { client: from, server: from, transport: tt_model::Transport::Udp };
        Some((no_client, payload, second))
    }

    /// A relay receives a datagram.
    fn receive(&mut self, relay: RelayPlace, from: SocketAddr, bytes: &[u8]) -> Result<(), Failure> {
        self.pass()?;
        self.tally.delivered += 1;
        let no_client = FiveTuple { client: from, server: from, transport: tt_model::Transport::Udp };
        let worker = self.host.worker_of(relay);
        let delivery = Delivery { now: self.now, worker, flow: &no_client, bytes };
        let before = self.host.tables(worker);
        let expected = self.model.expect_of_peer(self.now, relay, from);
        let done = self.host.peer(self.now, relay, from, bytes);
        self.note(&delivery, &expected, &done);
        if !self.meter(&expected, None, (&done, bytes.len()))? {
            invariants::check(&delivery, &self.model, &expected, &done)?;
        }
        invariants::unproven(&delivery, before, self.host.tables(worker))?;
        done.iter().for_each(|done| self.count_to_client(done));
        self.settle(worker)?;
        self.route(done);
        Ok(())
    }

    pub(super) fn note(&mut self, delivery: &Delivery<'_>, expected: &Expected<'_>, done: &[Done]) {
        self.trace.note(self.now, 2 | u64::from(delivery.worker) << 8, delivery.bytes);
        for done in done {
            match done {
                Done::Reply { bytes, .. } => self.trace.note(self.now, 3, bytes),
                Done::ToPeer { payload, .. } => self.trace.note(self.now, 4, payload),
                Done::ToClient { bytes, .. } => self.trace.note(self.now, 5, bytes),
                Done::HandOver(worker) => self.trace.note(self.now, 6, &worker.to_le_bytes()),
                Done::Drop(reason) => self.trace.note(self.now, 7, reason.name().as_bytes()),
            }
        }
        self.trace.say(self.now, || {
            let Delivery { worker, flow, bytes, .. } = delivery;
            format!(
                "worker {worker} from {}: {bytes:02x?}\n    expected {expected:?}\n    done {done:02x?}",
                flow.client
            )
        });
    }

    pub(super) fn pass(&mut self) -> Result<(), Failure> {
        match self.model.pass(self.now) {
            None => Ok(()),
            Some(whose) => {
                let what = format!("what {whose} has is more than a second over its time");
                Err(Failure { invariant: 7, what, at: self.now })
            }
        }
    }

    /// What the engine asks for after each call, and the ledger.
    pub(super) fn settle(&mut self, worker: u16) -> Result<(), Failure> {
        self.pass()?;
        while let Some(relay) = self.host.retired(worker) {
            if !self.model.retired(self.now, relay) {
                let what = format!("relay {relay:?} was given up before its time");
                return Err(Failure { invariant: 7, what, at: self.now });
            }
            let rest = Nanos::from_secs(self.script.topology.rules.rest_s);
            self.later(rest, Event::Rested { starts: self.starts, relay });
        }
        self.hear_reports(worker)?;
        self.settled += 1;
        if self.settled.is_multiple_of(16) {
            self.judge_units()?;
        }
        invariants::ledger(self.now, &self.host, &self.model, worker)
    }

    /// What users hold of the pools is what the server has given out of them.
    pub(super) fn judge_units(&self) -> Result<(), Failure> {
        match self.model.lost_units(self.now, &self.host.shared.used()) {
            None => Ok(()),
            Some(what) => Err(Failure { invariant: 3, what, at: self.now }),
        }
    }

    pub(super) fn rested(&mut self, starts: u64, relay: RelayPlace) {
        if starts != self.starts || !self.is_up {
            return;
        }
        if self.squeezes > 0 {
            self.later(Nanos::from_secs(1), Event::Rested { starts, relay });
            return;
        }
        let addr = self.host.add_relay(&self.script.topology, relay);
        self.model.relay_added(relay, addr, None);
    }

    fn peer_receives(&mut self, peer: SocketAddr, from: SocketAddr, bytes: Vec<u8>) {
        self.trace.note(self.now, 8, &bytes);
        if peer == super::clients::echo(peer.is_ipv4()) {
            self.send_to_relay(peer, from, bytes);
        }
    }
}

/// Whether bytes are a message, for what reads them on the way.
pub(super) fn is_request(bytes: &[u8]) -> bool {
    Reading::of(bytes).is_some_and(|message| message.class == wire::REQUEST)
}
