//! State of the model: claims, their expiry, and counts.

use std::cmp::Reverse;
use std::net::{IpAddr, SocketAddr};

use tt_model::Nanos;

use super::{
    Alive, Bucket, Bytes, CHANNEL_LIFETIME, Claim, Ended, Flow, LATE, Leg, Model, PERMISSION_LIFETIME, RelayPlace,
    Reservation, Waiting, alive, place,
};
use crate::turn_world::topology::PeerRule;
use crate::turn_world::wire::{self, Reading};

/// The end of a permission or a channel, or the moment at which it must be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct End {
    at: Nanos,
    expires: Nanos,
    flow: Flow,
    serial: u64,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Permission(IpAddr),
    Channel(u16, SocketAddr),
}

/// Result of a successful Allocate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Grant {
    pub(in super::super) relays: Vec<(RelayPlace, SocketAddr)>,
    /// The worker that answered: the allocation's.
    pub(in super::super) worker: u16,
    /// The next port in reserve, and its token.
    pub(in super::super) reserved: Option<(RelayPlace, SocketAddr, u64)>,
    /// The token that was claimed.
    pub(in super::super) claimed: Option<u64>,
}

impl Model {
    /// Time goes on to `now`: what has expired no longer counts as live, what must be gone no longer counts at all.
    /// Whose allocation or reservation should have been ended by now, if there is one.
    pub(in super::super) fn pass(&mut self, now: Nanos) -> Option<SocketAddr> {
        while self.ends.peek().is_some_and(|Reverse(end)| end.at <= now) {
            let Some(Reverse(end)) = self.ends.pop() else { break };
            let Some(claim) = self.claims.get_mut(&end.flow).filter(|claim| claim.serial == end.serial) else {
                continue;
            };
            let (worker, is_over) = (usize::from(claim.worker), end.at > end.expires);
            let ip = match end.what {
                What::Permission(ip) => ip,
                What::Channel(_, peer) => peer.ip(),
            };
            let Some(leg) = claim.legs[place(ip.is_ipv4())].as_mut() else { continue };
            let held = match end.what {
                What::Permission(ip) if leg.permissions.get(&ip) == Some(&end.expires) => {
                    if is_over {
                        leg.permissions.remove(&ip);
                    }
                    &mut self.permissions[worker]
                }
                What::Channel(number, _) if leg.channels.get(&number).is_some_and(|(_, at)| *at == end.expires) => {
                    if is_over {
                        leg.channels.remove(&number);
                    }
                    &mut self.channels[worker]
                }
                What::Permission(_) | What::Channel(..) => continue,
            };
            if is_over {
                held.held -= 1;
            } else {
                held.live -= 1;
                self.ends.push(Reverse(End { at: end.expires.saturating_add(LATE), ..end }));
            }
        }
        let overdue = self.reservations.values().find(|held| held.alive(now) == Alive::No).map(|held| held.relayed);
        let late = self.by_expiry.first().filter(|(expires, _, _)| expires.saturating_add(LATE) < now);
        overdue.or_else(|| late.map(|(_, flow, _)| flow.client))
    }

    /// A request was granted.
    pub(in super::super) fn learn(
        &mut self,
        now: Nanos,
        flow: &Flow,
        user: usize,
        request: &Reading<'_>,
        grant: Option<Grant>,
    ) {
        match request.method {
            wire::ALLOCATE => {
                if let Some(grant) = grant {
                    self.claim(now, flow, user, request, grant);
                }
            }
            wire::REFRESH => self.refresh(now, flow, request),
            _ => {
                let peers: Vec<SocketAddr> = request.addresses(wire::PEER_ADDRESS).flatten().collect();
                let number = request.number(wire::CHANNEL_NUMBER).map(|number| (number >> 16) as u16);
                match number.filter(|_| request.method == wire::CHANNEL_BIND) {
                    Some(number) => {
                        self.permit(now, flow, peers[0].ip());
                        self.bind(now, flow, number, peers[0]);
                    }
                    None => peers.iter().for_each(|peer| self.permit(now, flow, peer.ip())),
                }
            }
        }
    }

    /// RFC 8656 section 8: the relayed address of the family that is named, or all of them.
    fn refresh(&mut self, now: Nanos, flow: &Flow, request: &Reading<'_>) {
        let named = request.get(wire::ADDRESS_FAMILY).map(|value| place(value[0] == 1));
        let lifetime_s = self.lifetime_s(request.number(wire::LIFETIME));
        for at in [0, 1].into_iter().filter(|at| named.is_none_or(|named| named == *at)) {
            let leg = self.claims.get_mut(flow).and_then(|claim| claim.legs[at].as_mut());
            let Some(leg) = leg.filter(|leg| now < leg.expires) else { continue };
            if request.number(wire::LIFETIME) == Some(0) {
                self.retire_leg(now, flow, at);
            } else {
                self.by_expiry.remove(&(leg.expires, *flow, at));
                leg.expires = now.saturating_add(Nanos::from_secs(u64::from(lifetime_s)));
                self.by_expiry.insert((leg.expires, *flow, at));
            }
        }
    }

    /// Whether the user has paid for what is granted: the port was its own reservation.
    pub(in super::super) fn pays_already(&self, user: usize, grant: &Grant) -> bool {
        let held = grant.claimed.and_then(|token| self.reservations.get(&token));
        held.is_some_and(|held| held.user == user)
    }

    fn claim(&mut self, now: Nanos, flow: &Flow, user: usize, request: &Reading<'_>, grant: Grant) {
        let is_same = |claim: &Claim| {
            claim.tid == request.tid
                && claim.legs().any(|leg| grant.relays.iter().any(|(relay, _)| *relay == leg.relay))
        };
        if self.claims.get(flow).is_some_and(is_same) {
            return;
        }
        self.close(now, flow);
        let lifetime_s = self.lifetime_s(request.number(wire::LIFETIME));
        let expires = now.saturating_add(Nanos::from_secs(u64::from(lifetime_s)));
        if let Some(held) = grant.claimed.and_then(|token| self.reservations.remove(&token)) {
            self.reserved.remove(&held.relay);
            self.held_by_user[held.user] -= 1;
        }
        self.serial += 1;
        let worker = grant.worker;
        let token = grant.reserved.map(|(_, _, token)| token);
        let name = self.sender(request).map(|sender| sender.name.to_vec()).unwrap_or_default();
        let mut claim = Claim {
            serial: self.serial,
            user,
            name,
            tid: request.tid,
            worker,
            legs: [None, None],
            token,
            relayed: grant.relays[0].1,
            to_peers: Bytes::default(),
            to_client: Bytes::default(),
        };
        for (relay, relayed) in grant.relays {
            self.take(relay);
            let at = place(relayed.is_ipv4());
            self.by_relay.insert(relay, *flow);
            self.relayed.insert(relayed, *flow);
            self.by_expiry.insert((expires, *flow, at));
            let (permissions, channels) = Default::default();
            claim.legs[at] = Some(Leg { relay, relayed, expires, permissions, channels });
        }
        if let Some((relay, relayed, token)) = grant.reserved {
            self.take(relay);
            self.reservations.insert(token, Reservation { relay, relayed, user, made: now });
            self.reserved.insert(relay, token);
            self.held_by_user[user] += 1;
        }
        self.held_by_user[user] += 1;
        self.held_by_worker[usize::from(worker)] += 1;
        self.claims.insert(*flow, claim);
        let is_first = grant.claimed.is_none() && self.has_nothing_else(user, flow);
        self.meter.begin(now, user, self.serial, is_first);
    }

    /// Takes a relay out of its pool; its partner waits alone from now on.
    fn take(&mut self, (worker, relay): RelayPlace) {
        let pool = &mut self.pools[usize::from(worker)];
        let partner = pool.remove(&relay).and_then(|waiting| waiting.partner);
        if let Some(partner) = partner.and_then(|partner| pool.get_mut(&partner)) {
            partner.partner = None;
        }
    }

    /// The flow's allocation ends: its connection is closed, or another one takes its place.
    pub(in super::super) fn close(&mut self, now: Nanos, flow: &Flow) {
        for at in [0, 1] {
            self.retire_leg(now, flow, at);
        }
    }

    /// One relayed address ends by request; its relay is given up within the same call.
    fn retire_leg(&mut self, now: Nanos, flow: &Flow, at: usize) {
        let user = self.claims.get(flow).map(|claim| claim.user);
        if let Some((leg, user)) = self.end_leg(now, flow, at).zip(user) {
            self.retiring.insert(leg.relay, user);
        }
    }

    /// One relayed address ends, and the allocation with the last.
    fn end_leg(&mut self, now: Nanos, flow: &Flow, at: usize) -> Option<Leg> {
        let claim = self.claims.get_mut(flow)?;
        let leg = claim.legs[at].take()?;
        let (worker, user, is_last) = (usize::from(claim.worker), claim.user, claim.legs().next().is_none());
        self.by_relay.remove(&leg.relay);
        self.relayed.remove(&leg.relayed);
        self.by_expiry.remove(&(leg.expires, *flow, at));
        for expires in leg.permissions.values() {
            self.permissions[worker].held -= 1;
            self.permissions[worker].live -= u32::from(now < *expires);
        }
        for (_, expires) in leg.channels.values() {
            self.channels[worker].held -= 1;
            self.channels[worker].live -= u32::from(now < *expires);
        }
        if is_last {
            self.meter.end(claim.serial);
            if let Some(Claim { worker, name, relayed, to_peers, to_client, .. }) = self.claims.remove(flow) {
                self.ended.push(Ended { flow: *flow, worker, name, relayed, to_peers, to_client });
            }
            self.held_by_user[user] -= 1;
            self.held_by_worker[worker] -= 1;
        }
        Some(leg)
    }

    fn permit(&mut self, now: Nanos, flow: &Flow, ip: IpAddr) {
        let Some(claim) = self.claims.get_mut(flow) else { return };
        let expires = now.saturating_add(PERMISSION_LIFETIME);
        let held = &mut self.permissions[usize::from(claim.worker)];
        let Some(leg) = claim.legs[place(ip.is_ipv4())].as_mut() else { return };
        let before = leg.permissions.insert(ip, expires);
        held.held += u32::from(before.is_none());
        held.live += u32::from(before.is_none_or(|before| before <= now));
        if before == Some(expires) {
            return;
        }
        let what = What::Permission(ip);
        self.ends.push(Reverse(End { at: expires, expires, flow: *flow, serial: claim.serial, what }));
    }

    fn bind(&mut self, now: Nanos, flow: &Flow, number: u16, peer: SocketAddr) {
        let Some(claim) = self.claims.get_mut(flow) else { return };
        let expires = now.saturating_add(CHANNEL_LIFETIME);
        let held = &mut self.channels[usize::from(claim.worker)];
        // What was in the way has expired, or the request would have been refused.
        let other = claim.channel(number).map(|(bound, _)| bound).filter(|bound| *bound != peer);
        if let Some(leg) = other.and_then(|bound| claim.legs[place(bound.is_ipv4())].as_mut()) {
            held.held -= u32::from(leg.channels.remove(&number).is_some());
        }
        let Some(leg) = claim.legs[place(peer.is_ipv4())].as_mut() else { return };
        let stale: Vec<u16> = leg.channels_of(peer).map(|(bound, _)| bound).filter(|bound| *bound != number).collect();
        for other in stale {
            held.held -= u32::from(leg.channels.remove(&other).is_some());
        }
        let before = leg.channels.insert(number, (peer, expires)).map(|(_, before)| before);
        held.held += u32::from(before.is_none());
        held.live += u32::from(before.is_none_or(|before| before <= now));
        if before == Some(expires) {
            return;
        }
        let what = What::Channel(number, peer);
        self.ends.push(Reverse(End { at: expires, expires, flow: *flow, serial: claim.serial, what }));
    }

    /// The operator denies a peer: what permissions are denied now are gone.
    pub(in super::super) fn deny(&mut self, now: Nanos, ip: IpAddr) {
        self.policy.rules.push(PeerRule::deny(ip));
        for claim in self.claims.values_mut() {
            let held = &mut self.permissions[usize::from(claim.worker)];
            for leg in claim.legs.iter_mut().flatten() {
                leg.permissions.retain(|ip, expires| {
                    let stays = self.policy.may_permit(*ip);
                    held.held -= u32::from(!stays);
                    held.live -= u32::from(!stays && now < *expires);
                    stays
                });
            }
        }
    }

    /// A listener is opened on a peer's address and port, or closed again: permissions and channels stay.
    pub(in super::super) fn toggle_listener(&mut self, peer: SocketAddr) {
        match self.policy.listeners.iter().position(|listener| *listener == peer) {
            Some(at) => {
                self.policy.listeners.remove(at);
            }
            None => self.policy.listeners.push(peer),
        }
    }

    /// Listeners on addresses of peers.
    pub(in super::super) fn listeners(&self) -> &[SocketAddr] {
        &self.policy.listeners
    }

    /// The peers of live channels, and the relayed address of each.
    pub(in super::super) fn bound(&self, now: Nanos) -> Vec<(SocketAddr, SocketAddr)> {
        let legs = self.claims.values().flat_map(Claim::legs).filter(|leg| now < leg.expires);
        let channels = legs.flat_map(|leg| leg.channels.values().map(move |channel| (channel, leg.relayed)));
        let live = channels.filter(|((_, expires), _)| now < *expires);
        live.map(|((peer, _), relayed)| (*peer, relayed)).collect()
    }

    /// The operator's rules.
    pub(in super::super) fn peer_rules(&self) -> &[PeerRule] {
        &self.policy.rules
    }

    /// The server says that a relay is free: false where its allocation should live on.
    pub(in super::super) fn retired(&mut self, now: Nanos, relay: RelayPlace) -> bool {
        if let Some(user) = self.retiring.remove(&relay) {
            self.resting.insert(relay, user);
            return true;
        }
        if let Some(token) = self.reserved.get(&relay).copied() {
            let Some(held) = self.reservations.get(&token).filter(|held| held.alive(now) != Alive::Yes) else {
                return false;
            };
            let user = held.user;
            self.held_by_user[user] -= 1;
            self.reservations.remove(&token);
            self.reserved.remove(&relay);
            self.resting.insert(relay, user);
            return true;
        }
        let Some(flow) = self.by_relay.get(&relay).copied() else { return false };
        let at = [0, 1].into_iter().find(|at| {
            let leg = self.claims.get(&flow).and_then(|claim| claim.legs[*at].as_ref());
            leg.is_some_and(|leg| leg.relay == relay && leg.expires <= now)
        });
        let user = self.claims.get(&flow).map(|claim| claim.user);
        let ended = at.and_then(|at| self.end_leg(now, &flow, at)).zip(user);
        ended.is_some_and(|(leg, user)| self.resting.insert(leg.relay, user).is_none())
    }

    /// When the next allocation ends.
    pub(in super::super) fn earliest_end(&self) -> Option<Nanos> {
        self.by_expiry.first().map(|(expires, _, _)| *expires)
    }

    /// Allocations that were ended and whose relays the server still keeps.
    pub(in super::super) fn kept_back(&self) -> usize {
        self.retiring.len()
    }

    /// The driver registered a relay.
    pub(in super::super) fn relay_added(&mut self, relay: RelayPlace, addr: SocketAddr, partner: Option<u32>) {
        let worker = usize::from(relay.0);
        self.resting.remove(&relay);
        self.pools[worker].insert(relay.1, Waiting { addr, partner });
        self.families[worker][usize::from(addr.is_ipv6())] = true;
    }

    /// Whether a reply without credentials to a flow may find its budget, or that of an address that shares its bucket,
    /// used up.
    pub(super) fn may_be_held_back(&self, now: Nanos, flow: &Flow) -> bool {
        let Some((per_second, burst)) = self.rules.error_budget else { return false };
        let is_live = self.claims.get(flow).is_some_and(|claim| alive(claim.expires(), now) == Alive::Yes);
        if flow.transport != UDP || is_live {
            return false;
        }
        let interval = Nanos::PER_SECOND / u64::from(per_second);
        let depth = interval * u64::from(burst);
        let taken = |bucket: &Bucket| bucket.saturating_sub(now).0;
        let ip = flow.client.ip();
        let others: u64 =
            self.buckets.iter().filter(|(of, _)| **of != network(ip)).map(|(_, bucket)| taken(bucket)).sum();
        let own = self.buckets.get(&network(ip)).map_or(0, taken);
        // Addresses that share a bucket share its rate too: together they recover more slowly than each alone.
        let slack = if taken(&self.all_buckets) + interval > depth { depth / 4 } else { 0 };
        own + others + slack + interval * EXCESS_MAX > depth
    }

    /// An error reply went to a stranger; false where there cannot have been budget for it.
    pub(in super::super) fn spend(&mut self, now: Nanos, flow: &Flow, (asked, answered): (usize, usize)) -> bool {
        let Some((per_second, burst)) = self.rules.error_budget else { return true };
        let excess = answered.saturating_sub(3 * asked) as u64;
        // Where the claim has ended at about this time, the server may have seen it or not.
        if excess == 0 || flow.transport != UDP || self.claims.contains_key(flow) {
            return true;
        }
        let interval = Nanos::PER_SECOND / u64::from(per_second);
        if self.buckets.len() > 4_096 {
            self.buckets.retain(|_, bucket| *bucket > now);
        }
        self.all_buckets = self.all_buckets.max(now).saturating_add(Nanos(interval * excess));
        let bucket = self.buckets.entry(network(flow.client.ip())).or_default();
        let full_at = (*bucket).max(now).saturating_add(Nanos(interval * excess));
        *bucket = full_at;
        full_at.saturating_sub(now).0 <= interval * u64::from(burst)
    }

    /// Whether a user's budget of allocations, or that of another with its bucket, may be used up.
    pub(super) fn may_allocate_too_fast(&self, now: Nanos) -> bool {
        let Some((per_second, burst)) = self.rules.shares.allocation_rate else { return false };
        let interval = Nanos::PER_SECOND / u64::from(per_second);
        let taken: u64 = self.allocated.iter().map(|[_, bucket]| bucket.saturating_sub(now).0).sum();
        taken + 2 * interval > interval * u64::from(burst)
    }

    /// A user has got an allocation, or found no room; false where there cannot have been budget.
    pub(in super::super) fn spend_allocation(&mut self, now: Nanos, user: usize, is_granted: bool) -> bool {
        let Some((per_second, burst)) = self.rules.shares.allocation_rate else { return true };
        let interval = Nanos::PER_SECOND / u64::from(per_second);
        let [sure, most] = &mut self.allocated[user];
        *most = (*most).max(now).saturating_add(Nanos(interval));
        if is_granted {
            *sure = (*sure).max(now).saturating_add(Nanos(interval));
        }
        sure.saturating_sub(now).0 <= interval * u64::from(burst)
    }

    /// Whether the answer to a wrong token may find its user's budget, or that of another with its bucket, used up.
    pub(super) fn guess_may_be_held_back(&self, now: Nanos) -> bool {
        let taken: u64 = self.guesses.iter().map(|bucket| bucket.saturating_sub(now).0).sum();
        taken + 2 * GUESS_INTERVAL > GUESS_INTERVAL * GUESS_BURST
    }

    /// A user guessed a wrong token; false where there cannot have been budget for it.
    pub(in super::super) fn spend_guess(&mut self, now: Nanos, user: usize) -> bool {
        let full_at = self.guesses[user].max(now).saturating_add(Nanos(GUESS_INTERVAL));
        self.guesses[user] = full_at;
        full_at.saturating_sub(now).0 <= GUESS_INTERVAL * GUESS_BURST
    }
}

/// The most bytes that an error reply without credentials has beyond three times its request.
const EXCESS_MAX: u64 = 64;
/// The transport of a [`Flow`].
const UDP: u8 = 0;
/// Answers to wrong tokens of one user: ten a second, and 256 at once.
const GUESS_INTERVAL: u64 = Nanos::PER_SECOND / 10;
const GUESS_BURST: u64 = 256;

/// Whose budget: an IPv4 address, or the first half of an IPv6 address.
pub(super) fn network(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => ip,
        IpAddr::V6(ip) => std::net::Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
    }
}
