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
    /// The stripped program, with its debug information next to it (needs binutils).
    Binary,
}

/// Makes what `arguments` name.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match arguments.name {
        Artefact::Binary => binary(&workspace_root()),
    }
}

/// The linker folds functions of one machine code into one; LLD alone can do that, which is rustc's linker here.
const FOLDED: &str = "-Clink-arg=-Wl,--icf=all,-O2";

/// Builds the program and splits its debug information off: debuggers and panics find `truetick.debug` through the
/// program's debug link.
fn binary(root: &Path) -> anyhow::Result<ExitCode> {
    let folder = root.join(FOLDER);
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let built = root.join("target/distribution/truetick");
    let arguments = ["rustc", "--profile", "distribution", "--locked", "--package", "truetick", "--bin", "truetick"];
    let arguments = arguments.into_iter().chain(["--", FOLDED]);
    finish(Command::new("cargo").args(arguments).current_dir(root))?;
    let (program, debug) = (folder.join("truetick"), folder.join("truetick.debug"));
    finish(Command::new("objcopy").arg("--only-keep-debug").arg(&built).arg(&debug))?;
    finish(Command::new("strip").arg("-o").arg(&program).arg(&built))?;
    // The link holds the name without a folder and a checksum of the file.
    finish(Command::new("objcopy").args(["--add-gnu-debuglink=truetick.debug", "truetick"]).current_dir(&folder))?;
    let len = std::fs::metadata(&program)?.len();
    for name in ["truetick", "truetick.debug"] {
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
