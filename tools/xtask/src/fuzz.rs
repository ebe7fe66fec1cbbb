//! `cargo xtask fuzz`: searches with the fuzz targets; `--planted` shows that each finds a planted fault in time.
//!
//! Both need the nightly toolchain and `cargo install cargo-fuzz`. A search works on a folder under target/fuzz that has
//! the target's corpus; `--keep` reduces the folder to the inputs that reach new code and packs them as the new corpus.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, ensure};

use crate::planted::Planted;

/// Seconds that a target has to find a planted fault.
const PLANTED_S: u32 = 60;
/// Bytes of an input at most.
const INPUT_LEN_MAX: u32 = 2_048;

/// Arguments of `cargo xtask fuzz`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Plant a fault for each target and check that the target finds it.
    #[arg(long)]
    planted: bool,
    /// Reduce what the searches left under target/fuzz and keep it as the targets' corpora.
    #[arg(long, conflicts_with = "planted")]
    keep: bool,
    /// Seconds per target.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Targets [default: all].
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
}

/// Searches, or looks for planted faults.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let root = crate::workspace_root();
    let (seconds, wanted) = (arguments.seconds, &arguments.targets);
    let wants = |target: &str| wanted.is_empty() || wanted.iter().any(|name| name == target);
    let mut is_right = true;
    if arguments.planted {
        for fault in Planted::read(&root.join("tools/fuzz/planted.toml"))? {
            if wants(&fault.target) {
                is_right &= finds(&root, &fault)?;
            }
        }
    } else if arguments.keep {
        for target in targets(&root)?.iter().filter(|target| wants(target)) {
            keep(&root, target)?;
        }
    } else {
        for target in targets(&root)?.iter().filter(|target| wants(target)) {
            println!("{target}: {seconds} s");
            let search = search(&root, target, seconds)?;
            println!("{}{target}: {} new inputs", search.output, search.new_inputs);
            is_right &= search.is_right;
        }
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The targets: the binaries of the package `fuzz`.
pub(crate) fn targets(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root.join("tools/fuzz/fuzz_targets")).context("tools/fuzz/fuzz_targets")? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

/// Plants `fault` in a copy of the tree; returns whether the target finds it.
fn finds(root: &Path, fault: &Planted) -> anyhow::Result<bool> {
    let copy = fault.plant(root)?;
    let built = cargo_fuzz(&copy.root, "build", &fault.target).status().context("cargo +nightly fuzz")?;
    let started = std::time::Instant::now();
    let found = built.success() && {
        let mut command = cargo_fuzz(&copy.root, "run", &fault.target);
        let folder = copy.root.join("target/planted-corpus");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)?;
        if fault.corpus {
            corpus(root, &["unpack", &fault.target], &folder)?;
        }
        command.arg(&folder).arg("--").arg(format!("-max_total_time={PLANTED_S}"));
        !command.arg(format!("-max_len={INPUT_LEN_MAX}")).output()?.status.success()
    };
    let verdict = if found { "found" } else { "NOT FOUND" };
    println!("{}: {verdict}, {:.1} s", fault.describe(), started.elapsed().as_secs_f64());
    Ok(found)
}

/// The result of a search.
pub(crate) struct Search {
    /// Nothing was found.
    pub(crate) is_right: bool,
    pub(crate) new_inputs: usize,
    /// The end of what was printed, if something was found.
    pub(crate) output: String,
}

/// Searches from the corpus of `target`.
pub(crate) fn search(root: &Path, target: &str, seconds: u32) -> anyhow::Result<Search> {
    let folder = unpack(root, target)?;
    let before = std::fs::read_dir(&folder)?.count();
    let mut command = cargo_fuzz(root, "run", target);
    command.arg(&folder).arg("--").arg(format!("-max_total_time={seconds}")).arg(format!("-max_len={INPUT_LEN_MAX}"));
    let output = command.arg("-print_final_stats=1").output().context("cargo +nightly fuzz")?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let tail: String = lines[lines.len().saturating_sub(40)..].iter().map(|line| format!("{line}\n")).collect();
    let is_right = output.status.success();
    let new_inputs = std::fs::read_dir(&folder)?.count().saturating_sub(before);
    Ok(Search { is_right, new_inputs, output: if is_right { String::new() } else { tail } })
}

/// The folder of the target's inputs, with those of its corpus.
fn unpack(root: &Path, target: &str) -> anyhow::Result<PathBuf> {
    let folder = root.join("target/fuzz").join(target);
    corpus(root, &["unpack", target], &folder)?;
    Ok(folder)
}

/// Replaces the target's corpus by the inputs under target/fuzz that reach different code.
fn keep(root: &Path, target: &str) -> anyhow::Result<()> {
    let folder = unpack(root, target)?;
    let mut reduce = cargo_fuzz(root, "cmin", target);
    ensure!(reduce.arg(&folder).status().context("cargo +nightly fuzz")?.success(), "{target}: cmin failed");
    corpus(root, &["pack", target], &folder)?;
    println!("{target}: {} inputs", std::fs::read_dir(&folder)?.count());
    Ok(())
}

fn corpus(root: &Path, arguments: &[&str], folder: &Path) -> anyhow::Result<()> {
    let run = ["run", "--quiet", "--locked", "--package", "fuzz", "--example", "corpus", "--"];
    let status = Command::new("cargo").args(run).args(arguments).arg(folder).current_dir(root).status();
    ensure!(status.context("cargo")?.success(), "the corpus cannot be moved");
    Ok(())
}

fn cargo_fuzz(root: &Path, what: &str, target: &str) -> Command {
    let mut command = Command::new("cargo");
    // The copy must not share what the tree has built, nor ask rustup for the stable toolchain that it names.
    command.args(["+nightly", "fuzz", what, "--fuzz-dir", "tools/fuzz", target]).current_dir(root);
    command.env("CARGO_TARGET_DIR", root.join("target")).env_remove("RUSTUP_TOOLCHAIN").env("RUST_BACKTRACE", "0");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_a_planted_fault() {
        let root = crate::workspace_root();
        let list = Planted::read(&root.join("tools/fuzz/planted.toml")).unwrap();
        let targets = targets(&root).unwrap();
        for target in &targets {
            assert!(list.iter().any(|fault| fault.target == *target), "{target} has no planted fault");
        }
        assert!(list.iter().all(|fault| targets.contains(&fault.target)));
    }
}
