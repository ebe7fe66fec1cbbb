//! Recordings, whole and damaged: the reader finds the longest valid prefix, as a reading by docs/recordings.md does.

use tt_journal::RecordingReader;

use crate::choices::Choices;

const HEADER_LEN: usize = 24;
/// Bytes that choose the damage.
const HARM_LEN: usize = 8;
const HEAD_LEN: usize = 24;
const BODY_MAX: usize = 16 << 20;
const PACKED: u8 = 128;
const KINDS: std::ops::RangeInclusive<u8> = 1..=14;

/// Time, feed, kind, subject and body of a record.
type Record = (u64, u16, u8, u32, Vec<u8>);

/// Writes a recording from `data`, damages it, and compares the readings.
///
/// # Panics
/// The readings disagree.
pub fn run(data: &[u8]) {
    // First, since the recording takes all that follows.
    let (harm, data) = data.split_at(data.len().min(HARM_LEN));
    let mut file = recording(&mut Choices(data));
    damage(&mut file, &mut Choices(harm));
    let expected = expected(&file);
    let Ok(mut reader) = RecordingReader::new(file.as_slice()) else {
        assert!(expected.is_none(), "a valid header is rejected");
        return;
    };
    let Expected { records, valid_len, has_tail } = expected.expect("an invalid header is accepted");
    let mut read: Vec<Record> = Vec::new();
    while let Some(entry) = reader.read().expect("memory cannot fail") {
        let head = entry.head;
        read.push((head.ts_ns, head.feed, head.kind as u8, head.subject, entry.body.to_vec()));
    }
    assert_eq!(read, records);
    assert_eq!(reader.records(), records.len() as u64);
    assert_eq!((reader.valid_bytes(), reader.tail().is_some()), (valid_len as u64, has_tail));
    assert!(reader.read().expect("memory cannot fail").is_none(), "the end stays the end");
}

fn recording(choices: &mut Choices) -> Vec<u8> {
    let mut file = b"TTJRNL\r\n\x01\x00\x18\x00".to_vec();
    file.extend(u64::from(choices.double()).to_le_bytes());
    file.extend(crc32c(&file).to_le_bytes());
    while !choices.is_spent() && file.len() < 4096 {
        if !choices.byte().is_multiple_of(4) {
            file.extend(record(choices));
            continue;
        }
        let mut block: Vec<u8> = (0..choices.byte() % 4).flat_map(|_| record(choices)).collect();
        damage_once(&mut block, choices);
        let len = block.len() as u32;
        let mut body = len.to_le_bytes().to_vec();
        body.extend(lz4_literals(&block));
        file.extend(seal(0, 0, PACKED, 0, &body));
    }
    file
}

fn record(choices: &mut Choices) -> Vec<u8> {
    let kind = match choices.byte() {
        odd @ 240.. => odd,
        kind => KINDS.start() + kind % KINDS.end(),
    };
    let (ts_ns, feed, subject) = (u64::from(choices.double()), choices.word() % 3, u32::from(choices.byte()));
    let len = usize::from(choices.byte() % 64);
    seal(ts_ns, feed, kind, subject, &choices.bytes(len))
}

fn seal(ts_ns: u64, feed: u16, kind: u8, subject: u32, body: &[u8]) -> Vec<u8> {
    let mut record = (body.len() as u32).to_le_bytes().to_vec();
    record.extend([0; 4]);
    record.extend(ts_ns.to_le_bytes());
    record.extend(feed.to_le_bytes());
    record.extend([kind, 0]);
    record.extend(subject.to_le_bytes());
    record.extend(body);
    let checksum = crc32c_of_record(&record).to_le_bytes();
    record[4..8].copy_from_slice(&checksum);
    record
}

fn damage(file: &mut Vec<u8>, choices: &mut Choices) {
    match choices.byte() % 4 {
        0 => damage_once(file, choices),
        1 => file.truncate(usize::from(choices.word()) % (file.len() + 1)),
        2 => file.extend(choices.bytes(40)),
        _ => {}
    }
}

/// Changes one byte, or none.
fn damage_once(bytes: &mut [u8], choices: &mut Choices) {
    let (at, change) = (usize::from(choices.word()), choices.byte());
    let len = bytes.len().max(1);
    if let Some(byte) = bytes.get_mut(at % len) {
        *byte ^= change & choices.byte();
    }
}

/// What is valid of a file.
struct Expected {
    records: Vec<Record>,
    /// The header and all records up to the first that is not valid.
    valid_len: usize,
    has_tail: bool,
}

/// A reading of the whole file; `None` without a valid header.
fn expected(file: &[u8]) -> Option<Expected> {
    let header = file.get(..HEADER_LEN)?;
    let checksum = u32::from_le_bytes(*header[20..].first_chunk()?);
    if &header[..12] != b"TTJRNL\r\n\x01\x00\x18\x00" || checksum != crc32c(&header[..20]) {
        return None;
    }
    let (mut records, mut at) = (Vec::new(), HEADER_LEN);
    while let Some(bytes) = whole_record(&file[at..]) {
        let inner = if bytes[18] == PACKED {
            let Some(inner) = unpacked(&bytes[HEAD_LEN..]).and_then(|block| inner_records(&block)) else { break };
            inner
        } else {
            vec![fields(bytes)]
        };
        let unknown = inner.iter().position(|record| !KINDS.contains(&record.2));
        if unknown != Some(0) {
            at += bytes.len();
        }
        records.extend(inner.into_iter().take(unknown.unwrap_or(usize::MAX)));
        if unknown.is_some() {
            return Some(Expected { records, valid_len: at, has_tail: true });
        }
    }
    Some(Expected { records, valid_len: at, has_tail: at < file.len() })
}

/// The first record, if it is whole and its checksum fits.
fn whole_record(bytes: &[u8]) -> Option<&[u8]> {
    let len = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
    let record = bytes.get(..HEAD_LEN + len).filter(|_| len <= BODY_MAX)?;
    (u32::from_le_bytes(*record[4..].first_chunk()?) == crc32c_of_record(record)).then_some(record)
}

fn fields(record: &[u8]) -> Record {
    let number =
        |from: usize, to: usize| record[from..to].iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    (number(8, 16), number(16, 18) as u16, record[18], number(20, 24) as u32, record[HEAD_LEN..].to_vec())
}

fn inner_records(block: &[u8]) -> Option<Vec<Record>> {
    let (mut records, mut rest) = (Vec::new(), block);
    while !rest.is_empty() {
        let record = whole_record(rest)?;
        records.push(fields(record));
        rest = &rest[record.len()..];
    }
    Some(records)
}

/// An LZ4 block of literals alone.
fn lz4_literals(bytes: &[u8]) -> Vec<u8> {
    let mut block = vec![(bytes.len().min(15) as u8) << 4];
    if let Some(mut more) = bytes.len().checked_sub(15) {
        while more >= 255 {
            block.push(255);
            more -= 255;
        }
        block.push(more as u8);
    }
    block.extend(bytes);
    block
}

/// The bytes of a length and a block as [`lz4_literals`] writes it.
fn unpacked(body: &[u8]) -> Option<Vec<u8>> {
    let (len, block) = body.split_first_chunk()?;
    let len = u32::from_le_bytes(*len) as usize;
    let bytes = block.get(block.len().checked_sub(len)?..)?;
    (lz4_literals(bytes) == block).then(|| bytes.to_vec())
}

/// CRC-32C (Castagnoli), bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 })
    })
}

fn crc32c_of_record(record: &[u8]) -> u32 {
    crc32c(&[&record[..4], &record[8..]].concat())
}
