//! Invariants after every call of the engine.
//!
//! 1. nothing is relayed without a live permission for that address;
//! 2. a relayed address belongs to one allocation;
//! 3. the ledger closes: what came in went out or was dropped by name, what was made lives or was freed, and what
//!    ended reports the bytes that it relayed;
//! 4. every answer is to a request, at most one for a delivery, never to an address that was not seen;
//! 5. input that proves nothing changes no table;
//! 6. payloads come out as they went in, and at the right door;
//! 7. timers are at most a second late, and never early;
//! 8. tables hold no more than what lives;
//! 9. the answer's code is the reference model's;
//! 10. when the faults stop, every honest client relays within five seconds;
//! 11. no limit of traffic is exceeded on the wire over any time, and nothing is dropped for a limit that is not reached;
//! 12. a user has its share: what there is room for is not rejected.

use std::net::SocketAddr;

use tt_model::{FiveTuple, Nanos, Transport};

use super::host::{Done, Host, Tables};
use super::model::{Alive, Claim, Codes, Expected, Flow, Grant, Model, OFFER, Proven, Wanted, wanted};
use super::wire::{self, Reading};

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its number, 1 to 12.
    pub invariant: u8,
    /// Returns the result.
    pub what: String,
    /// When, in virtual time.
    pub at: Nanos,
}

/// Facts that the model takes from a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lesson {
    Nothing,
    /// A request of this user was granted; an Allocate with what it has now.
    Granted(usize, Option<Grant>),
    /// An error went to a stranger, perhaps with a nonce.
    Refused(Option<Vec<u8>>),
    /// This user guessed a wrong token.
    Guessed(usize),
}

/// One datagram's arrival, as far as the checks are concerned.
#[derive(Clone, Copy)]
pub(super) struct Delivery<'a> {
    pub(super) now: Nanos,
    pub(super) worker: u16,
    pub(super) flow: &'a FiveTuple,
    pub(super) bytes: &'a [u8],
}

impl Delivery<'_> {
    fn fail<T>(&self, invariant: u8, what: impl Into<String>) -> Result<T, Failure> {
        let what = format!("{} (from {} at worker {})", what.into(), self.flow.client, self.worker);
        Err(Failure { invariant, what, at: self.now })
    }
}

/// Compares what was done with a datagram with what must become of it.
pub(super) fn check(
    delivery: &Delivery<'_>,
    model: &Model,
    expected: &Expected<'_>,
    done: &[Done],
) -> Result<Lesson, Failure> {
    let [done] = done else { return delivery.fail(4, format!("{} outputs of one datagram", done.len())) };
    match (expected, done) {
        (Expected::Answer(codes), Done::Reply { to, bytes }) => answer(delivery, model, codes, (to, bytes)),
        (_, Done::Reply { bytes, .. }) => delivery.fail(4, format!("a reply without a request: {bytes:02x?}")),
        (Expected::Answer(codes), Done::Drop(_)) if codes.or_silence => Ok(Lesson::Nothing),
        (Expected::Answer(codes), Done::Drop(reason)) => {
            delivery.fail(9, format!("{reason:?} instead of an answer {:?}", codes.list()))
        }
        (Expected::ToPeer { relay, peer, payload, .. }, Done::ToPeer { relay: by, peer: to, payload: sent }) => {
            if relay != by || peer != to {
                return delivery.fail(6, format!("to {to} by {by:?}, not to {peer} by {relay:?}"));
            }
            if payload != sent {
                return delivery.fail(6, format!("payload {sent:02x?}, not {payload:02x?}"));
            }
            Ok(Lesson::Nothing)
        }
        (
            Expected::ToClient { flow, channels, peer, .. },
            Done::ToClient { client, bytes, payload_at, payload_len },
        ) => {
            if Flow::of(client) != *flow {
                return delivery.fail(6, format!("to {client:?}, not to {flow:?}"));
            }
            if !model.seen.contains(flow) {
                return delivery.fail(4, format!("to {client:?}, which sent nothing"));
            }
            // RFC 8656 section 12.5: what follows on a stream begins at a multiple of four.
            if client.transport != Transport::Udp && bytes.len() % 4 != 0 {
                return delivery.fail(6, format!("{bytes:02x?} is not padded"));
            }
            let payload = &bytes[*payload_at..payload_at + payload_len];
            if payload != delivery.bytes || carried(bytes, channels, *peer) != Some(payload) {
                return delivery.fail(6, format!("{bytes:02x?} does not carry {:02x?} of {peer}", delivery.bytes));
            }
            Ok(Lesson::Nothing)
        }
        (
            Expected::ToPeer { sure: Alive::Yes, .. } | Expected::ToClient { sure: Alive::Yes, .. },
            Done::Drop(reason),
        ) => delivery.fail(6, format!("{reason:?} of a payload that has its permission: {expected:?}")),
        (Expected::ToPeer { .. } | Expected::ToClient { .. } | Expected::Silence, Done::Drop(_)) => Ok(Lesson::Nothing),
        (_, Done::ToPeer { peer, .. }) => delivery.fail(1, format!("relayed to {peer} without a permission")),
        (_, Done::ToClient { client, .. }) => delivery.fail(1, format!("relayed to {client:?} without a permission")),
        (_, Done::HandOver(worker)) => delivery.fail(2, format!("handed to worker {worker}, which owns nothing of it")),
    }
}

/// The same for an ICMP error of a relay.
pub(super) fn error(
    delivery: &Delivery<'_>,
    expected: Option<&([u8; 8], Expected<'_>)>,
    done: &[Done],
) -> Result<(), Failure> {
    match (expected, done) {
        (
            Some((value, Expected::ToClient { flow, peer, .. })),
            [Done::ToClient { client, bytes, payload_len: 0, .. }],
        ) => {
            let indication = Reading::of(bytes);
            let is_right = indication.is_some_and(|indication| {
                (indication.class, indication.method) == (wire::INDICATION, wire::DATA_METHOD)
                    && indication.get(wire::ICMP) == Some(value)
                    && indication.address(wire::PEER_ADDRESS) == Some(*peer)
                    && !indication.has(wire::DATA)
            });
            if is_right && Flow::of(client) == *flow { Ok(()) } else { delivery.fail(6, format!("{bytes:02x?}")) }
        }
        (Some((_, Expected::ToClient { sure: Alive::Yes, .. })), [Done::Drop(reason)]) => {
            delivery.fail(6, format!("{reason:?} of an ICMP error about a permitted peer"))
        }
        (_, [Done::Drop(_)]) => Ok(()),
        _ => delivery.fail(1, format!("an ICMP error became {done:02x?}")),
    }
}

/// The payload that a datagram carries to a client: on a channel where one lives, in a Data indication where not.
fn carried<'a>(bytes: &'a [u8], channels: &[(u16, Alive)], peer: SocketAddr) -> Option<&'a [u8]> {
    if bytes.first().is_some_and(|first| *first >= 0x40) {
        let (number, payload) = wire::channel_payload(bytes)?;
        let padding = bytes.get(4 + payload.len()..)?;
        let may_be = channels.iter().any(|(bound, is_alive)| *bound == number && *is_alive != Alive::No);
        return (may_be && padding.len() < 4 && padding.iter().all(|byte| *byte == 0)).then_some(payload);
    }
    let indication = Reading::of(bytes)?;
    let is_right = (indication.class, indication.method) == (wire::INDICATION, wire::DATA_METHOD)
        && indication.padding_is_zero
        && indication.address(wire::PEER_ADDRESS) == Some(peer)
        && channels.iter().all(|(_, is_alive)| *is_alive != Alive::Yes);
    indication.get(wire::DATA).filter(|_| is_right)
}

fn answer(
    delivery: &Delivery<'_>,
    model: &Model,
    codes: &Codes,
    (to, bytes): (&FiveTuple, &[u8]),
) -> Result<Lesson, Failure> {
    let fail = |invariant, what: &str| delivery.fail(invariant, format!("{what}: {bytes:02x?}"));
    let (Some(reply), Some(request)) = (Reading::of(bytes), Reading::of(delivery.bytes)) else {
        return fail(4, "an answer that cannot be read");
    };
    if to != delivery.flow || (reply.tid, reply.method) != (request.tid, request.method) {
        return fail(4, "an answer to something else");
    }
    let Some(code) = reply.code().filter(|_| reply.padding_is_zero) else {
        return fail(4, "a malformed answer");
    };
    if !codes.allow(code) {
        return fail(
            if matches!(code, 486 | 508) && codes.list() == [0] { 12 } else { 9 },
            &format!("{code}, not {:?}", codes.list()),
        );
    }
    if request.has(wire::FINGERPRINT) != reply.has(wire::FINGERPRINT) {
        return fail(9, "FINGERPRINT, or none, against the request's");
    }
    let proven = codes.user.filter(|_| !matches!(code, 401 | 438));
    if !is_signed(model, proven, &request, &reply) {
        return fail(9, "signed with a wrong key, or not at all");
    }
    if matches!(code, 401 | 438) != reply.has(wire::NONCE) || reply.has(wire::NONCE) != reply.has(wire::REALM) {
        return fail(9, "NONCE and REALM belong to 401 and 438");
    }
    let offer = (reply.has(wire::NONCE) && model.rules.offers_sha256).then_some(OFFER);
    if reply.get(wire::PASSWORD_ALGORITHMS) != offer {
        return fail(9, "not the offer of algorithms");
    }
    match proven {
        None if code == 0 && reply.address(wire::MAPPED_ADDRESS) != Some(delivery.flow.client) => {
            fail(9, "another's XOR-MAPPED-ADDRESS")
        }
        None if code == 0 => Ok(Lesson::Nothing),
        None => Ok(Lesson::Refused(reply.get(wire::NONCE).map(<[u8]>::to_vec))),
        Some(Proven { user, .. }) if code == 508 && codes.is_guess => Ok(Lesson::Guessed(user)),
        Some(_) if code != 0 => Ok(Lesson::Nothing),
        Some(Proven { user, .. }) => granted(delivery, model, user, (&request, &reply)),
    }
}

/// RFC 8489 section 9.2.4: an answer to somebody known is signed as the request was, to a stranger not at all.
fn is_signed(model: &Model, proven: Option<Proven>, request: &Reading<'_>, reply: &Reading<'_>) -> bool {
    let Some(Proven { algorithm, is_modern, .. }) = proven else {
        return !reply.has(wire::INTEGRITY) && !reply.has(wire::INTEGRITY_SHA256);
    };
    let (has_sha1, has_sha256) = model.signatures(request, reply, algorithm);
    match (is_modern, request.has(wire::INTEGRITY_SHA256)) {
        (true, true) => has_sha256,
        (true, false) => has_sha1,
        (false, _) => has_sha1 && !reply.has(wire::INTEGRITY_SHA256),
    }
}

fn granted(
    delivery: &Delivery<'_>,
    model: &Model,
    user: usize,
    (request, reply): (&Reading<'_>, &Reading<'_>),
) -> Result<Lesson, Failure> {
    let lifetime_s = reply.number(wire::LIFETIME);
    let asked_s = request.number(wire::LIFETIME);
    let right = match request.method {
        wire::ALLOCATE => return allocated(delivery, model, user, (request, reply)),
        wire::REFRESH if asked_s == Some(0) => 0,
        wire::REFRESH => model.lifetime_s(asked_s),
        _ => return Ok(Lesson::Granted(user, None)),
    };
    if lifetime_s == Some(right) {
        Ok(Lesson::Granted(user, None))
    } else {
        delivery.fail(7, format!("lifetime {lifetime_s:?} of {asked_s:?}"))
    }
}

fn allocated(
    delivery: &Delivery<'_>,
    model: &Model,
    user: usize,
    (request, reply): (&Reading<'_>, &Reading<'_>),
) -> Result<Lesson, Failure> {
    let (lifetime_s, asked_s) = (reply.number(wire::LIFETIME), request.number(wire::LIFETIME));
    let relayed: Vec<SocketAddr> = reply.addresses(wire::RELAYED_ADDRESS).flatten().collect();
    if relayed.is_empty() || reply.address(wire::MAPPED_ADDRESS) != Some(delivery.flow.client) {
        return delivery.fail(9, "an allocation without its address, or with another's XOR-MAPPED-ADDRESS");
    }
    let is_same = |claim: &&Claim| claim.tid == request.tid && claim.legs().any(|leg| relayed.contains(&leg.relayed));
    if let Some(again) = model.claims.get(&Flow::of(delivery.flow)).filter(is_same) {
        let left_s = again.expires().saturating_sub(delivery.now).0.div_ceil(Nanos::PER_SECOND);
        let says = u64::from(lifetime_s.unwrap_or(0));
        if says.abs_diff(left_s) > 1 {
            return delivery.fail(7, format!("{says} s are left, not {left_s}"));
        }
        let token = again.token.map(u64::to_be_bytes);
        if reply.get(wire::RESERVATION_TOKEN) != token.as_ref().map(<[u8; 8]>::as_slice) {
            return delivery.fail(9, "another token than before");
        }
        let relays = again.legs().map(|leg| (leg.relay, leg.relayed)).collect();
        return Ok(Lesson::Granted(
            user,
            Some(Grant { relays, worker: delivery.worker, reserved: None, claimed: None }),
        ));
    }
    if lifetime_s != Some(model.lifetime_s(asked_s)) {
        return delivery.fail(7, format!("lifetime {lifetime_s:?} of {asked_s:?}"));
    }
    let grant = grant(model, delivery.worker, request, reply, &relayed);
    match grant {
        Ok(grant) => Ok(Lesson::Granted(user, Some(grant))),
        Err((invariant, what)) => delivery.fail(invariant, format!("{what}: {relayed:?}")),
    }
}

/// What an Allocate has got, if it is what was asked for and free.
fn grant(
    model: &Model,
    worker: u16,
    request: &Reading<'_>,
    reply: &Reading<'_>,
    relayed: &[SocketAddr],
) -> Result<Grant, (u8, &'static str)> {
    let pool = &model.pools[usize::from(worker)];
    let token = reply.get(wire::RESERVATION_TOKEN);
    let asked = wanted(request).map_err(|_| (9, "granted what is malformed"))?;
    if let Wanted::Reserved(claimed) = asked {
        let held = model.reservations.get(&claimed).filter(|held| [held.relayed] == relayed);
        let held = held.ok_or((2, "not what was reserved"))?;
        let relays = vec![(held.relay, held.relayed)];
        return Ok(Grant { relays, worker, reserved: None, claimed: Some(claimed) });
    }
    let place = |addr: &SocketAddr| {
        let waiting = pool.iter().find(|(_, waiting)| waiting.addr == *addr);
        waiting.map(|(relay, waiting)| ((worker, *relay), *addr, waiting.partner))
    };
    let places: Option<Vec<_>> = relayed.iter().map(place).collect();
    let places = places.ok_or((2, "in use, or never a relay of the worker"))?;
    let relays = places.iter().map(|(relay, addr, _)| (*relay, *addr)).collect();
    let is_even = |addr: &SocketAddr| addr.port().is_multiple_of(2);
    let (is_right, reserved) = match (asked, relayed) {
        (Wanted::One { is_ipv4, even }, [one]) => (one.is_ipv4() == is_ipv4 && (!even || is_even(one)), None),
        (Wanted::Pair { is_ipv4 }, [one]) => {
            let partner = places[0].2.and_then(|partner| Some((partner, pool.get(&partner)?.addr)));
            let token = token.and_then(|token| token.try_into().ok()).map(u64::from_be_bytes);
            let reserved = partner.zip(token).map(|((relay, addr), token)| ((worker, relay), addr, token));
            (one.is_ipv4() == is_ipv4 && is_even(one) && reserved.is_some(), reserved)
        }
        (Wanted::Both { even }, [a, b]) => (a.is_ipv4() != b.is_ipv4() && (!even || (is_even(a) && is_even(b))), None),
        (Wanted::Both { even }, [one]) => {
            let missing = !one.is_ipv4();
            let code = if model.serves(worker, missing) { 8 } else { 40 };
            let class = if code == 8 { 5 } else { 4 };
            let says = [if missing { 1 } else { 2 }, 0, class, code];
            let is_reported = reply.get(wire::ADDRESS_ERROR_CODE) == Some(&says[..]);
            (is_reported && !model.waits(worker, missing, even), None)
        }
        (Wanted::One { .. } | Wanted::Pair { .. } | Wanted::Both { .. } | Wanted::Reserved(_), _) => (false, None),
    };
    if !is_right || token.is_some() != reserved.is_some() {
        return Err((9, "not what was asked for"));
    }
    Ok(Grant { relays, worker, reserved, claimed: None })
}

/// (5): a datagram that proved nothing, and what the tables were before it.
pub(super) fn unproven(delivery: &Delivery<'_>, before: Tables, after: Tables) -> Result<(), Failure> {
    if before == after { Ok(()) } else { delivery.fail(5, format!("tables went from {before:?} to {after:?}")) }
}

/// (3) and (8), at every step of a worker.
pub(super) fn ledger(now: Nanos, host: &Host, model: &Model, worker: u16) -> Result<(), Failure> {
    let fail = |invariant, what: String| Err(Failure { invariant, what: format!("worker {worker}: {what}"), at: now });
    let (counters, tables) = (host.counters(worker), host.tables(worker));
    if !counters.is_balanced() {
        return fail(3, format!("what came in did not all go somewhere: {counters:?}"));
    }
    if counters.allocations_made - counters.allocations_ended != tables.allocations as u64 {
        return fail(3, format!("made and ended do not leave {}: {counters:?}", tables.allocations));
    }
    let live = model.claims.len();
    if tables.shared as usize != live + model.reservations.len() || host.allocations() != live || model.kept_back() > 0
    {
        return fail(3, format!("{} and {} allocations, not {live}", tables.shared, host.allocations()));
    }
    let at = usize::from(worker);
    if tables.pooled != model.pools[at].len() {
        return fail(3, format!("{} relays wait, not {}", tables.pooled, model.pools[at].len()));
    }
    for (name, count, held) in
        [("permissions", tables.permissions, model.permissions[at]), ("channels", tables.channels, model.channels[at])]
    {
        if count > held.held as usize {
            return fail(8, format!("{count} {name} for {held:?}"));
        }
        if count < held.live as usize {
            return fail(7, format!("only {count} {name} of {held:?}"));
        }
    }
    Ok(())
}
