//! Drivers of interfaces, and which of them `auto` attaches the program to.
//!
//! `auto` uses native mode only where a driver is known to be fit for it: it runs programs on frames with headroom, and
//! transmits those that are redirected to it. Every other driver is used when native mode is asked for by name, if the
//! kernel accepts that. No result here is final: the kernel may reject the program ([`PathError`] names the remedy),
//! and an interface relays only after its proof ([`crate::Proof`]).

use std::fs;
use std::path::Path;

use netlink_packet_route::link::LinkFlags;

use crate::hops::{
    Failure, IFLA_LINKINFO, IFLA_MTU, IFLA_PARENT_DEV_BUS_NAME, IFLA_PARENT_DEV_NAME, LinkMessage, LinkQuestion,
    Message, Questions, attribute, text,
};
use crate::{Interface, PathError};

/// When the program is attached to interfaces of a driver in native mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NativeUse {
    /// By `auto`, and when asked for.
    Auto,
    /// Only when asked for.
    Asked,
    /// Not at all.
    Never,
}

/// A driver with its use and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Driver {
    /// Name as `ethtool -i` has it for hardware, or `ip -d link` for virtual interfaces.
    pub name: &'static str,
    /// When its interfaces are used.
    pub native: NativeUse,
    /// The reason, in one line for an operator.
    pub reason: &'static str,
}

const fn driver(name: &'static str, native: NativeUse, reason: &'static str) -> Driver {
    Driver { name, native, reason }
}

/// Every driver that is known. Kernel versions are those in which the driver got native XDP; the program needs 5.18.
pub const DRIVERS: &[Driver] = &[
    driver("bnxt_en", NativeUse::Auto, "native XDP since Linux 4.11"),
    driver("ena", NativeUse::Auto, "native XDP since Linux 5.6, with an MTU of at most 3498"),
    driver("i40e", NativeUse::Auto, "native XDP since Linux 4.13"),
    driver("ice", NativeUse::Auto, "native XDP since Linux 5.5"),
    driver("igb", NativeUse::Auto, "native XDP since Linux 5.10"),
    driver("igc", NativeUse::Auto, "native XDP since Linux 5.13"),
    driver("ixgbe", NativeUse::Auto, "native XDP since Linux 4.12"),
    driver("mlx5_core", NativeUse::Auto, "native XDP since Linux 4.9"),
    driver("virtio_net", NativeUse::Auto, "native XDP since Linux 4.10; it needs a spare transmit queue for each CPU"),
    driver("gve", NativeUse::Asked, "some versions leave 2 bytes of headroom, too few for a ChannelData header"),
    driver("hv_netvsc", NativeUse::Asked, "it needs LRO off, and some kernels do not redirect"),
    driver("ixgbevf", NativeUse::Asked, "it does not transmit frames of other interfaces"),
    driver("mana", NativeUse::Asked, "not tried"),
    driver("vmxnet3", NativeUse::Asked, "native XDP since Linux 6.6; not tried"),
    driver("tun", NativeUse::Asked, "a virtual machine or VPN on this host leaves checksums to it"),
    driver("veth", NativeUse::Asked, "senders on this host leave checksums to it, and its other end needs GRO"),
    driver("bond", NativeUse::Asked, "the kernel accepts a program in some modes only"),
    driver("bridge", NativeUse::Never, "a bridge has no native XDP"),
    driver("ipvlan", NativeUse::Never, "it has no native XDP"),
    driver("loopback", NativeUse::Never, "its frames have no Ethernet addresses and partial checksums"),
    driver("macvlan", NativeUse::Never, "it has no native XDP"),
    driver("vlan", NativeUse::Never, "frames with a VLAN tag go to the sockets"),
    driver("wireguard", NativeUse::Never, "its packets have no Ethernet header"),
];

/// What is said of a driver that is not in [`DRIVERS`].
const UNKNOWN: Driver = driver("", NativeUse::Asked, "the driver is not known: native mode must be asked for");

/// Finds a driver; one that is not in [`DRIVERS`] has an empty name and is used only when asked for.
///
/// ```
/// use tt_path::drivers::{NativeUse, find};
///
/// assert_eq!(find("virtio_net").native, NativeUse::Auto);
/// assert_eq!(find("veth").native, NativeUse::Asked);
/// ```
#[must_use]
pub fn find(name: &str) -> Driver {
    DRIVERS.iter().find(|driver| driver.name == name).copied().unwrap_or(UNKNOWN)
}

/// An interface with the facts that decide about its use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Name, index and Ethernet address; the address is zero if the interface has none.
    pub interface: Interface,
    /// Name of the driver, or kind of a virtual interface; `None` if the kernel does not say.
    pub driver: Option<String>,
    /// Largest IP packet, in bytes.
    pub mtu: u32,
}

impl Device {
    /// Reads an interface of the thread's network namespace. Needs no privilege.
    ///
    /// # Errors
    /// `Attach` if there is no interface `name`; `Netlink` if the kernel does not answer.
    pub fn read(name: &str) -> Result<Self, PathError> {
        link_message(name).map(|message| Self::of_message(&message))
    }

    pub(crate) fn of_message(message: &LinkMessage) -> Self {
        Self::of(message, Path::new("/sys/bus"))
    }

    /// Says whether and why the program is attached to it.
    #[must_use]
    pub fn native_use(&self) -> Driver {
        self.driver.as_deref().map_or(UNKNOWN, find)
    }

    /// Reads a message, and the driver of the device below `buses`: unlike `/sys/class/net`, it does not depend on the
    /// network namespace.
    fn of(message: &LinkMessage, buses: &Path) -> Self {
        let (name, mac) = (message.name().unwrap_or_default().to_owned(), message.mac().unwrap_or_default());
        let interface = Interface { name, index: message.index, mac, redirects: false };
        let kind = message.attribute(IFLA_LINKINFO).and_then(|parts| attribute(parts, IFLA_INFO_KIND)).and_then(text);
        let mtu = message.number(IFLA_MTU).unwrap_or_default();
        let mut device = Self { interface, driver: kind.map(str::to_owned), mtu };
        let (bus, parent) = (message.text(IFLA_PARENT_DEV_BUS_NAME), message.text(IFLA_PARENT_DEV_NAME));
        if message.flags.contains(LinkFlags::Loopback) {
            device.driver = Some("loopback".to_owned());
        } else if device.driver.is_none()
            && let (Some(bus), Some(parent)) = (bus, parent)
        {
            device.driver = driver_of(buses, bus, parent);
        }
        device.interface.redirects = device.driver.as_deref() == Some("veth");
        device
    }
}

const ENODEV: i32 = 19;
/// Part of `IFLA_LINKINFO`.
const IFLA_INFO_KIND: u16 = 1;

/// Asks the kernel about an interface.
pub(crate) fn link_message(name: &str) -> Result<LinkMessage, PathError> {
    let netlink = |os| PathError::Netlink { step: "interface", os };
    let mut questions = Questions::open().map_err(|error| netlink(error.raw_os_error()))?;
    match questions.get(Message::GetLink(LinkQuestion::Name(name.to_owned()))) {
        Ok(Message::NewLink(message)) => Ok(message),
        Ok(_) | Err(Failure::Malformed) => Err(netlink(None)),
        Err(Failure::Os(os @ ENODEV)) => Err(PathError::Attach { interface: name.to_owned(), os: Some(os) }),
        Err(Failure::Os(os)) => Err(netlink(Some(os))),
    }
}

/// Returns the name of the driver that a device is bound to.
fn driver_of(buses: &Path, bus: &str, parent: &str) -> Option<String> {
    let is_name = |text: &str| !text.contains('/') && text != "..";
    if !is_name(bus) || !is_name(parent) {
        return None;
    }
    let link = fs::read_link(buses.join(bus).join("devices").join(parent).join("driver")).ok()?;
    Some(link.file_name()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let len = u16::try_from(4 + value.len()).unwrap();
        let mut bytes = [&len.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    /// `struct ifinfomsg` and attributes of `if_link.h`.
    fn device(flags: u32, attributes: &[Vec<u8>], buses: &Path) -> Device {
        let header = [&[0, 0, 1, 0][..], &17_u32.to_ne_bytes(), &flags.to_ne_bytes(), &[0; 4]].concat();
        let bytes = [header, attributes.concat()].concat();
        Device::of(&LinkMessage::parse(&bytes).unwrap(), buses)
    }

    #[test]
    fn the_driver_is_that_of_the_device_below_or_the_kind() {
        let buses = tempfile::tempdir().unwrap();
        let folder = buses.path().join("virtio/devices/virtio3");
        fs::create_dir_all(&folder).unwrap();
        symlink("../../../bus/virtio/drivers/virtio_net", folder.join("driver")).unwrap();
        let named = [attribute(3, b"eth7\0"), attribute(1, &[2, 0, 0, 0, 0, 9]), attribute(4, &1400_u32.to_ne_bytes())];
        let (parent, bus) = (attribute(56, b"virtio3\0"), attribute(57, b"virtio\0"));
        let hardware = [&named[..], &[parent.clone(), bus.clone()]].concat();
        let found = device(0, &hardware, buses.path());
        let interface = Interface { name: "eth7".to_owned(), index: 17, mac: [2, 0, 0, 0, 0, 9], redirects: false };
        assert_eq!(found, Device { interface, driver: Some("virtio_net".to_owned()), mtu: 1400 });
        assert_eq!(found.native_use().native, NativeUse::Auto);

        let kind = attribute(18, &attribute(1, b"veth\0"));
        let virtual_device = device(0, &[kind], buses.path());
        assert_eq!((virtual_device.driver.as_deref(), virtual_device.interface.redirects), (Some("veth"), true));
        assert_eq!(device(8, &hardware, buses.path()).driver.as_deref(), Some("loopback"));
        let elsewhere = [attribute(56, b"virtio4\0"), bus.clone()];
        for attributes in [&elsewhere[..], &[parent], &[bus], &[]] {
            let found = device(0, attributes, buses.path());
            assert_eq!((found.driver.as_deref(), found.native_use()), (None, UNKNOWN));
        }
        for name in [&b"../../virtio/devices/virtio3\0"[..], b"..\0"] {
            let attributes = [attribute(56, name), attribute(57, b"virtio\0")];
            assert_eq!(device(0, &attributes, buses.path()).driver, None);
        }
    }

    #[test]
    fn each_driver_is_listed_once_with_a_reason() {
        for driver in DRIVERS {
            assert_eq!(find(driver.name), *driver);
            assert!(!driver.reason.is_empty() && !driver.reason.ends_with('.'), "{driver:?}");
        }
        assert_eq!(find("e1000").native, NativeUse::Asked);
        let with = |native| DRIVERS.iter().filter(move |driver| driver.native == native).map(|driver| driver.name);
        assert!(!with(NativeUse::Auto).any(|name| ["veth", "gve", "bond", "tun"].contains(&name)));
        assert!(with(NativeUse::Never).any(|name| name == "loopback"));
    }
}
