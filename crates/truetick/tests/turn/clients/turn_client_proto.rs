//! The client of crates.io's `turn-client-proto`, which knows RFC 8489: it allocates, permits, binds a channel and
//! relays both ways, and every message on the wire is looked at for the means that it was signed by.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant as StdInstant};

use turn_client_proto::api::{
    DelayedMessageOrChannelSend, TurnClientApi, TurnConfig, TurnEvent, TurnPollRet, TurnRecvRet,
};
use turn_client_proto::stun::Instant;
use turn_client_proto::stun::agent::Transmit;
use turn_client_proto::stun::auth::Feature;
use turn_client_proto::stun::types::message::IntegrityAlgorithm;
use turn_client_proto::types::prelude::DelayedTransmitBuild;
use turn_client_proto::types::{TransportType, TurnCredentials};
use turn_client_proto::udp::TurnClientUdp;

use crate::server::{PASSWORD, Server, USER};

const DEADLINE: Duration = Duration::from_secs(60);

const USERNAME: u16 = 0x0006;
const INTEGRITY: u16 = 0x0008;
const INTEGRITY_SHA256: u16 = 0x001C;
const PASSWORD_ALGORITHM: u16 = 0x001D;
const USERHASH: u16 = 0x001E;

/// A client, its socket, and what went over it.
struct Caller {
    client: TurnClientUdp,
    socket: UdpSocket,
    started: StdInstant,
    sent: Vec<Vec<u8>>,
    received: Vec<Vec<u8>>,
    /// How many of these the client would not have.
    ignored: usize,
    /// Payloads from peers, with the peer.
    payloads: Vec<(SocketAddr, Vec<u8>)>,
}

impl Caller {
    fn new(server: &Server, password: &str, configure: impl Fn(&mut TurnConfig)) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let mut config = TurnConfig::new(TurnCredentials::new(USER, password));
        configure(&mut config);
        let client = TurnClientUdp::allocate(socket.local_addr().unwrap(), server.listen[0], config);
        let (sent, received, payloads) = (Vec::new(), Vec::new(), Vec::new());
        Self { client, socket, started: StdInstant::now(), sent, received, ignored: 0, payloads }
    }

    fn now(&self) -> Instant {
        Instant::from_std(self.started)
    }

    /// Lets the client work until `event` says that it has what it waits for.
    fn until<T>(&mut self, mut event: impl FnMut(&mut Self, Option<TurnEvent>) -> Option<T>) -> T {
        let waiting_since = StdInstant::now();
        loop {
            assert!(waiting_since.elapsed() < DEADLINE, "{:?}", self.client);
            let now = self.now();
            let closed = matches!(self.client.poll(now), TurnPollRet::Closed);
            while let Some(transmit) = self.client.poll_transmit(now) {
                self.send(&transmit.data, transmit.to);
            }
            let next = self.client.poll_event();
            if let Some(found) = event(self, next) {
                return found;
            }
            assert!(!closed, "the client has given up");
            self.receive(now);
        }
    }

    fn send(&mut self, bytes: &[u8], to: SocketAddr) {
        self.socket.send_to(bytes, to).unwrap();
        self.sent.push(bytes.to_vec());
    }

    fn receive(&mut self, now: Instant) {
        let mut space = [0; 2_048];
        let Ok((len, from)) = self.socket.recv_from(&mut space) else { return };
        let bytes = space[..len].to_vec();
        self.received.push(bytes.clone());
        let transmit = Transmit::new(bytes, TransportType::Udp, from, self.socket.local_addr().unwrap());
        match self.client.recv(transmit, now) {
            TurnRecvRet::PeerData(data) => self.payloads.push((data.peer, data.data().to_vec())),
            TurnRecvRet::Handled => {}
            TurnRecvRet::Ignored(_) => self.ignored += 1,
            other @ TurnRecvRet::PeerIcmp { .. } => panic!("{other:?}"),
        }
    }

    fn allocate(&mut self) -> SocketAddr {
        self.until(|_, event| match event {
            Some(TurnEvent::AllocationCreated(_, relayed)) => Some(relayed),
            Some(other) => panic!("{other:?}"),
            None => None,
        })
    }

    /// Sends a payload to `peer`, over the channel if there is one.
    fn relay(&mut self, peer: SocketAddr, payload: &[u8]) {
        let now = self.now();
        let built = self.client.send_to(TransportType::Udp, peer, payload, now).unwrap().expect("over UDP at once");
        let (to, data): (SocketAddr, DelayedMessageOrChannelSend<&[u8]>) = (built.to, built.data);
        self.send(&data.build(), to);
    }

    /// Relays `payload` to `peer` and back.
    fn echo(&mut self, peer: &UdpSocket, relayed: SocketAddr, payload: &[u8]) {
        let peer_addr = peer.local_addr().unwrap();
        self.relay(peer_addr, payload);
        let mut space = [0; 2_048];
        let (len, from) = peer.recv_from(&mut space).unwrap();
        assert_eq!((&space[..len], from), (payload, relayed));
        peer.send_to(&space[..len], from).unwrap();
        let before = self.payloads.len();
        self.until(|caller, _| (caller.payloads.len() > before).then_some(()));
        assert_eq!(self.payloads.last(), Some(&(peer_addr, payload.to_vec())));
    }
}

/// The attributes of a STUN message in their order, without values; `None` for ChannelData.
fn kinds(bytes: &[u8]) -> Option<Vec<u16>> {
    if bytes[0] >= 0x40 {
        return None;
    }
    let (mut at, mut kinds) = (20, Vec::new());
    while at < bytes.len() {
        kinds.push(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
        at += 4 + usize::from(u16::from_be_bytes([bytes[at + 2], bytes[at + 3]])).next_multiple_of(4);
    }
    Some(kinds)
}

/// Requests and answers among `datagrams` with credentials or a signature: all but the first and its answer.
fn signed(datagrams: &[Vec<u8>]) -> Vec<Vec<u16>> {
    // Class request has neither bit set, an indication the lower, a success the upper, an error both.
    let messages = datagrams.iter().filter(|bytes| bytes[0] < 0x40 && (bytes[0] & 1, bytes[1] & 0x10) != (0, 0x10));
    messages.skip(1).filter_map(|bytes| kinds(bytes)).collect()
}

fn relays_both_ways(configure: impl Fn(&mut TurnConfig)) -> (Caller, Server) {
    let server = Server::start(&["--listen", "127.0.0.1:0", "--workers", "2", "--allow-own-host", "127.0.0.0/8"]);
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    peer.set_read_timeout(Some(DEADLINE)).unwrap();
    let peer_addr = peer.local_addr().unwrap();
    let mut caller = Caller::new(&server, PASSWORD, configure);
    let relayed = caller.allocate();
    let now = caller.now();
    caller.client.create_permission(TransportType::Udp, peer_addr.ip(), now).unwrap();
    caller.until(|_, event| matches!(event, Some(TurnEvent::PermissionCreated(..))).then_some(()));
    for number in 0..20u8 {
        caller.echo(&peer, relayed, &[number; 160]);
    }
    let now = caller.now();
    caller.client.bind_channel(TransportType::Udp, peer_addr, now).unwrap();
    caller.until(|_, event| matches!(event, Some(TurnEvent::ChannelCreated(..))).then_some(()));
    for number in 0..20u8 {
        caller.echo(&peer, relayed, &[number; 1_000]);
    }
    assert!(caller.sent.iter().filter(|bytes| kinds(bytes).is_none()).count() >= 20, "the channel was used");
    let now = caller.now();
    caller.client.delete(now).unwrap();
    caller.until(|caller, _| caller.client.relayed_addresses().next().is_none().then_some(()));
    assert_eq!(caller.ignored, 0, "no answer was wrong");
    (caller, server)
}

#[test]
fn turn_client_proto_relays_by_sha256_and_userhash() {
    let (caller, server) = relays_both_ways(|config| config.set_supported_integrity(IntegrityAlgorithm::Sha256));
    let (asked, answered) = (signed(&caller.sent), signed(&caller.received));
    assert!(asked.len() >= 3 && answered.len() >= 3, "{asked:04x?} {answered:04x?}");
    for request in &asked {
        assert!(request.contains(&PASSWORD_ALGORITHM) && request.contains(&USERHASH), "{request:04x?}");
        assert!(!request.contains(&USERNAME), "{request:04x?}");
    }
    for message in asked.iter().chain(&answered) {
        assert!(message.contains(&INTEGRITY_SHA256) && !message.contains(&INTEGRITY), "{message:04x?}");
    }
    let farewell = server.stop();
    assert_eq!(farewell.dropped, 0, "{}", farewell.line);
}

#[test]
fn turn_client_proto_relays_by_sha256_and_name() {
    let (caller, server) = relays_both_ways(|config| {
        config.add_supported_integrity(IntegrityAlgorithm::Sha256);
        config.set_anonymous_username(Feature::Disabled);
    });
    for request in signed(&caller.sent) {
        assert!(request.contains(&INTEGRITY_SHA256) && request.contains(&USERNAME), "the first of the offer is taken");
    }
    server.stop();
}

/// It takes MD5 from the offer by name, signs with MESSAGE-INTEGRITY, and wants that back.
#[test]
fn turn_client_proto_relays_by_md5() {
    let (caller, server) = relays_both_ways(|config| config.set_supported_integrity(IntegrityAlgorithm::Sha1));
    for request in signed(&caller.sent) {
        assert!(request.contains(&PASSWORD_ALGORITHM) && request.contains(&INTEGRITY), "{request:04x?}");
        assert!(!request.contains(&INTEGRITY_SHA256), "{request:04x?}");
    }
    server.stop();
}

#[test]
fn turn_client_proto_with_a_wrong_password_gets_nowhere() {
    let server = Server::start(&["--listen", "127.0.0.1:0", "--workers", "2"]);
    let mut caller = Caller::new(&server, "wrong", |config| config.add_supported_integrity(IntegrityAlgorithm::Sha256));
    // It does not try again what was refused with the nonce that it had.
    caller.until(|caller, event| match event {
        Some(TurnEvent::AllocationCreateFailed(_)) => Some(()),
        Some(other) => panic!("{other:?}"),
        None => (caller.ignored > 0).then_some(()),
    });
    assert!(
        caller.received.len() > 1 && caller.received.iter().all(|bytes| bytes[..2] == [0x01, 0x13]),
        "every answer is an error"
    );
    server.stop();
}
