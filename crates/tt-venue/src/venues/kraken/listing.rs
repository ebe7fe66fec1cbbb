//! Kraken's lists of instruments (the channel `instrument`).

use crate::error::ParseError;
use crate::listing::{ContractUnit, Entry, InstrumentKind, InstrumentStatus, Listing, Terms, entries};
use crate::time;
use alloc::format;
use alloc::vec::Vec;
use tt_model::{Decimal, Nanos};

pub(super) fn spot(frame: &[u8]) -> Result<Vec<Listing>, ParseError> {
    list(frame, |entry| listing(entry, Terms::default(), ContractUnit::Base))
}

pub(super) fn derivatives(frame: &[u8]) -> Result<Vec<Listing>, ParseError> {
    list(frame, derivative)
}

fn list(frame: &[u8], read: impl Fn(Entry<'_>) -> Option<Listing>) -> Result<Vec<Listing>, ParseError> {
    if Entry::new(frame).text("channel") != Some("instrument") {
        return Err(ParseError::UnknownTopic);
    }
    entries(frame, &["data", "pairs"], read)
}

fn listing(entry: Entry<'_>, terms: Terms, unit: ContractUnit) -> Option<Listing> {
    Some(Listing {
        symbol: entry.string("symbol")?,
        name: entry.string("symbol")?,
        tick_size: entry.number("price_increment")?,
        lot_size: entry.number("qty_increment")?,
        unit,
        terms: Terms { status: InstrumentStatus::of(entry.text("status")), ..terms },
        alias: None,
    })
}

/// A contract by the prefix of its symbol, since the list does not say it: `PI_XBTUSD` is a perpetual worth a dollar each
/// that settles in bitcoin, `FF_XBTUSD_260925` counts bitcoin, settles in dollars and ends (docs.kraken.com, "Get
/// instruments" of the derivatives' REST interface).
fn derivative(entry: Entry<'_>) -> Option<Listing> {
    let symbol = entry.text("symbol")?;
    let expiry = symbol.rsplit('_').next().and_then(expiry);
    let kind = if expiry.is_some() { InstrumentKind::Future } else { InstrumentKind::Perpetual };
    let terms = Terms { kind, expiry, ..Terms::default() };
    let is_inverse = symbol.starts_with("PI_") || symbol.starts_with("FI_");
    let unit = if is_inverse { ContractUnit::Inverse(Decimal::new(1, 0)) } else { ContractUnit::Base };
    let mut listing = listing(entry, terms, unit)?;
    if let Some((base, quote)) = entry.text("base").zip(entry.text("quote")) {
        let settle = if is_inverse { base } else { quote };
        listing.name = Listing::name_of(base, quote, Some(settle), &terms);
    }
    Some(listing)
}

/// The end of a contract, `260925`: the documentation's examples end at 15:00 UTC.
fn expiry(day: &str) -> Option<Nanos> {
    let (year, month, day) = (day.get(..2)?, day.get(2..4)?, day.get(4..)?);
    time::from_rfc3339(format!("20{year}-{month}-{day}T15:00:00Z").as_bytes()).ok()
}
