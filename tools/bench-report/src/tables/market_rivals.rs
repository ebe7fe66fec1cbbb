//! Time of books and tickers from a file of runs of `tools/rivals/market`.

use std::collections::HashMap;

use super::{BOOTSTRAP, Lines, number, origin_of_runs};
use crate::report::Runs;

/// Aim: from bytes to the visible book as a share of serde_json's time with a `BTreeMap`, at most.
pub const OF_SERDE_MAX: f64 = 0.25;

const OURS: &str = "truetick";
const ROWS: [&str; 10] = [
    "ticker_write_100",
    "ticker_write_20000",
    "ticker_candle_100",
    "ticker_candle_20000",
    "book_delta",
    "snapshot",
    "snapshot_checked",
    "snapshot_bytes",
    "bytes_to_book",
    "verified_frame",
];
const OTHERS: [(&str, &str); 10] = [
    ("serde_btree", "serde_json"),
    ("sonic_vec", "sonic-rs"),
    ("nautilus", "nautilus"),
    ("hft_hash", "hft hash"),
    ("hft_btree", "tree"),
    ("hft_vector", "vector"),
    ("barter", "barter"),
    ("two_strings", "2 strings"),
    ("map_of_maps", "nested"),
    ("fast_map", "fast_map"),
];

pub(super) fn lines(runs: &Runs) -> anyhow::Result<Lines> {
    let headings: Vec<&str> = ["row", "ns"].into_iter().chain(OTHERS.map(|(_, heading)| heading)).collect();
    let mut lines = Lines::new(origin_of_runs(runs)?, 1, &headings);
    for row in ROWS {
        let ours = times(runs, row, OURS);
        let mean = ours.values().sum::<f64>() / ours.len().max(1) as f64;
        let mut cells = vec![format!("`{row}`"), number(mean)];
        cells.extend(OTHERS.map(|(other, _)| ratio(&ours, &times(runs, row, other))));
        lines.push(cells);
    }
    Ok(lines)
}

/// truetick's time as a share of the other's, in bold where the whole interval lies above 1.
fn ratio(ours: &HashMap<u64, f64>, theirs: &HashMap<u64, f64>) -> String {
    let mut rounds: Vec<&u64> = theirs.keys().collect();
    rounds.sort_unstable();
    let pairs: Vec<(f64, f64)> =
        rounds.into_iter().filter_map(|round| Some((*ours.get(round)?, *theirs.get(round)?))).collect();
    match BOOTSTRAP.ratio(&pairs) {
        Some(ratio) if ratio.low > 1.0 => format!("**{:.2}**", ratio.value),
        Some(ratio) => format!("{:.3}", ratio.value),
        None => String::new(),
    }
}

/// Nanoseconds per unit by round.
fn times(runs: &Runs, row: &str, contestant: &str) -> HashMap<u64, f64> {
    let time = |run: &HashMap<String, String>| {
        let is_wanted = run.get("row")? == row && run.get("contestant")? == contestant && run.get("kind")? == "timed";
        is_wanted.then_some(())?;
        Some((run.get("round")?.parse().ok()?, run.get("ns_per_unit")?.parse().ok()?))
    };
    runs.runs.iter().filter_map(time).collect()
}
