//! Rows of `truetick bench market` from `summary.json`, by number of instruments.

use anyhow::Context as _;
use serde_json::Value;

use super::{Lines, number, origin};

/// Row without its suffixes, statistic, and what it is.
const LINES: [(&str, &str, &str); 14] = [
    ("state_ticker_alone", "mean", "ticker, no candles"),
    ("state_ticker", "mean", "ticker, candles of one time frame"),
    ("state_mark_price", "mean", "mark price, three positions"),
    ("state_order_update", "mean", "order update with its execution"),
    ("state_ob_delta", "mean", "book delta, published, per level"),
    ("state_ob_snap", "mean", "snapshot of 2 x 1,000 levels"),
    ("parse_book_ticker", "mean", "`bookTicker` frame parsed"),
    ("parse_depth", "mean", "depth frame parsed, per level"),
    ("verified_frame", "mean", "Kraken frame to verified checksum"),
    ("end_to_end_recorded", "p50", "recorded frame to visible state"),
    ("end_to_end_recorded", "p99", "recorded frame to visible state"),
    ("end_to_end", "p50", "WebSocket frame to visible state"),
    ("end_to_end", "p99", "WebSocket frame to visible state"),
    ("end_to_end_from_read", "p50", "return of read(2) to visible state"),
];

/// Rows that are given by the level.
const PER_LEVEL: [&str; 2] = ["state_ob_delta", "parse_depth"];

pub(super) fn lines(result: &Value) -> anyhow::Result<Lines> {
    let headings = ["row", "statistic", "1 instrument", "100", "10,000", "cold: 1", "cold: 10,000", "aim", "result"];
    let mut lines = Lines::new(origin(&result["environment"])?, 2, &headings);
    let rows = result["rows"].as_array().context("no rows")?;
    let find = |name: &str| rows.iter().find(|row| row["name"] == name);
    for (base, statistic, what) in LINES {
        let per_level = if PER_LEVEL.contains(&base) { "_per_level" } else { "" };
        let name = |size: &str| format!("{base}{size}{per_level}_ns");
        let first = find(&name("")).with_context(|| format!("no row {}", name("")))?;
        let shown = |name: &str| find(name).and_then(|row| value(row, statistic)).map_or_else(String::new, number);
        let cold =
            |size: &str| if per_level.is_empty() { shown(&format!("{base}{size}_cold_ns")) } else { String::new() };
        let (aims, results) = aims(first, statistic);
        lines.push(vec![
            what.to_owned(),
            statistic.to_owned(),
            shown(&name("")),
            shown(&name("_100")),
            shown(&name("_10000")),
            cold(""),
            cold("_10000"),
            aims,
            results,
        ]);
    }
    Ok(lines)
}

pub(super) fn value(row: &Value, statistic: &str) -> Option<f64> {
    let value = if statistic == "mean" { &row["mean"] } else { &row["quantiles"][statistic] };
    value.as_f64()
}

/// Aims of a row for `statistic`, and whether each is reached.
pub(super) fn aims(row: &Value, statistic: &str) -> (String, String) {
    let aims = row["aims"].as_array().into_iter().flatten().filter(|aim| aim["statistic"] == statistic);
    let both = aims.map(|aim| {
        let at_most = aim["at_most"].as_f64().map_or_else(String::new, number);
        (at_most, aim["verdict"].as_str().unwrap_or_default().to_owned())
    });
    let (aims, results): (Vec<String>, Vec<String>) = both.unzip();
    (aims.join(", then "), results.join(", "))
}
