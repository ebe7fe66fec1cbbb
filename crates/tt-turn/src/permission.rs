//! Permissions: which peer addresses may use an allocation (RFC 8656 section 9).

use core::net::IpAddr;

use tt_model::Nanos;

use crate::allocation::{List, NO_INDEX};
use crate::flow::bits_v6;
use crate::slab::Slab;
use crate::table::Table;
use crate::wheel::Wheel;

/// RFC 8656 section 9: a permission lives exactly this long.
pub(crate) const LIFETIME: Nanos = Nanos::from_secs(300);

/// Whether the policy allows every port of a peer's address, or each has to be asked for.
///
/// Behind an address of our own relays a port may be an allocation's: then the payload does not leave the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ports {
    All,
    /// All, and the address is one of our relays'.
    Own,
    Asked,
}

/// One permission: by address, whatever the port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permission {
    pub(crate) allocation: u32,
    pub(crate) ip: IpAddr,
    pub(crate) ports: Ports,
    pub(crate) expires: Nanos,
    next: u32,
    previous: u32,
}

fn key(allocation: u32, ip: IpAddr) -> [u64; 3] {
    let bits = bits_v6(ip);
    // A mapped address is of the other family than the one that it stands for, and has another relayed address.
    [(u64::from(allocation) + 1) << 1 | u64::from(ip.is_ipv4()), (bits >> 64) as u64, bits as u64]
}

/// The permissions of one worker's allocations.
#[derive(Debug)]
pub(crate) struct Permissions {
    index: Table<[u64; 3], u32>,
    records: Slab<Permission>,
    wheel: Wheel,
}

impl Permissions {
    pub(crate) fn new(capacity: u32, seed: u64) -> Self {
        Self {
            index: Table::new(capacity as usize, seed),
            records: Slab::new(capacity),
            wheel: Wheel::new(capacity as usize),
        }
    }

    pub(crate) fn get(&self, index: u32) -> Option<&Permission> {
        self.records.get(index)
    }

    pub(crate) fn set_ports(&mut self, index: u32, ports: Ports) {
        if let Some(permission) = self.records.get_mut(index) {
            permission.ports = ports;
        }
    }

    pub(crate) fn room(&self) -> usize {
        self.records.room()
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Brings nearer what [`Permissions::install`] will look at.
    pub(crate) fn prefetch(&self, (allocation, list): (u32, &List), ip: IpAddr) {
        self.index.prefetch(&key(allocation, ip));
        self.records.prefetch(list.head);
        self.records.prefetch_next();
    }

    /// The live permission of `ip`.
    #[inline]
    pub(crate) fn find(&self, allocation: u32, ip: IpAddr, now: Nanos) -> Option<(u32, &Permission)> {
        let index = *self.index.get(&key(allocation, ip))?;
        self.records.get(index).filter(|permission| permission.expires > now).map(|permission| (index, permission))
    }

    /// The permission at `index`, if it is `ip`'s and alive: what a channel remembers.
    #[inline]
    pub(crate) fn recall(&self, index: u32, allocation: u32, ip: IpAddr, now: Nanos) -> Option<&Permission> {
        self.records.get(index).filter(|found| found.allocation == allocation && found.ip == ip && found.expires > now)
    }

    /// Whether a record exists, alive or expired and not yet ended: then a refresh needs no room.
    pub(crate) fn is_recorded(&self, allocation: u32, ip: IpAddr) -> bool {
        self.index.get(&key(allocation, ip)).is_some()
    }

    /// Installs or refreshes the permission of `ip`; `None` where there is no room.
    pub(crate) fn install(
        &mut self,
        now: Nanos,
        (allocation, list): (u32, &mut List),
        ip: IpAddr,
        ports: Ports,
    ) -> Option<u32> {
        let expires = now.saturating_add(LIFETIME);
        let key = key(allocation, ip);
        let index = match self.index.get(&key) {
            Some(index) => {
                let permission = self.records.get_mut(*index)?;
                permission.expires = expires;
                permission.ports = ports;
                *index
            }
            None => {
                let head = list.head;
                let record = Permission { allocation, ip, ports, expires, next: head, previous: NO_INDEX };
                let index = self.records.insert(record)?;
                let stored = self.index.insert(key, index);
                debug_assert!(stored, "the index has the records' capacity");
                if let Some(permission) = self.records.get_mut(head) {
                    permission.previous = index;
                }
                *list = List { head: index, len: list.len + 1 };
                index
            }
        };
        self.wheel.set(index, now, expires);
        Some(index)
    }

    /// Ends the permission at `index`.
    pub(crate) fn remove(&mut self, index: u32, list: &mut List) {
        let Some(permission) = self.records.remove(index) else { return };
        self.index.remove(&key(permission.allocation, permission.ip));
        self.wheel.clear(index);
        if let Some(next) = self.records.get_mut(permission.next) {
            next.previous = permission.previous;
        }
        match self.records.get_mut(permission.previous) {
            Some(previous) => previous.next = permission.next,
            None => list.head = permission.next,
        }
        list.len -= 1;
    }

    /// One permission that has expired at `now`, with its allocation; it stays until it is removed.
    pub(crate) fn take_due(&mut self, now: Nanos) -> Option<(u32, u32)> {
        while let Some(index) = self.wheel.take_due(now) {
            match self.records.get(index) {
                Some(permission) if permission.expires > now => {
                    let expires = permission.expires;
                    self.wheel.set(index, now, expires);
                }
                Some(permission) => return Some((index, permission.allocation)),
                None => {}
            }
        }
        None
    }

    pub(crate) fn next_at(&self) -> Option<Nanos> {
        self.wheel.next_at()
    }
}
