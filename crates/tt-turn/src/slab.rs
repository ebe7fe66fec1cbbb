//! Records in numbered slots, all allocated at the start.

use alloc::vec::Vec;

/// No record: the end of a list, or nothing remembered.
pub(crate) const NO_INDEX: u32 = u32::MAX;

/// The head of a list of records, and their number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub(crate) head: u32,
    pub(crate) len: u32,
}

impl List {
    pub(crate) const EMPTY: Self = Self { head: NO_INDEX, len: 0 };
}

/// A fixed number of slots. The last freed slot is used first, so that few records stay in cache. Memory of slots that
/// were never used is not touched.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    /// The slots that were used.
    places: Vec<Option<T>>,
    free: Vec<u32>,
    capacity: usize,
}

impl<T> Slab<T> {
    pub(crate) fn new(capacity: u32) -> Self {
        let capacity = capacity as usize;
        Self { places: Vec::with_capacity(capacity), free: Vec::with_capacity(capacity), capacity }
    }

    /// Stores `record`, or returns `None` if all slots are in use.
    pub(crate) fn insert(&mut self, record: T) -> Option<u32> {
        if let Some(index) = self.free.pop() {
            self.places[index as usize] = Some(record);
            return Some(index);
        }
        if self.places.len() == self.capacity {
            return None;
        }
        self.places.push(Some(record));
        Some(self.places.len() as u32 - 1)
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let record = self.places.get_mut(index as usize)?.take()?;
        self.free.push(index);
        Some(record)
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.places.get(index as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.places.get_mut(index as usize)?.as_mut()
    }

    /// Prefetches the slot at `index`.
    #[inline]
    pub(crate) fn prefetch(&self, index: u32) {
        if let Some(place) = self.places.get(index as usize) {
            tt_simd::prefetch(place);
        }
    }

    /// Prefetches the slot that is used next.
    #[inline]
    pub(crate) fn prefetch_next(&self) {
        if let Some(index) = self.free.last() {
            self.prefetch(*index);
        }
    }

    /// Prefetches all cache lines of the slot at `index`.
    #[inline]
    pub(crate) fn prefetch_whole(&self, index: u32) {
        if let Some(place) = self.places.get(index as usize) {
            tt_simd::prefetch_lines(place);
        }
    }

    /// Iterates over all records with their indices.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0u32..).zip(&self.places).filter_map(|(index, place)| Some((index, place.as_ref()?)))
    }

    /// Returns the number of slots that were used: all indices are smaller.
    pub(crate) fn end(&self) -> u32 {
        self.places.len() as u32
    }

    /// Returns the number of slots in use.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Returns the number of free slots.
    pub(crate) fn room(&self) -> usize {
        self.capacity - self.len()
    }
}
