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
#[repr(align(128))]
struct Line {
    number: AtomicU64,
    payload: [AtomicU64; WORDS],
}

/// The sending end.
#[derive(Debug)]
pub struct LineSender {
    line: Arc<Line>,
    sent: u64,
}

/// The receiving end.
#[derive(Debug)]
pub struct LineReceiver {
    line: Arc<Line>,
    received: u64,
}

/// Both ends of a line.
#[must_use]
pub fn one_line() -> (LineSender, LineReceiver) {
    let line = Arc::new(Line { number: AtomicU64::new(0), payload: [const { AtomicU64::new(0) }; WORDS] });
    (LineSender { line: Arc::clone(&line), sent: 0 }, LineReceiver { line, received: 0 })
}

impl Sends for LineSender {
    /// Replaces the message in the line: the last one must have been taken.
    #[inline(always)]
    fn send(&mut self, terms: OrderTerms) -> bool {
        for (place, word) in self.line.payload.iter().zip(packed(&terms)) {
            place.store(word, Ordering::Relaxed);
        }
        self.sent += 1;
        self.line.number.store(self.sent, Ordering::Release);
        true
    }

    #[inline(always)]
    fn hold_next(&mut self) {
        // The number that is there already: only the sender stores it.
        self.line.number.store(self.sent, Ordering::Relaxed);
    }
}

impl Receives for LineReceiver {
    #[inline(always)]
    fn receive(&mut self) -> Option<(u64, OrderTerms)> {
        if self.line.number.load(Ordering::Acquire) != self.received + 1 {
            return None;
        }
        let mut words = [0; WORDS];
        for (word, place) in words.iter_mut().zip(&self.line.payload) {
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
        let (mut sender, mut receiver) = one_line();
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
    fn number_and_payload_are_one_cache_line() {
        let (sender, _) = one_line();
        let first = std::ptr::from_ref(&sender.line.number).addr();
        let last = std::ptr::from_ref(&sender.line.payload[6]).addr() + 7;
        assert_eq!((first % 64, first / 64), (0, last / 64));
    }
}
