//! permessage-deflate (RFC 7692) before a WebSocket library that knows no extensions: what a venue sends packed goes on
//! as the same messages unpacked. Nothing that the client sends is packed.
//!
//! Every length is bounded before anything is kept: the head of the venue's answer, a packed frame, and what a message
//! is unpacked to, so that a small frame cannot become a large one.

mod stream;

use std::fmt;

use flate2::{Decompress, FlushDecompress, Status};

pub(super) use stream::Unpacking;

/// The longest head of an answer, bytes. Venues' are below 2 KiB.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// What an unpacked message grows by at a time, bytes.
const CHUNK_BYTES: usize = 16 << 10;
/// What a sender leaves out at the end of a message (RFC 7692 section 7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];
/// Bytes of the longest header of a frame: two, eight of length, four of a mask.
const FRAME_HEAD_BYTES_MAX: usize = 14;

const FINAL: u8 = 0x80;
const PACKED: u8 = 0x40;
const CONTROL: u8 = 0x08;
const OPCODE: u8 = 0x0f;
const MASKED: u8 = 0x80;

/// Why a connection cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The head of the answer has no end within 16 KiB.
    Head,
    /// The venue uses an extension, or a parameter of one, that was not offered (RFC 6455 section 4.1).
    Extension,
    /// A packed frame, or what a message is unpacked to, is longer than is taken.
    TooLong,
    /// What is packed cannot be unpacked.
    Corrupt,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head => "the head of the answer is too long",
            Self::Extension => "an extension that was not offered",
            Self::TooLong => "a packed message is too long",
            Self::Corrupt => "a packed message cannot be unpacked",
        })
    }
}

impl std::error::Error for Fault {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Within the head of the answer.
    Head,
    /// Nothing is packed: bytes go on as they are.
    Plain,
    /// Within the header of a frame.
    FrameHead,
    /// Within a frame that goes on as it is, with so many bytes left.
    Passing(u64),
    /// Within a packed frame, with so many bytes left.
    Unpacking(u64),
}

/// The venue's bytes, from the first of its answer on.
#[derive(Debug)]
pub struct Unpacker {
    state: State,
    is_offered: bool,
    message_bytes_max: usize,
    head: Vec<u8>,
    frame_head: [u8; FRAME_HEAD_BYTES_MAX],
    frame_head_len: usize,
    inflater: Decompress,
    /// Whether each message is packed by itself.
    is_fresh_each: bool,
    /// The first byte of the packed message's first frame; zero between messages.
    first: u8,
    is_final: bool,
    message: Vec<u8>,
}

impl Unpacker {
    /// Messages of up to `message_bytes_max` bytes, packed only where that `is_offered`.
    #[must_use]
    pub fn new(is_offered: bool, message_bytes_max: usize) -> Self {
        Self {
            state: State::Head,
            is_offered,
            message_bytes_max,
            head: Vec::new(),
            frame_head: [0; FRAME_HEAD_BYTES_MAX],
            frame_head_len: 0,
            inflater: Decompress::new(false),
            is_fresh_each: false,
            first: 0,
            is_final: false,
            message: Vec::new(),
        }
    }

    /// Whether bytes go on as they are from here on.
    pub(super) fn is_plain(&self) -> bool {
        self.state == State::Plain
    }

    /// Takes the venue's next bytes; what the library is to read is added to `out`.
    ///
    /// # Errors
    /// The connection cannot go on.
    pub fn take(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        while !bytes.is_empty() {
            let taken = match self.state {
                State::Head => self.take_head(bytes, out)?,
                State::Plain => {
                    out.extend_from_slice(bytes);
                    bytes.len()
                }
                State::FrameHead => self.take_frame_head(bytes, out)?,
                State::Passing(left) => {
                    let len = part(left, bytes);
                    out.extend_from_slice(&bytes[..len]);
                    self.leave(State::Passing, left - len as u64);
                    len
                }
                State::Unpacking(left) => {
                    let len = part(left, bytes);
                    self.inflate(&bytes[..len])?;
                    self.leave(State::Unpacking, left - len as u64);
                    self.end_frame(out)?;
                    len
                }
            };
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    /// Goes on with `left` bytes of a frame, or with the next frame.
    fn leave(&mut self, state: fn(u64) -> State, left: u64) {
        self.state = if left == 0 { State::FrameHead } else { state(left) };
    }

    fn take_head(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, Fault> {
        let before = self.head.len();
        let room = HEAD_BYTES_MAX - before;
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let Some(end) = self.head.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4) else {
            if self.head.len() == HEAD_BYTES_MAX {
                return Err(Fault::Head);
            }
            out.extend_from_slice(bytes);
            return Ok(bytes.len());
        };
        let taken = end - before;
        out.extend_from_slice(&bytes[..taken]);
        self.state = self.after_head(end)?;
        self.head = Vec::new();
        Ok(taken)
    }

    /// What follows the head: frames that may be packed only where the venue takes the offer.
    fn after_head(&mut self, end: usize) -> Result<State, Fault> {
        let head = String::from_utf8_lossy(&self.head[..end]);
        let mut lines = head.lines();
        let is_switched = lines.next().is_some_and(|line| line.split(' ').nth(1) == Some("101"));
        let mut state = State::Plain;
        let is_extensions = |name: &str| name.trim().eq_ignore_ascii_case("sec-websocket-extensions");
        let fields = lines.filter_map(|line| line.split_once(':'));
        for (_, value) in fields.filter(|(name, _)| is_switched && is_extensions(name)) {
            let mut words = value.split(';').map(str::trim);
            if !self.is_offered || state != State::Plain || words.next() != Some("permessage-deflate") {
                return Err(Fault::Extension);
            }
            state = State::FrameHead;
            for word in words {
                match word.split('=').next().map(str::trim) {
                    Some("server_no_context_takeover") => self.is_fresh_each = true,
                    // A smaller window needs no other memory here; the client packs nothing.
                    Some("server_max_window_bits" | "client_no_context_takeover") => {}
                    Some(_) | None => return Err(Fault::Extension),
                }
            }
        }
        Ok(state)
    }

    fn take_frame_head(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, Fault> {
        let mut taken = 0;
        while self.frame_head_len < self.frame_head_want() {
            let Some(byte) = bytes.get(taken) else { return Ok(taken) };
            self.frame_head[self.frame_head_len] = *byte;
            self.frame_head_len += 1;
            taken += 1;
        }
        let first = self.frame_head[0];
        let is_control = first & CONTROL != 0;
        let begins = !is_control && first & PACKED != 0 && first & OPCODE != 0;
        let continues = !is_control && first & (PACKED | OPCODE) == 0 && self.first != 0;
        let len = self.payload_len();
        let is_masked = self.frame_head[1] & MASKED != 0;
        // What breaks the rules goes on as it is: the library knows what to say.
        if (begins && self.first == 0 || continues) && !is_masked {
            if len > self.message_bytes_max as u64 {
                return Err(Fault::TooLong);
            }
            if begins {
                self.first = first;
            }
            self.is_final = first & FINAL != 0;
            self.leave(State::Unpacking, len);
            self.frame_head_len = 0;
            self.end_frame(out)?;
        } else {
            out.extend_from_slice(&self.frame_head[..self.frame_head_len]);
            self.leave(State::Passing, len);
            self.frame_head_len = 0;
        }
        Ok(taken)
    }

    /// Bytes of the frame's header, as far as they are known to come.
    fn frame_head_want(&self) -> usize {
        if self.frame_head_len < 2 {
            return 2;
        }
        let mask = if self.frame_head[1] & MASKED != 0 { 4 } else { 0 };
        mask + match self.frame_head[1] & !MASKED {
            126 => 4,
            127 => 10,
            _ => 2,
        }
    }

    fn payload_len(&self) -> u64 {
        let [_, second, rest @ ..] = &self.frame_head;
        match second & !MASKED {
            126 => u64::from(u16::from_be_bytes([rest[0], rest[1]])),
            127 => rest.first_chunk().map_or(0, |eight| u64::from_be_bytes(*eight)),
            len => u64::from(len),
        }
    }

    /// After a packed frame, if it is over; a message goes on with its last one.
    fn end_frame(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        if self.state != State::FrameHead || !self.is_final {
            return Ok(());
        }
        self.inflate(&TAIL)?;
        if self.is_fresh_each {
            self.inflater.reset(false);
        }
        out.push((self.first & OPCODE) | FINAL);
        let len = self.message.len();
        match (u8::try_from(len).ok().filter(|len| *len < 126), u16::try_from(len)) {
            (Some(len), _) => out.push(len),
            (None, Ok(len)) => {
                out.push(126);
                out.extend_from_slice(&len.to_be_bytes());
            }
            (None, Err(_)) => {
                out.push(127);
                out.extend_from_slice(&(len as u64).to_be_bytes());
            }
        }
        out.append(&mut self.message);
        (self.first, self.is_final) = (0, false);
        Ok(())
    }

    fn inflate(&mut self, mut packed: &[u8]) -> Result<(), Fault> {
        loop {
            self.message.reserve(CHUNK_BYTES);
            let (taken, made) = (self.inflater.total_in(), self.inflater.total_out());
            let status = self.inflater.decompress_vec(packed, &mut self.message, FlushDecompress::Sync);
            let status = status.map_err(|_| Fault::Corrupt)?;
            packed = &packed[(self.inflater.total_in() - taken) as usize..];
            if self.message.len() > self.message_bytes_max {
                return Err(Fault::TooLong);
            }
            let is_stuck = self.inflater.total_in() == taken && self.inflater.total_out() == made;
            match status {
                // A sender may end its stream within a message; what follows begins another (RFC 7692 section 7.2.3.4).
                Status::StreamEnd => {
                    self.inflater.reset(false);
                    if packed.is_empty() {
                        return Ok(());
                    }
                }
                Status::Ok | Status::BufError if packed.is_empty() && self.message.len() < self.message.capacity() => {
                    return Ok(());
                }
                Status::Ok | Status::BufError if is_stuck => return Err(Fault::Corrupt),
                Status::Ok | Status::BufError => {}
            }
        }
    }
}

/// How many of `bytes` are among the next `left`.
fn part(left: u64, bytes: &[u8]) -> usize {
    usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()))
}

#[cfg(test)]
mod tests;
