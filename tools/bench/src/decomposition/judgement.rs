//! What the runs of many processes show: what each term takes, whether the terms are a sum, and what is left.
//!
//! The rules are those that BENCHMARKING.md registers. They know nothing of how the medians were measured.

use serde::Serialize;

use super::build::{Build, Intervention, Term};
use super::process::{ONE_CORE, Process};
use crate::machine::Placement;
use crate::report::{Bootstrap, Estimate, Samples};
use crate::ring::latencies::PLACEMENTS;
use crate::ring::model::{is_none, size};
use crate::ring::rounds::DELAYS_NS;

/// Processes with a value below which there is no estimate.
pub(super) const PROCESSES_MIN: usize = 10;
/// Share of the variance of the medians above which the placement explains them, and only its runs count.
const EXPLAINED_MIN: f64 = 0.5;

/// The whole judgement.
#[derive(Clone, Debug, Serialize)]
pub struct Judgement {
    /// The placement whose runs count, or `any` if placements explain less than half of the variance.
    pub placement: String,
    /// The share of the variance of the ring's medians that placements explain, 0 to 1.
    pub explained: f64,
    /// Processes with a round that counts.
    pub processes: usize,
    /// The median with everything in it, nanoseconds.
    pub whole_ns: Estimate,
    /// What two equal builds differ by.
    pub again_ns: Estimate,
    /// The end of that interval that is further from zero: what is no larger is none.
    pub noise_ns: f64,
    /// The terms.
    pub terms: Vec<TermFigures>,
    /// Whether the terms are a sum.
    pub verdict: Verdict,
    /// What the terms leave of the whole; with bounds, from the most they can take to the least.
    pub residual_ns: Estimate,
    /// What the residual is called.
    pub residual: &'static str,
}

/// Whether the parts are a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every term takes the same time added and left out, and every delay moves the median by its length.
    Sum,
    /// A term takes another time added than left out: terms have bounds, and do not sum.
    Bounds,
    /// The delays of a term do not move the median by their length: its figures mean nothing, and nor does a sum.
    Refused,
}

/// What one term takes.
#[derive(Clone, Debug, Serialize)]
pub struct TermFigures {
    /// Its name.
    pub name: &'static str,
    /// How it was added, and how it was left out.
    pub what: [&'static str; 2],
    /// By how much that moved the median, nanoseconds.
    pub effects_ns: [Estimate; 2],
    /// The difference of the two.
    pub overlap_ns: Estimate,
    /// The least and the most that the term takes: the ends of both intervals.
    pub bounds_ns: [f64; 2],
    /// Where its delays were.
    pub place: &'static str,
    /// Nanoseconds of the median for each nanosecond of delay.
    pub slope: Estimate,
    /// By how much each delay missed its length, nanoseconds, shortest delay first.
    pub missed_ns: Vec<Estimate>,
    /// What that says of the term.
    pub verdict: Verdict,
}

/// Judges `processes`; `None` where too few have all that is needed.
#[must_use]
pub(super) fn judge(processes: &[Process], bootstrap: &Bootstrap) -> Option<Judgement> {
    let (placement, explained) = placement_of(processes);
    let runs = Runs { processes, placement, bootstrap };
    let again_ns = runs.difference(Build::Ring, Build::Again)?;
    let noise_ns = size(again_ns);
    let terms: Vec<TermFigures> = Term::ALL.into_iter().map(|term| runs.term(term, noise_ns)).collect::<Option<_>>()?;
    let has = |verdict| terms.iter().any(|term| term.verdict == verdict);
    let verdict = if has(Verdict::Refused) {
        Verdict::Refused
    } else if has(Verdict::Bounds) {
        Verdict::Bounds
    } else {
        Verdict::Sum
    };
    let residual_ns = runs.residual(&terms, verdict)?;
    Some(Judgement {
        placement: placement.map_or_else(|| "any".to_owned(), |placement| placement.name().to_owned()),
        explained,
        processes: runs.blocks(&[Build::Ring], |_, [p50]| p50).blocks().len(),
        whole_ns: runs.effect(&[Build::Ring], |_, [p50]| p50)?,
        again_ns,
        noise_ns,
        verdict,
        residual: residual_name(&residual_ns, noise_ns),
        residual_ns,
        terms,
    })
}

/// What is left, by its sign; what two equal builds differ by is nothing.
fn residual_name(residual_ns: &Estimate, noise_ns: f64) -> &'static str {
    if is_none(residual_ns, noise_ns) {
        "none"
    } else if residual_ns.value > 0.0 {
        "time that no term moves"
    } else {
        "time that two terms share"
    }
}

/// The most frequent placement of the ring's runs if placements explain their medians, and the share that they explain.
fn placement_of(processes: &[Process]) -> (Option<Placement>, f64) {
    let name = Build::Ring.name();
    let rings: Vec<&(String, f64)> =
        processes.iter().flat_map(|process| &process.rounds).filter_map(|round| round.get(&name)).collect();
    let of = |placement: Placement| rings.iter().filter(move |(of, _)| of == placement.name()).map(|(_, ns)| *ns);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let all: Vec<f64> = rings.iter().map(|(_, ns)| *ns).collect();
    let total: f64 = all.iter().map(|ns| (ns - mean(&all)).powi(2)).sum();
    let between: f64 = PLACEMENTS
        .into_iter()
        .map(|placement| of(placement).collect::<Vec<f64>>())
        .map(|values| values.len() as f64 * (mean(&values) - mean(&all)).powi(2))
        .filter(|between| between.is_finite())
        .sum();
    let explained = if total > 0.0 { between / total } else { 0.0 };
    let main = PLACEMENTS[..3].iter().copied().max_by_key(|placement| of(*placement).count());
    (main.filter(|_| explained > EXPLAINED_MIN), explained)
}

struct Runs<'a> {
    processes: &'a [Process],
    placement: Option<Placement>,
    bootstrap: &'a Bootstrap,
}

impl Runs<'_> {
    /// What `of` makes of the medians of `builds` in each round that has all of them, one block for each process.
    fn blocks<const N: usize>(&self, builds: &[Build; N], of: impl Fn(&Process, [f64; N]) -> f64) -> Samples {
        let counts =
            |placement: &str| placement == ONE_CORE || self.placement.is_none_or(|wanted| wanted.name() == placement);
        let names = builds.map(Build::name);
        let mut samples = Samples::new();
        for process in self.processes {
            let values = process.rounds.iter().filter_map(|round| {
                let mut medians = [0.0; N];
                for (median, name) in medians.iter_mut().zip(&names) {
                    *median = round.get(name).filter(|(placement, _)| counts(placement))?.1;
                }
                Some(of(process, medians))
            });
            let block: Vec<f64> = values.collect();
            if !block.is_empty() {
                samples.push_block(block);
            }
        }
        samples
    }

    /// The mean of that over all rounds; its interval comes from resampling whole processes.
    fn effect<const N: usize>(&self, builds: &[Build; N], of: impl Fn(&Process, [f64; N]) -> f64) -> Option<Estimate> {
        let samples = self.blocks(builds, of);
        if samples.blocks().len() < PROCESSES_MIN { None } else { self.bootstrap.mean(&samples) }
    }

    fn difference(&self, from: Build, to: Build) -> Option<Estimate> {
        self.effect(&[from, to], |_, [from, to]| to - from)
    }

    fn term(&self, term: Term, noise_ns: f64) -> Option<TermFigures> {
        let [added, left_out] = term.interventions();
        let effect = |change: Intervention| self.difference(change.from, change.to);
        let effects_ns = [effect(added)?, effect(left_out)?];
        let four = [added.from, added.to, left_out.from, left_out.to];
        let overlap_ns = self.effect(&four, |_, [from, to, without, with]| (to - from) - (with - without))?;
        let slope = self.slope(term)?;
        let missed = (0..DELAYS_NS.len()).map(|at| {
            let builds = [term.base(), Build::Delayed(term, at)];
            self.effect(&builds, move |process, [base, delayed]| delayed - base - process.delays_ns[at])
        });
        let missed_ns: Vec<Estimate> = missed.collect::<Option<_>>()?;
        let is_one = slope.low <= 1.0 && 1.0 <= slope.high;
        let is_straight = missed_ns.iter().all(|missed| missed.low <= noise_ns && missed.high >= -noise_ns);
        let verdict = match (is_one && is_straight, is_none(&overlap_ns, noise_ns)) {
            (false, _) => Verdict::Refused,
            (true, false) => Verdict::Bounds,
            (true, true) => Verdict::Sum,
        };
        let [first, second] = effects_ns;
        Some(TermFigures {
            name: term.name(),
            what: [added.what, left_out.what],
            effects_ns,
            overlap_ns,
            bounds_ns: [first.low.min(second.low), first.high.max(second.high)],
            place: term.place(),
            slope,
            missed_ns,
            verdict,
        })
    }

    /// Nanoseconds of the median for each nanosecond of delay: a line through the medians of a round.
    fn slope(&self, term: Term) -> Option<Estimate> {
        let delayed = [0, 1, 2, 3].map(|at| Build::Delayed(term, at));
        let [one, two, three, four] = delayed;
        self.effect(&[term.base(), one, two, three, four], |process, medians| {
            let points: Vec<f64> = [0.0].into_iter().chain(process.delays_ns.iter().copied()).collect();
            let mean = points.iter().sum::<f64>() / points.len() as f64;
            let squares: f64 = points.iter().map(|x| (x - mean).powi(2)).sum();
            points.iter().zip(medians).map(|(x, y)| (x - mean) * y).sum::<f64>() / squares
        })
    }

    /// The whole less the terms: each by the mean of its two effects where all of them agree, else by the larger ones and
    /// by the smaller ones.
    fn residual(&self, terms: &[TermFigures], verdict: Verdict) -> Option<Estimate> {
        let less = |share: &dyn Fn(&TermFigures) -> [f64; 2]| {
            let shares: Vec<[f64; 2]> = terms.iter().map(share).collect();
            let [line, clock, evaluator, push, look] = Term::ALL.map(|term| {
                let [added, left_out] = term.interventions();
                [added.from, added.to, left_out.from, left_out.to]
            });
            let builds = [&[Build::Ring][..], &line, &clock, &evaluator, &push, &look].concat();
            let builds: [Build; 21] = builds.try_into().ok()?;
            self.effect(&builds, |_, medians| {
                let parts = medians[1..].chunks(4).zip(&shares);
                medians[0]
                    - parts.map(|(of, share)| share[0] * (of[1] - of[0]) + share[1] * (of[3] - of[2])).sum::<f64>()
            })
        };
        if verdict == Verdict::Sum {
            return less(&|_| [0.5, 0.5]);
        }
        let is_first_larger = |term: &TermFigures| term.effects_ns[0].value >= term.effects_ns[1].value;
        let least = less(&|term| if is_first_larger(term) { [1.0, 0.0] } else { [0.0, 1.0] })?;
        let most = less(&|term| if is_first_larger(term) { [0.0, 1.0] } else { [1.0, 0.0] })?;
        Some(Estimate { value: f64::midpoint(least.value, most.value), low: least.low, high: most.high })
    }
}

#[cfg(test)]
mod tests;
