//! What the workers have counted, for readers in other threads.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use tt_meter::{Sampler, Stages};
use tt_net::{FaultCounts, IoFault};
use tt_turn::error::ErrorCode;
use tt_turn::policy::Rule;
use tt_turn::refusal::Refusal;
use tt_turn::{Counters, DropReason};

use super::relays::RelayCounts;
use super::streams::{End, Refusal as StreamRefusal, StreamCounts};
use crate::http::snapshot;

/// What one worker has counted so far: the engine's counters and the driver's own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// The engine's.
    pub(super) engine: Counters,
    /// Datagrams that the kernel gave to this worker's sockets.
    pub(super) received: u64,
    /// Datagrams that the kernel took from it.
    pub(super) sent: u64,
    /// Those of them that carried a payload from a client to a peer or back.
    pub(super) sent_relayed: u64,
    /// Datagrams that the kernel refused to send, by reason.
    pub(super) refused: FaultCounts,
    /// Datagrams whose socket was closed before they left.
    pub(super) orphaned: u64,
    /// Received datagrams longer than any buffer.
    pub(super) truncated: u64,
    /// Payloads that had no hop left to go.
    pub(super) hop_limit: u64,
    /// Trains that the kernel refused; their datagrams left one by one.
    pub(super) trains_refused: u64,
    /// Datagrams and payloads given to another worker, and taken from one; the difference is on its way.
    pub(super) given_over: u64,
    pub(super) taken_over: u64,
    /// Datagrams that a worker had read and not sent when it panicked.
    pub(super) panic_lost: u64,
    /// Datagrams for another worker that could not take them, or ended first.
    pub(super) hand_over_lost: u64,
    /// Datagrams that the kernel dropped for want of buffer; it never gave them to us.
    pub(super) kernel_lost: u64,
    /// Failed receptions and waits, by reason.
    pub(super) receive_faults: FaultCounts,
    /// Relay sockets.
    pub(super) relays: RelayCounts,
    /// Messages for clients whose connection's queue was full.
    pub(super) queue_full: u64,
    /// Messages for clients whose connection was closed.
    pub(super) connection_gone: u64,
    /// Connections over TCP and TLS.
    pub(super) streams: StreamCounts,
}

/// One worker's counts where another thread can read them. The writer never waits for a reader.
#[derive(Debug, Default)]
pub(super) struct Published {
    counts: Mutex<Counts>,
    stages: Mutex<Stages>,
    rules: Mutex<Vec<(Rule, u64)>>,
    /// Whether the worker is down after a panic.
    pub(super) is_down: AtomicBool,
    /// How often it has panicked.
    pub(super) panics: AtomicU64,
}

impl Published {
    /// Publishes `counts`, or returns `false` where a reader is just reading.
    pub(super) fn put_counts(&self, counts: &Counts) -> bool {
        free(&self.counts).map(|mut published| *published = *counts).is_some()
    }

    /// Publishes what `sampler` has seen, or returns `false` where a reader is just reading.
    pub(super) fn put_stages(&self, sampler: &Sampler) -> bool {
        free(&self.stages).map(|mut published| published.clone_from(sampler.stages())).is_some()
    }

    /// Publishes how often each rule of the peer policy has refused a peer, or returns `false` where a reader is just
    /// reading.
    pub(super) fn put_rules<'a>(&self, hits: impl Iterator<Item = (&'a Rule, u64)>) -> bool {
        let Some(mut published) = free(&self.rules) else { return false };
        published.clear();
        published.extend(hits.filter(|(_, count)| *count > 0).map(|(rule, count)| (*rule, count)));
        true
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rules(&self) -> MutexGuard<'_, Vec<(Rule, u64)>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stages(&self) -> MutexGuard<'_, Stages> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place behind a lock that nobody holds. A thread that has panicked while it held the lock has left whole values:
/// they are plain numbers.
fn free<T>(lock: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match lock.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// How often each rule of the peer policy has refused a peer, over all workers: a range each, no peer's address.
pub(super) fn rules<'a>(workers: impl Iterator<Item = &'a Published>) -> Vec<snapshot::RuleCount> {
    let mut rules: Vec<snapshot::RuleCount> = Vec::new();
    for worker in workers {
        for (rule, count) in worker.rules().iter() {
            let rule = rule.to_string();
            match rules.iter_mut().find(|known| known.rule == rule) {
                Some(known) => known.count += count,
                None => rules.push(snapshot::RuleCount { rule, count: *count }),
            }
        }
    }
    rules
}

/// What all workers together have counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    counts: Counts,
}

impl Totals {
    pub(super) fn of<'a>(workers: impl Iterator<Item = &'a Published>) -> Self {
        let mut totals = Self::default();
        for worker in workers {
            totals.add(&worker.counts());
        }
        totals
    }

    fn add(&mut self, other: &Counts) {
        let sum = &mut self.counts;
        add_engine(&mut sum.engine, &other.engine);
        sum.received += other.received;
        sum.sent += other.sent;
        sum.sent_relayed += other.sent_relayed;
        sum.refused.merge(&other.refused);
        sum.orphaned += other.orphaned;
        sum.truncated += other.truncated;
        sum.hop_limit += other.hop_limit;
        sum.trains_refused += other.trains_refused;
        sum.given_over += other.given_over;
        sum.taken_over += other.taken_over;
        sum.panic_lost += other.panic_lost;
        sum.hand_over_lost += other.hand_over_lost;
        sum.kernel_lost += other.kernel_lost;
        sum.receive_faults.merge(&other.receive_faults);
        sum.queue_full += other.queue_full;
        sum.connection_gone += other.connection_gone;
        sum.streams.add(&other.streams);
        sum.relays.bound += other.relays.bound;
        sum.relays.resting += other.relays.resting;
        sum.relays.late += other.relays.late;
        sum.relays.faults.merge(&other.relays.faults);
    }

    /// Counts as lost what was on its way between workers that have ended.
    pub(super) const fn settle(mut self) -> Self {
        self.counts.hand_over_lost += self.counts.given_over.saturating_sub(self.counts.taken_over);
        self.counts.taken_over = self.counts.given_over;
        self
    }

    /// Datagrams that the kernel dropped before the server saw them (`SO_RXQ_OVFL`).
    #[must_use]
    pub const fn kernel_lost(&self) -> u64 {
        self.counts.kernel_lost
    }

    /// Trains of datagrams that the kernel refused (`UDP_SEGMENT`); the datagrams left one by one.
    #[must_use]
    pub const fn trains_refused(&self) -> u64 {
        self.counts.trains_refused
    }

    /// Failed system calls that lost no datagram by themselves, by what they were for and why; those that happened.
    #[must_use]
    pub fn faults(&self) -> Vec<(&'static str, IoFault, u64)> {
        let kinds = [
            ("receive", self.counts.receive_faults),
            ("relay sockets", self.counts.relays.faults),
            ("connections", self.counts.streams.faults),
        ];
        let each = kinds.into_iter().flat_map(|(what, of)| IoFault::ALL.map(|fault| (what, fault, of.of(fault))));
        each.filter(|(_, _, count)| *count > 0).collect()
    }

    /// What came in and what became of it. `in` is counted where datagrams are read and `out` where the kernel takes
    /// them; the drops between the two are the engine's and the driver's.
    #[must_use]
    pub fn ledger(&self) -> snapshot::Ledger {
        let counts = &self.counts;
        let count = |name, count| snapshot::Count { name, count };
        let outcomes = vec![
            count("replied", counts.sent - counts.sent_relayed),
            count("relayed", counts.sent_relayed),
            count("hairpinned", counts.engine.hairpinned),
        ];
        let mut drops: Vec<_> =
            DropReason::ALL.iter().map(|reason| count(reason.name(), counts.engine.dropped(*reason))).collect();
        drops.push(count("relay_resting", counts.relays.late));
        drops.push(count("truncated", counts.truncated));
        drops.push(count("hop_limit", counts.hop_limit));
        drops.push(count("hand_over_lost", counts.hand_over_lost));
        drops.push(count("relay_closed", counts.orphaned));
        drops.push(count("queue_full", counts.queue_full));
        drops.push(count("connection_gone", counts.connection_gone));
        drops.push(count("worker_panicked", counts.panic_lost));
        drops.extend(IoFault::ALL.map(|fault| count(send_name(fault), counts.refused.of(fault))));
        // From one relayed address of ours to another a payload comes in once more without the kernel's doing.
        let input = counts.received + counts.relays.late + counts.engine.hairpinned;
        snapshot::Ledger::new("datagrams", input, outcomes, drops)
    }

    /// Connections over TCP and TLS.
    #[must_use]
    pub fn streams(&self) -> snapshot::Streams {
        let of = &self.counts.streams;
        let count = |name, count| snapshot::Count { name, count };
        let refused = StreamRefusal::ALL.map(|refusal| count(refusal.name(), of.refused[refusal as usize]));
        let ended = End::ALL.map(|end| count(end.name(), of.ended[end as usize]));
        snapshot::Streams {
            open: of.open,
            open_tls: of.open_tls,
            half_open: of.half_open,
            accepted: of.accepted,
            handshakes: of.handshakes,
            refused: refused.to_vec(),
            ended: ended.to_vec(),
            messages_in: of.messages_in,
            unsent_bytes: of.unsent_bytes,
        }
    }

    /// Error replies by code; those that were given.
    #[must_use]
    pub fn errors(&self) -> Vec<snapshot::CodeCount> {
        let each = ErrorCode::ALL.iter().zip(self.counts.engine.errors);
        let given = each.filter(|(_, count)| *count > 0);
        given.map(|(error, count)| snapshot::CodeCount { code: error.code(), count }).collect()
    }

    /// Requests refused with 403, 486 or 508, by the quota, the room or the rule that refused them.
    #[must_use]
    pub fn refusals(&self) -> Vec<snapshot::Count> {
        let each = Refusal::ALL.iter().zip(self.counts.engine.refusals);
        each.map(|(refusal, count)| snapshot::Count { name: refusal.name(), count }).collect()
    }

    /// Allocations and what hangs on them; `capacity` is how many there may be.
    #[must_use]
    pub const fn allocations(&self, capacity: u32) -> snapshot::Allocations {
        let engine = &self.counts.engine;
        snapshot::Allocations {
            live: engine.allocations_made.saturating_sub(engine.allocations_ended),
            capacity: capacity as u64,
            created: engine.allocations_made,
            ended: engine.allocations_ended,
            to_peers_bytes: engine.bytes_to_peers,
            to_clients_bytes: engine.bytes_to_clients,
        }
    }
}

pub(super) fn add_engine(sum: &mut Counters, other: &Counters) {
    sum.received += other.received;
    sum.replied += other.replied;
    sum.relayed += other.relayed;
    sum.hairpinned += other.hairpinned;
    sum.handed_over += other.handed_over;
    sum.drops.iter_mut().zip(other.drops).for_each(|(mine, theirs)| *mine += theirs);
    sum.bytes_to_peers += other.bytes_to_peers;
    sum.bytes_to_clients += other.bytes_to_clients;
    sum.flow_hits += other.flow_hits;
    sum.flow_misses += other.flow_misses;
    sum.errors.iter_mut().zip(other.errors).for_each(|(mine, theirs)| *mine += theirs);
    sum.refusals.iter_mut().zip(other.refusals).for_each(|(mine, theirs)| *mine += theirs);
    sum.allocations_made += other.allocations_made;
    sum.allocations_ended += other.allocations_ended;
}

const fn send_name(fault: IoFault) -> &'static str {
    match fault {
        IoFault::WouldBlock => "send_would_block",
        IoFault::NoBuffers => "send_no_buffers",
        IoFault::NoDescriptors => "send_no_descriptors",
        IoFault::Unreachable => "send_unreachable",
        IoFault::Refused => "send_refused",
        IoFault::TooLarge => "send_too_large",
        IoFault::Forbidden => "send_forbidden",
        IoFault::BadAddress => "send_bad_address",
        IoFault::Other => "send_other",
    }
}

/// What all workers' samplers have seen together.
pub(super) fn stages<'a>(workers: impl Iterator<Item = &'a Published>) -> Stages {
    let mut seen = Stages::default();
    for worker in workers {
        seen.merge(&worker.stages());
    }
    seen
}
