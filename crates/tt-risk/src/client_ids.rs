//! Client ids that accounts have used.

use crate::{counters::Counters, error::GateError};
use alloc::{boxed::Box, vec};
use tt_model::Breach;

/// Ids in a bucket.
const WAYS: usize = 8;

/// 2^64 divided by the golden ratio: the multiplier that spreads consecutive ids over distant buckets.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Ids with their expiry: two cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct IdBucket {
    ids: [u64; WAYS],
    /// Time at which the id expires.
    until_ns: [u64; WAYS],
}

const _: () = assert!(size_of::<IdBucket>() == 128);

impl IdBucket {
    const EMPTY: Self = Self { ids: [0; WAYS], until_ns: [0; WAYS] };
    /// A bucket that is always full.
    const CLOSED: Self = Self { ids: [0; WAYS], until_ns: [u64::MAX; WAYS] };
}

/// The recent ids of every account.
#[derive(Debug)]
pub(crate) struct ClientIds {
    /// By account; the last is always full and serves unknown accounts.
    buckets: Box<[IdBucket]>,
    /// Buckets of an account.
    per_account: u32,
    pub(crate) window_ns: u64,
}

impl ClientIds {
    /// A table for about `ids` per account.
    pub(crate) fn new(accounts: u16, ids: u32) -> Self {
        // One bucket per id: at most one id in 100,000 shares its bucket with eight others.
        let known = usize::from(accounts).checked_mul(ids as usize).expect("accounts times client ids fit into memory");
        let mut buckets = vec![IdBucket::EMPTY; known + 1];
        buckets[known] = IdBucket::CLOSED;
        Self { buckets: buckets.into_boxed_slice(), per_account: ids, window_ns: u64::MAX }
    }

    /// Returns the place of `id` among the ids of `account`, or a free place for it.
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

    /// Stores that `account` used `id` at `used_ns`.
    pub(crate) fn restore(&mut self, account: u16, id: u64, used_ns: u64) -> Result<(), GateError> {
        let place = self.place(usize::from(account), id, used_ns);
        match (place.is_used, place.is_full) {
            (true, _) => Ok(()),
            (false, true) => Err(GateError::Full),
            (false, false) => {
                place.keep(u64::MAX);
                Ok(())
            }
        }
    }
}

/// The place of an id in its bucket.
#[derive(Debug)]
pub(crate) struct IdPlace<'a> {
    bucket: &'a mut IdBucket,
    id: u64,
    until_ns: u64,
    is_used: bool,
    is_full: bool,
    /// A free place, unless the bucket is full.
    way: u32,
}

impl IdPlace<'_> {
    /// Returns `DUP_ID` if the id was used, or if the full bucket cannot store it for the next check.
    #[inline(always)]
    pub(crate) fn found(&self) -> u64 {
        u64::from(self.is_used | self.is_full) * Breach::DUP_ID.0
    }

    /// Counts an order that does not fit; `is_order` is 1 for an order, 0 for a cancel.
    #[inline(always)]
    pub(crate) fn count(&self, is_order: u64, counters: &mut Counters) {
        counters.ids_full += u64::from(self.is_full) & is_order;
    }

    /// Stores the id if `takes` is all ones and the bucket is not full; does nothing if `takes` is zero.
    #[inline(always)]
    pub(crate) fn keep(self, takes: u64) {
        let keeps = takes & u64::from(self.is_full).wrapping_sub(1);
        let way = self.way as usize % WAYS;
        let (id, until_ns) = (&mut self.bucket.ids[way], &mut self.bucket.until_ns[way]);
        *id ^= (*id ^ self.id) & keeps;
        *until_ns ^= (*until_ns ^ self.until_ns) & keeps;
    }
}
