//! The connections of one worker over TCP and TLS.

mod certificates;
mod counts;
mod handshake_transfer;
mod handshakes;
mod listeners;
mod proxied;
mod sources;

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tt_model::{FiveTuple, Nanos, Transport};
use tt_net::stream::{Connection, Progress, Scratch, Security, StreamRules, Taken, TlsNames};
use tt_net::{Datagram, Inbox, IoFault, Poller, Waker};
use tt_turn::{Server, WorkerId};
use turn_config::{Balancers, StreamLimits};

use crate::poll_key::{StreamKey, connection_key};

pub(crate) use certificates::{Certificates, read as read_certificates};
pub(crate) use counts::{End, RejectReason, StreamCounts};
pub(crate) use handshakes::{HandshakePool, HandshakeThread};
use handshakes::{Handshakes, Ticket};
pub(crate) use sources::Sources;

/// Connections that are examined for one that can be displaced.
const DISPLACED_AMONG: usize = 64;
/// The longest message: a STUN header of 20 bytes and 65,532 bytes of attributes. ChannelData is shorter.
pub(crate) const MESSAGE_LEN_MAX: usize = 65_552;

/// The transports that a listener accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Plain TCP, and TLS if there is a certificate.
    Both,
    /// TLS only.
    Tls,
}

/// What the connections of all workers share.
#[derive(Clone, Debug)]
pub(crate) struct StreamPlan {
    pub(crate) limits: StreamLimits,
    pub(crate) certificates: Arc<Certificates>,
    /// Sources whose connections begin with a PROXY header.
    pub(crate) balancers: Arc<ArcSwap<Vec<Balancers>>>,
    pub(crate) sources: Arc<Sources>,
    pub(crate) handshakes: HandshakePool,
}

/// Result of queueing a message for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It is in the connection's queue.
    Queued,
    /// The queue is full.
    Full,
    /// The connection is closed.
    Gone,
}

/// Progress of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A balancer's connection without a whole PROXY header.
    ProxyHeader,
    /// No bytes yet, or an incomplete message over plain TCP.
    New,
    /// The TLS handshake is in progress.
    Handshake,
    /// The TLS handshake is complete; no whole message yet.
    TlsReady,
    /// A whole message has been received.
    Established,
}

#[derive(Debug)]
struct Entry {
    /// Absent during the TLS handshake.
    connection: Option<Connection>,
    /// Distinguishes it from earlier connections of its slot.
    serial: u64,
    /// The key of its source.
    source: u128,
    /// The transport is known after the first byte.
    flow: FiveTuple,
    /// The local address, if a balancer has named another one for the client.
    listener: Option<SocketAddr>,
    takes: Takes,
    stage: Stage,
    /// Time of the last whole message.
    last_message_at: Nanos,
    /// Its entry in `deadlines`.
    deadline: Nanos,
    /// It is in the list of connections to flush.
    is_dirty: bool,
    /// It is in the list of connections to close; nothing more is read from it.
    is_ending: bool,
}

/// The listeners and connections of one worker.
#[derive(Debug)]
pub(crate) struct Streams {
    plan: StreamPlan,
    listeners: Vec<Option<listeners::Place>>,
    slots: Vec<Option<Entry>>,
    vacant: Vec<u32>,
    flows: HashMap<FiveTuple, u32>,
    /// One deadline per connection. A connection that was active since gets a new one when it expires.
    deadlines: BTreeSet<(Nanos, u32)>,
    dirty: Vec<u32>,
    ending: Vec<(u32, End)>,
    /// Sources, serials and slots of half-open connections that wait for their clients.
    half_open: BTreeSet<(u128, u64, u32)>,
    worker: WorkerId,
    serial: u64,
    handshakes: Handshakes,
    accept_again_at: Option<Nanos>,
    scratch: Scratch,
    pub(crate) counts: StreamCounts,
}

impl Streams {
    /// Creates the streams of `worker`. A complete TLS handshake wakes it with `waker`.
    pub(crate) fn new(plan: StreamPlan, worker: WorkerId, waker: Waker) -> Self {
        Self {
            handshakes: Handshakes::new(plan.handshakes.clone(), waker),
            plan,
            listeners: Vec::new(),
            worker,
            serial: 0,
            half_open: BTreeSet::new(),
            slots: Vec::new(),
            vacant: Vec::new(),
            flows: HashMap::new(),
            deadlines: BTreeSet::new(),
            dirty: Vec::new(),
            ending: Vec::new(),
            accept_again_at: None,
            scratch: Scratch::default(),
            counts: StreamCounts::default(),
        }
    }

    /// Serves `key` once: accepts connections, or puts whole messages into `inbox`. Returns the number of messages.
    pub(crate) fn take_turn(
        &mut self,
        now: Nanos,
        key: StreamKey,
        server: &mut Server,
        poller: &Poller,
        inbox: &mut Inbox,
    ) -> (Progress, u64) {
        match key {
            StreamKey::Listener(index) => (self.accept(now, index, server, poller), 0),
            StreamKey::Connection(slot) => self.receive(now, slot, server, poller, inbox),
        }
    }

    /// Returns the transport of `key`. A connection that is read in a round closes after it, not before.
    pub(crate) fn transport(&self, key: StreamKey) -> Transport {
        match key {
            StreamKey::Connection(slot) => self.entry(slot).map_or(Transport::Tcp, |entry| entry.flow.transport),
            StreamKey::Listener(_) => Transport::Tcp,
        }
    }

    /// Returns the local address of a balancer's connection.
    pub(crate) fn listener_of_balancer(&self, key: StreamKey) -> Option<SocketAddr> {
        match key {
            StreamKey::Connection(slot) => self.entry(slot)?.listener,
            StreamKey::Listener(_) => None,
        }
    }

    /// Returns version and cipher suite of the connection of `flow`; `None` without TLS.
    pub(crate) fn tls_names(&self, flow: &FiveTuple) -> Option<TlsNames> {
        self.slots[*self.flows.get(flow)? as usize].as_ref()?.connection.as_ref()?.tls_names()
    }

    /// Queues one message for the client of `flow`.
    pub(crate) fn send(&mut self, flow: &FiveTuple, pieces: &[&[u8]]) -> Sent {
        let Some(&slot) = self.flows.get(flow) else { return Sent::Gone };
        let Some(entry) = self.slots[slot as usize].as_mut() else { return Sent::Gone };
        let Some(connection) = entry.connection.as_mut() else { return Sent::Gone };
        match connection.send(pieces, self.plan.limits.queue_bytes) {
            Taken::Full => Sent::Full,
            Taken::Queued => {
                if !entry.is_dirty {
                    entry.is_dirty = true;
                    self.dirty.push(slot);
                }
                Sent::Queued
            }
        }
    }

    /// Closes connections whose deadline has passed, and returns the listeners to be tried again.
    pub(crate) fn run_timers(&mut self, now: Nanos, server: &Server) -> impl Iterator<Item = u64> {
        while let Some(&(due, slot)) = self.deadlines.first()
            && due <= now
        {
            self.deadlines.pop_first();
            self.check_deadline(now, slot, server);
        }
        self.listeners_again(now)
    }

    /// Returns when [`Streams::run_timers`] must be called next.
    pub(crate) fn next_wake(&self) -> Option<Nanos> {
        let deadline = self.deadlines.first().map(|(due, _)| *due);
        deadline.into_iter().chain(self.accept_again_at).min()
    }

    /// Sends what the round has queued, then closes what has ended. Returns whether there was anything to do.
    pub(crate) fn flush_and_close(&mut self, now: Nanos, server: &mut Server) -> bool {
        let is_idle = self.dirty.is_empty() && self.ending.is_empty();
        for slot in std::mem::take(&mut self.dirty) {
            let Some(entry) = self.slots[slot as usize].as_mut() else { continue };
            entry.is_dirty = false;
            if let Some(Err(end)) = entry.connection.as_mut().map(Connection::flush) {
                self.end_later(slot, End::of(end));
            }
        }
        for (slot, end) in std::mem::take(&mut self.ending) {
            self.close(now, slot, end, server);
        }
        !is_idle
    }

    /// Closes every connection after a panic, since its allocation has ended, and accepts waiting ones.
    pub(crate) fn close_all(&mut self) {
        for slot in 0..self.slots.len() as u32 {
            self.end_later(slot, End::Panic);
        }
        self.accept_again_at = Some(Nanos(0));
    }

    fn entry(&self, slot: u32) -> Option<&Entry> {
        self.slots.get(slot as usize)?.as_ref()
    }

    /// Counts a connection of `source` against the limits. If all places are taken, an idle connection is closed to make
    /// room, so that idle connections cannot lock out others.
    fn find_room(
        &mut self,
        now: Nanos,
        source: u128,
        limits: &StreamLimits,
        server: &mut Server,
    ) -> Result<(), RejectReason> {
        let rejected = match self.plan.sources.admit(source, limits) {
            Ok(()) => return Ok(()),
            Err(reason) => reason,
        };
        let victim = match rejected {
            RejectReason::Connections => {
                let sources = self.plan.sources.with_most_half_open();
                let half_open = sources.into_iter().find_map(|source| self.oldest_half_open(source));
                half_open.or_else(|| self.find_displaceable(now, server))
            }
            RejectReason::SourceConnections => self.oldest_half_open(source),
            RejectReason::SourceHalfOpen | RejectReason::Banned => None,
        };
        self.close(now, victim.ok_or(rejected)?, End::Displaced, server);
        self.plan.sources.admit(source, limits)
    }

    fn oldest_half_open(&self, source: u128) -> Option<u32> {
        let first = self.half_open.range((source, 0, 0)..).next();
        first.filter(|(of, ..)| *of == source).map(|(.., slot)| *slot)
    }

    /// Returns a connection without an allocation and without a message in this round, among those with the first
    /// deadlines: one that waits for its client before one that waits for the server's handshake.
    fn find_displaceable(&self, now: Nanos, server: &Server) -> Option<u32> {
        let first = || {
            let slots = self.deadlines.iter().take(DISPLACED_AMONG).map(|(_, slot)| *slot);
            slots.filter_map(|slot| Some((slot, self.entry(slot)?)))
        };
        let waits_for_client = |slot: u32, entry: &Entry| match entry.stage {
            Stage::Established => entry.last_message_at < now && !server.has_allocation(now, &entry.flow),
            Stage::ProxyHeader | Stage::New | Stage::Handshake | Stage::TlsReady => {
                self.half_open.contains(&(entry.source, entry.serial, slot))
            }
        };
        let found = first().find(|(slot, entry)| waits_for_client(*slot, entry));
        found.or_else(|| first().find(|(_, entry)| entry.stage != Stage::Established)).map(|(slot, _)| slot)
    }

    fn admit(&mut self, now: Nanos, connection: Connection, takes: Takes, poller: &Poller) {
        let source = self.plan.sources.key(connection.client().ip());
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        if let Err(error) = poller.add_stream(&connection, connection_key(slot)) {
            self.counts.faults.record(IoFault::of(&error));
            self.plan.sources.leave(source, true);
            self.vacant.push(slot);
            return;
        }
        let flow = FiveTuple { client: connection.client(), server: connection.server(), transport: Transport::Tcp };
        let (stage, time_s) = match self.is_balancer(flow.client.ip()) {
            true => (Stage::ProxyHeader, self.plan.limits.proxy_header_s),
            false => (Stage::New, self.plan.limits.first_message_s),
        };
        let deadline = now.saturating_add(Nanos::from_secs(time_s));
        self.deadlines.insert((deadline, slot));
        self.counts.accepted += 1;
        self.counts.open += 1;
        self.counts.half_open += 1;
        self.serial += 1;
        let serial = self.serial;
        self.half_open.insert((source, serial, slot));
        self.slots[slot as usize] = Some(Entry {
            connection: Some(connection),
            serial,
            source,
            flow,
            listener: None,
            takes,
            stage,
            last_message_at: now,
            deadline,
            is_dirty: false,
            is_ending: false,
        });
    }

    fn receive(
        &mut self,
        now: Nanos,
        slot: u32,
        server: &mut Server,
        poller: &Poller,
        inbox: &mut Inbox,
    ) -> (Progress, u64) {
        if self.entry(slot).is_some_and(|entry| entry.stage == Stage::ProxyHeader) {
            self.take_proxy_header(now, slot, server);
        }
        let entry = self.slots.get_mut(slot as usize).and_then(Option::as_mut);
        let Some(entry) = entry.filter(|entry| !entry.is_ending && entry.stage != Stage::ProxyHeader) else {
            return (Progress::Drained, 0);
        };
        let is_allocated = entry.stage == Stage::Established && server.has_allocation(now, &entry.flow);
        let rules = StreamRules {
            tls: self.plan.certificates.has_any(),
            plain: entry.takes == Takes::Both,
            message_len_max: if is_allocated { MESSAGE_LEN_MAX } else { self.plan.limits.first_message_bytes },
        };
        let FiveTuple { client, server: local, .. } = entry.flow;
        let Some(connection) = entry.connection.as_mut() else { return (Progress::Drained, 0) };
        let mut count = 0;
        let received = connection.receive(rules, &mut self.scratch, inbox.room(), |message| {
            count += 1;
            // The inbox has room for this many messages of this length.
            inbox.insert(Datagram {
                key: connection_key(slot),
                from: client,
                to: local,
                bytes: message,
                truncated: false,
                traffic_class: 0,
                hop_limit: 0,
            });
        });
        self.counts.messages_in += count;
        if count > 0 {
            entry.last_message_at = now;
        }
        if connection.has_waiting() && !entry.is_dirty {
            entry.is_dirty = true;
            self.dirty.push(slot);
        }
        if connection.security() == Security::Handshake {
            self.begin_handshake(now, slot, poller);
        } else if entry.stage != Stage::Established && connection.has_begun() {
            self.establish(now, slot, server);
        }
        match received {
            Ok(progress) => (progress, count),
            Err(end) => {
                self.end_later(slot, End::of(end));
                (Progress::Drained, count)
            }
        }
    }

    /// Counts the first message of a connection.
    fn establish(&mut self, now: Nanos, slot: u32, server: &mut Server) {
        let Some(entry) = self.slots[slot as usize].as_mut() else { return };
        entry.stage = Stage::Established;
        self.counts.half_open -= 1;
        self.half_open.remove(&(entry.source, entry.serial, slot));
        self.plan.sources.establish(entry.source);
        // A new connection may have the addresses of one whose reset has not been read yet.
        if self.flows.insert(entry.flow, slot).is_some() {
            server.close_flow(now, &entry.flow);
        }
        self.set_deadline(slot, now.saturating_add(Nanos::from_secs(self.plan.limits.idle_s)));
    }

    fn set_deadline(&mut self, slot: u32, deadline: Nanos) {
        if let Some(entry) = self.slots[slot as usize].as_mut() {
            self.deadlines.remove(&(entry.deadline, slot));
            self.deadlines.insert((deadline, slot));
            entry.deadline = deadline;
        }
    }

    /// Handles an expired deadline: the connection was active since, or has an allocation, or is closed.
    fn check_deadline(&mut self, now: Nanos, slot: u32, server: &Server) {
        let Some(entry) = self.slots[slot as usize].as_mut() else { return };
        let idle = Nanos::from_secs(self.plan.limits.idle_s);
        let end = match entry.stage {
            Stage::ProxyHeader => Some(End::ProxyHeaderDeadline),
            Stage::New | Stage::TlsReady => Some(End::FirstMessageDeadline),
            // The handshake's thread closes it, which follows.
            Stage::Handshake => None,
            Stage::Established if entry.last_message_at.saturating_add(idle) > now => None,
            Stage::Established if server.has_allocation(now, &entry.flow) => None,
            Stage::Established => Some(End::Idle),
        };
        let next = entry.last_message_at.saturating_add(idle);
        entry.deadline = if next > now { next } else { now.saturating_add(idle) };
        self.deadlines.insert((entry.deadline, slot));
        if let Some(end) = end {
            self.end_later(slot, end);
        }
    }

    fn end_later(&mut self, slot: u32, end: End) {
        if let Some(entry) = self.slots[slot as usize].as_mut()
            && !entry.is_ending
        {
            entry.is_ending = true;
            self.ending.push((slot, end));
        }
    }

    fn close(&mut self, now: Nanos, slot: u32, end: End, server: &mut Server) {
        let Some(entry) = self.slots[slot as usize].take() else { return };
        let was_half_open = entry.stage != Stage::Established;
        if self.flows.get(&entry.flow) == Some(&slot) {
            server.close_flow(now, &entry.flow);
            self.flows.remove(&entry.flow);
        }
        if let Some(mut connection) = entry.connection {
            self.counts.unsent_bytes += connection.waiting_len() as u64;
            connection.close();
        } else {
            self.handshakes.cancel(Ticket { serial: entry.serial, worker: self.worker.0, slot });
        }
        self.deadlines.remove(&(entry.deadline, slot));
        self.half_open.remove(&(entry.source, entry.serial, slot));
        self.plan.sources.leave(entry.source, was_half_open);
        self.counts.handshakes_in_progress -= u64::from(entry.stage == Stage::Handshake);
        self.counts.ended[end as usize] += 1;
        self.counts.open -= 1;
        self.counts.half_open -= u64::from(was_half_open);
        self.counts.open_tls -= u64::from(entry.flow.transport == Transport::Tls);
        self.vacant.push(slot);
    }
}
