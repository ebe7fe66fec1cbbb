//! Clients that others wrote relay through the built binary.
//!
//! Each test needs programs that are not part of this repository; where one is missing the test says so in a line
//! `SKIP name: reason` and counts as skipped. `cargo xtask test clients` brings them.

#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

#[path = "clients/aioice.rs"]
mod aioice;
#[allow(dead_code, reason = "each test target uses its part of it")]
#[path = "streams/certificates.rs"]
mod certificates;
#[path = "clients/chromium.rs"]
mod chromium;
#[allow(dead_code, reason = "each test target uses its part of it")]
#[path = "clients/server.rs"]
mod server;
#[path = "clients/turn_client_proto.rs"]
mod turn_client_proto;
#[path = "clients/uclient.rs"]
mod uclient;

use std::path::{Path, PathBuf};

/// Where `program` is found on the search path.
fn on_path(program: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// This package's folder of tests.
fn tests_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Says that `test` is skipped, and why.
fn skip(test: &str, reason: &str) {
    println!("SKIP {test}: {reason}");
}
