//! Measurements in blocks of chunks, so that many can alternate and share disturbances.

use nix::errno::Errno;
use std::fmt;
use tt_meter::Calibration;

/// The means of a block's chunks, nanoseconds an operation.
pub type Block = Result<Vec<f64>, Errno>;

/// One thing whose time is measured, a block at a time.
pub struct Measurement<'a> {
    /// In a table of results.
    pub name: &'static str,
    /// Description of the timed operation.
    pub what: String,
    /// Operations between two stamps.
    pub batch: u32,
    block: Box<dyn FnMut() -> Block + 'a>,
}

impl<'a> Measurement<'a> {
    pub(crate) fn new(
        name: &'static str,
        what: impl Into<String>,
        batch: u32,
        block: impl FnMut() -> Block + 'a,
    ) -> Self {
        Self { name, what: what.into(), batch, block: Box::new(block) }
    }

    /// Times one block.
    ///
    /// # Errors
    /// The OS error of the operation.
    pub fn block(&mut self) -> Block {
        (self.block)()
    }
}

impl fmt::Debug for Measurement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Measurement").field("name", &self.name).field("batch", &self.batch).finish_non_exhaustive()
    }
}

/// Times `count` chunks of `batch` calls, without what a read of the clock costs.
#[inline]
pub(crate) fn chunks(calibration: &Calibration, count: usize, batch: u32, mut operation: impl FnMut()) -> Vec<f64> {
    let mut means = Vec::with_capacity(count);
    for _ in 0..count {
        let start = calibration.clock.end();
        for _ in 0..batch {
            operation();
        }
        means.push(mean_ns(calibration, calibration.clock.end().since(start), batch));
    }
    means
}

/// Nanoseconds of each of `batch` operations that took `cycles` together with one read of the clock.
pub(crate) fn mean_ns(calibration: &Calibration, cycles: u64, batch: u32) -> f64 {
    calibration.scale.ns_f64(cycles.saturating_sub(calibration.read_cycles) as f64) / f64::from(batch)
}
