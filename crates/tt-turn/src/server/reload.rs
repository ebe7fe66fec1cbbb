//! Replacement of the configuration, of the peer policy, of bans and of alternate servers, end of all allocations, events.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use tt_model::{FiveTuple, IpFamily, Nanos};

use super::{Server, rules_of};
use crate::bans::Bans;
use crate::config::Config;
use crate::credential::Secrets;
use crate::event::{AllocationEvent, AllocationGrant, EndReason, RejectedRequest};
use crate::flow::canonical;
use crate::policy::{PeerPolicy, RealmPolicies, Rule};
use crate::realm::{REALMS_MAX, RealmConfig, RealmId};
use crate::relay::RelayId;
use crate::shared::Limits;

/// Names of the default realm that live allocations may still use.
const FORMER_REALMS_MAX: usize = 8;

impl Server {
    /// Replaces the configuration, but for `realms` (see [`Server::replace_realms`]), `peer_policy`, `realm_policies`,
    /// `peer_lists`, `grant_reports` and `dont_fragment`, which stay. Replace the secrets next: nonces and the end of
    /// removed users follow the configuration from then on.
    ///
    /// Allocations stay with the lifetimes that they have; a refresh takes the new ones. Where `realm` is another one, a
    /// live allocation is also refreshed with the name and the key of before: not every client tries again after a 401.
    pub fn replace_config(&mut self, config: Config) {
        let before = &mut self.config;
        if before.realm != config.realm {
            let former = core::mem::take(&mut before.realm);
            self.former_realms.retain(|name| *name != config.realm && *name != former);
            if self.former_realms.len() == FORMER_REALMS_MAX {
                self.former_realms.remove(0);
            }
            self.former_realms.push(former);
        }
        *before = Config {
            realms: core::mem::take(&mut before.realms),
            peer_policy: core::mem::take(&mut before.peer_policy),
            realm_policies: Arc::clone(&before.realm_policies),
            peer_lists: before.peer_lists,
            grant_reports: before.grant_reports,
            dont_fragment: before.dont_fragment,
            ..config
        };
        self.review_paths();
    }

    /// Replaces the realms after the default one: those of before keep their place and their name and get the origins and
    /// listeners of `realms`, and those that follow are new. Replace the limits first, and the secrets next; `secrets` are
    /// those in force. Allocates memory.
    pub fn replace_realms(&mut self, realms: &[RealmConfig], secrets: &Secrets) {
        for (index, realm) in realms.iter().take(REALMS_MAX).enumerate() {
            match self.config.realms.get_mut(index) {
                Some(known) => *known = RealmConfig { name: core::mem::take(&mut known.name), ..realm.clone() },
                None => self.config.realms.push(realm.clone()),
            }
        }
        let further = self.config.realms.len();
        self.credentials.extend(secrets, further, self.shared.seed(), self.capacity.allocations);
    }

    /// Sets the permissions and the channels of one allocation. An allocation that has more keeps them.
    pub fn set_allocation_caps(&mut self, permissions: u32, channels: u32) {
        self.capacity.permissions_per_allocation = permissions;
        self.capacity.channels_per_allocation = channels;
    }

    /// Goes by `limits` from here on, which must be of this server's [`Shared`](crate::shared::Shared). Allocations,
    /// permissions and channels beyond a new limit stay.
    ///
    /// Returns the limits before, for a thread that has time to free them.
    pub fn replace_limits(&mut self, limits: Arc<Limits>) -> Arc<Limits> {
        let before = self.shared.replace_limits(limits);
        self.review_paths();
        before
    }

    /// Replaces the peer policy of every realm by `policy`; see [`Server::replace_policies`].
    pub fn replace_policy(&mut self, policy: PeerPolicy) {
        self.replace_policies(policy, Arc::default());
    }

    /// Replaces the peer policy of the default realm, and those of further realms. Walks the permissions, and allocates
    /// memory.
    ///
    /// A permission whose peer is denied now ends at once, and its channels relay nothing. Rules that stay keep their
    /// counts; a rule of several realms may have that of another.
    ///
    /// Returns the policies before, for a thread that has time to free them.
    pub fn replace_policies(&mut self, policy: PeerPolicy, further: Arc<RealmPolicies>) -> impl Send + use<> {
        let counted: Vec<(Rule, u64)> =
            self.policy_hits().filter(|(_, hits)| *hits > 0).map(|(rule, hits)| (*rule, hits)).collect();
        let before = (
            core::mem::replace(&mut self.config.peer_policy, policy),
            core::mem::replace(&mut self.config.realm_policies, further),
        );
        self.policy_hits = rules_of(&self.config).map(|_| 0).collect();
        for (rule, hits) in counted {
            if let Some(place) = rules_of(&self.config).position(|known| *known == rule) {
                self.policy_hits[place] += hits;
            }
        }
        for index in 0..self.permissions.end() {
            let Some(permission) = self.permissions.get(index).copied() else { continue };
            match self.ports_of_permission(permission.allocation, permission.ip) {
                Ok(ports) => self.permissions.set_ports(index, ports),
                Err(_) => self.end_permission(index, permission.allocation),
            }
        }
        self.review_paths();
        before
    }

    /// Ends the allocations whose user or shared secret is not configured any more.
    pub(super) fn end_removed_users(&mut self, now: Nanos) {
        for index in 0..self.capacity.allocations {
            let realm = self.allocations.get(index).map_or(RealmId::DEFAULT, |allocation| allocation.realm);
            if self.kept_keys.get(index).is_some_and(|kept| !self.credentials.of(realm).knows(kept)) {
                self.end_allocation(index, now, EndReason::UserRemoved);
            }
        }
    }

    /// Sets the servers that take clients [during a drain](crate::shared::Shared::drain): one for clients over IPv4, one
    /// for those over IPv6, whatever the order. Of two addresses of a family the later one counts.
    pub fn set_alternates(&mut self, alternates: &[SocketAddr]) {
        self.alternates = [None; 2];
        for alternate in alternates {
            self.alternates[IpFamily::of(canonical(*alternate).ip()) as usize] = Some(canonical(*alternate));
        }
    }

    /// Returns the server that takes a client: one with an address of the same family (RFC 8489 section 14.15).
    pub(super) fn alternate(&self, from: &FiveTuple) -> Option<SocketAddr> {
        self.alternates[IpFamily::of(canonical(from.client).ip()) as usize]
    }

    /// Replaces the bans, and ends the allocations of clients that are banned now. Returns their number. Walks the whole
    /// table of allocations.
    ///
    /// STUN messages of a banned client are dropped. Packets to its relayed addresses find no allocation.
    pub fn replace_bans(&mut self, now: Nanos, bans: Arc<Bans>) -> u32 {
        self.bans = (!bans.is_empty()).then_some(bans);
        let mut ended = 0;
        for index in 0..self.capacity.allocations {
            let client = self.allocations.get(index).map(|allocation| allocation.flow.client.ip());
            if client.is_some_and(|client| self.is_banned(client, now)) {
                self.end_allocation(index, now, EndReason::Operator);
                ended += 1;
            }
        }
        ended
    }

    /// Returns whether `client` is banned at `now`.
    #[inline]
    #[must_use]
    pub fn is_banned(&self, client: IpAddr, now: Nanos) -> bool {
        self.bans.as_ref().is_some_and(|bans| bans.contains(client, now))
    }

    /// Ends every allocation before the server is dropped, so that quotas and addresses are free for the other
    /// workers. Reservations are the driver's, and stay.
    pub fn end_all(&mut self, now: Nanos, reason: EndReason) {
        for index in 0..self.capacity.allocations {
            self.end_allocation(index, now, reason);
        }
        self.end_untaken_reservations();
        for index in 0..self.relays.capacity() {
            self.end_rest(RelayId(index));
        }
    }

    /// Returns the next beginning or end of an allocation. Call until `None` after every round of at most 1,024
    /// requests, then none is lost: the queue has room for those and for the end of every allocation in the table.
    pub fn poll_event(&mut self) -> Option<AllocationEvent> {
        self.events.take(self.paths.passed())
    }

    /// Returns the number of beginnings and ends that were lost because the queue was full.
    #[must_use]
    pub fn events_lost(&self) -> u64 {
        self.events.allocations_lost
    }

    /// Returns the next lifetime that a client got, if they are [reported](crate::config::GrantReports). Call until `None`
    /// before [`Server::poll_event`], which then returns the end of an allocation after its lifetimes.
    pub fn poll_grant(&mut self) -> Option<AllocationGrant> {
        self.events.take_grant()
    }

    /// Returns the number of lifetimes that were lost because the queue was full.
    #[must_use]
    pub fn grants_lost(&self) -> u64 {
        self.events.grants_lost
    }

    /// Returns the next rejected request. Call until `None` after every round. [`Server::rejected_lost`] counts those
    /// that found the queue full.
    pub fn poll_rejected(&mut self) -> Option<RejectedRequest> {
        self.events.take_rejected()
    }

    /// Returns the number of rejected requests that were lost because the queue was full.
    #[must_use]
    pub fn rejected_lost(&self) -> u64 {
        self.events.rejected_lost
    }
}
