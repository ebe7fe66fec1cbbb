//! Counts that may only fall, kept in a file: `cargo xtask tidy --accept` lowers it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;

use super::{module_cycles, words};
use crate::tree::{File, Tree};
use crate::violation::Violation;

const FILE: &str = "tools/xtask/ratchet.toml";
const HEADER: &str =
    "# Counts that may only fall. `cargo xtask tidy --accept` lowers them; code that moves takes its count along.\n";

/// A rule that is not met everywhere yet.
struct Rule {
    name: &'static str,
    about: &'static str,
    /// How to see what is counted.
    hint: &'static str,
}

const RULES: &[Rule] = &[
    Rule { name: "columns", about: "Markdown lines of more than 120 columns", hint: "" },
    Rule {
        name: "module-cycles",
        about: "modules that depend on each other",
        hint: "; list: cargo xtask tidy --cycles",
    },
    Rule { name: "readme", about: "lines of README.md over 150", hint: "" },
    Rule {
        name: "words",
        about: "words and phrases that STYLE.md rules out",
        hint: "; list: cargo xtask tidy --words FOLDER",
    },
];

const COLUMNS_MAX: usize = 120;
const README_LINES_MAX: usize = 150;

/// Counts by rule and by file or folder; those that are zero are absent.
type Counts = BTreeMap<String, BTreeMap<String, u64>>;

/// Counts that rose.
pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let (measured, kept) = (measure(tree), kept(tree));
    let mut violations = Vec::new();
    for (rule, place, now, before) in compare(&measured, &kept) {
        if now > before {
            let message = format!("{now} {}, at most {before} ({}){}", rule.about, rule.name, rule.hint);
            violations.push(Violation::at(place, 0, message));
        }
    }
    let grew = |folder: &str| violations.iter().any(|violation| violation.path == folder);
    let cycles = module_cycles::find(tree).into_iter().filter(|(folder, _)| grew(folder));
    let cycles: Vec<_> =
        cycles.map(|(folder, cycle)| Violation::at(&folder, 0, format!("cycle: {}", cycle.join(", ")))).collect();
    violations.extend(cycles);
    violations
}

/// Counts that fell since they were kept.
pub(crate) fn slack(tree: &Tree) -> Vec<Violation> {
    let (measured, kept) = (measure(tree), kept(tree));
    let fell = compare(&measured, &kept).into_iter().filter(|(_, _, now, before)| now < before);
    fell.map(|(rule, place, now, before)| {
        Violation::at(place, 0, format!("{} fell from {before} to {now}: cargo xtask tidy --accept", rule.name))
    })
    .collect()
}

/// Writes the counts of the tree, unless a rule's sum rose.
pub(crate) fn accept(root: &Path, tree: &Tree) -> anyhow::Result<()> {
    let (measured, kept) = (measure(tree), kept(tree));
    let mut text = HEADER.to_owned();
    for rule in RULES {
        let sum = |counts: &Counts| counts.get(rule.name).map_or(0, |counts| counts.values().sum::<u64>());
        let (now, before) = (sum(&measured), sum(&kept));
        anyhow::ensure!(now <= before || !tree.contains(FILE), "{}: {now} {}, at most {before}", rule.name, rule.about);
        println!("{}: {before} -> {now} {}", rule.name, rule.about);
        writeln!(text, "\n[{}]", rule.name)?;
        for (place, count) in measured.get(rule.name).into_iter().flatten() {
            writeln!(text, "\"{place}\" = {count}")?;
        }
    }
    std::fs::write(root.join(FILE), text).context(FILE)
}

/// Rule, place, count now and kept count of everything that is counted or kept.
fn compare<'a>(measured: &'a Counts, kept: &'a Counts) -> Vec<(&'static Rule, &'a str, u64, u64)> {
    let mut compared = Vec::new();
    for rule in RULES {
        let of = |counts: &'a Counts| counts.get(rule.name).into_iter().flatten();
        let mut places: Vec<&str> = of(measured).chain(of(kept)).map(|(place, _)| place.as_str()).collect();
        places.sort_unstable();
        places.dedup();
        let count =
            |counts: &Counts, place: &str| counts.get(rule.name).and_then(|of| of.get(place)).copied().unwrap_or(0);
        compared.extend(places.into_iter().map(|place| (rule, place, count(measured, place), count(kept, place))));
    }
    compared
}

/// The file's counts. git merges it as a union (.gitattributes): of two lines for one place the higher one holds.
fn kept(tree: &Tree) -> Counts {
    let text = tree.files.iter().find(|file| file.path == FILE).map_or("", |file| file.text.as_str());
    let (mut counts, mut rule) = (Counts::new(), "");
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            rule = name;
        } else if let Some((place, Ok(count))) = line.split_once(" = ").map(|(place, n)| (place, n.parse::<u64>())) {
            let kept =
                counts.entry(rule.to_owned()).or_default().entry(place.trim_matches('"').to_owned()).or_default();
            *kept = count.max(*kept);
        }
    }
    counts
}

/// The reference of the command line, which clap's help texts make.
const GENERATED: &str = "docs/cli.md";

fn measure(tree: &Tree) -> Counts {
    let mut counts = Counts::new();
    let mut add = |rule: &str, place: &str, count: usize| {
        if count > 0 {
            *counts.entry(rule.to_owned()).or_default().entry(place.to_owned()).or_default() += count as u64;
        }
    };
    let is_written = |file: &&File| file.is_markdown() && !file.path.contains("/vendor/") && file.path != GENERATED;
    for file in tree.files.iter().filter(is_written) {
        add("columns", &file.path, long_lines(&file.text));
        if file.path == "README.md" {
            add("readme", &file.path, file.text.lines().count().saturating_sub(README_LINES_MAX));
        }
    }
    for file in &tree.files {
        add("words", words::folder(&file.path), words::find(file).len());
    }
    for (folder, cycle) in module_cycles::find(tree) {
        add("module-cycles", &folder, cycle.len());
    }
    counts
}

/// The number of long lines of `text`. A row of a generated table is one line, however much it says.
fn long_lines(text: &str) -> usize {
    let (mut is_generated, mut count) = (false, 0);
    for line in text.lines() {
        is_generated = (is_generated || line.starts_with("<!-- BEGIN: ")) && !line.starts_with("<!-- END");
        let is_row = is_generated && line.starts_with('|');
        count += usize::from(!is_row && line.chars().count() > COLUMNS_MAX);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_generated_tables_may_be_long() {
        let long = "x".repeat(121);
        let text = format!("| {long} |\n<!-- BEGIN: a b -->\n{long}\n| {long} |\n<!-- END -->\n| {long} |\n");
        assert_eq!(long_lines(&text), 3);
    }

    fn tree(kept: &str) -> Tree {
        let long = "x".repeat(121);
        let readme = format!("{}{long}\n", "line\n".repeat(151));
        Tree::of(&[(FILE, kept), ("README.md", &readme), ("docs/a.md", &format!("{long}\n{long}\n"))])
    }

    const KEPT: &str = "[columns]\n\"README.md\" = 1\n\"docs/a.md\" = 2\n[readme]\n\"README.md\" = 2\n";

    #[test]
    fn counts_may_only_fall() {
        assert_eq!((check(&tree(KEPT)), slack(&tree(KEPT))), (Vec::new(), Vec::new()));
        let (lower, higher) = (KEPT.replace("= 2", "= 1"), KEPT.replace("= 2", "= 3"));
        let places = |violations: Vec<Violation>| violations.into_iter().map(|it| it.path).collect::<Vec<_>>();
        assert_eq!(places(check(&tree(&lower))), ["docs/a.md", "README.md"]);
        assert_eq!(places(slack(&tree(&higher))), ["docs/a.md", "README.md"]);
    }

    #[test]
    fn of_two_lines_for_a_place_the_higher_one_holds() {
        let merged = KEPT.replace("\"docs/a.md\" = 2\n", "\"docs/a.md\" = 1\n\"docs/a.md\" = 2\n");
        assert_eq!((check(&tree(&merged)), slack(&tree(&merged))), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_sum_that_rose_is_not_accepted() {
        let folder = Path::new("does-not-exist");
        let error = accept(folder, &tree(&KEPT.replace("\"docs/a.md\" = 2", "\"docs/a.md\" = 1"))).unwrap_err();
        assert!(error.to_string().starts_with("columns: 3"), "{error}");
        // Moved from one file to another.
        let moved = accept(folder, &tree(&KEPT.replace("docs/a.md", "docs/b.md"))).unwrap_err();
        assert!(moved.to_string().contains(FILE), "{moved}");
    }
}
