//! The machine, the build and what disturbed the run, from the OS's readings.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::report::{Build, Disturbance, Environment, Timing};
use tt_meter::Calibration;
use tt_os::machine::Machine;
use tt_os::readings::Readings;

use tt_os::clock::monotonic_raw_ns;

/// Readings before the first block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    readings: Readings,
    pair: (u64, u64),
}

impl Before {
    /// Reads it.
    pub(crate) fn read(calibration: &Calibration) -> Self {
        Self { readings: Readings::take(), pair: calibration.pair(&mut monotonic_raw_ns) }
    }
}

/// Returns the record of a run that began at `before` on `pinned_to`. The caller fills in the build.
pub(crate) fn record(calibration: &Calibration, before: &Before, pinned_to: Option<usize>, seed: u64) -> Environment {
    let after = calibration.pair(&mut monotonic_raw_ns);
    let wall_s = after.1.saturating_sub(before.pair.1) as f64 / 1e9;
    Environment {
        date: utc(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())),
        machine: machine(pinned_to),
        build: Build::default(),
        timing: Timing {
            counter_hz: calibration.scale.cycles_per_s(),
            read_ns: calibration.scale.ns_f64(calibration.read_cycles as f64),
            step_ns: step_ns(calibration),
            drift_ppm: calibration.drift_ppm(before.pair, after),
            empty_loop_ns: 0.0,
        },
        disturbance: disturbance(&Readings::take().since(&before.readings), wall_s),
        forced: None,
        seed,
        not_measured: vec![
            "hardware counters (none on most virtual machines)".to_owned(),
            "network card, kernel and client of the TURN rows (in memory)".to_owned(),
            "layout bias (all blocks run in one process)".to_owned(),
        ],
    }
}

fn machine(pinned_to: Option<usize>) -> crate::report::Machine {
    let machine = Machine::read();
    let unknown = || "unknown".to_owned();
    let governor = if machine.hypervisor { "hypervisor: unknown".to_owned() } else { unknown() };
    let flags = [(machine.constant_tsc, "constant_tsc"), (machine.nonstop_tsc, "nonstop_tsc")];
    crate::report::Machine {
        cpu: machine.cpu_model.unwrap_or_else(unknown),
        cores: machine.cpus_available,
        arch: std::env::consts::ARCH.to_owned(),
        kernel: machine.kernel.unwrap_or_else(unknown),
        governor: machine.governor.unwrap_or(governor),
        turbo: turbo(),
        mitigations: machine.mitigations.join("; "),
        clocksource: machine.clocksource.unwrap_or_else(unknown),
        counter_flags: flags.into_iter().filter_map(|(set, name)| set.then_some(name)).collect::<Vec<_>>().join(" "),
        pinned_to,
    }
}

fn turbo() -> String {
    let read = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let boost = read("/sys/devices/system/cpu/cpufreq/boost").map(|boost| boost == "1");
    let no_turbo = read("/sys/devices/system/cpu/intel_pstate/no_turbo").map(|no_turbo| no_turbo == "0");
    match boost.or(no_turbo) {
        Some(true) => "on".to_owned(),
        Some(false) => "off".to_owned(),
        None => "unknown".to_owned(),
    }
}

fn disturbance(during: &Readings, wall_s: f64) -> Disturbance {
    let pressure = during.pressure_cpu_us.map(|us| us as f64 / 1e4 / wall_s.max(1e-3));
    Disturbance {
        wall_s,
        steal_pct: Some(during.steal_share() * 100.0),
        others_cpus: Some(during.others_cpus()),
        psi_cpu_pct: pressure,
        voluntary_switches: Some(during.switches_voluntary),
        involuntary_switches: Some(during.switches_involuntary),
        page_faults: Some(during.faults_minor + during.faults_major),
        interrupts: Some(during.interrupts),
        load_before: None,
    }
}

/// The smallest step between two different readings of the clock.
fn step_ns(calibration: &Calibration) -> f64 {
    let mut least = u64::MAX;
    let mut last = calibration.clock.end();
    for _ in 0..10_000 {
        let next = calibration.clock.end();
        let step = next.since(last);
        if step > 0 {
            least = least.min(step);
        }
        last = next;
    }
    if least == u64::MAX { 0.0 } else { calibration.scale.ns_f64(least as f64) }
}

/// `unix_s` as `2026-01-31T23:59:59Z`, by the proleptic Gregorian calendar.
pub(crate) fn utc(unix_s: u64) -> String {
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    // Years begin on 1 March here, so that a leap day is a year's last.
    let day = days + 719_468;
    let (era, day_of_era) = (day / 146_097, day % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day_of_month:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc(1_767_225_599), "2025-12-31T23:59:59Z");
    }
}
