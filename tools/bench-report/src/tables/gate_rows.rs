//! Rows of `truetick bench gate` from `summary.json`, by number of instruments.

use anyhow::Context as _;
use serde_json::Value;

use super::market_rows::{aims, value};
use super::{Lines, number, origin};

/// Row without its suffixes, statistic, and what it is.
const LINES: [(&str, &str, &str); 23] = [
    ("gate_new", "mean", "new order"),
    ("gate_batch", "mean", "new order, batches of 16 with prefetch"),
    ("gate_cancel", "mean", "cancel"),
    ("gate_cancel_open_10000", "mean", "cancel, 10,000 more orders open"),
    ("gate_fill", "mean", "fill of a whole order"),
    ("gate_fill_open_10000", "mean", "fill, 10,000 more orders open"),
    ("gate_replace", "mean", "replace"),
    ("gate_mark", "mean", "mark"),
    ("gate_mix", "mean", "event of the mix"),
    ("gate_floor_new", "mean", "floor: the lines of a new order"),
    ("gate_floor_mark", "mean", "floor: the lines of a mark"),
    ("gate_open_100k", "p50", "100,000 intents/s, to the verdict"),
    ("gate_open_100k", "p99.9", "100,000 intents/s, to the verdict"),
    ("gate_open_100k_echo", "p50", "the same, echo"),
    ("gate_open_100k_echo", "p99.9", "the same, echo"),
    ("gate_open_1m", "p50", "1,000,000 intents/s, to the verdict"),
    ("gate_open_1m_echo", "p50", "the same, echo"),
    ("gate_open_sleeping", "p50", "10,000 intents/s, the gate sleeps"),
    ("gate_open_sleeping_echo", "p50", "the same, echo"),
    ("gate_new_durable", "mean", "new order, on the disk before its verdict"),
    ("gate_floor_disk", "mean", "floor: a record and fdatasync"),
    ("gate_core_early_out", "mean", "eight checks, first reason only"),
    ("gate_without_margin", "mean", "new order without the check of margin"),
];

pub(super) fn lines(result: &Value) -> anyhow::Result<Lines> {
    let headings = ["row", "statistic", "1 instrument", "100", "10,000", "cold: 1", "cold: 10,000", "aim", "result"];
    let mut lines = Lines::new(origin(&result["environment"])?, 2, &headings);
    let rows = result["rows"].as_array().context("no rows")?;
    let find = |name: &str| rows.iter().find(|row| row["name"] == name);
    for (base, statistic, what) in LINES {
        let first = find(&format!("{base}_ns")).with_context(|| format!("no row {base}_ns"))?;
        let shown = |suffix: &str| {
            find(&format!("{base}{suffix}_ns")).and_then(|row| value(row, statistic)).map_or_else(String::new, number)
        };
        let (aims, results) = aims(first, statistic);
        let columns = ["", "_100", "_10000", "_cold", "_10000_cold"].map(shown);
        lines.push([vec![what.to_owned(), statistic.to_owned()], columns.into(), vec![aims, results]].concat());
    }
    Ok(lines)
}
