//! Clients: each asks one thing at a time, sends it again until it is answered, and follows 401 and 438.

use std::collections::VecDeque;
use std::net::SocketAddr;

use tt_model::{FiveTuple, Transport};

use super::credentials::Credential;
use super::topology::{Place, REALM, Speech, listener};
use super::wire::{self, Algorithm, Key, Reading, TransactionId, Writer};
use crate::draw::{Draw, mix};

/// A request is sent so often (RFC 8489 section 6.2.1).
const SENDS_MAX: u8 = 7;
/// Rounds of 401 or 438 that a client follows.
const ROUNDS_MAX: u8 = 3;
const ASKS_MAX: usize = 16;

/// Deliberate defects of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    None,
    NoIntegrity,
    ShortIntegrity,
    WrongKey,
    NoUsername,
    NoRealm,
    WrongRealm,
    NoNonce,
    StrangeNonce,
    UnknownUser,
    UnknownAttribute,
    /// Somebody has taken SHA-256 out of the list that the server sent.
    StrippedOffer,
    /// Attributes after MESSAGE-INTEGRITY, which the server must ignore.
    Tail,
}

impl Flaw {
    pub(super) const ALL: [Self; 13] = [
        Self::None,
        Self::NoIntegrity,
        Self::ShortIntegrity,
        Self::WrongKey,
        Self::NoUsername,
        Self::NoRealm,
        Self::WrongRealm,
        Self::NoNonce,
        Self::StrangeNonce,
        Self::UnknownUser,
        Self::UnknownAttribute,
        Self::StrippedOffer,
        Self::Tail,
    ];
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Bytes(Vec<u8>),
    Address(SocketAddr),
}

/// Credentials of a request.
#[derive(Clone, Copy)]
pub(super) struct Proof<'a> {
    pub(super) credential: &'a Credential,
    pub(super) speech: Speech,
    /// Empty where there is none yet.
    pub(super) nonce: &'a [u8],
    /// PASSWORD-ALGORITHMS as the server sent it, empty where it did not.
    pub(super) offer: &'a [u8],
}

impl<'a> Proof<'a> {
    /// As a client of RFC 5389 proves it.
    pub(super) fn legacy(credential: &'a Credential, nonce: &'a [u8]) -> Self {
        Self { credential, speech: Speech::Legacy, nonce, offer: &[] }
    }

    fn is_offered(&self) -> bool {
        !self.offer.is_empty()
    }

    /// Whether USERHASH is understood.
    fn hides_name(&self) -> bool {
        self.speech == Speech::Anonymous && self.is_offered() && wire::features(self.nonce) & wire::ANONYMITY != 0
    }

    fn algorithm(&self) -> Option<Algorithm> {
        match self.speech {
            Speech::Modern(algorithm) if self.is_offered() => Some(algorithm),
            Speech::Anonymous if self.is_offered() => Some(Algorithm::Sha256),
            Speech::Legacy | Speech::Modern(_) | Speech::Anonymous => None,
        }
    }
}

/// A request as the client means it, without what changes with each attempt.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) method: u16,
    pub(super) attributes: Vec<(u16, Value)>,
    pub(super) flaw: Flaw,
    pub(super) has_fingerprint: bool,
}

impl Ask {
    pub(super) fn new(method: u16, attributes: Vec<(u16, Value)>) -> Self {
        Self { method, attributes, flaw: Flaw::None, has_fingerprint: false }
    }

    pub(super) fn allocate(is_ipv4: bool) -> Self {
        let mut attributes = vec![(wire::TRANSPORT, Value::Bytes(vec![17, 0, 0, 0]))];
        if !is_ipv4 {
            attributes.push((wire::ADDRESS_FAMILY, Value::Bytes(vec![2, 0, 0, 0])));
        }
        Self::new(wire::ALLOCATE, attributes)
    }

    pub(super) fn permit(peer: SocketAddr) -> Self {
        Self::new(wire::CREATE_PERMISSION, vec![(wire::PEER_ADDRESS, Value::Address(peer))])
    }

    pub(super) fn close() -> Self {
        Self::new(wire::REFRESH, vec![(wire::LIFETIME, Value::Bytes(vec![0; 4]))])
    }

    /// The bytes for a user.
    pub(super) fn write(&self, tid: TransactionId, proof: &Proof<'_>) -> Vec<u8> {
        let Proof { credential, nonce, .. } = *proof;
        let mut writer = Writer::new(self.method, wire::REQUEST, tid);
        for (kind, value) in &self.attributes {
            writer = match value {
                Value::Bytes(bytes) => writer.attr(*kind, bytes),
                Value::Address(addr) => writer.address(*kind, *addr),
            };
        }
        if self.flaw == Flaw::UnknownAttribute {
            writer = writer.attr(0x7777, b"?");
        }
        if self.method == wire::BINDING || (nonce.is_empty() && self.flaw == Flaw::None) {
            return if self.has_fingerprint { writer.fingerprint().0 } else { writer.0 };
        }
        let name = if self.flaw == Flaw::UnknownUser { b"stranger".to_vec() } else { credential.name.clone() };
        let realm = if self.flaw == Flaw::WrongRealm { "example.net" } else { REALM };
        let strange = [nonce, b"x"].concat();
        let nonce = if self.flaw == Flaw::StrangeNonce { &strange } else { nonce };
        if self.flaw != Flaw::NoUsername {
            writer = match proof.hides_name() {
                true => writer.attr(wire::USERHASH, &wire::user_hash(&name, REALM)),
                false => writer.attr(wire::USERNAME, &name),
            };
        }
        if self.flaw != Flaw::NoRealm {
            writer = writer.attr(wire::REALM, realm.as_bytes());
        }
        if self.flaw != Flaw::NoNonce {
            writer = writer.attr(wire::NONCE, nonce);
        }
        if let Some(algorithm) = proof.algorithm() {
            let list: &[u8] = if self.flaw == Flaw::StrippedOffer { &[0, 1, 0, 0] } else { proof.offer };
            writer = writer.attr(wire::PASSWORD_ALGORITHMS, list).attr(wire::PASSWORD_ALGORITHM, &algorithm.value());
        }
        writer = match self.flaw {
            Flaw::NoIntegrity => writer,
            Flaw::ShortIntegrity => writer.attr(wire::INTEGRITY, &[7; 19]),
            Flaw::WrongKey => writer.integrity(&Key::new(Algorithm::Md5, &name, REALM, "wrong")),
            Flaw::None
            | Flaw::NoUsername
            | Flaw::NoRealm
            | Flaw::WrongRealm
            | Flaw::NoNonce
            | Flaw::StrangeNonce
            | Flaw::UnknownUser
            | Flaw::UnknownAttribute
            | Flaw::StrippedOffer
            | Flaw::Tail => match proof.algorithm() {
                None => writer.integrity(&credential.keys.md5),
                Some(algorithm) => writer.integrity_sha256(credential.keys.of(algorithm)),
            },
        };
        if self.flaw == Flaw::Tail {
            writer = tail(writer);
        }
        if self.has_fingerprint { writer.fingerprint().0 } else { writer.0 }
    }
}

/// Attributes that would do harm if they counted.
pub(super) fn tail(writer: Writer) -> Writer {
    writer
        .attr(wire::LIFETIME, &[0; 4])
        .address(wire::PEER_ADDRESS, SocketAddr::new([8, 8, 0, 200].into(), 9_000))
        .attr(0x7778, b"?")
}

/// A request under way.
#[derive(Clone, Debug)]
struct Pending {
    ask: Ask,
    tid: TransactionId,
    bytes: Vec<u8>,
    sends: u8,
    rounds: u8,
}

/// How far a client is that has to relay before the time is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    None,
    Seek { is_permitted: bool },
    Reached,
}

/// Result of a request.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    pub(super) method: u16,
    /// `None` without a reply.
    pub(super) code: Option<u16>,
}

pub(super) struct Client {
    pub(super) place: Place,
    /// Its address as the server sees it.
    pub(super) addr: SocketAddr,
    pub(super) nonce: Vec<u8>,
    offer: Vec<u8>,
    /// State that the client expects the server to have.
    pub(super) relayed: Option<SocketAddr>,
    /// The address of the other family, where it has two.
    pub(super) other: Option<SocketAddr>,
    /// The last token that it received.
    pub(super) token: Option<Vec<u8>>,
    pub(super) channels: Vec<(u16, SocketAddr)>,
    pub(super) goal: Goal,
    /// How often it has spoken to its peer since it was permitted to.
    pub(super) spoken: u8,
    /// The last refusal of an Allocate on the way to the goal.
    pub(super) refusal: Option<u16>,
    /// Requests that somebody on the path will add to.
    pub(super) appends_left: u8,
    /// Sets apart the timers of one request from those of another.
    pub(super) timer: u32,
    /// A stream was cut and must be connected again.
    pub(super) is_cut: bool,
    credential: Credential,
    /// What the application has got meanwhile: for the next request.
    renewed: Option<Credential>,
    asks: VecDeque<Ask>,
    pending: Option<Pending>,
    tids: Draw,
}

impl Client {
    pub(super) fn new(place: Place, addr: SocketAddr, credential: Credential, seed: u64) -> Self {
        Self {
            place,
            addr,
            nonce: Vec::new(),
            offer: Vec::new(),
            relayed: None,
            other: None,
            token: None,
            channels: Vec::new(),
            goal: Goal::None,
            spoken: 0,
            refusal: None,
            appends_left: 0,
            timer: 0,
            is_cut: false,
            credential,
            renewed: None,
            asks: VecDeque::new(),
            pending: None,
            tids: Draw::new(mix(seed, 0x7469_6473)),
        }
    }

    pub(super) fn flow(&self) -> FiveTuple {
        let server = listener(self.addr.is_ipv4());
        FiveTuple { client: self.addr, server, transport: self.place.transport }
    }

    pub(super) fn is_stream(&self) -> bool {
        self.place.transport != Transport::Udp
    }

    pub(super) fn proof(&self) -> Proof<'_> {
        let Self { place, credential, nonce, offer, .. } = self;
        Proof { credential, speech: place.speech, nonce, offer }
    }

    pub(super) fn tid(&mut self) -> TransactionId {
        self.tids.bytes()
    }

    /// The application has got another credential.
    pub(super) fn renew(&mut self, credential: Credential) {
        self.renewed = Some(credential);
    }

    pub(super) fn is_busy(&self) -> bool {
        self.pending.is_some()
    }

    /// Puts a request in the queue; a full queue takes no more.
    pub(super) fn queue(&mut self, ask: Ask) {
        if self.asks.len() < ASKS_MAX {
            self.asks.push_back(ask);
        }
    }

    /// Gives up everything under way.
    pub(super) fn forget_asks(&mut self) {
        self.asks.clear();
        self.pending = None;
        self.timer += 1;
    }

    /// Another address: the server knows nothing of what was.
    pub(super) fn rebind(&mut self, addr: SocketAddr) {
        self.addr = addr;
        self.is_cut = false;
        if self.is_stream() {
            self.nonce.clear();
            self.relayed = None;
            self.pending = None;
            self.timer += 1;
        }
    }

    /// The next request's bytes, if it is time for one.
    pub(super) fn next_request(&mut self) -> Option<Vec<u8>> {
        if self.pending.is_some() {
            return None;
        }
        let ask = self.asks.pop_front()?;
        Some(self.begin(ask, 0))
    }

    fn begin(&mut self, ask: Ask, rounds: u8) -> Vec<u8> {
        let tid = self.tid();
        if let Some(renewed) = self.renewed.take() {
            self.credential = renewed;
        }
        let bytes = ask.write(tid, &self.proof());
        self.timer += 1;
        self.pending = Some(Pending { ask, tid, bytes: bytes.clone(), sends: 1, rounds });
        bytes
    }

    /// How long the client waits for an answer to what it sent last, in milliseconds.
    pub(super) fn patience_ms(&self) -> u64 {
        let sends = self.pending.as_ref().map_or(1, |pending| pending.sends);
        if self.is_stream() { 8_000 } else { 500 << (sends - 1).min(6) }
    }

    /// Patience is at an end: the same bytes again, or the end of the request.
    pub(super) fn send_again(&mut self) -> Result<Vec<u8>, Answered> {
        let is_stream = self.is_stream();
        match &mut self.pending {
            Some(pending) if pending.sends < SENDS_MAX && !is_stream => {
                pending.sends += 1;
                Ok(pending.bytes.clone())
            }
            Some(pending) => {
                let method = pending.ask.method;
                self.pending = None;
                Err(Answered { method, code: None })
            }
            None => Err(Answered { method: 0, code: None }),
        }
    }

    /// An answer, if it is one to what is under way: what came of it, or the request's next attempt.
    pub(super) fn take_answer(&mut self, answer: &Reading<'_>) -> Option<Result<Vec<u8>, Answered>> {
        let is_ours = |pending: &&Pending| pending.tid == answer.tid && pending.ask.method == answer.method;
        self.pending.as_ref().filter(is_ours)?;
        let code = answer.code()?;
        // RFC 8489 section 9.2.5: an answer that should be signed and is not is as good as lost.
        let is_bare = matches!(code, 400 | 401 | 420 | 438) || answer.method == wire::BINDING;
        let key = self.credential.keys.of(self.proof().algorithm().unwrap_or(Algorithm::Md5));
        if !is_bare && !answer.is_signed_by(key) {
            return None;
        }
        let pending = self.pending.take()?;
        if matches!(code, 401 | 438) && pending.rounds < ROUNDS_MAX && pending.ask.flaw == Flaw::None {
            self.take_nonce(answer);
            return Some(Ok(self.begin(pending.ask, pending.rounds + 1)));
        }
        if code == 400 {
            // The offered algorithms may have been damaged in transit: it asks again.
            self.nonce.clear();
            self.offer.clear();
        }
        self.take_nonce(answer);
        self.believe(&pending.ask, code, answer);
        Some(Err(Answered { method: pending.ask.method, code: Some(code) }))
    }

    fn take_nonce(&mut self, answer: &Reading<'_>) {
        if let Some(nonce) = answer.get(wire::NONCE) {
            self.nonce = nonce.to_vec();
            self.offer = answer.get(wire::PASSWORD_ALGORITHMS).unwrap_or(&[]).to_vec();
        }
    }

    fn believe(&mut self, ask: &Ask, code: u16, answer: &Reading<'_>) {
        match (ask.method, code) {
            (wire::ALLOCATE, 0) => {
                let mut relayed = answer.addresses(wire::RELAYED_ADDRESS).flatten();
                (self.relayed, self.other) = (relayed.next(), relayed.next());
                let token = answer.get(wire::RESERVATION_TOKEN).map(<[u8]>::to_vec);
                self.token = token.or_else(|| self.token.take());
                self.channels.clear();
            }
            (wire::REFRESH, 0) if answer.number(wire::LIFETIME) == Some(0) => self.relayed = None,
            (wire::REFRESH | wire::CREATE_PERMISSION | wire::CHANNEL_BIND, 437) => self.relayed = None,
            (wire::CHANNEL_BIND, 0) => {
                if let [(_, Value::Bytes(number)), (_, Value::Address(peer))] = &ask.attributes[..] {
                    self.channels.push((u16::from_be_bytes([number[0], number[1]]), *peer));
                }
            }
            _ => {}
        }
    }
}

/// What a client has to do next to reach its goal, once everything is well.
pub(super) enum Step {
    /// Nothing: a request is under way.
    Wait,
    Ask(Ask),
    Speak,
    /// Its address belongs to somebody else's allocation: it takes another one.
    Rebind,
}

impl Client {
    pub(super) fn step(&self) -> Step {
        match self.goal {
            Goal::None | Goal::Reached => Step::Wait,
            Goal::Seek { .. } if self.is_busy() => Step::Wait,
            Goal::Seek { .. } if self.is_cut => Step::Rebind,
            Goal::Seek { .. } if self.relayed.is_none() => Step::Ask(Ask::allocate(true)),
            Goal::Seek { is_permitted: true } => Step::Speak,
            Goal::Seek { is_permitted: false } => Step::Ask(Ask::permit(self.echo())),
        }
    }

    /// The echoing peer of the relayed address's family.
    pub(super) fn echo(&self) -> SocketAddr {
        let is_ipv4 = self.relayed.is_none_or(|relayed| relayed.is_ipv4());
        echo(is_ipv4)
    }

    /// What an answer means on the way to the goal.
    pub(super) fn advance(&mut self, answered: &Answered) -> Option<Step> {
        let Goal::Seek { is_permitted } = &mut self.goal else { return None };
        match (answered.method, answered.code) {
            (wire::CREATE_PERMISSION, Some(0)) => *is_permitted = true,
            (wire::ALLOCATE, Some(437)) => return Some(Step::Ask(Ask::close())),
            (wire::ALLOCATE, Some(code)) if code != 0 => self.refusal = Some(code),
            (_, Some(441)) => return Some(Step::Rebind),
            (wire::CREATE_PERMISSION, Some(443)) => return Some(Step::Ask(Ask::close())),
            (wire::CREATE_PERMISSION, Some(508)) => {
                self.refusal = Some(508);
                return Some(Step::Ask(Ask::close()));
            }
            _ => {}
        }
        Some(self.step())
    }
}

/// The peer that every client knows.
pub(super) fn echo(is_ipv4: bool) -> SocketAddr {
    let ip = if is_ipv4 { "8.8.4.4" } else { "2600::4:4" };
    SocketAddr::new(ip.parse().expect("an address"), 7)
}
