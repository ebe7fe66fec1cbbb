//! The addresses of this host, and their changes.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::libc;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, SockaddrStorage, bind, recv, socket,
};
use tt_model::sort_short_by_key;

/// Longest notification, bytes. The rest of a longer one is lost, which does not matter: the addresses are read again.
const NOTIFICATION_MAX: usize = 8_192;

/// Returns the interfaces that are up, without the loopback interface, by name, each with every address that it has.
///
/// # Errors
/// The kernel's error.
pub fn interface_addresses() -> io::Result<Vec<(String, IpAddr)>> {
    let usable = getifaddrs()?.filter(|entry| {
        entry.flags.contains(InterfaceFlags::IFF_UP) && !entry.flags.contains(InterfaceFlags::IFF_LOOPBACK)
    });
    Ok(usable.filter_map(|entry| Some((entry.interface_name, ip_of(&entry.address?)?))).collect())
}

fn ip_of(address: &SockaddrStorage) -> Option<IpAddr> {
    let ipv4 = address.as_sockaddr_in().map(|address| address.ip().into());
    ipv4.or_else(|| address.as_sockaddr_in6().map(|address| address.ip().into()))
}

/// Returns the first and the last address of every range that this host accepts packets for, in ascending order.
///
/// A range has one address, except on the loopback interface: there the kernel accepts every address of an IPv4 network
/// (`127.0.0.1/8`).
///
/// # Errors
/// The kernel's error.
pub fn own_addresses() -> io::Result<Vec<(IpAddr, IpAddr)>> {
    let mut ranges: Vec<_> = getifaddrs()?.filter_map(|address| range_of(&address)).collect();
    sort_short_by_key(&mut ranges, |range| *range);
    ranges.dedup();
    Ok(ranges)
}

fn range_of(interface: &InterfaceAddress) -> Option<(IpAddr, IpAddr)> {
    let address = interface.address.as_ref()?;
    if let Some(v6) = address.as_sockaddr_in6() {
        return Some((v6.ip().into(), v6.ip().into()));
    }
    let ip = address.as_sockaddr_in()?.ip();
    let netmask = interface.netmask.as_ref().and_then(|mask| Some(mask.as_sockaddr_in()?.ip().to_bits()));
    let mask = netmask.filter(|_| interface.flags.contains(InterfaceFlags::IFF_LOOPBACK)).unwrap_or(u32::MAX);
    let (first, last) = (ip.to_bits() & mask, ip.to_bits() | !mask);
    Some((Ipv4Addr::from_bits(first).into(), Ipv4Addr::from_bits(last).into()))
}

/// A netlink socket that becomes readable when an address is added to this host or removed from it (rtnetlink(7)).
#[derive(Debug)]
pub struct AddressWatch {
    socket: OwnedFd,
}

impl AddressWatch {
    /// Opens the socket. Changes from here on are reported.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new() -> io::Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
        let groups = (libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR).unsigned_abs();
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
        Ok(Self { socket })
    }

    /// Discards the reported changes, and returns whether there was one.
    ///
    /// # Errors
    /// The kernel's error. Notifications that it had no room for are a change.
    pub fn take(&self) -> io::Result<bool> {
        let (mut buffer, mut has_changed) = ([0; NOTIFICATION_MAX], false);
        loop {
            match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                Ok(_) | Err(Errno::ENOBUFS) => has_changed = true,
                Err(Errno::EAGAIN) => return Ok(has_changed),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for AddressWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_a_whole_network() {
        let own = own_addresses().unwrap();
        let loopback = ("127.0.0.0".parse().unwrap(), "127.255.255.255".parse().unwrap());
        assert!(own.contains(&loopback) && own.is_sorted(), "{own:?}");
    }

    #[test]
    fn without_a_change_there_is_none_to_take() {
        assert!(!AddressWatch::new().unwrap().take().unwrap());
    }
}
