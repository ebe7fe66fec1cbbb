//! The shipped gate: `risk_gate::DurableGate` with every check on and its journal (`process`), over 1, 100 and 10,000
//! instruments.

mod aims;
mod early_out;
mod limits;
mod rig;
mod stream;

use crate::harness::entry::Entry;
use crate::harness::operation::{Bench, Chunked, Label};
pub(crate) use aims::aims;
use early_out::EarlyOut;
pub(crate) use rig::remove_journals_of;
use stream::{Kind, Stream};

const ENGINE: &str = "gate";

type Made = anyhow::Result<Box<dyn Bench>>;

/// Orders in 100 that are refused, where the row's name does not say so.
const REFUSED: u32 = 5;

/// A row's name, the name of its row with caches displaced, and its sizes.
#[derive(Clone, Copy)]
struct Size {
    name: &'static str,
    cold: &'static str,
    instruments: u32,
    /// Orders that are open all the time.
    resting: u32,
    refused_in_100: u32,
}

macro_rules! row {
    ($name:literal, $kind:expr, $instruments:literal, $counted:literal) => {
        row!($name, $kind, $instruments, $counted, 0, REFUSED)
    };
    ($name:literal, $kind:expr, $instruments:literal, $counted:literal, $resting:literal, $refused:expr) => {
        Entry {
            engine: ENGINE,
            name: concat!("gate_", $name, "_ns"),
            make: || {
                made(
                    $kind,
                    Size {
                        name: concat!("gate_", $name, "_ns"),
                        cold: concat!("gate_", $name, "_cold_ns"),
                        instruments: $instruments,
                        resting: $resting,
                        refused_in_100: $refused,
                    },
                )
            },
            counted: $counted,
        }
    };
}

/// The rows in the order of the table of aims.
pub(crate) fn entries() -> Vec<Entry> {
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

fn made(kind: Kind, size: Size) -> Made {
    let stream = Stream::new(kind, size.instruments, (size.resting, size.refused_in_100))?;
    Ok(Box::new(Chunked::new(label(size.name, what(kind)), stream).with_cold(size.cold)))
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
    }
}
