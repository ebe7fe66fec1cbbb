//! What a cache line's way costs: an event through two layouts of a ring, and two counters on one line.

use anyhow::{Context as _, ensure};
use tt_floor::{Layout as RingLayout, LayoutPlan, LayoutRun, SharingRun, Spacing, run_layout, run_sharing};
use tt_meter::Calibration;
use tt_report::{Bootstrap, Layout, Sharing, Way};

use super::super::figures::{PLACEMENTS, Sketch};
use super::super::operation::{Bench, Finished};
use super::super::plan::Plan;
use super::super::runner;

const SLOTS: usize = 1_024;
const WARMUP: usize = 500;
/// Events of a run and layout.
const EVENTS: usize = 5_000;
/// Events as fast as they go; their time is in no figure.
const STREAM: u64 = 1_000;
/// Increments of a run and spacing.
const INCREMENTS: u64 = 20_000;

/// For the figures only: no row.
pub(super) struct Lines {
    cpus: [usize; 2],
    layouts: Vec<(RingLayout, LayoutRun)>,
    sharing: Vec<(Spacing, SharingRun)>,
}

impl Lines {
    /// Nothing measured yet, between `cpus`.
    pub(super) const fn new(cpus: [usize; 2]) -> Self {
        Self { cpus, layouts: Vec::new(), sharing: Vec::new() }
    }

    /// Between the first and the last CPU that this process may use.
    ///
    /// # Errors
    /// There are no two CPUs.
    pub(super) fn widest() -> anyhow::Result<Self> {
        match runner::cpus().as_slice() {
            [first, .., last] => Ok(Self::new([*first, *last])),
            _ => anyhow::bail!("two CPUs are needed"),
        }
    }

    /// One run of each layout and each spacing.
    ///
    /// # Errors
    /// The threads cannot be placed, or something was lost.
    pub(super) fn round(&mut self, calibration: &Calibration) -> anyhow::Result<()> {
        self.run(calibration, EVENTS, INCREMENTS)
    }

    fn run(&mut self, calibration: &Calibration, events: usize, increments: u64) -> anyhow::Result<()> {
        let cpus = self.cpus;
        let (clock, scale) = (calibration.clock, calibration.scale);
        let mut layouts = [RingLayout::SequenceInSlot, RingLayout::IndexPairCached];
        let mut spacings = [Spacing::OneLine, Spacing::OwnLines];
        // A, B, then B, A: what drifts meets both alike.
        if self.layouts.len() % 4 == 2 {
            layouts.reverse();
            spacings.reverse();
        }
        let plan = LayoutPlan { cpus, capacity: SLOTS, warmup: WARMUP, events, stream_events: STREAM };
        for layout in layouts {
            let run = run_layout(layout, &plan, clock, scale).context("cannot run on two cores")?;
            ensure!(run.faults == 0, "void: {} events of {layout:?} came out of order or torn", run.faults);
            self.layouts.push((layout, run));
        }
        for spacing in spacings {
            let run = run_sharing(cpus, spacing, increments, clock, scale).context("cannot run on two cores")?;
            ensure!(run.faults == 0, "void: {} increments of {spacing:?} are lost", run.faults);
            self.sharing.push((spacing, run));
        }
        Ok(())
    }

    fn ways(&self, sketch: &mut Sketch<'_>) {
        for placement in PLACEMENTS {
            let mut ways = Vec::new();
            let mut ping_pongs = Vec::new();
            for (wanted, layout, what) in LAYOUTS {
                let runs = self.layouts.iter().filter(|(of, run)| *of == wanted && run.placement == placement);
                let runs: Vec<&LayoutRun> = runs.map(|(_, run)| run).collect();
                let medians: Vec<f64> = runs.iter().filter_map(|run| median(&run.cycles)).collect();
                ping_pongs.extend(runs.iter().map(|run| f64::midpoint(run.ping_pong_before, run.ping_pong_after)));
                ways.extend(sketch.ns_of_runs(&medians).map(|p50| Way { layout, p50, what: what.to_owned() }));
            }
            if !ways.is_empty() {
                sketch.class(placement, &ping_pongs).ways = ways;
            }
        }
    }

    fn sharings(&self, sketch: &mut Sketch<'_>) {
        for placement in PLACEMENTS {
            let of = |wanted| {
                let runs = self.sharing.iter().filter(move |(of, run)| *of == wanted && run.placement == placement);
                runs.map(|(_, run)| run.cycles_per_increment).collect::<Vec<_>>()
            };
            let [one_line, own_lines] =
                [Spacing::OneLine, Spacing::OwnLines].map(|wanted| sketch.ns_of_runs(&of(wanted)));
            let runs = self.sharing.iter().filter(|(_, run)| run.placement == placement);
            let ping_pongs: Vec<f64> =
                runs.map(|(_, run)| f64::midpoint(run.ping_pong_before, run.ping_pong_after)).collect();
            if let (Some(one_line), Some(own_lines)) = (one_line, own_lines) {
                sketch.class(placement, &ping_pongs).sharing = Some(Sharing {
                    one_line,
                    own_lines,
                    apart_bytes: Spacing::APART_BYTES as u32,
                    what: "one atomic addition (relaxed) while the other thread does the same without a pause"
                        .to_owned(),
                });
            }
        }
    }
}

const LAYOUTS: [(RingLayout, Layout, &str); 2] = [
    (
        RingLayout::SequenceInSlot,
        Layout::SequenceInSlot,
        "the shipped ring, an event of 56 bytes: from the stamp before push to the stamp after the whole event was read",
    ),
    (
        RingLayout::IndexPairCached,
        Layout::IndexPair,
        "an event of 64 bytes through a ring of two indices on lines of their own, each side keeping the other's; the same stamps",
    ),
];

fn median(cycles: &[u64]) -> Option<f64> {
    let mut sorted = cycles.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).map(|cycles| *cycles as f64)
}

impl Bench for Lines {
    fn name(&self) -> &'static str {
        "cache_lines"
    }

    fn verify(&mut self) -> anyhow::Result<()> {
        self.run(crate::clock::calibration(), 100, 1_000)?;
        *self = Self::new(self.cpus);
        Ok(())
    }

    fn warm_up(&mut self, calibration: &Calibration, _plan: &Plan) -> anyhow::Result<()> {
        self.round(calibration)?;
        *self = Self::new(self.cpus);
        Ok(())
    }

    fn block(&mut self, calibration: &Calibration, _plan: &Plan) -> anyhow::Result<()> {
        self.round(calibration)
    }

    fn finish(&self, _bootstrap: &Bootstrap) -> Vec<Finished> {
        Vec::new()
    }

    fn portray(&self, sketch: &mut Sketch<'_>) {
        self.ways(sketch);
        self.sharings(sketch);
    }
}
