//! Starts and stops feeds.

use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use anyhow::Context as _;
use tokio::sync::watch;
use tt_journal::{Progress, Recorder, Reopened};
use tt_market::candle::CandleSource;
use tt_market::mark::Position;
use tt_market::{Capacity, Engine, InstrumentSpec};
use tt_meter::Clock;
use tt_model::{InstrumentId, Nanos, sort_short_by_key};
use tt_os::clock::{clock, unix_now};
use tt_status::market_streams::{BookOrders, MarketStreams};
use tt_venue::Symbol;
use tt_venue::listing::Listing;
use tt_venue::rules::{JoinRule, TopicKind};

use super::address::Addresses;
use super::feed::{Command, Feed};
use super::frame_timings::FrameTimings;
use super::instruments::{Instrument, Instruments, sharing};
use super::intake::Intake;
use super::listener::FeedListener;
use super::listing::{self, Fetched, NotListed};
use super::reader::{FeedView, Reader};
use super::record_format::{EngineRecord, InstrumentSetup};
use super::recorder;
use super::settings::{FeedConfig, MarketConfig, RecordingConfig};
use super::status::ChangeSignal;
use super::topics::{Refusal, symbols_max};
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
    ender: Ender,
}

/// Ends single instruments of running feeds.
#[derive(Clone, Debug)]
pub(super) struct Ender {
    reader: Reader,
    /// Of each feed.
    commands: Vec<mpsc::Sender<Command>>,
}

impl Ender {
    /// Ends an instrument; `false` if there is none, or it has ended.
    pub(super) fn end(&self, id: InstrumentId) -> bool {
        let Some(listed) = self.reader.instruments().get(id.0 as usize) else { return false };
        let was_followed = self.reader.is_followed(id);
        // Its books are gone with the next look; the feed's thread takes a moment longer.
        self.reader.set_followed(id, false);
        let shares = |other: &&Instrument| other.feed == listed.feed && other.local == listed.local;
        let is_needed = self.reader.instruments().iter().filter(shares).any(|other| self.reader.is_followed(other.id));
        if !is_needed {
            // A feed that has ended follows nothing.
            let _ = self.commands[listed.feed].send(Command::End(listed.local));
        }
        was_followed
    }

    /// Requests the orders of an instrument from its feed; `None` if there is none.
    pub(super) fn ask_orders(&self, id: InstrumentId, depth: usize) -> Option<mpsc::Receiver<BookOrders>> {
        let listed = self.reader.instruments().get(id.0 as usize)?.clone();
        let (answer, answered) = mpsc::channel();
        self.commands[listed.feed].send(Command::Orders(listed.local, depth, answer)).ok()?;
        Some(answered)
    }

    /// Ends every instrument whose symbol is not among `symbols`.
    pub(super) fn keep(&self, symbols: &[String]) {
        for listed in self.reader.instruments().iter().filter(|listed| !symbols.contains(&listed.symbol)) {
            self.end(listed.id);
        }
    }
}

/// Reads each instrument's steps from its venue, then starts a thread for each feed.
///
/// [`Startup`](super::startup::Startup) keeps trying where a venue cannot be reached.
///
/// # Errors
/// A venue cannot be reached, no venue lists any of the symbols, or a thread cannot be started. A symbol that its venue
/// does not list is in [`FeedStatus::refusals`](crate::FeedStatus::refusals), and costs no other one.
pub fn start(config: MarketConfig) -> anyhow::Result<Runner> {
    tt_os::clock::calibrate_ahead();
    let parts = parts(&config)?;
    let listings = runtime()?.block_on(listings(&parts, clock()))?;
    launch((parts, listings), &config, (&Addresses::default(), 0))
}

/// The listings of each of `parts`.
///
/// # Errors
/// A venue cannot be reached.
async fn listings(parts: &[FeedConfig], clock: Clock) -> anyhow::Result<Vec<Fetched>> {
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
    let parts: Vec<FeedConfig> = config.feeds.iter().flat_map(split).collect();
    Addresses::check(&parts)?;
    Ok(parts)
}

/// Starts feeds with their lists, within the limits of `addresses`; streams number their instruments from `first` on.
pub(super) fn launch(
    (parts, listings): (Vec<FeedConfig>, Vec<Fetched>),
    config: &MarketConfig,
    (addresses, first): (&Addresses, u32),
) -> anyhow::Result<Runner> {
    let change_signal = ChangeSignal::default();
    let (stop, stopping) = watch::channel(false);
    let opened = config.recording.as_ref().map(|recording: &RecordingConfig| recorder::open(recording, unix_now()));
    let (recorder, reopened) = opened.transpose()?.unzip();
    let (mut feeds, mut firsts) = (Vec::new(), Vec::new());
    let mut views = Vec::new();
    let mut commands = Vec::new();
    let mut instruments = Vec::new();
    let shown = Arc::new(Instruments::new());
    let mut first_refusal = None;
    for (mut part, fetched) in parts.into_iter().zip(listings) {
        let capacity = capacity(&part);
        let sender = recorder.as_ref().map(|recorder| recorder.sender(views.len() as u16));
        let record = EngineRecord::new(part.venue, &capacity);
        firsts.push(instruments.len());
        let mut intake = Intake::new(Engine::new(capacity), sender, false, &record, unix_now());
        let refusals = add_listed(&mut intake, &mut part, fetched, (views.len(), &mut instruments));
        if let Some(refusal) = refusals.first() {
            first_refusal.get_or_insert_with(|| format!("{}: {}", part_name(&part), refusal.reason));
        }
        value(&mut intake, &part, unix_now())?;
        let timings = FrameTimings::new(clock(), config.sample_one_in);
        let (venue, url, kind) = (part.venue, part.streams.to_string(), part.book_kind());
        let (board, levels) = (intake.engine().board(), part.rules().snapshot.map(|rule| rule.levels));
        let mut feed = Feed::new(part, intake, timings, clock(), change_signal.clone(), addresses);
        (feed.index, feed.shown) = (views.len(), Arc::clone(&shown));
        for listed in instruments.iter().filter(|listed: &&Instrument| listed.feed == feed.index) {
            feed.list_watch.begin(listed.local, listed.terms.status);
        }
        let (command, of_feed) = mpsc::channel();
        feed.commands = of_feed;
        commands.push(command);
        feed.status.refusals = refusals;
        feed.publish();
        let (shared_status, messages) = (Arc::clone(&feed.shared_status), Arc::clone(&feed.messages));
        views.push(FeedView { venue, url, kind, levels, board, shared_status, messages });
        feeds.push(feed);
    }
    if let Some(reason) = first_refusal.filter(|_| instruments.is_empty()) {
        anyhow::bail!(reason);
    }
    feeds.iter().for_each(warn_of_refusals);
    let publisher = config.publishing.map(|publishing| Publisher::start(&instruments, first, publishing));
    let publisher = publisher.transpose()?;
    for (feed, begin) in feeds.iter_mut().zip(firsts) {
        if let Some(publisher) = &publisher {
            let shared = sharing(&instruments, feed.index);
            feed.intake.publish_to(publisher.sender(begin, feed.instruments.len(), shared));
            if feed.has_account() {
                publish_account(feed, publisher, &instruments);
            }
        }
        if let Some(listener) = &config.listener {
            let sharing = sharing(&instruments, feed.index).into_iter();
            let sharing = sharing.map(|(local, id)| (local, InstrumentId(first + id.0))).collect();
            feed.intake.call(FeedListener::new(listener.clone(), first + begin as u32, sharing));
        }
    }
    shown.begin(instruments);
    let reader = Reader::new(views, shown, change_signal);
    let mut threads = Vec::with_capacity(feeds.len());
    // One without a symbol that its venue lists follows nothing.
    for feed in feeds.into_iter().filter(|feed| !feed.instruments.is_empty()) {
        let stopping = stopping.clone();
        let name = format!("market-{}", threads.len());
        let thread = thread::Builder::new().name(name).spawn(move || feed.run(stopping));
        threads.push(thread.context("market: thread")?);
    }
    let ender = Ender { reader: reader.clone(), commands };
    Ok(Runner { reader, stop, threads, publisher, recorder, reopened: reopened.flatten(), ender })
}

impl Runner {
    /// What other threads read with.
    #[must_use]
    pub fn reader(&self) -> Reader {
        self.reader.clone()
    }

    /// Ends an instrument while the others go on; `false` if there is none, or it has ended. Its id is not used again.
    pub fn unsubscribe(&self, id: InstrumentId) -> bool {
        self.ender.end(id)
    }

    pub(super) fn ender(&self) -> Ender {
        self.ender.clone()
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

/// Publishes what the venue says of the feed's account.
fn publish_account(feed: &mut Feed, publisher: &Publisher, instruments: &[Instrument]) {
    let own = instruments.iter().filter(|listed| listed.feed == feed.index);
    let (names, board) = (own.map(|listed| listed.name.clone()).collect(), feed.intake.engine().board());
    feed.intake.publish_account_to(publisher.account_sender(feed.config.venue, names, board));
}

/// A feed as many connections as its topics need; the account's own orders come on the first one.
fn split(feed: &FeedConfig) -> Vec<FeedConfig> {
    let mut parts: Vec<FeedConfig> = Vec::new();
    for symbols in feed.symbols.chunks(symbols_max(feed.rules(), feed.topics())) {
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
        // A feed's lines, and those that take over from them.
        connections: 8,
        pages: standard.pages.max(instruments * PAGES_PER_INSTRUMENT),
        timeframes: TIMEFRAMES,
        book_orders: part.book_orders(),
        ..standard
    }
}

fn warn_of_refusals(feed: &Feed) {
    for Refusal { subject, reason } in &feed.status.refusals {
        tracing::warn!(venue = feed.config.venue.name(), symbol = subject, reason, "market: not followed");
    }
}

/// Adds what is listed to a feed's engine and to the list of all instruments, and leaves only those symbols in `part`;
/// returns what is not followed. `feed` is the feed's number.
fn add_listed(
    intake: &mut Intake,
    part: &mut FeedConfig,
    Fetched { listings, mut refusals }: Fetched,
    (feed, instruments): (usize, &mut Vec<Instrument>),
) -> Vec<Refusal> {
    part.symbols.clear();
    let begin = instruments.len();
    // Those that share another one's book, with its place in the list.
    let mut sharing = Vec::new();
    for listing in in_order(listings) {
        let of = part.symbols.iter().position(|symbol| symbol == listing.frame_symbol());
        if let Some(of) = of.filter(|_| listing.alias.is_some()) {
            sharing.push((begin + of, listing));
            continue;
        }
        let local = match add(intake, part, &listing, unix_now()) {
            Ok(local) => local,
            Err(reason) => {
                refusals.push(Refusal { subject: listing.symbol, reason });
                continue;
            }
        };
        part.symbols.push(listing.frame_symbol().to_owned());
        instruments.push(Instrument {
            id: InstrumentId(instruments.len() as u32),
            venue: part.venue,
            symbol: listing.symbol,
            name: listing.name,
            tick_size: listing.tick_size,
            lot_size: listing.lot_size,
            unit: listing.unit,
            terms: listing.terms,
            feed,
            local,
        });
    }
    for (of, Listing { symbol, name, terms, .. }) in sharing {
        // One subscription and one book under both names, counted in the same steps.
        let (id, shared) = (InstrumentId(instruments.len() as u32), instruments[of].clone());
        instruments.push(Instrument { id, symbol, name, terms, ..shared });
    }
    refusals
}

/// The listings with those last whose frames come under another one's symbol.
fn in_order(mut listings: Vec<Listing>) -> Vec<Listing> {
    sort_short_by_key(&mut listings, |listing| listing.alias.is_some());
    listings
}

/// Adds an instrument to a feed's engine.
///
/// # Errors
/// Why it cannot be followed, in words.
fn add(intake: &mut Intake, part: &FeedConfig, listing: &Listing, now: Nanos) -> Result<InstrumentId, String> {
    let (name, symbol) = (&listing.symbol, listing.frame_symbol());
    if symbol.len() > Symbol::LEN_MAX {
        return Err(format!("{name}: a symbol of more than {} bytes", Symbol::LEN_MAX));
    }
    let symbol = Symbol::new(symbol.as_bytes()).map_err(|fault| format!("{name}: {}", fault.name()))?;
    let spec = InstrumentSpec {
        venue: part.venue,
        symbol,
        tick_size: listing.tick_size,
        lot_size: listing.lot_size,
        depth_max: part.rules().truncates.then_some(part.depth as usize),
        candles: CandleSource::Trades,
    };
    let has_choice = matches!(part.rules().join, JoinRule::Both(_));
    let join_by_rest = part.join_by_rest && has_choice;
    let book = part.rules().topics_of(part.depth).find(|topic| topic.kind == TopicKind::Book);
    let book_spacing = book.and_then(|topic| topic.spacing).filter(|_| !part.rules().is_provable());
    let (by_order, full) = (part.level3, part.is_full());
    let setup = InstrumentSetup { spec, unit: listing.unit, join_by_rest, by_order, full, book_spacing };
    let added = intake.add_instrument(&setup, listing.frame_symbol(), &listing.name, now);
    added.map_err(|error| format!("{name} cannot be followed: {error}"))
}
