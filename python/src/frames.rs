//! Frames of another source to books: the engine without connections.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use market_feed::{BookEventKind, BookSide, Decimal, InstrumentId, Nanos, Venue};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use tt_market::candle::CandleSource;
use tt_market::{Capacity, ConnectionId, Engine, InstrumentSpec, Request};
use tt_meter::Off;
use tt_venue::Symbol;

use crate::book::Book;
use crate::image::BookImage;
use crate::text;

/// Books from the frames of one connection that the caller has, live or from a file.
#[pyclass(frozen, module = "truetick._truetick")]
pub(crate) struct FrameReader {
    venue: Venue,
    symbols: Vec<Arc<str>>,
    state: Mutex<State>,
}

struct State {
    engine: Engine,
    connection: ConnectionId,
}

#[pymethods]
impl FrameReader {
    /// Follows `symbols` of `venue`, each with its price step and its quantity step as decimal text, from `ts` on.
    #[new]
    #[pyo3(signature = (venue, symbols, ts=None))]
    fn new(venue: &str, symbols: HashMap<String, (String, String)>, ts: Option<u64>) -> PyResult<Self> {
        let (venue, now) = (text::venue(venue)?, moment(ts));
        let wrong = |what: &str, error: &dyn std::fmt::Display| PyValueError::new_err(format!("{what}: {error}"));
        let instruments = symbols.len();
        let mut engine = Engine::new(Capacity { instruments, ..Capacity::default() });
        let connection = engine.open_connection(venue, now).map_err(|error| wrong(venue.name(), &error))?;
        let mut followed = Vec::with_capacity(instruments);
        for (symbol, (tick_size, lot_size)) in symbols {
            let step = |text: &str| Decimal::parse(text.as_bytes()).map_err(|error| wrong(text, &error));
            let spec = InstrumentSpec {
                venue,
                symbol: Symbol::new(symbol.as_bytes()).map_err(|error| wrong(&symbol, &error.name()))?,
                tick_size: step(&tick_size)?,
                lot_size: step(&lot_size)?,
                depth_max: None,
                candles: CandleSource::Trades,
            };
            let id = engine.add_instrument(spec).map_err(|error| wrong(&symbol, &error))?;
            engine.subscribe(connection, id, now).map_err(|error| wrong(&symbol, &error))?;
            followed.push(symbol.into());
        }
        Ok(Self { venue, symbols: followed, state: Mutex::new(State { engine, connection }) })
    }

    /// Takes a frame that was received at `ts` (nanoseconds of the Unix epoch; now if absent). Returns `None`, or the
    /// reason for which it was dropped.
    #[pyo3(signature = (frame, ts=None))]
    fn take(&self, frame: &[u8], ts: Option<u64>) -> Option<&'static str> {
        let State { engine, connection } = &mut *self.lock();
        engine.handle_frame(moment(ts), *connection, frame, &mut Off).err().map(|reason| reason.name())
    }

    /// Takes a snapshot by REST of a symbol. Returns `None`, or the reason for which it was dropped.
    #[pyo3(signature = (symbol, body, ts=None))]
    fn take_snapshot(&self, symbol: &str, body: &[u8], ts: Option<u64>) -> PyResult<Option<&'static str>> {
        let id = self.id(symbol)?;
        Ok(self.lock().engine.handle_snapshot(moment(ts), id, body, &mut Off).err().map(|reason| reason.name()))
    }

    /// What the books need now, each with its symbol: `snapshot` by REST, `resubscribe`; or `reconnect` and `pong`.
    #[pyo3(signature = (ts=None))]
    fn requests(&self, ts: Option<u64>) -> Vec<(&'static str, Option<&str>)> {
        let mut state = self.lock();
        let symbol = |id: InstrumentId| self.symbols.get(id.0 as usize).map(|symbol| &**symbol);
        let polled = std::iter::from_fn(|| state.engine.poll_request(moment(ts)));
        let named = polled.map(|request| match request {
            Request::FetchSnapshot { instrument } => ("snapshot", symbol(instrument)),
            Request::Resubscribe { instrument, .. } => ("resubscribe", symbol(instrument)),
            Request::Reconnect { .. } | Request::Replace { .. } => ("reconnect", None),
            Request::Pong { .. } => ("pong", None),
        });
        named.collect()
    }

    /// The book of a symbol with its best `levels` of each side, or all.
    #[pyo3(signature = (symbol, levels=None))]
    fn book(&self, symbol: &str, levels: Option<usize>) -> PyResult<Book> {
        let id = self.id(symbol)?;
        let state = self.lock();
        let unknown = || PyKeyError::new_err(symbol.to_owned());
        let board = state.engine.board();
        // The depth is that of the last update that changed it; the top is that of the last update.
        let (depth, top) = board.depth(id).zip(board.top_of_book(id)).ok_or_else(unknown)?;
        let spec = state.engine.instrument(id).ok_or_else(unknown)?;
        let mut pairs = Vec::new();
        let mut take = |side| {
            let mut all = state.engine.levels(id, side).into_iter().flatten();
            pairs.extend(all.by_ref().take(levels.unwrap_or(usize::MAX)).map(|level| [level.px.0, level.qty.0]));
            (pairs.len(), all.next().is_some())
        };
        let (bids_len, more_bids) = take(BookSide::Bid);
        let (_, more_asks) = take(BookSide::Ask);
        let image = BookImage {
            instrument: id.0,
            kind: BookEventKind::Snapshot,
            update_id: top.update_id,
            previous_id: top.update_id,
            ts_event: if depth.update_id == top.update_id { depth.ts_event } else { Nanos(0) },
            ts_recv: top.ts_recv,
            status: top.status,
            tick_size: spec.tick_size,
            lot_size: spec.lot_size,
            levels: pairs,
            bids_len,
            has_more: [more_bids, more_asks],
            missed: 0,
        };
        Ok(Book::new(image, self.venue.name(), Arc::clone(&self.symbols[id.0 as usize])))
    }
}

impl FrameReader {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn id(&self, symbol: &str) -> PyResult<InstrumentId> {
        let index = self.symbols.iter().position(|known| &**known == symbol);
        index.map(|index| InstrumentId(index as u32)).ok_or_else(|| PyKeyError::new_err(symbol.to_owned()))
    }
}

/// `ts`, or now.
fn moment(ts: Option<u64>) -> Nanos {
    ts.map_or_else(tt_os::clock::unix_now, Nanos)
}
