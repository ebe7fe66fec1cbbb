//! Coinbase Exchange's list of instruments (`/products`).

use crate::error::ParseError;
use crate::listing::{ContractUnit, Entry, InstrumentStatus, Listing, Terms, entries};
use alloc::vec::Vec;

pub(super) fn parse(body: &[u8]) -> Result<Vec<Listing>, ParseError> {
    entries(body, &[], listing)
}

fn listing(entry: Entry<'_>) -> Option<Listing> {
    let symbol = entry.string("id")?;
    Some(Listing {
        name: symbol.replace('-', "/"),
        symbol,
        tick_size: entry.number("quote_increment")?,
        lot_size: entry.number("base_increment")?,
        unit: ContractUnit::Base,
        terms: Terms { status: InstrumentStatus::of(entry.text("status")), ..Terms::default() },
        alias: None,
    })
}
