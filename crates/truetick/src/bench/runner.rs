//! A whole run: prepare, warm up, time all rows in turn block by block, report, keep.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context as _, bail, ensure};
use tt_meter::Calibration;
use tt_report::{Bootstrap, Document, Report, Samples};

use super::count;
use super::environment::{self, Before};
use super::exclusive::Exclusive;
use super::figures;
use super::market;
use super::operation::{Bench, Chunked, Finished, Label, Nothing};
use super::plan::{Plan, Random};
use super::registry::Entry;
use crate::clock;
use crate::output;

/// The file in a result's folder that the page of a server shows.
pub(crate) const REPORT_FILE: &str = "report.json";

/// Measures `entries` and writes the result to standard output and into `out`.
///
/// # Errors
/// See [`super::run`].
pub(crate) fn run(entries: &[Entry], title: &str, plan: &Plan, kept: Kept, json: bool) -> anyhow::Result<()> {
    let exclusive = Exclusive::take()?;
    let calibration = clock::calibration();
    let cores = cpus().len();
    let pinned_to = pin();
    let mut benches = prepare(entries)?;
    let mut empty =
        Chunked::new(Label { name: "empty loop", engine: "", what: "", published: Vec::new(), rate: None }, Nothing);
    empty.verify()?;

    let before = Before::read(calibration);
    empty.warm_up(calibration, plan)?;
    for (index, bench) in benches.iter_mut().enumerate() {
        progress(&format!("warming up {}/{}: {}", index + 1, entries.len(), bench.name()));
        bench.warm_up(calibration, plan)?;
    }
    measure(&mut benches, &mut empty, calibration, plan, pinned_to)?;
    let mut environment = environment::record(calibration, &before, pinned_to, plan.seed);
    environment.machine.cores = cores;
    environment.disturbance.load_before = exclusive.load;

    progress("making intervals");
    let bootstrap = Bootstrap { resamples: plan.resamples, seed: plan.seed };
    // The quietest block: a disturbed empty loop must not make a short operation look compiled away.
    let empty_ns = empty.finish(&bootstrap).first().map_or(0.0, |empty| quietest(&empty.samples));
    environment.timing.empty_loop_ns = empty_ns;
    let mut finished: Vec<Finished> = benches.iter().flat_map(|bench| bench.finish(&bootstrap)).collect();
    count_instructions(entries, &mut finished);
    finished.iter_mut().for_each(|Finished { row, .. }| row.aims = market::aims(&row.name));
    let rows = finished.iter().map(|finished| finished.row.clone()).collect();
    let figures = figures::of(&benches, &bootstrap, calibration, environment.timing.step_ns);
    let report = Report { title: title.to_owned(), quick: plan.quick, bootstrap, environment, rows };
    progress("");

    let folder = kept.out.unwrap_or_else(|| default_folder(&report.environment.date));
    keep(&folder, &report, &finished)?;
    if let Some(path) = &kept.csv {
        write(path, |file| write_samples(&finished, file))?;
    }
    draw(&folder, &Document::of(&report, &figures))?;
    show(&report, json, &folder)?;
    check(&report)
}

/// The CPUs that this process might use before this thread was pinned.
pub(crate) fn cpus() -> Vec<usize> {
    static CPUS: OnceLock<Vec<usize>> = OnceLock::new();
    CPUS.get_or_init(|| tt_os::cpu::available().unwrap_or_else(|_| vec![0])).clone()
}

/// The least mean of a block.
fn quietest(samples: &Samples) -> f64 {
    samples.blocks().iter().map(|block| block.iter().sum::<f64>() / block.len() as f64).fold(f64::INFINITY, f64::min)
}

/// Pins this thread to the last CPU that it may use: the first one serves most interrupts.
fn pin() -> Option<usize> {
    let cpu = *cpus().last()?;
    tt_os::cpu::pin(cpu).ok().map(|()| cpu)
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
    empty: &mut Chunked<Nothing>,
    calibration: &Calibration,
    plan: &Plan,
    pinned_to: Option<usize>,
) -> anyhow::Result<()> {
    let mut random = Random::new(plan.seed);
    let mut order: Vec<usize> = (0..benches.len()).collect();
    for block in 0..plan.blocks {
        progress(&format!("block {}/{}", block + 1, plan.blocks));
        for index in (1..order.len()).rev() {
            order.swap(index, random.below(index + 1));
        }
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
fn count_instructions(entries: &[Entry], finished: &mut [Finished]) {
    for entry in entries.iter().filter(|entry| entry.counted) {
        progress(&format!("counting instructions: {}", entry.name));
        let Ok(instructions) = count::count(entry.name) else { continue };
        for Finished { row, .. } in finished.iter_mut().filter(|finished| finished.row.name == entry.name) {
            row.instructions = Some(instructions);
        }
    }
}

/// A line on standard error that the next one overwrites, on a terminal only.
pub(crate) fn progress(line: &str) {
    use std::io::IsTerminal as _;
    if io::stderr().is_terminal() {
        eprint!("\r\x1b[K{line}");
    } else if !(line.is_empty() || line.starts_with("block") || line.starts_with("round")) {
        eprintln!("{line}");
    }
}

/// Where results are kept unless told otherwise, a folder for each.
pub(crate) fn results_folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    target.join("bench")
}

/// Where the result of `date` is kept unless told otherwise.
pub(crate) fn default_folder(date: &str) -> PathBuf {
    results_folder().join(date.replace(':', "-"))
}

/// Where a result goes.
#[derive(Debug)]
pub(crate) struct Kept {
    /// The folder; one by the date unless told otherwise.
    pub(crate) out: Option<PathBuf>,
    /// Every sample of what was timed one by one.
    pub(crate) csv: Option<PathBuf>,
}

/// The samples of rows whose operations were timed one by one.
fn write_samples(finished: &[Finished], to: &mut impl Write) -> io::Result<()> {
    writeln!(to, "row,iteration,ns,block")?;
    let is_timed = |row: &tt_report::Row| row.batch == 1 && row.quantiles.is_some() && row.unit == tt_report::Unit::Ns;
    for Finished { row, samples } in finished.iter().filter(|finished| is_timed(&finished.row)) {
        let values = samples.blocks().iter().enumerate().flat_map(|(block, all)| all.iter().map(move |ns| (block, ns)));
        for (iteration, (block, ns)) in values.enumerate() {
            writeln!(to, "{},{iteration},{ns:.1},{block}", row.name)?;
        }
    }
    Ok(())
}

/// Raw samples, `summary.json` and `result.csv`.
fn keep(folder: &Path, report: &Report, finished: &[Finished]) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for Finished { row, samples } in finished {
        write(&folder.join(format!("{}.csv", row.name)), |file| samples.write_csv(file, row.unit.name()))?;
    }
    write(&folder.join("summary.json"), |file| report.write_json(file))?;
    write(&folder.join("result.csv"), |file| report.write_csv(file))
}

/// `report.json` for the page of a server, and `report.html` for a browser alone.
pub(crate) fn draw(folder: &Path, document: &Document<'_>) -> anyhow::Result<()> {
    write(&folder.join(REPORT_FILE), |file| document.write_json(file))?;
    write(&folder.join("report.html"), |file| document.write_html(file))
}

fn write(path: &Path, fill: impl Fn(&mut BufWriter<File>) -> io::Result<()>) -> anyhow::Result<()> {
    let file = File::create(path).and_then(|file| {
        let mut file = BufWriter::new(file);
        fill(&mut file)?;
        file.flush()
    });
    file.with_context(|| format!("cannot write {}", path.display()))
}

fn show(report: &Report, json: bool, folder: &Path) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = if json { report.write_json(&mut stdout) } else { report.write_table(&mut stdout) };
    output::unless_unread(written.context("cannot print"))?;
    eprintln!("samples, summary.json, result.csv and report.html: {}", folder.display());
    Ok(())
}

/// A run that proves nothing must not end like one that does.
fn check(report: &Report) -> anyhow::Result<()> {
    let empty_ns = report.environment.timing.empty_loop_ns;
    for row in report.rows.iter().filter(|row| row.unit == tt_report::Unit::Ns) {
        if row.mean < 10.0 * empty_ns {
            bail!("{} takes {:.2} ns, an empty loop {empty_ns:.2} ns: it was compiled away", row.name, row.mean);
        }
    }
    let drift = report.environment.timing.drift_ppm;
    ensure!(drift.abs() <= 50.0, "void: the clock drifted by {drift:.0} ppm against CLOCK_MONOTONIC_RAW");
    Ok(())
}
