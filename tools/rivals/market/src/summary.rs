//! From runs to a table: means with intervals, ratios of runs of one round, and the aims.

use std::collections::HashMap;

use bench::harness::notes::Stamp;
use bench::report::{Bootstrap, Samples};
use bench::report::{Look, Runs, TextTable, interval, verdict};

use crate::books::Timing;
use crate::rows::{self, CONTESTANTS, Contestant, Row, Work};

pub(crate) const COLUMNS: [&str; 9] =
    ["date", "commit", "row", "contestant", "round", "kind", "units", "ns_per_unit", "steal_pct"];

/// Setting: resamples per interval.
const RESAMPLES: u32 = 10_000;
/// Aims: of serde_json with a BTreeMap from bytes to the visible book, and of anybody else in any row.
const OF_SERDE_MAX: f64 = 0.25;
const OF_ANY_MAX: f64 = 1.0;

/// A run as a line of the file.
pub(crate) fn line(
    stamp: &Stamp,
    row: &Row,
    contestant: Contestant,
    round: u64,
    timing: &anyhow::Result<Timing>,
    steal_pct: f64,
) -> Vec<String> {
    let mut cells = [&stamp.date, &stamp.commit].map(Clone::clone).to_vec();
    cells.extend([row.name, contestant.name()].map(str::to_owned));
    cells.push(round.to_string());
    match timing {
        Ok(Timing { ns, units }) => {
            cells.extend(["timed".into(), units.to_string(), format!("{:.3}", ns / *units as f64)]);
        }
        Err(error) => cells.extend([format!("void: {error:#}"), "0".into(), "0".into()]),
    }
    cells.push(format!("{steal_pct:.2}"));
    cells
}

/// Prints the notes, the table and the aims.
///
/// # Errors
/// None yet; a file that is no file of runs has been refused before.
pub(crate) fn print(runs: &Runs, seed: u64, look: Look) -> anyhow::Result<()> {
    let bootstrap = Bootstrap { resamples: RESAMPLES, seed };
    runs.notes.iter().for_each(|note| println!("{note}"));
    println!();
    let mut table = TextTable::new(&["row", "contestant", "runs", "unit", "ns", "truetick / it"]);
    let mut aims = Vec::new();
    for row in &rows::ALL {
        let ours = times(runs, row, Contestant::Truetick);
        for contestant in CONTESTANTS {
            let theirs = times(runs, row, contestant);
            if theirs.is_empty() {
                continue;
            }
            let mut samples = Samples::new();
            let mut rounds: Vec<u64> = theirs.keys().copied().collect();
            rounds.sort_unstable();
            rounds.iter().for_each(|round| samples.push_block(vec![theirs[round]]));
            let pairs: Vec<(f64, f64)> =
                rounds.iter().filter_map(|round| Some((*ours.get(round)?, theirs[round]))).collect();
            let ratio = if contestant == Contestant::Truetick { None } else { bootstrap.ratio(&pairs) };
            let mut cells = [row.name, contestant.name()].map(str::to_owned).to_vec();
            cells.extend([theirs.len().to_string(), row.unit.to_owned()]);
            cells.push(interval(bootstrap.mean(&samples), 1));
            cells.push(interval(ratio, 3));
            table.push(cells);
            if let Some(ratio) = ratio.filter(|_| contestant.is_rival()) {
                let is_main = row.work == Work::Bytes && contestant == Contestant::SerdeBTree;
                let aim = if is_main { OF_SERDE_MAX } else { OF_ANY_MAX };
                let (name, word) = (row.name, verdict(ratio, aim));
                aims.push(format!("{name:14} at most {aim:.2} of {:12} {word}", contestant.name()));
            }
        }
    }
    table.print(look, 2);
    println!();
    aims.iter().for_each(|line| println!("{line}"));
    let is_void = |run: &&HashMap<String, String>| run.get("kind").is_some_and(|kind| kind != "timed");
    let void: Vec<&HashMap<String, String>> = runs.runs.iter().filter(is_void).collect();
    println!("{} runs, {} void", runs.runs.len(), void.len());
    for run in void.iter().take(8) {
        let cell = |key: &str| run.get(key).map_or("", String::as_str);
        println!("  {} {}: {}", cell("row"), cell("contestant"), cell("kind"));
    }
    Ok(())
}

/// Nanoseconds a unit by round.
fn times(runs: &Runs, row: &Row, contestant: Contestant) -> HashMap<u64, f64> {
    let time = |run: &HashMap<String, String>| {
        let is_wanted = run.get("row")? == row.name && run.get("contestant")? == contestant.name();
        (is_wanted && run.get("kind")? == "timed").then_some(())?;
        Some((run.get("round")?.parse().ok()?, run.get("ns_per_unit")?.parse().ok()?))
    };
    runs.runs.iter().filter_map(time).collect()
}
