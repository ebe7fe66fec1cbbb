//! `truetick doctor`: checks each step of a venue connection, or what the kernel path needs.

#[cfg(feature = "turn")]
mod paths;
#[cfg(feature = "market")]
mod venue;

use std::process::ExitCode;

use anyhow::Result;

use crate::config::Config;

/// Flags of `truetick doctor`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[cfg_attr(not(feature = "market"), command(subcommand_required = true, arg_required_else_help = true))]
pub struct Args {
    #[cfg(feature = "turn")]
    #[command(subcommand)]
    subject: Option<Subject>,
    #[cfg(feature = "market")]
    #[command(flatten)]
    venue: venue::VenueArgs,
}

#[cfg(feature = "turn")]
#[derive(Debug, clap::Subcommand)]
enum Subject {
    /// Say where the kernel path of the TURN server would work on this host, and what is missing; changes nothing
    Paths(paths::Args),
}

/// Runs the steps. Status 0: no step failed. 1: a step failed. 2: invalid arguments, or nothing to check.
///
/// # Errors
/// Standard output, or the simulator, cannot be used.
pub fn run(args: Args, config: &Config) -> Result<ExitCode> {
    #[cfg(feature = "turn")]
    if let Some(Subject::Paths(args)) = &args.subject {
        return paths::run(args);
    }
    #[cfg(feature = "market")]
    return venue::run(args.venue, config);
    #[cfg(not(feature = "market"))]
    {
        let _ = config;
        unreachable!("clap requires a subcommand")
    }
}
