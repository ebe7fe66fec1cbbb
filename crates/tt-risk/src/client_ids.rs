//! The client ids that accounts have used.

use crate::{Counters, gate::Fault};
use alloc::{boxed::Box, vec};
use tt_model::Breach;

/// Ids in a bucket.
const WAYS: usize = 8;

/// What spreads ids over buckets: 2^64 by the golden ratio, so that ids in a row take buckets far apart.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Ids and how long each counts: two cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct IdBucket {
    ids: [u64; WAYS],
    /// The first moment at which the id is forgotten.
    until_ns: [u64; WAYS],
}

const _: () = assert!(size_of::<IdBucket>() == 128);

impl IdBucket {
    const EMPTY: Self = Self { ids: [0; WAYS], until_ns: [0; WAYS] };
    /// Has room for nothing, ever.
    const CLOSED: Self = Self { ids: [0; WAYS], until_ns: [u64::MAX; WAYS] };
}

/// The ids of every account, each remembered for a while.
#[derive(Debug)]
pub(crate) struct ClientIds {
    /// By account; the last has no room and stands for all that is unknown.
    buckets: Box<[IdBucket]>,
    /// Buckets of an account.
    per_account: u32,
    pub(crate) window_ns: u64,
}

impl ClientIds {
    /// Room for about `ids` of each account.
    pub(crate) fn new(accounts: u16, ids: u32) -> Self {
        // A bucket for each id, so that one that meets eight others in its own is one in a hundred thousand at most.
        let known = usize::from(accounts).checked_mul(ids as usize).expect("accounts times client ids fit into memory");
        let mut buckets = vec![IdBucket::EMPTY; known + 1];
        buckets[known] = IdBucket::CLOSED;
        Self { buckets: buckets.into_boxed_slice(), per_account: ids, window_ns: u64::MAX }
    }

    /// Where `id` is among those of `account`, or where it would be.
    #[inline(always)]
    pub(crate) fn place(&mut self, account: usize, id: u64, now_ns: u64) -> IdPlace<'_> {
        let spread = id.wrapping_mul(SPREAD) >> 32;
        let within = (spread * u64::from(self.per_account)) >> 32;
        let index = account.wrapping_mul(self.per_account as usize).wrapping_add(within as usize);
        let last = self.buckets.len() - 1;
        let bucket = &mut self.buckets[index.min(last)];
        let (mut live, mut same) = (0_u32, 0_u32);
        for way in (0..WAYS).rev() {
            live = (live << 1) + u32::from(now_ns < bucket.until_ns[way]);
            same = (same << 1) + u32::from(bucket.ids[way] == id);
        }
        let free = !live & ((1 << WAYS) - 1);
        let until_ns = now_ns.saturating_add(self.window_ns);
        IdPlace { bucket, id, until_ns, is_used: live & same != 0, is_full: free == 0, way: free.trailing_zeros() }
    }

    /// Remembers that `account` used `id` at `used_ns`.
    pub(crate) fn restore(&mut self, account: u16, id: u64, used_ns: u64) -> Result<(), Fault> {
        let place = self.place(usize::from(account), id, used_ns);
        match (place.is_used, place.is_full) {
            (true, _) => Ok(()),
            (false, true) => Err(Fault::Full),
            (false, false) => {
                place.keep(u64::MAX);
                Ok(())
            }
        }
    }
}

/// An id's place in its bucket.
#[derive(Debug)]
pub(crate) struct IdPlace<'a> {
    bucket: &'a mut IdBucket,
    id: u64,
    until_ns: u64,
    is_used: bool,
    is_full: bool,
    /// A free one, unless the bucket is full.
    way: u32,
}

impl IdPlace<'_> {
    /// The reason against an order with this id: used before, or nobody could tell the next time.
    #[inline(always)]
    pub(crate) fn found(&self) -> u64 {
        u64::from(self.is_used | self.is_full) * Breach::DUP_ID.0
    }

    /// Counts an intent that finds no room, if it `is_order`: 1 for an order, 0 for a cancel.
    #[inline(always)]
    pub(crate) fn count(&self, is_order: u64, counters: &mut Counters) {
        counters.ids_full += u64::from(self.is_full) & is_order;
    }

    /// Remembers the id if `takes` is all ones and there is room; nothing if it is zero.
    #[inline(always)]
    pub(crate) fn keep(self, takes: u64) {
        let keeps = takes & u64::from(self.is_full).wrapping_sub(1);
        let way = self.way as usize % WAYS;
        let (id, until_ns) = (&mut self.bucket.ids[way], &mut self.bucket.until_ns[way]);
        *id ^= (*id ^ self.id) & keeps;
        *until_ns ^= (*until_ns ^ self.until_ns) & keeps;
    }
}
