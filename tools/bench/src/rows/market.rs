//! Melaya's rows: frames to market state.
//!
//! Input is captured where `TRUETICK_DATA` is set, else the committed recordings of the simulator. Each row is there for
//! 1, 100 and 10,000 instruments, and each again with caches displaced.

mod aims;
mod delta;
mod kraken;
mod live;
mod parse;
mod recorded;
mod rig;
mod snapshot;
mod source;
mod state;
pub mod streams;
mod updates;

use crate::report::{Published, Statistic, Unit};

use crate::harness::entry::Entry;
use crate::harness::operation::{Bench, Chunked, Label};
use crate::harness::stages::Stages;
pub(crate) use aims::aims;
use delta::Delta;
use kraken::Verified;
use live::EndToEnd;
use parse::{Frames, Parse};
use recorded::Recorded;
use snapshot::Snapshot;
use state::{Kind, State};

const ENGINE: &str = "market";

type Made = anyhow::Result<Box<dyn Bench>>;

/// A row's size and names.
#[derive(Clone, Copy, Debug)]
struct Size {
    instruments: usize,
    name: &'static str,
    /// The same with caches displaced.
    cold: &'static str,
    /// The same divided by levels, where that says something.
    per_level: &'static str,
}

/// Entries: one for each number of instruments, with whether the instructions of the first and the last are counted; or
/// one alone.
macro_rules! sized {
    (@all $name:literal, $make:path, $one:literal, $many:literal) => {
        [
            sized!(@one $name, "", $make, 1, $one),
            sized!(@one $name, "_100", $make, 100, false),
            sized!(@one $name, "_10000", $make, 10_000, $many),
        ]
    };
    (@one $name:literal, $suffix:literal, $make:path, $instruments:literal, $counted:literal) => {
        Entry {
            engine: ENGINE,
            name: concat!($name, $suffix, "_ns"),
            make: || {
                $make(Size {
                    instruments: $instruments,
                    name: concat!($name, $suffix, "_ns"),
                    cold: concat!($name, $suffix, "_cold_ns"),
                    per_level: concat!($name, $suffix, "_per_level_ns"),
                })
            },
            counted: $counted,
        }
    };
}

/// The rows in the order in which Melaya published them.
pub(crate) fn entries() -> Vec<Entry> {
    let mut entries = Vec::new();
    entries.extend(sized!(@all "state_ticker", ticker, true, true));
    entries.push(sized!(@one "state_ticker_alone", "", ticker_alone, 1, true));
    entries.extend(sized!(@all "state_mark_price", mark_price, true, true));
    entries.extend(sized!(@all "state_order_update", order_update, true, true));
    entries.extend(sized!(@all "state_ob_snap", snapshot, false, false));
    entries.extend(sized!(@all "state_ob_delta", delta, true, true));
    entries.extend(sized!(@all "parse", parse_all, true, false));
    entries.push(sized!(@one "parse_book_ticker", "", parse_book_ticker, 1, true));
    entries.push(sized!(@one "parse_depth", "", parse_depth, 1, true));
    entries.extend(sized!(@all "end_to_end_recorded", recorded, true, false));
    entries.push(Entry {
        engine: ENGINE,
        name: recorded::STAGES.name,
        make: || {
            let size = Size { instruments: 1, name: recorded::STAGES.name, cold: "", per_level: "" };
            Ok(Box::new(Stages::new(recorded::STAGES, Recorded::new(size)?)))
        },
        counted: false,
    });
    entries.push(sized!(@one "verified_frame", "", verified, 1, true));
    entries.push(Entry {
        engine: ENGINE,
        name: "end_to_end_ns",
        make: || Ok(Box::new(EndToEnd::new()?)),
        counted: false,
    });
    entries
}

fn ticker(size: Size) -> Made {
    state(Kind::Ticker, size)
}

fn ticker_alone(size: Size) -> Made {
    state(Kind::TickerAlone, size)
}

fn mark_price(size: Size) -> Made {
    state(Kind::MarkPrice, size)
}

fn order_update(size: Size) -> Made {
    state(Kind::OrderUpdate, size)
}

fn state(kind: Kind, size: Size) -> Made {
    Ok(Box::new(Chunked::new(State::label(kind, size), State::new(kind, size)?).with_cold(size.cold)))
}

fn snapshot(size: Size) -> Made {
    Ok(Box::new(Snapshot::new(size)?))
}

fn delta(size: Size) -> Made {
    Ok(Box::new(Chunked::new(Delta::label(size), Delta::new(size)?).with_cold(size.cold)))
}

fn parse_all(size: Size) -> Made {
    parse(Frames::All, size)
}

fn parse_book_ticker(size: Size) -> Made {
    parse(Frames::BookTicker, size)
}

fn parse_depth(size: Size) -> Made {
    parse(Frames::Depth, size)
}

fn parse(frames: Frames, size: Size) -> Made {
    let parse = Parse::new(frames, size)?;
    Ok(Box::new(Chunked::new(parse.label(), parse).with_cold(size.cold)))
}

fn recorded(size: Size) -> Made {
    Ok(Box::new(Chunked::new(Recorded::label(size), Recorded::new(size)?).one_by_one().with_cold(size.cold)))
}

fn verified(size: Size) -> Made {
    Ok(Box::new(Chunked::new(Verified::label(size), Verified::new()?).with_cold(size.cold)))
}

fn label(name: &'static str, what: &'static str, p50_ns: f64, tail: &[(Statistic, f64)]) -> Label {
    Label { name, engine: ENGINE, what, published: published(p50_ns, tail), rate: None }
}

fn published(p50_ns: f64, tail: &[(Statistic, f64)]) -> Vec<Published> {
    let one = |statistic, value| Published {
        value,
        unit: Unit::Ns,
        statistic,
        what: "Melaya on a Xeon 8369B, pinned, SCHED_FIFO".to_owned(),
    };
    let tail = tail.iter().map(|(statistic, value)| one(*statistic, *value));
    [one(Statistic::P50, p50_ns)].into_iter().chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::{aims, entries};
    use market_feed::Row as LiveRow;

    /// The live feed's rows are those of the bench, by name.
    #[test]
    fn live_rows_are_rows_of_the_bench() {
        let names: Vec<&str> = entries().iter().map(|entry| entry.name).collect();
        for row in LiveRow::ALL.into_iter().filter(|row| *row != LiveRow::EndToEndFromRead) {
            assert!(names.contains(&row.name()), "{} is timed live alone", row.name());
        }
    }

    #[test]
    fn each_published_row_is_there_for_1_100_and_10000_instruments() {
        let names: Vec<&str> = entries().iter().map(|entry| entry.name).collect();
        let rows =
            ["state_ticker", "state_mark_price", "state_order_update", "state_ob_snap", "state_ob_delta", "parse"];
        for row in rows.into_iter().chain(["end_to_end_recorded"]) {
            for size in ["", "_100", "_10000"] {
                assert!(names.contains(&format!("{row}{size}_ns").as_str()), "{row}{size}");
            }
        }
    }

    #[test]
    fn aims_are_those_of_rows() {
        let rows: Vec<&str> = entries().iter().map(|entry| entry.name).collect();
        let known = rows.iter().flat_map(|name| [(*name).to_owned(), name.replace("_ns", "_per_level_ns")]);
        assert_eq!(known.map(|name| aims(&name).len()).sum::<usize>(), 12);
    }
}
