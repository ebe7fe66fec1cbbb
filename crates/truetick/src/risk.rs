//! The pre-trade gate on threads: a demonstration strategy in front of it, and `truetick risk` over files.
//!
//! Two threads and three rings, one for each producer and kind of event:
//!
//! ```text
//! strategy --OrderIntent--> gate --Verdict--> strategy
//! strategy --Outcome------> gate                          (fills and cancels of the orders that rest)
//! ```
//!
//! Before each evaluation the gate reads the instrument's newest top of book from the market engine's cells. Between
//! intents both threads sleep: a strategy that is paced has no use for a core of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result};
use tt_market::Decimal;
use tt_model::{InstrumentId, Nanos, OrderIntent, Verdict};
use tt_sync::spsc;

use crate::config::Config;
use crate::output;

mod clock;
mod evaluate;
mod gate;
mod limits_file;
mod orders;
mod policy;
mod published;
mod snapshot;
mod strategy;
#[cfg(test)]
mod tests;

pub use evaluate::Args;
pub use published::Published;

/// Judges the intents of a file.
///
/// # Errors
/// A file that cannot be read, or something in it that makes no sense; the error names the line.
pub fn run(args: Args, config: &Config) -> Result<()> {
    output::unless_unread(evaluate::run(&args, &config.risk))
}

/// Slots of the ring of intents, and of that of verdicts.
const RING_SLOTS: usize = 1024;

/// The top of an instrument's book as the gate needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quote {
    /// The best bid, in steps of the instrument's price; zero where there is none.
    pub bid_px: i64,
    /// The best offer; zero where there is none.
    pub ask_px: i64,
    /// When the book was so, Unix epoch.
    pub ts_recv: Nanos,
    /// Whether the book carries a proof that the gate accepts.
    pub is_verified: bool,
}

/// Reads the newest quote of an instrument; `None` for one that the market engine does not have.
pub type Quotes = Arc<dyn Fn(InstrumentId) -> Option<Quote> + Send + Sync>;

/// An instrument that the strategy trades.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tradable {
    /// The market engine's number of it.
    pub instrument: InstrumentId,
    /// The normalised symbol.
    pub symbol: String,
    /// The venue's name.
    pub venue: &'static str,
    /// The price step.
    pub tick_size: Decimal,
    /// The quantity step.
    pub lot_size: Decimal,
}

/// What to run.
#[derive(Clone)]
pub struct RiskConfig {
    /// What the strategy trades, in the order of their numbers.
    pub tradables: Vec<Tradable>,
    /// Where quotes come from.
    pub quotes: Quotes,
    /// Intents a second on average.
    pub intents_per_s: u32,
    /// What the strategy's choices follow from.
    pub seed: u64,
}

/// The two threads.
#[derive(Debug)]
pub struct Running {
    published: Arc<Published>,
    stop: Arc<AtomicBool>,
    strategy: JoinHandle<()>,
    gate: JoinHandle<()>,
}

/// The ends of the rings that the strategy holds.
struct StrategyEnds {
    intents: spsc::Producer<OrderIntent>,
    outcomes: spsc::Producer<orders::Outcome>,
    verdicts: spsc::Consumer<Verdict>,
}

/// The ends of the rings that the gate holds.
struct GateEnds {
    intents: spsc::Consumer<OrderIntent>,
    outcomes: spsc::Consumer<orders::Outcome>,
    verdicts: spsc::Producer<Verdict>,
}

fn rings() -> (StrategyEnds, GateEnds) {
    let (intents, intents_out) = spsc::ring(RING_SLOTS);
    let (outcomes, outcomes_out) = spsc::ring(RING_SLOTS);
    let (verdicts, verdicts_out) = spsc::ring(RING_SLOTS);
    (
        StrategyEnds { intents, outcomes, verdicts: verdicts_out },
        GateEnds { intents: intents_out, outcomes: outcomes_out, verdicts },
    )
}

/// Starts the gate, then the strategy, each pinned to a core of its own where there are two.
///
/// # Errors
/// A limit that the gate does not take, or a thread that cannot be started.
pub fn start(config: RiskConfig) -> Result<Running> {
    let (to_gate, from_strategy) = rings();
    let (writer, pushes, published) = published::board(&config.tradables);
    let published = Arc::new(published);
    let stop = Arc::new(AtomicBool::new(false));
    let cpus = tt_os::cpu::available().unwrap_or_default();
    let clock = clock::Clock::new();
    let gate = gate::Loop::new(&config, from_strategy, writer, clock)?;
    let gate_cpu = cpus.last().copied();
    let gate = thread::Builder::new()
        .name("gate".into())
        .spawn(move || {
            pin("gate", gate_cpu);
            gate.run();
        })
        .context("risk: the gate's thread")?;
    let strategy = strategy::Strategy::new(&config, to_gate, pushes, clock);
    let strategy_cpu = cpus.iter().rev().nth(1).copied();
    let (ending, woken) = (Arc::clone(&stop), gate.thread().clone());
    let strategy = thread::Builder::new()
        .name("strategy".into())
        .spawn(move || {
            pin("strategy", strategy_cpu);
            strategy.run(&ending, &woken);
        })
        .context("risk: the strategy's thread")?;
    Ok(Running { published, stop, strategy, gate })
}

fn pin(name: &str, cpu: Option<usize>) {
    if let Some(cpu) = cpu
        && let Err(refusal) = tt_os::cpu::pin(cpu)
    {
        tracing::warn!(thread = name, cpu, %refusal, "not pinned");
    }
}

impl Running {
    /// What the gate has published, for other threads.
    #[must_use]
    pub fn published(&self) -> Arc<Published> {
        Arc::clone(&self.published)
    }

    /// Ends the strategy, lets the gate judge what is still in the ring, and joins both threads.
    pub fn stop(self) {
        self.stop.store(true, Ordering::Release);
        self.strategy.thread().unpark();
        let _ = self.strategy.join();
        // The ring is abandoned: the gate drains it and ends.
        self.gate.thread().unpark();
        let _ = self.gate.join();
    }
}
