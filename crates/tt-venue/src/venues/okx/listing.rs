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

/// The series of an event, `BTC-ABOVE-DAILY` of `BTC-ABOVE-DAILY-260428-1600-64000`: what is before its day. Day and
/// minute distinguish it from an option, whose day is followed by a strike and a letter.
pub(super) fn event_series(symbol: &str) -> Option<&str> {
    let digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    let day = symbol.match_indices('-').map(|(dash, _)| dash).find(|dash| {
        let mut parts = symbol[dash + 1..].split('-');
        parts.next().is_some_and(|day| digits(day, 6))
            && parts.next().is_some_and(|minute| digits(minute, 4))
            && parts.next().is_some_and(|last| !matches!(last, "C" | "P"))
    })?;
    Some(&symbol[..day])
}

fn listing(entry: Entry<'_>) -> Option<Listing> {
    let terms = terms(entry);
    // Contracts name their underlying pair instead of currencies.
    let underlying = || entry.text("uly")?.split_once('-');
    let name = if terms.kind == InstrumentKind::Event {
        // Its series, which says what has to happen, is in its symbol.
        entry.string("instId")?
    } else {
        let (base, quote) = entry.text("baseCcy").zip(entry.text("quoteCcy")).or_else(underlying)?;
        Listing::name_of(base, quote, entry.text("settleCcy"), &terms)
    };
    Some(Listing {
        symbol: entry.string("instId")?,
        name,
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
        Some("EVENTS") => InstrumentKind::Event,
        Some(_) | None => InstrumentKind::Spot,
    };
    let has_end = matches!(kind, InstrumentKind::Future | InstrumentKind::Option | InstrumentKind::Event);
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
