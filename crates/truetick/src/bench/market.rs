//! Melaya's rows: frames to market state.
//!
//! Input is the captured Binance USD-M file where `TRUETICK_DATA` is set, else the committed recording of the simulator.

mod live;
mod parse;
mod rig;
mod snapshot;
mod source;
mod state;

use tt_report::{Published, Statistic, Unit};

use super::operation::{Chunked, Label};
use super::registry::Entry;
use live::EndToEnd;
use parse::{Frames, Parse};
use snapshot::Snapshot;
use state::{Kind, State};

const ENGINE: &str = "market";

/// The rows in the order in which Melaya published them.
pub(crate) fn entries() -> Vec<Entry> {
    let counted = |name, make| Entry { engine: ENGINE, name, make, counted: true };
    let timed = |name, make| Entry { engine: ENGINE, name, make, counted: false };
    vec![
        counted("state_ticker_ns", || state(Kind::Ticker)),
        counted("state_mark_price_ns", || state(Kind::MarkPrice)),
        counted("state_order_update_ns", || state(Kind::OrderUpdate)),
        timed("state_ob_snap_ns", || Ok(Box::new(Snapshot::new()?))),
        counted("state_ob_delta_ns", || state(Kind::Delta)),
        counted("parse_ns", || parse(Frames::All)),
        counted("parse_book_ticker_ns", || parse(Frames::BookTicker)),
        counted("parse_depth_ns", || parse(Frames::Depth)),
        timed("end_to_end_ns", || Ok(Box::new(EndToEnd::new()?))),
    ]
}

fn state(kind: Kind) -> anyhow::Result<Box<dyn super::operation::Bench>> {
    Ok(Box::new(Chunked::new(kind.label(), State::new(kind)?)))
}

fn parse(frames: Frames) -> anyhow::Result<Box<dyn super::operation::Bench>> {
    let parse = Parse::new(frames)?;
    Ok(Box::new(Chunked::new(parse.label(), parse)))
}

fn label(name: &'static str, what: &'static str, p50_ns: f64, tail: &[(Statistic, f64)]) -> Label {
    let one = |statistic, value| Published {
        value,
        unit: Unit::Ns,
        statistic,
        what: "Melaya on a Xeon 8369B, pinned, SCHED_FIFO".to_owned(),
    };
    let mut published = vec![one(Statistic::P50, p50_ns)];
    published.extend(tail.iter().map(|(statistic, value)| one(*statistic, *value)));
    Label { name, engine: ENGINE, what, published, rate: None }
}
