//! Warnings of a floor run, and the list of what was not measured.

use crate::machine::Jitter;
use crate::report::Environment;
use crate::report::floor::TransferRow;
use tt_os::throttle::Throttle;

use super::Options;
use super::measured::Measured;

/// One line each: the build, the machine that others share or that is bounded, the clock.
pub(super) fn warnings(environment: &Environment, before: &Throttle, transfers: &[TransferRow]) -> Vec<String> {
    let mut warnings = environment.warnings();
    warnings.extend(throttled(before, &Throttle::read(), environment.machine.cores));
    warnings.extend(bad_clock(&environment.machine.clocksource, &environment.machine.counter_flags));
    let changes: usize = transfers.iter().map(|transfer| transfer.changes).sum();
    if changes > 0 {
        warnings.push(format!(
            "the distance between cores changed {changes} times while it was watched: a figure between cores belongs to its placement"
        ));
    }
    warnings
}

/// A bound on the CPUs' time, and whether the process ran into it.
fn throttled(before: &Throttle, after: &Throttle, cores: usize) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(cpus) = after.cpus_max.filter(|cpus| *cpus < cores as f64) {
        warnings.push(format!("throttled: the control group allows {cpus:.2} CPUs' worth of time on {cores} cores"));
    }
    let stopped = after.throttled_periods.saturating_sub(before.throttled_periods);
    if stopped > 0 {
        warnings.push(format!("throttled: the control group was stopped in {stopped} periods of this run"));
    }
    warnings
}

/// Reasons not to trust the processor's counter as a clock.
fn bad_clock(clocksource: &str, flags: &str) -> Vec<String> {
    if !cfg!(target_arch = "x86_64") {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    if clocksource != "tsc" {
        warnings
            .push(format!("bad clock: the kernel's clock source is {clocksource}, not tsc; reading it may be slow"));
    }
    for flag in ["constant_tsc", "nonstop_tsc"] {
        if !flags.split(' ').any(|word| word == flag) {
            warnings.push(format!("bad clock: the processor's counter lacks {flag}"));
        }
    }
    warnings
}

/// Returns what this run does not measure.
pub(super) fn not_measured(measured: &Measured, jitter: &[Jitter], options: &Options) -> Vec<String> {
    let mut missing: Vec<String> = measured.failed.clone();
    if options.jitter.is_some() {
        missing.push("all but jitter: --jitter measures nothing else".to_owned());
    } else if measured.transfers.is_empty() {
        missing.push("lines between cores, contended locks and waking another core: there is one core".to_owned());
    }
    if options.quick && options.jitter.is_none() {
        missing.push("the curve of latency by size: --quick leaves it out".to_owned());
    }
    if let Some(witness) = jitter.first().map(|jitter| jitter.witness) {
        if !witness.interrupts {
            missing
                .push("interrupts as a cause: /proc/interrupts cannot be read, and they count as unknown".to_owned());
        }
        if !witness.frequency {
            missing.push("frequency as a cause: a guest cannot distinguish it from a move to another core".to_owned());
            missing.push(
                "work of the hypervisor that it does not report, such as its timer: counted as unknown".to_owned(),
            );
            if !witness.steal {
                missing.push("steal as a cause: the hypervisor has reported none since boot".to_owned());
            }
        }
    }
    missing.push("hardware counters, pages of 1 GiB, distances between sockets".to_owned());
    missing
}

#[cfg(test)]
mod tests {
    use tt_os::throttle::Throttle;

    use super::{bad_clock, throttled};

    #[test]
    fn a_bound_below_the_cores_is_a_warning() {
        let bounded = Throttle { cpus_max: Some(1.5), throttled_periods: 3 };
        assert!(throttled(&bounded, &bounded, 1).is_empty());
        assert!(throttled(&bounded, &bounded, 2)[0].contains("1.50 CPUs"));
        let later = Throttle { throttled_periods: 7, ..Throttle::default() };
        assert!(throttled(&bounded, &later, 2)[0].contains("in 4 periods"));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_counter_that_stops_is_a_bad_clock() {
        assert!(bad_clock("tsc", "constant_tsc nonstop_tsc").is_empty());
        let warnings = bad_clock("hpet", "constant_tsc");
        assert!(warnings[0].contains("hpet") && warnings[1].contains("nonstop_tsc"), "{warnings:?}");
    }
}
