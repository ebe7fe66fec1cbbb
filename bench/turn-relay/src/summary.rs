//! From runs to a table: means with intervals, quantiles of merged distributions, ratios to stock coturn.

use tt_report::{Bootstrap, Estimate};

use crate::histogram::Histogram;
use crate::record::{Record, Runs};
use crate::rivals;
use crate::rows::{self, Row, Work};

/// Setting: how often runs are drawn anew for an interval.
const RESAMPLES: u32 = 10_000;
/// Every ratio is one to this server.
const BASE: &str = "coturn";

/// Prints the notes and the table of `runs`.
pub(crate) fn print(runs: &Runs, seed: u64) -> anyhow::Result<()> {
    for note in &runs.notes {
        println!("{note}");
    }
    println!();
    for row in rows::all() {
        let lines = lines(runs, &row, Bootstrap { resamples: RESAMPLES, seed });
        if !lines.is_empty() {
            println!("{}", heading(&row));
            lines.iter().for_each(|line| println!("{line}"));
        }
    }
    Ok(())
}

fn heading(row: &Row) -> String {
    let aim = row.aim.map_or_else(String::new, |aim| format!(", aim for truetick: at most {aim:.2} of coturn"));
    let what = match row.work {
        Work::Memory => "bytes/allocation",
        Work::Cycle => "cycle",
        Work::Traffic { .. } => "datagram",
    };
    format!(
        "\n{}{aim}\n  {:<13} {:>4} {:>10} {:>9} {:>8} {:>8} {:>9} {:>17} {:>8} {:>20} {:>6}",
        row.name,
        "server",
        "runs",
        "per second",
        "lost",
        "p50 us",
        "p99 us",
        "CPU ns",
        what,
        "of core",
        "ratio to coturn",
        "calls"
    )
}

fn lines(runs: &Runs, row: &Row, bootstrap: Bootstrap) -> Vec<String> {
    let of_row = |record: &&Record| record.row == row.name;
    let records: Vec<&Record> = runs.records.iter().filter(of_row).collect();
    let contestants = rivals::ALL.into_iter().map(|contestant| contestant.name());
    contestants.filter_map(|contestant| line(&records, contestant, bootstrap)).collect()
}

fn line(records: &[&Record], contestant: &str, bootstrap: Bootstrap) -> Option<String> {
    let own: Vec<&Record> = records.iter().copied().filter(|record| record.contestant == contestant).collect();
    let last = own.last()?;
    let runs: Vec<&Record> = own.iter().copied().filter(|record| record.kind == "traffic").collect();
    if runs.is_empty() {
        return Some(format!("  {contestant:<13} {}", last.kind));
    }
    let sum = |value: fn(&Record) -> u64| runs.iter().map(|record| value(record)).sum::<u64>();
    let (sent, delivered) = (sum(|record| record.sent), sum(|record| record.delivered));
    let elapsed_ns = sum(|record| record.elapsed_ns);
    let mut latency = Histogram::default();
    runs.iter().for_each(|record| latency.merge(&record.latency));
    let micros = |q: f64| latency.quantile_ns(q).map_or_else(|| "n/a".into(), |ns| format!("{:.1}", ns as f64 / 1e3));
    let cpu: Vec<(f64, f64)> =
        runs.iter().map(|record| ((record.cpu_ns) as f64, record.delivered.max(1) as f64)).collect();
    let calls = own.iter().rfind(|record| record.kind == "calls");
    let calls = calls.map_or_else(|| "-".into(), |record| format!("{:.2}", each(record.calls, record)));
    Some(format!(
        "  {contestant:<13} {:>4} {:>10.0} {:>8.4}% {:>8} {:>8} {:>27} {:>8.2} {:>20} {calls:>6}",
        runs.len(),
        delivered as f64 * 1e9 / elapsed_ns.max(1) as f64,
        100.0 * (sent - delivered) as f64 / sent.max(1) as f64,
        micros(0.5),
        micros(0.99),
        bootstrap.ratio(&cpu).map_or_else(String::new, |estimate| interval(estimate, 0)),
        sum(|record| record.cpu_ns) as f64 / elapsed_ns.max(1) as f64,
        bootstrap.ratio(&pairs(records, contestant)).map_or_else(|| "-".into(), |estimate| interval(estimate, 3)),
    ))
}

/// CPU time each of `contestant` and of the base, in the rounds that have both.
fn pairs(records: &[&Record], contestant: &str) -> Vec<(f64, f64)> {
    let of = |name: &str, round: u64| {
        let wanted = |record: &&&Record| record.contestant == name && record.round == round && record.kind == "traffic";
        records.iter().find(wanted).map(|record| each(record.cpu_ns, record))
    };
    let rounds = records.iter().filter(|record| record.contestant == contestant && record.kind == "traffic");
    rounds.filter_map(|record| Some((of(contestant, record.round)?, of(BASE, record.round)?))).collect()
}

fn each(sum: u64, record: &Record) -> f64 {
    sum as f64 / record.delivered.max(1) as f64
}

fn interval(estimate: Estimate, digits: usize) -> String {
    format!("{:.digits$} [{:.digits$}, {:.digits$}]", estimate.value, estimate.low, estimate.high)
}
