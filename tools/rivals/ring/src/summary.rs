//! From runs to tables: medians with intervals by placement class, ratios of runs of one round, and the aims.

use anyhow::Context as _;
use bench::report::{Bootstrap, Estimate, Samples};
use bench::report::{Look, Runs, TextTable, interval, verdict};

use crate::distribution::{merged, quantile_reached};
use crate::judging::JUDGES;
use crate::queues::{self, Queue};
use crate::record::Record;
use crate::rows::{self, Row, Work};

/// Setting: resamples per interval.
const RESAMPLES: u32 = 10_000;
/// A class with fewer runs than this is printed, and no aim is judged by it.
const RUNS_MIN: usize = 10;
/// `mixed` comes last, and has no multiple of a ping-pong.
const CLASSES: [&str; 4] = ["siblings", "same_cache", "across_caches", "mixed"];
/// Aims of the ring.
const PER_PING_PONG_MAX: f64 = 1.9;
const OF_BEST_RIVAL_MAX: f64 = 0.75;
const JUDGED_NS_MAX: f64 = 100.0;
const FLOW_OVER_BEST_MIN: f64 = 1.4;

/// Prints the notes, the tables and the aims.
///
/// # Errors
/// A run of the file is not one of ours.
pub(crate) fn print(runs: &Runs, seed: u64, look: Look) -> anyhow::Result<()> {
    let records: Option<Vec<Record>> = runs.runs.iter().map(Record::of).collect();
    let summary = Summary {
        records: records.context("a line of the file is no run of this bench")?,
        bootstrap: Bootstrap { resamples: RESAMPLES, seed },
    };
    runs.notes.iter().for_each(|note| println!("{note}"));
    println!(
        "\none event in flight: nanoseconds; p50 is the mean of the runs' medians, the rest is of all their events\n"
    );
    summary.hand_overs().print(look, 3);
    println!("\nas many events as pass\n");
    summary.flows().print(look, 3);
    println!("\nthe gate alone, one core: nanoseconds an order\n");
    summary.judges().print(look, 2);
    println!();
    summary.aims().iter().for_each(|line| println!("{line}"));
    println!("{}", summary.disturbance());
    Ok(())
}

struct Summary {
    records: Vec<Record>,
    bootstrap: Bootstrap,
}

impl Summary {
    fn hand_overs(&self) -> TextTable {
        let mut table = TextTable::new(&[
            "row",
            "class",
            "queue",
            "runs",
            "ping-pong",
            "min",
            "p50",
            "p95",
            "p99",
            "p99.9",
            "mean",
            "p50 / ping-pong",
            "truetick / it",
        ]);
        for row in rows::ALL.iter().filter(|row| matches!(row.work, Work::OneWay | Work::Judged)) {
            for class in CLASSES {
                for queue in queues::ALL {
                    let own = self.of(row, class, queue.name());
                    if own.is_empty() {
                        continue;
                    }
                    let all = merged(&own.iter().map(|run| run.counts.clone()).collect::<Vec<_>>());
                    let at = |q: f64| quantile_reached(&all, q).map_or_else(|| "n/a".to_owned(), |ns| ns.to_string());
                    let multiple = self.mean(&own, |run| run.p50_ns / run.ping_pong_ns());
                    let mut cells = [row.name, class, queue.name()].map(str::to_owned).to_vec();
                    cells.push(own.len().to_string());
                    cells.push(format!("{:.1}", mean(&own, Record::ping_pong_ns)));
                    cells.push(all.first().map_or_else(String::new, |(ns, _)| ns.to_string()));
                    cells.push(interval(self.mean(&own, |run| run.p50_ns), 1));
                    cells.extend([0.95, 0.99, 0.999].map(at));
                    cells.push(format!("{:.0}", mean(&own, |run| run.mean_ns)));
                    cells.push(if class == "mixed" { String::new() } else { interval(multiple, 2) });
                    cells.push(self.ratio_cell(row, class, Queue::Truetick.name(), queue.name(), false));
                    table.push(cells);
                }
            }
        }
        table
    }

    fn flows(&self) -> TextTable {
        let mut table = TextTable::new(&[
            "row",
            "class",
            "queue",
            "runs",
            "ping-pong",
            "ns an event",
            "M events/s",
            "truetick / it",
        ]);
        for row in rows::ALL.iter().filter(|row| matches!(row.work, Work::One | Work::Batches)) {
            for class in CLASSES {
                for contestant in queues::ALL.map(Queue::name).into_iter().chain([rows::NO_QUEUE, rows::LINES]) {
                    let own = self.of(row, class, contestant);
                    if own.is_empty() {
                        continue;
                    }
                    let mut cells = [row.name, class, contestant].map(str::to_owned).to_vec();
                    cells.push(own.len().to_string());
                    cells.push(format!("{:.1}", mean(&own, Record::ping_pong_ns)));
                    cells.push(format!("{:.2}", mean(&own, |run| run.ns_per_event)));
                    cells.push(interval(self.mean(&own, |run| 1e3 / run.ns_per_event), 1));
                    cells.push(self.ratio_cell(row, class, Queue::Truetick.name(), contestant, true));
                    table.push(cells);
                }
            }
        }
        table
    }

    fn judges(&self) -> TextTable {
        let mut table = TextTable::new(&["row", "judge", "runs", "ns an order", "gate / it"]);
        for row in rows::ALL.iter().filter(|row| matches!(row.work, Work::Judge { .. })) {
            for judge in JUDGES {
                let own = self.of(row, "one", judge.name());
                if own.is_empty() {
                    continue;
                }
                let mut cells = [row.name, judge.name()].map(str::to_owned).to_vec();
                cells.push(own.len().to_string());
                cells.push(interval(self.mean(&own, |run| run.ns_per_event), 2));
                cells.push(self.ratio_cell(row, "one", JUDGES[0].name(), judge.name(), false));
                table.push(cells);
            }
        }
        table
    }

    /// Results against the aims, by placement.
    fn aims(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let ours = Queue::Truetick.name();
        for class in &CLASSES[..3] {
            for row in &rows::ALL {
                let own = self.of(row, class, ours);
                let enough = own.len() >= RUNS_MIN;
                let mut say = |what: &str, estimate: Option<Estimate>, aim: f64, digits: usize| {
                    let Some(estimate) = estimate else { return };
                    let word = if enough { verdict(estimate, aim) } else { "too few runs to say" };
                    let name = row.name;
                    lines.push(format!("{class:14} {name:13} {what}: {word}, {}", interval(Some(estimate), digits)));
                };
                match row.work {
                    Work::OneWay => {
                        let multiple = self.mean(&own, |run| run.p50_ns / run.ping_pong_ns());
                        say("p50 at most 1.9 of the ping-pong", multiple, PER_PING_PONG_MAX, 2);
                        if let Some((best, ratio)) = self.best_rival(row, class) {
                            say(
                                &format!("p50 at most 0.75 of {best}'s, the best rival"),
                                Some(ratio),
                                OF_BEST_RIVAL_MAX,
                                3,
                            );
                        }
                    }
                    Work::Judged if *class == "same_cache" => {
                        say("p50 at most 100 ns", self.mean(&own, |run| run.p50_ns), JUDGED_NS_MAX, 1);
                    }
                    Work::One => {
                        if let Some((best, ratio)) = self.best_rival(row, class) {
                            let what = format!("time of an event at most 1/1.4 of {best}'s, the best rival");
                            say(&what, Some(ratio), 1.0 / FLOW_OVER_BEST_MIN, 3);
                        }
                    }
                    Work::Judged | Work::Batches | Work::Judge { .. } => {}
                }
            }
        }
        lines
    }

    /// The rival that is quickest in the mean, and truetick's part of its time in the same rounds.
    fn best_rival(&self, row: &Row, class: &str) -> Option<(&'static str, Estimate)> {
        let is_one_at_a_time = |queue: &Queue| row.work != Work::One || queue.passes_one();
        let rivals = queues::ALL.into_iter().filter(|queue| queue.is_rival()).filter(is_one_at_a_time);
        let timed = rivals.filter_map(|queue| {
            let own = self.of(row, class, queue.name());
            (!own.is_empty()).then(|| (queue.name(), mean(&own, Record::figure_ns)))
        });
        let (best, _) = timed.min_by(|one, other| one.1.total_cmp(&other.1))?;
        Some((best, self.ratio(row, class, Queue::Truetick.name(), best)?))
    }

    /// Sound runs of `contestant`.
    fn of(&self, row: &Row, class: &str, contestant: &str) -> Vec<&Record> {
        let is_wanted =
            |run: &&Record| run.is_sound() && run.row == row.name && run.class == class && run.contestant == contestant;
        self.records.iter().filter(is_wanted).collect()
    }

    fn mean(&self, runs: &[&Record], value: impl Fn(&Record) -> f64) -> Option<Estimate> {
        let mut samples = Samples::new();
        runs.iter().for_each(|run| samples.push_block(vec![value(run)]));
        self.bootstrap.mean(&samples)
    }

    /// Times of `ours` and `theirs` in the rounds in which both ran in `class`.
    fn pairs(&self, row: &Row, class: &str, ours: &str, theirs: &str) -> Vec<(f64, f64)> {
        let theirs = self.of(row, class, theirs);
        let pair = |own: &Record| {
            let other = theirs.iter().find(|other| other.round == own.round)?;
            Some((own.figure_ns(), other.figure_ns()))
        };
        self.of(row, class, ours).into_iter().filter_map(pair).collect()
    }

    fn ratio(&self, row: &Row, class: &str, ours: &str, theirs: &str) -> Option<Estimate> {
        self.bootstrap.ratio(&self.pairs(row, class, ours, theirs))
    }

    /// A ratio of times, or of rates, with the number of pairs behind it.
    fn ratio_cell(&self, row: &Row, class: &str, ours: &str, theirs: &str, is_rate: bool) -> String {
        if ours == theirs {
            return String::new();
        }
        let mut pairs = self.pairs(row, class, ours, theirs);
        if is_rate {
            pairs.iter_mut().for_each(|(own, other)| (*own, *other) = (1.0 / *own, 1.0 / *other));
        }
        let ratio = self.bootstrap.ratio(&pairs);
        ratio.map_or_else(String::new, |ratio| format!("{} of {}", interval(Some(ratio), 3), pairs.len()))
    }

    /// Runs that do not count, and what the hypervisor took.
    fn disturbance(&self) -> String {
        let void: Vec<String> = self.records.iter().filter(|run| !run.is_sound()).map(|run| run.kind.clone()).collect();
        let mixed = self.records.iter().filter(|run| run.class == "mixed").count();
        let stolen: f64 = self.records.iter().map(|run| run.steal_pct).sum();
        let most = self.records.iter().map(|run| run.steal_pct).fold(0.0, f64::max);
        format!(
            "{} runs: {mixed} mixed (the cores were moved meanwhile), {} void{}; stolen by the hypervisor {:.2} % in the mean, \
             {most:.2} % at most: tails beyond p99 are the machine's",
            self.records.len(),
            void.len(),
            void.first().map_or_else(String::new, |reason| format!(" ({reason})")),
            stolen / self.records.len().max(1) as f64
        )
    }
}

fn mean(runs: &[&Record], value: impl Fn(&Record) -> f64) -> f64 {
    runs.iter().map(|run| value(run)).sum::<f64>() / runs.len().max(1) as f64
}
