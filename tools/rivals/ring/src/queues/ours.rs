//! truetick's ring.

use tt_model::{OrderIntent, OrderTerms};
use tt_sync::spsc::{Consumer, Producer};

use crate::ends::{Receiver, ReceivesBatches, Sender, SendsBatches};

/// The ring of terms: the ring numbers its events, so that an intent takes one line. An idle sender does nothing.
pub(super) struct RingIn(pub(super) Producer<OrderTerms>);

/// The other end, and how many events came out of it: their numbers.
pub(super) struct RingOut {
    consumer: Consumer<OrderTerms>,
    received: u64,
}

impl RingOut {
    pub(super) fn new(consumer: Consumer<OrderTerms>) -> Self {
        Self { consumer, received: 0 }
    }
}

impl Sender for RingIn {
    type Event = OrderTerms;

    #[inline(always)]
    fn send(&mut self, event: OrderTerms) -> bool {
        self.0.push(event).is_ok()
    }
}

impl Receiver for RingOut {
    #[inline(always)]
    fn receive(&mut self, mut visit: impl FnMut(&OrderIntent)) -> usize {
        let Some((number, terms)) = self.consumer.pop_numbered() else { return 0 };
        self.received = number + 1;
        visit(&terms.numbered(number));
        1
    }
}

impl SendsBatches for RingIn {
    #[inline(always)]
    fn send_batch(&mut self, count: usize, make: impl FnMut() -> OrderTerms) -> usize {
        self.0.push_with(count, make)
    }
}

impl ReceivesBatches for RingOut {
    #[inline(always)]
    fn receive_batch(&mut self, count: usize, mut visit: impl FnMut(&OrderIntent)) -> usize {
        let mut number = self.received;
        let count = self.consumer.drain(count, |terms| {
            visit(&terms.numbered(number));
            number += 1;
        });
        self.received = number;
        count
    }
}

/// The ring of whole intents: an event of 64 bytes, as the rivals', and the sequence take two cache lines. `HOLDS`: an
/// idle sender takes the next slot's line back.
pub(super) struct WideIn<const HOLDS: bool>(pub(super) Producer<OrderIntent>);

/// The other end.
pub(super) struct WideOut(pub(super) Consumer<OrderIntent>);

impl<const HOLDS: bool> Sender for WideIn<HOLDS> {
    type Event = OrderIntent;

    #[inline(always)]
    fn send(&mut self, event: OrderIntent) -> bool {
        self.0.push(event).is_ok()
    }

    #[inline(always)]
    fn rest(&mut self) {
        if HOLDS {
            self.0.hold_next();
        }
    }
}

impl Receiver for WideOut {
    #[inline(always)]
    fn receive(&mut self, mut visit: impl FnMut(&OrderIntent)) -> usize {
        let Some(intent) = self.0.pop() else { return 0 };
        visit(&intent);
        1
    }
}

impl<const HOLDS: bool> SendsBatches for WideIn<HOLDS> {
    #[inline(always)]
    fn send_batch(&mut self, count: usize, make: impl FnMut() -> OrderIntent) -> usize {
        self.0.push_with(count, make)
    }
}

impl ReceivesBatches for WideOut {
    #[inline(always)]
    fn receive_batch(&mut self, count: usize, visit: impl FnMut(&OrderIntent)) -> usize {
        self.0.drain(count, visit)
    }
}
