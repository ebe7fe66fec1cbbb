//! The table on the terminal.

use std::io;

use crate::report::environment::{cpus, percent};
use crate::report::{Environment, Estimate, Mark, Published, Report, Row, Statistic, Unit};

impl Report {
    /// Writes the environment and one line for each row and published figure.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_table(&self, to: &mut dyn io::Write) -> io::Result<()> {
        self.write_head(to)?;
        let mut engine = "";
        for row in &self.rows {
            if row.engine != engine {
                engine = &row.engine;
                writeln!(
                    to,
                    "\n{:<30} {:>10} {:>21} {:>11}  {:<12} instructions",
                    engine, "ours", "95 % interval", "published", ""
                )?;
            }
            write_row(to, row)?;
        }
        self.write_aims(to)?;
        writeln!(to)?;
        for line in self.environment.warnings() {
            writeln!(to, "! {line}")?;
        }
        self.write_foot(to)
    }

    fn write_head(&self, to: &mut dyn io::Write) -> io::Result<()> {
        let environment = &self.environment;
        let label = if self.quick { "QUICK run: few samples, wide intervals" } else { "full run" };
        writeln!(to, "truetick bench {}, {}{label}", self.title, environment.label())?;
        if let Some(line) = environment.build.warning() {
            writeln!(to, "! {line}")?;
        }
        environment.write_machine(to)
    }

    /// Each aim with the figure that it is about; nothing where no row has one.
    fn write_aims(&self, to: &mut dyn io::Write) -> io::Result<()> {
        if self.rows.iter().all(|row| row.aims.is_empty()) {
            return Ok(());
        }
        writeln!(to, "\n{:<30} {:>10} {:>21} {:>11}", "aims", "ours", "95 % interval", "at most")?;
        for (row, aim) in self.rows.iter().flat_map(|row| row.aims.iter().map(move |aim| (row, aim))) {
            let ours = row.figure(aim.statistic);
            let interval = ours.map_or_else(String::new, |ours| interval(&ours, aim.statistic));
            let value = ours.map_or_else(|| "n/a".to_owned(), |ours| figure(ours.value, row.unit));
            let name = format!("{} {}", row.name, aim.statistic.name());
            let (at_most, verdict) = (figure(aim.at_most, row.unit), row.verdict(aim).name());
            writeln!(to, "{name:<30} {value:>10} {interval:>21} {at_most:>11}  {verdict}")?;
        }
        Ok(())
    }

    fn write_foot(&self, to: &mut dyn io::Write) -> io::Result<()> {
        self.environment.write_disturbance(to)?;
        writeln!(
            to,
            "intervals: {} resamples of whole blocks, seed {:#x}; (k): mean of k operations between two stamps, no tail",
            self.bootstrap.resamples, self.environment.seed
        )?;
        if !self.environment.not_measured.is_empty() {
            writeln!(to, "not measured: {}", self.environment.not_measured.join(", "))?;
        }
        Ok(())
    }
}

impl Environment {
    /// Writes machine, build and clock, a line each.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_machine(&self, to: &mut dyn io::Write) -> io::Result<()> {
        let (machine, build, timing) = (&self.machine, &self.build, &self.timing);
        writeln!(to, "{} | {} cores | {} | Linux {}", machine.cpu, machine.cores, machine.arch, machine.kernel)?;
        writeln!(
            to,
            "governor {} | turbo {} | clock source {} ({})",
            machine.governor, machine.turbo, machine.clocksource, machine.counter_flags
        )?;
        writeln!(
            to,
            "{} | {} {} | commit {}{} | {}",
            build.rustc,
            build.profile,
            build.flags,
            build.commit,
            if build.dirty { " with changes" } else { "" },
            self.date
        )?;
        writeln!(
            to,
            "clock: {:.1} MHz, a read {:.1} ns (in every chunk once), steps of {:.1} ns, drift {:+.1} ppm; empty loop {:.2} ns",
            timing.counter_hz / 1e6,
            timing.read_ns,
            timing.step_ns,
            timing.drift_ppm,
            timing.empty_loop_ns
        )
    }

    /// Writes what else happened on the machine, on one line.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_disturbance(&self, to: &mut dyn io::Write) -> io::Result<()> {
        let disturbance = &self.disturbance;
        let count = |value: Option<u64>| value.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
        writeln!(
            to,
            "{:.0} s; steal {}, other processes on {} CPUs, CPU pressure {}; switches {} wanted, {} suffered; page faults \
             {}; interrupts {}",
            disturbance.wall_s,
            percent(disturbance.steal_pct),
            cpus(disturbance.others_cpus),
            percent(disturbance.psi_cpu_pct),
            count(disturbance.voluntary_switches),
            count(disturbance.involuntary_switches),
            count(disturbance.page_faults),
            count(disturbance.interrupts)
        )
    }
}

fn write_row(to: &mut dyn io::Write, row: &Row) -> io::Result<()> {
    let name = if row.batch > 1 { format!("{} ({})", row.name, row.batch) } else { row.name.clone() };
    let first = row.published.iter().find(|published| published.statistic == leading(row));
    let instructions = row.instructions.map_or_else(String::new, |count| format!("{count:>12.0}"));
    write_line(to, row, &name, leading(row), first, &instructions)?;
    let rest = [Statistic::Mean, Statistic::Min, Statistic::P50, Statistic::P95, Statistic::P99, Statistic::P999];
    for statistic in rest.into_iter().filter(|statistic| *statistic != leading(row)) {
        let published = row.published.iter().find(|published| published.statistic == statistic);
        if row.quantiles.is_some() || published.is_some() {
            write_line(to, row, &format!("  {}", statistic.name()), statistic, published, "")?;
        }
    }
    if let Some(sizes) = &row.sizes {
        writeln!(to, "    {}", sizes.text())?;
    }
    for note in &row.notes {
        writeln!(to, "    {note}")?;
    }
    Ok(())
}

/// The figure on the row's first line: the mean, or the median where medians were published and the row has one.
fn leading(row: &Row) -> Statistic {
    let median = row.published.first().is_some_and(|published| published.statistic == Statistic::P50);
    if median { Statistic::P50 } else { Statistic::Mean }
}

fn write_line(
    to: &mut dyn io::Write,
    row: &Row,
    name: &str,
    statistic: Statistic,
    published: Option<&Published>,
    instructions: &str,
) -> io::Result<()> {
    let mean_for_median = statistic == Statistic::P50 && row.quantiles.is_none();
    let ours = row.figure(if mean_for_median { Statistic::Mean } else { statistic });
    let label = match (statistic, row.batch > 1 || name.starts_with("  ")) {
        (Statistic::P50, false) => format!("{name} p50"),
        _ => name.to_owned(),
    };
    let theirs = published.map_or_else(String::new, |published| figure(published.value, published.unit));
    let mark = published.and_then(|published| row.mark(published)).map_or_else(String::new, text_of);
    let interval = ours.map_or_else(String::new, |ours| interval(&ours, statistic));
    let value = ours.map_or_else(|| "n/a".to_owned(), |ours| figure(ours.value, row.unit));
    let line = format!("{label:<30} {value:>10} {interval:>21} {theirs:>11}  {mark:<12} {instructions}");
    writeln!(to, "{}", line.trim_end())
}

fn text_of(mark: Mark) -> String {
    match mark {
        Mark::Better(factor) => format!("better {factor:.1}x"),
        Mark::Worse(factor) => format!("WORSE {factor:.1}x"),
        Mark::Alike => "alike".to_owned(),
    }
}

fn interval(ours: &Estimate, statistic: Statistic) -> String {
    if statistic == Statistic::Min {
        return String::new();
    }
    format!("[{}, {}]", number(ours.low), number(ours.high))
}

fn figure(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Ns if value >= 10_000.0 => format!("{} us", number(value / 1_000.0)),
        Unit::Ns | Unit::MillionPerS | Unit::Times => format!("{} {}", number(value), unit.name()),
    }
}

fn number(value: f64) -> String {
    if value.abs() >= 1_000.0 {
        format!("{value:.0}")
    } else if value.abs() >= 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::report::{
        Aim, Bootstrap, Environment, Published, Report, Row, RowText, Samples, Sizes, Statistic, Unit,
    };

    fn report() -> Report {
        let bootstrap = Bootstrap { resamples: 100, seed: 1 };
        let mut samples = Samples::new();
        samples.push_block((0..1_000).map(f64::from).collect());
        samples.push_block((0..1_000).map(f64::from).collect());
        let text = RowText { name: "state_ticker_ns", engine: "market", what: "", unit: Unit::Ns };
        let mut row = Row::of(text, &samples, 1, &bootstrap).expect("there are samples");
        let published = |statistic, value| Published { value, unit: Unit::Ns, statistic, what: "theirs".to_owned() };
        row.aims =
            vec![Aim { statistic: Statistic::P50, at_most: 450.0 }, Aim { statistic: Statistic::P999, at_most: 9.0 }];
        row.sizes = Sizes::of("levels a message", vec![1, 2, 9]);
        row.published = vec![published(Statistic::P50, 310.0), published(Statistic::P99, 1_950.0)];
        let environment = Environment { seed: 1, ..Environment::default() };
        Report { title: "market".to_owned(), quick: true, bootstrap, environment, rows: vec![row] }
    }

    #[test]
    fn table_shows_ours_and_theirs_with_interval_and_mark() {
        let mut text = Vec::new();
        report().write_table(&mut text).expect("a vector takes every byte");
        let text = String::from_utf8(text).expect("UTF-8");
        assert!(text.contains("QUICK run"), "{text}");
        let line = text.lines().find(|line| line.starts_with("state_ticker_ns p50")).expect("the row is there");
        assert!(line.contains("499.0 ns") && line.contains("310.0 ns") && line.contains("WORSE 1.6x"), "{line}");
        let tail = text.lines().find(|line| line.starts_with("  p99.9")).expect("every quantile has a line");
        assert!(tail.contains("n/a"), "{tail}");
        let aims = text.split_once("\naims").expect("the aims stand apart").1;
        let line = |name| aims.lines().find(|line| line.starts_with(name)).expect("each aim has a line");
        assert!(line("state_ticker_ns p50").contains("499.0 ns"), "{aims}");
        assert!(line("state_ticker_ns p50").ends_with("450.0 ns  behind"), "{aims}");
        assert!(line("state_ticker_ns p99.9").ends_with("undecided"), "{aims}");
        assert!(text.contains("levels a message: mean 4.0, p50 2"), "{text}");
    }

    #[test]
    fn summary_holds_the_fields_that_scripts_rely_on() {
        let mut text = Vec::new();
        report().write_json(&mut text).expect("a vector takes every byte");
        let json: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        let row = &json["rows"][0];
        for field in [
            "name",
            "unit",
            "n",
            "mean",
            "ci95",
            "quantiles",
            "published",
            "instructions",
            "batch",
            "notes",
            "aims",
            "sizes",
        ] {
            assert!(row.get(field).is_some(), "{field} is missing");
        }
        assert_eq!((&row["unit"], &row["quantiles"]["p50"]), (&json!("ns"), &json!(499.0)));
        assert_eq!(row["quantiles"]["p99.9"], json!(null));
        assert_eq!(row["published"]["value"], 310.0);
        assert_eq!(row["published"]["mark"], "worse");
        assert_eq!((&row["aims"][0]["verdict"], &row["sizes"]["max"]), (&json!("behind"), &json!(9)));
        assert_eq!(row["also_published"][0]["statistic"], "p99");
        assert_eq!(json["quick"], true);
    }

    #[test]
    fn kept_result_has_as_many_columns_as_names() {
        let mut text = Vec::new();
        report().write_csv(&mut text).expect("a vector takes every byte");
        let text = String::from_utf8(text).expect("UTF-8");
        let columns: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(columns, [columns[0], columns[0]]);
    }
}
