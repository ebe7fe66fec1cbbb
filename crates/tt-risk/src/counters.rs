//! Counts of verdicts and reports.

use crate::outcome::Outcome;
use tt_model::Breach;

/// Counts of verdicts and reports. Each intent counts once: as accepted, or under the lowest bit that rejected it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// By the lowest bit that rejected; index 64 counts accepted intents.
    by_first_bit: [u64; 128],
    intents: u64,
    /// By outcome.
    pub(crate) reports: [u64; Outcome::NAMES.len()],
}

impl Counters {
    pub(crate) const ZERO: Self = Self { by_first_bit: [0; 128], intents: 0, reports: [0; Outcome::NAMES.len()] };

    /// Counts an intent; returns its number, from 1.
    #[inline(always)]
    pub(crate) fn count(&mut self, first_bit: u32) -> u64 {
        self.by_first_bit[(first_bit & 127) as usize] += 1;
        self.intents += 1;
        self.intents
    }

    /// Returns the number of intents: [`accepted`](Self::accepted) plus [`rejected`](Self::rejected).
    #[must_use]
    pub const fn intents(&self) -> u64 {
        self.intents
    }

    /// Returns the number of accepted intents.
    #[must_use]
    pub const fn accepted(&self) -> u64 {
        self.by_first_bit[64]
    }

    /// Returns the number of rejected intents: the sum of [`by_reason`](Self::by_reason).
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.by_reason().map(|(_, count)| count).sum()
    }

    /// Returns the number of reports with `outcome`.
    #[must_use]
    pub const fn reports(&self, outcome: Outcome) -> u64 {
        self.reports[outcome as usize]
    }

    /// Returns each reason with the number of intents of which it is the lowest rejecting bit.
    pub fn by_reason(&self) -> impl Iterator<Item = (Breach, u64)> {
        self.by_first_bit[..64].iter().enumerate().map(|(bit, count)| (Breach(1 << bit), *count))
    }
}

crate::fields::visit!(Counters: by_first_bit, intents, reports);
