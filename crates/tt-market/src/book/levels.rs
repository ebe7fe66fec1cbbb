//! The levels of a side one after the other.

use super::ladder::{Ladder, NONE, WORDS};
use super::slab::PageSlab;

/// The levels of a ladder as (key, quantity), best first.
#[derive(Clone, Debug)]
pub(crate) struct LadderLevels<'a> {
    ladder: &'a Ladder,
    slab: &'a PageSlab,
    words: u32,
    word: usize,
    pages: u64,
    page: u32,
    start: i64,
    occupancy: u64,
    /// Levels outside of the window that are left.
    outside: usize,
}

impl Iterator for LadderLevels<'_> {
    type Item = (i64, i64);

    fn next(&mut self) -> Option<(i64, i64)> {
        while self.occupancy == 0 {
            while self.pages == 0 {
                if self.words == 0 {
                    self.outside = self.outside.checked_sub(1)?;
                    return self.ladder.overflow.get(self.outside);
                }
                self.word = 31 - self.words.leading_zeros() as usize;
                self.words ^= 1 << self.word;
                self.pages = self.ladder.summary[self.word % WORDS];
            }
            let index = self.word * 64 + 63 - self.pages.leading_zeros() as usize;
            self.pages ^= 1 << (index % 64);
            self.page = self.ladder.pages[index];
            self.start = (self.ladder.base + index as i64) << 6;
            self.occupancy = self.slab.occupancy(self.page);
        }
        let offset = 63 - self.occupancy.leading_zeros();
        self.occupancy ^= 1 << offset;
        Some((self.start + i64::from(offset), self.slab.qty(self.page, offset as usize)))
    }
}

impl Ladder {
    /// The levels, best first.
    pub(crate) fn levels<'a>(&'a self, slab: &'a PageSlab) -> LadderLevels<'a> {
        LadderLevels {
            ladder: self,
            slab,
            words: self.top,
            word: 0,
            pages: 0,
            page: NONE,
            start: 0,
            occupancy: 0,
            outside: self.overflow.len(),
        }
    }
}
