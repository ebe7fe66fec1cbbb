//! `truetick gate rehearse`: intents against a recorded market, each refusal with the record that caused it.

mod market;

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use risk_gate::LimitsFile;
use serde_json::{Value, json};
use tt_meter::Histogram;
use tt_model::{Breach, Verdict};
use tt_os::clock::calibration;
use tt_os::stdout;
use tt_status::timing::cycles_quantiles;

use crate::risk::{Judged, Line, Run, lines};
use market::{Book, Market, Place, Until};

/// Flags of `truetick gate rehearse`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Recording of `truetick record`
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,
    /// Limits file. A symbol is that of the recording, or VENUE:SYMBOL if several venues have it
    #[arg(long, value_name = "FILE")]
    limits: PathBuf,
    /// Events as JSON lines (docs/risk-events.md), each at a time (at_ms, Unix epoch) or after a record (at_record); `-`:
    /// standard input
    #[arg(long, value_name = "FILE", default_value = "-")]
    events: PathBuf,
    /// Print JSON lines instead of text
    #[arg(long)]
    json: bool,
}

/// Times of the stages, in cycles.
#[derive(Default)]
struct Times {
    frame: Histogram,
    mark: Histogram,
    verdict: Histogram,
}

/// Performs the recording's records up to each event, then the event, and prints its row.
///
/// # Errors
/// A file that cannot be read, a symbol that several venues of the recording have, an event that makes no sense (the error
/// names its line), or a standard output that is gone.
pub(super) fn run(args: &Args) -> Result<()> {
    stdout::ignore_broken_pipe(rehearse(args))
}

fn rehearse(args: &Args) -> Result<()> {
    let limits = LimitsFile::read(&args.limits)?;
    let mut market = Market::open(&args.recording)?;
    let mut run = Run::rehearsed(limits, args.json)?;
    let (mut out, mut times) = (io::BufWriter::new(io::stdout().lock()), Times::default());
    for (number, line) in (1..).zip(lines(&args.events)?) {
        let place = || format!("{}, line {number}", args.events.display());
        let line = line.with_context(place)?;
        if line.trim().is_empty() {
            continue;
        }
        let line: Line = serde_json::from_str(&line).with_context(place)?;
        let until = line.at_record.map_or(Until::Ms(line.at_ms), Until::Record);
        market.advance(until, &mut run, &mut times).with_context(place)?;
        market.convert(&mut run);
        let judged = run.event((number, market.now_ns()), line, &mut out).with_context(place)?;
        if let Some(judged) = judged {
            times.verdict.record(judged.cycles);
            let book = market.book(judged.intent.instrument);
            print(&mut out, book, &judged, args.json)?;
        }
    }
    run.total(&mut out)?;
    print_times(&mut out, &times, args.json)?;
    out.flush().context("standard output")
}

/// The reasons that follow from a book, and the record of the book that each of them is due to.
fn causes(book: &Book, verdict: &Verdict) -> Vec<(&'static str, Place)> {
    let mut found = Vec::new();
    for (bit, is_of_proof) in [
        (Breach::COLLAR_REF, false),
        (Breach::COLLAR_TOUCH, false),
        (Breach::MD_STALE, false),
        (Breach::BOOK_UNVERIFIED, true),
    ] {
        // A book that was never proved has no record that ended its proof.
        let place = if is_of_proof { book.unproved.unwrap_or(book.last) } else { book.last };
        if verdict.reasons.contains(bit) {
            found.extend(bit.names().map(|name| (name, place)));
        }
    }
    found
}

fn print(out: &mut impl Write, book: Option<&Book>, judged: &Judged, as_json: bool) -> Result<()> {
    let Judged { verdict, cycles, .. } = judged;
    let Some(book) = book else {
        if as_json {
            writeln!(out, "{}", json!({ "book": Value::Null, "seq": verdict.seq }))?;
        } else {
            writeln!(out, "        no book: the recording has no such instrument so far")?;
        }
        return Ok(());
    };
    let causes = causes(book, verdict);
    let (venue, symbol, last) = (book.venue.name(), &book.symbol, &book.last);
    let ns = |cycles: u64| calibration().scale.ns(cycles.saturating_sub(calibration().read_cycles));
    if as_json {
        let cause = |(reason, place): &(&str, Place)| {
            json!({
                "reason": reason, "record": place.record, "kind": place.kind, "at_ns": place.at_ns,
                "update_id": place.update_id, "proof": place.proof.name(),
            })
        };
        let row = json!({
            "book": symbol, "venue": venue, "seq": verdict.seq, "record": last.record, "update_id": last.update_id,
            "proof": last.proof.name(), "age_us": verdict.now_ns.saturating_sub(last.at_ns) / 1_000,
            "causes": causes.iter().map(cause).collect::<Vec<_>>(),
            "ns": { "frame": ns(book.frame_cycles), "mark": ns(book.mark_cycles), "verdict": ns(*cycles) },
        });
        writeln!(out, "{row}")?;
        return Ok(());
    }
    for (reason, place) in causes {
        let Place { record, kind, update_id, proof, .. } = place;
        let proof = proof.name();
        writeln!(
            out,
            "        {reason}: {venue} {symbol}, record {record} ({kind}), update {update_id}, proof {proof}"
        )?;
    }
    Ok(())
}

/// Prints the times of the stages: a record until its book is visible, a mark in the gate, an intent until its verdict.
fn print_times(out: &mut impl Write, times: &Times, as_json: bool) -> Result<()> {
    let stages = [("frame", &times.frame), ("mark", &times.mark), ("verdict", &times.verdict)];
    let quantiles = stages.map(|(name, cycles)| (name, cycles_quantiles(cycles, calibration())));
    if as_json {
        let mut stages = serde_json::Map::new();
        stages.extend(quantiles.into_iter().map(|(name, times)| (name.to_owned(), json!(times))));
        writeln!(out, "{}", json!({ "stages": stages }))?;
        return Ok(());
    }
    for (name, times) in quantiles {
        let Some(times) = times else { continue };
        let p99 = times.p99_ns.map_or_else(String::new, |ns| format!(", p99 {ns} ns"));
        writeln!(out, "{name:8} {:>8} times: p50 {} ns{p99}, maximum {} ns", times.n, times.p50_ns, times.max_ns)?;
    }
    Ok(())
}
