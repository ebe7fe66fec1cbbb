//! A server that is wrong on purpose: a proxy to truetick that breaks one rule.
//!
//! Messages are taken apart and signed again by the text of RFC 8489; no code is shared with server or client.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use md5::{Digest as _, Md5};
use sha1::Sha1;
use sha2::Sha256;

use crate::server::{PASSWORD, USER};

const REALM: &str = "truetick";
const COOKIE: [u8; 4] = [0x21, 0x12, 0xA4, 0x42];
const MESSAGE_INTEGRITY: u16 = 0x0008;
const MESSAGE_INTEGRITY_SHA256: u16 = 0x001C;
const FINGERPRINT: u16 = 0x8028;
const XOR_MAPPED_ADDRESS: u16 = 0x0020;
const NONCE: u16 = 0x0015;
/// Interval at which threads look for the end.
const TICK: Duration = Duration::from_millis(50);

/// A STUN message in pieces.
#[derive(Clone, Debug)]
pub(super) struct Pieces {
    pub(super) kind: u16,
    pub(super) id: [u8; 12],
    /// Without integrity and FINGERPRINT.
    pub(super) attributes: Vec<(u16, Vec<u8>)>,
    /// The integrity that it had and gets again, whose value is right.
    pub(super) integrity: Option<u16>,
    pub(super) has_fingerprint: bool,
}

impl Pieces {
    fn of(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < 20 || bytes[4..8] != COOKIE || bytes[0] & 0xC0 != 0 {
            return None;
        }
        let (mut offset, mut pieces) = (20, Self::empty(bytes));
        while offset + 4 <= bytes.len() {
            let kind = u16::from_be_bytes([bytes[offset], bytes[offset + 1]]);
            let length = usize::from(u16::from_be_bytes([bytes[offset + 2], bytes[offset + 3]]));
            let value = bytes.get(offset + 4..offset + 4 + length)?.to_vec();
            let is_right = || signed(&bytes[..offset], kind) == value;
            match kind {
                MESSAGE_INTEGRITY | MESSAGE_INTEGRITY_SHA256 if pieces.integrity.is_none() && is_right() => {
                    pieces.integrity = Some(kind);
                }
                FINGERPRINT => pieces.has_fingerprint = true,
                _ => pieces.attributes.push((kind, value)),
            }
            offset += 4 + length.next_multiple_of(4);
        }
        Some(pieces)
    }

    fn empty(bytes: &[u8]) -> Self {
        let (kind, id) = (u16::from_be_bytes([bytes[0], bytes[1]]), bytes[8..20].try_into().unwrap());
        Self { kind, id, attributes: Vec::new(), integrity: None, has_fingerprint: false }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = [&self.kind.to_be_bytes()[..], &[0, 0], &COOKIE, &self.id].concat();
        self.attributes.iter().for_each(|(kind, value)| put(&mut bytes, *kind, value));
        if let Some(kind) = self.integrity {
            let value = signed(&bytes, kind);
            put(&mut bytes, kind, &value);
        }
        if self.has_fingerprint {
            set_length(&mut bytes, 8);
            let crc = tt_simd::crc32(&bytes) ^ 0x5354_554E;
            put(&mut bytes, FINGERPRINT, &crc.to_be_bytes());
        }
        set_length(&mut bytes, 0);
        bytes
    }

    /// The method without the class, as in a request's type.
    pub(super) fn method(&self) -> u16 {
        self.kind & !0x0110
    }

    pub(super) fn is_success(&self) -> bool {
        self.kind & 0x0110 == 0x0100
    }

    pub(super) fn is_request(&self) -> bool {
        self.kind & 0x0110 == 0
    }

    pub(super) fn code(&self) -> u16 {
        let error = self.value(0x0009).filter(|value| value.len() >= 4);
        error.map_or(0, |value| u16::from(value[2]) * 100 + u16::from(value[3]))
    }

    pub(super) fn value(&self, kind: u16) -> Option<&Vec<u8>> {
        self.attributes.iter().find(|(found, _)| *found == kind).map(|(_, value)| value)
    }

    pub(super) fn value_mut(&mut self, kind: u16) -> Option<&mut Vec<u8>> {
        self.attributes.iter_mut().find(|(found, _)| *found == kind).map(|(_, value)| value)
    }

    pub(super) fn remove(&mut self, kind: u16) {
        self.attributes.retain(|(found, _)| *found != kind);
    }
}

/// The integrity of a message that ends here, with the user's key.
fn signed(before: &[u8], kind: u16) -> Vec<u8> {
    let mut bytes = before.to_vec();
    let credential = format!("{USER}:{REALM}:{PASSWORD}");
    match kind {
        MESSAGE_INTEGRITY => {
            set_length(&mut bytes, 24);
            let mut mac = Hmac::<Sha1>::new_from_slice(&Md5::digest(credential)).unwrap();
            mac.update(&bytes);
            mac.finalize().into_bytes().to_vec()
        }
        _ => {
            set_length(&mut bytes, 36);
            let mut mac = Hmac::<Sha256>::new_from_slice(&Sha256::digest(credential)).unwrap();
            mac.update(&bytes);
            mac.finalize().into_bytes().to_vec()
        }
    }
}

fn put(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    bytes.extend(kind.to_be_bytes());
    bytes.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

fn set_length(bytes: &mut [u8], more: usize) {
    let length = u16::try_from(bytes.len() + more - 20).unwrap();
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
}

/// What the broken server knows of one client.
#[derive(Default)]
pub(super) struct Memory {
    /// The last nonce that it was given.
    pub(super) nonce: Vec<u8>,
    /// A number for a fault.
    pub(super) count: u32,
    /// Ids that were seen, and what they were replaced with.
    pub(super) ids: HashMap<[u8; 12], [u8; 12]>,
}

/// How a rule is broken: in requests, in responses and indications, and in their bytes.
#[derive(Clone, Copy)]
pub(super) struct Breach {
    pub(super) request: fn(&mut Pieces, &mut Memory),
    pub(super) reply: fn(&mut Pieces, &mut Memory),
    /// Bytes of the client, before they are read.
    pub(super) incoming: fn(&mut Vec<u8>),
    /// Bytes to the client.
    pub(super) outgoing: fn(&mut Vec<u8>),
}

impl Breach {
    pub(super) const NONE: Self = Self { request: |_, _| {}, reply: |_, _| {}, incoming: |_| {}, outgoing: |_| {} };
}

/// The broken server over UDP; it ends when dropped.
pub(super) struct Broken {
    pub(super) addr: SocketAddr,
    ended: Arc<AtomicBool>,
}

impl Drop for Broken {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

impl Broken {
    pub(super) fn start(target: SocketAddr, breach: Breach) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(TICK)).unwrap();
        let (addr, ended) = (socket.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let has_ended = Arc::clone(&ended);
        thread::spawn(move || forward(&socket, target, breach, &has_ended));
        Self { addr, ended }
    }
}

fn forward(socket: &UdpSocket, target: SocketAddr, breach: Breach, ended: &Arc<AtomicBool>) {
    let mut clients: HashMap<SocketAddr, (UdpSocket, Arc<Mutex<Memory>>)> = HashMap::new();
    let mut buffer = vec![0; 65_536];
    while !ended.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
        let (upstream, memory) = clients.entry(from).or_insert_with(|| {
            let upstream = UdpSocket::bind("127.0.0.1:0").unwrap();
            upstream.connect(target).unwrap();
            upstream.set_read_timeout(Some(TICK)).unwrap();
            let memory = Arc::default();
            let (to_client, from_server) = (socket.try_clone().unwrap(), upstream.try_clone().unwrap());
            let (shared, has_ended) = (Arc::clone(&memory), Arc::clone(ended));
            thread::spawn(move || answer(&from_server, (&to_client, from), breach, &shared, &has_ended));
            (upstream, memory)
        });
        let mut bytes = buffer[..length].to_vec();
        (breach.incoming)(&mut bytes);
        if let Some(mut pieces) = Pieces::of(&bytes) {
            let before = pieces.clone();
            (breach.request)(&mut pieces, &mut memory.lock().unwrap());
            // What is not changed goes on byte for byte.
            if format!("{before:?}") != format!("{pieces:?}") {
                bytes = pieces.bytes();
            }
        }
        let _ = upstream.send(&bytes);
    }
}

fn answer(
    upstream: &UdpSocket,
    (socket, client): (&UdpSocket, SocketAddr),
    breach: Breach,
    memory: &Mutex<Memory>,
    ended: &AtomicBool,
) {
    let mut buffer = vec![0; 65_536];
    while !ended.load(Ordering::Relaxed) {
        let Ok(length) = upstream.recv(&mut buffer) else { continue };
        let mut bytes = buffer[..length].to_vec();
        if let Some(mut pieces) = Pieces::of(&bytes) {
            let mut memory = memory.lock().unwrap();
            if let Some(nonce) = pieces.value(NONCE) {
                memory.nonce.clone_from(nonce);
            }
            // The client is the broken server's, not that of truetick.
            if let Some(mapped) = pieces.value_mut(XOR_MAPPED_ADDRESS) {
                let port = client.port() ^ 0x2112;
                mapped[2..4].copy_from_slice(&port.to_be_bytes());
            }
            (breach.reply)(&mut pieces, &mut memory);
            bytes = pieces.bytes();
        }
        (breach.outgoing)(&mut bytes);
        if !bytes.is_empty() {
            let _ = socket.send_to(&bytes, client);
        }
    }
}

/// A broken server over TCP that takes every read for one message, and sends ChannelData without padding.
pub(super) fn start_stream(target: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(target) else { break };
            let (back, forth) = ((server.try_clone().unwrap(), client.try_clone().unwrap()), (client, server));
            thread::spawn(move || pump(forth, is_one_message));
            thread::spawn(move || pump(back, unpad));
        }
    });
    addr
}

fn pump((mut from, mut to): (TcpStream, TcpStream), change: fn(&mut Vec<u8>)) {
    let mut buffer = vec![0; 65_536];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let mut bytes = buffer[..length].to_vec();
        change(&mut bytes);
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// Drops what is not exactly one message.
fn is_one_message(bytes: &mut Vec<u8>) {
    let length =
        usize::from(u16::from_be_bytes([bytes.get(2).copied().unwrap_or(0), bytes.get(3).copied().unwrap_or(0)]));
    let is_channel_data = bytes[0] & 0xC0 == 0x40;
    let whole = if is_channel_data { (4 + length).next_multiple_of(4) } else { 20 + length };
    if bytes.len() != whole {
        bytes.clear();
    }
}

/// Cuts the padding of ChannelData.
fn unpad(bytes: &mut Vec<u8>) {
    if bytes.len() >= 4 && bytes[0] & 0xC0 == 0x40 {
        bytes.truncate(4 + usize::from(u16::from_be_bytes([bytes[2], bytes[3]])));
    }
}
