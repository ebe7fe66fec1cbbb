//! Executions that were applied, by order and the venue's id.

use crate::index::{Index, NIL, hash};
use alloc::boxed::Box;

/// An execution of an order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Execution {
    pub(crate) id: u128,
    pub(crate) qty: i64,
    pub(crate) px: i64,
    /// The order's slot.
    order: u32,
    /// The next execution of the order, or the next free slot.
    next: u32,
    /// Whether a bust or a correction has undone it.
    pub(crate) is_undone: bool,
}

/// The executions of all orders.
#[derive(Debug)]
pub(crate) struct Executions {
    slots: Box<[Execution]>,
    index: Index,
    free: u32,
    free_len: u32,
}

impl Executions {
    pub(crate) fn new(capacity: u32) -> Self {
        let next = |slot: u32| if slot + 1 < capacity { slot + 1 } else { NIL };
        let free = |slot| Execution { id: 0, qty: 0, px: 0, order: NIL, next: next(slot), is_undone: false };
        Self {
            slots: (0..capacity).map(free).collect(),
            index: Index::new(capacity as usize),
            free: if capacity > 0 { 0 } else { NIL },
            free_len: capacity,
        }
    }

    /// Returns the number of further executions for which there is room.
    pub(crate) const fn free_len(&self) -> u32 {
        self.free_len
    }

    /// Returns the slot of the execution `id` of `order`.
    pub(crate) fn find(&self, order: u32, id: u128) -> Option<u32> {
        let is_it = |slot: &u32| {
            let execution = &self.slots[*slot as usize];
            execution.id == id && execution.order == order
        };
        self.index.chain(hash_of(order, id)).find(is_it)
    }

    pub(crate) fn get(&self, slot: u32) -> &Execution {
        &self.slots[slot as usize]
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> &mut Execution {
        &mut self.slots[slot as usize]
    }

    /// Adds an execution to the list that starts at `first`, the list of `order`; `None` without room.
    pub(crate) fn add(&mut self, order: u32, first: &mut u32, id: u128, [qty, px]: [i64; 2]) -> Option<()> {
        let slot = self.free;
        let entry = self.slots.get_mut(slot as usize)?;
        self.free = entry.next;
        self.free_len -= 1;
        *entry = Execution { id, qty, px, order, next: *first, is_undone: false };
        *first = slot;
        self.index.insert(hash_of(order, id), slot);
        Some(())
    }

    /// Removes the execution at `first` from the list; the list then starts at the next one.
    pub(crate) fn remove_first(&mut self, first: &mut u32) {
        let slot = *first;
        let Execution { id, order, next, .. } = self.slots[slot as usize];
        self.index.remove(hash_of(order, id), slot);
        self.slots[slot as usize].next = self.free;
        self.slots[slot as usize].order = NIL;
        self.free = slot;
        self.free_len += 1;
        *first = next;
    }
}

const fn hash_of(order: u32, id: u128) -> u64 {
    hash(id as u64, (id >> 64) as u64 ^ (order as u64) << 32)
}

crate::fields::visit!(Execution: id, qty, px, order, next, is_undone);
crate::fields::visit!(Executions: slots, index, free, free_len);
