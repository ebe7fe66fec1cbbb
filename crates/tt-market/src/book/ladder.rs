//! A book side: pages of 64 steps under bitmaps, in a window that follows the best price.
//!
//! Keys are prices such that the highest is best. The window covers 1,024 pages; levels outside of it stand in a
//! sorted list. `settle` keeps the best level inside of the window, so that the best is always a few bit scans away.

use super::overflow::{Overflow, Stored};
use super::slab::{PAGE_STEPS, PageSlab};
use crate::drop_reason::DropReason;
use alloc::vec::Vec;
use core::mem;

/// Pages in the window.
const PAGES: usize = 1024;
/// Words of the summary: a bit for each page.
pub(super) const WORDS: usize = PAGES / 64;
/// Where the best level's page is put when the window moves: most levels lie on the worse side.
const BEST_AT: i64 = 768;
/// The window moves when the best level's page falls below this one.
const BEST_MIN: usize = 256;
/// An entry of the page table without a page.
pub(super) const NONE: u32 = u32::MAX;

/// What became of a level that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replaced {
    /// It is set; the quantity before.
    Level(i64),
    /// It is set, and the worst level of the side (key, quantity) was dropped for it.
    Displaced {
        /// The quantity before.
        old: i64,
        /// The dropped level.
        worst: (i64, i64),
    },
    /// There was no room for it.
    Refused,
    /// A page with several levels was dropped for it.
    Page,
}

/// One side of a book. What each level needs is in the first cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Ladder {
    /// The number of the window's lowest page, a multiple of 64.
    pub(super) base: i64,
    pub(super) pages: Vec<u32>,
    len: usize,
    /// Levels that found no room since the ladder was cleared.
    dropped: u64,
    /// The best key among them.
    dropped_best: i64,
    /// A bit for each word of the summary that is not zero.
    pub(super) top: u32,
    pub(super) summary: [u64; WORDS],
    pub(super) overflow: Overflow,
}

impl Ladder {
    pub(crate) fn new(overflow_max: usize) -> Self {
        Self {
            base: 0,
            top: 0,
            summary: [0; WORDS],
            pages: alloc::vec![NONE; PAGES],
            overflow: Overflow::new(overflow_max),
            len: 0,
            dropped: 0,
            dropped_best: i64::MIN,
        }
    }

    /// How many levels there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many levels were dropped because the capacity was reached, since the ladder was cleared.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Whether every level at least as good as the best one that is kept is known.
    #[inline]
    pub(crate) fn knows_best(&self, slab: &PageSlab) -> bool {
        self.dropped == 0 || self.best(slab).is_some_and(|(key, _)| key > self.dropped_best)
    }

    /// Begins to load the ladder itself.
    #[inline]
    pub(crate) fn prefetch(&self) {
        tt_simd::prefetch(&self.base);
        tt_simd::prefetch(&self.summary[0]);
        tt_simd::prefetch(&self.summary[8]);
        tt_simd::prefetch(&self.overflow);
    }

    /// Begins to load the place of the level at `key`, unless it has none.
    #[inline]
    pub(crate) fn prefetch_level(&self, slab: &PageSlab, key: i64) {
        let index = (key >> 6).wrapping_sub(self.base) as u64;
        if let Some(page) = self.pages.get(index as usize).filter(|page| **page != NONE) {
            slab.prefetch(*page, key as usize % PAGE_STEPS);
        }
    }

    /// Sets the quantity at `key`; zero removes the level.
    #[inline]
    pub(crate) fn set(&mut self, slab: &mut PageSlab, key: i64, qty: i64) {
        let index = (key >> 6).wrapping_sub(self.base) as u64;
        if index >= PAGES as u64 {
            return self.set_outside(slab, key, qty);
        }
        let index = index as usize;
        let offset = key as usize % PAGE_STEPS;
        let bit = 1_u64 << offset;
        let mut page = self.pages[index];
        if page == NONE {
            if qty == 0 {
                return;
            }
            match self.acquire(slab, index) {
                Some(acquired) => page = acquired,
                None => return self.note_drop(key),
            }
        }
        // Whether a level comes, stays or goes is as good as random: no branch on it.
        let (is, was) = (u64::from(qty != 0), slab.occupancy(page) >> offset & 1);
        let occupancy = slab.occupancy(page) & !bit | is << offset;
        *slab.occupancy_mut(page) = occupancy;
        slab.set_qty(page, offset, qty);
        self.len = self.len + is as usize - was as usize;
        if occupancy == 0 {
            self.release(slab, index);
        }
    }

    /// The quantity at `key`; zero where there is no level.
    pub(crate) fn qty(&self, slab: &PageSlab, key: i64) -> i64 {
        let index = (key >> 6).wrapping_sub(self.base) as u64;
        if index >= PAGES as u64 {
            return self.overflow.qty(key);
        }
        let (page, offset) = (self.pages[index as usize], key as usize % PAGE_STEPS);
        if page == NONE || slab.occupancy(page) >> offset & 1 == 0 { 0 } else { slab.qty(page, offset) }
    }

    /// As [`set`](Self::set); returns what became of the levels.
    pub(crate) fn replace(&mut self, slab: &mut PageSlab, key: i64, qty: i64) -> Replaced {
        let (old, dropped, worst) = (self.qty(slab, key), self.dropped, self.overflow.worst());
        self.set(slab, key, qty);
        if self.dropped == dropped {
            return Replaced::Level(old);
        }
        let is_outside = (key >> 6).wrapping_sub(self.base) as u64 >= PAGES as u64;
        match worst {
            _ if self.qty(slab, key) != qty => Replaced::Refused,
            Some(worst) if is_outside => Replaced::Displaced { old, worst },
            Some(_) | None => Replaced::Page,
        }
    }

    /// Takes a whole side, best first, into an empty ladder; `read` makes a key and a quantity of each of `levels`. A
    /// page is looked up once for all that lie in it.
    ///
    /// # Errors
    /// That of `read`, or `SnapshotOrder` where a level is not worse than the one before it or has no quantity. The
    /// ladder must then be cleared.
    #[inline]
    pub(crate) fn fill<L>(
        &mut self,
        slab: &mut PageSlab,
        levels: &[L],
        read: impl Fn(&L) -> Result<(i64, i64), DropReason>,
    ) -> Result<(), DropReason> {
        let Some(best) = levels.first() else { return Ok(()) };
        self.base = base_for(read(best)?.0);
        let mut before = i64::MAX;
        // No page has this number.
        let mut number = i64::MAX;
        let (mut page, mut occupancy) = (NONE, 0);
        for level in levels {
            let (key, qty) = read(level)?;
            if key >= before || qty <= 0 {
                return Err(DropReason::SnapshotOrder);
            }
            before = key;
            if key >> 6 != number {
                self.close_page(slab, page, occupancy);
                (number, page, occupancy) = (key >> 6, self.page_for(slab, key), 0);
                if page == NONE {
                    self.fill_outside(key, qty);
                    number = i64::MAX;
                    continue;
                }
            }
            let offset = key as usize % PAGE_STEPS;
            slab.set_qty(page, offset, qty);
            occupancy |= 1_u64 << offset;
        }
        self.close_page(slab, page, occupancy);
        Ok(())
    }

    /// An empty page for a level that is worse than all others; `NONE` beyond the window, or where all are taken.
    fn page_for(&mut self, slab: &mut PageSlab, key: i64) -> u32 {
        let index = (key >> 6).wrapping_sub(self.base) as u64;
        if index >= PAGES as u64 {
            return NONE;
        }
        self.acquire(slab, index as usize).unwrap_or(NONE)
    }

    fn close_page(&mut self, slab: &mut PageSlab, page: u32, occupancy: u64) {
        if page != NONE {
            *slab.occupancy_mut(page) = occupancy;
            self.len += occupancy.count_ones() as usize;
        }
    }

    /// A level for which there is no page.
    #[cold]
    fn fill_outside(&mut self, key: i64, qty: i64) {
        let is_outside = (key >> 6).wrapping_sub(self.base) as u64 >= PAGES as u64;
        if is_outside && self.overflow.push_worst(key, qty) {
            self.len += 1;
        } else {
            self.note_drop(key);
        }
    }

    #[cold]
    fn set_outside(&mut self, slab: &mut PageSlab, key: i64, qty: i64) {
        if self.len == 0 {
            if qty == 0 {
                return;
            }
            self.base = base_for(key);
            return self.set(slab, key, qty);
        }
        match self.overflow.set(key, qty) {
            Stored::Added => self.len += 1,
            Stored::Removed => self.len -= 1,
            Stored::Replaced | Stored::Absent => {}
            Stored::Displaced(dropped) => self.note_drop(dropped),
            Stored::Refused => self.note_drop(key),
        }
    }

    fn note_drop(&mut self, key: i64) {
        self.dropped += 1;
        self.dropped_best = self.dropped_best.max(key);
    }

    /// A page for the window's place `index`; where the slab is empty, the ladder's own worst page gives way.
    #[cold]
    fn acquire(&mut self, slab: &mut PageSlab, index: usize) -> Option<u32> {
        let page = match slab.take() {
            Some(page) => page,
            None => {
                let worst = self.worst_index().filter(|worst| *worst < index)?;
                self.drop_page(slab, worst);
                slab.take()?
            }
        };
        self.pages[index] = page;
        self.summary[index / 64] |= 1 << (index % 64);
        self.top |= 1 << (index / 64);
        Some(page)
    }

    #[cold]
    fn drop_page(&mut self, slab: &mut PageSlab, index: usize) {
        let occupancy = slab.occupancy(self.pages[index]);
        let best = ((self.base + index as i64) << 6) + i64::from(63 - occupancy.leading_zeros());
        self.len -= occupancy.count_ones() as usize;
        self.dropped += u64::from(occupancy.count_ones()) - 1;
        self.note_drop(best);
        self.release(slab, index);
    }

    #[inline]
    fn release(&mut self, slab: &mut PageSlab, index: usize) {
        slab.give(self.pages[index]);
        self.pages[index] = NONE;
        self.summary[index / 64] &= !(1 << (index % 64));
        if self.summary[index / 64] == 0 {
            self.top &= !(1 << (index / 64));
        }
    }

    /// The window's place of the best page.
    #[inline]
    fn best_index(&self) -> Option<usize> {
        let word = 31_u32.checked_sub(self.top.leading_zeros())? as usize;
        Some(word * 64 + 63 - self.summary[word % WORDS].leading_zeros() as usize)
    }

    fn worst_index(&self) -> Option<usize> {
        if self.top == 0 {
            return None;
        }
        let word = self.top.trailing_zeros() as usize;
        Some(word * 64 + self.summary[word % WORDS].trailing_zeros() as usize)
    }

    /// The best level. After [`settle`](Self::settle) it is inside of the window.
    #[inline]
    pub(crate) fn best(&self, slab: &PageSlab) -> Option<(i64, i64)> {
        let index = self.best_index()?;
        let page = self.pages[index];
        let offset = 63 - slab.occupancy(page).leading_zeros();
        Some((((self.base + index as i64) << 6) + i64::from(offset), slab.qty(page, offset as usize)))
    }

    /// The worst level.
    pub(crate) fn worst(&self, slab: &PageSlab) -> Option<(i64, i64)> {
        if let Some(worst) = self.overflow.worst()
            && (worst.0 >> 6 < self.base || self.top == 0)
        {
            return Some(worst);
        }
        let index = self.worst_index()?;
        let page = self.pages[index];
        let offset = slab.occupancy(page).trailing_zeros();
        Some((((self.base + index as i64) << 6) + i64::from(offset), slab.qty(page, offset as usize)))
    }

    /// Shows the levels to `visit`, best first, until it returns `false`.
    #[inline]
    pub(crate) fn walk(&self, slab: &PageSlab, mut visit: impl FnMut(i64, i64) -> bool) {
        let mut words = self.top;
        while words != 0 {
            let word = 31 - words.leading_zeros() as usize;
            words ^= 1 << word;
            let mut pages = self.summary[word % WORDS];
            while pages != 0 {
                let index = word * 64 + 63 - pages.leading_zeros() as usize;
                pages ^= 1 << (index % 64);
                let page = self.pages[index];
                let start = (self.base + index as i64) << 6;
                let mut occupancy = slab.occupancy(page);
                while occupancy != 0 {
                    let offset = 63 - occupancy.leading_zeros();
                    occupancy ^= 1 << offset;
                    if !visit(start + i64::from(offset), slab.qty(page, offset as usize)) {
                        return;
                    }
                }
            }
        }
        for (key, qty) in self.overflow.levels().rev() {
            if !visit(*key, *qty) {
                return;
            }
        }
    }

    /// Moves the window if the best level left its middle. To be called after each frame's levels.
    #[inline]
    pub(crate) fn settle(&mut self, slab: &mut PageSlab) {
        let best = match self.best_index() {
            Some(index) if index >= BEST_MIN => self.overflow.best().filter(|best| best.0 >> 6 >= self.base),
            // Below the middle the window moves only if it can: a book may simply end there.
            Some(_) | None => self
                .overflow
                .best()
                .filter(|best| best.0 >> 6 >= self.base || self.top == 0)
                .or_else(|| self.best(slab)),
        };
        if let Some((key, _)) = best {
            self.recentre(slab, base_for(key));
        }
    }

    #[cold]
    fn recentre(&mut self, slab: &mut PageSlab, base: i64) {
        let shift = base.wrapping_sub(self.base);
        if shift == 0 {
            return;
        }
        // What leaves the window goes to the list, worst first.
        for index in 0..PAGES {
            let kept = (0..PAGES as i64).contains(&(index as i64).wrapping_sub(shift));
            if self.pages[index] != NONE && !kept {
                self.spill(slab, index);
            }
        }
        if let Ok(up) = usize::try_from(shift) {
            let up = up.min(PAGES);
            self.pages.copy_within(up.., 0);
            self.pages[PAGES - up..].fill(NONE);
        } else {
            let down = usize::try_from(shift.unsigned_abs()).unwrap_or(PAGES).min(PAGES);
            self.pages.copy_within(..PAGES - down, down);
            self.pages[..down].fill(NONE);
        }
        self.base = base;
        self.rebuild_summary();
        self.absorb(slab);
    }

    fn rebuild_summary(&mut self) {
        self.top = 0;
        for (i, pages) in self.pages.as_chunks::<64>().0.iter().enumerate() {
            let word = pages.iter().enumerate().fold(0, |word, (bit, page)| word | u64::from(*page != NONE) << bit);
            self.summary[i] = word;
            self.top |= u32::from(word != 0) << i;
        }
    }

    /// Moves a page's levels to the list.
    fn spill(&mut self, slab: &mut PageSlab, index: usize) {
        let page = self.pages[index];
        let start = (self.base + index as i64) << 6;
        let mut occupancy = slab.occupancy(page);
        while occupancy != 0 {
            let offset = occupancy.trailing_zeros();
            occupancy &= occupancy - 1;
            let key = start + i64::from(offset);
            match self.overflow.set(key, slab.qty(page, offset as usize)) {
                Stored::Displaced(dropped) => {
                    self.len -= 1;
                    self.note_drop(dropped);
                }
                Stored::Refused => {
                    self.len -= 1;
                    self.note_drop(key);
                }
                Stored::Added | Stored::Replaced | Stored::Removed | Stored::Absent => {}
            }
        }
        self.release(slab, index);
    }

    /// Moves the list's levels that the window covers into it.
    fn absorb(&mut self, slab: &mut PageSlab) {
        let from = self.base << 6;
        let to = (self.base + PAGES as i64) << 6;
        while let Some((key, qty)) = self.overflow.take_best_in(from, to) {
            self.len -= 1;
            self.set(slab, key, qty);
        }
    }

    pub(crate) fn clear(&mut self, slab: &mut PageSlab) {
        // The best page last: it is the first to be taken again, and still near.
        for (pages, word) in self.pages.as_chunks_mut::<64>().0.iter_mut().zip(&mut self.summary) {
            let mut left = mem::take(word);
            while left != 0 {
                slab.give(mem::replace(&mut pages[left.trailing_zeros() as usize], NONE));
                left &= left - 1;
            }
        }
        self.top = 0;
        self.overflow.clear();
        self.len = 0;
        self.dropped = 0;
        self.dropped_best = i64::MIN;
    }
}

/// The window in which the page of `key` is the best page.
fn base_for(key: i64) -> i64 {
    ((key >> 6) - BEST_AT) & !63
}
