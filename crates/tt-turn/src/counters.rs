//! Counters of a server: every datagram ends in exactly one of them.

use tt_model::Transport;

use crate::drop_reason::DropReason;
use crate::error::ErrorCode;
use crate::output::{Output, ReplyStatus};
use crate::path::PathTraffic;
use crate::rejection::RejectReason;

/// Counters of one [`Server`](crate::Server).
///
/// A payload from one relayed address of this server to another makes two hops in the process, and each hop counts as
/// `received` and `relayed`. `received == replied + relayed + handed_off + drops.sum()` after every call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams from clients and peers, and ICMP errors.
    pub received: u64,
    /// Responses, successes and errors.
    pub replied: u64,
    /// Payloads relayed from clients to peers.
    pub payloads_to_peers: u64,
    /// Payloads relayed from peers to clients.
    pub payloads_to_clients: u64,
    /// Relayed payloads whose peer is a relayed address of this server, of this worker or another.
    pub hairpinned: u64,
    /// Datagrams handed off to the worker that owns their allocation.
    pub handed_off: u64,
    /// Dropped datagrams, by [`DropReason`] as index.
    pub drops: [u64; DropReason::ALL.len()],
    /// Payload bytes relayed from clients to peers.
    pub bytes_to_peers: u64,
    /// Payload bytes relayed from peers to clients.
    pub bytes_to_clients: u64,
    /// Look-ups of a five-tuple that found a live allocation.
    pub flow_hits: u64,
    /// Look-ups of a five-tuple that found none.
    pub flow_misses: u64,
    /// Error responses, by [`ErrorCode`] as index.
    pub errors: [u64; ErrorCode::ALL.len()],
    /// Requests rejected with 403, 486 or 508, by [`RejectReason`] as index.
    pub rejections: [u64; RejectReason::ALL.len()],
    /// Allocations created.
    pub allocations_made: u64,
    /// Allocations ended: by Refresh with a lifetime of zero, by expiry, or with their connection.
    pub allocations_ended: u64,
    /// Live allocations, by the [`Transport`](tt_model::Transport) of their client as index.
    pub allocations_live: [u64; Transport::ALL.len()],
    /// Binding requests that reached the method.
    pub bindings: u64,
    /// Those of them with a success response.
    pub bindings_answered: u64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            received: 0,
            replied: 0,
            payloads_to_peers: 0,
            payloads_to_clients: 0,
            hairpinned: 0,
            handed_off: 0,
            drops: [0; DropReason::ALL.len()],
            bytes_to_peers: 0,
            bytes_to_clients: 0,
            flow_hits: 0,
            flow_misses: 0,
            errors: [0; ErrorCode::ALL.len()],
            rejections: [0; RejectReason::ALL.len()],
            allocations_made: 0,
            allocations_ended: 0,
            allocations_live: [0; Transport::ALL.len()],
            bindings: 0,
            bindings_answered: 0,
        }
    }
}

impl Counters {
    /// Returns the number of payloads relayed, to peers and to clients.
    #[must_use]
    pub const fn relayed(&self) -> u64 {
        self.payloads_to_peers + self.payloads_to_clients
    }

    /// Returns the number of datagrams dropped for `reason`.
    #[must_use]
    pub const fn dropped(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }

    /// Returns the number of requests rejected for `reason`.
    #[must_use]
    pub const fn rejected(&self, reason: RejectReason) -> u64 {
        self.rejections[reason as usize]
    }

    /// Counts one datagram and its outcome. Only this and [`Counters::count_path`] change the counters of datagrams.
    #[inline]
    pub(crate) fn count(&mut self, output: &Output) {
        self.received += 1;
        match output {
            Output::Reply { status, .. } => {
                self.replied += 1;
                if let ReplyStatus::Rejected { code, reason, .. } = status {
                    self.errors[*code as usize] += 1;
                    if let Some(reason) = reason {
                        self.rejections[*reason as usize] += 1;
                    }
                }
            }
            Output::ToPeer { payload, .. } => {
                self.payloads_to_peers += 1;
                self.bytes_to_peers += payload.len() as u64;
            }
            Output::ToClient { payload, .. } => {
                self.payloads_to_clients += 1;
                self.bytes_to_clients += payload.len() as u64;
            }
            Output::ToWorker { payload, .. } => {
                self.payloads_to_peers += 1;
                self.hairpinned += 1;
                self.bytes_to_peers += payload.len() as u64;
            }
            Output::HandOff(_) => self.handed_off += 1,
            Output::Drop(reason) => self.drops[*reason as usize] += 1,
        }
    }

    /// Counts what a path has relayed: each payload was received and relayed.
    pub(crate) fn count_path(&mut self, traffic: &PathTraffic) {
        self.received += traffic.packets_to_peer + traffic.packets_to_client;
        self.payloads_to_peers += traffic.packets_to_peer;
        self.payloads_to_clients += traffic.packets_to_client;
        self.bytes_to_peers += traffic.bytes_to_peer;
        self.bytes_to_clients += traffic.bytes_to_client;
    }

    /// Returns whether every received datagram has an outcome.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        self.received == self.replied + self.relayed() + self.handed_off + self.drops.iter().sum::<u64>()
    }
}
