//! The pages of all books.

use alloc::vec::Vec;

/// Steps in a page.
pub(crate) const PAGE_STEPS: usize = 64;

/// Pages of 64 quantities with a word that says which are set. Its room is reserved once and never grows.
#[derive(Debug)]
pub(crate) struct PageSlab {
    occupancy: Vec<u64>,
    /// The pages that were ever used, so that memory that is never used is not touched.
    qty: Vec<[i64; PAGE_STEPS]>,
    free: Vec<u32>,
}

impl PageSlab {
    pub(crate) fn new(pages_max: usize) -> Self {
        let len = pages_max.min(u32::MAX as usize - 1);
        Self { occupancy: alloc::vec![0; len], qty: Vec::with_capacity(len), free: Vec::with_capacity(len) }
    }

    /// Takes an empty page, `None` where all are taken.
    pub(crate) fn take(&mut self) -> Option<u32> {
        if let Some(page) = self.free.pop() {
            return Some(page);
        }
        let page = self.qty.len();
        (page < self.occupancy.len()).then(|| {
            self.qty.push([0; PAGE_STEPS]);
            page as u32
        })
    }

    /// Gives a page back. Its quantities may stay, since its word says that none is set.
    pub(crate) fn give(&mut self, page: u32) {
        self.occupancy[page as usize] = 0;
        self.free.push(page);
    }

    /// Begins to load a place of a page.
    #[inline]
    pub(crate) fn prefetch(&self, page: u32, offset: usize) {
        tt_simd::prefetch(&self.occupancy[page as usize]);
        tt_simd::prefetch(&self.qty[page as usize][offset % PAGE_STEPS]);
    }

    #[inline]
    pub(crate) fn occupancy(&self, page: u32) -> u64 {
        self.occupancy[page as usize]
    }

    #[inline]
    pub(crate) fn occupancy_mut(&mut self, page: u32) -> &mut u64 {
        &mut self.occupancy[page as usize]
    }

    #[inline]
    pub(crate) fn qty(&self, page: u32, offset: usize) -> i64 {
        self.qty[page as usize][offset % PAGE_STEPS]
    }

    #[inline]
    pub(crate) fn set_qty(&mut self, page: u32, offset: usize, qty: i64) {
        self.qty[page as usize][offset % PAGE_STEPS] = qty;
    }

    /// Pages in use.
    pub(crate) fn used(&self) -> usize {
        self.qty.len() - self.free.len()
    }
}
