//! What each user holds of the pools that all users of a process share.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::registry::{Adjusted, Registry};

/// Units of each pool that every user may hold while the pool has any, in pools of at least
/// `OWN_MIN * 100 / (100 - share)` units.
const OWN_MIN: u32 = 10;
/// The part of what one user leaves that only users with less than `OWN_MIN` may take: one of so many.
const RESERVED_OF_REST: u64 = 4;
const POOLS: usize = 5;
/// Lowest bit of the number of references in a registry entry. Below it is the place plus one.
const REFERENCE: u64 = 1 << 32;

/// A pool that all users share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Pool {
    /// Allocations and reserved ports.
    Allocations,
    /// Relay sockets: in use, reserved, and resting after use.
    Ports,
    /// Reserved ports.
    Reservations,
    /// Permissions beyond the guaranteed ones of each allocation.
    Permissions,
    /// Channels beyond the guaranteed ones of each allocation.
    Channels,
}

/// Sizes of the pools that all users of a process share; `u32::MAX` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pools {
    /// Live allocations and reserved ports; one more is rejected with 508.
    pub allocations: u32,
    /// Relay sockets of live allocations, reserved, and idle after use.
    pub ports: u32,
    /// Reserved ports.
    pub reservations: u32,
    /// Permissions beyond the first
    /// [`PERMISSIONS_GUARANTEED`](crate::config::PERMISSIONS_GUARANTEED) of each allocation.
    pub permissions: u32,
    /// Channels beyond the first [`CHANNELS_GUARANTEED`](crate::config::CHANNELS_GUARANTEED) of each allocation.
    pub channels: u32,
}

impl Pools {
    /// No limit.
    pub const UNLIMITED: Self = Self {
        allocations: u32::MAX,
        ports: u32::MAX,
        reservations: u32::MAX,
        permissions: u32::MAX,
        channels: u32::MAX,
    };

    /// Returns the size of one pool.
    pub(super) const fn size(self, pool: Pool) -> u32 {
        self.sizes()[pool as usize]
    }

    const fn sizes(self) -> [u32; POOLS] {
        [self.allocations, self.ports, self.reservations, self.permissions, self.channels]
    }
}

/// Reason why a user gets no unit of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// The pool is empty.
    Empty,
    /// The rest of the pool is for users who hold fewer.
    Share,
    /// The user has the maximum number.
    Quota,
}

/// The largest part of a pool that one user gets.
///
/// A user who holds `h` units gets another one while `h * (100 - percent) < percent * free`. With 75 percent a user who
/// is alone gets three quarters of the pool, and every other user three quarters of the rest. This is the dynamic
/// threshold of Choudhury and Hahne (IEEE/ACM Transactions on Networking 6(2), 1998): the more users hold units, the
/// less remains unused.
///
/// Without a bound several users together would use up the pool. Its last sixteenth, a quarter of what a user who is
/// alone leaves, is therefore for users who hold less than `OWN_MIN`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    percent: u64,
}

impl Share {
    /// Returns the share of `percent`, from 1 to 100; 100 is all.
    pub(crate) fn new(percent: u8) -> Self {
        Self { percent: u64::from(percent.clamp(1, 100)) }
    }

    /// Returns whether a user who holds `held` units may take `units` of the `free` ones.
    fn allows(self, held: u32, units: u32, free: u32, size: u32) -> bool {
        let held = u64::from(held) + u64::from(units.saturating_sub(1));
        let (left_by_one, others) = (u64::from(size) * (100 - self.percent) / 100, 100 - self.percent);
        let own_min = u64::from(OWN_MIN).min(left_by_one);
        if held < own_min || others == 0 {
            return true;
        }
        let reserve = own_min.max(left_by_one / RESERVED_OF_REST);
        held * others < self.percent * u64::from(free) && u64::from(free.saturating_sub(units)) >= reserve
    }
}

/// What limits one account of a pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    /// Units that the account may hold.
    pub(crate) most: u32,
    /// Units that all accounts together may hold, if the pool has more.
    pub(crate) total: u32,
    /// What one account leaves to others.
    pub(crate) share: Share,
}

/// Units in use of one pool.
#[derive(Debug)]
struct Fill {
    size: u32,
    used: AtomicU32,
}

/// Accounts of the users who hold something.
#[derive(Debug)]
pub(crate) struct Accounts {
    /// References of a user's account, and its place plus one.
    places: Registry,
    /// One bit for each account, set while it is in use.
    taken: Box<[AtomicU64]>,
    held: Box<[[AtomicU32; POOLS]]>,
    fills: [Fill; POOLS],
}

impl Accounts {
    /// Creates room for `users` who hold something at the same time.
    pub(crate) fn new(users: u32, pools: Pools) -> Self {
        Self {
            places: Registry::new(users),
            taken: (0..users.div_ceil(u64::BITS)).map(|_| AtomicU64::new(0)).collect(),
            held: (0..users).map(|_| [const { AtomicU32::new(0) }; POOLS]).collect(),
            fills: pools.sizes().map(|size| Fill { size, used: AtomicU32::new(0) }),
        }
    }

    /// Returns the place of the account of a user who holds something.
    pub(crate) fn place(&self, user: u64) -> Option<u32> {
        self.places.get(user).map(|entry| (entry as u32).wrapping_sub(1))
    }

    /// Adds `references` to the account of a user, which is created by `create` if there is none. Returns its place;
    /// `None` if there is no room.
    pub(crate) fn open(&self, user: u64, references: u32, create: impl FnOnce(u32)) -> Option<u32> {
        let mut place = None;
        let adjusted = self.places.adjust(user, |entry| {
            let entry = match entry {
                0 => self.take_place().map_or(0, |place| {
                    create(place);
                    u64::from(place) + 1
                }),
                entry => entry,
            };
            if entry == 0 {
                return 0;
            }
            place = Some((entry as u32).wrapping_sub(1));
            entry + u64::from(references) * REFERENCE
        });
        place.filter(|_| adjusted != Adjusted::Full)
    }

    /// Removes `references` from the account of a user; it ends with the last, after `end`.
    pub(crate) fn close(&self, user: u64, references: u32, end: impl FnOnce(u32)) {
        self.places.adjust(user, |entry| {
            let left = entry.saturating_sub(u64::from(references) * REFERENCE);
            if left < REFERENCE && entry != 0 {
                let place = (entry as u32).wrapping_sub(1);
                end(place);
                self.free_place(place);
                return 0;
            }
            left
        });
    }

    /// Takes `units` of `pool` within `bound` for the account at `place`, all or none.
    ///
    /// # Errors
    /// The pool is empty, or the user has its share or the most.
    pub(crate) fn take(&self, place: u32, pool: Pool, units: u32, bound: Bound) -> Result<(), Shortage> {
        let fill = &self.fills[pool as usize];
        let size = fill.size.min(bound.total);
        let Some(held) = self.held.get(place as usize).map(|held| &held[pool as usize]) else {
            return Err(Shortage::Empty);
        };
        // First, so that another worker sees it.
        let before = held.fetch_add(units, Ordering::Relaxed);
        let is_at_quota = before.checked_add(units).is_none_or(|more| more > bound.most);
        let mut shortage = Shortage::Empty;
        let taken = fill.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            let free = size.saturating_sub(used);
            shortage = match units {
                units if units > free => Shortage::Empty,
                _ if is_at_quota => Shortage::Quota,
                _ if !bound.share.allows(before, units, free, size) => Shortage::Share,
                _ => return Some(used + units),
            };
            None
        });
        if taken.is_err() {
            held.fetch_sub(units, Ordering::Relaxed);
            return Err(shortage);
        }
        Ok(())
    }

    /// Returns `units` of `pool` from the account at `place`.
    pub(crate) fn give(&self, place: u32, pool: Pool, units: u32) {
        if let Some(held) = self.held.get(place as usize) {
            held[pool as usize].fetch_sub(units, Ordering::Relaxed);
            self.fills[pool as usize].used.fetch_sub(units, Ordering::Relaxed);
        }
    }

    /// Returns the units of `pool` in use.
    pub(crate) fn used(&self, pool: Pool) -> u32 {
        self.fills[pool as usize].used.load(Ordering::Relaxed)
    }

    fn take_place(&self) -> Option<u32> {
        for (word, bits) in (0u32..).zip(&self.taken) {
            let first = word * u64::BITS;
            let first_free = |taken: u64| {
                let bit = taken.trailing_ones();
                ((first + bit) < self.held.len() as u32 && bit < u64::BITS).then(|| taken | 1 << bit)
            };
            if let Ok(before) = bits.fetch_update(Ordering::Relaxed, Ordering::Relaxed, first_free) {
                return Some(first + before.trailing_ones());
            }
        }
        None
    }

    fn free_place(&self, place: u32) {
        if let Some(bits) = self.taken.get((place / u64::BITS) as usize) {
            bits.fetch_and(!(1 << (place % u64::BITS)), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
