//! The one source of chance: a seeded sequence that is the same on every machine.

/// `SplitMix64`: short, fast, and good enough for a script of a market.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A whole number from `low` to `high`, both included.
    pub(crate) const fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = (high - low) as u64 + 1;
        low + ((self.next() as u128 * span as u128) >> 64) as i64
    }

    /// True `percent` times out of a hundred.
    pub(crate) const fn chance(&mut self, percent: i64) -> bool {
        self.between(0, 99) < percent
    }
}
