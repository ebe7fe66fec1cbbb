//! Bybit's list of instruments (`/v5/market/instruments-info`).

use crate::error::ParseError;
use crate::listing::{
    ContractUnit, Entry, InstrumentKind, InstrumentList, InstrumentStatus, ListRequest, Listing, OptionRight, Pages,
    Terms, entries,
};
use alloc::vec::Vec;
use tt_model::Decimal;

/// The list of `paths`, in pages of at most 1,000.
pub(super) const fn of(paths: &'static [&'static str]) -> InstrumentList {
    let pages = Pages::Cursor { path: &["result", "nextPageCursor"], parameter: "&cursor=" };
    InstrumentList { request: ListRequest::Get(paths), parse, pages, family: None, series: None }
}

/// The base asset of an option, `BTC` of `BTC-26MAR27-50000-C-USDT`: the venue lists options of one base at a time.
pub(super) fn base_of_option(symbol: &str) -> Option<&str> {
    let mut parts = symbol.split('-');
    let base = parts.next()?;
    let right = parts.nth(2)?;
    matches!(right, "C" | "P").then_some(base)
}

fn parse(body: &[u8]) -> Result<Vec<Listing>, ParseError> {
    entries(body, &["result", "list"], listing)
}

fn listing(entry: Entry<'_>) -> Option<Listing> {
    let (px, qty) = (entry.object("priceFilter")?, entry.object("lotSizeFilter")?);
    let (settle, terms) = (entry.text("settleCoin"), terms(entry));
    Some(Listing {
        symbol: entry.string("symbol")?,
        name: Listing::name_of(entry.text("baseCoin")?, entry.text("quoteCoin")?, settle, &terms),
        tick_size: px.number("tickSize")?,
        lot_size: qty.number("qtyStep").or_else(|| qty.number("basePrecision"))?,
        unit: match entry.text("contractType") {
            // Bybit counts inverse contracts in US dollars.
            Some(kind) if kind.starts_with("Inverse") => ContractUnit::Inverse(Decimal::new(1, 0)),
            Some(_) | None => ContractUnit::Base,
        },
        terms,
        alias: None,
    })
}

/// An option's strike is in its symbol alone: `BTC-27MAR26-50000-C-USDT`.
fn terms(entry: Entry<'_>) -> Terms {
    let status = InstrumentStatus::of(entry.text("status"));
    let right = entry.text("optionsType").and_then(OptionRight::of);
    let kind = match entry.text("contractType") {
        _ if right.is_some() => InstrumentKind::Option,
        None => InstrumentKind::Spot,
        Some(kind) if kind.ends_with("Perpetual") => InstrumentKind::Perpetual,
        Some(_) => InstrumentKind::Future,
    };
    let has_end = matches!(kind, InstrumentKind::Future | InstrumentKind::Option);
    let expiry = entry.millis("deliveryTime").filter(|_| has_end);
    let strike = entry.text("symbol").filter(|_| right.is_some()).and_then(|symbol| symbol.split('-').nth(2));
    Terms { kind, expiry, strike: strike.and_then(|text| Decimal::parse(text.as_bytes()).ok()), right, status }
}
