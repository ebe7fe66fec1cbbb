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
        remembering::<{ evaluator::IDS }>("evaluator_ids_ns"),
        remembering::<{ evaluator::OWN }>("evaluator_own_ns"),
        remembering::<{ Limits::CHECKED.0 }>("evaluator_remembering_ns"),
    ]
}

/// The row of a profile that remembers orders.
fn remembering<const PROFILE: u64>(name: &'static str) -> Entry {
    Entry {
        engine: ENGINE,
        name,
        make: || {
            let evaluator = Evaluator::<PROFILE>::new();
            Ok(Box::new(Chunked::new(evaluator::remembering(PROFILE), evaluator)))
        },
        counted: true,
    }
}
