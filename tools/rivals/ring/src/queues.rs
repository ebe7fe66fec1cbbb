//! Who is measured, and a new queue of each.

mod others;
mod ours;

use tt_sync::spsc;

use crate::ends::{BatchMeasurement, Measurement};
use others::{ArrayQueueEnd, Channel, DisruptorOut, HeaplessIn, HeaplessOut, SyncChannelIn, SyncChannelOut};
use ours::{RingIn, RingOut, WideIn, WideOut};

/// Slots of every queue. A number that a type has, because heapless wants one.
pub(crate) const SLOTS: usize = 1_024;

/// A queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Queue {
    /// truetick's ring with the rivals' event of 64 bytes; an idle sender does nothing. It is what rivals are compared with.
    Truetick,
    /// The same under another name: how far two equals are apart.
    TruetickAgain,
    /// The same, and an idle sender takes the next slot's line back, which no rival can.
    TruetickHoldsNext,
    /// truetick's ring with its own event of 56 bytes, which it numbers: one cache line per slot. Not the rivals' payload.
    TruetickNarrow,
    Rtrb,
    Ringbuf,
    Heapless,
    /// One event a poll.
    Disruptor,
    /// All that is there a poll: one event a call at one end only.
    DisruptorPolls,
    CrossbeamArray,
    CrossbeamChannel,
    Std,
}

pub(crate) const ALL: [Queue; 12] = [
    Queue::Truetick,
    Queue::TruetickAgain,
    Queue::TruetickHoldsNext,
    Queue::TruetickNarrow,
    Queue::Rtrb,
    Queue::Ringbuf,
    Queue::Heapless,
    Queue::Disruptor,
    Queue::DisruptorPolls,
    Queue::CrossbeamArray,
    Queue::CrossbeamChannel,
    Queue::Std,
];

impl Queue {
    /// The name in files and tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Truetick => "truetick_64",
            Self::TruetickAgain => "truetick_64_again",
            Self::TruetickHoldsNext => "truetick_64_hold_next",
            Self::TruetickNarrow => "truetick_56",
            Self::Rtrb => "rtrb",
            Self::Ringbuf => "ringbuf",
            Self::Heapless => "heapless",
            Self::Disruptor => "disruptor",
            Self::DisruptorPolls => "disruptor_polls",
            Self::CrossbeamArray => "crossbeam_queue",
            Self::CrossbeamChannel => "crossbeam_channel",
            Self::Std => "std",
        }
    }

    /// What it is and how it is set up, for the head of a file of runs.
    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::Truetick => {
                "tt_sync::spsc, push and pop of OrderIntent, sequences on lines without events, an idle producer rests; batches by push_with and drain"
            }
            Self::TruetickAgain => "the same once more",
            Self::TruetickHoldsNext => "the same, an idle producer calls hold_next",
            Self::TruetickNarrow => "the same with OrderTerms of 56 bytes, which the ring numbers, one line a slot",
            Self::Rtrb => "rtrb 0.4, push and pop; batches by write_chunk_uninit().fill_from_iter() and read_chunk()",
            Self::Ringbuf => {
                "ringbuf 0.6, HeapRb's caching ends, try_push and try_pop; batches by push_iter and pop_slice"
            }
            Self::Heapless => "heapless 0.9, spsc::Queue split into its ends",
            Self::Disruptor => {
                "disruptor 4.4, single producer, BusySpin, EventPoller::take(1) read in place; batches by batch_publish and take"
            }
            Self::DisruptorPolls => {
                "the same with EventPoller::poll, which takes all that is there: a batch at one end"
            }
            Self::CrossbeamArray => "crossbeam-queue 0.3, ArrayQueue",
            Self::CrossbeamChannel => "crossbeam-channel 0.5, bounded, try_send and try_recv",
            Self::Std => "std::sync::mpsc::sync_channel, try_send and try_recv",
        }
    }

    /// Whether it is somebody else's.
    pub(crate) const fn is_rival(self) -> bool {
        !matches!(self, Self::Truetick | Self::TruetickAgain | Self::TruetickHoldsNext | Self::TruetickNarrow)
    }

    /// Whether both its ends pass one event a call where one is asked for.
    pub(crate) const fn passes_one(self) -> bool {
        !matches!(self, Self::DisruptorPolls)
    }

    /// Whether it has something for several events at once.
    pub(crate) const fn has_batches(self) -> bool {
        matches!(
            self,
            Self::Truetick
                | Self::TruetickAgain
                | Self::TruetickNarrow
                | Self::Rtrb
                | Self::Ringbuf
                | Self::Disruptor
        )
    }

    /// Whether what makes it another one than [`Queue::Truetick`] shows when it is never idle.
    pub(crate) fn differs_under_load(self) -> bool {
        self != Self::TruetickHoldsNext
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        ALL.into_iter().find(|queue| queue.name() == name)
    }

    /// Measures a new queue.
    pub(crate) fn measure<M: Measurement>(self, measurement: M) -> M::Output {
        match self {
            Self::Truetick | Self::TruetickAgain => {
                let (producer, consumer) = spsc::ring(SLOTS);
                measurement.measure(WideIn::<false>(producer), WideOut(consumer))
            }
            Self::TruetickHoldsNext => {
                let (producer, consumer) = spsc::ring(SLOTS);
                measurement.measure(WideIn::<true>(producer), WideOut(consumer))
            }
            Self::TruetickNarrow => {
                let (producer, consumer) = spsc::ring(SLOTS);
                measurement.measure(RingIn(producer), RingOut::new(consumer))
            }
            Self::Rtrb => {
                let (producer, consumer) = rtrb::RingBuffer::new(SLOTS);
                measurement.measure(producer, consumer)
            }
            Self::Ringbuf => {
                let (producer, consumer) = others::ringbuf_ends();
                measurement.measure(producer, consumer)
            }
            Self::Heapless => {
                let mut queue = Box::new(heapless::spsc::Queue::<_, SLOTS>::new());
                let (producer, consumer) = queue.split();
                measurement.measure(HeaplessIn(producer), HeaplessOut(consumer))
            }
            Self::Disruptor => {
                let (producer, poller) = others::disruptor_ends();
                measurement.measure(producer, DisruptorOut::<false>(poller))
            }
            Self::DisruptorPolls => {
                let (producer, poller) = others::disruptor_ends();
                measurement.measure(producer, DisruptorOut::<true>(poller))
            }
            Self::CrossbeamArray => {
                let queue = crossbeam_queue::ArrayQueue::new(SLOTS);
                measurement.measure(ArrayQueueEnd(&queue), ArrayQueueEnd(&queue))
            }
            Self::CrossbeamChannel => {
                let (sender, receiver) = crossbeam_channel::bounded(SLOTS);
                measurement.measure(Channel(sender), Channel(receiver))
            }
            Self::Std => {
                let (sender, receiver) = std::sync::mpsc::sync_channel(SLOTS);
                measurement.measure(SyncChannelIn(sender), SyncChannelOut(receiver))
            }
        }
    }

    /// Measures a new queue that has batches, `None` for one that has none.
    pub(crate) fn measure_batches<M: BatchMeasurement>(self, measurement: M) -> Option<M::Output> {
        Some(match self {
            Self::Truetick | Self::TruetickAgain => {
                let (producer, consumer) = spsc::ring(SLOTS);
                measurement.measure(WideIn::<false>(producer), WideOut(consumer))
            }
            Self::TruetickNarrow => {
                let (producer, consumer) = spsc::ring(SLOTS);
                measurement.measure(RingIn(producer), RingOut::new(consumer))
            }
            Self::Rtrb => {
                let (producer, consumer) = rtrb::RingBuffer::new(SLOTS);
                measurement.measure(producer, consumer)
            }
            Self::Ringbuf => {
                let (producer, consumer) = others::ringbuf_ends();
                measurement.measure(producer, consumer)
            }
            Self::Disruptor => {
                let (producer, poller) = others::disruptor_ends();
                measurement.measure(producer, DisruptorOut::<false>(poller))
            }
            Self::TruetickHoldsNext
            | Self::Heapless
            | Self::DisruptorPolls
            | Self::CrossbeamArray
            | Self::CrossbeamChannel
            | Self::Std => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL, Queue};
    use crate::ends::{Measurement, Receiver, Sender};

    /// The bytes of a queue's event.
    struct EventBytes;

    impl Measurement for EventBytes {
        type Output = usize;

        fn measure<S: Sender, R: Receiver>(self, _sender: S, _receiver: R) -> usize {
            size_of::<S::Event>()
        }
    }

    #[test]
    fn every_queue_that_is_compared_passes_64_bytes() {
        for queue in ALL {
            let bytes = if queue == Queue::TruetickNarrow { 56 } else { 64 };
            assert_eq!(queue.measure(EventBytes), bytes, "{}", queue.name());
        }
        assert_eq!((Queue::Truetick.name(), Queue::TruetickNarrow.name()), ("truetick_64", "truetick_56"));
    }

    #[test]
    fn only_the_row_of_that_name_calls_hold_next() {
        let holding: Vec<&str> =
            ALL.into_iter().filter(|queue| queue.what().contains("hold_next")).map(Queue::name).collect();
        assert_eq!(holding, ["truetick_64_hold_next"]);
    }
}
