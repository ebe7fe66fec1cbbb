//! Expiry of allocations, permissions and channels.

use tt_model::{FiveTuple, IpFamily, Nanos};

use super::Server;
use super::pooled::Units;
use crate::event::{AllocationEnd, AllocationEvent, EndReason};
use crate::flow::FlowKey;
use crate::shared::Charge;
use crate::slab::NO_INDEX;

impl Server {
    /// Returns when to call [`Server::handle_timeout`], if at all.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let times = [self.allocations.next_at(), self.permissions.next_at(), self.channels.next_at()];
        times.into_iter().flatten().min()
    }

    /// Ends what has expired at `now`, and frees its records, quota and relay.
    ///
    /// Expired state is never used, even before this call.
    pub fn handle_timeout(&mut self, now: Nanos) {
        while let Some((channel, allocation)) = self.channels.take_due(now) {
            self.end_channel(channel, allocation);
        }
        while let Some((permission, allocation)) = self.permissions.take_due(now) {
            self.end_permission(permission, allocation);
        }
        while let Some(allocation) = self.allocations.take_due(now) {
            self.end_expired_legs(allocation, now);
        }
    }

    /// Ends a channel that has expired.
    pub(super) fn end_channel(&mut self, channel: u32, allocation: u32) {
        let family = self.channels.get(channel).map(|channel| IpFamily::of(channel.peer.ip()));
        if let Some(leg) = family.and_then(|family| self.allocations.leg_mut(allocation, family)) {
            self.paths.end(channel);
            self.channels.remove(channel, &mut leg.channels);
            if leg.is_closed() {
                self.relays.fronts.forget_peers(leg.relay);
            }
            self.give_pooled(allocation, Units { permissions: 0, channels: 1 });
        }
    }

    /// Ends the allocation of a flow whose connection is closed. Returns whether there was one.
    ///
    /// A later connection between the same addresses belongs to another client.
    pub fn close_flow(&mut self, now: Nanos, flow: &FiveTuple) -> bool {
        self.end_flow(now, flow, EndReason::ConnectionClosed)
    }

    /// Ends the allocation of a flow for `reason`. Returns whether there was one.
    pub fn end_flow(&mut self, now: Nanos, flow: &FiveTuple, reason: EndReason) -> bool {
        let found = self.flow_allocation(now, flow);
        if let Some(allocation) = found {
            self.end_allocation(allocation, now, reason);
        }
        found.is_some()
    }

    /// Ends the allocations of a user for `reason`, and returns their number. Walks the whole table.
    ///
    /// `user` is the name of a user, or the id of time-limited names, `expiry:id`; a time-limited name without an id is
    /// one user. With the name of a `realm`, only those of that realm end.
    pub fn end_user(&mut self, now: Nanos, realm: Option<&str>, user: &[u8], reason: EndReason) -> u32 {
        let mut ended = 0;
        for index in 0..self.capacity.allocations {
            let is_live = self.allocations.get(index).is_some();
            let of_realm = self.origins.get(index).map(|origin| self.realm_name(origin.realm));
            let is_meant = realm.is_none() || realm == of_realm;
            if is_live && is_meant && is_user(self.origins.user(index), user) {
                self.end_allocation(index, now, reason);
                ended += 1;
            }
        }
        ended
    }

    /// Returns whether the flow has a live allocation at `now`.
    #[must_use]
    pub fn has_allocation(&self, now: Nanos, flow: &FiveTuple) -> bool {
        self.allocations.find(&FlowKey::of(flow), now).is_some()
    }

    /// Returns whether the flow has a live allocation at `now`, or one of another worker.
    #[must_use]
    pub fn knows_flow(&self, now: Nanos, flow: &FiveTuple) -> bool {
        let key = FlowKey::of(flow);
        self.allocations.find(&key, now).is_some()
            || self.shared.flow_owner(&key).is_some_and(|owner| owner != self.worker)
    }

    /// Returns the allocation of a flow, live or expired.
    fn flow_allocation(&self, now: Nanos, flow: &FiveTuple) -> Option<u32> {
        let key = FlowKey::of(flow);
        self.allocations.find(&key, now).or_else(|| self.allocations.find_expired(&key, now))
    }

    /// Ends a permission. A channel to the peer relays nothing until there is a new one.
    pub(super) fn end_permission(&mut self, permission: u32, allocation: u32) {
        let family = self.permissions.get(permission).map(|permission| IpFamily::of(permission.ip));
        if let Some(leg) = family.and_then(|family| self.allocations.leg_mut(allocation, family)) {
            self.permissions.remove(permission, &mut leg.permissions);
            if leg.is_closed() {
                self.relays.fronts.forget_peers(leg.relay);
            }
            self.give_pooled(allocation, Units { permissions: 1, channels: 0 });
            self.touch_paths(allocation);
        }
    }

    /// Ends an allocation with its permissions and channels (RFC 8656 sections 9 and 12).
    pub(super) fn end_allocation(&mut self, index: u32, now: Nanos, reason: EndReason) {
        for family in [IpFamily::V4, IpFamily::V6] {
            self.end_leg(index, family, now);
        }
        let Some(allocation) = self.allocations.remove(index) else { return };
        self.shared.withdraw_flow(&FlowKey::of(&allocation.flow));
        self.shared.refund(allocation.quota_key, Charge { allocations: 1, ports: 0, reservations: 0 });
        self.counters.allocations_ended += 1;
        self.counters.allocations_live[allocation.flow.transport as usize] -= 1;
        let mut event = None;
        if let (Some(origin), Some(start)) = (self.origins.get(index), self.origins.start(index)) {
            let end = AllocationEnd {
                at: self.clock.unix(now).max(origin.at),
                released: origin.released,
                duration: now.saturating_sub(origin.made),
                reason,
                bytes_to_peers: allocation.bytes_to_peers,
                bytes_to_client: allocation.bytes_to_client,
                packets_to_peers: allocation.packets_to_peers,
                packets_to_client: allocation.packets_to_client,
                peers: self.origins.peers(index),
            };
            event = self.events.push(AllocationEvent { start, end: Some(end) }, self.paths.fence());
        }
        self.paths.end_allocation(index, event);
    }

    /// Ends one relayed address of an allocation, and the allocation if it was the last. The other family's
    /// permissions and channels stay (RFC 8656 section 8.1).
    pub(super) fn end_family(&mut self, index: u32, family: IpFamily, now: Nanos) {
        self.end_leg(index, family, now);
        if !self.allocations.settle(index, now) {
            self.end_allocation(index, now, EndReason::Deleted);
        }
    }

    fn end_expired_legs(&mut self, index: u32, now: Nanos) {
        for family in [IpFamily::V4, IpFamily::V6] {
            if self.allocations.leg_mut(index, family).is_some_and(|leg| leg.expires <= now) {
                self.end_leg(index, family, now);
            }
        }
        if !self.allocations.settle(index, now) {
            self.end_allocation(index, now, EndReason::Expired);
        }
    }

    fn end_leg(&mut self, index: u32, family: IpFamily, now: Nanos) {
        let leg = self.allocations.get_mut(index).and_then(|allocation| allocation.legs[family as usize].take());
        let Some(mut leg) = leg else { return };
        let Some(payer) = self.allocations.get(index).map(|allocation| allocation.quota_key) else { return };
        let ended = Units { permissions: leg.permissions.len, channels: leg.channels.len };
        while leg.channels.head != NO_INDEX {
            self.paths.end(leg.channels.head);
            self.channels.remove(leg.channels.head, &mut leg.channels);
        }
        while leg.permissions.head != NO_INDEX {
            self.permissions.remove(leg.permissions.head, &mut leg.permissions);
        }
        self.give_pooled(index, ended);
        self.relays.retire(leg.relay, payer, self.paths.fence());
        self.shared.withdraw_relayed(leg.relayed);
        self.origins.release(index, family, self.clock.unix(now));
    }
}

/// Returns whether `name` as in USERNAME is that of `user`: the name, or a time-limited one of that id. A name without
/// an expiry has no colon.
fn is_user(name: &[u8], user: &[u8]) -> bool {
    let id = name.iter().position(|byte| *byte == b':').map_or(name, |colon| &name[colon + 1..]);
    name == user || id == user
}
