//! Cost of a cache-line transfer: an event through two ring layouts, and two counters on one line.

use crate::loops::{Idle, LayoutPlan, RingPlan, read_whole, run_layout, run_ring};
use crate::machine::{Placement, SharingRun, Spacing, middle, run_sharing};
use crate::report::{Bootstrap, Layout, Sharing, Way};
use anyhow::{Context as _, ensure};
use tt_meter::Calibration;
use tt_model::{OrderIntent, OrderTerms};

use super::evaluator::orders;
use crate::harness::cpus;
use crate::harness::figures::{PLACEMENTS, Sketch};
use crate::harness::operation::{Bench, Finished};
use crate::harness::plan::Plan;

const SLOTS: usize = 1_024;
const WARMUP: usize = 500;
/// Events of a run and layout.
const EVENTS: usize = 5_000;
/// Events as fast as they go; their time is in no figure.
const STREAM: u64 = 1_000;
/// Increments of a run and spacing.
const INCREMENTS: u64 = 20_000;

/// For the figures only: no row.
pub(crate) struct Lines {
    cpus: [usize; 2],
    orders: Vec<OrderTerms>,
    ways: Vec<(Layout, OneWay)>,
    sharing: Vec<(Spacing, SharingRun)>,
}

impl Lines {
    /// Nothing measured yet, between `cpus`.
    pub(crate) fn new(cpus: [usize; 2]) -> Self {
        Self { cpus, orders: orders(7, EVENTS), ways: Vec::new(), sharing: Vec::new() }
    }

    /// Between the first and the last CPU that this process may use.
    ///
    /// # Errors
    /// There are no two CPUs.
    pub(crate) fn widest() -> anyhow::Result<Self> {
        match cpus::available().as_slice() {
            [first, .., last] => Ok(Self::new([*first, *last])),
            _ => anyhow::bail!("two CPUs are needed"),
        }
    }

    /// One run of each layout and each spacing.
    ///
    /// # Errors
    /// The threads cannot be placed, or something was lost.
    pub(crate) fn round(&mut self, calibration: &Calibration) -> anyhow::Result<()> {
        self.run(calibration, EVENTS, INCREMENTS)
    }

    fn run(&mut self, calibration: &Calibration, events: usize, increments: u64) -> anyhow::Result<()> {
        let cpus = self.cpus;
        let (clock, scale) = (calibration.clock, calibration.scale);
        let mut layouts = [Layout::SequenceInSlot, Layout::SequenceInSlotResting, Layout::IndexPair];
        let mut spacings = [Spacing::OneLine, Spacing::OwnLines];
        // A, B, then B, A: what drifts meets both alike.
        if self.sharing.len() % 4 == 2 {
            layouts.reverse();
            spacings.reverse();
        }
        for layout in layouts {
            let way = self.way(layout, calibration, events)?;
            self.ways.push((layout, way));
        }
        for spacing in spacings {
            let run = run_sharing(cpus, spacing, increments, clock, scale).context("cannot run on two cores")?;
            ensure!(run.faults == 0, "void: {} increments of {spacing:?} are lost", run.faults);
            self.sharing.push((spacing, run));
        }
        Ok(())
    }

    fn way(&self, layout: Layout, calibration: &Calibration, events: usize) -> anyhow::Result<OneWay> {
        let (clock, scale, cpus) = (calibration.clock, calibration.scale, self.cpus);
        let other = match layout {
            Layout::SequenceInSlot => {
                let plan = RingPlan { cpus, capacity: SLOTS, warmup: WARMUP, events, idle: Idle::HoldsNext };
                let read = |intent: &OrderIntent| read_whole(intent) & 1;
                let run = run_ring(&plan, &self.orders, clock, scale, read).context("cannot run on two cores")?;
                ensure!(run.faults == 0, "void: {} events came out of order or torn", run.faults);
                return Ok(OneWay::of([run.ping_pong_before, run.ping_pong_after], run.placement, run.cycles));
            }
            Layout::SequenceInSlotResting => crate::loops::Layout::SequenceInSlot,
            Layout::IndexPair => crate::loops::Layout::IndexPairCached,
        };
        let plan = LayoutPlan { cpus, capacity: SLOTS, warmup: WARMUP, events, stream_events: STREAM };
        let run = run_layout(other, &plan, clock, scale).context("cannot run on two cores")?;
        ensure!(run.faults == 0, "void: {} events of {layout:?} came out of order or torn", run.faults);
        Ok(OneWay::of([run.ping_pong_before, run.ping_pong_after], run.placement, run.cycles))
    }

    fn ways(&self, sketch: &mut Sketch<'_>) {
        for placement in PLACEMENTS {
            let mut ways = Vec::new();
            let mut ping_pongs = Vec::new();
            for (layout, what) in LAYOUTS {
                let runs = self.ways.iter().filter(|(of, way)| *of == layout && way.placement == placement);
                let runs: Vec<&OneWay> = runs.map(|(_, way)| way).collect();
                let medians: Vec<f64> = runs.iter().map(|way| way.p50).collect();
                ping_pongs.extend(runs.iter().map(|way| way.ping_pong));
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

/// An event's way in one run, in cycles.
struct OneWay {
    placement: Placement,
    ping_pong: f64,
    p50: f64,
}

impl OneWay {
    fn of([before, after]: [f64; 2], placement: Placement, mut cycles: Vec<u64>) -> Self {
        Self { placement, ping_pong: f64::midpoint(before, after), p50: middle(&mut cycles).unwrap_or_default() }
    }
}

const LAYOUTS: [(Layout, &str); 3] = [
    (
        Layout::SequenceInSlot,
        "the shipped ring, an event of 56 bytes, the idle producer keeps the next slot's line: from the stamp before push \
         to the stamp after the whole event was read",
    ),
    (Layout::SequenceInSlotResting, "the same ring, the idle producer does nothing"),
    (
        Layout::IndexPair,
        "an event of 64 bytes through a ring of two indices on lines of their own, each side keeping the other's; the same \
         stamps",
    ),
];

impl Bench for Lines {
    fn name(&self) -> &'static str {
        "cache_lines"
    }

    fn verify(&mut self) -> anyhow::Result<()> {
        self.run(tt_os::clock::calibration(), 100, 1_000)?;
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
