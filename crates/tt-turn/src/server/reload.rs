//! Other peer rules while allocations live, and the end of all of them.

use alloc::boxed::Box;

use tt_model::Nanos;

use super::Server;
use crate::event::Event;
use crate::policy::PeerPolicy;

impl Server {
    /// Takes another peer policy in place of the present one. A permission whose peer it denies ends at once, and with
    /// it what its channels carry; rules that stay keep their counts. It walks every permission and allocates.
    pub fn replace_policy(&mut self, policy: PeerPolicy) {
        let hits_of = |rule| self.policy_hits().find(|(known, _)| *known == rule).map_or(0, |(_, hits)| hits);
        let hits: Box<[u64]> = policy.rules().iter().map(hits_of).collect();
        self.policy_hits = hits;
        self.config.peer_policy = policy;
        for index in 0..self.capacity.permissions {
            let Some(permission) = self.permissions.get(index).copied() else { continue };
            match self.weigh_permission(permission.ip) {
                Ok(ports) => self.permissions.set_ports(index, ports),
                Err(_) => self.end_permission(index, permission.allocation),
            }
        }
    }

    /// Ends every allocation, for a driver that gives this engine up: quotas and addresses are the others' again.
    pub fn end_all(&mut self) {
        for index in 0..self.capacity.allocations {
            self.end_allocation(index);
        }
        self.end_reservations(Nanos(u64::MAX));
    }

    /// The next event; call until `None` after every round. What is not fetched in time is counted by
    /// [`Server::events_lost`].
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.take()
    }

    /// Events that were not kept since the driver was too slow.
    #[must_use]
    pub fn events_lost(&self) -> u64 {
        self.events.lost
    }
}
