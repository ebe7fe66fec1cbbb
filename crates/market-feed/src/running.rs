//! Start, read, stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::sync::watch;
use tt_journal::{Progress, Recorder, Reopened};
use tt_market::{Board, CandleSource, Capacity, Depth, Engine, InstrumentSpec, Position, TickerState};
use tt_market::{TopOfBook, TradePrint, VenueCounters};
use tt_meter::Calibration;
use tt_model::{InstrumentId, Nanos};
use tt_os::clock::unix_now;
use tt_venue::Symbol;
use tt_venue::Venue;
use tt_venue::listing::Listing;
use tt_venue::rules::JoinRule;

use super::feed::Feed;
use super::instruments::{Instrument, Instruments};
use super::intake::Intake;
use super::ledger::{Ledger, Times};
use super::published::{Changed, FeedStatus, Published};
use super::reach::{self, Unreached};
use super::recorded::{EngineRecord, ToldInstrument};
use super::recorder;
use super::settings::{FeedConfig, MarketConfig, RecordingConfig};
use super::topics::symbols_max;

/// The timeframes of candles; zero for none.
pub(super) const TIMEFRAMES: [Nanos; 4] = [Nanos::from_secs(1), Nanos::from_secs(60), Nanos(0), Nanos(0)];

/// Pages of 64 price steps for each instrument's book, at least.
const PAGES_PER_INSTRUMENT: usize = 1024;

/// One feed as other threads see it.
#[derive(Debug)]
struct FeedView {
    venue: Venue,
    url: String,
    board: Board,
    published: Arc<Published>,
    messages: Arc<[AtomicU64]>,
}

/// Reads published state from any thread, without ever making an engine wait. Clone it freely.
#[derive(Clone, Debug)]
pub struct Reader(Arc<View>);

#[derive(Debug)]
struct View {
    feeds: Vec<FeedView>,
    instruments: Arc<Instruments>,
    calibration: Calibration,
    changed: Changed,
}

impl Reader {
    /// All instruments, in the order of their ids. A venue may make steps finer later, while the book is not proved:
    /// [`Reader::steady`] reads steps and what is counted in them together.
    #[must_use]
    pub fn instruments(&self) -> &[Instrument] {
        self.0.instruments.newest()
    }

    /// What `look` sees of the instruments and whatever it reads of them, all in the same steps: it looks again where
    /// they became finer meanwhile.
    pub fn steady<T>(&self, look: impl FnMut(&[Instrument]) -> T) -> T {
        self.0.instruments.steady(look)
    }

    /// How many feeds there are.
    #[must_use]
    pub fn feeds_len(&self) -> usize {
        self.0.feeds.len()
    }

    /// A feed's venue and address.
    ///
    /// # Panics
    /// Where there is no such feed.
    #[must_use]
    pub fn feed(&self, index: usize) -> (Venue, &str) {
        (self.0.feeds[index].venue, &self.0.feeds[index].url)
    }

    /// How a feed fares.
    ///
    /// # Panics
    /// Where there is no such feed.
    #[must_use]
    pub fn status(&self, index: usize) -> FeedStatus {
        self.0.feeds[index].published.status()
    }

    /// A feed's counters, at most 50 ms old.
    ///
    /// # Panics
    /// Where there is no such feed.
    #[must_use]
    pub fn counters(&self, index: usize) -> VenueCounters {
        let feed = &self.0.feeds[index];
        feed.board.counters(feed.venue)
    }

    /// What all feeds have timed together, in cycles of [`Reader::calibration`]'s clock.
    #[must_use]
    pub fn times(&self) -> Times {
        let mut all = Times::default();
        self.0.feeds.iter().for_each(|feed| all.merge(&feed.published.times()));
        all
    }

    /// The clock of the times.
    #[must_use]
    pub fn calibration(&self) -> &Calibration {
        &self.0.calibration
    }

    /// Messages that told of an instrument since the start.
    #[must_use]
    pub fn messages(&self, id: InstrumentId) -> u64 {
        let Some(instrument) = self.instruments().get(id.0 as usize) else { return 0 };
        let messages = &self.0.feeds[instrument.feed].messages;
        messages.get(instrument.local.0 as usize).map_or(0, |count| count.load(Relaxed))
    }

    /// The best levels of an instrument and their proof.
    #[must_use]
    pub fn top_of_book(&self, id: InstrumentId) -> Option<TopOfBook> {
        let (board, local) = self.board(id)?;
        board.top_of_book(local)
    }

    /// The best ten levels of both sides.
    #[must_use]
    pub fn depth(&self, id: InstrumentId) -> Option<Depth> {
        let (board, local) = self.board(id)?;
        board.depth(local)
    }

    /// The venue's own best bid and offer and last price.
    #[must_use]
    pub fn ticker(&self, id: InstrumentId) -> Option<TickerState> {
        let (board, local) = self.board(id)?;
        board.ticker(local)
    }

    /// The newest trades of an instrument, oldest first.
    #[must_use]
    pub fn trades(&self, id: InstrumentId) -> Vec<TradePrint> {
        self.board(id).map_or_else(Vec::new, |(board, local)| board.trades(local))
    }

    /// The engine's board that shows instrument `id`, and the instrument's number on it.
    #[must_use]
    pub fn board(&self, id: InstrumentId) -> Option<(&Board, InstrumentId)> {
        let instrument = self.instruments().get(id.0 as usize)?;
        Some((&self.0.feeds[instrument.feed].board, instrument.local))
    }

    /// Blocks until `is_so`, looked at whenever a feed has published something; `false` after `most`.
    pub fn wait(&self, most: Duration, is_so: impl FnMut() -> bool) -> bool {
        self.0.changed.wait(Instant::now() + most, is_so)
    }

    /// As [`Reader::wait`], until a moment.
    pub fn wait_until(&self, deadline: Instant, is_so: impl FnMut() -> bool) -> bool {
        self.0.changed.wait(deadline, is_so)
    }

    /// Whether every instrument's book is verified.
    #[must_use]
    pub fn all_verified(&self) -> bool {
        self.instruments()
            .iter()
            .all(|listed| self.top_of_book(listed.id).is_some_and(|top| top.standing.proof.is_verified()))
    }
}

/// A running market engine. Dropping it without [`Running::stop`] leaves its threads to the end of the process.
#[derive(Debug)]
pub struct Running {
    reader: Reader,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
    recorder: Option<Recorder>,
    reopened: Option<Reopened>,
}

/// Learns each instrument's steps from its venue, then follows each feed on a thread of its own.
///
/// # Errors
/// A venue cannot be reached, does not list a symbol, or a thread cannot be started.
pub fn start(config: MarketConfig) -> anyhow::Result<Running> {
    let calibration = *tt_os::clock::calibration();
    let parts = parts(&config)?;
    let listings = runtime()?.block_on(reach::once(&parts, calibration.clock))?;
    launch(parts, listings, calibration, &config)
}

/// As [`start`], but a venue that cannot be reached is told to `tell` and tried again, with growing waits, until it is
/// there; `None` where `ended` completes before.
///
/// # Errors
/// An address is none, a venue does not list a symbol, `tell` fails, or a thread cannot be started.
pub fn start_when_reached(
    config: MarketConfig,
    ended: impl Future<Output = ()>,
    tell: impl FnMut(&Unreached) -> anyhow::Result<()>,
) -> anyhow::Result<Option<Running>> {
    let calibration = *tt_os::clock::calibration();
    let parts = parts(&config)?;
    let listings = runtime()?.block_on(async {
        tokio::select! {
            listings = reach::until_reached(&parts, calibration.clock, tell) => listings.map(Some),
            () = ended => Ok(None),
        }
    })?;
    listings.map(|listings| launch(parts, listings, calibration, &config)).transpose()
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("market: runtime")
}

fn parts(config: &MarketConfig) -> anyhow::Result<Vec<FeedConfig>> {
    config.feeds.iter().try_for_each(FeedConfig::check)?;
    Ok(config.feeds.iter().flat_map(split).collect())
}

fn launch(
    parts: Vec<FeedConfig>,
    listings: Vec<Vec<Listing>>,
    calibration: Calibration,
    config: &MarketConfig,
) -> anyhow::Result<Running> {
    let changed = Changed::default();
    let (stop, stopping) = watch::channel(false);
    let opened = config.recording.as_ref().map(|recording: &RecordingConfig| recorder::open(recording, unix_now()));
    let (recorder, reopened) = opened.transpose()?.unzip();
    let mut feeds = Vec::new();
    let mut views = Vec::new();
    let mut instruments = Vec::new();
    let shown = Arc::new(Instruments::new());
    for (part, listings) in parts.into_iter().zip(listings) {
        let capacity = capacity(&part);
        let tape = recorder.as_ref().map(|recorder| recorder.tape(views.len() as u16));
        let record = EngineRecord::new(part.venue, &capacity);
        let mut intake = Intake::new(Engine::new(capacity), tape, false, &record, unix_now());
        for listing in listings {
            let local = add(&mut intake, &part, &listing, unix_now())?;
            instruments.push(Instrument {
                id: InstrumentId(instruments.len() as u32),
                venue: part.venue,
                symbol: listing.symbol,
                name: listing.name,
                tick_size: listing.tick_size,
                lot_size: listing.lot_size,
                feed: views.len(),
                local,
            });
        }
        value(&mut intake, &part, unix_now())?;
        let ledger = Ledger::new(calibration.clock, config.sample_one_in);
        let (venue, url, board) = (part.venue, part.streams.to_string(), intake.engine().board());
        let mut feed = Feed::new(part, intake, ledger, calibration.clock, changed.clone());
        (feed.index, feed.shown) = (views.len(), Arc::clone(&shown));
        let (published, messages) = (Arc::clone(&feed.published), Arc::clone(&feed.messages));
        views.push(FeedView { venue, url, board, published, messages });
        feeds.push(feed);
    }
    shown.begin(instruments);
    let reader = Reader(Arc::new(View { feeds: views, instruments: shown, calibration, changed }));
    let mut threads = Vec::with_capacity(feeds.len());
    for feed in feeds {
        let stopping = stopping.clone();
        let name = format!("market-{}", threads.len());
        let thread = thread::Builder::new().name(name).spawn(move || feed.run(stopping));
        threads.push(thread.context("market: thread")?);
    }
    Ok(Running { reader, stop, threads, recorder, reopened: reopened.flatten() })
}

impl Running {
    /// What other threads read with.
    #[must_use]
    pub fn reader(&self) -> Reader {
        self.reader.clone()
    }

    /// How far the recording has got, if there is one.
    #[must_use]
    pub fn recording(&self) -> Option<Progress> {
        self.recorder.as_ref().map(Recorder::progress)
    }

    /// What was found in the recording that was gone on with.
    #[must_use]
    pub const fn reopened(&self) -> Option<&Reopened> {
        self.reopened.as_ref()
    }

    /// Closes the connections, joins the threads, and brings the recording to its end: what came of it, if there is one.
    pub fn stop(self) -> Option<Progress> {
        let _ = self.stop.send(true);
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("market: a feed's thread had panicked");
            }
        }
        self.recorder.map(Recorder::finish)
    }
}

/// A feed as many connections as its topics need; the account's own orders come on the first one.
fn split(feed: &FeedConfig) -> Vec<FeedConfig> {
    let mut parts: Vec<FeedConfig> = Vec::new();
    for symbols in feed.symbols.chunks(symbols_max(feed.venue, feed.topics().count())) {
        let listen_key = feed.listen_key.clone().filter(|_| parts.is_empty());
        let account = feed.account.clone().filter(|_| parts.is_empty());
        let mut positions = feed.positions.clone();
        positions.retain(|position| symbols.contains(&position.symbol));
        parts.push(FeedConfig { symbols: symbols.to_vec(), listen_key, account, positions, ..feed.clone() });
    }
    parts
}

/// Puts the feed's positions into the engine.
fn value(intake: &mut Intake, part: &FeedConfig, now: Nanos) -> anyhow::Result<()> {
    for (slot, open) in part.positions.iter().enumerate() {
        let symbol = Symbol::new(open.symbol.as_bytes()).ok();
        let instrument = symbol.and_then(|symbol| intake.engine().find_instrument(part.venue, &symbol));
        let instrument = instrument.with_context(|| format!("market: a position in {}, not followed", open.symbol))?;
        let position = Position { instrument, account: 0, lots: open.lots, entry_px: open.entry_px };
        let taken = intake.set_position(slot, position, now);
        taken.map_err(|error| anyhow::anyhow!("market: the position in {}: {error:?}", open.symbol))?;
    }
    Ok(())
}

fn capacity(part: &FeedConfig) -> Capacity {
    let instruments = part.symbols.len();
    let standard = Capacity::default();
    Capacity {
        instruments,
        // A feed's lines, and those of the connection before.
        connections: 4,
        pages: standard.pages.max(instruments * PAGES_PER_INSTRUMENT),
        timeframes: TIMEFRAMES,
        ..standard
    }
}

fn add(intake: &mut Intake, part: &FeedConfig, listing: &Listing, now: Nanos) -> anyhow::Result<InstrumentId> {
    let symbol = Symbol::new(listing.symbol.as_bytes())
        .map_err(|fault| anyhow::anyhow!("market: {}: {}", listing.symbol, fault.name()))?;
    let spec = InstrumentSpec {
        venue: part.venue,
        symbol,
        tick_size: listing.tick_size,
        lot_size: listing.lot_size,
        depth_max: part.venue.rules().truncates.then_some(part.depth as usize),
        candles: CandleSource::Trades,
    };
    let has_choice = matches!(part.venue.rules().join, JoinRule::Both(_));
    let told = ToldInstrument { spec, unit: listing.unit, join_by_rest: part.join_by_rest && has_choice };
    let added = intake.add_instrument(&told, &listing.name, now);
    added.map_err(|error| anyhow::anyhow!("market: {} cannot be followed: {error:?}", listing.symbol))
}
