//! The systemd unit.

use std::fs;
use std::path::Path;
use std::process::Command;

use testkit::{Requirement, find_program, require};

/// Ten times the exposure that is allowed.
const EXPOSURE_MAX: &str = "20";

fn unit() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/truetick.service")
}

#[test]
fn the_unit_exposes_no_more_than_it_may() {
    let threshold = format!("--threshold={EXPOSURE_MAX}");
    let unit = unit();
    let arguments = ["security", "--offline=true", &threshold, "--no-pager", unit.to_str().unwrap()];
    let analyze = find_program("systemd-analyze", "systemd");
    let Some(analyze) = require(Requirement::Program, analyze) else { return };
    let output = Command::new(analyze).args(arguments).output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(report.contains("Overall exposure level"), "{report} {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{report}");
}

#[test]
fn what_the_unit_starts_is_a_command_that_truetick_knows() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("truetick.toml");
    fs::write(&config, "[turn]\nlisten = [\"127.0.0.1:0\"]\n").unwrap();
    let text = fs::read_to_string(unit()).unwrap();
    let commands: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("ExecStart")).collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    for command in commands {
        let (_, line) = command.split_once("=/usr/local/bin/truetick ").unwrap();
        let line = line.replace("/etc/truetick/truetick.toml", config.to_str().unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_truetick"));
        command.args(line.split(' '));
        if !line.contains("--check-config") {
            command.arg("--check-config");
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
    }
}
