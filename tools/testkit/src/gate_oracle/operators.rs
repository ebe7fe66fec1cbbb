//! What operators, restarts and full tables change.

use super::{
    history::{LOTS_MAX, Oracle},
    life::{Fact, Life, Schedule},
    settings::{RateSettings, Settings},
};
use tt_model::{OrderIntent, OrderSide};

impl Oracle {
    /// Replaces all limits. Positions, orders and what rates have counted stay.
    pub fn load(&mut self, settings: Settings) {
        let set = |schedule: &mut Schedule, rate: &RateSettings| schedule.rate = *rate;
        self.account_rates.iter_mut().zip(&settings.account_rates).for_each(|(of, rate)| set(of, rate));
        self.instrument_rates.iter_mut().zip(&settings.instruments).for_each(|(of, new)| set(of, &new.rate));
        set(&mut self.global_rate, &settings.global_rate);
        for rates in &mut self.strategy_rates {
            rates.iter_mut().zip(&settings.strategies).for_each(|(of, new)| set(of, &new.rate));
        }
        self.refusals.iter_mut().for_each(|of| set(of, &settings.refusal_rate));
        self.settings = settings;
    }

    /// The gate was started again: everything is in doubt.
    pub fn doubt_all(&mut self) {
        self.doubts.fill(true);
    }

    /// A producer continues behind a number.
    pub fn resume(&mut self, producer: u16, last_seq: u64) {
        if let Some(next) = self.next_seqs.get_mut(usize::from(producer)) {
            *next = last_seq + 1;
        }
    }

    /// A number of a producer was used without a judgement; returns whether it was the next one.
    pub fn skip(&mut self, producer: u16, seq: u64) -> bool {
        let next = self.next_seqs.get_mut(usize::from(producer)).filter(|next| **next == seq);
        next.map(|next| *next += 1).is_some()
    }

    /// An intent was refused without a judgement.
    pub fn refuse_unjudged(&mut self, now: u64, producer: u16) {
        self.refuse(now.into(), producer);
    }

    /// A producer's refusals, as a journal has them.
    pub fn set_refusals(&mut self, producer: u16, due_ns: u64) {
        if let Some(refusals) = self.refusals.get_mut(usize::from(producer)) {
            refusals.due = due_ns.into();
        }
    }

    /// Says whether there is no room for another order.
    pub const fn set_full(&mut self, is_full: bool) {
        self.is_full = is_full;
    }

    /// The mode of one of all (0), an account (1), a strategy (2) or an instrument (3).
    #[must_use]
    pub fn mode(&self, level: usize, index: usize) -> u8 {
        self.modes[level][index]
    }

    /// The number of orders of the account whose ids count as used, and of all that it ever had.
    #[must_use]
    pub fn orders(&self, account: u16) -> [usize; 2] {
        let own = || self.lives.iter().filter(|life| life.account == account);
        let window = self.settings.id_window_ns;
        let is_used = |settled: Option<i128>| settled.is_none_or(|at| self.horizon < at + window);
        [own().filter(|life| is_used(life.sum().settled_at)).count(), own().count()]
    }

    /// An operator cancels every open order of one of all (0), an account (1), a strategy (2) or an instrument (3), whoever
    /// has sent it. Orders that no intent has made have no strategy. Returns the orders that get a cancel, since their last
    /// one is old enough, and all that are open in the scope: account, instrument and client id, in their order.
    pub fn cancel_scope(&mut self, now: u64, level: usize, index: usize) -> [Vec<(u16, u32, u64)>; 2] {
        self.pass(now);
        let now = i128::from(now);
        let is_in = |life: &Life| match level {
            0 => true,
            1 => usize::from(life.account) == index,
            2 => life.asked.is_some() && usize::from(life.strategy) == index,
            _ => life.instrument as usize == index,
        };
        let (mut cancelled, mut open) = (Vec::new(), Vec::new());
        for life in self.lives.iter_mut().filter(|life| is_in(life)) {
            let sum = life.sum();
            if !sum.is_open {
                continue;
            }
            let named = (life.account, life.instrument, life.client_id);
            open.push(named);
            if sum.cancelled_at.is_none_or(|at| (now - at).max(0) >= self.settings.cancel_repeat_ns) {
                life.facts.push((now, Fact::CancelAsked));
                cancelled.push(named);
            }
        }
        cancelled.sort_unstable();
        open.sort_unstable();
        [cancelled, open]
    }

    /// An intent of an unknown account or instrument arrives: it is refused.
    pub fn refuse_unknown(&mut self, now: u64, producer: u16, intent: &OrderIntent) {
        self.pass(now);
        if let Some(next) = self.next_seqs.get_mut(usize::from(producer)).filter(|next| **next == intent.seq) {
            *next += 1;
        }
        self.refuse(now.into(), producer);
    }

    /// Whether a position can move by the lots of an execution.
    pub(super) fn can_move(&self, account: u16, instrument: u32, side: OrderSide, lots: i128) -> bool {
        let sign = if side == OrderSide::Buy { 1 } else { -1 };
        (self.known(account, instrument)[0] + sign * lots).abs() <= LOTS_MAX
    }
}
