//! The proofs by loom, with one ordering weakened.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Kept, Prover, Verdict, Weakening};
use crate::test::Workplace;

const TARGET: &str = "target/loom-weakened";

/// The tests whose names begin with `loom_`.
pub(super) struct Loom<'a> {
    place: &'a Workplace,
    /// With their modules.
    names: Vec<String>,
}

impl<'a> Loom<'a> {
    pub(super) fn new(place: &'a Workplace) -> Self {
        Self { place, names: Vec::new() }
    }

    fn command(&self, copy: &Path, last: &[&str]) -> Command {
        // Not the folder of the proofs themselves: cargo takes the copy for the same package.
        let target = self.place.steps.root.join(TARGET);
        let arguments = ["test", "--profile", "checked", "--locked", "--package", "tt-sync", "--lib", "--target-dir"];
        let mut command = self.place.steps.command("cargo", &arguments);
        command.arg(&target).args(last).current_dir(copy).env("RUSTFLAGS", "--cfg loom");
        command
    }
}

impl Prover for Loom<'_> {
    const COPY: &'static str = "target/weaken";
    const KEPT: &'static [Kept] = &[];

    fn prepare(&mut self, copy: &Path) -> anyhow::Result<()> {
        let steps = &self.place.steps;
        if crate::in_ci() {
            // With the dependencies, which are the same. Where there is none, they are built.
            let _ = fs::rename(steps.root.join("target/loom"), steps.root.join(TARGET));
        }
        let built = steps.finish("weaken-build", &mut self.command(copy, &["--no-run"]));
        anyhow::ensure!(built.succeeded(), "the proofs with switches do not build");
        let finished = steps.finish("weaken", &mut self.command(copy, &["--", "loom_"]));
        anyhow::ensure!(finished.succeeded(), "the proofs fail before anything is weakened");
        let names = finished.output.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... ok"));
        self.names = names.map(str::to_owned).collect();
        anyhow::ensure!(!self.names.is_empty(), "there is no proof");
        Ok(())
    }

    /// Each proof is a process: first those of the module, until one fails.
    fn weakened(&self, copy: &Path, weakening: &Weakening) -> Verdict {
        let is_of_module = |proof: &&String| proof.split("::").next() == Some(weakening.module());
        let (of_module, others): (Vec<&String>, Vec<_>) = self.names.iter().partition(is_of_module);
        for proof in of_module.into_iter().chain(others) {
            let mut command = self.command(copy, &["--", "--exact", proof]);
            command.env(super::VARIABLE, weakening.to_switch());
            let finished = self.place.steps.finish("weaken", &mut command);
            if !finished.succeeded() {
                // Unless libtest or a panic says that a proof failed, it is a build or time problem, which proves
                // nothing.
                let failed = first_failure(&finished.output);
                return failed.map_or(Verdict::NotRun, |proof| Verdict::Failed { proof: proof.to_owned(), drawn: 0 });
            }
        }
        Verdict::Passed
    }
}

/// The test that libtest says has failed; in a run that was aborted, whose thread panicked first.
fn first_failure(output: &str) -> Option<&str> {
    let named = output.lines().find_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    named.or_else(|| output.lines().find_map(|line| line.strip_prefix("thread '")?.split('\'').next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proof_that_failed_is_named() {
        assert_eq!(first_failure("test a ... ok\ntest b ... FAILED\ntest c ... FAILED\n"), Some("b"));
        assert_eq!(first_failure("test a ... ok\n\nthread 'x::y' (7) panicked at z\n"), Some("x::y"));
        assert_eq!(first_failure("test a ... ok\n"), None);
    }
}
