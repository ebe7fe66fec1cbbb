//! A TURN client that waits for each response.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tt_turn::codec::{Class, Emitter, HmacSha1, Message, Method, TransactionId, XorAddress, attribute};
use tt_turn::credential::long_term_key;
use zeroize::Zeroizing;

use crate::link::Link;

/// Time for a response.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time until a request over UDP is sent again, doubled each time (RFC 8489 section 6.2.1).
const RETRANSMIT: Duration = Duration::from_millis(500);
const MESSAGE_MAX: usize = 2_048;
const UNAUTHORIZED: u16 = 401;
const STALE_NONCE: u16 = 438;

/// A name and its password.
#[derive(Clone)]
pub struct Login {
    /// USERNAME.
    pub name: String,
    /// The password.
    pub password: Zeroizing<String>,
}

/// Reason why there is no response.
#[derive(Debug)]
pub(crate) enum NoResponse {
    Io(io::Error),
    Timeout,
    /// A response whose MESSAGE-INTEGRITY is missing or wrong.
    Integrity,
    Malformed,
}

impl fmt::Display for NoResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Timeout => f.write_str("no response within 5 s"),
            Self::Integrity => f.write_str("a response without a valid MESSAGE-INTEGRITY"),
            Self::Malformed => f.write_str("a malformed response"),
        }
    }
}

impl From<NoResponse> for io::Error {
    fn from(reason: NoResponse) -> Self {
        match reason {
            NoResponse::Io(error) => error,
            NoResponse::Timeout => Self::new(io::ErrorKind::TimedOut, reason.to_string()),
            NoResponse::Integrity | NoResponse::Malformed => Self::new(io::ErrorKind::InvalidData, reason.to_string()),
        }
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    /// The error code; 0 of a success.
    pub(crate) code: u16,
    bytes: Vec<u8>,
    transaction_id: TransactionId,
}

impl Response {
    /// Returns the value of the first attribute of a type.
    pub(crate) fn value(&self, kind: u16) -> Option<&[u8]> {
        let message = Message::parse(&self.bytes).ok()?;
        message.attributes().find(|(found, _)| *found == kind).map(|(_, value)| value)
    }

    /// Returns the address of the first attribute of a type.
    pub(crate) fn address(&self, kind: u16) -> Option<SocketAddr> {
        XorAddress::decode(self.value(kind)?, &self.transaction_id)
    }
}

/// Attributes of a request.
#[derive(Clone, Copy)]
pub(crate) enum Attribute<'a> {
    Bytes(u16, &'a [u8]),
    Address(u16, SocketAddr),
}

/// A client on one connection.
pub(crate) struct Client {
    pub(crate) link: Link,
    login: Option<Login>,
    realm: Vec<u8>,
    nonce: Vec<u8>,
    key: Option<HmacSha1>,
    indications: VecDeque<Vec<u8>>,
}

impl Client {
    pub(crate) fn new(link: Link, login: Option<&Login>) -> Self {
        let login = login.cloned();
        Self { link, login, realm: Vec::new(), nonce: Vec::new(), key: None, indications: VecDeque::new() }
    }

    /// Sends a request without credentials.
    pub(crate) fn ask(&mut self, method: Method, attributes: &[Attribute<'_>]) -> Result<Response, NoResponse> {
        self.exchange(method, attributes, None)
    }

    /// Sends a request with credentials; after a 401 or 438 once more with realm and nonce of the server.
    pub(crate) fn request(&mut self, method: Method, attributes: &[Attribute<'_>]) -> Result<Response, NoResponse> {
        let key = self.key.clone();
        let response = self.exchange(method, attributes, key.as_ref())?;
        let is_first = key.is_none() && response.code == UNAUTHORIZED;
        if !(is_first || response.code == STALE_NONCE) {
            return Ok(response);
        }
        self.realm = response.value(attribute::REALM).ok_or(NoResponse::Malformed)?.to_vec();
        self.nonce = response.value(attribute::NONCE).ok_or(NoResponse::Malformed)?.to_vec();
        let Some(login) = &self.login else { return Ok(response) };
        self.key = Some(long_term_key(login.name.as_bytes(), &self.realm, login.password.as_bytes()));
        let key = self.key.clone();
        self.exchange(method, attributes, key.as_ref())
    }

    fn exchange(
        &mut self,
        method: Method,
        attributes: &[Attribute<'_>],
        key: Option<&HmacSha1>,
    ) -> Result<Response, NoResponse> {
        let transaction_id = transaction_id()?;
        let mut out = [0; MESSAGE_MAX];
        let mut emitter = Emitter::begin(&mut out, method, Class::Request, transaction_id);
        write(&mut emitter, attributes);
        if let (Some(key), Some(login)) = (key, &self.login) {
            emitter.attribute(attribute::USERNAME, login.name.as_bytes());
            emitter.attribute(attribute::REALM, &self.realm);
            emitter.attribute(attribute::NONCE, &self.nonce);
            emitter.message_integrity(key);
        }
        let message = emitter.finish().ok_or(NoResponse::Malformed)?.to_vec();
        let (deadline, mut wait) = (Instant::now() + PATIENCE, RETRANSMIT);
        loop {
            self.link.send(&message).map_err(NoResponse::Io)?;
            let until = if self.link.is_lossy() { deadline.min(Instant::now() + wait) } else { deadline };
            if let Some(response) = self.await_response(&transaction_id, until)? {
                return verified(response, key);
            }
            if Instant::now() >= deadline {
                return Err(NoResponse::Timeout);
            }
            wait *= 2;
        }
    }

    fn await_response(&mut self, id: &TransactionId, until: Instant) -> Result<Option<Response>, NoResponse> {
        while let Some(bytes) = self.link.receive(until).map_err(NoResponse::Io)? {
            let Ok(message) = Message::parse(&bytes) else { continue };
            match message.class() {
                Class::Indication => self.indications.push_back(bytes),
                Class::Success | Class::Error if message.transaction_id() == *id => {
                    let is_error = message.class() == Class::Error;
                    let error =
                        message.attributes().find(|(kind, _)| *kind == attribute::ERROR_CODE).map(|(_, value)| value);
                    let code = match (is_error, error) {
                        (false, _) => 0,
                        (true, Some([_, _, class, number, ..])) => u16::from(*class) * 100 + u16::from(*number),
                        (true, _) => return Err(NoResponse::Malformed),
                    };
                    return Ok(Some(Response { code, bytes, transaction_id: *id }));
                }
                Class::Success | Class::Error | Class::Request => {}
            }
        }
        Ok(None)
    }

    /// Sends `payload` to `peer` in a Send indication.
    pub(crate) fn send(&mut self, peer: SocketAddr, payload: &[u8]) -> Result<(), NoResponse> {
        let mut out = [0; MESSAGE_MAX];
        let mut emitter = Emitter::begin(&mut out, Method::Send, Class::Indication, transaction_id()?);
        write(
            &mut emitter,
            &[Attribute::Address(attribute::XOR_PEER_ADDRESS, peer), Attribute::Bytes(attribute::DATA, payload)],
        );
        self.link.send(emitter.finish().ok_or(NoResponse::Malformed)?).map_err(NoResponse::Io)
    }

    /// Waits for a Data indication with `payload`; returns whether it came.
    pub(crate) fn receives(&mut self, payload: &[u8], until: Instant) -> Result<bool, NoResponse> {
        while let Some(data) = self.data(until)? {
            if data == payload {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits for the payload of a Data indication; `None` if there is none.
    pub(crate) fn data(&mut self, until: Instant) -> Result<Option<Vec<u8>>, NoResponse> {
        loop {
            let bytes = match self.indications.pop_front() {
                Some(bytes) => Some(bytes),
                None => self.link.receive(until).map_err(NoResponse::Io)?,
            };
            let Some(bytes) = bytes else { return Ok(None) };
            let Ok(message) = Message::parse(&bytes) else { continue };
            if let Some((_, data)) = message.attributes().find(|(kind, _)| *kind == attribute::DATA) {
                return Ok(Some(data.to_vec()));
            }
        }
    }
}

pub(crate) fn write(emitter: &mut Emitter<'_>, attributes: &[Attribute<'_>]) {
    for attribute in attributes {
        match attribute {
            Attribute::Bytes(kind, value) => emitter.attribute(*kind, value),
            Attribute::Address(kind, addr) => emitter.xor_address(*kind, *addr),
        }
    }
}

/// Returns the response if it is an error or its integrity is that of `key`.
fn verified(response: Response, key: Option<&HmacSha1>) -> Result<Response, NoResponse> {
    let (Some(key), 0) = (key, response.code) else { return Ok(response) };
    let is_valid = Message::parse(&response.bytes).is_ok_and(|message| message.has_valid_integrity(key));
    if is_valid { Ok(response) } else { Err(NoResponse::Integrity) }
}

pub(crate) fn transaction_id() -> Result<TransactionId, NoResponse> {
    let mut id = TransactionId::default();
    getrandom::fill(&mut id).map_err(|error| NoResponse::Io(io::Error::other(error)))?;
    Ok(id)
}
