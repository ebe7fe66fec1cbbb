//! Reads the kernel's messages: the few attributes that decide about a next hop.

use std::net::IpAddr;

use netlink_packet_route::AddressFamily;
use netlink_packet_route::link::LinkFlags;
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourExtFlags, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteMetric, RouteType, RouteVia};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RuleMessage};

use tt_model::IpFamily;

use super::message::{IFLA_AF_SPEC, IFLA_MTU, LinkMessage, attribute, word};
use super::refusal::Refusal;

/// `linux/if_arp.h`.
const ARPHRD_ETHER: u16 = 1;
const AF_INET6: u16 = 10;
/// An array of numbers, of `linux/if_link.h`, and one of its places, of `linux/ipv6.h`.
const IFLA_INET6_CONF: u16 = 2;
const DEVCONF_MTU6: usize = 2;

const TABLE_DEFAULT: u32 = 253;
const TABLE_MAIN: u32 = 254;
const TABLE_LOCAL: u32 = 255;

/// Length of an address of the family, in bits.
pub(crate) const fn bits(family: IpFamily) -> u8 {
    match family {
        IpFamily::V4 => 32,
        IpFamily::V6 => 128,
    }
}

/// The kernel's number of a family.
pub(crate) const fn code(family: IpFamily) -> AddressFamily {
    match family {
        IpFamily::V4 => AddressFamily::Inet,
        IpFamily::V6 => AddressFamily::Inet6,
    }
}

pub(crate) fn family_of(number: AddressFamily) -> Option<IpFamily> {
    IpFamily::ALL.into_iter().find(|family| code(*family) == number)
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Prefix {
    pub(crate) address: IpAddr,
    pub(crate) len: u8,
}

impl Prefix {
    pub(crate) fn contains(self, address: IpAddr) -> bool {
        let bits = |address: IpAddr| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
            IpAddr::V6(address) => address.to_bits(),
        };
        let differing = (bits(self.address) ^ bits(address)).leading_zeros();
        IpFamily::of(self.address) == IpFamily::of(address) && differing >= u32::from(self.len)
    }
}

/// A route as the kernel describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) family: IpFamily,
    pub(crate) kind: RouteType,
    pub(crate) prefix: Prefix,
    pub(crate) table: u32,
    pub(crate) metric: u32,
    pub(crate) tos: u8,
    pub(crate) ifindex: Option<u32>,
    pub(crate) gateway: Option<IpAddr>,
    pub(crate) mtu: Option<u32>,
    /// What makes it unusable.
    pub(crate) refusal: Option<Refusal>,
    pub(crate) is_cloned: bool,
}

impl Route {
    /// Reads a message; `None` if it is not a route of IPv4 or IPv6, or has an address of neither.
    pub(crate) fn read(message: &RouteMessage) -> Option<Self> {
        let header = &message.header;
        let family = family_of(header.address_family)?;
        let unspecified = match family {
            IpFamily::V4 => IpAddr::from([0; 4]),
            IpFamily::V6 => IpAddr::from([0; 16]),
        };
        let is_cloned = header.flags.bits() & RTM_F_CLONED != 0;
        let mut route = Self {
            family,
            kind: header.kind,
            prefix: Prefix { address: unspecified, len: header.destination_prefix_length },
            table: header.table.into(),
            metric: 0,
            tos: header.tos,
            ifindex: None,
            gateway: None,
            mtu: None,
            refusal: None,
            is_cloned,
        };
        message.attributes.iter().try_for_each(|attribute| route.add(attribute))?;
        Some(route)
    }

    fn add(&mut self, attribute: &RouteAttribute) -> Option<()> {
        if let RouteAttribute::Destination(address) = attribute {
            self.prefix.address = to_ip(address)?;
        } else if let RouteAttribute::Gateway(address) = attribute {
            self.gateway = Some(to_ip(address)?);
        } else if let RouteAttribute::Via(via) = attribute {
            // An IPv4 route through an IPv6 neighbour, or the reverse (RTA_VIA).
            let address = if let RouteVia::Inet(address) = via {
                (*address).into()
            } else if let RouteVia::Inet6(address) = via {
                (*address).into()
            } else {
                return None;
            };
            self.gateway = Some(address);
        } else if let RouteAttribute::Oif(index) = attribute {
            self.ifindex = Some(*index);
        } else if let RouteAttribute::Table(table) = attribute {
            self.table = *table;
        } else if let RouteAttribute::Priority(metric) = attribute {
            self.metric = *metric;
        } else if let RouteAttribute::Metrics(metrics) = attribute {
            let mtu = |metric: &RouteMetric| if let RouteMetric::Mtu(mtu) = metric { Some(*mtu) } else { None };
            self.mtu = metrics.iter().find_map(mtu).filter(|mtu| *mtu != 0);
        } else if let RouteAttribute::MultiPath(_) = attribute {
            self.refusal = Some(Refusal::Multipath);
        } else if let RouteAttribute::NhId(_) = attribute {
            self.refusal = Some(Refusal::NexthopObject);
        } else if let RouteAttribute::Encap(_) | RouteAttribute::EncapType(_) | RouteAttribute::NewDestination(_) =
            attribute
        {
            self.refusal = Some(Refusal::Encapsulated);
        }
        Some(())
    }

    /// Whether a lookup under the standard rules may find it after `local`.
    pub(crate) const fn is_in_main(&self) -> bool {
        !self.is_cloned && (self.table == TABLE_MAIN || self.table == TABLE_DEFAULT)
    }
}

const RTM_F_CLONED: u32 = 0x200;

fn to_ip(address: &RouteAddress) -> Option<IpAddr> {
    if let RouteAddress::Inet(address) = address {
        Some((*address).into())
    } else if let RouteAddress::Inet6(address) = address {
        Some((*address).into())
    } else {
        None
    }
}

/// An interface as the kernel describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) mac: Option<[u8; 6]>,
    pub(crate) mtu: u32,
    /// MTU of IPv6, which a router may lower.
    pub(crate) mtu6: Option<u32>,
    pub(crate) flags: LinkFlags,
    pub(crate) is_ethernet: bool,
}

impl Link {
    pub(crate) fn read(message: &LinkMessage) -> Self {
        Self {
            mac: message.mac(),
            mtu: message.number(IFLA_MTU).unwrap_or_default(),
            mtu6: message.attribute(IFLA_AF_SPEC).and_then(mtu6),
            flags: message.flags,
            is_ethernet: message.hardware == ARPHRD_ETHER,
        }
    }

    /// Returns the Ethernet address and the MTU for a family.
    pub(crate) fn judge(&self, family: IpFamily) -> Result<([u8; 6], u32), Refusal> {
        if self.flags.contains(LinkFlags::Loopback) {
            return Err(Refusal::Loopback);
        }
        let mac = self.mac.filter(|_| self.is_ethernet && !self.flags.contains(LinkFlags::Noarp));
        let mac = mac.ok_or(Refusal::NotEthernet)?;
        if !self.flags.contains(LinkFlags::Up | LinkFlags::LowerUp) {
            return Err(Refusal::LinkDown);
        }
        let mtu6 = self.mtu6.filter(|_| family == IpFamily::V6).unwrap_or(u32::MAX);
        Ok((mac, self.mtu.min(mtu6)))
    }
}

/// Finds the MTU among the settings of IPv6 of an interface.
fn mtu6(families: &[u8]) -> Option<u32> {
    let settings = attribute(attribute(families, AF_INET6)?, IFLA_INET6_CONF)?;
    word(settings.get(4 * DEVCONF_MTU6..)?)
}

/// Whether a neighbour that answered once is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirmation {
    /// The process asks the kernel to confirm it.
    Asked,
    /// The process may not: only the kernel's own packets have it confirmed.
    Denied,
}

/// An entry of the neighbour table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Neighbour {
    pub(crate) state: NeighbourState,
    pub(crate) mac: Option<[u8; 6]>,
    /// The kernel itself, or a routing daemon, keeps it true (`managed`, `extern_learn`).
    pub(crate) is_managed: bool,
}

impl Neighbour {
    /// Reads a message: the entry with its interface and address; `None` if it is not of IPv4 or IPv6.
    pub(crate) fn read(message: &NeighbourMessage) -> Option<(u32, IpAddr, Self)> {
        let (mut address, mut mac) = (None, None);
        let mut is_managed = message.header.flags.contains(NeighbourFlags::ExtLearned);
        for attribute in &message.attributes {
            if let NeighbourAttribute::Destination(NeighbourAddress::Inet(found)) = attribute {
                address = Some((*found).into());
            } else if let NeighbourAttribute::Destination(NeighbourAddress::Inet6(found)) = attribute {
                address = Some((*found).into());
            } else if let NeighbourAttribute::LinkLayerAddress(found) = attribute {
                mac = found.as_slice().try_into().ok();
            } else if let NeighbourAttribute::ExtFlags(flags) = attribute {
                is_managed |= flags.contains(NeighbourExtFlags::Managed);
            }
        }
        Some((message.header.ifindex, address?, Self { state: message.header.state, mac, is_managed }))
    }

    /// Returns the Ethernet address to which the kernel itself would send.
    pub(crate) fn judge(&self, confirmation: Confirmation) -> Result<[u8; 6], Refusal> {
        let is_usable = match (self.state, confirmation) {
            (NeighbourState::Stale, Confirmation::Denied) => return Err(Refusal::NeighbourStale),
            (
                NeighbourState::Reachable
                | NeighbourState::Stale
                | NeighbourState::Delay
                | NeighbourState::Probe
                | NeighbourState::Noarp
                | NeighbourState::Permanent,
                _,
            ) => true,
            (_, _) => false,
        };
        self.mac.filter(|_| is_usable).ok_or(Refusal::NeighbourFailed)
    }

    /// Whether the entry ages and only traffic confirms it. `NTF_USE` would make an ordinary entry of every other.
    pub(crate) fn ages(&self) -> bool {
        let aging = [NeighbourState::Reachable, NeighbourState::Stale, NeighbourState::Delay, NeighbourState::Probe];
        !self.is_managed && aging.contains(&self.state)
    }
}

/// Returns priority and table of a rule without any condition, and `None` for every other rule.
pub(crate) fn standard_rule(message: &RuleMessage) -> Option<(u32, u32)> {
    let header = &message.header;
    let is_plain = header.action == RuleAction::ToTable
        && (header.dst_len, header.src_len, header.tos) == (0, 0, 0)
        && !header.flags.contains(RuleFlags::Invert);
    let (mut priority, mut table) = (0, u32::from(header.table));
    for attribute in &message.attributes {
        if let RuleAttribute::Priority(value) = attribute {
            priority = *value;
        } else if let RuleAttribute::Table(value) = attribute {
            table = *value;
        } else if let RuleAttribute::SuppressPrefixLen(u32::MAX) | RuleAttribute::Protocol(_) = attribute {
        } else {
            return None;
        }
    }
    is_plain.then_some((priority, table))
}

/// Whether these are the rules that a kernel starts with.
pub(crate) fn are_standard(family: IpFamily, rules: &[Option<(u32, u32)>]) -> bool {
    let standard = [Some((0, TABLE_LOCAL)), Some((32_766, TABLE_MAIN)), Some((32_767, TABLE_DEFAULT))];
    match family {
        IpFamily::V4 => rules == standard,
        IpFamily::V6 => rules == &standard[..2],
    }
}

#[cfg(test)]
mod tests;
