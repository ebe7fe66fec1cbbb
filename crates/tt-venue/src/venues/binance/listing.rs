//! Binance's lists of instruments (`exchangeInfo`).

use crate::error::ParseError;
use crate::listing::{ContractUnit, Entry, InstrumentKind, InstrumentStatus, Listing, Terms, entries};
use alloc::vec::Vec;
use tt_model::Decimal;

/// Spot: symbols without a settlement asset.
pub(super) fn spot(body: &[u8]) -> Result<Vec<Listing>, ParseError> {
    entries(body, &["symbols"], |entry| listing(entry, None, ContractUnit::Base))
}

/// USD-margined futures: quantities are in the base asset.
pub(super) fn usdm(body: &[u8]) -> Result<Vec<Listing>, ParseError> {
    entries(body, &["symbols"], |entry| listing(entry, settle(entry), ContractUnit::Base))
}

/// Coin-margined futures: quantities are contracts of a fixed value in US dollars.
pub(super) fn coinm(body: &[u8]) -> Result<Vec<Listing>, ParseError> {
    entries(body, &["symbols"], |entry| {
        listing(entry, settle(entry), ContractUnit::Inverse(entry.number("contractSize")?))
    })
}

fn settle(entry: Entry<'_>) -> Option<&str> {
    entry.text("marginAsset").or_else(|| entry.text("quoteAsset"))
}

fn listing(entry: Entry<'_>, settle: Option<&str>, unit: ContractUnit) -> Option<Listing> {
    let terms = terms(entry);
    Some(Listing {
        symbol: entry.string("symbol")?,
        name: Listing::name_of(entry.text("baseAsset")?, entry.text("quoteAsset")?, settle, &terms),
        tick_size: step(entry, "PRICE_FILTER", "tickSize")?,
        lot_size: step(entry, "LOT_SIZE", "stepSize")?,
        unit,
        terms,
        alias: None,
    })
}

/// `contractType` is `PERPETUAL`, `TRADIFI_PERPETUAL` or the quarter of a future; spot markets have none.
fn terms(entry: Entry<'_>) -> Terms {
    let status = InstrumentStatus::of(entry.text("contractStatus").or_else(|| entry.text("status")));
    match entry.text("contractType") {
        None => Terms { status, ..Terms::default() },
        Some(kind) if kind.ends_with("PERPETUAL") => {
            Terms { kind: InstrumentKind::Perpetual, status, ..Terms::default() }
        }
        Some(_) => {
            let expiry = entry.millis("deliveryDate");
            Terms { kind: InstrumentKind::Future, expiry, status, ..Terms::default() }
        }
    }
}

fn step(entry: Entry<'_>, filter: &str, key: &str) -> Option<Decimal> {
    let filters = entry.array("filters")?;
    filters.into_iter().find(|known| known.text("filterType") == Some(filter))?.number(key)
}
