//! Map from hashed keys to small numbers, shared by threads.

use alloc::boxed::Box;
use core::hash::Hasher;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicU64, Ordering, fence};

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;
use zerocopy::FromZeros;

/// Entries of one shard, which is at most half full on average.
const SHARD_LEN: usize = 256;

/// Returns the seeded hash of some integers, never zero: a key of a [`Registry`].
#[inline]
pub(crate) fn fold(words: &[u64], seed: u64) -> u64 {
    let shared = SharedSeed::from_u64(seed);
    let mut hasher = FoldHasher::with_seed(seed.rotate_left(31), &shared);
    for word in words {
        hasher.write_u64(*word);
    }
    hasher.finish().max(1)
}

/// Result of [`Registry::adjust`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adjusted {
    /// The previous number; zero if the key was absent.
    From(u64),
    /// The key is new and its shard is full.
    Full,
}

/// Map from keys to numbers above zero. A writer locks a shard for some dozen nanoseconds; a reader takes no lock and
/// retries during a write.
#[derive(Debug)]
pub(crate) struct Registry {
    shards: Box<[Shard]>,
}

/// All zeros at first: the memory of shards that are never used is not touched.
#[derive(Debug, FromZeros)]
#[repr(C)]
struct Shard {
    /// Odd during a write.
    version: AtomicU64,
    /// Keeps the version away from the entries of the shard before. An alignment would have the allocator touch all
    /// memory.
    apart: [u64; 7],
    /// Zero if the entry is free.
    keys: [AtomicU64; SHARD_LEN],
    numbers: [AtomicU64; SHARD_LEN],
}

impl Shard {
    /// Returns the entry of `key`, or the free one for it; `None` if there is neither.
    #[inline]
    fn find(&self, key: u64) -> Option<(usize, bool)> {
        let home = key as usize % SHARD_LEN;
        for step in 0..SHARD_LEN {
            let at = (home + step) % SHARD_LEN;
            match self.keys[at].load(Ordering::Relaxed) {
                found if found == key => return Some((at, true)),
                0 => return Some((at, false)),
                _ => {}
            }
        }
        None
    }

    fn lock(&self) -> u64 {
        loop {
            let version = self.version.load(Ordering::Relaxed);
            let even = version & !1;
            let locked = self.version.compare_exchange_weak(even, even + 1, Ordering::Acquire, Ordering::Relaxed);
            if locked.is_ok() {
                // The writes that follow must not be seen before the odd version is.
                fence(Ordering::Release);
                return even;
            }
            spin_loop();
        }
    }

    fn unlock(&self, version: u64) {
        self.version.store(version + 2, Ordering::Release);
    }

    /// Frees an entry and moves the following run up.
    fn free(&self, place: usize) {
        let mut hole = place;
        for step in 1..SHARD_LEN {
            let at = (place + step) % SHARD_LEN;
            let key = self.keys[at].load(Ordering::Relaxed);
            if key == 0 {
                break;
            }
            let from_home = (at + SHARD_LEN - key as usize % SHARD_LEN) % SHARD_LEN;
            if from_home >= (at + SHARD_LEN - hole) % SHARD_LEN {
                self.keys[hole].store(key, Ordering::Relaxed);
                self.numbers[hole].store(self.numbers[at].load(Ordering::Relaxed), Ordering::Relaxed);
                hole = at;
            }
        }
        self.keys[hole].store(0, Ordering::Relaxed);
    }
}

impl Registry {
    /// Creates a registry for about `entries` keys.
    pub(crate) fn new(entries: u32) -> Self {
        let shards = (entries as usize * 2).div_ceil(SHARD_LEN).next_power_of_two();
        let zeroed = <[Shard]>::new_box_zeroed_with_elems(shards);
        // Without memory the process ends here, as in any other allocation.
        Self { shards: zeroed.unwrap_or_else(|_| (0..shards).map(|_| Shard::new_zeroed()).collect()) }
    }

    #[inline]
    fn shard(&self, key: u64) -> &Shard {
        &self.shards[(key >> 32) as usize % self.shards.len()]
    }

    /// Returns the number of `key`.
    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<u64> {
        let shard = self.shard(key);
        loop {
            let version = shard.version.load(Ordering::Acquire);
            let found = shard.find(key).filter(|(_, present)| *present);
            let number = found.map(|(at, _)| shard.numbers[at].load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            if version.is_multiple_of(2) && shard.version.load(Ordering::Relaxed) == version {
                return number.filter(|number| *number != 0);
            }
            spin_loop();
        }
    }

    /// Replaces the number of `key` by `change` of it. Zero removes the key.
    pub(crate) fn adjust(&self, key: u64, change: impl FnOnce(u64) -> u64) -> Adjusted {
        let shard = self.shard(key);
        let version = shard.lock();
        let adjusted = match shard.find(key) {
            None => Adjusted::Full,
            Some((at, present)) => {
                let before = if present { shard.numbers[at].load(Ordering::Relaxed) } else { 0 };
                match change(before) {
                    0 if present => shard.free(at),
                    0 => {}
                    after => {
                        shard.numbers[at].store(after, Ordering::Relaxed);
                        shard.keys[at].store(key, Ordering::Relaxed);
                    }
                }
                Adjusted::From(before)
            }
        };
        shard.unlock(version);
        adjusted
    }
}

#[cfg(test)]
mod tests {
    use super::{Adjusted, Registry, fold};
    use std::collections::HashMap;
    use std::sync::Arc;
    use std::thread;
    use std::vec::Vec;

    #[test]
    fn agrees_with_a_map_through_churn() {
        let registry = Registry::new(100);
        let mut model: HashMap<u64, u64> = HashMap::new();
        let mut state = 1u64;
        for _ in 0..100_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = fold(&[state >> 60 << 4 | state >> 33 & 15], 3);
            let number = (state >> 40) % 3;
            let before = model.get(&key).copied().unwrap_or(0);
            assert_eq!(registry.adjust(key, |_| number), Adjusted::From(before));
            if number == 0 {
                model.remove(&key)
            } else {
                model.insert(key, number)
            };
            assert_eq!(registry.get(key), model.get(&key).copied());
        }
    }

    #[test]
    fn four_threads_count_exactly() {
        let registry = Arc::new(Registry::new(64));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let registry = Arc::clone(&registry);
                thread::spawn(move || {
                    for round in 0..20_000u64 {
                        registry.adjust(fold(&[round % 32], 1), |number| number + 1);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("the thread ends");
        }
        for key in 0..32 {
            assert_eq!(registry.get(fold(&[key], 1)), Some(4 * 20_000 / 32));
        }
    }
}
