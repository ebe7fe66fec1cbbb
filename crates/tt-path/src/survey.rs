//! What an operator should know of an interface before the program is attached to it. Nothing here changes anything.

use std::fs;
use std::net::IpAddr;

use aya::programs::loaded_programs;
use netlink_packet_route::link::LinkFlags;

use crate::drivers::{Device, link_message};
use crate::hops::{
    Failure, IFLA_LINK, IFLA_LINK_NETNSID, IFLA_XDP, LinkMessage, LinkQuestion, Message, Questions, attribute, word,
};
use crate::sys::ethtool::{Ethtool, Question};
use crate::{AddressPair, NextHop, PathError, Refusal, hops};

/// Bit of LRO in the flags of ethtool.
const FLAG_LRO: u32 = 1 << 15;

/// Offloads of an interface; `None` where the driver does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offloads {
    /// Senders leave checksums to it (`tx`).
    pub tx_checksum: Option<bool>,
    /// Received packets are merged by the kernel (`gro`).
    pub gro: Option<bool>,
    /// Received packets are merged by the device (`lro`), which excludes XDP.
    pub lro: Option<bool>,
}

/// An XDP program on an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedProgram {
    /// The kernel's number of it.
    pub id: u32,
    /// Its name; `None` if the process may not ask (CAP_SYS_ADMIN).
    pub name: Option<String>,
    /// `native`, `generic`, `offloaded` or `several`.
    pub mode: &'static str,
    /// Names and numbers of the processes that hold it, as far as this one may see them.
    pub holders: Vec<(String, u32)>,
}

/// The other end of a veth device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherEnd {
    /// Its index.
    pub index: u32,
    /// Name and offloads; `None` if it is in another network namespace.
    pub here: Option<(String, Offloads)>,
}

/// An interface with the facts that decide about XDP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Name, index, Ethernet address, driver and MTU.
    pub device: Device,
    /// Whether it is up and has a carrier.
    pub is_up: bool,
    /// Its offloads.
    pub offloads: Offloads,
    /// The program that is on it.
    pub program: Option<AttachedProgram>,
    /// Names of VLAN interfaces above it.
    pub vlans: Vec<String>,
    /// The other end, if it is a veth device.
    pub other_end: Option<OtherEnd>,
}

/// Returns the names of the interfaces of the thread's network namespace, without the loopback interface.
///
/// # Errors
/// `Netlink` if the kernel does not answer.
pub fn interfaces() -> Result<Vec<String>, PathError> {
    let links = all_links()?;
    let is_loopback = |link: &&LinkMessage| link.flags.contains(LinkFlags::Loopback);
    Ok(links.iter().filter(|link| !is_loopback(link)).filter_map(name_of).collect())
}

/// The XDP program of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceProgram {
    /// Name of the interface.
    pub interface: String,
    /// Index of the interface.
    pub ifindex: u32,
    /// The kernel's number of the program.
    pub id: u32,
}

/// Returns the XDP programs on interfaces of the thread's network namespace. Needs no privileges.
///
/// # Errors
/// `Netlink` if the kernel does not answer.
pub fn programs() -> Result<Vec<InterfaceProgram>, PathError> {
    let program_on = |link: &LinkMessage| {
        let (id, _) = program_of(link)?;
        Some(InterfaceProgram { interface: name_of(link)?, ifindex: link.index, id })
    };
    Ok(all_links()?.iter().filter_map(program_on).collect())
}

/// Examines an interface of the thread's network namespace. Without privileges, programs have no name.
///
/// # Errors
/// `Attach` if there is no interface `name`; `Netlink` if the kernel does not answer.
pub fn survey(name: &str) -> Result<Survey, PathError> {
    let message = link_message(name)?;
    let device = Device::of_message(&message);
    let up = LinkFlags::Up | LinkFlags::LowerUp;
    let links = all_links()?;
    let above = |link: &&LinkMessage| lower_of(link) == Some(device.interface.index);
    let is_vlan = |link: &&LinkMessage| Device::of_message(link).driver.as_deref() == Some("vlan");
    let other_end = lower_of(&message).filter(|_| device.driver.as_deref() == Some("veth")).map(|index| {
        let is_here = message.attribute(IFLA_LINK_NETNSID).is_none();
        let name = links.iter().find(|link| is_here && link.index == index).and_then(name_of);
        OtherEnd { index, here: name.map(|name| (name.clone(), offloads(&name))) }
    });
    Ok(Survey {
        is_up: message.flags.contains(up),
        offloads: offloads(name),
        program: attached(&message),
        vlans: links.iter().filter(above).filter(is_vlan).filter_map(name_of).collect(),
        other_end,
        device,
    })
}

/// Asks where packets of a pair leave, if the program were attached to the interface alone.
///
/// # Errors
/// Why they would be left to the sockets.
pub fn next_hop(pair: AddressPair, ifindex: u32) -> Result<NextHop, Refusal> {
    hops::next_hop(pair, ifindex)
}

/// Returns the first address of each family that packets of the interface can have.
#[must_use]
pub fn sources(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let is_usable = |ip: &&IpAddr| match ip {
        IpAddr::V4(ip) => !ip.is_link_local(),
        IpAddr::V6(ip) => !ip.is_unicast_link_local(),
    };
    let usable = || addresses.iter().filter(is_usable);
    [usable().find(|ip| ip.is_ipv4()), usable().find(|ip| ip.is_ipv6())].into_iter().flatten().copied().collect()
}

fn all_links() -> Result<Vec<LinkMessage>, PathError> {
    let failed = |os| PathError::Netlink { step: "interfaces", os };
    let mut questions = Questions::open().map_err(|error| failed(error.raw_os_error()))?;
    let links = questions.dump(&Message::GetLink(LinkQuestion::All), Vec::new, |links, message| {
        if let Message::NewLink(link) = message {
            links.push(link);
        }
    });
    links.map_err(|failure| match failure {
        Failure::Os(code) => failed(Some(code)),
        Failure::Malformed => failed(None),
    })
}

fn name_of(link: &LinkMessage) -> Option<String> {
    link.name().map(str::to_owned)
}

/// Index of the interface below it, or of the other end of a veth device.
fn lower_of(link: &LinkMessage) -> Option<u32> {
    link.number(IFLA_LINK)
}

fn offloads(name: &str) -> Offloads {
    let Ok(ethtool) = Ethtool::open() else { return Offloads::default() };
    let ask = |question| ethtool.ask(name, question).ok();
    Offloads {
        tx_checksum: ask(Question::TxChecksum).map(|value| value != 0),
        gro: ask(Question::Gro).map(|value| value != 0),
        lro: ask(Question::Flags).map(|flags| flags & FLAG_LRO != 0),
    }
}

fn attached(link: &LinkMessage) -> Option<AttachedProgram> {
    let (id, mode) = program_of(link)?;
    let found = loaded_programs().map_while(Result::ok).find(|program| program.id() == id);
    let name = found.and_then(|program| program.name_as_str().map(str::to_owned));
    Some(AttachedProgram { id, name, mode, holders: holders(id) })
}

/// The number of the program on an interface, and how it is attached.
fn program_of(link: &LinkMessage) -> Option<(u32, &'static str)> {
    let facts = link.attribute(IFLA_XDP)?;
    // `XDP_ATTACHED_..` of `linux/if_link.h`; 0 is none.
    let mode = match attribute(facts, IFLA_XDP_ATTACHED)?.first()? {
        1 => "native",
        2 => "generic",
        3 => "offloaded",
        4 => "several",
        _ => return None,
    };
    let id = IFLA_XDP_PROG_IDS.into_iter().find_map(|kind| attribute(facts, kind).and_then(word))?;
    Some((id, mode))
}

/// Parts of `IFLA_XDP`: how a program is attached, and its number in each mode.
const IFLA_XDP_ATTACHED: u16 = 2;
const IFLA_XDP_PROG_IDS: [u16; 4] = [4, 5, 6, 7];

/// Finds the processes that have a descriptor of a program or of its link.
fn holders(id: u32) -> Vec<(String, u32)> {
    let line = format!("prog_id:\t{id}");
    let holds = |process: u32| {
        let files = fs::read_dir(format!("/proc/{process}/fdinfo")).into_iter().flatten().flatten();
        let mut texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
        texts.any(|text| text.lines().any(|of| of == line))
    };
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = folders.filter_map(|folder| folder.file_name().to_str()?.parse().ok());
    let own = std::process::id();
    let found = numbers.filter(|process| *process != own && holds(*process));
    found
        .map(|process| {
            let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
            (name.trim_end().to_owned(), process)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_examined_but_not_listed() {
        assert!(!interfaces().unwrap().contains(&"lo".to_owned()));
        let survey = survey("lo").unwrap();
        assert_eq!((survey.device.driver.as_deref(), survey.other_end, survey.program), (Some("loopback"), None, None));
        assert!(survey.offloads.gro.is_some());
    }

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        let error = survey("tt-none").unwrap_err().to_string();
        assert!(error.contains("no interface tt-none"), "{error}");
        assert_eq!(offloads("a-name-longer-than-the-kernel-takes"), Offloads::default());
    }

    #[test]
    fn a_source_is_not_link_local() {
        let ips = ["169.254.0.1", "fe80::1", "2001:db8::1", "192.0.2.1", "192.0.2.2"].map(|ip| ip.parse().unwrap());
        assert_eq!(sources(&ips), [ips[3], ips[2]]);
        assert_eq!(sources(&ips[..2]), [] as [IpAddr; 0]);
    }
}
