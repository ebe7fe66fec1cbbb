//! Kept results: each names a clean commit of the history, and its tables say when its code has changed since.
//!
//! `bench/results/kept.toml` lists the files with the code that each measures. A table of a document begins with a line
//! `<!-- BEGIN: TABLE FILE -->`; its marks end the paragraph below. `cargo xtask tidy --accept` writes them.

mod commits;
mod marks;

use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;

use crate::history::{History, stale_mark};
use crate::tree::{File, Tree};
use crate::violation::Violation;
use commits::{Commit, commits};
use marks::Marks;

const FOLDER: &str = "bench/results/";
const LIST: &str = "bench/results/kept.toml";

/// `kept.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    kept: Vec<Kept>,
}

/// A kept file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// Its path in the folder.
    file: String,
    /// Files and folders of the code that it measures.
    code: Vec<String>,
    /// Why it may be of a tree with changes; its tables show this.
    exception: Option<String>,
}

impl Kept {
    fn path(&self) -> String {
        format!("{FOLDER}{}", self.file)
    }
}

/// Violations of the kept files and of the marks in all documents.
///
/// # Errors
/// Why the history cannot be read: the check is skipped.
pub(crate) fn check(root: &Path, tree: &Tree) -> Result<Vec<Violation>, &'static str> {
    let history = History::open(root)?;
    let list = match list(tree) {
        Ok(list) => list,
        Err(error) => return Ok(vec![Violation::at(LIST, 0, format!("{error:#}"))]),
    };
    let mut violations = unlisted(tree, &list);
    let mut marks = Marks::default();
    for kept in &list {
        let lines = judge(tree, &history, kept, &mut violations);
        marks.insert(kept.path(), lines);
    }
    let documents = tree.files.iter().filter(|file| file.is_markdown());
    violations.extend(documents.flat_map(|document| marks.check(document)));
    Ok(violations)
}

/// Writes the marks of every document under `root`; nothing without a history.
pub(crate) fn accept(root: &Path, tree: &Tree) -> anyhow::Result<()> {
    let Ok(history) = History::open(root) else { return Ok(()) };
    let mut marks = Marks::default();
    for kept in &list(tree)? {
        let lines = judge(tree, &history, kept, &mut Vec::new());
        marks.insert(kept.path(), lines);
    }
    for document in tree.files.iter().filter(|file| file.is_markdown()) {
        let marked = marks.write(&document.text);
        if marked != document.text {
            std::fs::write(root.join(&document.path), marked).with_context(|| document.path.clone())?;
        }
    }
    Ok(())
}

fn list(tree: &Tree) -> anyhow::Result<Vec<Kept>> {
    let file = find(tree, LIST).context("it lists no file")?;
    Ok(toml::from_str::<List>(&file.text)?.kept)
}

fn find<'a>(tree: &'a Tree, path: &str) -> Option<&'a File> {
    tree.files.iter().find(|file| file.path == path)
}

/// Files of the folder that are not listed.
fn unlisted(tree: &Tree, list: &[Kept]) -> Vec<Violation> {
    let results = tree.files.iter().filter(|file| file.path.starts_with(FOLDER) && file.path != LIST);
    let results = results.filter(|file| list.iter().all(|kept| kept.path() != file.path));
    results.map(|file| Violation::at(&file.path, 0, format!("{LIST} does not list it"))).collect()
}

/// Judges one file, and returns the marks of its tables.
fn judge(tree: &Tree, history: &History<'_>, kept: &Kept, violations: &mut Vec<Violation>) -> Vec<String> {
    let path = kept.path();
    let mut violate = |message: String| violations.push(Violation::at(&path, 0, message));
    let Some(file) = find(tree, &path) else {
        violate(format!("{LIST} lists it, but it does not exist"));
        return Vec::new();
    };
    let is_there = |code: &str| {
        let folder = format!("{code}/");
        tree.files.iter().any(|file| file.path == code || file.path.starts_with(&folder))
    };
    for code in kept.code.iter().filter(|code| !is_there(code)) {
        violate(format!("its code {code} does not exist"));
    }
    if kept.code.is_empty() {
        violate("it depends on no code".to_owned());
    }
    // A result in two files: the other one names the commit.
    let twin = path.strip_suffix(".csv").and_then(|stem| find(tree, &format!("{stem}.json")));
    let found = match commits(file) {
        none if none.is_empty() => twin.map(commits).unwrap_or_default(),
        found => found,
    };
    if found.is_empty() {
        violate("it names no commit".to_owned());
    }
    for Commit { hash, .. } in found.iter().filter(|commit| !history.contains(&commit.hash)) {
        violate(format!("its commit {hash} is not in the history"));
    }
    let dirty = found.iter().find(|commit| commit.is_dirty);
    match (dirty, &kept.exception) {
        (Some(Commit { hash, .. }), None) => violate(format!("it is of commit {hash} with uncommitted changes")),
        (None, Some(_)) => violate("its exception is not needed".to_owned()),
        (Some(_), Some(_)) | (None, None) => {}
    }
    let since = found.iter().filter(|commit| history.contains(&commit.hash));
    let since = since.filter_map(|commit| history.stale_since(&commit.hash, &kept.code));
    let since = since.max_by_key(|(changes, _)| *changes).map(|(_, since)| since);
    let since = since.map(|since| stale_mark(&since));
    since.into_iter().chain(kept.exception.iter().map(|reason| format!("{}{reason}.", marks::EXCEPTION))).collect()
}

#[cfg(test)]
mod tests;
