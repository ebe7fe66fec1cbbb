//! Hyperliquid's lists of instruments: perpetuals by their coins (`allPerpMetas`: the venue's own, then each builder's),
//! spot markets by their pairs (`spotMeta`), outcomes by number and side (`outcomeMeta`, if one is followed). The answers
//! come as one array, since a perpetual names the token that it settles in by its number among the spot tokens.

use crate::error::ParseError;
use crate::json::{self, Elements};
use crate::listing::{ContractUnit, Entry, InstrumentKind, InstrumentStatus, Listing, Terms};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use tt_model::Decimal;

/// Decimals of a perpetual's price and size together.
const PERPETUAL_DECIMALS: u8 = 6;
/// The same of a spot market.
const SPOT_DECIMALS: u8 = 8;
/// The same of an outcome, whose contracts are whole. The list does not say it; two clients do (nautilus-hyperliquid
/// 0.67, df-hyperliquid-core 0.2.4; read in 2026-12).
const OUTCOME_DECIMALS: u8 = 5;
/// Sides of an outcome, at most: its number has one digit for them.
const SIDES_MAX: u64 = 10;

pub(super) fn parse(body: &[u8]) -> Result<Vec<Listing>, ParseError> {
    let mut answers = Elements::parse(body)?;
    let perpetuals = answers.next()?.ok_or(ParseError::MissingKey)?;
    let spot_markets = Entry::new(answers.next()?.ok_or(ParseError::MissingKey)?);
    let tokens = spot_markets.array("tokens").ok_or(ParseError::MissingKey)?;
    let mut listings = Vec::new();
    let mut dexes = Elements::parse(perpetuals)?;
    while let Some(dex) = dexes.next()? {
        let dex = Entry::new(dex);
        let settle = settle(dex, &tokens);
        let universe = dex.array("universe").ok_or(ParseError::MissingKey)?;
        listings.extend(universe.into_iter().filter_map(|entry| perpetual(entry, &settle)));
    }
    let universe = spot_markets.array("universe").ok_or(ParseError::MissingKey)?;
    listings.extend(universe.into_iter().filter_map(|entry| spot(entry, &tokens)));
    if let Some(meta) = answers.next()? {
        for outcome in Entry::new(meta).array("outcomes").ok_or(ParseError::MissingKey)? {
            sides(outcome, &mut listings);
        }
    }
    Ok(listings)
}

/// The sides of an outcome (HIP-4): that of number `s` of outcome `o` is the coin `#` and `10 * o + s`
/// (hyperliquid.gitbook.io, "Asset IDs"). Without `quoteToken` it settles in USDC.
fn sides(outcome: Entry<'_>, listings: &mut Vec<Listing>) {
    let number = outcome.raw("outcome").and_then(|raw| json::bare_u64(raw).ok());
    let Some(first) = number.and_then(|number| number.checked_mul(SIDES_MAX)) else { return };
    let sides = outcome.array("sideSpecs").unwrap_or_default();
    for (coin, _) in (first..first.saturating_add(SIDES_MAX)).zip(sides) {
        let symbol = format!("#{coin}");
        let terms = Terms { kind: InstrumentKind::Event, ..Terms::default() };
        let name = Listing::name_of(&symbol, outcome.text("quoteToken").unwrap_or("USDC"), None, &terms);
        listings.extend(listing(symbol, name, OUTCOME_DECIMALS, 0, terms));
    }
}

/// What the perpetuals of a dex settle in: USDC where it does not say, `@` and the number of a token that is not listed.
fn settle(dex: Entry<'_>, tokens: &[Entry<'_>]) -> String {
    let Some(index) = dex.raw("collateralToken") else { return "USDC".into() };
    let unlisted = || format!("@{}", String::from_utf8_lossy(index));
    token(index, tokens).and_then(|token| token.string("name")).unwrap_or_else(unlisted)
}

/// The token of a number.
fn token<'t, 'a>(index: &[u8], tokens: &'t [Entry<'a>]) -> Option<&'t Entry<'a>> {
    let index = json::bare_u64(index).ok()?;
    tokens.iter().find(|token| token.raw("index").and_then(|raw| json::bare_u64(raw).ok()) == Some(index))
}

/// A builder's coin has the builder's name before it: `xyz:GOOGL`.
fn perpetual(entry: Entry<'_>, settle: &str) -> Option<Listing> {
    let symbol = entry.string("name")?;
    let is_delisted = entry.raw("isDelisted").and_then(|raw| json::boolean(raw).ok()) == Some(true);
    let status = if is_delisted { InstrumentStatus::Closed } else { InstrumentStatus::Trading };
    let terms = Terms { kind: InstrumentKind::Perpetual, status, ..Terms::default() };
    let name = Listing::name_of(&symbol, settle, Some(settle), &terms);
    listing(symbol, name, PERPETUAL_DECIMALS, entry.small("szDecimals")?, terms)
}

fn spot(entry: Entry<'_>, tokens: &[Entry<'_>]) -> Option<Listing> {
    let mut indices = Elements::parse(entry.raw("tokens")?).ok()?;
    let mut next = || token(indices.next().ok()??, tokens);
    let (base, quote) = (next()?, next()?);
    let name = Listing::name_of(base.text("name")?, quote.text("name")?, None, &Terms::default());
    listing(entry.string("name")?, name, SPOT_DECIMALS, base.small("szDecimals")?, Terms::default())
}

/// A price has the decimals that those of a size leave.
fn listing(symbol: String, name: String, decimals: u8, size_decimals: u8, terms: Terms) -> Option<Listing> {
    let tick_size = Decimal::new(1, decimals.checked_sub(size_decimals)?);
    let lot_size = Decimal::new(1, size_decimals);
    Some(Listing { name, symbol, tick_size, lot_size, unit: ContractUnit::Base, terms, alias: None })
}
