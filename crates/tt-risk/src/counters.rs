//! What became of the intents.

use tt_model::Breach;

/// Counts of verdicts. Every intent is counted once: as accepted, or under the first reason that refused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// By the lowest bit that refused; bit 64 stands for none.
    by_first_bit: [u64; 128],
    intents: u64,
    pub(crate) ids_full: u64,
    pub(crate) own_orders_full: u64,
}

impl Counters {
    pub(crate) const ZERO: Self = Self { by_first_bit: [0; 128], intents: 0, ids_full: 0, own_orders_full: 0 };

    /// Returns the intent's number, from 1.
    #[inline(always)]
    pub(crate) fn count(&mut self, first_bit: u32) -> u64 {
        self.by_first_bit[(first_bit & 127) as usize] += 1;
        self.intents += 1;
        self.intents
    }

    /// Intents evaluated: [`accepted`](Self::accepted) plus [`refused`](Self::refused).
    #[must_use]
    pub const fn intents(&self) -> u64 {
        self.intents
    }

    /// Intents accepted.
    #[must_use]
    pub const fn accepted(&self) -> u64 {
        self.by_first_bit[64]
    }

    /// Intents refused: the sum of [`by_reason`](Self::by_reason).
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.by_reason().map(|(_, count)| count).sum()
    }

    /// Orders whose client id found no room among those of its account: refused with `DUP_ID` where that is enabled, not
    /// remembered where it is not.
    #[must_use]
    pub const fn ids_full(&self) -> u64 {
        self.ids_full
    }

    /// Orders that found no room among the account's own in the instrument: refused with `SELF_MATCH` where that is
    /// enabled; where it is not, that reason is found from then on.
    #[must_use]
    pub const fn own_orders_full(&self) -> u64 {
        self.own_orders_full
    }

    /// Each reason and how many intents it was the first to refuse.
    pub fn by_reason(&self) -> impl Iterator<Item = (Breach, u64)> {
        self.by_first_bit[..64].iter().enumerate().map(|(bit, count)| (Breach(1 << bit), *count))
    }
}
