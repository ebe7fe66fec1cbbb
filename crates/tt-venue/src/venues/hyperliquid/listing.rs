//! Hyperliquid's lists of instruments: perpetuals by their coins (`meta`), spot markets by their pairs (`spotMeta`).

use crate::error::ParseError;
use crate::json::{self, Elements};
use crate::listing::{ContractUnit, Entry, InstrumentKind, Listing, Terms, entries};
use alloc::string::String;
use alloc::vec::Vec;
use tt_model::Decimal;

/// Decimals of a perpetual's price and size together.
const PERPETUAL_DECIMALS: u8 = 6;
/// The same of a spot market.
const SPOT_DECIMALS: u8 = 8;

pub(super) fn parse(body: &[u8]) -> Result<Vec<Listing>, ParseError> {
    let tokens = Entry::new(body).array("tokens").unwrap_or_default();
    entries(body, &["universe"], |entry| match entry.raw("tokens") {
        Some(pair) => spot(entry, pair, &tokens),
        None => perpetual(entry),
    })
}

fn perpetual(entry: Entry<'_>) -> Option<Listing> {
    let symbol = entry.string("name")?;
    let terms = Terms { kind: InstrumentKind::Perpetual, ..Terms::default() };
    let name = Listing::name_of(&symbol, "USDC", Some("USDC"), &terms);
    listing(symbol, name, PERPETUAL_DECIMALS, entry.small("szDecimals")?, terms)
}

fn spot(entry: Entry<'_>, pair: &[u8], tokens: &[Entry<'_>]) -> Option<Listing> {
    let mut indices = Elements::parse(pair).ok()?;
    let mut token = || {
        let index = json::bare_u64(indices.next().ok()??).ok()?;
        tokens.iter().find(|token| token.raw("index").and_then(|raw| json::bare_u64(raw).ok()) == Some(index))
    };
    let (base, quote) = (token()?, token()?);
    let name = Listing::name_of(base.text("name")?, quote.text("name")?, None, &Terms::default());
    listing(entry.string("name")?, name, SPOT_DECIMALS, base.small("szDecimals")?, Terms::default())
}

/// A price has the decimals that those of a size leave.
fn listing(symbol: String, name: String, decimals: u8, size_decimals: u8, terms: Terms) -> Option<Listing> {
    let tick_size = Decimal::new(1, decimals.checked_sub(size_decimals)?);
    let lot_size = Decimal::new(1, size_decimals);
    Some(Listing { name, symbol, tick_size, lot_size, unit: ContractUnit::Base, terms, alias: None })
}
