//! `cargo xtask sim`: plays deterministic worlds, built in the release profile.

use std::process::{Command, ExitCode};

use anyhow::Context as _;

/// Which world, and what to play in it.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum World {
    /// TURN servers, clients, attackers and networks.
    Turn(Arguments),
    /// The market engine and simulated venues.
    Market(Arguments),
    /// The risk gate with its journal, strategies, a venue, operators and a disk.
    Gate(Arguments),
}

/// Arguments of a simulation.
#[derive(Debug, clap::Args)]
#[group(id = "what", multiple = true)]
pub(crate) struct Arguments {
    /// Play one seed; a failure is reduced to the fewest actions.
    #[arg(long, conflicts_with_all = ["seeds", "speed"])]
    seed: Option<u64>,
    /// Print each line of the world's trace.
    #[arg(long, requires = "seed")]
    lines: bool,
    /// Play many seeds with progress.
    #[arg(long, value_name = "FROM..TO", required_unless_present_any = ["seed", "speed"], conflicts_with = "speed")]
    seeds: Option<String>,
    /// File in which the market world keeps its progress, so that a run can be continued.
    #[arg(long, value_name = "FILE", requires = "seeds")]
    kept: Option<String>,
    /// Measure virtual seconds per second of a core (TURN world only).
    #[arg(long, num_args = 2, value_names = ["CLIENTS", "SECONDS"])]
    speed: Option<Vec<String>>,
}

impl Arguments {
    /// The arguments of the example that plays the world.
    fn of_example(&self) -> Vec<String> {
        if let Some(speed) = &self.speed {
            return [&["--speed".to_owned()], speed.as_slice()].concat();
        }
        let mut arguments: Vec<String> = self.seed.iter().map(u64::to_string).chain(self.seeds.clone()).collect();
        arguments.extend(self.lines.then(|| "--lines".to_owned()));
        arguments.extend(self.kept.iter().flat_map(|file| ["--kept".to_owned(), file.clone()]));
        arguments
    }
}

/// Plays `world`.
pub(crate) fn run(world: &World) -> anyhow::Result<ExitCode> {
    let (example, arguments) = match world {
        World::Turn(arguments) => ("turn_world", arguments),
        World::Market(arguments) => ("market_world", arguments),
        World::Gate(arguments) => ("gate_world", arguments),
    };
    let root = crate::workspace_root();
    let mut command = Command::new("cargo");
    command.args([
        "run",
        "--quiet",
        "--profile",
        "checked",
        "--locked",
        "--package",
        "testkit",
        "--example",
        example,
        "--",
    ]);
    command.args(arguments.of_example()).current_dir(&root).env("TRUETICK_COMMIT", commit(&root));
    let status = command.status().context("cannot run cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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
    use clap::Parser as _;

    use super::World;

    #[derive(clap::Parser)]
    struct Cli {
        #[command(subcommand)]
        world: World,
    }

    fn passed_on(arguments: &str) -> Option<Vec<String>> {
        let cli = Cli::try_parse_from(std::iter::once("sim").chain(arguments.split(' '))).ok()?;
        let (World::Turn(arguments) | World::Market(arguments) | World::Gate(arguments)) = cli.world;
        Some(arguments.of_example())
    }

    #[test]
    fn passes_on_seeds_ranges_and_speed() {
        assert_eq!(passed_on("turn --seed 7").unwrap(), ["7"]);
        assert_eq!(passed_on("turn --seed 7 --lines").unwrap(), ["7", "--lines"]);
        assert_eq!(passed_on("turn --speed 100 60").unwrap(), ["--speed", "100", "60"]);
        assert_eq!(passed_on("market --seeds 0..9 --kept sum").unwrap(), ["0..9", "--kept", "sum"]);
        assert_eq!(passed_on("gate --seed 7 --lines").unwrap(), ["7", "--lines"]);
        assert_eq!(passed_on("turn"), None);
        assert_eq!(passed_on("turn --seed 7 --seeds 0..9"), None);
        assert_eq!(passed_on("venue --seed 7"), None);
    }
}
