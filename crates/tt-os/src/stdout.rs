//! Standard output that may be a pipe whose other end is closed: `println!` panics there.

use std::io::{self, Write as _};

/// Prints `text`. A server goes on whether somebody reads it or not.
pub fn write(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints `text`, for a command that has nothing else to do.
///
/// # Errors
/// Standard output is gone; see [`ignore_broken_pipe`].
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Returns the result of a command that prints, without the error of a closed pipe.
///
/// # Errors
/// Every other failure.
pub fn ignore_broken_pipe(printed: anyhow::Result<()>) -> anyhow::Result<()> {
    match printed {
        Err(error) if is_broken_pipe(&error) => Ok(()),
        other => other,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
