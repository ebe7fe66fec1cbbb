//! A server in front of its cases: callers whose datagrams are counted, the counters, and the probe.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::way::Way;
use crate::server::{PASSWORD, Server, USER};
use crate::wire::{self, Reading, Writer};

pub(crate) const UDP: [u8; 4] = [17, 0, 0, 0];
pub(crate) const REALM: &str = "truetick";
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A server of four workers on both loopbacks that lets relays reach loopback.
pub(crate) struct Stage {
    pub(crate) server: Server,
    /// Datagrams that everybody has sent to the server or its relays.
    sent: Rc<Cell<u64>>,
}

/// What the server has counted once it has seen all that was sent.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) out: u64,
    pub(crate) dropped: u64,
    pub(crate) drops: BTreeMap<String, u64>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(flags: &[&str]) -> Self {
        let open = ["--allow-own-host", "127.0.0.0/8", "--allow-own-host", "::1/128"];
        Self::closed(&[&open[..], flags].concat())
    }

    /// The same with the peers that are denied by default.
    pub(crate) fn closed(flags: &[&str]) -> Self {
        let on = ["--listen", "127.0.0.1:0", "--listen", "[::1]:0", "--workers", "4", "--http", "127.0.0.1:0"];
        Self::of(Server::start(&[&on[..], flags].concat()))
    }

    pub(crate) fn of(server: Server) -> Self {
        Self { server, sent: Rc::default() }
    }

    pub(crate) fn caller(&self) -> Caller {
        self.caller_from("127.0.0.1".parse().unwrap())
    }

    pub(crate) fn caller_v6(&self) -> Caller {
        self.caller_from("::1".parse().unwrap())
    }

    /// A client on one of this machine's addresses.
    pub(crate) fn caller_from(&self, local: IpAddr) -> Caller {
        let sent = Rc::clone(&self.sent);
        let socket = Way::to(&self.server, local);
        Caller { socket, sent, name: USER.to_owned(), password: PASSWORD.to_owned(), nonce: Vec::new(), count: 0 }
    }

    pub(crate) fn peer(&self) -> Peer {
        Peer::bind("127.0.0.1:0", &self.sent)
    }

    pub(crate) fn peer_v6(&self) -> Peer {
        Peer::bind("[::1]:0", &self.sent)
    }

    /// `GET path` as JSON.
    pub(crate) fn get(&self, path: &str) -> Value {
        serde_json::from_str(&self.text(path)).unwrap()
    }

    pub(crate) fn text(&self, path: &str) -> String {
        let http = self.server.http.unwrap();
        let mut stream = TcpStream::connect(http).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {http}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// Waits until the server has counted all that was sent, and that it closes.
    pub(crate) fn ledger(&self) -> Ledger {
        let started = Instant::now();
        loop {
            let ledger = self.get("/api/v1/turn/drops");
            if ledger["in"] == self.sent.get() && ledger["closes"] == true {
                let named = ledger["drops"].as_array().unwrap().iter();
                let drops =
                    named.map(|drop| (drop["name"].as_str().unwrap().to_owned(), drop["count"].as_u64().unwrap()));
                let (out, dropped) = (ledger["out"].as_u64().unwrap(), ledger["dropped"].as_u64().unwrap());
                return Ledger { out, dropped, drops: drops.collect() };
            }
            assert!(started.elapsed() < PATIENCE, "{} were sent: {ledger}", self.sent.get());
            testkit::pause();
        }
    }

    /// Sends `datagrams` from `caller`: each is dropped under one of `names`, and nothing comes back.
    pub(crate) fn dropped(&self, caller: &Caller, names: &[&str], datagrams: &[Vec<u8>]) {
        let before = self.ledger();
        datagrams.iter().for_each(|datagram| caller.send(datagram));
        let after = self.ledger();
        let count = datagrams.len() as u64;
        let named = |ledger: &Ledger| names.iter().map(|name| ledger.drops[*name]).sum::<u64>();
        assert_eq!(named(&after), named(&before) + count, "{names:?}: {after:?}");
        assert_eq!((after.dropped, after.out), (before.dropped + count, before.out), "{after:?}");
        assert!(caller.hears_nothing());
    }

    /// A Binding and an authenticated echo through a relay still pass, by indication and by channel.
    pub(crate) fn probe(&self) {
        let mut caller = self.caller();
        let binding = caller.request(wire::BINDING);
        let mapped = caller.exchange(&binding.0).address(wire::MAPPED_ADDRESS);
        assert_eq!(mapped, Some(caller.socket.local_addr().unwrap()));
        let relayed = caller.allocate();
        let peer = self.peer();
        assert_eq!(caller.bind(0x4000, peer.addr()), 0);
        caller.send_to(peer.addr(), b"out");
        assert_eq!(peer.receive(), (b"out".to_vec(), relayed));
        peer.send(relayed, b"back");
        assert_eq!(caller.receive(), [0x40, 0, 0, 4, b'b', b'a', b'c', b'k']);
        assert_eq!(caller.refresh(0), 0);
    }
}

/// A client of the server, with a separate socket.
pub(crate) struct Caller {
    pub(crate) socket: Way,
    sent: Rc<Cell<u64>>,
    pub(crate) name: String,
    pub(crate) password: String,
    pub(crate) nonce: Vec<u8>,
    count: u64,
}

impl Caller {
    /// A request with the next transaction identifier.
    pub(crate) fn request(&mut self, method: u16) -> Writer {
        Writer::new(method, 0, self.next_transaction())
    }

    pub(crate) fn indication(&mut self, method: u16) -> Writer {
        Writer::new(method, 1, self.next_transaction())
    }

    fn next_transaction(&mut self) -> [u8; 12] {
        self.count += 1;
        let mut id = [0x5A; 12];
        id[4..].copy_from_slice(&self.count.to_be_bytes());
        id
    }

    pub(crate) fn key(&self) -> [u8; 16] {
        wire::md5_key(&self.name, REALM, &self.password)
    }

    pub(crate) fn send(&self, datagram: &[u8]) {
        self.socket.send(datagram);
        self.sent.set(self.sent.get() + 1);
    }

    pub(crate) fn receive(&self) -> Vec<u8> {
        self.socket.receive()
    }

    /// Whether nothing waits to be read.
    pub(crate) fn hears_nothing(&self) -> bool {
        self.socket.hears_nothing()
    }

    /// Sends a request and reads its answer.
    pub(crate) fn exchange(&self, request: &[u8]) -> Reading {
        self.send(request);
        let reply = Reading::of(&self.receive());
        assert_eq!(reply.tid, request[8..20], "the answer to another request");
        assert_eq!((reply.bytes[0] & !1, reply.bytes[1] & !0x10), (request[0], request[1]), "to another method");
        assert!(reply.class >= 2, "no answer");
        reply
    }

    /// A nonce from a 401.
    pub(crate) fn fresh_nonce(&mut self) -> Vec<u8> {
        let bare = self.request(wire::REFRESH);
        let reply = self.exchange(&bare.0);
        assert_eq!((reply.code(), reply.get(wire::REALM)), (401, Some(REALM.as_bytes())));
        reply.get(wire::NONCE).unwrap().to_vec()
    }

    /// `request` with everything but its integrity.
    pub(crate) fn named(&mut self, request: Writer) -> Writer {
        if self.nonce.is_empty() {
            self.nonce = self.fresh_nonce();
        }
        let named = request.attr(wire::USERNAME, self.name.as_bytes()).attr(wire::REALM, REALM.as_bytes());
        named.attr(wire::NONCE, &self.nonce)
    }

    pub(crate) fn signed(&mut self, request: Writer) -> Writer {
        let key = self.key();
        self.named(request).integrity(&key)
    }

    /// Asks with credentials; the answer is signed.
    pub(crate) fn ask(&mut self, request: Writer) -> Reading {
        let request = self.signed(request).0;
        let reply = self.exchange(&request);
        assert!(reply.is_signed(&self.key()), "{reply:?}");
        reply
    }

    pub(crate) fn allocate(&mut self) -> SocketAddr {
        let family = if self.socket.local_addr().unwrap().is_ipv4() { 1 } else { 2 };
        let request = self.request(wire::ALLOCATE).attr(wire::TRANSPORT, &UDP);
        let reply = self.ask(request.attr(wire::ADDRESS_FAMILY, &[family, 0, 0, 0]));
        assert_eq!(reply.code(), 0);
        reply.address(wire::RELAYED_ADDRESS).unwrap()
    }

    pub(crate) fn refresh(&mut self, lifetime_s: u32) -> u16 {
        let request = self.request(wire::REFRESH).attr(wire::LIFETIME, &lifetime_s.to_be_bytes());
        self.ask(request).code()
    }

    pub(crate) fn permit(&mut self, peer: SocketAddr) -> u16 {
        let request = self.request(wire::CREATE_PERMISSION).address(wire::PEER_ADDRESS, peer);
        self.ask(request).code()
    }

    pub(crate) fn bind(&mut self, number: u16, peer: SocketAddr) -> u16 {
        let number = [number.to_be_bytes(), [0, 0]].concat();
        let request = self.request(wire::CHANNEL_BIND).attr(wire::CHANNEL_NUMBER, &number);
        self.ask(request.address(wire::PEER_ADDRESS, peer)).code()
    }

    /// A Send indication's bytes.
    pub(crate) fn send_indication(&mut self, peer: SocketAddr, payload: &[u8]) -> Vec<u8> {
        self.indication(wire::SEND).address(wire::PEER_ADDRESS, peer).attr(wire::DATA, payload).0
    }

    pub(crate) fn send_to(&mut self, peer: SocketAddr, payload: &[u8]) {
        let indication = self.send_indication(peer, payload);
        self.send(&indication);
    }
}

/// Somebody whom a relay reaches.
pub(crate) struct Peer {
    socket: UdpSocket,
    sent: Rc<Cell<u64>>,
}

impl Peer {
    fn bind(local: &str, sent: &Rc<Cell<u64>>) -> Self {
        let socket = UdpSocket::bind(local).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket, sent: Rc::clone(sent) }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    pub(crate) fn send(&self, relayed: SocketAddr, payload: &[u8]) {
        self.socket.send_to(payload, relayed).unwrap();
        self.sent.set(self.sent.get() + 1);
    }

    pub(crate) fn receive(&self) -> (Vec<u8>, SocketAddr) {
        let mut bytes = vec![0; 65_536];
        let (length, from) = self.socket.recv_from(&mut bytes).expect("a datagram in time");
        bytes.truncate(length);
        (bytes, from)
    }
}
