//! Datagrams and payloads from one worker to another, through one ring per pair of workers.
//!
//! A hand-off is a header slot and as many slots as its bytes need. A ring takes all of them or none.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::mpsc::{Receiver, SyncSender};

use tt_net::{Datagram, Inbox, Waker};
use tt_sync::spsc::{Consumer, Producer, ring};
use tt_turn::WorkerId;
use tt_turn::relay::RelayId;

use crate::poll_key::relay_key;

/// Payload bytes of a ring slot: a cache line less the ring's own eight bytes.
const SLOT_LEN: usize = 56;
/// Slots of a ring: three of the longest datagrams, or 170 of 1,200 bytes.
const SLOTS: usize = 4_096;

type Slot = [u8; SLOT_LEN];

/// A datagram or payload for another worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HandOff<'a> {
    pub(crate) to: Target,
    /// The client, or the relayed address that the payload comes from.
    pub(crate) from: SocketAddr,
    pub(crate) traffic_class: u8,
    pub(crate) hop_limit: u8,
    pub(crate) bytes: &'a [u8],
}

/// The destination within the other worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The flow between the client and this address of the server.
    Flow(SocketAddr),
    /// The allocation on this relay.
    Relay(RelayId),
}

/// Handle for sending datagrams to another worker.
#[derive(Clone, Debug)]
pub(crate) struct WorkerEndpoint {
    /// Takes the consumer of a new ring.
    pub(crate) new_rings: SyncSender<InboundRing>,
    pub(crate) waker: Waker,
}

/// The links from one worker to all workers, itself included.
#[derive(Debug)]
pub(crate) struct WorkerLinks {
    links: Vec<WorkerLink>,
}

#[derive(Debug)]
struct WorkerLink {
    endpoint: WorkerEndpoint,
    /// Created on first use: few pairs exchange datagrams.
    ring: Option<Producer<Slot>>,
    needs_wake: bool,
}

impl WorkerLinks {
    /// Creates links to `endpoints`, in the order of the workers.
    pub(crate) fn new(endpoints: Vec<WorkerEndpoint>) -> Self {
        let links = endpoints.into_iter().map(|endpoint| WorkerLink { endpoint, ring: None, needs_wake: false });
        Self { links: links.collect() }
    }

    /// Adds the link to a new worker, or to one in the place of a worker that has ended.
    pub(crate) fn replace(&mut self, worker: WorkerId, endpoint: WorkerEndpoint) {
        let link = WorkerLink { endpoint, ring: None, needs_wake: false };
        match self.links.get_mut(usize::from(worker.0)) {
            Some(before) => *before = link,
            None => self.links.push(link),
        }
    }

    /// Sends `hand_off` to `worker`. Returns false if the ring is full or the worker has ended.
    pub(crate) fn push(&mut self, worker: WorkerId, hand_off: &HandOff<'_>) -> bool {
        self.links.get_mut(usize::from(worker.0)).is_some_and(|link| link.push(hand_off).is_some())
    }

    /// Wakes every worker that was sent something since the last call.
    pub(crate) fn wake(&mut self) {
        for link in self.links.iter_mut().filter(|link| link.needs_wake) {
            link.endpoint.waker.wake();
            link.needs_wake = false;
        }
    }
}

impl WorkerLink {
    fn push(&mut self, hand_off: &HandOff<'_>) -> Option<()> {
        let ring = match &mut self.ring {
            Some(ring) => ring,
            None => {
                let (producer, consumer) = ring(SLOTS);
                self.endpoint.new_rings.try_send(InboundRing::new(consumer)).ok()?;
                self.ring.insert(producer)
            }
        };
        if ring.is_abandoned() {
            return None;
        }
        let slots = 1 + hand_off.bytes.len().div_ceil(SLOT_LEN);
        if ring.capacity() - ring.occupancy() < slots {
            return None;
        }
        ring.push(header_slot(hand_off)).ok()?;
        for piece in hand_off.bytes.chunks(SLOT_LEN) {
            let mut slot = [0; SLOT_LEN];
            slot[..piece.len()].copy_from_slice(piece);
            ring.push(slot).ok()?;
        }
        self.needs_wake = true;
        Some(())
    }
}

/// The rings from other workers.
#[derive(Debug)]
pub(crate) struct InboundRings {
    new_rings: Receiver<InboundRing>,
    rings: Vec<InboundRing>,
}

/// The consumer of a ring, and a hand-off whose slots have not all arrived.
#[derive(Debug)]
pub(crate) struct InboundRing {
    ring: Consumer<Slot>,
    header: Option<Slot>,
    bytes: Vec<u8>,
}

/// Result of one call of [`InboundRings::take`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Hand-offs popped from the rings.
    pub(crate) hand_offs: u64,
    /// Those of them for an address without a listener.
    pub(crate) lost: u64,
    /// The rings may hold more.
    pub(crate) has_more: bool,
}

impl InboundRings {
    pub(crate) fn new(new_rings: Receiver<InboundRing>) -> Self {
        Self { new_rings, rings: Vec::new() }
    }

    /// Returns whether all hand-offs of workers that have sent some were taken.
    pub(crate) fn is_empty(&mut self) -> bool {
        self.rings.extend(self.new_rings.try_iter());
        self.rings.iter().all(|ring| ring.header.is_none() && ring.ring.peek().is_none())
    }

    /// Moves up to `max` hand-offs into `inbox`, under the key of a relay or of the listener that `listener` finds.
    pub(crate) fn take(
        &mut self,
        inbox: &mut Inbox,
        max: usize,
        listener: impl Fn(SocketAddr) -> Option<u64>,
    ) -> Taken {
        self.rings.extend(self.new_rings.try_iter());
        let mut taken = Taken::default();
        for ring in &mut self.rings {
            while let Some(hand_off) = ring.next() {
                let (key, to) = match hand_off.to {
                    Target::Flow(to) => (listener(to), to),
                    Target::Relay(id) => (Some(relay_key(id)), hand_off.from),
                };
                let HandOff { from, traffic_class, hop_limit, bytes, .. } = hand_off;
                let inserted = key.is_some_and(|key| {
                    inbox.insert(Datagram { key, from, to, bytes, truncated: false, traffic_class, hop_limit })
                });
                taken.hand_offs += 1;
                taken.lost += u64::from(!inserted);
                if taken.hand_offs >= max as u64 || inbox.room() == 0 {
                    taken.has_more = true;
                    return taken;
                }
            }
        }
        taken
    }
}

impl InboundRing {
    fn new(ring: Consumer<Slot>) -> Self {
        Self { ring, header: None, bytes: Vec::new() }
    }

    /// Returns the next hand-off once all of its slots have arrived.
    fn next(&mut self) -> Option<HandOff<'_>> {
        if self.header.is_none() {
            self.header = Some(self.ring.pop()?);
            self.bytes.clear();
        }
        let header = self.header?;
        let len = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        while self.bytes.len() < len {
            let slot = self.ring.pop()?;
            let left = (len - self.bytes.len()).min(SLOT_LEN);
            self.bytes.extend_from_slice(&slot[..left]);
        }
        self.header = None;
        Some(read_header(&header, &self.bytes))
    }
}

/// Layout: length, traffic class, hop limit, kind of the target; from byte 8 the sender's address, from 32 the target.
fn header_slot(hand_off: &HandOff<'_>) -> Slot {
    let mut slot = [0; SLOT_LEN];
    slot[..2].copy_from_slice(&(hand_off.bytes.len() as u16).to_ne_bytes());
    (slot[2], slot[3]) = (hand_off.traffic_class, hand_off.hop_limit);
    put_address(&mut slot[8..32], hand_off.from);
    match hand_off.to {
        Target::Flow(server) => {
            slot[4] = FLOW;
            put_address(&mut slot[32..56], server);
        }
        Target::Relay(id) => slot[32..36].copy_from_slice(&id.0.to_ne_bytes()),
    }
    slot
}

fn read_header<'a>(header: &Slot, bytes: &'a [u8]) -> HandOff<'a> {
    let to = match header[4] {
        FLOW => Target::Flow(address(&header[32..56])),
        _ => Target::Relay(RelayId(u32::from_ne_bytes([header[32], header[33], header[34], header[35]]))),
    };
    HandOff { to, from: address(&header[8..32]), traffic_class: header[2], hop_limit: header[3], bytes }
}

const FLOW: u8 = 1;

/// Layout: 16 bytes of address, 4 of scope, 2 of port, 1 if it is an IPv4 address.
fn put_address(field: &mut [u8], address: SocketAddr) {
    let (bits, scope_id) = match address {
        SocketAddr::V4(v4) => (v4.ip().to_ipv6_mapped(), 0),
        SocketAddr::V6(v6) => (*v6.ip(), v6.scope_id()),
    };
    field[..16].copy_from_slice(&bits.octets());
    field[16..20].copy_from_slice(&scope_id.to_ne_bytes());
    field[20..22].copy_from_slice(&address.port().to_ne_bytes());
    field[22] = u8::from(address.is_ipv4());
}

fn address(field: &[u8]) -> SocketAddr {
    let mut octets = [0; 16];
    octets.copy_from_slice(&field[..16]);
    let (ip, port) = (Ipv6Addr::from(octets), u16::from_ne_bytes([field[20], field[21]]));
    let scope_id = u32::from_ne_bytes([field[16], field[17], field[18], field[19]]);
    match (field[22], ip.to_ipv4_mapped()) {
        (1, Some(v4)) => SocketAddr::new(IpAddr::V4(v4), port),
        _ => SocketAddr::V6(SocketAddrV6::new(ip, port, 0, scope_id)),
    }
}

#[cfg(test)]
mod tests;
