//! A histogram of fixed size, linear up to 64 and then with 32 buckets an octave.

/// Counts of values (cycles, usually) in buckets whose width is at most 1/32 of the value.
///
/// It never allocates, merges with another by addition, and a copy of it is its snapshot. Values of 2^40 and above count
/// in the last bucket; `max` is still exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: [u64; Self::BUCKETS],
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    const SUB_BITS: u32 = 5;
    const SUB: usize = 1 << Self::SUB_BITS;
    const VALUE_BITS: u32 = 40;
    /// Number of buckets.
    pub const BUCKETS: usize = (Self::VALUE_BITS - Self::SUB_BITS + 1) as usize * Self::SUB;

    /// Empty.
    #[must_use]
    pub const fn new() -> Self {
        Self { counts: [0; Self::BUCKETS], count: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    /// Counts `value`.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.counts[Self::bucket(value)] += 1;
        self.count += 1;
        self.sum = self.sum.wrapping_add(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Returns the number of recorded values.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The sum of the recorded values, exactly.
    #[must_use]
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// The least value, `None` where there is none.
    #[must_use]
    pub const fn min(&self) -> Option<u64> {
        if self.count == 0 { None } else { Some(self.min) }
    }

    /// The greatest value, `None` where there is none.
    #[must_use]
    pub const fn max(&self) -> Option<u64> {
        if self.count == 0 { None } else { Some(self.max) }
    }

    /// The value below or at which `per_million` of 1,000,000 values lie, in the middle of its bucket; `None` where fewer
    /// than `above_min` values lie beyond it (100 for a figure that is published), or there are none.
    #[must_use]
    pub fn quantile(&self, per_million: u32, above_min: u64) -> Option<u64> {
        let rank = (u128::from(self.count) * u128::from(per_million)).div_ceil(1_000_000) as u64;
        if self.count == 0 || self.count - rank.min(self.count) < above_min {
            return None;
        }
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank.max(1) {
                let (low, high) = Self::bounds(bucket);
                return Some((low + (high - low) / 2).clamp(self.min, self.max));
            }
        }
        Some(self.max)
    }

    /// The buckets that hold something: least value, greatest value, count; rising.
    pub fn filled(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(bucket, count)| {
            let (low, high) = Self::bounds(bucket);
            (low, high, *count)
        })
    }

    const fn bucket(value: u64) -> usize {
        let octave = (u64::BITS - value.leading_zeros()).saturating_sub(Self::SUB_BITS + 1);
        let bucket = octave as usize * Self::SUB + (value >> octave) as usize;
        if bucket < Self::BUCKETS { bucket } else { Self::BUCKETS - 1 }
    }

    const fn bounds(bucket: usize) -> (u64, u64) {
        let octave = (bucket / Self::SUB).saturating_sub(1);
        let low = ((bucket - octave * Self::SUB) as u64) << octave;
        (low, low + (1 << octave) - 1)
    }
}

#[cfg(test)]
mod tests;
