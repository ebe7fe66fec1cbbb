//! The interfaces of this host that carry addresses of the server.

use std::net::IpAddr;
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;
use tt_path::Interface;

/// An Ethernet interface that is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) interface: Interface,
    /// Name of its driver; `None` for a virtual device.
    pub(super) driver: Option<String>,
}

/// Returns the Ethernet interfaces that have one of `ips`; with an unspecified address among them, all. The loopback
/// interface is none of them.
pub(super) fn carrying(ips: &[IpAddr]) -> nix::Result<Vec<Found>> {
    let ips: Vec<IpAddr> = ips.iter().map(IpAddr::to_canonical).collect();
    let takes_all = ips.iter().any(IpAddr::is_unspecified);
    let (mut ethernet, mut named) = (Vec::new(), Vec::new());
    for entry in getifaddrs()? {
        if !entry.flags.contains(InterfaceFlags::IFF_UP) || entry.flags.contains(InterfaceFlags::IFF_LOOPBACK) {
            continue;
        }
        let Some(address) = entry.address else { continue };
        if let Some(link) = address.as_link_addr() {
            if let Some(mac) = link.addr().filter(|_| link.halen() == 6) {
                let index = u32::try_from(link.ifindex()).unwrap_or(0);
                ethernet.push(Interface { name: entry.interface_name, index, mac });
            }
        } else if ip_of(&address).is_some_and(|ip| takes_all || ips.contains(&ip)) {
            named.push(entry.interface_name);
        }
    }
    ethernet.retain(|interface| named.contains(&interface.name));
    Ok(ethernet.into_iter().map(|interface| Found { driver: driver_of(&interface.name), interface }).collect())
}

fn ip_of(address: &SockaddrStorage) -> Option<IpAddr> {
    let ipv4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    ipv4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

/// Returns the driver of an interface's device.
fn driver_of(name: &str) -> Option<String> {
    let driver = std::fs::read_link(Path::new("/sys/class/net").join(name).join("device/driver")).ok()?;
    Some(driver.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn the_loopback_interface_is_never_used() {
        for ip in [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED] {
            let found = carrying(&[ip.into()]).unwrap();
            assert!(found.iter().all(|found| found.interface.name != "lo"), "{found:?}");
        }
    }

    #[test]
    fn an_address_that_no_interface_has_finds_none() {
        assert_eq!(carrying(&["192.0.2.77".parse().unwrap()]), Ok(Vec::new()));
    }
}
