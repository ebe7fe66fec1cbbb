//! An engine that follows one Binance USD-M instrument.

use anyhow::{Context as _, anyhow, bail};
use serde_json::Value;
use tt_market::{
    Applied, BookLevel, CandleSource, Capacity, ConnectionId, Decimal, Engine, EventBuffer, InstrumentSpec, Position,
    Request, Symbol, Venue, binance,
};
use tt_meter::{Off, Probe};
use tt_model::{InstrumentId, Nanos};

use super::source::{is_of, is_snapshot};

/// Decimals of the instrument's price step and lot.
const PX_DECIMALS: u8 = 1;
const QTY_DECIMALS: u8 = 3;
/// Positions that each mark price values.
pub(super) const POSITIONS: usize = 8;

/// A parsed frame.
pub(super) struct Parsed {
    pub(super) ts: Nanos,
    pub(super) event: tt_market::Event,
    pub(super) buffer: EventBuffer,
}

/// The engine with its instrument subscribed, candles made of the best bid, one timeframe of a minute.
pub(super) struct Rig {
    pub(super) engine: Engine,
    pub(super) id: InstrumentId,
    pub(super) connection: ConnectionId,
}

impl Rig {
    /// # Errors
    /// The engine refuses the instrument, which would be a fault of this bench.
    pub(super) fn new(start: Nanos) -> anyhow::Result<Self> {
        let mut engine = Engine::new(Capacity { instruments: 1, pages: 8_192, backlogs: 1, ..Capacity::default() });
        let spec = InstrumentSpec {
            venue: Venue::BinanceUsdm,
            symbol: Symbol::new(b"BTCUSDT").map_err(|fault| anyhow!("{fault:?}"))?,
            tick_size: Decimal::new(1, PX_DECIMALS),
            lot_size: Decimal::new(1, QTY_DECIMALS),
            depth_max: None,
            candles: CandleSource::BestBid,
        };
        let id = engine.add_instrument(spec).map_err(|error| anyhow!("{error:?}"))?;
        for slot in 0..POSITIONS {
            let lots = [1_500, -200, 1, -7_000][slot % 4];
            let position = Position { instrument: id, account: slot as u16, lots, entry_px: Decimal::new(60_000, 0) };
            engine.set_position(slot, Some(position)).map_err(|error| anyhow!("{error:?}"))?;
        }
        let connection = engine.open_connection(Venue::BinanceUsdm, start).map_err(|error| anyhow!("{error:?}"))?;
        let mut rig = Self { engine, id, connection };
        rig.await_snapshot(start)?;
        Ok(rig)
    }

    /// Subscribes the book anew, so that it waits for a snapshot.
    ///
    /// # Errors
    /// The engine does not ask for one.
    pub(super) fn await_snapshot(&mut self, now: Nanos) -> anyhow::Result<()> {
        self.engine.subscribe(self.connection, self.id, now).map_err(|error| anyhow!("{error:?}"))?;
        match self.engine.poll_request(now) {
            Some(Request::FetchSnapshot { .. }) => Ok(()),
            other => bail!("the engine asks for {other:?} instead of a snapshot"),
        }
    }

    /// Feeds the depth frames and the snapshot of `frames` until the book is joined; how many that were.
    ///
    /// # Errors
    /// It is never joined.
    pub(super) fn join(&mut self, frames: &[(u64, Vec<u8>)]) -> anyhow::Result<usize> {
        let mut has_snapshot = false;
        for (index, (ts, frame)) in frames.iter().enumerate() {
            if is_snapshot(frame) {
                self.engine
                    .handle_snapshot(Nanos(*ts), self.id, frame, &mut Off)
                    .map_err(|fault| anyhow!("{fault:?}"))?;
                has_snapshot = true;
            } else if is_of(frame, "depthUpdate") {
                let applied = self.engine.handle_frame(Nanos(*ts), self.connection, frame, &mut Off);
                if has_snapshot && applied.is_ok_and(|applied| applied == Applied::Book(self.id)) {
                    return Ok(index + 1);
                }
            }
        }
        bail!("the book is never joined")
    }

    /// Applies a parsed frame: a digest of what it changed.
    #[inline(always)]
    pub(super) fn apply(&mut self, parsed: &Parsed, probe: &mut impl Probe) -> u64 {
        match self.engine.handle_event(parsed.ts, self.connection, &parsed.event, &parsed.buffer, probe) {
            Ok(applied) => digest(applied),
            Err(fault) => 1_000 + fault as u64,
        }
    }
}

/// A number for what a frame changed.
#[inline(always)]
pub(super) fn digest(applied: Applied) -> u64 {
    match applied {
        Applied::Book(id) => 1 + u64::from(id.0),
        Applied::Ticker(id) => 11 + u64::from(id.0),
        Applied::Trades => 21,
        Applied::MarkPrice(id) => 31 + u64::from(id.0),
        Applied::Orders => 41,
        Applied::Kept(_) => 51,
        Applied::Control => 61,
        Applied::Candles | Applied::Liquidations | Applied::Account => 71,
    }
}

/// Parses `frame` into a buffer of just its size.
///
/// # Errors
/// It does not parse.
pub(super) fn parsed(ts: u64, frame: &[u8], scratch: &mut EventBuffer) -> anyhow::Result<Parsed> {
    let refuse = |fault| anyhow!("{fault:?}: {}", String::from_utf8_lossy(frame));
    binance::parse(frame, scratch).map_err(refuse)?;
    let entries = scratch.trades().len().max(scratch.order_updates().len()).max(1);
    let mut buffer = EventBuffer::new(scratch.levels().len().max(1), entries);
    let event = binance::parse(frame, &mut buffer).map_err(refuse)?;
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
pub(super) fn level(px: &Value, qty: &Value) -> anyhow::Result<(i64, i64)> {
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
    anyhow::ensure!(rest.bytes().all(|digit| digit == b'0'), "{text} has more digits than the step");
    Ok(format!("{whole}{kept}").parse()?)
}

/// A published level as a pair.
pub(super) fn pair(level: Option<BookLevel>) -> Option<(i64, i64)> {
    level.map(|level| (level.px.0, level.qty.0))
}
