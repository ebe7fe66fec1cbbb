//! Weakened orderings: each one of the ring and the cell, weakened on its own, must make a proof fail.
//!
//! That shows that the proofs can see what they are there for, and that no ordering is stronger than it needs to be. The
//! orderings are found in the source, so that a new one is tried as well.

use std::fmt;
use std::path::{Path, PathBuf};

use super::Workplace;
use super::tally::Tally;
use crate::tidy::{Tree, code, copy_tree};

/// Where the orderings are.
const FOLDER: &str = "crates/tt-sync/src/";
/// Orderings that are there for no proof's sake: file, what the line holds, reason.
const KEPT: &[(&str, &str, &str)] = &[];

/// One ordering, and what it is weakened to.
#[derive(Clone, Debug, PartialEq)]
struct Weakening {
    path: String,
    /// From 1.
    line: usize,
    /// Of the ordering's name, in bytes.
    offset: usize,
    strong: &'static str,
    weak: &'static str,
}

impl fmt::Display for Weakening {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{} {} -> {}", self.path, self.line, self.strong, self.weak)
    }
}

impl Weakening {
    fn apply(&self, source: &str) -> String {
        let end = self.offset + self.strong.len();
        format!("{}{}{}", &source[..self.offset], self.weak, &source[end..])
    }
}

/// Weakens one ordering after the other in a copy of the tree under the target folder.
pub(crate) fn run(place: &Workplace) -> anyhow::Result<Tally> {
    let copy = place.root.join("target/weaken");
    copy_tree(&place.root, &copy)?;
    let tree = Tree::read(&place.root)?;
    let sources = tree.rust().filter(|file| file.path.starts_with(FOLDER) && !file.is_tests());
    let sources: Vec<(&str, &str)> = sources.map(|file| (file.path.as_str(), file.text.as_str())).collect();
    let mut tally = Tally::default();
    match proofs(place, &copy) {
        Verdict::Passed => tally.add(Tally::pass()),
        Verdict::NotBuilt | Verdict::Failed(_) => anyhow::bail!("the proofs fail before anything is weakened"),
    }
    let mut found = Vec::new();
    for (path, source) in &sources {
        // Blanked text has as many characters as the source, which are bytes only then.
        anyhow::ensure!(source.is_ascii(), "{path} is not ASCII");
        found.extend(weakenings(path, source));
        for line in unseen(source) {
            tally.add(Tally::fail(format!("{path}:{line}: SeqCst and fences are what no proof sees")));
        }
    }
    anyhow::ensure!(!found.is_empty(), "there is no ordering under {FOLDER}");
    for weakening in &found {
        let (_, source) = sources.iter().find(|(path, _)| *path == weakening.path).expect("it was found there");
        std::fs::write(copy.join(&weakening.path), weakening.apply(source))?;
        let verdict = proofs(place, &copy);
        std::fs::write(copy.join(&weakening.path), source)?;
        tally.add(judge(weakening, source, &verdict));
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
        (Verdict::NotBuilt, _) => Tally::fail(format!("{weakening}: does not build")),
    }
}

/// What the proofs say.
enum Verdict {
    Passed,
    /// The first proof that failed.
    Failed(String),
    NotBuilt,
}

fn proofs(place: &Workplace, copy: &Path) -> Verdict {
    // Not the folder of the proofs themselves: cargo takes the copy for the same package, and a weakened build for theirs.
    let target: PathBuf = place.root.join("target/loom-weakened");
    let command = |last: &[&str]| {
        let mut command = place.command("cargo", &["test", "--profile", "loom", "--locked", "--package", "tt-sync"]);
        command.args(["--lib", "--target-dir"]).arg(&target).args(last);
        command.current_dir(copy).env("RUSTFLAGS", "--cfg loom");
        command
    };
    if !place.finish("weaken-build", &mut command(&["--no-run"])).succeeded() {
        return Verdict::NotBuilt;
    }
    let finished = place.finish("weaken", &mut command(&["--", "loom_"]));
    if finished.succeeded() {
        return Verdict::Passed;
    }
    Verdict::Failed(first_failure(&finished.output).unwrap_or("nothing that says its name").to_owned())
}

/// The test that libtest says has failed; in a run that was aborted, whose thread panicked first.
fn first_failure(output: &str) -> Option<&str> {
    let named = output.lines().find_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    named.or_else(|| output.lines().find_map(|line| line.strip_prefix("thread '")?.split('\'').next()))
}

/// What an ordering may be weakened to.
fn weaker(strong: &str) -> (&'static str, &'static [&'static str]) {
    match strong {
        "Acquire" => ("Acquire", &["Relaxed"]),
        "Release" => ("Release", &["Relaxed"]),
        "AcqRel" => ("AcqRel", &["Acquire", "Release", "Relaxed"]),
        _ => ("", &[]),
    }
}

fn weakenings(path: &str, source: &str) -> Vec<Weakening> {
    let blanked = code::blank_text(source);
    let mut found = Vec::new();
    for (offset, word) in code::words(&blanked) {
        let (strong, weak) = weaker(word);
        let line = code::line_at(source, offset);
        found.extend(weak.iter().map(|weak| Weakening { path: path.to_owned(), line, offset, strong, weak }));
    }
    found
}

/// Lines with what loom does not model as the machine does.
fn unseen(source: &str) -> Vec<usize> {
    let blanked = code::blank_text(source);
    let words = code::words(&blanked).filter(|(_, word)| matches!(*word, "SeqCst" | "fence" | "compiler_fence"));
    words.map(|(offset, _)| code::line_at(&blanked, offset)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "// Ordering::Release\na.store(1, Ordering::Release);\nb.swap(1, AcqRel);\nc.load(Ordering::Relaxed);\nlet s = \"Acquire\";\n";

    #[test]
    fn each_ordering_is_weakened_on_its_own_and_in_every_way() {
        let found = weakenings("a.rs", SOURCE);
        let all: Vec<_> = found.iter().map(|found| (found.line, found.weak)).collect();
        assert_eq!(all, [(2, "Relaxed"), (3, "Acquire"), (3, "Release"), (3, "Relaxed")]);
        let weakened = found[0].apply(SOURCE);
        assert!(weakened.contains("a.store(1, Ordering::Relaxed)") && weakened.contains("b.swap(1, AcqRel)"));
        assert!(weakened.starts_with("// Ordering::Release\n"));
        assert!(found[1].apply(SOURCE).contains("b.swap(1, Acquire)"));
    }

    #[test]
    fn what_loom_does_not_model_is_found() {
        assert_eq!(unseen("// SeqCst\na.load(Ordering::SeqCst);\nfence(Acquire);\n"), [2, 3]);
    }

    #[test]
    fn the_proof_that_failed_is_named() {
        assert_eq!(first_failure("test a ... ok\ntest b ... FAILED\ntest c ... FAILED\n"), Some("b"));
        assert_eq!(first_failure("test a ... ok\n\nthread 'x::y' (7) panicked at z\n"), Some("x::y"));
        assert_eq!(first_failure("test a ... ok\n"), None);
    }

    #[test]
    fn an_ordering_that_survives_fails_unless_it_is_listed() {
        let weakening = &weakenings("a.rs", SOURCE)[0];
        assert_eq!(judge(weakening, SOURCE, &Verdict::Passed).failed, 1);
        assert_eq!(judge(weakening, SOURCE, &Verdict::NotBuilt).failed, 1);
        assert_eq!(judge(weakening, SOURCE, &Verdict::Failed("proof".to_owned())).failed, 0);
    }
}
