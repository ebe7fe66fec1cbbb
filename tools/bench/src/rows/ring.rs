//! NullRing's rows: producer, ring, evaluator.

pub(crate) mod evaluator;
mod hand_over;
pub(crate) mod lines;
pub(crate) mod reference;

use crate::harness::entry::Entry;
use crate::harness::operation::Chunked;
use evaluator::Evaluator;
use hand_over::HandOver;
use lines::Lines;
use tt_risk::Limits;

const ENGINE: &str = "ring";

/// The rows in the order in which NullRing published them.
pub(crate) fn entries() -> Vec<Entry> {
    let timed = |name, make| Entry { engine: ENGINE, name, make, counted: false };
    vec![
        timed("ring_end_to_end", || Ok(Box::new(HandOver::end_to_end()?))),
        timed("ring_one_way", || Ok(Box::new(HandOver::one_way()?))),
        timed("cache_lines", || Ok(Box::new(Lines::widest()?))),
        Entry {
            engine: ENGINE,
            name: "evaluator_ns",
            make: || {
                let evaluator = Evaluator::<{ Limits::PLAIN.0 }>::new();
                Ok(Box::new(Chunked::new(evaluator::all_checks(), evaluator)))
            },
            counted: true,
        },
        Entry {
            engine: ENGINE,
            name: "evaluator_eight_ns",
            make: || {
                let evaluator = Evaluator::<{ Limits::EIGHT.0 }>::new();
                Ok(Box::new(Chunked::new(evaluator::eight_checks(), evaluator)))
            },
            counted: true,
        },
    ]
}
