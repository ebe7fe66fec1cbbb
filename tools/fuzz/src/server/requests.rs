//! Signed requests: how they are written, and what is taken down of what they were granted.

use std::net::SocketAddr;

use tt_model::Nanos;
use tt_turn::config::REQUEST_MAX;
use tt_turn::event::GrantRequest;

use super::{
    Came, Grants, INTERESTING, METHODS, PASSWORD, PASSWORD_ALGORITHM, PASSWORD_ALGORITHMS, PERMISSION_S, REALM, SHA256,
    USERS, World, client_addr, peer_addr,
};
use crate::choices::Choices;
use crate::naive::{self, Writer};

/// Bits of a request's shape: many peers, or more bytes than a request may have.
const MANY: u8 = 0b10_0100;
/// Peers that the engine reads in one request at most.
const PEERS_MAX: usize = 256;

impl World {
    /// A right request with some bytes changed.
    pub(super) fn forged(&mut self, client: u8, choices: &mut Choices<'_>) {
        let user = usize::from(choices.byte()) % USERS.len();
        let (mut request, _) = self.written(client, user, choices);
        let at = usize::from(choices.word()) % request.len();
        let flip = choices.byte() | 1;
        // The length counts what is covered, but not itself: a changed one makes no message of it, or another length.
        if !(2..4).contains(&at) {
            request[at] ^= flip;
            self.stranger(client, &request);
        }
    }

    pub(super) fn nonce(&mut self, client: u8) -> Vec<u8> {
        if let Some(nonce) = self.nonces.get(&client) {
            return nonce.clone();
        }
        let request = Writer::new(0x004, 0, self.tid()).0;
        let Came::Reply(reply) = self.hand_in(client, &request) else { return b"none".to_vec() };
        let read = self.reply(&request, &reply);
        assert_eq!(read.code(), Some(401));
        let nonce = read.get(0x0015).expect("a nonce").value.clone();
        self.nonces.insert(client, nonce.clone());
        self.offer = read.get(PASSWORD_ALGORITHMS).map(|offer| offer.value.clone());
        nonce
    }

    pub(super) fn tid(&mut self) -> [u8; 12] {
        self.transactions += 1;
        let mut tid = [0x5A; 12];
        tid[..8].copy_from_slice(&self.transactions.to_be_bytes());
        tid
    }

    /// A signed request, and the peers that it names.
    pub(super) fn written(&mut self, client: u8, user: usize, choices: &mut Choices<'_>) -> (Vec<u8>, Vec<SocketAddr>) {
        let nonce = self.nonce(client);
        let method = *choices.of(&METHODS);
        let tid = self.tid();
        let mut writer = Writer::new(method, 0, tid);
        let mut peers = Vec::new();
        let shape = choices.byte();
        if method == 0x003 && shape & 1 == 0 {
            writer = writer.attribute(0x0019, &[17, 0, 0, 0]);
        }
        if matches!(method, 0x008 | 0x009) {
            for _ in 0..=(shape & 3) / 2 {
                let peer = peer_addr(choices);
                writer = writer.attribute(0x0012, &naive::xor(peer, &tid));
                peers.push(peer);
            }
        }
        if shape & MANY == MANY {
            writer = match (method, peers.first()) {
                // More than the engine reads.
                (0x008, Some(peer)) => {
                    let value = naive::xor(*peer, &tid);
                    (0..PEERS_MAX).fold(writer, |writer, _| writer.attribute(0x0012, &value))
                }
                _ if choices.byte() == 0 => writer.attribute(0x8022, &[b's'; REQUEST_MAX]),
                _ => writer,
            };
        }
        if method == 0x009 {
            let number = 0x3FFE + (choices.word() & if shape & 64 == 0 { 7 } else { 0x7FFF });
            writer = writer.attribute(0x000C, &[&number.to_be_bytes()[..], &[0, 0]].concat());
        }
        for _ in 0..(shape >> 3 & 3) {
            let kind = *choices.of(&INTERESTING);
            let value = match choices.byte() % 8 {
                0 => vec![1, 0, 0, 0],
                1 => vec![2, 0, 0, 0],
                2 => vec![0; 4],
                3 => vec![0x80],
                4 => vec![0],
                5 => self.token.clone(),
                6 => choices.bytes(4),
                _ => choices.bytes(8),
            };
            writer = writer.attribute(kind, &value);
        }
        writer = writer.attribute(0x0006, USERS[user].as_bytes()).attribute(0x0014, REALM.as_bytes());
        let writer = writer.attribute(0x0015, &nonce);
        let offer = self.offer.as_ref().filter(|offer| offer.starts_with(&SHA256) && shape & 128 != 0);
        let signed = match offer {
            Some(offer) => writer
                .attribute(PASSWORD_ALGORITHMS, offer)
                .attribute(PASSWORD_ALGORITHM, &SHA256)
                .signed_sha256(&naive::sha256_key(USERS[user], REALM, PASSWORD)),
            None => writer.signed(&naive::md5_key(USERS[user], REALM, PASSWORD)),
        };
        (signed.0, peers)
    }

    pub(super) fn request(&mut self, client: u8, choices: &mut Choices<'_>) {
        let user = usize::from(choices.byte()) % USERS.len();
        let (request, peers) = self.written(client, user, choices);
        let asked = naive::read(&request).expect("a message");
        let came = self.hand_in(client, &request);
        let rejected = std::iter::from_fn(|| self.server.poll_rejected());
        let refused = rejected.last().and_then(|rejected| rejected.reason);
        let Came::Reply(bytes) = came else { return };
        let reply = self.reply(&request, &bytes);
        match reply.code() {
            Some(401) => panic!("right credentials refused: {asked:?}"),
            Some(438) => {
                self.nonces.insert(client, reply.get(0x0015).expect("a nonce").value.clone());
            }
            Some(code) => assert_eq!(refused.is_some(), matches!(code, 403 | 486 | 508), "{code} {refused:?}"),
            None if asked.method == 0x001 => {}
            None => {
                self.check_grant(client, asked.method, &reply);
                self.granted(client, user, &asked, &reply, &peers);
            }
        }
    }

    /// A lifetime in the answer is reported once, for the client's flow; an end by a lifetime of 0 is not.
    fn check_grant(&mut self, client: u8, method: u16, reply: &naive::Reading) {
        let lifetime = reply.get(0x000D).map(|found| u32::from_be_bytes(found.value[..].try_into().expect("4 bytes")));
        let reported: Vec<_> = std::iter::from_fn(|| self.server.poll_grant()).collect();
        let expected = lifetime.filter(|lifetime| *lifetime > 0 && matches!(method, 0x003 | 0x004));
        assert_eq!(reported.iter().map(|grant| grant.lifetime_s).collect::<Vec<_>>(), Vec::from_iter(expected));
        for grant in reported {
            assert_eq!(
                (grant.start.flow.client, grant.request == GrantRequest::Refresh),
                (client_addr(client), method == 4)
            );
        }
    }

    pub(super) fn granted(
        &mut self,
        client: u8,
        user: usize,
        asked: &naive::Reading,
        reply: &naive::Reading,
        peers: &[SocketAddr],
    ) {
        let until = self.now.saturating_add(Nanos::from_secs(PERMISSION_S));
        match asked.get(naive::INTEGRITY_SHA256) {
            Some(_) => {
                let signed = reply.get(naive::INTEGRITY_SHA256).expect("an answer signed as the request was");
                let key = naive::sha256_key(USERS[user], REALM, PASSWORD);
                assert_eq!(signed.value, naive::integrity_sha256(&key, &reply.bytes, signed.at));
            }
            None => {
                let signed = reply.get(naive::INTEGRITY).expect("a signed answer");
                let key = naive::md5_key(USERS[user], REALM, PASSWORD);
                assert_eq!(signed.value, naive::integrity(&key, &reply.bytes, signed.at));
            }
        }
        let lifetime =
            reply.get(0x000D).map(|found| found.value.iter().fold(0u32, |sum, byte| sum << 8 | u32::from(*byte)));
        let expires = self.now.saturating_add(Nanos::from_secs(u64::from(lifetime.unwrap_or(0))));
        match asked.method {
            0x003 => {
                if let Some(token) = reply.get(0x0022) {
                    assert_eq!(token.value.len(), 8);
                    self.token = token.value.clone();
                }
                let tid: [u8; 12] = reply.bytes[8..20].try_into().expect("12 bytes");
                let relayed = reply.attributes.iter().filter(|found| found.kind == 0x0016);
                let relayed: Vec<_> =
                    relayed.map(|found| naive::unxor(&found.value, &tid).expect("an address")).collect();
                assert!(!relayed.is_empty() && lifetime.is_some_and(|lifetime| (600..=3_600).contains(&lifetime)));
                let (now, mut others) = (self.now, self.grants.iter().filter(|(other, _)| **other != client));
                let is_taken =
                    |grants: &Grants| grants.expires > now && grants.relayed.iter().any(|one| relayed.contains(one));
                assert!(!others.any(|(_, grants)| is_taken(grants)), "{relayed:?} is another's");
                self.grants.insert(client, Grants { user, expires, relayed, ..Grants::default() });
            }
            0x004 => {
                let grants = self.grants.get_mut(&client).expect("a refresh without an allocation");
                match (lifetime, asked.get(0x0017).map(|family| family.value[0])) {
                    (Some(0), None) => grants.relayed.clear(),
                    (Some(0), Some(family)) => grants.relayed.retain(|relayed| relayed.is_ipv4() != (family == 1)),
                    (_, _) => grants.expires = expires,
                }
                if grants.relayed.is_empty() {
                    self.grants.remove(&client);
                }
            }
            _ => {
                let grants = self.grants.get_mut(&client).expect("a permission without an allocation");
                assert_eq!(grants.user, user, "another user's allocation");
                for peer in peers {
                    grants.permissions.insert(peer.ip(), until);
                }
                if let (0x009, Some(number), Some(peer)) = (asked.method, asked.get(0x000C), peers.first()) {
                    let number = u16::from_be_bytes([number.value[0], number.value[1]]);
                    assert!((0x4000..=0x7FFF).contains(&number));
                    let bound_until = self.now.saturating_add(Nanos::from_secs(600));
                    grants.channels.insert(number, (*peer, bound_until));
                }
            }
        }
    }
}
