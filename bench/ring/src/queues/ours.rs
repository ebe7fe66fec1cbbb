//! truetick's ring.

use tt_model::{OrderIntent, OrderTerms};
use tt_sync::spsc::{Consumer, Producer};

use crate::ends::{Receiver, ReceivesBatches, Sender, SendsBatches};

/// The ring of terms: the ring numbers its events, so that an intent takes one line. `HOLDS`: an idle sender takes the
/// next slot's line back.
pub(super) struct RingIn<const HOLDS: bool>(pub(super) Producer<OrderTerms>);

/// The other end.
pub(super) struct RingOut(pub(super) Consumer<OrderTerms>);

impl<const HOLDS: bool> Sender for RingIn<HOLDS> {
    type Event = OrderTerms;

    #[inline(always)]
    fn send(&mut self, event: OrderTerms) -> bool {
        self.0.push(event).is_ok()
    }

    #[inline(always)]
    fn rest(&mut self) {
        if HOLDS {
            self.0.hold_next();
        }
    }
}

impl Receiver for RingOut {
    #[inline(always)]
    fn receive(&mut self, mut visit: impl FnMut(&OrderIntent)) -> usize {
        let Some((number, terms)) = self.0.pop_numbered() else { return 0 };
        visit(&terms.numbered(number));
        1
    }
}

// Until the ring has batches, they are one event after the other.
impl<const HOLDS: bool> SendsBatches for RingIn<HOLDS> {
    #[inline(always)]
    fn send_batch(&mut self, count: usize, mut make: impl FnMut() -> OrderTerms) -> usize {
        let free = self.0.capacity() - self.0.occupancy();
        let count = count.min(free);
        (0..count).for_each(|_| {
            let _ = self.0.push(make());
        });
        count
    }
}

impl ReceivesBatches for RingOut {
    #[inline(always)]
    fn receive_batch(&mut self, count: usize, mut visit: impl FnMut(&OrderIntent)) -> usize {
        (0..count).take_while(|_| self.receive(&mut visit) == 1).count()
    }
}

/// The ring of whole intents: an event of 64 bytes beside the sequence takes two lines.
pub(super) struct WideIn(pub(super) Producer<OrderIntent>);

/// The other end.
pub(super) struct WideOut(pub(super) Consumer<OrderIntent>);

impl Sender for WideIn {
    type Event = OrderIntent;

    #[inline(always)]
    fn send(&mut self, event: OrderIntent) -> bool {
        self.0.push(event).is_ok()
    }

    #[inline(always)]
    fn rest(&mut self) {
        self.0.hold_next();
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
