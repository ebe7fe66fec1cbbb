//! What happened to an order, and what it adds up to.

use super::settings::RateSettings;
use tt_model::{IntentFlags, IntentKind, OrderSide};

/// Something that happened to an order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fact {
    Reserved { px: i128, qty: i128, trigger: i128 },
    Adopted { px: i128, qty: i128, trigger: i128 },
    SeenInAFill { px: i128, trigger: i128 },
    Live,
    CancelAsked,
    CancelRefused,
    ReplaceAsked { px: i128, qty: i128, trigger: i128, adds: bool },
    ReplaceRefused,
    Replaced { px: i128, qty: i128, trigger: i128 },
    Restated { px: i128, qty: i128, trigger: i128 },
    Reopened { px: i128, qty: i128, trigger: i128 },
    Stated { executed: i128 },
    Executed { id: u128, qty: i128, px: i128, stated: i128 },
    Undone { id: u128 },
    Corrected { id: u128, qty: i128, px: i128 },
    Ended,
    Settled,
}

/// An order with all that happened to it.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) account: u16,
    pub(super) strategy: u16,
    pub(super) instrument: u32,
    pub(super) client_id: u64,
    pub(super) side: OrderSide,
    pub(super) kind: IntentKind,
    pub(super) flags: IntentFlags,
    /// When it was accepted, and the price and quantity that were asked for.
    pub(super) asked: Option<(i128, i64, i64)>,
    pub(super) facts: Vec<(i128, Fact)>,
}

/// An execution, and whether it still counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Execution {
    pub(super) id: u128,
    pub(super) qty: i128,
    pub(super) px: i128,
    pub(super) counts: bool,
}

/// What the facts of an order add up to.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum {
    pub(super) px: i128,
    pub(super) trigger: i128,
    pub(super) qty: i128,
    pub(super) pending: Option<(i128, i128, i128, bool)>,
    pub(super) executions: Vec<Execution>,
    pub(super) stated: i128,
    pub(super) is_open: bool,
    pub(super) is_acknowledged: bool,
    /// Its executions have ended it; the venue has not said so.
    pub(super) is_filled: bool,
    /// Known from fills alone.
    pub(super) is_dim: bool,
    pub(super) cancelled_at: Option<i128>,
    pub(super) gap_since: Option<i128>,
    /// When the id began to be forgotten.
    pub(super) settled_at: Option<i128>,
}

impl Sum {
    pub(super) fn executed(&self) -> i128 {
        self.executions.iter().filter(|execution| execution.counts).map(|execution| execution.qty).sum()
    }

    fn left(&self) -> i128 {
        (self.qty - self.executed()).max(0)
    }

    pub(super) fn gap(&self) -> i128 {
        (self.stated - self.executed()).max(0)
    }

    pub(super) fn reserved(&self) -> i128 {
        match (self.is_open, self.pending) {
            (false, _) => self.gap().min(self.left()),
            (true, None) => self.left(),
            (true, Some((_, qty, _, adds))) => {
                let new = (qty - self.executed()).max(0);
                if adds { self.left() + new } else { self.left().max(new) }
            }
        }
    }

    pub(super) fn find(&self, id: u128) -> Option<&Execution> {
        self.executions.iter().find(|execution| execution.id == id)
    }

    fn add(&mut self, now: i128, fact: Fact) {
        match fact {
            Fact::Reserved { px, qty, trigger } | Fact::Adopted { px, qty, trigger } => {
                (self.px, self.qty, self.trigger, self.is_open) = (px, qty, trigger, true);
                self.is_acknowledged |= matches!(fact, Fact::Adopted { .. });
                self.is_dim = false;
            }
            Fact::SeenInAFill { px, trigger } => (self.px, self.trigger, self.is_dim) = (px, trigger, true),
            Fact::Live => self.is_acknowledged = true,
            Fact::CancelAsked => self.cancelled_at = Some(now),
            Fact::CancelRefused => self.cancelled_at = None,
            Fact::ReplaceAsked { px, qty, trigger, adds } => self.pending = Some((px, qty, trigger, adds)),
            Fact::ReplaceRefused => self.pending = None,
            Fact::Replaced { px, qty, trigger } => {
                (self.px, self.qty, self.trigger, self.pending) = (px, qty, trigger, None);
            }
            Fact::Restated { px, qty, trigger } => (self.px, self.qty, self.trigger) = (px, qty, trigger),
            Fact::Reopened { px, qty, trigger } => {
                (self.px, self.qty, self.trigger) = (px, qty, trigger);
                (self.is_open, self.is_filled, self.settled_at) = (true, false, None);
            }
            Fact::Stated { executed } => self.stated = self.stated.max(executed),
            Fact::Executed { id, qty, px, stated } => {
                self.executions.push(Execution { id, qty, px, counts: true });
                self.stated = self.stated.max(stated);
                self.is_acknowledged = true;
                if self.is_dim {
                    self.qty = self.executed();
                }
            }
            Fact::Undone { id } => {
                let execution = self.executions.iter_mut().find(|execution| execution.id == id);
                let execution = execution.expect("only executions of the order are undone");
                execution.counts = false;
                let qty = execution.qty;
                self.qty = (self.qty - qty).max(self.executed());
                self.stated = (self.stated - qty).max(0);
                if let Some(pending) = &mut self.pending {
                    pending.1 -= qty;
                }
            }
            Fact::Corrected { id, qty, px } => {
                self.executions.push(Execution { id, qty, px, counts: true });
                self.qty += qty;
                self.stated += qty;
                if let Some(pending) = &mut self.pending {
                    pending.1 += qty;
                }
            }
            Fact::Ended => {
                // The venue may have worked the terms of a replace that it answers after the end.
                self.qty = self.qty.max(self.pending.map_or(0, |(_, qty, ..)| qty));
                (self.is_open, self.is_dim, self.is_filled) = (false, false, false);
                (self.pending, self.cancelled_at) = (None, None);
            }
            Fact::Settled => {
                self.stated = self.executed();
                self.is_dim = false;
            }
        }
        // An order of which nothing is left ends, unless a replace may still enlarge it.
        let may_end = matches!(
            fact,
            Fact::Executed { .. } | Fact::ReplaceRefused | Fact::Replaced { .. } | Fact::Restated { .. }
        );
        if may_end && self.is_open && self.left() == 0 && self.pending.is_none() {
            (self.is_open, self.is_filled, self.cancelled_at) = (false, true, None);
        }
        self.gap_since = if self.gap() == 0 { None } else { self.gap_since.or(Some(now)) };
        let is_settled = !self.is_open && self.gap() == 0 && !self.is_dim;
        if is_settled && self.settled_at.is_none() {
            self.settled_at = Some(now);
        }
    }
}

impl Life {
    pub(super) fn sum(&self) -> Sum {
        let mut sum = Sum::default();
        for (now, fact) in &self.facts {
            sum.add(*now, *fact);
        }
        sum
    }

    /// Prices at which the order rests.
    pub(super) fn resting(&self) -> Vec<i128> {
        let sum = self.sum();
        if !sum.is_open || self.kind == IntentKind::MARKET || self.kind == IntentKind::STOP_MARKET {
            return Vec::new();
        }
        [Some(sum.px), sum.pending.map(|pending| pending.0)].into_iter().flatten().collect()
    }
}

/// A rate with the time at which the next message is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    pub(super) rate: RateSettings,
    pub(super) due: i128,
}

impl Schedule {
    fn interval(&self) -> i128 {
        (1_000_000_000 + self.rate.per_second - 1) / self.rate.per_second.max(1)
    }

    pub(super) fn is_over(&self, now: i128) -> bool {
        let is_closed = self.rate.per_second == 0 || self.rate.burst == 0;
        is_closed || self.due.max(now) + self.interval() - now > self.interval() * self.rate.burst
    }

    pub(super) fn count(&mut self, now: i128) {
        let interval = if self.rate.per_second == 0 || self.rate.burst == 0 { 1 } else { self.interval() };
        self.due = self.due.max(now) + interval;
    }
}
