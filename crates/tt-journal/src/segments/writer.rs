//! Writes a journal in segments.

use super::{
    BODY_BYTES_MAX, Disk, END, HEAD_BYTES, HEADER_BYTES, Header, Segment, SegmentError, crc32c_append, record_bytes,
};
use crate::segments::reader::{JournalEnd, SegmentReader};
use std::{error, fmt, io};

/// Why a record was not written.
#[derive(Debug)]
pub enum AppendError {
    /// There is no room: the next segment is missing. Nothing changed.
    Full,
    /// The body is longer than 16 MiB, or than a segment holds. Nothing changed.
    Long,
    /// The disk failed when the segment was closed.
    Io(io::Error),
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("the journal has no room"),
            Self::Long => f.write_str("a record is longer than a segment of the journal"),
            Self::Io(error) => write!(f, "the journal cannot be written: {error}"),
        }
    }
}

impl error::Error for AppendError {}

/// A writer of a journal. It never waits for the disk, except at the end of a segment.
///
/// The caller keeps one segment ready: [`needs_spare`](Self::needs_spare), [`put_spare`](Self::put_spare).
#[derive(Debug)]
pub struct SegmentWriter<S> {
    current: S,
    spare: Option<S>,
    number: u64,
    at: usize,
    records: u64,
    checksum: u32,
    /// The record that is begun, to be copied at once: room for its head, and its body.
    buffer: Vec<u8>,
}

impl<S: Segment> SegmentWriter<S> {
    /// Continues the journal on `disk` behind `end`, which a reader has found, or begins one with segments of `bytes`.
    ///
    /// What is behind the end is overwritten with zeros, and synced, before anything is written.
    ///
    /// # Errors
    /// The disk reports an error, or has no room for a segment.
    pub fn resume<D: Disk<Segment = S>>(
        disk: &D,
        end: &JournalEnd,
        bytes: usize,
        now_ns: u64,
    ) -> Result<Self, SegmentError> {
        let bytes = bytes.max(super::SEGMENT_BYTES_MIN);
        for number in disk.numbers()?.into_iter().filter(|number| *number > end.segment) {
            // It was prepared and not begun.
            disk.remove(number)?;
        }
        if end.segment == 0 {
            let mut writer = Self::at(disk.create(1, bytes)?, end, 0);
            writer.begin(1, now_ns);
            writer.current.sync()?;
            return Ok(writer);
        }
        let mut writer = Self::at(disk.open(end.segment)?, end, end.segment);
        let zeros = [0; 4096];
        let mut rest = end.cut_bytes.min(writer.current.bytes() - end.at);
        let mut at = end.at;
        while rest > 0 {
            let len = rest.min(zeros.len());
            writer.current.write(at, &zeros[..len]);
            (at, rest) = (at + len, rest - len);
        }
        writer.current.sync()?;
        Ok(writer)
    }

    fn at(current: S, end: &JournalEnd, number: u64) -> Self {
        let JournalEnd { records, at, checksum, .. } = *end;
        Self { current, spare: None, number, at, records, checksum, buffer: Vec::new() }
    }

    fn begin(&mut self, number: u64, now_ns: u64) {
        self.number = number;
        let header = Header {
            checksum: self.checksum,
            number,
            first_record: self.records + 1,
            bytes: self.current.bytes() as u64,
            created_ns: now_ns,
        };
        self.current.write(0, &header.to_bytes());
        self.at = HEADER_BYTES;
    }

    /// Returns the number of the segment that is missing, if one is.
    #[must_use]
    #[inline]
    pub const fn needs_spare(&self) -> Option<u64> {
        if self.spare.is_none() { Some(self.number + 1) } else { None }
    }

    /// Takes the segment that [`needs_spare`](Self::needs_spare) named.
    pub fn put_spare(&mut self, spare: S) {
        self.spare = Some(spare);
    }

    /// Returns the bytes that are left in the segments, each record with 32 bytes more than its body.
    #[must_use]
    #[inline]
    pub fn room(&self) -> usize {
        let spare = self.spare.as_ref().map_or(0, |spare| spare.bytes() - HEADER_BYTES - HEAD_BYTES);
        spare + self.room_in_segment()
    }

    /// Returns the part of [`room`](Self::room) that is in the segment that is written.
    #[must_use]
    #[inline]
    pub fn room_in_segment(&self) -> usize {
        (self.current.bytes() - self.at).saturating_sub(HEAD_BYTES)
    }

    /// Writes a record; returns its number. It survives the death of the process when this returns.
    ///
    /// # Errors
    /// [`AppendError`]; the record is not in the journal.
    pub fn append(&mut self, ts_ns: u64, kind: u16, body: &[u8]) -> Result<u64, AppendError> {
        self.begin_record().extend_from_slice(body);
        self.append_begun(ts_ns, kind)
    }

    /// Begins a record in place of one that is begun. Its body is what is added to the end of the bytes that this returns,
    /// which hold its head.
    #[inline]
    pub fn begin_record(&mut self) -> &mut Vec<u8> {
        self.buffer.clear();
        self.buffer.extend_from_slice(&[0; HEAD_BYTES]);
        &mut self.buffer
    }

    /// Returns the bytes of the body of the record that is begun.
    #[must_use]
    #[inline]
    pub const fn begun_bytes(&self) -> usize {
        self.buffer.len().saturating_sub(HEAD_BYTES)
    }

    /// Writes the record that [`begin_record`](Self::begin_record) began, as [`append`](Self::append) does.
    ///
    /// # Errors
    /// [`AppendError`]; the record is not in the journal, and still begun.
    pub fn append_begun(&mut self, ts_ns: u64, kind: u16) -> Result<u64, AppendError> {
        let body_len = self.begun_bytes();
        let mut record = std::mem::take(&mut self.buffer);
        record.extend_from_slice(&[0; 7][..record.len().wrapping_neg() % 8]);
        let number = self.append_record(ts_ns, kind, &mut record, body_len);
        record.truncate(HEAD_BYTES + body_len);
        self.buffer = record;
        number
    }

    /// Writes a record with a body of `BODY` bytes that is in `record`, behind room for its head and before zeros that fill
    /// it up: so the copies of short records have lengths that the compiler knows.
    ///
    /// # Errors
    /// [`AppendError`]; the record is not in the journal.
    ///
    /// # Panics
    /// `record` is not of the bytes that a body of this length takes.
    #[inline(always)]
    pub fn append_fixed<const BODY: usize, const BYTES: usize>(
        &mut self,
        ts_ns: u64,
        kind: u16,
        record: &mut [u8; BYTES],
    ) -> Result<u64, AppendError> {
        const { assert!(record_bytes(BODY) == BYTES) };
        self.append_record(ts_ns, kind, record, BODY)
    }

    #[inline(always)]
    fn append_record(&mut self, ts_ns: u64, kind: u16, record: &mut [u8], body_len: usize) -> Result<u64, AppendError> {
        let bytes = self.current.bytes();
        if body_len > BODY_BYTES_MAX || record.len() > bytes - HEADER_BYTES - HEAD_BYTES {
            return Err(AppendError::Long);
        }
        // Room for the end of the segment is kept.
        if self.at + record.len() + HEAD_BYTES > bytes {
            self.next_segment(ts_ns)?;
        }
        self.write(ts_ns, kind, record, body_len);
        self.records += 1;
        Ok(self.records)
    }

    /// Closes the segment and begins the next one.
    #[cold]
    fn next_segment(&mut self, ts_ns: u64) -> Result<(), AppendError> {
        let Some(spare) = self.spare.take() else { return Err(AppendError::Full) };
        self.write(ts_ns, END, &mut [0; HEAD_BYTES], 0);
        // A later segment must not be on the disk without all of the earlier one.
        self.current.sync().map_err(AppendError::Io)?;
        self.current = spare;
        self.begin(self.number + 1, ts_ns);
        Ok(())
    }

    /// Writes `record`: room for its head, a body of `body_len` bytes, and zeros up to a multiple of 8.
    #[inline(always)]
    fn write(&mut self, ts_ns: u64, kind: u16, record: &mut [u8], body_len: usize) {
        let head = record.first_chunk_mut::<HEAD_BYTES>().expect("a record has a head");
        let len = (body_len as u32).to_le_bytes();
        // While the checksum is taken the length is in its place: so what it covers is in one piece.
        head[4..8].copy_from_slice(&len);
        head[8..16].copy_from_slice(&(self.records + 1).to_le_bytes());
        head[16..24].copy_from_slice(&ts_ns.to_le_bytes());
        head[24..26].copy_from_slice(&kind.to_le_bytes());
        self.checksum = crc32c_append(self.checksum, &record[4..HEAD_BYTES + body_len]);
        record[..4].copy_from_slice(&len);
        record[4..8].copy_from_slice(&self.checksum.to_le_bytes());
        self.current.write(self.at, record);
        self.at += record.len();
    }

    /// Waits until all records are on the disk.
    ///
    /// # Errors
    /// The disk reports an error; what is on it is unknown.
    pub fn sync(&self) -> io::Result<()> {
        self.current.sync()
    }

    /// Returns the segment that is written.
    #[must_use]
    pub const fn current(&self) -> &S {
        &self.current
    }
}

/// Reads all of the journal on `disk` and passes each record to `see`; returns where it ends.
///
/// # Errors
/// [`SegmentError`], or the error of `see`.
pub fn read_journal<D: Disk, E: From<SegmentError>>(
    disk: &D,
    mut see: impl FnMut(super::reader::SegmentEntry<'_>) -> Result<(), E>,
) -> Result<JournalEnd, E> {
    let mut reader = SegmentReader::new(disk)?;
    while let Some(entry) = reader.read()? {
        see(entry)?;
    }
    Ok(reader.end())
}
