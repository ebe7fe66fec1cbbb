//! Prices and quantities as text.

use tt_venue::{BookLevel, Decimal};

/// Returns `steps` times `size` as exact decimal text, with as many decimals as `size` needs.
#[must_use]
pub fn steps_text(steps: i64, size: Decimal) -> String {
    tt_status::decimal_text::steps_text(steps, tt_model::Decimal::new(size.mantissa, size.decimals))
}

/// A level's price and quantity as text.
#[must_use]
pub fn level_text(level: BookLevel, tick_size: Decimal, lot_size: Decimal) -> (String, String) {
    (steps_text(level.px.0, tick_size), steps_text(level.qty.0, lot_size))
}
