//! One worker: its listeners, its relay sockets and its engine, in one thread.

mod hand_over;
mod icmp;
mod orders;
mod round;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tt_meter::Sampler;
use tt_model::Nanos;
use tt_net::stream::Progress;
use tt_net::{IcmpInbox, IcmpReport, Inbox, IoFault, Outbox, Poller, UdpSocket};
use tt_turn::{Counters, RelayId, Server};

use super::ledger::{Counts, Published, add_engine};
use super::orders::Order;
use super::records::Records;
use super::relays::{Relays, relay_of};
use super::streams::{MESSAGE_LEN_MAX, Streams, stream_of};
pub(super) use hand_over::{Arrivals, Neighbour, Ways};
use round::listener_of;

/// Arrivals of one round, datagrams and trains of them: read before anything is sent.
const ROUND: usize = 64;
/// Datagrams that are sent together.
const BATCH: usize = 256;
/// Bytes of replies and heads that are sent together.
const BATCH_HEADS_LEN: usize = 64 * HEAD_LEN_MAX;
/// The longest payload of a UDP datagram is 65,507 bytes, that of a train 65,535, and a message over TCP is not longer
/// than this, so nothing is ever cut off.
const DATAGRAM_LEN_MAX: usize = MESSAGE_LEN_MAX;
/// Bytes that the engine may write in front of a payload, or as a reply.
const HEAD_LEN_MAX: usize = 1_500;
/// Arrivals that are asked of a socket at first, and at most, in one call. The number follows what it had.
const READ_FIRST: usize = 4;
const READ_MAX: usize = 32;
/// How often the engine is told the wall clock, and how often stages are published under load.
const WALL_CLOCK_EVERY: Nanos = Nanos::from_secs(1);
const PUBLISH_EVERY: Nanos = Nanos::from_millis(100);

/// What a worker is made of before its thread starts.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) server: Server,
    pub(super) listeners: Vec<UdpSocket>,
    pub(super) relays: Relays,
    pub(super) streams: Streams,
    pub(super) poller: Poller,
    pub(super) sampler: Sampler,
    /// To all workers, this one included.
    pub(super) ways: Ways,
    pub(super) arrivals: Arrivals,
    pub(super) orders: Receiver<Order>,
    pub(super) records: Records,
    pub(super) published: Arc<Published>,
    pub(super) stop: Arc<AtomicBool>,
    /// How long it stays awake for the next datagram.
    pub(super) linger: Nanos,
    /// Where the engines' clock starts; the same for all workers.
    pub(super) epoch: Instant,
}

/// A socket that has something to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    key: u64,
    /// Arrivals to ask for in one call.
    want: usize,
}

impl Ready {
    pub(super) const fn first(key: u64) -> Self {
        Self { key, want: READ_FIRST }
    }
}

/// The worker in its thread.
#[derive(Debug)]
pub(super) struct Worker {
    parts: Parts,
    inbox: Inbox,
    outbox: Outbox,
    ready: VecDeque<Ready>,
    icmp: IcmpInbox,
    /// Relays that have been told of ICMP errors, to be read.
    faulted: Vec<RelayId>,
    /// What they were told, read.
    reports: Vec<(RelayId, IcmpReport)>,
    /// Other workers may have given more than the last round had room for.
    is_behind: bool,
    counts: Counts,
    /// What engines have counted that are given up.
    before: Counters,
    /// Datagrams of the inbox that the engine has had, or is having.
    handled: usize,
    /// Something was counted that is not published yet.
    is_dirty: bool,
    publish_at: Nanos,
    /// It stays awake until then.
    awake_until: Nanos,
    wall_clock_at: Nanos,
}

impl Worker {
    /// A worker that goes on with the `counts` of the one before it.
    pub(super) fn new(parts: Parts, counts: Counts) -> Self {
        // What came in before it watched may never be told of.
        let ready = (0..parts.listeners.len() as u64).map(Ready::first).collect();
        Self {
            before: counts.engine,
            handled: 0,
            parts,
            icmp: IcmpInbox::default(),
            faulted: Vec::new(),
            reports: Vec::new(),
            is_behind: false,
            inbox: Inbox::new(ROUND, DATAGRAM_LEN_MAX),
            outbox: Outbox::new(BATCH, BATCH_HEADS_LEN),
            ready,
            counts,
            is_dirty: true,
            publish_at: Nanos(0),
            awake_until: Nanos(0),
            wall_clock_at: Nanos(0),
        }
    }

    /// Serves until it is told to stop.
    pub(super) fn run(&mut self) {
        while !self.parts.stop.load(Ordering::Relaxed) {
            let now = self.now();
            self.keep_time(now);
            self.wait(now);
            self.inbox.clear();
            self.handled = 0;
            self.take_icmp(now);
            self.take_handed_over();
            self.fill(now);
            if !self.inbox.is_empty() {
                self.round();
                if self.parts.linger > Nanos(0) {
                    self.awake_until = self.now().saturating_add(self.parts.linger);
                }
            }
            self.is_dirty |= self.parts.streams.settle(now, &mut self.parts.server);
            self.tell_events();
        }
        self.publish_counts();
        self.parts.published.put_stages(&self.parts.sampler);
    }

    /// What is left for another worker after a panic. The allocations end; what this round has not sent is lost, and
    /// counted.
    pub(super) fn give_up(mut self) -> (Parts, Counts) {
        let unsent = BATCH - self.outbox.room();
        self.counts.panic_lost += (self.inbox.len() - self.handled.min(self.inbox.len()) + unsent) as u64;
        let server = &mut self.parts.server;
        if catch_unwind(AssertUnwindSafe(|| server.end_all())).is_err() {
            tracing::error!("not every allocation of the worker could be ended");
        }
        self.publish_counts();
        (self.parts, self.counts)
    }

    fn tell_events(&mut self) {
        let Parts { server, records, .. } = &mut self.parts;
        while let Some(event) = server.poll_event() {
            records.leave(server.worker(), event);
        }
    }

    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.parts.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Does what is due at `now` apart from datagrams.
    fn keep_time(&mut self, now: Nanos) {
        if now >= self.wall_clock_at {
            let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
            self.parts.server.set_wall_clock(now, unix_s);
            self.wall_clock_at = now.saturating_add(WALL_CLOCK_EVERY);
        }
        self.take_orders(now);
        if self.parts.server.poll_timeout().is_some_and(|due| due <= now) {
            self.parts.server.handle_timeout(now);
            self.is_dirty = true;
        }
        let Parts { relays, streams, server, poller, .. } = &mut self.parts;
        relays.tend(now, server, poller, &mut self.inbox);
        for key in streams.keep_time(now, server) {
            self.ready.push_back(Ready::first(key));
        }
        if self.is_dirty && now >= self.publish_at {
            let Parts { published, server, .. } = &self.parts;
            let told = published.put_rules(server.policy_hits());
            self.is_dirty = !(self.publish_counts() && self.parts.published.put_stages(&self.parts.sampler) && told);
            self.publish_at = now.saturating_add(PUBLISH_EVERY);
        }
    }

    /// Sleeps until something is ready or due; does not sleep where something is left over from the last round, nor so
    /// soon after it that it lingers.
    fn wait(&mut self, now: Nanos) {
        let timeout = if self.ready.is_empty() && self.faulted.is_empty() && !self.is_behind && now >= self.awake_until
        {
            if self.is_dirty {
                self.publish_counts();
            }
            let due = [
                self.parts.server.poll_timeout(),
                self.parts.relays.next_wake(),
                self.parts.streams.next_wake(),
                self.is_dirty.then_some(self.publish_at),
                Some(self.wall_clock_at),
            ];
            due.into_iter().flatten().min().map(|due| Duration::from_nanos(due.saturating_sub(now).0))
        } else {
            Some(Duration::ZERO)
        };
        let left = self.ready.len();
        let ready = &mut self.ready;
        match self.parts.poller.wait(timeout) {
            Ok(keys) => {
                for &key in keys {
                    // A socket that is still waiting for its turn may become ready again.
                    if !ready.iter().take(left).any(|waiting| waiting.key == key) {
                        ready.push_back(Ready::first(key));
                    }
                }
            }
            Err(error) => self.counts.receive_faults.record(IoFault::of(&error)),
        }
        self.faulted.extend(self.parts.poller.faulted().iter().filter_map(|key| relay_of(*key)));
    }

    /// Reads from every ready socket in turn until all are drained or the round is full.
    fn fill(&mut self, now: Nanos) {
        while self.inbox.room() > 0
            && let Some(mut turn) = self.ready.pop_front()
        {
            if let Some(key) = stream_of(turn.key) {
                let Parts { streams, server, poller, .. } = &mut self.parts;
                let (progress, messages) = streams.take_turn(now, key, server, poller, &mut self.inbox);
                self.counts.received += messages;
                self.is_dirty = true;
                if progress == Progress::More {
                    self.ready.push_back(turn);
                }
                continue;
            }
            let socket = match relay_of(turn.key) {
                Some(_) => self.parts.relays.socket_of(turn.key),
                None => self.parts.listeners.get(turn.key as usize),
            };
            let Some(socket) = socket else { continue };
            let want = turn.want.min(self.inbox.room());
            match self.inbox.receive(socket, turn.key, want) {
                Ok(received) => {
                    self.counts.received += received.count as u64;
                    self.counts.kernel_lost += received.lost;
                    if !received.drained {
                        turn.want = (turn.want * 2).min(READ_MAX);
                        self.ready.push_back(turn);
                    }
                }
                // The datagrams behind the error are still there; the others have their turn before it is tried again.
                Err(error) => {
                    self.counts.receive_faults.record(IoFault::of(&error));
                    self.ready.push_back(turn);
                    return;
                }
            }
        }
    }

    /// Takes what other workers have given, at most half of a round.
    fn take_handed_over(&mut self) {
        let Parts { listeners, arrivals, .. } = &mut self.parts;
        let taken = arrivals.take(&mut self.inbox, ROUND / 2, |server| listener_of(listeners, server));
        self.counts.taken_over += taken.parcels;
        self.counts.hand_over_lost += taken.lost;
        self.is_behind = taken.is_left;
    }

    fn publish_counts(&mut self) -> bool {
        self.counts.engine = self.before;
        add_engine(&mut self.counts.engine, self.parts.server.counters());
        self.counts.relays = self.parts.relays.counts;
        self.counts.streams = self.parts.streams.counts;
        self.parts.published.put_counts(&self.counts)
    }
}
