//! Invalid headers and events of odd sizes. The tests of [`crate::spsc`] run in this memory too.

#[cfg(not(loom))]
mod weak_memory;

use super::{Memory, PlainEvent, RegionError, WAKE_WORDS, consumer, format_from, producer, words_needed};
use crate::sync::{AtomicU32, AtomicU64};
use core::num::NonZeroU64;
use std::sync::Arc;
use std::vec::Vec;

pub(crate) const OWNER: NonZeroU64 = NonZeroU64::MIN;

/// Memory that two threads see.
#[derive(Clone)]
pub(crate) struct Words(Arc<(Vec<AtomicU64>, Vec<AtomicU32>)>);

impl Words {
    pub(crate) fn blank(length: usize) -> Self {
        let words = (0..length).map(|_| AtomicU64::new(0)).collect();
        Self(Arc::new((words, (0..WAKE_WORDS).map(|_| AtomicU32::new(0)).collect())))
    }

    /// With a ring whose first position is `start`.
    pub(crate) fn formatted<T: PlainEvent>(capacity: usize, start: u64) -> Self {
        let memory = Self::blank(words_needed::<T>(capacity).unwrap());
        format_from::<T>(&memory, capacity, start).unwrap();
        memory
    }
}

impl AsRef<[AtomicU64]> for Words {
    fn as_ref(&self) -> &[AtomicU64] {
        &self.0.0
    }
}

impl AsRef<[AtomicU32]> for Words {
    fn as_ref(&self) -> &[AtomicU32] {
        &self.0.1
    }
}

fn errors<T: PlainEvent>(memory: &(impl Memory + Clone)) -> [Option<RegionError>; 2] {
    [producer::<T, _>(memory.clone(), OWNER).err(), consumer::<T, _>(memory.clone(), OWNER).err()]
}

#[cfg(not(loom))]
mod headers {
    use super::super::header::SLOTS_AT;
    use super::super::{Region, declare_closed, format, owner};
    use super::*;
    use crate::spsc::{End, Full};
    use crate::sync::Ordering;
    use proptest::prelude::*;

    const SCRIBBLES_MAX: usize = if cfg!(miri) { 8 } else { 40 };

    /// Eleven bytes, so that the last word of an event is filled in part.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable)]
    #[repr(C)]
    struct Odd([u8; 11]);

    impl PlainEvent for Odd {
        const LAYOUT: &'static str = "[u8; 11]";
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq, zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable)]
    #[repr(C)]
    struct Nothing;

    impl PlainEvent for Nothing {
        const LAYOUT: &'static str = "";
    }

    fn set(memory: &Words, at: usize, value: u64) {
        let words: &[AtomicU64] = memory.as_ref();
        words[at].store(value, Ordering::Relaxed);
    }

    #[test]
    fn case_k21_each_invalid_word_of_a_header_has_its_error() {
        let invalid = [
            (0, 0, RegionError::Magic),
            (0, u64::from_le_bytes(*b"truetick"), RegionError::Magic),
            (1, 1, RegionError::Version),
            (1, 3, RegionError::Version),
            (2, 0, RegionError::Capacity),
            (2, 3, RegionError::Capacity),
            (2, 1 << 63, RegionError::Capacity),
            (2, 16, RegionError::TooShort),
            (3, 8 << 32 | 24, RegionError::EventSize),
            (3, 4 << 32 | 16, RegionError::EventSize),
            (4, 0, RegionError::EventLayout),
        ];
        for (at, value, error) in invalid {
            let memory = Words::formatted::<[u64; 2]>(8, 0);
            set(&memory, at, value);
            assert_eq!(errors::<[u64; 2]>(&memory), [Some(error); 2], "word {at} is {value}");
        }
        assert_eq!(errors::<u64>(&Words::formatted::<[u64; 1]>(8, 0)), [Some(RegionError::EventLayout); 2]);
    }

    #[test]
    fn memory_that_is_too_short_is_rejected() {
        let whole = words_needed::<[u64; 2]>(8).unwrap();
        assert_eq!(format::<[u64; 2]>(&Words::blank(whole - 1), 8), Err(RegionError::TooShort));
        assert_eq!(format::<[u64; 2]>(&Words::blank(whole), 8), Ok(()));
        assert_eq!(errors::<u64>(&Words::blank(3)), [Some(RegionError::TooShort); 2]);
    }

    #[test]
    fn extreme_capacities_are_errors() {
        let highest_bit = 1 << (usize::BITS - 1);
        for capacity in [usize::MAX, highest_bit + 1, highest_bit, highest_bit - 1, highest_bit >> 6] {
            assert_eq!(words_needed::<u64>(capacity), None);
            assert_eq!(format::<u64>(&Words::blank(128), capacity), Err(RegionError::TooShort));
        }
        assert_eq!(words_needed::<[u64; 1 << 28]>(1 << 40), None);
        let memory = Words::formatted::<u64>(0, 0);
        let mut writing = producer::<u64, _>(memory, NonZeroU64::MAX).unwrap();
        assert_eq!((writing.capacity(), writing.push(1), writing.push(2)), (1, Ok(()), Err(Full(2))));
    }

    #[test]
    fn owners_and_ends_of_memory_without_a_header_are_absent() {
        for length in [0, 1, 3 * super::super::LINE_WORDS] {
            let memory = Words::blank(length);
            assert_eq!(owner(&memory, End::Consumer), None);
            declare_closed(&memory, End::Consumer);
        }
    }

    /// A producer that publishes without end: a lap of it is taken.
    #[test]
    fn a_drain_takes_at_most_a_lap() {
        let memory = Words::formatted::<u64>(2, 0);
        let mut reading = consumer::<u64, _>(memory.clone(), OWNER).unwrap();
        let mut position = 0;
        let stride = Region::<u64, ()>::STRIDE;
        let publish = |position: u64| set(&memory, SLOTS_AT + position as usize % 2 * stride, position);
        publish(0);
        let count = reading.drain(usize::MAX, |_| {
            position += 1;
            publish(position);
        });
        assert_eq!(count, 2);
    }

    #[test]
    fn case_k21_each_end_is_attached_once_and_has_an_owner() {
        let memory = Words::formatted::<u64>(2, 0);
        assert_eq!(owner(&memory, End::Consumer), None);
        let [first, second] = [7, 9].map(|owner| NonZeroU64::new(owner).unwrap());
        let ends = (producer::<u64, _>(memory.clone(), first), consumer::<u64, _>(memory.clone(), second));
        assert!(ends.0.is_ok() && ends.1.is_ok());
        assert_eq!(errors::<u64>(&memory), [Some(RegionError::AlreadyAttached); 2]);
        drop(ends);
        assert_eq!(errors::<u64>(&memory), [Some(RegionError::AlreadyAttached); 2]);
        assert_eq!([End::Producer, End::Consumer].map(|end| owner(&memory, end)), [Some(first), Some(second)]);
    }

    #[test]
    fn an_end_that_is_declared_closed_is_closed() {
        let memory = Words::formatted::<u64>(2, 0);
        let mut writing = producer::<u64, _>(memory.clone(), OWNER).unwrap();
        let mut reading = consumer::<u64, _>(memory.clone(), OWNER).unwrap();
        writing.push(5).unwrap();
        assert!(!writing.is_abandoned() && !reading.is_abandoned());
        declare_closed(&memory, End::Producer);
        assert!(!writing.is_abandoned() && reading.is_abandoned());
        assert_eq!((reading.pop(), reading.pop()), (Some(5), None));
        declare_closed(&memory, End::Consumer);
        assert!(writing.is_abandoned());
    }

    #[test]
    fn odd_events_and_those_without_size_pass() {
        let memory = Words::formatted::<Odd>(2, 0);
        let mut writing = producer::<Odd, _>(memory.clone(), OWNER).unwrap();
        let mut reading = consumer::<Odd, _>(memory, OWNER).unwrap();
        let events = [Odd(*b"first event"), Odd(*b"second even"), Odd(*b"third event")];
        assert_eq!(events.map(|event| writing.push(event)), [Ok(()), Ok(()), Err(Full(events[2]))]);
        assert_eq!([reading.pop(), reading.pop(), reading.pop()], [Some(events[0]), Some(events[1]), None]);

        let memory = Words::formatted::<Nothing>(2, 0);
        let mut writing = producer::<Nothing, _>(memory.clone(), OWNER).unwrap();
        let mut reading = consumer::<Nothing, _>(memory, OWNER).unwrap();
        assert_eq!(writing.push_slice(&[Nothing; 3]), 2);
        assert_eq!([reading.pop(), reading.pop(), reading.pop()], [Some(Nothing), Some(Nothing), None]);
    }

    proptest! {
        /// With any content of the memory, attaching fails or the end works: no panic, no access out of bounds.
        #[test]
        fn case_k21_no_word_of_the_other_side_is_trusted(
            scribbles in prop::collection::vec((0_usize..128, prop_oneof![any::<u64>(), 0_u64..9, (u64::MAX - 9)..=u64::MAX]), 0..SCRIBBLES_MAX),
            before in 0..SCRIBBLES_MAX,
        ) {
            let memory = Words::formatted::<[u64; 2]>(8, 0);
            let (first, rest) = scribbles.split_at(before.min(scribbles.len()));
            for (at, value) in first {
                set(&memory, *at, *value);
            }
            let writing = producer::<[u64; 2], _>(memory.clone(), OWNER);
            let reading = consumer::<[u64; 2], _>(memory.clone(), OWNER);
            if let (Ok(mut writing), Ok(mut reading)) = (writing, reading) {
                for (at, value) in rest {
                    set(&memory, *at, *value);
                    let _ = (writing.push([1, 2]), writing.push_slice(&[[3, 4]; 9]), writing.hold_next());
                    prop_assert!(writing.occupancy() <= 8);
                    let _ = (reading.pop(), reading.drain(20, |_| ()), reading.is_corrupt(), writing.is_corrupt());
                }
            }
        }

        /// An invalid `head` is reported and frees nothing.
        #[test]
        fn an_invalid_head_is_reported(pushed in 0_u64..9, head in any::<u64>()) {
            let memory = Words::formatted::<u64>(8, 0);
            let mut writing = producer::<u64, _>(memory.clone(), OWNER).unwrap();
            for number in 0..pushed {
                writing.push(number).unwrap();
            }
            set(&memory, super::super::LINE_WORDS, head);
            prop_assert_eq!(writing.is_corrupt(), head > pushed && pushed.wrapping_sub(head) > 8);
            let room = (0..20).take_while(|_| writing.push(0).is_ok()).count();
            prop_assert!(room <= 8 + 8);
        }

        /// A sequence of nothing that the ring could hold is reported, and publishes nothing.
        #[test]
        fn an_invalid_sequence_is_reported(
            count in 0_u64..64,
            low in prop_oneof![0_u64..64, (1_u64 << 57) - 64..(1 << 57) + 64, (1_u64 << 58) - 64..1 << 58],
        ) {
            let memory = Words::formatted::<u64>(8, 0);
            let mut reading = consumer::<u64, _>(memory.clone(), OWNER).unwrap();
            set(&memory, 4 * super::super::LINE_WORDS, count << 58 | low);
            // A batch of up to eight from position 0, or one that began in this slot less than half of all positions ago.
            let publishes = low == 0 && count < 8;
            let is_old = low > 1 << 57 && low % 8 == 0;
            prop_assert_eq!(reading.is_corrupt(), !publishes && !is_old);
            prop_assert_eq!(reading.drain(20, |_| ()) > 0, publishes);
        }
    }
}

/// An end that sees the magic sees the rest of the header.
#[cfg(loom)]
#[test]
fn loom_a_ring_that_is_being_prepared_is_whole_or_none() {
    loom::model(|| {
        let memory = Words::blank(words_needed::<u64>(1).unwrap());
        let preparing = {
            let memory = memory.clone();
            loom::thread::spawn(move || format_from::<u64>(&memory, 1, 0).unwrap())
        };
        let early = errors::<u64>(&memory);
        assert!(early.iter().all(|error| matches!(error, None | Some(RegionError::Magic))), "{early:?}");
        preparing.join().expect("the preparing thread failed");
        for (early, late) in early.into_iter().zip(errors::<u64>(&memory)) {
            assert_eq!(late, early.is_none().then_some(RegionError::AlreadyAttached));
        }
    });
}
