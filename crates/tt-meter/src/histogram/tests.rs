use super::Histogram;

extern crate std;
use std::vec::Vec;

fn scattered(n: usize) -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 24) >> (state % 40)
        })
        .collect()
}

#[test]
fn every_value_lies_in_the_bounds_of_its_bucket_and_buckets_leave_no_hole() {
    for value in (0..100_000).chain(scattered(100_000)) {
        let (low, high) = Histogram::bounds(Histogram::bucket(value));
        assert!(low <= value && value <= high, "{value} not in {low}..={high}");
        assert!(high - low <= low / 32, "bucket of {value} is too wide");
    }
    for bucket in 1..Histogram::BUCKETS {
        assert_eq!(Histogram::bounds(bucket).0, Histogram::bounds(bucket - 1).1 + 1);
    }
}

#[test]
fn quantiles_agree_with_sorting() {
    let mut values = scattered(50_000);
    let mut histogram = Histogram::new();
    values.iter().for_each(|value| histogram.record(*value));
    values.sort_unstable();
    for per_million in [1, 10_000, 500_000, 900_000, 990_000, 999_000, 1_000_000] {
        let rank = (values.len() * per_million as usize).div_ceil(1_000_000).max(1);
        let exact = values[rank - 1];
        let found = histogram.quantile(per_million, 0).expect("there are values");
        assert!(found.abs_diff(exact) <= exact / 32, "{per_million}: {found} for {exact}");
    }
    assert_eq!(histogram.min(), values.first().copied());
    assert_eq!(histogram.max(), values.last().copied());
    assert_eq!(histogram.sum(), values.iter().sum::<u64>());
}

#[test]
fn a_quantile_needs_its_samples_above() {
    let mut histogram = Histogram::new();
    assert_eq!(histogram.quantile(500_000, 0), None);
    (0..10_000).for_each(|value| histogram.record(value));
    assert!(histogram.quantile(990_000, 100).is_some());
    assert_eq!(histogram.quantile(990_001, 100), None);
}

#[test]
fn merging_is_recording_both() {
    let values = scattered(2_000);
    let (mut all, mut left, mut right) = (Histogram::new(), Histogram::new(), Histogram::new());
    for (index, value) in values.iter().enumerate() {
        all.record(*value);
        if index % 3 == 0 { left.record(*value) } else { right.record(*value) }
    }
    left.merge(&right);
    assert_eq!(left, all);
    assert_eq!(all.filled().map(|(_, _, count)| count).sum::<u64>(), all.count());
}

#[test]
fn values_beyond_the_range_count_in_the_last_bucket() {
    let mut histogram = Histogram::new();
    histogram.record(u64::MAX);
    assert_eq!(histogram.count(), 1);
    assert_eq!(histogram.max(), Some(u64::MAX));
    assert_eq!(histogram.quantile(500_000, 0), Some(u64::MAX));
}
