//! Aims of the gate's rows.

use crate::report::{Aim, Statistic};

/// Row and the most that its mean should be in nanoseconds.
const AIMS: [(&str, f64); 10] = [
    ("gate_new_ns", 90.0),
    ("gate_new_100_ns", 110.0),
    ("gate_cancel_ns", 60.0),
    ("gate_cancel_100_ns", 70.0),
    ("gate_cancel_open_10000_ns", 60.0),
    ("gate_fill_ns", 60.0),
    ("gate_fill_100_ns", 70.0),
    ("gate_fill_open_10000_ns", 60.0),
    ("gate_mark_ns", 10.0),
    ("gate_mark_100_ns", 10.0),
];

/// The aims of the row named `name`.
pub(crate) fn aims(name: &str) -> Vec<Aim> {
    let of = AIMS.iter().filter(|(row, _)| *row == name);
    of.map(|(_, at_most)| Aim { statistic: Statistic::Mean, at_most: *at_most }).collect()
}
