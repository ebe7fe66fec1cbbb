//! Brings the servers: truetick and crates.io's `turn-server` by cargo, pion's by go; coturn is Debian's.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::rivals::{self, Places, TURN_RS};

/// Builds what is not there, and truetick in any case; an unavailable rival is reported and omitted.
pub(crate) fn build(places: &Places) -> anyhow::Result<()> {
    if places.truetick.starts_with(&places.built) {
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--release", "--locked", "-p", "truetick"]).current_dir(&places.root);
        cargo.env("CARGO_TARGET_DIR", places.built.join("workspace"));
        anyhow::ensure!(succeeds(&mut cargo), "truetick does not build");
    }
    let root = rivals::turn_rs_root(places);
    if !root.join("bin/turn-server").is_file() {
        let mut cargo = Command::new("cargo");
        cargo.args(["install", "turn-server", "--version", TURN_RS, "--locked", "--root"]).arg(&root);
        cargo.args(["--no-default-features", "--features", "udp"]).current_dir(&places.built);
        cargo.env("CARGO_TARGET_DIR", places.built.join("turn-server-target"));
        report(succeeds(&mut cargo), "turn-server");
    }
    let mut go = Command::new("go");
    go.args(["build", "-mod=readonly", "-o"]).arg(rivals::pion(places)).arg(".");
    go.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("rivals/pion"));
    report(succeeds(&mut go), "pion");
    if Command::new("turnserver").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("coturn is left out: there is no turnserver (Debian package coturn)");
    }
    Ok(())
}

fn report(succeeded: bool, name: &str) {
    if !succeeded {
        println!("{name} is left out: it does not build here");
    }
}

fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).status().is_ok_and(|status| status.success())
}
