//! A whole run: prepare, warm up, time all rows in turn block by block, report, keep.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use tt_meter::Calibration;
use tt_model::SplitMix64;
use tt_os::{clock, stdout};

use crate::count::{self, TraceeArguments};
use crate::harness::cpus;
use crate::harness::entry::Entry;
use crate::harness::environment::{self, Before};
use crate::harness::exclusive::{Exclusive, WhenBusy};
use crate::harness::figures;
use crate::harness::operation::{Bench, Chunked, Finished, Label, Nothing};
use crate::harness::plan::Plan;
use crate::harness::progress::progress;
use crate::harness::results::{Destination, write, write_document};
use crate::report::{Bootstrap, Build, Document, Report, Row, Samples, Unit};
use crate::rows::gate;
use crate::rows::market;
use crate::rows::market::streams::{self, Programs, Streams};
use crate::rows::registry::{self, Selection};

/// What `truetick bench` runs, and where the result goes.
#[derive(Clone, Debug)]
pub struct Options {
    /// Engines.
    pub selection: Selection,
    /// Only rows whose name contains this text.
    pub row: Option<String>,
    /// Fewer samples.
    pub quick: bool,
    /// Print `summary.json` instead of the table.
    pub json: bool,
    /// Files of the result.
    pub destination: Destination,
    /// The build that is measured.
    pub build: Build,
    /// Action on a busy machine.
    pub when_busy: WhenBusy,
    /// Arguments that make this program trace a row, to count its instructions.
    pub tracee: TraceeArguments,
    /// What the rows of the streams start.
    pub programs: Programs,
}

/// Measures the selected rows, prints the result, and writes its files.
///
/// # Errors
/// `BusyError` on a busy machine; no row matches, another bench is running, an answer differs from the reference, a loop was compiled away, the clock
/// drifts, or a file cannot be written.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let row = options.row.as_deref();
    let has_streams = streams::is_selected(options.selection, row);
    let entries = &registry::select(options.selection, row).or_else(|error| has_streams.then(Vec::new).ok_or(error))?;
    let plan = &plan(options.selection, options.quick);
    let exclusive = Exclusive::take(options.when_busy)?;
    let calibration = clock::calibration();
    let cores = cpus::available().len();
    progress("starting");
    let streams = has_streams.then(|| Streams::new(&options.programs)).transpose()?;
    let pinned_to = cpus::pin_to_last();
    let mut benches = prepare(entries)?;
    if let Some(mut streams) = streams {
        streams.verify().context("streams")?;
        benches.push(Box::new(streams));
    }
    let mut empty =
        Chunked::new(Label { name: "empty loop", engine: "", what: "", published: Vec::new(), rate: None }, Nothing);
    empty.verify()?;

    let before = Before::read(calibration);
    empty.warm_up(calibration, plan)?;
    let benches_len = benches.len();
    for (index, bench) in benches.iter_mut().enumerate() {
        progress(&format!("warming up {}/{}: {}", index + 1, benches_len, bench.name()));
        bench.warm_up(calibration, plan)?;
    }
    measure(&mut benches, &mut empty, calibration, plan, pinned_to)?;
    let mut environment = environment::record(calibration, &before, pinned_to, plan.seed);
    environment.build = options.build.clone();
    environment.machine.cores = cores;
    exclusive.record(&mut environment);

    progress("making intervals");
    let bootstrap = Bootstrap { resamples: plan.resamples, seed: plan.seed };
    // The quietest block: a disturbed empty loop must not make a short operation look compiled away.
    let empty_ns = empty.finish(&bootstrap).first().map_or(0.0, |empty| quietest(&empty.samples));
    environment.timing.empty_loop_ns = empty_ns;
    let (mut finished, mut loops) = (Vec::new(), Vec::new());
    for bench in &benches {
        let rows = bench.finish(&bootstrap);
        let of_row = |per_turn| rows.iter().map(move |finished| (finished.row.name.clone(), per_turn));
        loops.extend(bench.per_turn().into_iter().flat_map(of_row));
        finished.extend(rows);
    }
    count_instructions(entries, options.tracee, &mut finished);
    let measured: Vec<Row> = finished.iter().map(|finished| finished.row.clone()).collect();
    for Finished { row, .. } in &mut finished {
        let aims = [market::aims(&row.name), gate::aims(&row.name), gate::relative_aims(&row.name, &measured)];
        row.aims.extend(aims.concat());
    }
    let rows = finished.iter().map(|finished| finished.row.clone()).collect();
    let figures = figures::of(&benches, &bootstrap, calibration, environment.timing.step_ns);
    let report = Report { title: options.selection.name().to_owned(), quick: plan.quick, bootstrap, environment, rows };
    progress("");

    let folder = options.destination.folder(&report.environment.date);
    write_results(&folder, &report, &finished)?;
    if let Some(path) = &options.destination.csv {
        write(path, &|file| write_samples(&finished, file))?;
    }
    write_document(&folder, &Document::of(&report, &figures))?;
    show(&report, options.json, &folder)?;
    check(&report, &loops)
}

/// Returns the sizes of a run. The market's rows are many, so each has shorter blocks.
const fn plan(selection: Selection, quick: bool) -> Plan {
    let plan = Plan::new(quick);
    match (selection, quick) {
        (Selection::Market | Selection::Gate, false) => Plan { block_ns: 20_000_000, warmup_ns: 300_000_000, ..plan },
        (Selection::All | Selection::Turn | Selection::Ring | Selection::Gate | Selection::Market, _) => plan,
    }
}

/// The least mean of a block.
fn quietest(samples: &Samples) -> f64 {
    samples.blocks().iter().map(|block| block.iter().sum::<f64>() / block.len() as f64).fold(f64::INFINITY, f64::min)
}

fn prepare(entries: &[Entry]) -> anyhow::Result<Vec<Box<dyn Bench>>> {
    let mut benches = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        progress(&format!("checking answers {}/{}: {}", index + 1, entries.len(), entry.name));
        let mut bench = (entry.make)().with_context(|| entry.name)?;
        bench.verify().with_context(|| entry.name)?;
        benches.push(bench);
    }
    Ok(benches)
}

/// One block of every row in random order, as often as the plan says: a quiet or a loud second of the machine is
/// shared by all rows.
fn measure(
    benches: &mut [Box<dyn Bench>],
    empty: &mut Chunked,
    calibration: &Calibration,
    plan: &Plan,
    pinned_to: Option<usize>,
) -> anyhow::Result<()> {
    let mut random = SplitMix64::new(plan.seed);
    let mut order: Vec<usize> = (0..benches.len()).collect();
    for block in 0..plan.blocks {
        progress(&format!("block {}/{}", block + 1, plan.blocks));
        random.shuffle(&mut order);
        empty.block(calibration, plan)?;
        for index in &order {
            benches[*index].block(calibration, plan)?;
            if let (Some(pinned), Ok(current)) = (pinned_to, tt_os::cpu::current()) {
                ensure!(pinned == current, "void: {} was moved from CPU {pinned} to {current}", benches[*index].name());
            }
        }
    }
    Ok(())
}

/// Counts after all timing, so that it disturbs none. Where tracing is forbidden the column stays empty.
fn count_instructions(entries: &[Entry], tracee: TraceeArguments, finished: &mut [Finished]) {
    for entry in entries.iter().filter(|entry| entry.counted) {
        progress(&format!("counting instructions: {}", entry.name));
        let Ok(instructions) = count::count(entry.name, tracee) else { continue };
        for Finished { row, .. } in finished.iter_mut().filter(|finished| finished.row.name == entry.name) {
            row.instructions = Some(instructions);
        }
    }
}

/// The samples of rows whose operations were timed one by one.
fn write_samples(finished: &[Finished], to: &mut impl Write) -> io::Result<()> {
    writeln!(to, "row,iteration,ns,block")?;
    let is_timed = |row: &Row| row.batch == 1 && row.quantiles.is_some() && row.unit == Unit::Ns;
    for Finished { row, samples } in finished.iter().filter(|finished| is_timed(&finished.row)) {
        let values = samples.blocks().iter().enumerate().flat_map(|(block, all)| all.iter().map(move |ns| (block, ns)));
        for (iteration, (block, ns)) in values.enumerate() {
            writeln!(to, "{},{iteration},{ns:.1},{block}", row.name)?;
        }
    }
    Ok(())
}

/// Raw samples, `summary.json` and `result.csv`.
fn write_results(folder: &Path, report: &Report, finished: &[Finished]) -> anyhow::Result<()> {
    for Finished { row, samples } in finished {
        write(&folder.join(format!("{}.csv", row.name)), &|file| samples.write_csv(file, row.unit.name()))?;
    }
    write(&folder.join("summary.json"), &|file| report.write_json(file))?;
    write(&folder.join("result.csv"), &|file| report.write_csv(file))
}

fn show(report: &Report, json: bool, folder: &Path) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = if json { report.write_json(&mut stdout) } else { report.write_table(&mut stdout) };
    stdout::ignore_broken_pipe(written.context("cannot print"))?;
    eprintln!("samples, summary.json, result.csv and report.html: {}", folder.display());
    Ok(())
}

/// A run that proves nothing must not end like one that does. `loops` are the names of the rows that time whole loops, with
/// the operations of one turn.
fn check(report: &Report, loops: &[(String, u32)]) -> anyhow::Result<()> {
    let empty_ns = report.environment.timing.empty_loop_ns;
    if let Some(row) = compiled_away(&report.rows, loops, empty_ns) {
        bail!("{} takes {:.2} ns, an empty loop {empty_ns:.2} ns: it was compiled away", row.name, row.mean);
    }
    let drift = report.environment.timing.drift_ppm;
    ensure!(drift.abs() <= 50.0, "void: the clock drifted by {drift:.0} ppm against CLOCK_MONOTONIC_RAW");
    Ok(())
}

/// The first row of a loop whose turn is hardly longer than that of an empty one.
fn compiled_away<'a>(rows: &'a [Row], loops: &[(String, u32)], empty_ns: f64) -> Option<&'a Row> {
    let turn_ns = |row: &Row| {
        let (_, per_turn) = loops.iter().find(|(name, _)| *name == row.name)?;
        (row.unit == Unit::Ns).then_some(row.mean * f64::from(*per_turn))
    };
    rows.iter().find(|row| turn_ns(row).is_some_and(|ns| ns < 10.0 * empty_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::RowText;

    #[test]
    fn a_loop_may_not_take_no_time_but_a_part_of_a_pass_may() {
        let row = |name| {
            let mut samples = Samples::new();
            samples.push_block(vec![2.98; 20]);
            let text = RowText { name, engine: "turn", what: "", unit: Unit::Ns };
            Row::of(text, &samples, 64, &Bootstrap { resamples: 10, seed: 1 }).unwrap()
        };
        let rows = [row("stage_rest"), row("parse")];
        let found = |per_turn, empty_ns| {
            let loops = [("parse".to_owned(), per_turn)];
            compiled_away(&rows, &loops, empty_ns).map(|row| row.name.as_str())
        };
        assert_eq!((found(1, 0.35), found(1, 0.29)), (Some("parse"), None));
        // A turn of 64 operations is as long as all of them.
        assert_eq!((found(64, 20.0), found(64, 19.0)), (Some("parse"), None));
    }
}
