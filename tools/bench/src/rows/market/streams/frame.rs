//! WebSocket frames (RFC 6455 section 5.2), as the two ends of this bench read and write them.

use std::io::{self, Read};

/// Opcode of a text frame with FIN.
const TEXT: u8 = 0x81;
/// Opcode of a ping with FIN.
const PING: u8 = 0x89;
/// Bytes that one read may give.
const READ: usize = 256 << 10;

/// What was received and not taken yet.
#[derive(Debug)]
pub(super) struct Incoming {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Incoming {
    pub(super) fn new() -> Self {
        Self { bytes: vec![0; READ], start: 0, end: 0 }
    }

    /// Reads once; returns how many bytes came, zero at the end of the stream.
    pub(super) fn read_from(&mut self, stream: &mut impl Read) -> io::Result<usize> {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.bytes.len() {
            self.bytes.resize(2 * self.end, 0);
        }
        let count = stream.read(&mut self.bytes[self.end..])?;
        self.end += count;
        Ok(count)
    }

    /// Everything up to and with `end`, where it is there.
    pub(super) fn take_head(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        let waiting = &self.bytes[self.start..self.end];
        let at = waiting.windows(end.len()).position(|window| window == end)? + end.len();
        let head = waiting[..at].to_vec();
        self.start += at;
        Some(head)
    }

    /// The payload of the next whole text frame; other frames are left out.
    ///
    /// # Errors
    /// A close frame, or one that neither end sends.
    pub(super) fn next_text(&mut self) -> io::Result<Option<&mut [u8]>> {
        loop {
            let waiting = &self.bytes[self.start..self.end];
            let Some([first, second]) = waiting.first_chunk::<2>().copied() else { return Ok(None) };
            let is_masked = second & 0x80 != 0;
            let (mut head, mut len) = (2, usize::from(second & 0x7f));
            if len == 126 {
                let Some(bytes) = waiting[2..].first_chunk::<2>() else { return Ok(None) };
                (head, len) = (4, usize::from(u16::from_be_bytes(*bytes)));
            } else if len == 127 {
                let Some(bytes) = waiting[2..].first_chunk::<8>() else { return Ok(None) };
                (head, len) = (10, usize::try_from(u64::from_be_bytes(*bytes)).map_err(io::Error::other)?);
            }
            let mask = if is_masked { waiting.get(head..head + 4) } else { Some(&[0; 4][..]) };
            let Some(mask) = mask.and_then(|mask| <[u8; 4]>::try_from(mask).ok()) else { return Ok(None) };
            head += if is_masked { 4 } else { 0 };
            if waiting.len() < head + len {
                return Ok(None);
            }
            let payload = self.start + head..self.start + head + len;
            self.start = payload.end;
            match first {
                TEXT => {
                    let payload = &mut self.bytes[payload];
                    if is_masked {
                        payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
                    }
                    return Ok(Some(payload));
                }
                PING => {}
                other => return Err(io::Error::other(format!("a frame that begins with {other:#x}"))),
            }
        }
    }
}

/// A text frame of `payload`; masked with zeros where a client sends it.
pub(super) fn text(payload: &[u8], is_masked: bool) -> Vec<u8> {
    let mut frame = vec![TEXT];
    let mask = if is_masked { 0x80 } else { 0 };
    match payload.len() {
        len @ 0..126 => frame.push(mask | len as u8),
        len @ 126..=0xffff => {
            frame.push(mask | 126);
            frame.extend((len as u16).to_be_bytes());
        }
        len => {
            frame.push(mask | 127);
            frame.extend((len as u64).to_be_bytes());
        }
    }
    if is_masked {
        frame.extend([0; 4]);
    }
    frame.extend(payload);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6455 section 5.7.
    const HELLO: &[u8] = &[0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f];
    const MASKED_HELLO: &[u8] = &[0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
    const PING_HELLO: &[u8] = &[0x89, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f];

    #[test]
    fn frames_are_those_of_the_rfc() {
        assert_eq!(text(b"Hello", false), HELLO);
        assert_eq!(text(&[7; 256], false)[..4], [0x81, 126, 1, 0]);
        assert_eq!(text(&[7; 65_536], true)[..10], [0x81, 0xff, 0, 0, 0, 0, 0, 1, 0, 0]);
        let stream = [HELLO, PING_HELLO, MASKED_HELLO, &text(&[7; 300_000], true)].concat();
        // In pieces of every kind.
        for piece in [1, 7, 4_096, stream.len()] {
            let (mut incoming, mut found) = (Incoming::new(), Vec::new());
            for mut bytes in stream.chunks(piece) {
                while !bytes.is_empty() {
                    incoming.read_from(&mut bytes).unwrap();
                    while let Some(payload) = incoming.next_text().unwrap() {
                        found.push(payload.to_vec());
                    }
                }
            }
            assert_eq!(found, [b"Hello".to_vec(), b"Hello".to_vec(), vec![7; 300_000]], "pieces of {piece}");
        }
        let mut closed = Incoming::new();
        closed.read_from(&mut &[0x88, 0][..]).unwrap();
        assert!(closed.next_text().is_err());
    }
}
