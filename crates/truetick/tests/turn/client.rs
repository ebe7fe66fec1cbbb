//! A TURN client of a hundred lines, written from RFC 8489 and RFC 8656 and sharing no code with the server.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use sha1::Sha1;

pub(crate) const ALLOCATE: u16 = 0x003;
pub(crate) const REFRESH: u16 = 0x004;
pub(crate) const CREATE_PERMISSION: u16 = 0x008;
pub(crate) const CHANNEL_BIND: u16 = 0x009;
pub(crate) const BINDING: u16 = 0x001;
pub(crate) const SEND_INDICATION: u16 = 0x016;
pub(crate) const DATA_INDICATION: u16 = 0x017;

pub(crate) const USERNAME: u16 = 0x0006;
pub(crate) const MESSAGE_INTEGRITY: u16 = 0x0008;
const ERROR_CODE: u16 = 0x0009;
pub(crate) const CHANNEL_NUMBER: u16 = 0x000c;
pub(crate) const LIFETIME: u16 = 0x000d;
pub(crate) const XOR_PEER_ADDRESS: u16 = 0x0012;
pub(crate) const DATA: u16 = 0x0013;
pub(crate) const REALM: u16 = 0x0014;
pub(crate) const NONCE: u16 = 0x0015;
pub(crate) const XOR_RELAYED_ADDRESS: u16 = 0x0016;
pub(crate) const REQUESTED_ADDRESS_FAMILY: u16 = 0x0017;
pub(crate) const EVEN_PORT: u16 = 0x0018;
pub(crate) const REQUESTED_TRANSPORT: u16 = 0x0019;
pub(crate) const XOR_MAPPED_ADDRESS: u16 = 0x0020;
pub(crate) const DONT_FRAGMENT: u16 = 0x001a;
pub(crate) const ICMP: u16 = 0x8004;
pub(crate) const RESERVATION_TOKEN: u16 = 0x0022;
pub(crate) const ADDITIONAL_ADDRESS_FAMILY: u16 = 0x8000;
pub(crate) const COOKIE: [u8; 4] = 0x2112_A442_u32.to_be_bytes();
const PATIENCE: Duration = Duration::from_secs(10);

type Attributes = Vec<(u16, Vec<u8>)>;

/// A client with a socket of its own that talks to one address of the server.
pub(crate) struct Client {
    pub(crate) socket: UdpSocket,
    username: String,
    password: String,
    realm: Vec<u8>,
    nonce: Vec<u8>,
    transaction: u64,
    /// Datagrams that it has sent.
    pub(crate) sent: u64,
    /// How long it waits before it asks once more; then twice as long (RFC 8489 section 6.2.1).
    pub(crate) retransmits_after: Option<Duration>,
}

/// What a successful Allocate tells.
pub(crate) struct Told {
    pub(crate) relayed: Vec<SocketAddr>,
    pub(crate) token: Option<Vec<u8>>,
}

/// An answer: the error's code, 0 for success, and the attributes.
pub(crate) struct Answer {
    pub(crate) code: u16,
    attributes: Attributes,
    transaction: [u8; 12],
}

impl Client {
    pub(crate) fn new(server: SocketAddr, username: &str, password: &str) -> Self {
        let local: IpAddr = if server.is_ipv4() { "127.0.0.1".parse().unwrap() } else { "::1".parse().unwrap() };
        Self::on(local, server, username, password)
    }

    /// A client on an address of the machine's.
    pub(crate) fn on(local: IpAddr, server: SocketAddr, username: &str, password: &str) -> Self {
        let socket = UdpSocket::bind((local, 0)).unwrap();
        // Connected, so that an answer from any other address than the one that was asked is not seen.
        socket.connect(server).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let (username, password) = (username.to_owned(), password.to_owned());
        let (realm, nonce) = (Vec::new(), Vec::new());
        Self { socket, username, password, realm, nonce, transaction: 0, sent: 0, retransmits_after: None }
    }

    /// The address that the server sees.
    pub(crate) fn binding(&mut self) -> SocketAddr {
        let answer = self.ask(BINDING, Vec::new(), false);
        answer.address(XOR_MAPPED_ADDRESS).unwrap()
    }

    /// Allocates, and returns the relayed address or the error's code.
    pub(crate) fn allocate(&mut self) -> Result<SocketAddr, u16> {
        let family = if self.socket.peer_addr().unwrap().is_ipv4() { 1 } else { 2 };
        let attributes =
            vec![(REQUESTED_TRANSPORT, vec![17, 0, 0, 0]), (REQUESTED_ADDRESS_FAMILY, vec![family, 0, 0, 0])];
        let answer = self.request(ALLOCATE, attributes);
        if answer.code == 0 { Ok(answer.address(XOR_RELAYED_ADDRESS).unwrap()) } else { Err(answer.code) }
    }

    /// Allocates with these attributes beside REQUESTED-TRANSPORT, and returns what is told, or the error's code.
    pub(crate) fn allocate_with(&mut self, attributes: &[(u16, &[u8])]) -> Result<Told, u16> {
        let asked = attributes.iter().map(|(kind, value)| (*kind, value.to_vec()));
        let attributes = [(REQUESTED_TRANSPORT, vec![17, 0, 0, 0])].into_iter().chain(asked).collect();
        let answer = self.request(ALLOCATE, attributes);
        if answer.code != 0 {
            return Err(answer.code);
        }
        let relayed = answer.attributes.iter().filter(|(kind, _)| *kind == XOR_RELAYED_ADDRESS);
        Ok(Told {
            relayed: relayed.map(|(_, value)| unxored(value, answer.transaction)).collect(),
            token: answer.bytes(RESERVATION_TOKEN).map(<[u8]>::to_vec),
        })
    }

    pub(crate) fn refresh(&mut self, lifetime_s: u32) -> u16 {
        self.request(REFRESH, vec![(LIFETIME, lifetime_s.to_be_bytes().to_vec())]).code
    }

    pub(crate) fn permit(&mut self, peer: SocketAddr) -> u16 {
        let peer = xored(peer, self.next_transaction());
        self.request(CREATE_PERMISSION, vec![(XOR_PEER_ADDRESS, peer)]).code
    }

    pub(crate) fn bind_channel(&mut self, number: u16, peer: SocketAddr) -> u16 {
        let number = [number.to_be_bytes(), [0, 0]].concat();
        let peer = xored(peer, self.next_transaction());
        self.request(CHANNEL_BIND, vec![(CHANNEL_NUMBER, number), (XOR_PEER_ADDRESS, peer)]).code
    }

    pub(crate) fn send_channel(&mut self, number: u16, payload: &[u8]) {
        let length = (payload.len() as u16).to_be_bytes();
        self.send(&[&number.to_be_bytes()[..], &length, payload].concat());
    }

    pub(crate) fn send_indication(&mut self, peer: SocketAddr, payload: &[u8]) {
        let peer = xored(peer, self.next_transaction());
        let message = self.message(SEND_INDICATION, &[(XOR_PEER_ADDRESS, peer), (DATA, payload.to_vec())], false);
        self.send(&message);
    }

    /// A Send indication with DONT-FRAGMENT.
    pub(crate) fn send_whole(&mut self, peer: SocketAddr, payload: &[u8]) {
        let peer = xored(peer, self.next_transaction());
        let attributes = [(XOR_PEER_ADDRESS, peer), (DATA, payload.to_vec()), (DONT_FRAGMENT, Vec::new())];
        let message = self.message(SEND_INDICATION, &attributes, false);
        self.send(&message);
    }

    /// What the next Data indication says of an ICMP error: the peer, the type, the code and the error data.
    pub(crate) fn receive_icmp(&mut self) -> (SocketAddr, u8, u16, [u8; 4]) {
        let (kind, answer) = parse(&self.receive());
        assert_eq!(kind, DATA_INDICATION);
        assert!(answer.bytes(DATA).is_none(), "RFC 8656 section 11.5: ICMP stands in place of DATA");
        let icmp = answer.bytes(ICMP).unwrap();
        assert_eq!((icmp.len(), &icmp[..2]), (8, &[0, 0][..]));
        let type_and_code = u16::from_be_bytes([icmp[2], icmp[3]]);
        let error_data = [icmp[4], icmp[5], icmp[6], icmp[7]];
        (answer.address(XOR_PEER_ADDRESS).unwrap(), (type_and_code >> 9) as u8, type_and_code & 0x1ff, error_data)
    }

    /// The payload of the next ChannelData, and its number.
    pub(crate) fn receive_channel(&mut self) -> (u16, Vec<u8>) {
        let bytes = self.receive();
        let length = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
        assert_eq!(bytes.len(), 4 + length, "over UDP there is no padding");
        (u16::from_be_bytes([bytes[0], bytes[1]]), bytes[4..].to_vec())
    }

    /// Whether nothing waits to be received.
    pub(crate) fn is_silent(&self) -> bool {
        self.socket.set_nonblocking(true).unwrap();
        let received = self.socket.recv(&mut [0; 1]);
        self.socket.set_nonblocking(false).unwrap();
        received.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }

    /// The payload of the next Data indication, and its peer.
    pub(crate) fn receive_indication(&mut self) -> (SocketAddr, Vec<u8>) {
        let (kind, answer) = parse(&self.receive());
        assert_eq!(kind, DATA_INDICATION);
        (answer.address(XOR_PEER_ADDRESS).unwrap(), answer.bytes(DATA).unwrap().to_vec())
    }

    /// A request with credentials; where the server asks for a realm and a nonce, once more with those.
    fn request(&mut self, method: u16, attributes: Attributes) -> Answer {
        // An address is hidden behind its transaction, and a nonce is asked for under another one.
        if self.nonce.is_empty() {
            let first = self.ask(ALLOCATE, Vec::new(), false);
            assert_eq!(first.code, 401);
            self.realm = first.bytes(REALM).unwrap().to_vec();
            self.nonce = first.bytes(NONCE).unwrap().to_vec();
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

    fn ask(&mut self, kind: u16, attributes: Attributes, with_credentials: bool) -> Answer {
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

    pub(crate) fn send(&mut self, bytes: &[u8]) {
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

impl Answer {
    pub(crate) fn bytes(&self, kind: u16) -> Option<&[u8]> {
        self.attributes.iter().find(|(found, _)| *found == kind).map(|(_, value)| value.as_slice())
    }

    pub(crate) fn address(&self, kind: u16) -> Option<SocketAddr> {
        self.bytes(kind).map(|value| unxored(value, self.transaction))
    }
}

pub(crate) fn put(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend(kind.to_be_bytes());
    message.extend((value.len() as u16).to_be_bytes());
    message.extend(value);
    message.resize(message.len().next_multiple_of(4), 0);
    let length = (message.len() - 20) as u16;
    message[2..4].copy_from_slice(&length.to_be_bytes());
}

pub(crate) fn parse(bytes: &[u8]) -> (u16, Answer) {
    assert_eq!(bytes[4..8], COOKIE);
    let mut attributes = Vec::new();
    let mut rest = &bytes[20..];
    while !rest.is_empty() {
        let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        attributes.push((u16::from_be_bytes([rest[0], rest[1]]), rest[4..4 + length].to_vec()));
        rest = &rest[4 + length.next_multiple_of(4)..];
    }
    let mut answer = Answer { code: 0, attributes, transaction: bytes[8..20].try_into().unwrap() };
    if let Some(error) = answer.bytes(ERROR_CODE) {
        answer.code = u16::from(error[2]) * 100 + u16::from(error[3]);
    }
    (u16::from_be_bytes([bytes[0], bytes[1]]), answer)
}

/// RFC 8489 section 14.2.
pub(crate) fn xored(addr: SocketAddr, transaction: [u8; 12]) -> Vec<u8> {
    let mask = [&COOKIE[..], &transaction].concat();
    let (family, ip) = match addr.ip() {
        IpAddr::V4(ip) => (1, ip.octets().to_vec()),
        IpAddr::V6(ip) => (2, ip.octets().to_vec()),
    };
    let port = addr.port() ^ 0x2112;
    let ip = ip.iter().zip(&mask).map(|(byte, mask)| byte ^ mask);
    [0, family].into_iter().chain(port.to_be_bytes()).chain(ip).collect()
}

pub(crate) fn unxored(value: &[u8], transaction: [u8; 12]) -> SocketAddr {
    let mask = [&COOKIE[..], &transaction].concat();
    let port = u16::from_be_bytes([value[2], value[3]]) ^ 0x2112;
    let ip: Vec<u8> = value[4..].iter().zip(&mask).map(|(byte, mask)| byte ^ mask).collect();
    match value[1] {
        1 => SocketAddr::from((<[u8; 4]>::try_from(ip).unwrap(), port)),
        _ => SocketAddr::from((<[u8; 16]>::try_from(ip).unwrap(), port)),
    }
}
