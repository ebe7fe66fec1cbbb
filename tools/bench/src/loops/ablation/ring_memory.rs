//! The memory of the ablation's rings: slots and two indices, each where a build wants them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zerocopy::FromZeros;

/// Words of a slot: an event and its number or sequence.
pub(super) const SLOT: usize = 8;
/// Words of a page.
const PAGE: usize = 512;

/// What both ends share. `ALIGNED` puts slots on cache lines of their own and the indices on lines apart; without it a slot
/// lies across two lines, and both indices on one. `SEQ_CST` makes accesses sequentially consistent.
pub(super) struct Shared<const ALIGNED: bool, const SEQ_CST: bool> {
    words: Box<[AtomicU64]>,
    /// Where the first slot begins.
    first: usize,
    pub(super) mask: usize,
    indices: Indices,
}

/// Room for two indices on one cache line, or on lines apart.
#[repr(align(128))]
struct Indices([AtomicU64; 32]);

impl<const ALIGNED: bool, const SEQ_CST: bool> Shared<ALIGNED, SEQ_CST> {
    pub(super) const STORE: Ordering = if SEQ_CST { Ordering::SeqCst } else { Ordering::Release };
    pub(super) const LOAD: Ordering = if SEQ_CST { Ordering::SeqCst } else { Ordering::Acquire };

    /// Memory of `capacity` slots, rounded up to a power of two. Zeroed memory is an empty ring, so that pages may come
    /// when events do, unless they are touched.
    ///
    /// # Panics
    /// If the memory cannot be had.
    pub(super) fn new(capacity: usize, is_touched: bool) -> Arc<Self> {
        let capacity = capacity.max(1).next_power_of_two();
        let words = <[AtomicU64]>::new_box_zeroed_with_elems((capacity + 2) * SLOT).expect("memory for the ring");
        if is_touched {
            words.iter().step_by(PAGE).for_each(|word| word.store(0, Ordering::Relaxed));
        }
        // Half a line off where slots are not aligned.
        let wanted = if ALIGNED { 0 } else { SLOT / 2 };
        let first = (SLOT + wanted - words.as_ptr().addr() / 8 % SLOT) % SLOT;
        Arc::new(Self { words, first, mask: capacity - 1, indices: Indices([const { AtomicU64::new(0) }; 32]) })
    }

    #[inline(always)]
    pub(super) fn slot(&self, position: u64) -> &[AtomicU64] {
        let begin = self.first + (position as usize & self.mask) * SLOT;
        &self.words[begin..begin + SLOT]
    }

    #[inline(always)]
    pub(super) fn tail(&self) -> &AtomicU64 {
        &self.indices.0[0]
    }

    #[inline(always)]
    pub(super) fn head(&self) -> &AtomicU64 {
        &self.indices.0[if ALIGNED { 16 } else { 1 }]
    }
}

#[cfg(test)]
mod tests {
    use super::Shared;

    #[test]
    fn slots_and_indices_lie_where_the_switch_says() {
        let (aligned, across) = (Shared::<true, false>::new(8, false), Shared::<false, false>::new(8, false));
        for position in 0..8 {
            assert_eq!(aligned.slot(position).as_ptr().addr() % 64, 0);
            assert_eq!(across.slot(position).as_ptr().addr() % 64, 32);
        }
        let apart = |head: *const _, tail: *const _| {
            (head as *const u8 as usize / 64).abs_diff(tail as *const u8 as usize / 64)
        };
        assert!(apart(aligned.head(), aligned.tail()) >= 2);
        assert_eq!(apart(across.head(), across.tail()), 0);
    }
}
