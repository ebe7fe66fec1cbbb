//! Aims of the market rows.

use crate::report::{Aim, Statistic};

/// Row, statistic, and the most that it should be in nanoseconds.
const AIMS: [(&str, Statistic, f64); 12] = [
    ("state_ticker_alone_ns", Statistic::Mean, 13.0),
    ("state_ticker_ns", Statistic::Mean, 20.0),
    ("state_mark_price_ns", Statistic::Mean, 30.0),
    ("state_order_update_ns", Statistic::Mean, 80.0),
    ("state_ob_snap_ns", Statistic::Mean, 20_000.0),
    ("state_ob_delta_per_level_ns", Statistic::Mean, 8.0),
    ("parse_book_ticker_ns", Statistic::Mean, 90.0),
    ("parse_depth_per_level_ns", Statistic::Mean, 35.0),
    // The next goal.
    ("parse_depth_per_level_ns", Statistic::Mean, 15.0),
    ("verified_frame_ns", Statistic::Mean, 600.0),
    ("end_to_end_recorded_ns", Statistic::P50, 2_000.0),
    ("end_to_end_recorded_ns", Statistic::P99, 10_000.0),
];

/// The aims of the row named `name`.
pub(crate) fn aims(name: &str) -> Vec<Aim> {
    let of = AIMS.iter().filter(|(row, _, _)| *row == name);
    of.map(|(_, statistic, at_most)| Aim { statistic: *statistic, at_most: *at_most }).collect()
}
