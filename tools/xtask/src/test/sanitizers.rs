//! Miri and the sanitizers, which need the nightly toolchain.

use super::Workplace;
use super::suites::{libtest, present};
use super::weaken::miri::{FLAGS, LITMUS};
use crate::tally::{Outcome, Tally};

/// Crates under the address sanitizer: all with unsafe code, and the TURN engine.
const SANITIZED: &[&str] = &["tt-meter", "tt-sync", "tt-simd", "tt-os", "tt-net", "tt-path", "tt-turn"];
const HOST_TARGET: &str = "x86_64-unknown-linux-gnu";

/// Few cases each: Miri interprets, some thousand times slower. Isolation would keep proptest from its own folder.
///
/// Everything once by stacked borrows, the ring and the cell again by tree borrows with threads that run until they wait,
/// and what has two threads once more under many schedules. The litmus programs are preempted more often;
/// `cargo xtask qualify weak-memory` has more seeds of them.
pub(super) fn miri(place: &Workplace) -> Outcome {
    if let Err(reason) = place.bring_nightly("miri").and_then(|()| place.bring_nightly("rust-src")) {
        return Outcome::Skipped(reason);
    }
    let passes: [(&str, &[&str], &str, &[&str]); 4] = [
        ("miri", &["--package", "tt-sync", "--package", "tt-simd"], "", &[]),
        ("miri-tree", &["--package", "tt-sync"], "-Zmiri-tree-borrows -Zmiri-preemption-rate=0", &[]),
        (
            "miri-seeds",
            &["--package", "tt-sync"],
            "-Zmiri-tree-borrows -Zmiri-many-seeds=0..8",
            &["two_threads", "every_strategy"],
        ),
        ("miri-litmus", &["--package", "tt-sync"], &format!("{FLAGS} -Zmiri-many-seeds=0..8"), &[LITMUS]),
    ];
    let mut tally = Tally::default();
    for (name, packages, flags, filters) in passes {
        let mut command = place.steps.command("cargo", &["+nightly", "miri", "test", "--lib", "--tests"]);
        command.args(packages).args(["--target-dir", "target/miri", "--", "--show-output"]).args(filters);
        command.env("MIRIFLAGS", format!("-Zmiri-strict-provenance -Zmiri-disable-isolation {flags}"));
        command.env("PROPTEST_CASES", "8");
        if cfg!(target_arch = "x86_64") {
            // What Miri cannot ask the processor for; the scalar twins are tried in any case.
            command.env("RUSTFLAGS", "-Ctarget-feature=+pclmulqdq,+ssse3,+sse4.1,+sse4.2");
        }
        if let Outcome::Ran(ran) = libtest(place, name, &mut command) {
            tally.add(ran);
        }
    }
    Outcome::Ran(tally)
}

/// With a standard library that is instrumented too: without it, what libtest does between its threads looks like a race.
pub(super) fn tsan(place: &Workplace) -> Outcome {
    if let Err(reason) = place.bring_nightly("rust-src") {
        return Outcome::Skipped(reason);
    }
    let arguments = ["+nightly", "test", "-Zbuild-std", "--locked", "--package", "tt-sync", "--lib", "--tests"];
    let mut command = place.steps.command("cargo", &arguments);
    command.args(["--target", HOST_TARGET, "--target-dir", "target/tsan", "--", "--show-output"]);
    command.env("TT_RING_ITEMS", "200000");
    libtest(place, "tsan", command.env("RUSTFLAGS", "-Zsanitizer=thread"))
}

/// Tests that the address sanitizer falsifies. Its shadow is part of the process's memory: it locks nothing and its pages
/// fault too. Its checks take time.
const NOT_UNDER_ASAN: [&str; 3] =
    ["locked_pages_are_counted_until_they_are_unlocked", "each_small_page_faults_once", "timing::"];

/// The address sanitizer, which ends with the leak sanitizer's word.
pub(super) fn asan(place: &Workplace) -> Outcome {
    if let Err(reason) = place.bring_nightly("rust-src") {
        return Outcome::Skipped(reason);
    }
    let mut command = place.steps.command("cargo", &["+nightly", "test", "--locked", "--lib", "--tests"]);
    for name in present(place, SANITIZED) {
        command.args(["--package", name]);
    }
    command.args(["--target", HOST_TARGET, "--target-dir", "target/asan", "--", "--show-output"]);
    NOT_UNDER_ASAN.iter().for_each(|name| {
        command.args(["--skip", name]);
    });
    command.env("ASAN_OPTIONS", "detect_leaks=1");
    libtest(place, "asan", command.env("RUSTFLAGS", "-Zsanitizer=address"))
}
