//! What could be changed here: each change is made for some runs, measured in turn with runs without it, and undone with
//! the thread or the descriptor that holds it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::thread;

use anyhow::{Context as _, ensure};
use tt_meter::Calibration;
use tt_model::{SplitMix64, sort_short_by_key};

use crate::harness::cpus;
use crate::harness::progress::progress;
use crate::machine::Threads;
use crate::report::why::{Change, StallRate};
use crate::report::{Bootstrap, Estimate};
use crate::ring::model::{is_none, mean_of_rounds, size};
use crate::ring::rounds::{Rounds, Sizes, Variant};

/// Level of `SCHED_FIFO`: above ordinary work, below the kernel's own threads.
const FIFO: u8 = 50;
/// Other pairs of CPUs that are tried.
const PAIRS_MAX: usize = 3;
/// Holding it open with 0 keeps CPUs out of deep sleep (Documentation/power/pm_qos_interface.rst).
const DMA_LATENCY: &str = "/dev/cpu_dma_latency";

/// A way to run the two threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setting {
    /// Pinned, ordinary priority: what every other one is compared with.
    Base,
    /// The same once more: what a comparison finds where nothing changed.
    Again,
    NotPinned,
    Fifo,
    NoDeepSleep,
    HoldsNext,
    Cpus([usize; 2]),
}

impl Setting {
    fn name(self) -> String {
        match self {
            Self::Base => "base".to_owned(),
            Self::Again => "again".to_owned(),
            Self::NotPinned => "pin".to_owned(),
            Self::Fifo => "fifo".to_owned(),
            Self::NoDeepSleep => "no_deep_sleep".to_owned(),
            Self::HoldsNext => "hold_next".to_owned(),
            Self::Cpus([one, other]) => format!("cpus_{one}_{other}"),
        }
    }

    fn what(self) -> String {
        match self {
            Self::Base | Self::Again => "pinned, ordinary priority".to_owned(),
            Self::NotPinned => {
                "pin both threads (in force here; compared with threads that the scheduler places)".to_owned()
            }
            Self::Fifo => format!("give both threads SCHED_FIFO {FIFO} (chrt --fifo {FIFO})"),
            Self::NoDeepSleep => format!("hold {DMA_LATENCY} open with 0"),
            Self::HoldsNext => "let the idle producer keep the next slot's line (Producer::hold_next)".to_owned(),
            Self::Cpus([one, other]) => format!("use CPUs {one} and {other}"),
        }
    }

    const fn variant(self) -> Variant {
        if matches!(self, Self::HoldsNext) { Variant::HoldsNext } else { Variant::Gate }
    }

    fn threads(self, cpus: [usize; 2]) -> Threads {
        match self {
            Self::NotPinned => Threads { cpus: None, fifo: None },
            Self::Fifo => Threads { cpus: Some(cpus), fifo: Some(FIFO) },
            Self::Cpus(others) => Threads { cpus: Some(others), fifo: None },
            Self::Base | Self::Again | Self::NoDeepSleep | Self::HoldsNext => Threads { cpus: Some(cpus), fifo: None },
        }
    }
}

/// A setting and its runs.
struct Tried {
    setting: Setting,
    rounds: Rounds,
    /// The median of each round's run, nanoseconds.
    medians: Vec<Option<f64>>,
    /// Stalls of the watched runs, and their seconds.
    stalls: StallRate,
}

/// Runs every setting in every round, in random order.
pub(super) fn measure(
    calibration: &'static Calibration,
    cpus: [usize; 2],
    (count, per_run): (usize, usize),
    bootstrap: &Bootstrap,
) -> anyhow::Result<Vec<Change>> {
    let (settings, refused) = settings(cpus);
    let mut tried: Vec<Tried> = settings
        .into_iter()
        .map(|setting| {
            let mut variants = vec![setting.variant()];
            // A thread that is not pinned cannot be watched.
            variants.extend((!matches!(setting, Setting::NotPinned | Setting::HoldsNext)).then_some(Variant::Watched));
            let sizes = Sizes::of_variants(&variants, setting.threads(cpus), 1, per_run).short();
            let rounds = Rounds::new(calibration, sizes);
            Tried { setting, rounds, medians: Vec::new(), stalls: StallRate::default() }
        })
        .collect();
    let mut random = SplitMix64::new(count as u64);
    for round in 0..count {
        progress(&format!("round {}/{count} of changes", round + 1));
        let mut order: Vec<usize> = (0..tried.len()).collect();
        random.shuffle(&mut order);
        for index in order {
            tried[index].run().with_context(|| tried[index].setting.what())?;
        }
    }
    let medians = |wanted: Setting| tried.iter().find(|one| one.setting == wanted).map(|one| one.medians.as_slice());
    let base = medians(Setting::Base).context("no base was measured")?;
    let noise_ns = medians(Setting::Again).and_then(|again| difference(base, again, bootstrap)).map(size);
    let base_stalls = tried.iter().find(|one| one.setting == Setting::Base).map(|one| one.stalls);
    let mut changes: Vec<Change> = tried
        .iter()
        .filter(|one| !matches!(one.setting, Setting::Base | Setting::Again))
        .map(|one| {
            // Pinning is in force: its gain is what its absence costs.
            let is_in_force = one.setting == Setting::NotPinned;
            let (without, with) =
                if is_in_force { (one.medians.as_slice(), base) } else { (base, one.medians.as_slice()) };
            let p50_gain_ns = difference(with, without, bootstrap);
            Change {
                name: one.setting.name(),
                what: one.setting.what(),
                is_none: p50_gain_ns.is_none_or(|gain| noise_ns.is_none_or(|noise_ns| is_none(&gain, noise_ns))),
                p50_gain_ns,
                stalls: base_stalls.zip((one.stalls.seconds > 0.0).then_some(one.stalls)).map(|(from, to)| [from, to]),
                refused: None,
            }
        })
        .collect();
    changes.extend(refused.into_iter().map(|(setting, reason)| Change {
        name: setting.name(),
        what: setting.what(),
        p50_gain_ns: None,
        is_none: false,
        stalls: None,
        refused: Some(reason),
    }));
    Ok(changes)
}

/// What this process may try, and what it may not, with the reason.
fn settings(cpus: [usize; 2]) -> (Vec<Setting>, Vec<(Setting, String)>) {
    let mut settings = vec![Setting::Base, Setting::Again, Setting::NotPinned, Setting::HoldsNext];
    let mut refused = Vec::new();
    let fifo = thread::spawn(|| tt_os::priority::request_fifo(FIFO).map(drop)).join();
    match fifo {
        Ok(Err(errno)) => refused.push((Setting::Fifo, errno.desc().to_owned())),
        Ok(Ok(())) | Err(_) => settings.push(Setting::Fifo),
    }
    match no_deep_sleep() {
        Ok(_) => settings.push(Setting::NoDeepSleep),
        Err(error) => refused.push((Setting::NoDeepSleep, error.to_string())),
    }
    settings.extend(pairs(&cpus::available(), cpus).into_iter().map(Setting::Cpus));
    (settings, refused)
}

/// Pairs with other CPUs than `cpus`: neighbours of the producer's CPU and of the consumer's, then any.
fn pairs(available: &[usize], [producer, consumer]: [usize; 2]) -> Vec<[usize; 2]> {
    let all = available.iter().flat_map(|one| available.iter().map(move |other| [*one, *other]));
    let mut others: Vec<[usize; 2]> = all
        .filter(|[one, other]| one < other && [*one, *other] != [producer.min(consumer), producer.max(consumer)])
        .collect();
    sort_short_by_key(&mut others, |[one, other]| (other - one, *one));
    let step = others.len().div_ceil(PAIRS_MAX).max(1);
    others.into_iter().step_by(step).collect()
}

/// Keeps CPUs out of deep sleep until the file is dropped.
fn no_deep_sleep() -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).open(DMA_LATENCY)?;
    file.write_all(&0_i32.to_ne_bytes())?;
    Ok(file)
}

impl Tried {
    /// One round.
    fn run(&mut self) -> anyhow::Result<()> {
        let held = (self.setting == Setting::NoDeepSleep).then(no_deep_sleep).transpose()?;
        self.rounds.made.clear();
        self.rounds.floor.clear();
        self.rounds.make(&|_, _| {})?;
        drop(held);
        let scale = self.rounds.calibration.scale;
        let of = |variant| self.rounds.made.iter().find(|made| made.variant == variant);
        let run = of(self.setting.variant());
        ensure!(run.is_some(), "the run is missing");
        self.medians.push(run.and_then(|made| made.run.p50_cycles()).map(|cycles| scale.ns_f64(cycles)));
        if let Some((made, watched)) = of(Variant::Watched).and_then(|made| Some((made, made.run.watched.as_ref()?))) {
            self.stalls.count += watched.slow.len() as u64;
            self.stalls.seconds += made.run.span_cycles as f64 / scale.cycles_per_s();
        }
        Ok(())
    }
}

/// By how much the medians of `to` are above those of `from`, in rounds that have both.
fn difference(from: &[Option<f64>], to: &[Option<f64>], bootstrap: &Bootstrap) -> Option<Estimate> {
    mean_of_rounds(&[from.to_vec(), to.to_vec()], bootstrap, |[from, to]| to - from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_pairs_are_few_and_other() {
        assert_eq!(pairs(&[0, 1], [0, 1]), Vec::<[usize; 2]>::new());
        assert_eq!(pairs(&[0, 1], [1, 0]), Vec::<[usize; 2]>::new());
        let of_eight = pairs(&[0, 1, 2, 3, 4, 5, 6, 7], [0, 7]);
        assert!(of_eight.len() <= PAIRS_MAX && of_eight[0] == [0, 1], "{of_eight:?}");
        assert!(!of_eight.contains(&[0, 7]));
    }

    #[test]
    fn a_difference_needs_rounds_with_both() {
        let bootstrap = Bootstrap { resamples: 200, seed: 1 };
        let from: Vec<Option<f64>> = (0..10).map(|round| Some(f64::from(round))).collect();
        let to: Vec<Option<f64>> = from.iter().map(|ns| ns.map(|ns| ns + 7.0)).collect();
        assert_eq!(difference(&from, &to, &bootstrap).map(|moved| moved.value), Some(7.0));
        assert!(difference(&from[..4], &to, &bootstrap).is_none());
    }
}
