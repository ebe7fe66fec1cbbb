//! Series of numbers: a point a second.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};
use tt_status::accounting::Count;

use super::SECONDS;
use crate::snapshot::Snapshot;

/// The series. A rate counts since the point before, a level is as it was.
const SERIES: [(&str, bool); 13] = [
    ("turn_datagrams", true),
    ("turn_to_peers_bytes", true),
    ("turn_to_clients_bytes", true),
    ("turn_failed_logins", true),
    ("turn_refused", true),
    ("turn_allocations", false),
    ("market_frames", true),
    ("market_incidents", true),
    ("market_books_proven", false),
    ("risk_accepted", true),
    ("risk_rejected", true),
    ("machine_cpu_ms", true),
    ("machine_resident_bytes", false),
];

type Values = [u64; SERIES.len()];

#[derive(Debug)]
struct Point {
    at_ms: u64,
    values: [u32; SERIES.len()],
}

#[derive(Debug, Default)]
pub(super) struct Points {
    points: VecDeque<Point>,
    /// The totals of the newest point.
    last: Option<(u64, Values)>,
    /// Series of parts that run.
    present: [bool; SERIES.len()],
}

/// Totals and levels in the order of [`SERIES`]; `None` of parts that do not run.
fn totals(snapshot: &Snapshot) -> [Option<u64>; SERIES.len()] {
    let sum = |counts: &[Count]| counts.iter().map(|count| count.count).sum::<u64>();
    let (turn, market, risk) = (snapshot.turn.as_ref(), snapshot.market.as_ref(), snapshot.risk.as_ref());
    let machine = snapshot.machine.as_ref();
    let outcome = |index: usize| risk.map(|risk| risk.ledger.outcomes.get(index).map_or(0, |count| count.count));
    [
        turn.map(|turn| turn.ledger.input),
        turn.map(|turn| turn.allocations.to_peers_bytes),
        turn.map(|turn| turn.allocations.to_clients_bytes),
        turn.map(|turn| turn.failed_logins),
        turn.map(|turn| sum(&turn.refusals)),
        turn.map(|turn| turn.allocations.live),
        market.map(|market| market.ledger.input),
        market.map(|market| market.feeds.iter().map(|feed| feed.resyncs).sum()),
        market.map(|market| market.books.iter().filter(|book| book.is_proven()).count() as u64),
        outcome(0),
        outcome(1),
        machine.map(|machine| machine.cpu_ms),
        machine.map(|machine| machine.rss_bytes),
    ]
}

impl Points {
    pub(super) fn take(&mut self, snapshot: &Snapshot) {
        let at_ms = snapshot.at_unix_ms;
        // A quarter less: snapshots are not taken at exact times.
        if self.last.is_some_and(|(last_ms, _)| at_ms.saturating_sub(last_ms) < 875) {
            return;
        }
        let found = totals(snapshot);
        let now = found.map(|value| value.unwrap_or(0));
        for (is_present, value) in self.present.iter_mut().zip(found) {
            *is_present |= value.is_some();
        }
        if let Some((last_ms, before)) = self.last.replace((at_ms, now)) {
            let elapsed_ms = at_ms.saturating_sub(last_ms).max(1);
            let mut values = [0; SERIES.len()];
            for (index, value) in values.iter_mut().enumerate() {
                let (now, before) = (now[index], before[index]);
                let shown = if SERIES[index].1 { now.saturating_sub(before) * 1_000 / elapsed_ms } else { now };
                let unit = if SERIES[index].0.ends_with("resident_bytes") { 1_024 } else { 1 };
                *value = u32::try_from(shown / unit).unwrap_or(u32::MAX);
            }
            if self.points.len() == SECONDS {
                self.points.pop_front();
            }
            self.points.push_back(Point { at_ms, values });
        }
    }

    /// The last `seconds`, a value for each `step`: means of rates, the highest of levels.
    pub(super) fn answer(&self, seconds: usize, step: usize) -> Value {
        let kept = self.points.len().min(seconds);
        let points: Vec<&Point> = self.points.range(self.points.len() - kept..).collect();
        let steps: Vec<&[&Point]> = points.rchunks(step).rev().collect();
        let at: Vec<u64> = steps.iter().filter_map(|step| step.last()).map(|point| point.at_ms).collect();
        let mut series = Map::new();
        for (index, (name, is_rate)) in SERIES.into_iter().enumerate().filter(|(index, _)| self.present[*index]) {
            let unit = if name.ends_with("resident_bytes") { 1_024 } else { 1 };
            let values = steps.iter().map(|step| {
                let each = step.iter().map(|point| u64::from(point.values[index]) * unit);
                if is_rate { each.sum::<u64>() / step.len() as u64 } else { each.max().unwrap_or(0) }
            });
            let name = if is_rate { format!("{name}_per_s") } else { name.to_owned() };
            series.insert(name, values.collect());
        }
        json!({ "step_s": step, "at_unix_ms": at, "series": series })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_status::machine::MachineStatus;

    fn snapshot(at_unix_ms: u64, cpu_ms: u64, rss_bytes: u64) -> Snapshot {
        let machine = MachineStatus {
            version: "",
            build: "debug",
            arch: "",
            cpu: String::new(),
            cores: 1,
            kernel: String::new(),
            governor: None,
            uptime_ms: 0,
            rss_bytes,
            cpu_ms,
            threads: 1,
        };
        Snapshot { at_unix_ms, machine: Some(machine), ..Snapshot::default() }
    }

    #[test]
    fn an_hour_is_kept_as_rates_and_levels() {
        let mut points = Points::default();
        for second in 0..5_000 {
            points.take(&snapshot(second * 1_000, second * 20, second << 10));
            points.take(&snapshot(second * 1_000 + 250, 0, 0));
        }
        assert_eq!(points.points.len(), SECONDS);
        let answer = points.answer(4, 2);
        assert_eq!(answer["at_unix_ms"], json!([4_997_000, 4_999_000]));
        assert_eq!(answer["series"]["machine_cpu_ms_per_s"], json!([20, 20]));
        assert_eq!(answer["series"]["machine_resident_bytes"], json!([4_997 << 10, 4_999 << 10]));
        assert!(answer["series"].get("turn_datagrams_per_s").is_none(), "no TURN server runs: {answer}");
    }
}
