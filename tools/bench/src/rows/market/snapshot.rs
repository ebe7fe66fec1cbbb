//! A book snapshot of 1,000 levels a side, applied and published.

use crate::report::{Bootstrap, Row, RowText, Samples, Statistic, Unit};
use anyhow::{Context as _, ensure};
use tt_meter::{Calibration, Clock, Probe, Stage, Stamp};
use tt_model::{Nanos, SplitMix64};

use super::rig::{Rig, Setup, pair};
use super::source::{Capture, usdm_updates};
use super::updates::{Body, Pair, body};
use super::{ENGINE, Size, label};
use crate::harness::cache_eviction;
use crate::harness::operation::{Bench, Finished, Label};
use crate::harness::plan::Plan;

const LEVELS: usize = 1_000;
const BODIES: usize = 64;
/// Instruments whose books may lie as far apart as captured levels do; with more of them levels are made, which lie
/// closer together and take less memory.
const CAPTURED_MAX: usize = 100;
const NOW: Nanos = Nanos(1_700_000_000_000_000_000);

/// `Engine::handle_snapshot` on REST bodies, timed from the end of its parsing.
pub(super) struct Snapshot {
    rig: Rig,
    bodies: Vec<Body>,
    origin: &'static str,
    size: Size,
    random: SplitMix64,
    next: usize,
    samples: Samples,
    cold: Samples,
}

/// Stamps the end of parsing.
struct AfterParse {
    clock: Clock,
    parsed: Stamp,
}

impl Probe for AfterParse {
    fn begin(&mut self) {}
    fn mark(&mut self, stage: Stage) {
        if stage == Stage::Parse {
            self.parsed = self.clock.end();
        }
    }
    fn end(&mut self) {}
}

impl Snapshot {
    /// # Errors
    /// The source cannot be read, or the engine refuses the instruments.
    pub(super) fn new(size: Size) -> anyhow::Result<Self> {
        let mut random = SplitMix64::new(444);
        let (bodies, origin) = bodies(size.instruments, &mut random)?;
        let pages = size.instruments.saturating_mul(100).max(8_192);
        let pages = if size.instruments > CAPTURED_MAX { pages } else { pages.saturating_mul(8) };
        let rig = Rig::new(NOW, Setup { pages, ..Setup::of(size.instruments) })?;
        Ok(Self { rig, bodies, origin, size, random, next: 0, samples: Samples::new(), cold: Samples::new() })
    }

    fn label(&self) -> Label {
        label(
            self.size.name,
            "REST snapshot of 1,000 levels a side put in the place of the book and published, parsing not included",
            4_440.0,
            &[(Statistic::P99, 17_420.0)],
        )
    }

    /// Nanoseconds of the next snapshot, for an instrument that is drawn.
    fn one(&mut self, calibration: &Calibration) -> anyhow::Result<f64> {
        let body = &self.bodies[self.next % self.bodies.len()];
        self.next += 1;
        let id = self.rig.await_snapshot(self.random.index(self.size.instruments), NOW)?;
        let mut probe = AfterParse { clock: calibration.clock, parsed: Stamp::default() };
        let applied = self.rig.engine.handle_snapshot(NOW, id, body.text.as_bytes(), &mut probe);
        let end = calibration.clock.end();
        applied.map_err(|fault| anyhow::anyhow!("a snapshot was dropped: {fault:?}"))?;
        let top = self.rig.engine.board().top_of_book(id).context("no book")?;
        ensure!([pair(top.bid), pair(top.ask)] == body.best, "the published best levels are {top:?}");
        ensure!(self.rig.engine.levels_len(id) == Some((LEVELS, LEVELS)), "levels are missing");
        Ok(calibration.scale.ns_f64(end.since(probe.parsed) as f64))
    }
}

/// The captured book at places of the session where it has as many levels, else made ones.
fn bodies(instruments: usize, random: &mut SplitMix64) -> anyhow::Result<(Vec<Body>, &'static str)> {
    if instruments <= CAPTURED_MAX {
        let places = usdm_updates()?.places(BODIES, LEVELS);
        if places.len_min >= LEVELS {
            return Ok((places.bodies, Capture::usdm()?.origin()));
        }
    }
    Ok(((0..BODIES).map(|_| made(random)).collect(), "made for this bench"))
}

/// A body with random gaps and quantities.
fn made(random: &mut SplitMix64) -> Body {
    let mut side = |first: i64, way: i64| {
        let mut px = first;
        let mut level = || {
            px += way * (1 + random.index(3) as i64);
            (px, 1 + random.index(100_000) as i64)
        };
        (0..LEVELS).map(|_| level()).collect::<Vec<Pair>>()
    };
    let levels = [side(618_000, -1), side(618_000, 1)];
    Body { text: body(77, &levels), best: levels.map(|side| side.first().copied()) }
}

impl Bench for Snapshot {
    fn name(&self) -> &'static str {
        self.size.name
    }

    fn verify(&mut self) -> anyhow::Result<()> {
        // Each book is there before one is replaced.
        for number in 0..self.size.instruments {
            let body = &self.bodies[number % self.bodies.len()].text;
            self.rig.begin_book(number, NOW, body)?;
        }
        for _ in 0..BODIES {
            self.one(tt_os::clock::calibration())?;
        }
        Ok(())
    }

    fn warm_up(&mut self, calibration: &Calibration, plan: &Plan) -> anyhow::Result<()> {
        let begin = calibration.clock.end();
        while calibration.scale.ns(calibration.clock.end().since(begin)) < plan.warmup_ns {
            self.one(calibration)?;
        }
        Ok(())
    }

    fn block(&mut self, calibration: &Calibration, plan: &Plan) -> anyhow::Result<()> {
        let mut block = Vec::new();
        let begin = calibration.clock.end();
        while calibration.scale.ns(calibration.clock.end().since(begin)) < plan.block_ns {
            block.push(self.one(calibration)?);
        }
        self.samples.push_block(block);
        let mut block = Vec::new();
        for _ in 0..plan.cold_per_block {
            cache_eviction::displace();
            block.push(self.one(calibration)?);
        }
        self.cold.push_block(block);
        Ok(())
    }

    fn finish(&self, bootstrap: &Bootstrap) -> Vec<Finished> {
        let Label { what, published, .. } = self.label();
        let instruments = self.size.instruments;
        let note = format!("{}; {instruments} instrument{}", self.origin, super::state::plural(instruments));
        let row = |name, samples: &Samples, notes: Vec<String>, published| {
            let row = Row::of(RowText { name, engine: ENGINE, what, unit: Unit::Ns }, samples, 1, bootstrap)?;
            Some(Finished { row: Row { published, notes, ..row }, samples: samples.clone() })
        };
        let warm = row(self.size.name, &self.samples, vec![note.clone()], published);
        let parsed = "what its parsing reads and writes is warm again".to_owned();
        let cold = row(self.size.cold, &self.cold, vec![note, cache_eviction::how(), parsed], Vec::new());
        warm.into_iter().chain(cold).collect()
    }
}
