//! Aims of the gate's rows.

use crate::report::{Aim, Row, Statistic};

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

/// A row, the row that it is compared with, and the most that its mean should be in times of that one's.
pub(super) const RELATIVE: [(&str, &str, f64); 4] = [
    ("gate_new_10000_cold_ns", "gate_floor_new_cold_ns", 1.5),
    ("gate_mark_10000_cold_ns", "gate_floor_mark_cold_ns", 1.5),
    ("gate_batch_10000_cold_ns", "gate_new_10000_cold_ns", 0.5),
    ("gate_new_durable_ns", "gate_floor_disk_ns", 1.2),
];

/// The aims of the row named `name` that follow from other rows of the same run.
pub(crate) fn relative_aims(name: &str, rows: &[Row]) -> Vec<Aim> {
    let of = RELATIVE.iter().filter(|(row, ..)| *row == name);
    let aim = |(_, floor, times): &(&str, &str, f64)| {
        let floor = rows.iter().find(|row| row.name == *floor)?.figure(Statistic::Mean)?;
        Some(Aim { statistic: Statistic::Mean, at_most: floor.value * times })
    };
    of.filter_map(aim).collect()
}
