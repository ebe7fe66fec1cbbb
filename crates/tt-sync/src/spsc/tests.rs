//! The ring against a `VecDeque`, against every schedule that loom finds, and between two real threads; in both places.

#[cfg(not(loom))]
mod model;
#[cfg(loom)]
mod schedules;
#[cfg(not(loom))]
mod threads;

use super::{Consumer, Owned, Producer, ring_from};
use crate::region::tests::{MARK, Words};
use crate::region::{Given, PlainEvent, consumer, producer};

/// Two ends in the place `P`.
type Ends<T, P> = (Producer<T, P>, Consumer<T, P>);

fn owned<T: Copy + Send>(capacity: usize, start: u64) -> Ends<T, Owned<T>> {
    ring_from(capacity, start)
}

fn given<T: PlainEvent>(capacity: usize, start: u64) -> Ends<T, Given<T, Words>> {
    let memory = Words::formatted::<T>(capacity, start);
    (producer(memory.clone(), MARK).unwrap(), consumer(memory, MARK).unwrap())
}
