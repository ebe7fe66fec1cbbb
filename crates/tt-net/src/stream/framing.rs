//! Framing of a stream of STUN messages and ChannelData (RFC 8489 section 6.2.2, RFC 8656 section 12.5).

/// The position of a message in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The connection's first message: a STUN message, since a channel needs an allocation before it.
    First,
    /// Any later one: a STUN message or ChannelData.
    Later,
}

/// Result of framing the bytes at the start of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framed {
    /// A complete message: `len` bytes, followed by `padding` bytes to skip.
    Whole {
        /// Header and payload, bytes.
        len: usize,
        /// Bytes between it and the next one, 0 to 3.
        padding: usize,
    },
    /// Incomplete: the message has at least `wants` bytes.
    Part {
        /// Bytes from the start of the message, more than given.
        wants: usize,
    },
}

/// Why a stream is neither STUN nor ChannelData. It cannot be resynchronized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramingFault {
    /// First bits of neither, no magic cookie, or a first message that is ChannelData.
    NotStun,
    /// A STUN length that is no multiple of four (RFC 8489 section 5).
    Length,
    /// A message longer than the caller accepts.
    TooLong,
}

const STUN_HEADER_LEN: usize = 20;
const CHANNEL_HEADER_LEN: usize = 4;
const MAGIC_COOKIE: [u8; 4] = 0x2112_A442_u32.to_be_bytes();
/// The longest message of all: ChannelData with 65,535 bytes is shorter than a STUN message of 65,532.
const MESSAGE_LEN_MAX: usize = STUN_HEADER_LEN + 65_532;

/// Finds the end of the message at the start of `bytes`.
///
/// The result does not change if more bytes follow, unless it is `Part`.
///
/// # Errors
/// [`FramingFault`] as soon as a byte cannot be part of a message; never [`FramingFault::TooLong`].
pub fn frame(bytes: &[u8], turn: Turn) -> Result<Framed, FramingFault> {
    let Some(first) = bytes.first() else { return Ok(Framed::Part { wants: 1 }) };
    // RFC 8656 section 12, table 3: the first two bits distinguish the two.
    match (first >> 6, turn) {
        (0b00, _) => stun(bytes),
        (0b01, Turn::Later) => Ok(channel_data(bytes)),
        (_, _) => Err(FramingFault::NotStun),
    }
}

fn stun(bytes: &[u8]) -> Result<Framed, FramingFault> {
    let Some([_, _, high, low]) = bytes.first_chunk::<4>() else { return Ok(Framed::Part { wants: STUN_HEADER_LEN }) };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    if !length.is_multiple_of(4) {
        return Err(FramingFault::Length);
    }
    if bytes[4..].iter().zip(MAGIC_COOKIE).any(|(found, right)| *found != right) {
        return Err(FramingFault::NotStun);
    }
    Ok(whole_or_part(bytes, STUN_HEADER_LEN + length, 0))
}

fn channel_data(bytes: &[u8]) -> Framed {
    let Some([_, _, high, low]) = bytes.first_chunk::<4>() else { return Framed::Part { wants: CHANNEL_HEADER_LEN } };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    whole_or_part(bytes, CHANNEL_HEADER_LEN + length, length.next_multiple_of(4) - length)
}

fn whole_or_part(bytes: &[u8], len: usize, padding: usize) -> Framed {
    if bytes.len() < len { Framed::Part { wants: len } } else { Framed::Whole { len, padding } }
}

/// Cuts one connection's bytes into messages, however they arrive. It keeps the beginning of a message whose end has
/// not come, and nothing while there is none.
///
/// A message is handed out as soon as its last byte is there. The padding behind ChannelData is passed over when it
/// comes, so that a payload is not lost where a stream ends without it.
#[derive(Debug)]
pub struct StreamFramer {
    held: Vec<u8>,
    /// The start of the next message in `held`.
    at: usize,
    /// Bytes of padding that are yet to come.
    padding: usize,
    turn: Turn,
}

impl Default for StreamFramer {
    fn default() -> Self {
        Self { held: Vec::new(), at: 0, padding: 0, turn: Turn::First }
    }
}

impl StreamFramer {
    /// The next whole message out of what is held and of `fresh`, the bytes that follow it; what it takes from `fresh`
    /// is cut off there. `None`: there is none, and all of `fresh` is held.
    ///
    /// # Errors
    /// [`FramingFault`]; [`FramingFault::TooLong`] for a message of more than `len_max` bytes. The stream is of no use
    /// any more.
    pub fn next<'a, 'b: 'a>(
        &'a mut self,
        fresh: &mut &'b [u8],
        len_max: usize,
    ) -> Result<Option<&'a [u8]>, FramingFault> {
        self.pass_padding(fresh);
        if self.at == self.held.len() {
            self.release();
            return self.next_of_fresh(fresh, len_max);
        }
        loop {
            match self.measure(&self.held[self.at..], len_max)? {
                Framed::Whole { len, padding } => {
                    let start = self.at;
                    self.at += len;
                    self.padding = padding;
                    self.turn = Turn::Later;
                    return Ok(Some(&self.held[start..start + len]));
                }
                Framed::Part { .. } if fresh.is_empty() => return Ok(None),
                Framed::Part { wants } => {
                    let missing = wants - (self.held.len() - self.at);
                    let (taken, rest) = fresh.split_at(missing.min(fresh.len()));
                    self.held.extend_from_slice(taken);
                    *fresh = rest;
                }
            }
        }
    }

    /// Keeps `rest` for the next call of [`next`](Self::next), which will see it before anything else.
    pub fn hold(&mut self, rest: &[u8]) {
        self.held.drain(..self.at);
        self.at = 0;
        self.held.extend_from_slice(rest);
    }

    /// Bytes that it holds.
    #[must_use]
    pub const fn held_len(&self) -> usize {
        self.held.len() - self.at
    }

    /// Whether a whole message has been handed out.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.turn == Turn::Later
    }

    fn next_of_fresh<'a>(&mut self, fresh: &mut &'a [u8], len_max: usize) -> Result<Option<&'a [u8]>, FramingFault> {
        match self.measure(fresh, len_max)? {
            Framed::Whole { len, padding } => {
                let (message, rest) = fresh.split_at(len);
                *fresh = rest;
                self.padding = padding;
                self.turn = Turn::Later;
                Ok(Some(message))
            }
            Framed::Part { .. } => {
                self.held.extend_from_slice(fresh);
                *fresh = &[];
                Ok(None)
            }
        }
    }

    fn measure(&self, bytes: &[u8], len_max: usize) -> Result<Framed, FramingFault> {
        let framed = frame(bytes, self.turn)?;
        let len = match framed {
            Framed::Whole { len, .. } => len,
            Framed::Part { wants } => wants,
        };
        if len > len_max.clamp(STUN_HEADER_LEN, MESSAGE_LEN_MAX) { Err(FramingFault::TooLong) } else { Ok(framed) }
    }

    fn pass_padding(&mut self, fresh: &mut &[u8]) {
        let held = self.padding.min(self.held.len() - self.at);
        self.at += held;
        let passed = (self.padding - held).min(fresh.len());
        *fresh = &fresh[passed..];
        self.padding -= held + passed;
    }

    /// Gives the memory of what was held back: a connection that waits holds nothing.
    fn release(&mut self) {
        if !self.held.is_empty() {
            self.held = Vec::new();
        }
        self.at = 0;
    }
}

#[cfg(test)]
mod tests;
