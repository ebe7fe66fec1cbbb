//! Reads a journal in segments.

use super::{
    BODY_BYTES_MAX, Disk, END, HEAD_BYTES, HEADER_BYTES, Header, SegmentError, checksum, record_bytes, u32_at, u64_at,
};

/// A record of a journal. Its body is valid until the next one is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentEntry<'a> {
    /// Number of the record, from 1.
    pub number: u64,
    /// Time on the writer's clock.
    pub ts_ns: u64,
    /// The kind, not zero.
    pub kind: u16,
    /// The body.
    pub body: &'a [u8],
}

/// Where a journal ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalEnd {
    /// Records that are valid.
    pub records: u64,
    /// Bytes behind them that hold something else: the rest of a record that was not whole.
    pub cut_bytes: usize,
    /// The last segment that was begun; zero without one.
    pub segment: u64,
    /// The offset behind its last record.
    pub(super) at: usize,
    /// The checksum of the last record.
    pub(super) checksum: u32,
}

impl JournalEnd {
    /// Bytes of [`to_bytes`](Self::to_bytes).
    pub const BYTES: usize = 28;

    /// Returns the place as bytes, without what is behind it.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        for (index, word) in [self.records, self.segment, self.at as u64].into_iter().enumerate() {
            out[index * 8..index * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
        out[24..].copy_from_slice(&self.checksum.to_le_bytes());
        out
    }

    /// Returns the place that [`to_bytes`](Self::to_bytes) has written.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let [records, segment, at] = [0, 8, 16].map(|at| u64_at(bytes, at));
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        Self { records, cut_bytes: 0, segment, at, checksum: u32_at(bytes, 24) }
    }
}

/// What is at an offset of a segment.
enum Found {
    Record {
        body: usize,
        checksum: u32,
    },
    /// The end of the segment, with its checksum.
    End(u32),
    Nothing,
}

/// A reader of a journal, which holds one segment at a time.
#[derive(Debug)]
pub struct SegmentReader<'a, D> {
    disk: &'a D,
    /// The segments that were begun and not read yet, in descending order.
    numbers: Vec<u64>,
    image: Vec<u8>,
    end: JournalEnd,
    is_over: bool,
}

impl<'a, D: Disk> SegmentReader<'a, D> {
    /// Begins with the first segment.
    ///
    /// # Errors
    /// The disk cannot be read.
    pub fn new(disk: &'a D) -> Result<Self, SegmentError> {
        let mut numbers = disk.numbers()?;
        numbers.reverse();
        Ok(Self { disk, numbers, image: Vec::new(), end: JournalEnd::default(), is_over: false })
    }

    /// Begins behind the record at `place`, where an earlier reader was. The segments before it are not needed.
    ///
    /// # Errors
    /// The disk cannot be read, or the segment does not have these records: see [`SegmentError`].
    pub fn resume(disk: &'a D, place: &JournalEnd) -> Result<Self, SegmentError> {
        let mut reader = Self::new(disk)?;
        reader.numbers.retain(|number| *number >= place.segment);
        let number = reader.numbers.pop().filter(|number| *number == place.segment);
        let number = number.ok_or(SegmentError::Chain(place.segment))?;
        reader.image = disk.read(number)?;
        let header = Header::parse(number, &reader.image)?.ok_or(SegmentError::Header(number))?;
        let (records, checksum) = (header.first_record.saturating_sub(1), header.checksum);
        reader.end = JournalEnd { records, cut_bytes: 0, segment: number, at: HEADER_BYTES, checksum };
        // The chain of checksums from the header on ends in that of the place.
        while reader.end.records < place.records {
            let Found::Record { body, checksum } = reader.find() else { return Err(SegmentError::Chain(number)) };
            reader.pass(body, checksum);
        }
        let is_it = reader.end == JournalEnd { cut_bytes: 0, ..*place };
        if is_it { Ok(reader) } else { Err(SegmentError::Chain(number)) }
    }

    fn pass(&mut self, body: usize, checksum: u32) {
        self.end.at += record_bytes(body);
        self.end.checksum = checksum;
        self.end.records += 1;
    }

    /// Returns the next record; `None` behind the last one. [`end`](Self::end) says then where that is.
    ///
    /// # Errors
    /// The journal is broken: see [`SegmentError`].
    pub fn read(&mut self) -> Result<Option<SegmentEntry<'_>>, SegmentError> {
        while !self.is_over {
            match self.find() {
                Found::Record { body, checksum } => {
                    let at = self.end.at;
                    self.pass(body, checksum);
                    let record = &self.image[at..];
                    return Ok(Some(SegmentEntry {
                        number: self.end.records,
                        ts_ns: u64_at(record, 16),
                        kind: u16::from_le_bytes([record[24], record[25]]),
                        body: &record[HEAD_BYTES..HEAD_BYTES + body],
                    }));
                }
                Found::End(checksum) => {
                    let at = self.end.at;
                    // A segment that was never begun is no continuation: the journal ends here.
                    if self.open_next()? {
                        self.check_chain(checksum)?;
                        self.end.checksum = checksum;
                    } else {
                        self.end.at = at;
                        self.is_over = true;
                    }
                }
                Found::Nothing => self.finish()?,
            }
        }
        Ok(None)
    }

    /// Returns where the journal ends, once all of it was read.
    #[must_use]
    pub const fn end(&self) -> JournalEnd {
        self.end
    }

    fn find(&self) -> Found {
        let Some(record) = self.image.get(self.end.at..).filter(|rest| rest.len() >= HEAD_BYTES) else {
            return Found::Nothing;
        };
        let body = u32_at(record, 0) as usize;
        if body > BODY_BYTES_MAX || record.len() < record_bytes(body) || u64_at(record, 8) != self.end.records + 1 {
            return Found::Nothing;
        }
        let found = checksum(self.end.checksum, &record[..HEAD_BYTES + body]);
        if found != u32_at(record, 4) {
            return Found::Nothing;
        }
        match u16::from_le_bytes([record[24], record[25]]) {
            END => Found::End(found),
            _ => Found::Record { body, checksum: found },
        }
    }

    /// Opens the next segment that was begun; returns whether there is one.
    fn open_next(&mut self) -> Result<bool, SegmentError> {
        let Some(number) = self.numbers.pop() else { return Ok(false) };
        let image = self.disk.read(number)?;
        if Header::parse(number, &image)?.is_none() {
            // It was prepared and not begun, or the loss of power took its header, and then nothing behind it was begun.
            return if self.has_later()? { Err(SegmentError::Header(number)) } else { Ok(false) };
        }
        let is_next = number == self.end.segment + 1;
        (self.image, self.end.segment, self.end.at) = (image, number, HEADER_BYTES);
        if is_next { Ok(true) } else { Err(SegmentError::Chain(number)) }
    }

    /// Checks that the header of the open segment continues the record with `checksum`.
    fn check_chain(&self, checksum: u32) -> Result<(), SegmentError> {
        let number = self.end.segment;
        let header = Header::parse(number, &self.image)?.ok_or(SegmentError::Header(number))?;
        let continues = (header.checksum, header.first_record) == (checksum, self.end.records + 1);
        if continues { Ok(()) } else { Err(SegmentError::Chain(number)) }
    }

    /// Ends at a place without a valid record, or begins the first segment.
    fn finish(&mut self) -> Result<(), SegmentError> {
        if self.end.segment == 0 {
            return match self.open_next()? {
                true => self.check_chain(0),
                false => {
                    self.is_over = true;
                    Ok(())
                }
            };
        }
        let (number, at) = (self.end.segment, self.end.at);
        if self.has_later()? {
            // A writer may have filled it since it was read.
            let image = self.disk.read(number)?;
            if image != self.image {
                self.image = image;
                return Ok(());
            }
            return Err(SegmentError::Damaged(number, at));
        }
        let rest = &self.image[at..];
        self.end.cut_bytes = rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        self.is_over = true;
        Ok(())
    }

    /// Returns whether another segment was begun.
    fn has_later(&self) -> Result<bool, SegmentError> {
        for number in &self.numbers {
            let image = self.disk.read(*number)?;
            if Header::parse(*number, &image)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
