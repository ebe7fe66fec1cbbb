//! The structs that the XDP program and this crate share, as `bpf/paths.bpf.c` declares them.
//!
//! [`crate::btf::check`] compares sizes, offsets and reasons with the object's BTF before anything is loaded. Fields of
//! keys, and addresses, ports and channel of a flow, are in network byte order.

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Slots of interfaces; an interface's slot is its index modulo this number.
pub(crate) const INTERFACES: u32 = 64;
/// [`Flow::meter`] of a flow without a rate.
pub(crate) const NO_METER: u32 = u32::MAX;
/// [`Flow::kind`]: remove the ChannelData header.
pub(crate) const KIND_STRIP: u8 = 1;
/// [`Flow::kind`]: add a ChannelData header.
pub(crate) const KIND_ADD: u8 = 2;

/// Key of a flow over IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct Key4 {
    pub(crate) from: [u8; 4],
    pub(crate) to: [u8; 4],
    pub(crate) fport: [u8; 2],
    pub(crate) tport: [u8; 2],
    /// Channel number; 0 for a packet from a peer.
    pub(crate) chan: [u8; 2],
    /// Slot of the interface, in the CPU's byte order.
    pub(crate) iface: u16,
}

/// Key of a flow over IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct Key6 {
    pub(crate) from: [u8; 16],
    pub(crate) to: [u8; 16],
    pub(crate) fport: [u8; 2],
    pub(crate) tport: [u8; 2],
    pub(crate) chan: [u8; 2],
    pub(crate) iface: u16,
}

/// What happens to the packets of a key; one cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct Flow {
    /// An IPv4 address is in the last four bytes.
    pub(crate) src: [u8; 16],
    pub(crate) dst: [u8; 16],
    pub(crate) sport: [u8; 2],
    pub(crate) dport: [u8; 2],
    pub(crate) chan: [u8; 2],
    /// Ones' complement sum of the new addresses, ports and channel without the old ones, of words in memory order.
    pub(crate) csum: u16,
    pub(crate) path: u32,
    pub(crate) meter: u32,
    /// CLOCK_MONOTONIC in nanoseconds.
    pub(crate) until: u64,
    pub(crate) epoch: u32,
    pub(crate) hop: u16,
    pub(crate) kind: u8,
    /// 4 or 6.
    pub(crate) family: u8,
}

/// Counts of one path, which only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Tally {
    /// Packets relayed.
    pub packets: u64,
    /// Bytes of application data relayed.
    pub bytes: u64,
    /// Packets dropped because the meter was empty.
    pub dropped_meter: u64,
    pub(crate) pad: u64,
}

/// A token bucket of bytes on the wire (IP header included), one second deep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Meter {
    /// CLOCK_MONOTONIC in nanoseconds at which the bucket is full again.
    pub full_at: u64,
    /// Nanoseconds per byte with 24 fractional bits; 0 is unlimited.
    pub byte_ns_fp24: u64,
}

/// Ethernet addresses and interface of packets that leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct Hop {
    pub(crate) dst: [u8; 6],
    pub(crate) src: [u8; 6],
    pub(crate) ifindex: u32,
    pub(crate) mtu: u16,
    pub(crate) valid: u8,
    pub(crate) pad: [u8; 5],
}

/// An attached interface and its proof.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct Iface {
    pub(crate) ifindex: u32,
    pub(crate) state: u32,
    pub(crate) mac: [u8; 6],
    /// 1 if packets that leave by it again are redirected to it; 0: sent back (`XDP_TX`).
    pub(crate) redirects: u16,
    pub(crate) seen: u32,
    pub(crate) proven: u32,
    pub(crate) checked: u32,
    pub(crate) bad: u32,
}

/// Switch, epoch and heartbeat of the process; what another process wants copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct Meta {
    pub(crate) on: u64,
    pub(crate) epoch: u64,
    pub(crate) heartbeat: u64,
    /// A bit for each DSCP value that may leave; the others become 0.
    pub(crate) dscp: u64,
    pub(crate) unused: u32,
    /// Index of the interface where packets arrive that are copied; 0: any.
    pub(crate) dump_ifindex: u32,
    /// Until when packets are copied: see `dump.rs`.
    pub(crate) dump_until: u64,
    pub(crate) dump_every: u64,
}

/// What a CPU does for dumps: its counts, and what it gives away, from `at` on.
#[derive(FromBytes, Immutable)]
#[repr(C)]
pub(crate) struct Dump {
    pub(crate) left: u64,
    /// Packets without room in the ring.
    pub(crate) lost: u64,
    pub(crate) is_wanted: u64,
    /// CLOCK_MONOTONIC in nanoseconds.
    pub(crate) at: u64,
    /// Number of the packet on this CPU.
    pub(crate) number: u64,
    pub(crate) cpu: u32,
    pub(crate) ifindex: u32,
    pub(crate) len: u32,
    /// 0: as received. 1: as sent.
    pub(crate) form: u32,
    pub(crate) frame: [u8; 2_048],
}

/// A struct as the program must declare it: C name, size, and name and offset of each field, in bytes.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) name: &'static str,
    pub(crate) size: usize,
    pub(crate) fields: &'static [(&'static str, usize)],
}

macro_rules! layout {
    ($name:literal, $rust:ty, $($field:ident),+) => {
        Layout {
            name: $name,
            size: size_of::<$rust>(),
            fields: &[$((stringify!($field), std::mem::offset_of!($rust, $field))),+],
        }
    };
}
pub(crate) use layout;

/// Every shared struct.
pub(crate) const LAYOUTS: [Layout; 9] = [
    layout!("key4", Key4, from, to, fport, tport, chan, iface),
    layout!("key6", Key6, from, to, fport, tport, chan, iface),
    layout!("flow", Flow, src, dst, sport, dport, chan, csum, path, meter, until, epoch, hop, kind, family),
    layout!("tally", Tally, packets, bytes, dropped_meter, pad),
    layout!("meter", Meter, full_at, byte_ns_fp24),
    layout!("hop", Hop, dst, src, ifindex, mtu, valid, pad),
    layout!("iface", Iface, ifindex, state, mac, redirects, seen, proven, checked, bad),
    layout!("meta", Meta, on, epoch, heartbeat, dscp, unused, dump_ifindex, dump_until, dump_every),
    layout!("dump", Dump, left, lost, is_wanted, at, number, cpu, ifindex, len, form, frame),
];
