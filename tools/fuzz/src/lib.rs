//! Fuzz targets: a function over bytes that panics if the code under test disagrees with its oracle.
//!
//! `cargo xtask fuzz NAME` searches for such bytes; `cargo test -p fuzz` replays the corpora on any toolchain.

#![forbid(unsafe_code)]

pub mod attributes;
mod choices;
pub mod codec;
pub mod corpus;
pub mod files;
pub mod frames;
pub mod framing;
pub mod http;
pub mod import;
pub mod inflate;
mod naive;
mod peer_ranges;
pub mod policy;
pub mod proxy;
mod receiver;
pub mod recordings;
pub mod rows;
pub mod server;

use std::path::Path;

/// A target: it panics if something is wrong.
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
