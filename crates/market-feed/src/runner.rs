//! Starts and stops feeds.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use anyhow::Context as _;
use tokio::sync::watch;
use tt_journal::{Progress, Recorder, Reopened};
use tt_market::candle::CandleSource;
use tt_market::mark::Position;
use tt_market::{Capacity, Engine, InstrumentSpec};
use tt_meter::{Calibration, Clock};
use tt_model::{InstrumentId, Nanos};
use tt_os::clock::unix_now;
use tt_status::market_streams::MarketStreams;
use tt_venue::Symbol;
use tt_venue::listing::Listing;
use tt_venue::rules::JoinRule;

use super::feed::Feed;
use super::frame_timings::FrameTimings;
use super::instruments::{Instrument, Instruments};
use super::intake::Intake;
use super::listing::{self, NotListed};
use super::reader::{FeedView, Reader};
use super::record_format::{EngineRecord, InstrumentSetup};
use super::recorder;
use super::settings::{FeedConfig, MarketConfig, RecordingConfig};
use super::status::ChangeSignal;
use super::topics::symbols_max;
use super::updates::Publisher;

/// The timeframes of candles; zero for none.
pub(super) const TIMEFRAMES: [Nanos; 4] = [Nanos::from_secs(1), Nanos::from_secs(60), Nanos(0), Nanos(0)];

/// Pages of 64 price steps for each instrument's book, at least.
const PAGES_PER_INSTRUMENT: usize = 1024;

/// A running market engine. Dropping it without [`Runner::stop`] leaves its threads to the end of the process.
#[derive(Debug)]
pub struct Runner {
    reader: Reader,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
    publisher: Option<Publisher>,
    recorder: Option<Recorder>,
    reopened: Option<Reopened>,
}

/// Reads each instrument's steps from its venue, then starts a thread for each feed.
///
/// [`Startup`](super::startup::Startup) keeps trying where a venue cannot be reached.
///
/// # Errors
/// A venue cannot be reached, does not list a symbol, or a thread cannot be started.
pub fn start(config: MarketConfig) -> anyhow::Result<Runner> {
    let calibration = *tt_os::clock::calibration();
    let parts = parts(&config)?;
    let listings = runtime()?.block_on(listings(&parts, calibration.clock))?;
    launch(parts, listings, calibration, &config)
}

/// The listings of each of `parts`.
///
/// # Errors
/// A venue cannot be reached, or does not list a symbol.
async fn listings(parts: &[FeedConfig], clock: Clock) -> anyhow::Result<Vec<Vec<Listing>>> {
    let mut listings = Vec::with_capacity(parts.len());
    for part in parts {
        let listed = listing::fetch(part, clock).await.map_err(NotListed::into_error);
        listings.push(listed.with_context(|| part_name(part))?);
    }
    Ok(listings)
}

/// The name of a part in errors.
pub(super) fn part_name(part: &FeedConfig) -> String {
    format!("market: {}", part.venue.name())
}

pub(super) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("market: runtime")
}

pub(super) fn parts(config: &MarketConfig) -> anyhow::Result<Vec<FeedConfig>> {
    config.feeds.iter().try_for_each(FeedConfig::check)?;
    Ok(config.feeds.iter().flat_map(split).collect())
}

pub(super) fn launch(
    parts: Vec<FeedConfig>,
    listings: Vec<Vec<Listing>>,
    calibration: Calibration,
    config: &MarketConfig,
) -> anyhow::Result<Runner> {
    let change_signal = ChangeSignal::default();
    let (stop, stopping) = watch::channel(false);
    let opened = config.recording.as_ref().map(|recording: &RecordingConfig| recorder::open(recording, unix_now()));
    let (recorder, reopened) = opened.transpose()?.unzip();
    let (mut feeds, mut firsts) = (Vec::new(), Vec::new());
    let mut views = Vec::new();
    let mut instruments = Vec::new();
    let shown = Arc::new(Instruments::new());
    for (part, listings) in parts.into_iter().zip(listings) {
        let capacity = capacity(&part);
        let sender = recorder.as_ref().map(|recorder| recorder.sender(views.len() as u16));
        let record = EngineRecord::new(part.venue, &capacity);
        firsts.push(instruments.len());
        let mut intake = Intake::new(Engine::new(capacity), sender, false, &record, unix_now());
        for listing in listings {
            let local = add(&mut intake, &part, &listing, unix_now())?;
            instruments.push(Instrument {
                id: InstrumentId(instruments.len() as u32),
                venue: part.venue,
                symbol: listing.symbol,
                name: listing.name,
                tick_size: listing.tick_size,
                lot_size: listing.lot_size,
                unit: listing.unit,
                terms: listing.terms,
                feed: views.len(),
                local,
            });
        }
        value(&mut intake, &part, unix_now())?;
        let timings = FrameTimings::new(calibration.clock, config.sample_one_in);
        let (venue, url, board) = (part.venue, part.streams.to_string(), intake.engine().board());
        let mut feed = Feed::new(part, intake, timings, calibration.clock, change_signal.clone());
        (feed.index, feed.shown) = (views.len(), Arc::clone(&shown));
        let (shared_status, messages) = (Arc::clone(&feed.shared_status), Arc::clone(&feed.messages));
        views.push(FeedView { venue, url, board, shared_status, messages });
        feeds.push(feed);
    }
    let publisher = config.publishing.map(|publishing| Publisher::start(&instruments, publishing.is_simulated));
    let publisher = publisher.transpose()?;
    if let Some(publisher) = &publisher {
        for (feed, first) in feeds.iter_mut().zip(firsts) {
            let sender = publisher.sender(first, feed.instruments.len());
            feed.intake.publish_to(sender);
        }
    }
    shown.begin(instruments);
    let reader = Reader::new(views, shown, calibration, change_signal);
    let mut threads = Vec::with_capacity(feeds.len());
    for feed in feeds {
        let stopping = stopping.clone();
        let name = format!("market-{}", threads.len());
        let thread = thread::Builder::new().name(name).spawn(move || feed.run(stopping));
        threads.push(thread.context("market: thread")?);
    }
    Ok(Runner { reader, stop, threads, publisher, recorder, reopened: reopened.flatten() })
}

impl Runner {
    /// What other threads read with.
    #[must_use]
    pub fn reader(&self) -> Reader {
        self.reader.clone()
    }

    /// Whole books and streams of every update; `None` without [`MarketConfig::publishing`].
    #[must_use]
    pub fn streams(&self) -> Option<Arc<dyn MarketStreams>> {
        self.publisher.as_ref().map(Publisher::streams)
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
        if let Some(publisher) = self.publisher {
            publisher.stop();
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
        taken.map_err(|error| anyhow::anyhow!("market: the position in {}: {error}", open.symbol))?;
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
    anyhow::ensure!(
        listing.symbol.len() <= Symbol::LEN_MAX,
        "market: {}: a symbol of more than {} bytes",
        listing.symbol,
        Symbol::LEN_MAX
    );
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
    let setup = InstrumentSetup { spec, unit: listing.unit, join_by_rest: part.join_by_rest && has_choice };
    let added = intake.add_instrument(&setup, &listing.symbol, &listing.name, now);
    added.map_err(|error| anyhow::anyhow!("market: {} cannot be followed: {error}", listing.symbol))
}
