//! The sender's thread.

use super::{Clocks, Idle, Pace, Plan, Progress, Sends, Stamps};
use crate::machine::{Deadline, Jitter, StallWatch};
use std::hint::{black_box, spin_loop};
use std::sync::atomic::Ordering;
use tt_model::OrderTerms;

/// Rests between an event's end and the next event, so that the receiver is waiting again when it comes.
pub(super) const RESTS: u32 = 16;
/// Pauses in one rest.
pub(super) const PAUSES: u32 = 3;
/// From the start of an open loop to its first event, in nanoseconds.
const LEAD_NS: f64 = 10_000.0;

pub(super) struct Sending<'a, C, S> {
    pub(super) plan: &'a Plan,
    pub(super) orders: &'a [OrderTerms],
    pub(super) clocks: Clocks<C>,
    pub(super) progress: &'a Progress,
    pub(super) sender: S,
}

pub(super) struct Sent {
    /// How often there was no room.
    pub(super) full: u64,
    /// Stalls of this thread, if it was watched.
    pub(super) jitter: Option<Jitter>,
}

impl<C: Stamps, S: Sends> Sending<'_, C, S> {
    /// Sends, and rests until the receiver has measured the times alone, as it does between events.
    pub(super) fn run(mut self) -> Sent {
        let mut watch = self.plan.watch(0, self.clocks.probe, self.clocks.scale);
        let deadline = self.deadline(self.plan.time_max_ns);
        let (sent, full) = match self.plan.pace {
            Pace::OneInFlight => (self.one_in_flight(deadline, &mut watch), 0),
            Pace::PerSecond(rate) => self.open(rate, deadline),
        };
        self.progress.last.0.store(sent, Ordering::Release);
        let jitter = watch.map(StallWatch::finish);
        let _ = self.await_done(u64::MAX, self.deadline(self.plan.time_max_ns), &mut None);
        Sent { full, jitter }
    }

    fn deadline(&self, ns: u64) -> Deadline {
        Deadline::after_ns(self.clocks.probe, self.clocks.scale, ns)
    }

    fn one_in_flight(&mut self, deadline: Deadline, watch: &mut Option<StallWatch>) -> u64 {
        let mut sent = 0;
        for terms in self.orders.iter().cycle().take(self.plan.warmup + self.plan.events) {
            let mut terms = black_box(*terms);
            terms.ts_ns = self.clocks.stamps.before();
            // One event is in flight at a time, so there is room.
            let _ = self.sender.send(terms);
            sent += 1;
            if self.await_done(sent, deadline, watch).is_none() || deadline.is_over() {
                break;
            }
            self.sender.settle();
            for _ in 0..RESTS {
                self.rest(watch);
            }
        }
        sent
    }

    /// Every event's stamp is when it should be sent. An event for which there is no room waits, and its time goes on.
    fn open(&mut self, rate_per_s: f64, deadline: Deadline) -> (u64, u64) {
        let stamps = self.clocks.stamps;
        let cycles_per_s = self.clocks.scale.cycles_per_s();
        let interval = cycles_per_s / rate_per_s;
        let begin = stamps.before() + (cycles_per_s * LEAD_NS / 1e9) as u64;
        let (mut sent, mut full) = (0_u64, 0);
        for terms in self.orders.iter().cycle().take(self.plan.warmup + self.plan.events) {
            let mut terms = black_box(*terms);
            terms.ts_ns = begin + (sent as f64 * interval) as u64;
            while stamps.before() < terms.ts_ns {
                if self.plan.idle == Idle::HoldsNext {
                    self.sender.hold_next();
                }
            }
            while !self.sender.send(terms) {
                full += 1;
                if deadline.is_over() {
                    return (sent, full);
                }
            }
            sent += 1;
            if sent % 1024 == 0 && deadline.is_over() {
                break;
            }
        }
        (sent, full)
    }

    fn await_done(&mut self, count: u64, deadline: Deadline, watch: &mut Option<StallWatch>) -> Option<()> {
        let progress = self.progress;
        deadline.spin_until(|| {
            let is_done = progress.done.0.load(Ordering::Acquire) >= count;
            if !is_done {
                self.rest(watch);
            }
            is_done
        })
    }

    #[inline(always)]
    fn rest(&mut self, watch: &mut Option<StallWatch>) {
        if let Some(watch) = watch {
            watch.observe(self.clocks.probe.end());
        }
        match self.plan.idle {
            Idle::Rests => {}
            Idle::HoldsNext => self.sender.hold_next(),
        }
        for _ in 0..PAUSES {
            spin_loop();
        }
    }
}
