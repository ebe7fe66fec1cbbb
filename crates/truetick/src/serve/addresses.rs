//! Addresses of the TURN server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::{Context as _, Result, ensure};
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

/// STUN and TURN over UDP and TCP, RFC 8656 section 3.
pub(super) const TURN_PORT: u16 = 3478;

/// Returns the addresses to listen on and to relay on with `--lan`: all of this machine, and all but loopback, since
/// another machine cannot reach a relayed address on loopback.
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

/// Returns the TURN URIs for clients, without loopback if `lan` is set, with `turns:` if there is a certificate.
pub(super) fn urls(turn: &turn_server::Running, lan: bool) -> Vec<String> {
    let is_reachable = |addr: &SocketAddr| !(lan && addr.ip().is_loopback());
    let udp = turn.listen().iter().filter(|addr| is_reachable(addr)).map(|addr| format!("turn:{addr}"));
    let streams = || turn.streams().iter().filter(|stream| is_reachable(&stream.addr));
    let tcp = streams().filter(|stream| stream.tcp).map(|stream| format!("turn:{}?transport=tcp", stream.addr));
    let tls = streams().filter(|stream| stream.tls).map(|stream| format!("turns:{}?transport=tcp", stream.addr));
    udp.chain(tcp).chain(tls).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lan_uris_contain_no_loopback() {
        let mut config = turn_server::TurnConfig::on("127.0.0.1:0".parse().unwrap());
        config.workers = 1;
        let turn = turn_server::start(&config).unwrap();
        let addr = turn.listen()[0];
        assert_eq!(urls(&turn, false), [format!("turn:{addr}"), format!("turn:{addr}?transport=tcp")]);
        assert_eq!(urls(&turn, true), Vec::<String>::new());
        turn.stop();
    }

    #[test]
    fn lan_relays_are_not_on_loopback() {
        // A machine with loopback only returns an error, which is right too.
        if let Ok((listen, relays)) = lan() {
            assert!(relays.iter().all(|ip| !ip.is_loopback()), "{relays:?}");
            assert_eq!(listen.len(), relays.len() + 1);
        }
    }
}
