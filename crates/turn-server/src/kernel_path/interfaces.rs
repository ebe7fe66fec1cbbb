//! The interfaces of this host that carry addresses of the server.

use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;

/// Returns the names of the interfaces that are up and have one of `ips`; with an unspecified address among them, all.
/// The loopback interface is none of them.
pub(super) fn carrying(ips: &[IpAddr]) -> nix::Result<Vec<String>> {
    let ips: Vec<IpAddr> = ips.iter().map(IpAddr::to_canonical).collect();
    let takes_all = ips.iter().any(IpAddr::is_unspecified);
    let mut names = Vec::new();
    for entry in getifaddrs()? {
        let is_usable =
            entry.flags.contains(InterfaceFlags::IFF_UP) && !entry.flags.contains(InterfaceFlags::IFF_LOOPBACK);
        let ip = entry.address.as_ref().and_then(ip_of).filter(|ip| takes_all || ips.contains(ip));
        if is_usable && ip.is_some() && !names.contains(&entry.interface_name) {
            names.push(entry.interface_name);
        }
    }
    Ok(names)
}

fn ip_of(address: &SockaddrStorage) -> Option<IpAddr> {
    let ipv4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    ipv4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn the_loopback_interface_is_never_used() {
        for ip in [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED] {
            let names = carrying(&[ip.into()]).unwrap();
            assert!(!names.contains(&"lo".to_owned()), "{names:?}");
        }
    }

    #[test]
    fn an_address_that_no_interface_has_finds_none() {
        assert_eq!(carrying(&["192.0.2.77".parse().unwrap()]), Ok(Vec::new()));
    }
}
