//! Headers that lie, and events of odd sizes. What the ring does in such memory is proved beside [`crate::spsc`].

use super::{BELLS, Memory, PlainEvent, Refused, consumer, format_from, producer, words};
use crate::sync::{AtomicU32, AtomicU64};
use core::num::NonZeroU64;
use std::sync::Arc;
use std::vec::Vec;

pub(crate) const MARK: NonZeroU64 = NonZeroU64::MIN;

/// Memory that two threads see.
#[derive(Clone)]
pub(crate) struct Words(Arc<(Vec<AtomicU64>, Vec<AtomicU32>)>);

impl Words {
    pub(crate) fn blank(length: usize) -> Self {
        let words = (0..length).map(|_| AtomicU64::new(0)).collect();
        Self(Arc::new((words, (0..BELLS).map(|_| AtomicU32::new(0)).collect())))
    }

    /// With a ring whose first position is `start`.
    pub(crate) fn formatted<T: PlainEvent>(capacity: usize, start: u64) -> Self {
        let memory = Self::blank(words::<T>(capacity).unwrap());
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

fn refusals<T: PlainEvent>(memory: &(impl Memory + Clone)) -> [Option<Refused>; 2] {
    [producer::<T, _>(memory.clone(), MARK).err(), consumer::<T, _>(memory.clone(), MARK).err()]
}

#[cfg(not(loom))]
mod headers {
    use super::super::{declare_gone, format, mark};
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
    fn every_word_of_a_header_that_lies_is_refused_by_name() {
        let lies = [
            (0, 0, Refused::Magic),
            (0, u64::from_le_bytes(*b"truetick"), Refused::Magic),
            (1, 2, Refused::Version),
            (2, 0, Refused::Capacity),
            (2, 3, Refused::Capacity),
            (2, 1 << 63, Refused::Capacity),
            (2, 16, Refused::Short),
            (3, 8 << 32 | 24, Refused::Event),
            (3, 4 << 32 | 16, Refused::Event),
            (4, 0, Refused::Layout),
        ];
        for (at, value, refused) in lies {
            let memory = Words::formatted::<[u64; 2]>(8, 0);
            set(&memory, at, value);
            assert_eq!(refusals::<[u64; 2]>(&memory), [Some(refused); 2], "word {at} says {value}");
        }
        assert_eq!(refusals::<u64>(&Words::formatted::<[u64; 1]>(8, 0)), [Some(Refused::Layout); 2]);
    }

    #[test]
    fn memory_that_is_too_short_is_refused() {
        let whole = words::<[u64; 2]>(8).unwrap();
        assert_eq!(format::<[u64; 2]>(&Words::blank(whole - 1), 8), Err(Refused::Short));
        assert_eq!(format::<[u64; 2]>(&Words::blank(whole), 8), Ok(()));
        assert_eq!(refusals::<u64>(&Words::blank(3)), [Some(Refused::Short); 2]);
        assert_eq!(words::<u64>(usize::MAX), None);
        assert_eq!(words::<u64>(usize::MAX / 16), None);
    }

    #[test]
    fn each_end_is_taken_once_and_says_by_whom() {
        let memory = Words::formatted::<u64>(2, 0);
        assert_eq!(mark(&memory, End::Consumer), None);
        let [producer_mark, consumer_mark] = [7, 9].map(|mark| NonZeroU64::new(mark).unwrap());
        let ends =
            (producer::<u64, _>(memory.clone(), producer_mark), consumer::<u64, _>(memory.clone(), consumer_mark));
        assert!(ends.0.is_ok() && ends.1.is_ok());
        assert_eq!(refusals::<u64>(&memory), [Some(Refused::Taken); 2]);
        drop(ends);
        assert_eq!(refusals::<u64>(&memory), [Some(Refused::Taken); 2]);
        assert_eq!(
            [End::Producer, End::Consumer].map(|end| mark(&memory, end)),
            [Some(producer_mark), Some(consumer_mark)]
        );
    }

    #[test]
    fn who_is_declared_gone_is_gone() {
        let memory = Words::formatted::<u64>(2, 0);
        let mut writing = producer::<u64, _>(memory.clone(), MARK).unwrap();
        let mut reading = consumer::<u64, _>(memory.clone(), MARK).unwrap();
        writing.push(5).unwrap();
        assert!(!writing.is_abandoned() && !reading.is_abandoned());
        declare_gone(&memory, End::Producer);
        assert!(!writing.is_abandoned() && reading.is_abandoned());
        assert_eq!((reading.pop(), reading.pop()), (Some(5), None));
        declare_gone(&memory, End::Consumer);
        assert!(writing.is_abandoned());
    }

    #[test]
    fn odd_events_and_those_without_size_pass() {
        let memory = Words::formatted::<Odd>(2, 0);
        let mut writing = producer::<Odd, _>(memory.clone(), MARK).unwrap();
        let mut reading = consumer::<Odd, _>(memory, MARK).unwrap();
        let events = [Odd(*b"first event"), Odd(*b"second even"), Odd(*b"third event")];
        assert_eq!(events.map(|event| writing.push(event)), [Ok(()), Ok(()), Err(Full(events[2]))]);
        assert_eq!([reading.pop(), reading.pop(), reading.pop()], [Some(events[0]), Some(events[1]), None]);

        let memory = Words::formatted::<Nothing>(2, 0);
        let mut writing = producer::<Nothing, _>(memory.clone(), MARK).unwrap();
        let mut reading = consumer::<Nothing, _>(memory, MARK).unwrap();
        assert_eq!(writing.push_slice(&[Nothing; 3]), 2);
        assert_eq!([reading.pop(), reading.pop(), reading.pop()], [Some(Nothing), Some(Nothing), None]);
    }

    proptest! {
        /// Whatever the memory says, an end is refused or does something: no panic, no access outside.
        #[test]
        fn no_word_of_the_other_side_is_trusted(
            scribbles in prop::collection::vec((0_usize..128, prop_oneof![any::<u64>(), 0_u64..9, (u64::MAX - 9)..=u64::MAX]), 0..SCRIBBLES_MAX),
            before in 0..SCRIBBLES_MAX,
        ) {
            let memory = Words::formatted::<[u64; 2]>(8, 0);
            let (first, rest) = scribbles.split_at(before.min(scribbles.len()));
            for (at, value) in first {
                set(&memory, *at, *value);
            }
            let writing = producer::<[u64; 2], _>(memory.clone(), MARK);
            let reading = consumer::<[u64; 2], _>(memory.clone(), MARK);
            if let (Ok(mut writing), Ok(mut reading)) = (writing, reading) {
                for (at, value) in rest {
                    set(&memory, *at, *value);
                    let _ = (writing.push([1, 2]), writing.push_slice(&[[3, 4]; 9]), writing.hold_next());
                    prop_assert!(writing.occupancy() <= 8);
                    let _ = (reading.pop(), reading.drain(20, |_| ()), reading.is_corrupt(), writing.is_corrupt());
                }
            }
        }

        /// A `head` that the producer never let pass is told, and frees nothing.
        #[test]
        fn an_index_that_cannot_be_is_told(pushed in 0_u64..9, head in any::<u64>()) {
            let memory = Words::formatted::<u64>(8, 0);
            let mut writing = producer::<u64, _>(memory.clone(), MARK).unwrap();
            let reading = consumer::<u64, _>(memory.clone(), MARK).unwrap();
            for number in 0..pushed {
                writing.push(number).unwrap();
            }
            set(&memory, super::super::LINE, head);
            prop_assert_eq!(writing.is_corrupt(), head > pushed && pushed.wrapping_sub(head) > 8);
            let room = (0..20).take_while(|_| writing.push(0).is_ok()).count();
            prop_assert!(room <= 8 + 8);
            set(&memory, 4 * super::super::LINE, head);
            prop_assert_eq!(reading.is_corrupt(), head != 0 && head != 0_u64.wrapping_sub(8));
        }
    }
}

/// Who sees the magic sees the rest of the header.
#[cfg(loom)]
#[test]
fn loom_a_ring_that_is_being_prepared_is_whole_or_none() {
    loom::model(|| {
        let memory = Words::blank(words::<u64>(1).unwrap());
        let preparing = {
            let memory = memory.clone();
            loom::thread::spawn(move || format_from::<u64>(&memory, 1, 0).unwrap())
        };
        let early = refusals::<u64>(&memory);
        assert!(early.iter().all(|refused| matches!(refused, None | Some(Refused::Magic))), "{early:?}");
        preparing.join().expect("the preparing thread failed");
        for (early, late) in early.into_iter().zip(refusals::<u64>(&memory)) {
            assert_eq!(late, early.is_none().then_some(Refused::Taken));
        }
    });
}
