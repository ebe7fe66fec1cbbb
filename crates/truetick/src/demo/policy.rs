//! Limits of the demonstration, so small that the strategy's mistakes exceed each of them.

use tt_model::{Notional, Price, Qty};
use tt_risk::tree::{Route, RowLimits};
use tt_risk::{Capacity, Gate, GateError, InstrumentLimits, InstrumentRules, InstrumentState, Limits, Rate, Rules};

use super::DemoInstrument;

/// The one account.
pub(super) const ACCOUNT: u16 = 0;

/// The strategy's number.
pub(super) const STRATEGY: u16 = 1;

/// Maximum distance of a price from the middle of the book, in 1/10,000.
pub(super) const COLLAR_BPS: u32 = 50;

/// Maximum age of a quote.
const MARK_AGE_MAX_NS: u64 = 2_000_000_000;

/// The account's message rate; the strategy's bursts exceed it.
pub(super) const ACCOUNT_RATE: Rate = Rate { per_second: 25, burst: 10 };

/// The message rate of an instrument and of the gate: above the account's.
const WIDE_RATE: Rate = Rate { per_second: 100, burst: 50 };

/// Maximum number of open orders in an instrument.
const OPEN_ORDERS_MAX: u32 = 5;

/// Time during which a client id must not be reused.
const ID_WINDOW_NS: u64 = 600_000_000_000;

/// Maximum number of orders in that time at the account's rate.
const ORDERS: u32 = ACCOUNT_RATE.burst + ACCOUNT_RATE.per_second * (ID_WINDOW_NS / 1_000_000_000) as u32;

const RULES: Rules = Rules {
    id_window_ns: ID_WINDOW_NS,
    intent_age_max_ns: 5_000_000_000,
    cancel_repeat_ns: 100_000_000,
    gap_max_ns: 5_000_000_000,
    same_orders_max: 3,
    same_window_ns: 1_000_000_000,
    // The strategy's mistakes are its purpose.
    refusal_rate: Rate::UNLIMITED,
    cancel_window_ns: 0,
    exec_window_ns: 0,
    revalue_max_ns: 100_000_000,
    equity_age_max_ns: 0,
};

/// Maximum size of a regular order, in hundredths of a unit of the base currency.
const QTY_REGULAR: i64 = 2;

/// Returns the account's price step at about `ref_px`: coarser than the venue's if that is well within the collar.
pub(super) fn px_step(ref_px: i64) -> i64 {
    if ref_px >= 20_000 { 10 } else { 1 }
}

/// Returns `hundredths` of a unit of the base currency in lots, at least ten lots.
fn lots(of: &DemoInstrument, hundredths: i64) -> i64 {
    let unit = 10_i64.saturating_pow(u32::from(of.lot_size.decimals)) / of.lot_size.mantissa.max(1);
    (unit.saturating_mul(hundredths) / 100).max(10)
}

/// Returns the maximum quantity of a regular order.
pub(super) fn qty_regular(of: &DemoInstrument) -> i64 {
    lots(of, QTY_REGULAR)
}

/// Returns the account's limits in `of` at about `ref_px`.
pub(super) fn limits(of: &DemoInstrument, ref_px: i64) -> Limits {
    let regular = qty_regular(of);
    Limits {
        px_step: Price(px_step(ref_px)),
        qty_step: Qty(1),
        qty_min: Qty(1),
        qty_max: Qty(regular * 3),
        notional_min: Notional(0),
        notional_max: Notional::of(Price(ref_px), Qty(regular * 2)),
        position_long_max: Qty(regular * 8),
        position_short_max: Qty(regular * 8),
        open_qty_max: Qty(regular * 8),
        open_orders_max: OPEN_ORDERS_MAX,
        enabled: Limits::CHECKED,
    }
}

/// Limits of each instrument for all accounts.
const INSTRUMENT: InstrumentLimits =
    InstrumentLimits { collar_bps: COLLAR_BPS, mark_age_max_ns: MARK_AGE_MAX_NS, rate: WIDE_RATE };

/// Returns a gate for `instruments` with everything but the account's limits.
pub(super) fn gate(instruments: &[DemoInstrument]) -> Result<Gate, GateError> {
    let count = instruments.iter().map(|of| of.instrument.0 + 1).max().unwrap_or(0);
    let orders = ORDERS + OPEN_ORDERS_MAX * count;
    let capacity = Capacity {
        accounts: 1,
        instruments: count,
        producers: 1,
        orders,
        executions: 4 * orders,
        routes: count,
        currencies: 0,
    };
    let mut gate = Gate::new(capacity);
    gate.set_account_rate(ACCOUNT, ACCOUNT_RATE)?;
    gate.set_global_rate(WIDE_RATE);
    gate.set_rules(&RULES);
    for of in instruments {
        gate.set_instrument_limits(of.instrument, &INSTRUMENT)?;
        gate.set_instrument_rules(of.instrument, &InstrumentRules::default())?;
        gate.set_state(of.instrument, InstrumentState::Open)?;
        gate.restore(ACCOUNT, of.instrument, Qty(0), 0)?;
        gate.set_firm_limits(of.instrument, &RowLimits::UNLIMITED)?;
        let route = Route { producer: 0, account: ACCOUNT, strategy: STRATEGY, instrument: of.instrument };
        gate.set_route(&route, &RowLimits::UNLIMITED)?;
        gate.set_strategy_rate(ACCOUNT, STRATEGY, Rate::UNLIMITED)?;
    }
    Ok(gate)
}
