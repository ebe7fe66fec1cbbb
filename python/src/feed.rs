//! A feed of one venue that runs on its own thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hyper::Uri;
use market_feed::{
    Depth, Event, FeedConfig, Feeds, InstrumentId, Listener, MarketConfig, Nanos, Reader, TopOfBook, Venue,
};
use pyo3::exceptions::{PyConnectionError, PyKeyError, PyStopIteration, PyValueError};
use pyo3::prelude::*;

use crate::FeedError;
use crate::book::Book;
use crate::image::BookImage;
use crate::queue::{LOOK_EVERY, Popped, Queue};
use crate::text;

/// Levels of each side that an update may carry.
const LEVELS_MAX: usize = 100_000;

/// A venue and symbols, and where they are.
#[derive(Clone, Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Source {
    venue: String,
    symbols: Vec<String>,
    url: Option<String>,
    rest_url: Option<String>,
    region: Option<String>,
    depth: Option<u32>,
}

impl Source {
    /// The feed's configuration.
    pub(crate) fn config(self) -> PyResult<FeedConfig> {
        let venue = text::venue(&self.venue)?;
        let wrong = |error: anyhow::Error| PyValueError::new_err(format!("{error:#}"));
        if self.symbols.is_empty() {
            return Err(PyValueError::new_err("no symbols"));
        }
        let mut feed = match &self.url {
            Some(url) => FeedConfig::at(venue, address(url)?, self.symbols),
            None => FeedConfig::public(venue, self.symbols),
        };
        if let Some(region) = &self.region {
            feed.use_region(region).map_err(wrong)?;
        }
        if let Some(url) = &self.rest_url {
            feed.rest = Some(address(url)?);
        }
        feed.ask_depth(self.depth).map_err(wrong)?;
        feed.check_addresses().map_err(wrong)?;
        Ok(feed)
    }
}

fn address(url: &str) -> PyResult<Uri> {
    url.parse().map_err(|error| PyValueError::new_err(format!("{url}: {error}")))
}

/// The names of all venues.
#[pyfunction]
pub(crate) fn venues() -> Vec<&'static str> {
    Venue::ALL.into_iter().map(Venue::name).collect()
}

/// A running feed and the updates that were not read yet.
#[pyclass(frozen, module = "truetick._truetick")]
pub(crate) struct Feed {
    venue: Venue,
    symbols: Vec<Arc<str>>,
    feeds: Feeds,
    reader: Reader,
    queue: Arc<Queue>,
    is_closed: AtomicBool,
}

#[pymethods]
impl Feed {
    /// Follows `source`, and waits at most `timeout` seconds until its venue lists the symbols.
    #[new]
    fn new(py: Python<'_>, source: Source, levels: usize, room: usize, timeout: f64) -> PyResult<Self> {
        if !(1..=LEVELS_MAX).contains(&levels) {
            return Err(PyValueError::new_err(format!("levels must be 1 to {LEVELS_MAX}, not {levels}")));
        }
        let deadline = deadline(Some(timeout))?;
        let config = source.config()?;
        let venue = config.venue;
        let queue = Arc::new(Queue::new(room)?);
        let filled = Arc::clone(&queue);
        let listener = Listener::new(move |event| match event {
            Event::Book(change) if change.is_unknown() => {}
            Event::Book(change) => filled.push(BookImage::of(change, levels)),
            Event::Trade { .. } | Event::Liquidation { .. } => {}
        });
        let feeds = Feeds::new(MarketConfig { listener: Some(listener), ..MarketConfig::default() }, |_| {});
        feeds.add(config).map_err(|error| FeedError::new_err(format!("{error:#}")))?;
        match started(py, &feeds, deadline) {
            Ok(reader) => {
                let symbols = reader.instruments().iter().map(|listed| listed.symbol.as_str().into()).collect();
                Ok(Self { venue, symbols, feeds, reader, queue, is_closed: AtomicBool::new(false) })
            }
            Err(error) => {
                py.detach(|| feeds.stop());
                Err(error)
            }
        }
    }

    /// The venue's name.
    #[getter]
    fn venue(&self) -> &'static str {
        self.venue.name()
    }

    /// The symbols that are followed.
    #[getter]
    fn symbols(&self) -> Vec<&str> {
        self.symbols.iter().map(|symbol| &**symbol).collect()
    }

    /// Updates that were dropped because the reader was too slow.
    #[getter]
    fn missed(&self) -> u64 {
        self.queue.missed_total()
    }

    /// The next update; `None` if none comes within `timeout` seconds. Ends with `StopIteration` once the feed is closed.
    #[pyo3(signature = (timeout=None))]
    fn next(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Book>> {
        let deadline = deadline(timeout)?;
        loop {
            let look = Instant::now() + LOOK_EVERY;
            let until = deadline.map_or(look, |deadline| deadline.min(look));
            match py.detach(|| self.queue.pop(until)) {
                Popped::Update(image) => return Ok(Some(self.book(image))),
                Popped::Closed => return Err(PyStopIteration::new_err(())),
                Popped::Nothing => py.check_signals()?,
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Ok(None);
            }
        }
    }

    /// The book of a symbol as it is now, at most ten levels of each side. Takes no lock and no update from the queue.
    fn latest(&self, symbol: &str) -> PyResult<Option<Book>> {
        let index = self.symbols.iter().position(|known| &**known == symbol);
        let index = index.ok_or_else(|| PyKeyError::new_err(symbol.to_owned()))?;
        let id = InstrumentId(index as u32);
        let found = self.reader.consistent(|listed| {
            let steps = listed.get(index).map(|listed| (listed.tick_size, listed.lot_size));
            steps.zip(self.levels_and_top(id))
        });
        Ok(found.map(|((tick_size, lot_size), (depth, top))| {
            let pair = |level: &market_feed::BookLevel| [level.px.0, level.qty.0];
            let sides = [depth.bids(), depth.asks()];
            self.book(BookImage {
                instrument: id.0,
                kind: market_feed::BookEventKind::Snapshot,
                update_id: top.update_id,
                previous_id: top.update_id,
                ts_event: if depth.update_id == top.update_id { depth.ts_event } else { Nanos(0) },
                ts_recv: top.ts_recv,
                status: top.status,
                tick_size,
                lot_size,
                levels: sides.iter().flat_map(|side| side.iter().map(pair)).collect(),
                bids_len: depth.bids().len(),
                has_more: sides.map(|side| side.len() == tt_market::board::DEPTH),
                missed: 0,
            })
        }))
    }

    /// A file descriptor that becomes readable after `watch` when an update comes.
    fn fileno(&self) -> i32 {
        self.queue.fd()
    }

    /// Has the next update make `fileno` readable; `False` if an update waits already.
    fn watch(&self) -> bool {
        self.queue.watch()
    }

    /// Makes `fileno` unreadable again.
    fn drain(&self) {
        self.queue.drain();
    }

    /// Closes the connections and ends all waits.
    fn close(&self, py: Python<'_>) {
        if !self.is_closed.swap(true, Relaxed) {
            self.queue.close();
            py.detach(|| drop(self.feeds.stop()));
        }
    }
}

impl Feed {
    /// The best levels of an instrument, and its top with the last update; `None` before the first book. Levels are
    /// published only when an update changes them, before the top.
    fn levels_and_top(&self, id: InstrumentId) -> Option<(Depth, TopOfBook)> {
        loop {
            let (depth, top) = self.reader.depth(id).zip(self.reader.top_of_book(id))?;
            let is_newer = (depth.ts_recv, depth.update_id) > (top.ts_recv, top.update_id);
            // Levels that are the same before and after are those of the top.
            if !is_newer && self.reader.depth(id) == Some(depth) {
                return (depth.ts_recv > Nanos(0)).then_some((depth, top));
            }
            std::thread::yield_now();
        }
    }

    fn book(&self, image: BookImage) -> Book {
        let symbol = self.symbols.get(image.instrument as usize).map_or_else(|| "".into(), Arc::clone);
        Book::new(image, self.venue.name(), symbol)
    }
}

/// An object that is dropped without `close` ends its threads too.
impl Drop for Feed {
    fn drop(&mut self) {
        if !self.is_closed.swap(true, Relaxed) {
            self.queue.close();
            let feeds = self.feeds.clone();
            // Joining takes a moment, in which the interpreter would stand still.
            drop(std::thread::Builder::new().name("truetick-close".to_owned()).spawn(move || drop(feeds.stop())));
        }
    }
}

/// The moment in `timeout` seconds.
pub(crate) fn deadline(timeout: Option<f64>) -> PyResult<Option<Instant>> {
    let Some(timeout) = timeout else { return Ok(None) };
    let most = Duration::try_from_secs_f64(timeout);
    let most = most.map_err(|_| PyValueError::new_err(format!("timeout must be seconds, not {timeout}")))?;
    // Later than any clock can say is never.
    Ok(Instant::now().checked_add(most))
}

/// Waits until the feed runs.
fn started(py: Python<'_>, feeds: &Feeds, deadline: Option<Instant>) -> PyResult<Reader> {
    loop {
        let is_started = py.detach(|| feeds.wait_started(LOOK_EVERY));
        py.check_signals()?;
        let feed = feeds.list().into_iter().next();
        let error = feed.and_then(|feed| feed.error);
        if is_started {
            let (_, reader) = feeds
                .readers()
                .into_iter()
                .next()
                .ok_or_else(|| FeedError::new_err(error.unwrap_or_else(|| "the feed has ended".to_owned())))?;
            let refusals = (0..reader.feeds_len()).flat_map(|index| reader.status(index).refusals);
            let refusals: Vec<String> = refusals.map(|refusal| refusal.reason).collect();
            return if refusals.is_empty() { Ok(reader) } else { Err(FeedError::new_err(refusals.join("; "))) };
        }
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            let error = error.unwrap_or_else(|| "the venue does not list its instruments in time".to_owned());
            return Err(PyConnectionError::new_err(error));
        }
    }
}
