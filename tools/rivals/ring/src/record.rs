//! One run as a line of the file of runs.

use std::collections::HashMap;

use crate::distribution;

pub(crate) const COLUMNS: [&str; 16] = [
    "date",
    "commit",
    "row",
    "contestant",
    "round",
    "kind",
    "class",
    "before_ns",
    "after_ns",
    "events",
    "p50_ns",
    "mean_ns",
    "ns_per_event",
    "faults",
    "steal_pct",
    "ns_and_counts",
];

/// One run of one row by one contestant.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Record {
    /// Runs of one invocation carry its date, UTC.
    pub(crate) date: String,
    pub(crate) commit: String,
    pub(crate) row: String,
    pub(crate) contestant: String,
    /// Contestants of one round ran one after the other.
    pub(crate) round: u64,
    /// `hand_over`, `flow`, `judge`, or why the run is void.
    pub(crate) kind: String,
    /// How far the cores were apart; `mixed` where the probes disagree, `one` for a single core.
    pub(crate) class: String,
    pub(crate) before_ns: f64,
    pub(crate) after_ns: f64,
    /// Events that the figures are of.
    pub(crate) events: u64,
    pub(crate) p50_ns: f64,
    pub(crate) mean_ns: f64,
    pub(crate) ns_per_event: f64,
    pub(crate) faults: u64,
    /// What the hypervisor took from the machine meanwhile, per cent.
    pub(crate) steal_pct: f64,
    /// Times of a hand-over and how often.
    pub(crate) counts: Vec<(u64, u64)>,
}

impl Record {
    pub(crate) fn line(&self) -> Vec<String> {
        let counts: Vec<(f64, u64)> = self.counts.iter().map(|(ns, count)| (*ns as f64, *count)).collect();
        let mut cells = [&self.date, &self.commit, &self.row, &self.contestant].map(Clone::clone).to_vec();
        cells.push(self.round.to_string());
        cells.extend([self.kind.clone(), self.class.clone()]);
        cells.extend([self.before_ns, self.after_ns].map(|ns| format!("{ns:.2}")));
        cells.push(self.events.to_string());
        cells.extend([self.p50_ns, self.mean_ns, self.ns_per_event].map(|ns| format!("{ns:.3}")));
        cells.push(self.faults.to_string());
        cells.push(format!("{:.2}", self.steal_pct));
        cells.push(distribution::encode(&counts));
        cells
    }

    pub(crate) fn of(cells: &HashMap<String, String>) -> Option<Self> {
        let text = |key: &str| cells.get(key).cloned();
        let number = |key: &str| cells.get(key)?.parse::<f64>().ok();
        let count = |key: &str| cells.get(key)?.parse::<u64>().ok();
        Some(Self {
            date: text("date")?,
            commit: text("commit")?,
            row: text("row")?,
            contestant: text("contestant")?,
            round: count("round")?,
            kind: text("kind")?,
            class: text("class")?,
            before_ns: number("before_ns")?,
            after_ns: number("after_ns")?,
            events: count("events")?,
            p50_ns: number("p50_ns")?,
            mean_ns: number("mean_ns")?,
            ns_per_event: number("ns_per_event")?,
            faults: count("faults")?,
            steal_pct: number("steal_pct")?,
            counts: distribution::decode(cells.get("ns_and_counts")?)?,
        })
    }

    /// Whether its figures count.
    pub(crate) fn is_sound(&self) -> bool {
        matches!(self.kind.as_str(), "hand_over" | "flow" | "judge")
    }

    /// What the row is about: the median of a hand-over, else the time of one event.
    pub(crate) fn figure_ns(&self) -> f64 {
        if self.kind == "hand_over" { self.p50_ns } else { self.ns_per_event }
    }

    pub(crate) fn ping_pong_ns(&self) -> f64 {
        f64::midpoint(self.before_ns, self.after_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, Record};

    #[test]
    fn a_line_reads_back_as_it_was_written() {
        let mut record = Record { row: "one_way".into(), kind: "hand_over".into(), round: 3, ..Record::default() };
        (record.before_ns, record.p50_ns, record.events) = (46.25, 80.125, 50_000);
        record.counts = vec![(70, 3), (80, 40_000), (1_200, 9)];
        let cells = COLUMNS.iter().map(|column| (*column).to_owned()).zip(record.line()).collect();
        assert_eq!(record.line().len(), COLUMNS.len());
        assert_eq!(Record::of(&cells), Some(record));
    }
}
