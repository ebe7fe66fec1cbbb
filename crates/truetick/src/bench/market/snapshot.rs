//! A book snapshot of 1,000 levels a side, applied and published.

use anyhow::{Context as _, ensure};
use tt_meter::{Calibration, Clock, Probe, Stage, Stamp};
use tt_model::Nanos;
use tt_report::{Bootstrap, Row, RowText, Samples, Statistic, Unit};

use super::super::operation::{Bench, Finished, Label};
use super::super::plan::{Plan, Random};
use super::ENGINE;
use super::label;
use super::rig::{Rig, pair};

const LEVELS: usize = 1_000;
const BODIES: usize = 64;
const NOW: Nanos = Nanos(1_700_000_000_000_000_000);

/// `Engine::handle_snapshot` on REST bodies, timed from the end of its parsing.
pub(super) struct Snapshot {
    rig: Rig,
    bodies: Vec<(String, [(i64, i64); 2])>,
    next: usize,
    samples: Samples,
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
    /// The engine refuses the instrument.
    pub(super) fn new() -> anyhow::Result<Self> {
        let mut random = Random::new(444);
        let bodies = (0..BODIES).map(|_| body(&mut random)).collect();
        Ok(Self { rig: Rig::new(NOW)?, bodies, next: 0, samples: Samples::new() })
    }

    fn label() -> Label {
        label(
            "state_ob_snap_ns",
            "REST snapshot of 1,000 levels a side applied to an empty book and published, parsing not included",
            4_440.0,
            &[(Statistic::P99, 17_420.0)],
        )
    }

    /// Nanoseconds of the next snapshot.
    fn one(&mut self, calibration: &Calibration) -> anyhow::Result<f64> {
        let (body, best) = &self.bodies[self.next % BODIES];
        self.next += 1;
        self.rig.await_snapshot(NOW)?;
        let mut probe = AfterParse { clock: calibration.clock, parsed: Stamp::default() };
        let applied = self.rig.engine.handle_snapshot(NOW, self.rig.id, body.as_bytes(), &mut probe);
        let end = calibration.clock.end();
        applied.map_err(|fault| anyhow::anyhow!("a snapshot was dropped: {fault:?}"))?;
        let top = self.rig.engine.board().top_of_book(self.rig.id).context("no book")?;
        ensure!([pair(top.bid), pair(top.ask)] == best.map(Some), "the published best levels are {top:?}");
        Ok(calibration.scale.ns_f64(end.since(probe.parsed) as f64))
    }
}

/// A body with random gaps and quantities, and its best levels in steps.
fn body(random: &mut Random) -> (String, [(i64, i64); 2]) {
    let mut side = |first: i64, way: i64| {
        let mut px = first;
        let levels: Vec<(i64, i64)> = (0..LEVELS)
            .map(|_| {
                px += way * (1 + random.below(3) as i64);
                (px, 1 + random.below(100_000) as i64)
            })
            .collect();
        let text: Vec<String> = levels
            .iter()
            .map(|(px, qty)| format!("[\"{}.{}\",\"{}.{:03}\"]", px / 10, px % 10, qty / 1_000, qty % 1_000))
            .collect();
        (text.join(","), levels[0])
    };
    let (bids, bid) = side(618_000, -1);
    let (asks, ask) = side(618_000, 1);
    let body =
        format!("{{\"lastUpdateId\":77,\"E\":1700000000000,\"T\":1700000000000,\"bids\":[{bids}],\"asks\":[{asks}]}}");
    (body, [bid, ask])
}

impl Bench for Snapshot {
    fn name(&self) -> &'static str {
        "state_ob_snap_ns"
    }

    fn verify(&mut self) -> anyhow::Result<()> {
        for _ in 0..BODIES {
            self.one(crate::clock::calibration())?;
            ensure!(self.rig.engine.levels_len(self.rig.id) == Some((LEVELS, LEVELS)), "levels are missing");
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
        Ok(())
    }

    fn finish(&self, bootstrap: &Bootstrap) -> Vec<Finished> {
        let Label { name, what, published, .. } = Self::label();
        let row = Row::of(RowText { name, engine: ENGINE, what, unit: Unit::Ns }, &self.samples, 1, bootstrap);
        let finished = row.map(|row| Finished { row: Row { published, ..row }, samples: self.samples.clone() });
        finished.into_iter().collect()
    }
}
