//! The newest snapshot and the records behind it; and the snapshots in a folder.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use gate_limits::{Excess, LimitsFile};
use tt_journal::SegmentFolder;
use tt_journal::segments::Disk;

use super::Storage;
use super::replay::{JournalReader, Replay, Replayed, open, replay};

/// The end of a snapshot's name, and that of one that is being written.
const EXTENSION: &str = "ttsnap";
const UNFINISHED: &str = "new";
/// The name of the file whose lock the one writer of snapshots holds.
const LOCK: &str = "snapshot.lock";
/// Snapshots that are kept: if one is damaged, there is another.
const KEPT: usize = 2;

/// A snapshot that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The journal's records up to it.
    pub records: u64,
    /// The records that were performed for it, behind the snapshot before.
    pub performed: u64,
    /// Its size; zero if the one before is of the same place.
    pub bytes: usize,
}

/// Performs the records behind the newest snapshot that is valid, or all records. A snapshot that is not used is named in
/// the log.
///
/// # Errors
/// Those of [`replay`].
pub fn recover<S: Storage>(storage: &S) -> Result<Replayed> {
    for number in storage.snapshots().unwrap_or_default() {
        match continued(storage, number) {
            Ok(replayed) => return Ok(replayed),
            Err(error) => {
                tracing::warn!(snapshot = number, error = format!("{error:#}"), "risk: a snapshot is not used");
            }
        }
    }
    replay(storage, |_, _| Ok(()))
}

fn continued<S: Storage>(storage: &S, number: u64) -> Result<Replayed> {
    let (mut replay, place) = Replay::restore(&storage.read_snapshot(number)?)?;
    let snapshot_records = place.records;
    let mut reader = JournalReader::resume(storage, &place).context("it is of another journal")?;
    while let Some(record) = reader.read()? {
        if let Some(divergence) = replay.step(&record) {
            bail!("{divergence}");
        }
    }
    Ok(Replayed { replay: Some(replay), divergence: None, end: reader.end(), snapshot_records })
}

/// Returns the nodes that are beyond `limits` at the end of the journal in `folder`.
///
/// # Errors
/// Those of [`recover`], or the journal has no record, or its replay gives another answer.
pub fn excesses(limits: &LimitsFile, folder: &Path, now_ns: u64) -> Result<Vec<Excess>> {
    let place = || folder.display().to_string();
    let Replayed { replay, divergence, .. } = recover(&open(folder)?).with_context(place)?;
    if let Some(divergence) = divergence {
        bail!("{}: {divergence}", folder.display());
    }
    let found = replay.with_context(|| format!("{}: no record", folder.display()))?;
    Ok(limits.excesses(&found.gate, now_ns))
}

/// Writes a snapshot of the journal in `folder` as it is now, whether a gate writes the journal or not: performs the
/// records behind the last snapshot, and compares their answers.
///
/// # Errors
/// The journal is broken, or its replay gives another answer; or the folder cannot be written.
pub fn snapshot(folder: &Path) -> Result<Snapshot> {
    let place = || folder.display().to_string();
    let lock = File::options().write(true).create(true).truncate(false).open(folder.join(LOCK)).with_context(place)?;
    lock.lock().with_context(place)?;
    let segments = open(folder)?;
    let Replayed { replay, divergence, end, snapshot_records } = recover(&segments).with_context(place)?;
    if let Some(divergence) = divergence {
        bail!("{}: {divergence}", folder.display());
    }
    let mut replay = replay.with_context(|| format!("{}: no record", folder.display()))?;
    let (records, performed) = (end.records, end.records - snapshot_records);
    if performed == 0 {
        return Ok(Snapshot { records, performed, bytes: 0 });
    }
    // No snapshot is on the disk before its records are.
    for number in segments.numbers()?.into_iter().filter(|number| *number <= end.segment) {
        segments.open(number)?.sync().with_context(place)?;
    }
    let bytes = replay.snapshot(&end);
    write(folder, records, &bytes).with_context(place)?;
    Ok(Snapshot { records, performed, bytes: bytes.len() })
}

/// The same; a failure is logged, because the next start only takes longer.
pub(crate) fn write_or_log(folder: &Path) {
    match snapshot(folder) {
        Ok(Snapshot { records, bytes, .. }) => tracing::info!(records, bytes, "risk: a snapshot of the gate"),
        Err(error) => tracing::warn!(error = format!("{error:#}"), "risk: no snapshot was written"),
    }
}

fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:016}.{EXTENSION}"))
}

/// Writes a snapshot under another name first; then it takes its own, and older ones are removed.
fn write(folder: &Path, number: u64, bytes: &[u8]) -> io::Result<()> {
    let path = path(folder, number);
    let unfinished = path.with_added_extension(UNFINISHED);
    let mut file = File::create(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&unfinished, &path)?;
    File::open(folder)?.sync_all()?;
    for old in numbers(folder)?.into_iter().skip(KEPT) {
        fs::remove_file(self::path(folder, old))?;
    }
    // What writers have left that were killed.
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == UNFINISHED) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Returns the numbers of the snapshots in a folder, newest first.
pub(super) fn numbers(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::<u64>::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        if let (Some(number), true) = (stem, path.extension().is_some_and(|extension| extension == EXTENSION)) {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    numbers.reverse();
    Ok(numbers)
}

pub(super) fn read(folder: &SegmentFolder, number: u64) -> io::Result<Vec<u8>> {
    fs::read(path(folder.path(), number))
}
