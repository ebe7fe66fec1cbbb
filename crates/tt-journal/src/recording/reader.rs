//! Reads a recording of our own, record by record, in bounded memory.

use super::{
    BODY_BYTES_MAX, HEAD_BYTES, HEADER_BYTES, PACKED, RecordHead, TailFault, checksum, parse_head, parse_header,
    u32_at, unpack,
};
use crate::ReadError;
use std::io::{self, Read};

/// One record. Its body is valid until the next one is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// All but the body.
    pub head: RecordHead,
    /// The body; its content depends on the kind.
    pub body: &'a [u8],
}

/// The location of a record.
enum Found {
    /// In the file as it is.
    Bare(RecordHead),
    /// In the unpacked block, its body between two places.
    Packed(RecordHead, usize, usize),
}

/// A reader of the longest prefix of complete records with valid checksums.
#[derive(Debug)]
pub struct RecordingReader<R> {
    source: R,
    /// The record that is being read, head and body.
    record: Vec<u8>,
    /// Records that were packed, and where the next of them begins.
    block: Vec<u8>,
    block_at: usize,
    /// Bytes of the packed record, until a record of it is read.
    packed_bytes: u64,
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
    /// `Io`; `Truncated` if the header is incomplete; `Header` if it is damaged or of another format; `Version` if it
    /// is of a later version.
    pub fn new(mut source: R) -> Result<Self, ReadError> {
        let mut header = [0; HEADER_BYTES];
        if fill(&mut source, &mut header)? < HEADER_BYTES {
            return Err(ReadError::Truncated);
        }
        let created_ns = parse_header(&header)?;
        Ok(Self {
            source,
            record: Vec::new(),
            block: Vec::new(),
            block_at: 0,
            packed_bytes: 0,
            created_ns,
            valid_bytes: HEADER_BYTES as u64,
            records: 0,
            tail: None,
            has_ended: false,
        })
    }

    /// Returns the next record; `None` after the last valid one. [`tail`](Self::tail) returns the reason.
    ///
    /// # Errors
    /// `Io`.
    pub fn read(&mut self) -> Result<Option<Entry<'_>>, ReadError> {
        let found = match self.find() {
            Ok(Some(found)) => found,
            ended => {
                self.has_ended = true;
                return ended.map(|_| None);
            }
        };
        self.records += 1;
        Ok(Some(match found {
            Found::Bare(head) => Entry { head, body: &self.record[HEAD_BYTES..] },
            Found::Packed(head, from, to) => Entry { head, body: &self.block[from..to] },
        }))
    }

    fn find(&mut self) -> Result<Option<Found>, ReadError> {
        if self.has_ended {
            return Ok(None);
        }
        loop {
            if self.block_at < self.block.len() {
                let record = &self.block[self.block_at..];
                let (from, len) = (self.block_at + HEAD_BYTES, u32_at(record, 0) as usize);
                let Some(head) = parse_head(record) else { return Ok(self.end(TailFault::Kind)) };
                self.block_at = from + len;
                self.valid_bytes += std::mem::take(&mut self.packed_bytes);
                return Ok(Some(Found::Packed(head, from, from + len)));
            }
            if !self.fetch()? {
                return Ok(None);
            }
            if self.record[18] != PACKED {
                let Some(head) = parse_head(&self.record) else { return Ok(self.end(TailFault::Kind)) };
                self.valid_bytes += self.record.len() as u64;
                return Ok(Some(Found::Bare(head)));
            }
            let Some(block) = unpack(&self.record[HEAD_BYTES..]) else { return Ok(self.end(TailFault::Checksum)) };
            // A block without a record is valid as it is.
            let bytes = self.record.len() as u64;
            if block.is_empty() {
                self.valid_bytes += bytes;
            } else {
                self.packed_bytes = bytes;
            }
            (self.block, self.block_at) = (block, 0);
        }
    }

    /// Reads the next record of the file, still compressed; `false` after the last valid one.
    fn fetch(&mut self) -> Result<bool, ReadError> {
        self.record.resize(HEAD_BYTES, 0);
        match fill(&mut self.source, &mut self.record)? {
            0 => return Ok(false),
            HEAD_BYTES => {}
            _ => return Ok(self.end::<()>(TailFault::Torn).is_some()),
        }
        let len = u32_at(&self.record, 0) as usize;
        if len > BODY_BYTES_MAX {
            return Ok(self.end::<()>(TailFault::Length).is_some());
        }
        self.record.resize(HEAD_BYTES + len, 0);
        if fill(&mut self.source, &mut self.record[HEAD_BYTES..])? < len {
            return Ok(self.end::<()>(TailFault::Torn).is_some());
        }
        if u32_at(&self.record, 4) != checksum(&self.record) {
            return Ok(self.end::<()>(TailFault::Checksum).is_some());
        }
        Ok(true)
    }

    fn end<T>(&mut self, fault: TailFault) -> Option<T> {
        self.tail = Some(fault);
        None
    }

    /// When the file was made, nanoseconds of the Unix epoch.
    #[must_use]
    pub const fn created_ns(&self) -> u64 {
        self.created_ns
    }

    /// Bytes from the beginning of the file to the end of the last record that was read, or of the packed one it was in.
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
