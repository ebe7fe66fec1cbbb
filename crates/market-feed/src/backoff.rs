//! How long to wait before the next try: twice as long each time, never the same for two clients.

use std::time::Duration;

use super::random;

/// A wait that doubles with each failure, between half of itself and itself.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    first: Duration,
    most: Duration,
    failures: u32,
}

impl Backoff {
    /// Waits about `first` after one failure and never more than `most`.
    pub(super) const fn new(first: Duration, most: Duration) -> Self {
        Self { first, most, failures: 0 }
    }

    /// The wait after one more failure.
    pub(super) fn fail(&mut self) -> Duration {
        let whole = self.first.saturating_mul(1 << self.failures.min(20)).min(self.most);
        self.failures = self.failures.saturating_add(1);
        // Without randomness everybody comes back at the same moment; a whole wait is then the safe side.
        whole / 2 + (whole / 2).mul_f64(random::share())
    }

    /// Something worked.
    pub(super) const fn succeed(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_m30_waits_double_up_to_the_most_and_differ() {
        let (first, most) = (Duration::from_millis(100), Duration::from_secs(5));
        let mut backoff = Backoff::new(first, most);
        let waits: Vec<Duration> = (0..64).map(|_| backoff.fail()).collect();
        for (i, wait) in waits.iter().enumerate() {
            let whole = (first * (1 << i.min(20))).min(most);
            assert!((whole / 2..=whole).contains(wait), "{i}: {wait:?}");
        }
        assert!(waits.windows(2).any(|pair| pair[0] != pair[1] && pair[0] > most / 2));
        backoff.succeed();
        assert!(backoff.fail() <= first);
    }
}
