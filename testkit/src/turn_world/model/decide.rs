//! What a request whose sender is known is answered with (RFC 8656 sections 7.2, 8.2, 10.2 and 12.2).

use std::net::{IpAddr, SocketAddr};

use tt_model::Nanos;

use super::policy::is_tunnel;
use super::{Alive, Claim, Codes, Flow, Held, Model, alive};
use crate::turn_world::wire::{self, Reading};

const UDP: u8 = 17;

impl Model {
    pub(super) fn decide(&self, now: Nanos, worker: u16, flow: &Flow, user: usize, message: &Reading<'_>) -> Codes {
        if message.method == wire::ALLOCATE {
            return self.allocate(now, worker, flow, user, message);
        }
        let Some(claim) = self.claims.get(flow) else { return Codes::one(437) };
        let decided = match (claim.user == user, message.method) {
            (false, _) => Codes::one(441),
            (true, wire::REFRESH) => refresh(claim, message),
            (true, wire::CREATE_PERMISSION) => self.create_permission(now, claim, message),
            (true, _) => self.channel_bind(now, claim, message),
        };
        match alive(claim.expires, now) {
            Alive::Yes => decided,
            Alive::Maybe => decided.and(437),
            Alive::No => Codes::one(437),
        }
    }

    fn allocate(&self, now: Nanos, worker: u16, flow: &Flow, user: usize, message: &Reading<'_>) -> Codes {
        let existing = self.claims.get(flow).map(|claim| {
            // The note in section 7.2: the request that made it, sent again, is answered as before.
            let same = claim.tid == message.tid && claim.user == user;
            (alive(claim.expires, now), Codes::one(if same { 0 } else { 437 }))
        });
        let anew = match malformed_allocate(message) {
            // Guesses at tokens share the budget of strangers.
            Some(508) if message.has(wire::RESERVATION_TOKEN) => {
                Codes { or_silence: self.budget_may_be_spent(now, flow.client.ip()), ..Codes::one(508) }
            }
            Some(code) => Codes::one(code),
            None => self.allocate_anew(now, worker, flow, user, message),
        };
        let anew = if is_tunnel(flow.client.ip()) {
            if anew.allow(0) { Codes::one(403) } else { anew.and(403) }
        } else {
            anew
        };
        match existing {
            Some((Alive::Yes, codes)) => codes,
            Some((Alive::Maybe, codes)) => codes.and_all(&anew),
            Some((Alive::No, _)) | None => anew,
        }
    }

    /// A well-formed Allocate on a free five-tuple: does it fit?
    fn allocate_anew(&self, now: Nanos, worker: u16, flow: &Flow, user: usize, message: &Reading<'_>) -> Codes {
        let wants_ipv4 = message.get(wire::ADDRESS_FAMILY).is_none_or(|family| family.first() == Some(&1));
        let wants_even = message.has(wire::EVEN_PORT);
        let pool = &self.pools[usize::from(worker)];
        if !self.families[usize::from(worker)][usize::from(!wants_ipv4)] {
            return Codes::one(440);
        }
        let mut refusals = Codes::default();
        let suits = |addr: &SocketAddr| addr.is_ipv4() == wants_ipv4 && (!wants_even || addr.port().is_multiple_of(2));
        if !pool.values().any(suits) {
            refusals = refusals.and(508);
        }
        // The server gives up what has expired on this five-tuple first, and everything else within a second.
        let own = self.claims.get(flow).filter(|claim| claim.expires <= now);
        let own = |counts: &dyn Fn(&Claim) -> bool| u32::from(own.is_some_and(counts));
        let expired = |counts: &dyn Fn(&Claim) -> bool| {
            let dead = self.by_expiry.iter().take_while(|(expires, _)| *expires <= now);
            dead.filter(|(_, flow)| self.claims.get(flow).is_some_and(counts)).count() as u32
        };
        let bounds = [
            (
                self.held_by_user[user],
                self.rules.allocations_per_user,
                486,
                &(|claim: &Claim| claim.user == user) as &dyn Fn(&Claim) -> bool,
            ),
            (self.claims.len() as u32, self.rules.allocations_total, 486, &|_| true),
            (self.held_by_worker[usize::from(worker)], self.rules.allocations, 508, &|claim| claim.relay.0 == worker),
        ];
        let mut doubts = Codes::default();
        for (held, bound, code, counts) in bounds {
            if held - expired(counts) >= bound {
                refusals = refusals.and(code);
            } else if held - own(counts) >= bound {
                doubts = doubts.and(code);
            }
        }
        if refusals.list().is_empty() { Codes::one(0).and_all(&doubts) } else { refusals.and_all(&doubts) }
    }

    fn create_permission(&self, now: Nanos, claim: &Claim, message: &Reading<'_>) -> Codes {
        let mut faults = Codes::default();
        let mut ips: Vec<IpAddr> = Vec::new();
        for peer in message.addresses(wire::PEER_ADDRESS) {
            match peer {
                None => faults = faults.and(400),
                Some(peer) if peer.is_ipv4() != claim.relayed.is_ipv4() => faults = faults.and(443),
                Some(peer) if !self.may_permit(peer.ip()) => faults = faults.and(403),
                Some(peer) => ips.push(peer.ip()),
            }
        }
        if !faults.list().is_empty() {
            return faults;
        }
        if ips.is_empty() {
            return Codes::one(400);
        }
        ips.sort_unstable();
        ips.dedup();
        self.room(now, claim, &ips, None)
    }

    fn channel_bind(&self, now: Nanos, claim: &Claim, message: &Reading<'_>) -> Codes {
        let number = message.number(wire::CHANNEL_NUMBER).map(|number| (number >> 16) as u16);
        let (Some(number), Some(peer)) = (number, message.address(wire::PEER_ADDRESS)) else { return Codes::one(400) };
        if !(0x4000..=0x4FFF).contains(&number) {
            return Codes::one(400);
        }
        let other_peer = claim.channels.get(&number).filter(|(bound, _)| *bound != peer).map(|(_, expires)| *expires);
        let other_number = claim.channels_of(peer).filter(|(bound, _)| *bound != number).map(|(_, expires)| expires);
        let in_the_way = other_peer.into_iter().chain(other_number).map(|expires| alive(expires, now)).max();
        let mut codes = if in_the_way == Some(Alive::Maybe) { Codes::one(400) } else { Codes::default() };
        if in_the_way == Some(Alive::Yes) {
            return Codes::one(400);
        }
        if peer.is_ipv4() != claim.relayed.is_ipv4() {
            return codes.and(443);
        }
        let own_relay = if self.policy.is_own(peer.ip()) { self.may_reach(now, peer) } else { Alive::Yes };
        if peer.port() == 0 || !self.may_permit(peer.ip()) || own_relay == Alive::No {
            return codes.and(403);
        }
        if own_relay == Alive::Maybe {
            codes = codes.and(403);
        }
        codes.and_all(&self.room(now, claim, &[peer.ip()], Some(number)))
    }

    /// Whether so many permissions, and perhaps a channel, fit: 508 where not.
    fn room(&self, now: Nanos, claim: &Claim, ips: &[IpAddr], channel: Option<u16>) -> Codes {
        let worker = usize::from(claim.relay.0);
        let own = |ends: &mut dyn Iterator<Item = Nanos>| {
            ends.fold(Held::default(), |held, end| Held { live: held.live + u32::from(now < end), held: held.held + 1 })
        };
        let known: Vec<Option<Nanos>> = ips.iter().map(|ip| claim.permissions.get(ip).copied()).collect();
        let permissions = own(&mut claim.permissions.values().copied());
        let fits = Fits { now, codes: Codes::default() }
            .more(&known, permissions, self.rules.permissions_per_allocation)
            .more(&known, self.permissions[worker], self.rules.permissions);
        let Some(number) = channel else { return fits.codes() };
        let known = [claim.channels.get(&number).map(|(_, expires)| *expires)];
        let channels = own(&mut claim.channels.values().map(|(_, expires)| *expires));
        fits.more(&known, channels, self.rules.channels_per_allocation)
            .more(&known, self.channels[worker], self.rules.channels)
            .codes()
    }

    fn may_permit(&self, ip: IpAddr) -> bool {
        self.policy.is_own(ip) || !self.policy.denies(ip)
    }

    /// RFC 8656 section 7.2: at least the default, at most the maximum.
    pub(in super::super) fn lifetime_s(&self, asked_s: Option<u32>) -> u32 {
        asked_s.unwrap_or(0).clamp(self.rules.lifetime_default_s, self.rules.lifetime_max_s)
    }
}

/// Whether something fits under several bounds.
struct Fits {
    now: Nanos,
    codes: Codes,
}

impl Fits {
    /// `known` are the ends of those asked for that exist, `held` is what counts against `bound` before.
    fn more(self, known: &[Option<Nanos>], held: Held, bound: u32) -> Self {
        let fresh = known.iter().filter(|end| end.is_none_or(|end| end <= self.now)).count() as u32;
        let absent = known.iter().filter(|end| end.is_none()).count() as u32;
        let codes = if fresh > 0 && held.live + fresh > bound {
            Codes::one(508)
        } else if absent > 0 && held.held + absent > bound && !self.codes.allow(508) {
            Codes::one(0).and(508)
        } else {
            self.codes
        };
        // A bound that is surely passed outweighs one that may be.
        let sure = |codes: &Codes| codes.allow(508) && !codes.allow(0);
        Self { codes: if sure(&self.codes) { self.codes } else { codes }, ..self }
    }

    fn codes(self) -> Codes {
        if self.codes.list().is_empty() { Codes::one(0) } else { self.codes }
    }
}

/// What is wrong with an Allocate whatever the server has, in the order of section 7.2.
fn malformed_allocate(message: &Reading<'_>) -> Option<u16> {
    let family = |kind| message.get(kind).map(|value| if value.len() == 4 { value[0] } else { 0xFF });
    match message.get(wire::TRANSPORT) {
        Some([UDP, _, _, _]) => {}
        Some([_, _, _, _]) => return Some(442),
        Some(_) | None => return Some(400),
    }
    let (requested, additional) = (family(wire::ADDRESS_FAMILY), family(wire::ADDITIONAL_FAMILY));
    let even = message.get(wire::EVEN_PORT);
    if requested == Some(0xFF) || additional == Some(0xFF) {
        return Some(400);
    }
    if let Some(token) = message.get(wire::RESERVATION_TOKEN) {
        let alone = even.is_none() && requested.is_none() && additional.is_none();
        return Some(if token.len() == 8 && alone { 508 } else { 400 });
    }
    if requested.is_some() && additional.is_some() {
        return Some(400);
    }
    if requested.is_some_and(|family| family != 1 && family != 2) {
        return Some(440);
    }
    if even.is_some_and(|even| even.len() != 1) || additional.is_some_and(|family| family != 2) {
        return Some(400);
    }
    if even.is_some_and(|even| even[0] & 0x80 != 0) {
        return Some(if additional.is_some() { 400 } else { 508 });
    }
    message.get(wire::LIFETIME).filter(|value| value.len() != 4).map(|_| 400)
}

fn refresh(claim: &Claim, message: &Reading<'_>) -> Codes {
    let family = if claim.relayed.is_ipv4() { 1 } else { 2 };
    match (message.get(wire::ADDRESS_FAMILY), message.get(wire::LIFETIME)) {
        (Some(value), _) if value.len() != 4 => Codes::one(400),
        (Some(value), _) if value[0] != family => Codes::one(443),
        (_, Some(value)) if value.len() != 4 => Codes::one(400),
        _ => Codes::one(0),
    }
}
