//! Paths: bound channels that the driver relays for the server.

use tt_model::{IpFamily, Nanos, Transport};

use super::Server;
use crate::config::Capacity;
use crate::flow::canonical;
use crate::path::{Owner, PathChange, PathId, PathLease, PathTraffic, Paths};
use crate::permission::Ports;

impl Server {
    /// Offers bound channels to the driver from here on, those that live included, up to `paths_max` at a time. Allocates
    /// memory.
    ///
    /// From then on poll [`Server::poll_path`] until `None` after every round, before the responses of the round are
    /// sent. [`Server::poll_relay`] and [`Server::poll_event`] return nothing that has to wait for a path to be closed. A
    /// server that is dropped closes nothing: the driver then closes all its paths.
    pub fn offer_paths(&mut self, paths_max: u32) {
        if !self.paths.are_offered() {
            let Capacity { channels, allocations, .. } = self.capacity;
            self.paths = Paths::new(paths_max.min(channels), channels, allocations);
            self.review_paths();
        }
    }

    /// Returns the next change of the paths.
    ///
    /// A path is opened for a channel whose client uses UDP and has an address of the peer's family, while its peer has
    /// a permission for all ports and no quota limits traffic. The lease ends with the first of channel, permission and
    /// relayed address (RFC 8656 sections 8, 9 and 12). A path is closed before its relay is retired, and in the round in
    /// which its channel or permission ends or a replaced policy or quota no longer lets it be relayed unseen.
    pub fn poll_path(&mut self, now: Nanos) -> Option<PathChange> {
        if let Some(id) = self.paths.take_ended() {
            return Some(PathChange::Close(id));
        }
        while let Some((id, channel, known)) = self.paths.take_changed() {
            match (self.path_lease(channel, now), known) {
                (Some(lease), None) => {
                    self.paths.lease(id, lease.until);
                    return Some(PathChange::Open(id, lease));
                }
                (Some(lease), Some(until)) if lease.until != until => {
                    self.paths.lease(id, lease.until);
                    return Some(PathChange::Extend(id, lease.until));
                }
                (Some(_), Some(_)) => {}
                (None, None) => self.paths.end(channel),
                (None, Some(_)) => {
                    self.paths.end(channel);
                    return self.paths.take_ended().map(PathChange::Close);
                }
            }
        }
        None
    }

    /// Adds to the counters what a path has relayed since the last call, until [`Server::path_closed`].
    pub fn count_path(&mut self, id: PathId, traffic: PathTraffic) {
        let Some(owner) = self.paths.owner(id) else { return };
        self.counters.count_path(&traffic);
        match owner {
            Owner::Allocation(index) => {
                if let Some(allocation) = self.allocations.get_mut(index) {
                    allocation.packets_to_peers += traffic.packets_to_peer;
                    allocation.bytes_to_peers += traffic.bytes_to_peer;
                    allocation.packets_to_client += traffic.packets_to_client;
                    allocation.bytes_to_client += traffic.bytes_to_client;
                }
            }
            Owner::End(event) => self.events.add_traffic(event, &traffic),
            Owner::Lost => {}
        }
    }

    /// The driver has closed a path as [`PathChange::Close`] asked, and has counted all that it relayed. Paths are closed
    /// in the order of their changes: returns `false` if this one is not next.
    pub fn path_closed(&mut self, id: PathId) -> bool {
        self.paths.closed(id)
    }

    /// Looks at the channels of an allocation at the next poll.
    pub(super) fn touch_paths(&mut self, index: u32) {
        if !self.paths.are_offered() {
            return;
        }
        let Some(allocation) = self.allocations.get(index) else { return };
        for leg in allocation.legs.iter().flatten() {
            for channel in self.channels.of(&leg.channels) {
                self.paths.touch(channel, index);
            }
        }
    }

    /// Looks at all channels at the next poll.
    pub(super) fn review_paths(&mut self) {
        if !self.paths.are_offered() {
            return;
        }
        for index in 0..self.channels.end() {
            if let Some(channel) = self.channels.get(index) {
                self.paths.touch(index, channel.allocation);
            }
        }
    }

    /// Returns what a channel relays without a look at the payload, if anything.
    fn path_lease(&self, channel: u32, now: Nanos) -> Option<PathLease> {
        let bound = self.channels.get(channel)?;
        let allocation = self.allocations.get(bound.allocation)?;
        let client = allocation.flow;
        let family = IpFamily::of(bound.peer.ip());
        let is_plain = client.transport == Transport::Udp
            && IpFamily::of(canonical(client.client).ip()) == family
            && bound.peer.port() != 0
            && self.shared.is_traffic_unlimited();
        let leg = allocation.leg(family, now).filter(|_| is_plain)?;
        let (_, permission) = self.permissions.find(bound.allocation, bound.peer.ip(), now)?;
        let until = bound.expires.min(permission.expires).min(leg.expires);
        let relayed = self.relays.address(leg.relay)?;
        (permission.ports == Ports::All && until > now).then_some(PathLease {
            client,
            relay: leg.relay,
            relayed,
            peer: bound.peer,
            channel: bound.number,
            until,
        })
    }
}
