//! Says what the kernel path would do on this host, and what is missing for it. Changes nothing.

mod text;

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use anyhow::Context as _;
use rustix::thread::{CapabilitySet, capabilities};
use serde::Serialize;
use tt_os::addresses::interface_addresses;
use tt_path::drivers::NativeUse;
use tt_path::survey::{self, AttachedProgram, Offloads, OtherEnd, Survey};
use tt_path::{AddressPair, Capacity, Paths};
use turn_config::KernelMode;

use super::plan;

/// The first version of Linux that has every function of the program.
const LINUX_MIN: (u32, u32) = (5, 18);
/// Addresses that are far for every host (RFC 5737, RFC 3849).
const FAR: [IpAddr; 2] = [
    IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 1)),
    IpAddr::V6(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
];
/// The MTU above which some drivers reject a program.
const NATIVE_MTU_MAX: u32 = 3_498;
/// Name of the program of this server.
const OWN_PROGRAM: &str = "paths";

/// What the kernel path would do here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathReport {
    /// Version of the kernel.
    pub kernel: String,
    /// Whether it is Linux 5.18 or later.
    pub is_new_enough: bool,
    /// Whether the kernel describes its types (BTF), which the program does not need.
    pub has_btf: bool,
    /// Whether programs are compiled; `None` if the kernel does not say.
    pub has_jit: Option<bool>,
    /// Privileges that this process lacks.
    pub missing: Vec<&'static str>,
    /// Why the kernel does not take the program; `None` if it does.
    pub rejected: Option<String>,
    /// The interfaces.
    pub interfaces: Vec<InterfaceReport>,
}

/// What the kernel path would do on an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InterfaceReport {
    /// Its name.
    pub name: String,
    /// Its driver, or the kind of a virtual device.
    pub driver: Option<String>,
    /// When native mode is used with the driver: `auto`, `asked`, `never`.
    pub native_use: &'static str,
    /// Why.
    pub reason: &'static str,
    /// Largest IP packet, bytes.
    pub mtu: u32,
    /// Whether it is up and has a carrier.
    pub is_up: bool,
    /// Whether it leaves checksums to the device, and whether received packets are merged by kernel and by device.
    pub tx_checksum: Option<bool>,
    /// See `tx_checksum`.
    pub gro: Option<bool>,
    /// See `tx_checksum`.
    pub lro: Option<bool>,
    /// The XDP program that is on it.
    pub program: Option<ProgramReport>,
    /// VLAN interfaces above it.
    pub vlans: Vec<String>,
    /// What each value of `data_path` does: `native`, `generic`, or `sockets` with the reason.
    pub plans: Vec<Plan>,
    /// Where packets of its addresses leave.
    pub next_hops: Vec<NextHopReport>,
    /// Commands that would help.
    pub advice: Vec<String>,
}

/// An XDP program on an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProgramReport {
    /// The kernel's number of it.
    pub id: u32,
    /// Its name, if this process may ask.
    pub name: Option<String>,
    /// `native`, `generic`, `offloaded` or `several`.
    pub mode: &'static str,
    /// Processes that hold it.
    pub held_by: Vec<String>,
}

/// What a value of `data_path` does on an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// `auto`, `native` or `generic`.
    pub data_path: &'static str,
    /// `native`, `generic` or `sockets`.
    pub result: &'static str,
    /// Why the sockets relay.
    pub reason: Option<String>,
}

/// The answer to a question about a next hop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NextHopReport {
    /// Source.
    pub from: IpAddr,
    /// Destination.
    pub to: IpAddr,
    /// Ethernet address of the next hop.
    pub via: Option<String>,
    /// Largest IP packet, bytes.
    pub mtu: Option<u16>,
    /// Name of the reason for which the sockets relay.
    pub refusal: Option<&'static str>,
    /// The reason.
    pub reason: Option<&'static str>,
}

/// Examines the interface `name`, or all of them. Next hops are those to `peer`, or to a far address.
///
/// # Errors
/// There is no such interface, or the kernel does not answer.
pub fn examine(name: Option<&str>, peer: Option<IpAddr>) -> anyhow::Result<PathReport> {
    let names = match name {
        Some(name) => vec![name.to_owned()],
        None => survey::interfaces()?,
    };
    let surveys = names.iter().map(|name| survey::survey(name)).collect::<Result<Vec<_>, _>>()?;
    let addresses = interface_addresses().context("cannot read the addresses of interfaces")?;
    let rejected = Paths::load(Capacity { paths: 1, meters: 1 }).err().map(|error| error.to_string());
    let interfaces = surveys.into_iter().map(|survey| {
        let own = addresses.iter().filter(|(name, _)| *name == survey.device.interface.name).map(|(_, ip)| *ip);
        let sources = survey::sources(&own.collect::<Vec<_>>());
        InterfaceReport::of(survey, &sources, peer, rejected.as_deref())
    });
    let interfaces = interfaces.collect();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").context("cannot read the kernel's version")?;
    let kernel = kernel.trim_end().to_owned();
    let jit = fs::read_to_string("/proc/sys/net/core/bpf_jit_enable").ok();
    Ok(PathReport {
        is_new_enough: is_new_enough(&kernel),
        kernel,
        has_btf: Path::new("/sys/kernel/btf/vmlinux").exists(),
        has_jit: jit.map(|value| value.trim_end() != "0"),
        missing: missing(),
        rejected,
        interfaces,
    })
}

impl PathReport {
    /// Returns whether the kernel relays, or would relay, on one of the interfaces.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.interfaces.iter().any(InterfaceReport::is_usable)
    }
}

impl InterfaceReport {
    fn of(survey: Survey, sources: &[IpAddr], peer: Option<IpAddr>, rejected: Option<&str>) -> Self {
        let known = survey.device.native_use();
        let obstacle = obstacle(&survey, rejected);
        let advice = advice(&survey);
        let next_hops = next_hops(sources, peer, survey.device.interface.index);
        let Survey { device, is_up, offloads: Offloads { tx_checksum, gro, lro }, program, vlans, .. } = survey;
        let plan = |data_path, name| {
            let planned = obstacle.clone().map_or_else(|| plan::mode(data_path, known), Err);
            let (result, reason) = match planned {
                Ok(mode) => (super::mode_name(mode), None),
                Err(reason) => ("sockets", Some(reason)),
            };
            Plan { data_path: name, result, reason }
        };
        Self {
            name: device.interface.name.clone(),
            native_use: match known.native {
                NativeUse::Auto => "auto",
                NativeUse::Asked => "asked",
                NativeUse::Never => "never",
            },
            reason: known.reason,
            driver: device.driver,
            mtu: device.mtu,
            is_up,
            tx_checksum,
            gro,
            lro,
            program: program.map(ProgramReport::of),
            vlans,
            plans: vec![
                plan(KernelMode::Auto, "auto"),
                plan(KernelMode::Native, "native"),
                plan(KernelMode::Generic, "generic"),
            ],
            next_hops,
            advice,
        }
    }

    fn is_usable(&self) -> bool {
        let is_own =
            |program: &ProgramReport| program.name.as_deref() == Some(OWN_PROGRAM) && !program.held_by.is_empty();
        self.program.as_ref().is_some_and(is_own) || self.plans.iter().any(|plan| plan.result == "native")
    }
}

impl ProgramReport {
    fn of(program: AttachedProgram) -> Self {
        let AttachedProgram { id, name, mode, holders } = program;
        let held_by = holders.into_iter().map(|(name, process)| format!("{name} ({process})")).collect();
        Self { id, name, mode, held_by }
    }
}

/// Returns what keeps the program off an interface, whatever its driver.
fn obstacle(survey: &Survey, rejected: Option<&str>) -> Option<String> {
    if let Some(rejected) = rejected {
        return Some(rejected.to_owned());
    }
    if survey.program.is_some() {
        return Some("a program is on it already".to_owned());
    }
    (survey.device.interface.mac == [0; 6]).then(|| "it has no Ethernet address".to_owned())
}

/// Returns the commands that would help.
fn advice(survey: &Survey) -> Vec<String> {
    let Survey { device, is_up, offloads, program, vlans, other_end } = survey;
    let name = &device.interface.name;
    let mut advice = Vec::new();
    if !is_up {
        advice.push(format!("ip link set dev {name} up: it is down, or has no carrier"));
    }
    if let Some(program) = program
        && program.holders.is_empty()
    {
        advice.push(format!("ip link set dev {name} xdp off: no process that is visible holds the program"));
    }
    if offloads.lro == Some(true) {
        advice.push(format!("ethtool -K {name} lro off: drivers reject XDP with LRO"));
    }
    if device.mtu > NATIVE_MTU_MAX {
        advice.push(format!("ip link set dev {name} mtu 1500: some drivers reject XDP above {NATIVE_MTU_MAX}"));
    }
    if !vlans.is_empty() {
        advice.push(format!(
            "leave {name} to the sockets: it carries VLANs, whose tags a device may hide from the program"
        ));
    }
    match other_end {
        Some(OtherEnd { here: Some((other, of)), .. }) => {
            let wanted = [("gro on", of.gro == Some(false)), ("tx off", of.tx_checksum == Some(true))];
            let wanted: Vec<&str> =
                wanted.into_iter().filter(|(_, is_wrong)| *is_wrong).map(|(text, _)| text).collect();
            if !wanted.is_empty() {
                advice.push(format!("ethtool -K {other} {}: the other end of {name}", wanted.join(" ")));
            }
        }
        Some(OtherEnd { index, here: None }) => advice.push(format!(
            "ethtool -K IFACE gro on tx off, in the other namespace, for the other end of {name} (index {index})"
        )),
        None => {}
    }
    advice
}

fn next_hops(sources: &[IpAddr], peer: Option<IpAddr>, ifindex: u32) -> Vec<NextHopReport> {
    let to = |from: &IpAddr| match peer {
        Some(peer) => Some(peer).filter(|peer| peer.is_ipv4() == from.is_ipv4()),
        None => FAR.into_iter().find(|far| far.is_ipv4() == from.is_ipv4()),
    };
    let pairs = sources.iter().filter_map(|from| Some((*from, to(from)?)));
    let answers = pairs.map(|(from, to)| {
        let answer = survey::next_hop(AddressPair { source: from, destination: to }, ifindex);
        let via = answer.ok().map(|hop| hop.to.map(|byte| format!("{byte:02x}")).join(":"));
        let refusal = answer.err();
        NextHopReport {
            from,
            to,
            via,
            mtu: answer.ok().map(|hop| hop.mtu),
            refusal: refusal.map(|refusal| refusal.name()),
            reason: refusal.map(|refusal| refusal.reason()),
        }
    });
    answers.collect()
}

/// Returns the privileges that this thread lacks.
fn missing() -> Vec<&'static str> {
    let held = capabilities(None).map_or_else(|_| CapabilitySet::empty(), |sets| sets.effective);
    // CAP_SYS_ADMIN includes CAP_BPF.
    let has_bpf = held.intersects(CapabilitySet::BPF | CapabilitySet::SYS_ADMIN);
    let needed = [("CAP_BPF", has_bpf), ("CAP_NET_ADMIN", held.contains(CapabilitySet::NET_ADMIN))];
    needed.into_iter().filter(|(_, is_held)| !is_held).map(|(name, _)| name).collect()
}

fn is_new_enough(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= LINUX_MIN
}

#[cfg(test)]
mod tests;
