//! A region as litmus programs for Miri, whose loads may return older values. They are ordinary tests, too; those of
//! the ring in a region are in [`crate::spsc`].

use super::super::{RegionError, consumer, format_from, owner, producer, words_needed};
use super::{OWNER, Words, errors};
use crate::spsc::End;
use crate::sync::tests::race;
use core::num::NonZeroU64;
use std::thread;

/// No word of the header and no sequence is 0, as those of memory before it is prepared are.
const START: u64 = 5;
const ATTEMPTS: usize = 50;

/// An end that attaches while the other side prepares the memory is refused, or sees a whole ring.
#[test]
fn a_ring_that_is_being_prepared_is_whole_or_none() {
    let memory = Words::blank(words_needed::<u64>(2).unwrap());
    assert_eq!(errors::<u64>(&memory), [Some(RegionError::Magic); 2]);
    let attach = || {
        let mut attached = (0..ATTEMPTS).find_map(|_| match consumer::<u64, _>(memory.clone(), OWNER) {
            Err(RegionError::Magic) => {
                thread::yield_now();
                None
            }
            attached => Some(attached.expect("a whole header")),
        })?;
        assert!(!attached.is_corrupt());
        Some((attached.pop(), attached))
    };
    let prepare = || {
        format_from::<u64>(&memory, 2, START).unwrap();
        let mut producer = producer::<u64, _>(memory.clone(), OWNER).unwrap();
        assert_eq!(producer.push(7), Ok(()));
        producer
    };
    let (attached, _producer) = race(attach, prepare);
    let attached = attached.is_none_or(|(popped, mut end)| popped.or_else(|| end.pop()) == Some(7));
    assert!(attached, "the event is lost");
}

/// Of two that attach the same end, one succeeds, and the mark is its own.
#[test]
fn an_end_has_one_owner() {
    let memory = Words::formatted::<u64>(2, START);
    let [first, second] = [7, 9].map(|mark| NonZeroU64::new(mark).unwrap());
    let attach = |mark: NonZeroU64| producer::<u64, _>(memory.clone(), mark).map(|_| mark);
    assert_eq!(owner(&memory, End::Producer), None);
    assert!(consumer::<u64, _>(memory.clone(), OWNER).is_ok());
    let (one, other) = race(|| attach(first), || attach(second));
    assert!(one.is_ok() != other.is_ok());
    assert_eq!(owner(&memory, End::Producer), one.or(other).ok());
}
