//! The shipped engine on the same frames. Its time includes all checks, counts and publication.

use std::hint::black_box;

use anyhow::{Context as _, anyhow, ensure};
use tt_market::{Applied, BookUpdate, Capacity, ConnectionId, Engine, InstrumentSpec, Request};
use tt_market::board::DEPTH;
use tt_market::candle::CandleSource;
use tt_meter::{Off, Probe, Stage, Stamp};
use tt_model::{Decimal, InstrumentId, Nanos};
use tt_venue::event::{BookTicker, Event, EventBuffer};
use tt_venue::{BookLevel, Symbol, Venue};

use crate::books::Timing;
use crate::gauge::Gauge;
use crate::input::{Feed, Sides, Verified};
use crate::tickers::{Seen, Ticker};
use crate::wire::{Levels, PX_PER_STEP};

/// From the first pass over a session to the second, a day.
const LATER_NS: u64 = 86_400_000_000_000;

/// An engine that follows one instrument.
pub(crate) struct Rig {
    pub(crate) engine: Engine,
    pub(crate) id: InstrumentId,
    pub(crate) connection: ConnectionId,
}

fn fault(fault: impl std::fmt::Debug) -> anyhow::Error {
    anyhow!("{fault:?}")
}

fn usdm(symbol: &[u8]) -> anyhow::Result<InstrumentSpec> {
    Ok(InstrumentSpec {
        venue: Venue::BinanceUsdm,
        symbol: Symbol::new(symbol).map_err(fault)?,
        tick_size: Decimal::new(1, 1),
        lot_size: Decimal::new(1, 3),
        depth_max: None,
        candles: CandleSource::BestBid,
    })
}

impl Rig {
    fn new(spec: InstrumentSpec, now: Nanos) -> anyhow::Result<Self> {
        let mut engine = Engine::new(Capacity { instruments: 1, pages: 8_192, backlogs: 1, ..Capacity::default() });
        let id = engine.add_instrument(spec).map_err(fault)?;
        let connection = engine.open_connection(spec.venue, now).map_err(fault)?;
        Ok(Self { engine, id, connection })
    }

    /// Waits for a snapshot again.
    fn await_snapshot(&mut self, now: Nanos) -> anyhow::Result<()> {
        match self.engine.poll_request(now) {
            Some(Request::FetchSnapshot { .. }) => Ok(()),
            other => Err(anyhow!("the engine asks for {other:?} instead of a snapshot")),
        }
    }

    /// Not subscribed to a book yet.
    fn of(session: &Feed) -> anyhow::Result<Self> {
        Self::new(usdm(b"BTCUSDT")?, Nanos(session.early.first().context("no early frame")?.ts_ns))
    }

    /// Takes the snapshot and the frames up to the live ones, `later_ns` after they came.
    fn join(&mut self, session: &Feed, later_ns: u64) -> anyhow::Result<()> {
        let at = |record: &tt_journal::Record| Nanos(record.ts_ns + later_ns);
        let now = at(session.early.first().context("no early frame")?);
        self.engine.subscribe(self.connection, self.id, now).map_err(fault)?;
        self.await_snapshot(now)?;
        for (index, record) in session.early.iter().enumerate() {
            if index == session.snapshot_at {
                let taken = self.engine.handle_snapshot(at(record), self.id, &session.snapshot, &mut Off);
                taken.map_err(fault)?;
            }
            // Frames before the snapshot are kept, or held by it already.
            let _ = self.engine.handle_frame(at(record), self.connection, &record.payload, &mut Off);
        }
        let top = self.engine.board().top_of_book(self.id).context("no book")?;
        ensure!(top.status.proof.is_verified(), "the book is not joined: {:?}", top.status);
        Ok(())
    }

    fn check(&self, session: &Feed, applied: u64) -> anyhow::Result<()> {
        ensure!(applied == session.live.len() as u64, "{applied} of {} frames applied", session.live.len());
        self.check_levels(&session.end)
    }

    /// The ten best of both sides, and how many there are of all.
    fn check_levels(&self, [bids, asks]: &Sides) -> anyhow::Result<()> {
        let depth = self.engine.board().depth(self.id).context("no book")?;
        let pair = |level: &BookLevel| (level.px.0 * PX_PER_STEP, level.qty.0);
        for (published, levels) in [depth.bids(), depth.asks()].into_iter().zip([bids, asks]) {
            ensure!(published.len() == levels.len().min(DEPTH), "{} levels are published", published.len());
            let published: Vec<(i64, i64)> = published.iter().map(pair).collect();
            ensure!(published[..] == levels[..published.len()], "the published levels are not the true ones");
        }
        ensure!(self.engine.levels_len(self.id) == Some((bids.len(), asks.len())), "levels are missing, or too many");
        Ok(())
    }
}

/// A parsed frame.
struct Parsed {
    ts: Nanos,
    event: Event,
    buffer: EventBuffer,
}

fn parsed(ts_ns: u64, frame: &[u8]) -> anyhow::Result<Parsed> {
    let mut scratch = EventBuffer::new(16_384, 16);
    Venue::BinanceSpot.parse(frame, &mut scratch).map_err(fault)?;
    let mut buffer = EventBuffer::new(scratch.levels().len().max(1), 1);
    let event = Venue::BinanceSpot.parse(frame, &mut buffer).map_err(fault)?;
    Ok(Parsed { ts: Nanos(ts_ns), event, buffer })
}

/// As [`crate::books::delta`]; the book is published after each frame.
pub(crate) fn delta(session: &Feed, gauge: &Gauge) -> anyhow::Result<Timing> {
    let frames: Vec<Parsed> =
        session.live.iter().map(|record| parsed(record.ts_ns, &record.payload)).collect::<Result<_, _>>()?;
    let mut rig = Rig::of(session)?;
    let (mut applied, id) = (0, rig.id);
    // The first time brings the memory.
    rig.join(session, 0)?;
    for Parsed { ts, event, buffer } in &frames {
        let _ = rig.engine.handle_event(*ts, rig.connection, event, buffer, &mut Off);
    }
    rig.join(session, LATER_NS)?;
    let begin = gauge.begin();
    for frame in &frames {
        let Parsed { ts, event, buffer } = black_box(frame);
        let result = rig.engine.handle_event(Nanos(ts.0 + LATER_NS), rig.connection, event, buffer, &mut Off);
        applied += u64::from(result == Ok(Applied::Book { instrument: id, update: BookUpdate::Delta }));
    }
    let ns = gauge.end(begin);
    rig.check(session, applied)?;
    Ok(Timing { ns, units: session.levels as u64 })
}

/// As [`crate::books::bytes`]; the book is published after each frame.
pub(crate) fn bytes(session: &Feed, gauge: &Gauge) -> anyhow::Result<Timing> {
    let mut rig = Rig::of(session)?;
    let (mut applied, id) = (0, rig.id);
    rig.join(session, 0)?;
    for record in &session.live {
        let _ = rig.engine.handle_frame(Nanos(record.ts_ns), rig.connection, &record.payload, &mut Off);
    }
    rig.join(session, LATER_NS)?;
    let begin = gauge.begin();
    for record in &session.live {
        let frame = black_box(&record.payload);
        let result = rig.engine.handle_frame(Nanos(record.ts_ns + LATER_NS), rig.connection, frame, &mut Off);
        applied += u64::from(result == Ok(Applied::Book { instrument: id, update: BookUpdate::Delta }));
    }
    let ns = gauge.end(begin);
    rig.check(session, applied)?;
    Ok(Timing { ns, units: session.live.len() as u64 })
}

/// Begins to measure at the end of parsing, where that is wanted.
struct AfterParse<'a> {
    gauge: &'a Gauge,
    is_wanted: bool,
    parsed: Stamp,
}

impl Probe for AfterParse<'_> {
    fn begin(&mut self) {}
    fn mark(&mut self, stage: Stage) {
        if self.is_wanted && stage == Stage::Parse {
            self.parsed = self.gauge.begin();
        }
    }
    fn end(&mut self) {}
}

/// Where the time of a snapshot begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// As [`crate::books::snapshot`].
    Parsed,
    /// As [`crate::books::snapshot_bytes`].
    Bytes,
}

/// Snapshots into a book that awaits them, published.
pub(crate) fn snapshot(session: &Feed, from: From, gauge: &Gauge) -> anyhow::Result<Timing> {
    let mut rig = Rig::new(usdm(b"BTCUSDT")?, Nanos(1))?;
    let body = Levels::of_body(&session.snapshot)?;
    let mut ns = 0.0;
    for round in 1..=session.extent.snapshots {
        let now = Nanos::from_secs(100 * round);
        rig.engine.subscribe(rig.connection, rig.id, now).map_err(fault)?;
        rig.await_snapshot(now)?;
        let mut probe = AfterParse { gauge, is_wanted: from == From::Parsed, parsed: Stamp::default() };
        let begin = if probe.is_wanted { Stamp::default() } else { gauge.begin() };
        let taken = rig.engine.handle_snapshot(now, rig.id, black_box(&session.snapshot), &mut probe);
        ns += gauge.end(if probe.is_wanted { probe.parsed } else { begin });
        taken.map_err(fault)?;
    }
    rig.check_levels(&[body.bids, body.asks])?;
    Ok(Timing { ns, units: session.extent.snapshots })
}

/// As [`crate::kraken::verified`]: every frame's checksum agrees with the book.
pub(crate) fn verified(session: &Verified, gauge: &Gauge) -> anyhow::Result<Timing> {
    let spec = InstrumentSpec {
        venue: Venue::Kraken,
        symbol: Symbol::new(b"BTC/USD").map_err(fault)?,
        tick_size: Decimal::new(1, 1),
        lot_size: Decimal::new(1, 8),
        depth_max: Some(session.depth),
        candles: CandleSource::LastPrice,
    };
    let (first, live) = session.frames.split_first().context("no frame")?;
    let mut rig = Rig::new(spec, Nanos(first.ts_ns))?;
    rig.engine.subscribe(rig.connection, rig.id, Nanos(first.ts_ns)).map_err(fault)?;
    rig.engine.handle_frame(Nanos(first.ts_ns), rig.connection, &first.payload, &mut Off).map_err(fault)?;
    let (mut applied, id) = (0, rig.id);
    let begin = gauge.begin();
    for record in live {
        let frame = black_box(&record.payload);
        let result = rig.engine.handle_frame(Nanos(record.ts_ns), rig.connection, frame, &mut Off);
        applied += u64::from(result == Ok(Applied::Book { instrument: id, update: BookUpdate::Delta }));
    }
    let ns = gauge.end(begin);
    ensure!(applied == live.len() as u64, "{applied} of {} frames agree with their checksum", live.len());
    Ok(Timing { ns, units: live.len() as u64 })
}

/// An engine with many instruments, and tickers for them.
pub(crate) struct Tickers {
    engine: Engine,
    ids: Vec<InstrumentId>,
    connection: ConnectionId,
    events: Vec<BookTicker>,
    now_ns: u64,
}

impl Tickers {
    /// `tickers`: instrument, bid and offer.
    pub(crate) fn new(symbols: &[String], tickers: &[Ticker]) -> anyhow::Result<Self> {
        let capacity =
            Capacity { instruments: symbols.len(), pages: 64, backlogs: 1, overflow_levels: 1, ..Capacity::default() };
        let mut engine = Engine::new(capacity);
        let mut ids = Vec::new();
        for symbol in symbols {
            ids.push(engine.add_instrument(usdm(symbol.as_bytes())?).map_err(fault)?);
        }
        let now_ns = 1_700_000_000_000_000_000;
        let connection = engine.open_connection(Venue::BinanceUsdm, Nanos(now_ns)).map_err(fault)?;
        let mut events = Vec::with_capacity(tickers.len());
        let mut buffer = EventBuffer::new(1, 1);
        for ticker in tickers {
            let event = Venue::BinanceSpot.parse(ticker.frame(symbols).as_bytes(), &mut buffer).map_err(fault)?;
            let Event::BookTicker(event) = event else { return Err(anyhow!("a ticker was read as {event:?}")) };
            events.push(event);
        }
        Ok(Self { engine, ids, connection, events, now_ns })
    }

    /// All tickers once. Every instrument must then show its last one, and a candle of all.
    pub(crate) fn run(&mut self, seen: &[Option<Seen>], gauge: &Gauge) -> anyhow::Result<Timing> {
        let mut applied = 0;
        let buffer = EventBuffer::new(1, 1);
        let begin = gauge.begin();
        for event in &self.events {
            self.now_ns += 1_000;
            let event = Event::BookTicker(*black_box(event));
            let result = self.engine.handle_event(Nanos(self.now_ns), self.connection, &event, &buffer, &mut Off);
            applied += u64::from(matches!(result, Ok(Applied::Ticker(_))));
        }
        let ns = gauge.end(begin);
        ensure!(applied == self.events.len() as u64, "{applied} of {} tickers applied", self.events.len());
        let board = self.engine.board();
        for (id, Seen { last, low, high, .. }) in
            self.ids.iter().zip(seen).filter_map(|(id, seen)| Some((*id, seen.as_ref()?)))
        {
            let shown = board.ticker(id).context("no ticker is shown")?;
            let pair = |level: Option<BookLevel>| level.map(|level| (level.px.0, level.qty.0));
            let is_last = (pair(shown.bid), pair(shown.ask)) == (Some(last.bid), Some(last.ask));
            ensure!(is_last && shown.update_id == last.update_id, "another ticker is shown: {shown:?}, not {last:?}");
            let candle = board.candle(id, 0).context("no candle is shown")?;
            let candle = (candle.low_px.0, candle.high_px.0, candle.close_px.0);
            ensure!(candle == (*low, *high, last.bid.0), "another candle is shown: {candle:?}");
        }
        Ok(Timing { ns, units: self.events.len() as u64 })
    }
}
