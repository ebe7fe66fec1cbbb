//! Latency and throughput of queues from a file of runs of `tools/rivals/ring`.

use std::collections::HashMap;

use super::{BOOTSTRAP, Lines, number, origin_of_runs};
use crate::report::{Estimate, Runs, Samples, interval, verdict};

/// Aim: p50 of one event as a multiple of the run's own ping-pong, at most.
pub const PER_PING_PONG_MAX: f64 = 1.9;
/// Aim: p50 of one event as a share of the best rival's, at most.
pub const OF_BEST_RIVAL_MAX: f64 = 0.75;
/// Aim: events per second one at a time as a multiple of the best rival's, at least.
pub const FLOW_OVER_BEST_MIN: f64 = 1.4;

const CLASSES: [&str; 3] = ["siblings", "same_cache", "across_caches"];
/// The ring with the same event of 64 bytes as the rivals.
const WIDE: &str = "truetick_wide";
const OURS: &str = "truetick";
const RESTS: &str = "truetick_rests";
/// Runs in a class below which nothing is said of it.
const RUNS_MIN: usize = 10;

type Run = HashMap<String, String>;

pub(super) fn latency(runs: &Runs) -> anyhow::Result<Lines> {
    let headings = [
        "placement (runs)",
        "ping-pong",
        "`hold_next`",
        "56 bytes",
        "64 bytes",
        "best rival",
        "64 bytes / best",
        "aim",
        "result",
    ];
    let mut lines = Lines::new(origin_of_runs(runs)?, 1, &headings);
    for class in CLASSES {
        let of = |queue: &str| medians(runs, "one_way", class, queue);
        let p50 = |queue: &str| mean(&of(queue)).map_or_else(String::new, |p50| number(p50.value));
        let Some((best, theirs)) = best(runs, "one_way", class, f64::min) else { continue };
        let pings: Vec<(u64, f64)> = select(runs, "one_way", class, OURS).filter_map(ping_pong).collect();
        let ratio = BOOTSTRAP.ratio(&pairs(&of(WIDE), &of(&best)));
        let result = ratio.map_or("", |ratio| judged(pings.len(), verdict(ratio, OF_BEST_RIVAL_MAX)));
        lines.push(vec![
            format!("{} ({})", class.replace('_', " "), pings.len()),
            mean(&pings).map_or_else(String::new, |ping| number(ping.value)),
            p50(OURS),
            p50(RESTS),
            p50(WIDE),
            format!("{best} {}", number(theirs)),
            interval(ratio, 3),
            format!("{OF_BEST_RIVAL_MAX}"),
            result.to_owned(),
        ]);
    }
    Ok(lines)
}

pub(super) fn flow(runs: &Runs) -> anyhow::Result<Lines> {
    let headings = ["calls", "placement (runs)", "truetick", "64 bytes", "best rival", "truetick / best rival"];
    let mut lines = Lines::new(origin_of_runs(runs)?, 2, &headings);
    for (row, calls) in [("flow_one", "one event"), ("flow_batches", "up to 64 events")] {
        for class in CLASSES {
            let rates = |queue: &str| rates(runs, row, class, queue);
            let rate = |queue: &str| mean(&rates(queue)).map_or_else(String::new, |rate| number(rate.value));
            let Some((best, theirs)) = best(runs, row, class, f64::max) else { continue };
            let ours = rates(OURS);
            let ratio = BOOTSTRAP.ratio(&pairs(&ours, &rates(&best)));
            lines.push(vec![
                calls.to_owned(),
                format!("{} ({})", class.replace('_', " "), ours.len()),
                rate(OURS),
                rate(WIDE),
                format!("{best} {}", number(theirs)),
                interval(ratio, 2),
            ]);
        }
    }
    Ok(lines)
}

fn judged(runs: usize, verdict: &'static str) -> &'static str {
    if runs < RUNS_MIN { "too few runs" } else { verdict }
}

/// The rival with the best mean in `class`, where `better` chooses.
fn best(runs: &Runs, row: &str, class: &str, better: fn(f64, f64) -> f64) -> Option<(String, f64)> {
    let mut rivals: Vec<&str> = runs.runs.iter().filter_map(|run| run.get("contestant")).map(String::as_str).collect();
    rivals.sort_unstable();
    rivals.dedup();
    // Takes batches at one end: no rival where events go one by one.
    let is_rival =
        |queue: &&str| !queue.starts_with("truetick") && (row == "flow_batches" || *queue != "disruptor_polls");
    let timed = rivals.into_iter().filter(is_rival).filter_map(|queue| {
        let values = if row == "one_way" { medians(runs, row, class, queue) } else { rates(runs, row, class, queue) };
        Some((queue.to_owned(), mean(&values)?.value))
    });
    timed.reduce(|one, other| if better(one.1, other.1) == one.1 { one } else { other })
}

fn select<'a>(runs: &'a Runs, row: &'a str, class: &'a str, queue: &'a str) -> impl Iterator<Item = &'a Run> {
    let is = |run: &Run, key: &str, wanted: &str| run.get(key).is_some_and(|cell| cell == wanted);
    runs.runs.iter().filter(move |run| {
        let is_sound = is(run, "kind", "hand_over") || is(run, "kind", "flow");
        is_sound && is(run, "row", row) && is(run, "class", class) && is(run, "contestant", queue)
    })
}

fn figure(run: &Run, key: &str) -> Option<(u64, f64)> {
    Some((run.get("round")?.parse().ok()?, run.get(key)?.parse().ok()?))
}

/// p50 of one event in nanoseconds, by round.
fn medians(runs: &Runs, row: &str, class: &str, queue: &str) -> Vec<(u64, f64)> {
    select(runs, row, class, queue).filter_map(|run| figure(run, "p50_ns")).collect()
}

/// Million events per second, by round.
fn rates(runs: &Runs, row: &str, class: &str, queue: &str) -> Vec<(u64, f64)> {
    let times = select(runs, row, class, queue).filter_map(|run| figure(run, "ns_per_event"));
    times.map(|(round, ns)| (round, 1e3 / ns)).collect()
}

fn ping_pong(run: &Run) -> Option<(u64, f64)> {
    let ((round, before), (_, after)) = (figure(run, "before_ns")?, figure(run, "after_ns")?);
    Some((round, f64::midpoint(before, after)))
}

fn mean(values: &[(u64, f64)]) -> Option<Estimate> {
    let mut samples = Samples::new();
    values.iter().for_each(|(_, value)| samples.push_block(vec![*value]));
    BOOTSTRAP.mean(&samples)
}

/// Values of the rounds that have both.
fn pairs(ours: &[(u64, f64)], theirs: &[(u64, f64)]) -> Vec<(f64, f64)> {
    let of_round = |round| theirs.iter().find(|(other, _)| *other == round).map(|(_, value)| *value);
    ours.iter().filter_map(|(round, value)| Some((*value, of_round(*round)?))).collect()
}
