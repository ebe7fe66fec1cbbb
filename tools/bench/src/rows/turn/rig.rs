//! A server with live allocations, made by the protocol itself.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use tt_meter::{Off, Probe};
use tt_model::{FiveTuple, Nanos, Transport};
use tt_turn::config::{Capacity, Config, FingerprintUse};
use tt_turn::credential::Secrets;
use tt_turn::relay::{PeerPath, RelayAddress, RelayId};
use tt_turn::shared::{Budget, Quotas, Shared};
use tt_turn::{Output, Server, WorkerId};

use super::wire;

pub(super) const USER: &str = "bench";
pub(super) const REALM: &str = "truetick.example";
pub(super) const PASSWORD: &str = "a password of thirty characters";
/// The wall clock of every rig, and the moment at which everything happens.
const UNIX_S: u64 = 1_700_000_000;
pub(super) const NOW: Nanos = Nanos(1_000_000_000);
const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 3478);

/// A server whose clients are numbered.
pub(super) struct Rig {
    pub(super) server: Server,
    pub(super) key: [u8; 16],
    pub(super) out: Vec<u8>,
}

impl Rig {
    /// A server for `capacity` without any allocation. It answers each source as often as it asks, and always with
    /// FINGERPRINT.
    pub(super) fn new(capacity: Capacity, software: bool) -> Self {
        let mut config = Config::new(REALM);
        config.fingerprint = FingerprintUse::Always;
        config.software = software.then(|| "truetick".to_owned());
        let quotas =
            Quotas { error_excess: Budget::UNLIMITED, user_allocation_rate: Budget::UNLIMITED, ..Quotas::default() };
        let shared = Arc::new(Shared::new(quotas, capacity.allocations, 1));
        let mut secrets = Secrets::new([7; 32], [9; 32]);
        secrets.add_user(USER.as_bytes(), REALM, PASSWORD.as_bytes());
        let mut server = Server::new(config, capacity, shared, WorkerId(0), secrets);
        server.set_wall_clock(NOW, Nanos::from_secs(UNIX_S));
        Self { server, key: wire::long_term_key(USER, REALM, PASSWORD), out: vec![0; 1_500] }
    }

    /// The same with `clients` live allocations, of the clients 0 to `clients - 1`.
    pub(super) fn with_allocations(capacity: Capacity, software: bool, clients: u32) -> anyhow::Result<Self> {
        let mut rig = Self::new(capacity, software);
        for relay in 0..clients {
            let port = (1_024 + relay % 60_000) as u16;
            let address = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 10 + (relay / 60_000) as u8), port));
            let added = rig.server.add_relay(RelayId(relay), RelayAddress { bound: address, external: address });
            added.map_err(|fault| anyhow::anyhow!("relay {relay}: {fault:?}"))?;
        }
        for client in 0..clients {
            let nonce = rig.nonce(client)?;
            // REQUESTED-TRANSPORT: UDP; LIFETIME: one hour.
            let allocate =
                rig.signed(0x0003, client, &nonce, &[(0x0019, &[17, 0, 0, 0]), (0x000d, &3_600u32.to_be_bytes())]);
            let reply = rig.reply_to(client, &allocate)?;
            ensure!(reply[..2] == [0x01, 0x03], "client {client} was refused: {reply:x?}");
        }
        Ok(rig)
    }

    /// The nonce that `client` is given.
    pub(super) fn nonce(&mut self, client: u32) -> anyhow::Result<Vec<u8>> {
        let bare = wire::message(0x0003, &transaction_id(client), &[(0x0019, &[17, 0, 0, 0])]);
        let reply = self.reply_to(client, &bare)?;
        Ok(wire::attribute(&reply, 0x0015).context("a challenge without NONCE")?.to_vec())
    }

    /// A request of `kind` with the client's credentials.
    pub(super) fn signed(&self, kind: u16, client: u32, nonce: &[u8], attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let credentials: [(u16, &[u8]); 3] = [(0x0006, USER.as_bytes()), (0x0014, REALM.as_bytes()), (0x0015, nonce)];
        let attributes = [attributes, &credentials].concat();
        wire::with_integrity(wire::message(kind, &transaction_id(client), &attributes), &self.key)
    }

    /// The relay of the client's allocation, found by where ChannelData on `channel` goes.
    pub(super) fn relay_of(&mut self, client: u32, channel: u16) -> anyhow::Result<RelayId> {
        let datagram = [channel.to_be_bytes(), [0, 0]].concat();
        match self.server.handle_client(NOW, &five_tuple(client), &datagram, &mut self.out, &mut Off) {
            Output::ToPeer { relay, .. } => Ok(relay),
            other @ (Output::Reply { .. }
            | Output::ToClient { .. }
            | Output::ToWorker { .. }
            | Output::HandOff(_)
            | Output::Drop(_)) => {
                bail!("ChannelData of client {client} is not relayed: {other:?}")
            }
        }
    }

    /// Returns the server's reply to `client`.
    pub(super) fn reply_to(&mut self, client: u32, datagram: &[u8]) -> anyhow::Result<Vec<u8>> {
        match self.server.handle_client(NOW, &five_tuple(client), datagram, &mut self.out, &mut Off) {
            Output::Reply { len, .. } => Ok(self.out[..len].to_vec()),
            other @ (Output::ToPeer { .. }
            | Output::ToClient { .. }
            | Output::ToWorker { .. }
            | Output::HandOff(_)
            | Output::Drop(_)) => {
                bail!("no reply to client {client}: {other:?}")
            }
        }
    }

    /// One pass of a client's datagram: a digest of what the caller would send.
    #[inline(always)]
    pub(super) fn pass<P: Probe>(&mut self, from: &FiveTuple, datagram: &[u8], probe: &mut P) -> u64 {
        digest(&self.server.handle_client(NOW, from, datagram, &mut self.out, probe), &self.out)
    }

    /// One pass of a peer's packet.
    #[inline(always)]
    pub(super) fn pass_peer<P: Probe>(&mut self, from: PeerPath, datagram: &[u8], probe: &mut P) -> u64 {
        digest(&self.server.handle_peer(NOW, from, datagram, &mut self.out, probe), &self.out)
    }
}

/// The last bytes and the length of what is to be sent; for a STUN reply those are its FINGERPRINT.
#[inline(always)]
pub(super) fn digest(output: &Output, out: &[u8]) -> u64 {
    match output {
        Output::Reply { len, .. } => digest_reply(&out[..*len]),
        Output::ToPeer { relay, payload, .. } => (u64::from(relay.0) << 16) + payload.len() as u64,
        Output::ToClient { header_len, payload, .. } => (header_len << 16) as u64 + payload.len() as u64,
        Output::ToWorker { worker, .. } | Output::HandOff(worker) => u64::MAX - u64::from(worker.0),
        Output::Drop(reason) => u64::MAX / 2 - *reason as u64,
    }
}

#[inline(always)]
pub(super) fn digest_reply(bytes: &[u8]) -> u64 {
    let last = bytes.last_chunk::<4>().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
    u64::from(last) + ((bytes.len() as u64) << 32)
}

/// The address of a client.
#[inline(always)]
pub(super) fn five_tuple(client: u32) -> FiveTuple {
    // Neighbours in number are none in address, as among real clients.
    let mixed = client.wrapping_mul(0x9e37_79b1);
    let ip = Ipv4Addr::from_bits(0x0b00_0000 | mixed >> 8);
    FiveTuple { client: SocketAddr::from((ip, mixed as u16 | 1)), server: SERVER.into(), transport: Transport::Udp }
}

/// A transaction id for a client's requests.
pub(super) fn transaction_id(client: u32) -> [u8; 12] {
    let mut id = [0x5a; 12];
    id[..4].copy_from_slice(&client.to_be_bytes());
    id
}
