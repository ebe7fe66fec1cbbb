//! `truetick stun`: asks a STUN server for this machine's public address; and the same for `truetick turn`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};

use anyhow::{Context as _, Result, ensure};
use tt_os::stdout;
use turn_check::{MappedAddress, mapped_address};
use turn_server::{TurnConfig, TurnSection};

/// Port of a server without one (RFC 8489 section 8.1).
const PORT: u16 = 3478;

/// Flags of `truetick stun`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Server, as a name or an address; IPv6 addresses with a port in brackets
    #[arg(value_name = "HOST[:PORT]", default_value = "127.0.0.1:3478")]
    server: String,
}

/// Prints the address that the server sees, and the round trip.
///
/// # Errors
/// The server is unknown or does not respond.
pub(crate) fn run(args: &Args) -> Result<()> {
    let MappedAddress { addr, round_trip } = ask(&args.server, None)?;
    let text = format!("{addr} ({:.2} ms)\n", round_trip.as_secs_f64() * 1e3);
    stdout::ignore_broken_pipe(stdout::print(&text).map_err(Into::into))
}

/// Asks `server` from `from`, or from any address of this machine.
fn ask(server: &str, from: Option<IpAddr>) -> Result<MappedAddress> {
    let family = |addr: &SocketAddr| from.is_none_or(|from| from.is_ipv4() == addr.is_ipv4());
    let with_port = |port| (server.trim_matches(['[', ']']), port).to_socket_addrs();
    let mut addrs = server.to_socket_addrs().or_else(|_| with_port(PORT)).with_context(|| format!("stun: {server}"))?;
    let addr = addrs.find(family).with_context(|| format!("stun: {server} has no address of the family"))?;
    let any = if addr.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    mapped_address(addr, from.unwrap_or(any)).with_context(|| format!("stun: {server} ({addr})"))
}

/// Returns the external addresses that `section` lacks: those that the server of `--stun-server` sees, or those of the
/// environment.
///
/// # Errors
/// The section or the environment is invalid, or the server does not respond.
pub(crate) fn external_ips(section: &TurnSection, server: Option<&str>) -> Result<Option<Vec<IpAddr>>> {
    match server {
        Some(server) => {
            ensure!(section.external_ip.is_empty(), "--stun-server and external_ip in [turn]: leave one of them out");
            ask_for_relays(section, server).context("--stun-server").map(Some)
        }
        None if section.external_ip.is_empty() => of_environment(section).map(Some),
        None => Ok(None),
    }
}

/// Returns the public address of each relay address, as the STUN server at `server` sees them.
fn ask_for_relays(section: &TurnSection, server: &str) -> Result<Vec<IpAddr>> {
    let relays = TurnConfig::new(section)?.relay_ips;
    relays.iter().map(|relay| ask(server, Some(relay.bound)).map(|mapped| mapped.addr.ip())).collect()
}

/// Returns the value of `EXTERNAL_IP`, for containers: addresses separated by commas, or `auto`, which asks the server
/// `STUN_SERVER`.
fn of_environment(section: &TurnSection) -> Result<Vec<IpAddr>> {
    match std::env::var("EXTERNAL_IP").unwrap_or_default().as_str() {
        "" => Ok(Vec::new()),
        "auto" => {
            let server = std::env::var("STUN_SERVER").context("EXTERNAL_IP=auto needs STUN_SERVER=HOST[:PORT]")?;
            ask_for_relays(section, &server).context("EXTERNAL_IP=auto")
        }
        list => list.split(',').map(|ip| ip.trim().parse().with_context(|| format!("EXTERNAL_IP: {ip}"))).collect(),
    }
}
