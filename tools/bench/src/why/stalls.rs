//! Events that took longer than a microsecond, and what had either core meanwhile.

use std::collections::BTreeMap;

use anyhow::Context as _;
use tt_meter::{Calibration, Clock, Scale};
use tt_model::{sort_short_by, sort_short_by_key};

use crate::harness::progress::progress;
use crate::loops::hand_over::{Slow, Watched};
use crate::machine::{Busy, StallCause, Threads, Trace};
use crate::report::why::{StallGroup, Stalls};
use crate::ring::rounds::{Rounds, STALL_NS, Sizes, Variant};

/// Names that are listed one by one, and one line for the others.
const NAMES_MAX: usize = 12;

/// Times events while both threads are watched, with the kernel's trace where it can be had.
pub(super) fn watch(
    calibration: &'static Calibration,
    threads: Threads,
    (count, per_run): (usize, usize),
) -> anyhow::Result<Stalls> {
    let trace = trace(calibration);
    let sizes = Sizes::of_variants(&[Variant::Watched], threads, count, per_run).short();
    let mut rounds = Rounds::new(calibration, sizes);
    let turn = |is_on| trace.as_ref().map_or(Ok(()), |trace| trace.turn(is_on)).context("tracefs");
    turn(true)?;
    let made = rounds.make(&|round, of| progress(&format!("round {round}/{of} of stalls")));
    turn(false)?;
    made?;
    let (busy, source) = match &trace {
        Ok(trace) => {
            let (busy, is_whole) = trace.read(calibration.scale.cycles_per_s() / 1e9).context("tracefs")?;
            let events = if is_whole { "tracefs" } else { "tracefs, whose buffer did not hold all" };
            let osnoise =
                trace.without_osnoise().map_or_else(|| "osnoise".to_owned(), |why| format!("no osnoise: {why}"));
            (busy, format!("{events} ({osnoise}); the kernel's counters"))
        }
        Err(_) => (Vec::new(), "the kernel's counters".to_owned()),
    };
    let would_help = trace.err().map(|reason| {
        format!("run as root on Linux with tracefs, which names interrupts and threads; not possible now: {reason}")
    });
    let cpus = threads.cpus.context("two CPUs are needed")?;
    let mut found = Found { cpus, busy: &busy, scale: calibration.scale, names: BTreeMap::new() };
    let (mut events, mut span_cycles) = (0, 0);
    for made in &rounds.made {
        let Some(watched) = &made.run.watched else { continue };
        events += made.run.cycles.len() as u64;
        span_cycles += made.run.span_cycles;
        watched.slow.iter().for_each(|slow| found.add(watched, slow));
    }
    let alone: u64 = rounds.floor.iter().map(crate::machine::Jitter::count).sum();
    let alone_s: f64 = rounds.floor.iter().map(|jitter| jitter.span_ns as f64 / 1e9).sum();
    let interrupts = interrupts(&rounds);
    Ok(Stalls {
        threshold_ns: STALL_NS as f64,
        seconds: span_cycles as f64 / calibration.scale.cycles_per_s(),
        events,
        names: found.names(),
        source,
        would_help,
        alone_per_s: if alone_s > 0.0 { alone as f64 / alone_s } else { 0.0 },
        interrupts,
    })
}

/// The kernel's trace, whose stamps must be those of the events.
fn trace(calibration: &Calibration) -> Result<Trace, String> {
    if !matches!(calibration.clock, Clock::Counter) || !cfg!(target_arch = "x86_64") {
        return Err("the events are not stamped with the TSC".to_owned());
    }
    Trace::new().map_err(|error| error.to_string())
}

/// Interrupts of both cores by name while they were watched, most frequent first.
fn interrupts(rounds: &Rounds) -> Vec<(String, u64)> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for watched in rounds.made.iter().filter_map(|made| made.run.watched.as_ref()) {
        for (name, count) in watched.sender.interrupts.iter().chain(&watched.receiver.interrupts) {
            *counts.entry(name).or_default() += count;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
    sort_short_by_key(&mut counts, |(_, count)| std::cmp::Reverse(*count));
    counts
}

/// Stalls by name.
struct Found<'a> {
    cpus: [usize; 2],
    busy: &'a [Busy],
    scale: Scale,
    names: BTreeMap<Option<String>, StallGroup>,
}

impl Found<'_> {
    fn add(&mut self, watched: &Watched, slow: &Slow) {
        let name = self.name(watched.cause_of(slow, self.scale), slow);
        let ns = self.scale.ns_f64(slow.to.since(slow.from) as f64);
        let of_name = self.names.entry(name.clone()).or_insert_with(|| StallGroup::new(name));
        *of_name = of_name.with(&StallGroup { name: None, count: 1, total_ns: ns, max_ns: ns });
    }

    /// What the trace has for half of the time or more; else the cause by the counters; else what the trace has for any
    /// of the time, as an interrupt costs more than its handler.
    fn name(&self, cause: Option<StallCause>, slow: &Slow) -> Option<String> {
        let mut covered: BTreeMap<&str, u64> = BTreeMap::new();
        for busy in self.busy.iter().filter(|busy| self.cpus.contains(&busy.cpu)) {
            let overlap = busy.to.min(slow.to.0).saturating_sub(busy.from.max(slow.from.0));
            if overlap > 0 {
                *covered.entry(&busy.name).or_default() += overlap;
            }
        }
        let longest = covered.into_iter().max_by_key(|(_, overlap)| *overlap);
        let is_most = longest.is_some_and(|(_, overlap)| overlap * 2 >= slow.to.since(slow.from));
        let traced = longest.map(|(name, _)| name.to_owned());
        let counted = match cause {
            Some(StallCause::Interrupt) if traced.is_none() => Some("interrupt"),
            Some(StallCause::Preemption) if traced.is_none() => Some("another thread"),
            Some(StallCause::Steal) => Some("steal of the hypervisor"),
            Some(StallCause::PageFault) => Some("page fault"),
            Some(StallCause::Frequency) => Some("change of frequency"),
            Some(StallCause::Interrupt | StallCause::Preemption | StallCause::Unknown) | None => None,
        };
        if is_most { traced } else { counted.map(str::to_owned).or(traced) }
    }

    /// Those that took the most time first, then the others as one, those without a name last.
    fn names(mut self) -> Vec<StallGroup> {
        let unnamed = self.names.remove(&None);
        let mut names: Vec<StallGroup> = self.names.into_values().collect();
        sort_short_by(&mut names, |one, other| other.total_ns.total_cmp(&one.total_ns));
        if names.len() > NAMES_MAX {
            let rest = names.split_off(NAMES_MAX - 1);
            let others = StallGroup::new(Some(format!("{} others", rest.len())));
            names.push(rest.iter().fold(others, |sum, one| sum.with(one)));
        }
        names.into_iter().chain(unnamed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_meter::Stamp;

    fn name(cause: Option<StallCause>, busy: &[(usize, u64, u64, &str)]) -> Option<String> {
        let busy: Vec<Busy> =
            busy.iter().map(|&(cpu, from, to, name)| Busy { cpu, from, to, name: name.to_owned() }).collect();
        let scale = tt_os::clock::calibration().scale;
        let found = Found { cpus: [0, 3], busy: &busy, scale, names: BTreeMap::new() };
        found.name(cause, &Slow { index: 0, from: Stamp(1_000), to: Stamp(2_000) })
    }

    #[test]
    fn what_covers_most_of_a_stall_names_it() {
        let timer = (3, 900, 1_600, "local timer");
        assert_eq!(name(Some(StallCause::Steal), &[timer]).as_deref(), Some("local timer"));
        // On a third CPU, before and after: nothing to do with it.
        let elsewhere = [(1, 900, 1_600, "local timer"), (0, 10, 1_000, "thread a"), (0, 2_000, 9_000, "thread b")];
        assert_eq!(name(None, &elsewhere), None);
    }

    #[test]
    fn the_longest_names_are_listed_and_nothing_is_lost() {
        let scale = tt_os::clock::calibration().scale;
        let mut found = Found { cpus: [0, 3], busy: &[], scale, names: BTreeMap::new() };
        for number in 0..20_u32 {
            let name = (number > 0).then(|| format!("thread {number}"));
            let one =
                StallGroup { name: name.clone(), count: 1, total_ns: f64::from(number), max_ns: f64::from(number) };
            found.names.insert(name, one);
        }
        let names = found.names();
        assert_eq!((names.len(), names[0].max_ns, names[12].name.as_deref()), (13, 19.0, None));
        assert_eq!((names[11].name.as_deref(), names[11].count, names[11].max_ns), (Some("8 others"), 8, 8.0));
        assert_eq!(names.iter().map(|one| one.count).sum::<u64>(), 20);
    }

    #[test]
    fn a_short_interrupt_does_not_explain_a_steal() {
        let tick = (0, 1_900, 2_000, "local timer");
        assert_eq!(name(Some(StallCause::Steal), &[tick]).as_deref(), Some("steal of the hypervisor"));
        assert_eq!(name(None, &[tick]).as_deref(), Some("local timer"));
        assert_eq!(name(Some(StallCause::Interrupt), &[]).as_deref(), Some("interrupt"));
        assert_eq!(name(Some(StallCause::Unknown), &[]), None);
    }
}
