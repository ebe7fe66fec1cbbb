//! `cargo xtask qualify NAME`: long runs whose result is kept with its commit and date under bench/qualified.

mod aarch64;
mod audit_speed;
pub(crate) mod availability;
mod calls;
mod expired;
mod page;
mod start_idle;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};

use crate::history::History;
use crate::planted::Planted;
use crate::{sim, workspace_root};

/// Where the results are kept.
const FOLDER: &str = "bench/qualified";

/// A run that is kept.
struct Qualification {
    name: &'static str,
    about: &'static str,
    /// The code that it judges.
    judges: &'static [&'static str],
    /// Runs it and returns its result in one line; lines of measured values may follow ([`Measured::of_line`]).
    run: fn(&Path, &Arguments) -> anyhow::Result<String>,
}

const QUALIFICATIONS: &[Qualification] = &[
    Qualification {
        name: "turn-seeds",
        about: "100,000 seeds of the TURN world",
        judges: &["crates/tt-turn/src", "crates/tt-net/src/stream", "tools/testkit/src/turn_world"],
        run: |root, arguments| seeds(root, "turn_world", arguments),
    },
    Qualification {
        name: "market-seeds",
        about: "100,000 seeds of the market world",
        judges: &[
            "crates/market-feed/src/address",
            "crates/market-feed/src/updates",
            "crates/tt-market/src",
            "crates/tt-venue/src",
            "tools/testkit/src/market_world",
        ],
        run: |root, arguments| seeds(root, "market_world", arguments),
    },
    Qualification {
        name: "gate-seeds",
        about: "100,000 seeds of the gate world",
        judges: &[
            "crates/tt-risk/src",
            "crates/gate-limits/src",
            "crates/risk-gate/src",
            "tools/testkit/src/gate_world",
        ],
        run: |root, arguments| seeds(root, "gate_world", arguments),
    },
    Qualification {
        name: "gate-aarch64",
        about: "the gate world has the same hashes for 64-bit Arm, under QEMU",
        judges: &[
            "crates/tt-risk/src",
            "crates/gate-limits/src",
            "crates/risk-gate/src",
            "tools/testkit/src/gate_world",
        ],
        run: |root, _| aarch64::run(root),
    },
    Qualification {
        name: "planted-worlds",
        about: "the worlds find faults that are planted in the engines",
        judges: &[
            "crates/tt-turn/src",
            "crates/tt-market/src",
            "crates/tt-risk/src",
            "crates/market-feed/src/address",
            "crates/market-feed/src/updates",
            "tools/testkit",
        ],
        run: |root, _| planted_worlds(root),
    },
    Qualification {
        name: "ring-items",
        about: "a thousand million items through the ring",
        judges: &["crates/tt-sync/src"],
        run: |root, _| ring_items(root),
    },
    Qualification {
        name: "weak-memory",
        about: "1,000 seeds of the ring's, the cell's and the barrier's litmus programs under Miri, and each weakened ordering",
        judges: &["crates/tt-sync/src"],
        run: |_, arguments| weak_memory(arguments),
    },
    Qualification {
        name: "soak",
        about: "every engine of the shipped program under faults, reloads, kills and slow readers: nothing grows",
        judges: &["crates"],
        run: soak,
    },
    Qualification {
        name: "start-idle",
        about: "how soon the release build is ready, and its memory and processor time when idle",
        judges: &["Cargo.toml", "crates"],
        run: |root, _| start_idle::run(root),
    },
    Qualification {
        name: "page-cost",
        about: "processor time of the open page at 500 book updates a second, in Chromium and in `serve`",
        judges: &["crates/control", "crates/market-feed/src", "crates/truetick/src"],
        run: |root, _| page::run(root),
    },
    Qualification {
        name: "long-calls",
        about: "calls through the shipped TURN server, far beyond every lifetime, without a lost payload",
        judges: &["crates/tt-turn/src", "crates/tt-net/src", "crates/turn-config/src", "crates/turn-server/src"],
        run: calls::run,
    },
    Qualification {
        name: "expired-credentials",
        about: "calls of aioice, pion and Chromium go on after their credentials have expired",
        judges: &["crates/tt-turn/src", "crates/turn-config/src", "crates/turn-server/src"],
        run: expired::run,
    },
    Qualification {
        name: "availability",
        about: "what one sender can take from the release build with its default settings",
        judges: availability::JUDGES,
        run: |root, _| availability::run(root),
    },
    Qualification {
        name: "reloads",
        about: "100 reloads of the release build, each of one thing, under 1,000 relayed calls: nothing lost, no pause",
        judges: &["crates/tt-turn/src", "crates/tt-net/src", "crates/turn-config/src", "crates/turn-server/src"],
        run: |root, _| reloads(root),
    },
    Qualification {
        name: "packages",
        about: "each published crate builds from its package",
        judges: &["Cargo.toml", "crates"],
        run: |root, _| packages(root),
    },
    Qualification {
        name: "audit-speed",
        about: "1 GB through `truetick audit`, on one core",
        judges: &["crates/tt-market/src", "crates/tt-venue/src", "crates/tt-journal/src"],
        run: |root, _| audit_speed::run(root),
    },
    Qualification {
        name: "load",
        about: "the required tests, three times while four processes keep the cores busy",
        judges: &["crates", "tools"],
        run: |root, _| load(root),
    },
];

/// The crates that are to be published, and those that they depend on.
pub(crate) const PUBLISHED: &[&str] = &[
    "tt-model",
    "tt-meter",
    "tt-sync",
    "tt-simd",
    "tt-turn",
    "tt-venue",
    "tt-market",
    "tt-risk",
    "market-feed",
    "turn-config",
    "turn-server",
    "tt-os",
    "tt-net",
    "tt-journal",
    "tt-status",
    "tt-path",
];
const LOAD_PROCESSES: usize = 4;
const LOAD_RUNS: usize = 3;

const WORLD_SEEDS: u32 = 100_000;
const LITMUS_SEEDS: u32 = 1_000;

/// Arguments of `cargo xtask qualify`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Name to run [default: list the names and their last results].
    #[arg(value_parser = QUALIFICATIONS.iter().map(|it| it.name).collect::<Vec<_>>())]
    name: Option<String>,
    /// Seeds [default: 100,000 of turn-seeds, market-seeds and gate-seeds, 1,000 of weak-memory].
    #[arg(long)]
    seeds: Option<u32>,
    /// Minutes of soak, long-calls and expired-credentials.
    #[arg(long, default_value_t = 60)]
    minutes: u64,
}

/// A kept result.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Kept {
    command: String,
    commit: String,
    date: String,
    seconds: u64,
    result: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    measured: Vec<Measured>,
}

/// A value for a row of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Measured {
    row: String,
    value: String,
}

impl Measured {
    /// Reads what `testkit::measured` prints.
    fn of_line(line: &str) -> Option<Self> {
        let (row, value) = line.strip_prefix("measured ")?.split_once(": ")?;
        Some(Self { row: row.to_owned(), value: value.to_owned() })
    }
}

/// Runs what `arguments` name and keeps its result; without a name, lists what is kept.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let root = workspace_root();
    let Some(name) = &arguments.name else {
        for it in QUALIFICATIONS {
            println!("{:<19} {}", it.name, it.about);
            if let Some(Kept { commit, date, result, .. }) = read(&root, it.name) {
                println!("{:<19} {date}, commit {commit}: {result}", "");
            }
        }
        return Ok(ExitCode::SUCCESS);
    };
    let qualification = QUALIFICATIONS.iter().find(|it| it.name == *name).context("no such name")?;
    let (commit, started) = (sim::commit(&root), Instant::now());
    let text = (qualification.run)(&root, arguments)?;
    println!("{name}: {text}");
    let (result, values) = text.split_once('\n').unwrap_or((&text, ""));
    let date = Command::new("date").args(["-u", "+%F"]).output().context("date")?;
    let kept = Kept {
        command: format!("cargo xtask qualify {}", std::env::args().skip(2).collect::<Vec<_>>().join(" ")),
        date: String::from_utf8_lossy(&date.stdout).trim().to_owned(),
        seconds: started.elapsed().as_secs(),
        result: result.to_owned(),
        measured: values.lines().filter_map(Measured::of_line).collect(),
        commit,
    };
    if kept.commit.ends_with("-dirty") {
        println!("not kept: the tree has changes that are not committed");
        return Ok(ExitCode::SUCCESS);
    }
    let file = root.join(FOLDER).join(name).with_extension("toml");
    std::fs::create_dir_all(root.join(FOLDER))?;
    std::fs::write(&file, toml::to_string(&kept)?).with_context(|| file.display().to_string())?;
    println!("kept in {}", file.display());
    availability::accept(&root)?;
    Ok(if availability::missed(&kept.result).is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One line for each kept result that is older than the code that it judges.
pub(crate) fn stale(root: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    let Ok(history) = History::open(root) else { return lines };
    for it in QUALIFICATIONS {
        let Some(kept) = read(root, it.name) else { continue };
        if history.differs(&kept.commit, it.judges) {
            lines.push(format!("{FOLDER}/{}.toml is of {}, older than the code that it judges", it.name, kept.date));
        }
    }
    lines
}

fn read(root: &Path, name: &str) -> Option<Kept> {
    let text = std::fs::read_to_string(root.join(FOLDER).join(name).with_extension("toml")).ok()?;
    toml::from_str(&text).ok()
}

/// Runs `command` and returns the last line that it prints.
fn last_line(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stderr(Stdio::inherit()).output().context("cannot run cargo")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{}\n{text}", output.status);
    text.lines().last().map(str::to_owned).context("it printed nothing")
}

fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(root);
    command
}

fn seeds(root: &Path, world: &str, arguments: &Arguments) -> anyhow::Result<String> {
    let range = format!("0..{}", arguments.seeds.unwrap_or(WORLD_SEEDS));
    let arguments =
        ["run", "--quiet", "--locked", "--profile", "checked", "--package", "testkit", "--example", world, "--"];
    last_line(cargo(root, &arguments).arg(range).env("TRUETICK_COMMIT", sim::commit(root)))
}

/// Runs a suite that only this command runs, and returns the line that it prints.
fn weak_memory(arguments: &Arguments) -> anyhow::Result<String> {
    let mut suite = Command::new(std::env::current_exe()?);
    suite.args(["test", "--install", "weak-memory"]).stdout(Stdio::piped());
    suite.env("TT_LITMUS_SEEDS", arguments.seeds.unwrap_or(LITMUS_SEEDS).to_string());
    let (mut running, mut result) = (suite.spawn()?, None);
    for line in BufReader::new(running.stdout.take().context("no output")?).lines() {
        let line = line?;
        println!("{line}");
        result = line.trim_start().strip_prefix("weak memory: ").map(str::to_owned).or(result);
    }
    ensure!(running.wait()?.success(), "it failed");
    result.context("it was skipped")
}

/// Seeds within which a world must find a planted fault.
const PLANTED_SEEDS: &str = "0..1000";

fn planted_worlds(root: &Path) -> anyhow::Result<String> {
    let (faults, mut missed) = (Planted::read(&root.join("tools/testkit/planted.toml"))?, Vec::new());
    for fault in &faults {
        let copy = fault.plant(root)?;
        let arguments = ["build", "--quiet", "--locked", "--profile", "checked", "--package", "testkit", "--example"];
        let mut build = cargo(&copy.root, &arguments);
        build.arg(&fault.target).env("CARGO_TARGET_DIR", copy.root.join("target"));
        ensure!(build.status().context("cargo")?.success(), "{} does not build", fault.describe());
        let world = copy.root.join("target/checked/examples").join(&fault.target);
        let failure = first_failure(&world, PLANTED_SEEDS)?;
        println!("{}: {}", fault.describe(), failure.as_deref().unwrap_or("NOT FOUND"));
        missed.extend(failure.is_none().then(|| fault.describe()));
    }
    ensure!(missed.is_empty(), "not found: {}", missed.join("; "));
    Ok(format!("{} faults found, each within 1,000 seeds", faults.len()))
}

/// Plays a world's first seeds until one fails, which it need not shorten.
fn first_failure(world: &Path, seeds: &str) -> anyhow::Result<Option<String>> {
    let mut play = Command::new(world);
    let mut playing = play.arg(seeds).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().context("the world")?;
    let output = BufReader::new(playing.stdout.take().context("no output")?);
    let failure = output.lines().map_while(Result::ok).find(|line| line.starts_with("FAILED seed"));
    // It may have ended.
    let _ = playing.kill();
    playing.wait().context("the world")?;
    Ok(failure)
}

fn reloads(root: &Path) -> anyhow::Result<String> {
    let text = of_the_release(root, &["reload_calls::"])?;
    let is_measured = |line: &&str| line.contains(" calls, ") || line.starts_with("a Binding ");
    let measured: Vec<&str> = text.lines().filter(is_measured).collect();
    ensure!(!measured.is_empty(), "nothing was measured");
    Ok(measured.join("; "))
}

/// Runs `modules` of the test `turn` against the release build, and returns what they print. All must pass.
fn of_the_release(root: &Path, modules: &[&str]) -> anyhow::Result<String> {
    let (text, has_passed) = judged_of_the_release(root, modules)?;
    ensure!(has_passed, "a test failed");
    Ok(text)
}

/// The same, and whether all have passed.
fn judged_of_the_release(root: &Path, modules: &[&str]) -> anyhow::Result<(String, bool)> {
    ensure!(cargo(root, &["build", "--release", "--locked"]).status()?.success(), "the program does not build");
    let arguments = ["test", "--quiet", "--locked", "--package", "truetick", "--test", "turn", "--"];
    let mut tests = cargo(root, &arguments);
    tests.args(["--test-threads", "1", "--nocapture"]).args(modules);
    let output = tests.env("TRUETICK_PROGRAM", root.join("target/release/truetick")).output().context("cargo")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{text}");
    if !output.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok((text, output.status.success()))
}

fn soak(root: &Path, arguments: &Arguments) -> anyhow::Result<String> {
    let result = crate::soak::soak(root, arguments.minutes)?;
    for file in ["samples.csv", "soak.svg"] {
        let kept = root.join("bench/soak").join(file);
        std::fs::create_dir_all(root.join("bench/soak"))?;
        std::fs::copy(root.join("target/soak").join(file), &kept).with_context(|| kept.display().to_string())?;
    }
    Ok(result)
}

fn ring_items(root: &Path) -> anyhow::Result<String> {
    let arguments =
        ["test", "--release", "--locked", "--package", "tt-sync", "--test", "items", "--", "--test-threads", "1"];
    let output = cargo(root, &arguments).env("TT_RING_ITEMS", "1000000000").output().context("cargo")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{text}");
    text.lines().find(|line| line.starts_with("test result: ")).map(str::to_owned).context("libtest has no result")
}

fn packages(root: &Path) -> anyhow::Result<String> {
    let mut publish = cargo(root, &["publish", "--dry-run", "--locked"]);
    PUBLISHED.iter().for_each(|name| {
        publish.args(["--package", name]);
    });
    ensure!(publish.status().context("cargo")?.success(), "a package does not build");
    Ok(format!("{} packages build", PUBLISHED.len()))
}

/// Processes that compute until they are dropped.
struct Load(Vec<std::process::Child>);

impl Load {
    fn start() -> std::io::Result<Self> {
        let busy = |_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn();
        (0..LOAD_PROCESSES).map(busy).collect::<Result<_, _>>().map(Self)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for process in &mut self.0 {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn load(root: &Path) -> anyhow::Result<String> {
    ensure!(
        cargo(root, &["test", "--workspace", "--locked", "--no-run"]).status()?.success(),
        "the tests do not build"
    );
    let _load = Load::start().context("sh")?;
    let mut runs = Vec::new();
    for _ in 0..LOAD_RUNS {
        let started = Instant::now();
        let mut tests = Command::new(std::env::current_exe()?);
        let result = last_line(tests.args(["test", "unit", "integration"]).current_dir(root))?;
        runs.push(format!("{result} in {} s", started.elapsed().as_secs()));
        println!("{}", runs[runs.len() - 1]);
    }
    Ok(runs.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_results_are_of_known_runs() {
        let root = workspace_root();
        for entry in std::fs::read_dir(root.join(FOLDER)).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            assert!(QUALIFICATIONS.iter().any(|it| it.name == name), "{name}");
            assert!(read(&root, name).is_some_and(|kept| kept.seconds > 0), "{name}");
        }
    }
}
