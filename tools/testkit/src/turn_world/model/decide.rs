//! What a request whose sender is known is answered with (RFC 8656 sections 7.2, 8.2, 10.2 and 12.2).

use std::net::{IpAddr, SocketAddr};

use tt_model::Nanos;

use super::policy::is_tunnel;
use super::shares::{Pool, beyond_channels, beyond_permissions};
use super::{Alive, Claim, Codes, Flow, Held, Model, alive, place};
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
            (true, wire::REFRESH) => refresh(now, claim, message),
            (true, wire::CREATE_PERMISSION) => self.create_permission(now, claim, message),
            (true, _) => self.channel_bind(now, claim, message),
        };
        match alive(claim.expires(), now) {
            Alive::Yes => decided,
            Alive::Maybe => decided.and(437),
            Alive::No => Codes::one(437),
        }
    }

    fn allocate(&self, now: Nanos, worker: u16, flow: &Flow, user: usize, message: &Reading<'_>) -> Codes {
        let existing = self.claims.get(flow).map(|claim| {
            // The note in section 7.2: the request that made it, sent again, is answered as before.
            let same = claim.tid == message.tid && claim.user == user;
            (alive(claim.expires(), now), Codes::one(if same { 0 } else { 437 }))
        });
        let fresh = match wanted(message) {
            Err(code) => Codes::one(code),
            Ok(wanted) => self.allocate_new(now, worker, flow, user, wanted),
        };
        let fresh = if is_tunnel(flow.client.ip()) || self.is_draining {
            if fresh.allow(0) { Codes::one(403) } else { fresh.and(403) }
        } else {
            fresh
        };
        match existing {
            Some((Alive::Yes, codes)) => codes,
            Some((Alive::Maybe, codes)) => codes.and_all(&fresh),
            Some((Alive::No, _)) | None => fresh,
        }
    }

    /// Whether a relay of the family waits at the worker.
    pub(in super::super) fn waits(&self, worker: u16, is_ipv4: bool, even: bool) -> bool {
        let suits = |addr: SocketAddr| addr.is_ipv4() == is_ipv4 && (!even || addr.port().is_multiple_of(2));
        self.pools[usize::from(worker)].values().any(|waiting| suits(waiting.addr))
    }

    /// Whether the worker ever had a relay of the family.
    pub(in super::super) fn serves(&self, worker: u16, is_ipv4: bool) -> bool {
        self.families[usize::from(worker)][place(is_ipv4)]
    }

    /// A well-formed Allocate on a free five-tuple: does it fit?
    fn allocate_new(&self, now: Nanos, worker: u16, flow: &Flow, user: usize, wanted: Wanted) -> Codes {
        let pool = &self.pools[usize::from(worker)];
        let mut units = 1;
        let (mut ports, mut reserves) = (1, 0);
        let (mut fits, mut doubts) = (true, Codes::default());
        match wanted {
            Wanted::One { is_ipv4, .. } | Wanted::Pair { is_ipv4 } if !self.serves(worker, is_ipv4) => {
                return Codes::one(440);
            }
            Wanted::Both { .. } if !self.serves(worker, true) => return Codes::one(440),
            Wanted::One { is_ipv4, even } => fits = self.waits(worker, is_ipv4, even),
            Wanted::Both { even } => {
                ports = [true, false].into_iter().filter(|is_ipv4| self.waits(worker, *is_ipv4, even)).count() as u32;
                fits = ports > 0;
            }
            Wanted::Pair { is_ipv4 } => {
                (units, ports, reserves) = (2, 2, 1);
                fits = pool.values().any(|found| found.addr.is_ipv4() == is_ipv4 && found.partner.is_some());
            }
            Wanted::Reserved(token) => {
                let or_silence = self.guess_may_be_held_back(now);
                let guess = Codes { is_guess: true, or_silence, ..Codes::one(508) };
                let held = self.reservations.get(&token).map(|held| (held, held.alive(now)));
                match held {
                    None | Some((_, Alive::No)) => return guess,
                    // RFC 8656 section 7.2: at every worker and over every transport. Whoever reserved it has paid; where another user claims it, the cost moves to that user.
                    Some((held, is_alive)) => {
                        units = u32::from(held.user != user);
                        ports = units;
                        if is_alive == Alive::Maybe {
                            doubts = doubts.and_all(&guess);
                        }
                    }
                }
            }
        }
        let mut refusals = if fits { Codes::default() } else { Codes::one(508) };
        // The server gives up what has expired on this five-tuple first, and everything else within a second.
        let own = self.claims.get(flow).filter(|claim| claim.expires() <= now);
        let own = |counts: &dyn Fn(&Claim) -> bool| u32::from(own.is_some_and(counts));
        let expired = |counts: &dyn Fn(&Claim) -> bool| {
            let dead = self.by_expiry.iter().take_while(|(expires, _, _)| *expires <= now);
            let mut flows: Vec<&Flow> = dead.map(|(_, flow, _)| flow).collect();
            flows.sort_unstable();
            flows.dedup();
            let counts =
                |flow: &&Flow| self.claims.get(flow).is_some_and(|claim| claim.expires() <= now && counts(claim));
            flows.into_iter().filter(counts).count() as u32
        };
        let (must, may) = self.shortages(now, user, [units, ports, reserves]);
        (refusals, doubts) = (refusals.and_all(&must), doubts.and_all(&may));
        let reserved = |counts: &dyn Fn(usize) -> bool| {
            let dead = self.reservations.values().filter(|held| held.alive(now) != Alive::Yes && counts(held.user));
            dead.count() as u32
        };
        let mut bound = |held: u32, (sure, own): (u32, u32), units: u32, bound: u32, code: u16| {
            if held - sure + units > bound {
                refusals = refusals.and(code);
            } else if held - own + units > bound {
                doubts = doubts.and(code);
            }
        };
        let of_user = |claim: &Claim| claim.user == user;
        let of_worker = |claim: &Claim| claim.worker == worker;
        let dead = expired(&of_user) + reserved(&|of| of == user);
        bound(self.held_by_user[user], (dead, own(&of_user)), units, self.rules.allocations_per_user, 486);
        let held = self.held_by_worker[usize::from(worker)];
        bound(held, (expired(&of_worker), own(&of_worker)), 1, self.rules.allocations, 508);
        if refusals.list().is_empty() { Codes::one(0).and_all(&doubts) } else { refusals.and_all(&doubts) }
    }

    fn create_permission(&self, now: Nanos, claim: &Claim, message: &Reading<'_>) -> Codes {
        let mut faults = Codes::default();
        let mut ips: Vec<IpAddr> = Vec::new();
        for peer in message.addresses(wire::PEER_ADDRESS) {
            match peer {
                None => faults = faults.and(400),
                Some(peer) if family(now, claim, peer) == Alive::No => faults = faults.and(443),
                Some(peer) if !self.policy.may_permit(peer.ip()) => faults = faults.and(403),
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
        let other_peer = claim.channel(number).filter(|(bound, _)| *bound != peer).map(|(_, expires)| expires);
        let leg = claim.leg_of(peer);
        let other_number = leg.into_iter().flat_map(|leg| leg.channels_of(peer)).filter(|(bound, _)| *bound != number);
        let other_number = other_number.map(|(_, expires)| expires);
        let in_the_way = other_peer.into_iter().chain(other_number).map(|expires| alive(expires, now)).max();
        let mut codes = if in_the_way == Some(Alive::Maybe) { Codes::one(400) } else { Codes::default() };
        if in_the_way == Some(Alive::Yes) {
            return Codes::one(400);
        }
        if family(now, claim, peer) == Alive::No {
            return codes.and(443);
        }
        let reached = self.may_reach(now, peer);
        if reached == Alive::No {
            return codes.and(403);
        }
        if reached == Alive::Maybe {
            codes = codes.and(403);
        }
        codes.and_all(&self.room(now, claim, &[peer.ip()], Some(number)))
    }

    /// Whether so many permissions, and perhaps a channel, fit: 508 where not.
    fn room(&self, now: Nanos, claim: &Claim, ips: &[IpAddr], channel: Option<u16>) -> Codes {
        let worker = usize::from(claim.worker);
        let own = |ends: &mut dyn Iterator<Item = Nanos>| {
            ends.fold(Held::default(), |held, end| Held { live: held.live + u32::from(now < end), held: held.held + 1 })
        };
        let known: Vec<Option<Nanos>> =
            ips.iter().map(|ip| claim.legs().find_map(|leg| leg.permissions.get(ip).copied())).collect();
        let permissions = own(&mut claim.legs().flat_map(|leg| leg.permissions.values().copied()));
        let fits = Fits { now, codes: Codes::default() }
            .more(&known, permissions, self.rules.permissions_per_allocation)
            .more(&known, self.permissions[worker], self.rules.permissions);
        let units = |pool, (has, known): (Held, &[Option<Nanos>])| {
            let beyond = if pool == Pool::Channels { beyond_channels } else { beyond_permissions };
            let absent = known.iter().filter(|end| end.is_none()).count() as u32;
            let fresh = known.iter().filter(|end| end.is_none_or(|end| end <= now)).count() as u32;
            self.runs_short(now, claim.user, pool, (beyond(has.live, absent), beyond(has.held, fresh)))
        };
        let fits = fits.pooled(units(Pool::Permissions, (permissions, &known)));
        let Some(number) = channel else { return fits.codes() };
        let known = [claim.channel(number).map(|(_, expires)| expires)];
        let channels = own(&mut claim.legs().flat_map(|leg| leg.channels.values().map(|(_, expires)| *expires)));
        fits.pooled(units(Pool::Channels, (channels, &known)))
            .more(&known, channels, self.rules.channels_per_allocation)
            .more(&known, self.channels[worker], self.rules.channels)
            .codes()
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

    /// The same for what all users share.
    fn pooled(self, (must, may): (bool, bool)) -> Self {
        let is_sure = self.codes.allow(508) && !self.codes.allow(0);
        let codes = if must || is_sure { Codes::one(508) } else { self.codes };
        Self { codes: if may && !codes.allow(508) { Codes::one(0).and(508) } else { codes }, ..self }
    }

    fn codes(self) -> Codes {
        if self.codes.list().is_empty() { Codes::one(0) } else { self.codes }
    }
}

/// Which relayed addresses an Allocate asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Wanted {
    One {
        is_ipv4: bool,
        even: bool,
    },
    /// IPv4 and IPv6.
    Both {
        even: bool,
    },
    /// An even port, and the next one in reserve.
    Pair {
        is_ipv4: bool,
    },
    Reserved(u64),
}

/// What an Allocate asks for, or what is wrong with it whatever the server has, in the order of section 7.2.
pub(in super::super) fn wanted(message: &Reading<'_>) -> Result<Wanted, u16> {
    let family = |kind| message.get(kind).map(|value| if value.len() == 4 { value[0] } else { 0xFF });
    match message.get(wire::TRANSPORT) {
        Some([UDP, _, _, _]) => {}
        Some([_, _, _, _]) => return Err(442),
        Some(_) | None => return Err(400),
    }
    let (requested, additional) = (family(wire::ADDRESS_FAMILY), family(wire::ADDITIONAL_FAMILY));
    let even = message.get(wire::EVEN_PORT);
    let lifetime_is_right = message.get(wire::LIFETIME).is_none_or(|value| value.len() == 4);
    let wanted = match (message.get(wire::RESERVATION_TOKEN), requested, additional, even) {
        (_, Some(0xFF), _, _) | (_, _, Some(0xFF), _) => return Err(400),
        (Some(token), None, None, None) => Wanted::Reserved(u64::from_be_bytes(token.try_into().map_err(|_| 400u16)?)),
        (Some(_), _, _, _) | (None, Some(_), Some(_), _) => return Err(400),
        (None, Some(family), _, _) if family != 1 && family != 2 => return Err(440),
        (None, _, _, Some(even)) if even.len() != 1 => return Err(400),
        (None, None, Some(2), even) if even.is_none_or(|even| even[0] & 0x80 == 0) => {
            Wanted::Both { even: even.is_some() }
        }
        (None, None, Some(_), _) => return Err(400),
        (None, family, None, Some(even)) if even[0] & 0x80 != 0 => Wanted::Pair { is_ipv4: family != Some(2) },
        (None, family, None, even) => Wanted::One { is_ipv4: family != Some(2), even: even.is_some() },
    };
    if lifetime_is_right { Ok(wanted) } else { Err(400) }
}

/// Whether the allocation has a relayed address of the peer's family.
fn family(now: Nanos, claim: &Claim, peer: SocketAddr) -> Alive {
    claim.leg_of(peer).map_or(Alive::No, |leg| if now < leg.expires { Alive::Yes } else { Alive::No })
}

fn refresh(now: Nanos, claim: &Claim, message: &Reading<'_>) -> Codes {
    let named = message.get(wire::ADDRESS_FAMILY);
    if named.is_some_and(|value| value.len() != 4) {
        return Codes::one(400);
    }
    let has = |family: u8| claim.legs[place(family == 1)].as_ref().is_some_and(|leg| now < leg.expires);
    match (named, message.get(wire::LIFETIME)) {
        (Some(value), _) if !matches!(value[0], 1 | 2) || !has(value[0]) => Codes::one(443),
        (_, Some(value)) if value.len() != 4 => Codes::one(400),
        _ => Codes::one(0),
    }
}
