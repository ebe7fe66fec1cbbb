//! The machine's floor from `floor.json`.

use anyhow::Context as _;
use serde_json::Value;

use super::{Lines, number, origin};

pub(super) fn lines(result: &Value) -> anyhow::Result<Lines> {
    let headings = ["row", "ns", "95 % interval", "V100 (published)"];
    let mut lines = Lines::new(origin(&result["environment"])?, 1, &headings);
    for row in result["costs"].as_array().context("no costs")? {
        let name = row["name"].as_str().context("no name")?;
        let published = row["v100_ns"].as_f64().map_or_else(String::new, number);
        lines.push(line(&format!("`{name}`"), &row["ns"], published)?);
    }
    for row in result["transfers"].as_array().context("no transfers")? {
        let placement = row["placement"].as_str().context("no placement")?.replace('_', " ");
        let name = format!("line between CPUs {} and {}, {placement}", row["cpus"][0], row["cpus"][1]);
        lines.push(line(&name, &row["ns"], String::new())?);
    }
    Ok(lines)
}

fn line(name: &str, ns: &Value, published: String) -> anyhow::Result<Vec<String>> {
    let figure = |key: &str| ns[key].as_f64().map(number).with_context(|| format!("{name}: no {key}"));
    let interval = format!("{} to {}", figure("low")?, figure("high")?);
    Ok(vec![name.to_owned(), figure("value")?, interval, published])
}
