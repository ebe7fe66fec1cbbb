//! A recording that was cut off, damaged, or refused by its disk: what is whole stays, and everything is accounted for.

#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

#[path = "recording/bounds.rs"]
mod bounds;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use testkit::{Requirement, require};
use tt_journal::recording::{HEADER_BYTES, RecordHead, RecordKind, TailFault, encode, header, seal};
use tt_journal::{Failure, ReadError, Recorder, RecorderConfig, RecordingReader, Store, create, reopen};

type Owned = (RecordHead, Vec<u8>);

/// Bodies of every length up to 40, one of 3,000 bytes, and none at all, of every kind.
fn records() -> Vec<Owned> {
    let lengths = (0..40).chain([3000, 0]);
    let record = |(i, len): (usize, usize)| {
        let kind = RecordKind::ALL[i % RecordKind::ALL.len()];
        let head =
            RecordHead { ts_ns: 1_700_000_000_000_000_000 + i as u64, feed: i as u16 % 3, kind, subject: i as u32 };
        (head, (0..len).map(|byte| (byte * 7 + i) as u8).collect())
    };
    lengths.enumerate().map(record).collect()
}

/// The bytes of a whole file, and where each record ends.
fn file_of(records: &[Owned]) -> (Vec<u8>, Vec<usize>) {
    let mut bytes = header(5).to_vec();
    let mut ends = vec![bytes.len()];
    for (head, body) in records {
        let start = bytes.len();
        encode(&mut bytes, *head, body);
        assert_eq!(seal(&mut bytes[start..]), 1);
        ends.push(bytes.len());
    }
    (bytes, ends)
}

fn read_all(bytes: &[u8]) -> (Vec<Owned>, Option<TailFault>, u64) {
    let mut reader = RecordingReader::new(bytes).unwrap();
    let mut found = Vec::new();
    while let Some(entry) = reader.read().unwrap() {
        found.push((entry.head, entry.body.to_vec()));
    }
    assert!(reader.read().unwrap().is_none(), "after the end, none");
    (found, reader.tail(), reader.valid_bytes())
}

#[test]
fn case_m44_cut_off_at_each_byte_the_whole_records_stay() {
    let records = records();
    let (bytes, ends) = file_of(&records);
    let folder = TempDir::new().unwrap();
    for len in 0..=bytes.len() {
        let cut = &bytes[..len];
        let whole = ends.iter().rposition(|end| *end <= len);
        let Some(whole) = whole else {
            assert_eq!(RecordingReader::new(cut).unwrap_err(), ReadError::Truncated, "{len}");
            continue;
        };
        let (found, tail, valid) = read_all(cut);
        assert_eq!(found, records[..whole], "{len}");
        assert_eq!((tail, valid as usize), ((ends[whole] != len).then_some(TailFault::Torn), ends[whole]), "{len}");
    }
    // On the disk: gone on with after each cut, the whole records stay, the rest is cut off, and more can follow.
    for len in (0..200).chain([1000, bytes.len() - 1, bytes.len()]) {
        let path = folder.path().join("cut.ttj");
        fs::write(&path, &bytes[..len]).unwrap();
        let (mut file, reopened) = reopen(&path, 9).unwrap();
        let whole = ends.iter().rposition(|end| *end <= len);
        assert_eq!(reopened.records as usize, whole.unwrap_or(0), "{len}");
        assert_eq!(reopened.cut_bytes as usize, len - whole.map_or(0, |whole| ends[whole]), "{len}");
        assert_eq!(reopened.tail.is_some(), reopened.cut_bytes > 0, "{len}");
        let mut more = Vec::new();
        encode(&mut more, records[7].0, &records[7].1);
        seal(&mut more);
        file.write_all(&more).unwrap();
        let (found, tail, _) = read_all(&fs::read(&path).unwrap());
        assert_eq!((&found[..found.len() - 1], &found[found.len() - 1]), (&records[..whole.unwrap_or(0)], &records[7]));
        assert_eq!(tail, None);
    }
}

#[test]
fn case_m44_a_flipped_bit_ends_the_valid_prefix() {
    let records = records();
    let (bytes, ends) = file_of(&records);
    for at in HEADER_BYTES..bytes.len() {
        let mut wrong = bytes.clone();
        wrong[at] ^= 1 << (at % 8);
        let hit = ends.iter().rposition(|end| *end <= at).unwrap();
        let (found, tail, valid) = read_all(&wrong);
        assert_eq!((found.len(), valid as usize), (hit, ends[hit]), "byte {at}");
        assert!(matches!(tail, Some(TailFault::Checksum | TailFault::Length | TailFault::Torn)), "byte {at}: {tail:?}");
    }
    for at in 0..HEADER_BYTES {
        let mut wrong = bytes.clone();
        wrong[at] ^= 1 << (at % 8);
        assert_eq!(RecordingReader::new(&wrong[..]).unwrap_err(), ReadError::Header, "byte {at}");
    }
}

#[test]
fn nothing_but_a_recording_is_ever_cut() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("notes.txt");
    for text in [&b"TT"[..], b"dear diary", b"this is a text that is longer than any header of a recording"] {
        fs::write(&path, text).unwrap();
        let is_prefix = text == b"TT";
        assert_eq!(reopen(&path, 1).is_ok(), is_prefix);
        assert_eq!(fs::read(&path).unwrap() == text, !is_prefix);
    }
    assert!(matches!(create(&path, 1), Err(ReadError::Io(io::ErrorKind::AlreadyExists))));
    let mut later = header(1);
    later[8] = 2;
    let checksum = crc32c::crc32c(&later[..20]);
    later[20..].copy_from_slice(&checksum.to_le_bytes());
    assert_eq!(RecordingReader::new(&later[..]).unwrap_err(), ReadError::Version(2));
}

/// A store that refuses after so many bytes, in its own way.
struct Refusing {
    left: usize,
    error: io::ErrorKind,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Write for Refusing {
    /// As disks do: what fits is taken, then nothing.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(self.error.into());
        }
        let taken = bytes.len().min(self.left).min(7);
        self.left -= taken;
        self.seen.lock().unwrap().extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Store for Refusing {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Records until the recorder has stopped and beyond; returns the reported failures.
fn record_beyond_failure(store: impl Store) -> (Recorder, Vec<Failure>) {
    let (sender, receiver): (Sender<Failure>, Receiver<Failure>) = channel();
    let config = RecorderConfig { block_bytes: 4096, blocks: 4, ..RecorderConfig::default() };
    let recorder = Recorder::start(store, config, move |failure| sender.send(failure.clone()).unwrap()).unwrap();
    let mut sender = recorder.sender(0);
    let first = loop {
        sender.record(1, RecordKind::Frame, 0, &[9; 900]);
        sender.flush();
        if let Ok(failure) = receiver.try_recv() {
            break failure;
        }
    };
    // The engine goes on; nothing more is taken.
    while !sender.has_stopped() {
        std::thread::yield_now();
    }
    for _ in 0..100 {
        sender.record(2, RecordKind::Frame, 0, &[9; 900]);
    }
    drop(sender);
    (recorder, [first].into_iter().chain(receiver.try_iter()).collect())
}

#[test]
fn case_m43_a_refusing_disk_stops_the_recording_loudly_and_nothing_else() {
    for error in [io::ErrorKind::StorageFull, io::ErrorKind::Other, io::ErrorKind::WriteZero] {
        let seen = Arc::new(Mutex::new(header(1).to_vec()));
        let (recorder, failures) = record_beyond_failure(Refusing { left: 10_000, error, seen: Arc::clone(&seen) });
        assert_eq!(failures.iter().map(|failure| failure.kind).collect::<Vec<_>>(), [error], "reported once");
        let progress = recorder.finish();
        assert!(progress.closes(), "{progress:?}");
        assert_eq!(progress.failure.as_ref().map(|failure| failure.kind), Some(error));
        assert!(progress.dropped_stopped > 100, "{progress:?}");
        // What the disk took before is a valid recording with a torn end.
        let (found, tail, _) = read_all(&seen.lock().unwrap());
        assert_eq!((found.len(), tail), (10_000 / 924, Some(TailFault::Torn)));
        assert!(found.len() as u64 >= progress.written);
    }
}

#[test]
fn case_m43_a_sync_that_fails_stops_the_recording() {
    struct Unsynced(Vec<u8>);
    impl Write for Unsynced {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    impl Store for Unsynced {
        fn sync(&mut self) -> io::Result<()> {
            Err(io::Error::from_raw_os_error(5))
        }
    }
    let (recorder, failures) = record_beyond_failure(Unsynced(Vec::new()));
    assert_eq!(failures.len(), 1);
    assert!(failures[0].reason.contains("os error 5"), "EIO: {failures:?}");
    assert!(recorder.finish().closes());
}

#[test]
fn case_m43_a_full_device_stops_the_recording() {
    let (recorder, failures) = record_beyond_failure(create(Path::new("/dev/full"), 1).unwrap());
    assert_eq!(failures[0].kind, io::ErrorKind::StorageFull);
    let progress = recorder.finish();
    assert!(progress.closes() && progress.written == 0, "{progress:?}");
}

/// A file system of 64 KiB, where the test may mount one.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(folder: &Path) -> nix::Result<Self> {
        let flags = nix::mount::MsFlags::empty();
        nix::mount::mount(None::<&str>, folder, Some("tmpfs"), flags, Some("size=64k"))?;
        Ok(Self(folder.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = nix::mount::umount(&self.0);
    }
}

#[test]
fn case_m43_a_full_file_system_keeps_the_whole_records() {
    let folder = TempDir::new().unwrap();
    let Some(disk) = require(Requirement::Privilege, SmallDisk::mount(folder.path())) else { return };
    let path = disk.0.join("full.ttj");
    let (recorder, failures) = record_beyond_failure(create(&path, 1).unwrap());
    assert_eq!(failures[0].kind, io::ErrorKind::StorageFull);
    let progress = recorder.finish();
    assert!(progress.closes(), "{progress:?}");
    let (found, ..) = read_all(&fs::read(&path).unwrap());
    assert!(found.len() as u64 >= progress.written && found.len() > 50, "{} {progress:?}", found.len());
    let (_, reopened) = reopen(&path, 1).unwrap();
    assert_eq!(reopened.records as usize, found.len());
}

/// A store that takes nothing until it is let.
struct Stuck {
    go: Receiver<()>,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // After the other end is gone, everything goes.
        let _ = self.go.recv();
        self.seen.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Store for Stuck {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_stuck_disk_never_holds_the_engine_up_and_what_is_missing_is_said() {
    let (go, wait) = channel();
    let seen = Arc::new(Mutex::new(header(1).to_vec()));
    let config = RecorderConfig { block_bytes: 4096, blocks: 4, ..RecorderConfig::default() };
    let store = Stuck { go: wait, seen: Arc::clone(&seen) };
    let recorder = Recorder::start(store, config, |failure| panic!("{failure:?}")).unwrap();
    let mut sender = recorder.sender(3);
    // Many times what the blocks hold, while the disk takes nothing: this returns.
    for i in 0..1000 {
        sender.record(i, RecordKind::Frame, 1, &[1; 500]);
        sender.flush();
    }
    let stuck = recorder.progress();
    assert!(stuck.dropped_full > 900 && stuck.offered == 1000, "{stuck:?}");
    drop(go);
    // With the disk back there is room again, and the gap is recorded before the next record.
    while recorder.progress().written == 0 {
        std::thread::yield_now();
    }
    let mut last = 1000;
    loop {
        let dropped = recorder.progress().dropped_full;
        sender.record(last, RecordKind::Frame, 1, b"after");
        last += 1;
        if recorder.progress().dropped_full == dropped {
            break;
        }
    }
    drop(sender);
    let progress = recorder.finish();
    assert!(progress.closes() && progress.failure.is_none(), "{progress:?}");
    let (found, tail, _) = read_all(&seen.lock().unwrap());
    assert_eq!(tail, None);
    let lost: Vec<_> = found.iter().filter(|(head, _)| head.kind == RecordKind::Lost).collect();
    let said = |(_, body): &&Owned| u64::from_le_bytes(body[..8].try_into().unwrap());
    assert_eq!(lost.iter().map(said).sum::<u64>(), progress.dropped_full);
    let frames: Vec<u64> =
        found.iter().filter(|(head, _)| head.kind == RecordKind::Frame).map(|(head, _)| head.ts_ns).collect();
    assert_eq!(frames.len() as u64, progress.written);
    assert!(frames.is_sorted(), "in the order of their arrival");
    let gap = found.iter().position(|(head, _)| head.kind == RecordKind::Lost).unwrap();
    let missing = found[gap + 1].0.ts_ns - found[gap - 1].0.ts_ns - 1;
    assert_eq!(missing, said(&&found[gap]), "exactly those between its neighbours");
}

#[test]
fn a_file_of_several_senders_holds_each_in_its_order() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("feeds.ttj");
    let recorder = Recorder::start(create(&path, 1).unwrap(), RecorderConfig::default(), |_| {}).unwrap();
    std::thread::scope(|scope| {
        for feed in 0..4 {
            let mut sender = recorder.sender(feed);
            scope.spawn(move || {
                for i in 0..5000_u64 {
                    sender.record(i, RecordKind::Frame, 0, &i.to_le_bytes());
                    if i % 64 == 0 {
                        sender.flush();
                    }
                }
            });
        }
    });
    let progress = recorder.finish();
    assert_eq!((progress.written, progress.dropped()), (20_000, 0));
    let mut next = [0; 4];
    let mut reader = RecordingReader::new(File::open(&path).unwrap()).unwrap();
    while let Some(entry) = reader.read().unwrap() {
        assert_eq!(entry.body, u64::to_le_bytes(next[usize::from(entry.head.feed)]));
        next[usize::from(entry.head.feed)] += 1;
    }
    assert_eq!((next, reader.tail()), ([5000; 4], None));
    assert_eq!(reader.valid_bytes(), fs::metadata(&path).unwrap().len());
}

#[test]
fn packed_blocks_hold_the_same_records_and_are_kept_or_cut_whole() {
    let folder = TempDir::new().unwrap();
    let frame =
        |i: u64| format!("{{\"e\":\"depthUpdate\",\"u\":{i},\"b\":[[\"61837.10\",\"0.{i:08}\"]]}}").into_bytes();
    let mut whole = Vec::new();
    for packed in [false, true] {
        let path = folder.path().join(format!("{packed}.ttj"));
        let config = RecorderConfig { packed, block_bytes: 2048, ..RecorderConfig::default() };
        let recorder = Recorder::start(create(&path, 1).unwrap(), config, |failure| panic!("{failure:?}")).unwrap();
        let mut sender = recorder.sender(2);
        for i in 0..100 {
            sender.record(i, RecordKind::Frame, 7, &frame(i));
        }
        sender.record(100, RecordKind::Timeout, 0, b"");
        drop(sender);
        let progress = recorder.finish();
        let bytes = fs::read(&path).unwrap();
        assert_eq!((progress.written, progress.bytes as usize), (101, bytes.len() - HEADER_BYTES));
        whole.push((read_all(&bytes), bytes));
    }
    let ((bare, ..), bare_bytes) = &whole[0];
    let ((packed, tail, valid), packed_bytes) = &whole[1];
    assert_eq!((packed, *tail, *valid as usize), (bare, None, packed_bytes.len()));
    assert!(packed_bytes.len() * 2 < bare_bytes.len(), "{} of {}", packed_bytes.len(), bare_bytes.len());
    for len in HEADER_BYTES..packed_bytes.len() {
        let (found, tail, valid) = read_all(&packed_bytes[..len]);
        assert_eq!(found, bare[..found.len()], "{len}");
        assert_eq!(tail, (valid as usize != len).then_some(TailFault::Torn), "{len}");
    }
    for at in HEADER_BYTES..packed_bytes.len() {
        let mut wrong = packed_bytes.clone();
        wrong[at] ^= 1 << (at % 8);
        let (found, tail, _) = read_all(&wrong);
        assert!(tail.is_some() && found.len() < bare.len() && found == bare[..found.len()], "byte {at}");
    }
}
