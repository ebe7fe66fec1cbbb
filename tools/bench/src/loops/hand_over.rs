//! Events from one thread to another through a queue, each timed from the stamp before the push (or from its intended
//! start) to the stamp after the receiver's work.
//!
//! One run is short, and carries what its figures are judged by: the ping-pong of a cache line before and after, how far
//! the two counters are apart, and what the stamps and the work take on the receiver's core without any queue.

mod one_thread;
mod receive;
mod send;

use crate::machine::{
    Deadline, Jitter, PingPong, Placement, Stall, StallCause, StallWatch, Threads, WatchPlan, middle, on_two_threads,
};
use nix::errno::Errno;
pub use one_thread::{OneThreadRun, on_one_thread};
use receive::{Received, Receiving};
use send::{Sending, Sent};
use std::sync::atomic::AtomicU64;
use tt_meter::{Clock, Scale, Stamp};
use tt_model::{OrderIntent, OrderTerms};
use tt_sync::spsc::{Consumer, Producer};

/// The sending end of a queue.
pub trait Sends: Send {
    /// Appends `terms`; `false` where there is no room.
    fn send(&mut self, terms: OrderTerms) -> bool;
    /// The action of an idle sender to keep the next slot in its cache.
    fn hold_next(&mut self) {}
    /// Called after each event of a loop with one in flight, when its time is over.
    fn settle(&mut self) {}
}

/// The receiving end of a queue.
pub trait Receives: Send {
    /// Takes the oldest event and how many came before it.
    fn receive(&mut self) -> Option<(u64, OrderTerms)>;
    /// Called after each event, when its time is over.
    fn settle(&mut self) {}
}

impl Sends for Producer<OrderTerms> {
    #[inline(always)]
    fn send(&mut self, terms: OrderTerms) -> bool {
        self.push(terms).is_ok()
    }

    #[inline(always)]
    fn hold_next(&mut self) {
        Self::hold_next(self);
    }
}

impl Receives for Consumer<OrderTerms> {
    #[inline(always)]
    fn receive(&mut self) -> Option<(u64, OrderTerms)> {
        self.pop_numbered()
    }
}

/// Where the two stamps of an event come from.
pub trait Stamps: Copy + Send + Sync {
    /// The stamp before the work.
    fn before(self) -> u64;
    /// The stamp after the work.
    fn after(self) -> u64;
}

impl Stamps for Clock {
    #[inline(always)]
    fn before(self) -> u64 {
        self.start().0
    }

    #[inline(always)]
    fn after(self) -> u64 {
        self.end().0
    }
}

/// The producer's action while it has no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Nothing.
    Rests,
    /// Takes the next slot's cache line back time and again ([`Producer::hold_next`]).
    HoldsNext,
}

/// When the next event is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// When the last one is done; an event's time is that of the work alone.
    OneInFlight,
    /// This many a second, whatever became of the last; an event's time counts from when it should have been sent.
    PerSecond(f64),
}

/// Parameters of a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The two threads.
    pub threads: Threads,
    /// Events that are sent and not recorded, first.
    pub warmup: usize,
    /// Events that are recorded.
    pub events: usize,
    /// When the next event is sent.
    pub pace: Pace,
    /// The producer's wait between events.
    pub idle: Idle,
    /// How often stamps and work are timed alone after that; the work is called twice as often once more.
    pub alone: usize,
    /// From here on an event is a stall, in nanoseconds: pinned threads are watched then, and the causes are reported. The
    /// watching is between the looks for an event, which it makes rarer.
    pub watch_ns: Option<u64>,
    /// When the run ends with fewer events, in nanoseconds: threads that share a CPU get nowhere.
    pub time_max_ns: u64,
}

/// The clock of the probes, its scale, and what stamps the events (in the same cycles, unless the caller knows better).
#[derive(Clone, Copy, Debug)]
pub struct Clocks<C> {
    /// Times probes and deadlines.
    pub probe: Clock,
    /// The probes' scale.
    pub scale: Scale,
    /// Stamps the events.
    pub stamps: C,
}

impl Clocks<Clock> {
    /// One clock for both.
    #[must_use]
    pub const fn of(clock: Clock, scale: Scale) -> Self {
        Self { probe: clock, scale, stamps: clock }
    }
}

/// Result of one run.
#[derive(Clone, Debug)]
pub struct HandOver {
    /// Half a round trip of a cache line between the same two threads before the run and after it, in cycles of the
    /// probes' clock; `None` where it took too long: the threads shared a CPU.
    pub ping_pong: [Option<f64>; 2],
    /// How far the cores were apart.
    pub placement: Placement,
    /// How much the receiver's counter was ahead of the sender's before the run, in cycles; 0 for threads that are not
    /// pinned, where it is unknown.
    pub skew_cycles: i64,
    /// One for each recorded event in order, in the stamps' cycles.
    pub cycles: Vec<u64>,
    /// The sum of what the work returned for the recorded events, wrapping.
    pub checksum: u64,
    /// Events that came out of order or not whole; anything but 0 voids the run.
    pub faults: u64,
    /// Whether all events came through in time.
    pub is_complete: bool,
    /// How often the sender found no room.
    pub full: u64,
    /// From the first recorded event's stamp to the last one's end, in the stamps' cycles.
    pub span_cycles: u64,
    /// Stalls that the watches found, if there were any.
    pub watched: Option<Watched>,
    /// Cycles between two consecutive timestamps; 0 if nothing was timed alone.
    pub clock_cycles: f64,
    /// The work alone, in the stamps' cycles: its event at hand, stamps around it that let nothing overlap, their own
    /// share taken off.
    pub work_cycles: f64,
}

impl HandOver {
    /// The mean of the two probes in cycles; `None` where one is missing.
    #[must_use]
    pub fn ping_pong_cycles(&self) -> Option<f64> {
        Some(f64::midpoint(self.ping_pong[0]?, self.ping_pong[1]?))
    }

    /// The median, interpolated within the clock's step ([`middle`]); `None` without events.
    #[must_use]
    pub fn p50_cycles(&self) -> Option<f64> {
        middle(&mut self.cycles.clone())
    }
}

/// Stalls of the threads of a run, and the delayed events.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The sender's core.
    pub sender: Jitter,
    /// The receiver's core.
    pub receiver: Jitter,
    /// Recorded events that took longer than the threshold, in order.
    pub slow: Vec<Slow>,
    /// Recorded events that came while the receiver's watch asked the kernel: how long they took says nothing.
    pub asked: u64,
}

/// An event that took longer than the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slow {
    /// Its number among the recorded ones.
    pub index: usize,
    /// The stamp that its time counts from.
    pub from: Stamp,
    /// The stamp at its end.
    pub to: Stamp,
}

impl Watched {
    /// Returns the cause of `slow`: the stall of either core that covers most of it; `None` without one.
    #[must_use]
    pub fn cause_of(&self, slow: &Slow, scale: Scale) -> Option<StallCause> {
        let covered = |jitter: &Jitter, stall: &Stall| {
            let begin = scale.ns(slow.from.since(jitter.start));
            let end = scale.ns(slow.to.since(jitter.start));
            (stall.at_ns + stall.length_ns).min(end).saturating_sub(stall.at_ns.max(begin))
        };
        let of = |jitter: &Jitter| {
            let covering = jitter.stalls.iter().map(|stall| (covered(jitter, stall), stall.cause));
            covering.filter(|(covered, _)| *covered > 0).max_by_key(|(covered, _)| *covered)
        };
        let (receiver, sender) = (of(&self.receiver), of(&self.sender));
        receiver.into_iter().chain(sender).max_by_key(|(covered, _)| *covered).map(|(_, cause)| cause)
    }
}

/// Stalls of a core that are kept one by one in a run.
const STALLS_MAX: usize = 4_096;

impl Plan {
    /// A watch for the thread that calls, which is the first or the second; `None` where none is wanted or can be had.
    #[inline(never)]
    fn watch(&self, which: usize, clock: Clock, scale: Scale) -> Option<StallWatch> {
        let (cpus, threshold_ns) = self.threads.cpus.zip(self.watch_ns)?;
        let plan = WatchPlan { cpu: cpus[which], threshold_ns, stalls_max: STALLS_MAX };
        StallWatch::new(plan, clock, scale).ok()
    }
}

/// How far the two ends are.
#[derive(Debug)]
struct Progress {
    /// How many events the receiver has finished with; [`u64::MAX`] once it has also measured the times alone.
    done: OwnLine,
    /// How many events there are in all; [`u64::MAX`] until the sender knows.
    last: OwnLine,
}

/// A counter on a separate cache line.
#[derive(Debug)]
#[repr(align(128))]
struct OwnLine(AtomicU64);

/// Sends `orders`, over and over, through the queue that `ends` are of to `work` on the other thread.
///
/// `work` gets the intent numbered by the queue, with the stamp that its time counts from in `ts_ns`.
///
/// # Errors
/// As [`on_two_threads`]; `EINVAL` without orders.
pub fn hand_over<C: Stamps>(
    plan: &Plan,
    orders: &[OrderTerms],
    clocks: Clocks<C>,
    ends: (impl Sends, impl Receives),
    work: impl FnMut(&OrderIntent) -> u64 + Send,
) -> Result<HandOver, Errno> {
    if orders.is_empty() {
        return Err(Errno::EINVAL);
    }
    let (clock, scale) = (clocks.probe, clocks.scale);
    let lines = [PingPong::new(), PingPong::new()];
    let probes = Probes { lines, is_pinned: plan.threads.cpus.is_some(), clock, scale };
    let progress = Progress { done: OwnLine(AtomicU64::new(0)), last: OwnLine(AtomicU64::new(u64::MAX)) };
    let (sender, receiver) = ends;
    let ((before, ahead, sent, after), (received, behind)) = on_two_threads(
        plan.threads,
        || {
            let before = probes.ask(0);
            let ahead = probes.ask_skew();
            probes.answer_skew();
            let sent = Sending { plan, orders, clocks, progress: &progress, sender }.run();
            (before, ahead, sent, probes.ask(1))
        },
        || {
            probes.answer(0);
            probes.answer_skew();
            let behind = probes.ask_skew();
            let received = Receiving { plan, orders, clocks, progress: &progress, receiver, work }.run();
            probes.answer(1);
            (received, behind)
        },
    )?;
    let ns = |cycles: Option<f64>| cycles.map(|cycles| scale.ns_f64(cycles));
    let placement = match (ns(before), ns(after)) {
        (Some(before), Some(after)) => Placement::of(before, after),
        (None, _) | (_, None) => Placement::Moved,
    };
    let Sent { full, jitter: sender } = sent;
    let Received { cycles, checksum, faults, is_complete, span_cycles, alone, slow, asked, jitter: receiver } =
        received;
    let watched = sender.zip(receiver).map(|(sender, receiver)| Watched { sender, receiver, slow, asked });
    Ok(HandOver {
        ping_pong: [before, after],
        placement,
        // Asked both ways, so that the time the answering side takes for its stamp cancels out.
        skew_cycles: (ahead - behind) / 2,
        cycles,
        checksum,
        faults,
        is_complete,
        full,
        span_cycles,
        watched,
        clock_cycles: alone.clock_cycles,
        work_cycles: alone.work_cycles,
    })
}

/// The cache lines of a run's two probes. Threads that are not pinned may share a CPU, where a probe must not wait for
/// its end.
///
/// Its functions are called once a run each, and exist once in the program instead of once for each pair of ends.
#[derive(Debug)]
struct Probes {
    lines: [PingPong; 2],
    is_pinned: bool,
    clock: Clock,
    scale: Scale,
}

/// Time limit of a probe between unpinned threads.
const PROBE_MAX_NS: u64 = 20_000_000;

impl Probes {
    fn deadline(&self) -> Deadline {
        if self.is_pinned { Deadline::NEVER } else { Deadline::after_ns(self.clock, self.scale, PROBE_MAX_NS) }
    }

    #[inline(never)]
    fn ask(&self, which: usize) -> Option<f64> {
        self.lines[which].ask_within(self.deadline(), self.clock)
    }

    #[inline(never)]
    fn answer(&self, which: usize) {
        // Whoever asks gives up as well.
        let _ = self.lines[which].answer_within(self.deadline());
    }

    #[inline(never)]
    fn ask_skew(&self) -> i64 {
        if self.is_pinned { self.lines[0].ask_skew(self.clock) } else { 0 }
    }

    #[inline(never)]
    fn answer_skew(&self) {
        if self.is_pinned {
            self.lines[0].answer_skew(self.clock);
        }
    }
}

#[cfg(test)]
mod tests;
