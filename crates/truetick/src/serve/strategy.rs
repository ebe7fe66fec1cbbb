//! The demonstration of `serve`, which begins when the venues have listed their instruments.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use market_feed::{Feeds, Instrument, Reader};
use risk_gate::{Board, Quote, QuoteSource};
use tt_model::InstrumentId;
use tt_status::Reading;
use tt_status::accounting::{Accounting, Stages};
use tt_status::risk::{AdminError, CancelledOrders, GateAdmin, LimitsText, ModeChange, ModeRow, Ring, RiskStatus};

use crate::demo::{self, DemoConfig, DemoInstrument};

/// The strategy does not wait longer for a venue when another one is there.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Interval at which the end is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The same, where simulated venues answer within milliseconds.
const SHORT: Duration = Duration::from_millis(2);

/// Flags of the demonstration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flags {
    /// Mean number of intents per second.
    pub(super) intents_per_s: u32,
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
        let (started, stopping) = (strategy.clone(), Arc::clone(&stop));
        let thread = thread::Builder::new().name("strategy-start".to_owned()).spawn(move || {
            if !wait(&feeds, &stopping) {
                return None;
            }
            match demo::start(config(&feeds, flags)) {
                Ok(running) => {
                    // Nothing else sets it.
                    let _ = started.0.set(Gate { board: running.board(), admin: running.admin() });
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
        while !self.thread.is_finished() && !is_ending() {
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

fn config(feeds: &Feeds, flags: Flags) -> DemoConfig {
    let (mut instruments, mut listed) = (Vec::new(), Vec::new());
    for (first, reader) in feeds.readers() {
        for known in reader.instruments().iter().filter(|known| reader.is_followed(known.id)) {
            let instrument = InstrumentId(first + known.id.0);
            instruments.push(DemoInstrument {
                instrument,
                symbol: known.name.clone(),
                venue: known.venue.name(),
                tick_size: known.tick_size,
                lot_size: known.lot_size,
            });
            listed.push((instrument, reader.clone(), known.clone()));
        }
    }
    let Flags { intents_per_s, silent_after, seed } = flags;
    DemoConfig { instruments, quotes: Arc::new(BookQuotes(listed)), intents_per_s, silent_after, seed }
}

/// Quotes from the published books, in the order of the numbers. The gate counts in the steps of its start.
struct BookQuotes(Vec<(InstrumentId, Reader, Instrument)>);

impl QuoteSource for BookQuotes {
    fn quote(&self, instrument: InstrumentId) -> Option<Quote> {
        let index = self.0.binary_search_by_key(&instrument.0, |known| known.0.0).ok()?;
        let (_, reader, listed) = &self.0[index];
        if !reader.is_followed(listed.id) {
            return None;
        }
        // An instrument whose steps have become finer has no quote.
        let top = reader.consistent(|list| {
            let now = list.get(listed.id.0 as usize)?;
            let is_same = (now.tick_size, now.lot_size) == (listed.tick_size, listed.lot_size);
            reader.top_of_book(listed.id).filter(|_| is_same)
        })?;
        Some(Quote {
            bid_px: top.bid.map_or(0, |level| level.px.0),
            ask_px: top.ask.map_or(0, |level| level.px.0),
            ts_recv: top.ts_recv,
            is_verified: top.status.proof.is_verified(),
            update_id: top.update_id,
        })
    }
}
