//! From a real WebSocket on loopback to published state: simulator, shipped feed client, engine.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use market_feed::{FeedConfig, MarketConfig, Row as LiveRow};
use tt_meter::Calibration;
use tt_venue::Venue;

use super::{ENGINE, published};
use crate::harness::cpus;
use crate::harness::operation::{Bench, Finished};
use crate::harness::plan::Plan;
use crate::report::{Bootstrap, Row, RowText, Samples, Statistic, Unit};

/// Book updates a second that the simulator offers, and instruments that it spreads them over.
const RATE_HZ: f64 = 5_000.0;
const INSTRUMENTS: u32 = 8;
/// Rows that the feed client times itself, with their names here and what was published.
const ROWS: [(LiveRow, &str); 2] =
    [(LiveRow::EndToEnd, "end_to_end_ns"), (LiveRow::EndToEndFromRead, "end_to_end_from_read_ns")];

/// A simulator and a feed client that follows it, from the first block to the last.
pub(super) struct EndToEnd {
    /// Before the simulator, so that it ends first.
    market: market_feed::Runner,
    sim: sim::Running,
    seen: [BTreeMap<(u64, u64), u64>; 2],
    samples: [Samples; 2],
}

impl EndToEnd {
    /// # Errors
    /// The simulator or the client does not start, or the books are never proved.
    pub(super) fn new() -> anyhow::Result<Self> {
        let config = sim::Config { instruments: INSTRUMENTS, rate_hz: 200.0, ..sim::Config::default() };
        let sim = sim::start(config).context("cannot start the simulator")?;
        let venue = sim::Venue::MEASURED;
        let symbols = sim.instruments(venue).iter().map(|instrument| instrument.symbol.clone()).collect();
        let streams = format!("ws://{}{}", sim.address(venue), venue.streams_path()).parse()?;
        let known = Venue::find(venue.name()).context("the venue is unknown")?;
        let mut feed = FeedConfig::at(known, streams, symbols);
        feed.cpu = cpus::available().last().copied();
        let market =
            market_feed::start(MarketConfig { feeds: vec![feed], sample_one_in: 64, ..MarketConfig::default() })?;
        let proved = market.reader().wait(Duration::from_secs(20), || market.reader().all_verified());
        ensure!(proved, "the books are not proved after 20 s");
        sim.set_rate(0.0);
        Ok(Self { sim, market, seen: Default::default(), samples: Default::default() })
    }

    /// Lets frames flow for `span_ns`, and returns what was timed meanwhile, in nanoseconds of the buckets' middles.
    fn flow(&mut self, span_ns: u64) -> [Vec<f64>; 2] {
        self.sim.set_rate(RATE_HZ);
        std::thread::sleep(Duration::from_nanos(span_ns));
        self.sim.set_rate(0.0);
        // The client publishes its times every 50 ms.
        std::thread::sleep(Duration::from_millis(120));
        let reader = self.market.reader();
        let (times, scale) = (reader.times(), reader.calibration().scale);
        let mut found: [Vec<f64>; 2] = Default::default();
        for (((row, _), seen), found) in ROWS.iter().zip(&mut self.seen).zip(&mut found) {
            for (low, high, count) in times.rows[*row as usize].filled() {
                let before = seen.insert((low, high), count).unwrap_or(0);
                let middle = scale.ns_f64(low as f64 + (high - low) as f64 / 2.0);
                found.extend(std::iter::repeat_n(middle, (count - before) as usize));
            }
        }
        found
    }
}

impl Bench for EndToEnd {
    fn name(&self) -> &'static str {
        "end_to_end_ns"
    }

    fn verify(&mut self) -> anyhow::Result<()> {
        self.flow(50_000_000);
        let counters = self.market.reader().counters(0);
        ensure!(counters.closes() && counters.drops_total() == 0, "frames in are not frames applied: {counters:?}");
        ensure!(self.market.reader().all_verified(), "a book lost its proof");
        Ok(())
    }

    fn warm_up(&mut self, _calibration: &Calibration, plan: &Plan) -> anyhow::Result<()> {
        self.flow(plan.warmup_ns);
        Ok(())
    }

    fn block(&mut self, _calibration: &Calibration, plan: &Plan) -> anyhow::Result<()> {
        let found = self.flow(plan.block_ns * 4);
        self.samples.iter_mut().zip(found).for_each(|(samples, block)| samples.push_block(block));
        let counters = self.market.reader().counters(0);
        ensure!(counters.drops_total() == 0, "void: frames were dropped: {counters:?}");
        Ok(())
    }

    fn finish(&self, bootstrap: &Bootstrap) -> Vec<Finished> {
        let what = "simulator's frame over a real WebSocket on loopback, from the return of the read that gives a frame to \
                    published state; service time in the shipped feed client, stamped by it, buckets of 3 %";
        let row = |((live, name), samples): (&(LiveRow, &'static str), &Samples)| {
            let mut row = Row::of(RowText { name, engine: ENGINE, what, unit: Unit::Ns }, samples, 1, bootstrap)?;
            let from_read = *live == LiveRow::EndToEndFromRead;
            let note = if from_read { "from the return of read(2)" } else { "from the return of the WebSocket read" };
            row.notes.push(format!("{note}; {RATE_HZ:.0} book updates/s offered over {INSTRUMENTS} instruments"));
            Some(Finished {
                row: Row { published: published(14_400.0, &[(Statistic::P99, 248_960.0)]), ..row },
                samples: samples.clone(),
            })
        };
        ROWS.iter().zip(&self.samples).filter_map(row).collect()
    }
}
