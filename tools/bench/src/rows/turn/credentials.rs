//! Codes and credentials.

use std::hint::black_box;

use anyhow::ensure;
use tt_model::SplitMix64;
use tt_turn::codec::{HmacSha1, Message};
use tt_turn::config::Capacity;

use super::label;
use super::rig::{NOW, Rig, five_tuple};
use super::wire::{self, INPUTS, Packed};
use crate::harness::operation::{Label, Operation};

const LEN: usize = 100;

pub(super) fn label_integrity() -> Label {
    label("integrity_sha1", "HMAC-SHA1 of 100 bytes, the key's two states kept", 664.2, "MESSAGE-INTEGRITY, HMAC-SHA1")
}

/// `HmacSha1::mac` on 65,536 overlapping stretches of random bytes.
pub(super) struct Integrity {
    key: [u8; 16],
    states: HmacSha1,
    bytes: Vec<u8>,
}

impl Integrity {
    pub(super) fn new() -> Self {
        let mut random = SplitMix64::new(664);
        let key = random.bytes();
        let bytes = (0..INPUTS + LEN).map(|_| random.next_u64() as u8).collect();
        Self { key, states: HmacSha1::new(&key), bytes }
    }
}

impl Operation for Integrity {
    fn inputs(&self) -> usize {
        INPUTS
    }

    #[inline(always)]
    fn run(&mut self, index: usize) -> u64 {
        digest(&black_box(self.states.mac(&self.bytes[index..index + LEN])))
    }

    fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
        let message = &self.bytes[index..index + LEN];
        let expected = wire::hmac_sha1(&self.key, message);
        ensure!(self.states.mac(message) == expected && self.states.verify(message, &expected));
        Ok(digest(&expected))
    }
}

#[inline(always)]
fn digest(mac: &[u8; 20]) -> u64 {
    mac.first_chunk::<8>().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

pub(super) fn label_check() -> Label {
    label(
        "credential_check",
        "realm, user, MESSAGE-INTEGRITY and nonce of a Refresh request, parsing included, each from another client",
        863.0,
        "the full long-term credential check: nonce, realm, user, HMAC",
    )
}

/// `Server::credential_check` on Refresh requests of as many clients as there are inputs.
pub(super) struct CredentialCheck {
    rig: Rig,
    datagrams: Packed,
    /// Requests with one bit of the code turned, which must be refused.
    forged: Packed,
}

impl CredentialCheck {
    pub(super) fn new() -> anyhow::Result<Self> {
        let mut rig = Rig::new(Capacity::for_allocations(16), false);
        let (mut datagrams, mut forged) = (Packed::default(), Packed::default());
        for client in 0..INPUTS as u32 {
            let nonce = rig.nonce(client)?;
            let mut request = rig.signed(0x0004, client, &nonce, &[(0x000d, &600u32.to_be_bytes())]);
            datagrams.push(&request);
            let last = request.len() - 1;
            request[last] ^= 1;
            forged.push(&request);
        }
        Ok(Self { rig, datagrams, forged })
    }
}

#[inline(always)]
fn check(rig: &mut Rig, client: usize, datagrams: &Packed) -> Option<u64> {
    let message = Message::parse(datagrams.get(client)).ok()?;
    let from = five_tuple(client as u32).client;
    let user = black_box(rig.server.credential_check(NOW, from, &message));
    user.ok().map(|_| u64::from(message.transaction_id()[3]) + 1)
}

impl Operation for CredentialCheck {
    fn inputs(&self) -> usize {
        INPUTS
    }

    #[inline(always)]
    fn run(&mut self, index: usize) -> u64 {
        check(&mut self.rig, index, &self.datagrams).unwrap_or(0)
    }

    fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
        ensure!(check(&mut self.rig, index, &self.forged).is_none(), "client {index}: a forged code passed");
        check(&mut self.rig, index, &self.datagrams).ok_or_else(|| anyhow::anyhow!("client {index} was refused"))
    }
}
