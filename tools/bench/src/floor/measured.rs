//! Everything but jitter: all rows in turn, block by block, so that what disturbs the machine disturbs all of them alike.

use crate::machine::{Chase, ChasePlan, ClockSource, Lines, Measurement, Pair, Placement, Transfer};
use crate::report::floor::{ClockRow, CostRow, LatencyRow, TransferClass, TransferRow};
use crate::report::{Bootstrap, Samples};
use anyhow::Context as _;
use tt_meter::Calibration;
use tt_model::sort_short_by;
use tt_os::caches::Caches;
use tt_os::machine::Machine;
use tt_os::pages::{self, PageSize};

use super::Plan;
use crate::harness::progress::progress;

/// Probes in a row that are drawn together for an interval: neighbours are alike.
const PROBES: usize = 16;
/// Chunks of each point of the curve.
const POINT_CHUNKS: usize = 9;
/// Figures that V100 published for its machine, nanoseconds.
const V100: [(&str, f64); 4] = [("l1_hit", 1.0), ("dram", 40.0), ("mutex_free", 25.0), ("system_call", 150.0)];

/// The measured rows.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) clocks: Vec<ClockRow>,
    pub(super) transfers: Vec<TransferRow>,
    pub(super) costs: Vec<CostRow>,
    pub(super) latencies: Vec<LatencyRow>,
    /// Rows that could not be measured, with the reason.
    pub(super) failed: Vec<String>,
}

/// Measures all of it on the last of `cores` and its pairs.
///
/// # Errors
/// There is no memory, or no pinning.
pub(super) fn measure(
    calibration: &Calibration,
    cores: &[usize],
    plan: &Plan,
    bootstrap: &Bootstrap,
) -> anyhow::Result<Measured> {
    let mut failed = Vec::new();
    let mut clocks = crate::machine::clock_sources(calibration);
    let steps: Vec<Option<f64>> = clocks.iter().map(ClockSource::step_ns).collect();
    let begin: Vec<Pair> = clocks.iter().map(ClockSource::pair).collect();
    let transfers = transfers(calibration, cores, plan, bootstrap)?;

    progress("laying out memory");
    let chases = chase_plan(&mut failed);
    let here = cores.last().copied().unwrap_or(0);
    let mut rows = crate::machine::memory(calibration, &chases).context("no memory for the walks")?;
    rows.extend(crate::machine::kernel(calibration, [here, cores.first().copied().unwrap_or(here)], chases.huge));
    let mut series: Vec<&mut Measurement<'_>> = rows.iter_mut().collect();
    series.extend(clocks.iter_mut().map(|clock| &mut clock.cost));
    let samples = blocks(&mut series, plan, &mut failed);
    let (of_rows, of_clocks) = samples.split_at(rows.len());
    let costs = rows.iter().zip(of_rows).filter_map(|(row, samples)| cost(row, samples, bootstrap)).collect();
    drop(rows);
    let latencies = if plan.quick { Vec::new() } else { curve(calibration, &chases)? };
    let clock = |index: usize| {
        let source = &clocks[index];
        Some(ClockRow {
            name: source.cost.name.to_owned(),
            what: source.cost.what.clone(),
            read_ns: bootstrap.quantile(&of_clocks[index], 0.5)?,
            step_ns: steps[index],
            drift_ppm: source.is_wall_time.then(|| source.pair().drift_ppm(&begin[index])),
        })
    };
    Ok(Measured { clocks: (0..clocks.len()).filter_map(clock).collect(), transfers, costs, latencies, failed })
}

/// A block of each in turn, as often as the plan says. What fails once is left out from then on, and named.
fn blocks(series: &mut [&mut Measurement<'_>], plan: &Plan, failed: &mut Vec<String>) -> Vec<Samples> {
    let mut samples = vec![Some(Samples::new()); series.len()];
    for block in 0..plan.blocks {
        progress(&format!("block {}/{}", block + 1, plan.blocks));
        for (measurement, samples) in series.iter_mut().zip(&mut samples) {
            let Some(kept) = samples else { continue };
            match measurement.block() {
                Ok(block) => kept.push_block(block),
                Err(errno) => {
                    failed.push(format!("{}: {errno}", measurement.name));
                    *samples = None;
                }
            }
        }
    }
    samples.into_iter().map(Option::unwrap_or_default).collect()
}

fn cost(row: &Measurement<'_>, samples: &Samples, bootstrap: &Bootstrap) -> Option<CostRow> {
    Some(CostRow {
        name: row.name.to_owned(),
        what: row.what.clone(),
        batch: row.batch,
        chunks: samples.len(),
        blocks: samples.blocks().len(),
        ns: bootstrap.quantile(samples, 0.5)?,
        mean_ns: bootstrap.mean(samples)?,
        v100_ns: V100.iter().find(|(name, _)| *name == row.name).map(|(_, ns)| *ns),
    })
}

/// Each pair of cores for its share of the time, and for one probe at least.
fn transfers(
    calibration: &Calibration,
    cores: &[usize],
    plan: &Plan,
    bootstrap: &Bootstrap,
) -> anyhow::Result<Vec<TransferRow>> {
    let pairs: Vec<[usize; 2]> = cores
        .iter()
        .enumerate()
        .flat_map(|(index, first)| cores[index + 1..].iter().map(|second| [*first, *second]))
        .collect();
    let span_ns = plan.transfers_ns / (pairs.len() as u64).max(1);
    let mut rows = Vec::new();
    for (index, cpus) in pairs.iter().enumerate() {
        progress(&format!("line between cores {} and {}, {}/{}", cpus[0], cpus[1], index + 1, pairs.len()));
        let transfer = crate::machine::watch_transfer(*cpus, span_ns, calibration)
            .with_context(|| format!("cannot measure between CPUs {} and {}", cpus[0], cpus[1]))?;
        rows.extend(transfer_row(&transfer, bootstrap));
    }
    Ok(rows)
}

fn transfer_row(transfer: &Transfer, bootstrap: &Bootstrap) -> Option<TransferRow> {
    let mut samples = Samples::new();
    for probes in transfer.probes.chunks(PROBES) {
        samples.push_block(probes.iter().map(|probe| probe.ns).collect());
    }
    let all = [Placement::Siblings, Placement::SameCache, Placement::AcrossCaches];
    let class = |placement: &Placement| {
        let probes = transfer.probes.iter().map(|probe| probe.ns).filter(|ns| Placement::of(*ns, *ns) == *placement);
        let mut ns: Vec<f64> = probes.collect();
        ns.sort_unstable_by(f64::total_cmp);
        let share = ns.len() as f64 / transfer.probes.len() as f64;
        Some(TransferClass { placement: placement.name().to_owned(), share, ns: *ns.get(ns.len() / 2)? })
    };
    let mut classes: Vec<TransferClass> = all.iter().filter_map(class).collect();
    sort_short_by(&mut classes, |a, b| b.share.total_cmp(&a.share));
    Some(TransferRow {
        cpus: transfer.cpus,
        ns: bootstrap.quantile(&samples, 0.5)?,
        probes: transfer.probes.len(),
        seconds: transfer.span_ns() as f64 / 1e9,
        placement: classes.first()?.placement.clone(),
        changes: transfer.changes(),
        classes,
    })
}

/// Chooses the sizes of the walks from the sizes of the caches and the memory.
fn chase_plan(failed: &mut Vec<String>) -> ChasePlan {
    let caches = Caches::read().unwrap_or_else(|| {
        failed.push("cache sizes: the kernel does not report them; assumed 32 KiB, 1 MiB and 32 MiB".to_owned());
        Caches { l1: 32 << 10, l2: 1 << 20, l3: Some(32 << 20) }
    });
    let memory =
        Machine::read().memory_kib.map_or(usize::MAX, |kib| usize::try_from(kib << 10).unwrap_or(usize::MAX) / 16);
    let huge = pages::huge_are_given();
    if !huge {
        failed
            .push("huge pages: the kernel gives none (MADV_HUGEPAGE), so that far loads miss the TLB, too".to_owned());
    }
    if caches.l3.is_none() {
        failed.push("a third level of caches: there is none".to_owned());
    }
    ChasePlan::new(caches, memory, huge)
}

fn curve(calibration: &Calibration, chases: &ChasePlan) -> anyhow::Result<Vec<LatencyRow>> {
    let sizes = chases.sizes();
    let point = |bytes: usize, size: PageSize| -> anyhow::Result<f64> {
        let mut chase = Chase::new(bytes, size, Lines::All).context("no memory for the curve")?;
        let mut means = chase.block(calibration, POINT_CHUNKS);
        means.sort_unstable_by(f64::total_cmp);
        Ok(means[means.len() / 2])
    };
    let mut rows = Vec::new();
    for (index, bytes) in sizes.iter().enumerate() {
        progress(&format!("latency within {} KiB, {}/{}", bytes >> 10, index + 1, sizes.len()));
        let small_pages_ns = point(*bytes, PageSize::Small)?;
        let huge_pages_ns = if chases.huge { Some(point(*bytes, PageSize::Huge)?) } else { None };
        rows.push(LatencyRow { bytes: *bytes, small_pages_ns, huge_pages_ns });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use crate::machine::{Probe, Transfer};
    use crate::report::Bootstrap;

    use super::transfer_row;

    #[test]
    fn a_pair_has_its_most_frequent_placement() {
        let probes = [47.0, 48.0, 31.0, 47.5].map(|ns| Probe { at_ns: 1_000_000_000, ns }).to_vec();
        let row = transfer_row(&Transfer { cpus: [0, 1], probes }, &Bootstrap { resamples: 100, seed: 1 }).unwrap();
        assert_eq!((row.placement.as_str(), row.changes, row.classes.len()), ("same_cache", 2, 2));
        assert_eq!((row.classes[0].share, row.classes[1].ns), (0.75, 31.0));
    }
}
