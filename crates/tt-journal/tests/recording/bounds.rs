//! The bounds of a recording: packed blocks that are spoiled inside, whole records after a spoiled one, the longest
//! record.

use std::fs;
use std::io::{self, Write as _};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tt_journal::recording::{BODY_BYTES_MAX, HEAD_BYTES, RecordHead, RecordKind, TailFault, encode, header, seal};
use tt_journal::{Progress, Recorder, RecorderConfig, RecordingReader, Store, create, reopen};

use super::{Owned, file_of, read_all, records};

const PACKED: u8 = 128;

fn frame(ts_ns: u64, body: &[u8]) -> Vec<u8> {
    let mut record = Vec::new();
    encode(&mut record, RecordHead { ts_ns, feed: 1, kind: RecordKind::Frame, subject: 3 }, body);
    assert_eq!(seal(&mut record), 1);
    record
}

/// A record with a right checksum and any kind.
fn sealed(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut record = frame(1, body);
    record[18] = kind;
    assert_eq!(seal(&mut record), 1);
    record
}

/// An LZ4 block of literals alone (lz4_Block_format.md), behind the length that it claims.
fn literals(bytes: &[u8], claimed_len: u32) -> Vec<u8> {
    let mut body = claimed_len.to_le_bytes().to_vec();
    body.push((bytes.len().min(15) as u8) << 4);
    if let Some(mut more) = bytes.len().checked_sub(15) {
        while more >= 255 {
            body.push(255);
            more -= 255;
        }
        body.push(more as u8);
    }
    body.extend(bytes);
    body
}

#[test]
fn a_packed_block_that_is_spoiled_inside_ends_the_valid_prefix_before_it() {
    let (first, last) = (frame(10, b"before"), frame(99, b"after"));
    let block = [frame(11, b"one"), frame(12, b"two")].concat();
    let len = block.len() as u32;
    let changed = |at: usize, by: u8| {
        let mut wrong = block.clone();
        wrong[at] ^= by;
        sealed(PACKED, &literals(&wrong, len))
    };
    let second = frame(11, b"one").len();
    let spoiled = [
        ("a byte of the first body", changed(HEAD_BYTES, 1)),
        ("a byte of the last body", changed(block.len() - 1, 1)),
        ("a time", changed(second + 8, 4)),
        ("a checksum", changed(second + 4, 0x80)),
        ("a length beyond the block", changed(second, 0x40)),
        ("a length within the block", changed(second, 1)),
        ("the last byte is missing", sealed(PACKED, &literals(&block[..block.len() - 1], len - 1))),
        (
            "less than a head",
            sealed(PACKED, &literals(&block[..second + HEAD_BYTES - 1], (second + HEAD_BYTES - 1) as u32)),
        ),
        ("longer than it claims", sealed(PACKED, &literals(&block, len - 1))),
        ("a claim beyond the bound", sealed(PACKED, &literals(&block, 2 * BODY_BYTES_MAX as u32 + 1))),
        ("no length", sealed(PACKED, &len.to_le_bytes()[..3])),
        ("no block", sealed(PACKED, &len.to_le_bytes())),
    ];
    for (what, spoiled) in spoiled {
        let file = [&header(5)[..], &first, &spoiled, &last].concat();
        let (found, tail, valid) = read_all(&file);
        assert_eq!((found.len(), tail), (1, Some(TailFault::Checksum)), "{what}");
        assert_eq!(valid as usize, header(5).len() + first.len(), "{what}");
    }
    let whole = [&header(5)[..], &first, &sealed(PACKED, &literals(&block, len)), &last].concat();
    let (found, tail, valid) = read_all(&whole);
    let times: Vec<u64> = found.iter().map(|(head, _)| head.ts_ns).collect();
    assert_eq!((times, tail, valid as usize), (vec![10, 11, 12, 99], None, whole.len()));
}

#[test]
fn a_packed_block_within_a_packed_block_is_a_kind_that_is_not_known() {
    let inner = sealed(PACKED, &literals(&frame(2, b"deep"), frame(2, b"deep").len() as u32));
    let block = [frame(1, b"flat"), inner].concat();
    let file = [&header(5)[..], &sealed(PACKED, &literals(&block, block.len() as u32))].concat();
    let (found, tail, valid) = read_all(&file);
    assert_eq!((found.len(), tail), (1, Some(TailFault::Kind)));
    assert_eq!(valid as usize, file.len(), "the record that was read is in it");
}

/// A writer that was killed, on a file that was longer before: what follows the spoiled place is old, and whole.
#[test]
fn whole_records_behind_a_spoiled_one_never_come_back() {
    let records = records();
    let (bytes, ends) = file_of(&records);
    let folder = TempDir::new().unwrap();
    for spoiled in [0, 5, 20, records.len() - 2] {
        let path = folder.path().join(format!("{spoiled}.ttj"));
        let mut wrong = bytes.clone();
        wrong[ends[spoiled] + 4] ^= 1;
        assert_eq!(read_all(&wrong).0, records[..spoiled]);
        fs::write(&path, &wrong).unwrap();
        let (mut file, reopened) = reopen(&path, 9).unwrap();
        assert_eq!((reopened.records as usize, reopened.kept_bytes as usize), (spoiled, ends[spoiled]));
        assert_eq!(reopened.cut_bytes as usize, bytes.len() - ends[spoiled]);
        assert_eq!(reopened.tail, Some(TailFault::Checksum));
        assert_eq!(fs::metadata(&path).unwrap().len() as usize, ends[spoiled], "nothing stale is left");
        // As long as the spoiled record, so that the old ones would follow it in their old place.
        let (head, body) = &records[spoiled];
        let mut again = Vec::new();
        encode(&mut again, RecordHead { ts_ns: 7, ..*head }, body);
        seal(&mut again);
        file.write_all(&again).unwrap();
        let (found, tail, _) = read_all(&fs::read(&path).unwrap());
        let last: Owned = (RecordHead { ts_ns: 7, ..*head }, body.clone());
        assert_eq!((found, tail), ([&records[..spoiled], &[last]].concat(), None));
    }
}

/// A store that remembers the length of each block.
struct Lengths(Arc<Mutex<Vec<usize>>>);

impl io::Write for Lengths {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().push(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Store for Lengths {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A record and the `Lost` record before it fit into a block together, or the block before them is sent.
#[test]
fn no_block_is_longer_than_its_bound() {
    const BLOCK: usize = 256;
    let long = vec![0; BODY_BYTES_MAX + 1];
    for len in 0..BLOCK - 3 * HEAD_BYTES {
        let lengths = Arc::new(Mutex::new(Vec::new()));
        let config = RecorderConfig { block_bytes: BLOCK, ..RecorderConfig::default() };
        let recorder = Recorder::start(Lengths(Arc::clone(&lengths)), config, |failure| panic!("{failure:?}")).unwrap();
        let mut sender = recorder.sender(0);
        for lost in [false, true, true, false] {
            sender.record(1, RecordKind::Frame, 0, &[7; 40]);
            if lost {
                sender.record(1, RecordKind::Frame, 0, &long);
            }
            sender.record(1, RecordKind::Frame, 0, &long[..len]);
        }
        drop(sender);
        let progress = recorder.finish();
        assert!(progress.closes() && progress.dropped() == 2, "{progress:?}");
        let lengths = lengths.lock().unwrap();
        assert!(lengths.iter().all(|length| *length <= BLOCK), "{len}: {lengths:?}");
    }
}

#[test]
fn progress_that_does_not_add_up_says_so() {
    let whole = Progress {
        offered: 10,
        written: 1,
        dropped_full: 2,
        dropped_stopped: 3,
        dropped_long: 4,
        ..Progress::default()
    };
    assert!(whole.closes() && whole.dropped() == 9);
    for changed in [
        Progress { offered: 11, ..whole.clone() },
        Progress { written: 0, ..whole.clone() },
        Progress { dropped_full: 3, ..whole.clone() },
        Progress { dropped_stopped: 4, ..whole.clone() },
        Progress { dropped_long: 3, ..whole.clone() },
    ] {
        assert!(!changed.closes(), "{changed:?}");
    }
}

#[test]
fn each_tail_says_what_is_wrong_with_it() {
    let all = [TailFault::Torn, TailFault::Checksum, TailFault::Length, TailFault::Kind].map(TailFault::text);
    for (text, word) in all.into_iter().zip(["within", "checksum", "length", "kind"]) {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn the_longest_record_is_kept_and_one_byte_more_is_named() {
    let folder = TempDir::new().unwrap();
    let longest = vec![0x5A; BODY_BYTES_MAX];
    for packed in [false, true] {
        let path = folder.path().join(format!("{packed}.ttj"));
        let config = RecorderConfig { packed, block_bytes: 4_096, ..RecorderConfig::default() };
        let recorder = Recorder::start(create(&path, 1).unwrap(), config, |failure| panic!("{failure:?}")).unwrap();
        let mut sender = recorder.sender(0);
        sender.record(1, RecordKind::Frame, 0, &longest[1..]);
        sender.record(2, RecordKind::Frame, 0, &longest);
        sender.record(3, RecordKind::Frame, 0, &[&longest[..], &[1]].concat());
        sender.record(4, RecordKind::Frame, 0, b"short");
        assert!(!sender.has_stopped());
        drop(sender);
        let progress = recorder.finish();
        assert_eq!((progress.offered, progress.written, progress.dropped_long), (4, 3, 1));
        assert!(progress.closes() && progress.failure.is_none(), "{progress:?}");
        let (found, tail, valid) = read_all(&fs::read(&path).unwrap());
        let lens: Vec<_> = found.iter().map(|(head, body)| (head.ts_ns, head.kind, body.len())).collect();
        let frames = [(1, RecordKind::Frame, BODY_BYTES_MAX - 1), (2, RecordKind::Frame, BODY_BYTES_MAX)];
        assert_eq!(lens, [&frames[..], &[(4, RecordKind::Lost, 16), (4, RecordKind::Frame, 5)]].concat());
        assert_eq!((tail, valid), (None, fs::metadata(&path).unwrap().len()));
        let lost: Vec<u64> = found[2].1.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        assert_eq!(lost, [1, BODY_BYTES_MAX as u64 + 1]);
    }
    // A file may claim anything: one byte more is no length, whatever follows.
    let mut long = frame(1, b"");
    long[..4].copy_from_slice(&(BODY_BYTES_MAX as u32 + 1).to_le_bytes());
    let mut reader = RecordingReader::new(io::Cursor::new([&header(5)[..], &long].concat())).unwrap();
    assert!(reader.read().unwrap().is_none());
    assert_eq!(reader.tail(), Some(TailFault::Length));
}
