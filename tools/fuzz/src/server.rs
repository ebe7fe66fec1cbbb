//! The server's state machine: clients, a forger and peers do what the bytes say, in virtual time.
//!
//! After every call the counters close, an answer fits its request, nothing is relayed without a permission that was
//! granted and lives, and no client without credentials changes a table. In the end everything expires.

mod operator;
mod requests;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tt_meter::Off;
use tt_model::{FiveTuple, IpFamily, Nanos, Transport};
use tt_turn::config::{Capacity, Config};
use tt_turn::credential::Secrets;
use tt_turn::event::EndReason;
use tt_turn::policy::Cidr;
use tt_turn::relay::{IcmpError, PeerPath, RelayAddress, RelayDemand, RelayId, RelayNeed, Reservation, ReservationEnd};
use tt_turn::shared::{Budget, Pools, Quotas, Shared};
use tt_turn::{Output, Server, WorkerId};

use crate::choices::Choices;
use crate::naive::{self, Writer};
use operator::Operator;

const REALM: &str = "example.org";
const PASSWORD: &str = "correct horse";
const USERS: [&str; 2] = ["alice", "bob"];
const CLIENTS: u8 = 4;
const RELAYS: u32 = 6;
/// Two of them on an even port and the next one.
const PAIR: [RelayId; 2] = [RelayId(0), RelayId(2)];
const PERMISSION_S: u64 = 300;
const METHODS: [u16; 9] = [0x001, 0x003, 0x003, 0x004, 0x006, 0x007, 0x008, 0x009, 0x00A];
const INTERESTING: [u16; 10] = [0x000D, 0x0017, 0x0018, 0x001A, 0x001B, 0x0022, 0x8000, 0x8022, 0x001E, 0x0003];
const PASSWORD_ALGORITHM: u16 = 0x001D;
const PASSWORD_ALGORITHMS: u16 = 0x8002;
const SHA256: [u8; 4] = [0, 2, 0, 0];

/// What a client was granted.
#[derive(Debug, Default)]
struct Grants {
    user: usize,
    expires: Nanos,
    relayed: Vec<SocketAddr>,
    permissions: BTreeMap<IpAddr, Nanos>,
    /// Peers, and when the binding ends.
    channels: BTreeMap<u16, (SocketAddr, Nanos)>,
}

impl Grants {
    /// A permission for the address, or a channel to the peer (`LapsedPermissions::ChannelRelays`).
    fn permits(&self, peer: SocketAddr, now: Nanos) -> bool {
        let is_permitted = self.permissions.get(&peer.ip()).is_some_and(|until| *until > now);
        is_permitted || self.channels.values().any(|(to, until)| *to == peer && *until > now)
    }
}

struct World {
    server: Server,
    shared: Arc<Shared>,
    operator: Operator,
    now: Nanos,
    transactions: u64,
    grants: BTreeMap<u8, Grants>,
    nonces: BTreeMap<u8, Vec<u8>>,
    /// The last RESERVATION-TOKEN.
    token: Vec<u8>,
    /// Relays that a token reserves.
    reserved: Vec<(RelayId, Reservation)>,
    /// What the server offers, as it stood in a 401.
    offer: Option<Vec<u8>>,
    out: Vec<u8>,
}

/// What became of a datagram.
enum Came {
    Reply(Vec<u8>),
    ToPeer(SocketAddr, Vec<u8>),
    ToClient(SocketAddr, Vec<u8>),
    Nothing,
}

/// Plays `data`.
pub fn run(data: &[u8]) {
    let mut choices = Choices(data);
    let settings = choices.byte();
    let operator = Operator::new(if settings & 128 == 0 { 0 } else { choices.byte() });
    let mut world = World::new(settings, operator);
    for _ in 0..400 {
        if choices.is_spent() {
            break;
        }
        world.step(&mut choices);
    }
    world.end();
}

fn client_addr(client: u8) -> SocketAddr {
    SocketAddr::new([192, 0, 2, 10 + client].into(), 7_000)
}

fn relay_addr(relay: u32) -> SocketAddr {
    let port = 50_000 + (relay / 2) as u16;
    if relay.is_multiple_of(2) {
        SocketAddr::new([198, 41, 0, 9].into(), port)
    } else {
        SocketAddr::new(IpAddr::from([0x26, 0x06, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]), port)
    }
}

fn peer_addr(choices: &mut Choices<'_>) -> SocketAddr {
    let choice = choices.byte();
    let port = if choice & 0x80 == 0 { 9_000 } else { choices.word() };
    let ip = match choice % 8 {
        0..3 => IpAddr::from([8, 8, 4, choice % 8]),
        3..5 => IpAddr::from([0x2A, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, choice % 8]),
        5 => IpAddr::from([10, 0, 0, 1]),
        6 => IpAddr::from([198, 41, 0, 9]),
        _ => IpAddr::from(choices.double().to_be_bytes()),
    };
    SocketAddr::new(ip, port)
}

impl World {
    fn new(settings: u8, operator: Operator) -> Self {
        let quotas = operator.quotas(Quotas {
            allocations_per_user: u32::from(settings & 3) + 1,
            error_excess: if settings & 4 == 0 { Budget::UNLIMITED } else { Budget { per_second: 1, burst: 100 } },
            user_allocation_rate: Budget::UNLIMITED,
            ..Quotas::default()
        });
        let capacity = Capacity {
            allocations: 3,
            permissions: 8,
            permissions_per_allocation: 4,
            channels: 8,
            channels_per_allocation: 4,
            relays: RELAYS,
        };
        let mut config = Config::new(REALM);
        config.peer_policy = operator.policy();
        config.grant_reports = tt_turn::config::GrantReports::Kept;
        if settings & 4 == 0 {
            config.icmp_indications = tt_turn::config::IcmpIndications::Always;
        }
        if settings & 64 != 0 {
            config.password_algorithms = tt_turn::config::PasswordAlgorithms::Md5;
        }
        if settings & 8 != 0 {
            config.software = Some("truetick".into());
        }
        if settings & 16 != 0 {
            config.fingerprint = tt_turn::config::FingerprintUse::Always;
        }
        if settings & 32 != 0 {
            config.channel_numbers = tt_turn::config::ChannelNumbers::Rfc5766;
        }
        let mut secrets = Secrets::new([1; 32], [77; 32]);
        for name in USERS {
            secrets.add_user(name.as_bytes(), REALM, PASSWORD.as_bytes());
        }
        let shared = Arc::new(Shared::with_pools(quotas, capacity.allocations, operator.pools, 42));
        let mut server = Server::new(config, capacity, Arc::clone(&shared), WorkerId(0), secrets);
        let now = Nanos::from_secs(5_000);
        server.set_wall_clock(now, Nanos::from_secs(1_800_000_000));
        let mut world = Self {
            server,
            shared,
            operator,
            now,
            transactions: 0,
            grants: BTreeMap::new(),
            nonces: BTreeMap::new(),
            offer: None,
            token: Vec::new(),
            reserved: Vec::new(),
            out: vec![0xEE; 1_500],
        };
        world.register((0..RELAYS).map(RelayId).collect());
        world
    }

    /// Registers relays; of two with an even port and the next one a pair is made.
    fn register(&mut self, mut free: Vec<RelayId>) {
        let relay = |id: RelayId| (id, RelayAddress { bound: relay_addr(id.0), external: relay_addr(id.0) });
        if PAIR.iter().all(|id| free.contains(id)) {
            free.retain(|id| !PAIR.contains(id));
            self.server.add_relay_pair(relay(PAIR[0]), relay(PAIR[1])).expect("numbers that are free");
        }
        for id in free {
            let (id, address) = relay(id);
            self.server.add_relay(id, address).expect("a number that is free");
        }
    }

    fn register_retired(&mut self) {
        let mut free = Vec::new();
        while let Some(RelayDemand::Retire(id)) = self.server.poll_relay() {
            free.push(id);
        }
        self.register(free);
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        let client = choices.byte() % CLIENTS;
        match choices.byte() % 18 {
            12 => self.icmp(choices),
            13 => {
                let had = self.server.close_flow(self.now, &Self::flow(client));
                assert!(!had || self.grants.remove(&client).is_some(), "an allocation that was not granted");
            }
            14 => self.operate(choices),
            0 => self.pass(u64::from(choices.byte())),
            1 => self.pass(u64::from(choices.word()) / 8),
            2 => {
                let length = usize::from(choices.byte());
                let junk = choices.bytes(length);
                self.stranger(client, &junk);
            }
            3 => self.forged(client, choices),
            4 => self.peer_sends(choices),
            5 => self.channel_data(client, choices),
            6 => self.indication(client, choices),
            _ => self.request(client, choices),
        }
        assert_eq!(self.server.poll_grant(), None, "a lifetime without a request that got it");
        self.register_retired();
        self.operator.check_pools(self.shared.used());
        for client in 0..CLIENTS {
            let lives = self.grants.get(&client).is_some_and(|grants| grants.expires > self.now);
            assert_eq!(self.server.knows_flow(self.now, &Self::flow(client)), lives, "client {client}");
        }
    }

    fn pass(&mut self, seconds: u64) {
        self.now = self.now.saturating_add(Nanos::from_secs(seconds));
        while self.server.poll_timeout().is_some_and(|at| at <= self.now) {
            self.server.handle_timeout(self.now);
        }
        for (id, held) in std::mem::take(&mut self.reserved) {
            if held.expires() > self.now {
                assert_eq!(self.server.end_reservation(self.now, id, &held), Ok(ReservationEnd::Pending));
                self.reserved.push((id, held));
            } else {
                assert_eq!(self.server.end_reservation(self.now, id, &held), Ok(ReservationEnd::Retired));
            }
        }
        let (now, server) = (self.now, &self.server);
        assert!(server.poll_timeout().is_none_or(|at| at > now), "a timeout that was handled stays due");
    }

    fn flow(client: u8) -> FiveTuple {
        let server = SocketAddr::new([198, 41, 0, 9].into(), 3_478);
        FiveTuple { client: client_addr(client), server, transport: Transport::Udp }
    }

    /// The engine, with the reserved relays that a driver adds and takes.
    fn handle_client(&mut self, client: u8, datagram: &[u8]) -> Output {
        let flow = Self::flow(client);
        let asked = match self.server.relay_need(self.now, &flow, datagram) {
            Some(RelayNeed::Reserved(token)) => token,
            Some(RelayNeed::Free { .. }) | None => 0,
        };
        let lent = self.reserved.iter().position(|(_, held)| held.token() == asked).map(|at| self.reserved.remove(at));
        if let Some((id, held)) = lent {
            self.server.add_reserved(id, held).expect("its number is free");
        }
        let output = self.server.handle_client(self.now, &flow, datagram, &mut self.out, &mut Off);
        self.reserved.extend(std::iter::from_fn(|| self.server.poll_reservation()));
        self.reserved.extend(lent.filter(|(id, _)| self.server.withdraw_relay(*id)));
        output
    }

    fn hand_in(&mut self, client: u8, datagram: &[u8]) -> Came {
        let output = self.handle_client(client, datagram);
        let came = match output {
            Output::Reply { len, .. } => Came::Reply(self.out[..len].to_vec()),
            Output::ToPeer { peer, payload, .. } => Came::ToPeer(peer, datagram[payload.to_range()].to_vec()),
            // The peer is another client's relayed address, or its own: permitted by that one too.
            Output::ToClient { client: FiveTuple { client: addr, .. }, .. } => {
                let from = &self.grants[&client].relayed;
                let permits = |grants: &Grants| from.iter().any(|own| grants.permits(*own, self.now));
                let end = self.grants.iter().find(|(end, _)| client_addr(**end) == addr);
                assert!(end.is_some_and(|(_, grants)| permits(grants)), "{addr} has not permitted client {client}");
                Came::Nothing
            }
            Output::ToWorker { .. } | Output::HandOff(_) => panic!("{output:?}"),
            Output::Drop(_) => Came::Nothing,
        };
        assert!(self.server.counters().is_balanced(), "{:?}", self.server.counters());
        if let Came::ToPeer(peer, payload) = &came {
            self.check_peer(client, *peer);
            let holds = payload.is_empty() || datagram.windows(payload.len()).any(|part| part == payload);
            assert!(holds, "the payload is not the client's");
        }
        came
    }

    /// A peer without a permission, or one that the operator closes, must not be reached.
    fn check_peer(&self, client: u8, peer: SocketAddr) {
        self.check_permission(client, peer);
        assert!(!self.operator.closes(peer), "{peer} is closed");
    }

    fn check_permission(&self, client: u8, peer: SocketAddr) {
        let is_permitted = self.grants.get(&client).is_some_and(|grants| grants.permits(peer, self.now));
        assert!(is_permitted, "{peer} without a permission of client {client}");
    }

    fn reply(&self, request: &[u8], reply: &[u8]) -> naive::Reading {
        let read = naive::read(reply).unwrap_or_else(|| panic!("no message: {reply:02x?}"));
        let asked = naive::read(request).expect("only a message is answered");
        assert_eq!((&reply[8..20], read.method, asked.class), (&request[8..20], asked.method, 0));
        assert_eq!(read.class, if read.code().is_some() { 3 } else { 2 });
        for found in &read.attributes {
            let end = found.at + 4 + found.value.len();
            assert!(reply[end..end.next_multiple_of(4)].iter().all(|byte| *byte == 0), "padding: {reply:02x?}");
        }
        read
    }

    /// Bytes of somebody without credentials: no table changes.
    fn stranger(&mut self, client: u8, datagram: &[u8]) {
        let before = (
            self.server.allocations(),
            self.server.relays_pooled(IpFamily::V4),
            self.server.relays_pooled(IpFamily::V6),
        );
        if let Came::Reply(reply) = self.hand_in(client, datagram) {
            self.reply(datagram, &reply);
        }
        let after = (
            self.server.allocations(),
            self.server.relays_pooled(IpFamily::V4),
            self.server.relays_pooled(IpFamily::V6),
        );
        assert_eq!(before, after, "{datagram:02x?}");
    }

    /// What an operator does meanwhile.
    fn operate(&mut self, choices: &mut Choices<'_>) {
        match choices.byte() % 4 {
            0 => {
                let mut policy = self.operator.policy();
                let nowhere = "192.0.2.0/24".parse().expect("a range");
                policy.deny(Cidr::new(peer_addr(choices).ip(), 32).unwrap_or(nowhere));
                self.server.replace_policy(policy);
            }
            1 => {
                self.server.end_all(self.now, EndReason::Shutdown);
                self.grants.clear();
                assert_eq!((self.server.allocations(), self.server.permissions(), self.server.channels()), (0, 0, 0));
            }
            2 => {
                let listed: Vec<_> = self.server.live_allocations().collect();
                assert_eq!(listed.len(), self.server.allocations());
            }
            _ => {
                while self.server.poll_event().is_some() || self.server.poll_rejected().is_some() {}
                assert!(self.server.policy_hits().count() > 2);
            }
        }
    }

    /// A relay's socket receives an ICMP error: only a client with a permission for the peer gets it.
    fn icmp(&mut self, choices: &mut Choices<'_>) {
        let relay = RelayId(u32::from(choices.byte()) % RELAYS);
        let (kind, code) = (*choices.of(&[1, 2, 3, 3, 5, 11]), choices.byte() % 16);
        let error = IcmpError { relay, peer: peer_addr(choices), kind, code, mtu: choices.double() };
        let output = self.server.handle_icmp(self.now, error, &mut self.out[..64], &mut Off);
        let to = match output {
            Output::ToClient { client, header_len, payload, .. } => {
                let read = naive::read(&self.out[..header_len]).expect("a Data indication");
                assert_eq!((read.method, read.class, payload.len()), (0x007, 1, 0));
                Some(client.client)
            }
            Output::Drop(_) => None,
            Output::Reply { .. } | Output::ToPeer { .. } | Output::ToWorker { .. } | Output::HandOff(_) => {
                panic!("{output:?}")
            }
        };
        assert!(self.server.counters().is_balanced(), "{:?}", self.server.counters());
        if let Some(to) = to {
            let client = (0..CLIENTS).find(|client| client_addr(*client) == to).expect("a client of ours");
            self.check_permission(client, SocketAddr::new(error.peer.ip(), 1));
        }
    }

    fn indication(&mut self, client: u8, choices: &mut Choices<'_>) {
        let tid = self.tid();
        let peer = peer_addr(choices);
        let shape = choices.byte();
        let length = usize::from(shape >> 2);
        let payload = choices.bytes(length);
        let mut writer = Writer::new(0x006, 1, tid);
        if shape & 3 != 1 {
            writer = writer.attribute(0x0012, &naive::xor(peer, &tid));
        }
        if shape & 3 != 2 {
            writer = writer.attribute(0x0013, &payload);
        }
        match self.hand_in(client, &writer.0) {
            Came::ToPeer(to, carried) => assert_eq!((to, carried), (peer, payload)),
            Came::Nothing => {}
            Came::Reply(_) | Came::ToClient(..) => panic!("an indication is answered"),
        }
    }

    fn channel_data(&mut self, client: u8, choices: &mut Choices<'_>) {
        let number = 0x4000 + u16::from(choices.byte() % 8);
        let length = u16::from(choices.byte());
        let payload = choices.bytes(usize::from(length));
        let datagram = [&number.to_be_bytes()[..], &length.to_be_bytes(), &payload].concat();
        match self.hand_in(client, &datagram) {
            Came::ToPeer(to, carried) => {
                let bound = self.grants.get(&client).and_then(|grants| grants.channels.get(&number));
                assert_eq!(Some(to), bound.map(|(to, _)| *to));
                assert_eq!(carried, payload[..usize::from(length)]);
            }
            Came::Nothing => {}
            Came::Reply(_) | Came::ToClient(..) => panic!("ChannelData is answered"),
        }
    }

    fn peer_sends(&mut self, choices: &mut Choices<'_>) {
        let relay = u32::from(choices.byte()) % RELAYS;
        let peer = peer_addr(choices);
        let length = usize::from(choices.byte());
        let payload = choices.bytes(length);
        let path = PeerPath { relay: RelayId(relay), peer };
        // As the driver does while it reads: of any relay, also one that is not lent.
        self.server.prefetch_relay(path.relay);
        self.server.prefetch_peer(path);
        self.server.prefetch_peer_tables(path);
        let output = self.server.handle_peer(self.now, path, &payload, &mut self.out[..64], &mut Off);
        let came = match output {
            Output::ToClient { client, header_len, payload: range, padding_len } => {
                let padding = vec![0; usize::from(padding_len)];
                Came::ToClient(client.client, [&self.out[..header_len], &payload[range.to_range()], &padding].concat())
            }
            Output::Drop(_) => Came::Nothing,
            Output::Reply { .. } | Output::ToPeer { .. } | Output::ToWorker { .. } | Output::HandOff(_) => {
                panic!("{output:?}")
            }
        };
        assert!(self.server.counters().is_balanced(), "{:?}", self.server.counters());
        let Came::ToClient(to, bytes) = came else { return };
        let client = (0..CLIENTS).find(|client| client_addr(*client) == to).expect("a client of ours");
        self.check_peer(client, peer);
        assert!(self.grants[&client].relayed.contains(&relay_addr(relay)), "another's relay");
        let carried = match naive::read(&bytes) {
            Some(read) => {
                let tid: [u8; 12] = bytes[8..20].try_into().expect("12 bytes");
                let from = read.get(0x0012).and_then(|found| naive::unxor(&found.value, &tid));
                assert_eq!((read.method, read.class, from), (0x007, 1, Some(peer)));
                read.get(0x0013).expect("DATA").value.clone()
            }
            None => {
                let number = u16::from_be_bytes([bytes[0], bytes[1]]);
                assert_eq!(self.grants[&client].channels.get(&number).map(|(to, _)| *to), Some(peer));
                bytes[4..4 + usize::from(u16::from_be_bytes([bytes[2], bytes[3]]))].to_vec()
            }
        };
        assert_eq!(carried, payload);
    }

    /// Everything ends, and everything comes back.
    fn end(&mut self) {
        self.pass(4_000);
        self.register_retired();
        assert_eq!(self.server.allocations(), 0);
        let pooled = self.server.relays_pooled(IpFamily::V4) + self.server.relays_pooled(IpFamily::V6);
        assert_eq!(pooled, RELAYS as usize);
        let none = Pools { allocations: 0, ports: 0, reservations: 0, permissions: 0, channels: 0 };
        assert_eq!(self.shared.used(), none);
    }
}
