//! CreatePermission (RFC 8656 section 10.2), and the use of the peer policy.

use core::net::{IpAddr, SocketAddr};

use tt_model::{IpFamily, Nanos};

use super::pooled::Units;
use super::reply::Granted;
use super::{Request, Server};
use crate::config::{Hairpin, PERMISSIONS_GUARANTEED};
use crate::credential::User;
use crate::error::ErrorCode;
use crate::message::{Message, XorAddress, attribute};
use crate::permission::{Place, Ports};
use crate::policy::{OWN_RELAY, Ownership, PeerDecision, PeerPolicy, RuleIndex};
use crate::realm::RealmId;
use crate::rejection::{RejectReason, Rejection};
use crate::shared::RelayEnd;

/// Number of peers that every request may name: a client names a candidate once for each of its ports. A request for
/// more is rejected before any permission is installed, unless one allocation may have more permissions.
const PEERS_MAX: u32 = 256;

impl Server {
    pub(super) fn create_permission(&mut self, request: &Request<'_, '_>, user: &User) -> Result<Granted, Rejection> {
        let index = self.owned(request, user)?;
        let peers_max = self.capacity.permissions_per_allocation.max(PEERS_MAX) as usize;
        let mut added = 0;
        let mut asked = 0;
        for peer in peers(&request.message) {
            if asked == peers_max {
                return Err(RejectReason::PermissionsPerAllocation.into());
            }
            let peer = peer.ok_or(ErrorCode::BadRequest)?;
            self.same_family(request.now, index, peer)?;
            self.decide_permission(index, peer.ip()).map_err(Rejection::peer_denied)?;
            asked += 1;
            added += usize::from(!self.permissions.place(index, peer.ip()).is_recorded());
        }
        if asked == 0 {
            return Err(ErrorCode::BadRequest.into());
        }
        // An address that occurs twice was counted twice: clients name each candidate with its port.
        let (_, has) = self.account_of(index).ok_or(ErrorCode::AllocationMismatch)?;
        if self.permissions_fit(has, added).is_err() || !is_guaranteed(has, added) {
            self.install_distinct(request, index)?;
        }
        for peer in peers(&request.message).flatten() {
            let ports = self.decide_permission(index, peer.ip()).map_err(Rejection::peer_denied)?;
            let place = self.permissions.place(index, peer.ip());
            self.install_permission(request.now, index, (peer.ip(), place), ports)?;
        }
        self.touch_paths(index);
        Ok(Granted::Done)
    }

    /// Installs the new permissions, each address once: all or none.
    fn install_distinct(&mut self, request: &Request<'_, '_>, index: u32) -> Result<(), Rejection> {
        let mut installed = [0u32; 2];
        for peer in peers(&request.message).flatten() {
            let place = self.permissions.place(index, peer.ip());
            if place.is_recorded() {
                continue;
            }
            let ports = self.decide_permission(index, peer.ip()).map_err(Rejection::peer_denied)?;
            let units = Units { permissions: 1, channels: 0 };
            let (account, has) = self.account_of(index).ok_or(ErrorCode::AllocationMismatch)?;
            let taken = self.permissions_fit(has, 1).and_then(|()| self.take_pooled((account, has), units));
            if let Err(reason) = taken {
                self.withdraw_latest(index, installed);
                return Err(reason.into());
            }
            self.install_permission(request.now, index, (peer.ip(), place), ports)?;
            installed[IpFamily::of(peer.ip()) as usize] += 1;
        }
        Ok(())
    }

    /// Removes the last installed permissions, by number for each family.
    fn withdraw_latest(&mut self, index: u32, installed: [u32; 2]) {
        for (family, count) in [IpFamily::V4, IpFamily::V6].into_iter().zip(installed) {
            let Some(leg) = self.allocations.leg_mut(index, family) else { continue };
            for _ in 0..count {
                // A list grows at its head.
                self.permissions.remove(leg.permissions.head, &mut leg.permissions);
            }
            if leg.is_closed() {
                self.relays.fronts.forget_peers(leg.relay);
            }
            self.give_pooled(index, Units { permissions: count, channels: 0 });
        }
    }

    /// Checks that an allocation that has `has` may have `added` more permissions.
    #[inline]
    pub(super) fn permissions_fit(&self, has: Units, added: usize) -> Result<(), RejectReason> {
        let own = self.capacity.permissions_per_allocation.saturating_sub(has.permissions) as usize;
        if added > own {
            return Err(RejectReason::PermissionsPerAllocation);
        }
        if added > self.permissions.room() {
            return Err(RejectReason::Permissions);
        }
        Ok(())
    }

    pub(super) fn install_permission(
        &mut self,
        now: Nanos,
        index: u32,
        (ip, place): (IpAddr, Place),
        ports: Ports,
    ) -> Result<u32, ErrorCode> {
        let leg = self.allocations.leg_mut(index, IpFamily::of(ip)).ok_or(ErrorCode::AllocationMismatch)?;
        let before = leg.permissions.len;
        let installed = self.permissions.install(now, (index, &mut leg.permissions), (ip, place), ports);
        if leg.permissions.len > before {
            self.relays.fronts.add_peer(leg.relay, ip);
            self.origins.add_peer(index, SocketAddr::new(ip, 0));
        }
        installed.ok_or(ErrorCode::InsufficientCapacity)
    }

    /// Checks that the allocation has a relayed address of the peer's family; 443 if not (RFC 8656 section 10.2).
    pub(super) fn same_family(&self, now: Nanos, index: u32, peer: SocketAddr) -> Result<(), ErrorCode> {
        let allocation = self.allocations.get(index);
        let leg = allocation.and_then(|allocation| allocation.leg(IpFamily::of(peer.ip()), now));
        if leg.is_some() { Ok(()) } else { Err(ErrorCode::PeerAddressFamilyMismatch) }
    }

    /// Returns the policy of the realm of an allocation, and the number of rules of the policies before it.
    #[inline]
    pub(super) fn policy_of(&self, index: u32) -> (&PeerPolicy, usize) {
        let default = &self.config.peer_policy;
        let further = &self.config.realm_policies;
        if further.is_empty() {
            return (default, 0);
        }
        let realm = self.allocations.get(index).map_or(RealmId::DEFAULT, |allocation| allocation.realm);
        further.find(realm).map_or((default, 0), |(policy, before)| (policy, default.rules().len() + before))
    }

    /// Decides for an allocation about an address with any port, and counts a denial.
    ///
    /// # Errors
    /// The rule that denies it.
    pub(super) fn decide_permission(&mut self, index: u32, ip: IpAddr) -> Result<Ports, RuleIndex> {
        self.ports_of_permission(index, ip).map_err(|rule| self.count_rule(index, rule))
    }

    /// Decides for an allocation about an address with any port, without counting.
    ///
    /// # Errors
    /// The rule that denies it.
    pub(super) fn ports_of_permission(&self, index: u32, ip: IpAddr) -> Result<Ports, RuleIndex> {
        let (policy, _) = self.policy_of(index);
        let (ports, verdict) = if self.is_own(ip) {
            match policy.decide_ip(ip, Ownership::IdleRelay) {
                PeerDecision::Allowed => (Ports::Own, PeerDecision::Allowed),
                denied @ PeerDecision::Denied(_) if self.config.hairpin == Hairpin::Denied => {
                    (Ports::AllocateRequest, denied)
                }
                PeerDecision::Denied(_) => (Ports::AllocateRequest, policy.decide_ip(ip, Ownership::LiveRelay)),
            }
        } else {
            (Ports::All, policy.decide_ip(ip, Ownership::Foreign))
        };
        match verdict {
            PeerDecision::Allowed if policy.decides_by_port(ip) => Ok(Ports::AllocateRequest),
            PeerDecision::Allowed => Ok(ports),
            PeerDecision::Denied(rule) => Err(rule),
        }
    }

    /// Decides for an allocation about an address and port and the ports of its permission, and counts a denial.
    ///
    /// # Errors
    /// The rule that denies it.
    pub(super) fn decide_channel(&mut self, index: u32, peer: SocketAddr) -> Result<Ports, RuleIndex> {
        let ports = self.decide_permission(index, peer.ip())?;
        if ports != Ports::All || peer.port() == 0 {
            self.decide_peer(index, peer)?;
        }
        Ok(ports)
    }

    /// Decides for an allocation about an address and port, and counts a denial. Returns the relay if it is a relayed
    /// address of this server.
    ///
    /// # Errors
    /// The rule that denies it.
    pub(super) fn decide_peer(&mut self, index: u32, peer: SocketAddr) -> Result<Option<RelayEnd>, RuleIndex> {
        let is_own = self.is_own(peer.ip());
        let end = if is_own { self.hairpin_end(index, peer)? } else { None };
        let ownership = match (is_own, end) {
            (false, _) => Ownership::Foreign,
            (true, Some(_)) => Ownership::LiveRelay,
            (true, None) => Ownership::IdleRelay,
        };
        match self.policy_of(index).0.decide(peer, ownership) {
            PeerDecision::Allowed => Ok(end),
            PeerDecision::Denied(rule) => Err(self.count_rule(index, rule)),
        }
    }

    /// Returns the relay with the address `peer`, or `None` if the peer is reached through the network. Asks the policy of
    /// the allocation's realm if `ports` requires it.
    ///
    /// # Errors
    /// The rule that denies it.
    pub(super) fn way_to(&mut self, index: u32, peer: SocketAddr, ports: Ports) -> Result<Option<RelayEnd>, RuleIndex> {
        match ports {
            Ports::All if peer.port() != 0 => Ok(None),
            Ports::Own if peer.port() != 0 => self.hairpin_end(index, peer),
            Ports::All | Ports::Own | Ports::AllocateRequest => self.decide_peer(index, peer),
        }
    }

    fn hairpin_end(&mut self, index: u32, peer: SocketAddr) -> Result<Option<RelayEnd>, RuleIndex> {
        let end = self.shared.relay_end(peer);
        match (self.config.hairpin, end) {
            (Hairpin::Denied, Some(_)) => Err(self.count_rule(index, OWN_RELAY)),
            (Hairpin::Denied, None) | (Hairpin::Allowed, _) => Ok(end),
        }
    }

    fn is_own(&self, ip: IpAddr) -> bool {
        self.own_ips.contains(&ip.to_canonical())
    }

    fn count_rule(&mut self, index: u32, rule: RuleIndex) -> RuleIndex {
        let (_, before) = self.policy_of(index);
        if let Some(hits) = self.policy_hits.get_mut(before + rule.0) {
            *hits += 1;
        }
        rule
    }
}

/// Returns whether `added` more permissions are among those that an allocation is guaranteed.
fn is_guaranteed(has: Units, added: usize) -> bool {
    added == 0 || has.permissions as usize + added <= PERMISSIONS_GUARANTEED as usize
}

/// Iterates over every XOR-PEER-ADDRESS; `None` for an invalid one. IPv4-mapped addresses stay IPv6.
fn peers<'a>(message: &Message<'a>) -> impl Iterator<Item = Option<SocketAddr>> + use<'a> {
    let transaction_id = message.transaction_id();
    message
        .attributes()
        .filter(|(kind, _)| *kind == attribute::XOR_PEER_ADDRESS)
        .map(move |(_, value)| XorAddress::decode(value, &transaction_id))
}
