//! `cargo xtask bpf`: the committed BPF objects, built again and compared bit by bit.
//!
//! The objects are committed, so that a build needs no C compiler. The record of each names the compiler, the flags and the hash
//! of each file; `cargo xtask tidy` compares the hashes.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, ensure};
use sha2::{Digest as _, Sha256};

use crate::programs::is_on_path;
use crate::violation::Violation;

const FOLDER: &str = "crates/tt-path/bpf";
/// The programs: their names without `.bpf.c`, `.bpf.o` and `.bpf.sha256`.
const PROGRAMS: [&str; 2] = ["paths", "steer"];
/// What the programs include.
const HEADERS: [&str; 2] = ["kernel.h", "dump.h"];
const SOURCE_LINES_MAX: usize = 500;

/// The compiler whose output is committed. Another version makes other bytes.
const COMPILER: &str = "clang 14.0.6";
/// Version 2 of the instructions: those of 32 bits make clang overwrite halves of saved pointers, which the verifier
/// forbids without CAP_PERFMON.
const FLAGS: &str = "-target bpf -mcpu=v2 -std=gnu11 -O2 -g -nostdinc -Wall -Wextra -Wno-sign-compare -Werror";
const STRIP_FLAGS: &str = "--strip-debug";
/// Names of both programs: Debian's with a version, and those of other systems.
const CLANGS: [&str; 2] = ["clang-14", "clang"];
const STRIPS: [&str; 2] = ["llvm-strip-14", "llvm-strip"];

/// Arguments of `cargo xtask bpf`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Keep the built objects and their records instead of comparing them.
    #[arg(long)]
    accept: bool,
}

/// Result of a build.
pub(crate) enum Build {
    Same,
    Differs(String),
    /// The recorded compiler is not installed.
    Skipped(String),
}

/// Builds the objects again and compares them, or keeps them.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let root = crate::workspace_root();
    if arguments.accept {
        for program in PROGRAMS {
            let Some(object) = build(&root, program)? else { anyhow::bail!("{COMPILER} is not installed") };
            std::fs::write(file(&root, program, "o"), object)?;
            std::fs::write(file(&root, program, "sha256"), record(&root, program)?)?;
            println!("{FOLDER}/{program}.bpf.o is kept");
        }
        return Ok(ExitCode::SUCCESS);
    }
    Ok(match compare(&root)? {
        Build::Same => {
            println!("{}: the same bytes", PROGRAMS.map(|program| format!("{program}.bpf.o")).join(", "));
            ExitCode::SUCCESS
        }
        Build::Differs(reason) => {
            println!("{reason}");
            ExitCode::FAILURE
        }
        Build::Skipped(reason) => {
            println!("skipped: {reason}");
            ExitCode::SUCCESS
        }
    })
}

/// Builds the objects and compares them with the committed ones.
pub(crate) fn compare(root: &Path) -> anyhow::Result<Build> {
    for program in PROGRAMS {
        let Some(built) = build(root, program)? else { return Ok(Build::Skipped(format!("{COMPILER} absent"))) };
        let path = file(root, program, "o");
        let kept = std::fs::read(&path).with_context(|| path.display().to_string())?;
        if built != kept {
            let common = built.len().min(kept.len());
            let at = built.iter().zip(&kept).position(|(one, other)| one != other).unwrap_or(common);
            let (built, kept) = (built.len(), kept.len());
            let lens = format!("{built} bytes built, {kept} kept, first difference at {at}");
            return Ok(Build::Differs(format!("{FOLDER}/{program}.bpf.o: {lens}")));
        }
    }
    Ok(Build::Same)
}

fn file(root: &Path, program: &str, ending: &str) -> PathBuf {
    root.join(FOLDER).join(format!("{program}.bpf.{ending}"))
}

/// Returns the object's bytes, or `None` without the recorded compiler.
fn build(root: &Path, program: &str) -> anyhow::Result<Option<Vec<u8>>> {
    let Some((clang, strip)) = find_compiler().zip(STRIPS.into_iter().find(|name| is_on_path(name))) else {
        return Ok(None);
    };
    let folder = root.join(FOLDER);
    let made = root.join("target/xtask/bpf").join(format!("{program}.bpf.o"));
    std::fs::create_dir_all(made.parent().context("a folder")?)?;
    // Neither the folder nor the machine's headers may be part of the bytes.
    let prefix = format!("-ffile-prefix-map={}=.", folder.display());
    let mut compile = Command::new(clang);
    let source = format!("{program}.bpf.c");
    compile.args(FLAGS.split(' ')).arg(prefix).args(["-c", &source, "-o"]).arg(&made).current_dir(&folder);
    for command in [&mut compile, Command::new(strip).arg(STRIP_FLAGS).arg(&made)] {
        let status = command.status().with_context(|| format!("{:?}", command.get_program()))?;
        ensure!(status.success(), "{command:?}: {status}");
    }
    Ok(Some(std::fs::read(&made)?))
}

fn find_compiler() -> Option<&'static str> {
    let (_, version) = COMPILER.split_once(' ')?;
    CLANGS.into_iter().filter(|name| is_on_path(name)).find(|name| {
        let output = Command::new(name).arg("--version").output();
        output.is_ok_and(|output| is_version(&String::from_utf8_lossy(&output.stdout), version))
    })
}

/// Whether the first line of `clang --version` names `version`, and not a longer one.
fn is_version(output: &str, version: &str) -> bool {
    let line = output.lines().next().unwrap_or_default();
    line.split_once("clang version ").is_some_and(|(_, rest)| rest.split([' ', '-']).next() == Some(version))
}

fn record(root: &Path, program: &str) -> anyhow::Result<String> {
    let mut text = format!("{COMPILER}\n{FLAGS} -ffile-prefix-map=FOLDER=.\nllvm-strip {STRIP_FLAGS}\n");
    let [source, object] = ["c", "o"].map(|ending| format!("{program}.bpf.{ending}"));
    for name in [source.as_str()].into_iter().chain(HEADERS).chain([object.as_str()]) {
        let path = root.join(FOLDER).join(name);
        let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
        let digits: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        text += &format!("{digits}  {name}\n");
    }
    Ok(text)
}

/// Differences between the records and the files, for `cargo xtask tidy`.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<Violation>> {
    let mut violations = Vec::new();
    for program in PROGRAMS {
        let path = format!("{FOLDER}/{program}.bpf.sha256");
        let kept = std::fs::read_to_string(root.join(&path)).with_context(|| path.clone())?;
        violations.extend(differences(&path, &kept, &record(root, program)?));
        let lines = std::fs::read_to_string(file(root, program, "c"))?.lines().count();
        if lines > SOURCE_LINES_MAX {
            let message = format!("{lines} lines, at most {SOURCE_LINES_MAX}");
            violations.push(Violation::at(&format!("{FOLDER}/{program}.bpf.c"), 0, message));
        }
    }
    Ok(violations)
}

fn differences(path: &str, kept: &str, found: &str) -> Vec<Violation> {
    let (mut kept, mut found) = (kept.lines(), found.lines());
    let mut violations = Vec::new();
    for line in 1.. {
        match (kept.next(), found.next()) {
            (None, None) => break,
            (kept, found) if kept == found => {}
            (kept, found) => {
                let message = format!(
                    "`{}` is recorded, `{}` found: run `cargo xtask bpf --accept` with {COMPILER}",
                    kept.unwrap_or_default(),
                    found.unwrap_or_default()
                );
                violations.push(Violation::at(path, line, message));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_hash_flag_or_line_is_a_violation() {
        assert_eq!(differences("r", "a\nb\n", "a\nb\n"), []);
        assert_eq!(differences("r", "a\nb\n", "a\nc\n")[0].line, 2);
        assert_eq!(differences("r", "a\n", "a\nb\n").len(), 1);
        assert_eq!(differences("r", "a\nb\n", "a\n").len(), 1);
    }

    #[test]
    fn only_the_recorded_compiler_is_used() {
        assert!(is_version("Debian clang version 14.0.6\nTarget: x", "14.0.6"));
        assert!(is_version("Ubuntu clang version 14.0.6-1ubuntu1\n", "14.0.6"));
        assert!(!is_version("clang version 14.0.61\n", "14.0.6"));
        assert!(!is_version("clang version 15.0.7\n14.0.6", "14.0.6"));
    }

    #[test]
    fn the_record_is_that_of_the_files() {
        assert_eq!(check(&crate::workspace_root()).unwrap(), []);
    }
}
