//! The reference model: what RFC 8489 and RFC 8656 say must become of a datagram, and who holds what.
//!
//! Written from the texts, in maps that are searched plainly, and without a line of the engine. Where the texts leave
//! a second to a timer, both answers are allowed during that second, and the model follows what was done.

mod codes;
mod decide;
mod ledger;
mod meter;
mod policy;
mod relaying;
mod sender;
mod shares;
mod traffic;

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::{IpAddr, SocketAddr};

use tt_model::{FiveTuple, Nanos, Transport};

use super::credentials::Credential;
use super::topology::{PeerRule, REALM, Rules, WALL_S};
use super::wire::{self, Algorithm, Reading, TransactionId};
pub(super) use codes::Codes;
pub(super) use decide::{Wanted, wanted};
pub(super) use ledger::Grant;
use meter::Meter;
use policy::Policy;
pub(super) use traffic::{Bytes, Ended};

/// How late a timer may be.
pub(super) const LATE: Nanos = Nanos::from_secs(1);
pub(super) const PERMISSION_LIFETIME: Nanos = Nanos::from_secs(300);
pub(super) const CHANNEL_LIFETIME: Nanos = Nanos::from_secs(600);
const RESERVED_MIN: Nanos = Nanos::from_secs(30);
const RESERVED_MAX: Nanos = Nanos::from_secs(60);
/// PASSWORD-ALGORITHMS of a server that offers SHA-256 before MD5.
pub(super) const OFFER: &[u8] = &[0, 2, 0, 0, 0, 1, 0, 0];

/// A five-tuple that has an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Flow {
    pub(super) client: SocketAddr,
    pub(super) server: SocketAddr,
    pub(super) transport: u8,
}

impl Flow {
    pub(super) fn of(flow: &FiveTuple) -> Self {
        let transport = match flow.transport {
            Transport::Udp => 0,
            Transport::Tcp => 1,
            Transport::Tls => 2,
        };
        Self { client: flow.client, server: flow.server, transport }
    }
}

/// Whether something with an end is still there: for [`LATE`] after it that is undefined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Alive {
    No,
    Maybe,
    Yes,
}

pub(super) fn alive(expires: Nanos, now: Nanos) -> Alive {
    if now < expires {
        Alive::Yes
    } else if now < expires.saturating_add(LATE) {
        Alive::Maybe
    } else {
        Alive::No
    }
}

/// A relay of the server: the worker that has it first, and its number there.
pub(super) type RelayPlace = (u16, u32);

/// One relayed address of an allocation, and what lives and dies with it.
#[derive(Clone, Debug)]
pub(super) struct Leg {
    pub(super) relay: RelayPlace,
    pub(super) relayed: SocketAddr,
    pub(super) expires: Nanos,
    pub(super) permissions: BTreeMap<IpAddr, Nanos>,
    pub(super) channels: BTreeMap<u16, (SocketAddr, Nanos)>,
}

impl Leg {
    pub(super) fn permission(&self, ip: IpAddr, now: Nanos) -> Alive {
        self.permissions.get(&ip).map_or(Alive::No, |expires| alive(*expires, now))
    }

    /// The channels bound to `peer`, dead ones too.
    pub(super) fn channels_of(&self, peer: SocketAddr) -> impl Iterator<Item = (u16, Nanos)> {
        let bound = self.channels.iter().filter(move |(_, (bound, _))| *bound == peer);
        bound.map(|(number, (_, expires))| (*number, *expires))
    }
}

/// An allocation as the model knows it.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) serial: u64,
    pub(super) user: usize,
    /// The user's name in the request that made it.
    pub(super) name: Vec<u8>,
    pub(super) tid: TransactionId,
    /// The worker that has it.
    pub(super) worker: u16,
    /// IPv4 and IPv6, at least one of them.
    pub(super) legs: [Option<Leg>; 2],
    /// The token in its reply.
    pub(super) token: Option<u64>,
    /// The first relayed address that it got.
    pub(super) relayed: SocketAddr,
    pub(super) to_peers: Bytes,
    pub(super) to_client: Bytes,
}

/// A family's place among two.
pub(super) fn place(is_ipv4: bool) -> usize {
    usize::from(!is_ipv4)
}

impl Claim {
    pub(super) fn leg_of(&self, peer: SocketAddr) -> Option<&Leg> {
        self.legs[place(peer.is_ipv4())].as_ref()
    }

    pub(super) fn legs(&self) -> impl Iterator<Item = &Leg> {
        self.legs.iter().flatten()
    }

    /// When the last of it ends.
    pub(super) fn expires(&self) -> Nanos {
        self.legs().map(|leg| leg.expires).max().unwrap_or_default()
    }

    /// Returns the peer of the channel number, expired or not.
    pub(super) fn channel(&self, number: u16) -> Option<(SocketAddr, Nanos)> {
        self.legs().find_map(|leg| leg.channels.get(&number).copied())
    }
}

/// A port held for whoever shows its token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reservation {
    pub(super) relay: RelayPlace,
    pub(super) relayed: SocketAddr,
    pub(super) user: usize,
    pub(super) made: Nanos,
}

impl Reservation {
    /// RFC 8656 section 7.2: held for 30 s at least; we promise no more than a minute.
    pub(super) fn alive(&self, now: Nanos) -> Alive {
        if now < self.made.saturating_add(RESERVED_MIN) {
            Alive::Yes
        } else if now < self.made.saturating_add(RESERVED_MAX).saturating_add(LATE) {
            Alive::Maybe
        } else {
            Alive::No
        }
    }
}

/// A relay that waits, and the one on the next port where they wait together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) addr: SocketAddr,
    pub(super) partner: Option<u32>,
}

/// A user.
pub(super) struct User {
    /// Of one with a password.
    pub(super) credential: Credential,
    hash: [u8; 32],
}

/// The sender of a request, and its authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Proven {
    pub(super) user: usize,
    pub(super) algorithm: Algorithm,
    /// The request speaks of algorithms.
    pub(super) is_modern: bool,
}

/// How many of something the server must and may hold.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    pub(super) live: u32,
    pub(super) held: u32,
}

/// The expected result of a datagram.
#[derive(Clone, Debug)]
pub(super) enum Expected<'a> {
    Silence,
    /// An answer with one of these codes.
    Answer(Codes),
    /// Passed on to a peer.
    ToPeer {
        sure: Alive,
        relay: RelayPlace,
        peer: SocketAddr,
        payload: &'a [u8],
    },
    /// Passed on to a client.
    ToClient {
        sure: Alive,
        flow: Flow,
        channels: Vec<(u16, Alive)>,
        peer: SocketAddr,
    },
}

/// A nonce, the wall clock's nanoseconds at which it was given out, and the generation of its key.
type Issued = (Box<[u8]>, i64, u64);
/// A bucket of error replies: when it will be full again.
type Bucket = Nanos;

pub(super) struct Model {
    pub(super) rules: Rules,
    pub(super) users: Vec<User>,
    policy: Policy,
    pub(super) claims: BTreeMap<Flow, Claim>,
    by_relay: BTreeMap<RelayPlace, Flow>,
    relayed: BTreeMap<SocketAddr, Flow>,
    /// Relays of each worker that wait for an allocation.
    pub(super) pools: Vec<BTreeMap<u32, Waiting>>,
    /// Families of which there ever was a relay, by worker: IPv4, IPv6.
    pub(super) families: Vec<[bool; 2]>,
    /// Relays whose allocation was ended by request; the server says so within the same call.
    retiring: BTreeMap<RelayPlace, usize>,
    /// Relays behind an allocation or a reservation, and who had them.
    resting: BTreeMap<RelayPlace, usize>,
    /// Traffic that the limits have let pass.
    pub(super) meter: Meter,
    /// When a user's budget of allocations is full again: surely not before, and surely by then.
    allocated: Vec<[Bucket; 2]>,
    /// Allocations whose end the server has to report within the same call.
    pub(super) ended: Vec<Ended>,
    pub(super) reservations: BTreeMap<u64, Reservation>,
    reserved: BTreeMap<RelayPlace, u64>,
    by_expiry: BTreeSet<(Nanos, Flow, usize)>,
    pub(super) permissions: Vec<Held>,
    pub(super) channels: Vec<Held>,
    ends: BinaryHeap<std::cmp::Reverse<ledger::End>>,
    held_by_user: Vec<u32>,
    held_by_worker: Vec<u32>,
    nonces: BTreeMap<SocketAddr, Vec<Issued>>,
    buckets: BTreeMap<IpAddr, Bucket>,
    /// Of wrong tokens, by user.
    guesses: Vec<Bucket>,
    /// As if all addresses shared one.
    all_buckets: Bucket,
    pub(super) seen: BTreeSet<Flow>,
    /// Offset of the wall clock, nanoseconds.
    pub(super) wall_jump_ns: i64,
    /// Of the last allocation.
    pub(super) serial: u64,
    /// No new allocations.
    pub(super) is_draining: bool,
    /// Of the nonce key.
    pub(super) generation: u64,
}

impl Model {
    pub(super) fn new(rules: Rules, peer_rules: &[PeerRule], users: usize, workers: u16) -> Self {
        let user = |number: usize| {
            let credential = Credential::lasting(number);
            User { hash: wire::user_hash(&credential.name, REALM), credential }
        };
        let workers = usize::from(workers);
        Self {
            rules,
            users: (0..users).map(user).collect(),
            policy: Policy::new(peer_rules),
            claims: BTreeMap::new(),
            by_relay: BTreeMap::new(),
            relayed: BTreeMap::new(),
            pools: vec![BTreeMap::new(); workers],
            families: vec![[false; 2]; workers],
            retiring: BTreeMap::new(),
            resting: BTreeMap::new(),
            meter: Meter::new(rules.rates, rules.shares.percent),
            allocated: vec![[Bucket::default(); 2]; users],
            ended: Vec::new(),
            reservations: BTreeMap::new(),
            reserved: BTreeMap::new(),
            by_expiry: BTreeSet::new(),
            permissions: vec![Held::default(); workers],
            channels: vec![Held::default(); workers],
            ends: BinaryHeap::new(),
            held_by_user: vec![0; users],
            held_by_worker: vec![0; workers],
            nonces: BTreeMap::new(),
            buckets: BTreeMap::new(),
            guesses: vec![Bucket::default(); users],
            all_buckets: Bucket::default(),
            seen: BTreeSet::new(),
            wall_jump_ns: 0,
            serial: 0,
            is_draining: false,
            generation: 0,
        }
    }

    /// The server died and came back: nothing is left but its nonces, where it keeps its key.
    pub(super) fn restart(&mut self) {
        let users = std::mem::take(&mut self.users);
        let fresh = Self::new(self.rules, self.policy.configured(), 0, self.pools.len() as u16);
        let before = std::mem::replace(self, fresh);
        self.held_by_user = vec![0; users.len()];
        self.guesses = vec![Bucket::default(); users.len()];
        self.allocated = vec![[Bucket::default(); 2]; users.len()];
        self.users = users;
        self.seen = before.seen;
        self.wall_jump_ns = before.wall_jump_ns;
        self.serial = before.serial;
        self.generation = before.generation;
        if self.rules.keeps_nonce_key {
            self.nonces = before.nonces;
        }
    }

    fn wall_ns(&self, now: Nanos) -> i64 {
        (WALL_S * Nanos::PER_SECOND + now.0) as i64 + self.wall_jump_ns
    }

    /// The wall clock, in seconds of Unix time.
    pub(super) fn unix_s(&self, now: Nanos) -> u64 {
        self.wall_ns(now) as u64 / Nanos::PER_SECOND
    }

    /// A nonce that was given to a client.
    pub(super) fn learn_nonce(&mut self, now: Nanos, client: SocketAddr, nonce: &[u8]) {
        let (issued, generation) = (self.wall_ns(now), self.generation);
        let given = self.nonces.entry(client).or_default();
        match given.iter_mut().find(|(known, _, _)| **known == *nonce) {
            Some((_, at, _)) => *at = issued,
            None => given.push((nonce.into(), issued, generation)),
        }
    }

    /// RFC 8656 section 5: a nonce ends; RFC 8489 section 9.2.4: it is the client's alone.
    fn nonce(&self, now: Nanos, client: SocketAddr, nonce: &[u8]) -> Alive {
        let second = Nanos::PER_SECOND as i64;
        let given = self.nonces.get(&client).and_then(|given| given.iter().find(|(known, _, _)| **known == *nonce));
        let given = given.filter(|(_, _, generation)| generation + 1 >= self.generation);
        let Some((_, issued, _)) = given else { return Alive::No };
        let age = self.wall_ns(now) - issued;
        let lifetime = i64::from(self.rules.nonce_lifetime_s) * second;
        // Clocks are read in whole seconds, when it is set, when it is issued and when it is looked at.
        if age > -3 * second && age < lifetime - 2 * second {
            Alive::Yes
        } else if age > -8 * second && age < lifetime + 2 * second {
            Alive::Maybe
        } else {
            Alive::No
        }
    }

    /// Which worker has the flow's allocation, sure or not.
    pub(super) fn owner(&self, flow: &Flow) -> Option<u16> {
        self.claims.get(flow).map(|claim| claim.worker)
    }

    /// Returns the expected result of a datagram to the server.
    pub(super) fn expect_of_client<'a>(&self, now: Nanos, worker: u16, flow: &Flow, bytes: &'a [u8]) -> Expected<'a> {
        if bytes.first().is_some_and(|first| (0x40..0x50).contains(first)) {
            return self.channel_data(now, flow, bytes);
        }
        let Some(message) = Reading::of(bytes) else { return Expected::Silence };
        match (message.class, message.method) {
            (wire::REQUEST, wire::BINDING) => {
                let code = if unknown_required(&message) { 420 } else { 0 };
                Expected::Answer(self.unproven(now, flow, Codes::one(code)))
            }
            (wire::REQUEST, wire::ALLOCATE | wire::REFRESH | wire::CREATE_PERMISSION | wire::CHANNEL_BIND) => {
                Expected::Answer(self.request(now, worker, flow, &message))
            }
            (wire::INDICATION, wire::SEND) => self.send(now, flow, &message),
            _ => Expected::Silence,
        }
    }

    /// What errors to strangers exceed three times their requests by has a budget: silence is right where it may be
    /// spent. A request with credentials is long enough, and over a stream the client is proven.
    fn unproven(&self, now: Nanos, flow: &Flow, codes: Codes) -> Codes {
        let is_error = !codes.allow(0);
        Codes { or_silence: is_error && self.may_be_held_back(now, flow), ..codes }
    }

    /// RFC 8489 section 9.2.4, in its order.
    fn request(&self, now: Nanos, worker: u16, flow: &Flow, message: &Reading<'_>) -> Codes {
        if !message.has_integrity() {
            return self.unproven(now, flow, Codes::one(401));
        }
        let (name, hash) = (message.get(wire::USERNAME), message.get(wire::USERHASH));
        let (true, Some(realm), Some(nonce)) =
            (name.is_some() || hash.is_some(), message.get(wire::REALM), message.get(wire::NONCE))
        else {
            return Codes::one(400);
        };
        let (list, choice) = (message.get(wire::PASSWORD_ALGORITHMS), message.get(wire::PASSWORD_ALGORITHM));
        let chosen = [Algorithm::Md5, Algorithm::Sha256].into_iter().find(|known| choice == Some(&known.value()));
        let is_modern = list.is_some() || choice.is_some();
        let algorithm = match chosen {
            _ if !is_modern => Algorithm::Md5,
            // A nonce without the feature offers no algorithms.
            chosen if wire::features(nonce) & wire::ALGORITHMS == 0 => chosen.unwrap_or(Algorithm::Md5),
            Some(chosen) if self.rules.offers_sha256 && list == Some(OFFER) => chosen,
            Some(_) | None => return Codes::one(400),
        };
        let sender = self.sender(message).filter(|sender| realm == REALM.as_bytes() && sender.has_signed(algorithm));
        let Some((user, is_valid)) = sender.map(|sender| (sender.user, self.is_valid(now, flow, &sender))) else {
            return Codes::one(401);
        };
        let expired = match is_valid {
            Alive::No => return Codes::one(401),
            Alive::Maybe => Codes::one(401),
            Alive::Yes => Codes::default(),
        };
        let proven = Some(Proven { user, algorithm, is_modern });
        let decided = || match unknown_required(message) {
            true => Codes::one(420),
            false => self.decide(now, worker, flow, user, message),
        };
        match self.nonce(now, flow.client, nonce) {
            Alive::No => Codes::one(438).and_all(&expired),
            Alive::Maybe => Codes { user: proven, or_silence: true, ..decided().and(438).and_all(&expired) },
            Alive::Yes => Codes { user: proven, ..decided().and_all(&expired) },
        }
    }
}

/// RFC 8489 section 6.3.1: attributes below 0x8000 that the server does not know.
fn unknown_required(message: &Reading<'_>) -> bool {
    const KNOWN: [u16; 21] = [
        0x01, 0x06, 0x08, 0x09, 0x0A, 0x0C, 0x0D, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x1C, 0x1D,
        0x1E, 0x20, 0x22,
    ];
    message.kinds().any(|kind| kind < 0x8000 && !KNOWN.contains(&kind))
}
