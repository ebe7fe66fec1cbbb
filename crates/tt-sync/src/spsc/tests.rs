//! The ring against a `VecDeque`, against every schedule that loom finds, and between two real threads; in both
//! storages.

#[cfg(not(loom))]
mod model;
#[cfg(loom)]
mod schedules;
#[cfg(not(loom))]
mod threads;
#[cfg(not(loom))]
mod weak_memory;

use super::{Consumer, Owned, Producer, ring_from};
use crate::region::tests::{OWNER, Words};
use crate::region::{PlainEvent, Region, consumer, producer};

/// Two ends in the storage `P`.
type Ends<T, P> = (Producer<T, P>, Consumer<T, P>);

fn owned<T: Copy + Send>(capacity: usize, start: u64) -> Ends<T, Owned<T>> {
    ring_from(capacity, start)
}

fn shared<T: PlainEvent>(capacity: usize, start: u64) -> Ends<T, Region<T, Words>> {
    let memory = Words::formatted::<T>(capacity, start);
    (producer(memory.clone(), OWNER).unwrap(), consumer(memory, OWNER).unwrap())
}
