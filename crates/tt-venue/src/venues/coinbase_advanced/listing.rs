//! Coinbase Advanced's list of instruments (`/api/v3/brokerage/market/products`).

use crate::error::ParseError;
use crate::listing::{ContractUnit, Entry, InstrumentStatus, Listing, Terms, entries};
use alloc::vec::Vec;

pub(super) fn parse(body: &[u8]) -> Result<Vec<Listing>, ParseError> {
    entries(body, &["products"], listing)
}

fn listing(entry: Entry<'_>) -> Option<Listing> {
    let symbol = entry.string("product_id")?;
    Some(Listing {
        name: symbol.replace('-', "/"),
        symbol,
        tick_size: entry.number("price_increment").or_else(|| entry.number("quote_increment"))?,
        lot_size: entry.number("base_increment")?,
        unit: ContractUnit::Base,
        terms: Terms { status: InstrumentStatus::of(entry.text("status")), ..Terms::default() },
        // Frames of `BTC-USDC` are those of `BTC-USD`.
        alias: entry.string("alias").filter(|alias| Some(alias.as_str()) != entry.text("product_id")),
    })
}
