//! The generator's TURN client: allocations, permissions, channels.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::face::Face;
use crate::stun::{self, Request, Response, Transaction};

/// The user that every server knows.
pub(crate) const USER: &str = "ann";
/// See [`USER`].
pub(crate) const PASSWORD: &str = "correct-horse";
/// The realm that every server is configured with.
pub(crate) const REALM: &str = "relay.test";
/// Setting: how long an answer may take before the request is sent again, and how often that is.
const PATIENCE: Duration = Duration::from_millis(500);
const TRIES: u32 = 6;

/// Challenge of a server: what a request must repeat.
#[derive(Clone)]
pub(crate) struct Challenge {
    pub(crate) realm: Vec<u8>,
    pub(crate) nonce: Vec<u8>,
    pub(crate) key: [u8; 16],
}

impl Challenge {
    /// Of a response with 401 or 438.
    pub(crate) fn of(response: &Response<'_>) -> Option<Self> {
        let realm = response.attribute(stun::REALM)?.to_vec();
        let nonce = response.attribute(stun::NONCE)?.to_vec();
        let key = stun::long_term_key(USER, &realm, PASSWORD);
        Some(Self { realm, nonce, key })
    }

    pub(crate) fn sign(&self, request: Request) -> Vec<u8> {
        request.sign(USER, &self.realm, &self.nonce, &self.key)
    }
}

/// A client with an allocation.
pub(crate) struct Client {
    pub(crate) ip: Ipv4Addr,
    pub(crate) server: SocketAddrV4,
    pub(crate) relayed: SocketAddrV4,
    challenge: Challenge,
    transactions: Transactions,
}

/// Source of transaction ids: unlike any other client's.
#[derive(Clone)]
pub(crate) struct Transactions {
    ip: u32,
    next: u64,
}

impl Transactions {
    fn draw(&mut self) -> Transaction {
        self.next = self.next.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut id = [0; 12];
        id[..4].copy_from_slice(&self.ip.to_be_bytes());
        id[4..].copy_from_slice(&self.next.to_be_bytes());
        id
    }
}

pub(crate) fn allocate_request(transaction: Transaction) -> Request {
    Request::new(stun::ALLOCATE, transaction).put(stun::REQUESTED_TRANSPORT, &[17, 0, 0, 0])
}

pub(crate) fn release_request(transaction: Transaction) -> Request {
    Request::new(stun::REFRESH, transaction).put(stun::LIFETIME, &0_u32.to_be_bytes())
}

impl Client {
    /// Allocates at `server` from `ip`.
    pub(crate) fn allocate(face: &mut Face, ip: Ipv4Addr, server: SocketAddrV4) -> anyhow::Result<Self> {
        let mut transactions = Transactions { ip: ip.to_bits(), next: u64::from(ip.to_bits()) };
        let id = transactions.draw();
        let first = allocate_request(id).unsigned();
        let challenge = ask(face, ip, server, id, &first, |response| match response.error_code() {
            401 => Challenge::of(response).context("401 without a challenge"),
            code => bail!("a first Allocate is answered {code} in place of 401"),
        })??;
        let id = transactions.draw();
        let second = challenge.sign(allocate_request(id));
        let relayed = ask(face, ip, server, id, &second, |response| match response.error_code() {
            0 => response.address(stun::XOR_RELAYED_ADDRESS).context("no relayed address"),
            code => bail!("Allocate is answered {code}"),
        })??;
        Ok(Self { ip, server, relayed, challenge, transactions })
    }

    /// Binds `channel` to `peer`, which permits it too. RFC 8656 section 12.
    pub(crate) fn bind_channel(&mut self, face: &mut Face, channel: u16, peer: SocketAddrV4) -> anyhow::Result<()> {
        self.request(face, "ChannelBind", |id| {
            let [high, low] = channel.to_be_bytes();
            let request = Request::new(stun::CHANNEL_BIND, id).put(stun::CHANNEL_NUMBER, &[high, low, 0, 0]);
            request.put_address(stun::XOR_PEER_ADDRESS, peer)
        })
    }

    /// Ends the allocation.
    pub(crate) fn release(&mut self, face: &mut Face) -> anyhow::Result<()> {
        self.request(face, "Refresh", release_request)
    }

    fn request(&mut self, face: &mut Face, name: &str, request: impl Fn(Transaction) -> Request) -> anyhow::Result<()> {
        for _ in 0..2 {
            let id = self.transactions.draw();
            let bytes = self.challenge.sign(request(id));
            let stale = ask(face, self.ip, self.server, id, &bytes, |response| match response.error_code() {
                0 => Ok(None),
                438 => Challenge::of(response).map(Some).context("438 without a challenge"),
                code => bail!("{name} is answered {code}"),
            })??;
            match stale {
                None => return Ok(()),
                Some(challenge) => self.challenge = challenge,
            }
        }
        bail!("{name} is answered 438 twice")
    }
}

/// Sends `request` until it is answered, and returns what `read` makes of the answer.
pub(crate) fn ask<T>(
    face: &mut Face,
    ip: Ipv4Addr,
    server: SocketAddrV4,
    id: Transaction,
    request: &[u8],
    read: impl Fn(&Response<'_>) -> T,
) -> anyhow::Result<T> {
    for _ in 0..TRIES {
        face.send(ip, server, request).context("cannot send")?;
        let sent = Instant::now();
        while sent.elapsed() < PATIENCE {
            let Some(arrival) = face.receive().context("cannot receive")? else { continue };
            let from_server = arrival.from == server && arrival.at == ip;
            match Response::parse(arrival.bytes) {
                Some(response) if from_server && response.transaction == id => return Ok(read(&response)),
                Some(_) | None => {}
            }
        }
    }
    bail!("{server} does not answer")
}
