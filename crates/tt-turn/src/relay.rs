//! Relay sockets: bound by the driver, chosen by the engine.

mod front;
mod reservation;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use sha2::{Digest, Sha256};

use tt_model::{IpFamily, Nanos};

use crate::slab::NO_INDEX;

pub(crate) use front::{Front, Fronts};
pub(crate) use reservation::Reservations;
pub use reservation::{Reservation, ReservationEnd};

/// The driver's number of a relay socket, below [`Capacity::relays`](crate::config::Capacity).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct RelayId(pub u32);

/// Addresses of a relay socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayAddress {
    /// The address that the socket is bound to.
    pub bound: SocketAddr,
    /// The address that peers and clients see: `bound`, or the external address of a NAT.
    pub external: SocketAddr,
}

/// The relay and the source of a packet from a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerPath {
    /// The relay socket that received it.
    pub relay: RelayId,
    /// Its source.
    pub peer: SocketAddr,
}

/// An ICMP error about a datagram that a relay socket sent, as the system reports it.
///
/// Linux reports it by `MSG_ERRQUEUE`, for UDP only, to the socket of the inner source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError {
    /// The relay socket that sent it.
    pub relay: RelayId,
    /// The destination in the inner headers; port 0 if it is unknown. Its family distinguishes ICMPv4 from ICMPv6.
    pub peer: SocketAddr,
    /// Type of the ICMP message.
    pub kind: u8,
    /// Code of the ICMP message.
    pub code: u8,
    /// MTU of the next hop in bytes; used if the type and code define one.
    pub mtu: u32,
}

/// Request to the driver, returned by [`Server::poll_relay`](crate::Server::poll_relay).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayDemand {
    /// The allocation on this relay has ended. Keep the socket idle for some seconds, drain it, then register it (or a
    /// socket on another port) with [`Server::add_relay`](crate::Server::add_relay), or close it and call
    /// [`Server::end_rest`](crate::Server::end_rest). Until then it counts as a port of its last user.
    Retire(RelayId),
}

/// Relays that an Allocate needs and the worker lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayNeed {
    /// Free ones, for [`Server::add_relay`](crate::Server::add_relay) or
    /// [`Server::add_relay_pair`](crate::Server::add_relay_pair).
    Free {
        /// Whether it needs them by [`IpFamily`].
        families: [bool; 2],
        /// The ports that it needs.
        port: PortNeed,
    },
    /// The one reserved under this token, for [`Server::add_reserved`](crate::Server::add_reserved).
    Reserved(u64),
}

/// Ports that an Allocate needs (RFC 8656 section 18.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortNeed {
    /// Any port.
    Any,
    /// An even port.
    Even,
    /// An even port and the next one.
    Pair,
}

/// Maximum number of addresses of relays that a server knows, external ones included.
pub const OWN_IPS_MAX: usize = 64;

/// Reason why a relay was not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayError {
    /// The number is not below [`Capacity::relays`](crate::config::Capacity).
    Number,
    /// The relay is registered already.
    Registered,
    /// The bound and the external address are of different families.
    Family,
    /// The server has the maximum number of different relay addresses.
    Addresses,
    /// The addresses are not an even port and the next port of one IP address.
    Pair,
}

impl fmt::Display for RelayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number => "the relay's number is not below the capacity",
            Self::Registered => "the relay is already registered",
            Self::Family => "the bound and the external address are of different families",
            Self::Addresses => "the server has too many different relay addresses",
            Self::Pair => "the addresses are not an even port and the next port of one address",
        })
    }
}

impl core::error::Error for RelayError {}

/// State of a relay socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Duty {
    /// Not registered.
    None,
    /// Its allocation has ended; the driver has not polled it yet.
    Retired,
    /// In the pool of its family, reserved, or added for the Allocate that claims it.
    Waiting,
    /// Serves an allocation.
    Serving,
}

#[derive(Clone, Copy, Debug)]
struct Relay {
    address: RelayAddress,
    duty: Duty,
    /// The user, by quota key, whose allocation it rests after; zero if none.
    payer: u64,
    /// The relay on the next port, if this is the even port of a pair.
    next_port: u32,
}

const NO_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
const UNREGISTERED: Relay = Relay {
    address: RelayAddress { bound: NO_ADDRESS, external: NO_ADDRESS },
    duty: Duty::None,
    payer: 0,
    next_port: NO_INDEX,
};

/// The relays of one worker.
#[derive(Debug)]
pub(crate) struct Relays {
    /// Grows up to the highest number in use, so that memory that is never used is not touched.
    relays: Vec<Relay>,
    pub(crate) fronts: Fronts,
    capacity: u32,
    /// Free relays by [`IpFamily`].
    pools: [Pool; 2],
    /// Families that ever had a relay: without one the error is 440, with an empty pool 508.
    has_v4: bool,
    has_v6: bool,
    /// Relays to be retired, each with the fence of paths that it waits for.
    retired: VecDeque<(u32, u64)>,
    draws: Draws,
}

impl Relays {
    pub(crate) fn new(capacity: u32, draws: Draws) -> Self {
        Self {
            relays: Vec::with_capacity(capacity as usize),
            fronts: Fronts::new(capacity),
            capacity,
            pools: [Pool::new(capacity), Pool::new(capacity)],
            has_v4: false,
            has_v6: false,
            retired: VecDeque::with_capacity(capacity as usize),
            draws,
        }
    }

    pub(crate) fn add(&mut self, id: RelayId, address: RelayAddress) -> Result<(), RelayError> {
        self.check(id, address)?;
        let family = self.register(id, address, NO_INDEX);
        self.pools[family as usize].singles.push(id.0);
        Ok(())
    }

    /// Adds two relays on adjacent ports.
    pub(crate) fn add_pair(
        &mut self,
        even: (RelayId, RelayAddress),
        odd: (RelayId, RelayAddress),
    ) -> Result<(), RelayError> {
        for (id, address) in [even, odd] {
            self.check(id, address)?;
        }
        let is_next = |even: SocketAddr, odd: SocketAddr| {
            even.ip() == odd.ip() && even.port().is_multiple_of(2) && odd.port() == even.port() + 1
        };
        let fits = is_next(even.1.bound, odd.1.bound) && is_next(even.1.external, odd.1.external);
        if !fits || even.0 == odd.0 {
            return Err(RelayError::Pair);
        }
        self.register(odd.0, odd.1, NO_INDEX);
        let family = self.register(even.0, even.1, odd.0.0);
        self.pools[family as usize].pairs.push(even.0.0);
        Ok(())
    }

    pub(crate) fn check(&self, id: RelayId, address: RelayAddress) -> Result<(), RelayError> {
        if id.0 >= self.capacity {
            return Err(RelayError::Number);
        }
        if address.bound.is_ipv4() != address.external.is_ipv4() {
            return Err(RelayError::Family);
        }
        if self.is_registered(id) { Err(RelayError::Registered) } else { Ok(()) }
    }

    fn register(&mut self, id: RelayId, address: RelayAddress, next_port: u32) -> IpFamily {
        let index = id.0 as usize;
        if self.relays.len() <= index {
            self.relays.resize(index + 1, UNREGISTERED);
        }
        self.relays[index] = Relay { address, duty: Duty::Waiting, payer: 0, next_port };
        let family = IpFamily::of(address.external.ip());
        self.serve(family);
        family
    }

    /// Registers a relay that is in no pool.
    pub(crate) fn register_reserved(&mut self, id: RelayId, address: RelayAddress) {
        self.register(id, address, NO_INDEX);
    }

    /// Makes the number of a relay that is in no pool free.
    pub(crate) fn unregister(&mut self, id: RelayId) {
        if let Some(relay) = self.relays.get_mut(id.0 as usize) {
            relay.duty = Duty::None;
        }
    }

    /// Returns whether a relay of the family was ever registered.
    pub(crate) fn serves(&self, family: IpFamily) -> bool {
        match family {
            IpFamily::V4 => self.has_v4,
            IpFamily::V6 => self.has_v6,
        }
    }

    /// Takes a random relay of `family` from the pool, with an even port if `port` requires one. Breaks up a pair if
    /// there is no single relay.
    pub(crate) fn draw(&mut self, family: IpFamily, port: PortChoice) -> Option<Drawn> {
        let singles = &mut self.pools[family as usize].singles;
        let start = (self.draws.next() % singles.len().max(1) as u64) as usize;
        let suits = |id: &u32| match port {
            PortChoice::Any => true,
            PortChoice::Even => self.relays[*id as usize].address.external.port().is_multiple_of(2),
        };
        let ahead = singles[start..].iter().position(suits).map(|found| start + found);
        let Some(at) = ahead.or_else(|| singles[..start].iter().position(suits)) else {
            let (even, odd) = self.draw_pair(family)?;
            let (drawn, other) = match port {
                PortChoice::Any => (odd, even),
                PortChoice::Even => (even, odd),
            };
            self.put_back(other);
            return Some(Drawn { parted: Some(other.relay), ..drawn });
        };
        let id = singles.swap_remove(at);
        Some(self.drawn(id))
    }

    /// Takes a random pair of `family` from the pool: the even port, and the next one.
    pub(crate) fn draw_pair(&mut self, family: IpFamily) -> Option<(Drawn, Drawn)> {
        let pairs = &mut self.pools[family as usize].pairs;
        let at = (self.draws.next() % pairs.len().max(1) as u64) as usize;
        let even = (at < pairs.len()).then(|| pairs.swap_remove(at))?;
        let odd = self.relays[even as usize].next_port;
        self.relays[even as usize].next_port = NO_INDEX;
        Some((self.drawn(even), self.drawn(odd)))
    }

    fn drawn(&self, id: u32) -> Drawn {
        Drawn { relay: RelayId(id), relayed: self.relays[id as usize].address.external, parted: None }
    }

    /// Returns an unpredictable token, never zero.
    pub(crate) fn draw_token(&mut self) -> u64 {
        self.draws.next().max(1)
    }

    /// Assigns a relay to an allocation until `expires`.
    pub(crate) fn assign(&mut self, id: RelayId, allocation: u32, expires: Nanos) {
        if let Some(relay) = self.relays.get_mut(id.0 as usize) {
            relay.duty = Duty::Serving;
            self.fronts.open(id, Front::new(allocation, IpFamily::of(relay.address.external.ip()), expires));
        }
    }

    /// Returns an unused relay to the pool. If a pair was broken up for it, the pair is restored: the other half is
    /// the last single.
    pub(crate) fn put_back(&mut self, drawn: Drawn) {
        let singles = &mut self.pools[IpFamily::of(drawn.relayed.ip()) as usize].singles;
        match drawn.parted.filter(|other| singles.last() == Some(&other.0)) {
            None => singles.push(drawn.relay.0),
            Some(other) => {
                singles.pop();
                if drawn.relayed.port().is_multiple_of(2) {
                    self.put_pair_back(drawn.relay, other);
                } else {
                    self.put_pair_back(other, drawn.relay);
                }
            }
        }
    }

    /// Returns an unused pair to the pool.
    pub(crate) fn put_pair_back(&mut self, even: RelayId, odd: RelayId) {
        let Some(relay) = self.relays.get_mut(even.0 as usize) else { return };
        relay.next_port = odd.0;
        let family = IpFamily::of(relay.address.external.ip());
        self.pools[family as usize].pairs.push(even.0);
    }

    /// Adds a family for which relays may be registered later.
    pub(crate) fn serve(&mut self, family: IpFamily) {
        match family {
            IpFamily::V4 => self.has_v4 = true,
            IpFamily::V6 => self.has_v6 = true,
        }
    }

    /// Returns whether a relay is in use, reserved or in the pool.
    pub(crate) fn is_registered(&self, id: RelayId) -> bool {
        self.relays.get(id.0 as usize).is_some_and(|relay| relay.duty != Duty::None)
    }

    /// Removes an unused relay from its pool; returns `false` if it is not in one.
    pub(crate) fn withdraw(&mut self, id: RelayId) -> bool {
        for pool in &mut self.pools {
            let pair =
                pool.pairs.iter().position(|even| *even == id.0 || self.relays[*even as usize].next_port == id.0);
            if let Some(even) = pair.map(|at| pool.pairs.swap_remove(at)) {
                let odd = core::mem::replace(&mut self.relays[even as usize].next_port, NO_INDEX);
                pool.singles.extend([even, odd]);
            }
            if let Some(at) = pool.singles.iter().position(|single| *single == id.0) {
                pool.singles.swap_remove(at);
                self.relays[id.0 as usize].duty = Duty::None;
                return true;
            }
        }
        false
    }

    /// Takes a relay out of service and queues it for the driver, behind a fence of paths. Until its rest ends `payer`
    /// pays for it.
    pub(crate) fn retire(&mut self, id: RelayId, payer: u64, fence: u64) {
        if let Some(relay) = self.relays.get_mut(id.0 as usize) {
            relay.duty = Duty::Retired;
            relay.payer = payer;
            self.retired.push_back((id.0, fence));
        }
        self.fronts.close(id);
    }

    /// Returns the user who paid for the rest of a relay, once.
    pub(crate) fn end_rest(&mut self, id: RelayId) -> Option<u64> {
        let relay = self.relays.get_mut(id.0 as usize)?;
        Some(core::mem::take(&mut relay.payer)).filter(|payer| *payer != 0)
    }

    /// Returns the number of relays that may be registered.
    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Returns a retired relay whose fence has been passed.
    pub(crate) fn take_retired(&mut self, passed: u64) -> Option<RelayId> {
        let (id, _) = self.retired.pop_front_if(|(_, fence)| *fence <= passed)?;
        if self.retired.is_empty() {
            // The next one uses the same memory again.
            self.retired.clear();
        }
        if let Some(relay) = self.relays.get_mut(id as usize) {
            relay.duty = Duty::None;
        }
        Some(RelayId(id))
    }

    /// Returns the addresses of a relay.
    pub(crate) fn address(&self, id: RelayId) -> Option<RelayAddress> {
        self.relays.get(id.0 as usize).map(|relay| relay.address)
    }

    /// Returns the allocation that a relay serves.
    pub(crate) fn serving(&self, id: RelayId) -> Option<u32> {
        self.fronts.get(id).and_then(Front::serving)
    }

    /// Returns the number of free relays of `family`, those of pairs included.
    pub(crate) fn pooled(&self, family: IpFamily) -> usize {
        let pool = &self.pools[family as usize];
        pool.singles.len() + 2 * pool.pairs.len()
    }

    /// Returns whether the pool has a relay of `family` on such a port.
    pub(crate) fn has(&self, family: IpFamily, port: PortNeed) -> bool {
        let pool = &self.pools[family as usize];
        let is_even = |id: &u32| self.relays[*id as usize].address.external.port().is_multiple_of(2);
        match port {
            PortNeed::Any => self.pooled(family) > 0,
            PortNeed::Even => !pool.pairs.is_empty() || pool.singles.iter().any(is_even),
            PortNeed::Pair => !pool.pairs.is_empty(),
        }
    }

    /// Returns the number of free pairs of `family`.
    pub(crate) fn paired(&self, family: IpFamily) -> usize {
        self.pools[family as usize].pairs.len()
    }
}

/// The free relays of one family.
#[derive(Debug)]
struct Pool {
    singles: Vec<u32>,
    /// The even port of each pair.
    pairs: Vec<u32>,
}

impl Pool {
    fn new(capacity: u32) -> Self {
        Self { singles: Vec::with_capacity(capacity as usize), pairs: Vec::with_capacity(capacity as usize / 2) }
    }
}

/// A relay taken from the pool, and its relayed address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    pub(crate) relay: RelayId,
    pub(crate) relayed: SocketAddr,
    /// The other half of the pair that was broken up for it.
    pub(crate) parted: Option<RelayId>,
}

/// Kind of relayed port that a client requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortChoice {
    Any,
    Even,
}

/// Unpredictable numbers: SHA-256 of a secret seed and a counter.
#[derive(Debug)]
pub(crate) struct Draws {
    seed: [u8; 32],
    count: u64,
}

impl Draws {
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        Self { seed, count: 0 }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.count = self.count.wrapping_add(1);
        let digest = Sha256::new().chain_update(self.seed).chain_update(self.count.to_le_bytes()).finalize();
        digest.first_chunk::<8>().map_or(0, |first| u64::from_le_bytes(*first))
    }
}

#[cfg(test)]
mod tests {
    use super::{Draws, PortChoice, RelayAddress, RelayId, Relays};
    use core::net::SocketAddr;

    use tt_model::{IpFamily, Nanos};

    /// The one cursor of the pools, at the ends of 32 and of 64 bits.
    #[test]
    fn case_a52_draws_go_on_at_the_end_of_their_count() {
        for count in [u64::from(u32::MAX) - 7, u64::MAX - 7] {
            let mut relays = Relays::new(8, Draws { seed: [3; 32], count });
            for id in 0..8 {
                let bound = SocketAddr::new([198, 41, 0, 9].into(), 50_000 + id as u16);
                relays.add(RelayId(id), RelayAddress { bound, external: bound }).expect("a relay");
            }
            for cycle in 0..64 {
                let port = if cycle % 2 == 0 { PortChoice::Any } else { PortChoice::Even };
                let drawn = relays.draw(IpFamily::V4, port).expect("a relay");
                relays.assign(drawn.relay, 0, Nanos::from_secs(1));
                assert_eq!((relays.serving(drawn.relay), relays.pooled(IpFamily::V4)), (Some(0), 7));
                relays.retire(drawn.relay, 0, 0);
                let id = relays.take_retired(0).expect("the same");
                relays.add(id, RelayAddress { bound: drawn.relayed, external: drawn.relayed }).expect("a relay");
                assert_ne!(relays.draw_token(), 0);
            }
        }
    }
}
