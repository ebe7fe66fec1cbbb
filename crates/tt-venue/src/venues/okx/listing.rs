//! OKX's list of instruments (`/api/v5/public/instruments`).

use crate::error::ParseError;
use crate::listing::{ContractUnit, Entry, InstrumentKind, InstrumentStatus, Listing, OptionRight, Terms, entries};
use alloc::vec::Vec;
use tt_model::Decimal;

pub(super) fn parse(body: &[u8]) -> Result<Vec<Listing>, ParseError> {
    entries(body, &["data"], listing)
}

/// The family of an option, `BTC-USD` of `BTC-USD-261225-100000-C`: the venue lists options of one family at a time.
pub(super) fn option_family(symbol: &str) -> Option<&str> {
    let (rest, right) = symbol.rsplit_once('-')?;
    let (rest, _strike) = rest.rsplit_once('-').filter(|_| matches!(right, "C" | "P"))?;
    let (family, _expiry) = rest.rsplit_once('-')?;
    Some(family)
}

fn listing(entry: Entry<'_>) -> Option<Listing> {
    // Contracts name their underlying pair instead of currencies.
    let underlying = || entry.text("uly")?.split_once('-');
    let (base, quote) = entry.text("baseCcy").zip(entry.text("quoteCcy")).or_else(underlying)?;
    let terms = terms(entry);
    Some(Listing {
        symbol: entry.string("instId")?,
        name: Listing::name_of(base, quote, entry.text("settleCcy"), &terms),
        tick_size: entry.number("tickSz")?,
        lot_size: entry.number("lotSz")?,
        unit: unit(entry)?,
        terms,
        alias: None,
    })
}

fn terms(entry: Entry<'_>) -> Terms {
    let kind = match entry.text("instType") {
        Some("SWAP") => InstrumentKind::Perpetual,
        Some("FUTURES") => InstrumentKind::Future,
        Some("OPTION") => InstrumentKind::Option,
        Some(_) | None => InstrumentKind::Spot,
    };
    let has_end = matches!(kind, InstrumentKind::Future | InstrumentKind::Option);
    let expiry = entry.millis("expTime").filter(|_| has_end);
    let right = entry.text("optType").and_then(OptionRight::of);
    Terms { kind, expiry, strike: entry.number("stk"), right, status: InstrumentStatus::of(entry.text("state")) }
}

/// A contract over `ctVal` times `ctMult` of the base asset, or of the quote asset if it is inverse.
fn unit(entry: Entry<'_>) -> Option<ContractUnit> {
    let size = || {
        let (value, times) = (entry.number("ctVal")?, entry.number("ctMult").unwrap_or(Decimal::new(1, 0)));
        Some(Decimal::new(value.mantissa.checked_mul(times.mantissa)?, value.decimals.checked_add(times.decimals)?))
    };
    match entry.text("ctType") {
        Some("linear") => size().map(ContractUnit::Linear),
        Some("inverse") => size().map(ContractUnit::Inverse),
        // Options have no `ctType`; they count contracts over so much of the base asset.
        Some(_) | None if entry.text("instType") == Some("OPTION") => size().map(ContractUnit::Linear),
        Some(_) | None => Some(ContractUnit::Base),
    }
}
