//! The interfaces of this host that carry addresses of the server.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

use tt_os::addresses::interface_addresses;

/// Returns the names of the interfaces that are up and have one of `ips`; with an unspecified address among them, all.
/// The loopback interface is none of them.
pub(super) fn carrying(ips: &[IpAddr]) -> io::Result<Vec<String>> {
    let ips: Vec<IpAddr> = ips.iter().map(IpAddr::to_canonical).collect();
    let takes_all = ips.iter().any(IpAddr::is_unspecified);
    let carries = |ip: &IpAddr| takes_all || ips.contains(ip);
    let mut names = BTreeSet::new();
    names.extend(interface_addresses()?.into_iter().filter(|(_, ip)| carries(ip)).map(|(name, _)| name));
    Ok(names.into_iter().collect())
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
        assert!(carrying(&["192.0.2.77".parse().unwrap()]).unwrap().is_empty());
    }
}
