//! The answer on a terminal.

use std::io;

use super::{Change, StallGroup, Stalls, WhyResult};
use crate::report::{Estimate, TextTable};

impl WhyResult {
    /// Writes the answer, and what it rests on.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_text(&self, to: &mut dyn io::Write) -> io::Result<()> {
        let label = if self.quick { "QUICK run: few events, wide intervals" } else { "full run" };
        writeln!(to, "truetick why, {}{label}", self.environment.label())?;
        if let Some(line) = self.environment.build.warning() {
            writeln!(to, "! {line}")?;
        }
        self.environment.write_machine(to)?;
        writeln!(to, "\n{}", self.sentence())?;
        for line in self.placements() {
            writeln!(to, "{line}")?;
        }
        writeln!(to, "{}\n", self.stalls.sentence())?;
        let tables =
            [(self.parts_table(), 1), (self.stalls.table(), 1), (self.changes_table(), 3), (self.advice_table(), 3)];
        for (table, texts) in &tables {
            writeln!(to, "{}", table.dense(*texts))?;
        }
        for note in self.notes() {
            writeln!(to, "{note}")?;
        }
        for line in &self.warnings {
            writeln!(to, "! {line}")?;
        }
        self.environment.write_disturbance(to)?;
        writeln!(to, "not measured: {}", self.environment.not_measured.join("; "))
    }

    /// What the tables need to be read.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            format!(
                "median and parts: {} interleaved runs in the placement {}, one event in flight, both threads pinned, \
                 ordinary priority; a difference of two equal builds is up to {} ns",
                self.runs,
                self.placement,
                self.parts.as_ref().map_or_else(|| "?".to_owned(), |parts| format!("{:.1}", parts.noise_ns))
            ),
            self.floor_note(),
            format!(
                "stalls: named by {}; the same cores, only spinning, have {:.0} a second",
                self.stalls.source, self.stalls.alone_per_s
            ),
        ];
        notes.extend(self.stalls.would_help.iter().map(|help| format!("to name more stalls: {help}")));
        notes.push(format!("intervals: 95 %, {} resamples of whole runs", self.resamples));
        notes
    }

    /// The result of the check against the physical floor.
    fn floor_note(&self) -> String {
        let Some(floor) = &self.floor else { return "check against the floor: not made, too few rounds".to_owned() };
        let above = floor.quantiles.iter().map(|of| format!("{} {:+.1} ns", of.quantile, of.above_ns.value));
        let above = above.collect::<Vec<_>>().join(", ");
        let failure = floor.failure().map_or_else(|| "holds".to_owned(), |failure| format!("FAILS at {failure}"));
        format!("check against the floor: the ring is above one cache line by {above}: {failure}")
    }

    pub(super) fn parts_table(&self) -> TextTable {
        let mut table = TextTable::new(&["part of the median", "ns", "95 %"]);
        let mut push = |name: &str, ns: &Estimate| {
            table.push(vec![name.to_owned(), format!("{:.1}", ns.value), between(ns)]);
        };
        if let Some(parts) = &self.parts {
            push("one cache line between the cores, with both stamps", &parts.floor_ns);
            push("the ring in its place", &parts.ring_ns[0]);
            // Either way the rows sum to the last one.
            if parts.adds_up {
                push("the evaluator (eight checks) after the ring", &parts.evaluator_ns[1]);
            } else {
                push("the evaluator (eight checks) after the line", &parts.evaluator_ns[0]);
                push("overlap of the two, in which they differ from each alone", &parts.overlap_ns);
            }
        }
        push("all of it", &self.p50_ns);
        push("for comparison: a new order in the gate that ships", &self.gate_ns);
        table
    }

    pub(super) fn changes_table(&self) -> TextTable {
        let mut table = TextTable::new(&["change, tried and undone", "median", "stalls a second"]);
        for change in &self.changes {
            table.push(vec![change.what.clone(), change.gain(), change.stall_rates()]);
        }
        table
    }

    pub(super) fn advice_table(&self) -> TextTable {
        let mut table = TextTable::new(&["setting of the machine, not tried", "now", "what could be done"]);
        for advice in &self.advice {
            table.push(vec![advice.setting.clone(), advice.now.clone(), advice.action.clone()]);
        }
        table
    }
}

impl Change {
    fn gain(&self) -> String {
        match (&self.p50_gain_ns, &self.refused) {
            (_, Some(reason)) => format!("not tried: {reason}"),
            (None, None) => "too few runs".to_owned(),
            (Some(gain), None) if self.is_none => format!("no effect ({:+.1} ns)", -gain.value),
            (Some(gain), None) => {
                let moved = Estimate { value: -gain.value, low: -gain.high, high: -gain.low };
                format!("{:+.1} ns {}", moved.value, between(&moved))
            }
        }
    }

    fn stall_rates(&self) -> String {
        let Some([without, with]) = &self.stalls else { return String::new() };
        let verdict = if without.differs(with) { "" } else { " (no effect)" };
        format!("{:.0} to {:.0}{verdict}", without.per_s(), with.per_s())
    }
}

impl Stalls {
    pub(super) fn table(&self) -> TextTable {
        let over = self.threshold_ns / 1_000.0;
        let head = format!("event above {over} us");
        let mut table = TextTable::new(&[&head, "count", "a second", "share of their time", "longest, us"]);
        let total = self.total();
        let mut push = |name: &str, one: &StallGroup| {
            table.push(vec![
                name.to_owned(),
                one.count.to_string(),
                format!("{:.0}", one.count as f64 / self.seconds.max(f64::MIN_POSITIVE)),
                format!("{:.0} %", 100.0 * one.total_ns / total.total_ns.max(f64::MIN_POSITIVE)),
                format!("{:.1}", one.max_ns / 1_000.0),
            ]);
        };
        for one in &self.names {
            push(one.name.as_deref().unwrap_or("without a name"), one);
        }
        push("all", &total);
        table
    }
}

fn between(ns: &Estimate) -> String {
    format!("[{:.1}, {:.1}]", ns.low, ns.high)
}
