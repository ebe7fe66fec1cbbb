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

/// Rows of intents at a fixed rate through a gate that polls, each with the row of its echo.
pub(super) const OPEN: [(&str, &str); 2] =
    [("gate_open_100k_ns", "gate_open_100k_echo_ns"), ("gate_open_1m_ns", "gate_open_1m_echo_ns")];

/// The median is at most that of the echo, an evaluation and this together.
const OPEN_MORE_NS: f64 = 50.0;

/// The 99.9th percentile is at most this many times that of the echo.
const OPEN_TAIL: f64 = 3.0;

/// The aims of the row named `name` that follow from other rows of the same run.
pub(crate) fn relative_aims(name: &str, rows: &[Row]) -> Vec<Aim> {
    let figure = |row: &str, statistic| rows.iter().find(|of| of.name == row)?.figure(statistic).map(|of| of.value);
    if let Some((_, echo)) = OPEN.iter().find(|(row, _)| *row == name) {
        let middle = figure(echo, Statistic::P50).zip(figure("gate_new_ns", Statistic::Mean));
        let middle = middle.map(|(echo, evaluation)| (Statistic::P50, echo + evaluation + OPEN_MORE_NS));
        let tail = figure(echo, Statistic::P999).map(|echo| (Statistic::P999, OPEN_TAIL * echo));
        return middle.into_iter().chain(tail).map(|(statistic, at_most)| Aim { statistic, at_most }).collect();
    }
    let of = RELATIVE.iter().filter(|(row, ..)| *row == name);
    let aim = |(_, floor, times): &(&str, &str, f64)| {
        Some(Aim { statistic: Statistic::Mean, at_most: figure(floor, Statistic::Mean)? * times })
    };
    of.filter_map(aim).collect()
}
