//! The suites, in the order that lets each use what the ones before it built.

use std::path::Path;
use std::process::Command;

use super::binaries::Group;
use super::tools::note;
use super::{
    Workplace, aarch64, corpora, examples, features, object, old_kernel, packages, python, sanitizers, shared_sockets,
    weaken,
};
use crate::conformance::{Run, judge};
use crate::programs::has_cargo_command;
use crate::tally::{Outcome, Tally};

/// One part of the tests, selected by name or tier.
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) tier: Tier,
    /// Its failures are part of the verdict; otherwise they are printed only.
    pub(crate) is_required: bool,
    pub(crate) run: fn(&Workplace) -> Outcome,
}

/// Which command runs a suite that is not named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tier {
    /// `cargo xtask test` and `cargo xtask test --all`.
    Short,
    /// `cargo xtask test --all` only.
    Full,
    /// None: it runs for long, and `cargo xtask qualify` keeps its result.
    Named,
}

const fn short(name: &'static str, about: &'static str, run: fn(&Workplace) -> Outcome) -> Suite {
    Suite { name, about, tier: Tier::Short, is_required: true, run }
}

const fn full(name: &'static str, about: &'static str, run: fn(&Workplace) -> Outcome) -> Suite {
    Suite { name, about, tier: Tier::Full, is_required: true, run }
}

const fn named(name: &'static str, about: &'static str, run: fn(&Workplace) -> Outcome) -> Suite {
    Suite { name, about, tier: Tier::Named, is_required: true, run }
}

const fn reported(suite: Suite) -> Suite {
    Suite { is_required: false, ..suite }
}

/// Every suite.
pub(crate) const SUITES: &[Suite] = &[
    short("fmt", "rustfmt has nothing to change", fmt),
    short("tidy", "dependencies, module cycles, unsafe, budgets, names, words, figures", tidy),
    full("clippy", "no lint fires on any target", clippy),
    full("features", "each cargo feature builds alone", features::run),
    full("bpf", "the committed BPF objects are what the recorded compiler makes", object::run),
    full("docs", "the documentation builds without a warning", docs),
    short("unit", "tests inside of libraries and programs", |place| group(place, Group::Unit)),
    short("integration", "tests in tests folders: engines, captures, the whole program", integration),
    short("examples", "examples in the documentation, and as programs", examples::run),
    full("recipes", "the recipe for a venue, followed word by word", |place| group(place, Group::Recipes)),
    full("clients", "TURN clients of others relay: turnutils_uclient, aioice, Chromium", clients),
    full("shared-sockets", "tests of relays with one socket for all of a worker", shared_sockets::run),
    full("old-kernel", "the kernel path's program in Linux 6.1, in an emulated machine", old_kernel::run),
    full("go-client", "pion's client relays", |place| group(place, Group::Go)),
    full("browser", "a browser clicks through the page", browser),
    full("no-os", "base and engines build for x86_64-unknown-none", no_os),
    full("aarch64", "type check for aarch64 Linux", aarch64::check),
    full("emulated", "tests of the ring and the cell for 64-bit Arm, under QEMU", aarch64::emulated),
    full("assembly", "acquire and release instructions of the ring and the cell on 64-bit Arm", aarch64::assembly),
    full("asan", "bad addresses and leaks in crates with unsafe code, and in the TURN server", sanitizers::asan),
    full("turn-relay", "the rivals' load generator type-checks", turn_relay),
    full("corpora", "lines of its module that each fuzz target's corpus reaches", corpora),
    full("optimised", "tests about machine code and long runs, in the release profile", optimised),
    full("worlds", "300 seeds of each world; debug and optimised builds agree", examples::worlds),
    full("counts", "instructions of each row against the kept ones", counts),
    full("recordings", "committed recordings through the shipped program", recordings),
    full("packages", "the static program and the Debian package, as their users would try them", packages::run),
    full("site", "the documentation site: mdBook, and every link of its pages", packages::site),
    full("python", "the Python module: pip install, mypy --strict, pytest", python::run),
    full("loom", "orderings of the ring and the cell, every interleaving", loom),
    full("weaken", "each of those orderings, weakened, makes a proof fail", weaken),
    named(
        "weak-memory",
        "1,000 seeds of litmus programs under Miri, and each of those orderings weakened",
        weak_memory,
    ),
    full("shuttle", "parked ends of the ring, random schedules", shuttle),
    full("miri", "undefined behaviour in the ring, the cell and wide instructions", sanitizers::miri),
    full("tsan", "data races in the ring and the cell", sanitizers::tsan),
    full("bench", "every published row, quickly", bench),
    reported(full("machine", "tests that judge the machine: stalls, times, placement", machine)),
    short("conformance", "the tests of each id of rfc.toml, cases.toml and faults.toml passed", conformance),
    full("ring-rivals", "the rivals' bench of queues: its own tests", ring_rivals),
    full("deny", "licences, sources and bans of the dependencies", deny),
];

/// Package, integration test and filter of what is worth a run in the release profile.
const OPTIMISED: &[(&str, &str, &str)] = &[
    ("tt-market", "cases", "case_m34"),
    ("tt-path", "paths", "program_agrees"),
    ("tt-risk", "branches", ""),
    ("tt-sync", "items", ""),
    ("tt-turn", "engine", "capacity"),
];
/// All packages of both lists: selected together in each run, so that their dependencies are built once.
const RELEASE_PACKAGES: [&str; 5] = ["tt-market", "tt-path", "tt-risk", "tt-sync", "tt-turn"];
/// Package, integration test and module of what judges times in the release profile.
const TIMED: &[(&str, &str, &str)] = &[("tt-market", "cases", "speed::"), ("tt-turn", "engine", "timing::")];
/// Crates that build without an OS.
const NO_OS: &[&str] = &["tt-model", "tt-meter", "tt-sync", "tt-simd", "tt-turn", "tt-venue", "tt-market", "tt-risk"];
const NO_OS_TARGET: &str = "x86_64-unknown-none";

/// Exit status of a command that had nothing to check, and of one that could not finish on this machine.
const NOT_CHECKED: [i32; 2] = [2, 3];

/// A command that is one test.
pub(super) fn one(place: &Workplace, name: &str, command: &mut Command) -> Outcome {
    let finished = place.steps.finish(name, command);
    let last = finished.output.lines().last().unwrap_or_default();
    if let Some(skip) = finished.output.lines().find_map(|line| line.strip_prefix("SKIP ")) {
        return Outcome::Skipped(skip.to_owned());
    }
    if finished.succeeded() {
        return Outcome::Ran(Tally::pass());
    }
    if finished.status.and_then(|status| status.code()).is_some_and(|code| NOT_CHECKED.contains(&code)) {
        return Outcome::Skipped(last.to_owned());
    }
    finished.show_tail();
    Outcome::Ran(Tally::fail(format!("{name}: {last}")))
}

/// A command that runs libtest.
pub(super) fn libtest(place: &Workplace, name: &str, command: &mut Command) -> Outcome {
    let finished = place.steps.finish(name, command);
    let mut tally = Tally::of_libtest(&finished.output, &finished.skips, name);
    if !finished.succeeded() {
        finished.show_tail();
        if tally.failed == 0 {
            tally.add(Tally::fail(name));
        }
    }
    Outcome::Ran(tally)
}

/// rustfmt does not find the modules that the macro `venues!` declares, so their files are arguments.
fn fmt(place: &Workplace) -> Outcome {
    let venues = std::fs::read_dir(place.steps.root.join("crates/tt-venue/src/venues"));
    let entries = venues.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut command = place.steps.command("cargo", &["fmt", "--all", "--check", "--"]);
    command.args(entries.filter(|path| path.extension().is_some_and(|extension| extension == "rs")));
    one(place, "fmt", &mut command)
}

fn tidy(place: &Workplace) -> Outcome {
    match crate::tidy::violations(&place.steps.root) {
        Ok(violations) if violations.is_empty() => Outcome::Ran(Tally::pass()),
        Ok(violations) => {
            for violation in &violations {
                println!("      | {violation}");
            }
            Outcome::Ran(Tally::fail("tidy"))
        }
        Err(error) => Outcome::Ran(Tally::fail(format!("tidy: {error:#}"))),
    }
}

fn clippy(place: &Workplace) -> Outcome {
    let arguments = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    one(place, "clippy", &mut place.steps.command("cargo", &arguments))
}

fn docs(place: &Workplace) -> Outcome {
    let mut command = place.steps.command("cargo", &["doc", "--workspace", "--no-deps", "--locked"]);
    one(place, "docs", command.env("RUSTDOCFLAGS", "-D warnings"))
}

fn integration(place: &Workplace) -> Outcome {
    let same = ["bpftool", "ethtool", "haproxy", "openssl", "python3", "tcpdump"].map(|name| (name, name));
    let others = [("nft", "nftables"), ("fail2ban-regex", "fail2ban"), ("promtool", "prometheus")];
    let more = [("systemd-socket-activate", "systemd"), ("turnutils_uclient", "coturn"), ("setpriv", "util-linux")];
    // The tutorials open the page.
    let last = [("chromium", "chromium"), ("qemu-x86_64-static", "qemu-user-static")];
    for (program, package) in same.into_iter().chain(others).chain(more).chain(last) {
        note(place.bring_program(program, package));
    }
    note(place.bring_npm());
    group(place, Group::Integration)
}

fn group(place: &Workplace, group: Group) -> Outcome {
    group_with(place, group, None)
}

/// Tests of the whole program use `program`, or the one of their build.
fn group_with(place: &Workplace, group: Group, program: Option<&Path>) -> Outcome {
    Outcome::Ran(match place.binaries() {
        Ok(binaries) => match binaries.run(&place.steps, group, program) {
            // Tests that moved away must not leave a suite that is green without a test.
            tally if tally == Tally::default() => Tally::fail("no test belongs to the suite"),
            tally => tally,
        },
        Err(error) => Tally::fail(error),
    })
}

/// The tests themselves record what they skip.
fn clients(place: &Workplace) -> Outcome {
    for absent in [
        place.bring_program("turnutils_uclient", "coturn"),
        place.bring_program("pg_ctlcluster", "postgresql"),
        place.bring_program("redis-server", "redis-server"),
        place.bring_program("sqlite3", "sqlite3"),
        place.bring_program("chromium", "chromium"),
        place.bring_program("certutil", "libnss3-tools"),
        place.bring_python(),
        place.bring_npm(),
    ] {
        note(absent);
    }
    group(place, Group::Clients)
}

fn browser(place: &Workplace) -> Outcome {
    note(place.bring_program("chromium", "chromium"));
    note(place.bring_npm());
    // Several pages at once, each of simulated markets: the servers of a debug build would take all of both cores.
    match place.program() {
        Ok(program) => group_with(place, Group::Browser, Some(program)),
        Err(error) => Outcome::Ran(Tally::fail(error)),
    }
}

fn turn_relay(place: &Workplace) -> Outcome {
    rivals(place, "turn", |manifest| {
        let arguments = ["check", "--locked", "--all-targets", "--target-dir", "target", "--manifest-path", manifest];
        one(place, "turn-relay", &mut place.steps.command("cargo", &arguments))
    })
}

fn ring_rivals(place: &Workplace) -> Outcome {
    rivals(place, "ring", |manifest| {
        let arguments = ["test", "--locked", "--target-dir", "target", "--manifest-path", manifest];
        libtest(place, "ring-rivals", &mut place.steps.command("cargo", &arguments))
    })
}

/// The rivals' workspaces have dependencies of their own, which may not have been downloaded. In the folder of the
/// workspace's builds they find the dependencies that both have.
fn rivals(place: &Workplace, name: &str, run: impl Fn(&str) -> Outcome) -> Outcome {
    let manifest = format!("tools/rivals/{name}/Cargo.toml");
    let fetch = ["fetch", "--locked", "--manifest-path", &manifest];
    let fetched = place.steps.finish(&format!("fetch {name}"), &mut place.steps.command("cargo", &fetch));
    // An outdated lock file is a failure, which the suite's own command shows.
    if !fetched.succeeded() && !fetched.output.contains("because --locked was passed") {
        return Outcome::Skipped("the rivals' dependencies cannot be downloaded".to_owned());
    }
    run(&manifest)
}

/// The crates of `wanted` that the workspace has.
pub(super) fn present<'a>(place: &Workplace, wanted: &[&'a str]) -> Vec<&'a str> {
    wanted
        .iter()
        .copied()
        .filter(|name| place.steps.root.join("crates").join(name).join("Cargo.toml").exists())
        .collect()
}

fn no_os(place: &Workplace) -> Outcome {
    if let Err(reason) = place.bring_target(NO_OS_TARGET) {
        return Outcome::Skipped(reason);
    }
    let mut command = place.steps.command("cargo", &["build", "--locked", "--target", NO_OS_TARGET]);
    for name in present(place, NO_OS) {
        command.args(["--package", name]);
    }
    one(place, "no-os", &mut command)
}

/// In a separate target folder: other flags in the main one would rebuild everything.
fn loom(place: &Workplace) -> Outcome {
    let arguments = ["test", "--profile", "checked", "--locked", "--package", "tt-sync", "--lib"];
    let mut command = place.steps.command("cargo", &arguments);
    command.args(["--target-dir", "target/loom", "--", "--show-output"]);
    libtest(place, "loom", command.env("RUSTFLAGS", "--cfg loom"))
}

fn shuttle(place: &Workplace) -> Outcome {
    let arguments = ["test", "--profile", "checked", "--locked", "--package", "tt-sync", "--lib"];
    let mut command = place.steps.command("cargo", &arguments);
    command.args(["--target-dir", "target/shuttle", "--", "--show-output"]);
    libtest(place, "shuttle", command.env("RUSTFLAGS", "--cfg shuttle"))
}

fn weaken(place: &Workplace) -> Outcome {
    Outcome::Ran(weaken::by_loom(place).unwrap_or_else(|error| Tally::fail(format!("weaken: {error:#}"))))
}

fn weak_memory(place: &Workplace) -> Outcome {
    weaken::miri::run(place).unwrap_or_else(|error| Outcome::Ran(Tally::fail(format!("weak-memory: {error:#}"))))
}

fn corpora(place: &Workplace) -> Outcome {
    if let Err(reason) = place.bring_component("llvm-tools") {
        return Outcome::Skipped(reason);
    }
    Outcome::Ran(corpora::run(place).unwrap_or_else(|error| Tally::fail(format!("corpora: {error:#}"))))
}

fn optimised(place: &Workplace) -> Outcome {
    note(place.bring_program("objdump", "binutils"));
    Outcome::Ran(in_release(place, OPTIMISED))
}

/// Runs tests in the release profile; conformance knows them by their package.
fn in_release(place: &Workplace, tests: &[(&str, &str, &str)]) -> Tally {
    let mut tally = Tally::default();
    for (package, test, filter) in tests {
        let mut command = place.steps.command("cargo", &["test", "--release", "--locked"]);
        command.args(RELEASE_PACKAGES.iter().flat_map(|package| ["--package", package]));
        command.args(["--test", test, "--", "--show-output", filter]);
        let name = format!("{package} tests/{test} in release");
        if let Outcome::Ran(ran) = libtest(place, &name, &mut command) {
            tally.add(ran);
        }
    }
    tally
}

fn counts(place: &Workplace) -> Outcome {
    shipped(place, "counts", &["bench", "count", "--check", "bench/counts"])
}

/// The hashes in the recording are of a debug build; the shipped program has to reach the same.
fn recordings(place: &Workplace) -> Outcome {
    let mut tally = Tally::default();
    for (name, arguments) in [
        ("replay", &["replay", "tools/testkit/recordings/simulator.ttj"][..]),
        (
            "audit",
            &[
                "audit",
                "tools/testkit/recordings/simulator.ttj",
                "tools/testkit/recordings/kraken_btcusd_depth25.cbcap",
            ],
        ),
    ] {
        if let Outcome::Ran(ran) = shipped(place, name, arguments) {
            tally.add(ran);
        }
    }
    Outcome::Ran(tally)
}

fn bench(place: &Workplace) -> Outcome {
    shipped(place, "bench", &["bench", "all", "--quick", "--force"])
}

fn shipped(place: &Workplace, name: &str, arguments: &[&str]) -> Outcome {
    match place.program() {
        Ok(program) => one(place, name, &mut place.steps.command(&program.to_string_lossy(), arguments)),
        Err(error) => Outcome::Ran(Tally::fail(error)),
    }
}

/// Tests of the test binaries that judge the machine, and the ring's control with a known delay.
fn machine(place: &Workplace) -> Outcome {
    let mut tally = match group(place, Group::Machine) {
        Outcome::Ran(tally) => tally,
        Outcome::Skipped(_) => Tally::default(),
    };
    tally.add(in_release(place, TIMED));
    let folder = place.steps.root.join("target/xtask/ring-control");
    match place.program() {
        Ok(program) => {
            let mut command = place.steps.command(&program.to_string_lossy(), &["bench", "ring", "--quick", "--out"]);
            let finished = place.steps.finish("ring-control", command.arg(&folder).arg("--force"));
            tally.add(if finished.succeeded() { Tally::pass() } else { Tally::fail("bench ring --quick") });
            tally.add(controls(&std::fs::read(folder.join("ring.json")).unwrap_or_default()));
        }
        Err(error) => tally.add(Tally::fail(error)),
    }
    Outcome::Ran(tally)
}

/// Judges whether a known delay after the evaluator moves the median by its length.
fn controls(ring_json: &[u8]) -> Tally {
    let ring: serde_json::Value = serde_json::from_slice(ring_json).unwrap_or_default();
    let mut tally = Tally::default();
    for references in ring["references"].as_array().into_iter().flatten() {
        let controls = references["controls"].as_array().into_iter().flatten();
        for control in controls.filter(|control| control["name"] == "delay_added") {
            let name = format!("{} in placement {}", control["name"], references["class"]);
            tally.add(if control["is_met"] == true { Tally::pass() } else { Tally::fail(name) });
        }
    }
    tally
}

/// Judges the suites that ran before it in the same command.
fn conformance(place: &Workplace) -> Outcome {
    let runs = place.runs.borrow();
    if runs.is_empty() {
        return Outcome::Skipped("it judges the suites unit, integration and clients of the same command".to_owned());
    }
    let run = Run { tests: &runs, is_complete: place.is_complete };
    match crate::tree::Tree::read(&place.steps.root).and_then(|tree| judge(&tree, &run)) {
        Ok(judgement) => {
            println!("      {} ids settled", judgement.settled);
            place.exceptions.borrow_mut().extend(judgement.exceptions);
            let mut tally = if judgement.unmet.is_empty() { Tally::pass() } else { Tally::default() };
            judgement.unmet.into_iter().for_each(|unmet| tally.add(Tally::fail(unmet)));
            tally.skipped.extend(judgement.skipped);
            Outcome::Ran(tally)
        }
        Err(error) => Outcome::Ran(Tally::fail(format!("conformance: {error:#}"))),
    }
}

fn deny(place: &Workplace) -> Outcome {
    if !has_cargo_command(&place.steps.root, "deny") {
        return Outcome::Skipped("cargo-deny is not installed (cargo install cargo-deny)".to_owned());
    }
    one(place, "deny", &mut place.steps.command("cargo", &["deny", "check", "bans", "licenses", "sources"]))
}
