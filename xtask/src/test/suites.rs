//! The suites, in the order that lets each use what the ones before it built.

use std::process::Command;

use super::binaries::Group;
use super::tally::{Outcome, Tally};
use super::tools;
use super::{Workplace, corpora, decomposition, weaken};

/// One part of the tests that can be asked for by name.
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// May be skipped in CI: it needs what not every machine can have.
    pub(crate) optional: bool,
    pub(crate) run: fn(&Workplace) -> Outcome,
}

const fn suite(name: &'static str, about: &'static str, run: fn(&Workplace) -> Outcome) -> Suite {
    Suite { name, about, optional: false, run }
}

const fn optional(name: &'static str, about: &'static str, run: fn(&Workplace) -> Outcome) -> Suite {
    Suite { name, about, optional: true, run }
}

/// Every suite.
pub(crate) const SUITES: &[Suite] = &[
    suite("fmt", "rustfmt has nothing to change", fmt),
    suite("tidy", "edges, unsafe, budgets, names, figures", tidy),
    suite("clippy", "no lint speaks, all targets", clippy),
    suite("docs", "the documentation builds without a warning", docs),
    suite("unit", "tests inside of libraries and programs", |place| group(place, Group::Unit)),
    suite("integration", "tests beside them, captures and whole binary", integration),
    suite("examples", "examples in the documentation", examples),
    suite("clients", "real TURN clients relay: turnutils_uclient, aioice, Chromium", clients),
    optional("go-client", "pion's client relays, where Go is new enough", |place| group(place, Group::Go)),
    suite("browser", "a browser clicks through the page", browser),
    optional("no-os", "floor and engines build for x86_64-unknown-none", no_os),
    optional("aarch64", "type check for aarch64 Linux", aarch64),
    suite("loom", "orderings of the ring and the cell, every interleaving", loom),
    suite("weaken", "each of those orderings, weakened, makes a proof fail", weaken),
    suite("shuttle", "parked ends of the ring, schedules drawn at random", shuttle),
    optional("miri", "undefined behaviour in the ring, the cell and wide instructions", miri),
    optional("tsan", "data races in the ring and the cell", tsan),
    optional("asan", "bad addresses and leaks in what holds unsafe code, and in the server", asan),
    optional("corpora", "lines of its module that each fuzz target's corpus reaches", corpora),
    suite("optimised", "tests about machine code and long runs, in the release profile", optimised),
    suite("worlds", "300 seeds of each world; debug and release tell one story", worlds),
    optional("counts", "instructions of each row against the kept ones", counts),
    suite(
        "recordings",
        "committed recordings through the shipped engine: the states of the debug build, nothing wrong",
        recordings,
    ),
    suite("bench", "every published row, quickly", bench),
    optional("decomposition", "the ring's median is the sum of its parts", decomposition::run),
    suite(
        "conformance",
        "each id of rfc.toml, cases.toml and faults.toml has its tests passed in this run",
        conformance,
    ),
    optional("turn-relay", "the load generator beside the workspace type-checks", turn_relay),
    optional("ring-rivals", "the bench of queues beside the workspace: its own tests", ring_rivals),
    optional("deny", "licences, sources and bans of the dependencies", deny),
];

/// Package, integration test and filter of what is worth a run in the release profile.
const OPTIMISED: &[(&str, &str, &str)] = &[
    ("tt-market", "cases", "case_m22_a_megabyte"),
    ("tt-market", "cases", "case_m34"),
    ("tt-risk", "branches", ""),
    ("tt-sync", "items", ""),
    ("tt-turn", "engine", "capacity"),
    ("tt-turn", "engine", "timing"),
];
/// What the address sanitizer watches: every crate with unsafe code, and the engine that strangers talk to.
const SANITIZED: &[&str] = &["tt-meter", "tt-sync", "tt-simd", "tt-os", "tt-net", "tt-turn"];
/// What builds without an OS.
const NO_OS: &[&str] = &["tt-model", "tt-meter", "tt-sync", "tt-simd", "tt-turn", "tt-market", "tt-risk"];
const NO_OS_TARGET: &str = "x86_64-unknown-none";
const AARCH64_TARGET: &str = "aarch64-unknown-linux-gnu";
/// What stands on TLS, and with it on C.
const ON_TLS: &[&str] = &["tt-net", "sim", "fuzz", "truetick", "xtask"];
const AARCH64_COMPILER: &str = "aarch64-linux-gnu-gcc";
const HOST_TARGET: &str = "x86_64-unknown-linux-gnu";

/// A command that is one test: it passes, it fails, or it says that it skips.
fn one(place: &Workplace, name: &str, command: &mut Command) -> Outcome {
    let finished = place.finish(name, command);
    if !finished.succeeded() {
        finished.show_tail();
        return Outcome::Ran(Tally::fail(name));
    }
    let skips = Tally::of_libtest(&finished.output, name);
    Outcome::Ran(if skips.skipped.is_empty() { Tally::pass() } else { skips })
}

/// A command that runs libtest.
fn libtest(place: &Workplace, name: &str, command: &mut Command) -> Outcome {
    let finished = place.finish(name, command);
    let mut tally = Tally::of_libtest(&finished.output, name);
    if !finished.succeeded() {
        finished.show_tail();
        if tally.failed == 0 {
            tally.add(Tally::fail(name));
        }
    }
    Outcome::Ran(tally)
}

fn fmt(place: &Workplace) -> Outcome {
    one(place, "fmt", &mut place.command("cargo", &["fmt", "--all", "--check"]))
}

fn tidy(place: &Workplace) -> Outcome {
    match crate::tidy::faults(&place.root) {
        Ok(faults) if faults.is_empty() => Outcome::Ran(Tally::pass()),
        Ok(faults) => {
            for fault in &faults {
                println!("      | {fault}");
            }
            Outcome::Ran(Tally::fail("tidy"))
        }
        Err(error) => Outcome::Ran(Tally::fail(format!("tidy: {error:#}"))),
    }
}

fn clippy(place: &Workplace) -> Outcome {
    let arguments = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    one(place, "clippy", &mut place.command("cargo", &arguments))
}

fn docs(place: &Workplace) -> Outcome {
    let mut command = place.command("cargo", &["doc", "--workspace", "--no-deps", "--locked"]);
    one(place, "docs", command.env("RUSTDOCFLAGS", "-D warnings"))
}

/// The tests that need more than the machine has skip by name; the reason is told here.
fn integration(place: &Workplace) -> Outcome {
    note(place.bring_program("nft", "nftables"));
    group(place, Group::Integration)
}

fn group(place: &Workplace, group: Group) -> Outcome {
    Outcome::Ran(match place.binaries() {
        Ok(binaries) => match binaries.run(place, group) {
            // Tests that moved away must not leave a suite that is green for want of any.
            tally if tally == Tally::default() => Tally::fail("no test belongs to the suite"),
            tally => tally,
        },
        Err(error) => Tally::fail(error),
    })
}

fn examples(place: &Workplace) -> Outcome {
    let mut command = place.command("cargo", &["test", "--workspace", "--locked", "--doc", "--", "--show-output"]);
    libtest(place, "examples", &mut command)
}

/// The tests themselves skip by name what stays absent; the reason is told here.
fn clients(place: &Workplace) -> Outcome {
    for absent in [
        place.bring_program("turnutils_uclient", "coturn"),
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
    group(place, Group::Browser)
}

fn turn_relay(place: &Workplace) -> Outcome {
    let manifest = "bench/turn-relay/Cargo.toml";
    one(
        place,
        "turn-relay",
        &mut place.command("cargo", &["check", "--locked", "--all-targets", "--manifest-path", manifest]),
    )
}

fn ring_rivals(place: &Workplace) -> Outcome {
    libtest(
        place,
        "ring-rivals",
        &mut place.command("cargo", &["test", "--locked", "--manifest-path", "bench/ring/Cargo.toml"]),
    )
}

fn note(brought: Result<(), String>) {
    if let Err(reason) = brought {
        println!("      {reason}");
    }
}

/// The crates of `wanted` that the workspace has.
fn present<'a>(place: &Workplace, wanted: &[&'a str]) -> Vec<&'a str> {
    wanted.iter().copied().filter(|name| place.root.join("crates").join(name).join("Cargo.toml").exists()).collect()
}

fn no_os(place: &Workplace) -> Outcome {
    if let Err(reason) = place.bring_target(NO_OS_TARGET) {
        return Outcome::Skipped(reason);
    }
    let mut command = place.command("cargo", &["build", "--locked", "--target", NO_OS_TARGET]);
    for name in present(place, NO_OS) {
        command.args(["--package", name]);
    }
    one(place, "no-os", &mut command)
}

/// TLS compiles C, even for a type check: without a compiler for it, what stands on it is left out.
fn aarch64(place: &Workplace) -> Outcome {
    if let Err(reason) = place.bring_target(AARCH64_TARGET) {
        return Outcome::Skipped(reason);
    }
    let mut command = place.command("cargo", &["check", "--workspace", "--locked", "--target", AARCH64_TARGET]);
    if !tools::is_on_path(AARCH64_COMPILER) {
        let packages = "Debian packages gcc-aarch64-linux-gnu and libc6-dev-arm64-cross";
        println!("      without {}: {AARCH64_COMPILER} is absent ({packages})", ON_TLS.join(", "));
        command.args(ON_TLS.iter().flat_map(|name| ["--exclude", name]));
    }
    one(place, "aarch64", &mut command)
}

/// A target folder of its own: other flags in the main one would build everything anew.
fn loom(place: &Workplace) -> Outcome {
    let arguments = ["test", "--profile", "loom", "--locked", "--package", "tt-sync", "--lib"];
    let mut command = place.command("cargo", &arguments);
    command.args(["--target-dir", "target/loom", "--", "--show-output"]);
    libtest(place, "loom", command.env("RUSTFLAGS", "--cfg loom"))
}

fn shuttle(place: &Workplace) -> Outcome {
    let arguments = ["test", "--profile", "loom", "--locked", "--package", "tt-sync", "--lib"];
    let mut command = place.command("cargo", &arguments);
    command.args(["--target-dir", "target/shuttle", "--", "--show-output"]);
    libtest(place, "shuttle", command.env("RUSTFLAGS", "--cfg shuttle"))
}

fn weaken(place: &Workplace) -> Outcome {
    Outcome::Ran(weaken::run(place).unwrap_or_else(|error| Tally::fail(format!("weaken: {error:#}"))))
}

/// Few cases each: Miri interprets, some thousand times slower. Isolation would keep proptest from its own folder.
///
/// Everything once by stacked borrows, the ring and the cell again by tree borrows with threads that run until they wait,
/// and what has two threads once more under many schedules.
fn miri(place: &Workplace) -> Outcome {
    if let Err(reason) = place.bring_nightly("miri").and_then(|()| place.bring_nightly("rust-src")) {
        return Outcome::Skipped(reason);
    }
    let passes: [(&str, &[&str], &str, &[&str]); 3] = [
        ("miri", &["--package", "tt-sync", "--package", "tt-simd"], "", &[]),
        ("miri-tree", &["--package", "tt-sync"], "-Zmiri-tree-borrows -Zmiri-preemption-rate=0", &[]),
        (
            "miri-seeds",
            &["--package", "tt-sync"],
            "-Zmiri-tree-borrows -Zmiri-many-seeds=0..8",
            &["two_threads", "every_strategy"],
        ),
    ];
    let mut tally = Tally::default();
    for (name, packages, flags, filters) in passes {
        let mut command = place.command("cargo", &["+nightly", "miri", "test", "--lib", "--tests"]);
        command.args(packages).args(["--target-dir", "target/miri", "--", "--show-output"]).args(filters);
        command.env("MIRIFLAGS", format!("-Zmiri-strict-provenance -Zmiri-disable-isolation {flags}"));
        command.env("PROPTEST_CASES", "8");
        if cfg!(target_arch = "x86_64") {
            // What Miri cannot ask the processor for; the scalar twins are tried in any case.
            command.env("RUSTFLAGS", "-Ctarget-feature=+pclmulqdq,+ssse3,+sse4.1");
        }
        if let Outcome::Ran(ran) = libtest(place, name, &mut command) {
            tally.add(ran);
        }
    }
    Outcome::Ran(tally)
}

/// With a standard library that is instrumented too: without it, what libtest does between its threads looks like a race.
fn tsan(place: &Workplace) -> Outcome {
    if let Err(reason) = place.bring_nightly("rust-src") {
        return Outcome::Skipped(reason);
    }
    let arguments = ["+nightly", "test", "-Zbuild-std", "--locked", "--package", "tt-sync", "--lib", "--tests"];
    let mut command = place.command("cargo", &arguments);
    command.args(["--target", HOST_TARGET, "--target-dir", "target/tsan", "--", "--show-output"]);
    command.env("TT_RING_ITEMS", "200000");
    libtest(place, "tsan", command.env("RUSTFLAGS", "-Zsanitizer=thread"))
}

/// Tests about the process's own memory, which the address sanitizer's is part of: it locks nothing whoever asks, and its
/// shadow pages fault too.
const NOT_UNDER_ASAN: [&str; 2] = ["locked_pages_are_counted_until_they_are_unlocked", "each_small_page_faults_once"];

/// The address sanitizer, which ends with the leak sanitizer's word.
fn asan(place: &Workplace) -> Outcome {
    if let Err(reason) = place.bring_nightly("rust-src") {
        return Outcome::Skipped(reason);
    }
    let mut command = place.command("cargo", &["+nightly", "test", "--locked", "--lib", "--tests"]);
    for name in present(place, SANITIZED) {
        command.args(["--package", name]);
    }
    command.args(["--target", HOST_TARGET, "--target-dir", "target/asan", "--", "--show-output"]);
    NOT_UNDER_ASAN.iter().for_each(|name| {
        command.args(["--skip", name]);
    });
    command.env("ASAN_OPTIONS", "detect_leaks=1");
    libtest(place, "asan", command.env("RUSTFLAGS", "-Zsanitizer=address"))
}

fn corpora(place: &Workplace) -> Outcome {
    if let Err(reason) = place.bring_component("llvm-tools") {
        return Outcome::Skipped(reason);
    }
    Outcome::Ran(corpora::run(place).unwrap_or_else(|error| Tally::fail(format!("corpora: {error:#}"))))
}

fn optimised(place: &Workplace) -> Outcome {
    let mut tally = Tally::default();
    note(place.bring_program("objdump", "binutils"));
    for (package, test, filter) in OPTIMISED {
        let arguments =
            ["test", "--release", "--locked", "--package", package, "--test", test, "--", "--show-output", filter];
        let name = format!("optimised {package} {test}");
        if let Outcome::Ran(ran) = libtest(place, &name, &mut place.command("cargo", &arguments)) {
            tally.add(ran);
        }
    }
    Outcome::Ran(tally)
}

/// Seeds that are played in the release profile, and those whose hashes a debug build has to reach too.
const WORLD_SEEDS: (&str, &str) = ("0..300", "0..12");

fn worlds(place: &Workplace) -> Outcome {
    let mut tally = Tally::default();
    for world in ["turn_world", "market_world"] {
        tally.add(play(place, world));
    }
    Outcome::Ran(tally)
}

/// Plays one kind of world.
fn play(place: &Workplace, world: &str) -> Tally {
    let example = ["run", "--quiet", "--locked", "--package", "testkit", "--example", world];
    let play = |name: &str, profile: &[&str], arguments: &[&str]| {
        let mut command = place.command("cargo", &example);
        command.args(profile).arg("--").args(arguments).env("TRUETICK_COMMIT", crate::sim::commit(&place.root));
        place.finish(name, &mut command)
    };
    let many = play(world, &["--release"], &[WORLD_SEEDS.0]);
    let mut tally = if many.succeeded() { Tally::pass() } else { Tally::fail("a seed breaks an invariant") };
    if let Some(last) = many.output.lines().last() {
        println!("      {world}: {last}");
    }
    if !many.succeeded() {
        many.show_tail();
    }
    let hashes = |name: &str, profile: &[&str]| {
        let played = play(name, profile, &[WORLD_SEEDS.1, "--hashes"]);
        let lines = played.output.lines().filter(|line| line.contains(" hash ")).map(str::to_owned);
        played.succeeded().then(|| lines.collect::<Vec<_>>())
    };
    let release = hashes(&format!("{world}-release"), &["--release"]);
    let debug = hashes(&format!("{world}-debug"), &[]);
    let is_one_story = release.is_some_and(|release| release.len() > 1 && debug == Some(release));
    tally.add(if is_one_story { Tally::pass() } else { Tally::fail("debug and release differ") });
    tally
}

fn counts(place: &Workplace) -> Outcome {
    shipped(place, "counts", &["bench", "count", "--check", "bench/counts"])
}

/// The live engine's hashes in the recording are of a debug build; the shipped one has to come to the same.
fn recordings(place: &Workplace) -> Outcome {
    let mut tally = Tally::default();
    for (name, arguments) in [
        ("replay", &["replay", "testkit/recordings/simulator.ttj"][..]),
        ("audit", &["audit", "testkit/recordings/simulator.ttj", "testkit/recordings/kraken_btcusd_depth25.cbcap"]),
    ] {
        if let Outcome::Ran(ran) = shipped(place, name, arguments) {
            tally.add(ran);
        }
    }
    Outcome::Ran(tally)
}

fn bench(place: &Workplace) -> Outcome {
    shipped(place, "bench", &["bench", "all", "--quick"])
}

fn shipped(place: &Workplace, name: &str, arguments: &[&str]) -> Outcome {
    match place.program() {
        Ok(program) => one(place, name, &mut place.command(&program.to_string_lossy(), arguments)),
        Err(error) => Outcome::Ran(Tally::fail(error)),
    }
}

/// Says something only of what ran before it in the same command.
fn conformance(place: &Workplace) -> Outcome {
    let runs = place.runs.borrow();
    if runs.is_empty() {
        return Outcome::Skipped("it judges the suites unit, integration and clients of the same command".to_owned());
    }
    match crate::tidy::Tree::read(&place.root).and_then(|tree| crate::conformance::judge(&tree, &runs)) {
        Ok(judgement) => {
            println!("      {} ids settled", judgement.settled);
            let mut tally = if judgement.unmet.is_empty() { Tally::pass() } else { Tally::default() };
            judgement.unmet.into_iter().for_each(|unmet| tally.add(Tally::fail(unmet)));
            judgement.skipped.into_iter().for_each(|skipped| tally.add(Tally::skip("conformance", &skipped)));
            Outcome::Ran(tally)
        }
        Err(error) => Outcome::Ran(Tally::fail(format!("conformance: {error:#}"))),
    }
}

fn deny(place: &Workplace) -> Outcome {
    if !tools::has_cargo_command(&place.root, "deny") {
        return Outcome::Skipped("cargo-deny is absent (cargo install cargo-deny)".to_owned());
    }
    one(place, "deny", &mut place.command("cargo", &["deny", "check", "bans", "licenses", "sources"]))
}
