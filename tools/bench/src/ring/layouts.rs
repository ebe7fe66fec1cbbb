//! Layouts of the ring: the shipped one and slower ones.

use crate::loops::{Layout, LayoutPlan, LayoutRun, run_layout};
use crate::report::Bootstrap;
use crate::report::ring::LayoutFigures;
use anyhow::{Context as _, ensure};
use tt_meter::Calibration;
use tt_model::SplitMix64;

use super::latencies::{PLACEMENTS, mean};
use super::rounds::Sizes;

/// Slots, events before the recorded ones, recorded events one at a time, and events as fast as they go, of each run.
const SLOTS: usize = 1_024;
const WARMUP: usize = 1_000;
const EVENTS: usize = 5_000;
const STREAM: u64 = 100_000;

/// A run of each layout in every round, in random order.
///
/// # Errors
/// The threads cannot be placed, or an event was lost.
pub(super) fn run(
    sizes: &Sizes,
    calibration: &Calibration,
    bootstrap: &Bootstrap,
    progress: &dyn Fn(usize, usize),
) -> anyhow::Result<Vec<LayoutFigures>> {
    let cpus = sizes.threads.cpus.context("two CPUs are needed")?;
    let plan = LayoutPlan { cpus, capacity: SLOTS, warmup: WARMUP, events: EVENTS, stream_events: STREAM };
    let mut random = SplitMix64::new(sizes.rounds as u64);
    let mut order = Layout::ALL;
    let mut runs: Vec<(Layout, LayoutRun)> = Vec::new();
    for round in 0..sizes.rounds {
        progress(round + 1, sizes.rounds);
        random.shuffle(&mut order);
        for layout in order {
            let run = run_layout(layout, &plan, calibration.clock, calibration.scale);
            let run = run.context("cannot run on two cores")?;
            ensure!(run.faults == 0, "void: {} events of {layout:?} were lost or torn", run.faults);
            runs.push((layout, run));
        }
    }
    let scale = calibration.scale;
    let of = |layout: Layout, placement| {
        let runs: Vec<&LayoutRun> =
            runs.iter().filter(|(of, run)| *of == layout && run.placement == placement).map(|(_, run)| run).collect();
        let estimate = |of: &dyn Fn(&LayoutRun) -> Option<f64>| {
            mean(&runs.iter().filter_map(|run| of(run)).collect::<Vec<_>>(), bootstrap)
        };
        Some(LayoutFigures {
            name: layout.name(),
            what: layout.description(),
            event_bytes: layout.event_bytes(),
            class: placement.name().to_owned(),
            runs: runs.len(),
            p50_ns: estimate(&|run| Some(scale.ns_f64(crate::machine::middle(&mut run.cycles.clone())?)))?,
            p50_per_ping_pong: estimate(&LayoutRun::p50_per_ping_pong)?,
            stream_million_per_s: estimate(&|run| Some(1e3 / scale.ns_f64(run.stream_cycles)))?,
        })
    };
    Ok(PLACEMENTS.iter().flat_map(|placement| Layout::ALL.map(|layout| of(layout, *placement))).flatten().collect())
}
