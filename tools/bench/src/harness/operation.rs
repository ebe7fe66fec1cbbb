//! One operation of the product, and the loop that times it.

use std::hint::black_box;

use crate::report::{Bootstrap, Published, Row, RowText, Samples, Sizes, Unit};
use anyhow::ensure;
use tt_meter::{Calibration, Clock};

use super::cache_eviction;
use super::figures::Sketch;
use super::plan::Plan;

/// A shipped function on prepared inputs.
///
/// [`Chunked`] calls the methods that have a loop through the vtable, once for each chunk, so that only these loops exist
/// for each operation.
pub(crate) trait Operation {
    /// Operations in one [`run`](Self::run): above 1 where one alone is hardly longer than the loop around it.
    fn per_run(&self) -> u32 {
        1
    }

    /// How many inputs there are.
    fn inputs(&self) -> usize;

    /// Runs on input `index` and returns a digest of the answer that costs next to nothing.
    fn run(&mut self, index: usize) -> u64;

    /// Reads input `index`, so that it is in the cache as what wrote it leaves it: the frame that is applied has just been
    /// parsed. Called for the inputs of a chunk before the clock starts, not for those that are to be cold.
    fn ready(&self, index: usize) {
        let _ = index;
    }

    /// Runs on input `index`, compares the whole answer with the reference, and returns the digest that
    /// [`run`](Self::run) must give.
    ///
    /// # Errors
    /// The answer differs from the reference.
    fn verify(&mut self, index: usize) -> anyhow::Result<u64>;

    /// Takes the state back to where input 0 is next. Called before the first input, never timed.
    fn rewind(&mut self) {}

    /// A note on the inputs.
    fn note(&self) -> Option<String> {
        None
    }

    /// How many parts each input has, where that decides its time.
    fn sizes(&self) -> Option<Sizes> {
        None
    }

    /// A second row whose figures are these divided by the number of parts an input has on average (levels of a frame).
    fn parts(&self) -> Option<(&'static str, f64)> {
        None
    }

    /// Makes the inputs of a chunk ready.
    fn ready_all(&self, first: usize, count: usize) {
        (first..first + count).for_each(|index| self.ready(index));
    }

    /// Runs on the inputs of a chunk between two stamps: cycles, and the sum of the digests.
    #[inline(never)]
    fn timed(&mut self, clock: Clock, first: usize, count: usize) -> (u64, u64) {
        let begin = clock.start();
        let mut digest = 0u64;
        for index in first..first + count {
            digest = digest.wrapping_add(self.run(black_box(index)));
        }
        let end = clock.end();
        (end.since(begin), black_box(digest))
    }

    /// The next input from which `count` more are there, after a rewind where there are not.
    fn first_of(&mut self, next: usize, count: usize) -> usize {
        if next.saturating_add(count) > self.inputs() {
            self.rewind();
            return 0;
        }
        next
    }

    /// Makes `runs` runs without a clock from input `next`, and returns the input after the last.
    fn repeat(&mut self, mut next: usize, runs: usize) -> usize {
        let mut left = runs;
        while left > 0 {
            let first = self.first_of(next, 1);
            next = self.inputs().min(first + left);
            for index in first..next {
                black_box(self.run(black_box(index)));
            }
            left -= next - first;
        }
        next
    }
}

/// Texts and published figures of an operation's row.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    /// Name of the row.
    pub(crate) name: &'static str,
    /// `turn`, `ring` or `market`.
    pub(crate) engine: &'static str,
    /// Description of the timed operation.
    pub(crate) what: &'static str,
    /// Figures that others published.
    pub(crate) published: Vec<Published>,
    /// A second row in million operations a second, and what it is compared with.
    pub(crate) rate: Option<(&'static str, Published)>,
}

/// A finished row with its raw samples.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    /// Its figures.
    pub(crate) row: Row,
    /// The source of the inputs.
    pub(crate) samples: Samples,
}

/// Something that gives rows block by block.
pub(crate) trait Bench {
    /// Its name, for progress and errors.
    fn name(&self) -> &'static str;
    /// Compares every answer with the reference.
    ///
    /// # Errors
    /// An answer differs.
    fn verify(&mut self) -> anyhow::Result<()>;
    /// Runs unrecorded, and chooses how many operations are timed between two stamps.
    ///
    /// # Errors
    /// An answer differs from the reference.
    fn warm_up(&mut self, calibration: &Calibration, plan: &Plan) -> anyhow::Result<()>;
    /// Records one block.
    ///
    /// # Errors
    /// An answer differs from the reference, or the run is void.
    fn block(&mut self, calibration: &Calibration, plan: &Plan) -> anyhow::Result<()>;
    /// The rows.
    fn finish(&self, bootstrap: &Bootstrap) -> Vec<Finished>;
    /// Adds what it knows beyond its rows to the figures of `report.html`.
    fn portray(&self, sketch: &mut Sketch<'_>) {
        let _ = sketch;
    }
    /// Operations of one turn of the loop whose mean its rows are, which a compiler could remove; `None` for parts of a pass.
    /// They may be shorter than an empty loop: a stage that the pass does not have, the rest after the last stamp.
    fn per_turn(&self) -> Option<u32> {
        Some(1)
    }
    /// Makes `runs` runs without a clock, for counting, and returns the operations per run; `None` where that is
    /// not possible.
    fn repeat(&mut self, runs: u64) -> Option<u32> {
        let _ = runs;
        None
    }
}

/// Chunks of a warm-up at least, however long the first ones take.
const CHUNKS_MIN: u64 = 16;

/// Times an [`Operation`] in chunks of `batch` between two stamps, one by one where it is ten times longer than a read of
/// the clock.
pub(crate) struct Chunked {
    label: Label,
    operation: Box<dyn Operation>,
    /// `digests[i]` is the sum of the digests of all inputs below `i`.
    digests: Vec<u64>,
    next: usize,
    batch: usize,
    samples: Samples,
    /// Whether each operation is timed by itself, however short it is, to get a distribution.
    is_one_by_one: bool,
    /// The row of operations with caches displaced.
    cold: Option<(&'static str, Samples)>,
}

impl Chunked {
    /// Times `operation` in a row with `label`.
    pub(crate) fn new(label: Label, operation: impl Operation + 'static) -> Self {
        Self {
            label,
            operation: Box::new(operation),
            digests: vec![0],
            next: usize::MAX,
            batch: 1,
            samples: Samples::new(),
            is_one_by_one: false,
            cold: None,
        }
    }

    /// Times each operation by itself, the clock's read included.
    pub(crate) fn one_by_one(self) -> Self {
        Self { is_one_by_one: true, ..self }
    }

    /// Times operations with caches displaced, too, in a row named `name`.
    pub(crate) fn with_cold(self, name: &'static str) -> Self {
        Self { cold: Some((name, Samples::new())), ..self }
    }

    /// Cycles of one chunk of `count`, whose inputs are in the cache, or nothing is.
    fn chunk(&mut self, clock: Clock, count: usize, is_cold: bool) -> anyhow::Result<u64> {
        let first = self.operation.first_of(self.next, count);
        if is_cold {
            cache_eviction::displace();
        } else {
            self.operation.ready_all(first, count);
        }
        let (cycles, digest) = self.operation.timed(clock, first, count);
        self.next = first + count;
        let expected = self.digests[self.next].wrapping_sub(self.digests[first]);
        ensure!(digest == expected, "{}: a wrong answer among inputs {first} to {}", self.label.name, self.next);
        Ok(cycles)
    }

    /// One sample a block: the rate over the whole of it.
    fn finish_rate(&self, bootstrap: &Bootstrap) -> Option<Finished> {
        let (name, published) = self.label.rate.as_ref()?;
        let mut samples = Samples::new();
        for block in self.samples.blocks() {
            samples.push_block(vec![1e3 * block.len() as f64 / block.iter().sum::<f64>()]);
        }
        let text = RowText { name, engine: self.label.engine, what: self.label.what, unit: Unit::MillionPerS };
        let row = Row::of(text, &samples, 1, bootstrap)?;
        Some(Finished { row: Row { quantiles: None, published: vec![published.clone()], ..row }, samples })
    }

    /// One sample a block: its mean over the mean number of parts.
    fn finish_parts(&self, bootstrap: &Bootstrap) -> Option<Finished> {
        let (name, parts) = self.operation.parts()?;
        let mut samples = Samples::new();
        for block in self.samples.blocks() {
            samples.push_block(vec![block.iter().sum::<f64>() / block.len() as f64 / parts]);
        }
        let text = RowText { name, engine: self.label.engine, what: self.label.what, unit: Unit::Ns };
        let mut row = Row::of(text, &samples, 1, bootstrap)?;
        row.quantiles = None;
        row.notes.push(format!("the row above over {parts:.1} levels a frame"));
        Some(Finished { row, samples })
    }

    /// The row of operations with caches displaced.
    fn finish_cold(&self, bootstrap: &Bootstrap) -> Option<Finished> {
        let (name, samples) = self.cold.as_ref()?;
        let text = RowText { name, engine: self.label.engine, what: self.label.what, unit: Unit::Ns };
        let mut row = Row::of(text, samples, 1, bootstrap)?;
        row.notes.push(cache_eviction::how());
        Some(Finished { row, samples: samples.clone() })
    }

    /// Records `count` operations, each with caches displaced before it.
    fn cold_block(&mut self, calibration: &Calibration, count: usize) -> anyhow::Result<()> {
        if self.cold.is_none() {
            return Ok(());
        }
        let mut block = Vec::with_capacity(count);
        for _ in 0..count {
            let cycles = self.chunk(calibration.clock, 1, true)?;
            block.push(calibration.scale.ns_f64(cycles as f64) / f64::from(self.operation.per_run()));
        }
        if let Some((_, samples)) = &mut self.cold {
            samples.push_block(block);
        }
        Ok(())
    }

    /// Runs for `span_ns`, at least [`CHUNKS_MIN`] chunks, and returns nanoseconds an operation in the fastest chunk: one
    /// that another process disturbed must not make a short operation look long.
    fn run_for(&mut self, calibration: &Calibration, span_ns: u64) -> anyhow::Result<f64> {
        let (mut fastest, mut chunks) = (u64::MAX, 0u64);
        let begin = calibration.clock.end();
        while chunks < CHUNKS_MIN || calibration.scale.ns(calibration.clock.end().since(begin)) < span_ns {
            fastest = fastest.min(self.chunk(calibration.clock, self.batch, false)?);
            chunks += 1;
        }
        Ok(calibration.scale.ns_f64(fastest as f64) / self.batch as f64)
    }
}

impl Bench for Chunked {
    fn name(&self) -> &'static str {
        self.label.name
    }

    fn verify(&mut self) -> anyhow::Result<()> {
        self.operation.rewind();
        self.digests.truncate(1);
        let mut sum = 0u64;
        for index in 0..self.operation.inputs() {
            sum = sum.wrapping_add(self.operation.verify(index)?);
            self.digests.push(sum);
        }
        Ok(())
    }

    fn warm_up(&mut self, calibration: &Calibration, plan: &Plan) -> anyhow::Result<()> {
        const CHUNK_NS: f64 = 2_000.0;
        self.batch = 64.min(self.operation.inputs());
        let run_ns = self.run_for(calibration, plan.warmup_ns)?;
        let read_ns = calibration.scale.ns_f64(calibration.read_cycles as f64);
        self.batch = if self.is_one_by_one || run_ns >= 10.0 * read_ns {
            1
        } else {
            ((CHUNK_NS / run_ns) as usize).next_power_of_two().min(self.operation.inputs())
        };
        Ok(())
    }

    fn block(&mut self, calibration: &Calibration, plan: &Plan) -> anyhow::Result<()> {
        self.run_for(calibration, plan.block_ns / 10)?;
        let operations = self.batch as f64 * f64::from(self.operation.per_run());
        let mut block = Vec::with_capacity(plan.samples_per_block);
        let begin = calibration.clock.end();
        while block.len() < plan.samples_per_block
            && calibration.scale.ns(calibration.clock.end().since(begin)) < plan.block_ns
        {
            let cycles = self.chunk(calibration.clock, self.batch, false)?;
            block.push(calibration.scale.ns_f64(cycles as f64) / operations);
        }
        self.samples.push_block(block);
        self.cold_block(calibration, plan.cold_per_block)
    }

    fn finish(&self, bootstrap: &Bootstrap) -> Vec<Finished> {
        let Label { name, engine, what, .. } = self.label;
        let batch = u32::try_from(self.batch).unwrap_or(u32::MAX) * self.operation.per_run();
        let text = RowText { name, engine, what, unit: Unit::Ns };
        let row = Row::of(text, &self.samples, batch, bootstrap);
        let finished = row.map(|mut row| {
            row.published.clone_from(&self.label.published);
            row.notes.extend(self.operation.note());
            row.sizes = self.operation.sizes();
            Finished { row, samples: self.samples.clone() }
        });
        let rest = [self.finish_rate(bootstrap), self.finish_parts(bootstrap), self.finish_cold(bootstrap)];
        finished.into_iter().chain(rest.into_iter().flatten()).collect()
    }

    fn per_turn(&self) -> Option<u32> {
        Some(self.operation.per_run())
    }

    fn repeat(&mut self, runs: u64) -> Option<u32> {
        self.next = self.operation.repeat(self.next, usize::try_from(runs).ok()?);
        Some(self.operation.per_run())
    }
}

/// The loop without an operation: what it costs, every operation must exceed ten times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nothing;

impl Operation for Nothing {
    fn inputs(&self) -> usize {
        1 << 16
    }

    #[inline(always)]
    fn run(&mut self, index: usize) -> u64 {
        index as u64
    }

    fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
        Ok(index as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Square {
        wrong_at: usize,
    }

    impl Operation for Square {
        fn inputs(&self) -> usize {
            1_000
        }
        fn run(&mut self, index: usize) -> u64 {
            (index * index + usize::from(index == self.wrong_at)) as u64
        }
        fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
            Ok((index * index) as u64)
        }
    }

    fn bench(wrong_at: usize) -> Chunked {
        Chunked::new(
            Label { name: "square", engine: "turn", what: "", published: Vec::new(), rate: None },
            Square { wrong_at },
        )
    }

    fn plan() -> Plan {
        Plan { warmup_ns: 200_000, block_ns: 1_000_000, samples_per_block: 50, ..Plan::new(true) }
    }

    #[test]
    fn a_short_operation_is_timed_in_chunks_and_has_no_quantiles() {
        let calibration = tt_os::clock::calibration();
        let mut bench = bench(usize::MAX);
        bench.verify().unwrap();
        bench.warm_up(calibration, &plan()).unwrap();
        bench.block(calibration, &plan()).unwrap();
        let finished = bench.finish(&Bootstrap { resamples: 100, seed: 1 });
        assert!(finished[0].row.batch > 1);
        assert_eq!(finished[0].row.quantiles, None);
        assert_eq!(finished[0].row.n, finished[0].samples.len() as u64 * u64::from(finished[0].row.batch));
    }

    #[test]
    fn one_wrong_answer_among_many_ends_the_bench() {
        let mut bench = bench(777);
        bench.verify().unwrap();
        let error = bench.warm_up(tt_os::clock::calibration(), &plan()).unwrap_err();
        assert!(error.to_string().contains("square: a wrong answer"), "{error}");
    }
}
