//! Output of `truetick audit`: text and JSON.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use tt_market::DropReason;
use tt_meter::Histogram;

use super::examiner::Examiner;
use super::finding::Finding;
use super::instrument::Watched;
use super::source::Examined;
use market_feed::Run;
use tt_status::decimal_text::steps_text;

/// Rows of the table; JSON contains all instruments.
const ROWS_MAX: usize = 30;

/// Returns the result as JSON; `seconds` is how long it took.
#[must_use]
pub fn as_json(examined: &Examined, seconds: f64) -> Value {
    let rate = mb_per_s(examined, seconds);
    json!({
        "format": examined.format.name(), "records": examined.records, "file_bytes": examined.file_bytes,
        "seconds": seconds, "mb_per_s": rate, "findings": examined.findings.all(),
        "feeds": examined.feeds.iter().map(feed).collect::<Vec<_>>(),
        "state_hashes": examined.runs.iter().map(|run| format!("{:016x}", run.state_hash)).collect::<Vec<_>>(),
        "checkpoints": examined.runs.iter().map(|run| run.checkpoints).sum::<u64>(),
        "right": examined.is_right(),
    })
}

fn mb_per_s(examined: &Examined, seconds: f64) -> f64 {
    examined.feeds.iter().map(|feed| feed.bytes).sum::<u64>() as f64 / 1e6 / seconds
}

fn feed(feed: &Examiner) -> Value {
    let counters = feed.counters();
    let mut named = Map::new();
    named.extend(counters.named().into_iter().map(|(name, count)| (name.to_owned(), json!(count))));
    // The only signed one.
    named["lag_ns"] = json!(counters.lag_signed_ns());
    let mut drops = Map::new();
    for fault in DropReason::ALL.into_iter().filter(|fault| counters.dropped(*fault) > 0) {
        drops.insert(fault.name().to_owned(), json!(counters.dropped(fault)));
    }
    let lag = (feed.has_receive_times && feed.skew.count() > 0).then(|| {
        json!({
            "n": feed.skew.count(), "min": feed.skew.min(), "p50": feed.skew.quantile(500_000),
            "p99": feed.skew.quantile(990_000), "max": feed.skew.max(), "ahead": feed.skew.early(),
        })
    });
    json!({
        "venue": feed.venue.name(), "tested": feed.venue.rules().evidence.to_string(), "frame_bytes": feed.bytes,
        "from_unix_ns": feed.first_ns, "to_unix_ns": feed.last_ns, "has_receive_times": feed.has_receive_times,
        "counters": named, "drops": drops,
        "proofs": {
            "crc": counters.crc_matches, "sequence": counters.sequence_matches, "oracle": counters.oracle_matches,
        },
        "lag_ns": lag, "findings": feed.findings.all(),
        "instruments": feed.watched.iter().enumerate().map(|(index, watched)| instrument(feed, index, watched)).collect::<Vec<_>>(),
    })
}

fn instrument(feed: &Examiner, index: usize, watched: &Watched) -> Value {
    let share = |within: u64| (watched.distance.count() > 0).then(|| within as f64 / watched.distance.count() as f64);
    json!({
        "symbol": watched.symbol.to_string(), "tick_size": steps_text(1, watched.px.step()),
        "lot_size": steps_text(1, watched.qty.step()), "refined": watched.refined, "snapshots": watched.snapshots,
        "deltas": watched.deltas, "applied": watched.applied, "proof": feed.proof(index).name(),
        "levels_per_message": quantiles(&watched.levels), "steps_from_touch": quantiles(&watched.distance),
        "within_4096_steps": share(watched.within_4096), "within_16384_steps": share(watched.within_16384),
    })
}

fn quantiles(histogram: &Histogram) -> Option<Value> {
    let at = |per_million: u32| histogram.quantile(per_million, 0);
    (histogram.count() > 0).then(|| {
        json!({
            "n": histogram.count(), "mean": histogram.sum() as f64 / histogram.count() as f64, "p50": at(500_000),
            "p90": at(900_000), "p99": at(990_000), "max": histogram.max(),
        })
    })
}

/// Returns the result as lines of text; `seconds` is how long it took.
#[must_use]
pub fn as_text(examined: &Examined, seconds: f64) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "  {}, {} records, {:.1} MB of frames in {seconds:.2} s ({:.0} MB/s)",
        examined.format.name(),
        examined.records,
        examined.feeds.iter().map(|feed| feed.bytes).sum::<u64>() as f64 / 1e6,
        mb_per_s(examined, seconds),
    );
    for feed in &examined.feeds {
        write_feed(&mut text, feed);
    }
    if !examined.runs.is_empty() {
        let same: u64 = examined.runs.iter().map(|run: &Run| run.checkpoints - run.differing).sum();
        let all: u64 = examined.runs.iter().map(|run| run.checkpoints).sum();
        let _ = writeln!(text, "  {same} of {all} state hashes match the recording");
    }
    let findings = examined.feeds.iter().map(|feed| &feed.findings).chain([&examined.findings]);
    for finding in findings.flat_map(super::finding::Findings::all) {
        let Finding { name, count, wrong, first_record, text: what } = finding;
        let sign = if *wrong { "ERROR" } else { "note" };
        let first = first_record.map_or_else(String::new, |record| format!(", first at record {record}"));
        let _ = writeln!(text, "  {sign:5} {count:9} {name}: {what}{first}");
    }
    let verdict = match (examined.is_right(), examined.records) {
        (false, _) => "errors found",
        (true, 0) => "nothing to check: no record",
        (true, _) => "no errors found",
    };
    let _ = writeln!(text, "  {verdict}");
    text
}

fn write_feed(text: &mut String, feed: &Examiner) {
    let counters = feed.counters();
    let _ = writeln!(
        text,
        "  {}: {} frames and snapshots = {} applied + {} dropped; {} gaps, {} joins; verified by checksum {}, sequence {}, ticker {}",
        feed.venue.name(),
        counters.frames,
        counters.applied,
        counters.drops_total(),
        counters.gaps,
        counters.joins,
        counters.crc_matches,
        counters.sequence_matches,
        counters.oracle_matches,
    );
    if let (true, Some(p50), Some((min, max))) =
        (feed.has_receive_times, feed.skew.quantile(500_000), feed.skew.min().zip(feed.skew.max()))
    {
        let ms = |ns: i64| ns as f64 / 1e6;
        let _ = writeln!(text, "  venue to receipt: min {:.1}, p50 {}, max {:.1} ms", ms(min), ms(p50), ms(max));
    }
    let _ = writeln!(
        text,
        "  {:18} {:>12} {:>12} {:>7} {:>8} {:>17} {:>22} {:>6} {:>6}  proof",
        "symbol",
        "tick size",
        "lot size",
        "refined",
        "updates",
        "levels p50/p99",
        "steps off p50/p99",
        "<4097",
        "<16385"
    );
    for (index, watched) in feed.watched.iter().enumerate().take(ROWS_MAX) {
        let pair = |histogram: &Histogram| {
            let at =
                |per_million: u32| histogram.quantile(per_million, 0).map_or("-".to_owned(), |value| value.to_string());
            format!("{}/{}", at(500_000), at(990_000))
        };
        let share = |within: u64| format!("{:.0} %", within as f64 * 100.0 / watched.distance.count().max(1) as f64);
        let _ = writeln!(
            text,
            "  {:18} {:>12} {:>12} {:>7} {:>8} {:>17} {:>22} {:>6} {:>6}  {}",
            watched.symbol.to_string(),
            steps_text(1, watched.px.step()),
            steps_text(1, watched.qty.step()),
            watched.refined,
            watched.applied,
            pair(&watched.levels),
            pair(&watched.distance),
            share(watched.within_4096),
            share(watched.within_16384),
            feed.proof(index).name(),
        );
    }
    if feed.watched.len() > ROWS_MAX {
        let _ = writeln!(text, "  ... and {} more; use --json to print all", feed.watched.len() - ROWS_MAX);
    }
}
