//! What all runs between two cores have in common.

use std::hint::spin_loop;

use bench::machine::Placement;
use tt_meter::Calibration;
use tt_model::OrderTerms;

/// One run.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    /// The sender's CPU and the receiver's.
    pub(crate) cpus: [usize; 2],
    /// Sent over and over; a power of two of them.
    pub(crate) orders: &'a [OrderTerms],
    pub(crate) calibration: &'a Calibration,
    /// Cycles that the sender sends for.
    pub(crate) cycles: u64,
}

impl Plan<'_> {
    /// The order of event `number`.
    #[inline(always)]
    pub(crate) fn order(&self, number: u64) -> OrderTerms {
        self.orders[number as usize & (self.orders.len() - 1)]
    }
}

/// The ping-pong around a run, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Probes {
    pub(crate) before_ns: f64,
    pub(crate) after_ns: f64,
}

impl Probes {
    pub(crate) fn of(calibration: &Calibration, before: f64, after: f64) -> Self {
        let ns = |cycles| calibration.scale.ns_f64(cycles);
        Self { before_ns: ns(before), after_ns: ns(after) }
    }

    /// `mixed` if the two disagree.
    pub(crate) fn class(self) -> &'static str {
        match Placement::of(self.before_ns, self.after_ns) {
            Placement::Moved => "mixed",
            agreed @ (Placement::Siblings | Placement::SameCache | Placement::AcrossCaches) => agreed.name(),
        }
    }
}

/// How often a sender rests after an event, so that the receiver is waiting again when the next one comes.
const RESTS: u32 = 16;
/// Pauses in one rest.
const PAUSES: u32 = 3;

/// Rests once.
#[inline(always)]
pub(crate) fn rest(sender: &mut impl crate::ends::Sender) {
    sender.rest();
    (0..PAUSES).for_each(|_| spin_loop());
}

/// Rests between two events.
#[inline(always)]
pub(crate) fn rest_long(sender: &mut impl crate::ends::Sender) {
    (0..RESTS).for_each(|_| rest(sender));
}
