//! The committed XDP object, built again.

use super::Workplace;
use crate::bpf::{Build, compare};
use crate::tally::{Outcome, Tally};

pub(super) fn run(place: &Workplace) -> Outcome {
    // What is missing is the reason of the skip.
    for (program, package) in [("clang-14", "clang-14"), ("llvm-strip-14", "llvm-14")] {
        let _ = place.bring_program(program, package);
    }
    match compare(&place.steps.root) {
        Ok(Build::Same) => Outcome::Ran(Tally::pass()),
        Ok(Build::Differs(reason)) => Outcome::Ran(Tally::fail(reason)),
        Ok(Build::Skipped(reason)) => Outcome::Skipped(reason),
        Err(error) => Outcome::Ran(Tally::fail(format!("bpf: {error:#}"))),
    }
}
