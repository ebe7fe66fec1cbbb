//! The cargo features of the program: each builds alone, and the operator's build holds nothing of the others.

use std::collections::BTreeSet;

use super::Workplace;
use super::suites::one;
use crate::tally::{Outcome, Tally};

/// Features, and sets of them, that users build.
const BUILDS: [&str; 8] = ["turn", "turn-postgres", "turn-redis", "turn-sqlite", "market", "risk", "simulate", "bench"];
/// Crates of a program that follows venues with `market-feed`, itself included, at most.
const FEED_CRATES_MAX: usize = 78;
/// Crates that such a program must not contain: command line, HTTP server, plots, elliptic curves.
const NOT_FEEDS: [&str; 5] = ["clap", "axum", "plotters", "p256", "x509-cert"];
/// Crates that an operator's build must not contain: WebSocket clients, plots, benches, simulated venues, market code,
/// tables of Unicode for names of hosts in URLs, which Cargo.lock leaves out by the version of idna_adapter.
const NOT_OPERATORS: [&str; 9] = [
    "tungstenite",
    "plotters",
    "bench",
    "bench-report",
    "sim",
    "tt-venue",
    "tt-market",
    "market-feed",
    "icu_normalizer",
];

pub(super) fn run(place: &Workplace) -> Outcome {
    let mut tally = Tally::default();
    for feature in BUILDS {
        let name = format!("features {feature}");
        let arguments =
            ["clippy", "--locked", "--package", "truetick", "--bin", "truetick", "--no-default-features", "--features"];
        let mut command = place.steps.command("cargo", &arguments);
        command.args([feature, "--", "-D", "warnings"]);
        if let Outcome::Ran(ran) = one(place, &name, &mut command) {
            tally.add(ran);
        }
    }
    tally.add(operators_tree(place));
    tally.add(feeds_tree(place));
    Outcome::Ran(tally)
}

fn operators_tree(place: &Workplace) -> Tally {
    let databases = "turn-postgres,turn-redis,turn-sqlite";
    let arguments = ["tree", "--locked", "--package", "truetick", "--no-default-features", "--features", databases];
    let mut command = place.steps.command("cargo", &arguments);
    let finished = place.steps.finish("features tree", command.args(["--edges", "normal", "--prefix", "none"]));
    let names = || finished.output.lines().filter_map(|line| line.split(' ').next());
    if !finished.succeeded() || !names().any(|name| name == "turn-server") {
        return Tally::fail("the operator's build has no dependency tree");
    }
    match names().find(|name| NOT_OPERATORS.contains(name)) {
        Some(name) => Tally::fail(format!("the operator's build contains {name}")),
        None => Tally::pass(),
    }
}

fn feeds_tree(place: &Workplace) -> Tally {
    let arguments = ["tree", "--locked", "--package", "market-feed", "--edges", "normal", "--prefix", "none"];
    let finished = place.steps.finish("feeds tree", &mut place.steps.command("cargo", &arguments));
    let crates: BTreeSet<(&str, &str)> = finished
        .output
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            words.next().zip(words.next().filter(|version| version.starts_with('v')))
        })
        .collect();
    if !finished.succeeded() || !crates.iter().any(|known| known.0 == "tt-market") {
        return Tally::fail("market-feed has no dependency tree");
    }
    if let Some((name, _)) = crates.iter().find(|known| NOT_FEEDS.contains(&known.0)) {
        return Tally::fail(format!("market-feed contains {name}"));
    }
    let len = crates.len();
    if len > FEED_CRATES_MAX {
        return Tally::fail(format!("market-feed needs {len} crates, at most {FEED_CRATES_MAX}"));
    }
    Tally::pass()
}
