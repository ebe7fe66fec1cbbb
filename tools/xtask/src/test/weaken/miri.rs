//! The litmus programs of tt-sync under Miri's weak memory, as they are and with one ordering weakened.
//!
//! Miri keeps older stores of each atomic word, and a load draws one of those that the memory model still allows: what
//! a machine's store buffer shows. It also draws when a thread is preempted. A seed is one execution.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, ensure};

use super::{Kept, Prover, Tried, Verdict, Weakening};
use crate::tally::{Outcome, Tally};
use crate::test::Workplace;
use crate::test::process::Finished;

/// Part of the names of the litmus programs, each of which is a test.
pub(crate) const LITMUS: &str = "::weak_memory::";
/// The reuse of an address by another thread would order the two: none here. Threads are preempted more often than by
/// default, because the programs are short. Borrows and values are checked by the other passes of the suite `miri`: here
/// they would double the time of a seed.
pub(crate) const FLAGS: &str = "-Zmiri-strict-provenance -Zmiri-address-reuse-cross-thread-rate=0 \
                                -Zmiri-preemption-rate=0.05 -Zmiri-disable-stacked-borrows -Zmiri-disable-validation";
/// Seeds of a run of cargo, which then says how far it is: far from the limit of a step, also on a busy machine.
const BLOCK: u32 = 50;
/// Seeds of the copy with nothing weakened, which show that it works.
const COPY_SEEDS: u32 = 4;

/// Seeds, unless the variable says another number.
const SEEDS: u32 = 1_000;
const SEEDS_VARIABLE: &str = "TT_LITMUS_SEEDS";

/// Runs the litmus programs with many seeds, then with each ordering weakened until a seed fails, and prints the result
/// in one line, which `cargo xtask qualify weak-memory` keeps.
pub(crate) fn run(place: &Workplace) -> anyhow::Result<Outcome> {
    for component in ["miri", "rust-src"] {
        if let Err(reason) = place.bring_nightly(component) {
            return Ok(Outcome::Skipped(reason));
        }
    }
    let seeds = std::env::var(SEEDS_VARIABLE).ok().map(|text| text.parse()).transpose().context(SEEDS_VARIABLE)?;
    let miri = Miri { place, seeds: seeds.unwrap_or(SEEDS) };
    let (seeds, started) = (miri.seeds, Instant::now());
    let programs = miri.play(&place.steps.root)?;
    let seconds = started.elapsed().as_secs();
    let Tried { mut tally, weakenings, survivors, drawn_max } = super::run(place, miri)?;
    tally.add(Tally::pass());
    println!(
        "      weak memory: {seeds} seeds of {programs} litmus programs without a failure, {seconds} s; {} of \
         {weakenings} weakened orderings found, each within {drawn_max} seeds",
        weakenings - survivors
    );
    Ok(Outcome::Ran(tally))
}

struct Miri<'a> {
    place: &'a Workplace,
    seeds: u32,
}

impl Miri<'_> {
    /// Plays all programs with nothing weakened, and returns their number.
    fn play(&self, folder: &Path) -> anyhow::Result<u64> {
        let mut programs = 0;
        for first in (0..self.seeds).step_by(BLOCK as usize) {
            let (started, end) = (Instant::now(), self.seeds.min(first + BLOCK));
            let finished = self.finish(self.command(folder, "target/miri", &many_seeds(first, end)).arg(LITMUS));
            if !finished.succeeded() {
                finished.show_tail();
            }
            ensure!(finished.succeeded(), "a litmus program fails in the seeds {first} to {end}");
            programs = running(&finished.output);
            ensure!(programs > 0, "there is no litmus program");
            println!("      seeds {first} to {end}: {programs} programs, {:.0} s", started.elapsed().as_secs_f64());
        }
        Ok(programs)
    }

    /// Returns the first seed, and the program, that fails among those that `filter` selects.
    fn first_failure(&self, copy: &Path, weakening: &Weakening, filter: &[&str]) -> Option<Verdict> {
        let command = |seeds: &str| {
            let mut command = self.command(copy, "target/miri-weakened", seeds);
            command.args(filter).env(super::VARIABLE, weakening.to_switch());
            command
        };
        for first in (0..self.seeds).step_by(BLOCK as usize) {
            let finished = self.finish(&mut command(&many_seeds(first, self.seeds.min(first + BLOCK))));
            if finished.succeeded() {
                continue;
            }
            let Some(seed) = failing_seed(&finished.output) else {
                finished.show_tail();
                return Some(Verdict::NotRun);
            };
            // Several seeds run at once and print at once: alone, the seed says which program it is.
            let alone = self.finish(&mut command(&format!("-Zmiri-seed={seed}")));
            let drawn = first + tried(&finished.output);
            let failed = failing_program(&alone.output).map(|name| Verdict::Failed {
                proof: format!("{name}, seed {seed}, one of the first {drawn} tried"),
                drawn,
            });
            return Some(failed.unwrap_or(Verdict::NotRun));
        }
        None
    }

    fn finish(&self, command: &mut Command) -> Finished {
        self.place.steps.finish("weak-memory", command)
    }

    fn command(&self, folder: &Path, target: &str, flags: &str) -> Command {
        let arguments = ["+nightly", "miri", "test", "--locked", "--package", "tt-sync", "--lib", "--target-dir"];
        let mut command = self.place.steps.command("cargo", &arguments);
        command.arg(self.place.steps.root.join(target)).args(["--", "--test-threads", "1"]).current_dir(folder);
        // With the environment of the machine hidden, a seed is the same everywhere.
        command.env("MIRIFLAGS", format!("{FLAGS} -Zmiri-env-forward={} {flags}", super::VARIABLE));
        command
    }
}

impl Prover for Miri<'_> {
    const COPY: &'static str = "target/weaken-miri";
    const KEPT: &'static [Kept] = &[];

    fn prepare(&mut self, copy: &Path) -> anyhow::Result<()> {
        let mut command = self.command(copy, "target/miri-weakened", &many_seeds(0, COPY_SEEDS));
        let finished = self.finish(command.arg(LITMUS));
        if !finished.succeeded() {
            finished.show_tail();
        }
        ensure!(finished.succeeded(), "the litmus programs fail in the copy before anything is weakened");
        ensure!(running(&finished.output) > 0, "there is no litmus program in the copy");
        Ok(())
    }

    /// First the programs of the ordering's module.
    fn weakened(&self, copy: &Path, weakening: &Weakening) -> Verdict {
        let of_module = format!("{}::tests{LITMUS}", weakening.module());
        let found = self.first_failure(copy, weakening, &[&of_module]);
        let found = found.or_else(|| self.first_failure(copy, weakening, &[LITMUS, "--skip", &of_module]));
        found.unwrap_or(Verdict::Passed)
    }
}

fn many_seeds(first: u32, end: u32) -> String {
    format!("-Zmiri-many-seeds={first}..{end}")
}

/// The number of tests that libtest says it runs.
fn running(output: &str) -> u64 {
    let count = output.lines().find_map(|line| line.strip_prefix("running ")?.split(' ').next()?.parse().ok());
    count.unwrap_or_default()
}

/// The seed that Miri says has failed.
fn failing_seed(output: &str) -> Option<u32> {
    output.lines().find_map(|line| {
        let (_, after) = line.split_once("FAILING SEED: ")?;
        after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    })
}

/// The number of seeds that Miri says it has begun.
fn tried(output: &str) -> u32 {
    u32::try_from(output.matches("Trying seed: ").count()).unwrap_or(u32::MAX)
}

/// The test that did not pass: Miri ends the process at undefined behaviour and at a deadlock.
fn failing_program(output: &str) -> Option<&str> {
    output.lines().find_map(|line| {
        let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
        (!result.starts_with("ok")).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_that_failed_is_named() {
        assert_eq!(failing_program("test a ... ok\ntest b ... FAILED\n"), Some("b"));
        assert_eq!(failing_program("test a ... ok\ntest b ... error: Undefined Behavior: Data race\n"), Some("b"));
        assert_eq!(failing_program("test result: FAILED. 1 passed\ntest a ... ok\n"), None);
    }

    #[test]
    fn seeds_and_programs_are_read() {
        let output = "Trying seed: 0\nTrying seed: 17\nnote: x\nFAILING SEED: 17\nFAILING SEED: 0\n";
        assert_eq!((failing_seed(output), tried(output)), (Some(17), 2));
        assert_eq!(failing_seed("error: could not compile"), None);
        assert_eq!((running("\nrunning 21 tests\n"), running("running 1 test\n"), running("")), (21, 1, 0));
    }
}
