//! `cargo xtask dist NAME`: artefacts for other machines, under target/dist.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, ensure};

use crate::workspace_root;

const FOLDER: &str = "target/dist";
/// Maximum length of the stripped program, in bytes.
const PROGRAM_LEN_MAX: u64 = 15_000_000;

/// Arguments of `cargo xtask dist`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What to make.
    name: Artefact,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Artefact {
    /// The stripped program, with its debug information in files next to it (needs binutils).
    Binary,
}

/// Makes what `arguments` name.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match arguments.name {
        Artefact::Binary => binary(&workspace_root()),
    }
}

/// Builds the program and splits its debug information off: `truetick.debug` has line tables and symbols, which a debugger
/// finds through the program's debug link, `truetick.dwp` the rest.
fn binary(root: &Path) -> anyhow::Result<ExitCode> {
    let folder = root.join(FOLDER);
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let built = root.join("target/release/truetick");
    finish(Command::new("cargo").args(["build", "--release", "--locked", "--package", "truetick"]).current_dir(root))?;
    let (program, debug) = (folder.join("truetick"), folder.join("truetick.debug"));
    finish(Command::new("objcopy").arg("--only-keep-debug").arg(&built).arg(&debug))?;
    finish(Command::new("strip").arg("-o").arg(&program).arg(&built))?;
    // The link holds the name without a folder and a checksum of the file.
    finish(Command::new("objcopy").args(["--add-gnu-debuglink=truetick.debug", "truetick"]).current_dir(&folder))?;
    std::fs::copy(built.with_extension("dwp"), folder.join("truetick.dwp")).context("truetick.dwp")?;
    let len = std::fs::metadata(&program)?.len();
    for name in ["truetick", "truetick.debug", "truetick.dwp"] {
        println!("{FOLDER}/{name}: {} bytes", std::fs::metadata(folder.join(name))?.len());
    }
    ensure!(len <= PROGRAM_LEN_MAX, "the program has {len} bytes, at most {PROGRAM_LEN_MAX}");
    Ok(ExitCode::SUCCESS)
}

fn finish(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("{:?}", command.get_program()))?;
    ensure!(status.success(), "{:?}: {status}", command.get_program());
    Ok(())
}
