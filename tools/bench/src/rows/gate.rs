//! The shipped gate: `risk_gate::DurableGate` with every check on and its journal (`process`), over 1, 100 and 10,000
//! instruments.

mod aims;
mod early_out;
mod floor;
mod limits;
mod open_loop;
mod rig;
mod stream;

use crate::harness::entry::Entry;
use crate::harness::operation::{Chunked, Label};
pub(crate) use aims::{aims, relative_aims};
use early_out::EarlyOut;
use floor::{DiskWrites, LINES_OF_MARK, LINES_OF_NEW, Lines};
use open_loop::{Mode, OpenLoop};
pub(crate) use rig::remove_journals_of;
use risk_gate::Durability;
use stream::{Batches, Kind, Setup, Stream};

const ENGINE: &str = "gate";

/// Orders in 100 that are refused, where the row's name does not say so.
const REFUSED: u32 = 5;

macro_rules! row {
    ($name:literal, $kind:expr, $instruments:literal, $counted:literal) => {
        row!($name, $kind, $instruments, $counted, 0, REFUSED)
    };
    ($name:literal, $kind:expr, $instruments:literal, $counted:literal, $resting:literal, $refused:expr) => {
        Entry {
            engine: ENGINE,
            name: concat!("gate_", $name, "_ns"),
            make: || {
                let setup = Setup { resting: $resting, refused_in_100: $refused, ..setup($kind, $instruments) };
                let label = label(concat!("gate_", $name, "_ns"), what($kind));
                Ok(Box::new(Chunked::new(label, Stream::new(&setup)?).with_cold(concat!("gate_", $name, "_cold_ns"))))
            },
            counted: $counted,
        }
    };
}

/// New orders through a gate without one check: what the check costs.
macro_rules! without {
    ($name:literal, $key:literal) => {
        Entry {
            engine: ENGINE,
            name: concat!("gate_without_", $name, "_ns"),
            make: || {
                let setup = Setup { without: Some($key), ..setup(Kind::New, 1) };
                let label = label(
                    concat!("gate_without_", $name, "_ns"),
                    concat!("gate_new_ns in a gate whose limits say ", $key, " = \"off\""),
                );
                Ok(Box::new(Chunked::new(label, Stream::new(&setup)?)))
            },
            counted: true,
        }
    };
}

/// New orders in batches whose memory is asked for ahead.
macro_rules! batch {
    ($name:literal, $instruments:literal) => {
        Entry {
            engine: ENGINE,
            name: concat!("gate_", $name, "_ns"),
            make: || {
                let label = label(
                    concat!("gate_", $name, "_ns"),
                    "gate_new in batches of 16 orders, after DurableGate::prefetch of the batch; an order of it",
                );
                let batches = Batches(Stream::new(&setup(Kind::New, $instruments))?);
                Ok(Box::new(Chunked::new(label, batches).with_cold(concat!("gate_", $name, "_cold_ns"))))
            },
            counted: false,
        }
    };
}

/// Reads of cold lines.
macro_rules! lines {
    ($name:literal, $lines:expr) => {
        Entry {
            engine: ENGINE,
            name: concat!("gate_floor_", $name, "_ns"),
            make: || {
                let label = label(
                    concat!("gate_floor_", $name, "_ns"),
                    "a word of as many cache lines as the event touches first in a gate of 10,000 instruments",
                );
                let lines = Chunked::new(label, Lines::new($lines));
                Ok(Box::new(lines.with_cold(concat!("gate_floor_", $name, "_cold_ns"))))
            },
            counted: false,
        }
    };
}

/// Intent to verdict at a fixed rate.
macro_rules! open_loop {
    ($name:literal, $per_second:literal, $spins:literal, $intents:literal) => {
        open_loop!($name, $per_second, $spins, $intents, false)
    };
    ($name:literal, $per_second:literal, $spins:literal, $intents:literal, $over_tcp:literal) => {
        Entry {
            engine: ENGINE,
            name: concat!("gate_", $name, "_ns"),
            make: || {
                let names = [concat!("gate_", $name, "_ns"), concat!("gate_", $name, "_echo_ns")];
                let mode =
                    Mode { names, per_second: $per_second, spins: $spins, over_tcp: $over_tcp, intents: $intents };
                Ok(Box::new(OpenLoop::new(mode)?))
            },
            counted: false,
        }
    };
}

const fn setup(kind: Kind, instruments: u32) -> Setup {
    Setup { kind, instruments, resting: 0, refused_in_100: REFUSED, without: None, durability: Durability::Process }
}

/// The rows in the order of the table of aims.
pub(crate) fn entries() -> Vec<Entry> {
    let mut entries = events();
    entries.extend(floors_and_parts());
    entries.extend(whole_ways());
    entries
}

/// Events of each kind, and their mix.
fn events() -> Vec<Entry> {
    vec![
        row!("new", Kind::New, 1, true),
        row!("new_100", Kind::New, 100, true),
        row!("new_10000", Kind::New, 10_000, false),
        row!("cancel", Kind::Cancel, 1, true),
        row!("cancel_100", Kind::Cancel, 100, true),
        row!("cancel_10000", Kind::Cancel, 10_000, false),
        row!("cancel_open_10000", Kind::Cancel, 1, true, 10_000, 0),
        row!("fill", Kind::Fill, 1, true),
        row!("fill_100", Kind::Fill, 100, true),
        row!("fill_10000", Kind::Fill, 10_000, false),
        row!("fill_open_10000", Kind::Fill, 1, true, 10_000, 0),
        row!("replace", Kind::Replace, 1, true),
        row!("replace_100", Kind::Replace, 100, true),
        row!("replace_10000", Kind::Replace, 10_000, false),
        row!("mark", Kind::Mark, 1, true),
        row!("mark_100", Kind::Mark, 100, true),
        row!("mark_10000", Kind::Mark, 10_000, false),
        row!("mix", Kind::Mix, 1, false),
        row!("mix_100", Kind::Mix, 100, false),
        row!("mix_10000", Kind::Mix, 10_000, false),
        row!("mix_refused_0", Kind::Mix, 1, false, 0, 0),
        row!("mix_refused_50", Kind::Mix, 1, false, 0, 50),
        batch!("batch", 1),
        batch!("batch_100", 100),
        batch!("batch_10000", 10_000),
    ]
}

/// What events cannot be faster than, and what each check costs.
fn floors_and_parts() -> Vec<Entry> {
    vec![
        lines!("new", LINES_OF_NEW),
        lines!("mark", LINES_OF_MARK),
        without!("touch", "touch-bps"),
        without!("proof_age", "proof-age-max-ms"),
        without!("cancel_ratio", "cancels-per-fill-max"),
        without!("net", "net-max"),
        without!("balance", "balance"),
        without!("margin", "margin"),
        without!("leverage", "leverage-max"),
    ]
}

/// From thread to thread, and to the disk; the core of the gate in another way.
fn whole_ways() -> Vec<Entry> {
    vec![
        open_loop!("open_100k", 100_000.0, true, 4_096),
        open_loop!("open_1m", 1_000_000.0, true, 4_096),
        open_loop!("open_sleeping", 10_000.0, false, 512),
        open_loop!("open_tcp", 100_000.0, true, 4_096, true),
        Entry {
            engine: ENGINE,
            name: "gate_new_durable_ns",
            make: || {
                let label = label(
                    "gate_new_durable_ns",
                    "gate_new with a journal that is on the disk before the verdict: one order for each wait",
                );
                let setup = Setup { durability: Durability::Durable, ..setup(Kind::New, 1) };
                Ok(Box::new(Chunked::new(label, Stream::new(&setup)?)))
            },
            counted: false,
        },
        Entry {
            engine: ENGINE,
            name: "gate_floor_disk_ns",
            make: || {
                let label = label("gate_floor_disk_ns", "a record's bytes written to a file, and fdatasync");
                Ok(Box::new(Chunked::new(label, DiskWrites::new()?)))
            },
            counted: false,
        },
        Entry {
            engine: ENGINE,
            name: "gate_core_early_out_ns",
            make: || {
                let label = label(
                    "gate_core_early_out_ns",
                    "the checks and orders of evaluator_ns in a gate that stops at the first reason and reports none",
                );
                Ok(Box::new(Chunked::new(label, EarlyOut::new())))
            },
            counted: true,
        },
    ]
}

const fn what(kind: Kind) -> &'static str {
    match kind {
        Kind::New => "DurableGate::evaluate and commit of a new order: every check on, record in the journal",
        Kind::Cancel => "DurableGate::evaluate and commit of a cancel of an open order",
        Kind::Replace => "DurableGate::evaluate and commit of a replace of an open order by one lot more",
        Kind::Fill => "DurableGate::apply of a fill of a whole order",
        Kind::Mark => "DurableGate::set_reference: a new mark with its record in the journal",
        Kind::Mix => {
            "an event of the mix: 60 % new, 20 % cancel, 15 % fill, 5 % replace, five marks before each; a mark counts as \
             an event"
        }
    }
}

fn label(name: &'static str, what: &'static str) -> Label {
    Label { name, engine: ENGINE, what, published: Vec::new(), rate: None }
}

#[cfg(test)]
mod tests {
    use super::{aims, entries};

    #[test]
    fn each_event_is_there_for_1_100_and_10000_instruments() {
        let names: Vec<&str> = entries().iter().map(|entry| entry.name).collect();
        for row in ["new", "cancel", "fill", "replace", "mark", "mix"] {
            for size in ["", "_100", "_10000"] {
                assert!(names.contains(&format!("gate_{row}{size}_ns").as_str()), "{row}{size}");
            }
        }
    }

    #[test]
    fn aims_are_those_of_rows() {
        let rows = entries();
        assert_eq!(rows.iter().map(|entry| aims(entry.name).len()).sum::<usize>(), 10);
        let is_row = |name: &str| rows.iter().any(|entry| name == entry.name || name == cold(entry.name));
        for (row, floor, _) in aims::RELATIVE {
            assert!(is_row(row) && is_row(floor), "{row}, {floor}");
        }
        assert!(aims::OPEN.iter().all(|(row, _)| is_row(row)));
    }

    fn cold(name: &str) -> String {
        name.replace("_ns", "_cold_ns")
    }

    #[test]
    fn each_check_can_be_off() {
        let all = super::limits::text(1, None);
        for entry in entries().iter().filter(|entry| entry.name.starts_with("gate_without_")) {
            (entry.make)().expect("a gate without the check");
        }
        for key in ["touch-bps", "margin"] {
            assert_ne!(super::limits::text(1, Some(key)), all);
        }
    }
}
