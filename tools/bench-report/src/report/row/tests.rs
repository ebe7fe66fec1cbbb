use super::{Mark, Published, Row, RowText, Statistic, Unit};
use crate::report::{Bootstrap, Estimate, Samples};

const BOOTSTRAP: Bootstrap = Bootstrap { resamples: 500, seed: 1 };
const TEXT: RowText<'static> = RowText { name: "pass", engine: "turn", what: "a pass", unit: Unit::Ns };

fn samples(count: u32) -> Samples {
    let mut samples = Samples::new();
    for block in 0..10 {
        samples.push_block((0..count / 10).map(|value| f64::from(value * 10 + block)).collect());
    }
    samples
}

fn published(statistic: Statistic, value: f64) -> Published {
    Published { value, unit: Unit::Ns, statistic, what: "theirs".to_owned() }
}

#[test]
fn a_percentile_needs_a_hundred_samples_above_it() {
    let row = Row::of(TEXT, &samples(10_000), 1, &BOOTSTRAP).expect("there are samples");
    let quantiles = row.quantiles.expect("timed one by one");
    assert_eq!(quantiles.p99.map(|p99| p99.value), Some(9_899.0));
    assert_eq!(quantiles.p999, None);
    assert_eq!((quantiles.min, quantiles.max), (Some(0.0), Some(9_999.0)));
    let few = Row::of(TEXT, &samples(190), 1, &BOOTSTRAP).expect("there are samples");
    assert_eq!(few.quantiles.expect("timed one by one").p50, None);
}

#[test]
fn batches_have_no_quantiles_and_compare_their_mean() {
    let row = Row::of(TEXT, &samples(1_000), 32, &BOOTSTRAP).expect("there are samples");
    assert_eq!(row.quantiles, None);
    assert_eq!(row.n, 32_000);
    assert_eq!(row.mean, 499.5);
    assert_eq!(row.mark(&published(Statistic::P99, 1.0)), None);
    assert!(matches!(row.mark(&published(Statistic::P50, 999.0)), Some(Mark::Better(factor)) if factor == 2.0));
    assert!(matches!(row.mark(&published(Statistic::P50, 1.0)), Some(Mark::Worse(factor)) if factor == 499.5));
    assert_eq!(row.mark(&published(Statistic::P50, 499.6)), Some(Mark::Alike));
}

#[test]
fn more_is_better_where_the_unit_is_a_rate() {
    let rate = Estimate { value: 60.0, low: 58.0, high: 62.0 };
    assert_eq!(Mark::of(&rate, 30.0, Unit::MillionPerS), Mark::Better(2.0));
    assert_eq!(Mark::of(&rate, 120.0, Unit::MillionPerS), Mark::Worse(2.0));
    assert_eq!(Mark::of(&rate, 61.0, Unit::MillionPerS), Mark::Alike);
}

#[test]
fn a_figure_in_another_unit_is_not_compared() {
    let row = Row::of(TEXT, &samples(1_000), 1, &BOOTSTRAP).expect("there are samples");
    let theirs = Published { unit: Unit::MillionPerS, ..published(Statistic::Mean, 1.0) };
    assert_eq!(row.mark(&theirs), None);
}
