//! The two ends of a queue, as the measurements use them.

use tt_model::{OrderIntent, OrderTerms};

/// `client_id` of the event that ends a run.
pub(crate) const END: u64 = u64::MAX;

/// What travels: the whole intent, or its terms where the queue numbers events itself.
pub(crate) trait Event: Copy + Default + Send + Sync + 'static {
    /// The event with these terms.
    fn of(terms: OrderTerms, number: u64) -> Self;
}

impl Event for OrderTerms {
    #[inline(always)]
    fn of(terms: OrderTerms, _number: u64) -> Self {
        terms
    }
}

impl Event for OrderIntent {
    #[inline(always)]
    fn of(terms: OrderTerms, number: u64) -> Self {
        terms.numbered(number)
    }
}

/// The end that events go into.
pub(crate) trait Sender: Send {
    type Event: Event;

    /// Appends `event`; `false` if the queue is full.
    fn send(&mut self, event: Self::Event) -> bool;

    /// What the sender does while it has no event; nothing in most queues.
    #[inline(always)]
    fn rest(&mut self) {}
}

/// A sender that can append several at once.
pub(crate) trait SendsBatches: Sender {
    /// Appends up to `count` events that `make` makes, returns how many. Makes none that it cannot append.
    fn send_batch(&mut self, count: usize, make: impl FnMut() -> Self::Event) -> usize;
}

/// The end that events come out of.
pub(crate) trait Receiver: Send {
    /// Shows `visit` the next event, or all that are there where that is how the queue is read one event at a time;
    /// returns how many.
    fn receive(&mut self, visit: impl FnMut(&OrderIntent)) -> usize;
}

/// A receiver that can take several at once.
pub(crate) trait ReceivesBatches: Receiver {
    /// Shows `visit` up to `count` events that are there, returns how many.
    fn receive_batch(&mut self, count: usize, visit: impl FnMut(&OrderIntent)) -> usize;
}

/// A measurement that wants a queue.
pub(crate) trait Measurement {
    type Output;

    fn measure<S: Sender, R: Receiver>(self, sender: S, receiver: R) -> Self::Output;
}

/// A measurement that wants a queue with batches.
pub(crate) trait BatchMeasurement {
    type Output;

    fn measure<S: SendsBatches, R: ReceivesBatches>(self, sender: S, receiver: R) -> Self::Output;
}
