//! What one sender can take: the tests that measure it, and the table of docs/turn-operators.md that a run fills.

mod rows;

use std::path::Path;

use anyhow::{Context as _, ensure};

use super::{FOLDER, Kept, Measured, cargo, judged_of_the_release};
use crate::history::{History, STALE, stale_mark};
use crate::tree::Tree;
use crate::violation::Violation;
use rows::{ROWS, Row};

/// The code that the run judges.
pub(super) const JUDGES: &[&str] = &[
    "crates/tt-turn/src",
    "crates/tt-net/src",
    "crates/turn-config/src",
    "crates/turn-server/src",
    "crates/control/src/connections.rs",
];

const DOCUMENT: &str = "docs/turn-operators.md";
const BEGIN: &str = "<!-- BEGIN: availability bench/qualified/availability.toml -->\n";
const END: &str = "<!-- END -->\n";

/// The modules of the test `turn` that attack a server.
const ATTACKS: &[&str] =
    &["strangers::", "floods::", "pools::", "spray::", "handshake_loops::", "user_files::", "streams::bounds::"];

/// In the result of a run, before the tests whose bounds it missed.
const MISSED: &str = "; missed: ";

/// Runs the tests of all rows; every row must have a value. A run that misses a bound is kept, too, and says so.
pub(super) fn run(root: &Path) -> anyhow::Result<String> {
    let engine = ["test", "--quiet", "--release", "--locked", "--package", "tt-turn", "--test", "engine", "--"];
    let mut engine = cargo(root, &engine);
    engine.args(["--test-threads", "1", "--nocapture"]).args(filters(|row| row.engine_tests));
    let output = engine.output().context("cargo")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (attacks, has_passed) = judged_of_the_release(root, &[ATTACKS, &filters(|row| row.tests)].concat())?;
    let mut result = summary(&attacks).context("libtest has no result")?;
    ensure!(has_passed || missed(&result).is_some(), "{result}");
    let values: Vec<&str> = text.lines().chain(attacks.lines()).filter(|line| line.starts_with("measured ")).collect();
    require_values(&values.iter().filter_map(|line| Measured::of_line(line)).collect::<Vec<_>>())?;
    result.extend(values.iter().flat_map(|value| ["\n", value]));
    Ok(result)
}

/// Returns the result of libtest, and the names of the tests that failed.
fn summary(text: &str) -> Option<String> {
    let result = text.lines().find(|line| line.starts_with("test result: "))?;
    let failed: Vec<&str> = text.lines().filter_map(|line| line.strip_suffix(" --- FAILED")).collect();
    Some(if failed.is_empty() { result.to_owned() } else { format!("{result}{MISSED}{}", failed.join(", ")) })
}

/// Returns the tests whose bounds a run with this result missed.
pub(super) fn missed(result: &str) -> Option<&str> {
    result.split_once(MISSED).map(|(_, tests)| tests)
}

fn filters(tests: fn(&Row) -> &'static [&'static str]) -> Vec<&'static str> {
    ROWS.iter().flat_map(tests).copied().collect()
}

/// Each row has a value, and each value a row.
fn require_values(values: &[Measured]) -> anyhow::Result<()> {
    let unmeasured = ROWS.iter().map(|row| row.name).find(|name| values.iter().all(|value| value.row != *name));
    ensure!(unmeasured.is_none(), "nothing was measured for {}: was a test skipped?", unmeasured.unwrap_or_default());
    let unknown = values.iter().find(|value| ROWS.iter().all(|row| row.name != value.row));
    ensure!(unknown.is_none(), "no row for {unknown:?}");
    Ok(())
}

/// Writes the table of the kept run into its document.
pub(crate) fn accept(root: &Path) -> anyhow::Result<()> {
    let tree = Tree::read(root)?;
    let Some((text, generated)) = documents(root, &tree) else { return Ok(()) };
    if text != generated { std::fs::write(root.join(DOCUMENT), generated).context(DOCUMENT) } else { Ok(()) }
}

/// A violation if the table is not that of the kept run.
pub(crate) fn check(root: &Path, tree: &Tree) -> Vec<Violation> {
    let message = match documents(root, tree) {
        Some((text, generated)) if text == generated => return Vec::new(),
        Some(_) => format!("the table is not that of {FOLDER}/availability.toml: `cargo xtask tidy --accept`"),
        None => format!("no table between {} and {}", BEGIN.trim(), END.trim()),
    };
    vec![Violation::at(DOCUMENT, 0, message)]
}

/// The document, and the same with the table of the kept run.
fn documents(root: &Path, tree: &Tree) -> Option<(String, String)> {
    let of = |path: &str| tree.files.iter().find(|file| file.path == path).map(|file| file.text.clone());
    let text = of(DOCUMENT)?;
    let (before, rest) = text.split_once(BEGIN)?;
    let (table, after) = rest.split_once(END)?;
    let kept = of(&format!("{FOLDER}/availability.toml")).and_then(|text| toml::from_str::<Kept>(&text).ok())?;
    // Without a history a mark cannot be judged.
    let present = || table.lines().find(|line| line.starts_with(STALE)).map(str::to_owned);
    let mark = match History::open(root) {
        Ok(history) => history.stale_since(&kept.commit, JUDGES).map(|(_, since)| stale_mark(&since)),
        Err(_) => present(),
    };
    let generated = format!("{before}{BEGIN}\n{}\n{END}{after}", generate(&kept, mark.as_deref()));
    Some((text.clone(), generated))
}

fn generate(kept: &Kept, mark: Option<&str>) -> String {
    let mut lines = vec![format!("`{}`: the release build, commit {}, {}.", kept.command, kept.commit, kept.date)];
    lines.extend(missed(&kept.result).map(|tests| format!("**Bounds missed in this run:** `{tests}`.")));
    lines.extend(mark.map(str::to_owned));
    lines.push(String::new());
    lines.push(
        "| resource | a stranger may take | a proven source | a user | what others still get | measured |".into(),
    );
    lines.push("|---|---|---|---|---|---|".into());
    lines.extend(ROWS.iter().map(|row| {
        let values: Vec<&str> =
            kept.measured.iter().filter(|value| value.row == row.name).map(|value| value.value.as_str()).collect();
        let measured = if values.is_empty() { "not measured yet".to_owned() } else { values.join("<br>") };
        let tests = row.tests.iter().chain(row.engine_tests).map(|test| format!("`{test}`")).collect::<Vec<_>>();
        let resource = format!("{} ({})", row.name, tests.join(", "));
        let cells = [&resource, row.stranger, row.source, row.user, row.bound, &measured.replace('|', "\\|")];
        format!("| {} |", cells.join(" | "))
    }));
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(measured: &[(&str, &str)]) -> Kept {
        Kept {
            command: "cargo xtask qualify availability".to_owned(),
            commit: "ab".to_owned(),
            date: "2026-11-29".to_owned(),
            seconds: 1,
            result: String::new(),
            measured: values(measured),
        }
    }

    fn values(measured: &[(&str, &str)]) -> Vec<Measured> {
        measured.iter().map(|(row, value)| Measured { row: (*row).to_owned(), value: (*value).to_owned() }).collect()
    }

    #[test]
    fn a_row_has_all_of_its_values_or_says_that_there_is_none() {
        let text = generate(&kept(&[("HTTP", "20 of 20"), ("reload", "a|b"), ("reload", "c")]), Some("Stale since x."));
        assert!(
            text.starts_with("`cargo xtask qualify availability`: the release build, commit ab, 2026-11-29.\nStale")
        );
        let row = |name: &str| text.lines().find(|line| line.starts_with(&format!("| {name} ("))).unwrap();
        assert!(row("HTTP").ends_with(" | 20 of 20 |"), "{text}");
        assert!(row("reload").ends_with(" | a\\|b<br>c |"), "{text}");
        assert!(row("one request").ends_with(" | not measured yet |"), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("| ")).count(), 1 + ROWS.len());
    }

    #[test]
    fn a_run_that_misses_a_bound_says_which() {
        let text = "measured HTTP: 1\n 19/33\nspray::six --- FAILED\n\n..\ntest result: FAILED. 32 passed; 1 failed\n";
        let result = summary(text).unwrap();
        assert_eq!(result, "test result: FAILED. 32 passed; 1 failed; missed: spray::six");
        let table = generate(&Kept { result, ..kept(&[]) }, None);
        assert!(table.contains("\n**Bounds missed in this run:** `spray::six`.\n"), "{table}");
        assert_eq!(
            summary("test result: ok. 33 passed\n").as_deref().map(|it| (it, missed(it))),
            Some(("test result: ok. 33 passed", None))
        );
        assert_eq!(summary("cargo"), None);
    }

    #[test]
    fn a_run_without_a_value_for_a_row_or_with_one_for_none_is_an_error() {
        let all: Vec<_> = ROWS.iter().map(|row| (row.name, "1")).collect();
        assert!(require_values(&values(&all)).is_ok());
        let error = |measured: &[(&str, &str)]| require_values(&values(measured)).unwrap_err().to_string();
        assert!(error(&all[1..]).contains(all[0].0));
        assert!(error(&[&all[..], &[("weather", "1")]].concat()).contains("weather"));
    }

    #[test]
    fn a_value_is_a_line_that_a_test_prints() {
        let read = |line| Measured::of_line(line).map(|it| (it.row, it.value));
        assert_eq!(read("measured HTTP: 20 of 20: all"), Some(("HTTP".to_owned(), "20 of 20: all".to_owned())));
        assert_eq!(read("test result: ok. 24 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out"), None);
    }

    /// No row without a test that measures it, and no test that measures for no row.
    #[test]
    fn rows_are_those_that_tests_measure() {
        let tree = Tree::read(&crate::workspace_root()).unwrap();
        let tests = tree.rust().filter(|file| file.path.starts_with("crates/") && file.is_tests());
        let calls = tests.flat_map(|file| file.text.split("measured(").skip(1));
        let literals = calls.filter_map(|rest| rest.trim_start().strip_prefix('"'));
        let mut measured: Vec<_> = literals.map(|rest| rest.split('"').next().unwrap()).collect();
        measured.sort_unstable();
        measured.dedup();
        let mut rows: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        rows.sort_unstable();
        assert_eq!(measured, rows);
    }
}
