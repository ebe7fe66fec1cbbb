//! cryptofeed's recordings: a line `[address <arrow>] unix_seconds: text` for each frame or REST answer.
//!
//! In `.ws` files a received frame is `seconds: text`, a sent one `address -> seconds: text` or with the arrow the other
//! way round, and an opened connection `address <-> seconds`. In `.http` files an answer is `url -> seconds: text`.

use crate::lines::{Line as LineRead, read_line};
use crate::{ReadError, Record};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Which way a record went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the venue.
    Received,
    /// To the venue in a `.ws` file; in an `.http` file, the answer of the address.
    Addressed,
    /// A connection was opened.
    Opened,
}

/// Reads the lines of one file.
#[derive(Debug)]
pub struct CryptofeedReader<R = BufReader<File>> {
    source: R,
    line: Vec<u8>,
}

/// One line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Which way it went.
    pub direction: Direction,
    /// The address, where the line has one.
    pub address: Option<String>,
    /// When and what.
    pub record: Record,
}

impl CryptofeedReader {
    /// Opens `path`.
    ///
    /// # Errors
    /// `Io` if it cannot be read.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Ok(Self::new(BufReader::new(File::open(path)?)))
    }
}

impl<R: BufRead> CryptofeedReader<R> {
    /// Reads from `source`.
    #[must_use]
    pub const fn new(source: R) -> Self {
        Self { source, line: Vec::new() }
    }
}

impl<R: BufRead> Iterator for CryptofeedReader<R> {
    type Item = Result<Line, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match read_line(&mut self.source, &mut self.line) {
                Ok(LineRead::None) => return None,
                Ok(LineRead::Whole | LineRead::Cut) if self.line.is_empty() => {}
                Ok(LineRead::Whole | LineRead::Cut) => return Some(parse_line(&self.line)),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

fn parse_line(line: &[u8]) -> Result<Line, ReadError> {
    for (arrow, direction) in
        [(&b" <-> "[..], Direction::Opened), (b" -> ", Direction::Addressed), (b" <- ", Direction::Addressed)]
    {
        // The arrow precedes the text, which may contain anything.
        let head = &line[..line.iter().position(|byte| *byte == b'{' || *byte == b'[').unwrap_or(line.len())];
        if let Some(at) = head.windows(arrow.len()).position(|window| window == arrow) {
            let address = String::from_utf8_lossy(&line[..at]).into_owned();
            let record = parse_record(&line[at + arrow.len()..])?;
            return Ok(Line { direction, address: Some(address), record });
        }
    }
    Ok(Line { direction: Direction::Received, address: None, record: parse_record(line)? })
}

fn parse_record(text: &[u8]) -> Result<Record, ReadError> {
    let (seconds, payload) = match text.windows(2).position(|window| window == b": ") {
        Some(colon) => (&text[..colon], &text[colon + 2..]),
        None => (text, &[][..]),
    };
    Ok(Record { ts_ns: parse_seconds(seconds)?, payload: payload.to_vec() })
}

fn parse_seconds(text: &[u8]) -> Result<u64, ReadError> {
    let text = std::str::from_utf8(text).map_err(|_| ReadError::Record)?;
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds: u64 = seconds.parse().map_err(|_| ReadError::Record)?;
    let mut ns = 0;
    for i in 0..9 {
        let digit = fraction.as_bytes().get(i).copied().unwrap_or(b'0');
        if !digit.is_ascii_digit() {
            return Err(ReadError::Record);
        }
        ns = ns * 10 + u64::from(digit - b'0');
    }
    seconds.checked_mul(1_000_000_000).and_then(|s| s.checked_add(ns)).ok_or(ReadError::Record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_line_is_read() {
        let text =
            b"wss://x/y@z <-> 1633998511.159679\nwss://x -> 5.5: {\"op\": 1}\n1633998512.0633569: {\"a\":\" -> \"}\n";
        let lines: Result<Vec<_>, _> = CryptofeedReader::new(&text[..]).collect();
        let lines = lines.unwrap();
        assert_eq!(lines[0].direction, Direction::Opened);
        assert_eq!(lines[0].record.ts_ns, 1_633_998_511_159_679_000);
        assert_eq!((lines[1].direction, lines[1].address.as_deref()), (Direction::Addressed, Some("wss://x")));
        assert_eq!((lines[2].direction, &lines[2].address), (Direction::Received, &None));
        assert_eq!(lines[2].record.ts_ns, 1_633_998_512_063_356_900);
        assert_eq!(lines[2].record.payload, b"{\"a\":\" -> \"}");
    }
}
