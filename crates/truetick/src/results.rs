//! The folder of bench results, which `bench` writes and `serve` reads.

use std::path::PathBuf;

/// Returns the default folder of all results.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into())).join("bench")
}
