//! The two next hops of a path.

use tt_model::Nanos;
use tt_path::{AddressPair, Hop, NextHop, NextHops};
use tt_turn::path::PathLease;

use super::worker::ends;

/// The hops of a path, which the path holds until they are released: to the peer, and to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hops([(AddressPair, Hop); 2]);

impl Hops {
    /// Holds the hops of a path. `None` if the sockets relay its packets.
    pub(super) fn acquire(lease: &PathLease, hops: &mut NextHops, now: Nanos) -> Option<Self> {
        let [client, listener, relayed, peer] = ends(lease).map(|end| end.ip());
        let to_peer = AddressPair { source: relayed, destination: peer };
        let to_client = AddressPair { source: listener, destination: client };
        let first = hops.acquire(to_peer, now).ok()?;
        let Ok(second) = hops.acquire(to_client, now) else {
            hops.release(to_peer, now);
            return None;
        };
        Some(Self([(to_peer, first), (to_client, second)]))
    }

    pub(super) fn release(self, hops: &mut NextHops, now: Nanos) {
        for (pair, _) in self.0 {
            hops.release(pair, now);
        }
    }

    /// Asks what is known of both now. `None` if a pair has another route than before: then release them.
    pub(super) fn renewed(self, hops: &mut NextHops, now: Nanos) -> Option<Self> {
        let mut renewed = self.0;
        for (pair, hop) in &mut renewed {
            *hop = hops.acquire(*pair, now).ok()?;
            hops.release(*pair, now);
        }
        Some(Self(renewed))
    }

    /// Returns slot and next hop to the peer and to the client, if both are known.
    pub(super) fn known(&self) -> Option<[(u16, NextHop); 2]> {
        let [(_, to_peer), (_, to_client)] = self.0;
        Some([(to_peer.slot, to_peer.state.ok()?), (to_client.slot, to_client.state.ok()?)])
    }
}
