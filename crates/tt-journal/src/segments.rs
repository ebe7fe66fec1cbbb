//! A journal in segments: records that are on their way to the disk before their effect is seen.
//!
//! A segment is a file of fixed size, whose space is reserved when it is created. A record is copied into it through
//! memory, so that it survives the death of the process, and a sync makes it survive the loss of power. All integers are
//! little-endian, lengths are in bytes, times are nanoseconds.
//!
//! ```text
//! header, 64 bytes                                 record, 32 + n bytes, padded with zeros to 8
//! offset size                                      offset size
//!      0    8  "TTSEGS\r\n"                             0    4  n, the length of the body, at most 16 MiB
//!      8    2  version: 1                               4    4  checksum
//!     10    2  length of the header: 64                 8    8  number, from 1, without a gap
//!     12    4  checksum of the record before           16    8  time on the writer's clock
//!     16    8  number of the segment, from 1           24    2  kind; 0: the segment ends here
//!     24    8  number of the first record              26    6  zero
//!     32    8  size of the segment                     32    n  body
//!     40    8  creation time, Unix epoch
//!     48   12  zero
//!     60    4  CRC-32C of the 60 bytes before
//! ```
//!
//! The checksum of a record is the CRC-32C of all its other bytes, continued from the checksum of the record before
//! (crossing segments through the header). So a record is valid only behind its predecessors, and what an earlier run
//! left behind the end is never read.
//!
//! The journal ends at the last valid record of the last segment; what follows is cut off when writing resumes. A
//! segment that does not continue the one before, or is damaged with another one behind it, is an error: such a
//! journal has lost records that were synced.

pub(crate) mod folder;
pub(crate) mod reader;
pub(crate) mod writer;

use std::fmt;
use std::io;

/// The first bytes of a segment.
const MAGIC: [u8; 8] = *b"TTSEGS\r\n";
/// The version of the format.
pub const SEGMENT_VERSION: u16 = 1;
/// Bytes of a segment's header.
const HEADER_BYTES: usize = 64;
/// Bytes of a record before its body.
pub const HEAD_BYTES: usize = 32;
/// Length of the longest body.
const BODY_BYTES_MAX: usize = 16 << 20;
/// Size of the smallest segment.
pub const SEGMENT_BYTES_MIN: usize = 4096;
/// The kind of the record that ends a segment.
const END: u16 = 0;

/// A place for segments: a folder, or a disk that a test lets fail.
pub trait Disk {
    /// A segment that can be written.
    type Segment: Segment;

    /// Returns the numbers of the segments that are there, in ascending order.
    ///
    /// # Errors
    /// The place cannot be read.
    fn numbers(&self) -> io::Result<Vec<u64>>;

    /// Returns the content of a segment.
    ///
    /// # Errors
    /// The segment cannot be read.
    fn read(&self, number: u64) -> io::Result<Vec<u8>>;

    /// Creates a segment of zeros with reserved space; it is found after a loss of power.
    ///
    /// # Errors
    /// The segment is there already, or the disk has too little room.
    fn create(&self, number: u64, bytes: usize) -> io::Result<Self::Segment>;

    /// Opens a segment to be written.
    ///
    /// # Errors
    /// The segment cannot be opened.
    fn open(&self, number: u64) -> io::Result<Self::Segment>;

    /// Removes a segment.
    ///
    /// # Errors
    /// The segment cannot be removed.
    fn remove(&self, number: u64) -> io::Result<()>;
}

/// A segment that can be written. Its space is reserved.
pub trait Segment {
    /// Returns its size.
    fn bytes(&self) -> usize;

    /// Copies `bytes` to offset `at`; both ends are within the segment.
    fn write(&mut self, at: usize, bytes: &[u8]);

    /// Waits until all that was written is on the disk.
    ///
    /// # Errors
    /// The disk reports an error; what is on it is unknown.
    fn sync(&self) -> io::Result<()>;
}

/// Why a journal cannot be read or continued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentError {
    /// The disk reports an error.
    Io(io::ErrorKind, String),
    /// The segment is of another version of the format: this one.
    Version(u64, u16),
    /// The segment's header is damaged.
    Header(u64),
    /// The segment does not continue the one before.
    Chain(u64),
    /// The segment is damaged at this offset, and another one follows.
    Damaged(u64, usize),
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(_, reason) => write!(f, "the journal cannot be read: {reason}"),
            Self::Version(number, version) => {
                write!(f, "segment {number} of the journal is of version {version}, which this program does not know")
            }
            Self::Header(number) => write!(f, "segment {number} of the journal has a damaged header"),
            Self::Chain(number) => write!(f, "segment {number} of the journal does not continue the one before"),
            Self::Damaged(number, at) => {
                write!(f, "segment {number} of the journal is damaged at byte {at}, and another segment follows")
            }
        }
    }
}

impl std::error::Error for SegmentError {}

impl From<io::Error> for SegmentError {
    fn from(error: io::Error) -> Self {
        Self::Io(error.kind(), error.to_string())
    }
}

/// What a segment says of itself and of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    checksum: u32,
    number: u64,
    first_record: u64,
    bytes: u64,
    created_ns: u64,
}

impl Header {
    fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[..8].copy_from_slice(&MAGIC);
        out[8..10].copy_from_slice(&SEGMENT_VERSION.to_le_bytes());
        out[10..12].copy_from_slice(&(HEADER_BYTES as u16).to_le_bytes());
        out[12..16].copy_from_slice(&self.checksum.to_le_bytes());
        for (index, word) in [self.number, self.first_record, self.bytes, self.created_ns].into_iter().enumerate() {
            out[16 + index * 8..24 + index * 8].copy_from_slice(&word.to_le_bytes());
        }
        let checksum = crc32c::crc32c(&out[..60]);
        out[60..].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Reads the header of segment `number`; `None` if the segment was never begun.
    fn parse(number: u64, image: &[u8]) -> Result<Option<Self>, SegmentError> {
        let Some(header) = image.first_chunk::<HEADER_BYTES>() else {
            return if image.iter().all(|byte| *byte == 0) { Ok(None) } else { Err(SegmentError::Header(number)) };
        };
        if header.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let version = u16::from_le_bytes([header[8], header[9]]);
        if header[..8] != MAGIC || u32_at(header, 60) != crc32c::crc32c(&header[..60]) {
            return Err(SegmentError::Header(number));
        }
        if version != SEGMENT_VERSION {
            return Err(SegmentError::Version(number, version));
        }
        let [own, first_record, bytes, created_ns] = [16, 24, 32, 40].map(|at| u64_at(header, at));
        if own != number || bytes != image.len() as u64 {
            return Err(SegmentError::Header(number));
        }
        Ok(Some(Self { checksum: u32_at(header, 12), number, first_record, bytes, created_ns }))
    }
}

/// Returns the bytes that a record with a body of `body` bytes takes.
const fn record_bytes(body: usize) -> usize {
    HEAD_BYTES + body.next_multiple_of(8)
}

/// Returns the checksum of a record (head and unpadded body) behind one with the checksum `before`.
fn checksum(before: u32, record: &[u8]) -> u32 {
    crc32c_append(crc32c_append(before, &record[..4]), &record[8..])
}

/// Returns the CRC-32C of what has the CRC-32C `before`, and of `bytes` behind it.
#[inline(always)]
fn crc32c_append(before: u32, bytes: &[u8]) -> u32 {
    // Most records are short: what prepares the work in parts takes longer than the work.
    let short = if bytes.len() <= 1024 { tt_simd::crc32c(before, bytes) } else { None };
    short.unwrap_or_else(|| crc32c::crc32c_append(before, bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}
