//! A hash index from keys to slots of a table.

use alloc::{boxed::Box, vec};

/// No slot.
pub(crate) const NIL: u32 = u32::MAX;

/// Chains of slots by the hash of their key. Insertion is O(1); look-up and removal walk one chain, whose expected length
/// is at most one half.
#[derive(Debug)]
pub(crate) struct Index {
    heads: Box<[u32]>,
    /// By slot: the next slot of the chain.
    next: Box<[u32]>,
    shift: u32,
}

impl Index {
    /// An index of `slots` slots.
    pub(crate) fn new(slots: usize) -> Self {
        let buckets = slots.saturating_mul(2).next_power_of_two().max(2);
        Self {
            heads: vec![NIL; buckets].into_boxed_slice(),
            next: vec![NIL; slots].into_boxed_slice(),
            shift: u64::BITS - buckets.trailing_zeros(),
        }
    }

    const fn bucket(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    /// Asks for the beginning of the chain of `hash`.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) {
        tt_simd::prefetch(&self.heads[self.bucket(hash)]);
    }

    /// Asks for the link of `slot`.
    #[inline(always)]
    pub(crate) fn prefetch_link(&self, slot: usize) {
        tt_simd::prefetch(&self.next[slot]);
    }

    pub(crate) fn insert(&mut self, hash: u64, slot: u32) {
        let bucket = self.bucket(hash);
        self.next[slot as usize] = self.heads[bucket];
        self.heads[bucket] = slot;
    }

    pub(crate) fn remove(&mut self, hash: u64, slot: u32) {
        let bucket = self.bucket(hash);
        let after = self.next[slot as usize];
        let mut at = self.heads[bucket];
        if at == slot {
            self.heads[bucket] = after;
            return;
        }
        while at != NIL {
            let next = self.next[at as usize];
            if next == slot {
                self.next[at as usize] = after;
                return;
            }
            at = next;
        }
    }

    /// Returns the slots of the chain of `hash`, latest first; other keys may share the chain.
    pub(crate) fn chain(&self, hash: u64) -> impl Iterator<Item = u32> {
        let mut at = self.heads[self.bucket(hash)];
        core::iter::from_fn(move || {
            let slot = at;
            at = *self.next.get(slot as usize)?;
            Some(slot)
        })
    }
}

/// Mixes two words into a hash whose high bits depend on all of theirs.
pub(crate) const fn hash(a: u64, b: u64) -> u64 {
    let x = (a ^ b.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ x >> 32).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 29
}

/// A queue of slots, each at most once.
#[derive(Debug)]
pub(crate) struct Queue {
    slots: Box<[u32]>,
    first: usize,
    len: usize,
}

impl Queue {
    pub(crate) fn new(slots: usize) -> Self {
        Self { slots: vec![NIL; slots].into_boxed_slice(), first: 0, len: 0 }
    }

    pub(crate) fn push(&mut self, slot: u32) {
        let at = self.wrapped(self.first + self.len);
        self.slots[at] = slot;
        self.len += 1;
    }

    pub(crate) fn front(&self) -> Option<u32> {
        (self.len > 0).then(|| self.slots[self.first])
    }

    pub(crate) fn pop(&mut self) {
        self.first = self.wrapped(self.first + 1);
        self.len -= 1;
    }

    /// Returns the place of `index`, which is at most one turn ahead.
    fn wrapped(&self, index: usize) -> usize {
        if index < self.slots.len() { index } else { index - self.slots.len() }
    }
}

/// A list of slots, each at most once, in the order of insertion.
#[derive(Debug)]
pub(crate) struct List {
    /// By slot: the neighbours before and after it.
    links: Box<[[u32; 2]]>,
    ends: [u32; 2],
}

impl List {
    pub(crate) fn new(slots: usize) -> Self {
        Self { links: vec![[NIL; 2]; slots].into_boxed_slice(), ends: [NIL; 2] }
    }

    pub(crate) fn first(&self) -> Option<u32> {
        Some(self.ends[0]).filter(|slot| *slot != NIL)
    }

    pub(crate) fn push(&mut self, slot: u32) {
        let last = core::mem::replace(&mut self.ends[1], slot);
        self.links[slot as usize] = [last, NIL];
        match self.links.get_mut(last as usize) {
            Some(links) => links[1] = slot,
            None => self.ends[0] = slot,
        }
    }

    pub(crate) fn remove(&mut self, slot: u32) {
        let [before, after] = self.links[slot as usize];
        match self.links.get_mut(before as usize) {
            Some(links) => links[1] = after,
            None => self.ends[0] = after,
        }
        match self.links.get_mut(after as usize) {
            Some(links) => links[0] = before,
            None => self.ends[1] = before,
        }
    }
}

crate::fields::visit!(Index: heads, next, shift);
crate::fields::visit!(Queue: slots, first, len);
crate::fields::visit!(List: links, ends);
