//! The examples: those of the documentation, those that are programs, and the worlds of testkit, which are examples too.

use std::fs;
use std::path::{Path, PathBuf};

use super::Workplace;
use super::suites::{libtest, one};
use crate::tally::{Outcome, Tally};

/// The examples that end by themselves.
const EXAMPLES: [&str; 5] = ["udp_server", "intents", "producer", "follow", "events"];

pub(super) fn run(place: &Workplace) -> Outcome {
    let mut command =
        place.steps.command("cargo", &["test", "--workspace", "--locked", "--doc", "--", "--show-output"]);
    let mut tally = match libtest(place, "examples", &mut command) {
        Outcome::Ran(tally) => tally,
        Outcome::Skipped(reason) => return Outcome::Skipped(reason),
    };
    match built(place, &EXAMPLES, &[]) {
        Ok(folder) => {
            for name in EXAMPLES {
                let mut command = place.steps.command(&folder.join(name).to_string_lossy(), &[]);
                if let Outcome::Ran(ran) = one(place, name, &mut command) {
                    tally.add(ran);
                }
            }
        }
        Err(error) => tally.add(Tally::fail(error)),
    }
    Outcome::Ran(tally)
}

/// Seeds that are played in the optimised build, and those whose hashes a debug build has to reach too.
const WORLD_SEEDS: (&str, &str) = ("0..300", "0..12");
const WORLDS: [&str; 3] = ["turn_world", "market_world", "gate_world"];
/// The crates that a world plays. In the optimised build the others are those of the debug build, which are there.
const OPTIMISED: [&str; 14] = [
    "market-feed",
    "risk-gate",
    "sim",
    "testkit",
    "tt-journal",
    "tt-market",
    "tt-meter",
    "tt-model",
    "tt-net",
    "tt-risk",
    "tt-simd",
    "tt-sync",
    "tt-turn",
    "tt-venue",
];
const SETTINGS: [&str; 3] = ["opt-level=1", "debug-assertions=false", "overflow-checks=false"];

pub(super) fn worlds(place: &Workplace) -> Outcome {
    Outcome::Ran(play_all(place).unwrap_or_else(Tally::fail))
}

fn play_all(place: &Workplace) -> Result<Tally, String> {
    let optimised = OPTIMISED
        .iter()
        .flat_map(|name| SETTINGS.map(|setting| format!("--config=profile.dev.package.{name}.{setting}")));
    let optimised: Vec<String> = optimised.collect();
    let mut programs = Vec::new();
    for (kind, settings) in [("debug", &[][..]), ("optimised", &optimised)] {
        let (from, to) = (built(place, &WORLDS, settings)?, place.steps.root.join("target/xtask/worlds").join(kind));
        fs::create_dir_all(&to).map_err(|error| format!("{}: {error}", to.display()))?;
        for world in WORLDS {
            fs::copy(from.join(world), to.join(world)).map_err(|error| format!("{world}: {error}"))?;
        }
        programs.push(to);
    }
    let mut tally = Tally::default();
    for world in WORLDS {
        tally.add(play(place, world, &programs[1], &programs[0]));
    }
    Ok(tally)
}

/// Builds examples with the features of the tests, and returns their folder. With no `settings` the tests' build has
/// made them.
fn built(place: &Workplace, names: &[&str], settings: &[String]) -> Result<PathBuf, String> {
    let mut command = place.steps.command("cargo", &["build", "--locked", "--workspace"]);
    command.args(settings).args(names.iter().flat_map(|name| ["--example", *name]));
    let finished = place.steps.finish("build-examples", &mut command);
    if !finished.succeeded() {
        finished.show_tail();
        return Err("the examples do not build".to_owned());
    }
    Ok(place.steps.root.join("target/debug/examples"))
}

/// Plays one kind of world: the programs are in the two folders.
fn play(place: &Workplace, world: &str, optimised: &Path, debug: &Path) -> Tally {
    let play = |name: &str, folder: &Path, arguments: &[&str]| {
        let mut command = place.steps.command(&folder.join(world).to_string_lossy(), arguments);
        command.env("TRUETICK_COMMIT", crate::sim::commit(&place.steps.root));
        place.steps.finish(name, &mut command)
    };
    let many = play(world, optimised, &[WORLD_SEEDS.0]);
    let mut tally = if many.succeeded() { Tally::pass() } else { Tally::fail("a seed breaks an invariant") };
    if let Some(last) = many.output.lines().last() {
        println!("      {world}: {last}");
    }
    if !many.succeeded() {
        many.show_tail();
    }
    let hashes = |name: &str, folder: &Path| {
        let played = play(name, folder, &[WORLD_SEEDS.1, "--hashes"]);
        let lines = played.output.lines().filter(|line| line.contains(" hash ")).map(str::to_owned);
        played.succeeded().then(|| lines.collect::<Vec<_>>())
    };
    let optimised = hashes(&format!("{world}-optimised"), optimised);
    let debug = hashes(&format!("{world}-debug"), debug);
    let agree = optimised.is_some_and(|optimised| optimised.len() > 1 && debug == Some(optimised));
    tally.add(if agree { Tally::pass() } else { Tally::fail("debug and optimised builds differ") });
    tally
}
