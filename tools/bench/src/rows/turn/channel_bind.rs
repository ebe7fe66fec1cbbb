//! ChannelBind with state allocation.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::ensure;
use tt_meter::Off;
use tt_turn::config::Capacity;

use super::label;
use super::rig::{Rig, digest_reply, five_tuple, transaction_id};
use super::wire::{self, INPUTS, Packed};
use crate::harness::operation::{Label, Operation};

/// Live allocations; each binds [`INPUTS`] / 8,192 = 8 channels.
const CLIENTS: u32 = 8_192;

pub(super) fn label_bind() -> Label {
    label(
        "channel_bind",
        "a whole authenticated ChannelBind request to its signed response: parsing, credential check, policy, a new \
         permission, a new channel; 8,192 allocations with eight channels each",
        526.9,
        "ChannelBind with state allocation",
    )
}

/// `Server::handle_client` on ChannelBind requests, each for another channel.
pub(super) struct ChannelBind {
    rig: Rig,
    datagrams: Packed,
}

fn capacity() -> Capacity {
    Capacity { permissions: INPUTS as u32, channels: INPUTS as u32, ..Capacity::for_allocations(CLIENTS) }
}

/// A public address, another one for each bind.
fn peer(index: u32) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::from_bits(0x0800_0000 | index.wrapping_mul(0x9e37_79b1) >> 8), 5_000))
}

impl ChannelBind {
    pub(super) fn new() -> anyhow::Result<Self> {
        let mut rig = Rig::with_allocations(capacity(), false, CLIENTS)?;
        let nonces = (0..CLIENTS).map(|client| rig.nonce(client)).collect::<Result<Vec<_>, _>>()?;
        let mut datagrams = Packed::default();
        for index in 0..INPUTS as u32 {
            let client = index % CLIENTS;
            let number = (0x4000 + index / CLIENTS) as u16;
            let peer = wire::xor_value(peer(index), &transaction_id(client));
            let number = [&number.to_be_bytes()[..], &[0, 0]].concat();
            datagrams.push(&rig.signed(
                0x0009,
                client,
                &nonces[client as usize],
                &[(0x000c, &number), (0x0012, &peer)],
            ));
        }
        Ok(Self { rig, datagrams })
    }
}

impl Operation for ChannelBind {
    fn inputs(&self) -> usize {
        INPUTS
    }

    #[inline(always)]
    fn run(&mut self, index: usize) -> u64 {
        self.rig.pass(&five_tuple(index as u32 % CLIENTS), self.datagrams.get(index), &mut Off)
    }

    fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
        let client = index as u32 % CLIENTS;
        let request = self.datagrams.get(index).to_vec();
        let reply = self.rig.reply_to(client, &request)?;
        ensure!(reply[..2] == [0x01, 0x09] && reply[4..20] == request[4..20], "refused: {reply:x?}");
        // Behind MESSAGE-INTEGRITY (24 bytes) there is only FINGERPRINT (8).
        ensure!(wire::fingerprint_is_right(&reply), "wrong FINGERPRINT: {reply:x?}");
        let (body, tail) = reply.split_at(reply.len() - 32);
        let mut signed = body.to_vec();
        signed[2..4].copy_from_slice(&((body.len() + 4) as u16).to_be_bytes());
        ensure!(wire::hmac_sha1(&self.rig.key, &signed) == tail[4..24], "wrong MESSAGE-INTEGRITY: {reply:x?}");
        Ok(digest_reply(&reply))
    }

    fn rewind(&mut self) {
        // Nonces depend on the client and the moment alone, so the requests stay valid.
        if let Ok(rig) = Rig::with_allocations(capacity(), false, CLIENTS) {
            self.rig = rig;
        }
    }
}
