//! Deribit's list of instruments (`public/get_instruments`).

use crate::error::ParseError;
use crate::listing::{ContractUnit, Entry, Listing, entries};
use alloc::vec::Vec;
use tt_model::Decimal;

pub(super) fn parse(body: &[u8]) -> Result<Vec<Listing>, ParseError> {
    entries(body, &["result"], listing)
}

fn listing(entry: Entry<'_>) -> Option<Listing> {
    let settle = entry.text("settlement_currency");
    Some(Listing {
        symbol: entry.string("instrument_name")?,
        name: Listing::name_of(entry.text("base_currency")?, entry.text("quote_currency")?, settle),
        tick_size: entry.number("tick_size")?,
        lot_size: entry.number("min_trade_amount")?,
        unit: match entry.text("instrument_type") {
            // Amounts of inverse futures and perpetuals are US dollars; those of options are the base asset.
            Some("reversed") if entry.text("kind").is_some_and(|kind| kind.starts_with("future")) => {
                ContractUnit::Inverse(Decimal::new(1, 0))
            }
            Some(_) | None => ContractUnit::Base,
        },
    })
}
