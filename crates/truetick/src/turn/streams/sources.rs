//! How many connections each source has, over all workers.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Refusal, StreamLimits};

/// Connections by source. Asked when a connection begins, is heard first, and ends; never for a message.
#[derive(Debug, Default)]
pub(in crate::turn) struct Sources {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    connections: u32,
    /// Only sources that have a connection are in it, so that it is bounded as they are.
    by_source: HashMap<u128, OfSource>,
}

#[derive(Clone, Copy, Debug, Default)]
struct OfSource {
    connections: u32,
    half_open: u32,
}

impl Sources {
    /// Counts a connection of `source` that has said nothing.
    ///
    /// # Errors
    /// The bound that it would pass; then it is not counted.
    pub(super) fn admit(&self, source: IpAddr, limits: &StreamLimits) -> Result<(), Refusal> {
        let mut held = self.held();
        if held.connections >= limits.connections_max {
            return Err(Refusal::Connections);
        }
        let key = key(source);
        let of = held.by_source.get(&key).copied().unwrap_or_default();
        if of.half_open >= limits.half_open_per_source {
            return Err(Refusal::SourceHalfOpen);
        }
        if of.connections >= limits.connections_per_source {
            return Err(Refusal::SourceConnections);
        }
        held.connections += 1;
        held.by_source.insert(key, OfSource { connections: of.connections + 1, half_open: of.half_open + 1 });
        Ok(())
    }

    /// A connection of `source` has brought its first message.
    pub(super) fn hear(&self, source: IpAddr) {
        if let Some(of) = self.held().by_source.get_mut(&key(source)) {
            of.half_open = of.half_open.saturating_sub(1);
        }
    }

    /// A connection of `source` is over.
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

/// An IPv4 address, or the first 64 bits of an IPv6 one: what one customer of a network has.
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
    fn each_bound_refuses_under_its_name_and_is_given_back() {
        let (sources, limits) = (Sources::default(), limits());
        let [one, two, three] = ["192.0.2.1", "2001:db8::1", "192.0.2.3"].map(|ip| ip.parse::<IpAddr>().unwrap());
        let neighbour: IpAddr = "2001:db8::2".parse().unwrap();
        for _ in 0..2 {
            sources.admit(one, &limits).unwrap();
        }
        assert_eq!(sources.admit(one, &limits), Err(Refusal::SourceHalfOpen));
        sources.hear(one);
        sources.admit(one, &limits).unwrap();
        sources.hear(one);
        sources.hear(one);
        assert_eq!(sources.admit(one, &limits), Err(Refusal::SourceConnections));
        sources.admit(two, &limits).unwrap();
        sources.admit(neighbour, &limits).unwrap();
        assert_eq!(sources.admit(three, &limits), Err(Refusal::Connections));
        sources.leave(one, false);
        assert_eq!(sources.admit(two, &limits), Err(Refusal::SourceHalfOpen), "two addresses of one network");
        sources.admit(three, &limits).unwrap();
        for (source, was_half_open) in [(one, false), (one, false), (two, true), (neighbour, true), (three, true)] {
            sources.leave(source, was_half_open);
        }
        assert!(sources.held().by_source.is_empty() && sources.held().connections == 0);
    }
}
