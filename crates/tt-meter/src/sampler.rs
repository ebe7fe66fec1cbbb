//! The probe that times one pass in many.

use crate::{Calibration, Clock, Histogram, Probe, Stage, Stamp};

/// The sum over the sampled passes of one stage, or of another part of the pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTotal {
    /// Number of samples.
    pub count: u64,
    /// Cycles in all, one read of the clock included each time.
    pub cycles: u64,
}

impl StageTotal {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.cycles += other.cycles;
    }
}

/// Where the mean time of the passes went whose stages were stamped, nanoseconds: the parts sum to the whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PassParts {
    /// Each stage in the order of [`Stage::ALL`], over all of these passes: a stage that half of them have counts half.
    pub stages_ns: [f64; 5],
    /// After the last stage.
    pub rest_ns: f64,
    /// The stamps themselves: reads of the clock and what is kept of them.
    pub probe_ns: f64,
    /// All of it.
    pub whole_ns: f64,
}

/// The samples of a [`Sampler`]. A copy is a snapshot; those of several workers can be merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// Passes in all, sampled or not.
    pub passes: u64,
    /// One sum for each stage, in the order of [`Stage::ALL`].
    pub totals: [StageTotal; 5],
    /// Passes whose stages were stamped, from begin to end.
    pub stamped: StageTotal,
    /// The same passes from their last stamp to their end.
    pub rest: StageTotal,
    /// Whole passes in cycles, one read of the clock included, from samples in which no stage was stamped.
    pub pass: Histogram,
}

impl Stages {
    /// Adds what another worker has seen.
    pub fn merge(&mut self, other: &Self) {
        self.passes += other.passes;
        for (mine, theirs) in self.totals.iter_mut().zip(&other.totals) {
            mine.add(*theirs);
        }
        self.stamped.add(other.stamped);
        self.rest.add(other.rest);
        self.pass.merge(&other.pass);
    }

    /// The mean of `stage` in nanoseconds without the read of the clock, `None` before its first sample.
    #[must_use]
    pub fn mean_ns(&self, stage: Stage, calibration: &Calibration) -> Option<f64> {
        let total = self.totals[stage as usize];
        if total.count == 0 {
            return None;
        }
        let mean = total.cycles as f64 / total.count as f64 - calibration.read_cycles as f64;
        Some(calibration.scale.ns_f64(mean.max(0.0)))
    }

    /// The mean of a whole pass in nanoseconds without the read of the clock, `None` before its first sample.
    #[must_use]
    pub fn pass_mean_ns(&self, calibration: &Calibration) -> Option<f64> {
        if self.pass.count() == 0 {
            return None;
        }
        let mean = self.pass.sum() as f64 / self.pass.count() as f64 - calibration.read_cycles as f64;
        Some(calibration.scale.ns_f64(mean.max(0.0)))
    }

    /// The parts of the mean pass whose stages were stamped, `None` before the first one.
    ///
    /// The mean of [`Stages::pass`] is of other passes, which nothing was stamped in.
    #[must_use]
    pub fn parts(&self, calibration: &Calibration) -> Option<PassParts> {
        if self.stamped.count == 0 {
            return None;
        }
        let passes = self.stamped.count as f64;
        let ns = |total: &StageTotal| {
            let cycles = total.cycles as f64 - (total.count * calibration.read_cycles) as f64;
            calibration.scale.ns_f64(cycles.max(0.0) / passes)
        };
        let (stages_ns, rest_ns) = (self.totals.each_ref().map(ns), ns(&self.rest));
        let timed_ns = stages_ns.iter().sum::<f64>() + rest_ns;
        let whole_ns = ns(&self.stamped).max(timed_ns);
        Some(PassParts { stages_ns, rest_ns, probe_ns: whole_ns - timed_ns, whole_ns })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    Nothing,
    Pass,
    Stages,
}

/// Times every Nth pass on average, whole passes and their stages in turn.
///
/// A pass that is not sampled costs a count-down and a branch a mark. The gaps between samples vary between N/2 and 3N/2,
/// so that periodic traffic is sampled evenly.
#[derive(Clone, Debug)]
pub struct Sampler {
    clock: Clock,
    every: u32,
    left: u32,
    watch: Watch,
    stages_next: bool,
    random: u32,
    begun: Stamp,
    last: Stamp,
    /// The stages of the pass that is under way: one that does not end counts nowhere.
    marked: [StageTotal; 5],
    seen: Stages,
}

impl Sampler {
    /// Times one pass in `every` (at least 1, which times all).
    #[must_use]
    pub fn new(clock: Clock, every: u32) -> Self {
        Self {
            clock,
            every: every.max(1),
            left: 0,
            watch: Watch::Nothing,
            stages_next: false,
            random: 0x2545_f491,
            begun: Stamp::default(),
            last: Stamp::default(),
            marked: [StageTotal::default(); 5],
            seen: Stages::default(),
        }
    }

    /// Returns the samples so far.
    #[must_use]
    pub const fn stages(&self) -> &Stages {
        &self.seen
    }

    #[cold]
    fn arm(&mut self) {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.left = if self.every == 1 { 0 } else { self.every / 2 + self.random % self.every };
        self.watch = if self.stages_next { Watch::Stages } else { Watch::Pass };
        self.stages_next = !self.stages_next;
        self.marked = [StageTotal::default(); 5];
        self.begun = self.clock.end();
        self.last = self.begun;
    }

    /// Keeps the stages of a pass that ends at `now`.
    #[cold]
    fn keep(&mut self, now: Stamp) {
        for (total, marked) in self.seen.totals.iter_mut().zip(self.marked) {
            total.add(marked);
        }
        self.seen.rest.add(StageTotal { count: 1, cycles: now.since(self.last) });
        self.seen.stamped.add(StageTotal { count: 1, cycles: now.since(self.begun) });
    }
}

impl Probe for Sampler {
    #[inline]
    fn begin(&mut self) {
        self.seen.passes += 1;
        if self.left == 0 {
            self.arm();
        } else {
            self.left -= 1;
        }
    }

    #[inline]
    fn mark(&mut self, stage: Stage) {
        if self.watch == Watch::Stages {
            let now = self.clock.end();
            self.marked[stage as usize].add(StageTotal { count: 1, cycles: now.since(self.last) });
            // The bookkeeping above is not the next stage's work.
            self.last = self.clock.end();
        }
    }

    #[inline]
    fn end(&mut self) {
        match self.watch {
            Watch::Nothing => {}
            Watch::Pass => {
                let now = self.clock.end();
                self.seen.pass.record(now.since(self.last));
            }
            Watch::Stages => self.keep(self.clock.end()),
        }
        self.watch = Watch::Nothing;
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicU64, Ordering};

    use super::{Sampler, Stages};
    use crate::{Calibration, Clock, Probe, Scale, Stage};

    extern crate std;

    std::thread_local! {
        static NOW: AtomicU64 = const { AtomicU64::new(0) };
    }

    fn now() -> u64 {
        NOW.with(|now| now.load(Ordering::Relaxed))
    }

    fn pass(sampler: &mut Sampler) {
        sampler.begin();
        for (index, stage) in Stage::ALL.into_iter().enumerate() {
            NOW.with(|now| now.fetch_add(10 * (index as u64 + 1), Ordering::Relaxed));
            sampler.mark(stage);
        }
        sampler.end();
    }

    #[test]
    fn stages_and_whole_passes_are_timed_in_turn() {
        let mut sampler = Sampler::new(Clock::Os(now), 1);
        (0..100).for_each(|_| pass(&mut sampler));
        let seen = sampler.stages();
        assert_eq!(seen.passes, 100);
        assert_eq!(seen.pass.count(), 50);
        assert_eq!(seen.pass.min(), Some(150));
        assert_eq!(seen.pass.max(), Some(150));
        for (index, total) in seen.totals.iter().enumerate() {
            assert_eq!((total.count, total.cycles), (50, 50 * 10 * (index as u64 + 1)));
        }
        let calibration = Calibration { clock: Clock::Os(now), scale: Scale::NANOSECONDS, read_cycles: 4 };
        assert_eq!(seen.mean_ns(Stage::Build, &calibration), Some(36.0));
        assert_eq!(seen.pass_mean_ns(&calibration), Some(146.0));
    }

    /// Every read of the clock takes 3 of its cycles, which the probe's part holds.
    #[test]
    fn stages_rest_and_probe_sum_to_the_whole() {
        fn slow() -> u64 {
            NOW.with(|now| now.fetch_add(3, Ordering::Relaxed))
        }
        let mut sampler = Sampler::new(Clock::Os(slow), 1);
        let spend = |cycles| NOW.with(|now| now.fetch_add(cycles, Ordering::Relaxed));
        for pass in 0..200 {
            sampler.begin();
            spend(100);
            sampler.mark(Stage::Parse);
            // Passes are stamped in turn with others: of those, every second one has this stage twice.
            if pass % 4 < 2 {
                for cycles in [20, 40] {
                    spend(cycles);
                    sampler.mark(Stage::Build);
                }
            }
            spend(7);
            sampler.end();
        }
        let calibration = Calibration { clock: Clock::Os(slow), scale: Scale::NANOSECONDS, read_cycles: 3 };
        let seen = sampler.stages();
        assert_eq!((seen.stamped.count, seen.pass.count()), (100, 100));
        let parts = seen.parts(&calibration).unwrap();
        assert_eq!((parts.stages_ns, parts.rest_ns), ([100.0, 0.0, 0.0, 30.0, 0.0], 7.0));
        // A mark reads the clock twice, and the whole holds all reads but its own first.
        assert_eq!((parts.probe_ns, parts.whole_ns), (6.0 + 6.0, 149.0));
        assert_eq!(seen.pass_mean_ns(&calibration), Some(137.0));
        assert_eq!(Stages::default().parts(&calibration), None);
    }

    #[test]
    fn a_pass_without_an_end_is_no_part_of_any_sum() {
        let mut sampler = Sampler::new(Clock::Os(now), 1);
        (0..2).for_each(|_| pass(&mut sampler));
        let seen = *sampler.stages();
        assert_eq!(seen.stamped.count, 1);
        sampler.begin();
        sampler.end();
        sampler.begin();
        NOW.with(|now| now.fetch_add(1_000, Ordering::Relaxed));
        sampler.mark(Stage::Parse);
        assert_eq!((sampler.stages().totals, sampler.stages().stamped), (seen.totals, seen.stamped));
    }

    #[test]
    fn one_pass_in_n_is_sampled_on_average() {
        let mut sampler = Sampler::new(Clock::Os(now), 64);
        (0..64_000).for_each(|_| pass(&mut sampler));
        let samples = sampler.stages().pass.count() + sampler.stages().totals[0].count;
        assert!((900..=1_100).contains(&samples), "{samples} samples of 64,000 passes");
    }

    #[test]
    fn a_pass_that_ends_early_leaves_no_trace_in_the_next() {
        let mut sampler = Sampler::new(Clock::Os(now), 1);
        pass(&mut sampler);
        sampler.begin();
        sampler.mark(Stage::Parse);
        sampler.end();
        NOW.with(|now| now.fetch_add(1_000_000, Ordering::Relaxed));
        sampler.mark(Stage::Validate);
        assert_eq!(sampler.stages().totals[Stage::Validate as usize].count, 0);
    }

    #[test]
    fn workers_merge() {
        let mut sampler = Sampler::new(Clock::Os(now), 1);
        (0..10).for_each(|_| pass(&mut sampler));
        let mut both = Stages::default();
        both.merge(sampler.stages());
        both.merge(sampler.stages());
        assert_eq!(both.passes, 20);
        assert_eq!(both.pass.count(), 10);
        assert_eq!(both.totals[4].count, 10);
        assert_eq!((both.stamped.count, both.rest.count, both.stamped.cycles), (10, 10, 10 * 150));
    }
}
