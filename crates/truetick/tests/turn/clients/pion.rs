//! Go's `github.com/pion/turn/v5` as a client: two allocations, payloads from relay to relay and back.
//!
//! Needs a Go that is new enough for the library, and its modules.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::server::{PASSWORD, Server, USER};
use serde_json::Value;
use testkit::{Requirement, require};

const PAYLOADS: u64 = 500;
const FLAGS: &[&str] = &["--listen", "127.0.0.1:0", "--workers", "2", "--allow-peer", "127.0.0.0/8"];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/turn/clients/pion")
}

fn go(arguments: &[&str]) -> std::io::Result<Output> {
    let mut go = Command::new("go");
    // A toolchain that is too old must say so and not fetch another one.
    go.args(arguments).current_dir(source()).env("GOTOOLCHAIN", "local").env("GOFLAGS", "-mod=readonly").output()
}

/// The built client, or why there is none.
fn built() -> &'static Result<PathBuf, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let modules = go(&["mod", "download"]).map_err(|_| "go is not installed".to_owned())?;
        if !modules.status.success() {
            let message = String::from_utf8_lossy(&modules.stderr).lines().next().unwrap_or_default().to_owned();
            return Err(format!("go cannot bring the modules: {message}"));
        }
        let client = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pion-client");
        let build = go(&["build", "-o", client.to_str().unwrap(), "."]).unwrap();
        assert!(build.status.success(), "{}", String::from_utf8_lossy(&build.stderr));
        Ok(client)
    })
}

fn run(client: &Path, server: &Server, password: &str) -> Output {
    let addr = server.listen[0].to_string();
    Command::new(client).args([&addr, USER, password, &PAYLOADS.to_string()]).output().unwrap()
}

#[test]
fn pion_relays_both_ways() {
    let Some(client) = require(Requirement::Program, built().as_ref()) else { return };
    let server = Server::start(FLAGS);
    let output = run(client, &server, PASSWORD);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["matched"], PAYLOADS, "{result}");
    assert_eq!(result["mapped"], result["local"], "{result}");
    assert_ne!(result["caller"], result["callee"], "{result}");
    let farewell = server.stop();
    assert!(farewell.out >= 4 * PAYLOADS, "each payload passes two relays there and two back: {}", farewell.line);
    assert_eq!(farewell.dropped, 0, "{}", farewell.line);
}

#[test]
fn pion_with_a_wrong_password_allocates_nothing() {
    let Some(client) = require(Requirement::Program, built().as_ref()) else { return };
    let server = Server::start(FLAGS);
    let output = run(client, &server, "wrong");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && message.contains("allocate") && message.contains("401"), "{message}");
    server.stop();
}
