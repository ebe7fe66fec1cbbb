//! The rows that `truetick risk` prints.

use std::io::{self, Write};
use std::path::Path;

use risk_gate::{Difference, Instrument, LimitsFile};
use serde_json::json;
use tt_model::{InstrumentId, Report, Verdict};
use tt_risk::{Gate, Outcome};

/// Prints a verdict on an intent in `symbol`, whose instrument may be unknown.
pub(super) fn verdict(
    out: &mut impl Write,
    verdict: &Verdict,
    (symbol, instrument): (&str, Option<&Instrument>),
    as_json: bool,
) -> io::Result<()> {
    let accept = verdict.accept == 1;
    let reasons: Vec<_> = verdict.reasons.names().collect();
    let worst_position = instrument.map_or_else(|| "0".to_owned(), |of| of.qty_text(verdict.worst_pos));
    let notes: Vec<_> = verdict.notes.names().collect();
    if as_json {
        let row = json!({
            "seq": verdict.seq, "client_id": verdict.client_id, "symbol": symbol, "accept": accept,
            "reasons": reasons, "notes": notes, "level": level_name(verdict.first_level),
            "worst_position": worst_position, "limits_version": verdict.limits_version,
        });
        return writeln!(out, "{row}");
    }
    let word = if accept { "accepted" } else { "rejected" };
    let row = format!(
        "{:>6}  client id {:<8} {:12} {word:8}  worst position {worst_position:>14}  {}",
        verdict.seq,
        verdict.client_id,
        symbol,
        reasons.join(" ")
    );
    writeln!(out, "{}", row.trim_end())
}

/// Returns the name of the level of a verdict's first reason.
const fn level_name(level: u8) -> Option<&'static str> {
    match level {
        1 => Some("firm"),
        2 => Some("account"),
        3 => Some("strategy"),
        4 => Some("instrument"),
        _ => None,
    }
}

/// Prints that a line changes nothing, and why.
pub(super) fn ignored(out: &mut impl Write, number: u64, error: &anyhow::Error, as_json: bool) -> io::Result<()> {
    if as_json {
        return writeln!(out, "{}", json!({ "ignored": number, "error": format!("{error:#}") }));
    }
    writeln!(out, "line {number} ignored: {error:#}")
}

pub(super) fn report(out: &mut impl Write, report: &Report, outcome: Outcome, as_json: bool) -> io::Result<()> {
    let kind = gate_text::REPORT_KINDS.get(usize::from(report.kind.0)).unwrap_or(&"malformed");
    let Report { account, client_id, .. } = *report;
    if as_json {
        let row = json!({ "report": kind, "account": account, "client_id": client_id, "outcome": outcome.name() });
        return writeln!(out, "{row}");
    }
    writeln!(out, "{:>6}  client id {client_id:<8} {kind:12} {}", "report", outcome.name())
}

/// Prints what became of a limits file.
pub(super) fn load(
    out: &mut impl Write,
    path: &Path,
    loaded: &anyhow::Result<u32>,
    limits: &LimitsFile,
    as_json: bool,
) -> io::Result<()> {
    let (file, sha256) = (path.display().to_string(), limits.hash_text());
    match (loaded, as_json) {
        (Ok(version), true) => {
            writeln!(out, "{}", json!({ "load": file, "limits_version": version, "sha256": sha256 }))
        }
        (Ok(version), false) => writeln!(out, "  load  {file}: version {version}, sha256 {sha256}"),
        (Err(error), true) => writeln!(out, "{}", json!({ "load": file, "error": format!("{error:#}") })),
        (Err(error), false) => writeln!(out, "  load  {file}: refused: {error:#}"),
    }
}

pub(super) fn total(out: &mut impl Write, gate: &Gate, as_json: bool) -> io::Result<()> {
    let counters = gate.counters();
    let (intents, accepted, rejected) = (counters.intents(), counters.accepted(), counters.rejected());
    let reports: Vec<_> = Outcome::NAMES.iter().map(|(name, outcome)| (*name, counters.reports(*outcome))).collect();
    let seen = reports.iter().filter(|(_, count)| *count > 0);
    if as_json {
        let mut reports = serde_json::Map::new();
        reports.extend(seen.map(|(name, count)| ((*name).to_owned(), json!(count))));
        let total = json!({ "intents": intents, "accepted": accepted, "rejected": rejected, "reports": reports });
        return writeln!(out, "{total}");
    }
    writeln!(out, "{intents} intents = {accepted} accepted + {rejected} rejected")?;
    let seen: Vec<_> = seen.map(|(name, count)| format!("{count} {name}")).collect();
    if !seen.is_empty() {
        writeln!(out, "reports: {}", seen.join(", "))?;
    }
    Ok(())
}

/// Prints what differs from a venue's statement on an account.
pub(super) fn differences(
    out: &mut impl Write,
    account: u16,
    differences: &[Difference],
    limits: &LimitsFile,
    as_json: bool,
) -> io::Result<()> {
    let texts: Vec<_> = differences.iter().map(|difference| difference_text(*difference, limits)).collect();
    if as_json {
        return writeln!(out, "{}", json!({ "reconcile": account, "differences": texts }));
    }
    let said = if texts.is_empty() { "agrees with the venue".to_owned() } else { texts.join("; ") };
    writeln!(out, "account {account}: {said}")
}

fn difference_text(difference: Difference, limits: &LimitsFile) -> String {
    let known = |instrument: InstrumentId| limits.instrument(instrument);
    match difference {
        Difference::Missing(client_id) => format!("client id {client_id}: open here, not at the venue"),
        Difference::Unknown(client_id) => format!("client id {client_id}: open at the venue, not here"),
        Difference::Terms(client_id) => format!("client id {client_id}: other terms at the venue"),
        Difference::Position { instrument, ours, venue } => known(instrument).map_or_else(String::new, |of| {
            let (ours, venue) = (of.qty_text(ours.0), of.qty_text(venue.0));
            format!("{}: position {ours} here, {venue} at the venue", of.symbol)
        }),
        Difference::Awaited(instrument) => known(instrument)
            .map_or_else(String::new, |of| format!("{}: executions of ended orders are awaited", of.symbol)),
    }
}
