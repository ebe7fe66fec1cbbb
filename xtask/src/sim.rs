//! `cargo xtask sim`: plays deterministic worlds, built in the release profile.

use std::process::{Command, ExitCode};

use anyhow::Context as _;

const USAGE: &str = "usage: cargo xtask sim turn --seed N [--lines]   one seed again; a failure is minimised
       cargo xtask sim turn --seeds FROM..TO          many, with progress
       cargo xtask sim turn --speed CLIENTS SECONDS   virtual seconds for a second of a core
       cargo xtask sim market ...                     the same, but for --speed, with the market world;
                                                      --kept FILE after --seeds lets it be ended and gone on with";

/// Plays what `arguments` name.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some((example, passed_on)) = passed_on(&arguments) else {
        eprintln!("{USAGE}");
        return Ok(ExitCode::from(2));
    };
    let root = crate::workspace_root();
    let mut command = Command::new("cargo");
    command.args(["run", "--quiet", "--release", "--locked", "--package", "testkit", "--example", example, "--"]);
    command.args(passed_on).current_dir(&root).env("TRUETICK_COMMIT", commit(&root));
    let status = command.status().context("cannot run cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The program that plays and what it is told.
fn passed_on<'a>(arguments: &[&'a str]) -> Option<(&'static str, Vec<&'a str>)> {
    let example = match arguments.first() {
        Some(&"turn") => "turn_world",
        Some(&"market") => "market_world",
        _ => return None,
    };
    let told = match arguments[1..] {
        ["--seed", seed] => vec![seed],
        ["--seed", seed, "--lines"] => vec![seed, "--lines"],
        ["--seeds", range] if range.contains("..") => vec![range],
        ["--seeds", range, "--kept", file] if range.contains("..") && example == "market_world" => {
            vec![range, "--kept", file]
        }
        ["--speed", clients, seconds] if example == "turn_world" => vec!["--speed", clients, seconds],
        _ => return None,
    };
    Some((example, told))
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
        assert_eq!(passed_on(&["turn", "--seed", "7"]), Some(("turn_world", vec!["7"])));
        assert_eq!(passed_on(&["market", "--seeds", "0..9"]), Some(("market_world", vec!["0..9"])));
        assert_eq!(passed_on(&["turn", "--speed", "100", "60"]), Some(("turn_world", vec!["--speed", "100", "60"])));
        let kept = ["market", "--seeds", "0..9", "--kept", "sum"];
        assert_eq!(passed_on(&kept), Some(("market_world", vec!["0..9", "--kept", "sum"])));
        assert_eq!(passed_on(&["turn", "--seeds", "9"]), None);
        assert_eq!(passed_on(&["market", "--speed", "1", "7"]), None);
        assert_eq!(passed_on(&["venue", "--seed", "7"]), None);
        assert_eq!(passed_on(&[]), None);
    }
}
