//! A TURN client over UDP, written from RFC 8489 and RFC 8656. It shares no code with the server.
//!
//! Its methods panic where the server does not answer, or answers otherwise than the RFCs say.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test's way to fail, in its helpers too")]

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use sha1::Sha1;

/// Method Allocate.
pub const ALLOCATE: u16 = 0x003;
/// Method Refresh.
pub const REFRESH: u16 = 0x004;
/// Method CreatePermission.
pub const CREATE_PERMISSION: u16 = 0x008;
/// Method ChannelBind.
pub const CHANNEL_BIND: u16 = 0x009;
/// Method Binding.
pub const BINDING: u16 = 0x001;
/// Type of a Send indication.
pub const SEND_INDICATION: u16 = 0x016;
/// Type of a Data indication.
pub const DATA_INDICATION: u16 = 0x017;

/// Attribute USERNAME.
pub const USERNAME: u16 = 0x0006;
/// Attribute MESSAGE-INTEGRITY.
pub const MESSAGE_INTEGRITY: u16 = 0x0008;
const ERROR_CODE: u16 = 0x0009;
/// Attribute CHANNEL-NUMBER.
pub const CHANNEL_NUMBER: u16 = 0x000c;
/// Attribute LIFETIME.
pub const LIFETIME: u16 = 0x000d;
/// Attribute XOR-PEER-ADDRESS.
pub const XOR_PEER_ADDRESS: u16 = 0x0012;
/// Attribute DATA.
pub const DATA: u16 = 0x0013;
/// Attribute REALM.
pub const REALM: u16 = 0x0014;
/// Attribute NONCE.
pub const NONCE: u16 = 0x0015;
/// Attribute XOR-RELAYED-ADDRESS.
pub const XOR_RELAYED_ADDRESS: u16 = 0x0016;
/// Attribute REQUESTED-ADDRESS-FAMILY.
pub const REQUESTED_ADDRESS_FAMILY: u16 = 0x0017;
/// Attribute EVEN-PORT.
pub const EVEN_PORT: u16 = 0x0018;
/// Attribute REQUESTED-TRANSPORT.
pub const REQUESTED_TRANSPORT: u16 = 0x0019;
/// Attribute XOR-MAPPED-ADDRESS.
pub const XOR_MAPPED_ADDRESS: u16 = 0x0020;
/// Attribute DONT-FRAGMENT.
pub const DONT_FRAGMENT: u16 = 0x001a;
/// Attribute SOFTWARE.
pub const SOFTWARE: u16 = 0x8022;
/// Attribute FINGERPRINT.
pub const FINGERPRINT: u16 = 0x8028;
/// Attribute ORIGIN of draft-johnston-tram-stun-origin.
pub const ORIGIN: u16 = 0x802f;
/// Attribute ICMP.
pub const ICMP: u16 = 0x8004;
/// Attribute RESERVATION-TOKEN.
pub const RESERVATION_TOKEN: u16 = 0x0022;
/// Attribute ADDITIONAL-ADDRESS-FAMILY.
pub const ADDITIONAL_ADDRESS_FAMILY: u16 = 0x8000;
/// The magic cookie.
pub const COOKIE: [u8; 4] = 0x2112_A442_u32.to_be_bytes();
const PATIENCE: Duration = Duration::from_secs(10);

/// Types and values of attributes.
pub type Attributes = Vec<(u16, Vec<u8>)>;

/// A client on its own socket that talks to one address of the server.
#[derive(Debug)]
pub struct Client {
    /// The socket, connected to the server.
    pub socket: UdpSocket,
    username: String,
    password: String,
    realm: Vec<u8>,
    nonce: Vec<u8>,
    origin: Option<Vec<u8>>,
    transaction: u64,
    /// Number of datagrams sent.
    pub sent: u64,
    /// Wait before the first retransmission, doubled each time (RFC 8489 section 6.2.1).
    pub retransmits_after: Option<Duration>,
}

/// A successful response to Allocate.
#[derive(Debug)]
pub struct Allocated {
    /// XOR-RELAYED-ADDRESS, in order.
    pub relayed: Vec<SocketAddr>,
    /// RESERVATION-TOKEN.
    pub token: Option<Vec<u8>>,
}

/// A response or an indication.
#[derive(Debug)]
pub struct Response {
    /// The error code; 0 without one.
    pub code: u16,
    attributes: Attributes,
    transaction: [u8; 12],
}

impl Client {
    /// Creates a client on a loopback address.
    pub fn new(server: SocketAddr, username: &str, password: &str) -> Self {
        let local: IpAddr = if server.is_ipv4() { "127.0.0.1".parse().unwrap() } else { "::1".parse().unwrap() };
        Self::on(local, server, username, password)
    }

    /// Creates a client on an address of the machine.
    pub fn on(local: IpAddr, server: SocketAddr, username: &str, password: &str) -> Self {
        let socket = UdpSocket::bind((local, 0)).unwrap();
        // Connected, so that an answer from any other address than the one that was asked is not seen.
        socket.connect(server).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let (username, password) = (username.to_owned(), password.to_owned());
        let (realm, nonce) = (Vec::new(), Vec::new());
        let (origin, retransmits_after) = (None, None);
        Self { socket, username, password, realm, nonce, origin, transaction: 0, sent: 0, retransmits_after }
    }

    /// Sends ORIGIN in the first request, which has no credentials.
    #[must_use]
    pub fn of_origin(mut self, origin: &str) -> Self {
        self.origin = Some(origin.as_bytes().to_vec());
        self
    }

    /// Returns the realm of a 401 to a first request.
    pub fn challenge(&mut self) -> String {
        let origin = self.origin.iter().map(|origin| (ORIGIN, origin.clone())).collect();
        let first = self.ask(ALLOCATE, origin, false);
        assert_eq!(first.code, 401);
        self.realm = first.bytes(REALM).unwrap().to_vec();
        self.nonce = first.bytes(NONCE).unwrap().to_vec();
        String::from_utf8(self.realm.clone()).unwrap()
    }

    /// Takes other credentials for all later requests on the same socket.
    pub fn log_in_as(&mut self, realm: &str, username: &str, password: &str) {
        self.realm = realm.as_bytes().to_vec();
        (self.username, self.password) = (username.to_owned(), password.to_owned());
    }

    /// Returns the address that the server sees.
    pub fn binding(&mut self) -> SocketAddr {
        self.binding_response().address(XOR_MAPPED_ADDRESS).unwrap()
    }

    /// Allocates, and returns the relayed address.
    ///
    /// # Errors
    /// The code of an error response.
    pub fn allocate(&mut self) -> Result<SocketAddr, u16> {
        let family = if self.socket.peer_addr().unwrap().is_ipv4() { 1 } else { 2 };
        let attributes =
            vec![(REQUESTED_TRANSPORT, vec![17, 0, 0, 0]), (REQUESTED_ADDRESS_FAMILY, vec![family, 0, 0, 0])];
        let answer = self.request(ALLOCATE, attributes);
        if answer.code == 0 { Ok(answer.address(XOR_RELAYED_ADDRESS).unwrap()) } else { Err(answer.code) }
    }

    /// Allocates and ends the allocation: a later client with the same port is refused with 437 while there is one.
    ///
    /// # Errors
    /// The code of an error response.
    pub fn log_in(&mut self) -> Result<(), u16> {
        self.allocate()?;
        match self.refresh(0) {
            0 => Ok(()),
            code => Err(code),
        }
    }

    /// Allocates with these attributes and REQUESTED-TRANSPORT.
    ///
    /// # Errors
    /// The code of an error response.
    pub fn allocate_with(&mut self, attributes: &[(u16, &[u8])]) -> Result<Allocated, u16> {
        let asked = attributes.iter().map(|(kind, value)| (*kind, value.to_vec()));
        let attributes = [(REQUESTED_TRANSPORT, vec![17, 0, 0, 0])].into_iter().chain(asked).collect();
        let answer = self.request(ALLOCATE, attributes);
        if answer.code != 0 {
            return Err(answer.code);
        }
        let relayed = answer.attributes.iter().filter(|(kind, _)| *kind == XOR_RELAYED_ADDRESS);
        Ok(Allocated {
            relayed: relayed.map(|(_, value)| unxored(value, answer.transaction)).collect(),
            token: answer.bytes(RESERVATION_TOKEN).map(<[u8]>::to_vec),
        })
    }

    /// Refreshes the allocation, and returns the error code or 0.
    pub fn refresh(&mut self, lifetime_s: u32) -> u16 {
        self.request(REFRESH, vec![(LIFETIME, lifetime_s.to_be_bytes().to_vec())]).code
    }

    /// Creates a permission, and returns the error code or 0.
    pub fn permit(&mut self, peer: SocketAddr) -> u16 {
        let peer = xored(peer, self.next_transaction());
        self.request(CREATE_PERMISSION, vec![(XOR_PEER_ADDRESS, peer)]).code
    }

    /// Binds a channel, and returns the error code or 0.
    pub fn bind_channel(&mut self, number: u16, peer: SocketAddr) -> u16 {
        let number = [number.to_be_bytes(), [0, 0]].concat();
        let peer = xored(peer, self.next_transaction());
        self.request(CHANNEL_BIND, vec![(CHANNEL_NUMBER, number), (XOR_PEER_ADDRESS, peer)]).code
    }

    /// Sends ChannelData.
    pub fn send_channel(&mut self, number: u16, payload: &[u8]) {
        let length = (payload.len() as u16).to_be_bytes();
        self.send(&[&number.to_be_bytes()[..], &length, payload].concat());
    }

    /// Sends a Send indication.
    pub fn send_indication(&mut self, peer: SocketAddr, payload: &[u8]) {
        let peer = xored(peer, self.next_transaction());
        let message = self.message(SEND_INDICATION, &[(XOR_PEER_ADDRESS, peer), (DATA, payload.to_vec())], false);
        self.send(&message);
    }

    /// Sends a Send indication with DONT-FRAGMENT.
    pub fn send_whole(&mut self, peer: SocketAddr, payload: &[u8]) {
        let peer = xored(peer, self.next_transaction());
        let attributes = [(XOR_PEER_ADDRESS, peer), (DATA, payload.to_vec()), (DONT_FRAGMENT, Vec::new())];
        let message = self.message(SEND_INDICATION, &attributes, false);
        self.send(&message);
    }

    /// Returns peer, type, code and error data of the ICMP attribute in the next Data indication.
    pub fn receive_icmp(&mut self) -> (SocketAddr, u8, u16, [u8; 4]) {
        let (kind, answer) = parse(&self.receive());
        assert_eq!(kind, DATA_INDICATION);
        assert!(answer.bytes(DATA).is_none(), "RFC 8656 section 11.5: ICMP replaces DATA");
        let icmp = answer.bytes(ICMP).unwrap();
        assert_eq!((icmp.len(), &icmp[..2]), (8, &[0, 0][..]));
        let type_and_code = u16::from_be_bytes([icmp[2], icmp[3]]);
        let error_data = [icmp[4], icmp[5], icmp[6], icmp[7]];
        (answer.address(XOR_PEER_ADDRESS).unwrap(), (type_and_code >> 9) as u8, type_and_code & 0x1ff, error_data)
    }

    /// Returns number and payload of the next ChannelData.
    pub fn receive_channel(&mut self) -> (u16, Vec<u8>) {
        let bytes = self.receive();
        let length = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
        assert_eq!(bytes.len(), 4 + length, "over UDP there is no padding");
        (u16::from_be_bytes([bytes[0], bytes[1]]), bytes[4..].to_vec())
    }

    /// Returns whether no datagram waits.
    pub fn is_silent(&self) -> bool {
        self.socket.set_nonblocking(true).unwrap();
        let received = self.socket.recv(&mut [0; 1]);
        self.socket.set_nonblocking(false).unwrap();
        received.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }

    /// Returns peer and payload of the next Data indication.
    pub fn receive_indication(&mut self) -> (SocketAddr, Vec<u8>) {
        let (kind, answer) = parse(&self.receive());
        assert_eq!(kind, DATA_INDICATION);
        (answer.address(XOR_PEER_ADDRESS).unwrap(), answer.bytes(DATA).unwrap().to_vec())
    }

    /// Sends a Binding and returns the response.
    pub fn binding_response(&mut self) -> Response {
        self.ask(BINDING, Vec::new(), false)
    }

    /// A request with credentials; where the server asks for a realm and a nonce, once more with those.
    pub fn request(&mut self, method: u16, attributes: Attributes) -> Response {
        // An address is hidden behind its transaction, and a nonce is asked for under another one.
        if self.nonce.is_empty() {
            self.challenge();
            let readdressed = attributes.into_iter().map(|(kind, value)| match kind {
                XOR_PEER_ADDRESS => {
                    (kind, xored(unxored(&value, self.transaction_id(self.transaction)), self.next_transaction()))
                }
                _ => (kind, value),
            });
            let readdressed = readdressed.collect();
            return self.ask(method, readdressed, true);
        }
        self.ask(method, attributes, true)
    }

    fn ask(&mut self, kind: u16, attributes: Attributes, with_credentials: bool) -> Response {
        let message = self.message(kind, &attributes, with_credentials);
        self.send(&message);
        let bytes = match self.retransmits_after {
            None => self.receive(),
            Some(timeout) => self.receive_or_send_again(&message, timeout),
        };
        let (answer_kind, answer) = parse(&bytes);
        assert_eq!(answer.transaction, self.transaction_id(self.transaction), "the answer to another request");
        assert_eq!(answer_kind & !0x0110, kind, "the answer to another method");
        assert_eq!(answer_kind & 0x0100, 0x0100, "no answer");
        answer
    }

    fn message(&mut self, kind: u16, attributes: &[(u16, Vec<u8>)], with_credentials: bool) -> Vec<u8> {
        self.transaction += 1;
        let mut message = [&kind.to_be_bytes()[..], &[0, 0], &COOKIE, &self.transaction_id(self.transaction)].concat();
        for (kind, value) in attributes {
            put(&mut message, *kind, value);
        }
        if with_credentials {
            put(&mut message, USERNAME, self.username.as_bytes());
            put(&mut message, REALM, &self.realm);
            put(&mut message, NONCE, &self.nonce);
            let key = [self.username.as_bytes(), b":", &self.realm, b":", self.password.as_bytes()].concat();
            let mut mac = Hmac::<Sha1>::new_from_slice(&Md5::digest(key)).unwrap();
            let length = message.len() as u16 - 20 + 24;
            message[2..4].copy_from_slice(&length.to_be_bytes());
            mac.update(&message);
            let code = mac.finalize().into_bytes();
            put(&mut message, MESSAGE_INTEGRITY, &code);
        }
        message
    }

    fn transaction_id(&self, number: u64) -> [u8; 12] {
        let mut id = [0x5a; 12];
        id[4..].copy_from_slice(&number.to_be_bytes());
        id
    }

    fn next_transaction(&self) -> [u8; 12] {
        self.transaction_id(self.transaction + 1)
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) {
        self.socket.send(bytes).unwrap();
        self.sent += 1;
    }

    /// The answer to `message`, which is sent again while there is none; answers to what was sent before are late.
    fn receive_or_send_again(&mut self, message: &[u8], mut timeout: Duration) -> Vec<u8> {
        let mut bytes = vec![0; 65_536];
        loop {
            self.socket.set_read_timeout(Some(timeout)).unwrap();
            match self.socket.recv(&mut bytes) {
                Ok(length) if bytes[8..20] == message[8..20] => return bytes[..length].to_vec(),
                Ok(_) => {}
                Err(_) => {
                    timeout *= 2;
                    assert!(timeout < PATIENCE, "no answer in time");
                    self.send(message);
                }
            }
        }
    }

    fn receive(&self) -> Vec<u8> {
        let mut bytes = vec![0; 65_536];
        let length = self.socket.recv(&mut bytes).expect("an answer in time");
        bytes.truncate(length);
        bytes
    }
}

impl Response {
    /// Returns the value of the first attribute of a type.
    pub fn bytes(&self, kind: u16) -> Option<&[u8]> {
        self.attributes.iter().find(|(found, _)| *found == kind).map(|(_, value)| value.as_slice())
    }

    /// Returns the address of the first attribute of a type.
    pub fn address(&self, kind: u16) -> Option<SocketAddr> {
        self.bytes(kind).map(|value| unxored(value, self.transaction))
    }
}

/// Appends an attribute and sets the length of the message.
pub fn put(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend(kind.to_be_bytes());
    message.extend((value.len() as u16).to_be_bytes());
    message.extend(value);
    message.resize(message.len().next_multiple_of(4), 0);
    let length = (message.len() - 20) as u16;
    message[2..4].copy_from_slice(&length.to_be_bytes());
}

/// Parses a message into its type and content.
pub fn parse(bytes: &[u8]) -> (u16, Response) {
    assert_eq!(bytes[4..8], COOKIE);
    let mut attributes = Vec::new();
    let mut rest = &bytes[20..];
    while !rest.is_empty() {
        let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        attributes.push((u16::from_be_bytes([rest[0], rest[1]]), rest[4..4 + length].to_vec()));
        rest = &rest[4 + length.next_multiple_of(4)..];
    }
    let mut answer = Response { code: 0, attributes, transaction: bytes[8..20].try_into().unwrap() };
    if let Some(error) = answer.bytes(ERROR_CODE) {
        answer.code = u16::from(error[2]) * 100 + u16::from(error[3]);
    }
    (u16::from_be_bytes([bytes[0], bytes[1]]), answer)
}

/// Returns the value of XOR-MAPPED-ADDRESS (RFC 8489 section 14.2).
pub fn xored(addr: SocketAddr, transaction: [u8; 12]) -> Vec<u8> {
    let mask = [&COOKIE[..], &transaction].concat();
    let (family, ip) = match addr.ip() {
        IpAddr::V4(ip) => (1, ip.octets().to_vec()),
        IpAddr::V6(ip) => (2, ip.octets().to_vec()),
    };
    let port = addr.port() ^ 0x2112;
    let ip = ip.iter().zip(&mask).map(|(byte, mask)| byte ^ mask);
    [0, family].into_iter().chain(port.to_be_bytes()).chain(ip).collect()
}

/// Returns the address of an XOR-MAPPED-ADDRESS value.
pub fn unxored(value: &[u8], transaction: [u8; 12]) -> SocketAddr {
    let mask = [&COOKIE[..], &transaction].concat();
    let port = u16::from_be_bytes([value[2], value[3]]) ^ 0x2112;
    let ip: Vec<u8> = value[4..].iter().zip(&mask).map(|(byte, mask)| byte ^ mask).collect();
    match value[1] {
        1 => SocketAddr::from((<[u8; 4]>::try_from(ip).unwrap(), port)),
        _ => SocketAddr::from((<[u8; 16]>::try_from(ip).unwrap(), port)),
    }
}
