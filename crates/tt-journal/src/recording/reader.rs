//! Reads a recording of our own, record by record, in bounded memory.

use super::{
    BODY_BYTES_MAX, HEAD_BYTES, HEADER_BYTES, RecordHead, TailFault, checksum, parse_head, parse_header, u32_at,
};
use crate::ReadError;
use std::io::{self, Read};

/// One record. Its body lives until the next one is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// All but the body.
    pub head: RecordHead,
    /// What the kind says.
    pub body: &'a [u8],
}

/// Reads the longest row of whole records whose checksums fit.
#[derive(Debug)]
pub struct RecordingReader<R> {
    source: R,
    /// The record that is being read, head and body.
    record: Vec<u8>,
    created_ns: u64,
    valid_bytes: u64,
    records: u64,
    tail: Option<TailFault>,
    has_ended: bool,
}

impl<R: Read> RecordingReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// `Io`, `Truncated` where not even the header is whole, `Header` where it is another format's or damaged,
    /// `Version` where it is of a later version.
    pub fn new(mut source: R) -> Result<Self, ReadError> {
        let mut header = [0; HEADER_BYTES];
        if fill(&mut source, &mut header)? < HEADER_BYTES {
            return Err(ReadError::Truncated);
        }
        let created_ns = parse_header(&header)?;
        Ok(Self {
            source,
            record: Vec::new(),
            created_ns,
            valid_bytes: HEADER_BYTES as u64,
            records: 0,
            tail: None,
            has_ended: false,
        })
    }

    /// The next record; `None` at the end of the valid ones, of which [`tail`](Self::tail) tells the reason.
    ///
    /// # Errors
    /// `Io`.
    pub fn read(&mut self) -> Result<Option<Entry<'_>>, ReadError> {
        if self.has_ended {
            return Ok(None);
        }
        let head = match self.fetch() {
            Ok(Some(head)) => head,
            ended => {
                self.has_ended = true;
                return ended.map(|_| None);
            }
        };
        self.valid_bytes += self.record.len() as u64;
        self.records += 1;
        Ok(Some(Entry { head, body: &self.record[HEAD_BYTES..] }))
    }

    fn fetch(&mut self) -> Result<Option<RecordHead>, ReadError> {
        self.record.resize(HEAD_BYTES, 0);
        match fill(&mut self.source, &mut self.record)? {
            0 => return Ok(None),
            HEAD_BYTES => {}
            _ => return Ok(self.end(TailFault::Torn)),
        }
        let len = u32_at(&self.record, 0) as usize;
        if len > BODY_BYTES_MAX {
            return Ok(self.end(TailFault::Length));
        }
        self.record.resize(HEAD_BYTES + len, 0);
        if fill(&mut self.source, &mut self.record[HEAD_BYTES..])? < len {
            return Ok(self.end(TailFault::Torn));
        }
        if u32_at(&self.record, 4) != checksum(&self.record) {
            return Ok(self.end(TailFault::Checksum));
        }
        match parse_head(&self.record) {
            Some(head) => Ok(Some(head)),
            None => Ok(self.end(TailFault::Kind)),
        }
    }

    fn end(&mut self, fault: TailFault) -> Option<RecordHead> {
        self.tail = Some(fault);
        None
    }

    /// When the file was made, nanoseconds of the Unix epoch.
    #[must_use]
    pub const fn created_ns(&self) -> u64 {
        self.created_ns
    }

    /// Bytes from the beginning of the file to the end of the last record that was read.
    #[must_use]
    pub const fn valid_bytes(&self) -> u64 {
        self.valid_bytes
    }

    /// Records that were read.
    #[must_use]
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Why there are no more records although the file goes on; `None` before the end, and where the last record ends the file.
    #[must_use]
    pub const fn tail(&self) -> Option<TailFault> {
        self.tail
    }
}

/// Reads until `out` is full or the source has no more, and returns how much was read.
fn fill(source: &mut impl Read, out: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < out.len() {
        match source.read(&mut out[len..]) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}
