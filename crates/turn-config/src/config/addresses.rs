//! Addresses of listeners and of relay sockets that a section leaves out.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::ensure;

use super::{PORT, RelayIp};
use crate::section::TurnSection;

/// Returns the unspecified address of each family that this machine supports.
pub(super) fn default_listen() -> Vec<SocketAddr> {
    let all = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    let has = |ip: &IpAddr| tt_net::UdpSocket::bind(SocketAddr::new(*ip, 0)).is_ok();
    let listen: Vec<_> = all.into_iter().filter(has).map(|ip| SocketAddr::new(ip, PORT)).collect();
    if listen.is_empty() { vec![SocketAddr::new(all[0], PORT)] } else { listen }
}

/// Returns the addresses of `listen`, with the source address of the default route for an unspecified one.
fn relay_ips_of(listen: &[SocketAddr]) -> anyhow::Result<Vec<IpAddr>> {
    // Documentation addresses take the default route; nothing is sent to them.
    let somewhere = |ip: IpAddr| match ip {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1)),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
    };
    let mut ips = Vec::new();
    for addr in listen {
        let ip = match addr.ip() {
            ip if ip.is_unspecified() => tt_net::source_towards(somewhere(ip)).ok(),
            ip => Some(ip),
        };
        ips.extend(ip.filter(|ip| !ips.contains(ip)));
    }
    ensure!(!ips.is_empty(), "there is no default route to choose a relay address: set --relay-ip");
    Ok(ips)
}

/// Returns the addresses of relay sockets, each with the address that peers see.
pub(super) fn relays(section: &TurnSection, listen: &[SocketAddr]) -> anyhow::Result<Vec<RelayIp>> {
    let external = &section.external_ip;
    let relay_ip = |index| section.key_sources.name("relay_ip", index);
    let external_ip = |index| section.key_sources.name("external_ip", index);
    let bound = if section.relay_ip.is_empty() { relay_ips_of(listen)? } else { section.relay_ip.clone() };
    let is_none = |ip: &IpAddr| ip.is_unspecified() || ip.is_multicast();
    if let Some(index) = bound.iter().position(is_none) {
        anyhow::bail!("{} {} is not an address of this machine", relay_ip(index), bound[index]);
    }
    if let Some(index) = external.iter().position(is_none) {
        anyhow::bail!("{} {} is not an address that a peer can send to", external_ip(index), external[index]);
    }
    ensure!(external.len() <= bound.len(), "{} is given more often than --relay-ip", external_ip(bound.len()));
    let pairs = bound.iter().enumerate().map(|(index, &bound)| {
        let external = external.get(index).copied().unwrap_or(bound);
        ensure!(
            bound.is_ipv4() == external.is_ipv4(),
            "{} {external} and relay address {bound} have different address families",
            external_ip(index)
        );
        Ok(RelayIp { bound, external })
    });
    pairs.collect()
}
