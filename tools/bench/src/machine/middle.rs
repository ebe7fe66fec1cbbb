//! The middle of many readings of a clock that moves in steps.

/// The median, interpolated within the step of the clock that it falls into: readings that differ by steps of ten say on
/// which side of the middle most of them lie. Sorts `values`; `None` without any.
#[must_use]
pub fn middle(values: &mut [u64]) -> Option<f64> {
    within_step(values, 0.5)
}

/// The `q` quantile (0 to below 1) in the same way.
pub fn within_step(values: &mut [u64], q: f64) -> Option<f64> {
    values.sort_unstable();
    let wanted = values.len() as f64 * q;
    let (least, median) = (*values.first()?, *values.get(wanted as usize)?);
    let below = values.partition_point(|value| *value < median);
    let until = values.partition_point(|value| *value <= median);
    let share = (wanted - below as f64) / (until - below) as f64;
    let step = values.iter().fold(0, |step, value| greatest_divisor(step, value - least));
    Some(median as f64 + (share - 0.5) * step as f64)
}

/// The greatest number that divides both.
fn greatest_divisor(one: u64, other: u64) -> u64 {
    let (mut one, mut other) = (one, other);
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::middle;

    #[test]
    fn a_middle_between_two_steps_is_found() {
        // What lasts 23.4 reads 20 or 30 on a clock of steps of ten, the closer one more often.
        let mut readings: Vec<u64> = (0..1000).map(|n| if n % 100 < 66 { 20 } else { 30 }).collect();
        assert!((middle(&mut readings).unwrap() - 23.4).abs() < 1.2);
        let mut fine: Vec<u64> = (0..=1000).rev().collect();
        assert!((middle(&mut fine).unwrap() - 500.0).abs() <= 0.5);
        // What is far away says nothing of the step.
        readings.extend([4_000, 19_000]);
        assert!((middle(&mut readings).unwrap() - 23.4).abs() < 1.3);
        assert_eq!(middle(&mut [7, 7, 7]), Some(7.0));
        assert_eq!(middle(&mut []), None);
    }

    /// A clock with steps of ten, started at any phase: the middle is within a tenth of a step or two of the truth.
    #[test]
    fn steps_do_not_hide_a_shift() {
        let read = |lasts: f64| {
            let mut readings: Vec<u64> = (0..5000_u32)
                .map(|n| {
                    let phase = f64::from(n * 7 % 1000) / 100.0;
                    let spread = f64::from(n * 13 % 601) / 100.0 - 3.0;
                    ((phase + lasts + spread) / 10.0).floor() as u64 * 10
                })
                .collect();
            middle(&mut readings).unwrap()
        };
        for lasts in [61.0, 63.5, 65.0, 68.2] {
            assert!((read(lasts) - lasts).abs() < 2.0, "{lasts}: {}", read(lasts));
            assert!((read(lasts + 50.0) - read(lasts) - 50.0).abs() < 1e-9);
        }
    }
}
