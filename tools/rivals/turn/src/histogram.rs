//! Counts of latencies in buckets that are 1/32 of an octave wide, so that runs can be added up without loss.

use std::fmt::Write as _;

/// Buckets of one octave.
const OCTAVE: u64 = 32;
const BITS: u32 = OCTAVE.trailing_zeros();

/// A distribution of nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    max_ns: u64,
}

impl Histogram {
    pub(crate) fn record(&mut self, ns: u64) {
        let at = bucket(ns);
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    pub(crate) fn len(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The `q` quantile, the upper end of its bucket; `None` where fewer than 100 samples lie above it.
    pub(crate) fn quantile_ns(&self, q: f64) -> Option<u64> {
        let len = self.len();
        let rank = (len as f64 * q).ceil() as u64;
        if len.saturating_sub(rank) < 100 {
            return None;
        }
        let mut below = 0;
        let at = self.counts.iter().position(|count| {
            below += count;
            below >= rank.max(1)
        })?;
        Some(upper_end(at).min(self.max_ns))
    }

    /// `max bucket:count bucket:count …`
    pub(crate) fn encode(&self) -> String {
        let mut text = self.max_ns.to_string();
        for (at, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let _ = write!(text, " {at}:{count}");
        }
        text
    }

    pub(crate) fn decode(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        let mut histogram = Self { counts: Vec::new(), max_ns: parts.next()?.parse().ok()? };
        for part in parts {
            let (at, count) = part.split_once(':')?;
            let at: usize = at.parse().ok().filter(|at| *at <= bucket(u64::MAX))?;
            if at >= histogram.counts.len() {
                histogram.counts.resize(at + 1, 0);
            }
            histogram.counts[at] += count.parse::<u64>().ok()?;
        }
        Some(histogram)
    }
}

fn bucket(ns: u64) -> usize {
    if ns < OCTAVE {
        return ns as usize;
    }
    let octave = ns.ilog2() - BITS;
    (u64::from(octave) * OCTAVE + (ns >> octave)) as usize
}

/// The greatest value of a bucket.
fn upper_end(at: usize) -> u64 {
    let at = at as u64;
    if at < 2 * OCTAVE {
        return at;
    }
    let octave = at / OCTAVE - 1;
    ((((at % OCTAVE) + OCTAVE + 1) as u128) << octave).saturating_sub(1).min(u128::from(u64::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::{Histogram, bucket, upper_end};

    #[test]
    fn buckets_hold_what_their_ends_say() {
        for ns in (0..70_000).chain([1 << 20, (1 << 40) + 7, u64::MAX - 1, u64::MAX]) {
            let at = bucket(ns);
            assert!(upper_end(at) >= ns && (at == 0 || upper_end(at - 1) < ns), "{ns} in {at}");
            assert!(upper_end(at) - ns <= ns / 32, "{ns} in {at}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_values() {
        let mut histogram = Histogram::default();
        (1..=100_000).for_each(|ns| histogram.record(ns));
        for (q, exact) in [(0.5, 50_000.0), (0.9, 90_000.0), (0.99, 99_000.0)] {
            let found = histogram.quantile_ns(q).expect("there are enough above") as f64;
            assert!(found >= exact && found <= exact * (1.0 + 1.0 / 32.0), "{q}: {found}");
        }
        assert_eq!(histogram.quantile_ns(0.9999), None, "10 samples lie above");
        assert_eq!(Histogram::decode(&histogram.encode()), Some(histogram));
    }
}
