//! A whole result.

use std::io;

use serde_json::{Value, json};

use crate::report::{Bootstrap, Environment, Estimate, Mark, Published, Row, Sizes};

/// All rows of a run with their environment.
#[derive(Clone, Debug)]
pub struct Report {
    /// The benches that ran: `all`, `turn`, `ring`, `market`.
    pub title: String,
    /// A quick run has fewer samples and wider intervals, and says so wherever it is printed.
    pub quick: bool,
    /// How intervals were made.
    pub bootstrap: Bootstrap,
    /// The machine, the build and what disturbed the run.
    pub environment: Environment,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Report {
    /// Writes `summary.json`: environment, warnings, and `rows[]` in the order of the table. A figure without enough samples
    /// is `null`.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_json(&self, to: &mut dyn io::Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *to, &self.json())?;
        writeln!(to)
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "truetick_bench": self.title,
            "quick": self.quick,
            "resamples": self.bootstrap.resamples,
            "environment": self.environment,
            "warnings": self.environment.warnings(),
            "rows": self.rows.iter().map(row_json).collect::<Vec<_>>(),
        })
    }

    /// Writes one line a row, the machine, compiler and date on each, for `bench/results`.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_csv(&self, to: &mut dyn io::Write) -> io::Result<()> {
        writeln!(
            to,
            "engine,name,unit,n,blocks,batch,mean,ci95_low,ci95_high,p50,p95,p99,p99.9,published,published_statistic,\
             instructions,quick,date,cpu,cores,kernel,rustc,commit,dirty,steal_pct,forced"
        )?;
        let optional = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.2}"));
        let environment = &self.environment;
        for row in &self.rows {
            let quantiles = row.quantiles.clone().unwrap_or_default();
            let published = row.published.first();
            writeln!(
                to,
                "{},{},{},{},{},{},{:.3},{:.3},{:.3},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                row.engine,
                row.name,
                row.unit.name(),
                row.n,
                row.blocks,
                row.batch,
                row.mean,
                row.ci95[0],
                row.ci95[1],
                optional(quantiles.p50.map(|p50| p50.value)),
                optional(quantiles.p95.map(|p95| p95.value)),
                optional(quantiles.p99.map(|p99| p99.value)),
                optional(quantiles.p999.map(|p999| p999.value)),
                optional(published.map(|published| published.value)),
                published.map_or("", |published| published.statistic.name()),
                optional(row.instructions),
                self.quick,
                environment.date,
                quoted(&environment.machine.cpu),
                environment.machine.cores,
                quoted(&environment.machine.kernel),
                quoted(&environment.build.rustc),
                environment.build.commit,
                environment.build.dirty,
                optional(environment.disturbance.steal_pct),
                environment.forced.is_some(),
            )?;
        }
        Ok(())
    }
}

fn row_json(row: &Row) -> Value {
    let published = |published: &Published| {
        let (mark, factor) = match row.mark(published) {
            Some(Mark::Better(factor)) => (Some("better"), Some(factor)),
            Some(Mark::Worse(factor)) => (Some("worse"), Some(factor)),
            Some(Mark::Alike) => (Some("alike"), None),
            None => (None, None),
        };
        json!({
            "value": published.value, "unit": published.unit.name(), "what": published.what,
            "statistic": published.statistic.name(), "mark": mark, "factor": factor,
        })
    };
    let value = |estimate: Option<Estimate>| estimate.map(|estimate| estimate.value);
    let interval = |estimate: Option<Estimate>| estimate.map(|estimate| [estimate.low, estimate.high]);
    json!({
        "engine": row.engine, "name": row.name, "what": row.what, "unit": row.unit.name(),
        "n": row.n, "blocks": row.blocks, "batch": row.batch, "mean": row.mean, "ci95": row.ci95,
        "quantiles": row.quantiles.as_ref().map(|quantiles| json!({
            "min": quantiles.min, "p50": value(quantiles.p50), "p95": value(quantiles.p95),
            "p99": value(quantiles.p99), "p99.9": value(quantiles.p999), "max": quantiles.max,
        })),
        "quantiles_ci95": row.quantiles.as_ref().map(|quantiles| json!({
            "p50": interval(quantiles.p50), "p95": interval(quantiles.p95),
            "p99": interval(quantiles.p99), "p99.9": interval(quantiles.p999),
        })),
        "published": row.published.first().map(published),
        "also_published": row.published.iter().skip(1).map(published).collect::<Vec<_>>(),
        "aims": row.aims_json(), "sizes": row.sizes.as_ref().map(Sizes::json),
        "instructions": row.instructions, "notes": row.notes,
    })
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "'"))
}
