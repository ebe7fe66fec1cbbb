//! Kraken's list of instruments (the channel `instrument`).

use crate::error::ParseError;
use crate::listing::{ContractUnit, Entry, InstrumentStatus, Listing, Terms, entries};
use alloc::vec::Vec;

pub(super) fn parse(frame: &[u8]) -> Result<Vec<Listing>, ParseError> {
    if Entry::new(frame).text("channel") != Some("instrument") {
        return Err(ParseError::UnknownTopic);
    }
    entries(frame, &["data", "pairs"], listing)
}

fn listing(entry: Entry<'_>) -> Option<Listing> {
    Some(Listing {
        symbol: entry.string("symbol")?,
        name: entry.string("symbol")?,
        tick_size: entry.number("price_increment")?,
        lot_size: entry.number("qty_increment")?,
        unit: ContractUnit::Base,
        terms: Terms { status: InstrumentStatus::of(entry.text("status")), ..Terms::default() },
        alias: None,
    })
}
