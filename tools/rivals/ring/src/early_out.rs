//! The gate's rival: the same checks on the same limits, one after the other, and the first reason ends it.
//!
//! It answers with one reason where the shipped gate answers with all of them, and its time depends on the order.

use std::sync::atomic::{AtomicBool, Ordering};

use tt_model::{Breach, IntentKind, OrderIntent};
use tt_risk::Limits;

use crate::orders::{COLLAR_BPS, LIMITS, RATE, Size, reference_px};

/// A step whose multiples are detected by one multiplication.
#[derive(Clone, Copy)]
struct Step {
    inverse: u64,
    quotient_max: u64,
    zeros: u32,
}

impl Step {
    fn of(step: i64) -> Self {
        let step = step.unsigned_abs();
        let zeros = step.trailing_zeros();
        let odd = step >> zeros;
        let next = |inverse: u64| inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
        Self { inverse: (0..6).fold(odd, |inverse, _| next(inverse)), quotient_max: u64::MAX / step, zeros }
    }

    #[inline(always)]
    fn divides(self, number: i64) -> bool {
        number.unsigned_abs().wrapping_mul(self.inverse).rotate_right(self.zeros) <= self.quotient_max
    }
}

/// An account in an instrument.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Row {
    limits: Limits,
    px_step: Step,
    qty_step: Step,
    open_qty: [i64; 2],
    position: i64,
    open_orders: u32,
}

/// An instrument.
#[derive(Clone, Copy)]
struct Market {
    ref_px: i64,
    px_low: i64,
    px_high: i64,
    stale_at_ns: u64,
    is_verified: bool,
    rate: Bucket,
}

/// The generic cell rate algorithm.
#[derive(Clone, Copy)]
struct Bucket {
    due_ns: u64,
    interval_ns: u64,
    early_ns: u64,
}

impl Bucket {
    fn new() -> Self {
        let interval_ns = 1_000_000_000 / u64::from(RATE.per_second);
        Self { due_ns: 0, interval_ns, early_ns: interval_ns * u64::from(RATE.burst - 1) + 1 }
    }

    #[inline(always)]
    fn is_early(&self, now_ns: u64) -> bool {
        self.due_ns.saturating_sub(now_ns) >= self.early_ns
    }

    #[inline(always)]
    fn count(&mut self, now_ns: u64) {
        self.due_ns = self.due_ns.max(now_ns) + self.interval_ns;
    }
}

/// What the rival answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The reason that ended it, none if the order is accepted.
    pub(crate) reason: Breach,
    pub(crate) worst_pos: i64,
}

/// Limits and state of every account in every instrument.
pub(crate) struct EarlyOut {
    size: Size,
    rows: Vec<Row>,
    markets: Vec<Market>,
    account_rates: Vec<Bucket>,
    global_rate: Bucket,
    global_kill: AtomicBool,
    account_kills: Vec<AtomicBool>,
    strategy_kills: Vec<AtomicBool>,
    instrument_kills: Vec<AtomicBool>,
    counts: [u64; 65],
}

impl EarlyOut {
    /// With the limits of [`crate::orders::gate`].
    pub(crate) fn new(size: Size) -> Self {
        let (accounts, instruments) = (usize::from(size.accounts), size.instruments as usize);
        let row = Row {
            limits: LIMITS,
            px_step: Step::of(LIMITS.px_step.0),
            qty_step: Step::of(LIMITS.qty_step.0),
            open_qty: [0; 2],
            position: 0,
            open_orders: 0,
        };
        let market = |instrument| {
            let ref_px = reference_px(instrument);
            let width = ref_px * i64::from(COLLAR_BPS) / 10_000;
            Market {
                ref_px,
                px_low: ref_px - width,
                px_high: ref_px + width,
                stale_at_ns: u64::MAX,
                is_verified: true,
                rate: Bucket::new(),
            }
        };
        let switches = |count: usize| (0..count).map(|_| AtomicBool::new(false)).collect();
        Self {
            size,
            rows: vec![row; accounts * instruments],
            markets: (0..size.instruments).map(market).collect(),
            account_rates: vec![Bucket::new(); accounts],
            global_rate: Bucket::new(),
            global_kill: AtomicBool::new(false),
            account_kills: switches(1 << 16),
            strategy_kills: switches(1 << 16),
            instrument_kills: switches(instruments),
            counts: [0; 65],
        }
    }

    /// No position, nothing open.
    pub(crate) fn reset(&mut self) {
        for row in &mut self.rows {
            (row.open_qty, row.position, row.open_orders) = ([0; 2], 0, 0);
        }
    }

    /// Judges `intent`; if nothing speaks against it, it is open from now on.
    #[inline(always)]
    pub(crate) fn evaluate<const PROFILE: u64>(&mut self, now_ns: u64, intent: &OrderIntent) -> Answer {
        let answer = self.judge::<PROFILE>(now_ns, intent);
        self.counts[answer.reason.0.trailing_zeros() as usize] += 1;
        answer
    }

    #[inline(always)]
    fn judge<const PROFILE: u64>(&mut self, now_ns: u64, intent: &OrderIntent) -> Answer {
        let refuse = |reason| Answer { reason, worst_pos: 0 };
        let asks = |reason: Breach| PROFILE & reason.0 != 0;
        let (account, instrument) = (usize::from(intent.account), intent.instrument.0 as usize);
        if intent.account >= self.size.accounts || intent.instrument.0 >= self.size.instruments {
            return refuse(Breach::INSTRUMENT_UNKNOWN);
        }
        let is_set = |switch: &AtomicBool| switch.load(Ordering::Acquire);
        if is_set(&self.global_kill) {
            return refuse(Breach::KILL_GLOBAL);
        }
        if is_set(&self.account_kills[account]) {
            return refuse(Breach::KILL_ACCOUNT);
        }
        if is_set(&self.strategy_kills[usize::from(intent.strategy)]) {
            return refuse(Breach::KILL_STRATEGY);
        }
        if is_set(&self.instrument_kills[instrument]) {
            return refuse(Breach::KILL_INSTRUMENT);
        }
        let row = &mut self.rows[account * self.size.instruments as usize + instrument];
        let market = &mut self.markets[instrument];
        let account_rate = &mut self.account_rates[account];
        if asks(Breach::RATE_GLOBAL) && self.global_rate.is_early(now_ns) {
            return refuse(Breach::RATE_GLOBAL);
        }
        if asks(Breach::RATE_INSTRUMENT) && market.rate.is_early(now_ns) {
            return refuse(Breach::RATE_INSTRUMENT);
        }
        if account_rate.is_early(now_ns) {
            return refuse(Breach::RATE_ACCOUNT);
        }
        if asks(Breach::MD_STALE) && now_ns >= market.stale_at_ns {
            return refuse(Breach::MD_STALE);
        }
        if asks(Breach::BOOK_UNVERIFIED) && !market.is_verified {
            return refuse(Breach::BOOK_UNVERIFIED);
        }
        let answer = row.judge(market, intent);
        if answer.reason == Breach::NONE {
            row.open_qty[intent.side as usize] += intent.qty.0;
            row.open_orders += 1;
            account_rate.count(now_ns);
            if asks(Breach::RATE_INSTRUMENT) {
                market.rate.count(now_ns);
            }
            if asks(Breach::RATE_GLOBAL) {
                self.global_rate.count(now_ns);
            }
        }
        answer
    }
}

impl Row {
    #[inline(always)]
    fn judge(&self, market: &Market, intent: &OrderIntent) -> Answer {
        let refuse = |reason| Answer { reason, worst_pos: 0 };
        let limits = &self.limits;
        let qty = intent.qty.0;
        let px = if intent.kind == IntentKind::MARKET { market.ref_px } else { intent.limit_px.0 };
        if px <= 0 {
            return refuse(Breach::PRICE_NONPOS);
        }
        if intent.kind != IntentKind::MARKET {
            if !self.px_step.divides(px) {
                return refuse(Breach::PRICE_TICK);
            }
            if px < market.px_low || px > market.px_high {
                return refuse(Breach::COLLAR_REF);
            }
        }
        if !self.qty_step.divides(qty) {
            return refuse(Breach::QTY_STEP);
        }
        if qty < limits.qty_min.0 {
            return refuse(Breach::QTY_MIN);
        }
        if qty > limits.qty_max.0 {
            return refuse(Breach::QTY_MAX);
        }
        let notional = i128::from(px) * i128::from(qty);
        if notional < limits.notional_min.0 {
            return refuse(Breach::NOTIONAL_MIN);
        }
        if notional > limits.notional_max.0 {
            return refuse(Breach::NOTIONAL_MAX);
        }
        let side = intent.side as usize;
        let (sign, position_max, reason) = match side {
            0 => (1, limits.position_long_max.0, Breach::POS_LONG),
            _ => (-1, limits.position_short_max.0, Breach::POS_SHORT),
        };
        let open_qty = self.open_qty[side] + qty;
        let worst = sign * self.position + open_qty;
        if worst > position_max {
            return refuse(reason);
        }
        if open_qty > limits.open_qty_max.0 {
            return refuse(Breach::OPEN_QTY);
        }
        if self.open_orders >= limits.open_orders_max {
            return refuse(Breach::OPEN_ORDERS);
        }
        Answer { reason: Breach::NONE, worst_pos: sign * worst }
    }
}
