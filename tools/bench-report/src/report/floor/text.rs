//! The result on the terminal.

use std::io;

use super::{ClockRow, CostRow, FloorResult, JitterRow, LatencyRow, TransferRow};
use crate::report::Estimate;
use crate::report::ring::CauseCount;

/// Interrupts and longest stalls that a core's line names.
const NAMED: usize = 4;

impl FloorResult {
    /// Writes everything for a reader.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_text(&self, to: &mut dyn io::Write) -> io::Result<()> {
        let label = if self.quick { "QUICK run: few blocks, wide intervals" } else { "full run" };
        writeln!(to, "truetick {}, {}{label}", self.truetick, self.environment.label())?;
        for line in &self.warnings {
            writeln!(to, "! {line}")?;
        }
        self.environment.write_machine(to)?;
        write_clocks(to, &self.clocks)?;
        write_transfers(to, &self.transfers)?;
        write_costs(to, &self.costs)?;
        write_latencies(to, &self.latencies)?;
        write_jitter(to, &self.jitter)?;
        writeln!(to)?;
        self.environment.write_disturbance(to)?;
        writeln!(
            to,
            "intervals: 95 %, {} resamples of whole blocks, seed {:#x}; (k): the median of chunks of k operations, no tail",
            self.resamples, self.environment.seed
        )?;
        for line in &self.environment.not_measured {
            writeln!(to, "not measured: {line}")?;
        }
        Ok(())
    }
}

fn write_clocks(to: &mut dyn io::Write, clocks: &[ClockRow]) -> io::Result<()> {
    if clocks.is_empty() {
        return Ok(());
    }
    writeln!(to, "\n{:<20} {:>10} {:>22} {:>10} {:>11}", "clock", "a read", "95 % interval", "step", "drift")?;
    for clock in clocks {
        let step = clock.step_ns.map_or_else(|| "n/a".to_owned(), figure);
        let drift = clock.drift_ppm.map_or_else(String::new, |ppm| format!("{ppm:+.2} ppm"));
        let read = figure(clock.read_ns.value);
        let line = format!("{:<20} {read:>10} {:>22} {step:>10} {drift:>11}", clock.name, interval(&clock.read_ns));
        writeln!(to, "{line}  {}", clock.what)?;
    }
    Ok(())
}

fn write_transfers(to: &mut dyn io::Write, transfers: &[TransferRow]) -> io::Result<()> {
    if transfers.is_empty() {
        return Ok(());
    }
    writeln!(
        to,
        "\n{:<20} {:>10} {:>22} {:>10} {:>11}  placement",
        "line between cores", "half trip", "95 % interval", "probes", "changes/s"
    )?;
    for transfer in transfers {
        let cpus = format!("{} and {}", transfer.cpus[0], transfer.cpus[1]);
        let changes = if transfer.probes > 1 { transfer.changes as f64 / transfer.seconds.max(1e-9) } else { 0.0 };
        let classes: Vec<String> = transfer
            .classes
            .iter()
            .map(|class| format!("{} {:.1} % ({})", class.placement, class.share * 100.0, figure(class.ns)))
            .collect();
        writeln!(
            to,
            "{cpus:<20} {:>10} {:>22} {:>10} {changes:>11.1}  {}",
            figure(transfer.ns.value),
            interval(&transfer.ns),
            transfer.probes,
            classes.join(", ")
        )?;
    }
    Ok(())
}

fn write_costs(to: &mut dyn io::Write, costs: &[CostRow]) -> io::Result<()> {
    if costs.is_empty() {
        return Ok(());
    }
    writeln!(to, "\n{:<24} {:>10} {:>22} {:>10} {:>8}", "cost", "median", "95 % interval", "mean", "V100")?;
    for cost in costs {
        let name = if cost.batch > 1 { format!("{} ({})", cost.name, cost.batch) } else { cost.name.clone() };
        let theirs = cost.v100_ns.map_or_else(String::new, figure);
        let (median, mean) = (figure(cost.ns.value), figure(cost.mean_ns.value));
        writeln!(to, "{name:<24} {median:>10} {:>22} {mean:>10} {theirs:>8}  {}", interval(&cost.ns), cost.what)?;
    }
    Ok(())
}

fn write_latencies(to: &mut dyn io::Write, latencies: &[LatencyRow]) -> io::Result<()> {
    if latencies.is_empty() {
        return Ok(());
    }
    writeln!(to, "\n{:<20} {:>12} {:>12}", "a load from within", "small pages", "huge pages")?;
    for latency in latencies {
        let huge = latency.huge_pages_ns.map_or_else(|| "n/a".to_owned(), figure);
        writeln!(to, "{:<20} {:>12} {huge:>12}", size(latency.bytes), figure(latency.small_pages_ns))?;
    }
    Ok(())
}

fn write_jitter(to: &mut dyn io::Write, cores: &[JitterRow]) -> io::Result<()> {
    let Some(first) = cores.first() else { return Ok(()) };
    writeln!(to, "\njitter: gaps over {} of a thread that spins", figure(first.threshold_ns as f64))?;
    for core in cores {
        writeln!(
            to,
            "core {}{}, {:.1} s ({:.1} % of it asking for causes): {:.0} stalls a second, {:.2} % of the time",
            core.cpu,
            if core.at_once { ", all at once" } else { "" },
            core.seconds,
            core.asking_seconds / core.seconds.max(1e-9) * 100.0,
            core.stalls_per_s,
            core.share * 100.0
        )?;
        if core.causes.iter().any(|cause| cause.count > 0) {
            writeln!(to, "  {:<12} {:>8} {:>9} {:>10} {:>10}", "cause", "count", "/s", "mean", "longest")?;
        }
        for CauseCount { cause, count, per_s, total_ns, max_ns } in core.causes.iter().filter(|cause| cause.count > 0) {
            let mean = figure(total_ns / *count as f64);
            writeln!(to, "  {cause:<12} {count:>8} {per_s:>9.1} {mean:>10} {:>10}", figure(*max_ns))?;
        }
        let named = core.interrupts.iter().take(NAMED).map(|kind| format!("{} {}", kind.name, kind.count));
        let longest = core.longest.iter().take(NAMED).map(|stall| {
            let length = figure(stall.length_ns as f64);
            format!("{length} {} at {:.3} s", stall.cause, stall.at_s)
        });
        write_list(to, "  interrupts: ", named)?;
        write_list(to, "  longest: ", longest)?;
    }
    Ok(())
}

fn write_list(to: &mut dyn io::Write, head: &str, items: impl Iterator<Item = String>) -> io::Result<()> {
    let items: Vec<String> = items.collect();
    if items.is_empty() { Ok(()) } else { writeln!(to, "{head}{}", items.join(", ")) }
}

fn size(bytes: usize) -> String {
    if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes >> 20) }
}

fn interval(estimate: &Estimate) -> String {
    let (scale, _) = unit(estimate.value);
    format!("[{}, {}]", number(estimate.low / scale), number(estimate.high / scale))
}

fn figure(ns: f64) -> String {
    let (scale, unit) = unit(ns);
    format!("{} {unit}", number(ns / scale))
}

fn unit(ns: f64) -> (f64, &'static str) {
    if ns >= 10_000_000.0 {
        (1e6, "ms")
    } else if ns >= 10_000.0 {
        (1e3, "us")
    } else {
        (1.0, "ns")
    }
}

fn number(value: f64) -> String {
    if value.abs() >= 1_000.0 {
        format!("{value:.0}")
    } else if value.abs() >= 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}
