//! Feeds that are added and removed while others run.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tokio::sync::oneshot;
use tt_model::{InstrumentId, Nanos};
use tt_os::clock::unix_now;
use tt_status::market::{Account, Feed, MarketStatus, Refused};
use tt_status::market_account::AccountState;
use tt_status::market_feeds::{FeedState, FollowedFeed};
use tt_status::market_streams::{
    BookOrders, CandleHistory, CandleQuestion, MarketStreams, Sink, StreamCounts, StreamKind, WholeBook,
};

use super::address::Addresses;
use super::reader::Reader;
use super::runner::{Ender, Runner, parts};
use super::settings::{FeedConfig, MarketConfig};
use super::snapshot;
use super::startup::{Startup, StartupStep, Unreached};

/// A feed that does not answer within this time is not connected.
const ORDERS_MAX: Duration = Duration::from_millis(500);

/// Reports a venue that could not be reached.
type Report = Box<dyn Fn(&Unreached) + Send + Sync>;

/// Feeds that are added and removed while others run. Each has connections, engines and threads of which no other feed
/// has any; limits that a venue counts by address are shared. Clone it freely.
///
/// ```no_run
/// use market_feed::{FeedConfig, Feeds, MarketConfig, Venue};
///
/// # fn main() -> anyhow::Result<()> {
/// let feeds = Feeds::new(MarketConfig::default(), |venue| eprintln!("{}: {}", venue.url, venue.error));
/// let id = feeds.add(FeedConfig::public(Venue::ALL[0], vec!["BTCUSDT".to_owned()]))?;
/// for (first, reader) in feeds.readers() {
///     reader.instruments().iter().for_each(|listed| println!("{} {}", first + listed.id.0, listed.name));
/// }
/// feeds.remove(id);
/// feeds.stop();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Feeds(Arc<Shared>);

struct Shared {
    /// What all feeds have in common; it names no feed.
    config: MarketConfig,
    addresses: Addresses,
    report: Report,
    list: Mutex<List>,
    /// A feed is in another phase.
    changed: Condvar,
}

#[derive(Default)]
struct List {
    feeds: Vec<Followed>,
    next_id: u32,
    /// The first instrument of the next feed. No number is used twice.
    next_instrument: u32,
    /// What was sent of feeds that are gone.
    retired: StreamCounts,
    /// Threads of feeds that end.
    ending: Vec<JoinHandle<()>>,
}

/// One feed.
struct Followed {
    id: u32,
    config: FeedConfig,
    first: u32,
    /// How many instruments it may have.
    len: u32,
    phase: Phase,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// How far a feed is.
enum Phase {
    /// Its venue's list of instruments is awaited, since the last try failed for a reason.
    Starting(Option<String>),
    Running(Reader, Option<Arc<dyn MarketStreams>>, Ender),
    /// It was refused.
    Failed(String),
}

impl fmt::Debug for Feeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}

/// Checks that `feeds` can be followed at the same time.
///
/// # Errors
/// One of them is configured wrongly, two have the same symbol, or a venue does not allow this address as many
/// connections or topics.
fn check(feeds: &[FeedConfig]) -> anyhow::Result<()> {
    for (index, config) in feeds.iter().enumerate() {
        ensure!(!config.symbols.is_empty(), "market: a feed without symbols");
        config.check_addresses()?;
        for known in &feeds[..index] {
            let is_same = known.venue == config.venue && known.streams == config.streams;
            let symbol = config.symbols.iter().find(|symbol| is_same && known.symbols.contains(symbol));
            ensure!(
                symbol.is_none(),
                "market: {} of {} is followed",
                symbol.map_or("", String::as_str),
                config.venue.name()
            );
        }
    }
    let market = MarketConfig { feeds: feeds.to_vec(), ..MarketConfig::default() };
    Addresses::check(&parts(&market)?)
}

impl Feeds {
    /// No feed yet. The feeds of `config` are not started, and nothing is recorded; `report` gets each try to reach a
    /// venue that failed.
    #[must_use]
    pub fn new(config: MarketConfig, report: impl Fn(&Unreached) + Send + Sync + 'static) -> Self {
        tt_os::clock::calibrate_ahead();
        Self(Arc::new(Shared {
            config: MarketConfig { feeds: Vec::new(), recording: None, ..config },
            addresses: Addresses::default(),
            report: Box::new(report),
            list: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    /// Checks that `next` can take the place of the feeds with these numbers.
    ///
    /// # Errors
    /// As [`Feeds::add`].
    pub fn check(&self, replaced: &[u32], next: &[FeedConfig]) -> anyhow::Result<()> {
        let list = self.0.list();
        let others = list.feeds.iter().filter(|known| !replaced.contains(&known.id));
        check(&others.map(|known| &known.config).chain(next).cloned().collect::<Vec<_>>())
    }

    /// Begins to follow a feed, and returns its number without waiting for its venue. A venue that cannot be reached is
    /// tried again until the feed is removed.
    ///
    /// # Errors
    /// The feed is configured wrongly, one of its symbols is followed, or its venue does not allow this address as many
    /// connections or topics.
    pub fn add(&self, config: FeedConfig) -> anyhow::Result<u32> {
        let mut list = self.0.list();
        let known = list.feeds.iter().map(|known| known.config.clone());
        check(&known.chain([config.clone()]).collect::<Vec<_>>())?;
        let market = MarketConfig { feeds: vec![config.clone()], ..self.0.config.clone() };
        let (id, first) = (list.next_id, list.next_instrument);
        let (stop, stopping) = oneshot::channel();
        let startup = Startup::sharing(market, &self.0.addresses, first)?;
        let shared = Arc::clone(&self.0);
        let thread = thread::Builder::new().name(format!("market-feed-{id}"));
        let thread = thread.spawn(move || shared.follow(id, startup, stopping)).context("market: thread")?;
        let len = u32::try_from(config.symbols.len()).context("market: symbols")?;
        list.next_id += 1;
        list.next_instrument = first + len;
        list.feeds.push(Followed { id, config, first, len, phase: Phase::Starting(None), stop, thread });
        Ok(id)
    }

    /// Ends a feed, and returns at once; `false` if there is none of this number. Its books are gone with the next look,
    /// and readers of its streams get the status `stale`.
    pub fn remove(&self, id: u32) -> bool {
        let mut list = self.0.list();
        let Some(index) = list.feeds.iter().position(|known| known.id == id) else { return false };
        let Followed { phase, stop, thread, .. } = list.feeds.remove(index);
        if let Phase::Running(_, Some(streams), _) = &phase {
            list.retired = sum(list.retired, streams.counts());
        }
        // It may have ended by itself.
        let _ = stop.send(());
        list.ending.retain(|thread| !thread.is_finished());
        list.ending.push(thread);
        true
    }

    /// Ends one symbol of a feed while its others go on; `false` if the feed does not follow it. With its last symbol a feed
    /// ends. Its book is gone with the next look, and readers of its stream get the status `stale`.
    pub fn unsubscribe(&self, id: u32, symbol: &str) -> bool {
        let mut list = self.0.list();
        let known = list.feeds.iter_mut().find(|known| known.id == id);
        let Some(known) = known.filter(|known| known.config.symbols.iter().any(|known| known == symbol)) else {
            return false;
        };
        if known.config.symbols.len() == 1 {
            drop(list);
            return self.remove(id);
        }
        known.config.symbols.retain(|known| known != symbol);
        // One that starts has the symbol ended as soon as it runs.
        if let Phase::Running(.., ender) = &known.phase {
            ender.keep(&known.config.symbols);
        }
        true
    }

    /// Waits until no feed awaits its venue's list, at most for `most`; returns whether it is so.
    #[must_use]
    pub fn wait_started(&self, most: Duration) -> bool {
        let is_starting = |list: &mut List| list.feeds.iter().any(|known| matches!(known.phase, Phase::Starting(_)));
        let waited = self.0.changed.wait_timeout_while(self.0.list(), most, is_starting);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Ends all feeds and waits for their threads; returns the state that they ended with.
    pub fn stop(&self) -> MarketStatus {
        let readers = self.readers();
        let ids: Vec<u32> = self.0.list().feeds.iter().map(|known| known.id).collect();
        for id in ids {
            self.remove(id);
        }
        let ending = std::mem::take(&mut self.0.list().ending);
        for thread in ending {
            if thread.join().is_err() {
                tracing::error!("market: a feed's thread had panicked");
            }
        }
        let MarketConfig { sample_one_in, .. } = self.0.config;
        snapshot::merged(&readers, unix_now(), sample_one_in)
    }

    /// The feeds and how far each is.
    #[must_use]
    pub fn list(&self) -> Vec<FollowedFeed> {
        self.0.list().feeds.iter().map(Followed::shown).collect()
    }

    /// Readers of the running feeds, each with the number of its first instrument.
    #[must_use]
    pub fn readers(&self) -> Vec<(u32, Reader)> {
        let running = |known: &Followed| match &known.phase {
            Phase::Running(reader, ..) => Some((known.first, reader.clone())),
            Phase::Starting(_) | Phase::Failed(_) => None,
        };
        self.0.list().feeds.iter().filter_map(running).collect()
    }

    /// Everything at `now`, as [`Reader::snapshot`]. Feeds that do not run yet are not connected.
    #[must_use]
    pub fn snapshot(&self, now: Nanos, one_in: u32) -> MarketStatus {
        let mut status = snapshot::merged(&self.readers(), now, one_in);
        status.feeds.extend(self.0.list().feeds.iter().filter_map(Followed::waiting));
        status
    }

    /// Whole books and streams of every update of all feeds. A stream has the instruments of its beginning.
    #[must_use]
    pub fn streams(&self) -> Arc<dyn MarketStreams> {
        Arc::clone(&self.0) as Arc<dyn MarketStreams>
    }
}

impl Followed {
    fn shown(&self) -> FollowedFeed {
        let (state, error) = match &self.phase {
            Phase::Starting(error) => (FeedState::Starting, error.clone()),
            Phase::Running(..) => (FeedState::Running, None),
            Phase::Failed(reason) => (FeedState::Failed, Some(reason.clone())),
        };
        let FeedConfig { venue, streams, symbols, .. } = &self.config;
        FollowedFeed {
            id: self.id,
            venue: venue.name(),
            url: streams.to_string(),
            symbols: symbols.clone(),
            state,
            error,
        }
    }

    /// The status of a feed that does not run.
    fn waiting(&self) -> Option<Feed> {
        let refused = match &self.phase {
            Phase::Running(..) => return None,
            Phase::Starting(_) => Vec::new(),
            Phase::Failed(reason) => {
                vec![Refused { subject: self.config.symbols.join(","), reason: reason.clone() }]
            }
        };
        Some(Feed {
            venue: self.config.venue.name(),
            url: self.config.streams.to_string(),
            connected: false,
            frames: 0,
            gaps: 0,
            resyncs: 0,
            reconnects: 0,
            planned_reconnects: 0,
            silent_topics: Vec::new(),
            sessions: Vec::new(),
            refused,
            snapshot_matches: 0,
            snapshot_mismatches: 0,
            differences: Vec::new(),
            incidents: Arc::default(),
            account: Account::default(),
        })
    }

    /// The streams that have an instrument, and its number there.
    fn find(&self, instrument: u32) -> Option<(&Arc<dyn MarketStreams>, u32)> {
        let Phase::Running(_, Some(streams), _) = &self.phase else { return None };
        let local = instrument.checked_sub(self.first)?;
        (local < self.len).then_some((streams, local))
    }
}

impl Shared {
    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The streams of the feeds that run.
    fn running(&self) -> Vec<Arc<dyn MarketStreams>> {
        let of = |known: &Followed| match &known.phase {
            Phase::Running(_, streams, _) => streams.clone(),
            Phase::Starting(_) | Phase::Failed(_) => None,
        };
        self.list().feeds.iter().filter_map(of).collect()
    }

    fn enter(&self, id: u32, phase: Phase) {
        if let Some(known) = self.list().feeds.iter_mut().find(|known| known.id == id) {
            known.phase = phase;
        }
        self.changed.notify_all();
    }

    /// Shows a feed that runs, and ends the symbols that were removed before.
    fn enter_running(&self, id: u32, running: &Runner) {
        let ender = running.ender();
        let mut list = self.list();
        if let Some(known) = list.feeds.iter_mut().find(|known| known.id == id) {
            ender.keep(&known.config.symbols);
            known.phase = Phase::Running(running.reader(), running.streams(), ender);
        }
        drop(list);
        self.changed.notify_all();
    }

    /// Starts a feed and waits for its end, on its own thread.
    fn follow(&self, id: u32, mut startup: Startup, mut stopping: oneshot::Receiver<()>) {
        let running = loop {
            let ended = async { drop((&mut stopping).await) };
            match startup.advance(ended) {
                Ok(StartupStep::Started(running)) => break running,
                Ok(StartupStep::Unreached(venue)) => {
                    (self.report)(&venue);
                    self.enter(id, Phase::Starting(Some(venue.error)));
                }
                Ok(StartupStep::Ended) => return,
                Err(error) => {
                    let reason = format!("{error:#}");
                    // A command with this feed alone ends with the reason.
                    if self.list().feeds.len() > 1 {
                        tracing::error!(feed = id, reason, "market: the feed is not followed");
                    }
                    return self.enter(id, Phase::Failed(reason));
                }
            }
        };
        self.enter_running(id, &running);
        // An error means that the list of feeds is gone.
        let _ = stopping.blocking_recv();
        running.stop();
    }
}

impl MarketStreams for Shared {
    fn book(&self, instrument: u32, depth: usize) -> Option<WholeBook> {
        let found = self.list().feeds.iter().find_map(|known| {
            let (streams, local) = known.find(instrument)?;
            Some((Arc::clone(streams), local))
        });
        let (streams, local) = found?;
        streams.book(local, depth)
    }

    fn candles(&self, instrument: u32, asked: &CandleQuestion) -> Option<CandleHistory> {
        let found = self.list().feeds.iter().find_map(|known| {
            let (streams, local) = known.find(instrument)?;
            Some((Arc::clone(streams), local))
        });
        let (streams, local) = found?;
        streams.candles(local, asked)
    }

    fn orders(&self, instruments: &[u32], depth: usize) -> Vec<(u32, BookOrders)> {
        let mut asked = Vec::new();
        for known in self.list().feeds.iter().filter(|known| known.config.level3) {
            let Phase::Running(_, _, ender) = &known.phase else { continue };
            let locals = instruments.iter().filter_map(|instrument| Some((*instrument, known.find(*instrument)?.1)));
            asked.extend(locals.filter_map(|(id, local)| Some((id, ender.ask_orders(InstrumentId(local), depth)?))));
        }
        // The list is free while the feeds answer.
        let until = Instant::now() + ORDERS_MAX;
        let answer = |(id, orders): (u32, mpsc::Receiver<BookOrders>)| {
            Some((id, orders.recv_timeout(until.saturating_duration_since(Instant::now())).ok()?))
        };
        asked.into_iter().filter_map(answer).collect()
    }

    fn subscribe(&self, instruments: &[u32], kind: StreamKind, sink: &Arc<dyn Sink>) {
        for known in &self.list().feeds {
            let found = instruments.iter().filter_map(|instrument| known.find(*instrument));
            let (streams, locals): (Vec<_>, Vec<_>) = found.unzip();
            if let Some(streams) = streams.first() {
                streams.subscribe(&locals, kind, sink);
            }
        }
    }

    fn accounts(&self) -> Vec<AccountState> {
        self.running().iter().flat_map(|streams| streams.accounts()).collect()
    }

    fn subscribe_accounts(&self, venue: Option<&str>, sink: &Arc<dyn Sink>) {
        self.running().iter().for_each(|streams| streams.subscribe_accounts(venue, sink));
    }

    fn counts(&self) -> StreamCounts {
        let list = self.list();
        let of = |known: &Followed| match &known.phase {
            Phase::Running(_, streams, _) => streams.as_ref().map(|streams| streams.counts()),
            Phase::Starting(_) | Phase::Failed(_) => None,
        };
        list.feeds.iter().filter_map(of).fold(list.retired, sum)
    }
}

fn sum(one: StreamCounts, other: StreamCounts) -> StreamCounts {
    StreamCounts {
        messages: one.messages + other.messages,
        gaps: one.gaps + other.gaps,
        lost: one.lost + other.lost,
        lost_by_feeds: one.lost_by_feeds + other.lost_by_feeds,
    }
}
