//! The smallest program that passes a message of 64 bytes from one thread to another: one cache line, and nothing else.
//!
//! Seven words of payload and a number. There is no index, no room to check and no second slot: the sender must know that
//! the last message was taken. A queue between the same threads can hardly be quicker, so this is its floor. The payload is
//! in relaxed atomics, as in the ablation's ring.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tt_model::OrderTerms;

use super::hand_over::{Receives, Sends};
use super::words::{WORDS, packed, unpacked};

#[derive(Debug)]
#[repr(align(64))]
struct Line {
    number: AtomicU64,
    payload: [AtomicU64; WORDS],
}

/// The sending end. There is as much memory as a ring has, of which one line is used.
#[derive(Debug)]
pub struct LineSender {
    lines: Arc<[Line]>,
    at: usize,
    sent: u64,
}

/// The receiving end.
#[derive(Debug)]
pub struct LineReceiver {
    lines: Arc<[Line]>,
    at: usize,
    received: u64,
}

/// Both ends of one line at an address that a slot of a ring of `slots` could have: new memory of the ring's size, written
/// once like the ring's, of which the line is `at` (modulo the number of slots).
#[must_use]
pub fn one_line(slots: usize, at: usize) -> (LineSender, LineReceiver) {
    let slots = slots.max(1).next_power_of_two();
    let line = |_| Line { number: AtomicU64::new(0), payload: [const { AtomicU64::new(0) }; WORDS] };
    let (lines, at): (Arc<[Line]>, _) = ((0..slots).map(line).collect(), at % slots);
    (LineSender { lines: Arc::clone(&lines), at, sent: 0 }, LineReceiver { lines, at, received: 0 })
}

impl Sends for LineSender {
    /// Replaces the message in the line: the last one must have been taken.
    #[inline(always)]
    fn send(&mut self, terms: OrderTerms) -> bool {
        let line = &self.lines[self.at];
        for (place, word) in line.payload.iter().zip(packed(&terms)) {
            place.store(word, Ordering::Relaxed);
        }
        self.sent += 1;
        line.number.store(self.sent, Ordering::Release);
        true
    }

    #[inline(always)]
    fn hold_next(&mut self) {
        // The number that is there already: only the sender stores it.
        self.lines[self.at].number.store(self.sent, Ordering::Relaxed);
    }
}

impl Receives for LineReceiver {
    #[inline(always)]
    fn receive(&mut self) -> Option<(u64, OrderTerms)> {
        let line = &self.lines[self.at];
        if line.number.load(Ordering::Acquire) != self.received + 1 {
            return None;
        }
        let mut words = [0; WORDS];
        for (word, place) in words.iter_mut().zip(&line.payload) {
            *word = place.load(Ordering::Relaxed);
        }
        let number = self.received;
        self.received += 1;
        Some((number, unpacked(words)))
    }
}

#[cfg(test)]
mod tests {
    use super::one_line;
    use crate::loops::hand_over::{Receives, Sends};
    use crate::loops::words::tests::terms;

    #[test]
    fn a_message_comes_once_and_whole() {
        let (mut sender, mut receiver) = one_line(8, 3);
        assert_eq!(receiver.receive(), None);
        for n in 0..1_000 {
            sender.hold_next();
            assert_eq!(receiver.receive(), None, "holding sends nothing");
            assert!(sender.send(terms(n)));
            sender.hold_next();
            assert_eq!(receiver.receive(), Some((n, terms(n))));
            assert_eq!(receiver.receive(), None);
        }
    }

    #[test]
    fn number_and_payload_are_one_cache_line_where_a_slot_could_be() {
        for at in [0, 5, 7] {
            let (sender, _) = one_line(8, at + 8);
            let begin = sender.lines.as_ptr().addr();
            let line = &sender.lines[sender.at];
            let first = std::ptr::from_ref(&line.number).addr();
            let last = std::ptr::from_ref(&line.payload[6]).addr() + 7;
            assert_eq!((first - begin, first % 64, first / 64), (64 * at, 0, last / 64));
        }
    }
}
