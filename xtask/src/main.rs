//! `cargo xtask`: the one test command, and the rules that a program can check.

#![forbid(unsafe_code)]

mod audit_speed;
mod conformance;
mod fuzz;
mod sim;
mod test;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask test [--install] [--list] [--json FILE] [SUITE..]   every suite, or those named
       cargo xtask sim turn --seed N | --seeds FROM..TO               deterministic worlds: docs/simulation.md
       cargo xtask audit-speed                                        1 GB through `truetick audit`, on one core
       cargo xtask tidy                                               the rules that a program can check
       cargo xtask fuzz [--planted] [--seconds N] [TARGET..]          search with the fuzz targets (nightly, cargo-fuzz)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((command, rest)) if command == "test" => test::run(rest),
        Some((command, rest)) if command == "sim" => sim::run(rest),
        Some((command, [])) if command == "tidy" => tidy::run(),
        Some((command, [])) if command == "audit-speed" => audit_speed::run(),
        Some((command, rest)) if command == "fuzz" => fuzz::run(rest),
        Some(_) | None => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}

/// The folder of the workspace's manifest.
fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_owned()
}
