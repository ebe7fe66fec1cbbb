//! CPU time of TURN servers from a file of runs of `tools/rivals/turn`.

pub(super) mod veth;

use std::collections::HashMap;

use anyhow::Context as _;

use super::{BOOTSTRAP, Lines, number, origin_of_runs};
use crate::report::{Estimate, Runs, interval, verdict};

/// Every ratio is one to this server.
const BASE: &str = "coturn";
const OURS: &str = "truetick";
/// The other servers with their headings; a file without runs of one has no column for it.
const OTHERS: [(&str, &str); 8] = [
    ("echo", "echo"),
    ("coturn_again", "again"),
    ("coturn_tuned", "tuned"),
    ("other_coturn", "other"),
    ("other_tuned", "other tuned"),
    ("other_multiplexed", "multiplexed"),
    ("turn_rs", "turn-server"),
    ("pion", "pion"),
];

/// Returns the share of stock coturn's cost that truetick aims at in `row`.
#[must_use]
pub fn aim(row: &str) -> Option<f64> {
    match row {
        "cycle" => Some(0.35),
        "memory" => Some(0.15),
        _ if row.starts_with("binding_") => Some(0.75),
        _ if row.starts_with("to_peer_") => Some(0.92),
        _ if row.starts_with("from_peer_") && row.ends_with("_100") => Some(0.70),
        _ if row.starts_with("clients_") => Some(0.45),
        _ if row.starts_with("train_") => Some(0.35),
        _ => None,
    }
}

type Run = HashMap<String, String>;

pub(super) fn lines(runs: &Runs) -> anyhow::Result<Lines> {
    let has_runs = |server: &str| runs.runs.iter().any(|run| run.get("contestant").is_some_and(|it| it == server));
    let others: Vec<(&str, &str)> = OTHERS.into_iter().filter(|(server, _)| has_runs(server)).collect();
    let mut headings = vec!["row", "coturn", "truetick", "truetick / coturn", "aim", "result"];
    headings.extend(others.iter().map(|(_, heading)| heading));
    let mut lines = Lines::new(origin_of_runs(runs)?, 1, &headings);
    for row in rows(runs) {
        let of = |server: &str| {
            let wanted =
                |run: &&Run| run.get("row") == Some(&row) && run.get("contestant").is_some_and(|it| it == server);
            runs.runs.iter().filter(wanted).filter_map(cost).collect::<Vec<Cost>>()
        };
        let (base, ours) = (of(BASE), of(OURS));
        let ratio = BOOTSTRAP.ratio(&pairs(&ours, &base)).with_context(|| format!("{row}: no runs"))?;
        let aim = aim(&row);
        let mut cells = vec![format!("`{row}`"), mean(&base), mean(&ours), interval(Some(ratio), 3)];
        cells.push(aim.map_or_else(String::new, |aim| format!("{aim:.2}")));
        cells.push(aim.map_or_else(String::new, |aim| verdict(ratio, aim).to_owned()));
        cells.extend(others.iter().map(|(server, _)| {
            let ratio = BOOTSTRAP.ratio(&pairs(&of(server), &base));
            ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.2}", ratio.value))
        }));
        lines.push(cells);
    }
    Ok(lines)
}

/// The prototype with one socket for all relay ports, as its aims measure it.
const ONE: &str = "one_raw";
/// Its aim for a datagram, as a part of the echo's cost.
const ONE_AIM: f64 = 1.08;
/// Servers whose ratio to the echo is shown next to it, with their headings.
const NEXT_TO_ONE: [(&str, &str); 3] =
    [("one_mark", "marks"), ("one_pool", "pool"), ("other_multiplexed", "multiplexed")];

/// The shipped server whose relays share a socket, with the prototype next to it.
const SHARED: &str = "truetick_shared";
const NEXT_TO_SHARED: [(&str, &str); 1] = [(ONE, "prototype")];

/// What one socket for all relay ports costs: datagrams against the echo, allocation cycles against truetick.
pub(super) fn one_socket(runs: &Runs) -> anyhow::Result<Lines> {
    let headings = ["row", "echo", "truetick", "one socket", "one / echo", "aim 1.08", "one / truetick"];
    against_echo(runs, ONE, &headings, &NEXT_TO_ONE)
}

/// The same of the shipped server whose relays share a socket.
pub(super) fn shared_sockets(runs: &Runs) -> anyhow::Result<Lines> {
    let headings = ["row", "echo", "each", "shared", "shared / echo", "aim 1.08", "shared / each"];
    against_echo(runs, SHARED, &headings, &NEXT_TO_SHARED)
}

fn against_echo(
    runs: &Runs,
    server: &str,
    headings: &[&str],
    next_to_it: &[(&'static str, &'static str)],
) -> anyhow::Result<Lines> {
    let has_runs = |server: &str| runs.runs.iter().any(|run| run.get("contestant").is_some_and(|it| it == server));
    let others: Vec<(&str, &str)> = next_to_it.iter().copied().filter(|(server, _)| has_runs(server)).collect();
    let mut headings = headings.to_vec();
    headings.extend(others.iter().map(|(_, heading)| *heading));
    let mut lines = Lines::new(origin_of_runs(runs)?, 1, &headings);
    for row in rows_of(runs, server) {
        let of = |server: &str| {
            let wanted =
                |run: &&Run| run.get("row") == Some(&row) && run.get("contestant").is_some_and(|it| it == server);
            runs.runs.iter().filter(wanted).filter_map(cost).collect::<Vec<Cost>>()
        };
        let (echo, ours, one) = (of("echo"), of(OURS), of(server));
        let mut cells = vec![format!("`{row}`")];
        cells.extend([&echo, &ours, &one].map(|costs| if costs.is_empty() { String::new() } else { mean(costs) }));
        let of_echo = median(&pairs(&one, &echo));
        cells.push(interval(of_echo, 3));
        cells.push(of_echo.map_or_else(String::new, |ratio| verdict(ratio, ONE_AIM).to_owned()));
        cells.push(interval(median(&pairs(&one, &ours)), 3));
        cells.extend(others.iter().map(|(server, _)| {
            let ratio = median(&pairs(&of(server), &echo));
            ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.2}", ratio.value))
        }));
        lines.push(cells);
    }
    Ok(lines)
}

/// The median of the ratios of the rounds, with the order statistics between which it is at 95 % (sign test). A round in
/// which the machine stood still does not move it.
fn median(pairs: &[(f64, f64)]) -> Option<Estimate> {
    let mut ratios: Vec<f64> = pairs.iter().map(|(ours, base)| ours / base).collect();
    ratios.sort_by(f64::total_cmp);
    let count = ratios.len();
    let middle = ratios.get(count / 2)?;
    let value = if count % 2 == 1 { *middle } else { f64::midpoint(ratios[count / 2 - 1], *middle) };
    // Ratios below the lower end: as many as fair coins show heads at most in 2.5 % of the cases.
    let (mut below, mut term) = (0, 0.5_f64.powi(count as i32));
    let mut sum = term;
    while sum <= 0.025 {
        below += 1;
        term *= (count - below + 1) as f64 / below as f64;
        sum += term;
    }
    let low = below.saturating_sub(1);
    Some(Estimate { value, low: ratios[low], high: ratios[count - 1 - low] })
}

/// The names of the rows with a cost of truetick, in the order of the notes' campaign.
fn rows(runs: &Runs) -> Vec<String> {
    rows_of(runs, OURS)
}

/// The same of any server.
fn rows_of(runs: &Runs, server: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let is_ours = |run: &&Run| run.get("contestant").is_some_and(|it| it == server) && cost(run).is_some();
    for run in runs.runs.iter().filter(is_ours) {
        if let Some(row) = run.get("row").filter(|row| !names.contains(row)) {
            names.push(row.clone());
        }
    }
    names.sort_by_key(|name| (order(name), length(name)));
    names
}

const ORDER: [&str; 8] = ["binding_", "to_peer_", "from_peer_", "clients_", "train_", "open_", "spray_", "cycle"];

fn order(name: &str) -> usize {
    ORDER.iter().position(|start| name.starts_with(start)).unwrap_or(ORDER.len())
}

/// Payload and flows of a row's name.
fn length(name: &str) -> Vec<u64> {
    name.split('_').filter_map(|word| word.parse().ok()).collect()
}

/// The cost of a run: nanoseconds of CPU time, or bytes; the operations that share it; the round.
struct Cost {
    sum: f64,
    count: f64,
    round: u64,
}

fn cost(run: &Run) -> Option<Cost> {
    let figure = |key: &str| run.get(key)?.parse::<f64>().ok();
    let round = run.get("round")?.parse().ok()?;
    match run.get("kind")?.as_str() {
        "traffic" => Some(Cost { sum: figure("cpu_ns")?, count: figure("delivered")?.max(1.0), round }),
        "memory" => {
            let grown = (figure("resident_all")? - figure("resident_one")?).max(0.0);
            Some(Cost { sum: grown, count: (figure("allocations")? - 1.0).max(1.0), round })
        }
        _ => None,
    }
}

fn mean(costs: &[Cost]) -> String {
    let (sum, count) = costs.iter().fold((0.0, 0.0), |(sum, count), cost| (sum + cost.sum, count + cost.count));
    number(sum / count)
}

/// Costs of one operation in the rounds that have both.
fn pairs(ours: &[Cost], base: &[Cost]) -> Vec<(f64, f64)> {
    let each = |cost: &Cost| cost.sum / cost.count;
    let of_round = |round| base.iter().find(|cost| cost.round == round).map(each);
    ours.iter().filter_map(|cost| Some((each(cost), of_round(cost.round)?))).collect()
}
