//! The page that maps rules to reasons and tests names every reason, and only reasons and tests that exist.

use std::collections::BTreeSet;
use tt_model::Breach;

const PAGE: &str = include_str!("../../../../docs/risk-rules.md");
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
fn every_reason_of_the_page_and_every_test_exists() {
    let tests: BTreeSet<_> = SOURCES
        .iter()
        .flat_map(|source| source.split("#[test]").skip(1))
        .filter_map(|after| after.split_once("fn ")?.1.split_once('('))
        .map(|(name, _)| name)
        .collect();
    assert!(tests.len() > 60, "{}", tests.len());
    let reasons: BTreeSet<_> = Breach::NAMES.iter().map(|(name, _)| *name).collect();
    let named: Vec<_> = quoted(PAGE).collect();
    assert!(named.len() > 80, "{}", named.len());
    for name in named {
        let is_reason = name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_');
        let known = if is_reason { &reasons } else { &tests };
        assert!(known.contains(name), "there is no `{name}`");
    }
    let (_, list) = PAGE.split_once("## Reasons").expect("a list of reasons");
    let entries: Vec<_> = list.split("\n- ").skip(1).collect();
    let reason = |entry: &&str| entry.split_once(": `").map(|(name, _)| name.to_owned());
    let listed: Vec<_> = entries.iter().filter_map(reason).collect();
    assert_eq!(listed, Breach::NAMES.iter().map(|(name, _)| *name).collect::<Vec<_>>(), "each reason, by bit");
    for entry in entries {
        let words = entry.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in ["; equal: ", "; missing: "] {
            let (_, value) = words.split_once(part).expect("both columns");
            assert!(["`", "same", "–"].iter().any(|form| value.starts_with(form)), "{words}");
        }
    }
}
