//! The demonstration of `serve`, which begins when the venues have listed their instruments.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use market_feed::{Feeds, Instrument, Reader};
use risk_gate::{Board, LimitsFile, Quote, QuoteSource};
use tt_model::{InstrumentId, sort_short_by_key};
use tt_status::Reading;
use tt_status::accounting::{Accounting, Stages};
use tt_status::risk::{
    AdminError, CancelledOrders, GateAdmin, JournalRow, LimitsText, ModeChange, ModeRow, Ring, RiskStatus,
};

use crate::demo::{self, DemoConfig, DemoInstrument, Listed};

/// The strategy does not wait longer for a venue when another one is there.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// An instrument without a price after this time has limits without a maximum value.
const PRICES_WAIT_MAX: Duration = Duration::from_secs(2);
/// Interval at which the end is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The same, where simulated venues answer within milliseconds.
const SHORT: Duration = Duration::from_micros(500);

/// Flags of the demonstration.
#[derive(Clone, Debug)]
pub(super) struct Flags {
    /// The limits of the gate; `None`: those of the demonstration.
    pub(super) limits: Option<LimitsFile>,
    /// Mean number of intents per second.
    pub(super) intents_per_s: u32,
    /// Longest time to the next report of an order.
    pub(super) open_max: Duration,
    /// Silence after which the strategy is put into reduce mode.
    pub(super) silent_after: Option<Duration>,
    /// Seed of the strategy's choices.
    pub(super) seed: u64,
}

/// The gate of the strategy for other threads, from the moment at which it runs.
#[derive(Clone, Default)]
pub(super) struct Strategy(Arc<OnceLock<Gate>>);

struct Gate {
    board: Arc<Board>,
    admin: Arc<dyn GateAdmin>,
}

/// Waits for the venues, then starts the strategy.
pub(super) struct Starter {
    strategy: Strategy,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Option<demo::Running>>,
}

impl Strategy {
    /// The gate's status; an empty one before it runs.
    pub(super) fn reading(&self) -> Reading<RiskStatus> {
        let strategy = self.clone();
        Arc::new(move || strategy.status())
    }

    fn status(&self) -> RiskStatus {
        match self.0.get() {
            Some(gate) => gate.board.status(),
            None => RiskStatus {
                ledger: Accounting::new("intents", 0, Vec::new(), Vec::new()),
                stages: Stages::default(),
                journey: None,
                ring: Ring::default(),
                reasons: Vec::new(),
                verdicts: Vec::new(),
                levels: Vec::new(),
                limits: Vec::new(),
            },
        }
    }

    fn admin(&self) -> Result<Arc<dyn GateAdmin>, AdminError> {
        let waits = || AdminError::Failed("the gate begins when a venue has listed its instruments".to_owned());
        self.0.get().map(|gate| Arc::clone(&gate.admin)).ok_or_else(waits)
    }
}

impl GateAdmin for Strategy {
    fn modes(&self) -> Vec<ModeRow> {
        self.admin().map_or_else(|_| Vec::new(), |admin| admin.modes())
    }

    fn set_mode(&self, scope: &str, mode: &str) -> Result<ModeChange, AdminError> {
        self.admin()?.set_mode(scope, mode)
    }

    fn limits_version(&self) -> Option<u32> {
        self.admin().ok()?.limits_version()
    }

    fn journal(&self) -> Option<JournalRow> {
        self.admin().ok()?.journal()
    }

    fn limits(&self) -> Option<LimitsText> {
        self.admin().ok()?.limits()
    }

    fn load(&self, text: &str) -> Result<LimitsText, AdminError> {
        self.admin()?.load(text)
    }

    fn cancel(&self, scope: &str) -> Result<CancelledOrders, AdminError> {
        self.admin()?.cancel(scope)
    }
}

impl Starter {
    /// Waits for the lists of `feeds` on another thread; the strategy trades what is there by then.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(feeds: Feeds, flags: Flags) -> Result<Self> {
        let (strategy, stop) = (Strategy::default(), Arc::new(AtomicBool::new(false)));
        let (started, stopping, waiting) = (strategy.clone(), Arc::clone(&stop), thread::current());
        let thread = thread::Builder::new().name("strategy-start".to_owned()).spawn(move || {
            if !wait(&feeds, &stopping) {
                return None;
            }
            match config(&feeds, flags, &stopping).and_then(demo::start) {
                Ok(running) => {
                    // Nothing else sets it.
                    let _ = started.0.set(Gate { board: running.board(), admin: running.admin() });
                    waiting.unpark();
                    Some(running)
                }
                Err(error) => {
                    tracing::error!(error = format!("{error:#}"), "serve: no strategy");
                    None
                }
            }
        });
        Ok(Self { strategy, stop, thread: thread.context("serve: cannot start the strategy's thread")? })
    }

    /// Waits until the strategy runs or cannot, or `is_ending`.
    pub(super) fn wait(&self, is_ending: impl Fn() -> bool) {
        while self.strategy.0.get().is_none() && !self.thread.is_finished() && !is_ending() {
            thread::park_timeout(SHORT);
        }
    }

    /// The strategy, for any thread.
    pub(super) fn strategy(&self) -> Strategy {
        self.strategy.clone()
    }

    /// Ends the strategy, and returns what the gate did.
    pub(super) fn stop(self) -> RiskStatus {
        self.stop.store(true, Ordering::Release);
        match self.thread.join() {
            Ok(demo) => drop(demo.map(demo::Running::stop)),
            Err(_) => tracing::error!("serve: the strategy's thread panicked"),
        }
        self.strategy.status()
    }
}

/// Waits until venues have listed instruments; `false` if the end came first.
fn wait(feeds: &Feeds, stop: &AtomicBool) -> bool {
    let mut first: Option<Instant> = None;
    while !stop.load(Ordering::Acquire) {
        let all = feeds.wait_started(LOOK_EVERY);
        if feeds.readers().is_empty() {
            // Every feed is refused, or none has started.
            if all {
                thread::park_timeout(LOOK_EVERY);
            }
        } else if all || first.get_or_insert_with(Instant::now).elapsed() > WAIT_MAX {
            return true;
        }
    }
    false
}

/// An instrument of a feed.
struct Known {
    reader: Reader,
    of: Instrument,
}

impl Known {
    /// Its name in limits files that know several venues.
    fn full_name(&self) -> String {
        format!("{}:{}", self.of.venue.name(), self.of.name)
    }

    fn quote(&self) -> Option<Quote> {
        let Self { reader, of } = self;
        if !reader.is_followed(of.id) {
            return None;
        }
        // An instrument whose steps have become finer has no quote.
        let top = reader.consistent(|list| {
            let now = list.get(of.id.0 as usize)?;
            let is_same = (now.tick_size, now.lot_size) == (of.tick_size, of.lot_size);
            reader.top_of_book(of.id).filter(|_| is_same)
        })?;
        Some(Quote {
            bid_px: top.bid.map_or(0, |level| level.px.0),
            ask_px: top.ask.map_or(0, |level| level.px.0),
            ts_recv: top.ts_recv,
            is_verified: top.status.proof.is_verified(),
            proof_ts: top.status.proof_ts(top.ts_recv),
            update_id: top.update_id,
        })
    }

    fn ref_px(&self) -> i64 {
        self.quote().map_or(0, |quote| quote.mark().ref_px.0)
    }
}

fn config(feeds: &Feeds, flags: Flags, stop: &AtomicBool) -> Result<DemoConfig> {
    let mut known: Vec<Known> = Vec::new();
    for (_, reader) in feeds.readers() {
        let followed = reader.instruments().iter().filter(|of| reader.is_followed(of.id)).cloned().collect::<Vec<_>>();
        known.extend(followed.into_iter().map(|of| Known { reader: reader.clone(), of }));
    }
    let Flags { limits, intents_per_s, open_max, silent_after, seed } = flags;
    let limits = match limits {
        Some(limits) => limits,
        None => LimitsFile::parse(&demo::limits(&listed(&known, stop))).context("the limits of the demonstration")?,
    };
    let (mut instruments, mut books) = (Vec::<DemoInstrument>::new(), Vec::new());
    for known in known {
        let found = [known.full_name(), known.of.name.clone()].into_iter().find_map(|name| limits.find(&name).ok());
        let Some((instrument, of)) = found else { continue };
        if instruments.iter().any(|other| other.instrument == instrument) {
            continue;
        }
        let Some(factor) = of.px_steps_of(known.of.tick_size) else {
            tracing::warn!(symbol = known.of.name, "serve: its price step is no multiple of the limits' unit");
            continue;
        };
        let (symbol, venue) = (known.of.name.clone(), known.of.venue.name());
        instruments.push(DemoInstrument { instrument, symbol, venue, lot_size: of.qty_unit() });
        books.push((instrument, known, factor));
    }
    ensure!(!instruments.is_empty(), "no instrument of the limits is in a feed");
    sort_short_by_key(&mut books, |(instrument, ..)| *instrument);
    let quotes = Arc::new(BookQuotes(books));
    Ok(DemoConfig { limits, instruments, quotes, intents_per_s, open_max, silent_after, seed })
}

/// Returns the instruments for limits of the demonstration, each once, and waits a while for their prices.
fn listed(known: &[Known], stop: &AtomicBool) -> Vec<Listed> {
    let started = Instant::now();
    let waits = || known.iter().any(|known| known.ref_px() == 0) && started.elapsed() < PRICES_WAIT_MAX;
    while !stop.load(Ordering::Acquire) && waits() {
        thread::park_timeout(SHORT);
    }
    let mut names = BTreeSet::new();
    let once = known.iter().filter(|known| names.insert(known.full_name()));
    let listed = once.map(|known| Listed {
        name: known.full_name(),
        tick_size: known.of.tick_size,
        lot_size: known.of.lot_size,
        ref_px: known.ref_px(),
    });
    listed.collect()
}

/// Quotes from the published books, in the order of their numbers, each with the limits' units in its price step.
struct BookQuotes(Vec<(InstrumentId, Known, i64)>);

impl QuoteSource for BookQuotes {
    fn quote(&self, instrument: InstrumentId) -> Option<Quote> {
        let index = self.0.binary_search_by_key(&instrument.0, |(number, ..)| number.0).ok()?;
        let (_, known, factor) = &self.0[index];
        let quote = known.quote()?;
        let px = |px: i64| px.checked_mul(*factor).unwrap_or(0);
        Some(Quote { bid_px: px(quote.bid_px), ask_px: px(quote.ask_px), ..quote })
    }
}
