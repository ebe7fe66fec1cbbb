//! From runs to tables: means with intervals, quantiles of merged distributions, ratios to stock coturn.

use bench::report::{Bootstrap, Estimate, Look};

use crate::histogram::Histogram;
use crate::record::{Record, Runs};
use crate::rivals;
use crate::rows::{self, Row, Work};

/// Setting: resamples per interval.
const RESAMPLES: u32 = 10_000;
/// Every ratio is one to this server.
const BASE: &str = "coturn";
/// Who the aims are for.
const OURS: &str = "truetick";

const HEADINGS: [&str; 11] =
    ["row", "server", "runs", "per second", "lost", "p50 us", "p99 us", "cost", "of core", "ratio to coturn", "calls"];

/// Prints the notes and the table of `runs`.
pub(crate) fn print(runs: &Runs, seed: u64, look: Look) {
    let bootstrap = Bootstrap { resamples: RESAMPLES, seed };
    let mut lines: Vec<[String; 11]> = vec![HEADINGS.map(str::to_owned)];
    let mut verdicts = Vec::new();
    for row in rows::all() {
        let records: Vec<&Record> = runs.records.iter().filter(|record| record.row == row.name).collect();
        for contestant in rivals::ALL {
            lines.extend(line(&row, &records, contestant.name(), bootstrap));
        }
        verdicts.extend(verdict(&row, &records, bootstrap));
        verdicts.extend(one_socket(&row, &records, bootstrap));
        verdicts.extend(records.iter().filter(|record| record.kind == "memory").map(|record| resident(record)));
    }
    for note in &runs.notes {
        println!("{note}");
    }
    println!(
        "\ncost: nanoseconds of the server's CPU time for a datagram or a cycle; bytes of an allocation in `memory`\n"
    );
    match look {
        Look::Terminal => print_terminal(&lines),
        Look::Markdown => print_markdown(&lines),
    }
    println!("\n{}", disturbance(&runs.records));
    verdicts.iter().for_each(|verdict| println!("{verdict}"));
}

fn print_terminal(lines: &[[String; 11]]) {
    let widths: Vec<usize> =
        (0..11).map(|at| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0)).collect();
    for (number, line) in lines.iter().enumerate() {
        if number > 0 && line[0] != lines[number - 1][0] {
            println!();
        }
        let cells = line.iter().zip(&widths).enumerate();
        let cells =
            cells.map(|(at, (cell, width))| if at < 2 { format!("{cell:<width$}") } else { format!("{cell:>width$}") });
        println!("{}", cells.collect::<Vec<_>>().join("  "));
    }
}

fn print_markdown(lines: &[[String; 11]]) {
    for (number, line) in lines.iter().enumerate() {
        println!("| {} |", line.join(" | "));
        if number == 0 {
            println!("|---|---|{}", "--:|".repeat(9));
        }
    }
}

fn line(row: &Row, records: &[&Record], contestant: &str, bootstrap: Bootstrap) -> Option<[String; 11]> {
    let own: Vec<&Record> = records.iter().copied().filter(|record| record.contestant == contestant).collect();
    let last = own.last()?;
    let runs: Vec<&Record> = own.iter().copied().filter(|record| cost(record).is_some()).collect();
    let mut cells = [row.name.as_str(), contestant].map(str::to_owned).to_vec();
    if runs.is_empty() {
        cells.push(last.kind.clone());
        cells.resize(11, String::new());
        return cells.try_into().ok();
    }
    cells.push(runs.len().to_string());
    cells.extend(traffic_cells(&runs));
    let costs: Vec<(f64, f64)> = runs.iter().filter_map(|record| cost(record)).collect();
    cells.push(bootstrap.ratio(&costs).map_or_else(String::new, |estimate| interval(estimate, 0)));
    let (cpu_ns, elapsed_ns) = (sum(&runs, |record| record.cpu_ns), sum(&runs, |record| record.elapsed_ns));
    let is_memory = matches!(row.work, Work::Memory | Work::Crowd { .. });
    cells.push(if is_memory { String::new() } else { format!("{:.2}", cpu_ns as f64 / elapsed_ns.max(1) as f64) });
    let ratio = bootstrap.ratio(&pairs(records, contestant));
    cells.push(ratio.map_or_else(String::new, |estimate| interval(estimate, 3)));
    let calls: Vec<&Record> = own.iter().copied().filter(|record| record.kind == "calls").collect();
    let delivered = sum(&calls, |record| record.delivered);
    let calls = sum(&calls, |record| record.calls);
    cells.push(if delivered == 0 { String::new() } else { format!("{:.2}", calls as f64 / delivered as f64) });
    cells.try_into().ok()
}

/// Rate, loss and quantiles.
fn traffic_cells(runs: &[&Record]) -> [String; 4] {
    let elapsed_ns = sum(runs, |record| record.elapsed_ns);
    if elapsed_ns == 0 {
        return std::array::from_fn(|_| String::new());
    }
    let (sent, delivered) = (sum(runs, |record| record.sent), sum(runs, |record| record.delivered));
    let mut latency = Histogram::default();
    runs.iter().for_each(|record| latency.merge(&record.latency));
    let micros = |q: f64| latency.quantile_ns(q).map_or_else(|| "n/a".into(), |ns| format!("{:.1}", ns as f64 / 1e3));
    [
        format!("{:.0}", delivered as f64 * 1e9 / elapsed_ns as f64),
        format!("{:.4} %", 100.0 * (sent - delivered) as f64 / sent.max(1) as f64),
        micros(0.5),
        micros(0.99),
    ]
}

/// Whether truetick's ratio to coturn reaches its aim, judged by the interval.
fn verdict(row: &Row, records: &[&Record], bootstrap: Bootstrap) -> Option<String> {
    let aim = row.aim?;
    let ratio = bootstrap.ratio(&pairs(records, OURS))?;
    let word = match (ratio.low <= aim, ratio.high <= aim) {
        (_, true) => "reached",
        (true, false) => "undecided",
        (false, false) => "missed",
    };
    let name = &row.name;
    Some(format!("{name:18} aim {aim:.2} of coturn: {word}, {}", interval(ratio, 3)))
}

/// Aims of one socket for all relay ports: datagrams as a part of the echo's cost, cycles as a part of truetick's, and
/// all memory.
const ONE_SOCKET_OF_ECHO: f64 = 1.08;
const ONE_SOCKET_OF_CYCLE: f64 = 0.40;
const ONE_SOCKET_BYTES: u64 = 1 << 30;

/// What the prototype with one socket for all relay ports costs against the floor and against truetick.
fn one_socket(row: &Row, records: &[&Record], bootstrap: Bootstrap) -> Vec<String> {
    let is_cycle = row.work == Work::Cycle;
    let (base, aim) = if is_cycle { (OURS, ONE_SOCKET_OF_CYCLE) } else { ("echo", ONE_SOCKET_OF_ECHO) };
    let mut lines = Vec::new();
    for contestant in rivals::ALL.into_iter().filter(|one| one.is_one_socket()) {
        for (base, aim) in [(base, Some(aim)), (OURS, None)] {
            let ratio = bootstrap.ratio(&pairs_of(records, contestant.name(), base));
            let Some(ratio) = ratio.filter(|_| !is_cycle || aim.is_some()) else { continue };
            let (name, one) = (&row.name, contestant.name());
            let aim = aim.map_or_else(String::new, |aim| format!(", aim {aim:.2}"));
            lines.push(format!("{name:18} {one} of {base}: {}{aim}", interval(ratio, 3)));
        }
        let is_crowd = row.work.is_on_demand();
        let crowd = records.iter().find(|record| record.contestant == contestant.name() && record.kind == "memory");
        if let Some(crowd) = crowd.filter(|_| is_crowd) {
            let word = if crowd.resident_all <= ONE_SOCKET_BYTES { "reached" } else { "missed" };
            lines.push(format!("{:18} {} within 1 GiB: {word}", row.name, contestant.name()));
        }
    }
    lines
}

/// What the hypervisor took; where it is more than half a per cent, tails are the machine's.
fn disturbance(records: &[Record]) -> String {
    let stolen: Vec<f64> = records.iter().filter(|record| record.kind == "traffic").map(|run| run.steal_pct).collect();
    let disturbed = stolen.iter().filter(|pct| **pct > 0.5).count();
    let mean = stolen.iter().sum::<f64>() / stolen.len().max(1) as f64;
    let most = stolen.iter().copied().fold(0.0, f64::max);
    format!(
        "stolen by the hypervisor: {mean:.2} % in the mean of {} runs, {most:.2} % at most, more than 0.5 % in {disturbed} of \
         them, whose tails are the machine's and no claim",
        stolen.len()
    )
}

/// Tables that are made at the start cost memory too, though none for one more allocation.
fn resident(record: &Record) -> String {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let Record { contestant, resident_one, resident_all, allocations, .. } = record;
    format!(
        "{} memory of {contestant:13} {:8.1} MiB with one allocation, {:8.1} MiB with {allocations}",
        if record.row == "memory" { "resident" } else { "all" },
        mib(*resident_one),
        mib(*resident_all)
    )
}

/// What a run cost in all, and how many operations shared it.
fn cost(record: &Record) -> Option<(f64, f64)> {
    match record.kind.as_str() {
        "traffic" => Some((record.cpu_ns as f64, record.delivered.max(1) as f64)),
        "memory" => {
            let grown = record.resident_all.saturating_sub(record.resident_one);
            Some((grown as f64, record.allocations.saturating_sub(1).max(1) as f64))
        }
        _ => None,
    }
}

/// The cost of one operation of `contestant` and of coturn, in the rounds that have both.
fn pairs(records: &[&Record], contestant: &str) -> Vec<(f64, f64)> {
    pairs_of(records, contestant, BASE)
}

/// The cost of one operation of `contestant` and of `base`, in the rounds that have both.
fn pairs_of(records: &[&Record], contestant: &str, base: &str) -> Vec<(f64, f64)> {
    let each = |record: &Record| cost(record).map(|(sum, count)| sum / count);
    let base_of = |round: u64| {
        let mut base = records.iter().filter(|record| record.contestant == base && record.round == round);
        base.find_map(|record| each(record))
    };
    let own = records.iter().filter(|record| record.contestant == contestant);
    own.filter_map(|record| Some((each(record)?, base_of(record.round)?))).collect()
}

fn sum(records: &[&Record], value: fn(&Record) -> u64) -> u64 {
    records.iter().map(|record| value(record)).sum()
}

fn interval(estimate: Estimate, digits: usize) -> String {
    format!("{:.digits$} [{:.digits$}, {:.digits$}]", estimate.value, estimate.low, estimate.high)
}
