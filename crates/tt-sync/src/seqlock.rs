//! A cell of `N` words with one writer and any number of readers, which always read a complete value.
//!
//! A version counts the stores twice and is odd during a store. A reader reads the words between two reads of the
//! version, and accepts them if both are the same even number. The writer never waits; a reader retries only while the
//! writer stores into this cell.
//!
//! Orderings, without a standalone fence so that ThreadSanitizer and loom follow them:
//!
//! - The closing version is stored with Release and read first with Acquire, so a reader that sees it sees its words.
//! - Every word is stored with Release after the odd version, and loaded with Acquire before the second look at the
//!   version: a reader that got one word of a newer store therefore sees its odd version, or a later one, and repeats.
//!
//! Seven words and the version fill one cache line.

use crate::sync::{Arc, AtomicU64, Box, Ordering, boxed_slice, spin_loop};
use core::array;

#[cfg(test)]
mod tests;

/// A value of `N` words with its version.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Cell<const N: usize> {
    version: AtomicU64,
    words: [AtomicU64; N],
}

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<Cell<7>>() == 64);

impl<const N: usize> Cell<N> {
    fn new(value: [u64; N]) -> Self {
        Self::new_from(value, 0)
    }

    /// Like [`new`](Self::new), with an even first `version`, so that a test can start just before the wrap.
    fn new_from(value: [u64; N], version: u64) -> Self {
        Self { version: AtomicU64::new(version), words: array::from_fn(|i| AtomicU64::new(value[i])) }
    }

    /// Must have one caller at a time, which the handles ensure.
    #[inline]
    fn store(&self, value: &[u64; N]) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        for (word, new) in self.words.iter().zip(value) {
            word.store(*new, Ordering::Release);
        }
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// Returns the value, for the writer.
    #[inline]
    fn load_own(&self) -> [u64; N] {
        array::from_fn(|i| self.words[i].load(Ordering::Relaxed))
    }

    /// Returns the value and the number of stores before it, or `None` during a store.
    #[inline]
    fn try_load(&self) -> Option<([u64; N], u64)> {
        let version = self.version.load(Ordering::Acquire);
        let value = array::from_fn(|i| self.words[i].load(Ordering::Acquire));
        let whole = version & 1 == 0 && self.version.load(Ordering::Relaxed) == version;
        whole.then_some((value, version >> 1))
    }

    #[inline]
    fn load(&self) -> ([u64; N], u64) {
        loop {
            if let Some(loaded) = self.try_load() {
                return loaded;
            }
            spin_loop();
        }
    }
}

/// Creates a cell that contains `value`.
#[must_use]
pub fn cell<const N: usize>(value: [u64; N]) -> (Writer<N>, Reader<N>) {
    let cell = Arc::new(Cell::new(value));
    (Writer { cell: Arc::clone(&cell) }, Reader { cell })
}

/// Creates a table of `len` adjacent cells, each of which contains `value`.
///
/// # Panics
/// If the cells take more than `isize::MAX` bytes, or the allocator has no memory for them.
#[must_use]
pub fn table<const N: usize>(len: usize, value: [u64; N]) -> (TableWriter<N>, TableReader<N>) {
    let cells = Arc::new(boxed_slice(len, |_| Cell::new(value)));
    (TableWriter { cells: Arc::clone(&cells) }, TableReader { cells })
}

/// The writer of a cell. There is one, and it cannot be cloned.
#[derive(Debug)]
pub struct Writer<const N: usize> {
    cell: Arc<Cell<N>>,
}

impl<const N: usize> Writer<N> {
    /// Replaces the value. Wait-free.
    #[inline]
    pub fn store(&mut self, value: &[u64; N]) {
        self.cell.store(value);
    }

    /// Returns another reader of the same cell.
    #[must_use]
    pub fn reader(&self) -> Reader<N> {
        Reader { cell: Arc::clone(&self.cell) }
    }
}

/// A reader of a cell; clone it for each thread.
#[derive(Clone, Debug)]
pub struct Reader<const N: usize> {
    cell: Arc<Cell<N>>,
}

impl<const N: usize> Reader<N> {
    /// Returns the newest value. Polls while the writer stores.
    #[inline]
    #[must_use]
    pub fn load(&self) -> [u64; N] {
        self.cell.load().0
    }

    /// Returns the newest value, or `None` while the writer stores.
    #[inline]
    #[must_use]
    pub fn try_load(&self) -> Option<[u64; N]> {
        self.cell.try_load().map(|(value, _)| value)
    }

    /// Returns the newest value and the number of stores before it.
    #[inline]
    #[must_use]
    pub fn load_counted(&self) -> ([u64; N], u64) {
        self.cell.load()
    }
}

/// The writer of a table of cells.
#[derive(Debug)]
pub struct TableWriter<const N: usize> {
    cells: Arc<Box<[Cell<N>]>>,
}

impl<const N: usize> TableWriter<N> {
    /// Replaces the value of cell `index` and returns `true`, or returns `false` if there is no such cell. Wait-free.
    #[inline]
    pub fn store(&mut self, index: usize, value: &[u64; N]) -> bool {
        let cell = self.cells.get(index);
        if let Some(cell) = cell {
            cell.store(value);
        }
        cell.is_some()
    }

    /// Returns the value of cell `index`, or `None` if there is no such cell. Reads no version, because only this
    /// writer stores.
    #[inline]
    #[must_use]
    pub fn load(&self, index: usize) -> Option<[u64; N]> {
        self.cells.get(index).map(Cell::load_own)
    }

    /// Returns another reader of the same table.
    #[must_use]
    pub fn reader(&self) -> TableReader<N> {
        TableReader { cells: Arc::clone(&self.cells) }
    }
}

/// A reader of a table of cells; clone it for each thread.
#[derive(Clone, Debug)]
pub struct TableReader<const N: usize> {
    cells: Arc<Box<[Cell<N>]>>,
}

impl<const N: usize> TableReader<N> {
    /// Returns the number of cells.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Returns whether the table has no cells.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Returns the newest value of cell `index`, or `None` if there is no such cell. Polls while the writer stores.
    #[inline]
    #[must_use]
    pub fn load(&self, index: usize) -> Option<[u64; N]> {
        self.cells.get(index).map(|cell| cell.load().0)
    }

    /// Like [`load`](Self::load), with the number of stores before the value.
    #[inline]
    #[must_use]
    pub fn load_counted(&self, index: usize) -> Option<([u64; N], u64)> {
        self.cells.get(index).map(Cell::load)
    }
}
