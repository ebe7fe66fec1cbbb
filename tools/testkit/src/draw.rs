//! Numbers of a seed: the only chance that the world knows.

use tt_model::SplitMix64;

/// A stream of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Draw(SplitMix64);

/// One number of two.
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    SplitMix64::nth(a, b.wrapping_add(1))
}

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        // The worlds' kept seeds begin at the second number.
        let mut numbers = SplitMix64::new(seed);
        numbers.next_u64();
        Self(numbers)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`, which is not zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True in `parts` of `of` cases.
    pub(crate) fn chance(&mut self, parts: u64, of: u64) -> bool {
        self.below(of) < parts
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// An index drawn by weights.
    pub(crate) fn weighted(&mut self, weights: &[u64]) -> usize {
        let mut left = self.below(weights.iter().sum());
        weights
            .iter()
            .position(|weight| {
                let found = left < *weight;
                left = left.wrapping_sub(*weight);
                found
            })
            .unwrap_or(0)
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
        bytes
    }
}
