//! The decomposition of the ring's median from the file of `bench --bin decomposition`.

use anyhow::Context as _;
use serde_json::Value;

use super::{Lines, number, origin};

pub(super) fn lines(result: &Value) -> anyhow::Result<Lines> {
    let judgement = &result["judgement"];
    let text = |of: &Value, key: &str| of[key].as_str().map(str::to_owned).with_context(|| format!("no {key}"));
    let verdict = match text(judgement, "verdict")?.as_str() {
        "sum" => "The terms are a sum",
        "bounds" => "Terms overlap: what is added and what is left out are bounds, and no sum",
        "refused" => "Refused: the delays of a term do not move the median by their length",
        other => anyhow::bail!("unknown verdict {other}"),
    };
    let processes = judgement["processes"].as_u64().context("no processes")?;
    let noise = number(judgement["noise_ns"].as_f64().context("no noise")?);
    let placement = text(judgement, "placement")?.replace('_', " ");
    let mut origin = origin(&result["environment"])?;
    for warning in result["warnings"].as_array().context("no warnings")?.iter().filter_map(Value::as_str) {
        if !warning.starts_with(crate::report::environment::FORCED) {
            origin += &format!("\nWarning of the run: {warning}.");
        }
    }
    origin += &format!(
        "\n{verdict}.\nPlacement: {placement}; {processes} processes; two equal builds differ by up to {noise} ns."
    );
    let headings = ["term", "added, ns", "left out, ns", "slope of its delays", "verdict"];
    let mut lines = Lines::new(origin, 1, &headings);
    for term in judgement["terms"].as_array().context("no terms")? {
        let verdict = match text(term, "verdict")?.as_str() {
            "sum" => "adds".to_owned(),
            "bounds" => {
                let [low, high] = [0, 1].map(|at| term["bounds_ns"][at].as_f64().map(number));
                format!("from {} to {}", low.context("no bound")?, high.context("no bound")?)
            }
            _ => "refused".to_owned(),
        };
        lines.push(vec![
            text(term, "name")?,
            interval(&term["effects_ns"][0], 1)?,
            interval(&term["effects_ns"][1], 1)?,
            interval(&term["slope"], 3)?,
            verdict,
        ]);
    }
    let empty = String::new;
    lines.push(vec!["whole".to_owned(), interval(&judgement["whole_ns"], 1)?, empty(), empty(), empty()]);
    let residual = interval(&judgement["residual_ns"], 1)?;
    lines.push(vec!["residual".to_owned(), residual, empty(), empty(), text(judgement, "residual")?]);
    Ok(lines)
}

fn interval(estimate: &Value, digits: usize) -> anyhow::Result<String> {
    let [value, low, high] = ["value", "low", "high"].map(|key| estimate[key].as_f64());
    let [value, low, high] = [value.context("no value")?, low.context("no low")?, high.context("no high")?];
    Ok(format!("{value:.digits$} [{low:.digits$}, {high:.digits$}]"))
}

#[cfg(test)]
mod tests {
    use super::lines;
    use serde_json::json;

    #[test]
    fn every_term_has_a_row_and_bounds_in_place_of_a_sum() {
        let estimate = |value: f64| json!({ "value": value, "low": value - 1.0, "high": value + 1.0 });
        let term = |name, verdict| {
            json!({
                "name": name, "verdict": verdict, "effects_ns": [estimate(15.0), estimate(6.0)],
                "bounds_ns": [5.0, 16.0], "slope": { "value": 1.0, "low": 0.99, "high": 1.01 },
            })
        };
        let result = json!({
            "environment": {
                "machine": { "cpu": "A", "cores": 2, "kernel": "6" }, "date": "2026-11-30T00:00:00Z", "forced": null,
                "build": { "rustc": "rustc 1", "commit": "a", "dirty": false },
            },
            "warnings": ["much steal"],
            "judgement": {
                "verdict": "bounds", "processes": 60, "noise_ns": 0.5, "placement": "same_cache",
                "terms": [term("line", "sum"), term("evaluator", "bounds"), term("push", "refused")],
                "whole_ns": estimate(160.0), "residual_ns": estimate(-3.0), "residual": "time that two terms share",
            },
        });
        let table = lines(&result).unwrap().markdown();
        for row in [
            "no sum.\nPlacement: same cache; 60 processes; two equal builds differ by up to 0.50 ns.",
            "Warning of the run: much steal.",
            "| line | 15.0 [14.0, 16.0] | 6.0 [5.0, 7.0] | 1.000 [0.990, 1.010] | adds |",
            "| evaluator | 15.0 [14.0, 16.0] | 6.0 [5.0, 7.0] | 1.000 [0.990, 1.010] | from 5.00 to 16.0 |",
            "| refused |",
            "| whole | 160.0 [159.0, 161.0] |",
            "| residual | -3.0 [-4.0, -2.0] |  |  | time that two terms share |",
        ] {
            assert!(table.contains(row), "{row} in {table}");
        }
    }
}
