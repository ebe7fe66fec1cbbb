//! A small STUN and TURN client, for trying a server: one socket over UDP, one request at a time.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use tt_turn::codec::{Class, Emitter, HmacSha1, Message, Method, TransactionId, XorAddress, attribute};
use tt_turn::credential::long_term_key;

/// Waits for a response; each is twice as long as the one before (RFC 8489 section 6.2.1: RTO, here 4 requests).
const WAITS: [Duration; 4] =
    [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
/// Maximum length of a message that is sent or read.
const MESSAGE_MAX: usize = 1_500;
/// Protocol number of UDP in REQUESTED-TRANSPORT.
const UDP: [u8; 4] = [17, 0, 0, 0];

/// The response of a STUN server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedAddress {
    /// Source address of the request as the server received it.
    pub addr: SocketAddr,
    /// Time from the request that was answered to its response.
    pub round_trip: Duration,
}

/// Asks the STUN server at `server`, from the address `from`, which address it sees. Takes up to 7.5 s.
///
/// # Errors
/// The network's; `TimedOut` without a response; `InvalidData` if the server rejects the request.
pub fn mapped_address(server: SocketAddr, from: IpAddr) -> io::Result<MappedAddress> {
    let socket = connect(server, from)?;
    let response = transact(&socket, Method::Binding, |_| {})?;
    let addr = response.address(attribute::XOR_MAPPED_ADDRESS)?;
    Ok(MappedAddress { addr, round_trip: response.round_trip })
}

/// An allocation over UDP. It ends by itself, after its lifetime.
pub struct TurnClient {
    socket: UdpSocket,
    key: HmacSha1,
    name: String,
    realm: Vec<u8>,
    nonce: Vec<u8>,
    relayed: SocketAddr,
}

impl TurnClient {
    /// Allocates at `server`, from the address `from`, with a long-term credential (RFC 8656 section 7).
    ///
    /// # Errors
    /// The network's; `TimedOut` without a response; `InvalidData` if the server rejects the request.
    pub fn allocate(server: SocketAddr, from: IpAddr, name: &str, password: &str) -> io::Result<Self> {
        let socket = connect(server, from)?;
        let challenge = transact(&socket, Method::Allocate, |it| it.attribute(attribute::REQUESTED_TRANSPORT, &UDP))?;
        let (realm, nonce) = (challenge.value(attribute::REALM)?, challenge.value(attribute::NONCE)?);
        let key = long_term_key(name.as_bytes(), &realm, password.as_bytes());
        let mut client = Self { socket, key, name: name.to_owned(), realm, nonce, relayed: server };
        let response = client.request(Method::Allocate, |it| it.attribute(attribute::REQUESTED_TRANSPORT, &UDP))?;
        client.relayed = response.address(attribute::XOR_RELAYED_ADDRESS)?;
        Ok(client)
    }

    /// The relayed address: what peers send to reaches this client.
    #[must_use]
    pub fn relayed(&self) -> SocketAddr {
        self.relayed
    }

    /// Permits `peer` for 300 s (RFC 8656 section 10).
    ///
    /// # Errors
    /// The network's; `TimedOut` without a response; `InvalidData` if the server rejects the request.
    pub fn permit(&self, peer: IpAddr) -> io::Result<()> {
        let peer = SocketAddr::new(peer, 0);
        let permitted =
            self.request(Method::CreatePermission, |it| it.xor_address(attribute::XOR_PEER_ADDRESS, peer))?;
        permitted.success().map(drop)
    }

    /// Sends `payload` to `peer` through the server; it may be lost.
    ///
    /// # Errors
    /// The network's; `InvalidInput` if the payload does not fit into a datagram of 1,500 bytes.
    pub fn send(&self, peer: SocketAddr, payload: &[u8]) -> io::Result<()> {
        let mut buffer = [0; MESSAGE_MAX];
        let mut message = Emitter::begin(&mut buffer, Method::Send, Class::Indication, new_id()?);
        message.xor_address(attribute::XOR_PEER_ADDRESS, peer);
        message.attribute(attribute::DATA, payload);
        let message = message.finish().ok_or(io::ErrorKind::InvalidInput)?;
        self.socket.send(message).map(drop)
    }

    /// Waits up to `most` for data of a peer; `None` if there are none.
    ///
    /// # Errors
    /// The network's.
    pub fn receive(&self, most: Duration) -> io::Result<Option<Vec<u8>>> {
        let is_data = |message: &Message<'_>| message.method() == Ok(Method::Data);
        let Some(bytes) = receive(&self.socket, Instant::now() + most, is_data)? else { return Ok(None) };
        let message = Message::parse(&bytes).ok();
        let data = message.and_then(|message| message.attributes().find(|(kind, _)| *kind == attribute::DATA));
        Ok(data.map(|(_, payload)| payload.to_vec()))
    }

    fn request(&self, method: Method, add: impl Fn(&mut Emitter<'_>)) -> io::Result<Response> {
        transact(&self.socket, method, |message| {
            add(message);
            message.attribute(attribute::USERNAME, self.name.as_bytes());
            message.attribute(attribute::REALM, &self.realm);
            message.attribute(attribute::NONCE, &self.nonce);
            message.message_integrity(&self.key);
        })
    }
}

/// A response with the id of its request.
struct Response {
    bytes: Vec<u8>,
    round_trip: Duration,
}

impl Response {
    fn message(&self) -> io::Result<Message<'_>> {
        Message::parse(&self.bytes).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    fn success(&self) -> io::Result<Message<'_>> {
        let message = self.message()?;
        if message.class() == Class::Success {
            return Ok(message);
        }
        let error = message.attributes().find(|(kind, _)| *kind == attribute::ERROR_CODE);
        // Class and number in the last two bytes before the reason (RFC 8489 section 14.8).
        let code = error.and_then(|(_, value)| Some(u32::from(*value.get(2)?) * 100 + u32::from(*value.get(3)?)));
        let code = code.map_or_else(|| "without a code".to_owned(), |code| code.to_string());
        Err(io::Error::new(io::ErrorKind::InvalidData, format!("the server rejects the request: {code}")))
    }

    fn value(&self, kind: u16) -> io::Result<Vec<u8>> {
        let message = self.message()?;
        let value = message.attributes().find(|(found, _)| *found == kind).map(|(_, value)| value.to_vec());
        value.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "an attribute is missing in the response"))
    }

    fn address(&self, kind: u16) -> io::Result<SocketAddr> {
        let id = self.success()?.transaction_id();
        XorAddress::decode(&self.value(kind)?, &id).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

fn connect(server: SocketAddr, from: IpAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((from, 0))?;
    // Datagrams of others are not received, and ICMP errors are.
    socket.connect(server)?;
    Ok(socket)
}

fn new_id() -> io::Result<TransactionId> {
    let mut id = TransactionId::default();
    getrandom::fill(&mut id).map_err(io::Error::other)?;
    Ok(id)
}

/// Sends a request with the attributes that `add` appends, again after each wait, and returns its response.
fn transact(socket: &UdpSocket, method: Method, add: impl Fn(&mut Emitter<'_>)) -> io::Result<Response> {
    let (mut buffer, id) = ([0; MESSAGE_MAX], new_id()?);
    let mut request = Emitter::begin(&mut buffer, method, Class::Request, id);
    add(&mut request);
    let request = request.finish().ok_or(io::ErrorKind::InvalidInput)?;
    let is_answer = |message: &Message<'_>| message.transaction_id() == id && message.method() == Ok(method);
    for wait in WAITS {
        let sent = Instant::now();
        socket.send(request)?;
        if let Some(bytes) = receive(socket, sent + wait, is_answer)? {
            return Ok(Response { bytes, round_trip: sent.elapsed() });
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "no response"))
}

/// Waits until `deadline` for a message that is wanted; `None` if there is none.
fn receive(
    socket: &UdpSocket,
    deadline: Instant,
    is_wanted: impl Fn(&Message<'_>) -> bool,
) -> io::Result<Option<Vec<u8>>> {
    let mut buffer = [0; MESSAGE_MAX];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        socket.set_read_timeout(Some(left))?;
        let len = match socket.recv(&mut buffer) {
            Ok(len) => len,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => continue,
            Err(error) => return Err(error),
        };
        if Message::parse(&buffer[..len]).is_ok_and(|message| is_wanted(&message)) {
            return Ok(Some(buffer[..len].to_vec()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use zeroize::Zeroizing;

    use super::*;
    use crate::{TurnConfig, User, start};

    const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    /// Answers one request by hand: the bytes of RFC 8489 section 5 and 14.2, without the codec.
    fn answer(change: fn(&mut Vec<u8>)) -> io::Result<MappedAddress> {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let addr = server.local_addr().unwrap();
        let thread = thread::spawn(move || {
            let mut request = [0; 100];
            let (len, from) = server.recv_from(&mut request).unwrap();
            assert_eq!((len, &request[..8]), (20, &[0, 1, 0, 0, 0x21, 0x12, 0xA4, 0x42][..]));
            let mut response = vec![1, 1, 0, 12, 0x21, 0x12, 0xA4, 0x42];
            response.extend(&request[8..20]);
            // 192.0.2.7:32853, each XORed with the cookie.
            response.extend([0, 0x20, 0, 8, 0, 1, 0xA1, 0x47, 0xC0 ^ 0x21, 0x12, 0x02 ^ 0xA4, 0x07 ^ 0x42]);
            // One with another transaction and another port comes first.
            let mut stranger = response.clone();
            stranger[8] ^= 1;
            stranger[27] ^= 1;
            server.send_to(&stranger, from).unwrap();
            change(&mut response);
            server.send_to(&response, from).unwrap();
        });
        let mapped = mapped_address(addr, LOOPBACK);
        thread.join().unwrap();
        mapped
    }

    #[test]
    fn returns_the_address_in_the_response_to_its_request() {
        assert_eq!(answer(|_| {}).unwrap().addr, "192.0.2.7:32853".parse().unwrap());
    }

    #[test]
    fn an_error_response_is_an_error() {
        let error = answer(|response| response[0..2].copy_from_slice(&[1, 0x11])).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_closed_port_is_an_error_at_once() {
        let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = mapped_address(closed, LOOPBACK).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn two_clients_exchange_data_over_their_relayed_addresses() {
        let mut config = TurnConfig::on("127.0.0.1:0".parse().unwrap());
        config.workers = 1;
        config.users.push(User { name: "ann".to_owned(), password: Zeroizing::new("secret".to_owned()) });
        let server = start(&config).unwrap();
        let addr = server.listen()[0];
        let rejected = TurnClient::allocate(addr, LOOPBACK, "ann", "wrong").err().unwrap().to_string();
        assert!(rejected.ends_with(": 401"), "{rejected}");
        let [one, other] = [(); 2].map(|()| TurnClient::allocate(addr, LOOPBACK, "ann", "secret").unwrap());
        assert_ne!(one.relayed(), other.relayed());
        one.permit(other.relayed().ip()).unwrap();
        other.permit(one.relayed().ip()).unwrap();
        one.send(other.relayed(), b"ping").unwrap();
        assert_eq!(other.receive(WAITS[3]).unwrap().as_deref(), Some(&b"ping"[..]));
        other.send(one.relayed(), b"pong").unwrap();
        assert_eq!(one.receive(WAITS[3]).unwrap().as_deref(), Some(&b"pong"[..]));
        server.stop();
    }
}
