//! The number of connections of each source address, over all workers.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use turn_config::StreamLimits;

use super::RejectReason;

/// Sources that are looked at for one with a half-open connection of the worker that needs room.
const MOST_HALF_OPEN: usize = 8;

/// Connections by source. Used when a connection opens, is established and closes, never per message.
#[derive(Debug)]
pub(crate) struct Sources {
    held: Mutex<Held>,
    ipv6_prefix_bits: AtomicU8,
}

#[derive(Debug, Default)]
struct Held {
    connections: u32,
    /// Holds sources with connections only, so the limit of connections bounds it.
    by_source: HashMap<u128, OfSource>,
    /// Sources with half-open connections: by their number, then those that have had it longest last.
    by_half_open: BTreeSet<(u32, Reverse<u64>, u128)>,
    /// Changes of a number of half-open connections.
    changes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct OfSource {
    connections: u32,
    half_open: u32,
    /// The change that led to this number of half-open connections.
    since: u64,
}

impl Sources {
    pub(crate) fn new(ipv6_prefix_bits: u8) -> Self {
        Self { held: Mutex::default(), ipv6_prefix_bits: ipv6_prefix_bits.into() }
    }

    /// Counts IPv6 sources by prefixes of this length from now on. A connection keeps the key that it was counted with.
    pub(crate) fn set_ipv6_prefix_bits(&self, bits: u8) {
        self.ipv6_prefix_bits.store(bits, Ordering::Relaxed);
    }

    /// Returns the key of a source: an IPv4 address, or the first bits of an IPv6 address.
    pub(super) fn key(&self, source: IpAddr) -> u128 {
        match source.to_canonical() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
            IpAddr::V6(ip) => {
                let rest = 128 - u32::from(self.ipv6_prefix_bits.load(Ordering::Relaxed).min(128));
                ip.to_bits().checked_shr(rest).unwrap_or(0).checked_shl(rest).unwrap_or(0)
            }
        }
    }

    /// Counts a new, half-open connection of `source`.
    ///
    /// # Errors
    /// The limit that it would exceed; then it is not counted.
    pub(super) fn admit(&self, source: u128, limits: &StreamLimits) -> Result<(), RejectReason> {
        let mut held = self.held();
        let of = held.of(source);
        if of.connections >= limits.connections_per_source {
            return Err(RejectReason::SourceConnections);
        }
        if of.half_open >= limits.half_open_per_source {
            return Err(RejectReason::SourceHalfOpen);
        }
        if held.connections >= limits.connections_max {
            return Err(RejectReason::Connections);
        }
        held.connections += 1;
        held.set(source, OfSource { connections: of.connections + 1, half_open: of.half_open + 1, ..of });
        Ok(())
    }

    /// Counts a half-open connection again that has left, whatever the limits are.
    pub(super) fn restore(&self, source: u128) {
        let mut held = self.held();
        held.connections += 1;
        let of = held.of(source);
        held.set(source, OfSource { connections: of.connections + 1, half_open: of.half_open + 1, ..of });
    }

    /// Counts the first message on a connection of `source`.
    pub(super) fn establish(&self, source: u128) {
        let mut held = self.held();
        let of = held.of(source);
        held.set(source, OfSource { half_open: of.half_open.saturating_sub(1), ..of });
    }

    /// Counts the end of a connection of `source`.
    pub(super) fn leave(&self, source: u128, was_half_open: bool) {
        let mut held = self.held();
        held.connections = held.connections.saturating_sub(1);
        let of = held.of(source);
        let half_open = of.half_open.saturating_sub(u32::from(was_half_open));
        held.set(source, OfSource { connections: of.connections.saturating_sub(1), half_open, ..of });
    }

    /// Returns the sources with most half-open connections, most first; of those with as many, the one first that has had
    /// them longest, whatever its address.
    pub(super) fn with_most_half_open(&self) -> Vec<u128> {
        self.held().by_half_open.iter().rev().take(MOST_HALF_OPEN).map(|(.., source)| *source).collect()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn of(&self, source: u128) -> OfSource {
        self.by_source.get(&source).copied().unwrap_or_default()
    }

    fn set(&mut self, source: u128, of: OfSource) {
        let before = self.of(source);
        let mut of = of;
        if of.half_open != before.half_open {
            self.changes += 1;
            of.since = self.changes;
            self.by_half_open.remove(&(before.half_open, Reverse(before.since), source));
            if of.half_open > 0 {
                self.by_half_open.insert((of.half_open, Reverse(of.since), source));
            }
        }
        if of.connections == 0 {
            self.by_source.remove(&source);
        } else {
            self.by_source.insert(source, of);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> StreamLimits {
        StreamLimits {
            half_open_per_source: 2,
            connections_per_source: 3,
            connections_max: 5,
            ..StreamLimits::default()
        }
    }

    #[test]
    fn each_limit_rejects_under_its_name_and_is_released() {
        let (sources, limits) = (Sources::new(64), limits());
        let [one, two, three] = ["192.0.2.1", "2001:db8::1", "192.0.2.3"].map(|ip| sources.key(ip.parse().unwrap()));
        let same_prefix = sources.key("2001:db8::2".parse().unwrap());
        for _ in 0..2 {
            sources.admit(one, &limits).unwrap();
        }
        assert_eq!(sources.admit(one, &limits), Err(RejectReason::SourceHalfOpen));
        assert_eq!(sources.with_most_half_open(), [one]);
        sources.establish(one);
        sources.admit(one, &limits).unwrap();
        sources.establish(one);
        sources.establish(one);
        assert_eq!(sources.admit(one, &limits), Err(RejectReason::SourceConnections));
        sources.admit(two, &limits).unwrap();
        sources.admit(same_prefix, &limits).unwrap();
        assert_eq!(sources.with_most_half_open(), [two], "without the one that has none");
        assert_eq!(sources.admit(three, &limits), Err(RejectReason::Connections));
        sources.leave(one, false);
        assert_eq!(sources.admit(two, &limits), Err(RejectReason::SourceHalfOpen), "two addresses of one network");
        sources.admit(three, &limits).unwrap();
        for (source, was_half_open) in [(one, false), (one, false), (two, true), (same_prefix, true), (three, true)] {
            sources.leave(source, was_half_open);
        }
        let held = sources.held();
        assert!(held.by_source.is_empty() && held.by_half_open.is_empty() && held.connections == 0);
    }

    #[test]
    fn of_sources_with_as_many_the_one_that_waits_longest_is_first() {
        let (sources, limits) = (Sources::new(64), limits());
        let all = ["192.0.2.2", "2001:db8::1", "192.0.2.1", "203.0.113.1"].map(|ip| sources.key(ip.parse().unwrap()));
        for source in all {
            sources.admit(source, &limits).unwrap();
        }
        assert_eq!(sources.with_most_half_open(), all);
        sources.leave(all[0], true);
        sources.admit(all[0], &limits).unwrap();
        sources.admit(all[2], &limits).unwrap();
        assert_eq!(sources.with_most_half_open(), [all[2], all[1], all[3], all[0]]);
    }

    #[test]
    fn a_source_is_an_ipv4_address_or_a_prefix_of_the_configured_length() {
        let keys = |bits: u8| {
            let sources = Sources::new(bits);
            ["2001:db8:0:1::1", "2001:db8:0:1::2", "2001:db8:0:2::1", "192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"]
                .map(|ip| sources.key(ip.parse().unwrap()))
        };
        for (bits, are_same) in [(128, [false, false]), (64, [true, false]), (48, [true, true])] {
            let [first, host, network, v4, mapped, other] = keys(bits);
            assert_eq!([first == host, first == network], are_same, "{bits}");
            assert!(v4 == mapped && v4 != other);
        }
    }
}
