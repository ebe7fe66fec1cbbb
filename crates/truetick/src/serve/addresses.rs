//! Where the TURN server can be reached.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::{Context as _, Result, ensure};
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

/// STUN and TURN over UDP, RFC 8656 section 3.
pub(super) const TURN_PORT: u16 = 3478;

/// What to listen on and what to relay on with `--lan`: loopback beside this machine's other addresses, and relays on
/// the latter alone, since a relayed address on loopback is of no use to another machine.
pub(super) fn lan() -> Result<(Vec<SocketAddr>, Vec<IpAddr>)> {
    let interfaces = getifaddrs().context("--lan: cannot list this machine's addresses")?;
    let usable = interfaces.filter(|entry| {
        entry.flags.contains(InterfaceFlags::IFF_UP) && !entry.flags.contains(InterfaceFlags::IFF_LOOPBACK)
    });
    let ips: Vec<IpAddr> = usable.filter_map(|entry| ip_of(&entry.address?)).filter(is_of_lan).collect();
    ensure!(!ips.is_empty(), "--lan: this machine has no address besides loopback");
    let listen = ips.iter().copied().chain([IpAddr::V4(Ipv4Addr::LOCALHOST)]);
    Ok((listen.map(|ip| SocketAddr::new(ip, TURN_PORT)).collect(), ips))
}

fn ip_of(address: &nix::sys::socket::SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
}

/// Link-local addresses need a zone, which a TURN URI cannot carry.
fn is_of_lan(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => !v4.is_link_local(),
        IpAddr::V6(v6) => !v6.is_unicast_link_local(),
    }
}

/// The addresses that a client is told: with `lan` those that other machines can use.
pub(super) fn reachable(listen: &[SocketAddr], lan: bool) -> Vec<SocketAddr> {
    listen.iter().copied().filter(|addr| !(lan && addr.ip().is_loopback())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_are_not_told_of_loopback() {
        let listen = ["192.0.2.2:3478".parse().unwrap(), "127.0.0.1:3478".parse().unwrap()];
        assert_eq!(reachable(&listen, true), listen[..1]);
        assert_eq!(reachable(&listen, false), listen);
    }

    #[test]
    fn relays_of_a_lan_are_not_on_loopback() {
        // A machine without any other address refuses, which is right, too.
        if let Ok((listen, relays)) = lan() {
            assert!(relays.iter().all(|ip| !ip.is_loopback()), "{relays:?}");
            assert_eq!(listen.len(), relays.len() + 1);
        }
    }
}
