//! Counts of events in a sliding window of time.

/// Parts of a window. The window is exact to one part: it covers the last seven to eight parts.
const PARTS: u64 = 8;

/// A number of events in a window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    counts: [u32; PARTS as usize],
    /// The number of the latest part.
    part: u64,
}

/// Returns the number of the part of `now_ns` in windows of `width_ns`: a division, whose result every window of this width
/// shares.
pub(crate) const fn part_of(now_ns: u64, width_ns: u64) -> u64 {
    match width_ns.div_ceil(PARTS) {
        0 => now_ns,
        part_ns => now_ns / part_ns,
    }
}

impl Window {
    pub(crate) const EMPTY: Self = Self { counts: [0; PARTS as usize], part: 0 };

    /// Counts an event in `part`, that of a time which never goes back.
    pub(crate) fn count(&mut self, part: u64) {
        let passed = part.saturating_sub(self.part).min(PARTS);
        for ended in 0..passed {
            self.counts[((part - ended) % PARTS) as usize] = 0;
        }
        self.part = self.part.max(part);
        let count = &mut self.counts[(self.part % PARTS) as usize];
        *count = count.saturating_add(1);
    }

    /// Returns the number of events in the window that ends at `now_ns`.
    pub(crate) fn sum(&self, now_ns: u64, width_ns: u64) -> u64 {
        if self.counts == [0; PARTS as usize] {
            return 0;
        }
        self.sum_in(part_of(now_ns, width_ns))
    }

    /// Returns the number of events in the window that ends in `part`.
    pub(crate) fn sum_in(&self, part: u64) -> u64 {
        if part == self.part && part >= PARTS {
            return self.counts.iter().map(|count| u64::from(*count)).sum();
        }
        let is_within = |age: &u64| part.saturating_sub(self.part - age) < PARTS;
        let ages = (0..PARTS).filter(|age| *age <= self.part);
        ages.filter(is_within).map(|age| u64::from(self.counts[((self.part - age) % PARTS) as usize])).sum()
    }
}

crate::fields::visit!(Window: counts, part);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_leave_the_window_after_seven_to_eight_parts() {
        let mut window = Window::default();
        for now in [1, 9, 10, 75] {
            window.count(part_of(now, 80));
        }
        let sums = [75, 79, 80, 89, 90, 100, 149, 150].map(|now| window.sum(now, 80));
        assert_eq!(sums, [4, 4, 2, 2, 1, 1, 1, 0]);
        window.count(part_of(10_000, 80));
        assert_eq!((window.sum(10_000, 80), window.sum(10_080, 80)), (1, 0));
    }
}
