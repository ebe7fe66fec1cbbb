//! truetick's recording format: every input of an engine, in order, for replay.
//!
//! All integers are little-endian, lengths are in bytes, times are Unix times in nanoseconds. A file is a header
//! followed by records, without padding.
//!
//! ```text
//! header, 24 bytes                                 record, 24 + n bytes
//! offset size                                      offset size
//!      0    8  "TTJRNL\r\n"                             0    4  n, the length of the body, at most 16 MiB
//!      8    2  version: 1                               4    4  CRC-32C of bytes 0 to 3 and of those from 8 on
//!     10    2  length of the header: 24                 8    8  time
//!     12    8  creation time                           16    2  feed; each has a separate engine
//!     20    4  CRC-32C of the 20 bytes before          18    1  kind
//!                                                      19    1  zero
//!                                                      20    4  subject: connection or instrument, by kind
//!                                                      24    n  body
//! ```
//!
//! A record of kind 128 contains compressed records: its body is their uncompressed length, 4 bytes, and an LZ4 block.
//! Readers decompress it and never return it.
//!
//! A file may end anywhere: its content is the longest prefix of complete records with valid checksums.

pub(crate) mod reader;
pub(crate) mod recorder;
pub(crate) mod reopen;

use crate::ReadError;

/// The first bytes of a file. Their line end detects a transfer that rewrote line ends.
pub const MAGIC: [u8; 8] = *b"TTJRNL\r\n";
/// The version of the format.
pub const VERSION: u16 = 1;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 24;
/// Bytes of a record before its body.
pub const HEAD_BYTES: usize = 24;
/// Length of the longest body: the longest message of a feed.
pub const BODY_BYTES_MAX: usize = 16 << 20;

/// The kind of a record that contains compressed records.
const PACKED: u8 = 128;
/// Uncompressed length of a compressed record, at most.
const UNPACKED_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $name:ident = $number:literal,)+) => {
        /// The kind of a record.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum RecordKind {
            $($(#[doc = $doc])+ $name = $number,)+
        }

        impl RecordKind {
            /// All kinds.
            pub const ALL: [Self; [$($number),+].len()] = [$(Self::$name),+];

            const fn of(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)+
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// A feed begins, with a new engine. Body: JSON with the venue and the engine's capacity.
    Engine = 1,
    /// An instrument was added; the subject is its number. Body: JSON with its symbol and steps.
    Instrument = 2,
    /// A position was set. Body: JSON.
    Position = 3,
    /// A connection was opened; the subject is its number. Body: its address.
    Opened = 4,
    /// An instrument's book was subscribed; the subject is the connection. Body: the instrument's number, 4 bytes.
    Subscribed = 5,
    /// A frame was received; the subject is the connection. Body: its bytes.
    Frame = 6,
    /// A REST snapshot was received; the subject is the instrument. Body: its bytes.
    Snapshot = 7,
    /// A REST snapshot could not be fetched; the subject is the instrument.
    SnapshotFailed = 8,
    /// Timers were processed.
    Timeout = 9,
    /// A connection was closed; the subject is its number.
    Closed = 10,
    /// The hash of the published state, then that of every book in turn, then the records of the feed up to here;
    /// 8 bytes each.
    Checkpoint = 11,
    /// As `Checkpoint`, and the feed has ended.
    End = 12,
    /// Records that found the queue full and are not here: how many, then their bytes; 8 bytes each.
    Lost = 13,
    /// An instrument is counted in finer steps from here on; the subject is its number. Body: JSON with the steps.
    Refined = 14,
    /// A connection takes an instrument's book over from another one; the subject is the connection. Body: the
    /// instrument's number, 4 bytes.
    Successor = 15,
    /// An instrument's book is compared with the next REST snapshot; the subject is its number.
    Comparison = 16,
    /// An instrument's book is followed no longer; the subject is its number.
    Unsubscribed = 17,
}

/// A record without its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHead {
    /// When it happened, nanoseconds of the Unix epoch.
    pub ts_ns: u64,
    /// The feed whose engine received it.
    pub feed: u16,
    /// The kind.
    pub kind: RecordKind,
    /// The connection or the instrument, depending on `kind`; otherwise zero.
    pub subject: u32,
}

/// Why reading stopped before the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailFault {
    /// The file ends within a record, as it does when its writer was killed.
    Torn,
    /// A record has an invalid checksum.
    Checksum,
    /// A record's body would be longer than [`BODY_BYTES_MAX`].
    Length,
    /// A complete record has an unknown kind.
    Kind,
}

impl TailFault {
    /// Returns a description.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Torn => "it ends within a record",
            Self::Checksum => "a record's checksum does not fit",
            Self::Length => "a record's length makes no sense",
            Self::Kind => "a record is of a kind that this version does not know",
        }
    }
}

/// The header of a file that is made at `ts_ns`.
#[must_use]
pub fn header(ts_ns: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..10].copy_from_slice(&VERSION.to_le_bytes());
    header[10..12].copy_from_slice(&(HEADER_BYTES as u16).to_le_bytes());
    header[12..20].copy_from_slice(&ts_ns.to_le_bytes());
    let checksum = crc32c::crc32c(&header[..20]);
    header[20..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// When the file with that header was made.
fn parse_header(header: &[u8; HEADER_BYTES]) -> Result<u64, ReadError> {
    let version = u16::from_le_bytes([header[8], header[9]]);
    if header[..8] != MAGIC || u32_at(header, 20) != crc32c::crc32c(&header[..20]) {
        return Err(ReadError::Header);
    }
    if version != VERSION {
        return Err(ReadError::Version(version));
    }
    Ok(u64_at(header, 12))
}

/// Appends a record without its checksum, which [`seal`] puts in.
///
/// # Panics
/// Where `body` is longer than [`BODY_BYTES_MAX`].
pub fn encode(out: &mut Vec<u8>, head: RecordHead, body: &[u8]) {
    assert!(body.len() <= BODY_BYTES_MAX, "a record's body has a bound");
    encode_kind(out, head.ts_ns, (head.feed, head.kind as u8, head.subject), body);
}

fn encode_kind(out: &mut Vec<u8>, ts_ns: u64, (feed, kind, subject): (u16, u8, u32), body: &[u8]) {
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&ts_ns.to_le_bytes());
    out.extend_from_slice(&feed.to_le_bytes());
    out.extend_from_slice(&[kind, 0]);
    out.extend_from_slice(&subject.to_le_bytes());
    out.extend_from_slice(body);
}

/// Replaces `out` by one sealed record that holds `block`, sealed records; `false` where they are too long for that.
fn pack(block: &[u8], out: &mut Vec<u8>) -> bool {
    if block.is_empty() || block.len() > BODY_BYTES_MAX / 2 {
        return false;
    }
    let packed = lz4_flex::block::compress_prepend_size(block);
    out.clear();
    encode_kind(out, u64_at(block, 8), (0, PACKED, 0), &packed);
    seal(out);
    true
}

/// The records that a packed one holds, all whole and sealed, or nothing.
fn unpack(body: &[u8]) -> Option<Vec<u8>> {
    let len = u32::from_le_bytes(*body.first_chunk()?) as usize;
    let block = (len <= UNPACKED_BYTES_MAX).then(|| lz4_flex::block::decompress_size_prepended(body).ok())??;
    let mut rest = &block[..];
    while !rest.is_empty() {
        let len = HEAD_BYTES + if rest.len() < HEAD_BYTES { return None } else { u32_at(rest, 0) as usize };
        let record = rest.get(..len)?;
        if checksum(record) != u32_at(record, 4) {
            return None;
        }
        rest = &rest[len..];
    }
    Some(block)
}

/// Puts the checksum into each of the whole records that `block` consists of, and returns how many there are.
pub fn seal(block: &mut [u8]) -> u64 {
    let (mut rest, mut count) = (block, 0);
    while rest.len() >= HEAD_BYTES {
        let len = HEAD_BYTES + u32_at(rest, 0) as usize;
        let (record, next) = rest.split_at_mut(len.min(rest.len()));
        let checksum = checksum(record);
        record[4..8].copy_from_slice(&checksum.to_le_bytes());
        rest = next;
        count += 1;
    }
    count
}

fn checksum(record: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&record[..4]), &record[8..])
}

fn parse_head(head: &[u8]) -> Option<RecordHead> {
    Some(RecordHead {
        ts_ns: u64_at(head, 8),
        feed: u16::from_le_bytes([head[16], head[17]]),
        kind: RecordKind::of(head[18])?,
        subject: u32_at(head, 20),
    })
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}
