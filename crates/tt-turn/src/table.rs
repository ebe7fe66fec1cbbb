//! A hash table of fixed size with integer keys, without tombstones or allocation after its creation.

use alloc::boxed::Box;
use alloc::vec;
use core::hash::Hasher;

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;

/// A key of whole integers.
pub(crate) trait Key: Copy + Eq {
    /// The value of an empty bucket, which no key has.
    const EMPTY: Self;
    /// Feeds the key's integers to the hash.
    fn feed(&self, hasher: &mut FoldHasher<'_>);
}

impl Key for u64 {
    const EMPTY: Self = 0;
    #[inline]
    fn feed(&self, hasher: &mut FoldHasher<'_>) {
        hasher.write_u64(*self);
    }
}

impl Key for u128 {
    const EMPTY: Self = 0;
    #[inline]
    fn feed(&self, hasher: &mut FoldHasher<'_>) {
        hasher.write_u128(*self);
    }
}

impl<const N: usize> Key for [u64; N] {
    const EMPTY: Self = [0; N];
    #[inline]
    fn feed(&self, hasher: &mut FoldHasher<'_>) {
        for word in self {
            hasher.write_u64(*word);
        }
    }
}

/// A key and its value. A tuple of integers that are zero is memory that the allocator gives without touching it.
type Bucket<K, V> = (K, V);

/// Open addressing with linear probing. A removal moves the following run up, so that a million inserts and removals
/// at full capacity leave the table as it was.
#[derive(Clone, Debug)]
pub(crate) struct Table<K, V> {
    buckets: Box<[Bucket<K, V>]>,
    len: usize,
    capacity: usize,
    seed: u64,
    shared_seed: SharedSeed,
}

impl<K: Key, V: Copy + Default> Table<K, V> {
    /// Creates a table for `capacity` entries, at most two thirds full, hashed with `seed`.
    pub(crate) fn new(capacity: usize, seed: u64) -> Self {
        let size = (capacity + capacity / 2 + 1).next_power_of_two();
        Self {
            buckets: vec![(K::EMPTY, V::default()); size].into_boxed_slice(),
            len: 0,
            capacity,
            seed,
            shared_seed: SharedSeed::from_u64(seed.rotate_left(32)),
        }
    }

    #[inline]
    fn home(&self, key: &K) -> usize {
        let mut hasher = FoldHasher::with_seed(self.seed, &self.shared_seed);
        key.feed(&mut hasher);
        hasher.finish() as usize & (self.buckets.len() - 1)
    }

    /// Returns the bucket of `key`, or the empty one for it.
    #[inline]
    fn find(&self, key: &K) -> Result<usize, usize> {
        let mask = self.buckets.len() - 1;
        let mut at = self.home(key);
        loop {
            let found = &self.buckets[at & mask].0;
            if found == key {
                return Ok(at & mask);
            }
            if *found == K::EMPTY {
                return Err(at & mask);
            }
            at += 1;
        }
    }

    /// Returns the value of `key` and true, or `other` and false, in the same time.
    #[inline]
    pub(crate) fn get_or(&self, key: &K, other: V) -> (V, bool) {
        let mask = self.buckets.len() - 1;
        let mut at = self.home(key);
        loop {
            let (held, value) = &self.buckets[at & mask];
            let is_found = held == key;
            if is_found | (*held == K::EMPTY) {
                return ([other, *value][usize::from(is_found)], is_found);
            }
            at += 1;
        }
    }

    /// Prefetches the bucket of `key`.
    #[inline]
    pub(crate) fn prefetch(&self, key: &K) {
        tt_simd::prefetch(&self.buckets[self.home(key)]);
    }

    #[inline]
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.find(key).ok().map(|at| &self.buckets[at].1)
    }

    /// Sets the value of `key`; returns `false` if the table is full.
    #[must_use]
    pub(crate) fn insert(&mut self, key: K, value: V) -> bool {
        match self.find(&key) {
            Ok(at) => self.buckets[at].1 = value,
            Err(_) if self.len == self.capacity => return false,
            Err(at) => {
                self.buckets[at] = (key, value);
                self.len += 1;
            }
        }
        true
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let mut hole = self.find(key).ok()?;
        let value = self.buckets[hole].1;
        let mask = self.buckets.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let candidate = self.buckets[at];
            if candidate.0 == K::EMPTY {
                break;
            }
            let from_home = at.wrapping_sub(self.home(&candidate.0)) & mask;
            if from_home >= at.wrapping_sub(hole) & mask {
                self.buckets[hole] = candidate;
                hole = at;
            }
        }
        self.buckets[hole].0 = K::EMPTY;
        self.len -= 1;
        Some(value)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::Table;
    use crate::shared::registry::fold;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn keys_spread_and_another_seed_spreads_them_otherwise() {
        let homes = |seed| {
            let (narrow, wide) = (Table::<u64, u64>::new(680, seed), Table::<[u64; 3], u64>::new(680, seed));
            let long = Table::<u128, u64>::new(680, seed);
            let each = |key: u64| [narrow.home(&key), wide.home(&[1, key, 0]), long.home(&(u128::from(key) << 64))];
            (1..=1_000).map(each).collect::<std::vec::Vec<_>>()
        };
        let (first, second) = (homes(0x9E37_79B9_7F4A_7C15), homes(0xD1B5_4A32_D192_ED03));
        for table in 0..3 {
            let used: std::collections::BTreeSet<_> = first.iter().map(|homes| homes[table]).collect();
            // A thousand keys at random leave about 38 in 100 of 1,024 buckets empty.
            assert!(used.len() > 550, "{table}: {} buckets", used.len());
            let same = first.iter().zip(&second).filter(|(a, b)| a[table] == b[table]).count();
            assert!(same < 50, "{table}: {same} keys stay where they were");
        }
    }

    #[test]
    fn millions_of_inserts_and_removals_at_full_capacity_allocate_nothing() {
        const LIVE: u64 = 1_000;
        let pairs = if cfg!(debug_assertions) { 500_000 } else { 5_000_000 };
        let mut table = Table::<u128, u64>::new(LIVE as usize, 3);
        let mut wheel = crate::wheel::Wheel::new(LIVE as usize);
        let mut slab = crate::slab::Slab::new(LIVE as u32);
        let registry = crate::shared::registry::Registry::new(LIVE as u32);
        let key =
            |number: u64| u128::from(number.wrapping_mul(0x9E37_79B9_7F4A_7C15)) << 64 | u128::from(number) << 8 | 1;
        let counted = allocation_counter::measure(|| {
            for number in 0..LIVE + pairs {
                let now = tt_model::Nanos::from_secs(number / LIVE);
                if number >= LIVE {
                    let oldest = number - LIVE;
                    assert!(!table.insert(key(number), 0), "full");
                    let index = table.remove(&key(oldest)).expect("the oldest is there") as u32;
                    wheel.clear(index);
                    assert_eq!(slab.remove(index), Some(oldest));
                    registry.adjust(fold(&[oldest], 1), |_| 0);
                }
                let index = slab.insert(number).expect("room");
                assert!(table.insert(key(number), u64::from(index)));
                wheel.set(index, now, now.saturating_add(tt_model::Nanos::from_secs(600)));
                registry.adjust(fold(&[number], 1), |_| 1);
            }
        });
        assert_eq!((counted.count_total, table.len(), slab.room()), (0, LIVE as usize, 0));
        assert!(
            (pairs..pairs + LIVE)
                .all(|number| table.get(&key(number)).is_some() && registry.get(fold(&[number], 1)) == Some(1))
        );
    }

    proptest! {
        #[test]
        fn agrees_with_a_map(operations in prop::collection::vec((0u8..3, 1u64..40, any::<u32>()), 0..2_000), seed: u64) {
            let mut table = Table::<u64, u32>::new(24, seed);
            let mut model = HashMap::new();
            for (operation, key, value) in operations {
                match operation {
                    0 => {
                        let fits = model.len() < 24 || model.contains_key(&key);
                        prop_assert_eq!(table.insert(key, value), fits);
                        if fits { model.insert(key, value); }
                    }
                    1 => prop_assert_eq!(table.remove(&key), model.remove(&key)),
                    _ => prop_assert_eq!(table.get(&key), model.get(&key)),
                }
                prop_assert_eq!(table.len(), model.len());
            }
            for key in 1..40 {
                prop_assert_eq!(table.get(&key), model.get(&key));
                let expected = model.get(&key).map_or((7, false), |value| (*value, true));
                prop_assert_eq!(table.get_or(&key, 7), expected);
            }
        }
    }
}
