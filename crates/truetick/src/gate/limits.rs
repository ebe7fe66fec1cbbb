//! `truetick gate check` and `diff`: what limits files mean.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use risk_gate::{Change, Excess, LimitsFile, Sense, utc_text};
use serde_json::json;
use tt_os::clock::unix_now;
use tt_os::stdout;

/// Prints what the file means.
pub(super) fn check(path: &Path, as_json: bool) -> Result<ExitCode> {
    let limits = LimitsFile::read(path)?;
    // The gate itself takes them.
    limits.gate().with_context(|| path.display().to_string())?;
    let now_ns = unix_now().0;
    let reverts = reverts(&limits, now_ns);
    let mut warnings = limits.warnings().to_vec();
    let first_ns = limits.next_revert_ns(0);
    if first_ns <= now_ns {
        warnings.push(format!("temporary limits until {} are over", utc_text(first_ns)));
    }
    let meaning = limits.meaning(now_ns);
    let (version, sha256) = (limits.version(), limits.hash_text());
    if as_json {
        let mut places = serde_json::Map::new();
        for (place, values) in meaning {
            let of_place = places.entry(place).or_insert_with(|| json!({}));
            values.into_iter().for_each(|(key, value)| of_place[key] = value.into());
        }
        let report =
            json!({ "version": version, "sha256": sha256, "limits": places, "reverts": reverts, "warnings": warnings });
        stdout::write(&format!("{report}\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let format = version.map_or("format 1".to_owned(), |version| format!("format 2, version {version}"));
    let mut text = format!("{}: {format}, sha256 {sha256}\n", path.display());
    for (place, values) in meaning {
        writeln!(text, "{place}")?;
        for (key, value) in values {
            writeln!(text, "  {key:24} {value}")?;
        }
    }
    for time in reverts {
        writeln!(text, "temporary limits revert at {time}")?;
    }
    for warning in warnings {
        writeln!(text, "warning: {warning}")?;
    }
    stdout::write(&text);
    Ok(ExitCode::SUCCESS)
}

/// Returns the times at which temporary limits revert.
fn reverts(limits: &LimitsFile, now_ns: u64) -> Vec<String> {
    let mut at_ns = now_ns;
    std::iter::from_fn(|| {
        at_ns = limits.next_revert_ns(at_ns);
        (at_ns < u64::MAX).then(|| utc_text(at_ns))
    })
    .collect()
}

/// Prints what differs, and with a journal who is beyond the new limits.
pub(super) fn diff(old: &Path, new: &Path, journal: Option<&Path>, as_json: bool) -> Result<ExitCode> {
    let now_ns = unix_now().0;
    let (old, new) = (LimitsFile::read(old)?, LimitsFile::read(new)?);
    new.gate()?;
    let changes = old.changes_to(&new, now_ns);
    let excesses = journal.map(|folder| risk_gate::excesses(&new, folder, now_ns)).transpose()?;
    if as_json {
        stdout::write(&format!("{}\n", report(&changes, excesses.as_deref())));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for change in &changes {
        let Change { from_ns, place, key, old, new, .. } = change;
        let from = from_ns.map_or_else(String::new, |from_ns| format!("from {} on: ", utc_text(from_ns)));
        writeln!(text, "{:8}  {from}{place}: {key} {old} -> {new}", word(change.sense))?;
    }
    for Excess { place, key, held, limit } in excesses.iter().flatten() {
        writeln!(text, "{:8}  {place}: {held} is above {key} = {limit}: only orders that reduce pass", "beyond")?;
    }
    let count = |sense| changes.iter().filter(|change| change.sense == sense).count();
    let (looser, tighter) = (count(Sense::Loosens), count(Sense::Tightens));
    writeln!(text, "{looser} loosen, {tighter} tighten, {} others", count(Sense::Changes))?;
    stdout::write(&text);
    Ok(ExitCode::SUCCESS)
}

const fn word(sense: Sense) -> &'static str {
    match sense {
        Sense::Loosens => "loosens",
        Sense::Tightens => "tightens",
        Sense::Changes => "changes",
    }
}

fn report(changes: &[Change], excesses: Option<&[Excess]>) -> serde_json::Value {
    let change = |change: &Change| {
        json!({
            "sense": word(change.sense), "from": change.from_ns.map(utc_text), "place": change.place,
            "key": change.key, "old": change.old, "new": change.new,
        })
    };
    let excess = |Excess { place, key, held, limit }: &Excess| json!({ "place": place, "key": key, "held": held, "limit": limit });
    json!({
        "changes": changes.iter().map(change).collect::<Vec<_>>(),
        "beyond": excesses.map(|excesses| excesses.iter().map(excess).collect::<Vec<_>>()),
    })
}
