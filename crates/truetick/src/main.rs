//! The truetick binary; all code is in the library.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    truetick::cli::main()
}
