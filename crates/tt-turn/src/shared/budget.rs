//! Budgets of responses for each source address.

use alloc::boxed::Box;
use core::net::IpAddr;
use core::sync::atomic::{AtomicU64, Ordering};

use tt_model::Nanos;

use super::registry::fold;

/// Buckets of a budget. Sources with the same bucket share its rate.
const BUCKETS: usize = 1 << 14;

/// A rate of responses to one source address, with a burst. An IPv6 source counts by its first 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Responses per second, sustained.
    pub per_second: u32,
    /// Responses at once, after an idle time.
    pub burst: u32,
}

impl Budget {
    /// No limit.
    pub const UNLIMITED: Self = Self { per_second: u32::MAX, burst: u32::MAX };
}

/// Buckets of one budget. Each contains the time at which it is full again, so that an unknown source needs no state.
#[derive(Debug)]
pub(crate) struct Budgets {
    buckets: Box<[AtomicU64]>,
    interval_ns: u64,
    depth_ns: u64,
}

impl Budgets {
    pub(crate) fn new(budget: Budget) -> Self {
        let unlimited = budget.per_second == u32::MAX;
        let interval_ns = Nanos::PER_SECOND / u64::from(budget.per_second.max(1));
        Self {
            buckets: (0..if unlimited { 0 } else { BUCKETS }).map(|_| AtomicU64::new(0)).collect(),
            interval_ns,
            depth_ns: if budget.per_second == 0 { 0 } else { interval_ns.saturating_mul(u64::from(budget.burst)) },
        }
    }

    /// Takes one response from `source`'s budget; returns `false` if it is used up.
    #[inline]
    pub(crate) fn spend(&self, now: Nanos, source: IpAddr, seed: u64) -> bool {
        if self.buckets.is_empty() {
            return true;
        }
        let key = match source {
            IpAddr::V4(ip) => u64::from(ip.to_bits()),
            IpAddr::V6(ip) => (ip.to_bits() >> 64) as u64,
        };
        let bucket = &self.buckets[fold(&[key, u64::from(source.is_ipv6())], seed) as usize % BUCKETS];
        let take = |full_at: u64| {
            let later = full_at.max(now.0).saturating_add(self.interval_ns);
            (later - now.0 <= self.depth_ns).then_some(later)
        };
        bucket.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, Budgets};
    use std::net::IpAddr;
    use tt_model::Nanos;

    #[test]
    fn burst_then_the_rate() {
        let budgets = Budgets::new(Budget { per_second: 10, burst: 5 });
        let source: IpAddr = [192, 0, 2, 1].into();
        let start = 1_000 * Nanos::PER_SECOND;
        let spend = |at_ms: u64| budgets.spend(Nanos(start + at_ms * 1_000_000), source, 9);
        assert_eq!((0..20).filter(|_| spend(0)).count(), 5);
        // 10,000 requests in each of three seconds get ten answers a second.
        assert_eq!((1..=30_000).filter(|step| spend(step / 10)).count(), 30);
    }

    #[test]
    fn bounds_of_the_range() {
        let source: IpAddr = [192, 0, 2, 1].into();
        assert!(!Budgets::new(Budget { per_second: 0, burst: 9 }).spend(Nanos(5), source, 1));
        assert!(Budgets::new(Budget::UNLIMITED).spend(Nanos(5), source, 1));
    }
}
