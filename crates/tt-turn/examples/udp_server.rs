//! A TURN server on two UDP sockets, and a client that sends a payload through it to an echo peer.
//!
//! One thread, no dependencies but the engine: the loop of the crate's documentation with real sockets.
//!
//! ```text
//! cargo run -p tt-turn --example udp_server
//! ```

use std::error::Error;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tt_meter::Off;
use tt_model::{FiveTuple, Nanos, Transport};
use tt_turn::codec::{Class, Emitter, HmacSha1, Message, Method, attribute};
use tt_turn::config::{Capacity, Config};
use tt_turn::credential::{Secrets, long_term_key};
use tt_turn::policy::PeerRange;
use tt_turn::relay::{PeerPath, RelayAddress, RelayDemand, RelayId};
use tt_turn::shared::{Quotas, Shared};
use tt_turn::{Output, Server, WorkerId};

const REALM: &str = "example.org";
const RELAY: RelayId = RelayId(0);

/// The engine, its sockets and its clock.
struct Driver {
    server: Server,
    listener: UdpSocket,
    relay: UdpSocket,
    started: Instant,
}

impl Driver {
    fn bind() -> Result<Self, Box<dyn Error>> {
        let (listener, relay) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
        for socket in [&listener, &relay] {
            socket.set_nonblocking(true)?;
        }
        let mut config = Config::new(REALM);
        // Addresses of this host are denied by default; this example relays on the loopback interface.
        config.peer_policy.open_host("127.0.0.0/8".parse::<PeerRange>()?);
        config.peer_policy.deny_listener(listener.local_addr()?);
        // Random and secret in a real server.
        let mut secrets = Secrets::new([1; 32], [2; 32]);
        secrets.add_user(b"alice", REALM, b"password");
        let shared = Arc::new(Shared::new(Quotas::default(), 100, 3));
        let mut server = Server::new(config, Capacity::for_allocations(100), shared, WorkerId(0), secrets);
        let bound = relay.local_addr()?;
        server.add_relay(RELAY, RelayAddress { bound, external: bound })?;
        let driver = Self { server, listener, relay, started: Instant::now() };
        Ok(driver)
    }

    fn now(&self) -> Nanos {
        Nanos(self.started.elapsed().as_nanos() as u64)
    }

    /// One round of the loop: every datagram that waits, then relays and timeouts.
    fn run_once(&mut self) -> Result<(), Box<dyn Error>> {
        let (mut datagram, mut out) = ([0; 2_048], [0; 2_048]);
        let now = self.now();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH)?;
        self.server.set_wall_clock(now, Nanos(unix.as_nanos() as u64));
        while let Ok((len, client)) = self.listener.recv_from(&mut datagram) {
            let flow = FiveTuple { client, server: self.listener.local_addr()?, transport: Transport::Udp };
            let output = self.server.handle_client(now, &flow, &datagram[..len], &mut out, &mut Off);
            self.perform(&flow, output, &datagram, &mut out)?;
        }
        while let Ok((len, peer)) = self.relay.recv_from(&mut datagram) {
            let path = PeerPath { relay: RELAY, peer };
            let output = self.server.handle_peer(now, path, &datagram[..len], &mut out, &mut Off);
            let flow = FiveTuple { client: peer, server: peer, transport: Transport::Udp };
            self.perform(&flow, output, &datagram, &mut out)?;
        }
        while let Some(RelayDemand::Retire(relay)) = self.server.poll_relay() {
            // A real driver keeps the socket idle for some seconds and drains it first.
            let bound = self.relay.local_addr()?;
            self.server.add_relay(relay, RelayAddress { bound, external: bound })?;
        }
        if self.server.poll_timeout().is_some_and(|at| at <= now) {
            self.server.handle_timeout(now);
        }
        Ok(())
    }

    /// Does what the engine returned.
    fn perform(&self, from: &FiveTuple, output: Output, datagram: &[u8], out: &mut [u8]) -> std::io::Result<()> {
        match output {
            Output::Reply { len, .. } => self.listener.send_to(&out[..len], from.client)?,
            Output::ToPeer { peer, payload, .. } => self.relay.send_to(&datagram[payload.to_range()], peer)?,
            Output::ToClient { client, header_len, payload, padding_len } => {
                let message = [&out[..header_len], &datagram[payload.to_range()], &[0; 3][..padding_len.into()]];
                self.listener.send_to(&message.concat(), client.client)?
            }
            // This server has one worker.
            Output::ToWorker { .. } | Output::HandOff(_) => 0,
            Output::Drop(reason) => {
                println!("server: {reason}");
                0
            }
        };
        Ok(())
    }
}

/// Runs the server until `socket` receives a datagram, and returns it with its source.
fn receive(driver: &mut Driver, socket: &UdpSocket) -> Result<(Vec<u8>, SocketAddr), Box<dyn Error>> {
    socket.set_nonblocking(true)?;
    let (deadline, mut buffer) = (Instant::now() + Duration::from_secs(5), [0; 2_048]);
    while Instant::now() < deadline {
        driver.run_once()?;
        if let Ok((len, from)) = socket.recv_from(&mut buffer) {
            return Ok((buffer[..len].to_vec(), from));
        }
        std::thread::yield_now();
    }
    Err("no datagram in five seconds".into())
}

fn request(method: Method, key: Option<(&HmacSha1, &[u8])>, fill: impl Fn(&mut Emitter<'_>)) -> Vec<u8> {
    let mut buffer = [0; 512];
    let mut message = Emitter::begin(&mut buffer, method, Class::Request, *b"0123456789AB");
    fill(&mut message);
    if let Some((key, nonce)) = key {
        message.attribute(attribute::USERNAME, b"alice");
        message.attribute(attribute::REALM, REALM.as_bytes());
        message.attribute(attribute::NONCE, nonce);
        message.message_integrity(key);
    }
    message.finish().expect("512 bytes are enough").to_vec()
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut driver = Driver::bind()?;
    let (server, client, peer) =
        (driver.listener.local_addr()?, UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    let peer_addr = peer.local_addr()?;
    println!("server {server}, client {}, peer {peer_addr}", client.local_addr()?);

    let udp = |message: &mut Emitter<'_>| message.attribute(attribute::REQUESTED_TRANSPORT, &[17, 0, 0, 0]);
    let permit = |message: &mut Emitter<'_>| message.xor_address(attribute::XOR_PEER_ADDRESS, peer_addr);
    client.send_to(&request(Method::Allocate, None, udp), server)?;
    let (challenge, _) = receive(&mut driver, &client)?;
    let nonce = Message::parse(&challenge)?
        .attributes()
        .find_map(|(kind, value)| (kind == attribute::NONCE).then(|| value.to_vec()))
        .ok_or("a response without a nonce")?;
    let key = long_term_key(b"alice", REALM.as_bytes(), b"password");
    let signed = Some((&key, &nonce[..]));
    for (method, request) in [
        (Method::Allocate, request(Method::Allocate, signed, udp)),
        (Method::CreatePermission, request(Method::CreatePermission, signed, permit)),
    ] {
        client.send_to(&request, server)?;
        let (response, _) = receive(&mut driver, &client)?;
        let class = Message::parse(&response)?.class();
        println!("client: {method:?}: {class:?}");
        if class != Class::Success {
            return Err("the request was rejected".into());
        }
    }

    let mut buffer = [0; 512];
    let mut indication = Emitter::begin(&mut buffer, Method::Send, Class::Indication, [7; 12]);
    indication.xor_address(attribute::XOR_PEER_ADDRESS, peer_addr);
    indication.attribute(attribute::DATA, b"hello");
    client.send_to(indication.finish().ok_or("512 bytes are enough")?, server)?;
    let (payload, relay) = receive(&mut driver, &peer)?;
    println!("peer: {:?} from {relay}", String::from_utf8_lossy(&payload));
    peer.send_to(b"echo", relay)?;
    let (data, _) = receive(&mut driver, &client)?;
    let data = Message::parse(&data)?.attributes().find_map(|(kind, value)| (kind == attribute::DATA).then_some(value));
    println!("client: {:?}", data.map(String::from_utf8_lossy));
    if data == Some(b"echo") { Ok(()) } else { Err("the echo did not arrive".into()) }
}
