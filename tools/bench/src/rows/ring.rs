//! NullRing's rows: producer, ring, evaluator.

mod batches;
pub(crate) mod evaluator;
mod hand_over;
pub(crate) mod lines;
pub(crate) mod reference;
mod screen;

use crate::harness::entry::Entry;
use crate::harness::operation::{Bench, Chunked};
use crate::harness::stages::Stages;
use batches::{Batches, Call};
use evaluator::Evaluator;
use hand_over::HandOver;
use lines::Lines;
use screen::Screens;
use tt_risk::Limits;

const ENGINE: &str = "ring";

/// The rows in the order in which NullRing published them.
pub(crate) fn entries() -> Vec<Entry> {
    fn batches(call: Call) -> anyhow::Result<Box<dyn Bench>> {
        Ok(Box::new(Chunked::new(call.label(), Batches::new(call))))
    }
    let counted = |name, make| Entry { engine: ENGINE, name, make, counted: true };
    let timed = |name, make| Entry { engine: ENGINE, name, make, counted: false };
    vec![
        timed("ring_end_to_end", || Ok(Box::new(HandOver::end_to_end()?))),
        timed("ring_one_way", || Ok(Box::new(HandOver::one_way()?))),
        timed("cache_lines", || Ok(Box::new(Lines::widest()?))),
        counted("ring_push_64_ns", || batches(Call::Push)),
        counted("ring_push_slice_64_ns", || batches(Call::Slice)),
        counted("ring_push_with_64_ns", || batches(Call::With)),
        Entry {
            engine: ENGINE,
            name: "evaluator_ns",
            make: || {
                let evaluator = Evaluator::<{ Limits::PLAIN.0 }>::new();
                Ok(Box::new(Chunked::new(evaluator::all_checks(), evaluator)))
            },
            counted: true,
        },
        timed("evaluator_stages", || {
            Ok(Box::new(Stages::new(evaluator::STAGES, Evaluator::<{ Limits::PLAIN.0 }>::new())))
        }),
        Entry {
            engine: ENGINE,
            name: "evaluator_eight_ns",
            make: || {
                let evaluator = Evaluator::<{ Limits::EIGHT.0 }>::new();
                Ok(Box::new(Chunked::new(evaluator::eight_checks(), evaluator)))
            },
            counted: true,
        },
        counted("evaluator_screen_ns", || Ok(Box::new(Chunked::new(screen::label(), Screens::new())))),
    ]
}
