//! How fast the core runs, by work whose duration in its own cycles is fixed.

use core::hint::black_box;
use tt_meter::Clock;

/// Steps of one probe, each waiting for the one before.
const STEPS: u64 = 256;
/// Probes of which the quickest counts.
const PROBES: u32 = 3;

/// Cycles of the clock that a fixed chain of multiplications takes: less on a faster core. Another thread on the same core does
/// not slow it, as the chain leaves nearly all of the core free.
pub(super) fn probe(clock: Clock) -> u64 {
    let multiplier = black_box(0x9e37_79b9_7f4a_7c15_u64);
    (0..PROBES).map(|_| once(clock, multiplier)).min().unwrap_or(1).max(1)
}

fn once(clock: Clock, multiplier: u64) -> u64 {
    let start = clock.end();
    let mut word = start.0;
    for _ in 0..STEPS {
        word = (word ^ (word >> 32)).wrapping_mul(multiplier);
    }
    black_box(word);
    clock.end().since(start)
}
