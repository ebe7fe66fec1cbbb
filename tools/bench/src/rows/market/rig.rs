//! An engine that follows Binance USD-M instruments.

use std::hint::black_box;

use anyhow::{Context as _, anyhow, bail, ensure};
use serde_json::Value;
use tt_market::DropReason;
use tt_market::candle::CandleSource;
use tt_market::mark::Position;
use tt_market::{Applied, BookUpdate, Capacity, ConnectionId, Engine, InstrumentSpec, Request};
use tt_meter::Off;
use tt_model::{Decimal, InstrumentId, Nanos};
use tt_venue::event::{Event, EventBuffer};
use tt_venue::{BookLevel, Symbol, Venue};

use super::updates::Pair;

/// Decimals of the instrument's price step and lot.
const PX_DECIMALS: u8 = 1;
const QTY_DECIMALS: u8 = 3;
/// A parsed frame.
pub(super) struct Parsed {
    pub(super) ts: Nanos,
    pub(super) event: Event,
    pub(super) buffer: EventBuffer,
}

/// How many instruments an engine follows, and what it has room for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    pub(super) instruments: usize,
    /// Candles of a minute, made of the best bid.
    pub(super) has_candles: bool,
    /// Positions in each instrument.
    pub(super) positions: usize,
    /// Pages of the books.
    pub(super) pages: usize,
}

impl Setup {
    /// Without books.
    pub(super) const fn of(instruments: usize) -> Self {
        Self { instruments, has_candles: true, positions: 0, pages: 64 }
    }
}

/// An engine with its instruments subscribed.
pub(super) struct Rig {
    pub(super) engine: Engine,
    pub(super) connection: ConnectionId,
    pub(super) instruments: usize,
}

/// The name of instrument `number` among `instruments`.
pub(super) fn symbol_text(number: usize, instruments: usize) -> String {
    if instruments == 1 { "BTCUSDT".to_owned() } else { format!("COIN{number:05}USDT") }
}

/// As [`symbol_text`].
///
/// # Errors
/// The engine refuses the text, which would be a fault of this bench.
pub(super) fn symbol(number: usize, instruments: usize) -> anyhow::Result<Symbol> {
    Symbol::new(symbol_text(number, instruments).as_bytes()).map_err(|fault| anyhow!("{fault:?}"))
}

impl Rig {
    /// # Errors
    /// The engine refuses an instrument, which would be a fault of this bench.
    pub(super) fn new(start: Nanos, setup: Setup) -> anyhow::Result<Self> {
        let Setup { instruments, has_candles, positions, pages } = setup;
        let mut capacity = Capacity {
            instruments,
            pages,
            backlogs: 1,
            overflow_levels: if instruments > 1 { 256 } else { 4_096 },
            positions: positions * instruments,
            ..Capacity::default()
        };
        if !has_candles {
            capacity.timeframes = [Nanos(0); 4];
        }
        let mut engine = Engine::new(capacity);
        for number in 0..instruments {
            let spec = InstrumentSpec {
                venue: Venue::BinanceUsdm,
                symbol: symbol(number, instruments)?,
                tick_size: Decimal::new(1, PX_DECIMALS),
                lot_size: Decimal::new(1, QTY_DECIMALS),
                depth_max: None,
                candles: CandleSource::BestBid,
            };
            engine.add_instrument(spec).map_err(|error| anyhow!("{error:?}"))?;
        }
        // The positions of an instrument lie apart, as those of several accounts do.
        for slot in 0..positions * instruments {
            let lots = [1_500, -200, 1][slot / instruments % 3];
            let instrument = InstrumentId((slot % instruments) as u32);
            let position =
                Position { instrument, account: (slot / instruments) as u16, lots, entry_px: Decimal::new(60_000, 0) };
            engine.set_position(slot, Some(position)).map_err(|error| anyhow!("{error:?}"))?;
        }
        let connection = engine.open_connection(Venue::BinanceUsdm, start).map_err(|error| anyhow!("{error:?}"))?;
        Ok(Self { engine, connection, instruments })
    }

    /// Resubscribes the book of instrument `number`, so that it waits for a snapshot.
    ///
    /// # Errors
    /// The engine does not ask for one.
    pub(super) fn await_snapshot(&mut self, number: usize, now: Nanos) -> anyhow::Result<InstrumentId> {
        let id = InstrumentId(number as u32);
        self.engine.subscribe(self.connection, id, now).map_err(|error| anyhow!("{error:?}"))?;
        match self.engine.poll_request(now) {
            Some(Request::FetchSnapshot { instrument }) if instrument == id => Ok(id),
            other => bail!("the engine asks for {other:?} instead of a snapshot"),
        }
    }

    /// Begins the book of instrument `number` with `body`.
    ///
    /// # Errors
    /// The engine does not take it.
    pub(super) fn begin_book(&mut self, number: usize, now: Nanos, body: &str) -> anyhow::Result<()> {
        let id = self.await_snapshot(number, now)?;
        let applied = self.engine.handle_snapshot(now, id, body.as_bytes(), &mut Off);
        applied.map(|_| ()).map_err(|fault| anyhow!("the snapshot is dropped: {fault:?}"))
    }

    /// Applies a parsed frame: a digest of what it changed.
    #[inline(always)]
    pub(super) fn apply(&mut self, ts: Nanos, event: &Event, buffer: &EventBuffer) -> u64 {
        digest(self.engine.handle_event(ts, self.connection, event, buffer, &mut Off))
    }

    /// Reads a parsed frame, as its parser has just written it.
    pub(super) fn read(event: &Event, buffer: &EventBuffer) {
        black_box(*event);
        for level in buffer.levels() {
            black_box(level.px);
        }
        for update in buffer.order_updates() {
            black_box(*update);
        }
    }

    /// Holds the shown levels of instrument `number` against `expected`.
    ///
    /// # Errors
    /// They differ.
    pub(super) fn compare_levels(&self, number: usize, expected: &[Vec<Pair>; 2]) -> anyhow::Result<()> {
        let board = self.engine.board();
        let id = InstrumentId(number as u32);
        let depth = board.depth(id).context("no book")?;
        let top = board.top_of_book(id).context("no book")?;
        for ((shown, best), expected) in [(depth.bids(), top.bid), (depth.asks(), top.ask)].into_iter().zip(expected) {
            let shown: Vec<Pair> = shown.iter().filter_map(|level| pair(Some(*level))).collect();
            ensure!(shown == *expected, "instrument {number} shows {shown:?}, not {expected:?}");
            ensure!(pair(best) == expected.first().copied(), "instrument {number}: best {best:?}, not {expected:?}");
        }
        Ok(())
    }

    /// Holds the shown ticker of instrument `number` against its frame.
    ///
    /// # Errors
    /// They differ.
    pub(super) fn compare_ticker(&self, number: usize, expected: &[Pair; 2]) -> anyhow::Result<()> {
        let ticker = self.engine.board().ticker(InstrumentId(number as u32)).context("no ticker")?;
        let shown = [pair(ticker.bid), pair(ticker.ask)];
        ensure!(shown == expected.map(Some), "instrument {number} shows {shown:?}, not {expected:?}");
        Ok(())
    }
}

/// Digests of what a frame changed, with the instrument's number added.
pub(super) const BOOK: u64 = 100_000;
pub(super) const TICKER: u64 = 200_000;
pub(super) const MARK_PRICE: u64 = 300_000;
/// The digest of an own order's update.
pub(super) const ORDERS: u64 = 1;

/// A number for what a frame changed, beyond a million where it was dropped.
#[inline(always)]
pub(super) fn digest(applied: Result<Applied, DropReason>) -> u64 {
    let applied = match applied {
        Ok(applied) => applied,
        Err(fault) => return 1_000_000 + fault as u64,
    };
    match applied {
        Applied::Book { update: BookUpdate::Buffered, .. } => 3,
        Applied::Book { instrument: id, .. } => BOOK + u64::from(id.0),
        Applied::Ticker(id) => TICKER + u64::from(id.0),
        Applied::Trades => 2,
        Applied::MarkPrice(id) => MARK_PRICE + u64::from(id.0),
        Applied::Orders => ORDERS,
        Applied::Control | Applied::Status { .. } | Applied::ListChanged | Applied::Session(_) => 4,
        Applied::Candles | Applied::Liquidations | Applied::Account => 5,
    }
}

/// Parses `frame` into a buffer of just its size.
///
/// # Errors
/// It does not parse.
pub(super) fn parsed(ts: u64, frame: &[u8], scratch: &mut EventBuffer) -> anyhow::Result<Parsed> {
    let refuse = |fault| anyhow!("{fault:?}: {}", String::from_utf8_lossy(frame));
    Venue::BinanceSpot.parse(frame, scratch).map_err(refuse)?;
    let entries = scratch.trades().len().max(scratch.order_updates().len()).max(1);
    let mut buffer = EventBuffer::new(scratch.levels().len().max(1), entries);
    let event = Venue::BinanceSpot.parse(frame, &mut buffer).map_err(refuse)?;
    Ok(Parsed { ts: Nanos(ts), event, buffer })
}

/// The inner object of a frame, by a JSON library.
///
/// # Errors
/// No JSON.
pub(super) fn json(frame: &[u8]) -> anyhow::Result<Value> {
    let mut value: Value = serde_json::from_slice(frame).context("no JSON")?;
    Ok(if value.get("data").is_some() { value["data"].take() } else { value })
}

/// `["61837.10","0.517"]`, or two texts, as steps of price and lots.
///
/// # Errors
/// No such numbers.
pub(super) fn level(px: &Value, qty: &Value) -> anyhow::Result<Pair> {
    Ok((steps(px, PX_DECIMALS)?, steps(qty, QTY_DECIMALS)?))
}

/// A decimal text as a whole number of `10^-decimals`.
///
/// # Errors
/// It is none.
pub(super) fn steps(text: &Value, decimals: u8) -> anyhow::Result<i64> {
    let text = text.as_str().context("no text")?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = format!("{fraction:0<width$}", width = usize::from(decimals));
    let (kept, rest) = fraction.split_at(usize::from(decimals));
    ensure!(rest.bytes().all(|digit| digit == b'0'), "{text} has more digits than the step");
    Ok(format!("{whole}{kept}").parse()?)
}

/// A published level as a pair.
pub(super) fn pair(level: Option<BookLevel>) -> Option<Pair> {
    level.map(|level| (level.px.0, level.qty.0))
}
