//! What the model remembers of what was done: claims, their ends, and how many of everything there are.

use std::cmp::Reverse;
use std::net::{IpAddr, SocketAddr};

use tt_model::Nanos;

use super::{Bucket, CHANNEL_LIFETIME, Claim, Flow, LATE, Model, PERMISSION_LIFETIME, RelayPlace};
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
    Channel(u16),
}

impl Model {
    /// Time goes on to `now`: what has expired no longer counts as live, what must be gone no longer counts at all.
    /// The allocation that should have been ended by now, if there is one.
    pub(in super::super) fn pass(&mut self, now: Nanos) -> Option<Flow> {
        while self.ends.peek().is_some_and(|Reverse(end)| end.at <= now) {
            let Some(Reverse(end)) = self.ends.pop() else { break };
            let Some(claim) = self.claims.get_mut(&end.flow).filter(|claim| claim.serial == end.serial) else {
                continue;
            };
            let (worker, is_over) = (usize::from(claim.relay.0), end.at > end.expires);
            let held = match end.what {
                What::Permission(ip) if claim.permissions.get(&ip) == Some(&end.expires) => {
                    if is_over {
                        claim.permissions.remove(&ip);
                    }
                    &mut self.permissions[worker]
                }
                What::Channel(number) if claim.channels.get(&number).is_some_and(|(_, at)| *at == end.expires) => {
                    if is_over {
                        claim.channels.remove(&number);
                    }
                    &mut self.channels[worker]
                }
                What::Permission(_) | What::Channel(_) => continue,
            };
            if is_over {
                held.held -= 1;
            } else {
                held.live -= 1;
                self.ends.push(Reverse(End { at: end.expires.saturating_add(LATE), ..end }));
            }
        }
        let (expires, flow) = self.by_expiry.first()?;
        (expires.saturating_add(LATE) < now).then_some(*flow)
    }

    /// A request was granted.
    pub(in super::super) fn learn(
        &mut self,
        now: Nanos,
        flow: &Flow,
        user: usize,
        request: &Reading<'_>,
        relay: Option<(RelayPlace, SocketAddr)>,
    ) {
        match request.method {
            wire::ALLOCATE => {
                if let Some((relay, relayed)) = relay {
                    self.claim(now, flow, user, request, (relay, relayed));
                }
            }
            wire::REFRESH if request.number(wire::LIFETIME) == Some(0) => {
                if let Some(claim) = self.end(now, flow) {
                    self.retiring.insert(claim.relay);
                }
            }
            wire::REFRESH => {
                let lifetime_s = self.lifetime_s(request.number(wire::LIFETIME));
                if let Some(claim) = self.claims.get_mut(flow) {
                    self.by_expiry.remove(&(claim.expires, *flow));
                    claim.expires = now.saturating_add(Nanos::from_secs(u64::from(lifetime_s)));
                    self.by_expiry.insert((claim.expires, *flow));
                }
            }
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

    fn claim(
        &mut self,
        now: Nanos,
        flow: &Flow,
        user: usize,
        request: &Reading<'_>,
        (relay, relayed): (RelayPlace, SocketAddr),
    ) {
        if self.claims.get(flow).is_some_and(|claim| claim.tid == request.tid && claim.relay == relay) {
            return;
        }
        if let Some(expired) = self.end(now, flow) {
            self.retiring.insert(expired.relay);
        }
        let lifetime_s = self.lifetime_s(request.number(wire::LIFETIME));
        let expires = now.saturating_add(Nanos::from_secs(u64::from(lifetime_s)));
        self.serial += 1;
        let claim = Claim {
            serial: self.serial,
            user,
            tid: request.tid,
            relay,
            relayed,
            expires,
            permissions: Default::default(),
            channels: Default::default(),
        };
        self.pools[usize::from(relay.0)].remove(&relay.1);
        self.by_relay.insert(relay, *flow);
        self.relayed.insert(relayed, *flow);
        self.by_expiry.insert((expires, *flow));
        self.held_by_user[user] += 1;
        self.held_by_worker[usize::from(relay.0)] += 1;
        self.claims.insert(*flow, claim);
    }

    /// The flow's connection is closed, and its allocation with it.
    pub(in super::super) fn close(&mut self, now: Nanos, flow: &Flow) {
        if let Some(claim) = self.end(now, flow) {
            self.retiring.insert(claim.relay);
        }
    }

    fn end(&mut self, now: Nanos, flow: &Flow) -> Option<Claim> {
        let claim = self.claims.remove(flow)?;
        let worker = usize::from(claim.relay.0);
        self.by_relay.remove(&claim.relay);
        self.relayed.remove(&claim.relayed);
        self.by_expiry.remove(&(claim.expires, *flow));
        self.held_by_user[claim.user] -= 1;
        self.held_by_worker[worker] -= 1;
        for expires in claim.permissions.values() {
            self.permissions[worker].held -= 1;
            self.permissions[worker].live -= u32::from(now < *expires);
        }
        for (_, expires) in claim.channels.values() {
            self.channels[worker].held -= 1;
            self.channels[worker].live -= u32::from(now < *expires);
        }
        Some(claim)
    }

    fn permit(&mut self, now: Nanos, flow: &Flow, ip: IpAddr) {
        let Some(claim) = self.claims.get_mut(flow) else { return };
        let expires = now.saturating_add(PERMISSION_LIFETIME);
        let held = &mut self.permissions[usize::from(claim.relay.0)];
        let before = claim.permissions.insert(ip, expires);
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
        let held = &mut self.channels[usize::from(claim.relay.0)];
        // What was in the way has expired, or the request would have been refused.
        let stale: Vec<u16> =
            claim.channels_of(peer).map(|(bound, _)| bound).filter(|bound| *bound != number).collect();
        for other in stale {
            held.held -= u32::from(claim.channels.remove(&other).is_some());
        }
        let before = claim.channels.insert(number, (peer, expires)).map(|(_, before)| before);
        held.held += u32::from(before.is_none());
        held.live += u32::from(before.is_none_or(|before| before <= now));
        if before == Some(expires) {
            return;
        }
        let what = What::Channel(number);
        self.ends.push(Reverse(End { at: expires, expires, flow: *flow, serial: claim.serial, what }));
    }

    /// The server says that a relay is free: false where its allocation should live on.
    pub(in super::super) fn retired(&mut self, now: Nanos, relay: RelayPlace) -> bool {
        if self.retiring.remove(&relay) {
            return true;
        }
        let Some(flow) = self.by_relay.get(&relay).copied() else { return false };
        self.end(now, &flow).is_some_and(|claim| claim.expires <= now)
    }

    /// When the next allocation ends.
    pub(in super::super) fn earliest_end(&self) -> Option<Nanos> {
        self.by_expiry.first().map(|(expires, _)| *expires)
    }

    /// Allocations that were ended and whose relays the server still keeps.
    pub(in super::super) fn kept_back(&self) -> usize {
        self.retiring.len()
    }

    /// The driver registered a relay.
    pub(in super::super) fn relay_added(&mut self, relay: RelayPlace, addr: SocketAddr) {
        let worker = usize::from(relay.0);
        self.pools[worker].insert(relay.1, addr);
        self.families[worker][usize::from(addr.is_ipv6())] = true;
    }

    /// Whether the budget of error replies of `ip`, or of an address that shares its bucket, may be spent.
    pub(super) fn budget_may_be_spent(&self, now: Nanos, ip: IpAddr) -> bool {
        let Some((per_second, burst)) = self.rules.error_budget else { return false };
        let interval = Nanos::PER_SECOND / u64::from(per_second);
        let depth = interval * u64::from(burst);
        let taken = |bucket: &Bucket| bucket.saturating_sub(now).0;
        let others: u64 =
            self.buckets.iter().filter(|(of, _)| **of != network(ip)).map(|(_, bucket)| taken(bucket)).sum();
        let own = self.buckets.get(&network(ip)).map_or(0, taken);
        own + others + interval > depth
    }

    /// An error reply went to a stranger; false where there cannot have been budget for it.
    pub(in super::super) fn spend(&mut self, now: Nanos, ip: IpAddr) -> bool {
        let Some((per_second, burst)) = self.rules.error_budget else { return true };
        let interval = Nanos::PER_SECOND / u64::from(per_second);
        if self.buckets.len() > 4_096 {
            self.buckets.retain(|_, bucket| *bucket > now);
        }
        let bucket = self.buckets.entry(network(ip)).or_default();
        let full_at = (*bucket).max(now).saturating_add(Nanos(interval));
        *bucket = full_at;
        full_at.saturating_sub(now).0 <= interval * u64::from(burst)
    }
}

/// Whose budget: an IPv4 address, or the first half of an IPv6 address.
fn network(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => ip,
        IpAddr::V6(ip) => std::net::Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
    }
}
