//! A TURN client over TCP or TLS, written from RFC 8489 and RFC 8656: framing and padding are its own.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use sha1::Sha1;
use socket2::{Domain, Socket, Type};

use crate::server::{PASSWORD, USER};
use testkit::turn_client::{
    ALLOCATE, BINDING, CHANNEL_BIND, CHANNEL_NUMBER, COOKIE, CREATE_PERMISSION, DATA, DATA_INDICATION, LIFETIME,
    MESSAGE_INTEGRITY, NONCE, ORIGIN, REALM, REFRESH, REQUESTED_TRANSPORT, RESERVATION_TOKEN, Response,
    SEND_INDICATION, USERNAME, XOR_MAPPED_ADDRESS, XOR_PEER_ADDRESS, XOR_RELAYED_ADDRESS, parse, put, xored,
};

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A client on a separate connection.
pub(crate) struct StreamClient<S> {
    pub(crate) stream: S,
    username: String,
    password: String,
    realm: Vec<u8>,
    nonce: Vec<u8>,
    origin: Option<Vec<u8>>,
    transaction: u64,
    /// Messages that it has sent.
    pub(crate) sent: u64,
}

pub(crate) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// A connection to `server` from the address `host` of loopback.
pub(crate) fn connect_from(host: [u8; 4], server: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.bind(&SocketAddr::from((host, 0)).into()).unwrap();
    socket.connect(&server.into()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.into()
}

pub(crate) fn connect(server: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// TLS to `server`, with the handshake done, or what went wrong with it.
pub(crate) fn connect_tls(server: SocketAddr, config: &Arc<ClientConfig>) -> std::io::Result<TlsStream> {
    shake_hands(connect(server), config)
}

/// A client of `server` that has said nothing yet.
pub(crate) fn tls_to(server: SocketAddr, config: &Arc<ClientConfig>) -> ClientConnection {
    let name = ServerName::try_from(server.ip().to_string()).unwrap();
    ClientConnection::new(Arc::clone(config), name).unwrap()
}

/// TLS over a connection.
pub(crate) fn shake_hands(connection: TcpStream, config: &Arc<ClientConfig>) -> std::io::Result<TlsStream> {
    let tls = tls_to(connection.peer_addr()?, config);
    let mut stream = StreamOwned::new(tls, connection);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    Ok(stream)
}

impl<S: Read + Write> StreamClient<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self::of_user(stream, USER, PASSWORD)
    }

    pub(crate) fn of_user(stream: S, username: &str, password: &str) -> Self {
        let (username, password) = (username.to_owned(), password.to_owned());
        let (realm, nonce) = (Vec::new(), Vec::new());
        Self { stream, username, password, realm, nonce, origin: None, transaction: 0, sent: 0 }
    }

    /// Sends ORIGIN in the first request, which has no credentials.
    pub(crate) fn of_origin(mut self, origin: &str) -> Self {
        self.origin = Some(origin.as_bytes().to_vec());
        self
    }

    /// Takes other credentials for all later requests.
    pub(crate) fn log_in_as(&mut self, realm: &str, username: &str, password: &str) {
        self.realm = realm.as_bytes().to_vec();
        (self.username, self.password) = (username.to_owned(), password.to_owned());
    }

    /// The realm of a 401 to a first request.
    pub(crate) fn challenge(&mut self) -> String {
        let origin: Vec<_> = self.origin.iter().map(|origin| (ORIGIN, origin.clone())).collect();
        let first = self.ask(ALLOCATE, &|_| origin.clone(), false);
        assert_eq!(first.code, 401);
        self.realm = first.bytes(REALM).unwrap().to_vec();
        self.nonce = first.bytes(NONCE).unwrap().to_vec();
        String::from_utf8(self.realm.clone()).unwrap()
    }

    /// Allocates and ends the allocation.
    pub(crate) fn log_in(&mut self) -> Result<(), u16> {
        self.allocate()?;
        match self.refresh(0) {
            0 => Ok(()),
            code => Err(code),
        }
    }

    /// The address that the server sees.
    pub(crate) fn binding(&mut self) -> SocketAddr {
        self.ask(BINDING, &|_| Vec::new(), false).address(XOR_MAPPED_ADDRESS).unwrap()
    }

    /// Allocates, and returns the relayed address or the error's code.
    pub(crate) fn allocate(&mut self) -> Result<SocketAddr, u16> {
        let answer = self.request(ALLOCATE, &|_| vec![(REQUESTED_TRANSPORT, vec![17, 0, 0, 0])]);
        if answer.code == 0 { Ok(answer.address(XOR_RELAYED_ADDRESS).unwrap()) } else { Err(answer.code) }
    }

    /// Allocates with an attribute more, and returns the relayed address and the token of a reservation, or the code.
    pub(crate) fn allocate_with(&mut self, kind: u16, value: &[u8]) -> Result<(SocketAddr, Option<Vec<u8>>), u16> {
        let attributes = |_| vec![(REQUESTED_TRANSPORT, vec![17, 0, 0, 0]), (kind, value.to_vec())];
        let answer = self.request(ALLOCATE, &attributes);
        if answer.code != 0 {
            return Err(answer.code);
        }
        Ok((answer.address(XOR_RELAYED_ADDRESS).unwrap(), answer.bytes(RESERVATION_TOKEN).map(<[u8]>::to_vec)))
    }

    pub(crate) fn refresh(&mut self, lifetime_s: u32) -> u16 {
        self.request(REFRESH, &|_| vec![(LIFETIME, lifetime_s.to_be_bytes().to_vec())]).code
    }

    pub(crate) fn permit(&mut self, peer: SocketAddr) -> u16 {
        self.request(CREATE_PERMISSION, &|id| vec![(XOR_PEER_ADDRESS, xored(peer, id))]).code
    }

    pub(crate) fn bind_channel(&mut self, number: u16, peer: SocketAddr) -> u16 {
        let number = [number.to_be_bytes(), [0, 0]].concat();
        self.request(CHANNEL_BIND, &|id| vec![(CHANNEL_NUMBER, number.clone()), (XOR_PEER_ADDRESS, xored(peer, id))])
            .code
    }

    /// RFC 8656 section 12.5: padded to four bytes, and the padding is not counted.
    pub(crate) fn send_channel(&mut self, number: u16, payload: &[u8]) {
        let message = [&number.to_be_bytes()[..], &(payload.len() as u16).to_be_bytes(), payload].concat();
        self.send(&[&message[..], &vec![0; (4 - message.len() % 4) % 4]].concat());
    }

    pub(crate) fn send_indication(&mut self, peer: SocketAddr, payload: &[u8]) {
        let attributes = |id| vec![(XOR_PEER_ADDRESS, xored(peer, id)), (DATA, payload.to_vec())];
        let message = self.message(SEND_INDICATION, &attributes, false);
        self.send(&message);
    }

    /// The payload of the next ChannelData, and its number.
    pub(crate) fn receive_channel(&mut self) -> (u16, Vec<u8>) {
        let bytes = self.receive().expect("a message in time");
        assert_eq!(bytes[0] >> 6, 0b01, "no ChannelData");
        (u16::from_be_bytes([bytes[0], bytes[1]]), bytes[4..].to_vec())
    }

    /// The payload of the next Data indication, and its peer.
    pub(crate) fn receive_indication(&mut self) -> (SocketAddr, Vec<u8>) {
        let (kind, answer) = parse(&self.receive().expect("a message in time"));
        assert_eq!(kind, DATA_INDICATION);
        (answer.address(XOR_PEER_ADDRESS).unwrap(), answer.bytes(DATA).unwrap().to_vec())
    }

    /// The next message, ChannelData without its padding; `None` where the server has closed the connection.
    pub(crate) fn receive(&mut self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; 4];
        if let Err(error) = self.stream.read_exact(&mut bytes) {
            let is_closed = matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset);
            assert!(is_closed, "nothing comes: {error}");
            return None;
        }
        let length = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
        let is_channel_data = bytes[0] >> 6 == 0b01;
        let len = if is_channel_data { 4 + length.next_multiple_of(4) } else { 20 + length };
        bytes.resize(len, 0);
        self.stream.read_exact(&mut bytes[4..]).expect("the rest of a message");
        if is_channel_data {
            assert!(bytes[4 + length..].iter().all(|byte| *byte == 0), "padding says nothing");
            bytes.truncate(4 + length);
        }
        Some(bytes)
    }

    pub(crate) fn send(&mut self, message: &[u8]) {
        self.write(message);
        self.sent += 1;
    }

    /// Bytes that need not be a message.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
        self.stream.flush().unwrap();
    }

    /// A Binding request with a new transaction id.
    pub(crate) fn binding_request(&mut self) -> Vec<u8> {
        self.message(BINDING, &|_| Vec::new(), false)
    }

    fn request(&mut self, method: u16, attributes: &dyn Fn([u8; 12]) -> Vec<(u16, Vec<u8>)>) -> Response {
        if self.nonce.is_empty() {
            self.challenge();
        }
        self.ask(method, attributes, true)
    }

    fn ask(&mut self, kind: u16, attributes: &dyn Fn([u8; 12]) -> Vec<(u16, Vec<u8>)>, is_signed: bool) -> Response {
        let message = self.message(kind, attributes, is_signed);
        self.send(&message);
        let bytes = self.receive().expect("an answer");
        assert_eq!(bytes[8..20], message[8..20], "the answer to another request");
        let (answer_kind, answer) = parse(&bytes);
        assert_eq!((answer_kind & !0x0110, answer_kind & 0x0100), (kind, 0x0100));
        answer
    }

    fn message(&mut self, kind: u16, attributes: &dyn Fn([u8; 12]) -> Vec<(u16, Vec<u8>)>, is_signed: bool) -> Vec<u8> {
        self.transaction += 1;
        let mut id = [0x3c; 12];
        id[4..].copy_from_slice(&self.transaction.to_be_bytes());
        let mut message = [&kind.to_be_bytes()[..], &[0, 0], &COOKIE, &id].concat();
        for (kind, value) in attributes(id) {
            put(&mut message, kind, &value);
        }
        if is_signed {
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
}
