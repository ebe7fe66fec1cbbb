//! `cargo xtask`: the test command and the rules that a program can check.

#![forbid(unsafe_code)]

mod assembly;
mod bpf;
mod captures;
mod code;
mod conformance;
mod dist;
mod explore;
mod fuzz;
mod history;
mod planted;
mod programs;
mod qualify;
mod sim;
mod soak;
mod tally;
mod test;
mod tidy;
mod tree;
mod violation;

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};

use clap::Parser as _;

/// Tests, rules and exploration of truetick.
#[derive(Debug, clap::Parser)]
#[command(name = "cargo xtask")]
enum Command {
    /// Run the test suites.
    Test(test::Arguments),
    /// Check the rules that a program can check.
    Tidy(tidy::Arguments),
    /// Play deterministic worlds: docs/simulation.md.
    #[command(subcommand)]
    Sim(sim::World),
    /// Search with the fuzz targets (nightly, cargo-fuzz).
    Fuzz(fuzz::Arguments),
    /// Search for what fixed seeds do not show: worlds, properties, fuzz targets, mutants.
    Explore(explore::Arguments),
    /// Run what is run once and kept: seeds, soak, long calls, packages, speed, load.
    Qualify(qualify::Arguments),
    /// Run every engine for long, under faults, reloads, kills and slow readers: nothing may grow.
    Soak(soak::Arguments),
    /// Download and verify the captures that docs/captures.md lists.
    Captures(captures::Arguments),
    /// Build the XDP object again and compare it bit by bit with the committed one.
    Bpf(bpf::Arguments),
    /// Build the ring's and the cell's hot functions for 64-bit Arm and compare their memory instructions.
    Assembly(assembly::Arguments),
    /// Make an artefact for other machines under target/dist.
    Dist(dist::Arguments),
}

fn main() -> ExitCode {
    leave_own_package();
    let outcome = match Command::parse() {
        Command::Test(arguments) => test::run(&arguments),
        Command::Tidy(arguments) => tidy::run(&arguments),
        Command::Sim(world) => sim::run(&world),
        Command::Fuzz(arguments) => fuzz::run(&arguments),
        Command::Explore(arguments) => explore::run(&arguments),
        Command::Qualify(arguments) => qualify::run(&arguments),
        Command::Soak(arguments) => soak::run(&arguments),
        Command::Captures(arguments) => captures::run(&arguments),
        Command::Bpf(arguments) => bpf::run(&arguments),
        Command::Assembly(arguments) => assembly::run(&arguments),
        Command::Dist(arguments) => dist::run(&arguments),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}

/// Starts this program again without what `cargo run` says of xtask's own package. Build scripts watch these variables, such
/// as that of ring: with them every change between `cargo xtask` and `cargo` would build TLS and all above it again.
fn leave_own_package() {
    let is_of_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let own: Vec<String> = names.filter(|name| is_of_package(name)).collect();
    let Some(program) = std::env::current_exe().ok().filter(|_| !own.is_empty()) else { return };
    let mut again = process::Command::new(program);
    own.iter().for_each(|name| {
        again.env_remove(name);
    });
    // It returns only if it fails: then this process goes on as it is.
    let error = again.args(std::env::args_os().skip(1)).exec();
    eprintln!("xtask: {error}");
}

/// The folder of the workspace's manifest.
fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("xtask lies in the workspace").to_owned()
}

/// Whether open points and skips count as failures.
fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false")
}
