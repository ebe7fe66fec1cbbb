//! A ring's result as the figures and rows of `report.html`.

use serde_json::{Value, json};

use super::{Ablation, AblationStep, ClassFigures, Loop, LoopKind, RingResult, Simulated, Tail};
use crate::report::figures::{self, CauseRate, Figures};
use crate::report::{Estimate, Mark, Unit};
use tt_status::distribution::{Binned, Bucket, Distribution, StallMark};

/// Above this an event is a stall where the result has no tail, nanoseconds.
const STALL_FROM_NS: f64 = 1_000.0;

impl RingResult {
    /// What the figures are drawn from, save what the result does not know: [`figures::Class::ways`],
    /// [`figures::Class::sharing`] and [`Figures::parts`].
    #[must_use]
    pub fn figures(&self) -> Figures {
        let mut figures = Figures::default();
        for of in &self.loops {
            for found in of.classes.iter().filter(|found| found.class != "all") {
                let distribution = self.distribution(of, found);
                let class = figures.class(&found.class);
                class.runs += found.runs as u64;
                class.ping_pong = class.ping_pong.or(Some(found.ping_pong_ns));
                class.distributions.push(distribution);
            }
        }
        figures.ablation = self.ablation.as_ref().map(steps).unwrap_or_default();
        figures.tail = self.tail.as_ref().map(tail).unwrap_or_default();
        let published = self.loops.iter().find_map(|of| of.published);
        figures.simulated = published.and_then(|published| Simulated::of(&published, self.settings.step_ns));
        figures
    }

    /// Environment, settings and a row for each loop and placement, as `summary.json` has them.
    #[must_use]
    pub fn summary(&self) -> Value {
        let rows = self.loops.iter().flat_map(|of| of.classes.iter().map(move |class| row(of, class)));
        json!({
            "truetick_bench": self.truetick_bench, "quick": self.quick, "resamples": self.resamples,
            "environment": self.environment, "warnings": self.warnings, "settings": self.settings,
            "rows": rows.collect::<Vec<_>>(),
        })
    }

    fn distribution(&self, of: &Loop, found: &ClassFigures) -> Distribution {
        let stall_from_ns = match of.kind {
            LoopKind::ServiceTime => self.tail.as_ref().map_or(STALL_FROM_NS, |tail| tail.threshold_ns),
            // A late event makes the next ones late: a long time is not a stall.
            LoopKind::ResponseTime => f64::INFINITY,
        };
        let is_here = |run: usize| self.runs.get(run).is_some_and(|run| run.of == of.name && run.class == found.class);
        let all = self.tail.iter().flat_map(|tail| &tail.stalls);
        let stalls = all.filter(|stall| is_here(stall.run) && stall.ns >= stall_from_ns);
        let buckets: Vec<Bucket> = found
            .histogram
            .iter()
            .map(|bucket| Bucket { low_ns: bucket.low_ns, high_ns: bucket.high_ns, count: bucket.count })
            .collect();
        Distribution {
            name: of.name.clone(),
            what: what(of).to_owned(),
            n: found.events,
            min_ns: found.ns.min,
            mean_ns: found.ns.average,
            p50_ns: found.ns.p50,
            p95_ns: found.ns.p95,
            p99_ns: found.ns.p99,
            p999_ns: found.ns.p999,
            max_ns: found.ns.max.unwrap_or(found.ns.min),
            ..Distribution::of_binned(&Binned {
                buckets: &buckets,
                step_ns: self.settings.step_ns,
                stall_from_ns,
                stalls: &stalls.map(|stall| StallMark { ns: stall.ns, cause: stall.cause.clone() }).collect::<Vec<_>>(),
            })
        }
    }
}

const fn what(of: &Loop) -> &'static str {
    match of.kind {
        LoopKind::ServiceTime => "one event in flight: from the stamp before push to the stamp after the verdict",
        LoopKind::ResponseTime => "events at a fixed rate: from the intended start to the stamp after the verdict",
    }
}

fn row(of: &Loop, class: &ClassFigures) -> Value {
    let interval = |estimate: Estimate| [estimate.low, estimate.high];
    let published = of.published.and_then(|published| published.p50).map(|theirs| {
        let (mark, factor) = match Mark::of(&class.p50_ns, theirs, Unit::Ns) {
            Mark::Better(factor) => ("better", Some(factor)),
            Mark::Worse(factor) => ("worse", Some(factor)),
            Mark::Alike => ("alike", None),
        };
        json!({ "value": theirs, "unit": "ns", "statistic": "p50", "mark": mark, "factor": factor })
    });
    json!({
        "engine": "ring", "name": format!("{}_{}", of.name, class.class), "what": what(of), "unit": "ns",
        "n": class.events, "blocks": class.runs, "batch": 1,
        "mean": class.average_ns.value, "ci95": interval(class.average_ns),
        "quantiles": {
            "min": class.ns.min, "p50": class.p50_ns.value, "p95": class.ns.p95, "p99": class.ns.p99,
            "p99.9": class.ns.p999, "max": class.ns.max,
        },
        "quantiles_ci95": { "p50": interval(class.p50_ns) },
        "published": published,
    })
}

fn steps(ablation: &Ablation) -> Vec<figures::AblationStep> {
    let step = |step: &AblationStep| figures::AblationStep {
        name: step.name.replace('_', " "),
        what: step.what.to_owned(),
        cumulative: Some(step.cumulative.p50_ns),
        without: step.without.as_ref().map(|without| without.p50_ns),
        published_ns: step.published_p50_ns,
        published_source: step.published_source.to_owned(),
        sources: step.sources.to_vec(),
        sources_without: step.sources_without.to_vec(),
        verdict: step.note.clone(),
    };
    ablation.steps.iter().map(step).collect()
}

/// Every cause that either has, the ring's order first.
fn tail(tail: &Tail) -> Vec<CauseRate> {
    let mut causes: Vec<&str> = tail.causes.iter().chain(&tail.floor_causes).map(|of| of.cause.as_str()).collect();
    let mut seen = Vec::new();
    causes.retain(|cause| {
        !seen.contains(cause) && {
            seen.push(*cause);
            true
        }
    });
    let per_s =
        |list: &[super::CauseCount], cause: &str| list.iter().find(|of| of.cause == cause).map_or(0.0, |of| of.per_s);
    let rate = |cause: &str| CauseRate {
        cause: cause.to_owned(),
        ring_per_s: per_s(&tail.causes, cause),
        floor_per_s: per_s(&tail.floor_causes, cause),
    };
    causes.into_iter().map(rate).collect()
}
