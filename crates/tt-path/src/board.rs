//! The memory that the process and the program share.

use std::sync::atomic::{AtomicU64, Ordering};

use tt_model::Nanos;

use crate::layout::{INTERFACES, Iface, Meta, Meter, Tally};
use crate::sys::mapping::Mapping;

/// What the server does at a UDP port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PortKind {
    /// Nothing: the program looks no further.
    Other = 0,
    /// It listens for clients.
    Listener = 1,
    /// It is the port of relayed transport addresses.
    Relay = 2,
}

/// Whether the checksums that arrive at an interface are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The interface is not attached.
    Off,
    /// Fewer than 64 candidates were verified.
    Proving,
    /// The program relays.
    Proven,
    /// A checksum was partial while the interface was being proven: `ethtool -K IFACE tx off` at the sender helps.
    Unproven,
}

/// Proof of one interface, with its counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofState {
    /// The result so far.
    pub proof: Proof,
    /// Candidates whose full checksum was calculated.
    pub checked: u32,
    /// Packets with a partial checksum.
    pub bad: u32,
}

const STATE_PROVING: u32 = 1;
const STATE_PROVEN: u32 = 2;
const STATE_UNPROVEN: u32 = 3;

const IFACE_WORDS: usize = size_of::<Iface>() / size_of::<u32>();
const TALLY_WORDS: usize = size_of::<Tally>() / size_of::<u64>();
const METER_WORDS: usize = size_of::<Meter>() / size_of::<u64>();

/// Ports, switch, heartbeat, meters, tallies and proofs. Every method is a plain access to memory.
#[derive(Debug)]
pub struct Board {
    pub(crate) ports: Mapping,
    pub(crate) tallies: Mapping,
    pub(crate) meters: Mapping,
    pub(crate) ifaces: Mapping,
    pub(crate) meta: Mapping,
}

impl Board {
    /// Sets what the server does at `port`.
    pub fn set_port(&self, port: u16, kind: PortKind) {
        self.ports.bytes()[usize::from(port)].store(kind as u8, Ordering::Release);
    }

    /// Lets the program relay, or hands every packet up.
    pub fn switch(&self, is_on: bool) {
        self.meta(std::mem::offset_of!(Meta, on)).store(u64::from(is_on), Ordering::Release);
    }

    /// Sets the DSCP values (RFC 2474) that relayed packets may have, bit 0 for value 0; the others become 0, and ECN stays.
    /// At the start none is set.
    pub fn set_dscp(&self, allowed: u64) {
        self.meta(std::mem::offset_of!(Meta, dscp)).store(allowed, Ordering::Release);
    }

    /// Begins an epoch: the paths of every other epoch are dead at once.
    pub fn set_epoch(&self, epoch: u32) {
        self.meta(std::mem::offset_of!(Meta, epoch)).store(u64::from(epoch), Ordering::Release);
    }

    /// Says that the process lives at `now` (CLOCK_MONOTONIC). The program stops relaying 2 s after the last call.
    pub fn beat(&self, now: Nanos) {
        self.meta(std::mem::offset_of!(Meta, heartbeat)).store(now.0, Ordering::Release);
    }

    fn meta(&self, offset: usize) -> &AtomicU64 {
        &self.meta.double_words()[offset / size_of::<u64>()]
    }

    /// Returns the counts of a path slot, or `None` if there is no such slot. The program may count between two of them.
    #[must_use]
    pub fn tally(&self, path: u32) -> Option<Tally> {
        let words = self.tallies.double_words().get(path as usize * TALLY_WORDS..)?.get(..TALLY_WORDS)?;
        let [packets, bytes, dropped_meter] = [0, 1, 2].map(|index: usize| words[index].load(Ordering::Acquire));
        Some(Tally { packets, bytes, dropped_meter, pad: 0 })
    }

    /// Returns the time at which the bucket of `meter` is full again, in nanoseconds of CLOCK_MONOTONIC, or `None` if
    /// there is no such meter. User space takes from the same bucket.
    #[must_use]
    pub fn meter_full_at(&self, meter: u32) -> Option<&AtomicU64> {
        self.meters.double_words().get(meter as usize * METER_WORDS)
    }

    /// Sets rate and content of a bucket; returns `false` if there is no such meter.
    pub fn set_meter(&self, meter: u32, value: Meter) -> bool {
        let start = meter as usize * METER_WORDS;
        let Some([full_at, rate]) = self.meters.double_words().get(start..start + METER_WORDS) else { return false };
        rate.store(value.byte_ns_fp24, Ordering::Release);
        full_at.store(value.full_at, Ordering::Release);
        true
    }

    /// Returns the proof of the interface with this index.
    #[must_use]
    pub fn proof(&self, ifindex: u32) -> ProofState {
        let is_attached = self.iface(ifindex, std::mem::offset_of!(Iface, ifindex)) == ifindex;
        let proof = match self.iface(ifindex, std::mem::offset_of!(Iface, state)) {
            STATE_PROVING if is_attached => Proof::Proving,
            STATE_PROVEN if is_attached => Proof::Proven,
            STATE_UNPROVEN if is_attached => Proof::Unproven,
            _ => Proof::Off,
        };
        let checked = self.iface(ifindex, std::mem::offset_of!(Iface, checked));
        ProofState { proof, checked, bad: self.iface(ifindex, std::mem::offset_of!(Iface, bad)) }
    }

    /// Begins the proof of an attached interface again, as after `ethtool -K IFACE tx off` at the sender.
    pub fn prove_again(&self, ifindex: u32) {
        if self.iface(ifindex, std::mem::offset_of!(Iface, ifindex)) == ifindex {
            let words = self.iface_words(ifindex);
            words[std::mem::offset_of!(Iface, proven) / size_of::<u32>()].store(0, Ordering::Release);
            words[std::mem::offset_of!(Iface, state) / size_of::<u32>()].store(STATE_PROVING, Ordering::Release);
        }
    }

    /// Index of the interface that has the slot of `ifindex`; 0 if it is free.
    pub(crate) fn slot_holder(&self, ifindex: u32) -> u32 {
        self.iface(ifindex, std::mem::offset_of!(Iface, ifindex))
    }

    /// Fills the slot of an interface; the proof begins.
    pub(crate) fn set_iface(&self, ifindex: u32, mac: [u8; 6], redirects: bool) {
        let iface = Iface { ifindex, state: STATE_PROVING, mac, redirects: redirects.into(), ..Iface::default() };
        let words: [u32; IFACE_WORDS] = zerocopy::transmute!(iface);
        // The index comes last: without it the program does not look at the rest.
        for (word, value) in self.iface_words(ifindex).iter().zip(words).rev() {
            word.store(value, Ordering::Release);
        }
    }

    /// Empties the slot of an interface.
    pub(crate) fn clear_iface(&self, ifindex: u32) {
        self.iface_words(ifindex)[0].store(0, Ordering::Release);
    }

    fn iface(&self, ifindex: u32, offset: usize) -> u32 {
        self.iface_words(ifindex)[offset / size_of::<u32>()].load(Ordering::Acquire)
    }

    fn iface_words(&self, ifindex: u32) -> &[std::sync::atomic::AtomicU32] {
        let start = (ifindex % INTERFACES) as usize * IFACE_WORDS;
        &self.ifaces.words()[start..start + IFACE_WORDS]
    }
}
