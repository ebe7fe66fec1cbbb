//! The gate once more, as a reader of its limits would write it: one check after the other, on wide integers.

use std::collections::HashMap;

use tt_model::{Breach, IntentKind, OrderIntent, OrderSide};

use super::evaluator::{COLLAR_BPS, LIMITS, reference_px};

/// Open buys, sells and orders of each account and instrument. No order is ever filled.
#[derive(Debug, Default)]
pub(crate) struct Reference {
    open: HashMap<(u16, u32), ([i128; 2], u32)>,
}

impl Reference {
    /// Every reason against `intent`, and the worst position after it; takes it in where there is no reason.
    pub(crate) fn evaluate(&mut self, intent: &OrderIntent) -> (Breach, i64) {
        let mut found = Breach::NONE;
        let (open, orders) = self.open.entry((intent.account, intent.instrument.0)).or_default();
        let (side, sign) = match intent.side {
            OrderSide::Buy => (0, 1),
            OrderSide::Sell => (1, -1),
        };
        let reference = i128::from(reference_px(intent.instrument.0));
        let is_market = intent.kind == IntentKind::MARKET;
        let px = if is_market { reference } else { i128::from(intent.limit_px.0) };
        let qty = i128::from(intent.qty.0);
        let mut check = |is_bad: bool, reason| {
            if is_bad {
                found = found.union(reason);
            }
        };
        let width = reference * i128::from(COLLAR_BPS) / 10_000;
        if !is_market {
            check(px % i128::from(LIMITS.px_step.0) != 0, Breach::PRICE_TICK);
            check((px - reference).abs() > width, Breach::COLLAR_REF);
        }
        check(px <= 0, Breach::PRICE_NONPOS);
        check(qty % i128::from(LIMITS.qty_step.0) != 0, Breach::QTY_STEP);
        check(qty < i128::from(LIMITS.qty_min.0), Breach::QTY_MIN);
        check(qty > i128::from(LIMITS.qty_max.0), Breach::QTY_MAX);
        check(px * qty < LIMITS.notional_min.0, Breach::NOTIONAL_MIN);
        check(px * qty > LIMITS.notional_max.0, Breach::NOTIONAL_MAX);
        let worst = open[side] + qty;
        let (position_max, reason) = match intent.side {
            OrderSide::Buy => (LIMITS.position_long_max, Breach::POS_LONG),
            OrderSide::Sell => (LIMITS.position_short_max, Breach::POS_SHORT),
        };
        check(worst > i128::from(position_max.0), reason);
        check(worst > i128::from(LIMITS.open_qty_max.0), Breach::OPEN_QTY);
        check(*orders >= LIMITS.open_orders_max, Breach::OPEN_ORDERS);
        if found == Breach::NONE {
            open[side] = worst;
            *orders += 1;
        }
        (found, (sign * worst) as i64)
    }
}
