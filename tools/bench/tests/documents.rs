//! The tables of BENCHMARKING.md are those of the kept files, and the files are of commits in the history.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{Requirement, require};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document() -> String {
    fs::read_to_string(root().join("BENCHMARKING.md")).unwrap()
}

#[test]
fn tables_are_those_of_the_kept_files() {
    let (document, generated) = (document(), bench::tables::generate(&document(), &root()).unwrap());
    let differing = document.lines().zip(generated.lines()).find(|(one, other)| one != other);
    assert_eq!(differing, None, "run `cargo run -p bench --bin tables`");
    assert!(document == generated, "run `cargo run -p bench --bin tables`");
}

/// Twelve hexadecimal digits that follow `commit` in a kept file, or fill a column of that name.
fn commits(text: &str) -> Vec<String> {
    let is_commit = |word: &&str| word.len() == 12 && word.chars().all(|c| c.is_ascii_hexdigit());
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let mut found: Vec<String> =
        words.filter(is_commit).filter(|word| !word.chars().all(|c| c.is_ascii_digit())).map(str::to_owned).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[test]
fn kept_results_are_of_commits_in_the_history() {
    let git = |arguments: &[&str]| Command::new("git").args(arguments).current_dir(root()).output();
    let has_history = git(&["rev-parse", "--is-shallow-repository"])
        .is_ok_and(|output| output.status.success() && output.stdout.starts_with(b"false"));
    let Some(()) = require(Requirement::Program, has_history.then_some(()).ok_or("no git history")) else { return };
    for file in fs::read_dir(root().join("bench/results/amd-epyc-2vcpu")).unwrap() {
        let path = file.unwrap().path();
        for commit in commits(&fs::read_to_string(&path).unwrap()) {
            let found = git(&["merge-base", "--is-ancestor", &commit, "HEAD"]).unwrap();
            assert!(found.status.success(), "{}: commit {commit} is not in the history", path.display());
        }
    }
}
