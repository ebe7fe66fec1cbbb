//! Weakened orderings: each one of the ring and the cell, weakened alone, must make a proof fail.
//!
//! That shows that the proofs test what they are for, and that no ordering is stronger than it needs to be. The
//! orderings are found in the source, so that a new one is tried as well. In a copy of the tree each of them becomes a
//! call that looks at `TT_WEAKENED`, so that one build serves all of them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Workplace;
use crate::code;
use crate::tally::Tally;
use crate::tree::{Tree, copy_tree};

/// Where the orderings are.
const FOLDER: &str = "crates/tt-sync/src/";
const ROOT: &str = "crates/tt-sync/src/lib.rs";
/// Orderings that no proof needs: file, what the line holds, reason.
const KEPT: &[(&str, &str, &str)] = &[];
/// Code added to the root of the copy.
const SWITCH: &str = "
/// Orderings that a variable of the environment weakens.
pub(crate) mod weakened {
    use core::sync::atomic::Ordering;
    use std::sync::OnceLock;

    static WEAKENED: OnceLock<Option<(u32, Ordering)>> = OnceLock::new();

    fn read() -> Option<(u32, Ordering)> {
        let text = std::env::var(\"TT_WEAKENED\").ok()?;
        let (site, weak) = text.split_once(' ')?;
        let weak = match weak {
            \"Relaxed\" => Ordering::Relaxed,
            \"Acquire\" => Ordering::Acquire,
            _ => Ordering::Release,
        };
        Some((site.parse().ok()?, weak))
    }

    pub(crate) fn ordering(site: u32, strong: Ordering) -> Ordering {
        WEAKENED.get_or_init(read).filter(|(weakened, _)| *weakened == site).map_or(strong, |(_, weak)| weak)
    }
}
";

/// One ordering, and what it is weakened to.
#[derive(Clone, Debug, PartialEq)]
struct Weakening {
    path: String,
    /// From 1.
    line: usize,
    /// Of the ordering among all of them.
    site: u32,
    strong: &'static str,
    weak: &'static str,
}

impl fmt::Display for Weakening {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{} {} -> {}", self.path, self.line, self.strong, self.weak)
    }
}

impl Weakening {
    /// The module of the crate's root that the ordering is in.
    fn module(&self) -> &str {
        let path = self.path.strip_prefix(FOLDER).unwrap_or(&self.path);
        path.split('/').next().map_or(path, |first| first.strip_suffix(".rs").unwrap_or(first))
    }
}

/// Weakens one ordering after the other in a copy of the tree under the target folder.
pub(crate) fn run(place: &Workplace) -> anyhow::Result<Tally> {
    let copy = place.steps.root.join("target/weaken");
    copy_tree(&place.steps.root, &copy)?;
    let tree = Tree::read(&place.steps.root)?;
    let sources = tree.rust().filter(|file| file.path.starts_with(FOLDER) && !file.is_tests());
    let sources: Vec<(&str, &str)> = sources.map(|file| (file.path.as_str(), file.text.as_str())).collect();
    let (mut tally, mut found, mut sites) = (Tally::default(), Vec::new(), 0);
    for (path, source) in &sources {
        // Blanked text has as many characters as the source, which are bytes only then.
        anyhow::ensure!(source.is_ascii(), "{path} is not ASCII");
        let (mut switched, weakenings) = switched(path, source, &mut sites);
        if *path == ROOT {
            switched += SWITCH;
        }
        std::fs::write(copy.join(path), switched)?;
        found.extend(weakenings);
        for line in unseen(source) {
            tally.add(Tally::fail(format!(
                "{path}:{line}: no proof sees it: write Ordering::X, without SeqCst and fences"
            )));
        }
    }
    anyhow::ensure!(!found.is_empty(), "there is no ordering under {FOLDER}");
    let proofs = proofs(place, &copy)?;
    tally.add(Tally::pass());
    for weakening in &found {
        let (_, source) = sources.iter().find(|(path, _)| *path == weakening.path).expect("it was found there");
        tally.add(judge(weakening, source, &weakened(place, &copy, weakening, &proofs)));
    }
    for (path, text, _) in KEPT {
        let is_there = sources.iter().any(|(of, source)| of == path && source.contains(text));
        if !is_there {
            tally.add(Tally::fail(format!("{path} is listed with `{text}`, which it does not hold")));
        }
    }
    println!("      {} weakenings tried", found.len());
    Ok(tally)
}

fn judge(weakening: &Weakening, source: &str, verdict: &Verdict) -> Tally {
    let line = source.lines().nth(weakening.line - 1).unwrap_or_default();
    let kept = KEPT.iter().find(|(path, text, _)| weakening.path == *path && line.contains(text));
    match (verdict, kept) {
        (Verdict::Failed(proof), None) => {
            println!("      {weakening}: {proof}");
            Tally::pass()
        }
        (Verdict::Passed, Some((_, _, reason))) => {
            println!("      {weakening}: survives, {reason}");
            Tally::pass()
        }
        (Verdict::Passed, None) => Tally::fail(format!("{weakening}: no proof noticed")),
        (Verdict::Failed(_), Some(_)) => Tally::fail(format!("{weakening}: listed as surviving, but a proof fails")),
        (Verdict::NotBuilt, _) => Tally::fail(format!("{weakening}: neither builds nor fails")),
    }
}

/// Result of the proofs.
enum Verdict {
    Passed,
    /// The first proof that failed.
    Failed(String),
    NotBuilt,
}

/// Runs the proofs with one ordering weakened, until one fails: first those of its module, each in a separate process.
fn weakened(place: &Workplace, copy: &Path, weakening: &Weakening, proofs: &[String]) -> Verdict {
    let module = weakening.module();
    let (of_module, others): (Vec<&String>, Vec<_>) =
        proofs.iter().partition(|proof| proof.split("::").next() == Some(module));
    for proof in of_module.into_iter().chain(others) {
        let mut command = proofs_command(place, copy, &["--", "--exact", proof]);
        command.env("TT_WEAKENED", format!("{} {}", weakening.site, weakening.weak));
        let finished = place.steps.finish("weaken", &mut command);
        if !finished.succeeded() {
            // Unless libtest or a panic says that a proof failed, it is a build or time problem, which proves nothing.
            let failed = first_failure(&finished.output);
            return failed.map_or(Verdict::NotBuilt, |proof| Verdict::Failed(proof.to_owned()));
        }
    }
    Verdict::Passed
}

/// Builds the proofs, runs them with nothing weakened and returns their names.
fn proofs(place: &Workplace, copy: &Path) -> anyhow::Result<Vec<String>> {
    anyhow::ensure!(
        place.steps.finish("weaken-build", &mut proofs_command(place, copy, &["--no-run"])).succeeded(),
        "the proofs with switches do not build"
    );
    let finished = place.steps.finish("weaken", &mut proofs_command(place, copy, &["--", "loom_"]));
    anyhow::ensure!(finished.succeeded(), "the proofs fail before anything is weakened");
    let names = finished.output.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... ok"));
    let names: Vec<String> = names.map(str::to_owned).collect();
    anyhow::ensure!(!names.is_empty(), "there is no proof");
    Ok(names)
}

fn proofs_command(place: &Workplace, copy: &Path, last: &[&str]) -> Command {
    // Not the folder of the proofs themselves: cargo takes the copy for the same package.
    let target: PathBuf = place.steps.root.join("target/loom-weakened");
    let arguments = ["test", "--profile", "checked", "--locked", "--package", "tt-sync", "--lib", "--target-dir"];
    let mut command = place.steps.command("cargo", &arguments);
    command.arg(&target).args(last).current_dir(copy).env("RUSTFLAGS", "--cfg loom");
    command
}

/// The test that libtest says has failed; in a run that was aborted, whose thread panicked first.
fn first_failure(output: &str) -> Option<&str> {
    let named = output.lines().find_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    named.or_else(|| output.lines().find_map(|line| line.strip_prefix("thread '")?.split('\'').next()))
}

/// Returns the weaker orderings of an ordering.
fn weaker(strong: &str) -> (&'static str, &'static [&'static str]) {
    match strong {
        "Acquire" => ("Acquire", &["Relaxed"]),
        "Release" => ("Release", &["Relaxed"]),
        "AcqRel" => ("AcqRel", &["Acquire", "Release", "Relaxed"]),
        _ => ("", &[]),
    }
}

/// The source with a call for each ordering, and the ways to weaken it; `sites` counts orderings.
fn switched(path: &str, source: &str, sites: &mut u32) -> (String, Vec<Weakening>) {
    let blanked = code::blank_text(source);
    let (mut out, mut found, mut copied) = (String::new(), Vec::new(), 0);
    for (offset, word) in code::words(&blanked) {
        let (strong, weak) = weaker(word);
        let is_path = blanked[..offset].ends_with("Ordering::");
        if weak.is_empty() || !is_path {
            continue;
        }
        let line = code::line_at(source, offset);
        let weakening = |weak| Weakening { path: path.to_owned(), line, site: *sites, strong, weak };
        found.extend(weak.iter().copied().map(weakening));
        let start = offset - "Ordering::".len();
        out += &source[copied..start];
        out += &format!("crate::weakened::ordering({sites}, Ordering::{strong})");
        copied = offset + word.len();
        *sites += 1;
    }
    (out + &source[copied..], found)
}

/// Lines with what loom does not model as the machine does, and orderings that [`switched`] does not find.
fn unseen(source: &str) -> Vec<usize> {
    let blanked = code::blank_text(source);
    let is_unseen = |(offset, word): &(usize, &str)| match *word {
        "SeqCst" | "fence" | "compiler_fence" => true,
        "Acquire" | "Release" | "AcqRel" => !blanked[..*offset].ends_with("Ordering::"),
        _ => false,
    };
    let words = code::words(&blanked).filter(is_unseen);
    words.map(|(offset, _)| code::line_at(&blanked, offset)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "// Ordering::Release\na.store(1, Ordering::Release);\nb.swap(1, Ordering::AcqRel);\nc.load(Ordering::Relaxed);\nlet s = \"Acquire\";\n";

    #[test]
    fn each_ordering_is_weakened_alone_and_in_every_way() {
        let mut sites = 3;
        let (switched, found) = switched("a.rs", SOURCE, &mut sites);
        assert!(found.iter().all(|found| found.module() == "a"));
        let all: Vec<_> = found.iter().map(|found| (found.line, found.site, found.weak)).collect();
        assert_eq!(all, [(2, 3, "Relaxed"), (3, 4, "Acquire"), (3, 4, "Release"), (3, 4, "Relaxed")]);
        assert_eq!(sites, 5);
        assert!(switched.contains("a.store(1, crate::weakened::ordering(3, Ordering::Release));"), "{switched}");
        assert!(switched.starts_with("// Ordering::Release\n") && switched.ends_with("let s = \"Acquire\";\n"));
    }

    #[test]
    fn what_loom_does_not_model_is_found() {
        assert_eq!(
            unseen("// SeqCst\na.load(Ordering::SeqCst);\nfence(Ordering::Acquire);\nb.load(Acquire);\n"),
            [2, 3, 4]
        );
    }

    #[test]
    fn the_proof_that_failed_is_named() {
        assert_eq!(first_failure("test a ... ok\ntest b ... FAILED\ntest c ... FAILED\n"), Some("b"));
        assert_eq!(first_failure("test a ... ok\n\nthread 'x::y' (7) panicked at z\n"), Some("x::y"));
        assert_eq!(first_failure("test a ... ok\n"), None);
    }

    #[test]
    fn an_ordering_that_survives_fails_unless_it_is_listed() {
        let weakening = &switched("a.rs", SOURCE, &mut 0).1[0];
        assert_eq!(judge(weakening, SOURCE, &Verdict::Passed).failed, 1);
        assert_eq!(judge(weakening, SOURCE, &Verdict::NotBuilt).failed, 1);
        assert_eq!(judge(weakening, SOURCE, &Verdict::Failed("proof".to_owned())).failed, 0);
    }
}
