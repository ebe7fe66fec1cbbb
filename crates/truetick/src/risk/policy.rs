//! The demonstration's limits: small enough that a strategy with ordinary slips meets each of them.

use tt_model::{Notional, Price, Qty};
use tt_risk::{InstrumentLimits, Limits, Rate};

use super::Tradable;

/// The one account.
pub(super) const ACCOUNT: u16 = 0;

/// The strategy's number.
pub(super) const STRATEGY: u16 = 1;

/// How far a price may be from the middle of the book, in 1/10,000.
pub(super) const COLLAR_BPS: u32 = 50;

/// How old a quote may be.
const MARK_AGE_MAX_NS: u64 = 2_000_000_000;

/// The account's rate. The strategy's bursts go beyond it.
pub(super) const ACCOUNT_RATE: Rate = Rate { per_second: 25, burst: 10 };

/// The rate of an instrument, and of everything: above what one account may send.
pub(super) const WIDE_RATE: Rate = Rate { per_second: 100, burst: 50 };

/// Open orders in an instrument.
pub(super) const OPEN_ORDERS_MAX: u32 = 5;

/// For how long an order's client id may not be used again.
pub(super) const ID_WINDOW_NS: u64 = 600_000_000_000;

/// Client ids within that window: as many as the account's rate lets through.
pub(super) const CLIENT_IDS: u32 = ACCOUNT_RATE.burst + ACCOUNT_RATE.per_second * (ID_WINDOW_NS / 1_000_000_000) as u32;

/// An ordinary order at most, in hundredths of a unit of the base currency.
const QTY_ORDINARY: i64 = 2;

/// The price step that the account must keep to in an instrument of about `ref_px`: coarser than the venue's where that
/// stays well within the collar.
pub(super) fn px_step(ref_px: i64) -> i64 {
    if ref_px >= 20_000 { 10 } else { 1 }
}

/// `hundredths` of one unit of the base currency in lots, at least one lot.
fn lots(tradable: &Tradable, hundredths: i64) -> i64 {
    let unit = 10_i64.saturating_pow(u32::from(tradable.lot_size.decimals)) / tradable.lot_size.mantissa.max(1);
    (unit.saturating_mul(hundredths) / 100).max(10)
}

/// The quantity that an ordinary order has at most.
pub(super) fn qty_ordinary(tradable: &Tradable) -> i64 {
    lots(tradable, QTY_ORDINARY)
}

/// The account's limits in `tradable`; `ref_px` is about the instrument's price.
pub(super) fn limits(tradable: &Tradable, ref_px: i64) -> Limits {
    let ordinary = qty_ordinary(tradable);
    Limits {
        px_step: Price(px_step(ref_px)),
        qty_step: Qty(1),
        qty_min: Qty(1),
        qty_max: Qty(ordinary * 3),
        notional_min: Notional(0),
        notional_max: Notional::of(Price(ref_px), Qty(ordinary * 2)),
        position_long_max: Qty(ordinary * 8),
        position_short_max: Qty(ordinary * 8),
        open_qty_max: Qty(ordinary * 8),
        open_orders_max: OPEN_ORDERS_MAX,
        enabled: Limits::CHECKED,
    }
}

/// The limits of an instrument for all accounts.
pub(super) const INSTRUMENT: InstrumentLimits =
    InstrumentLimits { collar_bps: COLLAR_BPS, mark_age_max_ns: MARK_AGE_MAX_NS, rate: WIDE_RATE };
