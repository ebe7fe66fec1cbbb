//! Clients that others wrote relay through the built binary.
//!
//! Each test needs programs that are not part of this repository; `cargo xtask test --install clients` brings them.

mod aioice;
mod chromium;
mod coturn_files;
mod databases;
mod keys;
mod pion;
mod turn_client_proto;
mod uclient;

use std::path::{Path, PathBuf};

/// This package's folder of tests.
fn tests_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}
