//! What happened to an order, and what it adds up to.

use super::settings::RateSettings;
use tt_model::{IntentFlags, IntentKind, OrderSide};

/// Something that happened to an order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fact {
    Reserved {
        px: i128,
        qty: i128,
        trigger: i128,
    },
    Adopted {
        px: i128,
        qty: i128,
        trigger: i128,
        at: u64,
    },
    SeenInAFill {
        px: i128,
        trigger: i128,
    },
    Live,
    CancelAsked,
    CancelRefused,
    ReplaceAsked {
        px: i128,
        qty: i128,
        trigger: i128,
        adds: bool,
    },
    ReplaceRefused,
    Replaced {
        px: i128,
        qty: i128,
        trigger: i128,
        at: u64,
    },
    Restated {
        px: i128,
        qty: i128,
        trigger: i128,
        at: u64,
    },
    Reopened {
        px: i128,
        qty: i128,
        trigger: i128,
        at: u64,
    },
    /// An order of which only executions are known ends.
    Totalled {
        qty: i128,
    },
    Stated {
        executed: i128,
    },
    Executed {
        id: u128,
        qty: i128,
        px: i128,
        stated: i128,
    },
    Undone {
        id: u128,
        at: u64,
    },
    Corrected {
        id: u128,
        qty: i128,
        px: i128,
        old: i128,
        at: u64,
    },
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
    pub(super) claims: Claims,
    pub(super) cancelled_at: Option<i128>,
    pub(super) gap_since: Option<i128>,
    /// When the id began to be forgotten.
    pub(super) settled_at: Option<i128>,
}

/// What the venue has stated of the order of its changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims {
    /// Versions of terms, and of busts and corrections: 0 without one, `u64::MAX` of a query.
    terms: Vec<u64>,
    undone: Vec<u64>,
    /// Versions of what made the quantity larger.
    larger: Vec<u64>,
    /// Lots that corrections have added since the last terms that are surely later.
    since: i128,
}

/// Of two versions, whether the first is later; no version and a query cannot be compared.
fn numbered(version: u64) -> Option<u64> {
    (version != 0 && version != u64::MAX).then_some(version)
}

impl Claims {
    fn last(of: &[u64]) -> u64 {
        of.iter().filter_map(|version| numbered(*version)).max().unwrap_or(0)
    }

    /// Whether terms of this version are surely those of now.
    fn is_now(&self, at: u64, is_asked: bool) -> bool {
        match numbered(at) {
            _ if at == u64::MAX => true,
            // Without a version, as long as the order has only become smaller.
            None => self.since == 0 && (is_asked || self.larger.is_empty()),
            Some(at) => {
                let is_last = at > Self::last(&self.terms) && at > Self::last(&self.undone);
                is_last && self.larger.iter().all(|version| numbered(*version).is_some())
            }
        }
    }

    /// The quantity of an order of `kept` lots of which a report of this version states `qty`; `None`: as before.
    pub(super) fn total(&self, at: u64, kept: i128, qty: i128, is_asked: bool) -> Option<i128> {
        if self.is_before(at) {
            return None;
        }
        if self.is_now(at, is_asked) {
            return Some(qty);
        }
        let most = qty + self.since;
        (is_asked || most >= kept).then_some(most)
    }

    /// The most that the order can be of where the venue says `qty`: what corrections have added since comes on top.
    pub(super) fn most(&self, at: u64, qty: i128) -> i128 {
        if qty > 0 && !self.is_now(at, false) { qty + self.since } else { qty }
    }

    /// Whether terms of this version are surely older than those that are known.
    pub(super) fn is_before(&self, at: u64) -> bool {
        numbered(at).is_some_and(|at| at < Self::last(&self.terms))
    }

    /// Whether a report that states `qty` may answer a replace by `asked`.
    pub(super) fn may_answer(&self, at: u64, qty: i128, asked: i128) -> bool {
        let is_later = at > Self::last(&self.terms);
        let is_enough = qty == 0 || qty + self.since >= asked;
        is_later || (is_enough && !self.is_before(at))
    }

    fn state(&mut self, at: u64, kept: i128, qty: i128, is_asked: bool) {
        let is_now = self.is_now(at, is_asked);
        self.since = if is_now { 0 } else { self.since };
        self.terms.push(at);
        if qty > kept {
            self.larger.push(at);
        }
    }

    /// Whether the terms include a bust or a correction of this version: no, perhaps, yes.
    fn includes(&self, at: u64) -> [bool; 2] {
        let is_any = !self.terms.is_empty();
        let is_blind = self.terms.iter().any(|version| numbered(*version).is_none());
        match numbered(at) {
            None => [is_any, false],
            Some(at) => {
                let last = Self::last(&self.terms);
                [at <= last || is_blind, at < last]
            }
        }
    }
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

    /// An execution was taken back, by a report of the version `at`.
    fn undo(&mut self, id: u128, at: u64) {
        let execution = self.executions.iter_mut().find(|execution| execution.id == id);
        let execution = execution.expect("only executions of the order are undone");
        execution.counts = false;
        let qty = execution.qty;
        let [may_include, _] = self.claims.includes(at);
        if !may_include {
            self.qty = (self.qty - qty).max(self.executed());
        }
        self.claims.undone.push(at);
        self.stated = (self.stated - qty).max(0);
    }

    /// An execution of `old` lots became one of `qty`, by a report of the version `at`.
    fn correct(&mut self, qty: i128, old: i128, at: u64) {
        let more = (qty - old).max(0);
        self.qty += match self.claims.includes(at) {
            [false, _] => qty,
            [true, false] => more,
            [true, true] => 0,
        };
        if !self.claims.includes(at)[1] {
            self.claims.since += more;
            self.claims.larger.extend((more > 0).then_some(at));
        }
        if let Some(pending) = &mut self.pending {
            pending.1 += more;
        }
    }

    fn add(&mut self, now: i128, fact: Fact) {
        match fact {
            Fact::Reserved { px, qty, trigger } => {
                (self.px, self.qty, self.trigger, self.is_open) = (px, qty, trigger, true);
            }
            Fact::Adopted { px, qty, trigger, at } => {
                self.claims.state(at, if self.is_dim { self.qty } else { qty }, qty, false);
                (self.px, self.qty, self.trigger, self.is_open) = (px, qty, trigger, true);
                (self.is_acknowledged, self.is_dim) = (true, false);
            }
            Fact::SeenInAFill { px, trigger } => (self.px, self.trigger, self.is_dim) = (px, trigger, true),
            Fact::Live => self.is_acknowledged = true,
            Fact::CancelAsked => self.cancelled_at = Some(now),
            Fact::CancelRefused => self.cancelled_at = None,
            Fact::ReplaceAsked { px, qty, trigger, adds } => self.pending = Some((px, qty, trigger, adds)),
            Fact::ReplaceRefused => self.pending = None,
            Fact::Replaced { px, qty, trigger, at } => {
                self.claims.state(at, self.qty, qty, true);
                (self.px, self.qty, self.trigger, self.pending) = (px, qty, trigger, None);
            }
            Fact::Restated { px, qty, trigger, at } => {
                self.claims.state(at, self.qty, qty, false);
                (self.px, self.qty, self.trigger) = (px, qty, trigger);
            }
            Fact::Totalled { qty } => self.qty = qty,
            Fact::Reopened { px, qty, trigger, at } => {
                self.claims.state(at, self.qty, qty, false);
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
            Fact::Undone { id, at } => self.undo(id, at),
            // The fact before has undone the old execution.
            Fact::Corrected { id, qty, px, old, at } => {
                self.executions.push(Execution { id, qty, px, counts: true });
                self.stated += qty;
                self.correct(qty, old, at);
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
        self.settle(now, may_end);
    }

    fn settle(&mut self, now: i128, may_end: bool) {
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
