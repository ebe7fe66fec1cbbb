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

/// The contestant without a queue: both loops, each on its own.
const NO_QUEUE: &str = "no_queue";
/// The contestant that passes cache lines and is no queue. Files before 2026-12-01 lack it.
const LINES: &str = "lines";

const CLASSES: [&str; 3] = ["siblings", "same_cache", "across_caches"];

/// Contestants of a file by what they are.
struct Ours {
    /// The ring with the rivals' event of 64 bytes.
    wide: &'static str,
    /// The ring with its own event of 56 bytes.
    narrow: &'static str,
    /// The one whose idle producer calls `hold_next`.
    holds_next: &'static str,
}

impl Ours {
    const NOW: Self = Self { wide: "truetick_64", narrow: "truetick_56", holds_next: "truetick_64_hold_next" };
    /// Files before 2026-11-29. `truetick_wide` called `hold_next` as well; under load neither end is idle.
    const BEFORE: Self = Self { wide: "truetick_wide", narrow: "truetick_rests", holds_next: "truetick" };

    fn of(runs: &Runs) -> &'static Self {
        let is_there = |name: &str| runs.runs.iter().any(|run| run.get("contestant").is_some_and(|is| is == name));
        if is_there(Self::NOW.wide) { &Self::NOW } else { &Self::BEFORE }
    }
}

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
    let ours = Ours::of(runs);
    for class in CLASSES {
        let of = |queue: &str| medians(runs, "one_way", class, queue);
        let p50 = |queue: &str| mean(&of(queue)).map_or_else(String::new, |p50| number(p50.value));
        let Some((best, theirs)) = best(runs, "one_way", class, f64::min) else { continue };
        let pings: Vec<(u64, f64)> = select(runs, "one_way", class, ours.wide).filter_map(ping_pong).collect();
        let ratio = BOOTSTRAP.ratio(&pairs(&of(ours.wide), &of(&best)));
        let result = ratio.map_or("", |ratio| judged(pings.len(), verdict(ratio, OF_BEST_RIVAL_MAX)));
        lines.push(vec![
            format!("{} ({})", class.replace('_', " "), pings.len()),
            mean(&pings).map_or_else(String::new, |ping| number(ping.value)),
            p50(ours.holds_next),
            p50(ours.narrow),
            p50(ours.wide),
            format!("{best} {}", number(theirs)),
            interval(ratio, 3),
            format!("{OF_BEST_RIVAL_MAX}"),
            result.to_owned(),
        ]);
    }
    Ok(lines)
}

pub(super) fn flow(runs: &Runs) -> anyhow::Result<Lines> {
    let headings = [
        "calls",
        "placement (runs)",
        "no queue",
        "lines",
        "56 bytes",
        "64 bytes",
        "best rival",
        "64 bytes / best rival",
        "64 bytes / lines",
    ];
    let mut lines = Lines::new(origin_of_runs(runs)?, 2, &headings);
    let ours = Ours::of(runs);
    // Under load the idle producer's habit does not show, so the earlier files have one contestant of 56 bytes.
    let narrow = if ours.wide == Ours::NOW.wide { ours.narrow } else { ours.holds_next };
    for (row, calls) in [("flow_one", "one event"), ("flow_batches", "up to 64 events")] {
        for class in CLASSES {
            let rates = |queue: &str| rates(runs, row, class, queue);
            let rate = |queue: &str| mean(&rates(queue)).map_or_else(String::new, |rate| number(rate.value));
            let Some((best, theirs)) = best(runs, row, class, f64::max) else { continue };
            let over = |other: &str| BOOTSTRAP.ratio(&pairs(&rates(ours.wide), &rates(other)));
            lines.push(vec![
                calls.to_owned(),
                format!("{} ({})", class.replace('_', " "), rates(narrow).len()),
                rate(NO_QUEUE),
                rate(LINES),
                rate(narrow),
                rate(ours.wide),
                format!("{best} {}", number(theirs)),
                interval(over(&best), 2),
                interval(over(LINES), 2),
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
    let is_rival = |queue: &&str| {
        !queue.starts_with("truetick")
            && ![NO_QUEUE, LINES].contains(queue)
            && (row == "flow_batches" || *queue != "disruptor_polls")
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// One placement with runs of `contestants`, each with a figure.
    fn runs(contestants: &[(&str, f64)]) -> Runs {
        let mut text = "# machine: A, 2 CPUs, kernel 6, clock source tsc\n# rustc 1, release\n".to_owned();
        text += "date,commit,row,contestant,round,kind,class,before_ns,after_ns,p50_ns,ns_per_event\n";
        for round in 0..12 {
            for (name, ns) in contestants {
                text += &format!("2026-11-30,a,one_way,{name},{round},hand_over,siblings,30,30,{ns},\n");
                for row in ["flow_one", "flow_batches"] {
                    text += &format!("2026-11-30,a,{row},{name},{round},flow,siblings,30,30,,{ns}\n");
                }
            }
        }
        Runs::parse(&text).unwrap()
    }

    #[test]
    fn rivals_are_compared_with_the_ring_of_64_bytes_that_does_not_hold_the_next_line() {
        let ours = [("truetick_64", 90.0), ("truetick_56", 70.0), ("truetick_64_hold_next", 60.0)];
        let runs = runs(&[&ours[..], &[("rtrb", 100.0), (NO_QUEUE, 80.0), (LINES, 50.0)]].concat());
        let latency = latency(&runs).unwrap().markdown();
        assert!(latency.contains("| 60.0 | 70.0 | 90.0 | rtrb 100 | 0.900 ["), "{latency}");
        let flow = flow(&runs).unwrap().markdown();
        for calls in ["one event", "up to 64 events"] {
            let line = format!("| {calls} | siblings (12) | 12.5 | 20.0 | 14.3 | 11.1 | rtrb 10.0 | 1.11 [");
            assert!(flow.contains(&line) && flow.contains("| 0.56 ["), "{flow}");
        }
    }
}
