//! The program that tests of the command line start.

use std::path::PathBuf;

/// Returns the program under test: the one that `TRUETICK_PROGRAM` names, or `built`.
#[must_use]
pub fn program(built: &str) -> PathBuf {
    std::env::var_os("TRUETICK_PROGRAM").map_or_else(|| built.into(), PathBuf::from)
}
