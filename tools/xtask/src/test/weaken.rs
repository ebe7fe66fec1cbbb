//! Weakened orderings: each one of tt-sync, weakened alone, must make a proof fail.
//!
//! That shows that the proofs test what they are for, and that no ordering is stronger than it needs to be. The
//! orderings are found in the source, so that a new one is tried as well. In a copy of the tree each of them becomes a
//! call that looks at `TT_WEAKENED`, so that one build serves all of them. Two tools look for what breaks: loom in the
//! suite `weaken`, Miri in `cargo xtask qualify weak-memory`.

mod loom;
pub(super) mod miri;

use std::fmt;
use std::path::Path;

use super::Workplace;
use crate::code;
use crate::tally::Tally;
use crate::tree::{Tree, copy_tree};

/// Where the orderings are.
const FOLDER: &str = "crates/tt-sync/src/";
const ROOT: &str = "crates/tt-sync/src/lib.rs";
/// Number and weaker ordering of the site that is weakened.
const VARIABLE: &str = "TT_WEAKENED";
/// Code added to the root of the copy.
///
/// The first call orders the thread that makes it before all others that call: it must be made before a thread is
/// started, or what that thread did before would be ordered too, whatever is weakened. Tests name their first thread.
const SWITCH: &str = "
/// Orderings that a variable of the environment weakens.
pub(crate) mod weakened {
    use core::sync::atomic::Ordering;
    use std::sync::OnceLock;

    static WEAKENED: OnceLock<Option<(u32, Ordering)>> = OnceLock::new();

    fn read() -> Option<(u32, Ordering)> {
        let is_first = std::thread::current().name().is_some();
        assert!(is_first, \"the first call of an ordering is made by a thread that the test started\");
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

    /// The value of the variable that weakens it.
    fn to_switch(&self) -> String {
        format!("{} {}", self.site, self.weak)
    }
}

/// Weakenings that a tool does not notice.
struct Kept {
    path: &'static str,
    /// What the line of the ordering holds.
    holds: &'static str,
    /// What it is weakened to; each of them if empty.
    weak: &'static str,
    reason: &'static str,
}

impl Kept {
    fn is_of(&self, weakening: &Weakening, line: &str) -> bool {
        let Self { path, holds, weak, .. } = *self;
        weakening.path == path && line.contains(holds) && (weak.is_empty() || weakening.weak == weak)
    }
}

/// A tool that must notice a weakened ordering.
trait Prover {
    /// Folder of its copy of the tree.
    const COPY: &'static str;
    /// Weakenings that it does not notice. It fails if it notices one of them.
    const KEPT: &'static [Kept];

    /// Builds the proofs in `copy` and runs them with nothing weakened.
    fn prepare(&mut self, copy: &Path) -> anyhow::Result<()>;

    /// Runs the proofs with one ordering weakened, until one fails: first those of its module.
    fn weakened(&self, copy: &Path, weakening: &Weakening) -> Verdict;
}

/// Result of the proofs.
#[derive(Debug)]
enum Verdict {
    Passed,
    /// The first proof that failed, and how many executions were drawn until then; loom draws none.
    Failed {
        proof: String,
        drawn: u32,
    },
    /// Neither passed nor failed: they were not built, or took too long.
    NotRun,
}

/// Result of all weakenings.
struct Tried {
    tally: Tally,
    weakenings: usize,
    /// Those that are listed as not noticed, and were not.
    survivors: usize,
    /// Executions within which each of the others was noticed.
    drawn_max: u32,
}

/// Weakens each ordering under loom.
pub(super) fn by_loom(place: &Workplace) -> anyhow::Result<Tally> {
    Ok(run(place, loom::Loom::new(place))?.tally)
}

/// Weakens one ordering after the other in a copy of the tree under the target folder.
fn run<P: Prover>(place: &Workplace, mut prover: P) -> anyhow::Result<Tried> {
    let copy = place.steps.root.join(P::COPY);
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
    prover.prepare(&copy)?;
    tally.add(Tally::pass());
    let mut tried = Tried { tally, weakenings: found.len(), survivors: 0, drawn_max: 0 };
    for weakening in &found {
        let (_, source) = sources.iter().find(|(path, _)| *path == weakening.path).expect("it was found there");
        let verdict = prover.weakened(&copy, weakening);
        tried.tally.add(judge(weakening, source, &verdict, P::KEPT));
        match verdict {
            Verdict::Passed => tried.survivors += 1,
            Verdict::Failed { drawn, .. } => tried.drawn_max = tried.drawn_max.max(drawn),
            Verdict::NotRun => {}
        }
    }
    for Kept { path, holds, .. } in P::KEPT {
        let is_there = sources.iter().any(|(of, source)| of == path && source.contains(holds));
        if !is_there {
            tried.tally.add(Tally::fail(format!("{path} is listed with `{holds}`, which it does not hold")));
        }
    }
    println!("      {} weakenings tried", found.len());
    Ok(tried)
}

fn judge(weakening: &Weakening, source: &str, verdict: &Verdict, kept: &[Kept]) -> Tally {
    let line = source.lines().nth(weakening.line - 1).unwrap_or_default();
    let kept = kept.iter().find(|kept| kept.is_of(weakening, line));
    match (verdict, kept) {
        (Verdict::Failed { proof, .. }, None) => {
            println!("      {weakening}: {proof}");
            Tally::pass()
        }
        (Verdict::Passed, Some(Kept { reason, .. })) => {
            println!("      {weakening}: survives, {reason}");
            Tally::pass()
        }
        (Verdict::Passed, None) => Tally::fail(format!("{weakening}: no proof noticed")),
        (Verdict::Failed { proof, .. }, Some(_)) => {
            Tally::fail(format!("{weakening}: listed as surviving, but {proof} fails"))
        }
        (Verdict::NotRun, _) => Tally::fail(format!("{weakening}: neither passes nor fails")),
    }
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
    fn an_ordering_that_survives_fails_unless_it_is_listed() {
        let weakening = &switched("a.rs", SOURCE, &mut 0).1[0];
        let kept = |weak| Kept { path: "a.rs", holds: "a.store(", weak, reason: "another covers it" };
        let failed = Verdict::Failed { proof: "proof".to_owned(), drawn: 3 };
        for (verdict, kept, failures) in [
            (&Verdict::Passed, &[][..], 1),
            (&Verdict::NotRun, &[], 1),
            (&failed, &[], 0),
            (&Verdict::Passed, &[kept("")], 0),
            (&Verdict::Passed, &[kept("Relaxed")], 0),
            (&Verdict::Passed, &[kept("Acquire")], 1),
            (&Verdict::NotRun, &[kept("")], 1),
            (&failed, &[kept("")], 1),
        ] {
            assert_eq!(judge(weakening, SOURCE, verdict, kept).failed, failures, "{verdict:?}");
        }
    }
}
