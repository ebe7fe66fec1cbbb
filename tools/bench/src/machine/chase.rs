//! How long memory takes: a walk through lines in random order, each naming the next, so that nothing can be fetched ahead.

use crate::machine::measurement::{Block, Measurement, chunks};
use nix::errno::Errno;
use std::hint::black_box;
use std::io;
use tt_meter::Calibration;
use tt_model::SplitMix64;
use tt_os::caches::Caches;
use tt_os::pages::{PageSize, Pages, SMALL};

const LINE: usize = 64;
const WORD: usize = size_of::<u64>();
/// Steps of one chunk, and chunks of one block.
const STEPS: u32 = 2_000;
const CHUNKS: usize = 8;
/// Lines that are visited before a block, so that what fits into a cache is there again.
const WARM_LINES: usize = 1 << 18;
/// Pages that are touched in one line each: more than any second-level TLB holds, their lines less than a second-level cache.
const TLB_PAGES: usize = 8192;

/// Which lines of the memory are walked through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// All of them.
    All,
    /// One of each small page, not always the same.
    OneOfEachPage,
}

/// A closed walk.
#[derive(Debug)]
pub struct Chase {
    pages: Pages,
    at: usize,
    lines: usize,
}

impl Chase {
    /// Through `bytes` of memory, every page of which is touched here.
    ///
    /// # Errors
    /// As [`Pages::map`].
    pub fn new(bytes: usize, size: PageSize, lines: Lines) -> io::Result<Self> {
        let mut pages = Pages::map(bytes, size)?;
        let mut offsets: Vec<u32> = match lines {
            Lines::All => (0..bytes / LINE).map(|line| (line * LINE) as u32).collect(),
            Lines::OneOfEachPage => (0..bytes / SMALL).map(line_of_page).collect(),
        };
        // Neighbours in time are strangers in place.
        SplitMix64::new(0x7472_7565).shuffle(&mut offsets);
        let memory = pages.bytes_mut();
        for (index, from) in offsets.iter().enumerate() {
            let to = offsets[(index + 1) % offsets.len()];
            let at = *from as usize;
            memory[at..at + WORD].copy_from_slice(&u64::from(to).to_ne_bytes());
        }
        Ok(Self { at: offsets[0] as usize, lines: offsets.len(), pages })
    }

    /// Times a block of steps, after a whole round where that is short.
    pub fn block(&mut self, calibration: &Calibration, chunks_count: usize) -> Vec<f64> {
        if self.lines <= WARM_LINES {
            self.walk(self.lines);
        }
        let chunk = chunks(calibration, chunks_count, 1, || self.walk(STEPS as usize));
        chunk.into_iter().map(|ns| ns / f64::from(STEPS)).collect()
    }

    #[inline(never)]
    fn walk(&mut self, steps: usize) {
        let memory = self.pages.bytes();
        let mut at = self.at;
        for _ in 0..steps {
            let mut word = [0; WORD];
            word.copy_from_slice(&memory[at..at + WORD]);
            at = u64::from_ne_bytes(word) as usize;
        }
        self.at = black_box(at);
    }
}

fn line_of_page(page: usize) -> u32 {
    let line = page.wrapping_mul(0x9e37_79b1) >> 7 & (SMALL / LINE - 1);
    (page * SMALL + line * LINE) as u32
}

/// The sizes that stand for each level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChasePlan {
    /// Half of the first level's cache.
    pub l1: usize,
    /// Half of the second's.
    pub l2: usize,
    /// A quarter of the third's, or twice the second's where that is more; `None` without a third level.
    pub l3: Option<usize>,
    /// Several times the last level's, as far as there is memory.
    pub dram: usize,
    /// Where there are huge pages: on small ones, what is larger than the TLB reaches costs more than its cache.
    pub huge: bool,
}

impl ChasePlan {
    /// For `caches`, with `memory` bytes at most.
    #[must_use]
    pub fn new(caches: Caches, memory: usize, huge: bool) -> Self {
        let last = caches.l3.unwrap_or(caches.l2);
        Self {
            l1: caches.l1 / 2 / SMALL * SMALL,
            l2: caches.l2 / 2,
            l3: caches.l3.map(|l3| (l3 / 4).max(2 * caches.l2)),
            dram: (8 * last).clamp(64 << 20, 1 << 30).min(memory),
            huge,
        }
    }

    /// Rising sizes for a curve: powers of two from 4 KiB to DRAM.
    #[must_use]
    pub fn sizes(&self) -> Vec<usize> {
        (12..40).map(|power| 1_usize << power).take_while(|size| *size <= self.dram).collect()
    }
}

/// The time of one step through memory of each level, and through pages whose translations are not at hand.
///
/// # Errors
/// There is no so much memory.
pub fn memory<'a>(calibration: &'a Calibration, plan: &ChasePlan) -> Result<Vec<Measurement<'a>>, Errno> {
    let kib =
        |bytes: usize| if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes >> 20) };
    let (best, named) = if plan.huge { (PageSize::Huge, "huge") } else { (PageSize::Small, "small") };
    let within = |bytes: usize, pages: &str| format!("a dependent load within {} on {pages} pages", kib(bytes));
    let tlb = TLB_PAGES * SMALL;
    let lines = |pages: &str| format!("a dependent load, one line in each of {TLB_PAGES} x 4 KiB, on {pages} pages");
    let mut rows = vec![
        ("l1_hit", within(plan.l1, "small"), plan.l1, PageSize::Small, Lines::All),
        ("l2_hit", within(plan.l2, named), plan.l2, best, Lines::All),
    ];
    rows.extend(plan.l3.map(|l3| ("l3_hit", within(l3, named), l3, best, Lines::All)));
    rows.push(("dram", within(plan.dram, named), plan.dram, best, Lines::All));
    if plan.huge {
        rows.push(("dram_small_pages", within(plan.dram, "small"), plan.dram, PageSize::Small, Lines::All));
    }
    rows.push(("tlb_cold_small", lines("small"), tlb, PageSize::Small, Lines::OneOfEachPage));
    if plan.huge {
        rows.push(("tlb_cold_huge", lines("huge"), tlb, PageSize::Huge, Lines::OneOfEachPage));
    }
    let made = rows.into_iter().map(|(name, what, bytes, size, lines)| {
        let mut chase = Chase::new(bytes, size, lines).map_err(|error| errno_of(&error))?;
        Ok(Measurement::new(name, what, STEPS, move || -> Block { Ok(chase.block(calibration, CHUNKS)) }))
    });
    made.collect()
}

pub(crate) fn errno_of(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

#[cfg(test)]
mod tests {
    use super::{Chase, ChasePlan, LINE, Lines};
    use tt_os::caches::Caches;
    use tt_os::pages::{PageSize, SMALL};

    /// The walk comes back after exactly as many steps as there are lines, and not before.
    #[test]
    fn a_walk_visits_every_line_once() {
        for (lines, count) in [(Lines::All, 64 * SMALL / LINE), (Lines::OneOfEachPage, 64)] {
            let mut chase = Chase::new(64 * SMALL, PageSize::Small, lines).unwrap();
            let start = chase.at;
            let mut steps = 0;
            loop {
                chase.walk(1);
                steps += 1;
                if chase.at == start {
                    break;
                }
            }
            assert_eq!(steps, count);
        }
    }

    #[test]
    fn sizes_lie_between_the_caches() {
        let caches = Caches { l1: 48 << 10, l2: 1 << 20, l3: Some(32 << 20) };
        let plan = ChasePlan::new(caches, 1 << 40, true);
        assert_eq!((plan.l1, plan.l2, plan.l3, plan.dram), (24 << 10, 512 << 10, Some(8 << 20), 256 << 20));
        assert_eq!(ChasePlan::new(caches, 100 << 20, true).dram, 100 << 20);
    }
}
