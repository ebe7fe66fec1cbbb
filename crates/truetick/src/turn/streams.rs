//! One worker's connections over TCP and TLS: taken, heard, answered, ended.

mod certificates;
mod counts;
mod sources;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::Arc;

use tt_model::{FiveTuple, Nanos, Transport};
use tt_net::stream::{Connection, Progress, Scratch, Security, StreamListener, StreamRules, Taken};
use tt_net::{Datagram, Inbox, IoFault, Poller};
use tt_turn::Server;

pub use certificates::CertificateFiles;
pub(super) use certificates::Certificates;
pub(super) use counts::{End, Refusal, StreamCounts};
pub(super) use sources::Sources;

/// How many connections are looked at for one that can make room.
const DISPLACED_AMONG: usize = 64;
/// Connections that one listener gives in one turn.
const ACCEPTS: usize = 32;
/// How long to wait after a failure (no descriptors, no memory) before connections are taken again.
const RETRY: Nanos = Nanos::from_secs(1);
/// The longest message of all, STUN's 20 bytes and 65,532 more; ChannelData is shorter.
pub(super) const MESSAGE_LEN_MAX: usize = 65_552;

/// Bounds of connections over TCP and TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Connections of one source that have not brought a whole message. An IPv6 source is its first 64 bits.
    pub half_open_per_source: u32,
    /// Connections of one source.
    pub connections_per_source: u32,
    /// Connections of all sources, over all workers.
    pub connections_max: u32,
    /// Seconds that a TLS handshake may take.
    pub handshake_s: u64,
    /// Seconds within which the first whole message must have come.
    pub first_message_s: u64,
    /// Seconds without a whole message that a connection without an allocation may last.
    pub idle_s: u64,
    /// Bytes that may wait to be sent on one connection; a message that finds no room is dropped.
    pub queue_bytes: usize,
    /// Bytes of the longest message that is taken from a client without an allocation.
    pub first_message_bytes: usize,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self {
            half_open_per_source: 20,
            connections_per_source: 100,
            connections_max: 16_384,
            handshake_s: 5,
            first_message_s: 10,
            idle_s: 60,
            queue_bytes: 64 << 10,
            first_message_bytes: 8 << 10,
        }
    }
}

/// What a listener takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// Plain TCP, and TLS where there is a certificate.
    Both,
    /// TLS alone.
    Tls,
}

/// What all workers' connections share.
#[derive(Clone, Debug)]
pub(super) struct StreamPlan {
    pub(super) limits: StreamLimits,
    pub(super) certificates: Option<Arc<Certificates>>,
    pub(super) sources: Arc<Sources>,
}

/// What became of a message for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// It is in the connection's queue.
    Queued,
    /// The queue is full.
    Full,
    /// The connection is closed.
    Gone,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing has come, or plain bytes that are no whole message yet.
    Silent,
    /// TLS has begun.
    Handshake,
    /// TLS is up, and no whole message has come.
    Greeted,
    /// A whole message has come.
    Heard,
}

#[derive(Debug)]
struct Entry {
    connection: Connection,
    /// Its transport protocol is known from the first byte on.
    flow: FiveTuple,
    takes: Takes,
    stage: Stage,
    /// When the last whole message came.
    heard_at: Nanos,
    /// Its entry among the deadlines.
    deadline: Nanos,
    /// Waits among those to be flushed.
    is_dirty: bool,
    /// Waits among those to be ended; nothing more is read from it.
    is_ending: bool,
}

/// One worker's listeners and connections.
#[derive(Debug)]
pub(super) struct Streams {
    plan: StreamPlan,
    listeners: Vec<(StreamListener, Takes)>,
    slots: Vec<Option<Entry>>,
    vacant: Vec<u32>,
    flows: HashMap<FiveTuple, u32>,
    /// One deadline a connection, in order; a connection that was heard since is given another when it comes.
    deadlines: BTreeSet<(Nanos, u32)>,
    dirty: Vec<u32>,
    ending: Vec<(u32, End)>,
    accept_again_at: Option<Nanos>,
    scratch: Scratch,
    pub(super) counts: StreamCounts,
}

impl Streams {
    pub(super) fn new(plan: StreamPlan, listeners: Vec<(StreamListener, Takes)>) -> Self {
        Self {
            plan,
            listeners,
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

    /// Watches the listeners.
    pub(super) fn watch(&self, poller: &Poller) -> io::Result<()> {
        (0..)
            .zip(&self.listeners)
            .try_for_each(|(index, (listener, _))| poller.add_stream(listener, listener_key(index)))
    }

    /// The turn of what `key` names: takes connections, or puts whole messages into `inbox`. Returns how many came.
    pub(super) fn take_turn(
        &mut self,
        now: Nanos,
        key: StreamKey,
        server: &mut Server,
        poller: &Poller,
        inbox: &mut Inbox,
    ) -> (Progress, u64) {
        match key {
            StreamKey::Listener(index) => (self.accept(now, index, server, poller), 0),
            StreamKey::Connection(slot) => self.receive(now, slot, server, inbox),
        }
    }

    /// The transport protocol of what `key` names. A connection that is read in a round ends after it, not before.
    pub(super) fn transport(&self, key: StreamKey) -> Transport {
        match key {
            StreamKey::Connection(slot) => self.entry(slot).map_or(Transport::Tcp, |entry| entry.flow.transport),
            StreamKey::Listener(_) => Transport::Tcp,
        }
    }

    /// Queues one message for the client of `flow`.
    pub(super) fn send(&mut self, flow: &FiveTuple, pieces: &[&[u8]]) -> Sent {
        let Some(&slot) = self.flows.get(flow) else { return Sent::Gone };
        let Some(entry) = self.slots[slot as usize].as_mut() else { return Sent::Gone };
        match entry.connection.send(pieces, self.plan.limits.queue_bytes) {
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

    /// Ends what is late at `now`, and returns the listeners that are to be tried again.
    pub(super) fn keep_time(&mut self, now: Nanos, server: &Server) -> impl Iterator<Item = u64> {
        while let Some(&(due, slot)) = self.deadlines.first()
            && due <= now
        {
            self.deadlines.pop_first();
            self.judge(now, slot, server);
        }
        let again = self.accept_again_at.take_if(|at| *at <= now).is_some();
        let listeners = if again { self.listeners.len() } else { 0 };
        (0..listeners as u32).map(listener_key)
    }

    /// When [`Streams::keep_time`] wants to be called next.
    pub(super) fn next_wake(&self) -> Option<Nanos> {
        let deadline = self.deadlines.first().map(|(due, _)| *due);
        deadline.into_iter().chain(self.accept_again_at).min()
    }

    /// Sends what the round has queued, then ends what is over. Returns whether there was anything to do.
    pub(super) fn settle(&mut self, now: Nanos, server: &mut Server) -> bool {
        let is_idle = self.dirty.is_empty() && self.ending.is_empty();
        for slot in std::mem::take(&mut self.dirty) {
            let Some(entry) = self.slots[slot as usize].as_mut() else { continue };
            entry.is_dirty = false;
            if let Err(end) = entry.connection.flush() {
                self.end_later(slot, End::of(end));
            }
        }
        for (slot, end) in std::mem::take(&mut self.ending) {
            self.close(now, slot, end, server);
        }
        !is_idle
    }

    /// After a panic: every connection ends, as its allocation has, and waiting ones are taken.
    pub(super) fn start_over(&mut self) {
        for slot in 0..self.slots.len() as u32 {
            self.end_later(slot, End::Panic);
        }
        self.accept_again_at = Some(Nanos(0));
    }

    fn entry(&self, slot: u32) -> Option<&Entry> {
        self.slots.get(slot as usize)?.as_ref()
    }

    fn accept(&mut self, now: Nanos, index: u32, server: &mut Server, poller: &Poller) -> Progress {
        for _ in 0..ACCEPTS {
            let Some((listener, takes)) = self.listeners.get(index as usize) else { return Progress::Drained };
            let takes = *takes;
            match listener.accept() {
                Ok(None) => return Progress::Drained,
                Ok(Some(connection)) => match self.find_room(now, &connection, server) {
                    Ok(()) => self.admit(now, connection, takes, poller),
                    Err(refusal) => self.counts.refused[refusal as usize] += 1,
                },
                Err(error) => {
                    // It still waits, and no event will tell of it again.
                    self.counts.faults.record(IoFault::of(&error));
                    self.accept_again_at = Some(now.saturating_add(RETRY));
                    return Progress::Drained;
                }
            }
        }
        Progress::More
    }

    /// Counts the connection within the bounds. Where there are as many as there may be, one that is of no use yet makes
    /// room: whoever fills the table with silence keeps nobody out.
    fn find_room(&mut self, now: Nanos, connection: &Connection, server: &mut Server) -> Result<(), Refusal> {
        let source = connection.client().ip();
        let admitted = self.plan.sources.admit(source, &self.plan.limits);
        match admitted {
            Err(Refusal::Connections) => {
                let victim = self.of_no_use(now, server).ok_or(Refusal::Connections)?;
                self.close(now, victim, End::Displaced, server);
                self.plan.sources.admit(source, &self.plan.limits)
            }
            Err(Refusal::SourceHalfOpen | Refusal::SourceConnections) | Ok(()) => admitted,
        }
    }

    /// Of the connections whose deadlines come first, one without an allocation, of which nothing came in this round.
    fn of_no_use(&self, now: Nanos, server: &Server) -> Option<u32> {
        let first = self.deadlines.iter().take(DISPLACED_AMONG).map(|(_, slot)| *slot);
        let is_of_no_use = |slot: &u32| {
            self.entry(*slot).is_some_and(|entry| {
                let is_silent = entry.stage != Stage::Heard;
                is_silent || (entry.heard_at < now && !server.has_allocation(now, &entry.flow))
            })
        };
        first.into_iter().find(is_of_no_use)
    }

    fn admit(&mut self, now: Nanos, connection: Connection, takes: Takes, poller: &Poller) {
        let source = connection.client().ip();
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
        let deadline = now.saturating_add(Nanos::from_secs(self.plan.limits.first_message_s));
        self.deadlines.insert((deadline, slot));
        self.counts.accepted += 1;
        self.counts.open += 1;
        self.counts.half_open += 1;
        let (stage, heard_at) = (Stage::Silent, now);
        let entry = Entry { connection, flow, takes, stage, heard_at, deadline, is_dirty: false, is_ending: false };
        self.slots[slot as usize] = Some(entry);
    }

    fn receive(&mut self, now: Nanos, slot: u32, server: &mut Server, inbox: &mut Inbox) -> (Progress, u64) {
        let Some(entry) = self.slots.get_mut(slot as usize).and_then(Option::as_mut) else {
            return (Progress::Drained, 0);
        };
        if entry.is_ending {
            return (Progress::Drained, 0);
        }
        let identity = self.plan.certificates.as_deref().map(Certificates::current);
        let is_allocated = entry.stage == Stage::Heard && server.has_allocation(now, &entry.flow);
        let rules = StreamRules {
            identity: identity.as_deref().map(Arc::as_ref),
            plain: entry.takes == Takes::Both,
            message_len_max: if is_allocated { MESSAGE_LEN_MAX } else { self.plan.limits.first_message_bytes },
        };
        let FiveTuple { client, server: local, .. } = entry.flow;
        let mut count = 0;
        let received = entry.connection.receive(&rules, &mut self.scratch, inbox.room(), |message| {
            count += 1;
            // There is room for as many, and for as long ones.
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
            entry.heard_at = now;
        }
        if entry.connection.has_waiting() && !entry.is_dirty {
            entry.is_dirty = true;
            self.dirty.push(slot);
        }
        self.advance(now, slot, server);
        match received {
            Ok(progress) => (progress, count),
            Err(end) => {
                self.end_later(slot, End::of(end));
                (Progress::Drained, count)
            }
        }
    }

    /// Follows what the connection has become.
    fn advance(&mut self, now: Nanos, slot: u32, server: &mut Server) {
        let Some(entry) = self.slots[slot as usize].as_mut() else { return };
        let limits = &self.plan.limits;
        let later = |seconds| now.saturating_add(Nanos::from_secs(seconds));
        let security = entry.connection.security();
        let mut deadline = entry.deadline;
        if entry.stage == Stage::Silent && matches!(security, Security::Handshake | Security::Tls) {
            entry.stage = Stage::Handshake;
            entry.flow.transport = Transport::Tls;
            self.counts.open_tls += 1;
            deadline = deadline.min(later(limits.handshake_s));
        }
        if entry.stage == Stage::Handshake && security == Security::Tls {
            entry.stage = Stage::Greeted;
            self.counts.handshakes += 1;
            deadline = later(limits.first_message_s);
        }
        if entry.stage != Stage::Heard && entry.connection.has_begun() {
            entry.stage = Stage::Heard;
            self.counts.half_open -= 1;
            self.plan.sources.hear(entry.flow.client.ip());
            // A connection that was reset may not have been seen to end when the next one has the same addresses.
            if self.flows.insert(entry.flow, slot).is_some() {
                server.close_flow(now, &entry.flow);
            }
            deadline = later(limits.idle_s);
        }
        if deadline != entry.deadline {
            self.deadlines.remove(&(entry.deadline, slot));
            self.deadlines.insert((deadline, slot));
            entry.deadline = deadline;
        }
    }

    /// A deadline has come: the connection is late, or was heard since, or has an allocation to wait for.
    fn judge(&mut self, now: Nanos, slot: u32, server: &Server) {
        let Some(entry) = self.slots[slot as usize].as_mut() else { return };
        let idle = Nanos::from_secs(self.plan.limits.idle_s);
        let end = match entry.stage {
            Stage::Silent | Stage::Greeted => Some(End::FirstMessageDeadline),
            Stage::Handshake => Some(End::HandshakeDeadline),
            Stage::Heard if entry.heard_at.saturating_add(idle) > now => None,
            Stage::Heard if server.has_allocation(now, &entry.flow) => None,
            Stage::Heard => Some(End::Idle),
        };
        let next = entry.heard_at.saturating_add(idle);
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
        let Some(mut entry) = self.slots[slot as usize].take() else { return };
        let was_half_open = entry.stage != Stage::Heard;
        if self.flows.get(&entry.flow) == Some(&slot) {
            server.close_flow(now, &entry.flow);
            self.flows.remove(&entry.flow);
        }
        self.counts.unsent_bytes += entry.connection.waiting_len() as u64;
        entry.connection.close();
        self.deadlines.remove(&(entry.deadline, slot));
        self.plan.sources.leave(entry.flow.client.ip(), was_half_open);
        self.counts.ended[end as usize] += 1;
        self.counts.open -= 1;
        self.counts.half_open -= u64::from(was_half_open);
        self.counts.open_tls -= u64::from(entry.flow.transport == Transport::Tls);
        self.vacant.push(slot);
    }
}

/// What a key of the poller names among streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamKey {
    /// The listener of this index.
    Listener(u32),
    /// The connection in this slot.
    Connection(u32),
}

const STREAM_KEYS: u64 = 1 << 62;
const STREAM_LISTENERS: u64 = 1 << 61;

const fn listener_key(index: u32) -> u64 {
    STREAM_KEYS | STREAM_LISTENERS | index as u64
}

const fn connection_key(slot: u32) -> u64 {
    STREAM_KEYS | slot as u64
}

/// What `key` names, unless it is a UDP socket's.
pub(super) const fn stream_of(key: u64) -> Option<StreamKey> {
    match (key & STREAM_KEYS != 0, key & STREAM_LISTENERS != 0) {
        (true, true) => Some(StreamKey::Listener(key as u32)),
        (true, false) => Some(StreamKey::Connection(key as u32)),
        (false, _) => None,
    }
}
