//! What strangers can send, tried with every kind of bytes.
//!
//! A target is a function over bytes that panics where the code under it disagrees with its oracle. `cargo +nightly fuzz
//! run NAME` searches for such bytes; `cargo test -p fuzz` replays the corpora on any toolchain.

#![forbid(unsafe_code)]

pub mod attributes;
mod choices;
pub mod codec;
pub mod framing;
mod naive;
pub mod policy;
pub mod server;

use std::path::Path;

/// A target: it panics where something is wrong.
pub type Target = fn(&[u8]);

/// Runs `target` on every file named on the command line.
///
/// # Errors
/// A file that cannot be read.
pub fn replay_arguments(target: Target) -> std::io::Result<()> {
    for path in std::env::args_os().skip(1) {
        println!("{}", Path::new(&path).display());
        target(&std::fs::read(&path)?);
    }
    Ok(())
}
