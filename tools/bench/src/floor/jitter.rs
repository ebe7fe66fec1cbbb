//! A core's stalls as a row.

use crate::machine::{Jitter, StallCause};
use crate::report::floor::{InterruptCount, JitterRow, LongStall};
use crate::report::ring::CauseCount;
use tt_model::sort_short_by_key;

/// The longest stalls that a row lists.
const LONGEST: usize = 16;

/// The row of `jitter`.
pub(super) fn row(jitter: &Jitter, at_once: bool) -> JitterRow {
    let seconds = jitter.span_ns as f64 / 1e9;
    let total_ns: u64 = jitter.totals.iter().map(|(_, ns)| ns).sum();
    let mut longest: Vec<_> = jitter.stalls.iter().collect();
    sort_short_by_key(&mut longest, |stall| std::cmp::Reverse(stall.length_ns));
    longest.truncate(LONGEST);
    let cause = |cause: StallCause| {
        let (count, total_ns) = jitter.total(cause);
        let lengths = jitter.stalls.iter().filter(|stall| stall.cause == cause).map(|stall| stall.length_ns);
        CauseCount {
            cause: cause.name().to_owned(),
            count,
            per_s: count as f64 / seconds.max(1e-9),
            total_ns: total_ns as f64,
            max_ns: lengths.max().unwrap_or(0) as f64,
        }
    };
    JitterRow {
        cpu: jitter.cpu,
        at_once,
        seconds,
        asking_seconds: jitter.asking_ns as f64 / 1e9,
        threshold_ns: jitter.threshold_ns,
        stalls_per_s: jitter.count() as f64 / seconds.max(1e-9),
        share: total_ns as f64 / jitter.span_ns.max(1) as f64,
        causes: StallCause::ALL.map(cause).to_vec(),
        interrupts: jitter
            .interrupts
            .iter()
            .map(|(name, count)| InterruptCount { name: name.clone(), count: *count })
            .collect(),
        longest: longest
            .into_iter()
            .map(|stall| LongStall {
                at_s: stall.at_ns as f64 / 1e9,
                length_ns: stall.length_ns,
                cause: stall.cause.name().to_owned(),
            })
            .collect(),
        unkept: jitter.unkept,
    }
}

#[cfg(test)]
mod tests {
    use crate::machine::{Jitter, Stall, StallCause, Witness};
    use tt_meter::Stamp;

    use super::row;

    #[test]
    fn a_row_adds_up_what_was_seen() {
        let stall = |at_ns, length_ns, cause| Stall { at_ns, length_ns, cpu: 3, cause };
        let stalls = vec![stall(5, 2_000, StallCause::Interrupt), stall(90, 6_000, StallCause::Interrupt)];
        let jitter = Jitter {
            cpu: 3,
            threshold_ns: 1_000,
            start: Stamp(0),
            span_ns: 2_000_000_000,
            asking_ns: 20_000_000,
            stalls,
            unkept: 1,
            totals: [(2, 8_000), (0, 0), (0, 0), (0, 0), (0, 0), (1, 1_500)],
            interrupts: vec![("LOC".to_owned(), 2)],
            cpu_times: None,
            witness: Witness { interrupts: true, steal: false, interrupt_time: false, frequency: false },
        };
        let row = row(&jitter, false);
        assert_eq!((row.stalls_per_s, row.causes[0].per_s, row.causes[0].max_ns), (1.5, 1.0, 6_000.0));
        assert_eq!((row.longest[0].length_ns, row.causes[5].count), (6_000, 1));
        assert!((row.share - 9_500.0 / 2e9).abs() < 1e-12);
    }
}
