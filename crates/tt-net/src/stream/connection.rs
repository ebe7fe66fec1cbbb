//! A client's connection over TCP or TLS, with framing and a bounded send queue.

mod greeting;
mod scratch;
mod tls_names;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use rustls::{HandshakeKind, ServerConnection};

use greeting::{GREETING, TLS_HANDSHAKE, has_whole_record};

use super::framing::{FramingFault, StreamFramer};
use super::proxy::{HeaderProgress, PROXY_HEADER_LEN_MAX, ProxyFault, ProxyHeader, Start};
use super::queue::Queue;
use super::tls::TlsIdentity;
use crate::IoFault;

pub use scratch::Scratch;
pub use tls_names::TlsNames;

/// Bytes that are read in one call, and about as many are encrypted before they are sent: a TLS record's.
const CHUNK: usize = 16 << 10;
/// Bytes that TLS decrypts at a time: a client with much to say does not make it hold more.
const DECRYPTED_MAX: usize = 4 << 10;
/// Calls of read(2) in one turn of a connection, so that one client does not keep the others waiting.
const READS: usize = 4;

/// A client's connection.
#[derive(Debug)]
pub struct Connection {
    socket: TcpStream,
    client: SocketAddr,
    server: SocketAddr,
    layer: Layer,
    framer: StreamFramer,
    queue: Queue,
    /// Whether the client has closed TLS.
    is_over: bool,
}

/// The transport below the messages, known after the first byte.
#[derive(Debug)]
enum Layer {
    Undecided,
    Plain,
    /// The first byte is that of a TLS handshake, and none of it has been read; whether its first record has come whole.
    Greeted(bool),
    Tls(Box<ServerConnection>),
}

/// The security of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// No byte was received yet.
    Undecided,
    /// TCP.
    Plain,
    /// TLS during the handshake.
    Handshake,
    /// TLS.
    Tls,
}

/// The protocols that a listener accepts.
#[derive(Clone, Copy, Debug)]
pub struct StreamRules {
    /// Whether TLS is accepted.
    pub tls: bool,
    /// Whether plain TCP is accepted.
    pub plain: bool,
    /// The longest accepted message, bytes.
    pub message_len_max: usize,
}

/// Why [`Connection::receive`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing is left; the poller returns the key when more arrives.
    Drained,
    /// More is buffered, here or in the kernel: call again.
    More,
}

/// Result of [`Connection::shake_hands`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeProgress {
    /// The client's turn; the poller returns the key when more arrives.
    Waiting,
    /// More has arrived: call again.
    More,
    /// The handshake is complete. Messages that came with its end wait for [`Connection::receive`].
    Done(Resumption),
}

/// The kind of a complete handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumption {
    /// With a signature of the certificate's key.
    Full,
    /// With the ticket of an earlier session.
    Resumed,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The client closed it.
    Client,
    /// It was reset.
    Reset,
    /// Bytes that are neither STUN nor allowed ChannelData, or plain bytes where only TLS is accepted.
    NotStun,
    /// A message longer than `message_len_max`.
    TooLong,
    /// A TLS record without a configured certificate.
    NoCertificate,
    /// TLS failed.
    Tls,
    /// A PROXY header that is missing, or that may not be.
    ProxyHeader(ProxyFault),
    /// A system call failed.
    Failed(IoFault),
}

/// Result of [`Connection::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The message is queued.
    Queued,
    /// The queue is full; no part of the message is queued.
    Full,
}

impl Connection {
    pub(super) fn new(socket: TcpStream, client: SocketAddr, server: SocketAddr) -> Self {
        let (layer, framer, queue) = (Layer::Undecided, StreamFramer::default(), Queue::default());
        Self { socket, client, server, layer, framer, queue, is_over: false }
    }

    /// The client's address; after [`Connection::read_proxy_header`] the one that the header names.
    #[must_use]
    pub const fn client(&self) -> SocketAddr {
        self.client
    }

    /// The address that it was made to: a local one, or the one that the PROXY header names.
    #[must_use]
    pub const fn server(&self) -> SocketAddr {
        self.server
    }

    /// Returns the security of the connection.
    #[must_use]
    pub fn security(&self) -> Security {
        match &self.layer {
            Layer::Undecided => Security::Undecided,
            Layer::Plain => Security::Plain,
            Layer::Greeted(_) => Security::Handshake,
            Layer::Tls(tls) if tls.is_handshaking() => Security::Handshake,
            Layer::Tls(_) => Security::Tls,
        }
    }

    /// Whether the client has sent a whole TLS record and waits for the server's handshake to begin.
    #[must_use]
    pub const fn has_whole_greeting(&self) -> bool {
        matches!(self.layer, Layer::Greeted(true))
    }

    /// Whether a whole message has come.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.framer.has_begun()
    }

    /// Bytes of messages that wait to leave.
    #[must_use]
    pub fn waiting_len(&self) -> usize {
        self.queue.front().len()
    }

    /// Whether [`Connection::flush`] has something to send.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        self.waiting_len() > 0 || matches!(&self.layer, Layer::Tls(tls) if tls.wants_write())
    }

    /// Reads the header of the PROXY protocol, with which the connection must begin, and takes the addresses of the
    /// client's connection from it. It is called first, for a connection from a balancer.
    ///
    /// # Errors
    /// [`StreamEnd::ProxyHeader`]: there is none, or it is false. Other ends as those of [`Connection::receive`].
    pub fn read_proxy_header(&mut self, scratch: &mut Scratch) -> Result<HeaderProgress, StreamEnd> {
        let bytes = &mut scratch.wire[..PROXY_HEADER_LEN_MAX];
        let len = match retry(|| self.socket.peek(bytes))? {
            None => return Ok(HeaderProgress::Waiting),
            Some(0) => return Err(StreamEnd::Client),
            Some(len) => len,
        };
        let Some(header) = ProxyHeader::parse(&bytes[..len]).map_err(StreamEnd::ProxyHeader)? else {
            return Ok(HeaderProgress::Waiting);
        };
        // All of it has arrived.
        self.socket.read_exact(&mut bytes[..header.len]).map_err(|error| end_of(&error))?;
        if let Some(proxied) = header.proxied {
            (self.client, self.server) = (proxied.source, proxied.destination);
        }
        Ok(HeaderProgress::Done)
    }

    /// Reads and hands at most `room` messages to `take`, the earliest first. What TLS has to answer goes out.
    ///
    /// Reads nothing during a TLS handshake, not even the first byte: [`Connection::shake_hands`] does.
    ///
    /// # Errors
    /// [`StreamEnd`]: everything that came before it has been handed over, and the connection is to be dropped.
    pub fn receive(
        &mut self,
        rules: StreamRules,
        scratch: &mut Scratch,
        room: usize,
        mut take: impl FnMut(&[u8]),
    ) -> Result<Progress, StreamEnd> {
        let mut room = room;
        self.hand_over(&[], rules, &mut room, &mut take)?;
        if !self.decide(rules)? {
            return Ok(Progress::Drained);
        }
        // The client may have sent messages with the end of its handshake.
        self.hand_over_decrypted(&mut scratch.plain, rules, &mut room, &mut take)?;
        for _ in 0..READS {
            if room == 0 {
                return Ok(Progress::More);
            }
            if self.is_over {
                return Err(StreamEnd::Client);
            }
            let Some(len) = read(&mut self.socket, &mut scratch.wire)? else { return Ok(Progress::Drained) };
            if matches!(self.layer, Layer::Tls(_)) {
                self.decrypt(&scratch.wire[..len], &mut scratch.plain, rules, &mut room, &mut take)?;
            } else {
                self.hand_over(&scratch.wire[..len], rules, &mut room, &mut take)?;
            }
        }
        Ok(Progress::More)
    }

    /// Queues `pieces` as one message, whole or not at all, where then no more than `queue_len_max` bytes wait. A
    /// message alone always fits. [`Connection::flush`] sends it.
    pub fn send(&mut self, pieces: &[&[u8]], queue_len_max: usize) -> Taken {
        let len: usize = pieces.iter().map(|piece| piece.len()).sum();
        let waiting = self.waiting_len();
        if waiting > 0 && waiting + len > queue_len_max {
            return Taken::Full;
        }
        pieces.iter().for_each(|piece| self.queue.bytes.extend_from_slice(piece));
        Taken::Queued
    }

    /// Sends queued bytes until the kernel's buffer is full; the poller returns the key when there is room again.
    ///
    /// # Errors
    /// [`StreamEnd`]: the connection is to be dropped, with what waits.
    pub fn flush(&mut self) -> Result<(), StreamEnd> {
        loop {
            if let Layer::Tls(tls) = &mut self.layer {
                if !encrypted_left(tls, &mut self.socket)? || tls.is_handshaking() || self.queue.is_empty() {
                    return Ok(());
                }
                let mut encrypted = 0;
                while encrypted < CHUNK && !self.queue.is_empty() {
                    let taken = tls.writer().write(self.queue.front_message()).map_err(|_| StreamEnd::Tls)?;
                    self.queue.leave(taken);
                    encrypted += taken;
                }
                continue;
            }
            if self.queue.is_empty() {
                return Ok(());
            }
            let chunk = self.queue.front();
            match self.socket.write(chunk) {
                Ok(len) => self.queue.leave(len),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(end_of(&error)),
            }
        }
    }

    /// Says goodbye where the layer has a word for it. Nothing is waited for.
    pub fn close(&mut self) {
        if let Layer::Tls(tls) = &mut self.layer {
            tls.send_close_notify();
            // The client learns of the end from TCP, too.
            let _ = tls.write_tls(&mut self.socket);
        }
    }

    /// Continues the TLS handshake with what has arrived. The caller need not be the thread that relays: a signature
    /// takes up to milliseconds. A handshake that has begun continues without an identity.
    ///
    /// # Errors
    /// [`StreamEnd`]: the connection is to be dropped. The alert has been sent.
    pub fn shake_hands(
        &mut self,
        identity: Option<&TlsIdentity>,
        scratch: &mut Scratch,
    ) -> Result<HandshakeProgress, StreamEnd> {
        if matches!(self.layer, Layer::Greeted(_)) {
            let identity = identity.ok_or(StreamEnd::Tls)?;
            self.layer = Layer::Tls(Box::new(identity.begin().map_err(|_| StreamEnd::Tls)?));
        }
        for _ in 0..READS {
            let Layer::Tls(tls) = &mut self.layer else { return Err(StreamEnd::Tls) };
            if !encrypted_left(tls, &mut self.socket)? {
                return Ok(HandshakeProgress::Waiting);
            }
            if !tls.is_handshaking() {
                return Ok(HandshakeProgress::Done(match tls.handshake_kind() {
                    Some(HandshakeKind::Resumed) => Resumption::Resumed,
                    Some(HandshakeKind::Full | HandshakeKind::FullWithHelloRetryRequest) | None => Resumption::Full,
                }));
            }
            match read(&mut self.socket, &mut scratch.wire)? {
                Some(len) => self.process(&scratch.wire[..len])?,
                None => return Ok(HandshakeProgress::Waiting),
            }
        }
        Ok(HandshakeProgress::More)
    }

    /// Looks at the first bytes without reading them; false if there is none, or during a TLS handshake. RFC 8656 section
    /// 12, table 3: neither STUN nor ChannelData begins as a TLS handshake does.
    fn decide(&mut self, rules: StreamRules) -> Result<bool, StreamEnd> {
        match &self.layer {
            Layer::Undecided => {}
            Layer::Greeted(_) => return Ok(false),
            Layer::Plain => return Ok(true),
            Layer::Tls(tls) => return Ok(!tls.is_handshaking()),
        }
        let mut first = [0; GREETING];
        let len = match retry(|| self.socket.peek(&mut first))? {
            None => return Ok(false),
            Some(0) => return Err(StreamEnd::Client),
            Some(len) => len,
        };
        match Start::of(&first[..len]) {
            Start::Signature => return Err(StreamEnd::ProxyHeader(ProxyFault::Unlisted)),
            // No message of a client begins so.
            Start::Part => return Ok(false),
            Start::Other => {}
        }
        self.layer = match (first[0] == TLS_HANDSHAKE, rules.tls) {
            (true, true) => Layer::Greeted(has_whole_record(&first[..len])),
            (true, false) => return Err(StreamEnd::NoCertificate),
            (false, _) if rules.plain => Layer::Plain,
            (false, _) => return Err(StreamEnd::NotStun),
        };
        Ok(matches!(self.layer, Layer::Plain))
    }

    fn decrypt(
        &mut self,
        wire: &[u8],
        plain: &mut [u8],
        rules: StreamRules,
        room: &mut usize,
        take: &mut impl FnMut(&[u8]),
    ) -> Result<(), StreamEnd> {
        // TLS holds decrypted bytes of one call at most.
        for wire in wire.chunks(DECRYPTED_MAX) {
            self.process(wire)?;
            self.hand_over_decrypted(plain, rules, room, take)?;
        }
        Ok(())
    }

    /// Gives TLS what has arrived, and sends what it has to answer.
    fn process(&mut self, mut wire: &[u8]) -> Result<(), StreamEnd> {
        let Layer::Tls(tls) = &mut self.layer else { return Ok(()) };
        while !wire.is_empty() && !self.is_over {
            tls.read_tls(&mut wire).map_err(|_| StreamEnd::Tls)?;
            match tls.process_new_packets() {
                Ok(state) => self.is_over = state.peer_has_closed(),
                Err(_) => {
                    // The alert that says why; the connection ends whether it leaves or not.
                    let _ = tls.write_tls(&mut self.socket);
                    return Err(StreamEnd::Tls);
                }
            }
            encrypted_left(tls, &mut self.socket)?;
        }
        Ok(())
    }

    fn hand_over_decrypted(
        &mut self,
        plain: &mut [u8],
        rules: StreamRules,
        room: &mut usize,
        take: &mut impl FnMut(&[u8]),
    ) -> Result<(), StreamEnd> {
        loop {
            let Layer::Tls(tls) = &mut self.layer else { return Ok(()) };
            match tls.reader().read(plain) {
                Ok(0) => return Ok(()),
                Ok(len) => self.hand_over(&plain[..len], rules, room, take)?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(_) => return Err(StreamEnd::Tls),
            }
        }
    }

    /// Gives `take` the whole messages, as long as there is room, and keeps the rest.
    fn hand_over(
        &mut self,
        mut fresh: &[u8],
        rules: StreamRules,
        room: &mut usize,
        take: &mut impl FnMut(&[u8]),
    ) -> Result<(), StreamEnd> {
        while *room > 0 {
            match self.framer.next(&mut fresh, rules.message_len_max) {
                Ok(Some(message)) => take(message),
                Ok(None) => return Ok(()),
                Err(FramingFault::NotStun | FramingFault::Length) => return Err(StreamEnd::NotStun),
                Err(FramingFault::TooLong) => return Err(StreamEnd::TooLong),
            }
            *room -= 1;
        }
        if !fresh.is_empty() {
            self.framer.hold(fresh);
        }
        Ok(())
    }
}

/// Sends what TLS has encrypted; whether all of it has left.
fn encrypted_left(tls: &mut ServerConnection, socket: &mut TcpStream) -> Result<bool, StreamEnd> {
    while tls.wants_write() {
        match tls.write_tls(socket) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(end_of(&error)),
        }
    }
    Ok(true)
}

/// Reads once; `None` if nothing has arrived.
fn read(socket: &mut TcpStream, bytes: &mut [u8]) -> Result<Option<usize>, StreamEnd> {
    match retry(|| socket.read(bytes))? {
        Some(0) => Err(StreamEnd::Client),
        len => Ok(len),
    }
}

/// Repeats `call` while a signal interrupts it; `None` if it would block.
fn retry(mut call: impl FnMut() -> io::Result<usize>) -> Result<Option<usize>, StreamEnd> {
    loop {
        match call() {
            Ok(len) => return Ok(Some(len)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(end_of(&error)),
        }
    }
}

fn end_of(error: &io::Error) -> StreamEnd {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the kernel has a hundred codes; what is not named is Failed")]
    match error.kind() {
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::TimedOut
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable => StreamEnd::Reset,
        _ => StreamEnd::Failed(IoFault::of(error)),
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests;
