//! Budgets of responses: for each source address, for each user, and for all sources together.

use alloc::boxed::Box;
use core::net::IpAddr;
use core::sync::atomic::{AtomicU64, Ordering};

use tt_model::Nanos;

use super::rate::Rate;
use super::registry::fold;

/// Buckets of a budget. Keys with the same bucket share its rate.
const BUCKETS: usize = 1 << 14;

/// A rate of responses, or of their bytes, with a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Units per second, sustained.
    pub per_second: u32,
    /// Units at once, after an idle time.
    pub burst: u32,
}

impl Budget {
    /// No limit.
    pub const UNLIMITED: Self = Self { per_second: u32::MAX, burst: u32::MAX };

    fn rate(self) -> Rate {
        Rate::new(self.per_second.into(), self.burst.into())
    }

    fn is_unlimited(self) -> bool {
        self.per_second == u32::MAX
    }
}

/// Buckets of one budget. Each contains the time at which it is full again, so that an unknown source needs no state.
#[derive(Debug)]
pub(crate) struct Budgets {
    buckets: Box<[AtomicU64]>,
    rate: Rate,
}

impl Budgets {
    pub(crate) fn new(budget: Budget) -> Self {
        let buckets = if budget.is_unlimited() { 0 } else { BUCKETS };
        Self { buckets: (0..buckets).map(|_| AtomicU64::new(0)).collect(), rate: budget.rate() }
    }

    /// Returns the budget of `next`, with what was taken from this one.
    pub(crate) fn succeeded_by(&self, next: Budget) -> Self {
        let next = Self::new(next);
        copy(&self.buckets, &next.buckets);
        next
    }

    /// Returns whether every response passes, so that no key needs to be hashed.
    #[inline]
    pub(crate) fn is_unlimited(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Takes `units` from the bucket of a hashed key; returns `false` if it has fewer.
    #[inline]
    pub(crate) fn spend(&self, now: Nanos, key: u64, units: u64) -> bool {
        self.is_unlimited() || self.rate.spend(&self.buckets[key as usize % BUCKETS], now, units)
    }
}

/// The part of error responses that exceeds three times their requests, in bytes.
///
/// Below the total rate no source has a limit. Above it, each source has its own budget.
#[derive(Debug)]
pub(crate) struct ExcessBudget {
    total: Option<Rate>,
    total_full_at: AtomicU64,
    sources: Budgets,
}

impl ExcessBudget {
    pub(crate) fn new(total: Budget, per_source: Budget) -> Self {
        Self {
            total: Some(total).filter(|total| !total.is_unlimited()).map(Budget::rate),
            total_full_at: AtomicU64::new(0),
            sources: Budgets::new(per_source),
        }
    }

    /// As [`Budgets::succeeded_by`].
    pub(crate) fn succeeded_by(&self, total: Budget, per_source: Budget) -> Self {
        let total_full_at = AtomicU64::new(self.total_full_at.load(Ordering::Relaxed));
        Self { total_full_at, sources: self.sources.succeeded_by(per_source), ..Self::new(total, per_source) }
    }

    /// Takes `bytes` from the total, or from the budget of a source by its hashed key; returns `false` if neither has
    /// them.
    pub(crate) fn spend(&self, now: Nanos, key: u64, bytes: u64) -> bool {
        let Some(total) = self.total else { return true };
        total.spend(&self.total_full_at, now, bytes) || self.sources.spend(now, key, bytes)
    }
}

/// Copies buckets, if there are as many.
fn copy(from: &[AtomicU64], to: &[AtomicU64]) {
    if from.len() == to.len() {
        from.iter().zip(to).for_each(|(from, to)| to.store(from.load(Ordering::Relaxed), Ordering::Relaxed));
    }
}

/// Returns the hashed key of a source: an IPv4 address, or the first `ipv6_prefix_bits` of an IPv6 address.
#[inline]
pub(crate) fn source_key(source: IpAddr, ipv6_prefix_bits: u8, seed: u64) -> u64 {
    match source {
        IpAddr::V4(ip) => fold(&[u64::from(ip.to_bits()), 0], seed),
        IpAddr::V6(ip) => {
            let bits = ip.to_bits() & prefix_mask(ipv6_prefix_bits);
            fold(&[(bits >> 64) as u64, 1, bits as u64], seed)
        }
    }
}

/// Returns 128 bits of which the topmost `bits` are set.
const fn prefix_mask(bits: u8) -> u128 {
    match bits {
        0 => 0,
        1..128 => u128::MAX << (128 - bits),
        128.. => u128::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, Budgets, ExcessBudget, source_key};
    use std::net::IpAddr;
    use tt_model::Nanos;

    const START: u64 = 1_000 * Nanos::PER_SECOND;

    #[test]
    fn burst_then_the_rate() {
        let budgets = Budgets::new(Budget { per_second: 10, burst: 5 });
        let spend = |at_ms: u64| budgets.spend(Nanos(START + at_ms * 1_000_000), 9, 1);
        assert_eq!((0..20).filter(|_| spend(0)).count(), 5);
        // 10,000 requests in each of three seconds get ten answers a second.
        assert_eq!((1..=30_000).filter(|step| spend(step / 10)).count(), 30);
    }

    #[test]
    fn bounds_of_the_range() {
        assert!(!Budgets::new(Budget { per_second: 0, burst: 9 }).spend(Nanos(5), 1, 1));
        assert!(Budgets::new(Budget::UNLIMITED).spend(Nanos(5), 1, 1));
    }

    #[test]
    fn sources_have_limits_only_above_the_total() {
        let excess =
            ExcessBudget::new(Budget { per_second: 1_000, burst: 1_000 }, Budget { per_second: 100, burst: 200 });
        let taken =
            |key, at_ms: u64| (0..500).filter(|_| excess.spend(Nanos(START + at_ms * 1_000_000), key, 10)).count() * 10;
        assert_eq!(taken(1, 0), 1_200, "the total, and its own");
        assert_eq!((taken(2, 0), taken(3, 0)), (200, 200), "their own");
        assert_eq!(taken(1, 500), 550, "half a second of both");
        let unlimited = ExcessBudget::new(Budget::UNLIMITED, Budget { per_second: 0, burst: 0 });
        assert!(unlimited.spend(Nanos(START), 1, u64::MAX));
    }

    #[test]
    fn an_ipv6_source_is_its_prefix() {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        let key = |text: &str, bits| source_key(ip(text), bits, 7);
        assert_eq!(key("2001:db8::1", 64), key("2001:db8:0:0:ffff::", 64));
        assert_ne!(key("2001:db8::1", 64), key("2001:db8:0:1::1", 64));
        assert_eq!(key("2001:db8::1", 48), key("2001:db8:0:1::1", 48));
        assert_ne!(key("2001:db8::1", 128), key("2001:db8::2", 128));
        assert_eq!(key("2001:db8::1", 0), key("fe80::1", 0));
        assert_ne!(key("192.0.2.1", 0), key("192.0.2.2", 0));
    }
}
