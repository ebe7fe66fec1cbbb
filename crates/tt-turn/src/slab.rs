//! Records in numbered places, all allocated at the start.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// A fixed number of places. The place freed last is used next, so that a server with few allocations stays in cache.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Box<[Option<T>]>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn new(capacity: u32) -> Self {
        Self { places: (0..capacity).map(|_| None).collect(), free: (0..capacity).rev().collect() }
    }

    /// Stores `record`; `None` where every place is taken.
    pub(crate) fn insert(&mut self, record: T) -> Option<u32> {
        let index = self.free.pop()?;
        self.places[index as usize] = Some(record);
        Some(index)
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

    /// Brings the place at `index` nearer, if there is one.
    #[inline]
    pub(crate) fn prefetch(&self, index: u32) {
        if let Some(place) = self.places.get(index as usize) {
            tt_simd::prefetch(place);
        }
    }

    /// Brings the place that is used next nearer.
    #[inline]
    pub(crate) fn prefetch_next(&self) {
        if let Some(index) = self.free.last() {
            self.prefetch(*index);
        }
    }

    /// Every record with its place.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0u32..).zip(&self.places).filter_map(|(index, place)| Some((index, place.as_ref()?)))
    }

    /// How many places are taken.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// How many places are left.
    pub(crate) fn room(&self) -> usize {
        self.free.len()
    }
}
