//! Prices and quantities as text.

use tt_model::Decimal;
use tt_status::decimal_text::steps_text;
use tt_venue::BookLevel;

/// Returns a level's price and quantity as exact decimal text.
#[must_use]
pub fn level_text(level: BookLevel, tick_size: Decimal, lot_size: Decimal) -> (String, String) {
    (steps_text(level.px.0, tick_size), steps_text(level.qty.0, lot_size))
}
