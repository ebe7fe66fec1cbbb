//! Mutants: changes of the code that the tests of its package have to notice (cargo-mutants).

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::{Report, has_cargo_command};
use crate::test::Steps;

/// Of a hundred viable mutants, how many have to be caught.
const CAUGHT_MIN: usize = 85;
/// Arguments for the tests: those that judge the machine would catch a mutant, or fail without one, by chance.
const TEST_ARGUMENTS: [&str; 4] = ["--", "--", "--skip", "timing::"];

/// Which mutants to run.
pub(super) struct Draw<'a> {
    pub(super) package: &'a str,
    /// A part of their files' paths.
    pub(super) files: &'a str,
    pub(super) count: usize,
    pub(super) seed: u64,
}

/// Results of mutants by name.
#[derive(Debug, Default, PartialEq)]
struct Outcomes {
    caught: usize,
    unviable: usize,
    survivors: Vec<String>,
}

/// Draws mutants by the seed and runs them.
pub(super) fn run(steps: &Steps, report: &mut Report, draw: &Draw) -> anyhow::Result<()> {
    ensure!(
        has_cargo_command(&steps.root, &["mutants"]),
        "cargo-mutants is not installed (cargo install cargo-mutants)"
    );
    let mut list = steps.command("cargo", &["mutants", "--no-config", "--list", "--package", draw.package]);
    let output = list.output().context("cargo mutants")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let all: Vec<&str> = text.lines().filter(|name| name.contains(draw.files)).collect();
    let drawn = drawn(&all, draw);
    report.line(&format!(
        "{} of {} mutants of {} {}, seed {}\n",
        drawn.len(),
        all.len(),
        draw.package,
        draw.files,
        draw.seed
    ))?;
    let pattern = format!("^({})$", drawn.iter().map(|name| escaped(name)).collect::<Vec<_>>().join("|"));
    let folder = steps.root.join("target/explore");
    let mut command = steps.command("cargo", &["mutants", "--no-config", "--no-shuffle", "--colors", "never"]);
    command.args(["--package", draw.package, "--re", &pattern, "--output"]).arg(&folder).args(TEST_ARGUMENTS);
    let status = command.status().context("cargo mutants")?;
    let ran = report_outcomes(report, &folder.join("mutants.out/outcomes.json"), &status.to_string())?;
    ensure!(ran >= drawn.len(), "{ran} of the {} drawn mutants ran", drawn.len());
    Ok(())
}

/// The mutants of what the last commits and the working tree changed, until `end`.
pub(super) fn run_changed(steps: &Steps, report: &mut Report, end: Instant) -> anyhow::Result<()> {
    if !has_cargo_command(&steps.root, &["mutants"]) {
        return report.line("- mutants: not run, cargo-mutants is not installed");
    }
    let folder = steps.root.join("target/explore");
    let diff = steps.command("git", &["diff", "HEAD~5", "--", "crates"]).output().context("git diff")?;
    let file = folder.join("changed.diff");
    std::fs::write(&file, diff.stdout)?;
    let seconds = end.saturating_duration_since(Instant::now()).as_secs();
    let mut command = steps.command("timeout", &[&format!("{seconds}"), "cargo", "mutants", "--no-config"]);
    command.args(["--colors", "never", "--in-diff"]).arg(&file).arg("--output").arg(&folder).args(TEST_ARGUMENTS);
    let finished = steps.finish("explore-mutants", &mut command);
    let status = finished.status.map_or_else(|| "ended".to_owned(), |status| status.to_string());
    report_outcomes(report, &folder.join("mutants.out/outcomes.json"), &status).map(|_| ())
}

/// Reports the results, and returns how many mutants have one.
fn report_outcomes(report: &mut Report, file: &Path, status: &str) -> anyhow::Result<usize> {
    let Ok(text) = std::fs::read(file) else {
        report.line(&format!("- mutants: no outcome, {status}"))?;
        return Ok(0);
    };
    let outcomes = outcomes(&serde_json::from_slice(&text).context("outcomes.json")?);
    let viable = outcomes.caught + outcomes.survivors.len();
    let is_enough = outcomes.caught * 100 >= viable * CAUGHT_MIN;
    let verdict = if is_enough { "enough" } else { "too few" };
    report.line(&format!(
        "- mutants: {} of {viable} viable caught ({verdict}), {} unviable",
        outcomes.caught, outcomes.unviable
    ))?;
    outcomes.survivors.iter().try_for_each(|name| report.line(&format!("  - survived: {name}")))?;
    if !is_enough {
        report.finding("fewer than 85 of 100 viable mutants were caught", "")?;
    }
    Ok(viable + outcomes.unviable)
}

fn outcomes(json: &Value) -> Outcomes {
    let mut outcomes = Outcomes::default();
    for outcome in json["outcomes"].as_array().into_iter().flatten() {
        let Some(name) = outcome["scenario"]["Mutant"]["name"].as_str() else { continue };
        match outcome["summary"].as_str() {
            Some("CaughtMutant" | "Timeout") => outcomes.caught += 1,
            Some("MissedMutant") => outcomes.survivors.push(name.to_owned()),
            _ => outcomes.unviable += 1,
        }
    }
    outcomes
}

/// `count` names, the same ones for the same seed.
fn drawn<'a>(all: &[&'a str], draw: &Draw) -> Vec<&'a str> {
    let (mut left, mut drawn, mut state) = (all.to_vec(), Vec::new(), draw.seed);
    while drawn.len() < draw.count && !left.is_empty() {
        // SplitMix64: Steele, Lea, Flood, 2014.
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        drawn.push(left.swap_remove(((z ^ z >> 31) % left.len() as u64) as usize));
    }
    drawn.sort_unstable();
    drawn
}

/// `name` as a regular expression. Only what has a meaning is escaped: `\<` is the beginning of a word.
fn escaped(name: &str) -> String {
    name.chars().flat_map(|c| "\\.+*?()|[]{}^$".contains(c).then_some('\\').into_iter().chain([c])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_the_same_mutants_for_the_same_seed() {
        let all: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let draw = |count, seed| drawn(&all, &Draw { package: "", files: "", count, seed });
        assert_eq!(draw(10, 7), draw(10, 7));
        assert_ne!(draw(10, 7), draw(10, 8));
        assert_eq!(draw(1_000, 7).len(), 100);
    }

    #[test]
    fn names_match_themselves_only() {
        assert_eq!(escaped("a/b.rs:1:2: replace + with -"), "a/b\\.rs:1:2: replace \\+ with -");
        assert_eq!(escaped("replace f -> Option<[u8; 2]> with x"), "replace f -> Option<\\[u8; 2\\]> with x");
    }

    #[test]
    fn outcomes_are_counted() {
        let of =
            |name: &str, summary: &str| serde_json::json!({"scenario": {"Mutant": {"name": name}}, "summary": summary});
        let baseline = serde_json::json!({"scenario": "Baseline", "summary": "Success"});
        let all = [baseline, of("a", "CaughtMutant"), of("b", "MissedMutant"), of("c", "Unviable"), of("d", "Timeout")];
        let expected = Outcomes { caught: 2, unviable: 1, survivors: vec!["b".to_owned()] };
        assert_eq!(outcomes(&serde_json::json!({ "outcomes": all })), expected);
    }
}
