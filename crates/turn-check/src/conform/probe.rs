//! A client that sends any message and keeps whatever comes back; its allocation ends with it.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tt_turn::codec::{Class, Method, TransactionId, attribute};
use tt_turn::credential::{LongTermKey, user_hash};

use super::check::{Finding, Unmet, expect};
use super::control::Control;
use super::reply::Reply;
use super::signature::{Signature, compose};
use crate::client::{Attribute, Login};
use crate::link::Link;

/// Time for a response.
const PATIENCE: Duration = Duration::from_secs(4);
/// Time for the response to the end of an allocation.
const FAREWELL: Duration = Duration::from_secs(1);
/// Time until a request over UDP is sent again, doubled each time.
const RETRANSMIT: Duration = Duration::from_millis(500);
/// Time after which a response that overtook a later one would be there.
const GRACE: Duration = Duration::from_millis(100);
/// Interval at which a wait looks for the end of the judgement.
const SLICE: Duration = Duration::from_millis(100);
/// Bytes of a payload that are printed.
const PAYLOAD_SHOWN: usize = 32;
/// Messages kept that nothing has asked for.
const UNSOLICITED_MAX: usize = 64;
const UNAUTHORIZED: u16 = 401;
const STALE_NONCE: u16 = 438;
/// Length of "obMatJos2" and of the base64 of the features behind it (RFC 8489 section 9.2).
const COOKIE: &[u8] = b"obMatJos2";
/// Algorithm SHA-256 without parameters (RFC 8489 section 18.5).
pub(super) const SHA256: [u8; 4] = [0, 2, 0, 0];
/// Value of REQUESTED-TRANSPORT for UDP.
pub(super) const UDP: Attribute<'static> = Attribute::Bytes(attribute::REQUESTED_TRANSPORT, &[17, 0, 0, 0]);

/// What a peer has sent, as the server delivers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    Indication { peer: Option<SocketAddr>, payload: Option<Vec<u8>> },
    Channel { number: u16, payload: Vec<u8> },
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Indication { peer: Some(peer), payload: Some(payload) } => {
                write!(f, "a Data indication from {peer} with {}", payload_text(Some(payload)))
            }
            Self::Indication { peer, payload } => {
                let missing = if peer.is_none() { "XOR-PEER-ADDRESS" } else { "DATA" };
                write!(f, "a Data indication without {missing}, {}", payload_text(payload.as_deref()))
            }
            Self::Channel { number, payload } => {
                write!(f, "ChannelData of number {number:#06x} with {}", payload_text(Some(payload)))
            }
        }
    }
}

/// Describes a payload.
pub(super) fn payload_text(payload: Option<&[u8]>) -> String {
    match payload {
        Some(bytes) if bytes.len() <= PAYLOAD_SHOWN => {
            format!("the {} bytes \"{}\"", bytes.len(), bytes.escape_ascii())
        }
        Some(bytes) => format!("{} bytes", bytes.len()),
        None => "nothing".to_owned(),
    }
}

/// A client on one connection.
pub(super) struct Probe {
    pub(super) link: Link,
    control: Rc<Control>,
    login: Login,
    pub(super) realm: Vec<u8>,
    pub(super) nonce: Vec<u8>,
    /// PASSWORD-ALGORITHMS of the server.
    pub(super) algorithms: Option<Vec<u8>>,
    unsolicited: VecDeque<Vec<u8>>,
    /// Whether an Allocate was sent that may have been granted.
    may_hold: bool,
    is_counted: bool,
    is_ending: bool,
}

impl Probe {
    pub(super) fn new(link: Link, login: Login, control: Rc<Control>) -> Self {
        let (realm, nonce, algorithms, unsolicited) = (Vec::new(), Vec::new(), None, VecDeque::new());
        let (may_hold, is_counted, is_ending) = (false, false, false);
        Self { link, control, login, realm, nonce, algorithms, unsolicited, may_hold, is_counted, is_ending }
    }

    fn key_of(&self, derive: fn(&[u8], &[u8], &[u8]) -> LongTermKey) -> LongTermKey {
        derive(self.login.name.as_bytes(), &self.realm, self.login.password.as_bytes())
    }

    /// Credentials with the MD5 key and MESSAGE-INTEGRITY.
    pub(super) fn signature(&self) -> Signature {
        Signature {
            name: Some(self.login.name.clone().into_bytes()),
            realm: Some(self.realm.clone()),
            nonce: Some(self.nonce.clone()),
            sha1: Some(self.key_of(LongTermKey::md5).sha1),
            ..Signature::default()
        }
    }

    /// Credentials with the SHA-256 key and MESSAGE-INTEGRITY-SHA256.
    ///
    /// # Errors
    /// The server does not offer the algorithm.
    pub(super) fn sha256_signature(&self) -> Result<Signature, Unmet> {
        let offered = self.algorithms.as_deref().unwrap_or_default();
        if !offered.chunks_exact(4).any(|algorithm| algorithm == SHA256) {
            return Err(Unmet::absent("the server offers no SHA-256 in PASSWORD-ALGORITHMS"));
        }
        Ok(Signature {
            algorithms: self.algorithms.clone(),
            algorithm: Some(SHA256.to_vec()),
            sha1: None,
            sha256: Some(self.key_of(LongTermKey::sha256).sha256),
            ..self.signature()
        })
    }

    /// Continues as another user; returns the one before.
    pub(super) fn replace_login(&mut self, login: Login) -> Login {
        std::mem::replace(&mut self.login, login)
    }

    /// USERHASH of the user.
    pub(super) fn user_hash(&self) -> [u8; 32] {
        user_hash(self.login.name.as_bytes(), &self.realm)
    }

    /// The four characters behind the nonce cookie, if there is one.
    pub(super) fn features(&self) -> Option<&[u8]> {
        self.nonce.strip_prefix(COOKIE)?.get(..4)
    }

    pub(super) fn send(&mut self, message: &[u8]) -> Result<(), Unmet> {
        if !self.is_ending {
            self.control.heed_stop()?;
        }
        self.control.pace();
        self.link.send(message).map_err(|error| lost(&error))
    }

    /// Waits for the next message; `None` if there is none.
    pub(super) fn next(&mut self, until: Instant) -> Result<Option<Vec<u8>>, Unmet> {
        loop {
            if !self.is_ending {
                self.control.heed_stop()?;
            }
            let slice = until.min(Instant::now() + SLICE);
            if let Some(bytes) = self.link.receive(slice).map_err(|error| lost(&error))? {
                return Ok(Some(bytes));
            }
            if Instant::now() >= until {
                return Ok(None);
            }
        }
    }

    /// Waits for the response with this transaction id; keeps what comes before it.
    pub(super) fn await_reply(&mut self, id: TransactionId, until: Instant) -> Result<Option<Reply>, Unmet> {
        while let Some(bytes) = self.next(until)? {
            match Reply::read(bytes.clone()).filter(|reply| reply.is_response() && reply.id() == id) {
                Some(reply) => return Ok(Some(reply)),
                None if self.unsolicited.len() < UNSOLICITED_MAX => self.unsolicited.push_back(bytes),
                None => {}
            }
        }
        Ok(None)
    }

    /// Sends a request, over UDP again until there is a response, and returns the response.
    pub(super) fn exchange(&mut self, message: &[u8]) -> Result<Reply, Unmet> {
        self.exchange_within(message, PATIENCE)
    }

    fn exchange_within(&mut self, message: &[u8], patience: Duration) -> Result<Reply, Unmet> {
        let id = id_of(message);
        let (deadline, mut wait) = (Instant::now() + patience, RETRANSMIT);
        loop {
            self.send(message)?;
            let until = if self.link.is_lossy() { deadline.min(Instant::now() + wait) } else { deadline };
            if let Some(reply) = self.await_reply(id, until)? {
                return Ok(reply);
            }
            if Instant::now() >= deadline {
                return Err(Unmet::failed("a response", self.silence()));
            }
            wait *= 2;
        }
    }

    /// Describes what came in place of a response.
    fn silence(&self) -> String {
        let last = self.unsolicited.back().cloned().and_then(Reply::read).filter(Reply::is_response);
        match last {
            Some(reply) => format!("{} with another transaction id", reply.text()),
            None => format!("{NO_RESPONSE} within {} s", PATIENCE.as_secs()),
        }
    }

    /// Sends a request without a credential.
    pub(super) fn ask(&mut self, method: Method, attributes: &[Attribute<'_>]) -> Result<Reply, Unmet> {
        if method != Method::Binding {
            self.control.pace_stranger();
        }
        self.exchange(&compose(method, Class::Request, attributes, &Signature::default())?)
    }

    /// Gets realm and nonce: sends an Allocate without a credential.
    pub(super) fn challenge(&mut self) -> Result<Reply, Unmet> {
        let reply = self.ask(Method::Allocate, &[UDP])?;
        if reply.is_success() {
            self.begin_allocation()?;
            return Err(Unmet::failed("error 401", "a success response without a credential"));
        }
        self.learn(&reply)?;
        Ok(reply)
    }

    /// Keeps realm and nonce of a 401 or 438.
    pub(super) fn learn(&mut self, reply: &Reply) -> Finding {
        let missing = |name: &str| Unmet::failed(format!("{} with {name}", reply.text()), "none");
        self.realm = reply.value(attribute::REALM).ok_or_else(|| missing("REALM"))?.to_vec();
        self.nonce = reply.value(attribute::NONCE).ok_or_else(|| missing("NONCE"))?.to_vec();
        self.algorithms = reply.value(attribute::PASSWORD_ALGORITHMS).map(<[u8]>::to_vec);
        Ok(())
    }

    /// Sends a request with the user's credential; after a 438 once more with the new nonce.
    pub(super) fn request(&mut self, method: Method, attributes: &[Attribute<'_>]) -> Result<Reply, Unmet> {
        if self.nonce.is_empty() {
            self.challenge()?;
        }
        let reply = self.signed(method, attributes, &self.signature())?;
        if reply.code() != STALE_NONCE {
            return Ok(reply);
        }
        self.learn(&reply)?;
        self.signed(method, attributes, &self.signature())
    }

    /// Sends a request with these credentials.
    pub(super) fn signed(
        &mut self,
        method: Method,
        attributes: &[Attribute<'_>],
        signature: &Signature,
    ) -> Result<Reply, Unmet> {
        let message = compose(method, Class::Request, attributes, signature)?;
        if method == Method::Allocate { self.allocate_with(&message) } else { self.exchange(&message) }
    }

    /// Sends an Allocate that is to be ended if it is granted.
    pub(super) fn allocate_with(&mut self, message: &[u8]) -> Result<Reply, Unmet> {
        let held = self.may_hold;
        self.may_hold = true;
        let reply = self.exchange(message)?;
        if reply.is_success() {
            self.begin_allocation()?;
        } else {
            self.may_hold = held;
        }
        Ok(reply)
    }

    fn begin_allocation(&mut self) -> Finding {
        self.may_hold = true;
        if !self.is_counted {
            self.control.begin_allocation()?;
            self.is_counted = true;
        }
        Ok(())
    }

    /// Allocates, and returns the response.
    pub(super) fn allocate(&mut self, more: &[Attribute<'_>]) -> Result<Reply, Unmet> {
        let mut attributes = vec![UDP];
        attributes.extend(more.iter().copied());
        self.request(Method::Allocate, &attributes)
    }

    /// Ends the allocation, and returns the response.
    pub(super) fn end(&mut self) -> Result<Reply, Unmet> {
        self.request(Method::Refresh, &[Attribute::Bytes(attribute::LIFETIME, &[0; 4])])
    }

    /// Permits a peer.
    pub(super) fn permit(&mut self, peer: SocketAddr) -> Result<Reply, Unmet> {
        self.request(Method::CreatePermission, &[Attribute::Address(attribute::XOR_PEER_ADDRESS, peer)])
    }

    /// Binds a channel.
    pub(super) fn bind(&mut self, number: u16, peer: SocketAddr) -> Result<Reply, Unmet> {
        let channel = channel_value(number);
        let number = Attribute::Bytes(attribute::CHANNEL_NUMBER, &channel);
        self.request(Method::ChannelBind, &[number, Attribute::Address(attribute::XOR_PEER_ADDRESS, peer)])
    }

    /// Sends a payload to a peer in a Send indication.
    pub(super) fn send_to_peer(&mut self, peer: SocketAddr, payload: &[u8]) -> Finding {
        let peer = Attribute::Address(attribute::XOR_PEER_ADDRESS, peer);
        self.indicate(&[peer, Attribute::Bytes(attribute::DATA, payload)])
    }

    /// Sends a Send indication.
    pub(super) fn indicate(&mut self, attributes: &[Attribute<'_>]) -> Finding {
        self.send(&compose(Method::Send, Class::Indication, attributes, &Signature::default())?)
    }

    /// Sends ChannelData, padded over a stream.
    pub(super) fn send_on_channel(&mut self, number: u16, payload: &[u8]) -> Finding {
        let padded = !self.link.is_lossy();
        self.send(&channel_data(number, payload, padded))
    }

    /// Waits for data of a peer; `None` if there are none.
    pub(super) fn data(&mut self, within: Duration) -> Result<Option<Delivery>, Unmet> {
        let until = Instant::now() + within;
        while let Some(bytes) = self.next_kept(until)? {
            if let Some(data) = peer_data(&bytes) {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// Waits for a Data indication; `None` if there is none.
    pub(super) fn indication(&mut self, within: Duration) -> Result<Option<Reply>, Unmet> {
        let until = Instant::now() + within;
        while let Some(bytes) = self.next_kept(until)? {
            if let Some(reply) = Reply::read(bytes).filter(|reply| reply.kind() == DATA_INDICATION) {
                return Ok(Some(reply));
            }
        }
        Ok(None)
    }

    fn next_kept(&mut self, until: Instant) -> Result<Option<Vec<u8>>, Unmet> {
        match self.unsolicited.pop_front() {
            Some(bytes) => Ok(Some(bytes)),
            None => self.next(until),
        }
    }

    /// Passes if `message` gets no response although the Binding behind it gets one.
    pub(super) fn expect_silence(&mut self, message: &[u8]) -> Finding {
        self.unsolicited.clear();
        self.send(message)?;
        self.binding()?;
        self.collect(GRACE)?;
        let id = (message.len() >= 20).then(|| id_of(message));
        let replies = self.unsolicited.iter().cloned().filter_map(Reply::read);
        let answer = replies.into_iter().find(|reply| id.is_none_or(|id| reply.id() == id));
        answer.map_or(Ok(()), |reply| Err(Unmet::failed("no response", reply.text())))
    }

    /// Keeps all messages that come in a time.
    fn collect(&mut self, within: Duration) -> Finding {
        let until = Instant::now() + within;
        while let Some(bytes) = self.next(until)? {
            if self.unsolicited.len() < UNSOLICITED_MAX {
                self.unsolicited.push_back(bytes);
            }
        }
        Ok(())
    }

    /// Passes if a Binding gets a success response, and returns it.
    pub(super) fn binding(&mut self) -> Result<Reply, Unmet> {
        let reply = self.ask(Method::Binding, &[])?;
        reply.expect_success()?;
        Ok(reply)
    }

    /// Returns whether the server sees the address of this end as it is.
    pub(super) fn is_untranslated(&mut self) -> Result<bool, Unmet> {
        let mapped = self.binding()?.address(attribute::XOR_MAPPED_ADDRESS);
        Ok(mapped.is_some() && mapped == self.link.local_addr().ok())
    }

    /// Passes if the allocation lives.
    pub(super) fn expect_allocation(&mut self) -> Finding {
        let reply = self.request(Method::Refresh, &[])?;
        expect(reply.is_success(), "the allocation lives", format!("{} to a Refresh", reply.text()))
    }

    /// Passes if there is no allocation.
    pub(super) fn expect_no_allocation(&mut self) -> Finding {
        let reply = self.request(Method::Refresh, &[]);
        expect_mismatch(reply).map_err(|unmet| match unmet {
            Unmet::Failed { received, .. } => {
                Unmet::failed("the allocation is gone: error 437", format!("{received} to a Refresh"))
            }
            Unmet::Absent(_) | Unmet::NotJudged(_) => unmet,
        })
    }
}

/// Passes if the response to a request shows that there is no allocation; R067 judges those that stay silent.
pub(super) fn expect_mismatch(reply: Result<Reply, Unmet>) -> Finding {
    match reply {
        Ok(reply) => reply.expect_code(437),
        Err(Unmet::Failed { received, .. }) if received.starts_with(NO_RESPONSE) => Ok(()),
        Err(unmet) => Err(unmet),
    }
}

impl Drop for Probe {
    /// Ends the allocation. Without a response it ends by itself.
    fn drop(&mut self) {
        self.is_ending = true;
        let lifetime = [Attribute::Bytes(attribute::LIFETIME, &[0; 4])];
        // The second attempt is for a nonce that is no longer valid.
        for _ in 0..2 {
            if !self.may_hold || self.nonce.is_empty() {
                break;
            }
            let message = compose(Method::Refresh, Class::Request, &lifetime, &self.signature());
            let reply = message.and_then(|message| self.exchange_within(&message, FAREWELL));
            self.may_hold = match reply {
                Ok(reply) if matches!(reply.code(), STALE_NONCE | UNAUTHORIZED) => self.learn(&reply).is_ok(),
                Ok(_) | Err(_) => false,
            };
        }
        if self.is_counted {
            self.control.end_allocation();
        }
    }
}

const NO_RESPONSE: &str = "no response";
const DATA_INDICATION: u16 = 0x0017;

fn id_of(message: &[u8]) -> TransactionId {
    message.get(8..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default()
}

fn lost(error: &io::Error) -> Unmet {
    let is_closed = matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    );
    let text = if is_closed { "the server closed the connection".to_owned() } else { error.to_string() };
    Unmet::failed("a response", text)
}

/// Reads a Data indication or ChannelData.
fn peer_data(bytes: &[u8]) -> Option<Delivery> {
    if let Some([n0, n1, l0, l1]) = bytes.first_chunk().filter(|head| head[0] & 0xC0 == 0x40) {
        let length = usize::from(u16::from_be_bytes([*l0, *l1]));
        let payload = bytes.get(4..4 + length)?.to_vec();
        return Some(Delivery::Channel { number: u16::from_be_bytes([*n0, *n1]), payload });
    }
    let reply = Reply::read(bytes.to_vec()).filter(|reply| reply.kind() == DATA_INDICATION)?;
    let payload = reply.value(attribute::DATA).map(<[u8]>::to_vec);
    Some(Delivery::Indication { peer: reply.address(attribute::XOR_PEER_ADDRESS), payload })
}

/// Value of CHANNEL-NUMBER.
pub(super) fn channel_value(number: u16) -> [u8; 4] {
    let [high, low] = number.to_be_bytes();
    [high, low, 0, 0]
}

/// A ChannelData message.
pub(super) fn channel_data(number: u16, payload: &[u8], is_padded: bool) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap_or(u16::MAX);
    let mut bytes = [&number.to_be_bytes()[..], &length.to_be_bytes(), payload].concat();
    if is_padded {
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}
