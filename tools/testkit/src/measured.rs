//! Values that a test measured, for a table of a document.

use std::fmt::Display;

/// Prints `value` for `row` of the table "What one sender can take" in docs/turn-operators.md, in a line that
/// `cargo xtask qualify availability` keeps.
///
/// The line begins a new one: libtest may have begun the one before.
pub fn measured(row: &str, value: impl Display) {
    println!("\nmeasured {row}: {value}");
}
