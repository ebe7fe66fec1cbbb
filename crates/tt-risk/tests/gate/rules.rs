//! The page that maps rules to reasons and tests names only those that exist, and the list of cases has every reason.

use std::collections::BTreeSet;
use tt_model::Breach;

const PAGE: &str = include_str!("../../../../docs/risk-rules.md");
const CASES: &str = include_str!("../../../../cases.toml");
const SOURCES: [&str; 6] = [
    include_str!("cases.rs"),
    include_str!("isolation.rs"),
    include_str!("judged.rs"),
    include_str!("life.rs"),
    include_str!("tree.rs"),
    include_str!("../../../truetick/tests/program/gate_control.rs"),
];

/// Words in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn each_reason_and_test_of_the_page_exists() {
    let tests: BTreeSet<_> = SOURCES
        .iter()
        .flat_map(|source| source.split("#[test]").skip(1))
        .filter_map(|after| after.split_once("fn ")?.1.split_once('('))
        .map(|(name, _)| name)
        .collect();
    assert!(tests.len() > 60, "{}", tests.len());
    let reasons: BTreeSet<_> = Breach::NAMES.iter().map(|(name, _)| *name).collect();
    let named: Vec<_> = quoted(PAGE).collect();
    assert!(named.len() > 40, "{}", named.len());
    for name in named {
        let is_reason = name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_');
        let known = if is_reason { &reasons } else { &tests };
        assert!(known.contains(name), "there is no `{name}`");
    }
}

#[test]
fn each_reason_is_in_the_list_of_cases_under_its_bit() {
    let section = |line: &'static str| line.strip_prefix("section = \"reason ")?.strip_suffix('"');
    let listed: Vec<_> = CASES.lines().filter_map(section).collect();
    let reasons: Vec<_> =
        Breach::NAMES.iter().map(|(name, reason)| format!("{} {name}", reason.0.trailing_zeros())).collect();
    assert_eq!(listed, reasons);
    for key in ["breached", "equal", "missing"] {
        assert_eq!(CASES.matches(&format!("\n{key} = ")).count(), reasons.len(), "{key}");
    }
}
