//! The ring's median as a sum, on this machine: what is changed by a known amount moves its own term and no other.
//!
//! `truetick bench ring --quick` judges that itself, in each placement of the cores that it found. Cores are moved and
//! neighbours are loud, so there are several attempts: a sum that is right holds in one of them, one that is wrong in none,
//! because a term that is off by the delay is off by many intervals.
//!
//! The delays have to hold as the bench judges them. The evaluator's removal is judged here by less: it takes some
//! nanoseconds more in the ring than alone where the cores are siblings, which the bench then prints as not holding; here
//! its own term has to move by more than all that is left.

use serde_json::Value;

use super::Workplace;
use super::tally::{Outcome, Tally};

const ATTEMPTS: usize = 6;
/// Where the median spreads so far that an interval is wider, a delay in the wrong term could hide in it: cores that are
/// across caches from each other, mostly.
const WIDTH_MAX_NS: f64 = 15.0;
/// Every change that the bench makes.
const CONTROLS: usize = 3;
/// The one that is judged by less.
const REMOVED: &str = "evaluator_removed";

pub(crate) fn run(place: &Workplace) -> Outcome {
    let program = match place.program() {
        Ok(program) => program.to_string_lossy().into_owned(),
        Err(error) => return Outcome::Ran(Tally::fail(error)),
    };
    let folder = place.root.join("target/test-decomposition");
    let mut judged = Vec::new();
    for _ in 0..ATTEMPTS {
        let mut command = place.command(&program, &["bench", "ring", "--quick", "--out"]);
        let finished = place.finish("decomposition", command.arg(&folder));
        if finished.output.contains("two CPUs are needed") {
            return Outcome::Skipped("two CPUs are needed".to_owned());
        }
        if !finished.succeeded() {
            finished.show_tail();
            return Outcome::Ran(Tally::fail("bench ring"));
        }
        let text = std::fs::read(folder.join("ring.json")).unwrap_or_default();
        match serde_json::from_slice(&text) {
            Ok(result) => judged.extend(verdicts(&result)),
            Err(error) => return Outcome::Ran(Tally::fail(format!("ring.json: {error}"))),
        }
        if let Some(verdict) = judged.iter().find(|verdict| verdict.holds) {
            println!("      {}", verdict.text);
            return Outcome::Ran(Tally::pass());
        }
    }
    judged.iter().for_each(|verdict| println!("      | {}", verdict.text));
    if judged.is_empty() {
        return Outcome::Skipped(format!(
            "the cores were in no placement that tells for long enough in {ATTEMPTS} attempts"
        ));
    }
    Outcome::Ran(Tally::fail("the median is not the sum of its parts"))
}

struct Verdict {
    holds: bool,
    text: String,
}

/// One for each placement in which every change could be judged.
fn verdicts(result: &Value) -> Vec<Verdict> {
    let decompositions = result["decompositions"].as_array().map_or(&[][..], Vec::as_slice);
    let judged = decompositions.iter().filter_map(|decomposition| {
        let controls = decomposition["controls"].as_array()?;
        let failing: Vec<&str> =
            controls
                .iter()
                .filter(|control| {
                    if control["name"] == REMOVED { !is_mostly_its_term(control) } else { control["holds"] != true }
                })
                .filter_map(|control| control["name"].as_str())
                .collect();
        let text = format!(
            "{}, {} runs: p50 {:.1} ns; {}",
            decomposition["class"].as_str()?,
            decomposition["runs"],
            decomposition["p50_ns"]["value"].as_f64()?,
            if failing.is_empty() { "the sum holds".to_owned() } else { format!("off in {}", failing.join(", ")) }
        );
        let is_told = controls.len() == CONTROLS && controls.iter().all(|control| width(control) <= WIDTH_MAX_NS);
        is_told.then_some(Verdict { holds: failing.is_empty(), text })
    });
    judged.collect()
}

/// Whether the evaluator's own term fell, and what is left moved by no more than half as much, within its interval.
fn is_mostly_its_term(control: &Value) -> bool {
    let end = |term: &str, name: &str| {
        let moved = control["moved"].as_array()?.iter().find(|moved| moved["name"] == term)?;
        moved["ns"][name].as_f64()
    };
    let Some(((own, own_high), (low, high))) =
        end("evaluator", "value").zip(end("evaluator", "high")).zip(end("rest", "low").zip(end("rest", "high")))
    else {
        return false;
    };
    own_high < 0.0 && low <= -own / 2.0 && high >= own / 2.0
}

/// The width of the interval of what the median moved by.
fn width(control: &Value) -> f64 {
    let end = |name: &str| control["p50_moved_ns"][name].as_f64();
    end("high").zip(end("low")).map_or(f64::INFINITY, |(high, low)| high - low)
}

#[cfg(test)]
mod tests {
    use super::{is_mostly_its_term, verdicts};
    use serde_json::json;

    fn verdict(holds: [bool; 3], controls: usize) -> Vec<bool> {
        verdict_of(holds, controls, 54.0)
    }

    fn verdict_of(holds: [bool; 3], controls: usize, high: f64) -> Vec<bool> {
        let moved = json!({ "value": 50.0, "low": 46.0, "high": high });
        let control = |holds| json!({ "name": "x", "holds": holds, "p50_moved_ns": moved });
        let controls: Vec<_> = holds.into_iter().take(controls).map(control).collect();
        let one = json!({ "class": "siblings", "runs": 9, "p50_ns": { "value": 80.0 }, "controls": controls });
        verdicts(&json!({ "decompositions": [one] })).into_iter().map(|verdict| verdict.holds).collect()
    }

    #[test]
    fn the_evaluator_that_is_left_out_is_found_in_its_own_term() {
        let control = |own: f64, rest: [f64; 2]| {
            let own = json!({ "name": "evaluator", "ns": { "value": own, "low": own - 0.1, "high": own + 0.1 } });
            let rest = json!({ "name": "rest", "ns": { "value": 0.0, "low": rest[0], "high": rest[1] } });
            is_mostly_its_term(&json!({ "moved": [own, rest] }))
        };
        assert!(control(-12.0, [-4.0, -2.0]) && control(-12.0, [-1.0, 1.0]));
        assert!(!control(-12.0, [-20.0, -9.0]), "the term has half of it, or less");
        assert!(!control(-12.0, [7.0, 9.0]) && !control(0.0, [-13.0, -11.0]) && !control(12.0, [-1.0, 1.0]));
        assert!(!is_mostly_its_term(&json!({})));
    }

    #[test]
    fn every_change_has_to_be_judged_and_to_hold() {
        assert_eq!(verdict([true, true, true], 3), [true]);
        assert_eq!(verdict([true, false, true], 3), [false]);
        assert_eq!(verdict([true, true, true], 2), [false; 0]);
        assert_eq!(verdict_of([true, true, true], 3, 90.0), [false; 0]);
        assert_eq!(verdicts(&json!({})).len(), 0);
    }
}
