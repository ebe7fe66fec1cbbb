//! From one worker to another: a ring for each pair of workers that has had something for each other.
//!
//! A parcel is a line that says what it is, then its bytes in lines. A ring takes a parcel whole or not at all.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::mpsc::{Receiver, SyncSender};

use tt_net::{Datagram, Inbox, Waker};
use tt_sync::spsc::{Consumer, Producer, ring};
use tt_turn::{RelayId, WorkerId};

use crate::turn::relays::relay_key;

/// A ring's slot is a cache line with eight bytes of its own.
const LINE_LEN: usize = 56;
/// Room for three of the longest datagrams, or for a hundred and seventy of 1,200 bytes.
const LINES: usize = 4_096;

type Line = [u8; LINE_LEN];

/// What changes hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parcel<'a> {
    pub(super) to: Addressee,
    /// The client, or the relayed address that the payload comes from.
    pub(super) from: SocketAddr,
    pub(super) traffic_class: u8,
    pub(super) hop_limit: u8,
    pub(super) bytes: &'a [u8],
}

/// Whom it is for at the other worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addressee {
    /// The flow between the client and this address of the server.
    Flow(SocketAddr),
    /// The allocation on this relay.
    Relay(RelayId),
}

/// The way into another worker, for any thread.
#[derive(Clone, Debug)]
pub(in crate::turn) struct Neighbour {
    /// Where the reading end of a new ring goes.
    pub(in crate::turn) mail: SyncSender<Lane>,
    pub(in crate::turn) waker: Waker,
}

/// A worker's ways to all workers.
#[derive(Debug)]
pub(in crate::turn) struct Ways {
    ways: Vec<Way>,
}

#[derive(Debug)]
struct Way {
    neighbour: Neighbour,
    /// Made when it is first needed: of all pairs few meet, if the kernel spreads clients well.
    ring: Option<Producer<Line>>,
    is_to_wake: bool,
}

impl Ways {
    /// Ways to `neighbours`, by worker.
    pub(in crate::turn) fn new(neighbours: Vec<Neighbour>) -> Self {
        let ways = neighbours.into_iter().map(|neighbour| Way { neighbour, ring: None, is_to_wake: false });
        Self { ways: ways.collect() }
    }

    /// Gives `parcel` to `worker`; `false` where that one is too far behind, or gone.
    pub(super) fn push(&mut self, worker: WorkerId, parcel: &Parcel<'_>) -> bool {
        self.ways.get_mut(usize::from(worker.0)).is_some_and(|way| way.push(parcel).is_some())
    }

    /// Wakes everybody who was given something since the last call.
    pub(super) fn wake(&mut self) {
        for way in self.ways.iter_mut().filter(|way| way.is_to_wake) {
            way.neighbour.waker.wake();
            way.is_to_wake = false;
        }
    }
}

impl Way {
    fn push(&mut self, parcel: &Parcel<'_>) -> Option<()> {
        let ring = match &mut self.ring {
            Some(ring) => ring,
            None => {
                let (producer, consumer) = ring(LINES);
                self.neighbour.mail.try_send(Lane::new(consumer)).ok()?;
                self.ring.insert(producer)
            }
        };
        let lines = 1 + parcel.bytes.len().div_ceil(LINE_LEN);
        if ring.capacity() - ring.occupancy() < lines {
            return None;
        }
        ring.push(first_line(parcel)).ok()?;
        for piece in parcel.bytes.chunks(LINE_LEN) {
            let mut line = [0; LINE_LEN];
            line[..piece.len()].copy_from_slice(piece);
            ring.push(line).ok()?;
        }
        self.is_to_wake = true;
        Some(())
    }
}

/// What other workers give this one.
#[derive(Debug)]
pub(in crate::turn) struct Arrivals {
    mail: Receiver<Lane>,
    lanes: Vec<Lane>,
}

/// The reading end of a ring, and the parcel of which not all lines have come.
#[derive(Debug)]
pub(in crate::turn) struct Lane {
    ring: Consumer<Line>,
    first: Option<Line>,
    bytes: Vec<u8>,
}

/// What one call of [`Arrivals::take`] brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// Parcels that came out of rings.
    pub(super) parcels: u64,
    /// Those of them for an address that is not listened on.
    pub(super) lost: u64,
    /// More may be there.
    pub(super) is_left: bool,
}

impl Arrivals {
    pub(in crate::turn) fn new(mail: Receiver<Lane>) -> Self {
        Self { mail, lanes: Vec::new() }
    }

    /// Puts at most `most` parcels into `inbox`, under the key of a relay or of the listener that `listener` finds.
    pub(super) fn take(
        &mut self,
        inbox: &mut Inbox,
        most: usize,
        listener: impl Fn(SocketAddr) -> Option<u64>,
    ) -> Taken {
        self.lanes.extend(self.mail.try_iter());
        let mut taken = Taken::default();
        for lane in &mut self.lanes {
            while let Some(parcel) = lane.next() {
                let (key, to) = match parcel.to {
                    Addressee::Flow(to) => (listener(to), to),
                    Addressee::Relay(id) => (Some(relay_key(id)), parcel.from),
                };
                let Parcel { from, traffic_class, hop_limit, bytes, .. } = parcel;
                let inserted = key.is_some_and(|key| {
                    inbox.insert(Datagram { key, from, to, bytes, truncated: false, traffic_class, hop_limit })
                });
                taken.parcels += 1;
                taken.lost += u64::from(!inserted);
                if taken.parcels >= most as u64 || inbox.room() == 0 {
                    taken.is_left = true;
                    return taken;
                }
            }
        }
        taken
    }
}

impl Lane {
    fn new(ring: Consumer<Line>) -> Self {
        Self { ring, first: None, bytes: Vec::new() }
    }

    /// The next parcel, once all of its lines have come.
    fn next(&mut self) -> Option<Parcel<'_>> {
        if self.first.is_none() {
            self.first = Some(self.ring.pop()?);
            self.bytes.clear();
        }
        let first = self.first?;
        let len = usize::from(u16::from_ne_bytes([first[0], first[1]]));
        while self.bytes.len() < len {
            let line = self.ring.pop()?;
            let left = (len - self.bytes.len()).min(LINE_LEN);
            self.bytes.extend_from_slice(&line[..left]);
        }
        self.first = None;
        Some(parcel(&first, &self.bytes))
    }
}

/// Length, traffic class, hop limit, a letter for the addressee; then the sender's address and the addressee's.
fn first_line(parcel: &Parcel<'_>) -> Line {
    let mut line = [0; LINE_LEN];
    line[..2].copy_from_slice(&(parcel.bytes.len() as u16).to_ne_bytes());
    (line[2], line[3]) = (parcel.traffic_class, parcel.hop_limit);
    put_address(&mut line[8..32], parcel.from);
    match parcel.to {
        Addressee::Flow(server) => {
            line[4] = FLOW;
            put_address(&mut line[32..56], server);
        }
        Addressee::Relay(id) => line[32..36].copy_from_slice(&id.0.to_ne_bytes()),
    }
    line
}

fn parcel<'a>(first: &Line, bytes: &'a [u8]) -> Parcel<'a> {
    let to = match first[4] {
        FLOW => Addressee::Flow(address(&first[32..56])),
        _ => Addressee::Relay(RelayId(u32::from_ne_bytes([first[32], first[33], first[34], first[35]]))),
    };
    Parcel { to, from: address(&first[8..32]), traffic_class: first[2], hop_limit: first[3], bytes }
}

const FLOW: u8 = 1;

/// 16 bytes of address, 4 of scope, 2 of port, one that says whether it is one of IPv4.
fn put_address(place: &mut [u8], address: SocketAddr) {
    let (bits, scope_id) = match address {
        SocketAddr::V4(v4) => (v4.ip().to_ipv6_mapped(), 0),
        SocketAddr::V6(v6) => (*v6.ip(), v6.scope_id()),
    };
    place[..16].copy_from_slice(&bits.octets());
    place[16..20].copy_from_slice(&scope_id.to_ne_bytes());
    place[20..22].copy_from_slice(&address.port().to_ne_bytes());
    place[22] = u8::from(address.is_ipv4());
}

fn address(place: &[u8]) -> SocketAddr {
    let mut octets = [0; 16];
    octets.copy_from_slice(&place[..16]);
    let (ip, port) = (Ipv6Addr::from(octets), u16::from_ne_bytes([place[20], place[21]]));
    let scope_id = u32::from_ne_bytes([place[16], place[17], place[18], place[19]]);
    match (place[22], ip.to_ipv4_mapped()) {
        (1, Some(v4)) => SocketAddr::new(IpAddr::V4(v4), port),
        _ => SocketAddr::V6(SocketAddrV6::new(ip, port, 0, scope_id)),
    }
}

#[cfg(test)]
mod tests;
