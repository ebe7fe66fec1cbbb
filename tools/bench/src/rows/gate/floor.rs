//! What the gate's rows cannot be faster than: the memory that an event touches, and the disk.

use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use tt_model::SplitMix64;
use tt_os::mapped_file::MappedFile;

use super::rig;
use crate::harness::operation::Operation;

/// Cache lines that a new order touches for the first time in a gate of 10,000 instruments, on average: 197,053 in 4,096
/// orders, by callgrind's simulation of a cache that holds everything.
pub(super) const LINES_OF_NEW: usize = 48;

/// The same of a mark: 66,601 in 4,096 marks.
pub(super) const LINES_OF_MARK: usize = 16;

/// Words of a cache line.
const LINE: usize = 8;

/// Lines of the memory that is read: 16 MiB.
const MEMORY: usize = 1 << 18;

/// Reads of one word of a number of cache lines anywhere in 16 MiB, none of which waits for another.
pub(super) struct Lines {
    memory: Vec<u64>,
    places: Vec<u32>,
    lines: usize,
}

impl Lines {
    pub(super) fn new(lines: usize) -> Self {
        let mut random = SplitMix64::new(0x6c69_6e65);
        let memory = (0..MEMORY * LINE).map(|word| (word / LINE) as u64).collect();
        let places = (0..4_096 * lines).map(|_| random.index(MEMORY) as u32).collect();
        Self { memory, places, lines }
    }

    #[inline(always)]
    fn places(&self, index: usize) -> &[u32] {
        &self.places[index * self.lines..][..self.lines]
    }
}

impl Operation for Lines {
    fn inputs(&self) -> usize {
        self.places.len() / self.lines
    }

    #[inline(always)]
    fn run(&mut self, index: usize) -> u64 {
        self.places(index).iter().map(|place| self.memory[*place as usize * LINE]).sum()
    }

    fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
        let expected = self.places(index).iter().map(|place| u64::from(*place)).sum();
        ensure!(self.run(index) == expected, "the memory has other words");
        Ok(expected)
    }

    fn note(&self) -> Option<String> {
        Some(format!("one word of each of {} lines", self.lines))
    }
}

/// A record of an order's length, written through memory, and a wait for the disk.
pub(super) struct DiskWrites {
    file: MappedFile,
    folder: PathBuf,
    at: usize,
}

/// Bytes of the record of an intent with its verdict.
const RECORD: [u8; 168] = [0x5a; 168];

impl DiskWrites {
    /// # Errors
    /// The file cannot be made.
    pub(super) fn new() -> anyhow::Result<Self> {
        let folder = rig::new_folder()?;
        let file = MappedFile::create(&folder.join("records"), 1 << 20).context("the file of the bench")?;
        Ok(Self { file, folder, at: 0 })
    }
}

impl Operation for DiskWrites {
    fn inputs(&self) -> usize {
        64
    }

    fn run(&mut self, _: usize) -> u64 {
        if self.at + RECORD.len() > self.file.bytes() {
            self.at = 0;
        }
        self.file.write(self.at, &RECORD);
        self.at += RECORD.len();
        u64::from(self.file.sync().is_ok())
    }

    fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
        ensure!(self.run(index) == 1, "the disk reports an error");
        Ok(1)
    }
}

impl Drop for DiskWrites {
    fn drop(&mut self) {
        rig::remove_folder(&self.folder);
    }
}
