//! The loop of one worker: receive a batch, pass it to the engine, send the results.

mod icmp;
mod listening;
mod round;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use tt_meter::Sampler;
use tt_model::Nanos;
use tt_net::stream::Progress;
use tt_net::{IcmpInbox, IcmpReport, Inbox, IoFault, Outbox, Poller, RawIcmpInbox, RawOutbox};
use tt_os::clock::with_unix_time;
use tt_turn::event::EndReason;
use tt_turn::relay::{PeerPath, RelayId};
use tt_turn::{Counters, Server};

use crate::commands::{LoopSettings, WorkerCommand};
use crate::counters::{LostEvents, WorkerCounters, WorkerStatus, add_engine};
use crate::event_log::EventLog;
use crate::hand_off::{InboundRings, WorkerLinks};
use crate::kernel_path::WorkerPaths;
use crate::messages::{MessageQueue, WorkerMessages};
use crate::poll_key::{SharedKey, relay_of, shared_of, stream_of};
use crate::ready::{Ready, ReadyQueue, Side};
use crate::records::{Entry, RecordSender};
use crate::relays::Relays;
use crate::streams::{MESSAGE_LEN_MAX, Streams};
use crate::udp_listeners::UdpListeners;

/// Maximum number of received buffers (datagrams or GRO batches) per round.
const ROUND: usize = 64;
/// Maximum number of datagrams per send batch.
const BATCH: usize = 256;
/// Bytes of replies and headers per send batch.
const BATCH_HEADS_LEN: usize = 64 * HEAD_LEN_MAX;
/// Length of a receive buffer. A UDP payload has at most 65,507 bytes, a GRO batch 65,535, and a message over TCP no more
/// than this, so nothing is truncated.
const DATAGRAM_LEN_MAX: usize = MESSAGE_LEN_MAX;
/// Maximum length of a reply, or of a header in front of a payload.
const HEAD_LEN_MAX: usize = 1_500;
/// Maximum `recvmmsg` batch of one socket. It doubles while a socket is not drained.
const READ_MAX: usize = 32;
/// Intervals at which the engine gets the wall-clock time, and at which the status is published.
const WALL_CLOCK_EVERY: Nanos = Nanos::from_secs(1);
const PUBLISH_EVERY: Nanos = Nanos::from_millis(100);
/// Interval at which a worker tries again to queue records, and how long it tries at its end.
const RECORDS_RETRY: Duration = Duration::from_millis(2);
const RECORDS_WITHIN: Duration = Duration::from_secs(5);

/// Queues of what workers report.
#[derive(Clone, Debug)]
pub(crate) struct Outputs {
    pub(crate) event_log: EventLog,
    pub(crate) records: RecordSender,
    pub(crate) messages: Option<MessageQueue>,
}

/// Everything that a worker owns, created before its thread starts.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) server: Server,
    pub(crate) listeners: UdpListeners,
    pub(crate) relays: Relays,
    pub(crate) streams: Streams,
    pub(crate) poller: Poller,
    pub(crate) sampler: Sampler,
    /// Links to all workers, this one included.
    pub(crate) links: WorkerLinks,
    pub(crate) inbound: InboundRings,
    pub(crate) commands: Receiver<WorkerCommand>,
    pub(crate) event_log: EventLog,
    pub(crate) records: RecordSender,
    pub(crate) messages: Option<WorkerMessages>,
    pub(crate) status: Arc<WorkerStatus>,
    pub(crate) stop: Arc<AtomicBool>,
    /// It ends once it has nothing more to serve.
    pub(crate) is_retiring: bool,
    pub(crate) settings: LoopSettings,
    /// Origin of the engines' clock, the same for all workers.
    pub(crate) epoch: Instant,
    /// What the kernel relays for this worker.
    pub(crate) paths: Option<WorkerPaths>,
}

impl Parts {
    /// Continues the counts of a worker that has ended.
    pub(crate) fn continue_from(&mut self, status: &Arc<WorkerStatus>) {
        self.status = Arc::clone(status);
        let counts = status.counts();
        self.relays.counts = counts.relays;
        self.streams.counts = counts.streams;
    }
}

/// A worker on its thread.
#[derive(Debug)]
pub(crate) struct Worker {
    parts: Parts,
    inbox: Inbox,
    outbox: Outbox,
    /// Datagrams to peers of relays that share a socket.
    raw: RawOutbox,
    ready: ReadyQueue,
    icmp: IcmpInbox,
    raw_icmp: RawIcmpInbox,
    /// Families for which relays that share a socket have ICMP errors to be read.
    faulted_families: [bool; 2],
    /// Relays with ICMP errors to be read.
    faulted: Vec<RelayId>,
    /// ICMP errors read from relays.
    reports: Vec<(RelayId, IcmpReport)>,
    /// The rings from other workers hold more than the last round had room for.
    has_more_inbound: bool,
    counts: WorkerCounters,
    /// Counters of the engines before the last panic.
    before: Counters,
    /// Lost events before the last panic.
    events_lost_before: LostEvents,
    /// An event that found the queue of records full.
    unsent: Option<Entry>,
    /// Datagrams of the inbox that the engine has handled, or handles now.
    handled: usize,
    /// The counters have changed since they were published.
    is_dirty: bool,
    publish_at: Nanos,
    /// It polls without blocking until then.
    busy_poll_until: Nanos,
    wall_clock_at: Nanos,
}

impl Worker {
    /// Creates a worker that continues the `counts` of the one before it.
    pub(crate) fn new(mut parts: Parts, counts: WorkerCounters) -> Self {
        if let Some(paths) = &mut parts.paths {
            paths.offer(&mut parts.server);
        }
        if let Some(messages) = &mut parts.messages {
            messages.restart();
        }
        // The poller does not report datagrams that arrived before the sockets were added.
        let mut ready = ReadyQueue::default();
        parts.listeners.keys().chain(parts.relays.shared_keys()).for_each(|key| ready.push(Ready::first(key)));
        Self {
            before: counts.engine,
            events_lost_before: counts.events_lost,
            unsent: None,
            handled: 0,
            parts,
            icmp: IcmpInbox::default(),
            raw_icmp: RawIcmpInbox::default(),
            faulted_families: [false; 2],
            raw: RawOutbox::new(BATCH),
            faulted: Vec::new(),
            reports: Vec::new(),
            has_more_inbound: false,
            inbox: Inbox::new(ROUND, DATAGRAM_LEN_MAX),
            outbox: Outbox::new(BATCH, BATCH_HEADS_LEN),
            ready,
            counts,
            is_dirty: true,
            publish_at: Nanos(0),
            busy_poll_until: Nanos(0),
            wall_clock_at: Nanos(0),
        }
    }

    /// Runs until the stop flag is set, or until it has retired.
    pub(crate) fn run(&mut self) {
        while !self.parts.stop.load(Ordering::Relaxed) && !self.has_retired() {
            let now = self.now();
            self.run_timers(now);
            self.wait(now);
            self.take_handshakes(now);
            self.inbox.clear();
            self.handled = 0;
            self.take_icmp(now);
            self.take_handed_off();
            self.fill(now);
            if !self.inbox.is_empty() {
                self.round();
                let busy_poll = self.parts.settings.busy_poll;
                if busy_poll > Nanos(0) {
                    self.busy_poll_until = self.now().saturating_add(busy_poll);
                }
            }
            self.is_dirty |= self.parts.streams.flush_and_close(now, &mut self.parts.server);
            self.pass_events();
        }
        let now = self.now();
        self.parts.server.end_all(now, EndReason::Shutdown);
        self.finish_paths(now);
        self.pass_all_events();
        self.publish_counts();
        self.parts.status.put_stages(&self.parts.sampler);
    }

    /// Ends all allocations after a panic and returns the parts for a new worker. Datagrams that this round has not sent are
    /// counted as lost.
    pub(crate) fn into_parts(mut self) -> (Parts, WorkerCounters) {
        let unsent = 2 * BATCH - self.outbox.room() - self.raw.room();
        self.counts.panic_lost += (self.inbox.len() - self.handled.min(self.inbox.len()) + unsent) as u64;
        let now = self.now();
        let end_all = || {
            self.parts.server.end_all(now, EndReason::WorkerFailed);
            self.finish_paths(now);
        };
        if catch_unwind(AssertUnwindSafe(end_all)).is_err() {
            tracing::error!("the engine panicked again while its allocations were ended");
            if let Some(paths) = &mut self.parts.paths {
                paths.close_all();
            }
        }
        self.pass_all_events();
        self.publish_counts();
        (self.parts, self.counts)
    }

    /// Passes the events of the engine to the log and to the records. What finds the queue of records full stays in
    /// the engine.
    fn pass_events(&mut self) {
        let before = self.before.allocations_made;
        let Parts { server, event_log, records, messages, streams, .. } = &mut self.parts;
        let worker = server.worker();
        if let Some(messages) = messages {
            messages.pass_grants(before, server, streams);
        }
        while let Some(rejected) = server.poll_rejected() {
            event_log.push_rejected(worker, rejected);
        }
        loop {
            let entry = match self.unsent.take() {
                Some(unsent) => unsent,
                None => {
                    let Some(event) = server.poll_event() else { return };
                    event_log.push(worker, &event);
                    if let Some(messages) = messages {
                        messages.pass_event(before, server, &event);
                    }
                    Entry { worker, number: before + event.start.number, event }
                }
            };
            self.unsent = records.push(entry);
            if self.unsent.is_some() {
                return;
            }
        }
    }

    /// Passes all events of the engine at the end of the worker, and waits for the records some time.
    fn pass_all_events(&mut self) {
        let deadline = Instant::now() + RECORDS_WITHIN;
        if let Some(messages) = &mut self.parts.messages {
            messages.wait_until(deadline);
        }
        self.pass_events();
        while self.unsent.is_some() && Instant::now() < deadline {
            std::thread::park_timeout(RECORDS_RETRY);
            self.pass_events();
        }
        if self.unsent.take().is_some() {
            let rest = std::iter::from_fn(|| self.parts.server.poll_event()).count();
            self.parts.records.give_up(1 + rest as u64);
        }
    }

    /// Closes the paths of ended allocations.
    fn finish_paths(&mut self, now: Nanos) {
        if let Parts { paths: Some(paths), server, .. } = &mut self.parts {
            paths.finish(now, server);
        }
    }

    /// Follows the engine's paths: what has ended is closed before a response says so, and before its relay is used again.
    fn follow_paths(&mut self) {
        if self.parts.paths.is_none() {
            return;
        }
        let now = self.now();
        if let Parts { paths: Some(paths), server, .. } = &mut self.parts {
            paths.follow(now, server);
        }
    }

    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.parts.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Does what is due at `now`: commands, timers, the relay pool and the published status.
    fn run_timers(&mut self, now: Nanos) {
        if now >= self.wall_clock_at {
            // A pause between the two clocks would put every record of the next second off by as much.
            let (at, unix) = with_unix_time(|| self.now());
            self.parts.server.set_wall_clock(at, unix);
            self.wall_clock_at = now.saturating_add(WALL_CLOCK_EVERY);
            self.close_listeners();
            if let Parts { paths: Some(paths), server, .. } = &mut self.parts {
                paths.count(server);
                self.is_dirty = true;
            }
            self.is_dirty |= self.parts.messages.is_some() || self.parts.relays.is_shared();
        }
        while let Ok(command) = self.parts.commands.try_recv() {
            match command {
                WorkerCommand::Engine(run) => run(&mut self.parts.server, now),
                WorkerCommand::Settings(settings, done) => {
                    self.parts.settings = settings;
                    self.parts.streams.replace_limits(settings.streams);
                    drop(done);
                }
                WorkerCommand::Listeners(change, done) => {
                    self.change_listeners(change);
                    drop(done);
                }
                WorkerCommand::Links(links, done) => {
                    links.into_iter().for_each(|(worker, endpoint)| self.parts.links.replace(worker, endpoint));
                    drop(done);
                }
                WorkerCommand::Retire => self.retire(),
                WorkerCommand::Serve(done) => {
                    self.parts.is_retiring = false;
                    // Without a receiver the reload has given up.
                    let _ = done.send(());
                }
            }
            self.is_dirty = true;
        }
        if self.parts.server.poll_timeout().is_some_and(|due| due <= now) {
            self.parts.server.handle_timeout(now);
            self.is_dirty = true;
        }
        self.follow_paths();
        let Parts { relays, streams, server, poller, listeners, .. } = &mut self.parts;
        listeners.run_timers(now, server);
        relays.maintain_pool(now, server, poller, &mut self.inbox);
        for key in streams.run_timers(now, server) {
            self.ready.push(Ready::first(key));
        }
        if self.is_dirty && now >= self.publish_at {
            let Parts { status, server, messages, sampler, .. } = &mut self.parts;
            if let Some(messages) = messages {
                messages.read_traffic(self.before.allocations_made, server);
            }
            let rules_published = status.put_rules(server.policy_hits());
            let stages_published = status.put_stages(sampler);
            self.is_dirty = !(self.publish_counts() && stages_published && rules_published);
            self.publish_at = now.saturating_add(PUBLISH_EVERY);
        }
    }

    /// Waits until a socket is ready or a timer is due. Does not block while work is left from the last round, or while it
    /// busy-polls.
    fn wait(&mut self, now: Nanos) {
        let timeout = if self.ready.is_empty()
            && self.faulted.is_empty()
            && self.faulted_families == [false; 2]
            && !self.has_more_inbound
            && now >= self.busy_poll_until
        {
            if self.is_dirty {
                self.publish_counts();
            }
            let due = [
                self.parts.server.poll_timeout(),
                self.parts.relays.next_wake(),
                self.parts.streams.next_wake(),
                self.parts.listeners.next_wake(),
                self.parts.paths.as_ref().and_then(WorkerPaths::next_wake),
                self.is_dirty.then_some(self.publish_at),
                Some(self.wall_clock_at),
                self.unsent.is_some().then(|| now.saturating_add(Nanos(RECORDS_RETRY.as_nanos() as u64))),
            ];
            due.into_iter().flatten().min().map(|due| Duration::from_nanos(due.saturating_sub(now).0))
        } else {
            Some(Duration::ZERO)
        };
        match self.parts.poller.wait(timeout) {
            Ok(keys) => keys.iter().for_each(|key| match shared_of(*key) {
                Some(SharedKey::Icmp(family)) => self.faulted_families[family as usize] = true,
                Some(SharedKey::Datagrams(_)) | None => self.ready.push(Ready::first(*key)),
            }),
            Err(error) => self.counts.receive_faults.record(IoFault::of(&error)),
        }
        self.faulted.extend(self.parts.poller.faulted().iter().filter_map(|key| relay_of(*key)));
    }

    /// Takes back the connections whose TLS handshakes have ended.
    fn take_handshakes(&mut self, now: Nanos) {
        let Parts { streams, poller, .. } = &mut self.parts;
        for key in streams.take_handshakes(now, poller) {
            self.ready.push(Ready::first(key));
            self.is_dirty = true;
        }
    }

    /// Reads from the ready sockets in turn until all are drained or the round is full, those of clients first.
    fn fill(&mut self, now: Nanos) {
        let mut client_turns = 0;
        while let Some((side, room)) = self.ready.next_side(self.inbox.room(), client_turns)
            && let Some(mut turn) = self.ready.pop(side)
        {
            client_turns += usize::from(side == Side::Clients);
            if let Some(key) = stream_of(turn.key) {
                let Parts { streams, server, poller, .. } = &mut self.parts;
                let (progress, messages) = streams.take_turn(now, key, server, poller, &mut self.inbox);
                self.counts.received += messages;
                self.is_dirty = true;
                if progress == Progress::More {
                    self.ready.push(turn);
                }
                continue;
            }
            if let Some(SharedKey::Datagrams(family)) = shared_of(turn.key) {
                let most = room.min(READ_MAX);
                match self.parts.relays.receive_shared(now, family, &mut self.inbox, most) {
                    Ok(received) => {
                        self.counts.received += received.count as u64;
                        self.counts.kernel_lost += received.lost;
                        if !received.drained {
                            self.ready.push(turn);
                        }
                    }
                    Err(error) => {
                        self.counts.receive_faults.record(IoFault::of(&error));
                        self.ready.push(turn);
                        return;
                    }
                }
                continue;
            }
            // With many relays, what one of them needs is not in the cache: the system calls leave time to load it.
            let relay = relay_of(turn.key);
            let socket = match relay {
                Some(relay) => {
                    self.parts.server.prefetch_relay(relay);
                    self.parts.relays.socket_of(turn.key)
                }
                None => self.parts.listeners.get(turn.key),
            };
            let Some(socket) = socket else { continue };
            let want = turn.want.min(room);
            match self.inbox.receive(socket, turn.key, want) {
                Ok(received) => {
                    self.counts.received += received.count as u64;
                    self.counts.kernel_lost += received.lost;
                    if let Some(relay) = relay
                        && received.count > 0
                    {
                        let peer = self.inbox.datagram(self.inbox.len() - 1).from;
                        self.parts.server.prefetch_peer(PeerPath { relay, peer });
                    }
                    if relay.is_none() {
                        let Parts { listeners, server, .. } = &mut self.parts;
                        self.counts.overloads += u64::from(listeners.note_read(now, turn.key, &received, server));
                    }
                    if !received.drained {
                        turn.want = (turn.want * 2).min(READ_MAX);
                        self.ready.push(turn);
                    }
                }
                // Datagrams behind the error are still queued; the other sockets are read first.
                Err(error) => {
                    self.counts.receive_faults.record(IoFault::of(&error));
                    self.ready.push(turn);
                    return;
                }
            }
        }
    }

    /// Takes hand-offs of other workers, at most half a round.
    fn take_handed_off(&mut self) {
        let Parts { listeners, inbound, .. } = &mut self.parts;
        let taken = inbound.take(&mut self.inbox, ROUND / 2, |server| listeners.find(server));
        self.counts.hand_offs_in += taken.hand_offs;
        self.counts.hand_offs_lost += taken.lost;
        self.has_more_inbound = taken.has_more;
    }

    fn publish_counts(&mut self) -> bool {
        self.counts.kernel_relayed = self.parts.paths.as_ref().map_or([0; 2], WorkerPaths::relayed);
        self.counts.engine = self.before;
        add_engine(&mut self.counts.engine, self.parts.server.counters());
        let server = &self.parts.server;
        self.counts.events_lost.rejected = self.events_lost_before.rejected + server.rejected_lost();
        self.counts.events_lost.allocations = self.events_lost_before.allocations + server.events_lost();
        self.counts.kernel_lost += self.parts.relays.take_over();
        self.counts.relays = self.parts.relays.counts;
        self.counts.streams = self.parts.streams.counts;
        self.parts.status.put_counts(&self.counts)
    }
}
