//! The rivals, each as its makers' documentation has it.

use std::sync::mpsc;

use crossbeam_queue::ArrayQueue;
use disruptor::{BusySpin, EventPoller, Producer as _, SingleConsumerBarrier, SingleProducer, SingleProducerBarrier};
use ringbuf::traits::{Consumer as _, Producer as _, Split as _};
use tt_model::OrderIntent;

use super::SLOTS;
use crate::ends::{Receiver, ReceivesBatches, Sender, SendsBatches};

/// Events that `pop_slice` copies at once.
const BUFFER: usize = 64;

impl Sender for rtrb::Producer<OrderIntent> {
    type Event = OrderIntent;

    #[inline(always)]
    fn send(&mut self, event: OrderIntent) -> bool {
        self.push(event).is_ok()
    }
}

impl SendsBatches for rtrb::Producer<OrderIntent> {
    #[inline(always)]
    fn send_batch(&mut self, count: usize, make: impl FnMut() -> OrderIntent) -> usize {
        // `slots` asks the other end; the last known number is enough where it is.
        let free = if self.cached_slots() >= count { count } else { self.slots().min(count) };
        let chunk = self.write_chunk_uninit(free);
        chunk.map_or(0, |chunk| chunk.fill_from_iter(std::iter::repeat_with(make)))
    }
}

impl Receiver for rtrb::Consumer<OrderIntent> {
    #[inline(always)]
    fn receive(&mut self, mut visit: impl FnMut(&OrderIntent)) -> usize {
        let Ok(intent) = self.pop() else { return 0 };
        visit(&intent);
        1
    }
}

impl ReceivesBatches for rtrb::Consumer<OrderIntent> {
    #[inline(always)]
    fn receive_batch(&mut self, count: usize, mut visit: impl FnMut(&OrderIntent)) -> usize {
        let there = if self.cached_slots() >= count { count } else { self.slots().min(count) };
        let Ok(chunk) = self.read_chunk(there) else { return 0 };
        let (first, second) = chunk.as_slices();
        first.iter().chain(second).for_each(&mut visit);
        chunk.commit_all();
        there
    }
}

pub(super) struct RingbufIn(<ringbuf::HeapRb<OrderIntent> as ringbuf::traits::Split>::Prod);

pub(super) struct RingbufOut {
    consumer: <ringbuf::HeapRb<OrderIntent> as ringbuf::traits::Split>::Cons,
    buffer: [OrderIntent; BUFFER],
}

pub(super) fn ringbuf_ends() -> (RingbufIn, RingbufOut) {
    let (producer, consumer) = ringbuf::HeapRb::new(SLOTS).split();
    (RingbufIn(producer), RingbufOut { consumer, buffer: [OrderIntent::default(); BUFFER] })
}

impl Sender for RingbufIn {
    type Event = OrderIntent;

    #[inline(always)]
    fn send(&mut self, event: OrderIntent) -> bool {
        self.0.try_push(event).is_ok()
    }
}

impl SendsBatches for RingbufIn {
    #[inline(always)]
    fn send_batch(&mut self, count: usize, make: impl FnMut() -> OrderIntent) -> usize {
        self.0.push_iter(std::iter::repeat_with(make).take(count))
    }
}

impl Receiver for RingbufOut {
    #[inline(always)]
    fn receive(&mut self, mut visit: impl FnMut(&OrderIntent)) -> usize {
        let Some(intent) = self.consumer.try_pop() else { return 0 };
        visit(&intent);
        1
    }
}

impl ReceivesBatches for RingbufOut {
    #[inline(always)]
    fn receive_batch(&mut self, count: usize, visit: impl FnMut(&OrderIntent)) -> usize {
        let taken = self.consumer.pop_slice(&mut self.buffer[..count.min(BUFFER)]);
        self.buffer[..taken].iter().for_each(visit);
        taken
    }
}

pub(super) struct HeaplessIn<'a>(pub(super) heapless::spsc::Producer<'a, OrderIntent>);

pub(super) struct HeaplessOut<'a>(pub(super) heapless::spsc::Consumer<'a, OrderIntent>);

impl Sender for HeaplessIn<'_> {
    type Event = OrderIntent;

    #[inline(always)]
    fn send(&mut self, event: OrderIntent) -> bool {
        self.0.enqueue(event).is_ok()
    }
}

impl Receiver for HeaplessOut<'_> {
    #[inline(always)]
    fn receive(&mut self, mut visit: impl FnMut(&OrderIntent)) -> usize {
        let Some(intent) = self.0.dequeue() else { return 0 };
        visit(&intent);
        1
    }
}

type DisruptorIn = SingleProducer<OrderIntent, SingleConsumerBarrier>;

/// `POLLS`: shows all that is there at once also where one event is asked for, which is how a poller is meant.
pub(super) struct DisruptorOut<const POLLS: bool>(pub(super) EventPoller<OrderIntent, SingleProducerBarrier>);

pub(super) fn disruptor_ends() -> (DisruptorIn, EventPoller<OrderIntent, SingleProducerBarrier>) {
    let (poller, builder) = disruptor::build_single_producer(SLOTS, OrderIntent::default, BusySpin).new_event_poller();
    (builder.build(), poller)
}

impl Sender for DisruptorIn {
    type Event = OrderIntent;

    #[inline(always)]
    fn send(&mut self, event: OrderIntent) -> bool {
        self.try_publish(|place| *place = event).is_ok()
    }
}

impl SendsBatches for DisruptorIn {
    #[inline(always)]
    fn send_batch(&mut self, count: usize, mut make: impl FnMut() -> OrderIntent) -> usize {
        let sent = self.try_batch_publish(count, |places| places.for_each(|place| *place = make()));
        if sent.is_ok() { count } else { 0 }
    }
}

impl<const POLLS: bool> Receiver for DisruptorOut<POLLS> {
    #[inline(always)]
    fn receive(&mut self, visit: impl FnMut(&OrderIntent)) -> usize {
        self.receive_batch(if POLLS { usize::MAX } else { 1 }, visit)
    }
}

impl<const POLLS: bool> ReceivesBatches for DisruptorOut<POLLS> {
    #[inline(always)]
    fn receive_batch(&mut self, count: usize, visit: impl FnMut(&OrderIntent)) -> usize {
        let Ok(mut events) = self.0.take(count as u64) else { return 0 };
        let there = {
            let events = &mut events;
            events.len()
        };
        (&mut events).for_each(visit);
        there
    }
}

pub(super) struct ArrayQueueEnd<'a>(pub(super) &'a ArrayQueue<OrderIntent>);

impl Sender for ArrayQueueEnd<'_> {
    type Event = OrderIntent;

    #[inline(always)]
    fn send(&mut self, event: OrderIntent) -> bool {
        self.0.push(event).is_ok()
    }
}

impl Receiver for ArrayQueueEnd<'_> {
    #[inline(always)]
    fn receive(&mut self, mut visit: impl FnMut(&OrderIntent)) -> usize {
        let Some(intent) = self.0.pop() else { return 0 };
        visit(&intent);
        1
    }
}

/// One end of a crossbeam channel.
pub(super) struct Channel<E>(pub(super) E);

impl Sender for Channel<crossbeam_channel::Sender<OrderIntent>> {
    type Event = OrderIntent;

    #[inline(always)]
    fn send(&mut self, event: OrderIntent) -> bool {
        self.0.try_send(event).is_ok()
    }
}

impl Receiver for Channel<crossbeam_channel::Receiver<OrderIntent>> {
    #[inline(always)]
    fn receive(&mut self, mut visit: impl FnMut(&OrderIntent)) -> usize {
        let Ok(intent) = self.0.try_recv() else { return 0 };
        visit(&intent);
        1
    }
}

pub(super) struct SyncChannelIn(pub(super) mpsc::SyncSender<OrderIntent>);

pub(super) struct SyncChannelOut(pub(super) mpsc::Receiver<OrderIntent>);

impl Sender for SyncChannelIn {
    type Event = OrderIntent;

    #[inline(always)]
    fn send(&mut self, event: OrderIntent) -> bool {
        self.0.try_send(event).is_ok()
    }
}

impl Receiver for SyncChannelOut {
    #[inline(always)]
    fn receive(&mut self, mut visit: impl FnMut(&OrderIntent)) -> usize {
        let Ok(intent) = self.0.try_recv() else { return 0 };
        visit(&intent);
        1
    }
}
