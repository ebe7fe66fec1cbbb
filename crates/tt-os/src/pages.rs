//! Memory on small or huge pages.

use memmap2::{Advice, MmapMut};
use std::fs;
use std::io;

/// Bytes of a huge page on x86-64, and on 64-bit Arm with pages of 4 KiB.
pub const HUGE: usize = 2 << 20;
/// Bytes of a small page.
pub const SMALL: usize = 4096;

/// Which pages memory is asked to lie on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageSize {
    /// 4 KiB pages, never merged (`MADV_NOHUGEPAGE`).
    Small,
    /// 2 MiB pages, if the kernel has them (`MADV_HUGEPAGE`).
    Huge,
}

/// Zeroed anonymous memory; pages are allocated on first access.
#[derive(Debug)]
pub struct Pages {
    map: MmapMut,
    from: usize,
    bytes: usize,
}

impl Pages {
    /// `bytes` of memory that begin on the boundary of a huge page.
    ///
    /// # Errors
    /// There is no so much memory, or the kernel knows no such pages (`EINVAL`).
    pub fn map(bytes: usize, size: PageSize) -> io::Result<Self> {
        let map = MmapMut::map_anon(bytes + HUGE)?;
        map.advise(match size {
            PageSize::Small => Advice::NoHugePage,
            PageSize::Huge => Advice::HugePage,
        })?;
        let from = map.as_ptr().addr().next_multiple_of(HUGE) - map.as_ptr().addr();
        Ok(Self { map, from, bytes })
    }

    /// The memory.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.map[self.from..self.from + self.bytes]
    }

    /// The memory, to be written.
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.map[self.from..self.from + self.bytes]
    }
}

/// Returns the KiB of this process on huge pages; `None` if the kernel does not report it.
#[must_use]
pub fn huge_kib() -> Option<u64> {
    let rollup = fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    crate::machine::value_of(&rollup, "AnonHugePages")?.trim_end_matches(" kB").parse().ok()
}

/// Returns whether the kernel provides huge pages on request.
#[must_use]
pub fn huge_are_given() -> bool {
    let (Some(before), Ok(mut pages)) = (huge_kib(), Pages::map(2 * HUGE, PageSize::Huge)) else { return false };
    pages.bytes_mut().chunks_mut(HUGE).for_each(|page| page[0] = 1);
    huge_kib().is_some_and(|after| after >= before + (2 * HUGE as u64 / 1024))
}

#[cfg(test)]
mod tests {
    use super::{HUGE, PageSize, Pages, SMALL};
    use crate::memory::LOCKING;
    use crate::thread::ThreadCounter;
    use std::sync::PoisonError;

    /// Small pages fault once each, whatever the system's setting; huge ones at most as often.
    #[test]
    fn each_small_page_faults_once() {
        let _alone = LOCKING.lock().unwrap_or_else(PoisonError::into_inner);
        let faults = |size| {
            let mut pages = Pages::map(2 * HUGE, size).ok()?;
            assert_eq!(pages.bytes().as_ptr().addr() % HUGE, 0);
            let counter = ThreadCounter::open();
            let before = counter.read();
            pages.bytes_mut().chunks_mut(SMALL).for_each(|page| page[0] = 1);
            Some(counter.read().since(&before).faults)
        };
        assert_eq!(faults(PageSize::Small), Some((2 * HUGE / SMALL) as u64));
        assert!(faults(PageSize::Huge).is_none_or(|huge| huge <= (2 * HUGE / SMALL) as u64));
    }
}
