//! The result on a terminal.

use std::io;

use super::{DecompositionResult, Judgement, TermFigures, Verdict};
use crate::report::Estimate;

impl DecompositionResult {
    /// Writes what was found, and what it rests on.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_text(&self, to: &mut impl io::Write) -> io::Result<()> {
        let label = if self.quick { "QUICK run: a trial, not to be kept" } else { "full run" };
        writeln!(to, "truetick bench {}, {}{label}", self.truetick_bench, self.environment.label())?;
        self.environment.write_machine(to)?;
        let rounds: usize = self.processes.iter().map(|process| process.rounds.len()).sum();
        writeln!(
            to,
            "{} fresh processes, {rounds} rounds in all, {} recorded events a run, one in flight, CPUs {} to {}\n",
            self.processes.len(),
            self.events.1,
            self.cpus[0],
            self.cpus[1]
        )?;
        match &self.judgement {
            Some(judgement) => judgement.write(to)?,
            None => writeln!(to, "not judged: too few processes have every build in one placement")?,
        }
        for line in &self.warnings {
            writeln!(to, "! {line}")?;
        }
        self.environment.write_disturbance(to)?;
        writeln!(to, "intervals: 95 %, {} resamples of whole processes", self.resamples)
    }
}

impl Judgement {
    fn write(&self, to: &mut impl io::Write) -> io::Result<()> {
        let explained = 100.0 * self.explained;
        writeln!(
            to,
            "placement {}: placements explain {explained:.0} % of the variance of the medians; {} processes count",
            self.placement, self.processes
        )?;
        writeln!(
            to,
            "two equal builds differ by {}; an effect of {:.1} ns or less is none",
            ns(&self.again_ns),
            self.noise_ns
        )?;
        for term in &self.terms {
            term.write(to)?;
        }
        writeln!(to, "whole     {}", ns(&self.whole_ns))?;
        let verdict = match self.verdict {
            Verdict::Sum => "the terms are a sum",
            Verdict::Bounds => "terms overlap: bounds, no sum",
            Verdict::Refused => "REFUSED: a term's delays do not move the median by their length",
        };
        writeln!(to, "residual  {}, {}; {verdict}", ns(&self.residual_ns), self.residual)
    }
}

impl TermFigures {
    fn write(&self, to: &mut impl io::Write) -> io::Result<()> {
        let [added, left_out] = &self.effects_ns;
        let verdict = match self.verdict {
            Verdict::Sum => "adds".to_owned(),
            Verdict::Bounds => format!("overlaps: from {:.1} to {:.1} ns", self.bounds_ns[0], self.bounds_ns[1]),
            Verdict::Refused => "REFUSED".to_owned(),
        };
        writeln!(to, "{:<9} added {} ({})", self.name, ns(added), self.what[0])?;
        writeln!(to, "          left out {} ({})", ns(left_out), self.what[1])?;
        let missed: Vec<String> = self.missed_ns.iter().map(|missed| format!("{:+.1}", missed.value)).collect();
        let Estimate { value, low, high } = self.slope;
        writeln!(
            to,
            "          delays {}: slope {value:.3} [{low:.3}, {high:.3}], missed by {} ns: {verdict}",
            self.place,
            missed.join(", ")
        )
    }
}

fn ns(estimate: &Estimate) -> String {
    format!("{:.1} [{:.1}, {:.1}] ns", estimate.value, estimate.low, estimate.high)
}
