//! Where a journal is, and who prepares what its writer must not wait for.

use std::fmt;
use std::io;

use anyhow::Result;
use tt_journal::segments::{Disk, Segment};

use super::Durability;

/// A place for the segments of a journal: a folder, or a test's disk in virtual time.
pub trait Storage: Disk + Sized {
    /// The keeper of its journal.
    type Keeper: Keeper<Segment = <Self as Disk>::Segment>;

    /// Starts the keeper of a journal whose writer is in the segment `current`, and whose segments have `bytes`.
    ///
    /// # Errors
    /// The keeper cannot be started.
    fn keeper(self, current: &Self::Segment, bytes: usize, durability: Durability) -> Result<Self::Keeper>;

    /// Returns the numbers of the snapshots that are there, newest first: that of the last record of each.
    ///
    /// # Errors
    /// The place cannot be read.
    fn snapshots(&self) -> io::Result<Vec<u64>>;

    /// Returns the content of a snapshot.
    ///
    /// # Errors
    /// The snapshot cannot be read.
    fn read_snapshot(&self, number: u64) -> io::Result<Vec<u8>>;
}

/// Makes segments ahead of the writer, and syncs those for whose records no verdict waits.
pub trait Keeper: fmt::Debug {
    /// A segment that can be written.
    type Segment: Segment + fmt::Debug;

    /// Asks for the segment with this number.
    fn ask(&mut self, number: u64);

    /// Returns the segment that was asked for, or why it cannot be made; `None` if it is not there yet.
    fn take(&mut self) -> Option<io::Result<Self::Segment>>;

    /// Notes that the writer is in the segment `current` now.
    fn follow(&mut self, current: &Self::Segment);

    /// Notes that a record was written.
    fn wrote(&mut self);

    /// Returns whether a sync has failed.
    fn has_failed(&self) -> bool;
}
