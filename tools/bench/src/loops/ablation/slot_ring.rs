//! The shipped ring's idea once more, without one of the steps before its own.
//!
//! A slot is a sequence and an event of 56 bytes, as in `tt_sync::spsc`. The words of an event are relaxed atomics, so that
//! all of this is safe code; that and their packing is what the control measures.

use crate::loops::hand_over::{Receives, Sends};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tt_model::OrderTerms;

use super::ring_memory::{SLOT, Shared};
use crate::loops::words::{packed, unpacked};

/// The sending end.
pub(super) struct SlotSender<const ALIGNED: bool, const SEQ_CST: bool> {
    shared: Arc<Shared<ALIGNED, SEQ_CST>>,
    tail: u64,
    head_seen: u64,
}

/// The receiving end.
pub(super) struct SlotReceiver<const ALIGNED: bool, const SEQ_CST: bool> {
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
) -> (SlotSender<ALIGNED, SEQ_CST>, SlotReceiver<ALIGNED, SEQ_CST>) {
    let shared = Shared::new(capacity, is_touched);
    (SlotSender { shared: Arc::clone(&shared), tail: 0, head_seen: 0 }, SlotReceiver { shared, head: 0 })
}

impl<const ALIGNED: bool, const SEQ_CST: bool> Sends for SlotSender<ALIGNED, SEQ_CST> {
    #[inline(always)]
    fn send(&mut self, terms: OrderTerms) -> bool {
        let shared = &*self.shared;
        if self.tail - self.head_seen > shared.mask as u64 {
            self.head_seen = shared.head().load(Shared::<ALIGNED, SEQ_CST>::LOAD);
            if self.tail - self.head_seen > shared.mask as u64 {
                return false;
            }
        }
        let [sequence, event @ ..] = shared.slot(self.tail) else { return false };
        for (place, word) in event.iter().zip(packed(&terms)) {
            place.store(word, Ordering::Relaxed);
        }
        self.tail += 1;
        sequence.store(self.tail, Shared::<ALIGNED, SEQ_CST>::STORE);
        shared.tail().store(self.tail, Shared::<ALIGNED, SEQ_CST>::STORE);
        true
    }
}

impl<const ALIGNED: bool, const SEQ_CST: bool> Receives for SlotReceiver<ALIGNED, SEQ_CST> {
    #[inline(always)]
    fn receive(&mut self) -> Option<(u64, OrderTerms)> {
        let shared = &*self.shared;
        let [sequence, event @ ..] = shared.slot(self.head) else { return None };
        if sequence.load(Shared::<ALIGNED, SEQ_CST>::LOAD) != self.head + 1 {
            return None;
        }
        let mut words = [0; SLOT - 1];
        for (word, place) in words.iter_mut().zip(event) {
            *word = place.load(Ordering::Relaxed);
        }
        let number = self.head;
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
            is_a_queue::<false, false>(capacity);
        }
    }
}
