//! Deribit's list of instruments (`public/get_instruments`).

use crate::error::ParseError;
use crate::listing::{ContractUnit, Entry, InstrumentKind, InstrumentStatus, Listing, OptionRight, Terms, entries};
use alloc::vec::Vec;
use tt_model::Decimal;

pub(super) fn parse(body: &[u8]) -> Result<Vec<Listing>, ParseError> {
    entries(body, &["result"], listing)
}

fn listing(entry: Entry<'_>) -> Option<Listing> {
    let (settle, terms) = (entry.text("settlement_currency"), terms(entry));
    let is_combination = entry.text("kind").is_some_and(|kind| kind.ends_with("combo"));
    let name = if is_combination {
        // Its legs are in its symbol.
        entry.string("instrument_name")?
    } else {
        Listing::name_of(entry.text("base_currency")?, entry.text("quote_currency")?, settle, &terms)
    };
    Some(Listing {
        symbol: entry.string("instrument_name")?,
        name,
        tick_size: entry.number("tick_size")?,
        lot_size: entry.number("min_trade_amount")?,
        unit: match entry.text("instrument_type") {
            // Amounts of inverse futures and perpetuals are US dollars; those of options are the base asset.
            Some("reversed") if entry.text("kind").is_some_and(|kind| kind.starts_with("future")) => {
                ContractUnit::Inverse(Decimal::new(1, 0))
            }
            Some(_) | None => ContractUnit::Base,
        },
        terms,
        alias: None,
    })
}

fn terms(entry: Entry<'_>) -> Terms {
    let kind = match entry.text("kind") {
        Some(kind) if kind.starts_with("option") => InstrumentKind::Option,
        Some(_) if entry.text("settlement_period") == Some("perpetual") => InstrumentKind::Perpetual,
        Some(kind) if kind.starts_with("future") => InstrumentKind::Future,
        Some(_) | None => InstrumentKind::Spot,
    };
    let has_end = matches!(kind, InstrumentKind::Future | InstrumentKind::Option);
    let expiry = entry.millis("expiration_timestamp").filter(|_| has_end);
    let right = entry.text("option_type").and_then(OptionRight::of);
    Terms { kind, expiry, strike: entry.number("strike"), right, status: InstrumentStatus::of(entry.text("state")) }
}
