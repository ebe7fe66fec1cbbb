//! The receiver's thread.

use super::{Clocks, Plan, Progress, Receives, Slow, Stamps};
use crate::machine::{Deadline, Jitter, StallWatch, middle};
use std::hint::black_box;
use std::sync::atomic::Ordering;
use tt_meter::Stamp;
use tt_model::{OrderIntent, OrderTerms};

/// Polls of the queue between two words to a watch.
const POLLS_WATCHED: u32 = 16;
/// Cycles from which on a watch has asked the kernel.
const ASKING_MIN: u64 = 500;
/// Slow events that there is room for from the beginning.
const SLOW: usize = 4_096;
/// Polls of the queue between two looks at what else there is to know.
const POLLS: u32 = 4096;

pub(super) struct Receiving<'a, C, R, W> {
    pub(super) plan: &'a Plan,
    pub(super) orders: &'a [OrderTerms],
    pub(super) clocks: Clocks<C>,
    pub(super) progress: &'a Progress,
    pub(super) receiver: R,
    pub(super) work: W,
}

pub(super) struct Received {
    pub(super) cycles: Vec<u64>,
    pub(super) checksum: u64,
    pub(super) faults: u64,
    pub(super) is_complete: bool,
    pub(super) span_cycles: u64,
    pub(super) alone: Alone,
    pub(super) slow: Vec<Slow>,
    pub(super) asked: u64,
    pub(super) jitter: Option<Jitter>,
}

/// Parts of an event's time without any queue, in the stamps' cycles.
pub(super) struct Alone {
    pub(super) clock_cycles: f64,
    pub(super) work_cycles: f64,
}

impl Alone {
    /// The medians of pairs of stamps, of fenced ones, and of the work between fenced ones.
    #[inline(never)]
    fn of(readings: [Vec<u64>; 3]) -> Self {
        let [bare, fenced, worked] = readings.map(|mut readings| middle(&mut readings).unwrap_or(0.0));
        Self { clock_cycles: bare, work_cycles: worked - fenced }
    }
}

impl<C: Stamps, R: Receives, W: FnMut(&OrderIntent) -> u64> Receiving<'_, C, R, W> {
    pub(super) fn run(mut self) -> Received {
        // Written, so that every page is there before the first event.
        let mut received = Received {
            cycles: vec![u64::MAX; self.plan.events],
            checksum: 0,
            faults: 0,
            is_complete: true,
            span_cycles: 0,
            alone: Alone { clock_cycles: 0.0, work_cycles: 0.0 },
            slow: Vec::with_capacity(SLOW),
            asked: 0,
            jitter: None,
        };
        let mut watch = self.plan.watch(1, self.clocks.probe, self.clocks.scale);
        let total = (self.plan.warmup + self.plan.events) as u64;
        let taken = self.receive(total, &mut received, &mut watch);
        received.jitter = watch.map(StallWatch::finish);
        received.is_complete = taken == total;
        received.cycles.truncate((taken as usize).saturating_sub(self.plan.warmup));
        received.alone = self.alone();
        self.progress.done.0.store(u64::MAX, Ordering::Release);
        received
    }

    /// Takes events until there are `total`, or the sender says that no more come, or time is over; how many.
    fn receive(&mut self, total: u64, received: &mut Received, watch: &mut Option<StallWatch>) -> u64 {
        let Clocks { probe, scale, stamps } = self.clocks;
        let slow = self.plan.watch_ns.map_or(u64::MAX, |ns| (ns as f64 * scale.cycles_per_s() / 1e9) as u64);
        let deadline = Deadline::after_ns(probe, scale, self.plan.time_max_ns.saturating_mul(2));
        let warmup = self.plan.warmup as u64;
        let mut first_stamp = 0;
        let mut taken = 0;
        for expected in self.orders.iter().cycle() {
            if taken == total {
                break;
            }
            let mut asked_until = Stamp(0);
            let next = match watch {
                None => self.next(taken, deadline),
                Some(watch) => self.next_watched(taken, deadline, watch, &mut asked_until),
            };
            let Some((number, terms)) = next else { break };
            let intent = terms.numbered(number);
            let result = black_box((self.work)(&intent));
            let end = stamps.after();
            let whole = OrderTerms { ts_ns: expected.ts_ns, ..terms } == *expected && number == taken;
            received.faults += u64::from(!whole);
            if let Some(index) = taken.checked_sub(warmup) {
                received.cycles[index as usize] = end.saturating_sub(intent.ts_ns);
                received.checksum = received.checksum.wrapping_add(result);
                first_stamp = if index == 0 { intent.ts_ns } else { first_stamp };
                received.span_cycles = end.saturating_sub(first_stamp);
                if intent.ts_ns < asked_until.0 {
                    received.asked += 1;
                } else if received.cycles[index as usize] > slow {
                    let (from, to) = (Stamp(intent.ts_ns), Stamp(end));
                    received.slow.push(Slow { index: index as usize, from, to });
                }
            }
            if let Some(watch) = watch {
                watch.observe(probe.end());
            }
            taken += 1;
            self.receiver.settle();
            self.progress.done.0.store(taken, Ordering::Release);
        }
        taken
    }

    /// The next event; `None` when no more come after `taken` of them, or the deadline came first.
    #[inline(always)]
    fn next(&mut self, taken: u64, deadline: Deadline) -> Option<(u64, OrderTerms)> {
        loop {
            for _ in 0..POLLS {
                if let Some(event) = self.receiver.receive() {
                    return Some(event);
                }
            }
            if self.progress.last.0.load(Ordering::Acquire) <= taken || deadline.is_over() {
                return None;
            }
        }
    }

    /// As [`next`](Self::next), and reports to `watch` between polls that the thread runs; `asked_until` is when it last was done
    /// asking the kernel, which keeps an event that comes meanwhile.
    fn next_watched(
        &mut self,
        taken: u64,
        deadline: Deadline,
        watch: &mut StallWatch,
        asked_until: &mut Stamp,
    ) -> Option<(u64, OrderTerms)> {
        loop {
            for _ in 0..POLLS_WATCHED {
                if let Some(event) = self.receiver.receive() {
                    return Some(event);
                }
            }
            let before = self.clocks.probe.end();
            let is_stall = watch.observe(before);
            if is_stall || self.clocks.probe.end().since(before) > ASKING_MIN {
                *asked_until = self.clocks.probe.end();
            }
            if self.progress.last.0.load(Ordering::Acquire) <= taken || deadline.is_over() {
                return None;
            }
        }
    }

    /// Times the stamps and the work with nothing to wait for, while the sender rests as it does between two events.
    ///
    /// The event is at hand, and the stamps around the work let nothing overlap with it.
    fn alone(&mut self) -> Alone {
        let stamps = self.clocks.stamps;
        let (mut bare, mut fenced, mut worked) = (Vec::new(), Vec::new(), Vec::new());
        for terms in self.orders.iter().cycle().take(self.plan.alone) {
            let intent = black_box(terms.numbered(0));
            let (start, end) = (stamps.before(), stamps.after());
            bare.push(end.saturating_sub(start));
            let (start, end) = (stamps.after(), stamps.after());
            fenced.push(end.saturating_sub(start));
            let start = stamps.after();
            black_box((self.work)(&intent));
            worked.push(stamps.after().saturating_sub(start));
        }
        Alone::of([bare, fenced, worked])
    }
}
