//! Latencies and layouts of `truetick bench ring` from `ring.json`.

use anyhow::Context as _;
use serde_json::Value;

use super::{Lines, number, origin};
use crate::report::environment::FORCED;

/// Beginning of the warning that withdraws quantiles above the median.
const NO_TAILS: &str = "tails are limited by the machine";

pub(super) fn latency(result: &Value) -> anyhow::Result<Lines> {
    let headings = ["loop", "placement", "runs", "ping-pong", "average", "p50", "p95", "p99", "p99.9"];
    let warnings = result["warnings"].as_array().context("no warnings")?;
    let has_tails = !warnings.iter().filter_map(Value::as_str).any(|warning| warning.starts_with(NO_TAILS));
    let mut origin = origin(&result["environment"])?;
    for warning in warnings.iter().filter_map(Value::as_str).filter(|warning| !warning.starts_with(FORCED)) {
        origin += &format!("\nWarning of the run: {warning}.");
    }
    let mut lines = Lines::new(origin, 2, &headings);
    for of in result["loops"].as_array().context("no loops")? {
        let name = of["name"].as_str().context("no name")?;
        let classes = of["classes"].as_array().context("no classes")?;
        for class in classes.iter().filter(|class| class["class"] != "all") {
            lines.push(line(name, class, has_tails)?);
        }
    }
    Ok(lines)
}

fn line(name: &str, class: &Value, has_tails: bool) -> anyhow::Result<Vec<String>> {
    let shown = |value: &Value| value.as_f64().map_or_else(|| "n/a".to_owned(), number);
    let placement = class["class"].as_str().context("no placement")?.replace('_', " ");
    let mut cells = vec![format!("`{name}`"), placement, class["runs"].to_string()];
    cells.extend([&class["ping_pong_ns"]["value"], &class["ns"]["average"], &class["ns"]["p50"]].map(shown));
    let tails = [&class["ns"]["p95"], &class["ns"]["p99"], &class["ns"]["p999"]];
    cells.extend(tails.map(|tail| if has_tails { shown(tail) } else { "withdrawn".to_owned() }));
    Ok(cells)
}

pub(super) fn layouts(result: &Value) -> anyhow::Result<Lines> {
    let headings = ["layout", "what", "placement", "p50, ns", "M events/s"];
    let mut lines = Lines::new(origin(&result["environment"])?, 3, &headings);
    for layout in result["layouts"].as_array().context("no layouts")? {
        let text = |key: &str| layout[key].as_str().with_context(|| format!("no {key}"));
        let figure = |key: &str| layout[key]["value"].as_f64().map(number).with_context(|| format!("no {key}"));
        lines.push(vec![
            format!("`{}`", text("name")?),
            text("what")?.to_owned(),
            text("class")?.replace('_', " "),
            figure("p50_ns")?,
            figure("stream_million_per_s")?,
        ]);
    }
    Ok(lines)
}
