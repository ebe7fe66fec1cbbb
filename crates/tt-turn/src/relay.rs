//! Relay sockets: bound by the driver, drawn by the engine.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use sha2::{Digest, Sha256};

/// The driver's number of a relay socket, below [`Capacity::relays`](crate::Capacity).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct RelayId(pub u32);

/// Where a relay socket is bound, and where peers reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayAddress {
    /// The address that the socket is bound to.
    pub bound: SocketAddr,
    /// The address that peers and clients are told: `bound`, or the external address mapped to it.
    pub external: SocketAddr,
}

/// Where a packet from a peer came in, and from whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerPath {
    /// The relay socket that received it.
    pub relay: RelayId,
    /// Its source.
    pub peer: SocketAddr,
}

/// An ICMP error about a datagram that a relay socket sent, as the system tells it (on Linux by `MSG_ERRQUEUE`, which
/// tells of UDP alone and finds the socket by the inner source).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError {
    /// The relay socket that sent it.
    pub relay: RelayId,
    /// Where it was sent: the destination in the inner headers, with port 0 where that is not known. Its family tells
    /// ICMPv4 from ICMPv6.
    pub peer: SocketAddr,
    /// ICMP's type.
    pub kind: u8,
    /// ICMP's code.
    pub code: u8,
    /// The next hop's MTU in bytes; looked at where the type and code tell one.
    pub mtu: u32,
}

/// What the engine asks of the driver, from [`Server::poll_relay`](crate::Server::poll_relay).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayDemand {
    /// The allocation on this relay has ended: let the socket rest for some seconds, drain it, then register it (or
    /// a socket on another port) again with [`Server::add_relay`](crate::Server::add_relay).
    Retire(RelayId),
}

/// Why a relay was not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayFault {
    /// The number is not below [`Capacity::relays`](crate::Capacity).
    Number,
    /// The relay is registered already.
    Registered,
    /// Bound and external address are of different families.
    Family,
    /// More different relay addresses than the engine tells apart.
    Addresses,
}

/// What a registered relay does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Duty {
    /// Not registered, or resting.
    None,
    /// Served an allocation that has ended; the driver has not been told yet.
    Retired,
    /// Waits in the pool of its family.
    Pooled,
    /// Serves the allocation of this index.
    Serving(u32),
}

#[derive(Clone, Copy, Debug)]
struct Relay {
    address: RelayAddress,
    duty: Duty,
}

const UNREGISTERED: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// The relays of one worker.
#[derive(Debug)]
pub(crate) struct Relays {
    relays: Box<[Relay]>,
    pool_v4: Vec<u32>,
    pool_v6: Vec<u32>,
    /// Registered so far, by family: a family without relays is answered 440, an exhausted one 508.
    has_v4: bool,
    has_v6: bool,
    retired: VecDeque<u32>,
    draws: Draws,
}

impl Relays {
    pub(crate) fn new(capacity: u32, draws: Draws) -> Self {
        let unused = Relay { address: RelayAddress { bound: UNREGISTERED, external: UNREGISTERED }, duty: Duty::None };
        Self {
            relays: vec![unused; capacity as usize].into_boxed_slice(),
            pool_v4: Vec::with_capacity(capacity as usize),
            pool_v6: Vec::with_capacity(capacity as usize),
            has_v4: false,
            has_v6: false,
            retired: VecDeque::with_capacity(capacity as usize),
            draws,
        }
    }

    pub(crate) fn add(&mut self, id: RelayId, address: RelayAddress) -> Result<(), RelayFault> {
        let relay = self.relays.get_mut(id.0 as usize).ok_or(RelayFault::Number)?;
        if address.bound.is_ipv4() != address.external.is_ipv4() {
            return Err(RelayFault::Family);
        }
        if relay.duty != Duty::None {
            return Err(RelayFault::Registered);
        }
        *relay = Relay { address, duty: Duty::Pooled };
        if address.external.is_ipv4() {
            self.has_v4 = true;
            self.pool_v4.push(id.0);
        } else {
            self.has_v6 = true;
            self.pool_v6.push(id.0);
        }
        Ok(())
    }

    /// Whether any relay of the family was ever registered.
    pub(crate) fn serves(&self, family: Family) -> bool {
        match family {
            Family::V4 => self.has_v4,
            Family::V6 => self.has_v6,
        }
    }

    /// Takes a relay of `family` out of the pool at random; with an even port where `port` asks for one.
    pub(crate) fn draw(&mut self, family: Family, port: PortChoice) -> Option<(RelayId, RelayAddress)> {
        let pool = match family {
            Family::V4 => &mut self.pool_v4,
            Family::V6 => &mut self.pool_v6,
        };
        let start = (self.draws.next() % pool.len().max(1) as u64) as usize;
        let suits = |id: &u32| match port {
            PortChoice::Any => true,
            PortChoice::Even => self.relays[*id as usize].address.external.port().is_multiple_of(2),
        };
        let ahead = pool[start..].iter().position(suits).map(|found| start + found);
        let at = ahead.or_else(|| pool[..start].iter().position(suits))?;
        let id = pool.swap_remove(at);
        Some((RelayId(id), self.relays[id as usize].address))
    }

    /// Puts a drawn relay to work.
    pub(crate) fn assign(&mut self, id: RelayId, allocation: u32) {
        if let Some(relay) = self.relays.get_mut(id.0 as usize) {
            relay.duty = Duty::Serving(allocation);
        }
    }

    /// Puts a drawn relay back that has served nobody.
    pub(crate) fn put_back(&mut self, id: RelayId) {
        let Some(relay) = self.relays.get(id.0 as usize) else { return };
        if relay.address.external.is_ipv4() { self.pool_v4.push(id.0) } else { self.pool_v6.push(id.0) }
    }

    /// Takes a relay out of service; the driver is told.
    pub(crate) fn retire(&mut self, id: RelayId) {
        if let Some(relay) = self.relays.get_mut(id.0 as usize) {
            relay.duty = Duty::Retired;
            self.retired.push_back(id.0);
        }
    }

    pub(crate) fn take_retired(&mut self) -> Option<RelayId> {
        let id = self.retired.pop_front()?;
        if let Some(relay) = self.relays.get_mut(id as usize) {
            relay.duty = Duty::None;
        }
        Some(RelayId(id))
    }

    /// The allocation that a relay serves.
    #[inline]
    pub(crate) fn serving(&self, id: RelayId) -> Option<u32> {
        match self.relays.get(id.0 as usize)?.duty {
            Duty::Serving(allocation) => Some(allocation),
            Duty::None | Duty::Retired | Duty::Pooled => None,
        }
    }

    /// How many relays of IPv4, or else of IPv6, wait in the pool.
    pub(crate) fn pooled(&self, is_ipv4: bool) -> usize {
        if is_ipv4 { self.pool_v4.len() } else { self.pool_v6.len() }
    }
}

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    #[inline]
    pub(crate) fn of(ip: IpAddr) -> Self {
        if ip.is_ipv4() { Self::V4 } else { Self::V6 }
    }
}

/// Which relayed port a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortChoice {
    Any,
    Even,
}

/// Numbers that nobody foresees: SHA-256 of a secret seed and a counter.
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
        self.count += 1;
        let digest = Sha256::new().chain_update(self.seed).chain_update(self.count.to_le_bytes()).finalize();
        digest.first_chunk::<8>().map_or(0, |first| u64::from_le_bytes(*first))
    }
}
