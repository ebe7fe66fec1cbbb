//! What a recording says of an engine, as JSON: whoever replays it makes the same one. A key that is absent has the
//! value that was meant before there was such a key; one that is not known is passed over.

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use tt_market::candle::CandleSource;
use tt_market::mark::Position;
use tt_market::{AddError, Capacity, Engine, InstrumentSpec};
use tt_model::{Decimal, InstrumentId, Nanos};
use tt_venue::listing::ContractUnit;
use tt_venue::{Symbol, Venue};

/// A feed's engine.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct EngineRecord {
    /// The program that recorded.
    truetick: String,
    venue: String,
    instruments: usize,
    connections: usize,
    pages: usize,
    overflow_levels: usize,
    frame_levels: usize,
    frame_entries: usize,
    backlogs: usize,
    backlog_deltas: usize,
    backlog_levels: usize,
    orders: usize,
    #[serde(default)]
    fills: usize,
    positions: usize,
    #[serde(default)]
    balances: usize,
    #[serde(default)]
    jitter_seed: u64,
    /// Lengths of the candles, nanoseconds.
    timeframes_ns: Vec<u64>,
    /// Orders of books that are followed order by order.
    #[serde(default, skip_serializing_if = "is_zero")]
    book_orders: usize,
    /// Whether the hashes are of all levels of the books, not of the ten best ones.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) whole_books: bool,
}

/// An instrument.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct InstrumentRecord {
    venue: String,
    pub(super) symbol: String,
    /// The normalised symbol.
    pub(super) name: String,
    tick_size: String,
    lot_size: String,
    depth_max: Option<usize>,
    candles: String,
    /// One of the base asset where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    contract: Option<ContractRecord>,
    /// Whether its book joins a snapshot by REST, where the venue offers the choice.
    #[serde(default, skip_serializing_if = "is_false")]
    join_by_rest: bool,
    /// Whether its book is followed order by order.
    #[serde(default, skip_serializing_if = "is_false")]
    by_order: bool,
    /// Whether its book has all levels, which come apart from those of other depths.
    #[serde(default, skip_serializing_if = "is_false")]
    full: bool,
    /// How often the venue promises a whole book, if the book is held against the times of its best levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    book_spacing_ns: Option<u64>,
}

/// What a contract is over.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum ContractRecord {
    /// So much of the base asset.
    Linear(String),
    /// So much of the quote asset.
    Inverse(String),
}

/// An instrument as a recording adds it to an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstrumentSetup {
    /// Venue, symbol, steps, depth and candles.
    pub spec: InstrumentSpec,
    /// What one contract is.
    pub unit: ContractUnit,
    /// Whether the book starts from a REST snapshot, if the venue offers a choice.
    pub join_by_rest: bool,
    /// Whether the book is followed order by order.
    pub by_order: bool,
    /// Whether the book has all levels, if those come apart from other depths.
    pub full: bool,
    /// How often the venue promises a whole book, where nothing else says how old a book is.
    pub book_spacing: Option<Nanos>,
}

impl InstrumentSetup {
    /// Adds it to `engine`.
    ///
    /// # Errors
    /// The engine's own.
    pub fn add_to(&self, engine: &mut Engine) -> Result<InstrumentId, AddError> {
        let id = engine.add_instrument(self.spec)?;
        engine.set_contract_unit(id, self.unit)?;
        if self.join_by_rest {
            engine.set_join_by_rest(id, true)?;
        }
        if self.by_order {
            engine.follow_orders(id)?;
        }
        if self.full {
            engine.follow_full_book(id)?;
        }
        if let Some(spacing) = self.book_spacing {
            engine.set_book_spacing(id, spacing)?;
        }
        Ok(id)
    }
}

/// The steps that an instrument is counted in from there on.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct StepsRecord {
    tick_size: String,
    lot_size: String,
}

/// A position that mark prices value.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct PositionRecord {
    instrument: u32,
    account: u16,
    lots: i64,
    entry_px: String,
}

impl EngineRecord {
    pub(super) fn new(venue: Venue, capacity: &Capacity) -> Self {
        let timeframes = &capacity.timeframes[..capacity.timeframes_len()];
        Self {
            truetick: env!("CARGO_PKG_VERSION").to_owned(),
            venue: venue.name().to_owned(),
            instruments: capacity.instruments,
            connections: capacity.connections,
            pages: capacity.pages,
            overflow_levels: capacity.overflow_levels,
            frame_levels: capacity.frame_levels,
            frame_entries: capacity.frame_entries,
            backlogs: capacity.backlogs,
            backlog_deltas: capacity.backlog_deltas,
            backlog_levels: capacity.backlog_levels,
            orders: capacity.orders,
            fills: capacity.fills,
            positions: capacity.positions,
            balances: capacity.balances,
            jitter_seed: capacity.jitter_seed,
            timeframes_ns: timeframes.iter().map(|timeframe| timeframe.0).collect(),
            book_orders: capacity.book_orders,
            whole_books: true,
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        bytes(self)
    }

    pub(super) fn of(body: &[u8]) -> Result<Self> {
        serde_json::from_slice(body).context("the record of an engine")
    }

    pub(super) fn venue(&self) -> Result<Venue> {
        venue(&self.venue)
    }

    pub(super) fn capacity(&self) -> Capacity {
        let standard = Capacity::default();
        let mut timeframes = standard.timeframes.map(|_| Nanos(0));
        for (timeframe, ns) in timeframes.iter_mut().zip(&self.timeframes_ns) {
            *timeframe = Nanos(*ns);
        }
        Capacity {
            instruments: self.instruments,
            connections: self.connections,
            pages: self.pages,
            overflow_levels: self.overflow_levels,
            frame_levels: self.frame_levels,
            frame_entries: self.frame_entries,
            backlogs: self.backlogs,
            backlog_deltas: self.backlog_deltas,
            backlog_levels: self.backlog_levels,
            book_orders: self.book_orders,
            orders: self.orders,
            fills: self.fills,
            positions: self.positions,
            balances: self.balances,
            jitter_seed: self.jitter_seed,
            timeframes,
        }
    }
}

impl InstrumentRecord {
    /// `symbol` is the venue's text of the setup's symbol.
    pub(super) fn new(setup: &InstrumentSetup, symbol: &str, name: &str) -> Self {
        let InstrumentSetup { spec, unit, join_by_rest, by_order, full, book_spacing } = setup;
        let contract = match *unit {
            ContractUnit::Base => None,
            ContractUnit::Linear(size) => Some(ContractRecord::Linear(size.to_string())),
            ContractUnit::Inverse(size) => Some(ContractRecord::Inverse(size.to_string())),
        };
        Self {
            venue: spec.venue.name().to_owned(),
            symbol: symbol.to_owned(),
            name: name.to_owned(),
            tick_size: spec.tick_size.to_string(),
            lot_size: spec.lot_size.to_string(),
            depth_max: spec.depth_max,
            candles: candles_name(spec.candles).to_owned(),
            contract,
            join_by_rest: *join_by_rest,
            by_order: *by_order,
            full: *full,
            book_spacing_ns: book_spacing.map(|spacing| spacing.0),
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        bytes(self)
    }

    pub(super) fn of(body: &[u8]) -> Result<Self> {
        serde_json::from_slice(body).context("the record of an instrument")
    }

    pub(super) fn setup(&self) -> Result<InstrumentSetup> {
        let symbol = Symbol::new(self.symbol.as_bytes());
        let spec = InstrumentSpec {
            venue: venue(&self.venue)?,
            symbol: symbol.map_err(|fault| anyhow::anyhow!("{}: {}", self.symbol, fault.name()))?,
            tick_size: parse(&self.tick_size)?,
            lot_size: parse(&self.lot_size)?,
            depth_max: self.depth_max,
            candles: candles(&self.candles)?,
        };
        let unit = match &self.contract {
            None => ContractUnit::Base,
            Some(ContractRecord::Linear(size)) => ContractUnit::Linear(parse(size)?),
            Some(ContractRecord::Inverse(size)) => ContractUnit::Inverse(parse(size)?),
        };
        let book_spacing = self.book_spacing_ns.map(Nanos);
        let Self { join_by_rest, by_order, full, .. } = *self;
        Ok(InstrumentSetup { spec, unit, join_by_rest, by_order, full, book_spacing })
    }
}

impl StepsRecord {
    pub(super) fn new(tick_size: Decimal, lot_size: Decimal) -> Self {
        Self { tick_size: tick_size.to_string(), lot_size: lot_size.to_string() }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        bytes(self)
    }
}

impl PositionRecord {
    pub(super) fn new(position: &Position) -> Self {
        let Position { instrument, account, lots, entry_px } = *position;
        Self { instrument: instrument.0, account, lots, entry_px: entry_px.to_string() }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        bytes(self)
    }

    pub(super) fn of(body: &[u8]) -> Result<Self> {
        serde_json::from_slice(body).context("the record of a position")
    }

    pub(super) fn position(&self) -> Result<Position> {
        let Self { instrument, account, lots, .. } = *self;
        Ok(Position { instrument: InstrumentId(instrument), account, lots, entry_px: parse(&self.entry_px)? })
    }
}

/// The venue of a feed, from the body of its engine's record.
///
/// # Errors
/// It is no such body, or of a venue that is not known.
pub fn parse_venue(body: &[u8]) -> Result<Venue> {
    EngineRecord::of(body)?.venue()
}

/// An instrument, from the body of its record.
///
/// # Errors
/// It is no such body.
pub fn parse_instrument(body: &[u8]) -> Result<InstrumentSetup> {
    InstrumentRecord::of(body)?.setup()
}

/// The price step and the quantity step, from the body of a record that makes them finer.
///
/// # Errors
/// It is no such body.
pub fn parse_steps(body: &[u8]) -> Result<(Decimal, Decimal)> {
    let record: StepsRecord = serde_json::from_slice(body).context("the record of steps")?;
    Ok((parse(&record.tick_size)?, parse(&record.lot_size)?))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
const fn is_false(value: &bool) -> bool {
    !*value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
const fn is_zero(value: &usize) -> bool {
    *value == 0
}

fn bytes(record: &impl Serialize) -> Vec<u8> {
    // Text and numbers: nothing of it cannot be JSON.
    serde_json::to_vec(record).unwrap_or_default()
}

fn venue(name: &str) -> Result<Venue> {
    Venue::find(name).with_context(|| format!("no venue is called {name:?}"))
}

fn parse(text: &str) -> Result<Decimal> {
    Decimal::parse(text.as_bytes()).with_context(|| format!("{text:?}"))
}

const CANDLES: [(CandleSource, &str); 3] =
    [(CandleSource::Trades, "trades"), (CandleSource::BestBid, "best_bid"), (CandleSource::LastPrice, "last_price")];

fn candles_name(source: CandleSource) -> &'static str {
    CANDLES.iter().find(|known| known.0 == source).map_or("", |known| known.1)
}

fn candles(name: &str) -> Result<CandleSource> {
    let found = CANDLES.iter().find(|known| known.1 == name).map(|known| known.0);
    found.with_context(|| format!("candles of {name:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_made_again_as_it_was() {
        let capacity = Capacity { instruments: 3, pages: 77, backlogs: 2, book_orders: 5, ..Capacity::default() };
        let record = EngineRecord::of(&EngineRecord::new(Venue::Kraken, &capacity).to_bytes()).unwrap();
        assert_eq!((record.venue().unwrap(), record.capacity()), (Venue::Kraken, capacity));
        let spec = InstrumentSpec {
            venue: Venue::BinanceUsdm,
            symbol: Symbol::new(b"1000PEPEUSDT").unwrap(),
            tick_size: Decimal::new(5_000, 10),
            lot_size: Decimal::new(100, 0),
            depth_max: Some(25),
            candles: CandleSource::LastPrice,
        };
        for (unit, join_by_rest, by_order, full, book_spacing) in [
            (ContractUnit::Base, false, true, false, None),
            (ContractUnit::Linear(Decimal::new(10, 4)), true, false, false, Some(Nanos(500_000_007))),
            (ContractUnit::Inverse(Decimal::new(100, 0)), false, false, true, None),
        ] {
            let setup = InstrumentSetup { spec, unit, join_by_rest, by_order, full, book_spacing };
            let record =
                InstrumentRecord::of(&InstrumentRecord::new(&setup, "1000PEPEUSDT", "PEPE").to_bytes()).unwrap();
            assert_eq!(record.setup().unwrap(), setup);
        }
        // As it was written before there were contracts and joins.
        let before = br#"{"venue":"okx","symbol":"BTC-USDT","name":"BTC/USDT","tick_size":"0.1","lot_size":"1e-8","depth_max":400,"candles":"trades"}"#;
        let setup = InstrumentRecord::of(before).unwrap().setup().unwrap();
        assert_eq!((setup.unit, setup.join_by_rest, setup.by_order), (ContractUnit::Base, false, false));
        let entry_px = Decimal::new(-6_180_050, 2);
        let position = Position { instrument: InstrumentId(1), account: 9, lots: -4, entry_px };
        let record = PositionRecord::of(&PositionRecord::new(&position).to_bytes()).unwrap();
        assert_eq!(record.position().unwrap(), position);
    }
}
