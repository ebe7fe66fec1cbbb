//! The journal in segments: on a real folder, and on a disk that loses the pages that were not synced.

#![allow(clippy::unwrap_used, reason = "a test may end where it fails")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::rc::Rc;

use testkit::{Requirement, require};
use tt_journal::segments::{Disk, SEGMENT_BYTES_MIN, Segment, SegmentError};
use tt_journal::{AppendError, JournalEnd, SegmentFolder, SegmentReader, SegmentWriter, read_journal};
use tt_model::SplitMix64;

/// Number, time, kind and body.
type Kept = (u64, u64, u16, Vec<u8>);

fn read<D: Disk>(disk: &D) -> Result<(Vec<Kept>, JournalEnd), SegmentError> {
    let mut records = Vec::new();
    let end = read_journal(disk, |entry| {
        records.push((entry.number, entry.ts_ns, entry.kind, entry.body.to_vec()));
        Ok::<(), SegmentError>(())
    })?;
    Ok((records, end))
}

/// A record that no other number has, with bodies of every length modulo 8.
fn record(number: u64) -> Kept {
    let body = (0..number % 97).map(|at| (at * 7 + number) as u8).collect();
    (number, number * 1_000, 1 + (number % 5) as u16, body)
}

/// Opens the journal on `disk` behind its end.
fn resume<D: Disk>(disk: &D) -> SegmentWriter<D::Segment> {
    let (_, end) = read(disk).unwrap();
    SegmentWriter::resume(disk, &end, SEGMENT_BYTES_MIN, 1).unwrap()
}

/// Appends the records `from` to `to`, with the next segment ready; returns the last number.
fn append<D: Disk>(disk: &D, writer: &mut SegmentWriter<D::Segment>, records: std::ops::RangeInclusive<u64>) {
    for number in records {
        if let Some(missing) = writer.needs_spare() {
            writer.put_spare(disk.create(missing, SEGMENT_BYTES_MIN).unwrap());
        }
        let (_, ts_ns, kind, body) = record(number);
        assert_eq!(writer.append(ts_ns, kind, &body).unwrap(), number);
    }
}

fn expected(count: u64) -> Vec<Kept> {
    (1..=count).map(record).collect()
}

#[test]
fn records_are_read_as_written_over_segments_and_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SegmentFolder::lock(folder.path()).unwrap();
    assert_eq!(read(&disk).unwrap(), (Vec::new(), JournalEnd::default()));
    for stretch in [1..=10, 11..=11, 12..=300, 301..=301] {
        append(&disk, &mut resume(&disk), stretch);
    }
    let (records, end) = read(&disk).unwrap();
    assert_eq!(records, expected(301));
    assert!(end.segment > 5 && end.cut_bytes == 0, "{end:?}");
    assert_eq!(SegmentFolder::lock(folder.path()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    drop(disk);
    SegmentFolder::lock(folder.path()).unwrap();
}

#[test]
fn without_a_next_segment_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SegmentFolder::lock(folder.path()).unwrap();
    let mut writer = resume(&disk);
    let mut written = 0;
    loop {
        let (room, body) = (writer.room(), [7; 90]);
        match writer.append(1, 1, &body) {
            Ok(number) => (written, _) = (number, assert!(room >= 128, "{room}")),
            Err(error) => break assert!(matches!(error, AppendError::Full) && room < 128, "{error} {room}"),
        }
    }
    assert!(matches!(writer.append(1, 1, &[0; SEGMENT_BYTES_MIN]), Err(AppendError::Long)));
    assert_eq!(read(&disk).unwrap().0.len() as u64, written);
    let missing = writer.needs_spare().unwrap();
    writer.put_spare(disk.create(missing, SEGMENT_BYTES_MIN).unwrap());
    assert_eq!(writer.append(1, 1, &[7; 90]).unwrap(), written + 1);
    assert_eq!(read(&disk).unwrap().0.len() as u64, written + 1);
}

/// The journal of `count` records, with the files of its folder.
fn journal(count: u64) -> (tempfile::TempDir, Vec<std::path::PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let disk = SegmentFolder::lock(folder.path()).unwrap();
    append(&disk, &mut resume(&disk), 1..=count);
    let mut files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some());
    files.sort();
    (folder, files)
}

/// A tail that lost any number of bytes, or has other bytes there, is cut at the last whole record, and the journal
/// goes on behind it; what the first run left behind the end is never read.
#[test]
fn a_torn_tail_is_cut_at_the_last_whole_record() {
    let (folder, files) = journal(75);
    let disk = SegmentFolder::new(folder.path());
    let (whole, end) = read(&disk).unwrap();
    let last = files.iter().rev().find(|path| fs::read(path).unwrap()[0] != 0).unwrap();
    let image = fs::read(last).unwrap();
    let used = image.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let (mut lengths, mut first_len) = (Vec::new(), 0);
    for at in 64..used {
        for filler in [0, 0xff] {
            let mut torn = image.clone();
            torn[at..used].fill(filler);
            if torn == image {
                continue;
            }
            fs::write(last, &torn).unwrap();
            let (records, found) = read(&disk).unwrap();
            assert_eq!(records, whole[..records.len()], "{at}");
            assert!(records.len() < whole.len(), "{at}: a changed record was read");
            assert_eq!(found.segment, end.segment);
            lengths.push(records.len());
            first_len = records.len().max(first_len);
            // A record is continued once for each length of the prefix.
            if filler == 0xff && lengths.iter().filter(|len| **len == records.len()).count() == 2 {
                let next = records.len() as u64 + 1;
                let (_, ts_ns, kind, _) = record(next);
                let mut writer = resume(&disk);
                writer.append(ts_ns, kind, b"other").unwrap();
                let (after, _) = read(&disk).unwrap();
                assert_eq!(after[..records.len()], records[..]);
                assert_eq!(after[records.len()..], [(next, ts_ns, kind, b"other".to_vec())]);
            }
        }
    }
    lengths.dedup();
    assert!(lengths.windows(2).all(|pair| pair[0] <= pair[1]) && lengths.len() > 3, "{lengths:?}");
}

#[test]
fn a_broken_chain_is_an_error() {
    let change = |change: &dyn Fn(&[std::path::PathBuf])| {
        let (folder, files) = journal(300);
        change(&files);
        read(&SegmentFolder::new(folder.path())).unwrap_err()
    };
    let flip = |path: &Path, at: usize| {
        let mut image = fs::read(path).unwrap();
        image[at] ^= 1;
        fs::write(path, image).unwrap();
    };
    // A middle segment is damaged anywhere: in its header, its first and its last record.
    assert_eq!(change(&|files| flip(&files[2], 20)), SegmentError::Header(3));
    assert_eq!(change(&|files| flip(&files[2], 64)), SegmentError::Damaged(3, 64));
    assert!(matches!(change(&|files| flip(&files[2], 3_000)), SegmentError::Damaged(3, at) if at > 64 && at < 3_001));
    assert_eq!(change(&|files| fs::remove_file(&files[2]).unwrap()), SegmentError::Chain(4));
    assert_eq!(change(&|files| fs::remove_file(&files[0]).unwrap()), SegmentError::Chain(2));
    // A segment of another journal.
    let (other, others) = journal(299);
    assert_eq!(change(&|files| assert!(fs::copy(&others[0], &files[1]).is_ok())), SegmentError::Header(2));
    drop(other);
    let version = |files: &[std::path::PathBuf]| {
        let mut image = fs::read(&files[0]).unwrap();
        image[8] = 2;
        let checksum = crc32c::crc32c(&image[..60]);
        image[60..64].copy_from_slice(&checksum.to_le_bytes());
        fs::write(&files[0], image).unwrap();
    };
    assert_eq!(change(&version), SegmentError::Version(1, 2));
}

/// Two journals whose records have equal numbers and lengths: a segment of one does not continue the other.
#[test]
fn a_segment_of_another_history_is_refused() {
    let write = |fill: u8| {
        let folder = tempfile::tempdir().unwrap();
        let disk = SegmentFolder::lock(folder.path()).unwrap();
        let mut writer = resume(&disk);
        for _ in 0..100 {
            if let Some(missing) = writer.needs_spare() {
                writer.put_spare(disk.create(missing, SEGMENT_BYTES_MIN).unwrap());
            }
            writer.append(1, 1, &[fill; 90]).unwrap();
        }
        folder
    };
    let (one, two) = (write(1), write(2));
    let name = "0000000000000002.ttseg";
    fs::copy(two.path().join(name), one.path().join(name)).unwrap();
    assert_eq!(read(&SegmentFolder::new(one.path())).unwrap_err(), SegmentError::Chain(2));
}

/// A disk of pages: what was written is there, and what was synced survives the loss of power. Of the other pages, any
/// may survive.
#[derive(Clone, Default)]
struct Pages(Rc<RefCell<BTreeMap<u64, PageFile>>>);

#[derive(Clone, Default)]
struct PageFile {
    now: Vec<u8>,
    synced: Vec<u8>,
}

struct PageSegment {
    disk: Pages,
    number: u64,
    bytes: usize,
}

const PAGE: usize = 512;

impl Pages {
    /// The loss of power: each page that was not synced survives or not, as drawn.
    fn lose_power(&self, random: &mut SplitMix64) {
        for file in self.0.borrow_mut().values_mut() {
            for (now, synced) in file.now.chunks_mut(PAGE).zip(file.synced.chunks(PAGE)) {
                if now != synced && random.below(2) == 0 {
                    now.copy_from_slice(synced);
                }
            }
            file.synced.clone_from(&file.now);
        }
    }
}

impl Disk for Pages {
    type Segment = PageSegment;

    fn numbers(&self) -> io::Result<Vec<u64>> {
        Ok(self.0.borrow().keys().copied().collect())
    }

    fn read(&self, number: u64) -> io::Result<Vec<u8>> {
        Ok(self.0.borrow()[&number].now.clone())
    }

    fn create(&self, number: u64, bytes: usize) -> io::Result<PageSegment> {
        let file = PageFile { now: vec![0; bytes], synced: vec![0; bytes] };
        assert!(self.0.borrow_mut().insert(number, file).is_none());
        Ok(PageSegment { disk: self.clone(), number, bytes })
    }

    fn open(&self, number: u64) -> io::Result<PageSegment> {
        let bytes = self.0.borrow()[&number].now.len();
        Ok(PageSegment { disk: self.clone(), number, bytes })
    }

    fn remove(&self, number: u64) -> io::Result<()> {
        self.0.borrow_mut().remove(&number);
        Ok(())
    }
}

impl Segment for PageSegment {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        let mut files = self.disk.0.borrow_mut();
        files.get_mut(&self.number).unwrap().now[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn sync(&self) -> io::Result<()> {
        let mut files = self.disk.0.borrow_mut();
        let file = files.get_mut(&self.number).unwrap();
        file.synced.clone_from(&file.now);
        Ok(())
    }
}

/// Power fails at any moment, again and again: every record that was synced is read, those behind it are a prefix of what
/// was written, and the journal goes on.
#[test]
fn what_was_synced_survives_the_loss_of_power() {
    let (mut lost, mut kept) = (0, 0);
    for seed in 0..400 {
        let (mut random, disk) = (SplitMix64::new(seed), Pages::default());
        let mut count = 0;
        for _ in 0..6 {
            let mut writer = resume(&disk);
            let (written, synced) = (count + 1 + random.below(60), count + random.below(60));
            let mut is_synced = count;
            for number in count + 1..=written {
                append(&disk, &mut writer, number..=number);
                if number <= synced {
                    writer.sync().unwrap();
                    is_synced = number;
                }
            }
            disk.lose_power(&mut random);
            let (records, _) = read(&disk).unwrap();
            let found = records.len() as u64;
            assert_eq!(records, expected(found), "seed {seed}");
            assert!((is_synced..=written).contains(&found), "seed {seed}: {is_synced} synced, {found} found");
            lost += written - found;
            kept += found - is_synced;
            count = found;
        }
    }
    assert!(lost > 1_000 && kept > 1_000, "{lost} {kept}");
}

/// A small file system.
struct Disk64K(tempfile::TempDir);

impl Disk64K {
    fn mount() -> nix::Result<Self> {
        let folder = tempfile::tempdir().map_err(|_| nix::errno::Errno::EIO)?;
        let flags = nix::mount::MsFlags::empty();
        nix::mount::mount(None::<&str>, folder.path(), Some("tmpfs"), flags, Some("size=64k"))?;
        Ok(Self(folder))
    }
}

impl Drop for Disk64K {
    fn drop(&mut self) {
        let _ = nix::mount::umount2(self.0.path(), nix::mount::MntFlags::MNT_DETACH);
    }
}

#[test]
fn a_full_disk_refuses_the_next_segment_and_keeps_what_was_written() {
    let Some(small) = require(Requirement::Privilege, Disk64K::mount()) else { return };
    let disk = SegmentFolder::lock(small.0.path()).unwrap();
    let mut writer = resume(&disk);
    let mut written = 0;
    let error = loop {
        if let Some(missing) = writer.needs_spare() {
            match disk.create(missing, SEGMENT_BYTES_MIN) {
                Ok(spare) => writer.put_spare(spare),
                Err(error) => break error,
            }
        }
        written = writer.append(1, 1, &[7; 90]).unwrap();
    };
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    while let Ok(number) = writer.append(1, 1, &[7; 90]) {
        written = number;
    }
    assert_eq!(read(&disk).unwrap().0.len() as u64, written);
    let mut reader = SegmentReader::new(&disk).unwrap();
    assert_eq!(reader.read().unwrap().unwrap().body, [7; 90]);
}

/// A segment holds one record as long as its room, and no longer one.
#[test]
fn the_longest_record_fills_a_segment_and_a_longer_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SegmentFolder::lock(folder.path()).unwrap();
    let mut writer = resume(&disk);
    let longest = writer.room() - 32;
    let error = writer.append(1, 1, &vec![7; longest + 1]).unwrap_err();
    assert_eq!(error.to_string(), "a record is longer than a segment of the journal");
    assert_eq!(writer.append(1, 1, &vec![7; longest]).unwrap(), 1);
    assert_eq!(writer.append(2, 1, &[]).unwrap_err().to_string(), "the journal has no room");
    drop(writer);
    assert_eq!(read(&disk).unwrap().0, [(1, 1, 1, vec![7; longest])]);
}

/// A reader continues behind every record, without the segments before it, and only where it was.
#[test]
fn a_reader_resumes_behind_any_record() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SegmentFolder::lock(folder.path()).unwrap();
    append(&disk, &mut resume(&disk), 1..=300);
    let all = expected(300);
    let mut places = Vec::new();
    let mut reader = SegmentReader::new(&disk).unwrap();
    while reader.read().unwrap().is_some() {
        places.push(reader.end());
    }
    for place in &places {
        assert_eq!(JournalEnd::from_bytes(&place.to_bytes()), *place);
        let mut reader = SegmentReader::resume(&disk, place).unwrap();
        let mut rest = Vec::new();
        while let Some(entry) = reader.read().unwrap() {
            rest.push((entry.number, entry.ts_ns, entry.kind, entry.body.to_vec()));
        }
        assert_eq!(rest, all[place.records as usize..]);
        assert_eq!(reader.end(), places[299]);
        for at in 0..JournalEnd::BYTES {
            let mut bytes = place.to_bytes();
            bytes[at] ^= 1;
            assert!(SegmentReader::resume(&disk, &JournalEnd::from_bytes(&bytes)).is_err(), "byte {at} of {place:?}");
        }
    }
    let place = places[200];
    (1..place.segment).for_each(|number| disk.remove(number).unwrap());
    assert!(SegmentReader::resume(&disk, &place).is_ok());
    disk.remove(place.segment).unwrap();
    assert_eq!(SegmentReader::resume(&disk, &place).unwrap_err(), SegmentError::Chain(place.segment));
}
