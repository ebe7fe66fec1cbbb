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
