//! Stalls of the ring by cause, and those of the consumer's core alone.

use crate::machine::StallCause;
use crate::report::ring::{CauseCount, Stall, Tail};
use tt_meter::Scale;
use tt_model::sort_short_by;

use super::rounds::{Rounds, STALL_NS};

/// Stalls that are listed one by one.
const LISTED: usize = 500;

/// Where neither core was kept while the event took its time: what happened was between them.
const NONE_SEEN: &str = "none_seen";

/// Of the watched runs; `None` where no thread could be watched.
pub(super) fn of(rounds: &Rounds) -> Option<Tail> {
    let scale = rounds.calibration.scale;
    let mut stalls = Vec::new();
    let (mut asked, mut span_cycles) = (0, 0);
    for (index, made) in rounds.made.iter().enumerate() {
        let Some(watched) = &made.run.watched else { continue };
        asked += watched.asked;
        span_cycles += made.run.span_cycles;
        stalls.extend(watched.slow.iter().map(|slow| Stall {
            run: index,
            iteration: slow.index as u64,
            ns: scale.ns_f64(slow.to.since(slow.from) as f64),
            cause: watched.cause_of(slow, scale).map_or(NONE_SEEN, StallCause::name).to_owned(),
        }));
    }
    if span_cycles == 0 {
        return None;
    }
    let seconds = seconds(span_cycles, scale);
    let floor_seconds = rounds.floor.iter().map(|jitter| jitter.span_ns as f64 / 1e9).sum();
    let causes = counts(&stalls, seconds);
    sort_short_by(&mut stalls, |one, other| other.ns.total_cmp(&one.ns));
    let stalls_not_listed = stalls.len().saturating_sub(LISTED) as u64;
    stalls.truncate(LISTED);
    Some(Tail {
        threshold_ns: STALL_NS as f64,
        seconds,
        causes,
        asked,
        floor_seconds,
        floor_causes: floor(rounds, floor_seconds),
        stalls,
        stalls_not_listed,
    })
}

fn seconds(cycles: u64, scale: Scale) -> f64 {
    cycles as f64 / scale.cycles_per_s()
}

fn counts(stalls: &[Stall], seconds: f64) -> Vec<CauseCount> {
    let names = StallCause::ALL.map(StallCause::name).into_iter().chain([NONE_SEEN]);
    let count = |name: &str| {
        let lengths: Vec<f64> = stalls.iter().filter(|stall| stall.cause == name).map(|stall| stall.ns).collect();
        CauseCount {
            cause: name.to_owned(),
            count: lengths.len() as u64,
            per_s: lengths.len() as f64 / seconds,
            total_ns: lengths.iter().sum(),
            max_ns: lengths.iter().copied().fold(0.0, f64::max),
        }
    };
    names.map(count).filter(|count| count.count > 0).collect()
}

fn floor(rounds: &Rounds, seconds: f64) -> Vec<CauseCount> {
    let count = |cause: StallCause| {
        let totals = rounds.floor.iter().map(|jitter| jitter.total(cause));
        let (count, total_ns) = totals.fold((0, 0), |sum, total| (sum.0 + total.0, sum.1 + total.1));
        let stalls = rounds.floor.iter().flat_map(|jitter| &jitter.stalls).filter(|stall| stall.cause == cause);
        CauseCount {
            cause: cause.name().to_owned(),
            count,
            per_s: count as f64 / seconds,
            total_ns: total_ns as f64,
            max_ns: stalls.map(|stall| stall.length_ns).max().unwrap_or(0) as f64,
        }
    };
    StallCause::ALL.into_iter().map(count).filter(|count| count.count > 0).collect()
}
