//! The gate that judges, and the orders that it judges: those of the row `evaluator_ns` of `truetick bench`.

use tt_model::{InstrumentId, IntentKind, Notional, OrderSide, OrderTerms, Price, Qty, SplitMix64};
use tt_risk::{Evaluator, Exposure, InstrumentLimits, Limits, Mark, Rate};

/// Different orders.
pub(crate) const ORDERS: usize = 1 << 16;
/// How large a gate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) accounts: u16,
    pub(crate) instruments: u32,
}

/// As the row of `truetick bench`: everything stays in the core's own caches.
pub(crate) const SMALL: Size = Size { accounts: 4, instruments: 16 };
/// Setting: rows of three cache lines for 400,000 pairs, 77 MB: nearly every order finds its row far away.
pub(crate) const LARGE: Size = Size { accounts: 200, instruments: 2_000 };

/// Nanoseconds from one order to the next on the gate's clock.
pub(crate) const STEP_NS: u64 = 100;
/// When the first order comes.
pub(crate) const BEGIN_NS: u64 = 1_000_000;
pub(crate) const COLLAR_BPS: u32 = 100;
pub(crate) const RATE: Rate = Rate { per_second: 1_000_000_000, burst: 1_000 };

/// The limits that every account has in every instrument.
pub(crate) const LIMITS: Limits = Limits {
    px_step: Price(5),
    qty_step: Qty(10),
    qty_min: Qty(10),
    qty_max: Qty(5_000),
    notional_min: Notional(500_000),
    notional_max: Notional(480_000_000),
    position_long_max: Qty(2_300_000),
    position_short_max: Qty(2_300_000),
    open_qty_max: Qty(2_400_000),
    open_orders_max: 1_000,
    enabled: Limits::CHECKED,
};

pub(crate) const fn reference_px(instrument: u32) -> i64 {
    100_000 + 1_000 * (instrument % 64) as i64
}

/// A gate in which everything is allowed that [`LIMITS`] allows.
pub(crate) fn gate(size: Size) -> Evaluator {
    // Nothing is remembered: the rival has no check that would need it.
    let Size { accounts, instruments } = size;
    let mut gate = Evaluator::new(accounts, instruments);
    gate.set_global_rate(RATE);
    for instrument in (0..size.instruments).map(InstrumentId) {
        let limits = InstrumentLimits { collar_bps: COLLAR_BPS, mark_age_max_ns: u64::MAX, rate: RATE };
        let mark = Mark { ref_px: Price(reference_px(instrument.0)), is_verified: true, ..Mark::default() };
        gate.set_instrument_limits(instrument, &limits).expect("the instrument is in the table");
        gate.set_reference(instrument, &mark).expect("the instrument is in the table");
        for account in 0..size.accounts {
            gate.set_limits(account, instrument, &LIMITS).expect("limits are in range");
        }
    }
    for account in 0..size.accounts {
        gate.set_account_rate(account, RATE).expect("the account is in the table");
    }
    reset(&mut gate, size);
    gate
}

/// No position, nothing open.
pub(crate) fn reset(gate: &mut Evaluator, size: Size) {
    for account in 0..size.accounts {
        for instrument in (0..size.instruments).map(InstrumentId) {
            gate.restore(account, instrument, &Exposure::default()).expect("the row is in the table");
        }
    }
}

/// Orders of which about one in three breaks a limit, one in ten is a market order.
pub(crate) fn orders(seed: u64, count: usize, size: Size) -> Vec<OrderTerms> {
    let mut random = SplitMix64::new(seed);
    let one = |index: usize| {
        let instrument = random.index(size.instruments as usize) as u32;
        let width = reference_px(instrument) * i64::from(COLLAR_BPS) / 10_000;
        let away = random.index(2 * width as usize + 100) as i64 - width - 50;
        let px = reference_px(instrument) + away;
        let qty = 10 * random.index(510) as i64;
        let exact = random.index(8) != 0;
        OrderTerms {
            client_id: index as u64,
            limit_px: Price(if exact { px / 5 * 5 } else { px }),
            qty: Qty(if random.index(16) == 0 { qty + 1 } else { qty }),
            account: random.index(usize::from(size.accounts)) as u16,
            strategy: random.index(8) as u16,
            instrument: InstrumentId(instrument),
            kind: if random.index(10) == 0 { IntentKind::MARKET } else { IntentKind::LIMIT },
            side: if random.index(2) == 0 { OrderSide::Buy } else { OrderSide::Sell },
            ..OrderTerms::default()
        }
    };
    (0..count).map(one).collect()
}
