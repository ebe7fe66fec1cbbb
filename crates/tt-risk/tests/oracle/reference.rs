//! The evaluator once more, as plainly as it can be said: one account, one instrument, `if` after `if`, division for steps,
//! `i128` for everything. It shares no code with the crate.

use tt_model::{Breach, IntentFlags, IntentKind, OrderIntent, OrderSide};
use tt_risk::{InstrumentLimits, Limits, Mark, Rate};

/// A message rate as a list of what was sent: the virtual schedule is kept in `i128`, so nothing can wrap.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) rate: Rate,
    pub(crate) due: i128,
}

impl Schedule {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, due: 0 }
    }

    fn after(&self, now: i128) -> Option<i128> {
        if self.rate.per_second == 0 || self.rate.burst == 0 {
            return None;
        }
        let per_second = i128::from(self.rate.per_second);
        let interval = (1_000_000_000 + per_second - 1) / per_second;
        let due = if self.due > now { self.due + interval } else { now + interval };
        if due - now > interval * i128::from(self.rate.burst) { None } else { Some(due) }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) limits: Limits,
    pub(crate) instrument: InstrumentLimits,
    pub(crate) mark: Option<Mark>,
    pub(crate) position: i128,
    pub(crate) open_buy: i128,
    pub(crate) open_sell: i128,
    pub(crate) open_orders: i128,
    pub(crate) account_rate: Schedule,
    pub(crate) instrument_rate: Schedule,
    pub(crate) global_rate: Schedule,
    pub(crate) killed: Breach,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) accept: bool,
    pub(crate) reasons: Breach,
    pub(crate) worst_pos: i128,
}

impl Reference {
    pub(crate) fn evaluate(&mut self, now: u64, intent: &OrderIntent) -> Answer {
        let mut found = Breach::NONE;
        let worst = self.worst(intent);
        if intent.kind == IntentKind::CANCEL {
            return Answer { accept: true, reasons: found, worst_pos: worst };
        }
        found = found.union(self.killed);
        let mark = self.mark.filter(|mark| mark.ref_px.0 > 0);
        self.price(intent, mark.as_ref(), &mut found);
        self.size(intent, mark.as_ref(), worst, &mut found);
        match mark {
            Some(mark) => {
                let age_max = i128::from(self.instrument.mark_age_max_ns);
                let (now, stamp) = (i128::from(now), i128::from(mark.ts_ns));
                // The gate keeps the end of a mark's life in 64 bits, and its length in 63.
                let longest = (stamp - 1_000_000).max(0) + i128::from(i64::MAX) - 1;
                let end = (stamp + age_max).min(i128::from(u64::MAX) - 1).min(longest);
                if now > end || stamp > now + 1_000_000 {
                    found = found.union(Breach::MD_STALE);
                }
                if !mark.is_verified {
                    found = found.union(Breach::BOOK_UNVERIFIED);
                }
            }
            None => found = found.union(Breach::MD_STALE).union(Breach::BOOK_UNVERIFIED),
        }
        let now = i128::from(now);
        let due = [&self.account_rate, &self.instrument_rate, &self.global_rate].map(|rate| rate.after(now));
        for (due, reason) in due.iter().zip([Breach::RATE_ACCOUNT, Breach::RATE_INSTRUMENT, Breach::RATE_GLOBAL]) {
            if due.is_none() {
                found = found.union(reason);
            }
        }
        if now >= 1 << 63 {
            found = found.union(Breach::RATE_ACCOUNT).union(Breach::RATE_INSTRUMENT).union(Breach::RATE_GLOBAL);
        }
        let accept = found.0 & self.limits.enabled.union(Limits::ALWAYS).0 == 0;
        if accept {
            let open = if intent.side == OrderSide::Buy { &mut self.open_buy } else { &mut self.open_sell };
            *open += i128::from(intent.qty.0);
            self.open_orders += 1;
            for (rate, due) in
                [&mut self.account_rate, &mut self.instrument_rate, &mut self.global_rate].into_iter().zip(due)
            {
                rate.due = due.expect("a message that comes too fast does not pass");
            }
        }
        Answer { accept, reasons: found, worst_pos: worst }
    }

    fn worst(&self, intent: &OrderIntent) -> i128 {
        let qty = i128::from(intent.qty.0);
        match intent.side {
            OrderSide::Buy => (self.position + self.open_buy + qty).clamp(i64::MIN.into(), i64::MAX.into()),
            OrderSide::Sell => -(-self.position + self.open_sell + qty).clamp(i64::MIN.into(), i64::MAX.into()),
        }
    }

    fn price(&self, intent: &OrderIntent, mark: Option<&Mark>, found: &mut Breach) {
        let is_market = intent.kind == IntentKind::MARKET;
        let px = i128::from(if is_market { mark.map_or(0, |mark| mark.ref_px.0) } else { intent.limit_px.0 });
        if px <= 0 {
            *found = found.union(Breach::PRICE_NONPOS);
        }
        if is_market {
            return;
        }
        if px % i128::from(self.limits.px_step.0) != 0 {
            *found = found.union(Breach::PRICE_TICK);
        }
        let in_collar = mark.is_some_and(|mark| {
            let reference = i128::from(mark.ref_px.0);
            px >= 0 && (px - reference).abs() * 10_000 <= reference * i128::from(self.instrument.collar_bps)
        });
        if !in_collar {
            *found = found.union(Breach::COLLAR_REF);
        }
    }

    fn size(&self, intent: &OrderIntent, mark: Option<&Mark>, worst: i128, found: &mut Breach) {
        let limits = &self.limits;
        let qty = i128::from(intent.qty.0);
        let is_buy = intent.side == OrderSide::Buy;
        let px = match intent.kind {
            IntentKind::MARKET => mark.map_or(0, |mark| mark.ref_px.0),
            _ => intent.limit_px.0,
        };
        let opens = if is_buy { worst > 0 } else { worst < 0 };
        let closes = intent.flags.contains(IntentFlags::CLOSE_POSITION) && !opens;
        if qty % i128::from(limits.qty_step.0) != 0 {
            *found = found.union(Breach::QTY_STEP);
        }
        if qty < 1 || (!closes && qty < i128::from(limits.qty_min.0)) {
            *found = found.union(Breach::QTY_MIN);
        }
        if qty > i128::from(limits.qty_max.0) {
            *found = found.union(Breach::QTY_MAX);
        }
        let notional = (i128::from(px) * qty).unsigned_abs();
        if !closes && notional < limits.notional_min.0.unsigned_abs() {
            *found = found.union(Breach::NOTIONAL_MIN);
        }
        if notional > limits.notional_max.0.unsigned_abs() {
            *found = found.union(Breach::NOTIONAL_MAX);
        }
        if intent.flags.contains(IntentFlags::REDUCE_ONLY) && opens {
            *found = found.union(Breach::REDUCE_ONLY_FLIP);
        }
        if is_buy && worst > i128::from(limits.position_long_max.0) {
            *found = found.union(Breach::POS_LONG);
        }
        if !is_buy && -worst > i128::from(limits.position_short_max.0) {
            *found = found.union(Breach::POS_SHORT);
        }
        let open = if is_buy { self.open_buy } else { self.open_sell } + qty;
        if open < 0 || open > i128::from(limits.open_qty_max.0) {
            *found = found.union(Breach::OPEN_QTY);
        }
        if self.open_orders >= i128::from(limits.open_orders_max) {
            *found = found.union(Breach::OPEN_ORDERS);
        }
    }
}
