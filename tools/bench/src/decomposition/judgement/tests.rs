//! The judgement on medians that are made up from a machine whose terms are known.

use std::collections::BTreeMap;

use super::*;
use tt_model::SplitMix64;

const BOOTSTRAP: Bootstrap = Bootstrap { resamples: 500, seed: 5 };

/// A machine whose terms take these times, nanoseconds.
#[derive(Clone, Copy)]
struct Machine {
    line: f64,
    clock: f64,
    evaluator: f64,
    push: f64,
    look: f64,
    /// What no term moves.
    rest: f64,
    /// What the evaluator hides of itself after a ring's look: less is left out than was added.
    hidden: f64,
    /// Nanoseconds of the median for each nanosecond of delay before the push.
    slope: f64,
}

const PLAIN: Machine =
    Machine { line: 120.0, clock: 12.0, evaluator: 15.0, push: 6.0, look: 7.0, rest: 0.0, hidden: 0.0, slope: 1.0 };

impl Machine {
    fn median(&self, build: Build, delays_ns: &[f64]) -> f64 {
        let Self { line, clock, evaluator, push, look, rest, hidden, slope } = *self;
        let base = line + clock + rest;
        let judged = if build.has_line() { evaluator } else { evaluator - hidden };
        let after_ring = |parts: f64| base + push + look + parts;
        match build {
            Build::Ring | Build::Again => after_ring(judged),
            Build::RingRead => after_ring(0.0),
            Build::Line => base + judged,
            Build::LineRead => base,
            Build::LinePush => base + judged + push,
            Build::LineLook => base + judged + look,
            Build::TwoLines => after_ring(judged) + line,
            Build::TwoStamps => after_ring(judged) + clock,
            Build::ThreeStamps => after_ring(judged) + 2.0 * clock,
            Build::OneThread => after_ring(judged) - line,
            Build::Delayed(term, at) => {
                let slope = if term == Term::Push { slope } else { 1.0 };
                self.median(term.base(), delays_ns) + slope * delays_ns[at]
            }
        }
    }

    /// 24 processes of 5 rounds; each round and each run has its own shift of up to 3 and 1 ns.
    fn processes(&self) -> Vec<Process> {
        let mut random = SplitMix64::new(11);
        let mut upto = move |ns: f64| ns * (random.index(2_001) as f64 / 1_000.0 - 1.0);
        (0..24)
            .map(|number| {
                let delays_ns: Vec<f64> = DELAYS_NS.iter().map(|ns| ns + 0.3).collect();
                let mut round = || {
                    let shift = upto(3.0);
                    let run = |build: Build| {
                        let placement = if build == Build::OneThread { ONE_CORE } else { "same_cache" };
                        (build.name(), (placement.to_owned(), self.median(build, &delays_ns) + shift + upto(1.0)))
                    };
                    Build::all().into_iter().map(run).collect::<BTreeMap<_, _>>()
                };
                let rounds = (0..5).map(|_| round()).collect();
                Process { number, delays_ns, rounds }
            })
            .collect()
    }

    fn judged(&self) -> Judgement {
        judge(&self.processes(), &BOOTSTRAP).unwrap()
    }
}

fn verdicts(judgement: &Judgement) -> Vec<(&'static str, Verdict)> {
    judgement.terms.iter().map(|term| (term.name, term.verdict)).collect()
}

#[test]
fn terms_that_add_are_a_sum_without_a_rest() {
    let judgement = PLAIN.judged();
    assert_eq!(judgement.verdict, Verdict::Sum, "{judgement:#?}");
    let known = [120.0, 12.0, 15.0, 6.0, 7.0];
    for (term, known) in judgement.terms.iter().zip(known) {
        assert!(term.effects_ns.iter().all(|effect| (effect.value - known).abs() < 0.5), "{term:?}");
        assert!(term.bounds_ns[0] <= known && known <= term.bounds_ns[1], "{term:?}");
        assert!(term.slope.high - term.slope.low < 0.01, "{term:?}");
    }
    assert_eq!(judgement.residual, "none");
    assert!((judgement.whole_ns.value - 160.0).abs() < 1.0 && judgement.processes == 24);
}

#[test]
fn a_slope_of_1_4_is_refused() {
    for slope in [1.4, 0.9] {
        let judgement = Machine { slope, ..PLAIN }.judged();
        let refused: Vec<_> = verdicts(&judgement).into_iter().filter(|(_, is)| *is == Verdict::Refused).collect();
        assert_eq!(refused, [("push", Verdict::Refused)], "slope {slope}");
        assert_eq!(judgement.verdict, Verdict::Refused);
    }
}

#[test]
fn delays_on_a_curve_are_refused_though_their_line_has_the_slope_one() {
    let mut processes = PLAIN.processes();
    for (at, bent_ns) in [0.0, 20.0, 0.0, 4.0].into_iter().enumerate() {
        let name = Build::Delayed(Term::Look, at).name();
        let runs = processes.iter_mut().flat_map(|process| &mut process.rounds);
        runs.for_each(|round| round.get_mut(&name).unwrap().1 += bent_ns);
    }
    let judgement = judge(&processes, &BOOTSTRAP).unwrap();
    let look = judgement.terms.iter().find(|term| term.name == "look").unwrap();
    assert!((look.slope.value - 1.0).abs() < 0.01, "{:?}", look.slope);
    assert_eq!((look.verdict, judgement.verdict), (Verdict::Refused, Verdict::Refused));
}

#[test]
fn a_term_that_overlaps_has_bounds_and_is_in_no_sum() {
    let judgement = Machine { hidden: 9.0, ..PLAIN }.judged();
    assert_eq!(judgement.verdict, Verdict::Bounds);
    let evaluator = judgement.terms.iter().find(|term| term.name == "evaluator").unwrap();
    assert_eq!(evaluator.verdict, Verdict::Bounds);
    assert!((evaluator.effects_ns[0].value - 15.0).abs() < 0.5 && (evaluator.effects_ns[1].value - 6.0).abs() < 0.5);
    assert!(evaluator.bounds_ns[0] <= 6.0 && evaluator.bounds_ns[1] >= 15.0, "{evaluator:?}");
    // The whole is 151. Added, the terms are 160; left out, evaluator, push and look are 9 less each.
    let Estimate { low, high, .. } = judgement.residual_ns;
    assert!((-10.0..=-9.0).contains(&low) && (18.0..19.0).contains(&high), "{:?}", judgement.residual_ns);
}

#[test]
fn a_rest_beyond_the_noise_has_a_name() {
    let idle = Machine { rest: 20.0, ..PLAIN }.judged();
    assert_eq!((idle.verdict, idle.residual), (Verdict::Sum, "time that no term moves"));
    assert!((idle.residual_ns.value - 20.0).abs() < 1.0 && idle.residual_ns.low > 18.0, "{:?}", idle.residual_ns);
    let shared = Machine { rest: -20.0, ..PLAIN }.judged();
    assert_eq!((shared.verdict, shared.residual), (Verdict::Sum, "time that two terms share"));
    assert!(idle.noise_ns < 1.0, "{}", idle.noise_ns);
}

#[test]
fn placements_count_alone_only_if_they_explain_the_medians() {
    let far = |processes: &mut Vec<Process>, ns: f64| {
        for round in processes.iter_mut().step_by(4).flat_map(|process| &mut process.rounds) {
            for (placement, p50_ns) in round.values_mut().filter(|(placement, _)| placement != ONE_CORE) {
                "across_caches".clone_into(placement);
                *p50_ns += ns;
            }
        }
    };
    let mut apart = PLAIN.processes();
    far(&mut apart, 100.0);
    let judgement = judge(&apart, &BOOTSTRAP).unwrap();
    assert_eq!((judgement.placement.as_str(), judgement.processes), ("same_cache", 18));
    assert!(judgement.explained > 0.9 && (judgement.whole_ns.value - 160.0).abs() < 1.0);
    let mut alike = PLAIN.processes();
    far(&mut alike, 0.0);
    let judgement = judge(&alike, &BOOTSTRAP).unwrap();
    assert_eq!((judgement.placement.as_str(), judgement.processes), ("any", 24));
    assert!(judgement.explained < 0.1, "{}", judgement.explained);
}

#[test]
fn fewer_than_ten_processes_are_not_judged() {
    assert!(judge(&PLAIN.processes()[..PROCESSES_MIN - 1], &BOOTSTRAP).is_none());
    assert!(judge(&PLAIN.processes()[..PROCESSES_MIN], &BOOTSTRAP).is_some());
}
