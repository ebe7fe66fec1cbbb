//! Progress on standard error.

use std::io::{self, IsTerminal as _};

/// Prints `line` to standard error. On a terminal the next line overwrites it; elsewhere block counters are left out.
pub(crate) fn progress(line: &str) {
    if io::stderr().is_terminal() {
        eprint!("\r\x1b[K{line}");
    } else if !(line.is_empty() || line.starts_with("block") || line.starts_with("round")) {
        eprintln!("{line}");
    }
}
