//! A ring as NullRing has it: a head and a tail, and each side looks at the other's for every event.
//!
//! A slot is an event of 64 bytes. `ALIGNED` puts slots on cache lines of their own and the indices on lines apart; without
//! it a slot lies across two lines, and both indices on one. `SEQ_CST` makes every access of an index sequentially
//! consistent. The words of an event are relaxed atomics, so that all of this is safe code.

use crate::loops::hand_over::{Receives, Sends};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tt_model::OrderTerms;
use zerocopy::FromZeros;

use crate::loops::words::{packed, unpacked};

/// Words of a slot: an event and its number.
const SLOT: usize = 8;
/// Words of a page.
const PAGE: usize = 512;

struct Shared<const ALIGNED: bool, const SEQ_CST: bool> {
    words: Box<[AtomicU64]>,
    /// Where the first slot begins.
    first: usize,
    mask: usize,
    indices: Indices,
}

/// Room for two indices on one cache line, or on lines apart.
#[repr(align(128))]
struct Indices([AtomicU64; 32]);

impl<const ALIGNED: bool, const SEQ_CST: bool> Shared<ALIGNED, SEQ_CST> {
    const STORE: Ordering = if SEQ_CST { Ordering::SeqCst } else { Ordering::Release };
    const LOAD: Ordering = if SEQ_CST { Ordering::SeqCst } else { Ordering::Acquire };

    #[inline(always)]
    fn slot(&self, position: u64) -> &[AtomicU64] {
        let begin = self.first + (position as usize & self.mask) * SLOT;
        &self.words[begin..begin + SLOT]
    }

    #[inline(always)]
    fn tail(&self) -> &AtomicU64 {
        &self.indices.0[0]
    }

    #[inline(always)]
    fn head(&self) -> &AtomicU64 {
        &self.indices.0[if ALIGNED { 16 } else { 1 }]
    }
}

/// The sending end.
pub(super) struct IndexSender<const ALIGNED: bool, const SEQ_CST: bool> {
    shared: Arc<Shared<ALIGNED, SEQ_CST>>,
    tail: u64,
}

/// The receiving end.
pub(super) struct IndexReceiver<const ALIGNED: bool, const SEQ_CST: bool> {
    shared: Arc<Shared<ALIGNED, SEQ_CST>>,
    head: u64,
}

/// A ring of `capacity` slots, rounded up to a power of two.
///
/// # Panics
/// If the memory cannot be had.
pub(super) fn ends<const ALIGNED: bool, const SEQ_CST: bool>(
    capacity: usize,
    is_touched: bool,
) -> (IndexSender<ALIGNED, SEQ_CST>, IndexReceiver<ALIGNED, SEQ_CST>) {
    let capacity = capacity.max(1).next_power_of_two();
    let words = <[AtomicU64]>::new_box_zeroed_with_elems((capacity + 2) * SLOT).expect("memory for the ring");
    if is_touched {
        words.iter().step_by(PAGE).for_each(|word| word.store(0, Ordering::Relaxed));
    }
    // Half a line off where slots are not aligned.
    let wanted = if ALIGNED { 0 } else { SLOT / 2 };
    let first = (SLOT + wanted - words.as_ptr().addr() / 8 % SLOT) % SLOT;
    let indices = Indices([const { AtomicU64::new(0) }; 32]);
    let shared = Arc::new(Shared { words, first, mask: capacity - 1, indices });
    (IndexSender { shared: Arc::clone(&shared), tail: 0 }, IndexReceiver { shared, head: 0 })
}

impl<const ALIGNED: bool, const SEQ_CST: bool> Sends for IndexSender<ALIGNED, SEQ_CST> {
    #[inline(always)]
    fn send(&mut self, terms: OrderTerms) -> bool {
        let shared = &*self.shared;
        if self.tail - shared.head().load(Shared::<ALIGNED, SEQ_CST>::LOAD) > shared.mask as u64 {
            return false;
        }
        let [number, event @ ..] = shared.slot(self.tail) else { return false };
        number.store(self.tail, Ordering::Relaxed);
        for (place, word) in event.iter().zip(packed(&terms)) {
            place.store(word, Ordering::Relaxed);
        }
        self.tail += 1;
        shared.tail().store(self.tail, Shared::<ALIGNED, SEQ_CST>::STORE);
        true
    }
}

impl<const ALIGNED: bool, const SEQ_CST: bool> Receives for IndexReceiver<ALIGNED, SEQ_CST> {
    #[inline(always)]
    fn receive(&mut self) -> Option<(u64, OrderTerms)> {
        let shared = &*self.shared;
        if self.head == shared.tail().load(Shared::<ALIGNED, SEQ_CST>::LOAD) {
            return None;
        }
        let [number, event @ ..] = shared.slot(self.head) else { return None };
        let number = number.load(Ordering::Relaxed);
        let mut words = [0; SLOT - 1];
        for (word, place) in words.iter_mut().zip(event) {
            *word = place.load(Ordering::Relaxed);
        }
        self.head += 1;
        shared.head().store(self.head, Shared::<ALIGNED, SEQ_CST>::STORE);
        Some((number, unpacked(words)))
    }
}

#[cfg(test)]
mod tests {
    use super::ends;
    use crate::loops::hand_over::{Receives, Sends};
    use crate::loops::words::tests::terms;

    fn is_a_queue<const ALIGNED: bool, const SEQ_CST: bool>(capacity: u64) {
        for is_touched in [false, true] {
            let (mut sender, mut receiver) = ends::<ALIGNED, SEQ_CST>(capacity as usize, is_touched);
            let mut next = 0;
            for sent in 0..5 * capacity {
                while !sender.send(terms(sent)) {
                    assert_eq!(sent - next, capacity, "full with {} of {capacity}", sent - next);
                    assert_eq!(receiver.receive(), Some((next, terms(next))));
                    next += 1;
                }
            }
            (next..5 * capacity).for_each(|n| assert_eq!(receiver.receive(), Some((n, terms(n)))));
            assert_eq!(receiver.receive(), None);
        }
    }

    #[test]
    fn every_layout_is_first_in_first_out_and_bounded() {
        for capacity in [1, 2, 64] {
            is_a_queue::<true, true>(capacity);
            is_a_queue::<true, false>(capacity);
            is_a_queue::<false, true>(capacity);
        }
    }

    #[test]
    fn both_indices_are_on_one_line_before_they_are_aligned() {
        let (aligned, _) = ends::<true, false>(8, false);
        let (naive, _) = ends::<false, true>(8, false);
        for position in 0..8 {
            assert_eq!(aligned.shared.slot(position).as_ptr().addr() % 64, 0);
            assert_eq!(naive.shared.slot(position).as_ptr().addr() % 64, 32);
        }
        let apart = |head: *const _, tail: *const _| {
            (head as *const u8 as usize / 64).abs_diff(tail as *const u8 as usize / 64)
        };
        assert!(apart(aligned.shared.head(), aligned.shared.tail()) >= 2);
        assert_eq!(apart(naive.shared.head(), naive.shared.tail()), 0);
    }
}
