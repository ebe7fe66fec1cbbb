//! Bandwidth of each user with an allocation.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering};

use tt_model::Nanos;

use super::registry::{Adjusted, Registry};
use crate::slab::NO_INDEX;

/// Fractional bits of the time per byte.
const POINT: u32 = 24;
/// Depth of a bucket: one second's worth.
const DEPTH_NS: u64 = Nanos::PER_SECOND;

/// Buckets of all users. Each contains the time at which it is full again.
#[derive(Debug)]
pub(crate) struct Meters {
    /// Index of a user's bucket, plus one.
    places: Registry,
    full_at: Box<[AtomicU64]>,
    /// One bit for each bucket, set while it is in use.
    taken: Box<[AtomicU64]>,
    /// Nanoseconds per byte, fixed-point.
    byte_ns: u64,
}

impl Meters {
    /// Creates buckets for `users` with `bytes_per_second` each; `u64::MAX` is unlimited and needs none.
    pub(crate) fn new(bytes_per_second: u64, users: u32) -> Self {
        let users = if bytes_per_second == u64::MAX { 0 } else { users };
        Self {
            places: Registry::new(users),
            full_at: (0..users).map(|_| AtomicU64::new(0)).collect(),
            taken: (0..users.div_ceil(u64::BITS)).map(|_| AtomicU64::new(0)).collect(),
            byte_ns: (Nanos::PER_SECOND << POINT) / bytes_per_second.max(1),
        }
    }

    /// Returns the bucket of a user, or [`NO_INDEX`] if there is no limit.
    pub(crate) fn place(&self, user: u64) -> u32 {
        if self.full_at.is_empty() {
            NO_INDEX
        } else {
            self.places.get(user).map_or(NO_INDEX, |place| (place - 1) as u32)
        }
    }

    /// Assigns an empty bucket to a user; returns `false` if there is none. It is empty so that a user gains nothing
    /// by ending and making allocations.
    pub(crate) fn enter(&self, user: u64, now: Nanos) -> bool {
        if self.full_at.is_empty() {
            return true;
        }
        let full_at = now.0.saturating_add(DEPTH_NS);
        let Some(place) = self.take_place(full_at) else { return false };
        if self.places.adjust(user, |_| u64::from(place) + 1) == Adjusted::Full {
            self.free_place(place);
            return false;
        }
        true
    }

    /// Frees a user's bucket.
    pub(crate) fn leave(&self, user: u64) {
        let mut freed = 0;
        self.places.adjust(user, |place| {
            freed = place;
            0
        });
        if freed > 0 {
            self.free_place((freed - 1) as u32);
        }
    }

    /// Takes `bytes` from a bucket; returns `false` if it has fewer. A payload larger than the bucket passes if the
    /// bucket is full.
    #[inline]
    pub(crate) fn spend(&self, place: u32, now: Nanos, bytes: usize) -> bool {
        let Some(bucket) = self.full_at.get(place as usize) else { return true };
        let cost_ns = (bytes as u128 * u128::from(self.byte_ns)) >> POINT;
        let cost_ns = u64::try_from(cost_ns).unwrap_or(u64::MAX);
        let take = |full_at: u64| {
            let later = full_at.max(now.0).saturating_add(cost_ns);
            (full_at <= now.0 || later - now.0 <= DEPTH_NS).then_some(later)
        };
        bucket.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    fn take_place(&self, full_at: u64) -> Option<u32> {
        for (word, bits) in (0u32..).zip(&self.taken) {
            let first = word * u64::BITS;
            let first_free = |taken: u64| {
                let bit = taken.trailing_ones();
                ((first + bit) < self.full_at.len() as u32 && bit < u64::BITS).then(|| taken | 1 << bit)
            };
            if let Ok(before) = bits.fetch_update(Ordering::Relaxed, Ordering::Relaxed, first_free) {
                let place = first + before.trailing_ones();
                if let Some(bucket) = self.full_at.get(place as usize) {
                    bucket.store(full_at, Ordering::Relaxed);
                }
                return Some(place);
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
mod tests {
    use super::Meters;
    use crate::slab::NO_INDEX;
    use tt_model::Nanos;

    const START_S: u64 = 1_000;

    fn at_ms(ms: u64) -> Nanos {
        Nanos(START_S * Nanos::PER_SECOND + ms * 1_000_000)
    }

    #[test]
    fn a_second_at_once_and_then_the_rate() {
        let meters = Meters::new(100_000, 2);
        assert!(meters.enter(7, at_ms(0)) && meters.enter(9, at_ms(0)));
        let (one, two) = (meters.place(7), meters.place(9));
        assert!(!meters.spend(one, at_ms(9), 1_000), "it starts empty");
        let mut carried = 0;
        // After a silence twice the rate for a minute: 1,000 bytes each 5 ms.
        for step in 400..12_400 {
            carried += u64::from(meters.spend(one, at_ms(step * 5), 1_000));
            assert!(!step.is_multiple_of(2) || meters.spend(two, at_ms(step * 5), 1_000), "another user's");
        }
        assert!((6_099..=6_100).contains(&carried), "{carried}");
        // Leaving and entering again gives no additional second.
        meters.leave(7);
        assert!(meters.enter(7, at_ms(62_000)));
        assert!(!meters.spend(meters.place(7), at_ms(62_009), 1_000));
        assert!(meters.spend(meters.place(7), at_ms(62_010), 1_000));
    }

    #[test]
    fn what_is_larger_than_the_bucket_goes_when_it_is_full() {
        let meters = Meters::new(1_000, 1);
        assert!(meters.enter(7, at_ms(0)));
        assert!(!meters.spend(0, at_ms(999), 5_000));
        assert!(meters.spend(0, at_ms(1_000), 5_000));
        assert!(!meters.spend(0, at_ms(4_999), 1), "four seconds' worth is owed");
        assert!(!meters.spend(0, at_ms(5_999), 5_000));
        assert!(meters.spend(0, at_ms(6_000), 5_000));
        assert!(meters.spend(NO_INDEX, at_ms(0), 65_535), "nobody's");
    }

    #[test]
    fn places_come_back() {
        let meters = Meters::new(1_000, 70);
        for round in 0..3 {
            assert!((1..=70).all(|user| meters.enter(user, at_ms(0))));
            assert!(!meters.enter(71, at_ms(0)), "{round}");
            let mut places: std::vec::Vec<_> = (1..=70).map(|user| meters.place(user)).collect();
            places.sort_unstable();
            assert!(places.into_iter().eq(0..70));
            (1..=70).for_each(|user| meters.leave(user));
            assert_eq!(meters.place(1), NO_INDEX);
        }
        let unbounded = Meters::new(u64::MAX, 70);
        assert!(unbounded.enter(1, at_ms(0)));
        assert_eq!(unbounded.place(1), NO_INDEX);
    }
}
