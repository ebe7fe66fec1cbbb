//! The WebSocket streams of the shipped program: many readers at a high rate, and the time from a venue's frame to a
//! message in another process.
//!
//! The program runs as a child, `truetick market --http`, and follows a simulator in this process. Readers are in this
//! process, too. Latencies are compared with an echo server that is one more child and has no more than a WebSocket
//! ([`echo`]): it sends the same messages, one each time that one arrives.

mod child;
pub mod echo;
mod frame;
mod latency;
mod load;
mod reader;

use std::time::Duration;

use anyhow::{Context as _, ensure};
use tt_meter::Calibration;

use self::child::{Echo, Server};
use self::latency::{Mode, Path};
use self::load::Load;
use super::ENGINE;
use crate::harness::operation::{Bench, Finished};
use crate::harness::plan::Plan;
use crate::report::{Aim, Bootstrap, Estimate, Row, RowText, Samples, Statistic, Unit};
use crate::rows::registry::Selection;

/// Readers that are connected at the same time.
const READERS: usize = 100;
/// Book updates a second that the simulator offers to each of them: a little more than the aim, so that it can be reached.
const OFFERED_HZ: f64 = 2_040.0;
/// Messages a second that 100 readers at 2,000 updates a second receive, millions.
const LOAD_AIM: f64 = 0.2;
/// Book updates a second where latencies are timed: one at a time.
const LATENCY_HZ: f64 = 500.0;
/// The most that a message may take, in times of the echo's.
const LATENCY_AIM: f64 = 1.5;
/// Blocks are this many times as long as those of other rows.
const BLOCKS: u64 = 10;

/// The programs that the bench starts.
#[derive(Clone, Copy, Debug)]
pub struct Programs {
    /// Arguments that make this program serve the book of a venue's symbol at a WebSocket address, at any free port, and
    /// print JSON.
    pub server: fn(venue: &str, symbol: &str, url: &str) -> Vec<String>,
    /// Arguments that make this program call [`echo::serve`].
    pub echo: fn() -> Vec<String>,
}

/// Returns whether a run has these rows.
pub(crate) fn is_selected(selection: Selection, text: Option<&str>) -> bool {
    const NAME: &str = "streams";
    selection == Selection::Market && text.is_none_or(|text| NAME.contains(text) || text.starts_with(NAME))
}

/// The simulator, the program and the echo server, from the first block to the last.
pub(crate) struct Streams {
    /// Before the simulator, so that it ends first.
    server: Server,
    echo: Echo,
    sim: sim::Running,
    load: Load,
    /// Of [`Mode::ALL`].
    modes: [Latencies; 2],
}

/// What was timed in one mode.
#[derive(Default)]
struct Latencies {
    product: Samples,
    echo: Samples,
    /// Medians of the blocks' products over those of their echoes.
    ratios: Samples,
}

impl Streams {
    /// Starts all parts. To be called before this thread is pinned: threads and children run where it may.
    ///
    /// # Errors
    /// A part cannot be started, or the book is never served.
    pub(crate) fn new(programs: &Programs) -> anyhow::Result<Self> {
        let config = sim::Config { instruments: 1, rate_hz: LATENCY_HZ, ..sim::Config::default() };
        let sim = sim::start(config).context("cannot start the simulator")?;
        let venue = sim::Venue::MEASURED;
        let symbol = sim.instruments(venue).first().map(|listed| listed.symbol.clone()).context("no instrument")?;
        let url = format!("ws://{}{}", sim.address(venue), venue.streams_path());
        let server = Server::start(&(programs.server)(venue.name(), &symbol, &url))?;
        server.wait_for_book()?;
        sim.set_rate(0.0);
        let echo = Echo::start(&(programs.echo)())?;
        Ok(Self { server, echo, sim, load: Load::default(), modes: Default::default() })
    }

    /// Runs everything once for `span`, and returns what was timed in each mode.
    fn run(&mut self, span: Duration) -> anyhow::Result<Vec<[Vec<f64>; 2]>> {
        let Self { server, echo, sim, load, .. } = self;
        // Spinning readers must not be bound to the CPU of the main thread.
        std::thread::scope(|scope| {
            let all = scope.spawn(move || {
                child::unpin()?;
                load.run(server, sim, span)?;
                let modes = Mode::ALL.map(|mode| {
                    let (product, messages) = latency::of_server(server, sim, mode, span)?;
                    let echoed = latency::of_echo(echo, &messages, mode)?;
                    ensure!(!product.is_empty() && !echoed.is_empty(), "no message was timed");
                    Ok([product, echoed])
                });
                modes.into_iter().collect()
            });
            all.join().map_err(|_| anyhow::anyhow!("the readers' thread has panicked"))?
        })
    }
}

impl Bench for Streams {
    fn name(&self) -> &'static str {
        "streams"
    }

    fn verify(&mut self) -> anyhow::Result<()> {
        self.run(Duration::from_millis(100))?;
        self.load = Load::default();
        Ok(())
    }

    fn warm_up(&mut self, _: &Calibration, plan: &Plan) -> anyhow::Result<()> {
        self.run(Duration::from_nanos(plan.warmup_ns))?;
        self.load = Load::default();
        Ok(())
    }

    fn block(&mut self, _: &Calibration, plan: &Plan) -> anyhow::Result<()> {
        let timed = self.run(Duration::from_nanos(plan.block_ns * BLOCKS))?;
        for (latencies, [product, echo]) in self.modes.iter_mut().zip(timed) {
            latencies.ratios.push_block(vec![median(&product) / median(&echo)]);
            latencies.product.push_block(product);
            latencies.echo.push_block(echo);
        }
        Ok(())
    }

    fn finish(&self, bootstrap: &Bootstrap) -> Vec<Finished> {
        let mut finished = self.load.finish(bootstrap);
        for (mode, latencies) in Mode::ALL.into_iter().zip(&self.modes) {
            for path in Path::ALL {
                let samples = if path == Path::Server { &latencies.product } else { &latencies.echo };
                let text = RowText { name: mode.name(path), engine: ENGINE, what: path.what(), unit: Unit::Ns };
                finished.extend(row(text, samples, bootstrap, None, mode.note()));
            }
            let text = RowText {
                name: mode.ratio_name(),
                engine: ENGINE,
                what: "median of the server's times of a block over that of the echo's",
                unit: Unit::Times,
            };
            let aim = Aim { statistic: Statistic::Mean, at_most: LATENCY_AIM };
            finished.extend(row(text, &latencies.ratios, bootstrap, Some(aim), mode.note()));
        }
        finished
    }
}

fn row(
    text: RowText<'_>,
    samples: &Samples,
    bootstrap: &Bootstrap,
    aim: Option<Aim>,
    note: String,
) -> Option<Finished> {
    let mut row = Row::of(text, samples, 1, bootstrap)?;
    row.aims.extend(aim);
    row.notes.push(note);
    Some(Finished { row, samples: samples.clone() })
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The interval of a row's mean, for notes.
fn interval(estimate: &Estimate) -> String {
    format!("{:.2} [{:.2}, {:.2}]", estimate.value, estimate.low, estimate.high)
}
