//! `truetick doctor paths`: where the kernel path would work.

use std::net::IpAddr;
use std::process::ExitCode;

use anyhow::Result;
use tt_os::stdout;
use turn_server::path_doctor::examine;

/// Flags of `truetick doctor paths`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Interface [default: every one but the loopback interface]
    #[arg(value_name = "IFACE")]
    interface: Option<String>,
    /// Address to which next hops are asked for [default: an address far away]
    #[arg(long, value_name = "IP")]
    peer: Option<IpAddr>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Status 0: the kernel relays, or would relay, on an interface. 1: on none. 2: there is no interface to examine.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let report = match examine(args.interface.as_deref(), args.peer) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("truetick: doctor paths: {error:#}");
            return Ok(ExitCode::from(2));
        }
    };
    let text = if args.json { format!("{}\n", serde_json::to_string(&report)?) } else { report.to_string() };
    stdout::ignore_broken_pipe(stdout::print(&text).map_err(Into::into))?;
    Ok(match report.is_usable() {
        _ if report.interfaces.is_empty() => ExitCode::from(2),
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
