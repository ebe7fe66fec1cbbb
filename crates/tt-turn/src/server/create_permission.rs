//! CreatePermission (RFC 8656 section 10.2), and the peer policy on the way.

use core::net::{IpAddr, SocketAddr};

use tt_model::Nanos;

use super::reply::Granted;
use super::{Request, Server};
use crate::config::Hairpin;
use crate::credential::User;
use crate::error::ErrorCode;
use crate::message::{Message, XorAddress, attribute};
use crate::permission::Ports;
use crate::policy::{OWN_RELAY, Ownership, RuleIndex, Verdict};
use crate::refusal::Refusal;
use crate::relay::Family;
use crate::shared::RelayEnd;

impl Server {
    pub(super) fn create_permission(&mut self, request: &Request<'_, '_>, user: &User) -> Result<Granted, ErrorCode> {
        let index = self.owned(request, user)?;
        let mut added = 0;
        let mut asked = 0;
        for peer in peers(&request.message) {
            let peer = peer.ok_or(ErrorCode::BadRequest)?;
            self.same_family(request.now, index, peer)?;
            self.judge_permission(peer.ip()).map_err(|rule| self.peer_refused(rule))?;
            asked += 1;
            added += usize::from(!self.permissions.is_recorded(index, peer.ip()));
        }
        if asked == 0 {
            return Err(ErrorCode::BadRequest);
        }
        match self.permissions_fit(index, added) {
            Ok(()) => {}
            // An address that stands there twice was counted twice: clients name each candidate, with its port.
            Err(_) if asked > 1 => self.install_distinct(request, index)?,
            Err(refusal) => return Err(self.refused(refusal)),
        }
        for peer in peers(&request.message).flatten() {
            let ports = self.judge_permission(peer.ip()).map_err(|rule| self.peer_refused(rule))?;
            self.install_permission(request, index, peer.ip(), ports)?;
        }
        Ok(Granted::Done)
    }

    /// Installs the permissions that are new, each address once: all of them or none.
    fn install_distinct(&mut self, request: &Request<'_, '_>, index: u32) -> Result<(), ErrorCode> {
        let mut installed = [0u32; 2];
        for peer in peers(&request.message).flatten() {
            if self.permissions.is_recorded(index, peer.ip()) {
                continue;
            }
            let ports = self.judge_permission(peer.ip()).map_err(|rule| self.peer_refused(rule))?;
            if let Err(error) = self.room_for_permissions(index, 1) {
                self.withdraw_latest(index, installed);
                return Err(error);
            }
            self.install_permission(request, index, peer.ip(), ports)?;
            installed[Family::of(peer.ip()) as usize] += 1;
        }
        Ok(())
    }

    /// Takes back the permissions that were installed last: so many of each family.
    fn withdraw_latest(&mut self, index: u32, installed: [u32; 2]) {
        for (family, count) in [Family::V4, Family::V6].into_iter().zip(installed) {
            let Some(leg) = self.allocations.leg_mut(index, family) else { continue };
            for _ in 0..count {
                // A list grows at its head.
                self.permissions.remove(leg.permissions.head, &mut leg.permissions);
            }
        }
    }

    /// Whether the allocation may have `added` permissions more.
    pub(super) fn room_for_permissions(&mut self, allocation: u32, added: usize) -> Result<(), ErrorCode> {
        self.permissions_fit(allocation, added).map_err(|refusal| self.refused(refusal))
    }

    fn permissions_fit(&self, allocation: u32, added: usize) -> Result<(), Refusal> {
        let used = self.allocations.get(allocation).map_or(0, |allocation| allocation.used().0);
        let own = self.capacity.permissions_per_allocation.saturating_sub(used) as usize;
        if added > own {
            return Err(Refusal::PermissionsPerAllocation);
        }
        if added > self.permissions.room() {
            return Err(Refusal::Permissions);
        }
        Ok(())
    }

    pub(super) fn install_permission(
        &mut self,
        request: &Request<'_, '_>,
        index: u32,
        ip: IpAddr,
        ports: Ports,
    ) -> Result<u32, ErrorCode> {
        let leg = self.allocations.leg_mut(index, Family::of(ip)).ok_or(ErrorCode::AllocationMismatch)?;
        self.permissions
            .install(request.now, (index, &mut leg.permissions), ip, ports)
            .ok_or(ErrorCode::InsufficientCapacity)
    }

    /// RFC 8656 section 10.2: 443 where the peer's family is that of no relayed address of the allocation.
    pub(super) fn same_family(&self, now: Nanos, index: u32, peer: SocketAddr) -> Result<(), ErrorCode> {
        let allocation = self.allocations.get(index);
        let leg = allocation.and_then(|allocation| allocation.leg(Family::of(peer.ip()), now));
        if leg.is_some() { Ok(()) } else { Err(ErrorCode::PeerAddressFamilyMismatch) }
    }

    /// Judges an address for a permission, which counts for every port; a refusal is counted by its rule.
    ///
    /// # Errors
    /// The rule that refuses it.
    pub(super) fn judge_permission(&mut self, ip: IpAddr) -> Result<Ports, RuleIndex> {
        self.weigh_permission(ip).map_err(|rule| self.count_rule(rule))
    }

    /// The same without counting.
    ///
    /// # Errors
    /// The rule that refuses it.
    pub(super) fn weigh_permission(&self, ip: IpAddr) -> Result<Ports, RuleIndex> {
        let policy = &self.config.peer_policy;
        let (ports, verdict) = if self.is_own(ip) {
            match policy.judge_ip(ip, Ownership::IdleRelay) {
                Verdict::Allowed => (Ports::Own, Verdict::Allowed),
                denied @ Verdict::Denied(_) if self.config.hairpin == Hairpin::Denied => (Ports::Asked, denied),
                Verdict::Denied(_) => (Ports::Asked, policy.judge_ip(ip, Ownership::LiveRelay)),
            }
        } else {
            (Ports::All, policy.judge_ip(ip, Ownership::Foreign))
        };
        match verdict {
            Verdict::Allowed if policy.listens_on(ip) => Ok(Ports::Asked),
            Verdict::Allowed => Ok(ports),
            Verdict::Denied(rule) => Err(rule),
        }
    }

    /// Judges an address and port, and what a permission for it is worth; a refusal is counted by its rule.
    ///
    /// # Errors
    /// The rule that refuses it.
    pub(super) fn judge_channel(&mut self, peer: SocketAddr) -> Result<Ports, RuleIndex> {
        let ports = self.judge_permission(peer.ip())?;
        if ports != Ports::All || peer.port() == 0 {
            self.judge_peer(peer)?;
        }
        Ok(ports)
    }

    /// Judges an address and port; a refusal is counted by its rule. Returns the relay where it is a relayed address of
    /// ours.
    ///
    /// # Errors
    /// The rule that refuses it.
    pub(super) fn judge_peer(&mut self, peer: SocketAddr) -> Result<Option<RelayEnd>, RuleIndex> {
        let is_own = self.is_own(peer.ip());
        let end = if is_own { self.hairpin_end(peer)? } else { None };
        let ownership = match (is_own, end) {
            (false, _) => Ownership::Foreign,
            (true, Some(_)) => Ownership::LiveRelay,
            (true, None) => Ownership::IdleRelay,
        };
        match self.config.peer_policy.judge(peer, ownership) {
            Verdict::Allowed => Ok(end),
            Verdict::Denied(rule) => Err(self.count_rule(rule)),
        }
    }

    /// The relay whose address `peer` is, for a peer whose permission's worth is `ports`; it is judged where it has to
    /// be. `None` is a peer that is reached through the network.
    ///
    /// # Errors
    /// The rule that refuses it.
    pub(super) fn way_to(&mut self, peer: SocketAddr, ports: Ports) -> Result<Option<RelayEnd>, RuleIndex> {
        match ports {
            Ports::All if peer.port() != 0 => Ok(None),
            Ports::Own if peer.port() != 0 => self.hairpin_end(peer),
            Ports::All | Ports::Own | Ports::Asked => self.judge_peer(peer),
        }
    }

    fn hairpin_end(&mut self, peer: SocketAddr) -> Result<Option<RelayEnd>, RuleIndex> {
        let end = self.shared.relay_end(peer);
        match (self.config.hairpin, end) {
            (Hairpin::Denied, Some(_)) => Err(self.count_rule(OWN_RELAY)),
            (Hairpin::Denied, None) | (Hairpin::Allowed, _) => Ok(end),
        }
    }

    fn is_own(&self, ip: IpAddr) -> bool {
        self.own_ips.contains(&ip.to_canonical())
    }

    fn count_rule(&mut self, rule: RuleIndex) -> RuleIndex {
        if let Some(hits) = self.policy_hits.get_mut(rule.0) {
            *hits += 1;
        }
        rule
    }
}

/// Every XOR-PEER-ADDRESS of a message; `None` for one that cannot be read. IPv4-mapped peers stay what they were
/// written as: their family is IPv6.
fn peers<'a>(message: &Message<'a>) -> impl Iterator<Item = Option<SocketAddr>> + use<'a> {
    let transaction_id = message.transaction_id();
    message
        .attributes()
        .filter(|(kind, _)| *kind == attribute::XOR_PEER_ADDRESS)
        .map(move |(_, value)| XorAddress::decode(value, &transaction_id))
}
