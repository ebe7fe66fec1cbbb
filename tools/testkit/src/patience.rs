//! Waiting for what another process does.

use std::thread;
use std::time::{Duration, Instant};

/// Between two looks: long for a processor, and short for a test.
const PAUSE: Duration = Duration::from_millis(5);

/// Leaves the processor to others before the next look at what another process does.
pub fn pause() {
    thread::park_timeout(PAUSE);
}

/// Looks until `is_so`, for at most `patience`, and leaves the processor to others between two looks. Returns whether it
/// became so.
pub fn wait_until(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    while !is_so() {
        if started.elapsed() > patience {
            return false;
        }
        pause();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_again_until_it_is_so_or_the_time_is_over() {
        let mut looks = 0;
        let mut third = || {
            looks += 1;
            looks == 3
        };
        assert!(wait_until(Duration::from_secs(60), &mut third));
        assert_eq!(looks, 3);
        assert!(!wait_until(Duration::ZERO, || false));
    }
}
