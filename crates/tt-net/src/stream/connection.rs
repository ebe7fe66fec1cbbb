//! A client's connection over TCP or TLS, with framing and a bounded send queue.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use rustls::ServerConnection;

use super::framing::{Framed, FramingFault, StreamFramer, Turn, frame};
use super::tls::TlsIdentity;
use crate::IoFault;

/// The first byte of a TLS record that carries a handshake (RFC 8446 section 5.1). No STUN message of any method that
/// there is begins with it.
const TLS_HANDSHAKE: u8 = 0x16;
/// Bytes that are read in one call, and about as many are encrypted before they are sent: a TLS record's.
const CHUNK: usize = 16 << 10;
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
pub struct StreamRules<'a> {
    /// The certificate, if TLS is accepted.
    pub identity: Option<&'a TlsIdentity>,
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

/// Buffers for one call, shared by all connections of a thread.
#[derive(Debug)]
pub struct Scratch {
    wire: Box<[u8]>,
    plain: Box<[u8]>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self { wire: vec![0; CHUNK].into(), plain: vec![0; CHUNK].into() }
    }
}

/// Unsent bytes of messages.
#[derive(Debug, Default)]
struct Queue {
    bytes: Vec<u8>,
    /// Bytes at the front that have left.
    sent: usize,
}

impl Connection {
    pub(super) fn new(socket: TcpStream, client: SocketAddr, server: SocketAddr) -> Self {
        let (layer, framer, queue) = (Layer::Undecided, StreamFramer::default(), Queue::default());
        Self { socket, client, server, layer, framer, queue, is_over: false }
    }

    /// The client's address.
    #[must_use]
    pub const fn client(&self) -> SocketAddr {
        self.client
    }

    /// The local address that it was made to.
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
            Layer::Tls(tls) if tls.is_handshaking() => Security::Handshake,
            Layer::Tls(_) => Security::Tls,
        }
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

    /// Reads and hands at most `room` messages to `take`, the earliest first. What TLS has to answer goes out.
    ///
    /// # Errors
    /// [`StreamEnd`]: everything that came before it has been handed over, and the connection is to be dropped.
    pub fn receive(
        &mut self,
        rules: &StreamRules<'_>,
        scratch: &mut Scratch,
        room: usize,
        mut take: impl FnMut(&[u8]),
    ) -> Result<Progress, StreamEnd> {
        let mut room = room;
        self.hand_over(&[], rules, &mut room, &mut take)?;
        for _ in 0..READS {
            if room == 0 {
                return Ok(Progress::More);
            }
            if self.is_over {
                return Err(StreamEnd::Client);
            }
            let len = match self.socket.read(&mut scratch.wire) {
                Ok(0) => return Err(StreamEnd::Client),
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Progress::Drained),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(end_of(&error)),
            };
            self.decide(scratch.wire[0], rules)?;
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

    /// RFC 8656 section 12, table 3: neither STUN nor ChannelData begins as a TLS handshake does.
    fn decide(&mut self, first: u8, rules: &StreamRules<'_>) -> Result<(), StreamEnd> {
        if !matches!(self.layer, Layer::Undecided) {
            return Ok(());
        }
        self.layer = match (first == TLS_HANDSHAKE, rules.identity) {
            (true, Some(identity)) => Layer::Tls(Box::new(identity.begin().map_err(|_| StreamEnd::Tls)?)),
            (true, None) => return Err(StreamEnd::NoCertificate),
            (false, _) if rules.plain => Layer::Plain,
            (false, _) => return Err(StreamEnd::NotStun),
        };
        Ok(())
    }

    fn decrypt(
        &mut self,
        mut wire: &[u8],
        plain: &mut [u8],
        rules: &StreamRules<'_>,
        room: &mut usize,
        take: &mut impl FnMut(&[u8]),
    ) -> Result<(), StreamEnd> {
        while !wire.is_empty() {
            let Layer::Tls(tls) = &mut self.layer else { return Ok(()) };
            tls.read_tls(&mut wire).map_err(|_| StreamEnd::Tls)?;
            let state = match tls.process_new_packets() {
                Ok(state) => state,
                Err(_) => {
                    // The alert that says why; the connection ends whether it leaves or not.
                    let _ = tls.write_tls(&mut self.socket);
                    return Err(StreamEnd::Tls);
                }
            };
            encrypted_left(tls, &mut self.socket)?;
            loop {
                let Layer::Tls(tls) = &mut self.layer else { return Ok(()) };
                match tls.reader().read(plain) {
                    Ok(0) => break,
                    Ok(len) => self.hand_over(&plain[..len], rules, room, take)?,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(_) => return Err(StreamEnd::Tls),
                }
            }
            if state.peer_has_closed() {
                self.is_over = true;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Gives `take` the whole messages, as long as there is room, and keeps the rest.
    fn hand_over(
        &mut self,
        mut fresh: &[u8],
        rules: &StreamRules<'_>,
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

impl Queue {
    fn is_empty(&self) -> bool {
        self.sent == self.bytes.len()
    }

    /// The unsent bytes.
    fn front(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// The next message to send, with its padding. It gets a separate TLS record, because some clients take a record
    /// for a message.
    fn front_message(&self) -> &[u8] {
        let waiting = self.front();
        match frame(waiting, Turn::Later) {
            Ok(Framed::Whole { len, padding }) => &waiting[..waiting.len().min(len + padding)],
            Ok(Framed::Part { .. }) | Err(_) => waiting,
        }
    }

    fn leave(&mut self, len: usize) {
        self.sent += len;
        if self.sent == self.bytes.len() {
            // A connection that has nothing to send holds no memory for it.
            *self = Self::default();
        } else if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
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
