//! The shipped gate's checks as they would be written first: in floats or with divisions, one after the other.
//!
//! It rejects exactly the orders that the shipped gate rejects (a test compares them); it reports no reasons.

use super::GateSetup;
use std::ops::{Add, Mul, Neg, Sub};
use tt_model::{IntentFlags, IntentKind, OrderIntent, OrderSide};
use tt_risk::Rate;

/// The type of prices and quantities.
pub(super) trait Number:
    Copy + PartialOrd + Default + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self>
{
    /// A whole number.
    fn whole(value: i64) -> Self;
    /// The content of an order's word.
    fn of_word(word: i64) -> Self;
    /// Whether this is a multiple of `step`.
    fn is_multiple(self, step: Self) -> bool;
}

impl Number for f64 {
    fn whole(value: i64) -> Self {
        value as Self
    }

    #[inline(always)]
    fn of_word(word: i64) -> Self {
        Self::from_bits(word.cast_unsigned())
    }

    #[inline(always)]
    fn is_multiple(self, step: Self) -> bool {
        let times = self / step;
        (times as i64) as Self == times
    }
}

impl Number for i64 {
    fn whole(value: i64) -> Self {
        value
    }

    #[inline(always)]
    fn of_word(word: i64) -> Self {
        word
    }

    #[inline(always)]
    fn is_multiple(self, step: Self) -> bool {
        self % step == 0
    }
}

#[derive(Clone, Copy, Debug)]
struct Bounds<N> {
    px_step: N,
    qty_step: N,
    qty_min: N,
    qty_max: N,
    notional_min: N,
    notional_max: N,
    /// By the order's side.
    position_max: [N; 2],
    open_qty_max: N,
    open_orders_max: u32,
}

#[derive(Clone, Copy, Debug)]
struct Row<N> {
    bounds: Bounds<N>,
    position: N,
    open_qty: [N; 2],
    open_orders: u32,
}

#[derive(Clone, Copy, Debug)]
struct Market<N> {
    ref_px: N,
    low_px: N,
    high_px: N,
    stale_at_ns: u64,
    is_verified: bool,
    bucket: Bucket,
    is_killed: bool,
}

/// The generic cell rate algorithm, as in the shipped gate.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    due_ns: u64,
    interval_ns: u64,
    early_ns: u64,
}

impl Bucket {
    fn new(rate: Rate) -> Self {
        let interval_ns = 1_000_000_000_u64.div_ceil(u64::from(rate.per_second));
        Self { due_ns: 0, interval_ns, early_ns: interval_ns * (u64::from(rate.burst) - 1) + 1 }
    }

    fn is_early(&self, now_ns: u64) -> bool {
        self.due_ns.saturating_sub(now_ns) >= self.early_ns
    }

    fn count(&mut self, now_ns: u64) {
        self.due_ns = self.due_ns.max(now_ns) + self.interval_ns;
    }
}

/// A gate as it would be written first.
#[derive(Debug)]
pub(super) struct EarlyGate<N> {
    instruments: usize,
    rows: Vec<Row<N>>,
    markets: Vec<Market<N>>,
    /// Of each account: its rate and whether it is stopped.
    accounts: Vec<(Bucket, bool)>,
    strategies: Vec<bool>,
    bucket: Bucket,
    is_killed: bool,
}

impl<N: Number> EarlyGate<N> {
    /// With everything that `setup` says, nothing held and nothing open.
    pub(super) fn new(setup: &GateSetup) -> Self {
        let limits = &setup.limits;
        let notional = |value: i128| N::whole(i64::try_from(value).unwrap_or(i64::MAX));
        let bounds = Bounds {
            px_step: N::whole(limits.px_step.0),
            qty_step: N::whole(limits.qty_step.0),
            qty_min: N::whole(limits.qty_min.0),
            qty_max: N::whole(limits.qty_max.0),
            notional_min: notional(limits.notional_min.0),
            notional_max: notional(limits.notional_max.0),
            position_max: [N::whole(limits.position_long_max.0), N::whole(limits.position_short_max.0)],
            open_qty_max: N::whole(limits.open_qty_max.0),
            open_orders_max: limits.open_orders_max,
        };
        let none = N::default();
        let row = Row { bounds, position: none, open_qty: [none; 2], open_orders: 0 };
        let market = |instrument| {
            let ref_px = (setup.reference_px)(instrument);
            let width = (i128::from(ref_px) * i128::from(setup.collar_bps) / 10_000) as i64;
            Market {
                ref_px: N::whole(ref_px),
                low_px: N::whole(ref_px - width),
                high_px: N::whole(ref_px + width),
                stale_at_ns: u64::MAX,
                is_verified: true,
                bucket: Bucket::new(setup.rate),
                is_killed: false,
            }
        };
        Self {
            instruments: setup.instruments as usize,
            rows: vec![row; usize::from(setup.accounts) * setup.instruments as usize],
            markets: (0..setup.instruments).map(market).collect(),
            accounts: vec![(Bucket::new(setup.rate), false); usize::from(setup.accounts)],
            strategies: vec![false; 1 << 16],
            bucket: Bucket::new(setup.rate),
            is_killed: false,
        }
    }

    /// Whether `intent` is accepted: out at the first reason against it.
    #[inline(always)]
    pub(super) fn evaluate_until_refused(&mut self, now_ns: u64, intent: &OrderIntent) -> bool {
        let (account, instrument) = (usize::from(intent.account), intent.instrument.0 as usize);
        if account >= self.accounts.len() || instrument >= self.instruments {
            return false;
        }
        if intent.kind == IntentKind::CANCEL {
            return true;
        }
        let (row, market) = (&mut self.rows[account * self.instruments + instrument], &mut self.markets[instrument]);
        let (bucket, is_stopped) = &mut self.accounts[account];
        if self.is_killed || *is_stopped || market.is_killed || self.strategies[usize::from(intent.strategy)] {
            return false;
        }
        if !market.is_verified || now_ns >= market.stale_at_ns {
            return false;
        }
        let order = Order::of(intent, row, market);
        let bounds = &row.bounds;
        if order.is_limit {
            if !order.px.is_multiple(bounds.px_step) {
                return false;
            }
            if order.px < market.low_px || order.px > market.high_px {
                return false;
            }
        }
        if order.px <= N::default() || order.qty <= N::default() || !order.qty.is_multiple(bounds.qty_step) {
            return false;
        }
        if order.qty > bounds.qty_max || order.notional > bounds.notional_max {
            return false;
        }
        if !order.closes && (order.qty < bounds.qty_min || order.notional < bounds.notional_min) {
            return false;
        }
        if intent.flags.contains(IntentFlags::REDUCE_ONLY) && order.worst > N::default() {
            return false;
        }
        if order.worst > bounds.position_max[order.side] || order.open > bounds.open_qty_max {
            return false;
        }
        if row.open_orders >= bounds.open_orders_max {
            return false;
        }
        if self.bucket.is_early(now_ns) || market.bucket.is_early(now_ns) || bucket.is_early(now_ns) {
            return false;
        }
        row.open_qty[order.side] = order.open;
        row.open_orders += 1;
        self.bucket.count(now_ns);
        market.bucket.count(now_ns);
        bucket.count(now_ns);
        true
    }

    /// Whether `intent` is accepted: every check made, whatever the others say, and the outcome taken in by arithmetic.
    #[inline(always)]
    pub(super) fn evaluate_wholly(&mut self, now_ns: u64, intent: &OrderIntent) -> bool {
        let (account, instrument) = (usize::from(intent.account), intent.instrument.0 as usize);
        let known = (account < self.accounts.len()) & (instrument < self.instruments);
        let (account, instrument) = (account.min(self.accounts.len() - 1), instrument.min(self.instruments - 1));
        let (row, market) = (&mut self.rows[account * self.instruments + instrument], &mut self.markets[instrument]);
        let (bucket, is_stopped) = &mut self.accounts[account];
        let order = Order::of(intent, row, market);
        let bounds = &row.bounds;
        let none = N::default();
        let market_bad = self.is_killed
            | *is_stopped
            | market.is_killed
            | self.strategies[usize::from(intent.strategy)]
            | !market.is_verified
            | (now_ns >= market.stale_at_ns);
        let px_bad = order.is_limit
            & (!order.px.is_multiple(bounds.px_step) | (order.px < market.low_px) | (order.px > market.high_px));
        let size_bad = (order.px <= none)
            | (order.qty <= none)
            | !order.qty.is_multiple(bounds.qty_step)
            | (order.qty > bounds.qty_max)
            | (order.notional > bounds.notional_max)
            | (!order.closes & ((order.qty < bounds.qty_min) | (order.notional < bounds.notional_min)));
        let open_bad = (intent.flags.contains(IntentFlags::REDUCE_ONLY) & (order.worst > none))
            | (order.worst > bounds.position_max[order.side])
            | (order.open > bounds.open_qty_max)
            | (row.open_orders >= bounds.open_orders_max);
        let rate_bad = self.bucket.is_early(now_ns) | market.bucket.is_early(now_ns) | bucket.is_early(now_ns);
        let is_order = intent.kind != IntentKind::CANCEL;
        let accepted = known & !(is_order & (market_bad | px_bad | size_bad | open_bad | rate_bad));
        let takes = accepted & is_order;
        row.open_qty[order.side] = row.open_qty[order.side] + order.qty * N::whole(i64::from(takes));
        row.open_orders += u32::from(takes);
        for bucket in [&mut self.bucket, &mut market.bucket, bucket] {
            let due_ns = bucket.due_ns.max(now_ns) + bucket.interval_ns;
            bucket.due_ns ^= (bucket.due_ns ^ due_ns) & u64::from(takes).wrapping_neg();
        }
        accepted
    }
}

/// The input of the checks.
struct Order<N> {
    side: usize,
    is_limit: bool,
    px: N,
    qty: N,
    notional: N,
    /// Open lots of the side with this order.
    open: N,
    /// The worst position with this order, seen from its side.
    worst: N,
    closes: bool,
}

impl<N: Number> Order<N> {
    #[inline(always)]
    fn of(intent: &OrderIntent, row: &Row<N>, market: &Market<N>) -> Self {
        let side = intent.side as usize;
        let is_limit = intent.kind != IntentKind::MARKET;
        let px = if is_limit { N::of_word(intent.limit_px.0) } else { market.ref_px };
        let qty = N::of_word(intent.qty.0);
        let open = row.open_qty[side] + qty;
        let own = match intent.side {
            OrderSide::Buy => row.position,
            OrderSide::Sell => -row.position,
        };
        let worst = own + open;
        let closes = intent.flags.contains(IntentFlags::CLOSE_POSITION) & (worst <= N::default());
        Self { side, is_limit, px, qty, notional: px * qty, open, worst, closes }
    }
}
