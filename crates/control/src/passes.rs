//! `/api/v1/machine/passes`: how long the running engines' passes take, bucket by bucket, for the page's chart.

use axum::response::Response;
use serde_json::json;
use tt_status::distribution::{Binned, Distribution};

use crate::answer::json_of;
use crate::state::App;
use tt_status::accounting::Stages;

/// The grid of the chart begins with buckets of this width, nanoseconds.
const STEP_NS: f64 = 10.0;

/// `classes`, in the shape of a report's, with an engine in the place of a placement.
pub(crate) async fn passes(app: App) -> Response {
    let state = &app.state;
    let engines = [
        ("turn", state.turn.as_ref().map(|turn| turn().stages)),
        ("market", state.market.as_ref().map(|market| market().stages)),
        ("risk", state.risk.as_ref().map(|risk| risk().stages)),
    ];
    let class = |(engine, stages): (&str, Option<Stages>)| {
        distribution(&stages?).map(|distribution| json!({ "placement": engine, "distributions": [distribution] }))
    };
    json_of(&json!({ "classes": engines.into_iter().filter_map(class).collect::<Vec<_>>(), "tail": [] }))
}

/// `None` before the first sample.
fn distribution(stages: &Stages) -> Option<Distribution> {
    let pass = stages.pass?;
    let optional = |ns: Option<u64>| ns.map(|ns| ns as f64);
    let known = Binned { buckets: &stages.buckets, step_ns: STEP_NS, stall_from_ns: f64::INFINITY, stalls: &[] };
    Some(Distribution {
        name: "whole_pass".to_owned(),
        what: "from the first byte of a pass to its end, since this server began; a sample of all passes".to_owned(),
        n: pass.n,
        min_ns: pass.min_ns as f64,
        mean_ns: pass.mean_ns,
        p50_ns: Some(pass.p50_ns as f64),
        p95_ns: optional(pass.p95_ns),
        p99_ns: optional(pass.p99_ns),
        p999_ns: optional(pass.p999_ns),
        max_ns: pass.max_ns as f64,
        ..Distribution::of_binned(&known)
    })
}
