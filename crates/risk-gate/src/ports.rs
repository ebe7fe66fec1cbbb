//! The caller's ends of the gate's rings.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use tt_model::{OrderIntent, Report, Verdict};
use tt_sync::seqlock::Writer;
use tt_sync::spsc::{Consumer, Full, Producer};
use tt_sync::wait::{Park, RingEnd as _, WaitStrategy as _};

use crate::dead_man::Beats;
use crate::sender::Sender;

/// Polls of an empty ring before a thread sleeps.
pub(crate) const POLLS: u32 = 64;

/// Longest sleep at a ring. Events that do not wake the sleeper wait at most this long.
const SLEEP_MAX: Duration = Duration::from_millis(50);

/// The strategy of every thread that waits at one of the gate's rings.
pub(crate) type RingWait = Park<fn(&AtomicU32, u32), fn(&AtomicU32)>;

pub(crate) fn ring_wait() -> RingWait {
    Park { polls: POLLS, sleep: sleep_at_most, wake: tt_os::futex::wake }
}

fn sleep_at_most(word: &AtomicU32, value: u32) {
    // After a time-out the caller looks at its rings again, as after a wake-up.
    let _ = tt_os::futex::sleep_at_most(word, value, SLEEP_MAX);
}

/// The caller's ends of the gate's rings. Each can move to its own thread.
#[derive(Debug)]
pub struct Ports {
    /// Sends intents to the gate. The gate ends when this is dropped.
    pub intents: IntentSender,
    /// Sends the venue's reports to the gate.
    pub reports: ReportSender,
    /// Receives a verdict for each intent, in order. While its ring is full, the gate evaluates nothing.
    pub verdicts: VerdictReceiver,
    /// Receives the cancels of operators and of the dead man's switch, for [`Sender::cancel`].
    pub cancels: CancelReceiver,
    /// Write accepted intents to the wire, one for each of [`GateConfig::senders`](crate::GateConfig::senders).
    pub senders: Vec<Sender>,
}

/// The producer of the ring of intents.
#[derive(Debug)]
pub struct IntentSender {
    ring: Producer<OrderIntent>,
    wait: RingWait,
    /// Intents pushed, and pushes into a full ring.
    counts: [u64; 2],
    published: Writer<2>,
    beats: Beats,
}

impl IntentSender {
    pub(crate) fn new(ring: Producer<OrderIntent>, published: Writer<2>, beats: Beats) -> Self {
        Self { ring, wait: ring_wait(), counts: [0; 2], published, beats }
    }

    /// Says that the producer lives, for the [`DeadMan`](crate::DeadMan) switch. An intent says so too.
    pub fn beat(&self) {
        // Only this thread adds.
        self.beats.store(self.beats.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Numbers `intent`, pushes it and wakes the gate's thread.
    ///
    /// # Errors
    /// [`Full`] with the intent; the gate does not evaluate it, and the next one has its number.
    pub fn send(&mut self, intent: OrderIntent) -> Result<(), Full<OrderIntent>> {
        self.beat();
        let intent = OrderIntent { seq: self.counts[0] + 1, ..intent };
        let pushed = self.ring.push(intent);
        self.counts[usize::from(pushed.is_err())] += 1;
        self.published.store(&self.counts);
        self.wait.wake(self.ring.other_wake_word());
        pushed
    }
}

impl Drop for IntentSender {
    fn drop(&mut self) {
        self.ring.close();
        self.wait.wake(self.ring.other_wake_word());
    }
}

/// The producer of the ring of reports.
#[derive(Debug)]
pub struct ReportSender {
    ring: Producer<Report>,
}

impl ReportSender {
    pub(crate) const fn new(ring: Producer<Report>) -> Self {
        Self { ring }
    }

    /// Pushes `report`. The gate applies it before the next intent, and at most 50 ms later if there is none.
    ///
    /// # Errors
    /// [`Full`]; the gate does not apply the report.
    pub fn send(&mut self, report: Report) -> Result<(), Full<()>> {
        self.ring.push(report).map_err(|_| Full(()))
    }

    /// Returns whether the ring is full.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.ring.occupancy() >= self.ring.capacity()
    }
}

/// Cancels that no producer has requested.
#[derive(Debug)]
pub struct CancelReceiver(Receiver<OrderIntent>);

impl CancelReceiver {
    pub(crate) const fn new(received: Receiver<OrderIntent>) -> Self {
        Self(received)
    }

    /// Returns the oldest cancel, if there is one. The caller keeps to the venue's rates.
    #[must_use]
    pub fn poll(&self) -> Option<OrderIntent> {
        self.0.try_recv().ok()
    }
}

/// The consumer of the ring of verdicts.
#[derive(Debug)]
pub struct VerdictReceiver {
    ring: Consumer<Verdict>,
    wait: RingWait,
}

impl VerdictReceiver {
    pub(crate) fn new(ring: Consumer<Verdict>) -> Self {
        Self { ring, wait: ring_wait() }
    }

    /// Returns the oldest verdict, if there is one.
    pub fn poll(&mut self) -> Option<Verdict> {
        let verdict = self.ring.pop();
        self.made_room(verdict.is_some());
        verdict
    }

    /// Sleeps until there is a verdict and returns it; `None` once the gate has ended and all verdicts were returned.
    pub fn wait(&mut self) -> Option<Verdict> {
        let verdict = self.wait.wait(&mut self.ring, |ring| match ring.pop() {
            Some(verdict) => Some(Some(verdict)),
            // The last verdicts may have been pushed after the first look.
            None if ring.is_abandoned() => Some(ring.pop()),
            None => None,
        });
        self.made_room(verdict.is_some());
        verdict
    }

    /// The gate may wait for room.
    fn made_room(&self, has_popped: bool) {
        if has_popped {
            self.wait.wake(self.ring.other_wake_word());
        }
    }
}
