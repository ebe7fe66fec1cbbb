//! An engine with one allocation that receives a message, as it is and signed by its client: what it does must follow
//! from the plain reading.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use tt_meter::Off;
use tt_model::{FiveTuple, Nanos, Transport};
use tt_turn::config::{Capacity, Config};
use tt_turn::credential::Secrets;
use tt_turn::relay::{RelayAddress, RelayId};
use tt_turn::shared::{Budget, Quotas, Shared};
use tt_turn::{Output, Server, WorkerId};

use crate::naive::{self, FINGERPRINT, INTEGRITY, INTEGRITY_SHA256, Reading, Writer};

const NAME: &str = "alice";
const REALM: &str = "example.org";
const PASSWORD: &str = "correct horse";
const NOW: Nanos = Nanos::from_secs(5_000);
const WALL_S: u64 = 1_800_000_000;
/// Addresses with a permission.
const PEERS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(8, 8, 8, 8)), IpAddr::V6(Ipv6Addr::new(0x2606, 0, 0, 0, 0, 0, 0, 8))];
/// Client ports with an allocation and without one.
const CLIENTS: [u16; 2] = [7_000, 7_001];

const ALLOCATE: u16 = 0x003;
const SEND: u16 = 0x006;
const CREATE_PERMISSION: u16 = 0x008;
const REQUEST: u16 = 0;
const INDICATION: u16 = 1;
const USERNAME: u16 = 0x0006;
const XOR_PEER_ADDRESS: u16 = 0x0012;
const DATA: u16 = 0x0013;
const REALM_ATTRIBUTE: u16 = 0x0014;
const NONCE: u16 = 0x0015;
const REQUESTED_TRANSPORT: u16 = 0x0019;
const ADDITIONAL_FAMILY: u16 = 0x8000;
/// RFC 8489 section 18.3 and RFC 8656 section 18: the types below 0x8000 that a server knows.
const KNOWN: [u16; 21] = [
    0x01, 0x06, 0x08, 0x09, 0x0A, 0x0C, 0x0D, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x1C, 0x1D, 0x1E,
    0x20, 0x22,
];
/// Types that say who asks, or end what counts.
const OF_CREDENTIALS: [u16; 9] = [
    USERNAME,
    REALM_ATTRIBUTE,
    NONCE,
    INTEGRITY,
    INTEGRITY_SHA256,
    FINGERPRINT,
    0x001D, // PASSWORD-ALGORITHM
    0x001E, // USERHASH
    0x8002, // PASSWORD-ALGORITHMS
];

thread_local! {
    static ENGINE: RefCell<Engine> = RefCell::new(Engine::new());
}

/// Sends `bytes` from the client with the allocation.
///
/// # Panics
/// The engine relays what it must not, drops what it must relay, or changes a table.
pub(crate) fn receive(bytes: &[u8]) {
    ENGINE.with_borrow_mut(|engine| {
        let before = engine.tables();
        engine.exchange(CLIENTS[0], bytes);
        assert_eq!(engine.tables(), before, "without credentials: {bytes:02x?}");
    });
}

/// Sends a request of the method and with the attributes that `data` says, signed, from a client with an allocation and
/// from one without.
///
/// # Panics
/// The answer is not signed, or says nothing of an unknown attribute.
pub(crate) fn ask(data: &[u8]) {
    let (method, body) = data.split_at(data.len().min(2));
    let method = method.iter().fold(0, |number, byte| number << 8 | u16::from(*byte)) & 0x00F;
    let body = &body[..(body.len() & !3).min(1_024)];
    let mut engine = Engine::new();
    for client in CLIENTS {
        let mut request = Writer::new(method, REQUEST, engine.transaction());
        request.0.extend(body);
        let length = (request.0.len() - 20) as u16;
        request.0[2..4].copy_from_slice(&length.to_be_bytes());
        let has_own = naive::read(&request.0)
            .is_none_or(|read| read.attributes.iter().any(|found| OF_CREDENTIALS.contains(&found.kind)));
        let request = engine.signed(client, request);
        let Some(reply) = engine.exchange(client, &request) else { continue };
        let asked = naive::read(&request).expect("it was answered");
        if has_own || method == 1 {
            continue;
        }
        let mac = reply.get(INTEGRITY).unwrap_or_else(|| panic!("an answer without a signature: {reply:?}"));
        assert_eq!(mac.value, naive::integrity(&key(), &reply.bytes, mac.at));
        assert_eq!(reply.code() == Some(420), has_unknown(&asked), "{asked:?}");
    }
}

fn key() -> [u8; 16] {
    naive::md5_key(NAME, REALM, PASSWORD)
}

fn has_unknown(message: &Reading) -> bool {
    message.counting().any(|found| found.kind < 0x8000 && !KNOWN.contains(&found.kind))
}

/// The peer and the payload of a Send indication that has to be relayed.
fn relayed(message: &Reading) -> Option<(SocketAddr, &[u8])> {
    let first = |kind| message.counting().find(|found| found.kind == kind);
    let transaction = message.bytes[8..20].try_into().expect("twelve bytes");
    let peer = naive::unxor(&first(XOR_PEER_ADDRESS)?.value, &transaction)?;
    let is_fit = message.get(FINGERPRINT).is_none_or(|found| {
        let crc = naive::crc32(&message.bytes[..found.at]) ^ 0x5354_554E;
        found.value == crc.to_be_bytes()
    });
    let is_send = (message.method, message.class) == (SEND, INDICATION);
    let may_be = is_send && is_fit && !has_unknown(message) && PEERS.contains(&peer.ip()) && peer.port() != 0;
    Some((peer, first(DATA)?.value.as_slice())).filter(|_| may_be)
}

struct Engine {
    server: Server,
    transactions: u64,
    out: Vec<u8>,
}

impl Engine {
    /// An engine whose first client has an allocation of both families and permissions for [`PEERS`].
    fn new() -> Self {
        let quotas = Quotas { error_excess: Budget::UNLIMITED, ..Quotas::default() };
        let capacity = Capacity {
            allocations: 3,
            permissions: 8,
            permissions_per_allocation: 8,
            channels: 4,
            channels_per_allocation: 4,
            relays: 6,
        };
        let mut secrets = Secrets::new([1; 32], [77; 32]);
        secrets.add_user(NAME.as_bytes(), REALM, PASSWORD.as_bytes());
        let shared = Arc::new(Shared::new(quotas, capacity.allocations, 42));
        let mut server = Server::new(Config::new(REALM), capacity, shared, WorkerId(0), secrets);
        server.set_wall_clock(NOW, Nanos::from_secs(WALL_S));
        let mut engine = Self { server, transactions: 0, out: vec![0xEE; 1_500] };
        // One of IPv6 alone, so that the second client gets one address of two.
        for relay in 0..4_u16 {
            let ip = if relay == 1 {
                IpAddr::from([0x26, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9])
            } else {
                [198, 41, 0, 9].into()
            };
            let address = SocketAddr::new(ip, 50_000 + relay);
            let address = RelayAddress { bound: address, external: address };
            engine.server.add_relay(RelayId(u32::from(relay)), address).expect("a number that is free");
        }
        let both = Writer::new(ALLOCATE, REQUEST, engine.transaction()).attribute(REQUESTED_TRANSPORT, &[17, 0, 0, 0]);
        engine.grant(both.attribute(ADDITIONAL_FAMILY, &[2, 0, 0, 0]));
        let transaction = engine.transaction();
        let permit = PEERS.into_iter().fold(Writer::new(CREATE_PERMISSION, REQUEST, transaction), |request, ip| {
            request.attribute(XOR_PEER_ADDRESS, &naive::xor(SocketAddr::new(ip, 9), &transaction))
        });
        engine.grant(permit);
        engine
    }

    fn transaction(&mut self) -> [u8; 12] {
        self.transactions += 1;
        let mut transaction = [0x5A; 12];
        transaction[..8].copy_from_slice(&self.transactions.to_be_bytes());
        transaction
    }

    fn signed(&mut self, client: u16, request: Writer) -> Vec<u8> {
        let bare = Writer::new(ALLOCATE, REQUEST, self.transaction()).0;
        let challenge = self.exchange(client, &bare).expect("a 401");
        let nonce = challenge.get(NONCE).expect("a nonce").value.clone();
        let named = request.attribute(USERNAME, NAME.as_bytes()).attribute(REALM_ATTRIBUTE, REALM.as_bytes());
        named.attribute(NONCE, &nonce).signed(&key()).0
    }

    fn grant(&mut self, request: Writer) {
        let request = self.signed(CLIENTS[0], request);
        let reply = self.exchange(CLIENTS[0], &request).expect("an answer");
        assert_eq!((reply.class, reply.code()), (2, None), "{reply:?}");
    }

    /// Allocations, permissions and channels.
    fn tables(&self) -> [usize; 3] {
        [self.server.allocations(), self.server.permissions(), self.server.channels()]
    }

    /// Handles a message of a client and returns the reply.
    fn exchange(&mut self, client: u16, bytes: &[u8]) -> Option<Reading> {
        let client = SocketAddr::new([192, 0, 2, 10].into(), client);
        let flow =
            FiveTuple { client, server: SocketAddr::new([198, 41, 0, 1].into(), 3_478), transport: Transport::Udp };
        self.out.fill(0xEE);
        let output = self.server.handle_client(NOW, &flow, bytes, &mut self.out, &mut Off);
        assert!(self.server.counters().is_balanced(), "{:?}", self.server.counters());
        let read = naive::read(bytes);
        let expected = read.as_ref().and_then(relayed).filter(|_| client.port() == CLIENTS[0]);
        match output {
            Output::ToPeer { peer, payload, .. } => {
                assert_eq!(Some((peer, &bytes[payload.to_range()])), expected, "{bytes:02x?}");
                None
            }
            Output::Reply { len, .. } => {
                let reply = naive::read(&self.out[..len]).expect("a whole answer");
                let request = read.expect("an answer to what is no message");
                assert_eq!((request.class, reply.method), (REQUEST, request.method), "{bytes:02x?}");
                assert_eq!(
                    (reply.class, &reply.bytes[8..20]),
                    (if reply.code().is_some() { 3 } else { 2 }, &bytes[8..20])
                );
                Some(reply)
            }
            Output::Drop(reason) => {
                assert_eq!(expected, None, "{reason:?}: {bytes:02x?}");
                None
            }
            Output::ToClient { .. } | Output::ToWorker { .. } | Output::HandOff(_) => {
                panic!("{output:?}: {bytes:02x?}")
            }
        }
    }
}
