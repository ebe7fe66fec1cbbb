//! The number of connections of each source address, over all workers.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::RejectReason;
use crate::section::StreamLimits;

/// Connections by source. Used when a connection opens, is established and closes, never per message.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    connections: u32,
    /// Holds sources with connections only, so the limit of connections bounds it.
    by_source: HashMap<u128, OfSource>,
}

#[derive(Clone, Copy, Debug, Default)]
struct OfSource {
    connections: u32,
    half_open: u32,
}

impl Sources {
    /// Counts a new, half-open connection of `source`.
    ///
    /// # Errors
    /// The limit that it would exceed; then it is not counted.
    pub(super) fn admit(&self, source: IpAddr, limits: &StreamLimits) -> Result<(), RejectReason> {
        let mut held = self.held();
        if held.connections >= limits.connections_max {
            return Err(RejectReason::Connections);
        }
        let key = key(source);
        let of = held.by_source.get(&key).copied().unwrap_or_default();
        if of.half_open >= limits.half_open_per_source {
            return Err(RejectReason::SourceHalfOpen);
        }
        if of.connections >= limits.connections_per_source {
            return Err(RejectReason::SourceConnections);
        }
        held.connections += 1;
        held.by_source.insert(key, OfSource { connections: of.connections + 1, half_open: of.half_open + 1 });
        Ok(())
    }

    /// Counts the first message on a connection of `source`.
    pub(super) fn establish(&self, source: IpAddr) {
        if let Some(of) = self.held().by_source.get_mut(&key(source)) {
            of.half_open = of.half_open.saturating_sub(1);
        }
    }

    /// Counts the end of a connection of `source`.
    pub(super) fn leave(&self, source: IpAddr, was_half_open: bool) {
        let mut held = self.held();
        held.connections = held.connections.saturating_sub(1);
        let key = key(source);
        let Some(of) = held.by_source.get_mut(&key) else { return };
        of.connections = of.connections.saturating_sub(1);
        of.half_open = of.half_open.saturating_sub(u32::from(was_half_open));
        if of.connections == 0 {
            held.by_source.remove(&key);
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns an IPv4 address, or the first 64 bits of an IPv6 address: the prefix of one subscriber.
fn key(source: IpAddr) -> u128 {
    match source.to_canonical() {
        IpAddr::V4(ip) => u128::from(ip.to_bits()),
        IpAddr::V6(ip) => ip.to_bits() >> 64 << 64 | 1 << 63,
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
        let (sources, limits) = (Sources::default(), limits());
        let [one, two, three] = ["192.0.2.1", "2001:db8::1", "192.0.2.3"].map(|ip| ip.parse::<IpAddr>().unwrap());
        let same_prefix: IpAddr = "2001:db8::2".parse().unwrap();
        for _ in 0..2 {
            sources.admit(one, &limits).unwrap();
        }
        assert_eq!(sources.admit(one, &limits), Err(RejectReason::SourceHalfOpen));
        sources.establish(one);
        sources.admit(one, &limits).unwrap();
        sources.establish(one);
        sources.establish(one);
        assert_eq!(sources.admit(one, &limits), Err(RejectReason::SourceConnections));
        sources.admit(two, &limits).unwrap();
        sources.admit(same_prefix, &limits).unwrap();
        assert_eq!(sources.admit(three, &limits), Err(RejectReason::Connections));
        sources.leave(one, false);
        assert_eq!(sources.admit(two, &limits), Err(RejectReason::SourceHalfOpen), "two addresses of one network");
        sources.admit(three, &limits).unwrap();
        for (source, was_half_open) in [(one, false), (one, false), (two, true), (same_prefix, true), (three, true)] {
            sources.leave(source, was_half_open);
        }
        assert!(sources.held().by_source.is_empty() && sources.held().connections == 0);
    }
}
