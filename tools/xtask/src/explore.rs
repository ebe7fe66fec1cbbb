//! `cargo xtask explore`: random worlds, properties, fuzz inputs and mutants, with new seeds each time, written down.

mod mutants;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;

use crate::test::Steps;
use crate::{fuzz, sim, workspace_root};

/// Parts of the time that each kind of search has, of all of them together.
const SHARES: [(&str, u32); 4] = [("worlds", 3), ("properties", 2), ("fuzz", 3), ("mutants", 2)];
/// Seeds of one run of a world.
const SEEDS_AT_ONCE: u64 = 200;
/// Crates with properties.
const PROPERTIES: &[&str] = &["tt-turn", "tt-venue", "tt-market", "tt-risk", "tt-sync", "tt-simd", "tt-journal"];
const PROPERTY_CASES: u32 = 20_000;

/// Arguments of `cargo xtask explore`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Minutes for everything.
    #[arg(long, value_name = "N", required_unless_present = "mutants")]
    minutes: Option<u64>,
    /// Draw N mutants instead and run the tests of their package against each.
    #[arg(long, value_name = "N", conflicts_with = "minutes")]
    mutants: Option<usize>,
    /// Package of the mutants.
    #[arg(long, default_value = "tt-turn", requires = "mutants")]
    package: String,
    /// Draw only mutants of files whose path contains TEXT.
    #[arg(long, value_name = "TEXT", default_value = "", requires = "mutants")]
    files: String,
    /// Seed of what is drawn [default: the time].
    #[arg(long)]
    seed: Option<u64>,
}

/// What was found, and where it is written.
struct Report {
    file: PathBuf,
    text: String,
    findings: usize,
}

impl Report {
    fn new(folder: &Path, title: &str) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder).context("target/explore")?;
        let mut report = Self { file: folder.join("report.md"), text: String::new(), findings: 0 };
        report.line(&format!("# {title}\n"))?;
        Ok(report)
    }

    /// Prints and writes a line; the file is whole after each of them.
    fn line(&mut self, line: &str) -> anyhow::Result<()> {
        println!("{line}");
        writeln!(self.text, "{line}")?;
        std::fs::write(&self.file, &self.text).context("target/explore/report.md")
    }

    fn finding(&mut self, what: &str, output: &str) -> anyhow::Result<()> {
        self.findings += 1;
        self.line(&format!("\n## Finding {}: {what}\n\n```text\n{}```\n", self.findings, output))
    }
}

/// Explores for the minutes of `arguments`, or runs the mutants that they name.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let root = workspace_root();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?;
    let seed = arguments.seed.unwrap_or(now.as_secs());
    let steps = Steps::new(root.clone())?;
    let folder = root.join("target/explore");
    let mut report = Report::new(&folder, &format!("Exploration of {}, seed {seed}", sim::commit(&root)))?;
    if let Some(count) = arguments.mutants {
        let draw = mutants::Draw { package: &arguments.package, files: &arguments.files, count, seed };
        mutants::run(&steps, &mut report, &draw)?;
        return Ok(ExitCode::SUCCESS);
    }
    let minutes = arguments.minutes.unwrap_or_default();
    let total: u32 = SHARES.iter().map(|(_, share)| share).sum();
    for (kind, share) in SHARES {
        let end = Instant::now() + Duration::from_secs(minutes * 60) * share / total;
        match kind {
            "worlds" => worlds(&steps, &mut report, seed, end)?,
            "properties" => properties(&steps, &mut report, seed, end)?,
            "fuzz" => fuzz_targets(&steps, &mut report, end)?,
            _ => mutants::run_changed(&steps, &mut report, end)?,
        }
    }
    report.line(&format!("\n{} findings; this text is {}", report.findings, report.file.display()))?;
    Ok(if report.findings == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Seeds that no committed run has played, in the optimised build.
fn worlds(steps: &Steps, report: &mut Report, seed: u64, end: Instant) -> anyhow::Result<()> {
    // Far from the first seeds, which every run of the tests plays.
    let mut from = seed.wrapping_mul(1_000_003) % (1 << 40) + (1 << 20);
    let first = from;
    while Instant::now() < end {
        let range = format!("{from}..{}", from + SEEDS_AT_ONCE);
        for world in ["turn_world", "market_world", "gate_world"] {
            let arguments =
                ["run", "--quiet", "--locked", "--profile", "checked", "--package", "testkit", "--example", world];
            let mut command = steps.command("cargo", &arguments);
            let commit = sim::commit(&steps.root);
            let finished =
                steps.finish(&format!("explore-{world}"), command.args(["--", &range]).env("TRUETICK_COMMIT", commit));
            if !finished.succeeded() {
                report.finding(&format!("{world}, seeds {range}"), &finished.tail())?;
            }
        }
        from += SEEDS_AT_ONCE;
    }
    report.line(&format!("- worlds: seeds {first}..{from} of each"))
}

/// Properties with another seed and more cases than in CI.
fn properties(steps: &Steps, report: &mut Report, seed: u64, end: Instant) -> anyhow::Result<()> {
    let mut rounds = 0;
    while Instant::now() < end {
        for package in PROPERTIES.iter().take_while(|_| Instant::now() < end) {
            let mut command =
                steps.command("cargo", &["test", "--locked", "--profile", "checked", "--package", package]);
            command.env("PROPTEST_CASES", PROPERTY_CASES.to_string());
            command.env("PROPTEST_RNG_SEED", (seed + rounds).to_string());
            let finished = steps.finish(&format!("explore-{package}"), &mut command);
            if !finished.succeeded() {
                let what = format!("{package} with PROPTEST_RNG_SEED={} and {PROPERTY_CASES} cases", seed + rounds);
                report.finding(&what, &finished.tail())?;
            }
        }
        rounds += 1;
    }
    report.line(&format!("- properties: {rounds} rounds of {PROPERTY_CASES} cases, seeds from {seed}"))
}

/// Every fuzz target for an equal time, if cargo-fuzz and the nightly toolchain are installed.
fn fuzz_targets(steps: &Steps, report: &mut Report, end: Instant) -> anyhow::Result<()> {
    if !has_cargo_command(&steps.root, &["+nightly", "fuzz"]) {
        return report.line("- fuzz: not run, cargo-fuzz or the nightly toolchain is not installed");
    }
    let targets = fuzz::targets(&steps.root)?;
    for (index, target) in targets.iter().enumerate() {
        let left = end.saturating_duration_since(Instant::now()) / u32::try_from(targets.len() - index)?;
        let seconds = u32::try_from(left.as_secs())?.max(1);
        let found = fuzz::search(&steps.root, target, seconds)?;
        if !found.is_right {
            report.finding(&format!("fuzz target {target}"), &found.output)?;
        }
        report.line(&format!("- fuzz: {target}, {seconds} s, {} new inputs", found.new_inputs))?;
    }
    Ok(())
}

/// Whether `cargo` knows the command.
fn has_cargo_command(root: &Path, command: &[&str]) -> bool {
    let output =
        Command::new("cargo").args(command).arg("--version").current_dir(root).env_remove("RUSTUP_TOOLCHAIN").output();
    output.is_ok_and(|output| output.status.success())
}
