//! How much an allocation relayed, for its last report.

use std::net::SocketAddr;

use super::{Alive, Flow, Model, RelayPlace};

/// Payload bytes: at least and at most, since what expires within this second may have been counted or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Bytes {
    least: u64,
    most: u64,
}

impl Bytes {
    fn add(&mut self, len: usize, sure: Alive) {
        self.least += if sure == Alive::Yes { len as u64 } else { 0 };
        self.most += if sure == Alive::No { 0 } else { len as u64 };
    }

    pub(in super::super) fn allow(self, reported: u64) -> bool {
        (self.least..=self.most).contains(&reported)
    }
}

/// An allocation that ended, until the server reports it.
#[derive(Clone, Debug)]
pub(in super::super) struct Ended {
    pub(in super::super) flow: Flow,
    pub(in super::super) worker: u16,
    pub(in super::super) name: Vec<u8>,
    /// Its first relayed address.
    pub(in super::super) relayed: SocketAddr,
    pub(in super::super) to_peers: Bytes,
    pub(in super::super) to_client: Bytes,
}

impl Model {
    /// A payload left the allocation of a relay towards a peer, or may have.
    pub(in super::super) fn sent_to_peer(&mut self, relay: RelayPlace, len: usize, sure: Alive) {
        let claim = self.by_relay.get(&relay).and_then(|flow| self.claims.get_mut(flow));
        if let Some(claim) = claim {
            claim.to_peers.add(len, sure);
        }
    }

    /// A payload went to a client.
    pub(in super::super) fn sent_to_client(&mut self, flow: &Flow, len: usize) {
        if let Some(claim) = self.claims.get_mut(flow) {
            claim.to_client.add(len, Alive::Yes);
        }
    }

    /// The oldest end of an allocation of the flow that was not reported.
    pub(in super::super) fn take_ended(&mut self, flow: &Flow) -> Option<Ended> {
        let at = self.ended.iter().position(|ended| ended.flow == *flow)?;
        Some(self.ended.remove(at))
    }
}
