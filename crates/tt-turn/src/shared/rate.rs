//! Token bucket: a rate with a burst.

use core::sync::atomic::{AtomicU64, Ordering};

use tt_model::Nanos;

/// Fractional bits of the time per unit.
const POINT: u32 = 24;

/// A rate of units per second. A bucket is one number: the time at which it is full again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// Nanoseconds per unit, fixed-point; zero is unlimited.
    unit_ns: u64,
    /// Time in which an empty bucket fills.
    depth_ns: u64,
}

impl Rate {
    /// No limit.
    pub(crate) const UNLIMITED: Self = Self { unit_ns: 0, depth_ns: u64::MAX };

    /// Returns the rate of `per_second` units, of which `burst` may pass at once after an idle time. A rate of zero
    /// lets nothing pass.
    pub(crate) const fn new(per_second: u64, burst: u64) -> Self {
        if per_second == 0 {
            return Self { unit_ns: u64::MAX, depth_ns: 0 };
        }
        let depth_ns = (burst as u128 * Nanos::PER_SECOND as u128).div_ceil(per_second as u128);
        let depth_ns = if depth_ns > u64::MAX as u128 { u64::MAX } else { depth_ns as u64 };
        Self { unit_ns: (Nanos::PER_SECOND << POINT) / per_second, depth_ns }
    }

    pub(crate) const fn is_unlimited(self) -> bool {
        self.unit_ns == 0
    }

    const fn cost_ns(self, units: u64) -> u64 {
        let cost_ns = (units as u128 * self.unit_ns as u128) >> POINT;
        if cost_ns > u64::MAX as u128 { u64::MAX } else { cost_ns as u64 }
    }

    /// Returns when a bucket that is full at `full_at` is full after `units` more, or `None` if it has fewer.
    pub(crate) const fn take(self, full_at: u64, now: Nanos, units: u64) -> Option<u64> {
        let start = if full_at > now.0 { full_at } else { now.0 };
        let later = start.saturating_add(self.cost_ns(units));
        if later - now.0 <= self.depth_ns { Some(later) } else { None }
    }

    /// As [`Rate::take`], but more units than a bucket holds pass if it is full.
    pub(crate) const fn take_or_owe(self, full_at: u64, now: Nanos, units: u64) -> Option<u64> {
        if full_at <= now.0 {
            return Some(now.0.saturating_add(self.cost_ns(units)));
        }
        self.take(full_at, now, units)
    }

    /// Takes `units` from a bucket of several workers; returns `false` if it has fewer.
    #[inline]
    pub(crate) fn spend(self, bucket: &AtomicU64, now: Nanos, units: u64) -> bool {
        let take = |full_at| self.take(full_at, now, units);
        bucket.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// As [`Rate::spend`], but more units than a bucket holds pass if it is full.
    #[inline]
    pub(crate) fn spend_or_owe(self, bucket: &AtomicU64, now: Nanos, units: u64) -> bool {
        self.spend_leaving(bucket, now, units, 0)
    }

    /// As [`Rate::spend_or_owe`], but leaves `rest_ns` of an empty bucket's time for others.
    #[inline]
    pub(crate) fn spend_leaving(self, bucket: &AtomicU64, now: Nanos, units: u64, rest_ns: u64) -> bool {
        let most_ns = self.depth_ns.saturating_sub(rest_ns);
        let take = |full_at| {
            self.take_or_owe(full_at, now, units).filter(|later| full_at <= now.0 || later - now.0 <= most_ns)
        };
        self.is_unlimited() || bucket.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Adds `units` to a bucket in any case, and returns whether it had them. It owes one bucket at most.
    #[inline]
    pub(crate) fn note(self, bucket: &AtomicU64, now: Nanos, units: u64) -> bool {
        let later = |full_at: u64| full_at.max(now.0).saturating_add(self.cost_ns(units));
        let most = now.0.saturating_add(self.depth_ns.saturating_mul(2));
        let noted = bucket.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |full_at| Some(later(full_at).min(most)));
        noted.is_ok_and(|full_at| later(full_at) - now.0 <= self.depth_ns)
    }

    /// Undoes [`Rate::spend`] or [`Rate::spend_or_owe`].
    pub(crate) fn refund(self, bucket: &AtomicU64, units: u64) {
        if !self.is_unlimited() {
            bucket.fetch_sub(self.cost_ns(units), Ordering::Relaxed);
        }
    }
}
