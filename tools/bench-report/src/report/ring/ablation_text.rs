//! The ablation as text.

use std::io;

use super::text::interval;
use super::{Ablation, AblationStep, StepFigures};
use crate::report::Source;

/// Columns of the longest bar.
const BAR: f64 = 40.0;

impl Ablation {
    /// Writes a table of the steps, bars of the cumulative medians, and what each step is worth on the final build.
    pub(super) fn write(&self, to: &mut dyn io::Write) -> io::Result<()> {
        writeln!(
            to,
            "\nablation: {} interleaved runs of each build, {} events each, medians of runs in {}",
            self.runs, self.events, self.class
        )?;
        writeln!(
            to,
            "  {:<20} {:>9} {:>8} {:>16} {:>18} {:>9} {:>20}",
            "step", "published", "p50", "95 % interval", "against the last", "p99", "left out of final"
        )?;
        for step in &self.steps {
            step.write(to)?;
        }
        let worst = self.steps.iter().map(|step| step.cumulative.p50_ns.value).fold(1.0, f64::max);
        writeln!(to)?;
        for step in &self.steps {
            write_bar(to, &format!("{:>2} {}", step.number, step.name), step.cumulative.p50_ns.value, worst)?;
        }
        writeln!(to)?;
        for step in &self.steps {
            writeln!(to, "  {:>2} {}: {}. {}", step.number, step.name.replace('_', " "), step.what, step.note)?;
            writeln!(
                to,
                "     {}{}",
                items("code: ", step.sources),
                items("; without the step: ", step.sources_without)
            )?;
        }
        let sources: Vec<&str> = self.steps.iter().map(|step| step.published_source).collect();
        for source in sources.iter().enumerate().filter(|(at, source)| !sources[..*at].contains(source)) {
            let of = self.steps.iter().filter(|step| step.published_source == *source.1);
            let names: Vec<String> = of.map(|step| step.name.replace('_', " ")).collect();
            writeln!(to, "  {}: {}", source.1, names.join(", "))?;
        }
        writeln!(
            to,
            "  control: the ablation's own ring with every switch on takes {:.1} ns {}, the shipped one {:.1} {}; difference {}",
            self.control.p50_ns.value,
            interval(&self.control.p50_ns),
            self.final_p50_ns.value,
            interval(&self.final_p50_ns),
            self.control_ns.as_ref().map_or_else(|| "unknown".to_owned(), interval)
        )?;
        writeln!(to, "  a change within the control's difference is undecided")
    }
}

/// Names items with their files after `before`; nothing where there are none.
fn items(before: &str, sources: &[Source]) -> String {
    let items: Vec<String> = sources.iter().map(|source| format!("{} ({})", source.item, source.path)).collect();
    if items.is_empty() { String::new() } else { before.to_owned() + &items.join(", ") }
}

impl AblationStep {
    fn write(&self, to: &mut dyn io::Write) -> io::Result<()> {
        let published = self.published_p50_ns.map_or_else(|| "-".to_owned(), |ns| format!("{ns:.0}"));
        let StepFigures { p50_ns, ns, .. } = &self.cumulative;
        let change = self.change_ns.map_or_else(String::new, |change| {
            format!("{:+.1} [{:+.1}, {:+.1}]", change.value, change.low, change.high)
        });
        let alone = self.alone_ns.map_or_else(
            || "-".to_owned(),
            |alone| format!("{:+.1} [{:+.1}, {:+.1}]", alone.value, alone.low, alone.high),
        );
        let p99 = ns.p99.map_or_else(|| "n/a".to_owned(), |p99| format!("{p99:.0}"));
        writeln!(
            to,
            "  {:<20} {published:>9} {:>8.1} {:>16} {change:>18} {p99:>9} {alone:>20}",
            format!("{:>2} {}", self.number, self.name.replace('_', " ")),
            p50_ns.value,
            interval(p50_ns)
        )
    }
}

fn write_bar(to: &mut dyn io::Write, name: &str, value: f64, worst: f64) -> io::Result<()> {
    let cells = (BAR * value / worst).round().max(1.0) as usize;
    writeln!(to, "  {:<20} {:<40} {value:.1}", name.replace('_', " "), "\u{2588}".repeat(cells))
}
