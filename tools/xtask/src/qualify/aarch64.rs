//! The gate world built for 64-bit Arm and played under QEMU: the same seeds have the same hashes.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, ensure};

use super::cargo;
use crate::programs::is_on_path;

const TARGET: &str = "aarch64-unknown-linux-gnu";
const COMPILER: &str = "aarch64-linux-gnu-gcc";
/// Where Debian's cross compiler has the libraries that the program is linked with.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";
/// Debian has the second one in qemu-user.
const EMULATORS: [&str; 2] = ["qemu-aarch64-static", "qemu-aarch64"];
const SEEDS: &str = "0..12";

pub(super) fn run(root: &Path) -> anyhow::Result<String> {
    let emulator = EMULATORS.into_iter().find(|name| is_on_path(name));
    let emulator = emulator.context("no qemu-aarch64 (Debian: qemu-user-static)")?;
    ensure!(is_on_path(COMPILER), "no {COMPILER} (Debian: gcc-aarch64-linux-gnu libc6-dev-arm64-cross)");
    let native = hashes(root, &[], &[])?;
    let started = Instant::now();
    let runner = format!("{emulator} -L {LIBRARIES}");
    let variables = [
        ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", COMPILER),
        ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", &runner),
    ];
    let foreign = hashes(root, &["--target", TARGET], &variables)?;
    ensure!(native.len() > 1 && native == foreign, "the hashes differ: {native:?} and {foreign:?}");
    let seconds = started.elapsed().as_secs();
    Ok(format!("{SEEDS}: {} hashes of 64-bit Arm are those of this machine, {seconds} s", foreign.len()))
}

/// Returns the lines with the hash of each seed.
fn hashes(root: &Path, target: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<Vec<String>> {
    let mut command = cargo(root, &["run", "--quiet", "--locked", "--profile", "checked", "--package", "testkit"]);
    command.args(["--example", "gate_world"]).args(target).args(["--", SEEDS, "--hashes"]);
    command.envs(variables.iter().copied());
    let output = command.output().context("cargo")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    Ok(text.lines().filter(|line| line.contains(" hash ")).map(str::to_owned).collect())
}
