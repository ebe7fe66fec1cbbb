//! The folder of bench results, which `bench` writes and `serve` reads.

use std::path::PathBuf;

/// Returns the default folder of all results.
pub(crate) fn folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    target.join("bench")
}
