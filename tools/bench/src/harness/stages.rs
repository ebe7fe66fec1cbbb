//! The stages of an engine's pass: five stages, the rest after them and the probe itself, which sum to the whole.

use crate::report::{Bootstrap, Published, Row, RowText, Samples, Unit};
use anyhow::ensure;
use tt_meter::{Calibration, PassParts, Sampler, Stage};

use super::operation::{Bench, Finished, Operation};
use super::plan::Plan;

/// An operation that is a whole pass of an engine.
pub(crate) trait Pass: Operation {
    /// Runs on input `index` as [`Operation::run`] does, watched by `probe`.
    fn run_watched(&mut self, index: usize, probe: &mut Sampler) -> u64;

    /// Runs on the `count` inputs from `first`, each made ready, and returns the sum of the digests.
    fn run_all_watched(&mut self, first: usize, count: usize, probe: &mut Sampler) -> u64 {
        let mut digest = 0u64;
        for index in first..first + count {
            self.ready(index);
            digest = digest.wrapping_add(self.run_watched(index, probe));
        }
        digest
    }
}

/// Rows of an engine's stages: each [`Stage`], `rest`, `probe` and `whole`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StageRows {
    /// Name of the bench.
    pub(crate) name: &'static str,
    /// `turn`, `ring` or `market`.
    pub(crate) engine: &'static str,
    /// What the names of the rows begin with.
    pub(crate) prefix: &'static str,
    /// The pass.
    pub(crate) what: &'static str,
    /// Figures that others published of the stages.
    pub(crate) published: fn(Stage) -> Option<Published>,
}

/// Stages, rest, probe, whole.
const ROWS: usize = 8;
/// Passes a sample at most; the sampler stamps the stages of every second one.
const PASSES: usize = 512;

/// Times the stages of a pass with the shipped sampler.
pub(crate) struct Stages {
    rows: StageRows,
    pass: Box<dyn Pass>,
    /// `digests[i]` is the sum of the digests of all inputs below `i`.
    digests: Vec<u64>,
    next: usize,
    samples: [Samples; ROWS],
}

impl Stages {
    pub(crate) fn new(rows: StageRows, pass: impl Pass + 'static) -> Self {
        Self { rows, pass: Box::new(pass), digests: vec![0], next: usize::MAX, samples: Default::default() }
    }

    fn passes(&self) -> usize {
        PASSES.min(self.pass.inputs())
    }

    /// The parts of the mean pass among the next ones.
    fn sample(&mut self, calibration: &Calibration) -> anyhow::Result<[f64; ROWS]> {
        let passes = self.passes();
        let first = self.pass.first_of(self.next, passes);
        let mut sampler = Sampler::new(calibration.clock, 1);
        let digest = self.pass.run_all_watched(first, passes, &mut sampler);
        let end = first + passes;
        self.next = end;
        let expected = self.digests[end].wrapping_sub(self.digests[first]);
        ensure!(digest == expected, "{}: a wrong answer among inputs {first} to {end}", self.rows.name);
        let parts = sampler.stages().parts(calibration);
        let Some(PassParts { stages_ns: [a, b, c, d, e], rest_ns, probe_ns, whole_ns }) = parts else {
            anyhow::bail!("{}: no pass was stamped", self.rows.name)
        };
        Ok([a, b, c, d, e, rest_ns, probe_ns, whole_ns])
    }

    fn run_for(
        &mut self,
        calibration: &Calibration,
        span_ns: u64,
        mut keep: impl FnMut([f64; ROWS]) -> bool,
    ) -> anyhow::Result<()> {
        let begin = calibration.clock.end();
        while calibration.scale.ns(calibration.clock.end().since(begin)) < span_ns {
            let parts = self.sample(calibration)?;
            if !keep(parts) {
                break;
            }
        }
        Ok(())
    }
}

impl Bench for Stages {
    fn name(&self) -> &'static str {
        self.rows.name
    }

    fn verify(&mut self) -> anyhow::Result<()> {
        self.pass.rewind();
        self.digests.truncate(1);
        let mut sum = 0u64;
        for index in 0..self.pass.inputs() {
            sum = sum.wrapping_add(self.pass.verify(index)?);
            self.digests.push(sum);
        }
        self.next = usize::MAX;
        Ok(())
    }

    fn warm_up(&mut self, calibration: &Calibration, plan: &Plan) -> anyhow::Result<()> {
        self.run_for(calibration, plan.warmup_ns, |_| true)
    }

    fn block(&mut self, calibration: &Calibration, plan: &Plan) -> anyhow::Result<()> {
        self.run_for(calibration, plan.block_ns / 10, |_| true)?;
        let mut blocks: [Vec<f64>; ROWS] = Default::default();
        self.run_for(calibration, plan.block_ns, |parts| {
            blocks.iter_mut().zip(parts).for_each(|(block, part)| block.push(part));
            blocks[0].len() < plan.samples_per_block
        })?;
        self.samples.iter_mut().zip(blocks).for_each(|(samples, block)| samples.push_block(block));
        Ok(())
    }

    fn per_turn(&self) -> Option<u32> {
        None
    }

    fn finish(&self, bootstrap: &Bootstrap) -> Vec<Finished> {
        let StageRows { engine, prefix, what, published, .. } = self.rows;
        let parts =
            Stage::ALL.map(|stage| (stage.name(), format!("between two stamps inside of: {what}"), published(stage)));
        let others = [
            ("rest", format!("after the last stamp of: {what}"), None),
            ("probe", format!("the stamps themselves, inside of: {what}"), None),
            ("whole", format!("{what}; with the stamps: the stages, rest and probe sum to it, mean to mean"), None),
        ];
        let row = |((part, what, published), samples): ((&str, String, Option<Published>), &Samples)| {
            let name = format!("{prefix}{part}");
            let text = RowText { name: &name, engine, what: &what, unit: Unit::Ns };
            let mut row = Row::of(text, samples, self.passes() as u32 / 2, bootstrap)?;
            row.published.extend(published);
            Some(Finished { row, samples: samples.clone() })
        };
        parts.into_iter().chain(others).zip(&self.samples).filter_map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use tt_meter::{Calibration, Clock, Probe, Sampler, Scale, Stage};

    use super::{Pass, StageRows, Stages};
    use crate::harness::operation::{Bench as _, Operation};
    use crate::report::Bootstrap;

    /// A pass of two stages that spins.
    struct Spins;

    impl Operation for Spins {
        fn inputs(&self) -> usize {
            64
        }

        fn run(&mut self, index: usize) -> u64 {
            index as u64
        }

        fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
            Ok(index as u64)
        }
    }

    impl Pass for Spins {
        fn run_watched(&mut self, index: usize, probe: &mut Sampler) -> u64 {
            probe.begin();
            std::hint::spin_loop();
            probe.mark(Stage::Parse);
            if index.is_multiple_of(3) {
                (0..index).for_each(|_| std::hint::spin_loop());
                probe.mark(Stage::Build);
            }
            probe.end();
            index as u64
        }
    }

    const ROWS: StageRows =
        StageRows { name: "spins", engine: "none", prefix: "spins_stage_", what: "a pass", published: |_| None };

    fn measured(pass: &mut Stages) -> anyhow::Result<Vec<(String, f64)>> {
        let clock = Clock::new(|| 0);
        let calibration = Calibration { clock, scale: Scale::NANOSECONDS, read_cycles: 1 };
        pass.verify()?;
        for _ in 0..3 {
            let mut blocks: [Vec<f64>; super::ROWS] = Default::default();
            for _ in 0..20 {
                blocks.iter_mut().zip(pass.sample(&calibration)?).for_each(|(block, part)| block.push(part));
            }
            pass.samples.iter_mut().zip(blocks).for_each(|(samples, block)| samples.push_block(block));
        }
        let finished = pass.finish(&Bootstrap { resamples: 20, seed: 1 });
        Ok(finished.into_iter().map(|finished| (finished.row.name, finished.row.mean)).collect())
    }

    #[test]
    fn the_means_of_all_parts_sum_to_the_mean_of_the_whole() {
        let rows = measured(&mut Stages::new(ROWS, Spins)).unwrap();
        let names: Vec<&str> = rows.iter().map(|(name, _)| name.strip_prefix("spins_stage_").unwrap()).collect();
        assert_eq!(names, ["parse", "validate", "look_up", "build", "serialize", "rest", "probe", "whole"]);
        let (whole, parts) = rows.split_last().unwrap();
        let sum: f64 = parts.iter().map(|(_, mean)| mean).sum();
        assert!(whole.1 > 0.0 && (sum / whole.1 - 1.0).abs() < 1e-9, "{sum} of {rows:?}");
        assert!(rows[3].1 > 0.0 && rows[6].1 > 0.0 && rows[4].1 == 0.0, "{rows:?}");
    }

    #[test]
    fn a_wrong_answer_ends_the_bench() {
        struct Wrong(Spins);
        impl Operation for Wrong {
            fn inputs(&self) -> usize {
                self.0.inputs()
            }
            fn run(&mut self, index: usize) -> u64 {
                self.0.run(index)
            }
            fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
                self.0.verify(index)
            }
        }
        impl Pass for Wrong {
            fn run_watched(&mut self, index: usize, probe: &mut Sampler) -> u64 {
                self.0.run_watched(index, probe) + u64::from(index == 7)
            }
        }
        let error = measured(&mut Stages::new(ROWS, Wrong(Spins))).unwrap_err().to_string();
        assert!(error.contains("a wrong answer among inputs 0 to 64"), "{error}");
    }
}
