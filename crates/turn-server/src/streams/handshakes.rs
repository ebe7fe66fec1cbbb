//! TLS handshakes, on threads of a lower priority than the workers: a signature takes up to milliseconds.

mod requests;
mod round_robin;
mod shares;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use tt_net::stream::{Connection, HandshakeProgress, Resumption, Scratch};
use tt_net::{Poller, Waker};
use tt_os::priority;
use turn_config::StreamLimits;

use super::{Certificates, End};
use requests::{Requests, Taken};
use round_robin::RoundRobin;
use shares::Shares;

/// How much CPU time the threads leave to others, on the kernel's scale of 1 to 19.
const NICENESS: u8 = 10;
/// Maximum number of ready sockets per poll.
const READY_MAX: usize = 256;

/// The name of a handshake: a worker's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ticket {
    /// Grows with each connection of the worker.
    pub(super) serial: u64,
    pub(super) worker: u16,
    pub(super) slot: u32,
}

/// The limits of one thread.
#[derive(Clone, Copy, Debug)]
struct Limits {
    in_progress_max: usize,
    time: Duration,
}

impl Limits {
    /// Returns those of each of `threads` threads.
    fn of(limits: &StreamLimits, threads: u32) -> Self {
        Self {
            in_progress_max: limits.handshakes_max.div_ceil(threads.max(1)) as usize,
            time: Duration::from_secs(limits.handshake_s),
        }
    }
}

#[derive(Debug)]
struct Begin {
    ticket: Ticket,
    connection: Connection,
    source: u128,
    reply: Reply,
}

/// The way back to a worker.
#[derive(Clone, Debug)]
struct Reply {
    outcomes: Sender<Outcome>,
    waker: Waker,
}

/// A handshake that has ended, with its connection unless that has ended too.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) ticket: Ticket,
    pub(super) result: Result<(Connection, Resumption), End>,
}

/// Handle of all threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct HandshakePool {
    threads: Arc<[(Arc<Requests>, Waker)]>,
}

impl HandshakePool {
    /// Creates a handle and what its threads run: [`HandshakeThread::run`].
    ///
    /// # Errors
    /// `EMFILE`, `ENOMEM`.
    pub(crate) fn new(limits: &StreamLimits) -> io::Result<(Self, Vec<HandshakeThread>)> {
        let count = limits.handshake_threads;
        let (mut handles, mut threads) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let requests: Arc<Requests> = Arc::default();
            let thread = HandshakeThread::new(Arc::clone(&requests), Limits::of(limits, count))?;
            handles.push((requests, thread.poller.waker()));
            threads.push(thread);
        }
        Ok((Self { threads: handles.into() }, threads))
    }

    /// Returns handles that end a `wait` of the threads.
    pub(crate) fn wakers(&self) -> impl Iterator<Item = Waker> {
        self.threads.iter().map(|(_, waker)| waker.clone())
    }

    /// Replaces the limits of new handshakes. One that is in progress keeps its deadline and its place.
    pub(crate) fn set_limits(&self, limits: &StreamLimits) {
        let limits = Limits::of(limits, u32::try_from(self.threads.len()).unwrap_or(u32::MAX));
        for (requests, waker) in &*self.threads {
            requests.set_limits(limits);
            waker.wake();
        }
    }

    /// Requests something of the thread of `ticket`.
    fn request(&self, ticket: Ticket, request: impl FnOnce(&Requests)) {
        let threads = self.threads.len() as u64;
        let Some(number) = ticket.serial.checked_rem(threads) else { return };
        let (requests, waker) = &self.threads[number as usize];
        request(requests);
        waker.wake();
    }
}

/// A worker's end: connections leave for their handshake and return.
#[derive(Debug)]
pub(super) struct Handshakes {
    pool: HandshakePool,
    reply: Reply,
    outcomes: Receiver<Outcome>,
}

impl Handshakes {
    pub(super) fn new(pool: HandshakePool, waker: Waker) -> Self {
        let (to, outcomes) = channel();
        Self { pool, reply: Reply { outcomes: to, waker }, outcomes }
    }

    pub(super) fn begin(&self, ticket: Ticket, connection: Connection, source: u128) {
        let begin = Begin { ticket, connection, source, reply: self.reply.clone() };
        self.pool.request(ticket, |requests| requests.begin(begin));
    }

    /// Ends a handshake; it has no outcome, or one that crosses this order.
    pub(super) fn cancel(&self, ticket: Ticket) {
        self.pool.request(ticket, |requests| requests.cancel(ticket));
    }

    pub(super) fn next_outcome(&self) -> Option<Outcome> {
        self.outcomes.try_recv().ok()
    }
}

#[derive(Debug)]
struct Handshake {
    begin: Begin,
    /// Of this thread.
    serial: u64,
    deadline: Instant,
    /// It has a place among those in progress.
    is_begun: bool,
    /// It waits in `ready`.
    is_ready: bool,
    /// It waits for a free place, and takes none from another: else sources would take places from each other for ever.
    is_waiting: bool,
}

/// A thread of handshakes. Sources take turns with every step.
#[derive(Debug)]
pub(crate) struct HandshakeThread {
    requests: Arc<Requests>,
    poller: Poller,
    scratch: Scratch,
    limits: Limits,
    slots: Vec<Option<Handshake>>,
    vacant: Vec<u32>,
    serial: u64,
    tickets: HashMap<Ticket, u32>,
    deadlines: BTreeSet<(Instant, u32)>,
    shares: Shares,
    /// Slots and serials of those that can take a step.
    ready: RoundRobin<(u32, u64)>,
    /// Those that wait for a place.
    waiting: RoundRobin<(u32, u64)>,
}

impl HandshakeThread {
    fn new(requests: Arc<Requests>, limits: Limits) -> io::Result<Self> {
        Ok(Self {
            requests,
            poller: Poller::new(READY_MAX)?,
            scratch: Scratch::default(),
            limits,
            slots: Vec::new(),
            vacant: Vec::new(),
            serial: 0,
            tickets: HashMap::new(),
            deadlines: BTreeSet::new(),
            shares: Shares::default(),
            ready: RoundRobin::default(),
            waiting: RoundRobin::default(),
        })
    }

    /// Runs until the stop flag is set.
    pub(crate) fn run(mut self, certificates: &Certificates, stop: &AtomicBool) {
        // At the priority of the workers handshakes would be a little faster, and Bindings slower.
        let _ = priority::lower(NICENESS);
        while !stop.load(Ordering::Relaxed) {
            self.take_requests();
            let now = Instant::now();
            self.end_late(now);
            let until_deadline = self.deadlines.first().map(|(due, _)| due.saturating_duration_since(now));
            let timeout = if self.ready.is_empty() { until_deadline } else { Some(Duration::ZERO) };
            match self.poller.wait(timeout) {
                Ok(keys) => {
                    let keys = keys.to_vec();
                    keys.into_iter().for_each(|key| self.push_ready(key as u32));
                }
                Err(error) => tracing::error!(%error, "the poller of TLS handshakes failed"),
            }
            if let Some((slot, serial)) = self.ready.pop() {
                self.step(slot, serial, certificates);
            }
        }
    }

    fn take_requests(&mut self) {
        let Taken { limits, begins, cancels } = self.requests.take();
        if let Some(limits) = limits {
            self.limits = limits;
            for _ in self.shares.len()..limits.in_progress_max {
                self.promote();
            }
        }
        begins.into_iter().for_each(|begin| self.insert(begin));
        for ticket in cancels {
            if let Some(&slot) = self.tickets.get(&ticket) {
                drop(self.remove(slot));
                self.promote();
            }
        }
    }

    fn insert(&mut self, begin: Begin) {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.serial += 1;
        let deadline = Instant::now() + self.limits.time;
        self.deadlines.insert((deadline, slot));
        self.tickets.insert(begin.ticket, slot);
        let handshake =
            Handshake { begin, serial: self.serial, deadline, is_begun: false, is_ready: false, is_waiting: false };
        self.slots[slot as usize] = Some(handshake);
        self.push_ready(slot);
    }

    fn push_ready(&mut self, slot: u32) {
        if let Some(handshake) = self.slots.get_mut(slot as usize).and_then(Option::as_mut)
            && !handshake.is_ready
        {
            handshake.is_ready = true;
            self.ready.push(handshake.begin.source, (slot, handshake.serial));
        }
    }

    fn end_late(&mut self, now: Instant) {
        while let Some(&(due, slot)) = self.deadlines.first()
            && due <= now
        {
            self.finish(slot, Err(End::HandshakeDeadline));
            self.promote();
        }
    }

    /// Takes one step of a handshake: at most one signature.
    fn step(&mut self, slot: u32, serial: u64, certificates: &Certificates) {
        let current = self.slots.get_mut(slot as usize).and_then(Option::as_mut);
        let Some(handshake) = current.filter(|handshake| handshake.serial == serial) else { return };
        handshake.is_ready = false;
        if !handshake.is_begun {
            let (source, was_waiting) = (handshake.begin.source, handshake.is_waiting);
            handshake.is_waiting = true;
            if self.shares.len() >= self.limits.in_progress_max && (was_waiting || !self.make_room(source)) {
                self.waiting.push(source, (slot, serial));
                return;
            }
            self.start(slot);
        }
        let Some(handshake) = self.slots[slot as usize].as_mut() else { return };
        let (connection, scratch) = (&mut handshake.begin.connection, &mut self.scratch);
        let step = || connection.shake_hands(certificates.current().as_deref(), scratch);
        let result = match catch_unwind(AssertUnwindSafe(step)) {
            Ok(Ok(HandshakeProgress::Waiting)) => return,
            Ok(Ok(HandshakeProgress::More)) => return self.push_ready(slot),
            Ok(Ok(HandshakeProgress::Done(resumption))) => Ok(resumption),
            Ok(Err(end)) => Err(End::of(end)),
            Err(_) => Err(End::Panic),
        };
        self.finish(slot, result);
        self.promote();
    }

    /// Ends a handshake of the source that has most of them, if `source` has fewer.
    fn make_room(&mut self, source: u128) -> bool {
        let Some(slot) = self.shares.surplus(source) else { return false };
        self.finish(slot, Err(End::HandshakeDisplaced));
        true
    }

    fn start(&mut self, slot: u32) {
        let Some(handshake) = self.slots[slot as usize].as_mut() else { return };
        handshake.is_begun = true;
        self.shares.insert(handshake.begin.source, handshake.serial, slot);
        if let Err(error) = self.poller.add_stream(&handshake.begin.connection, slot.into()) {
            // It ends at its deadline, unless everything has arrived already.
            tracing::error!(%error, "cannot poll a connection during its TLS handshake");
        }
    }

    fn finish(&mut self, slot: u32, result: Result<Resumption, End>) {
        let Some(handshake) = self.remove(slot) else { return };
        let Begin { ticket, mut connection, reply, .. } = handshake.begin;
        if handshake.is_begun {
            // A failure leaves the kernel to remove it when it is closed.
            let _ = self.poller.remove_stream(&connection);
        }
        let result = match result {
            Ok(resumption) => Ok((connection, resumption)),
            Err(end) => {
                connection.close();
                Err(end)
            }
        };
        // A worker that has ended needs no answer.
        let _ = reply.outcomes.send(Outcome { ticket, result });
        reply.waker.wake();
    }

    fn remove(&mut self, slot: u32) -> Option<Handshake> {
        let handshake = self.slots[slot as usize].take()?;
        self.vacant.push(slot);
        self.tickets.remove(&handshake.begin.ticket);
        self.deadlines.remove(&(handshake.deadline, slot));
        self.shares.remove(handshake.begin.source, handshake.serial, slot);
        Some(handshake)
    }

    /// Gives a free place to a handshake that waits.
    fn promote(&mut self) {
        while let Some((slot, serial)) = self.waiting.pop() {
            let waiting = self.slots[slot as usize].as_ref();
            if waiting.is_some_and(|handshake| handshake.serial == serial) {
                self.push_ready(slot);
                break;
            }
        }
    }
}
