//! A hash table with integer keys that grows with use, without tombstones or allocation after its creation.

mod index;

pub(crate) use index::{Index, Tag};

use alloc::boxed::Box;
use alloc::vec;
use core::hash::Hasher;

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;

/// The hash of a key in a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hash(usize);

/// A key of whole integers.
pub(crate) trait Key: Copy + Eq {
    /// The value of an empty bucket, which no key has.
    const EMPTY: Self;
    /// Returns the seeded hash.
    fn hash(&self, seed: u64, shared: &SharedSeed) -> usize;
}

/// Returns the hash of what `feed` feeds.
#[inline(always)]
fn folded(seed: u64, shared: &SharedSeed, feed: impl FnOnce(&mut FoldHasher<'_>)) -> usize {
    let mut hasher = FoldHasher::with_seed(seed, shared);
    feed(&mut hasher);
    let hash = hasher.finish();
    // The lower bits of one multiplication are a progression where keys are, and fill neighbours in a small table.
    (hash ^ hash >> 32) as usize
}

impl Key for u64 {
    const EMPTY: Self = 0;
    #[inline]
    fn hash(&self, seed: u64, shared: &SharedSeed) -> usize {
        folded(seed, shared, |hasher| hasher.write_u64(*self))
    }
}

impl Key for u128 {
    const EMPTY: Self = 0;
    #[inline]
    fn hash(&self, seed: u64, shared: &SharedSeed) -> usize {
        folded(seed, shared, |hasher| hasher.write_u128(*self))
    }
}

impl<const N: usize> Key for [u64; N] {
    const EMPTY: Self = [0; N];
    #[inline]
    fn hash(&self, seed: u64, shared: &SharedSeed) -> usize {
        folded(seed, shared, |hasher| self.iter().for_each(|word| hasher.write_u64(*word)))
    }
}

/// A value of integers: the allocator gives zeros of other types by writing them, to all memory of a table.
pub(crate) trait Value: Copy + Default {}

impl Value for u32 {}
impl Value for (u64, u32) {}

/// A key and its value. A tuple of integers that are zero is memory that the allocator gives without touching it.
type Bucket<K, V> = (K, V);

/// Buckets of a growing table at first.
const FIRST: usize = 256;
/// A larger factor moves entries less often, and keeps more memory for the same entries.
const GROWTH: usize = 4;
/// Buckets that an insertion moves at least while the table grows: they are all moved long before it grows again.
const MOVED_MIN: usize = 8;

/// The buckets that hold the table at one size: `mask + 1` of them, a power of two, from `base`.
#[derive(Clone, Copy, Debug)]
struct Region {
    base: usize,
    mask: usize,
}

impl Region {
    const fn size(self) -> usize {
        self.mask + 1
    }

    /// The region of the next size, which follows this one; of no more than `last` buckets.
    fn next(self, last: usize) -> Self {
        Self { base: self.base + self.size(), mask: (self.size() * GROWTH).min(last) - 1 }
    }

    #[inline]
    const fn place(self, at: usize) -> usize {
        self.base + (at & self.mask)
    }
}

/// Entries that still are where they were before the table grew.
#[derive(Clone, Copy, Debug)]
struct Moving {
    region: Region,
    /// The next bucket to move. The one before it is empty: a run is moved whole, so that none is ever cut.
    next: usize,
    len: usize,
}

/// Open addressing with linear probing. A removal moves the following run up, so that a million inserts and removals
/// at full capacity leave the table as it was.
///
/// The memory of every size is reserved at the start, and not touched: keys are spread over all of the current size, so
/// a table that began at its last size would come to hold all of its memory for a few entries. When half is
/// full the size grows, and each insertion moves a few entries: no operation takes longer than a run of buckets.
#[derive(Clone, Debug)]
pub(crate) struct Table<K, V> {
    buckets: Box<[Bucket<K, V>]>,
    region: Region,
    moving: Option<Moving>,
    len: usize,
    capacity: usize,
    seed: u64,
    shared_seed: SharedSeed,
}

impl<K: Key, V: Value> Table<K, V> {
    /// Creates a table that grows up to `capacity` entries, at most two thirds full, hashed with `seed`.
    pub(crate) fn new(capacity: usize, seed: u64) -> Self {
        Self::with_first(capacity, FIRST, seed)
    }

    /// Creates a table that has its last size at once: for entries that are all known.
    pub(crate) fn fixed(capacity: usize, seed: u64) -> Self {
        Self::with_first(capacity, usize::MAX, seed)
    }

    /// `first`: a power of two, or more than the last size.
    fn with_first(capacity: usize, first: usize, seed: u64) -> Self {
        let last = (capacity + capacity / 2 + 1).next_power_of_two();
        let region = Region { base: 0, mask: first.min(last) - 1 };
        let mut largest = region;
        while largest.size() < last {
            largest = largest.next(last);
        }
        Self {
            buckets: vec![(K::EMPTY, V::default()); largest.base + last].into_boxed_slice(),
            region,
            moving: None,
            len: 0,
            capacity,
            seed,
            shared_seed: SharedSeed::from_u64(seed.rotate_left(32)),
        }
    }

    #[inline]
    fn hash(&self, key: &K) -> usize {
        key.hash(self.seed, &self.shared_seed)
    }

    /// Returns the bucket of `key`, which has this hash, whose value passes `is`, or the empty one for it, in `region`.
    #[inline]
    fn find_in(&self, region: Region, hash: usize, key: &K, is: impl Fn(&V) -> bool) -> Result<usize, usize> {
        let mut at = hash;
        loop {
            let place = region.place(at);
            let (found, value) = &self.buckets[place];
            if found == key && is(value) {
                return Ok(place);
            }
            if *found == K::EMPTY {
                return Err(place);
            }
            at = at.wrapping_add(1);
        }
    }

    /// Returns the bucket of `key`, which has this hash, whose value passes `is`, or the empty one for it.
    #[inline]
    fn find(&self, hash: usize, key: &K, is: impl Fn(&V) -> bool) -> Result<usize, usize> {
        let found = self.find_in(self.region, hash, key, &is);
        match (&self.moving, found) {
            (Some(moving), Err(_)) => self.find_in(moving.region, hash, key, is).or(found),
            (None, _) | (_, Ok(_)) => found,
        }
    }

    /// Returns the value of `key` and true, or `other` and false, in the same time unless the table is growing.
    #[inline]
    pub(crate) fn get_or(&self, key: &K, other: V) -> (V, bool) {
        if self.moving.is_some() {
            return self.get(key).map_or((other, false), |value| (*value, true));
        }
        let mut at = self.hash(key);
        loop {
            let (held, value) = &self.buckets[self.region.place(at)];
            let is_found = held == key;
            if is_found | (*held == K::EMPTY) {
                return ([other, *value][usize::from(is_found)], is_found);
            }
            at = at.wrapping_add(1);
        }
    }

    /// Returns the hash of `key`, and prefetches its bucket.
    #[inline]
    pub(crate) fn prefetch(&self, key: &K) -> Hash {
        let hash = self.hash(key);
        tt_simd::prefetch(&self.buckets[self.region.place(hash)]);
        Hash(hash)
    }

    /// The same as [`Table::get`] for a key with this hash.
    #[inline]
    pub(crate) fn get_hashed(&self, key: &K, Hash(hash): Hash) -> Option<&V> {
        self.find(hash, key, |_| true).ok().map(|at| &self.buckets[at].1)
    }

    #[inline]
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.find(self.hash(key), key, |_| true).ok().map(|at| &self.buckets[at].1)
    }

    /// Sets the value of `key`; returns `false` if the table is full.
    #[must_use]
    pub(crate) fn insert(&mut self, key: K, value: V) -> bool {
        self.move_some();
        match self.find(self.hash(&key), &key, |_| true) {
            Ok(at) => {
                self.buckets[at].1 = value;
                true
            }
            Err(at) => self.put(at, key, value),
        }
    }

    /// Fills the empty bucket at `at`; returns `false` if the table is full.
    #[inline]
    fn put(&mut self, at: usize, key: K, value: V) -> bool {
        if self.len == self.capacity {
            return false;
        }
        self.buckets[at] = (key, value);
        self.len += 1;
        self.grow();
        true
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let at = self.find(self.hash(key), key, |_| true).ok()?;
        Some(self.take(at))
    }

    /// Empties the bucket at `at`, which is in use.
    fn take(&mut self, at: usize) -> V {
        let value = self.buckets[at].1;
        let region = match &mut self.moving {
            Some(moving) if at < self.region.base => {
                moving.len -= 1;
                moving.region
            }
            Some(_) | None => self.region,
        };
        self.empty(region, at);
        self.len -= 1;
        value
    }

    /// Empties the bucket at `hole`, and moves the run that follows it up.
    fn empty(&mut self, region: Region, mut hole: usize) {
        let mut at = hole;
        loop {
            at = region.place(at + 1 - region.base);
            let candidate = self.buckets[at];
            if candidate.0 == K::EMPTY {
                break;
            }
            let from_home = at.wrapping_sub(region.place(self.hash(&candidate.0))) & region.mask;
            if from_home >= at.wrapping_sub(hole) & region.mask {
                self.buckets[hole] = candidate;
                hole = at;
            }
        }
        self.buckets[hole].0 = K::EMPTY;
    }

    /// Takes the next size if half is full and there is a larger one.
    #[inline]
    fn grow(&mut self) {
        let region = self.region;
        let is_largest = region.base + region.size() == self.buckets.len();
        if !is_largest && self.len * 2 >= region.size() && self.moving.is_none() {
            self.take_next_size(region);
        }
    }

    #[cold]
    fn take_next_size(&mut self, region: Region) {
        let empty = (0..region.size()).find(|at| self.buckets[region.place(*at)].0 == K::EMPTY);
        self.moving = Some(Moving { region, next: empty.map_or(0, |at| at + 1), len: self.len });
        self.region = region.next(self.buckets.len() - region.base - region.size());
    }

    /// Moves some of the entries that are where they were before the table grew, up to the end of a run.
    #[inline]
    fn move_some(&mut self) {
        if let Some(moving) = self.moving {
            self.move_more(moving);
        }
    }

    fn move_more(&mut self, mut moving: Moving) {
        for looked in 0.. {
            if moving.len == 0 {
                self.moving = None;
                return;
            }
            let from = moving.region.place(moving.next);
            moving.next += 1;
            let (key, value) = self.buckets[from];
            if key != K::EMPTY {
                self.buckets[from].0 = K::EMPTY;
                let (Ok(to) | Err(to)) = self.find_in(self.region, self.hash(&key), &key, |_| false);
                self.buckets[to] = (key, value);
                moving.len -= 1;
            } else if looked >= MOVED_MIN {
                break;
            }
        }
        self.moving = Some(moving);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::{Table, Value};
    use crate::shared::registry::fold;
    use proptest::prelude::*;
    use std::collections::HashMap;

    impl Value for u64 {}

    #[test]
    fn keys_spread_and_another_seed_spreads_them_otherwise() {
        let homes = |seed| {
            let (narrow, wide) = (Table::<u64, u64>::fixed(680, seed), Table::<[u64; 3], u64>::fixed(680, seed));
            let long = Table::<u128, u64>::fixed(680, seed);
            let each = |key: u64| [narrow.hash(&key), wide.hash(&[1, key, 0]), long.hash(&(u128::from(key) << 64))];
            (1..=1_000).map(|key| each(key).map(|hash| hash % 1_024)).collect::<std::vec::Vec<_>>()
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

    #[test]
    fn a_few_entries_stay_in_the_memory_of_a_few() {
        let mut table = Table::<u64, u64>::new(100_000, 7);
        for number in 1..=100_000 {
            assert!(table.insert(number, number));
            if number > 100 {
                assert_eq!(table.remove(&(number - 100)), Some(number - 100));
            }
        }
        let touched = table.buckets.iter().filter(|bucket| bucket.1 != 0).count();
        assert!((100..=256).contains(&touched), "{touched} buckets of {}", table.buckets.len());
        assert!((101..=100_000).all(|number| table.insert(number, 0)));
        assert!(table.moving.is_none() && table.region.size() == 262_144, "{:?} {:?}", table.moving, table.region);
    }

    #[test]
    fn no_insertion_moves_more_than_a_few_runs() {
        let (mut table, mut longest) = (Table::<u64, u64>::with_first(1_000_000, 8, 11), 0);
        for number in 1..=1_000_000_u64 {
            let before = table.moving.map_or(0, |moving| moving.len);
            assert!(table.insert(number.wrapping_mul(0x9E37_79B9_7F4A_7C15), number));
            longest = longest.max(before - table.moving.map_or(0, |moving| moving.len.min(before)));
        }
        assert_eq!(table.len(), 1_000_000);
        assert!((8..500).contains(&longest), "{longest} entries in one insertion");
    }

    proptest! {
        #[test]
        fn agrees_with_a_map_while_it_grows(
            operations in prop::collection::vec((0u8..8, 1u64..2_000, any::<u32>()), 0..4_000), seed: u64
        ) {
            let mut table = Table::<u64, u32>::with_first(1_500, 4, seed);
            let mut model = HashMap::new();
            for (operation, key, value) in operations {
                if operation < 5 {
                    let fits = model.len() < 1_500 || model.contains_key(&key);
                    prop_assert_eq!(table.insert(key, value), fits);
                    if fits { model.insert(key, value); }
                } else {
                    prop_assert_eq!(table.remove(&key), model.remove(&key));
                }
                let expected = model.get(&key).map_or((7, false), |value| (*value, true));
                prop_assert_eq!(table.get_or(&key, 7), expected);
                prop_assert_eq!(table.len(), model.len());
            }
            for key in 1..2_000 {
                prop_assert_eq!(table.get(&key), model.get(&key));
            }
            let live = table.buckets.iter().filter(|bucket| bucket.0 != 0).count();
            prop_assert_eq!(live, model.len(), "an entry is in two places");
        }

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
