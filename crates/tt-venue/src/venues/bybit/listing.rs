//! Bybit's list of instruments (`/v5/market/instruments-info`).

use crate::error::ParseError;
use crate::listing::{ContractUnit, Entry, Listing, entries};
use alloc::vec::Vec;
use tt_model::Decimal;

pub(super) fn parse(body: &[u8]) -> Result<Vec<Listing>, ParseError> {
    entries(body, &["result", "list"], listing)
}

fn listing(entry: Entry<'_>) -> Option<Listing> {
    let (px, qty) = (entry.object("priceFilter")?, entry.object("lotSizeFilter")?);
    let settle = entry.text("settleCoin");
    Some(Listing {
        symbol: entry.string("symbol")?,
        name: Listing::name_of(entry.text("baseCoin")?, entry.text("quoteCoin")?, settle),
        tick_size: px.number("tickSize")?,
        lot_size: qty.number("qtyStep").or_else(|| qty.number("basePrecision"))?,
        unit: match entry.text("contractType") {
            // Bybit counts inverse contracts in US dollars.
            Some(kind) if kind.starts_with("Inverse") => ContractUnit::Inverse(Decimal::new(1, 0)),
            Some(_) | None => ContractUnit::Base,
        },
    })
}
