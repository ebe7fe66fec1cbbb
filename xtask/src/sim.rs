//! `cargo xtask sim`: plays deterministic worlds, built in the release profile.

use std::process::{Command, ExitCode};

use anyhow::Context as _;

const USAGE: &str = "usage: cargo xtask sim turn --seed N [--lines]   one seed again; a failure is minimised
       cargo xtask sim turn --seeds FROM..TO          many, with progress
       cargo xtask sim turn --speed CLIENTS SECONDS   virtual seconds for a second of a core";

/// Plays what `arguments` name.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some(passed_on) = passed_on(&arguments) else {
        eprintln!("{USAGE}");
        return Ok(ExitCode::from(2));
    };
    let root = crate::workspace_root();
    let mut command = Command::new("cargo");
    command.args(["run", "--quiet", "--release", "--locked", "--package", "testkit", "--example", "turn_world", "--"]);
    command.args(passed_on).current_dir(&root).env("TRUETICK_COMMIT", commit(&root));
    let status = command.status().context("cannot run cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What the program that plays is told.
fn passed_on<'a>(arguments: &[&'a str]) -> Option<Vec<&'a str>> {
    match arguments {
        ["turn", "--seed", seed] => Some(vec![seed]),
        ["turn", "--seed", seed, "--lines"] => Some(vec![seed, "--lines"]),
        ["turn", "--seeds", range] if range.contains("..") => Some(vec![range]),
        ["turn", "--speed", clients, seconds] => Some(vec!["--speed", clients, seconds]),
        _ => None,
    }
}

/// The commit that is played, as a failure names it.
pub(crate) fn commit(root: &std::path::Path) -> String {
    let described = Command::new("git").args(["describe", "--always", "--dirty"]).current_dir(root).output();
    let text = described.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    text.and_then(|text| String::from_utf8(text).ok())
        .map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::passed_on;

    #[test]
    fn seeds_ranges_and_speed_are_told_apart() {
        assert_eq!(passed_on(&["turn", "--seed", "7"]), Some(vec!["7"]));
        assert_eq!(passed_on(&["turn", "--seeds", "0..9"]), Some(vec!["0..9"]));
        assert_eq!(passed_on(&["turn", "--speed", "100", "60"]), Some(vec!["--speed", "100", "60"]));
        assert_eq!(passed_on(&["turn", "--seeds", "9"]), None);
        assert_eq!(passed_on(&["market", "--seed", "7"]), None);
    }
}
