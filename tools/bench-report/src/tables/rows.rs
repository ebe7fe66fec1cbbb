//! Rows of `truetick bench` from `result.csv`.

use std::collections::HashMap;

use anyhow::Context as _;

use super::{Lines, compiler, day, number};
use crate::report::Runs;
use crate::report::environment::FORCED;

pub(super) fn lines(rows: &Runs) -> anyhow::Result<Lines> {
    let first = rows.runs.first().context("no row")?;
    let cell = |row: &HashMap<String, String>, key: &str| {
        row.get(key).map(|cell| cell.trim_matches('"').to_owned()).with_context(|| format!("no column {key}"))
    };
    let dirty = if cell(first, "dirty")? == "true" { " with uncommitted changes" } else { "" };
    let is_forced = first.get("forced").is_some_and(|cell| cell == "true");
    let forced = if is_forced { format!("\n{FORCED}.") } else { String::new() };
    let origin = format!(
        "{}, {} CPUs, Linux {}, {}, commit {}{dirty}, {}.{forced}",
        cell(first, "cpu")?,
        cell(first, "cores")?,
        cell(first, "kernel")?,
        compiler(&cell(first, "rustc")?),
        cell(first, "commit")?,
        day(&cell(first, "date")?)
    );
    let headings = ["row", "unit", "mean", "95 % interval", "instructions", "published (another machine)"];
    let mut lines = Lines::new(origin, 2, &headings);
    for row in &rows.runs {
        let figure = |key: &str| anyhow::Ok(cell(row, key)?.parse::<f64>().ok());
        let shown = |key: &str| anyhow::Ok(figure(key)?.map_or_else(String::new, number));
        let interval = figure("ci95_low")?.zip(figure("ci95_high")?);
        let interval = interval.map(|(low, high)| format!("{} to {}", number(low), number(high)));
        let instructions = figure("instructions")?.map_or_else(String::new, |count| format!("{count:.0}"));
        lines.push(vec![
            format!("`{}`", cell(row, "name")?),
            cell(row, "unit")?,
            shown("mean")?,
            interval.unwrap_or_default(),
            instructions,
            shown("published")?,
        ]);
    }
    Ok(lines)
}
