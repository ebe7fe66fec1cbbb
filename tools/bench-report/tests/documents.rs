//! The tables of BENCHMARKING.md are those of the kept files.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document() -> String {
    fs::read_to_string(root().join("BENCHMARKING.md")).unwrap()
}

#[test]
fn tables_are_those_of_the_kept_files() {
    let (document, generated) = (document(), bench_report::tables::generate(&document(), &root()).unwrap());
    let differing = document.lines().zip(generated.lines()).find(|(one, other)| one != other);
    assert_eq!(differing, None, "run `cargo run -p bench-report --bin tables`");
    assert!(document == generated, "run `cargo run -p bench-report --bin tables`");
}
