//! Ablation: eleven steps, cumulative and each left out of the final build.

use crate::loops::ablation::{BuildPlan, BuildRun, Orders, Step, Switches, run_build};
use crate::machine::Placement;
use crate::report::ring::{Ablation, AblationStep, StepFigures, Verdict};
use crate::report::{Bootstrap, Estimate, Samples};
use anyhow::{Context as _, ensure};
use tt_meter::Calibration;
use tt_model::SplitMix64;

use super::latencies::figures;
use super::machine::Granted;
use super::rounds::Sizes;
use super::sources;
use crate::rows::ring::evaluator::{GATE_SETUP, orders};

/// Different orders.
const ORDERS: usize = 1 << 14;
/// Recorded events of a run, and those before them: some milliseconds, so that the cores stay where they are.
const EVENTS: usize = 5_000;
const WARMUP: usize = 1_000;
/// Time limit of a run, nanoseconds. Two threads on one CPU need milliseconds per event.
const TIME_MAX_NS: u64 = 50_000_000;
/// Pairs of runs below which nothing is said of a change.
const PAIRS_MIN: usize = 3;

/// A build's run, reduced.
struct Short {
    placement: Placement,
    /// The median, nanoseconds.
    p50: f64,
    /// Every sample, nanoseconds.
    ns: Vec<f64>,
}

/// Runs every build in every round, in random order, and compares neighbours.
///
/// # Errors
/// The threads cannot be placed, or a build accepts other orders than the shipped gate.
pub(super) fn run(
    sizes: &Sizes,
    granted: &Granted,
    calibration: &Calibration,
    bootstrap: &Bootstrap,
    progress: &dyn Fn(usize, usize),
) -> anyhow::Result<Ablation> {
    let rounds = if sizes.rounds < 50 { 10 } else { 40 };
    let plan = BuildPlan {
        cpus: sizes.threads.cpus.context("two CPUs are needed")?,
        fifo: granted.fifo,
        may_lock: granted.may_lock,
        capacity: sizes.slots,
        warmup: WARMUP,
        events: EVENTS,
        time_max_ns: TIME_MAX_NS,
    };
    let orders = Orders::of(orders(142, ORDERS));
    let expected = accepted();
    let mut builds = Builds::new();
    let mut random = SplitMix64::new(rounds as u64);
    for round in 0..rounds {
        progress(round + 1, rounds);
        let mut order: Vec<usize> = (0..builds.switches.len()).collect();
        random.shuffle(&mut order);
        for index in order {
            let switches = builds.switches[index];
            let build = run_build(switches, &plan, &GATE_SETUP, &orders, calibration);
            let build = build.with_context(|| format!("cannot run {switches:?}"))?;
            ensure!(build.run.faults == 0, "void: events came out of order or torn in {switches:?}");
            let is_right = !build.run.is_complete || build.run.checksum == expected;
            ensure!(is_right, "void: {switches:?} accepts other orders than the shipped gate");
            builds.runs[index].push(Short::of(&build));
        }
    }
    builds.result(granted, bootstrap).context("no build has a run in any placement")
}

/// How many of the recorded orders the shipped gate accepts.
fn accepted() -> u64 {
    let mut reference = crate::rows::ring::reference::Reference::default();
    let orders = orders(142, ORDERS);
    let verdicts = orders.iter().cycle().take(WARMUP + EVENTS).zip(0..).map(|(terms, seq)| {
        let (reasons, _) = reference.evaluate(&terms.numbered(seq));
        u64::from(reasons.0 == 0)
    });
    verdicts.skip(WARMUP).sum()
}

impl Short {
    /// Runs that got no event through have no median and count nowhere.
    fn of(build: &BuildRun) -> Option<Self> {
        let ns = |cycles: f64| build.scale.ns_f64(cycles);
        Some(Self {
            placement: build.run.placement,
            p50: ns(build.run.p50_cycles()?),
            ns: build.run.cycles.iter().map(|cycles| ns(*cycles as f64)).collect(),
        })
    }
}

/// Every build and its runs by round.
struct Builds {
    switches: Vec<Switches>,
    runs: Vec<Vec<Option<Short>>>,
}

impl Builds {
    fn new() -> Self {
        let mut switches: Vec<Switches> = vec![Switches::CONTROL];
        for step in Step::ALL {
            switches.push(Switches::up_to(step));
            // Without the first step there is no clock; without the last it is the build before it.
            let without = Switches::all_but(step);
            if step != Step::NaiveClock && !switches.contains(&without) {
                switches.push(without);
            }
        }
        let runs = switches.iter().map(|_| Vec::new()).collect();
        Self { switches, runs }
    }

    fn of(&self, switches: Switches) -> &[Option<Short>] {
        self.switches.iter().position(|one| *one == switches).map_or(&[], |index| &self.runs[index])
    }

    /// The placement that most pinned runs were made in.
    fn main_placement(&self) -> Placement {
        let pinned = self.switches.iter().zip(&self.runs).filter(|(switches, _)| switches.has(Step::Affinity));
        let placements: Vec<Placement> =
            pinned.flat_map(|(_, runs)| runs.iter().flatten().map(|run| run.placement)).collect();
        let count = |wanted: Placement| placements.iter().filter(|placement| **placement == wanted).count();
        super::latencies::PLACEMENTS[..3].iter().copied().max_by_key(|one| count(*one)).unwrap_or(Placement::SameCache)
    }

    fn result(&self, granted: &Granted, bootstrap: &Bootstrap) -> Option<Ablation> {
        let main = self.main_placement();
        let mut compared = Compared { builds: self, main, bootstrap, control_ns: None };
        compared.control_ns = compared.difference(Switches::FINAL, Switches::CONTROL);
        let mut before = None;
        let steps = Step::ALL.into_iter().map(|step| {
            let made = compared.step(step, before, granted);
            before = Some(Switches::up_to(step));
            made
        });
        Some(Ablation {
            runs: self.runs.first()?.len(),
            events: EVENTS as u64,
            class: main.name().to_owned(),
            steps: steps.collect::<Option<_>>()?,
            final_p50_ns: compared.figures(Switches::FINAL)?.p50_ns,
            control: compared.figures(Switches::CONTROL)?,
            control_ns: compared.control_ns,
        })
    }
}

struct Compared<'a> {
    builds: &'a Builds,
    main: Placement,
    bootstrap: &'a Bootstrap,
    /// The control's median minus the final build's.
    control_ns: Option<Estimate>,
}

impl Compared<'_> {
    fn step(&self, step: Step, before: Option<Switches>, granted: &Granted) -> Option<AblationStep> {
        let switches = Switches::up_to(step);
        let without = Switches::all_but(step);
        let is_start = step == Step::NaiveClock;
        let change_ns = before.and_then(|before| self.difference(before, switches));
        let alone_ns = if is_start { None } else { self.difference(Switches::FINAL, without) };
        let refused = granted.refusal_of(step);
        let verdict = match (is_start, refused.is_some()) {
            (true, _) => Verdict::Start,
            (_, true) => Verdict::NotAvailable,
            (false, false) => verdict(change_ns, self.control_ns),
        };
        let code = sources::of_step(step);
        Some(AblationStep {
            number: step.number(),
            name: step.name(),
            what: step.description(),
            published_p50_ns: step.published_p50_ns(),
            published_source: sources::published_source(step),
            sources: code.part.sources,
            sources_without: code.without,
            cumulative: self.figures(switches)?,
            without: if is_start { None } else { self.figures(without) },
            note: note(verdict, change_ns, alone_ns, refused),
            change_ns,
            alone_ns,
            verdict,
        })
    }

    /// Runs in the main placement; runs of threads that are not pinned, which have none to themselves, in any.
    fn counts(&self, switches: Switches, run: &Short) -> bool {
        !switches.has(Step::Affinity) || run.placement == self.main
    }

    fn figures(&self, switches: Switches) -> Option<StepFigures> {
        let runs: Vec<&Short> =
            self.builds.of(switches).iter().flatten().filter(|run| self.counts(switches, run)).collect();
        let mut all: Vec<f64> = runs.iter().flat_map(|run| run.ns.iter().copied()).collect();
        all.sort_unstable_by(f64::total_cmp);
        let p50_ns = self.middle(&runs.iter().map(|run| run.p50).collect::<Vec<_>>())?;
        Some(StepFigures { runs: runs.len(), p50_ns, ns: figures(&all)? })
    }

    /// By how much `to` is slower than `from`, over the rounds in which both have a run that counts.
    fn difference(&self, from: Switches, to: Switches) -> Option<Estimate> {
        let pairs = self.builds.of(from).iter().zip(self.builds.of(to));
        let differences: Vec<f64> = pairs
            .filter_map(|(before, after)| before.as_ref().zip(after.as_ref()))
            .filter(|(before, after)| self.counts(from, before) && self.counts(to, after))
            .map(|(before, after)| after.p50 - before.p50)
            .collect();
        if differences.len() < PAIRS_MIN {
            return None;
        }
        self.middle(&differences)
    }

    /// The middle of one value a run: a run of threads that shared a CPU must not decide.
    fn middle(&self, values: &[f64]) -> Option<Estimate> {
        let mut samples = Samples::new();
        values.iter().for_each(|value| samples.push_block(vec![*value]));
        self.bootstrap.quantile(&samples, 0.5)
    }
}

/// Judges a change. One that is not beyond what two equal builds differ by decides nothing.
fn verdict(change_ns: Option<Estimate>, control_ns: Option<Estimate>) -> Verdict {
    let Some((change, control)) = change_ns.zip(control_ns) else { return Verdict::Undecided };
    let noise_ns = control.low.abs().max(control.high.abs());
    if change.high < -noise_ns {
        Verdict::Helps
    } else if change.low > noise_ns {
        Verdict::Hurts
    } else {
        Verdict::Undecided
    }
}

fn note(verdict: Verdict, change: Option<Estimate>, alone: Option<Estimate>, refused: Option<&str>) -> String {
    let first = match (verdict, change) {
        (Verdict::Start, _) => "Starting point".to_owned(),
        (Verdict::NotAvailable, _) => format!("Not in force here: {}", refused.unwrap_or("refused")),
        (Verdict::Helps, Some(change)) => format!("Helps here: {:+.1} ns", change.value),
        (Verdict::Hurts, Some(change)) => format!("Slower here: {:+.1} ns", change.value),
        (Verdict::Undecided, Some(change)) => {
            format!("Undecided: {:+.1} ns is within the interval or what the control is off", change.value)
        }
        (Verdict::Helps | Verdict::Hurts | Verdict::Undecided, None) => {
            "Undecided: too few rounds in one placement".to_owned()
        }
    };
    let second = alone.map_or_else(String::new, |alone| {
        format!("; the final build without it: {:+.1} ns [{:+.1}, {:+.1}]", alone.value, alone.low, alone.high)
    });
    format!("{first}{second}.")
}

#[cfg(test)]
mod tests {
    use super::verdict;
    use crate::report::Estimate;
    use crate::report::ring::Verdict;

    fn estimate(low: f64, high: f64) -> Option<Estimate> {
        Some(Estimate { value: f64::midpoint(low, high), low, high })
    }

    #[test]
    fn a_change_below_the_controls_difference_is_undecided() {
        assert_eq!(verdict(estimate(-6.1, -1.9), estimate(-3.0, 2.0)), Verdict::Undecided);
        assert_eq!(verdict(estimate(-6.1, -1.9), estimate(-1.0, 1.5)), Verdict::Helps);
        assert_eq!(verdict(estimate(1.9, 6.1), estimate(-1.0, 1.5)), Verdict::Hurts);
        assert_eq!(verdict(estimate(1.9, 6.1), estimate(-1.0, 273.0)), Verdict::Undecided);
        assert_eq!(verdict(estimate(-6.1, -1.9), None), Verdict::Undecided);
    }
}
