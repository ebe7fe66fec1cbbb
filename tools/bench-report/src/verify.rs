//! `truetick bench verify`: whether a result of another machine can be kept and compared.
//!
//! It judges how a result was made and whether its figures agree with each other. That the figures are those of the
//! machine which the result names, no program can know.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde_json::Value;
use tt_os::stdout;

use crate::report::environment::{OTHERS_CPUS_MAX, STEAL_PCT_MAX};

/// Names of the quantiles of an object, in their order.
const QUANTILES: [&str; 8] = ["min", "p50", "p90", "p95", "p99", "p99.9", "p999", "max"];
/// Clock drift above which a run is void, parts per million.
const DRIFT_PPM_MAX: f64 = 50.0;
/// A requirement and whether a result meets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is required.
    pub requirement: &'static str,
    /// What is wrong; `None` where the result meets it.
    pub fault: Option<String>,
}

/// Judges each of `files` and prints every requirement that one misses.
///
/// # Errors
/// A result misses one, a file cannot be read or is not JSON, or nothing can be printed.
pub fn run(files: &[PathBuf]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    let mut refused = 0;
    for path in files {
        let result = read(path)?;
        let findings = judge(&result);
        let faults: Vec<&Finding> = findings.iter().filter(|finding| finding.fault.is_some()).collect();
        let verdict = if faults.is_empty() { "can be kept" } else { "cannot be kept" };
        let mut text = format!("{}: {verdict}, {}\n", path.display(), about(&result));
        for finding in &faults {
            text += &format!("  {}: {}\n", finding.requirement, finding.fault.as_deref().unwrap_or_default());
        }
        stdout::ignore_broken_pipe(stdout.write_all(text.as_bytes()).context("cannot print"))?;
        refused += usize::from(!faults.is_empty());
    }
    ensure!(refused == 0, "{refused} of {} results cannot be kept", files.len());
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<Value> {
    let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} is not JSON", path.display()))
}

/// What was measured where, with the distance of the two cores, by which machines are grouped.
fn about(result: &Value) -> String {
    let text = |pointer: &str| result.pointer(pointer).and_then(Value::as_str);
    let what = kind(result).unwrap_or("unknown");
    let [cpu, date] = ["/environment/machine/cpu", "/environment/date"].map(|at| text(at).unwrap_or("unknown"));
    let placement =
        text("/placement").or_else(|| text("/transfers/0/placement")).or_else(|| text("/references/0/class"));
    let placement = placement.map_or_else(String::new, |placement| format!(", {placement}"));
    format!("{what}, {cpu}, {date}{placement}")
}

/// The command that made it: `floor`, `why`, or a name of `bench`.
fn kind(result: &Value) -> Option<&str> {
    ["truetick", "truetick_bench"].iter().find_map(|key| result.get(key)?.as_str())
}

/// Judges a result by every requirement.
#[must_use]
pub fn judge(result: &Value) -> Vec<Finding> {
    let environment = &result["environment"];
    let requirement = |requirement, fault| Finding { requirement, fault };
    vec![
        requirement("a result of truetick", kind(result).is_none().then(|| "no command is named".to_owned())),
        requirement("a full run", (result["quick"] != false).then(|| "made with --quick".to_owned())),
        requirement("a quiet machine", forced(environment)),
        requirement("the machine is named", unnamed(environment)),
        requirement("a release build", other(&environment["build"]["profile"], "release")),
        requirement("a commit without changes", changed(&environment["build"])),
        requirement("pinned threads", environment["machine"]["pinned_to"].is_null().then(|| "not pinned".to_owned())),
        requirement("a steady clock", above(&environment["timing"]["drift_ppm"], DRIFT_PPM_MAX, "ppm of drift")),
        requirement("little steal", above(&environment["disturbance"]["steal_pct"], STEAL_PCT_MAX, "% stolen")),
        requirement("little else running", shared(&environment["disturbance"])),
        requirement("intervals that hold their values", first(result, "", &interval)),
        requirement("quantiles in order", first(result, "", &quantiles)),
        requirement("parts that are the whole", parts(result)),
    ]
}

fn forced(environment: &Value) -> Option<String> {
    match environment.get("forced") {
        Some(Value::Null) => None,
        Some(reason) => Some(format!("made with --force: {}", reason.as_str().unwrap_or("no reason"))),
        None => Some("the result does not say whether the machine was busy".to_owned()),
    }
}

/// What a reader must know of the machine.
fn unnamed(environment: &Value) -> Option<String> {
    let fields = ["/date", "/machine/cpu", "/machine/arch", "/machine/kernel", "/machine/clocksource", "/build/rustc"];
    let is_named = |text: &str| !text.is_empty() && text != "unknown";
    let missing: Vec<&str> = fields
        .into_iter()
        .filter(|field| !environment.pointer(field).and_then(Value::as_str).is_some_and(is_named))
        .collect();
    (!missing.is_empty()).then(|| format!("missing: {}", missing.join(", ")))
}

fn other(value: &Value, wanted: &str) -> Option<String> {
    (value != wanted).then(|| format!("{value} in place of {wanted}"))
}

fn changed(build: &Value) -> Option<String> {
    let commit = build["commit"].as_str().unwrap_or_default();
    let is_hash = commit.len() >= 12 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hash {
        return Some(format!("{commit:?} is no hash of a commit"));
    }
    (build["dirty"] != false).then(|| format!("the sources differed from {commit}"))
}

/// Whether other processes took part in the run. Pressure cannot say it: the run's own threads raise it, too.
fn shared(disturbance: &Value) -> Option<String> {
    let others = &disturbance["others_cpus"];
    let unsaid = (!others.is_number()).then(|| "the result does not say how much other processes ran".to_owned());
    unsaid.or_else(|| above(others, OTHERS_CPUS_MAX, "CPUs used by other processes"))
}

fn above(value: &Value, max: f64, unit: &str) -> Option<String> {
    // A kernel that does not report it is no fault of the run.
    let value = value.as_f64()?;
    (value.abs() > max).then(|| format!("{value:.2} {unit}, at most {max}"))
}

/// The first fault of an object in `value`, depth first, with where it is.
fn first(value: &Value, at: &str, fault: &dyn Fn(&Value) -> Option<String>) -> Option<String> {
    if let Some(found) = fault(value) {
        return Some(format!("{}: {found}", if at.is_empty() { "/" } else { at }));
    }
    match value {
        Value::Array(values) => {
            values.iter().enumerate().find_map(|(index, value)| first(value, &format!("{at}/{index}"), fault))
        }
        Value::Object(fields) => fields.iter().find_map(|(key, value)| first(value, &format!("{at}/{key}"), fault)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// An estimate lies within its interval.
fn interval(object: &Value) -> Option<String> {
    let [low, value, high] = ["low", "value", "high"].map(|key| object.get(key).and_then(Value::as_f64));
    let (low, value, high) = (low?, value?, high?);
    (!(low <= value && value <= high)).then(|| format!("{value} is not within [{low}, {high}]"))
}

fn quantiles(object: &Value) -> Option<String> {
    let present: Vec<(&str, f64)> =
        QUANTILES.iter().filter_map(|name| Some((*name, object.get(name)?.as_f64()?))).collect();
    let wrong = present.windows(2).find(|pair| pair[0].1 > pair[1].1)?;
    Some(format!("{} is {} and {} is {}", wrong[0].0, wrong[0].1, wrong[1].0, wrong[1].1))
}

/// The parts of `truetick why` are its median, within the intervals of all four.
fn parts(result: &Value) -> Option<String> {
    let parts = result.get("parts").filter(|parts| parts.is_object())?;
    let estimates =
        [&parts["floor_ns"], &parts["ring_ns"][0], &parts["evaluator_ns"][1], &result["p50_ns"]].map(|estimate| {
            let value = estimate["value"].as_f64()?;
            Some((value, estimate["high"].as_f64()? - estimate["low"].as_f64()?))
        });
    let [Some(floor), Some(ring), Some(evaluator), Some(whole)] = estimates else {
        return Some("a part is missing".to_owned());
    };
    let sum = floor.0 + ring.0 + evaluator.0;
    let width = floor.1 + ring.1 + evaluator.1 + whole.1;
    ((sum - whole.0).abs() > width).then(|| format!("{sum:.1} ns in parts, {:.1} ns together", whole.0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn good() -> Value {
        let estimate = |value: f64| json!({ "low": value - 1.0, "value": value, "high": value + 1.0 });
        json!({
            "truetick": "why",
            "quick": false,
            "environment": {
                "date": "2026-11-28T16:00:00Z",
                "forced": null,
                "machine": {
                    "cpu": "CPU", "arch": "x86_64", "kernel": "6.18", "clocksource": "tsc", "pinned_to": 1
                },
                "build": { "rustc": "rustc 1.95.0", "profile": "release", "commit": "0255b10d2496", "dirty": false },
                "timing": { "drift_ppm": 1.5 },
                "disturbance": { "steal_pct": 0.1, "others_cpus": 0.1, "psi_cpu_pct": 47.2 },
            },
            "p50_ns": estimate(200.0),
            "parts": {
                "floor_ns": estimate(160.0),
                "ring_ns": [estimate(25.0), estimate(20.0)],
                "evaluator_ns": [estimate(20.0), estimate(15.0)],
            },
            "rows": [{ "name": "state_ticker_alone_ns", "quantiles": { "min": 9.0, "p50": 20.0, "p95": 30.0, "max": 31.0 } }],
        })
    }

    #[track_caller]
    fn assert_fault(pointer: &str, value: Value, requirement: &str) {
        let mut result = good();
        *result.pointer_mut(pointer).unwrap() = value;
        let faults: Vec<&str> =
            judge(&result).iter().filter(|one| one.fault.is_some()).map(|one| one.requirement).collect();
        assert_eq!(faults, [requirement], "{pointer}");
    }

    #[test]
    fn every_requirement_is_missed_alone() {
        assert!(judge(&good()).iter().all(|finding| finding.fault.is_none()), "{:?}", judge(&good()));
        assert_fault("/truetick", Value::Null, "a result of truetick");
        assert_fault("/quick", true.into(), "a full run");
        assert_fault("/environment/forced", "busy".into(), "a quiet machine");
        assert_fault("/environment/machine/cpu", "unknown".into(), "the machine is named");
        assert_fault("/environment/date", "".into(), "the machine is named");
        assert_fault("/environment/build/profile", "debug".into(), "a release build");
        assert_fault("/environment/build/dirty", true.into(), "a commit without changes");
        assert_fault("/environment/build/commit", "unknown".into(), "a commit without changes");
        assert_fault("/environment/machine/pinned_to", Value::Null, "pinned threads");
        assert_fault("/environment/timing/drift_ppm", (-50.1).into(), "a steady clock");
        assert_fault("/environment/disturbance/steal_pct", 0.51.into(), "little steal");
        assert_fault("/environment/disturbance/others_cpus", 0.11.into(), "little else running");
        assert_fault("/environment/disturbance/others_cpus", Value::Null, "little else running");
        assert_fault("/parts/ring_ns/1/low", 20.1.into(), "intervals that hold their values");
        assert_fault("/rows/0/quantiles/p95", 19.9.into(), "quantiles in order");
        assert_fault(
            "/parts/evaluator_ns/1",
            json!({ "low": 30.0, "value": 31.0, "high": 32.0 }),
            "parts that are the whole",
        );
    }

    #[test]
    fn a_result_is_named_with_the_distance_of_its_cores() {
        let mut result = good();
        assert_eq!(about(&result), "why, CPU, 2026-11-28T16:00:00Z");
        result["placement"] = "siblings".into();
        assert_eq!(about(&result), "why, CPU, 2026-11-28T16:00:00Z, siblings");
    }

    #[test]
    fn a_result_without_a_word_on_the_machines_load_is_refused() {
        let mut result = good();
        result["environment"].as_object_mut().unwrap().remove("forced");
        assert!(judge(&result).iter().any(|one| one.requirement == "a quiet machine" && one.fault.is_some()));
    }
}
