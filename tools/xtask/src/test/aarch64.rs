//! 64-bit Arm: a type check of the workspace, the tests of tt-sync under an emulator, and the machine code of its hot
//! functions.

use super::Workplace;
use super::suites::{libtest, one};
use crate::programs::is_on_path;
use crate::tally::{Outcome, Tally};

const TARGET: &str = "aarch64-unknown-linux-gnu";
const COMPILER: &str = "aarch64-linux-gnu-gcc";
const PACKAGES: &str = "gcc-aarch64-linux-gnu libc6-dev-arm64-cross";

/// Debian has the first one in qemu-user-static, the second one in qemu-user.
const EMULATORS: [&str; 2] = ["qemu-aarch64-static", "qemu-aarch64"];
/// Where Debian's cross compiler has the libraries that a program is linked with.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";
/// Items of each long run: the emulator takes some ten times as long as the machine.
const ITEMS: &str = "20000";

/// A dependency that compiles C needs a C compiler for the target, even for a type check. Without one, the crates that
/// depend on it are skipped by name.
pub(super) fn check(place: &Workplace) -> Outcome {
    if let Err(reason) = place.bring_target(TARGET) {
        return Outcome::Skipped(reason);
    }
    let mut command = place.steps.command("cargo", &["check", "--workspace", "--locked", "--target", TARGET]);
    let Err(reason) = place.bring_program(COMPILER, PACKAGES) else {
        return one(place, "aarch64", &mut command);
    };
    let left_out = crates_with_c(place);
    command.args(left_out.iter().flat_map(|name| ["--exclude", name]));
    match one(place, "aarch64", &mut command) {
        Outcome::Ran(mut tally) => {
            tally.add(Tally::skip("aarch64", &format!("{}: {reason}", left_out.join(", "))));
            Outcome::Ran(tally)
        }
        skipped @ Outcome::Skipped(_) => skipped,
    }
}

/// The crates of the workspace that depend on the crate `cc`, other than through tests.
fn crates_with_c(place: &Workplace) -> Vec<String> {
    let arguments = ["tree", "--workspace", "--locked", "--invert", "cc", "--edges", "normal,build"];
    let mut command = place.steps.command("cargo", &arguments);
    command.args(["--target", TARGET, "--prefix", "none", "--format", "{p}"]);
    let output = place.steps.finish("tree", &mut command).output;
    // A package of the workspace is printed as `name v0.1.0 (/its/folder)`.
    let local = output.lines().filter(|line| line.contains(" (/"));
    let mut names: Vec<String> = local.filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect();
    names.sort();
    names.dedup();
    names
}

/// Tests of tt-sync under an emulator. On x86-64 it shows nothing about orderings, because each access of memory is one
/// of x86-64.
pub(super) fn emulated(place: &Workplace) -> Outcome {
    if let Err(reason) = place.bring_target(TARGET).and_then(|()| place.bring_program(COMPILER, PACKAGES)) {
        return Outcome::Skipped(reason);
    }
    let installed = || EMULATORS.into_iter().find(|name| is_on_path(name));
    let brought = installed().map_or_else(|| place.bring_program(EMULATORS[0], "qemu-user-static"), |_| Ok(()));
    let Some(emulator) = installed() else {
        return Outcome::Skipped(brought.err().unwrap_or_else(|| "no emulator".to_owned()));
    };
    let arguments = ["test", "--locked", "--package", "tt-sync", "--lib", "--tests"];
    let mut command = place.steps.command("cargo", &arguments);
    command.args(["--target", TARGET, "--target-dir", "target/emulated"]);
    command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", COMPILER);
    command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", format!("{emulator} -L {LIBRARIES}"));
    libtest(place, "tt-sync for 64-bit Arm", command.env("TT_RING_ITEMS", ITEMS).args(["--", "--show-output"]))
}

/// The rules hold for any compiler; the kept instructions are of one.
pub(super) fn assembly(place: &Workplace) -> Outcome {
    if let Err(reason) = place.bring_target(TARGET) {
        return Outcome::Skipped(reason);
    }
    match crate::assembly::check(&place.steps.root) {
        Ok(comparison) => {
            let mut tally = if comparison.faults.is_empty() { Tally::pass() } else { Tally::default() };
            comparison.faults.into_iter().for_each(|fault| tally.add(Tally::fail(format!("assembly: {fault}"))));
            comparison.skip.iter().for_each(|reason| tally.add(Tally::skip("assembly", reason)));
            Outcome::Ran(tally)
        }
        Err(error) => Outcome::Ran(Tally::fail(format!("assembly: {error:#}"))),
    }
}
