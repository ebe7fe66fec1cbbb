//! The result on the terminal.

use std::io;

use super::{
    CauseCount, ClassFigures, Control, Figures, LayoutFigures, Loop, LoopKind, Parts, References, RingResult, Settings,
    Slope, Tail,
};
use crate::report::Estimate;

impl RingResult {
    /// Writes everything for a reader: the machine, NullRing's figures for each loop and placement, the controls, the tail
    /// and the ablation.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_text(&self, to: &mut dyn io::Write) -> io::Result<()> {
        let label = if self.quick { "QUICK run: few events, wide intervals" } else { "full run" };
        writeln!(to, "truetick bench {}, {}{label}", self.truetick_bench, self.environment.label())?;
        if let Some(line) = self.environment.build.warning() {
            writeln!(to, "! {line}")?;
        }
        self.environment.write_machine(to)?;
        self.settings.write(to)?;
        for one in &self.loops {
            one.write(to)?;
        }
        for references in &self.references {
            references.write(to)?;
        }
        if let Some(tail) = &self.tail {
            tail.write(to)?;
        }
        write_layouts(to, &self.layouts)?;
        if let Some(ablation) = &self.ablation {
            ablation.write(to)?;
        }
        writeln!(to)?;
        for line in &self.warnings {
            writeln!(to, "! {line}")?;
        }
        self.environment.write_disturbance(to)?;
        writeln!(
            to,
            "intervals: 95 %, {} resamples of whole runs, seed {:#x}; a quantile has 100 samples above it, or is n/a",
            self.resamples, self.environment.seed
        )?;
        writeln!(to, "not measured: {}", self.environment.not_measured.join(", "))
    }
}

impl Settings {
    fn write(&self, to: &mut dyn io::Write) -> io::Result<()> {
        writeln!(
            to,
            "\nevents {}, ring {}, warm-up {} a run | CPUs {} to {} | {} | memory {} | huge pages {}",
            thousands(self.events),
            thousands(self.capacity),
            thousands(self.warmup_events),
            self.cpus[0],
            self.cpus[1],
            self.priority,
            self.locked_memory,
            self.huge_pages
        )?;
        writeln!(
            to,
            "{}; the consumer's counter is {:+.1} ns ahead; a cycle of the counter {:.3} ns, its step {:.1} ns",
            self.idle, self.skew_ns, self.cycle_ns, self.step_ns
        )
    }
}

impl Loop {
    fn write(&self, to: &mut dyn io::Write) -> io::Result<()> {
        match (self.kind, self.offered_per_s) {
            (LoopKind::ServiceTime, _) | (_, None) => {
                let watched = if self.name == "watched" { ", both threads watched for stalls" } else { "" };
                let rate = thousands(self.achieved_per_s.round() as u64);
                writeln!(to, "\none in flight{watched} (service time), {rate} events/s")?;
            }
            (LoopKind::ResponseTime, Some(offered)) => writeln!(
                to,
                "\nopen loop (response time, from the intended start), {} events/s offered, {} achieved",
                thousands(offered.round() as u64),
                thousands(self.achieved_per_s.round() as u64)
            )?,
        }
        if self.void_runs > 0 {
            writeln!(to, "! {} runs void: they achieved less than 99 % of the offered rate", self.void_runs)?;
        }
        writeln!(
            to,
            "  {:<14} {:>4} {:>9} {:>9}  {:<6} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9}",
            "placement", "runs", "events", "ping-pong", "", "average", "p50", "p95", "p99", "p99.9", "min", "max"
        )?;
        for class in &self.classes {
            class.write(to)?;
        }
        if let Some(published) = &self.published {
            write_figures(to, &format!("  {:<40}", "published by NullRing"), "ns", published)?;
            writeln!(
                to,
                "  NullRing: C++ on Windows, real-time priority, a ring of two indices and its own eight checks, two pinned \
                 cores whose distance is not published"
            )?;
        }
        Ok(())
    }
}

impl ClassFigures {
    fn write(&self, to: &mut dyn io::Write) -> io::Result<()> {
        let head = format!(
            "  {:<14} {:>4} {:>9} {:>9.1} ",
            self.class,
            self.runs,
            thousands(self.events),
            self.ping_pong_ns.value
        );
        write_figures(to, &head, "ns", &self.ns)?;
        let times = self.p50_ns.value / self.ping_pong_ns.value;
        let multiple = format!("p50 {}, {times:.2} times the ping-pong", interval(&self.p50_ns));
        write_figures(to, &format!("  {multiple:<40}"), "cycles", &self.cycles)
    }
}

fn write_figures(to: &mut dyn io::Write, head: &str, unit: &str, figures: &Figures) -> io::Result<()> {
    let one = |value: Option<f64>, width| {
        let text = value.map_or_else(|| "n/a".to_owned(), number);
        format!(" {text:>width$}")
    };
    let Figures { average, p50, p95, p99, p999, min, max } = *figures;
    let columns: String = [Some(average), p50, p95, p99, p999, Some(min)].map(|value| one(value, 8)).concat();
    writeln!(to, "{head} {unit:<6}{columns}{}", one(max, 9))
}

impl References {
    fn write(&self, to: &mut dyn io::Write) -> io::Result<()> {
        let Self { class, runs, p50_ns, .. } = self;
        writeln!(
            to,
            "\nmeasured alone: {class}, {runs} interleaved runs of each variant; these are no parts of the p50"
        )?;
        writeln!(to, "  {:<21} {:>8.1} {:>18}  mean of the runs' medians", "p50", p50_ns.value, interval(p50_ns))?;
        for alone in &self.alone {
            let name = alone.name.replace('_', " ");
            writeln!(to, "  {name:<21} {:>8.1} {:>18}  {}", alone.ns.value, interval(&alone.ns), alone.what)?;
        }
        writeln!(to, "controls: change of the p50, differences of runs of one round")?;
        self.controls.iter().try_for_each(|control| control.write(to))?;
        if let Some(again_ns) = &self.again_ns {
            let (value, interval) = (again_ns.value, interval(again_ns));
            writeln!(to, "  two equal builds (A/A): {value:+.1} {interval}; an effect below that is none")?;
        }
        self.slopes.iter().try_for_each(|slope| slope.write(to))?;
        self.floors.iter().try_for_each(|floor| floor.write(to))?;
        self.parts.iter().try_for_each(|parts| parts.write(to))
    }
}

impl Slope {
    fn write(&self, to: &mut dyn io::Write) -> io::Result<()> {
        let delays: Vec<String> = self.delays_ns.iter().map(|ns| format!("{ns:.0}")).collect();
        let verdict = if self.is_linear { "delays add" } else { "NOT 1: what is delayed overlaps with the rest" };
        let (slope, interval) = (self.slope.value, format!("[{:.3}, {:.3}]", self.slope.low, self.slope.high));
        writeln!(to, "  delays of {} ns {}: slope {slope:.3} {interval}, {verdict}", delays.join(", "), self.name)
    }
}

impl Parts {
    fn write(&self, to: &mut dyn io::Write) -> io::Result<()> {
        let of = |estimate: &Estimate| format!("{:+.1} {}", estimate.value, interval(estimate));
        let (floor, [ring, judged_ring], [evaluator, late_evaluator]) =
            (&self.floor_ns, &self.ring_ns, &self.evaluator_ns);
        writeln!(to, "what the p50 is made of, each change with and without the other:")?;
        writeln!(to, "  machine   {:>8.1} {}: one line, both stamps, nothing judged", floor.value, interval(floor))?;
        writeln!(to, "  ring      {} without the evaluator, {} with it", of(ring), of(judged_ring))?;
        writeln!(to, "  evaluator {} on the line, {} on the ring", of(evaluator), of(late_evaluator))?;
        let verdict = if self.adds_up { "none: the parts add up" } else { "they overlap: bounds, no sum" };
        writeln!(to, "  residual  {} (A/A {:.1}), {verdict}", of(&self.overlap_ns), self.noise_ns)
    }
}

impl Control {
    fn write(&self, to: &mut dyn io::Write) -> io::Result<()> {
        let moved = &self.p50_moved_ns;
        let expected = match (self.expected_ns, self.is_met) {
            (Some(expected_ns), Some(true)) => format!(", expected {expected_ns:+.1}: met"),
            (Some(expected_ns), _) => format!(", expected {expected_ns:+.1}: NOT MET"),
            (None, _) if self.is_none => ": none".to_owned(),
            (None, _) => String::new(),
        };
        writeln!(to, "  {}: {:+.1} {}{expected}", self.what, moved.value, interval(moved))
    }
}

impl Tail {
    fn write(&self, to: &mut dyn io::Write) -> io::Result<()> {
        writeln!(
            to,
            "\nstalls: events above {} ns by cause, and gaps of the same core spinning alone",
            number(self.threshold_ns)
        )?;
        writeln!(
            to,
            "  {:<14} {:>16} {:>10} {:>10}  {:>16} {:>10} {:>10}",
            "cause", "ring: stalls", "in a s", "max us", "core: gaps", "in a s", "max us"
        )?;
        let mut names: Vec<&str> = Vec::new();
        for count in self.causes.iter().chain(&self.floor_causes) {
            if !names.contains(&count.cause.as_str()) {
                names.push(&count.cause);
            }
        }
        for name in names {
            let of = |counts: &[CauseCount]| {
                let count = counts.iter().find(|count| count.cause == name);
                count.map_or((0, 0.0, 0.0), |count| (count.count, count.per_s, count.max_ns / 1e3))
            };
            let (ring, floor) = (of(&self.causes), of(&self.floor_causes));
            writeln!(
                to,
                "  {name:<14} {:>16} {:>10.1} {:>10.1}  {:>16} {:>10.1} {:>10.1}",
                ring.0, ring.1, ring.2, floor.0, floor.1, floor.2
            )?;
        }
        writeln!(
            to,
            "  over {:.2} s of events, both threads watched (a separate variant), and \
             {:.2} s of spinning; {} events came while a watch asked the kernel and say nothing",
            self.seconds, self.floor_seconds, self.asked
        )
    }
}

fn write_layouts(to: &mut dyn io::Write, layouts: &[LayoutFigures]) -> io::Result<()> {
    if layouts.is_empty() {
        return Ok(());
    }
    writeln!(to, "\nlayouts of the ring, one in flight without an evaluator, then as fast as they go")?;
    writeln!(
        to,
        "  {:<14} {:<28} {:>4} {:>8} {:>16} {:>10} {:>9}",
        "placement", "layout", "runs", "p50", "95 % interval", "ping-pongs", "M/s"
    )?;
    for layout in layouts {
        writeln!(
            to,
            "  {:<14} {:<28} {:>4} {:>8.1} {:>16} {:>10.2} {:>9.1}  {}",
            layout.class,
            layout.name,
            layout.runs,
            layout.p50_ns.value,
            interval(&layout.p50_ns),
            layout.p50_per_ping_pong.value,
            layout.stream_million_per_s.value,
            layout.what
        )?;
    }
    Ok(())
}

pub(super) fn interval(estimate: &Estimate) -> String {
    format!("[{:.1}, {:.1}]", estimate.low, estimate.high)
}

pub(super) fn number(value: f64) -> String {
    if value.abs() >= 1_000.0 { thousands(value.round() as u64) } else { format!("{value:.1}") }
}

/// `1234567` as `1,234,567`.
pub(super) fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{number, thousands};

    #[test]
    fn large_numbers_have_commas() {
        assert_eq!([0, 999, 1_000, 65_536, 1_000_000].map(thousands), ["0", "999", "1,000", "65,536", "1,000,000"]);
        assert_eq!([92.04, 2_345.6].map(number), ["92.0", "2,346"]);
    }
}
