//! `cargo xtask bpf`: the committed XDP object, built again and compared bit by bit.
//!
//! The object is committed, so that a build needs no C compiler. Its record names the compiler, the flags and the hash
//! of each file; `cargo xtask tidy` compares the hashes.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, ensure};
use sha2::{Digest as _, Sha256};

use crate::programs::is_on_path;
use crate::violation::Violation;

const FOLDER: &str = "crates/tt-path/bpf";
const RECORD: &str = "paths.bpf.sha256";
const SOURCES: [&str; 2] = ["paths.bpf.c", "kernel.h"];
const OBJECT: &str = "paths.bpf.o";
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
    /// Keep the built object and its record instead of comparing them.
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

/// Builds the object again and compares it, or keeps it.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let root = crate::workspace_root();
    if arguments.accept {
        let Some(object) = build(&root)? else { anyhow::bail!("{COMPILER} is not installed") };
        std::fs::write(root.join(FOLDER).join(OBJECT), object)?;
        std::fs::write(root.join(FOLDER).join(RECORD), record(&root)?)?;
        println!("{FOLDER}/{OBJECT} is kept");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(match compare(&root)? {
        Build::Same => {
            println!("{OBJECT}: the same bytes");
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

/// Builds the object and compares it with the committed one.
pub(crate) fn compare(root: &Path) -> anyhow::Result<Build> {
    let Some(built) = build(root)? else { return Ok(Build::Skipped(format!("{COMPILER} absent"))) };
    let path = root.join(FOLDER).join(OBJECT);
    let kept = std::fs::read(&path).with_context(|| path.display().to_string())?;
    if built == kept {
        return Ok(Build::Same);
    }
    let at = built.iter().zip(&kept).position(|(one, other)| one != other).unwrap_or(built.len().min(kept.len()));
    let lens = (built.len(), kept.len());
    Ok(Build::Differs(format!("{FOLDER}/{OBJECT}: {} bytes built, {} kept, first difference at {at}", lens.0, lens.1)))
}

/// Returns the object's bytes, or `None` without the recorded compiler.
fn build(root: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    let Some((clang, strip)) = find_compiler().zip(STRIPS.into_iter().find(|name| is_on_path(name))) else {
        return Ok(None);
    };
    let folder = root.join(FOLDER);
    let made = root.join("target/xtask/bpf").join(OBJECT);
    std::fs::create_dir_all(made.parent().context("a folder")?)?;
    // Neither the folder nor the machine's headers may be part of the bytes.
    let prefix = format!("-ffile-prefix-map={}=.", folder.display());
    let mut compile = Command::new(clang);
    compile.args(FLAGS.split(' ')).arg(prefix).args(["-c", SOURCES[0], "-o"]).arg(&made).current_dir(&folder);
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

fn record(root: &Path) -> anyhow::Result<String> {
    let mut text = format!("{COMPILER}\n{FLAGS} -ffile-prefix-map=FOLDER=.\nllvm-strip {STRIP_FLAGS}\n");
    for name in SOURCES.into_iter().chain([OBJECT]) {
        let path = root.join(FOLDER).join(name);
        let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
        let digits: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        text += &format!("{digits}  {name}\n");
    }
    Ok(text)
}

/// Differences between the record and the files, for `cargo xtask tidy`.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<Violation>> {
    let path = format!("{FOLDER}/{RECORD}");
    let kept = std::fs::read_to_string(root.join(&path)).with_context(|| path.clone())?;
    let mut violations = differences(&path, &kept, &record(root)?);
    let lines = std::fs::read_to_string(root.join(FOLDER).join(SOURCES[0]))?.lines().count();
    if lines > SOURCE_LINES_MAX {
        let message = format!("{lines} lines, at most {SOURCE_LINES_MAX}");
        violations.push(Violation::at(&format!("{FOLDER}/{}", SOURCES[0]), 0, message));
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
