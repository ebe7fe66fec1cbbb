//! One line for each run, appended as soon as it is over.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};

use crate::histogram::Histogram;

/// One run of one row against one server.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Record {
    /// Runs of one invocation carry its date, UTC.
    pub(crate) date: String,
    pub(crate) commit: String,
    pub(crate) row: String,
    pub(crate) contestant: String,
    /// Rivals of one round ran one after the other.
    pub(crate) round: u64,
    /// `traffic`, `calls` (system calls were counted, nothing else holds), `memory`, or why there is no run.
    pub(crate) kind: String,
    /// Datagrams, or cycles.
    pub(crate) sent: u64,
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
    pub(crate) duplicated: u64,
    pub(crate) late: u64,
    pub(crate) reordered: u64,
    pub(crate) corrupt: u64,
    pub(crate) astray: u64,
    pub(crate) refused: u64,
    pub(crate) elapsed_ns: u64,
    /// CPU time of the server's process.
    pub(crate) cpu_ns: u64,
    /// CPU time of the kernel's thread for deferred network work on the server's core.
    pub(crate) deferred_ns: u64,
    /// What the hypervisor took from the machine meanwhile, per cent.
    pub(crate) steal_pct: f64,
    /// System calls of the server, where they were counted.
    pub(crate) calls: u64,
    /// Resident bytes with one allocation and with all of them, and how many those are.
    pub(crate) resident_one: u64,
    pub(crate) resident_all: u64,
    pub(crate) allocations: u64,
    pub(crate) latency: Histogram,
}

const COLUMNS: &str = "date,commit,row,contestant,round,kind,sent,delivered,lost,duplicated,late,reordered,corrupt,\
                       astray,refused,elapsed_ns,cpu_ns,deferred_ns,steal_pct,calls,resident_one,resident_all,\
                       allocations,latency_max_ns_and_bucket_counts";

impl Record {
    fn line(&self) -> String {
        let texts = [&self.date, &self.commit, &self.row, &self.contestant].map(|text| text.replace(',', ";"));
        let numbers = [
            self.sent,
            self.delivered,
            self.lost,
            self.duplicated,
            self.late,
            self.reordered,
            self.corrupt,
            self.astray,
            self.refused,
            self.elapsed_ns,
            self.cpu_ns,
            self.deferred_ns,
        ]
        .map(|number| number.to_string());
        let more =
            [self.calls, self.resident_one, self.resident_all, self.allocations].map(|number| number.to_string());
        let kind = self.kind.replace(',', ";");
        format!(
            "{},{},{kind},{},{:.3},{},{}",
            texts.join(","),
            self.round,
            numbers.join(","),
            self.steal_pct,
            more.join(","),
            self.latency.encode()
        )
    }

    fn of_line(line: &str) -> Option<Self> {
        let cells: Vec<&str> = line.split(',').collect();
        let [date, commit, row, contestant, round, kind, rest @ ..] = cells.as_slice() else { return None };
        let number = |at: usize| -> Option<u64> { rest.get(at)?.parse().ok() };
        Some(Self {
            date: (*date).to_owned(),
            commit: (*commit).to_owned(),
            row: (*row).to_owned(),
            contestant: (*contestant).to_owned(),
            round: round.parse().ok()?,
            kind: (*kind).to_owned(),
            sent: number(0)?,
            delivered: number(1)?,
            lost: number(2)?,
            duplicated: number(3)?,
            late: number(4)?,
            reordered: number(5)?,
            corrupt: number(6)?,
            astray: number(7)?,
            refused: number(8)?,
            elapsed_ns: number(9)?,
            cpu_ns: number(10)?,
            deferred_ns: number(11)?,
            steal_pct: rest.get(12)?.parse().ok()?,
            calls: number(13)?,
            resident_one: number(14)?,
            resident_all: number(15)?,
            allocations: number(16)?,
            latency: Histogram::decode(rest.get(17)?)?,
        })
    }
}

/// A file of runs: lines of notes that begin with `#`, the names of the columns, one line a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    pub(crate) notes: Vec<String>,
    pub(crate) records: Vec<Record>,
}

impl Runs {
    /// Reads `path`; an absent file holds no runs.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let mut runs = Self::default();
        if !path.exists() {
            return Ok(runs);
        }
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        for (number, line) in text.lines().enumerate() {
            if let Some(note) = line.strip_prefix("# ") {
                runs.notes.push(note.to_owned());
            } else if line != COLUMNS {
                let Some(record) = Record::of_line(line) else { bail!("{}:{}: not a run", path.display(), number + 1) };
                runs.records.push(record);
            }
        }
        Ok(runs)
    }
}

/// Appends notes or runs to `path`.
pub(crate) fn append(path: &Path, notes: &[String], records: &[Record]) -> anyhow::Result<()> {
    let is_new = !path.exists();
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    let mut text = String::new();
    for note in notes {
        text += &format!("# {note}\n");
    }
    if is_new {
        text += &format!("{COLUMNS}\n");
    }
    for record in records {
        text += &format!("{}\n", record.line());
    }
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, Record};
    use crate::histogram::Histogram;

    #[test]
    fn a_line_reads_back_as_it_was_written() {
        let mut record = Record { row: "to_peer_160_1".into(), kind: "traffic".into(), round: 3, ..Record::default() };
        (record.sent, record.delivered, record.lost, record.deferred_ns) = (10, 8, 2, 77);
        (record.calls, record.allocations, record.steal_pct) = (5, 10_000, 0.125);
        record.latency = Histogram::default();
        record.latency.record(12_345);
        assert_eq!(record.line().split(',').count(), COLUMNS.split(',').count());
        assert_eq!(Record::of_line(&record.line()), Some(record));
    }
}
