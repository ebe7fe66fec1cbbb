//! Prices and sizes of an order as the checks see them.

use crate::{
    evaluator::Row,
    instrument::{InstrumentRules, Quoted, width},
    limits::LOTS_CEILING,
    money::Contract,
    tree::sign,
};
use tt_model::{Breach, IntentFlags, IntentKind, OrderIntent, OrderSide, Qty};

/// Returns whether `qty` is a quantity of an order or an execution.
pub(super) const fn are_lots(qty: Qty) -> bool {
    qty.0 >= 1 && qty.0 <= LOTS_CEILING
}

/// Prices of an order. A price that is not known is `None`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prices {
    /// The worst price at which the order can trade; without protection none.
    pub(super) worst: Option<i64>,
    /// The price that the collar applies to.
    pub(super) collar: Option<i64>,
    /// The largest and the smallest price at which the order is valued.
    pub(super) high: Option<i64>,
    pub(super) low: Option<i64>,
}

impl Prices {
    /// Returns the prices of `intent`, of kind `kind`.
    #[inline(always)]
    fn of(kind: IntentKind, intent: &OrderIntent, market: &Quoted<'_>, rules: &InstrumentRules) -> Self {
        if !kind.is_market() {
            let px = Some(intent.limit_px.0);
            return Self { worst: px, collar: px, high: px, low: px };
        }
        let anchor = if kind.is_stop() { Some(intent.trigger_px.0) } else { market.reference() };
        let protection = rules.slip_bps.and_then(|bps| Some(away(anchor?, bps, intent.side)));
        if protection.is_some() {
            return Self { worst: protection, collar: protection, high: protection, low: protection };
        }
        let [low, high] = match anchor {
            Some(anchor) => market.band_around(anchor),
            None => [None; 2],
        };
        let collar = if kind.is_stop() { Some(intent.trigger_px.0) } else { market.touch(intent.side) };
        Self { worst: None, collar, high, low }
    }
}

/// Returns the price `bps` beyond `anchor` in the direction of `side`, rounded away from it.
fn away(anchor: i64, bps: u32, side: OrderSide) -> i64 {
    let slip = (i128::from(anchor.unsigned_abs()) * i128::from(bps) + 9_999) / 10_000;
    let px = match side {
        OrderSide::Buy => i128::from(anchor) + slip,
        OrderSide::Sell => i128::from(anchor) - slip,
    };
    px.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// An order as the checks see it.
pub(super) struct Priced {
    pub(super) prices: Prices,
    pub(super) size: OrderSize,
    /// The reasons from prices and sizes.
    pub(super) found: u64,
}

impl Priced {
    /// Returns prices and size of `intent`, of kind `kind`, after which the position of its row is at worst `worst`.
    #[inline(always)]
    pub(super) fn of(
        kind: IntentKind,
        intent: &OrderIntent,
        (market, rules, contract): (&Quoted<'_>, &InstrumentRules, &Contract),
        (row, worst): (&Row, i64),
    ) -> Self {
        let prices = Prices::of(kind, intent, market, rules);
        let size = OrderSize::of(intent, &prices, contract, (row, worst));
        let found = prices_found(kind, intent, &prices, (row, market, rules));
        Self { prices, size, found: found | sizes_found(intent, &size, row, worst) }
    }

    /// As [`of`](Self::of), of any kind: most orders are limit orders.
    #[inline(never)]
    pub(super) fn of_any(
        kind: IntentKind,
        intent: &OrderIntent,
        of: (&Quoted<'_>, &InstrumentRules, &Contract),
        row: (&Row, i64),
    ) -> Self {
        Self::of(kind, intent, of, row)
    }
}

/// Returns the reasons from prices: tick, sign, collar and touch.
#[inline(always)]
fn prices_found(
    kind: IntentKind,
    intent: &OrderIntent,
    prices: &Prices,
    (row, market, rules): (&Row, &Quoted<'_>, &InstrumentRules),
) -> u64 {
    let mut found = Breach::NONE;
    let mut add = |is_found: bool, reason: Breach| {
        if is_found {
            found = found.union(reason);
        }
    };
    let limits = &row.limits;
    let sent = [(!kind.is_market()).then_some(intent.limit_px.0), kind.is_stop().then_some(intent.trigger_px.0)];
    for px in sent.into_iter().flatten() {
        add(!limits.px_step.divides(limits.px_zeros, px.unsigned_abs()), Breach::PRICE_TICK);
        add(px <= 0 && !rules.may_be_negative, Breach::PRICE_NONPOS);
    }
    if kind.is_stop() {
        let trigger = intent.trigger_px.0;
        add(!market.is_within(trigger, rules.trigger_bps), Breach::COLLAR_REF);
        let [low, high] = market.band_around(trigger);
        let is_within = |px: i64| low.is_some_and(|low| px >= low) && high.is_some_and(|high| px <= high);
        add(!prices.collar.is_some_and(is_within), Breach::COLLAR_REF);
    } else {
        add(!prices.collar.is_some_and(|px| market.is_in_collar(px)), Breach::COLLAR_REF);
    }
    if let Some(bps) = rules.touch_bps {
        let touch = market.touch(intent.side);
        add(!touch.is_some_and(|touch| is_near(kind, intent, touch, bps)), Breach::COLLAR_TOUCH);
        if kind == IntentKind::MARKET {
            add(!touch.is_some_and(|touch| market.is_in_collar(touch)), Breach::COLLAR_TOUCH);
        }
    }
    found.0
}

/// Returns whether a limit order is at most `bps` beyond the touch. Orders without a limit, and stops, are not compared.
fn is_near(kind: IntentKind, intent: &OrderIntent, touch: i64, bps: u32) -> bool {
    if kind != IntentKind::LIMIT {
        return true;
    }
    let band = width(touch, bps);
    let (px, touch) = (i128::from(intent.limit_px.0), i128::from(touch));
    match intent.side {
        OrderSide::Buy => px <= touch + band,
        OrderSide::Sell => px >= touch - band,
    }
}

/// The size of an order in money. A value that is not known, or does not fit, is `None`.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrderSize {
    /// Least and largest notional at the prices at which the order is valued.
    pub(super) notional_min: Option<u128>,
    pub(super) notional_max: Option<u128>,
    /// The price at which the order costs most.
    pub(super) px: i64,
    /// Whether it closes the whole position and says so: it is exempt from limits of size.
    pub(super) closes: bool,
}

impl OrderSize {
    /// Returns the size of `intent`, after which the position of its row is at worst `worst`.
    #[inline(always)]
    fn of(intent: &OrderIntent, prices: &Prices, contract: &Contract, (row, worst): (&Row, i64)) -> Self {
        let qty = intent.qty.0;
        let closes = intent.flags.contains(IntentFlags::CLOSE_POSITION)
            && worst <= 0
            && qty == -sign(intent.side) * row.state.position;
        let notionals = |px: Option<i64>| px.map_or([None; 2], |px| contract.notionals(px, qty));
        let [low, high] = [prices.low, prices.high];
        let [least, most] = notionals(high);
        if low == high {
            return Self { notional_min: least, notional_max: most, px: high.unwrap_or(0), closes };
        }
        let both = |a: Option<u128>, b: Option<u128>| Some((a?, b?));
        let [low_least, low_most] = notionals(low);
        let least = both(low_least, least).map(|(a, b)| a.min(b));
        let most = both(low_most, most).map(|(a, b)| a.max(b));
        // A price without a cost costs most.
        let cost = |px: i64| contract.cost(px, qty.max(0)).unwrap_or(i128::MAX);
        let px = match (low, high) {
            (Some(low), Some(high)) if cost(low) > cost(high) => low,
            (_, high) => high.unwrap_or(0),
        };
        Self { notional_min: least, notional_max: most, px, closes }
    }
}

/// Returns the reasons from quantity and value that depend on whether the order reduces the position; `worst` is the
/// position after the order as seen from its side.
#[inline(always)]
fn sizes_found(intent: &OrderIntent, sized: &OrderSize, row: &Row, worst: i64) -> u64 {
    let (limits, qty) = (&row.limits, intent.qty.0);
    let closes = sized.closes;
    let mut found = Breach::NONE;
    let mut add = |is_found: bool, reason: Breach| {
        if is_found {
            found = found.union(reason);
        }
    };
    add(qty <= 0 || (qty <= limits.qty_above && worst != 0 && !closes), Breach::QTY_MIN);
    add(qty > limits.qty_max && !closes, Breach::QTY_MAX);
    let is_small = sized.notional_min.is_none_or(|value| value < limits.notional_min);
    let is_large = sized.notional_max.is_none_or(|value| value > limits.notional_max);
    add(is_small && worst > 0, Breach::NOTIONAL_MIN);
    add(is_large && !closes, Breach::NOTIONAL_MAX);
    let flags = IntentFlags(IntentFlags::REDUCE_ONLY.0 | IntentFlags::CLOSE_POSITION.0);
    add(intent.flags.0 & flags.0 != 0 && worst > 0, Breach::REDUCE_ONLY_FLIP);
    found.0
}
