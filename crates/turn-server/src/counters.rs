//! Counters of the workers, and their sums for readers in other threads.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use tt_meter::{Sampler, Stages};
use tt_model::Transport;
use tt_net::{FaultCounts, IoFault};
use tt_turn::policy::Rule;
use tt_turn::{Counters, DropReason, ErrorCode, RejectReason};

use crate::relays::RelayCounts;
use crate::streams::{End, RejectReason as StreamRejectReason, StreamCounts};

/// Counters of one worker: the engine's and the driver's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkerCounters {
    /// The engine's counters.
    pub(crate) engine: Counters,
    /// Datagrams read from this worker's sockets.
    pub(crate) received: u64,
    /// Datagrams that the kernel accepted for sending.
    pub(crate) sent: u64,
    /// Those of them that carried a relayed payload.
    pub(crate) sent_relayed: u64,
    /// Datagrams that the kernel rejected, by error.
    pub(crate) refused: FaultCounts,
    /// Datagrams whose socket was closed before they were sent.
    pub(crate) orphaned: u64,
    /// Payloads that the kernel relayed without a socket: to peers, and to clients.
    pub(crate) kernel_relayed: [u64; 2],
    /// Received datagrams longer than any buffer.
    pub(crate) truncated: u64,
    /// Datagrams of clients without an allocation, to an address that is not listened on any more.
    pub(crate) listener_closed: u64,
    /// Payloads whose hop limit was used up.
    pub(crate) hop_limit: u64,
    /// GSO batches rejected by the kernel; their datagrams were sent one by one.
    pub(crate) gso_batches_rejected: u64,
    /// Hand-offs to other workers and from them; the sums of all workers differ by those in flight.
    pub(crate) hand_offs_out: u64,
    pub(crate) hand_offs_in: u64,
    /// Datagrams that a worker had read and not sent when it panicked.
    pub(crate) panic_lost: u64,
    /// Hand-offs to a worker whose ring was full or that had ended.
    pub(crate) hand_offs_lost: u64,
    /// Datagrams that the kernel dropped: a receive buffer was full, or kept free for known clients.
    pub(crate) kernel_lost: u64,
    /// Times that a listener began to keep its buffer free for known clients.
    pub(crate) overloads: u64,
    /// Events that found a queue of the engine full.
    pub(crate) events_lost: LostEvents,
    /// Failed receive and poll calls, by error.
    pub(crate) receive_faults: FaultCounts,
    /// Relay sockets.
    pub(crate) relays: RelayCounts,
    /// Messages dropped because the connection's send queue was full.
    pub(crate) queue_full: u64,
    /// Messages dropped because the connection was closed.
    pub(crate) connection_gone: u64,
    /// Connections over TCP and TLS.
    pub(crate) streams: StreamCounts,
}

/// Events that found a queue of the engine full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LostEvents {
    /// Rejected requests, for the log.
    pub(crate) rejected: u64,
    /// Beginnings and ends of allocations, for records.
    pub(crate) allocations: u64,
}

/// Status of one worker that other threads can read. The worker never waits for a reader.
#[derive(Debug, Default)]
pub(crate) struct WorkerStatus {
    counts: Mutex<WorkerCounters>,
    stages: Mutex<Stages>,
    rules: Mutex<Vec<(Rule, u64)>>,
    /// Whether the worker is down after a panic.
    pub(crate) is_down: AtomicBool,
    /// Panics since the start.
    pub(crate) panics: AtomicU64,
}

impl WorkerStatus {
    /// Publishes `counts`. Returns false if a reader holds the lock.
    pub(crate) fn put_counts(&self, counts: &WorkerCounters) -> bool {
        try_lock(&self.counts).map(|mut shared| *shared = *counts).is_some()
    }

    /// Publishes the samples. Returns false if a reader holds the lock.
    pub(crate) fn put_stages(&self, sampler: &Sampler) -> bool {
        try_lock(&self.stages).map(|mut shared| shared.clone_from(sampler.stages())).is_some()
    }

    /// Publishes how often each rule of the peer policy denied a peer. Returns false if a reader holds the lock.
    pub(crate) fn put_rules<'a>(&self, hits: impl Iterator<Item = (&'a Rule, u64)>) -> bool {
        let Some(mut shared) = try_lock(&self.rules) else { return false };
        shared.clear();
        shared.extend(hits.filter(|(_, count)| *count > 0).map(|(rule, count)| (*rule, count)));
        true
    }

    /// Returns the published counts.
    pub(crate) fn counts(&self) -> MutexGuard<'_, WorkerCounters> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rules(&self) -> MutexGuard<'_, Vec<(Rule, u64)>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stages(&self) -> MutexGuard<'_, Stages> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Locks `lock` unless another thread holds it. A poisoned lock is usable: the values are plain numbers.
fn try_lock<T>(lock: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match lock.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Returns how often each rule of the peer policy denied a peer, over all workers.
pub(crate) fn rules<'a>(workers: impl Iterator<Item = &'a WorkerStatus>) -> Vec<tt_status::turn::RuleCount> {
    let mut rules: Vec<tt_status::turn::RuleCount> = Vec::new();
    for worker in workers {
        for (rule, count) in worker.rules().iter() {
            let rule = rule.to_string();
            match rules.iter_mut().find(|known| known.rule == rule) {
                Some(known) => known.count += count,
                None => rules.push(tt_status::turn::RuleCount { rule, count: *count }),
            }
        }
    }
    rules
}

/// Sums of the counters of all workers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    counts: WorkerCounters,
}

impl Totals {
    pub(crate) fn of<'a>(workers: impl Iterator<Item = &'a WorkerStatus>) -> Self {
        let mut totals = Self::default();
        for worker in workers {
            totals.add(&worker.counts());
        }
        totals
    }

    fn add(&mut self, other: &WorkerCounters) {
        let sum = &mut self.counts;
        add_engine(&mut sum.engine, &other.engine);
        sum.received += other.received;
        sum.sent += other.sent;
        sum.sent_relayed += other.sent_relayed;
        sum.refused.merge(&other.refused);
        sum.orphaned += other.orphaned;
        (0..2).for_each(|way| sum.kernel_relayed[way] += other.kernel_relayed[way]);
        sum.truncated += other.truncated;
        sum.listener_closed += other.listener_closed;
        sum.hop_limit += other.hop_limit;
        sum.gso_batches_rejected += other.gso_batches_rejected;
        sum.hand_offs_out += other.hand_offs_out;
        sum.hand_offs_in += other.hand_offs_in;
        sum.panic_lost += other.panic_lost;
        sum.hand_offs_lost += other.hand_offs_lost;
        sum.kernel_lost += other.kernel_lost;
        sum.overloads += other.overloads;
        sum.events_lost.rejected += other.events_lost.rejected;
        sum.events_lost.allocations += other.events_lost.allocations;
        sum.receive_faults.merge(&other.receive_faults);
        sum.queue_full += other.queue_full;
        sum.connection_gone += other.connection_gone;
        sum.streams.add(&other.streams);
        sum.relays.bound += other.relays.bound;
        sum.relays.quarantined += other.relays.quarantined;
        sum.relays.late += other.relays.late;
        sum.relays.no_free_port += other.relays.no_free_port;
        sum.relays.faults.merge(&other.relays.faults);
    }

    /// Counts the hand-offs in flight between workers that have ended as lost.
    pub(crate) const fn settle(mut self) -> Self {
        self.counts.hand_offs_lost += self.counts.hand_offs_out.saturating_sub(self.counts.hand_offs_in);
        self.counts.hand_offs_in = self.counts.hand_offs_out;
        self
    }

    /// Returns the datagrams that the kernel dropped before the server read them (`SO_RXQ_OVFL`).
    #[must_use]
    pub const fn kernel_lost(&self) -> u64 {
        self.counts.kernel_lost
    }

    /// Returns how often a listener began to keep its receive buffer free for clients with an allocation.
    #[must_use]
    pub const fn overloads(&self) -> u64 {
        self.counts.overloads
    }

    /// Returns the events that found a queue of an engine full.
    #[must_use]
    pub(crate) const fn events_lost(&self) -> LostEvents {
        self.counts.events_lost
    }

    /// Returns the GSO batches rejected by the kernel (`UDP_SEGMENT`); their datagrams were sent one by one.
    #[must_use]
    pub const fn gso_batches_rejected(&self) -> u64 {
        self.counts.gso_batches_rejected
    }

    /// Returns the payloads that the kernel relayed without a socket: to peers, and to clients.
    #[must_use]
    pub(crate) const fn kernel_relayed(&self) -> [u64; 2] {
        self.counts.kernel_relayed
    }

    /// Returns how often the relay pool found no free port.
    #[must_use]
    pub const fn no_free_port(&self) -> u64 {
        self.counts.relays.no_free_port
    }

    /// Returns the failed system calls by purpose and error, without those that never failed.
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

    /// Returns the accounting of datagrams: `in = out + dropped`.
    ///
    /// `in` is counted where datagrams are read, `out` where the kernel accepts them, drops in the engine and the driver.
    #[must_use]
    pub fn accounting(&self) -> tt_status::accounting::Accounting {
        let counts = &self.counts;
        let count = |name, count| tt_status::accounting::Count { name, count };
        let kernel_relayed = counts.kernel_relayed.iter().sum::<u64>();
        let outcomes = vec![
            count("replied", counts.sent - counts.sent_relayed),
            count("relayed", counts.sent_relayed),
            count("hairpinned", counts.engine.hairpinned),
            count("relayed_by_kernel", kernel_relayed),
        ];
        let mut drops: Vec<_> =
            DropReason::ALL.iter().map(|reason| count(reason.name(), counts.engine.dropped(*reason))).collect();
        drops.push(count("relay_resting", counts.relays.late));
        drops.push(count("truncated", counts.truncated));
        drops.push(count("listener_closed", counts.listener_closed));
        drops.push(count("hop_limit", counts.hop_limit));
        drops.push(count("hand_off_lost", counts.hand_offs_lost));
        drops.push(count("relay_closed", counts.orphaned));
        drops.push(count("queue_full", counts.queue_full));
        drops.push(count("connection_gone", counts.connection_gone));
        drops.push(count("worker_panicked", counts.panic_lost));
        drops.extend(IoFault::ALL.map(|fault| count(send_name(fault), counts.refused.of(fault))));
        // A payload from one of our relayed addresses to another is received a second time without a system call.
        let input = counts.received + counts.relays.late + counts.engine.hairpinned + kernel_relayed;
        tt_status::accounting::Accounting::new("datagrams", input, outcomes, drops)
    }

    /// Returns the status of connections over TCP and TLS.
    #[must_use]
    pub fn streams(&self) -> tt_status::turn::Streams {
        let of = &self.counts.streams;
        let count = |name, count| tt_status::accounting::Count { name, count };
        let rejected = StreamRejectReason::ALL.map(|reason| count(reason.name(), of.rejected[reason as usize]));
        let ended = End::ALL.map(|end| count(end.name(), of.ended[end as usize]));
        tt_status::turn::Streams {
            open: of.open,
            open_tls: of.open_tls,
            half_open: of.half_open,
            accepted: of.accepted,
            handshakes: of.handshakes,
            handshakes_resumed: of.handshakes_resumed,
            handshakes_in_progress: of.handshakes_in_progress,
            refused: rejected.to_vec(),
            ended: ended.to_vec(),
            messages_in: of.messages_in,
            unsent_bytes: of.unsent_bytes,
        }
    }

    /// Returns the error replies by code, without codes that were never sent.
    #[must_use]
    pub fn errors(&self) -> Vec<tt_status::turn::CodeCount> {
        let each = ErrorCode::ALL.iter().zip(self.counts.engine.errors);
        let given = each.filter(|(_, count)| *count > 0);
        given.map(|(error, count)| tt_status::turn::CodeCount { code: error.code(), count }).collect()
    }

    /// Returns the requests rejected with 403, 486 or 508, by reason.
    #[must_use]
    pub fn refusals(&self) -> Vec<tt_status::accounting::Count> {
        let each = RejectReason::ALL.iter().zip(self.counts.engine.rejections);
        each.map(|(reason, count)| tt_status::accounting::Count { name: reason.name(), count }).collect()
    }

    /// Returns the status of allocations; `capacity` is the configured maximum.
    #[must_use]
    pub const fn allocations(&self, capacity: u32) -> tt_status::turn::Allocations {
        let engine = &self.counts.engine;
        tt_status::turn::Allocations {
            live: engine.allocations_made.saturating_sub(engine.allocations_ended),
            capacity: capacity as u64,
            created: engine.allocations_made,
            ended: engine.allocations_ended,
            to_peers_bytes: engine.bytes_to_peers,
            to_clients_bytes: engine.bytes_to_clients,
            to_peers_packets: engine.payloads_to_peers,
            to_clients_packets: engine.payloads_to_clients,
            live_by_transport: tt_status::turn::LiveByTransport {
                udp: engine.allocations_live[Transport::Udp as usize],
                tcp: engine.allocations_live[Transport::Tcp as usize],
                tls: engine.allocations_live[Transport::Tls as usize],
            },
        }
    }

    /// Returns the numbers of Binding requests.
    #[must_use]
    pub const fn bindings(&self) -> tt_status::turn::Bindings {
        let engine = &self.counts.engine;
        tt_status::turn::Bindings { requests: engine.bindings, answered: engine.bindings_answered }
    }
}

pub(crate) fn add_engine(sum: &mut Counters, other: &Counters) {
    sum.received += other.received;
    sum.replied += other.replied;
    sum.payloads_to_peers += other.payloads_to_peers;
    sum.payloads_to_clients += other.payloads_to_clients;
    sum.hairpinned += other.hairpinned;
    sum.handed_off += other.handed_off;
    sum.drops.iter_mut().zip(other.drops).for_each(|(mine, theirs)| *mine += theirs);
    sum.bytes_to_peers += other.bytes_to_peers;
    sum.bytes_to_clients += other.bytes_to_clients;
    sum.flow_hits += other.flow_hits;
    sum.flow_misses += other.flow_misses;
    sum.errors.iter_mut().zip(other.errors).for_each(|(mine, theirs)| *mine += theirs);
    sum.rejections.iter_mut().zip(other.rejections).for_each(|(mine, theirs)| *mine += theirs);
    sum.allocations_made += other.allocations_made;
    sum.allocations_ended += other.allocations_ended;
    sum.allocations_live.iter_mut().zip(other.allocations_live).for_each(|(mine, theirs)| *mine += theirs);
    sum.bindings += other.bindings;
    sum.bindings_answered += other.bindings_answered;
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

/// Returns the samples of all workers.
pub(crate) fn stages<'a>(workers: impl Iterator<Item = &'a WorkerStatus>) -> Stages {
    let mut sum = Stages::default();
    for worker in workers {
        sum.merge(&worker.stages());
    }
    sum
}
