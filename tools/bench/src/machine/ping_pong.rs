//! How long a cache line takes from one core to another.

use crate::machine::Deadline;
use std::sync::atomic::{AtomicU64, Ordering};
use tt_meter::Clock;

/// Round trips that one reading of the clock covers.
const ROUND_TRIPS: u64 = 32;
/// Readings of one probe; their median is its result.
const READINGS: usize = 129;
/// Round trips that the skew is taken from.
const SKEW_ROUND_TRIPS: u64 = 512;

/// A cache line that two threads hand back and forth: one stores, the other polls and stores.
#[derive(Debug)]
#[repr(align(128))]
pub struct PingPong {
    word: AtomicU64,
    /// The answering side's stamp, on the same line.
    stamp: AtomicU64,
}

impl PingPong {
    /// A line that no thread has touched.
    #[must_use]
    pub const fn new() -> Self {
        Self { word: AtomicU64::new(0), stamp: AtomicU64::new(0) }
    }

    /// One side: asks, and times the answers. Returns half a round trip in cycles, the median of many readings. Ends
    /// only if the other side runs [`answer`](Self::answer) once.
    // One copy of the code for every caller: inlined, its polling loop takes another time in each of them.
    #[inline(never)]
    #[must_use]
    pub fn ask(&self, clock: Clock) -> f64 {
        self.ask_within(Deadline::NEVER, clock).unwrap_or(f64::INFINITY)
    }

    /// As [`ask`](Self::ask) for threads that may share a CPU; `None` when `deadline` came first, after which the line is
    /// of no further use. The other side runs [`answer_within`](Self::answer_within).
    #[must_use]
    pub fn ask_within(&self, deadline: Deadline, clock: Clock) -> Option<f64> {
        let mut word = self.word.load(Ordering::Relaxed);
        let mut readings = [0; READINGS];
        for reading in &mut readings {
            let start = clock.end();
            for _ in 0..ROUND_TRIPS {
                self.word.store(word + 1, Ordering::Release);
                word += 2;
                deadline.spin_until(|| self.word.load(Ordering::Acquire) >= word)?;
            }
            *reading = clock.end().since(start);
        }
        readings.sort_unstable();
        Some(readings[READINGS / 2] as f64 / (2 * ROUND_TRIPS) as f64)
    }

    /// The other side: answers one probe.
    #[inline(never)]
    pub fn answer(&self) {
        let _ = self.answer_within(Deadline::NEVER);
    }

    /// The other side of [`ask_within`](Self::ask_within); `None` when `deadline` came first.
    pub fn answer_within(&self, deadline: Deadline) -> Option<()> {
        let mut word = self.answered();
        for _ in 0..ROUND_TRIPS * READINGS as u64 {
            deadline.spin_until(|| self.word.load(Ordering::Acquire) == word + 1)?;
            word += 2;
            self.word.store(word, Ordering::Release);
        }
        Some(())
    }

    /// One side: how much the counter of the side that runs [`answer_skew`](Self::answer_skew) is ahead, in cycles: its
    /// stamp less the middle of the quickest round trip. Ask both ways and halve the difference: the answering side takes
    /// its stamp before the middle of its part.
    #[must_use]
    pub fn ask_skew(&self, clock: Clock) -> i64 {
        let mut word = self.word.load(Ordering::Relaxed);
        let (mut quickest, mut skew) = (u64::MAX, 0);
        for _ in 0..SKEW_ROUND_TRIPS {
            let start = clock.end();
            self.word.store(word + 1, Ordering::Release);
            word += 2;
            // The other side may have answered and asked already: then the word is beyond the answer.
            while self.word.load(Ordering::Acquire) < word {}
            let round_trip = clock.end().since(start);
            if round_trip < quickest {
                quickest = round_trip;
                let middle = start.0 + round_trip / 2;
                skew = self.stamp.load(Ordering::Relaxed).wrapping_sub(middle).cast_signed();
            }
        }
        skew
    }

    /// The other side of [`ask_skew`](Self::ask_skew).
    pub fn answer_skew(&self, clock: Clock) {
        let mut word = self.answered();
        for _ in 0..SKEW_ROUND_TRIPS {
            while self.word.load(Ordering::Acquire) != word + 1 {}
            self.stamp.store(clock.end().0, Ordering::Relaxed);
            word += 2;
            self.word.store(word, Ordering::Release);
        }
    }

    /// The last even word: what this side answered last. The other side may have asked again already.
    fn answered(&self) -> u64 {
        self.word.load(Ordering::Relaxed) & !1
    }
}

impl Default for PingPong {
    fn default() -> Self {
        Self::new()
    }
}
