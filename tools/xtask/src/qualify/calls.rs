//! Long calls through the shipped TURN server.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::Arguments;
use crate::soak::{HTTP, Program};

const TURN_PORT: &str = "13478";
/// Milliseconds between two payloads of a call, as coturn's client counts.
const PAYLOAD_EVERY_MS: u64 = 20;

pub(super) fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<String> {
    let listen = format!("127.0.0.1:{TURN_PORT}");
    let flags = ["turn", "--listen", &listen, "--user", "ann:secret", "--allow-own-host", "127.0.0.0/8"];
    let flags = [&flags[..], &["--rfc5766-channel-numbers"]].concat();
    let _program = { Program::start_at(&Program::build(root)?, &flags, HTTP.parse()?)? };
    let payloads = arguments.minutes * 60 * 1_000 / PAYLOAD_EVERY_MS;
    let mut reports = Vec::new();
    for transport in [&[][..], &["-t"]] {
        let mut client = Command::new("turnutils_uclient");
        client.args(["-u", "ann", "-w", "secret", "-m", "4", "-l", "170", "-y", "-c", "-p", TURN_PORT]).args(transport);
        client.args(["-z", &PAYLOAD_EVERY_MS.to_string(), "-n", &payloads.to_string(), "127.0.0.1"]);
        let output = client.output().context("turnutils_uclient (Debian package coturn)")?;
        let report = String::from_utf8_lossy(&output.stdout).into_owned();
        let lost = report.lines().rev().find(|line| line.contains("Total lost packets"));
        let lost = lost.with_context(|| format!("no report: {report}"))?;
        ensure!(output.status.success() && lost.contains("packets 0 "), "{lost}");
        reports.push(lost.split("Total").nth(1).unwrap_or_default().trim().to_owned());
    }
    Ok(format!("4 calls of {} min over UDP, then over TCP: {}", arguments.minutes, reports.join("; ")))
}
