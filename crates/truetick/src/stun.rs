//! `truetick stun`: asks a STUN server for this machine's public address; and the same for `truetick turn`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};

use anyhow::{Context as _, Result, bail, ensure};
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

/// Variables of the image coturn/coturn: the server gets the public address of the host as that of its relay sockets.
const RELAY_VARIABLES: [&str; 2] = ["DETECT_RELAY_IP", "DETECT_RELAY_IPV6"];
/// Variables of the image coturn/coturn: the public IPv4 address and the public IPv6 address are looked up.
const EXTERNAL_VARIABLES: [&str; 2] = ["DETECT_EXTERNAL_IP", "DETECT_EXTERNAL_IPV6"];

/// Returns the external addresses that `section` lacks: those that the server of `--stun-server` sees, or those of the
/// environment.
///
/// # Errors
/// The section or the environment is invalid, or the server does not respond.
pub(crate) fn external_ips(section: &TurnSection, server: Option<&str>) -> Result<Option<Vec<IpAddr>>> {
    let is_bound_by = RELAY_VARIABLES.into_iter().find(|name| variable(name).is_some());
    if let (Some(name), true) = (is_bound_by, section.relay_ip.is_empty()) {
        bail!("{name}: set relay_ip to an address of this host [default: the source address of the default route]");
    }
    match server {
        Some(server) => {
            ensure!(section.external_ip.is_empty(), "--stun-server and external_ip in [turn]: leave one of them out");
            ask_for_relays(section, server, [true; 2]).context("--stun-server").map(Some)
        }
        None if section.external_ip.is_empty() => of_environment(section).map(Some),
        None => Ok(None),
    }
}

/// Returns the public address of each relay address, as the STUN server at `server` sees them. Those of a family, IPv4 or
/// IPv6, that is not wanted stay as they are.
fn ask_for_relays(section: &TurnSection, server: &str, [ipv4, ipv6]: [bool; 2]) -> Result<Vec<IpAddr>> {
    let relays = TurnConfig::new(section)?.relay_ips;
    let public = |ip: IpAddr| match if ip.is_ipv4() { ipv4 } else { ipv6 } {
        true => ask(server, Some(ip)).map(|mapped| mapped.addr.ip()),
        false => Ok(ip),
    };
    relays.iter().map(|relay| public(relay.bound)).collect()
}

/// Returns the external addresses that the environment has, for containers: `EXTERNAL_IP` is a list with commas, or
/// `auto`, which asks the server `STUN_SERVER`. Without it, the variables of the image coturn/coturn count.
fn of_environment(section: &TurnSection) -> Result<Vec<IpAddr>> {
    let asked = |name: &str, families| {
        let server = variable("STUN_SERVER").with_context(|| format!("{name} needs STUN_SERVER=HOST[:PORT]"))?;
        ask_for_relays(section, &server, families).with_context(|| name.to_owned())
    };
    let named = ["EXTERNAL_IP", "REAL_EXTERNAL_IP"].into_iter().find_map(|name| Some((name, variable(name)?)));
    match named {
        Some(("EXTERNAL_IP", auto)) if auto == "auto" => asked("EXTERNAL_IP=auto", [true; 2]),
        Some((name, list)) => {
            list.split(',').map(|ip| ip.trim().parse().with_context(|| format!("{name}: {ip}"))).collect()
        }
        None => {
            let families = EXTERNAL_VARIABLES.map(|name| variable(name).is_some());
            let first = EXTERNAL_VARIABLES.into_iter().find(|name| variable(name).is_some());
            first.map_or_else(|| Ok(Vec::new()), |name| asked(name, families))
        }
    }
}

/// Returns the value of an environment variable; one that is empty is not set.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
