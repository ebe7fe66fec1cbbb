//! What ends by itself, and what ends with an allocation.

use tt_model::{FiveTuple, Nanos};

use super::Server;
use crate::allocation::NO_INDEX;
use crate::flow::FlowKey;

impl Server {
    /// When [`Server::handle_timeout`] wants to be called next, if at all.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let times = [self.allocations.next_at(), self.permissions.next_at(), self.channels.next_at()];
        times.into_iter().flatten().min()
    }

    /// Ends what has expired at `now`. What has expired is never used, called or not; this gives its room, its quota
    /// and its relay back.
    pub fn handle_timeout(&mut self, now: Nanos) {
        while let Some((channel, allocation)) = self.channels.take_due(now) {
            if let Some(allocation) = self.allocations.get_mut(allocation) {
                self.channels.remove(channel, &mut allocation.channels);
            }
        }
        while let Some((permission, allocation)) = self.permissions.take_due(now) {
            if let Some(allocation) = self.allocations.get_mut(allocation) {
                self.permissions.remove(permission, &mut allocation.permissions);
            }
        }
        while let Some(allocation) = self.allocations.take_due(now) {
            self.end_allocation(allocation);
        }
    }

    /// Ends the allocation of a flow whose connection is closed: nothing can reach the client any more, and a later
    /// connection between the same addresses is another client's. Returns whether there was one.
    pub fn close_flow(&mut self, now: Nanos, flow: &FiveTuple) -> bool {
        let found = self.flow_allocation(now, flow);
        if let Some(allocation) = found {
            self.end_allocation(allocation);
        }
        found.is_some()
    }

    /// Whether the flow has an allocation that is alive at `now`.
    #[must_use]
    pub fn has_allocation(&self, now: Nanos, flow: &FiveTuple) -> bool {
        self.allocations.find(&FlowKey::of(flow), now).is_some()
    }

    /// The allocation of a flow, alive or expired and not ended yet.
    fn flow_allocation(&self, now: Nanos, flow: &FiveTuple) -> Option<u32> {
        let key = FlowKey::of(flow);
        self.allocations.find(&key, now).or_else(|| self.allocations.find_expired(&key, now))
    }

    /// Ends an allocation with its permissions and channels (RFC 8656 sections 9 and 12).
    pub(super) fn end_allocation(&mut self, index: u32) {
        let Some(mut allocation) = self.allocations.remove(index) else { return };
        while allocation.channels.head != NO_INDEX {
            self.channels.remove(allocation.channels.head, &mut allocation.channels);
        }
        while allocation.permissions.head != NO_INDEX {
            self.permissions.remove(allocation.permissions.head, &mut allocation.permissions);
        }
        self.relays.retire(allocation.relay);
        self.shared.withdraw(&FlowKey::of(&allocation.flow), allocation.relayed.external);
        self.shared.return_quota(allocation.quota_key);
        self.counters.allocations_ended += 1;
    }
}
