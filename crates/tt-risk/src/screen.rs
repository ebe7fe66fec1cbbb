//! Many orders against one state, several at a time.

use crate::evaluator::{Evaluator, OrderChecks, Priced, Row, rates};
use crate::instrument::Market;
use crate::limits::Limits;
use crate::multiple::NarrowMultiple;
use tt_model::{Breach, InstrumentId, OrderIntent, OrderSide, Price, Qty};
use tt_simd::{Wide, widest};

/// Orders that are checked together: a lane of a vector for each.
const LANES: usize = 16;
/// Prices and quantities below it are checked in lanes: their product has a sign bit to spare.
const NARROW_END: i64 = 1 << 31;

/// The checks of [`Limits::EIGHT`] for many limit orders of one side of one account in one instrument, each as if it were
/// the only one: which of these quotes would be refused?
///
/// It holds limits, exposure, mark and rates as they were when [`Evaluator::screen`](crate::Evaluator::screen) made it, and
/// changes nothing. No order of a batch counts towards the position of the next one.
///
/// ```
/// use tt_model::{Breach, InstrumentId, Notional, OrderSide, Price, Qty};
/// use tt_risk::{Evaluator, Exposure, Limits};
///
/// let mut evaluator = Evaluator::new(1, 1);
/// evaluator.set_limits(0, InstrumentId(0), &Limits {
///     px_step: Price(5),
///     qty_step: Qty(10),
///     qty_min: Qty(10),
///     qty_max: Qty(100),
///     notional_min: Notional(0),
///     notional_max: Notional(1_000_000),
///     position_long_max: Qty(100),
///     position_short_max: Qty(100),
///     open_qty_max: Qty(200),
///     open_orders_max: 10,
///     enabled: Limits::EIGHT,
/// })?;
/// evaluator.restore(0, InstrumentId(0), &Exposure { position: Qty(50), ..Exposure::default() })?;
///
/// let screen = evaluator.screen(1, 0, 0, InstrumentId(0), OrderSide::Buy);
/// let mut reasons = [Breach::NONE; 3];
/// screen.check(&[Price(100), Price(101), Price(100)], &[Qty(10), Qty(10), Qty(60)], &mut reasons);
/// assert!(reasons[1].contains(Breach::PRICE_TICK) && !reasons[0].contains(Breach::PRICE_TICK));
/// assert!(reasons[2].contains(Breach::POS_LONG) && !reasons[0].contains(Breach::POS_LONG));
/// # Ok::<(), tt_risk::GateError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Screen {
    row: Row,
    market: Market,
    side: OrderSide,
    /// Reasons that every order has.
    always: u64,
    narrow: Option<Narrow>,
}

impl Evaluator {
    /// Prepares the checks of [`Limits::EIGHT`] for many limit orders of one side at `now_ns`, each as if it were the only
    /// one.
    #[must_use]
    pub fn screen(
        &self,
        now_ns: u64,
        account: u16,
        strategy: u16,
        instrument: InstrumentId,
        side: OrderSide,
    ) -> Screen {
        let (row, _) = self.row_index(account, instrument);
        let (row, index) = (&self.rows[row], self.instrument_index(instrument));
        let market = &self.markets[index];
        let now = rates(now_ns, &self.global_rate, market, &self.account_rates[self.account_index(account)]);
        let kills = self.controls.kill_bits(account, strategy, index);
        Screen::new(row, market, side, now | row.state.barred | market.unverified() | kills)
    }
}

impl Screen {
    fn new(row: &Row, market: &Market, side: OrderSide, always: u64) -> Self {
        let open_orders = if row.state.open_orders >= row.limits.open_orders_max { Breach::OPEN_ORDERS.0 } else { 0 };
        let always = (always | open_orders) & Limits::EIGHT.0;
        let narrow = Narrow::of(row, market, side, always);
        Self { row: *row, market: *market, side, always, narrow }
    }

    /// Sets each of `reasons` to the reasons against a limit order with that price and quantity: those that
    /// [`Evaluator::evaluate_profile`](crate::Evaluator::evaluate_profile) finds with [`Limits::EIGHT`], whether they reject
    /// the order or not.
    ///
    /// # Panics
    /// The lengths differ.
    pub fn check(&self, px: &[Price], qty: &[Qty], reasons: &mut [Breach]) {
        assert!(px.len() == qty.len() && px.len() == reasons.len(), "a price, a quantity and a place for each order");
        widest(Orders { screen: self, px, qty, reasons });
    }

    fn check_each(&self, px: &[Price], qty: &[Qty], reasons: &mut [Breach]) {
        for ((px, qty), reasons) in px.iter().zip(qty).zip(reasons) {
            let intent = OrderIntent { limit_px: *px, qty: *qty, side: self.side, ..OrderIntent::default() };
            let found = OrderChecks::of(&self.row, &self.market, &intent, Priced { px: px.0, adds: qty.0 }).found;
            *reasons = Breach(found & Limits::EIGHT.0 | self.always);
        }
    }
}

/// Orders, and the places of their reasons.
struct Orders<'a> {
    screen: &'a Screen,
    px: &'a [Price],
    qty: &'a [Qty],
    reasons: &'a mut [Breach],
}

impl Wide for Orders<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { screen, px, qty, reasons } = self;
        let (px_groups, px_rest) = px.as_chunks::<LANES>();
        let (qty_groups, qty_rest) = qty.as_chunks::<LANES>();
        let (groups, rest) = reasons.as_chunks_mut::<LANES>();
        for ((px, qty), reasons) in px_groups.iter().zip(qty_groups).zip(groups) {
            match &screen.narrow {
                Some(narrow) if is_narrow(px, qty) => narrow.check(px, qty, reasons),
                _ => screen.check_each(px, qty, reasons),
            }
        }
        screen.check_each(px_rest, qty_rest, rest);
    }
}

#[inline(always)]
fn is_narrow(px: &[Price; LANES], qty: &[Qty; LANES]) -> bool {
    let bits = px.iter().zip(qty).fold(0, |bits, (px, qty)| bits | px.0 | qty.0);
    (0..NARROW_END).contains(&bits)
}

/// The checks of one order as comparisons of numbers below [`NARROW_END`].
#[derive(Clone, Copy, Debug)]
struct Narrow {
    /// Prices of the collar: from the first, before the second.
    collar: [i64; 2],
    px_step: NarrowMultiple,
    qty_step: NarrowMultiple,
    /// Too small up to here.
    qty_above: i64,
    qty_max: i64,
    /// Quantity up to which the position, or what is open, stays within its maximum.
    position_room: i64,
    open_room: i64,
    /// Price times quantity: too small below the first, too large beyond the second.
    notional: [i64; 2],
    position: u64,
    always: u64,
}

impl Narrow {
    /// `None` if the state is such that a comparison could wrap, which no limits and no exposure lead to.
    fn of(row: &Row, market: &Market, side: OrderSide, always: u64) -> Option<Self> {
        let Row { limits, state } = row;
        let open_qty = state.open_qty[side as usize];
        let own = match side {
            OrderSide::Buy => state.position,
            OrderSide::Sell => state.position.checked_neg()?,
        };
        let px_end = i128::from(market.px_low) + i128::from(market.px_count);
        let product = |notional: u128| i64::try_from(notional).unwrap_or(i64::MAX);
        if market.px_low < 0 || px_end > i128::from(i64::MAX) || open_qty < 0 {
            return None;
        }
        Some(Self {
            collar: [market.px_low, px_end as i64],
            px_step: limits.px_step.narrow(limits.px_zeros),
            qty_step: limits.qty_step.narrow(limits.qty_zeros),
            qty_above: limits.qty_above,
            qty_max: limits.qty_max,
            position_room: limits.position_max[side as usize].checked_sub(own.checked_add(open_qty)?)?,
            open_room: limits.open_qty_max - open_qty,
            notional: [product(limits.notional_min), product(limits.notional_max)],
            position: Breach::POS_LONG.0 << side as u32,
            always,
        })
    }

    #[inline(always)]
    fn check(&self, px: &[Price; LANES], qty: &[Qty; LANES], reasons: &mut [Breach; LANES]) {
        for lane in 0..LANES {
            reasons[lane] = Breach(self.found(px[lane].0, qty[lane].0));
        }
    }

    #[inline(always)]
    fn found(&self, px: i64, qty: i64) -> u64 {
        const LOW: i64 = u32::MAX as i64;
        let notional = (px & LOW) * (qty & LOW);
        let reason = |found: bool, reason: u64| if found { reason } else { 0 };
        self.always
            | reason(px < self.collar[0], Breach::COLLAR_REF.0)
            | reason(px >= self.collar[1], Breach::COLLAR_REF.0)
            | reason(px == 0, Breach::PRICE_NONPOS.0)
            | reason(!self.px_step.divides(px.cast_unsigned()), Breach::PRICE_TICK.0)
            | reason(!self.qty_step.divides(qty.cast_unsigned()), Breach::QTY_STEP.0)
            | reason(qty <= self.qty_above, Breach::QTY_MIN.0)
            | reason(qty > self.qty_max, Breach::QTY_MAX.0)
            | reason(notional < self.notional[0], Breach::NOTIONAL_MIN.0)
            | reason(notional > self.notional[1], Breach::NOTIONAL_MAX.0)
            | reason(qty > self.position_room, self.position)
            | reason(qty > self.open_room, Breach::OPEN_QTY.0)
    }
}
