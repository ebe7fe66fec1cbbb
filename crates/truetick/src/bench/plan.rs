//! How long and how often: fixed before anything is measured, printed with the result.

/// The sizes of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Few samples, wide intervals.
    pub(crate) quick: bool,
    /// Blocks a row.
    pub(crate) blocks: u32,
    /// Length of a block.
    pub(crate) block_ns: u64,
    /// Samples a block at most.
    pub(crate) samples_per_block: usize,
    /// Running before the first block of a row; a tenth of a block runs unrecorded before each block.
    pub(crate) warmup_ns: u64,
    /// Operations a block of a row that is timed with caches displaced, too.
    pub(crate) cold_per_block: usize,
    /// Resamples of an interval.
    pub(crate) resamples: u32,
    /// Seed of inputs, order and resampling.
    pub(crate) seed: u64,
}

impl Plan {
    /// The sizes of a quick or a full run.
    pub(crate) const fn new(quick: bool) -> Self {
        let seed = 0x7472_7565_7469_636b;
        if quick {
            Self {
                quick,
                blocks: 20,
                block_ns: 10_000_000,
                samples_per_block: 1_000,
                warmup_ns: 100_000_000,
                cold_per_block: 2,
                resamples: 2_000,
                seed,
            }
        } else {
            Self {
                quick,
                blocks: 50,
                block_ns: 50_000_000,
                samples_per_block: 4_000,
                warmup_ns: 1_000_000_000,
                cold_per_block: 5,
                resamples: 10_000,
                seed,
            }
        }
    }
}

/// Random numbers for inputs: splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The sequence of `seed`.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// Random bytes.
    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.next() as u8)
    }
}
