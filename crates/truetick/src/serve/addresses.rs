//! Addresses of the TURN server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::{Context as _, Result, ensure};
use tt_os::addresses::interface_addresses;

/// STUN and TURN over UDP and TCP, RFC 8656 section 3.
pub(super) const TURN_PORT: u16 = 3478;

/// Returns the addresses to listen on and to relay on with `--lan`: all of this machine, and all but loopback, since
/// another machine cannot reach a relayed address on loopback.
pub(super) fn lan() -> Result<(Vec<SocketAddr>, Vec<IpAddr>)> {
    let addresses = interface_addresses().context("--lan: cannot list this machine's addresses")?;
    let ips: Vec<IpAddr> = addresses.into_iter().map(|(_, ip)| ip).filter(is_of_lan).collect();
    ensure!(!ips.is_empty(), "--lan: this machine has no address besides loopback");
    let listen = ips.iter().copied().chain([IpAddr::V4(Ipv4Addr::LOCALHOST)]);
    Ok((listen.map(|ip| SocketAddr::new(ip, TURN_PORT)).collect(), ips))
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
