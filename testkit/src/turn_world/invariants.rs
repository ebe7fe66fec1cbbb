//! What must hold whenever the engine has done something.
//!
//! 1. nothing is relayed without a live permission for that address;
//! 2. a relayed address belongs to one allocation;
//! 3. the ledger closes: what came in went out or was dropped by name, what was made lives or was freed;
//! 4. every answer is to a request, at most one for a delivery, never to an address that was not seen;
//! 5. input that proves nothing changes no table;
//! 6. payloads come out as they went in, and at the right door;
//! 7. timers are at most a second late, and never early;
//! 8. tables hold no more than what lives;
//! 9. the answer's code is the reference model's;
//! 10. when the faults stop, every honest client relays within five seconds.

use std::net::SocketAddr;

use tt_model::{FiveTuple, Nanos};

use super::host::{Done, Host, Tables};
use super::model::{Alive, Codes, Expected, Flow, Model, RelayPlace};
use super::wire::{self, Reading};

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its number, 1 to 10.
    pub invariant: u8,
    /// What was seen.
    pub what: String,
    /// When, in virtual time.
    pub at: Nanos,
}

/// What the model has to learn of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lesson {
    Nothing,
    /// A request of this user was granted; an Allocate with its relay.
    Granted(usize, Option<(RelayPlace, SocketAddr)>),
    /// An error went to a stranger, perhaps with a nonce.
    Refused(Option<Vec<u8>>),
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
        (_, Done::Reply { bytes, .. }) => delivery.fail(4, format!("a reply that nobody asked for: {bytes:02x?}")),
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
                return delivery.fail(4, format!("to {client:?}, which nobody has seen"));
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
        return fail(9, &format!("{code}, not {:?}", codes.list()));
    }
    if request.has(wire::FINGERPRINT) != reply.has(wire::FINGERPRINT) {
        return fail(9, "FINGERPRINT, or none, against the request's");
    }
    let user = codes.user.filter(|_| code != 438);
    let is_signed = user.map(|user| reply.is_signed_by(&model.users[user].key));
    if is_signed == Some(false) || (user.is_none() && reply.has(wire::INTEGRITY)) {
        return fail(9, "signed for nobody, or not at all");
    }
    if matches!(code, 401 | 438) != reply.has(wire::NONCE) || reply.has(wire::NONCE) != reply.has(wire::REALM) {
        return fail(9, "NONCE and REALM belong to 401 and 438");
    }
    match user {
        None if code == 0 && reply.address(wire::MAPPED_ADDRESS) != Some(delivery.flow.client) => {
            fail(9, "another's XOR-MAPPED-ADDRESS")
        }
        None if code == 0 => Ok(Lesson::Nothing),
        None => Ok(Lesson::Refused(reply.get(wire::NONCE).map(<[u8]>::to_vec))),
        Some(_) if code != 0 => Ok(Lesson::Nothing),
        Some(user) => granted(delivery, model, user, (&request, &reply)),
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
    let claim = model.claims.get(&Flow::of(delivery.flow));
    match request.method {
        wire::ALLOCATE => {
            let Some(relayed) = reply.address(wire::RELAYED_ADDRESS) else {
                return delivery.fail(9, "an allocation without its address");
            };
            if reply.address(wire::MAPPED_ADDRESS) != Some(delivery.flow.client) {
                return delivery.fail(9, "another's XOR-MAPPED-ADDRESS");
            }
            if let Some(again) = claim.filter(|claim| claim.tid == request.tid && claim.relayed == relayed) {
                let left_s = again.expires.saturating_sub(delivery.now).0.div_ceil(Nanos::PER_SECOND);
                let says = u64::from(lifetime_s.unwrap_or(0));
                return if says.abs_diff(left_s) > 1 {
                    delivery.fail(7, format!("{says} s are left, not {left_s}"))
                } else {
                    Ok(Lesson::Granted(user, Some((again.relay, relayed))))
                };
            }
            if lifetime_s != Some(model.lifetime_s(asked_s)) {
                return delivery.fail(7, format!("lifetime {lifetime_s:?} of {asked_s:?}"));
            }
            let pool = &model.pools[usize::from(delivery.worker)];
            let Some((relay, _)) = pool.iter().find(|(_, addr)| **addr == relayed) else {
                return delivery.fail(2, format!("{relayed} is in use, or never was a relay of the worker"));
            };
            let wants_ipv4 = request.get(wire::ADDRESS_FAMILY).is_none_or(|family| family.first() == Some(&1));
            if relayed.is_ipv4() != wants_ipv4 || (request.has(wire::EVEN_PORT) && !relayed.port().is_multiple_of(2)) {
                return delivery.fail(9, format!("{relayed} is not what was asked for"));
            }
            Ok(Lesson::Granted(user, Some(((delivery.worker, *relay), relayed))))
        }
        wire::REFRESH => {
            let right = if asked_s == Some(0) { 0 } else { model.lifetime_s(asked_s) };
            if lifetime_s == Some(right) {
                Ok(Lesson::Granted(user, None))
            } else {
                delivery.fail(7, format!("lifetime {lifetime_s:?} of {asked_s:?}"))
            }
        }
        _ => Ok(Lesson::Granted(user, None)),
    }
}

/// (5): a datagram that proved nothing, and what the tables were before it.
pub(super) fn unproven(delivery: &Delivery<'_>, before: Tables, after: Tables) -> Result<(), Failure> {
    if before == after { Ok(()) } else { delivery.fail(5, format!("tables went from {before:?} to {after:?}")) }
}

/// (3) and (8), at every step of a worker.
pub(super) fn ledger(now: Nanos, host: &Host, model: &Model, worker: u16) -> Result<(), Failure> {
    let fail = |invariant, what: String| Err(Failure { invariant, what: format!("worker {worker}: {what}"), at: now });
    let (counters, tables) = (host.counters(worker), host.tables(worker));
    if !counters.closes() {
        return fail(3, format!("what came in did not all go somewhere: {counters:?}"));
    }
    if counters.allocations_made - counters.allocations_ended != tables.allocations as u64 {
        return fail(3, format!("made and ended do not leave {}: {counters:?}", tables.allocations));
    }
    let live = model.claims.len();
    if tables.shared as usize != live || host.allocations() != live || model.kept_back() > 0 {
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
