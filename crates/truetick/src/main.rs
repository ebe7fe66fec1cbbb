//! The truetick binary: everything lives in the library beside it.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    truetick::cli::main()
}
