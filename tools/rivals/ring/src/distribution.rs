//! Times of one run, in cycles, exactly up to a bound.

/// Times below this have a count of their own, in a table that stays in the core's own cache.
const FINE: usize = 4_096;

/// Counts by time; what is longer than [`FINE`] is kept as it is.
#[derive(Clone, Debug)]
pub(crate) struct Distribution {
    fine: Box<[u32; FINE]>,
    long: Vec<u64>,
}

impl Distribution {
    /// With its memory touched, so that no page comes while it counts.
    pub(crate) fn new() -> Self {
        let mut fine = Box::new([0; FINE]);
        for count in fine.iter_mut() {
            // Zero again, but written.
            *count = std::hint::black_box(0);
        }
        let mut long = vec![1; 1 << 14];
        long.clear();
        Self { fine, long }
    }

    #[inline(always)]
    pub(crate) fn record(&mut self, cycles: u64) {
        match self.fine.get_mut(cycles as usize) {
            Some(count) => *count += 1,
            None => self.long.push(cycles),
        }
    }

    /// Cycles and how often, rising.
    pub(crate) fn counts(&self) -> Vec<(u64, u64)> {
        let fine = self.fine.iter().zip(0..).filter(|(count, _)| **count > 0);
        let mut counts: Vec<(u64, u64)> = fine.map(|(count, cycles)| (cycles, u64::from(*count))).collect();
        let mut long = self.long.clone();
        long.sort_unstable();
        counts.extend(long.into_iter().map(|cycles| (cycles, 1)));
        counts
    }
}

/// Nanoseconds and how often: what a file of runs keeps of a run. Whole nanoseconds below 512, three digits above.
pub(crate) fn encode(counts: &[(f64, u64)]) -> String {
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (ns, count) in counts {
        let ns = rounded(*ns);
        match merged.last_mut() {
            Some((last, sum)) if *last == ns => *sum += count,
            _ => merged.push((ns, *count)),
        }
    }
    merged.iter().map(|(ns, count)| format!("{ns}:{count}")).collect::<Vec<_>>().join(" ")
}

fn rounded(ns: f64) -> u64 {
    let whole = ns.round() as u64;
    let unit = if whole < 512 { 1 } else { 10_u64.pow(whole.ilog10() - 1) };
    whole / unit * unit
}

/// What [`encode`] wrote; `None` for another text.
pub(crate) fn decode(text: &str) -> Option<Vec<(u64, u64)>> {
    let pair = |pair: &str| {
        let (ns, count) = pair.split_once(':')?;
        Some((ns.parse().ok()?, count.parse().ok()?))
    };
    text.split_whitespace().map(pair).collect()
}

/// The `q` quantile of sorted values and their counts.
pub(crate) fn quantile<V: Copy>(counts: &[(V, u64)], q: f64) -> Option<V> {
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    let wanted = ((total as f64 * q).ceil() as u64).max(1);
    let mut seen = 0;
    counts.iter().find_map(|(value, count)| {
        seen += count;
        (seen >= wanted).then_some(*value)
    })
}

/// The median where a clock that runs in steps allows no finer values: each value represents all up to halfway to its
/// neighbours, evenly, as in any grouped data.
pub(crate) fn median(counts: &[(u64, u64)]) -> Option<f64> {
    let half = counts.iter().map(|(_, count)| *count).sum::<u64>() as f64 / 2.0;
    let mut below = 0.0;
    let at = counts.iter().position(|(_, count)| {
        below += *count as f64;
        below >= half
    })?;
    let (value, count) = (counts[at].0 as f64, counts[at].1 as f64);
    let neighbour = |at: Option<usize>| at.and_then(|at| counts.get(at)).map(|(value, _)| *value as f64);
    let (lower, upper) = (neighbour(at.checked_sub(1)), neighbour(Some(at + 1)));
    let to_upper = upper.or(lower.map(|lower| 2.0 * value - lower)).map_or(0.0, |upper| (upper - value) / 2.0);
    let to_lower = lower.map_or(to_upper, |lower| (value - lower) / 2.0);
    let within = (half - (below - count)) / count;
    Some(value - to_lower + within * (to_lower + to_upper))
}

/// As [`quantile`], if at least 100 values lie above.
pub(crate) fn quantile_reached(counts: &[(u64, u64)], q: f64) -> Option<u64> {
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    (total as f64 * (1.0 - q) >= 100.0).then(|| quantile(counts, q)).flatten()
}

/// Counts of all runs together.
pub(crate) fn merged(runs: &[Vec<(u64, u64)>]) -> Vec<(u64, u64)> {
    let mut all: std::collections::BTreeMap<u64, u64> = std::collections::BTreeMap::new();
    for (value, count) in runs.iter().flatten() {
        *all.entry(*value).or_default() += count;
    }
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::{Distribution, decode, encode, median, merged, quantile, quantile_reached};

    /// What lasts 74.0 and is read by a clock in steps of 10 is read as 70 six times in ten and as 80 four times.
    #[test]
    fn a_median_lies_between_the_steps_of_the_clock() {
        let counts = [(60, 1), (70, 5_999), (80, 3_999), (90, 1)];
        assert!((median(&counts).unwrap_or(0.0) - 73.3).abs() < 0.1);
        assert_eq!(median(&[(70, 3)]), Some(70.0));
        assert_eq!(median(&[(1, 1), (2, 1), (3, 1)]), Some(2.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn quantiles_are_order_statistics() {
        let mut distribution = Distribution::new();
        (1..=100).rev().for_each(|value| distribution.record(value));
        distribution.record(1 << 40);
        let counts = distribution.counts();
        assert_eq!(quantile(&counts, 0.5), Some(51));
        assert_eq!(quantile(&counts, 1.0), Some(1 << 40));
        assert_eq!(quantile_reached(&counts, 0.5), None, "50 values lie above, 100 are asked for");
        assert_eq!(quantile::<u64>(&[], 0.5), None);
    }

    #[test]
    fn a_text_reads_back_with_what_was_rounded() {
        let text = encode(&[(80.2, 3), (80.4, 2), (511.0, 1), (1_239.0, 4), (98_765.0, 1)]);
        assert_eq!(decode(&text), Some(vec![(80, 5), (511, 1), (1_200, 4), (98_000, 1)]));
        let twice = merged(&[decode(&text).unwrap_or_default(), vec![(80, 1)]]);
        assert_eq!(twice[0], (80, 6));
    }
}
