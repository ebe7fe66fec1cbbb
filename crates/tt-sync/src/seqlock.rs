//! A cell of `N` words: one writer, any number of readers, always a whole value.
//!
//! A version counts the stores twice, odd while one is under way. A reader takes the words between two looks at the
//! version and keeps them if both are the same even number. The writer never waits; a reader repeats only while the
//! writer is busy with this very cell.
//!
//! Orderings, without a standalone fence so that ThreadSanitizer and loom follow them:
//!
//! - The closing version is stored with Release and read first with Acquire, so a reader that sees it sees its words.
//! - Every word is stored with Release after the odd version, and loaded with Acquire before the second look at the
//!   version: a reader that got one word of a newer store therefore sees its odd version, or a later one, and repeats.
//!
//! Seven words and the version fill one cache line.

use crate::sync::{Arc, AtomicU64, Ordering, spin_loop};
#[cfg(not(loom))]
use alloc::boxed::Box;
use core::array;
#[cfg(loom)]
use std::boxed::Box;

#[cfg(test)]
mod tests;

/// One value of `N` words with its version.
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

    /// As [`new`](Self::new), with `version` as the first one, which is even, so that a test can begin just before the wrap.
    fn new_from(value: [u64; N], version: u64) -> Self {
        Self { version: AtomicU64::new(version), words: array::from_fn(|i| AtomicU64::new(value[i])) }
    }

    /// Must have one caller at a time; the handles see to it.
    #[inline]
    fn store(&self, value: &[u64; N]) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        for (word, new) in self.words.iter().zip(value) {
            word.store(*new, Ordering::Release);
        }
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// The value, for the side that stores.
    #[inline]
    fn load_own(&self) -> [u64; N] {
        array::from_fn(|i| self.words[i].load(Ordering::Relaxed))
    }

    /// The value and the number of stores before it, or `None` if a store is under way.
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

/// Makes one cell that holds `value`.
#[must_use]
pub fn cell<const N: usize>(value: [u64; N]) -> (Writer<N>, Reader<N>) {
    let cell = Arc::new(Cell::new(value));
    (Writer { cell: Arc::clone(&cell) }, Reader { cell })
}

/// Makes `len` cells that lie side by side, each holding `value`.
#[must_use]
pub fn table<const N: usize>(len: usize, value: [u64; N]) -> (TableWriter<N>, TableReader<N>) {
    let cells: Box<[Cell<N>]> = (0..len).map(|_| Cell::new(value)).collect();
    let cells = Arc::new(cells);
    (TableWriter { cells: Arc::clone(&cells) }, TableReader { cells })
}

/// The only side that stores into a cell: there is one, and it cannot be cloned.
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

    /// Another reader of the same cell.
    #[must_use]
    pub fn reader(&self) -> Reader<N> {
        Reader { cell: Arc::clone(&self.cell) }
    }
}

/// A side that loads from a cell; clone it for every thread that reads.
#[derive(Clone, Debug)]
pub struct Reader<const N: usize> {
    cell: Arc<Cell<N>>,
}

impl<const N: usize> Reader<N> {
    /// The newest whole value. Polls while the writer is storing.
    #[inline]
    #[must_use]
    pub fn load(&self) -> [u64; N] {
        self.cell.load().0
    }

    /// The newest whole value, or `None` if the writer is storing just then.
    #[inline]
    #[must_use]
    pub fn try_load(&self) -> Option<[u64; N]> {
        self.cell.try_load().map(|(value, _)| value)
    }

    /// The newest whole value, and how many stores have led to it.
    #[inline]
    #[must_use]
    pub fn load_counted(&self) -> ([u64; N], u64) {
        self.cell.load()
    }
}

/// The only side that stores into a table of cells.
#[derive(Debug)]
pub struct TableWriter<const N: usize> {
    cells: Arc<Box<[Cell<N>]>>,
}

impl<const N: usize> TableWriter<N> {
    /// Replaces the value of cell `index`. Wait-free. An `index` outside of the table changes nothing and returns
    /// `false`.
    #[inline]
    pub fn store(&mut self, index: usize, value: &[u64; N]) -> bool {
        let cell = self.cells.get(index);
        if let Some(cell) = cell {
            cell.store(value);
        }
        cell.is_some()
    }

    /// The value that was stored last into cell `index`, `None` outside of the table. Nobody else stores, so it is read
    /// without a look at the version.
    #[inline]
    #[must_use]
    pub fn load(&self, index: usize) -> Option<[u64; N]> {
        self.cells.get(index).map(Cell::load_own)
    }

    /// Another reader of the same table.
    #[must_use]
    pub fn reader(&self) -> TableReader<N> {
        TableReader { cells: Arc::clone(&self.cells) }
    }
}

/// A side that loads from a table of cells; clone it for every thread that reads.
#[derive(Clone, Debug)]
pub struct TableReader<const N: usize> {
    cells: Arc<Box<[Cell<N>]>>,
}

impl<const N: usize> TableReader<N> {
    /// How many cells there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there is no cell at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The newest whole value of cell `index`, `None` outside of the table. Polls while the writer is storing.
    #[inline]
    #[must_use]
    pub fn load(&self, index: usize) -> Option<[u64; N]> {
        self.cells.get(index).map(|cell| cell.load().0)
    }

    /// As [`load`](Self::load), with the number of stores that have led to the value.
    #[inline]
    #[must_use]
    pub fn load_counted(&self, index: usize) -> Option<([u64; N], u64)> {
        self.cells.get(index).map(Cell::load)
    }
}
