//! Where captured market data lies, if it lies anywhere.

use std::env;
use std::path::PathBuf;

/// The folder of captures for the test called `test`, or `None`, and then the test has been skipped by name.
///
/// The folder is found through `TRUETICK_DATA` only.
///
/// # Panics
/// `TRUETICK_DATA` is not set although `TRUETICK_REQUIRE_DATA=1` says that it must be, or it names no folder.
#[must_use]
pub fn folder(test: &str) -> Option<PathBuf> {
    let Some(folder) = env::var_os("TRUETICK_DATA").map(PathBuf::from) else {
        let is_required = env::var_os("TRUETICK_REQUIRE_DATA").is_some_and(|value| value == "1");
        assert!(!is_required, "{test}: TRUETICK_DATA not set, but TRUETICK_REQUIRE_DATA=1");
        println!("SKIP {test}: TRUETICK_DATA not set");
        return None;
    };
    assert!(folder.is_dir(), "{test}: TRUETICK_DATA={} is no folder", folder.display());
    Some(folder)
}
