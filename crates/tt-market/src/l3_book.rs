//! Orders of order-by-order books: their levels' sums, and their rank in each.

use crate::BookSide;
use crate::drop_reason::DropReason;
use alloc::vec::Vec;
use tt_model::{Nanos, Price, Qty};
use tt_venue::event::OrderId;

/// An order of a book that is followed order by order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestingOrder {
    /// The venue's identifier.
    pub order_id: OrderId,
    /// The price, in steps.
    pub px: Price,
    /// The quantity, in lots.
    pub qty: Qty,
    /// The venue's time of its last event, Unix epoch; zero where the venue sent none.
    pub ts_event: Nanos,
    /// Orders before it in the queue of its level.
    pub position: u32,
    /// Their quantity, in lots.
    pub qty_ahead: Qty,
}

/// No place.
const NONE: u32 = u32::MAX;

/// A price level of one side of one book, by the book's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) book: u32,
    pub(crate) side: BookSide,
    /// In steps.
    pub(crate) px: i64,
}

impl Place {
    fn hash(&self) -> u64 {
        let side = u64::from(self.side == BookSide::Ask);
        mixed(self.px as u64 ^ u64::from(self.book) << 33 ^ side << 32)
    }
}

#[derive(Clone, Copy, Debug)]
struct Order {
    at: Place,
    id: OrderId,
    /// In lots.
    qty: i64,
    /// The venue's time.
    ts_event: Nanos,
    /// Neighbours in its level, oldest first.
    before: u32,
    after: u32,
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    at: Place,
    qty: i64,
    first: u32,
    last: u32,
}

/// All resting orders of all books. It never grows.
#[derive(Debug)]
pub(crate) struct L3Books {
    orders: Arena<Order>,
    by_id: Index,
    queues: Arena<Queue>,
    by_px: Index,
}

impl L3Books {
    pub(crate) fn new(orders_max: usize) -> Self {
        Self {
            orders: Arena::new(orders_max),
            by_id: Index::new(orders_max),
            queues: Arena::new(orders_max),
            by_px: Index::new(orders_max),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.orders.entries.len() - self.orders.free.len()
    }

    /// Puts an order behind all others of its level; one of the same identifier makes way first.
    pub(crate) fn add(&mut self, at: Place, id: OrderId, qty: i64, ts_event: Nanos) -> Result<(), DropReason> {
        if qty <= 0 {
            return Err(DropReason::Number);
        }
        self.delete(at.book, &id);
        let queue = match self.queue(&at) {
            Some(queue) => queue,
            None => {
                let queue = self.queues.take(Queue { at, qty: 0, first: NONE, last: NONE })?;
                self.by_px.insert(at.hash(), queue);
                queue
            }
        };
        let last = self.queues.get(queue).last;
        let order = match self.orders.take(Order { at, id, qty, ts_event, before: last, after: NONE }) {
            Ok(order) => order,
            Err(reason) => {
                self.end_if_empty(queue);
                return Err(reason);
            }
        };
        self.by_id.insert(hash(at.book, &id), order);
        match last {
            NONE => self.queues.get_mut(queue).first = order,
            last => self.orders.get_mut(last).after = order,
        }
        let queue = self.queues.get_mut(queue);
        queue.last = order;
        queue.qty = queue.qty.checked_add(qty).ok_or(DropReason::NumberRange)?;
        Ok(())
    }

    /// Place and quantity of an order.
    pub(crate) fn find(&self, book: u32, id: &OrderId) -> Option<(Place, i64)> {
        let order = self.orders.get(self.order(book, id)?);
        Some((order.at, order.qty))
    }

    /// Changes an order's quantity, at the same rank if it becomes smaller.
    pub(crate) fn resize(&mut self, book: u32, id: &OrderId, qty: i64) -> Result<(), DropReason> {
        let Some(place) = self.order(book, id) else { return Err(DropReason::UnknownOrder) };
        let order = self.orders.get_mut(place);
        let (at, before, ts_event) = (order.at, order.qty, order.ts_event);
        if qty == 0 {
            self.delete(book, id);
        } else if qty > before {
            self.delete(book, id);
            self.add(at, *id, qty, ts_event)?;
        } else {
            order.qty = qty;
            if let Some(queue) = self.queue(&at) {
                self.queues.get_mut(queue).qty -= before - qty;
            }
        }
        Ok(())
    }

    /// Takes an order out of its book, if it is there.
    pub(crate) fn delete(&mut self, book: u32, id: &OrderId) {
        let Some(place) = self.order(book, id) else { return };
        let Order { at, qty, before, after, .. } = *self.orders.get(place);
        let orders = &self.orders;
        self.by_id.remove(hash(book, id), place, |place| {
            let order = orders.get(place);
            hash(order.at.book, &order.id)
        });
        self.orders.give_back(place);
        let Some(queue_place) = self.queue(&at) else { return };
        match before {
            NONE => self.queues.get_mut(queue_place).first = after,
            before => self.orders.get_mut(before).after = after,
        }
        match after {
            NONE => self.queues.get_mut(queue_place).last = before,
            after => self.orders.get_mut(after).before = before,
        }
        self.queues.get_mut(queue_place).qty -= qty;
        self.end_if_empty(queue_place);
    }

    /// The sum of a level's orders.
    pub(crate) fn qty(&self, at: &Place) -> i64 {
        self.queue(at).map_or(0, |queue| self.queues.get(queue).qty)
    }

    /// The quantities of a level's orders, the oldest first.
    pub(crate) fn quantities(&self, at: &Place) -> impl Iterator<Item = i64> {
        self.level(at).map(|order| order.qty.0)
    }

    /// The orders of a level, the oldest first.
    pub(crate) fn level(&self, at: &Place) -> impl Iterator<Item = RestingOrder> + use<'_> {
        let mut next = self.queue(at).map_or(NONE, |queue| self.queues.get(queue).first);
        let (mut position, mut ahead) = (0, 0);
        core::iter::from_fn(move || {
            let order = (next != NONE).then(|| self.orders.get(next))?;
            let (order_id, px, qty, qty_ahead) = (order.id, Price(order.at.px), Qty(order.qty), Qty(ahead));
            let resting = RestingOrder { order_id, px, qty, ts_event: order.ts_event, position, qty_ahead };
            (next, position, ahead) = (order.after, position + 1, ahead + order.qty);
            Some(resting)
        })
    }

    /// Notes the time of the last event of an order.
    pub(crate) fn note_time(&mut self, book: u32, id: &OrderId, ts_event: Nanos) {
        if let Some(place) = self.order(book, id).filter(|_| ts_event != Nanos(0)) {
            self.orders.get_mut(place).ts_event = ts_event;
        }
    }

    /// Takes all orders of a level out of the book.
    pub(crate) fn delete_level(&mut self, at: &Place) {
        while let Some(queue) = self.queue(at) {
            let first = *self.orders.get(self.queues.get(queue).first);
            self.delete(at.book, &first.id);
        }
    }

    /// Takes all orders of a book out of it.
    pub(crate) fn clear(&mut self, book: u32) {
        for place in 0..self.orders.len() {
            if self.orders.is_taken(place) {
                let Order { at, id, .. } = *self.orders.get(place);
                if at.book == book {
                    self.delete(book, &id);
                }
            }
        }
    }

    /// Counts the prices and quantities of a book's orders in steps of which an old one has `px` and `qty`. It allocates.
    pub(crate) fn scale(&mut self, book: u32, px: i64, qty: i64) {
        let mut orders = Vec::new();
        for queue in self.queues.entries.iter().flatten().filter(|queue| queue.at.book == book) {
            let mut next = queue.first;
            while next != NONE {
                let order = self.orders.get(next);
                orders.push(*order);
                next = order.after;
            }
        }
        self.clear(book);
        for Order { at, id, qty: lots, ts_event, .. } in orders {
            // There was room for each of them.
            let _ = self.add(Place { px: at.px.saturating_mul(px), ..at }, id, lots.saturating_mul(qty), ts_event);
        }
    }

    fn order(&self, book: u32, id: &OrderId) -> Option<u32> {
        self.by_id.find(hash(book, id), |place| {
            let order = self.orders.get(place);
            order.at.book == book && order.id == *id
        })
    }

    fn queue(&self, at: &Place) -> Option<u32> {
        self.by_px.find(at.hash(), |place| self.queues.get(place).at == *at)
    }

    fn end_if_empty(&mut self, place: u32) {
        let Queue { at, first, .. } = *self.queues.get(place);
        if first == NONE {
            let queues = &self.queues;
            self.by_px.remove(at.hash(), place, |place| queues.get(place).at.hash());
            self.queues.give_back(place);
        }
    }
}

fn hash(book: u32, id: &OrderId) -> u64 {
    let [one, two, three] = *id.words();
    mixed(one ^ two.rotate_left(23) ^ three.rotate_left(41) ^ u64::from(book))
}

const fn mixed(word: u64) -> u64 {
    (word ^ word >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Entries that keep their place as long as they are taken.
#[derive(Debug)]
struct Arena<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Arena<T> {
    fn new(len_max: usize) -> Self {
        Self { entries: Vec::with_capacity(len_max), free: Vec::with_capacity(len_max) }
    }

    fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    fn is_taken(&self, place: u32) -> bool {
        self.entries[place as usize].is_some()
    }

    fn take(&mut self, entry: T) -> Result<u32, DropReason> {
        if let Some(place) = self.free.pop() {
            self.entries[place as usize] = Some(entry);
            return Ok(place);
        }
        if self.entries.len() == self.entries.capacity() {
            return Err(DropReason::BookOrdersFull);
        }
        self.entries.push(Some(entry));
        Ok(self.len() - 1)
    }

    fn give_back(&mut self, place: u32) {
        self.entries[place as usize] = None;
        self.free.push(place);
    }

    #[allow(clippy::expect_used, reason = "places come from an index or a neighbour, which end with their entry")]
    fn get(&self, place: u32) -> &T {
        self.entries[place as usize].as_ref().expect("a taken place")
    }

    #[allow(clippy::expect_used, reason = "as in `get`")]
    fn get_mut(&mut self, place: u32) -> &mut T {
        self.entries[place as usize].as_mut().expect("a taken place")
    }
}

/// Places by hash: open addressing, linear probing, deletion by shifting back.
#[derive(Debug)]
struct Index {
    slots: Vec<u32>,
    mask: usize,
}

impl Index {
    fn new(len_max: usize) -> Self {
        let len = (len_max.max(1) * 2).next_power_of_two();
        Self { slots: alloc::vec![NONE; len], mask: len - 1 }
    }

    fn start(&self, hash: u64) -> usize {
        (hash >> 32) as usize & self.mask
    }

    fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mut at = self.start(hash);
        loop {
            match self.slots[at] {
                NONE => return None,
                place if is_it(place) => return Some(place),
                _ => at = (at + 1) & self.mask,
            }
        }
    }

    fn insert(&mut self, hash: u64, place: u32) {
        let mut at = self.start(hash);
        while self.slots[at] != NONE {
            at = (at + 1) & self.mask;
        }
        self.slots[at] = place;
    }

    fn remove(&mut self, hash: u64, place: u32, hash_of: impl Fn(u32) -> u64) {
        let mut hole = self.start(hash);
        while self.slots[hole] != place {
            hole = (hole + 1) & self.mask;
        }
        let mut at = hole;
        loop {
            self.slots[hole] = NONE;
            loop {
                at = (at + 1) & self.mask;
                if self.slots[at] == NONE {
                    return;
                }
                let start = self.start(hash_of(self.slots[at]));
                // It may move if its own start does not lie between the hole and itself.
                if (at.wrapping_sub(start) & self.mask) >= (at.wrapping_sub(hole) & self.mask) {
                    self.slots[hole] = self.slots[at];
                    hole = at;
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_come_and_go_as_in_a_plain_list() {
        let mut books = L3Books::new(64);
        let mut plain: Vec<(Place, u64, i64)> = Vec::new();
        let mut seed = 5_u64;
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (book, number) = ((seed >> 33) as u32 % 2, seed >> 35 & 127);
            let side = if seed >> 42 & 1 == 0 { BookSide::Bid } else { BookSide::Ask };
            let at = Place { book, side, px: (seed >> 43 & 7) as i64 };
            let qty = (seed >> 46 & 15) as i64;
            let id = OrderId::new(alloc::format!("{number}").as_bytes()).expect("short");
            let known = plain.iter().position(|(at, other, _)| at.book == book && *other == number);
            match seed >> 60 {
                0..8 if qty > 0 => {
                    let full = known.is_none() && plain.len() == 64;
                    if let Some(known) = known {
                        plain.remove(known);
                    }
                    assert_eq!(
                        books.add(at, id, qty, Nanos(0)),
                        if full { Err(DropReason::BookOrdersFull) } else { Ok(()) }
                    );
                    if !full {
                        plain.push((at, number, qty));
                    }
                }
                8..11 => {
                    let expected = if known.is_some() { Ok(()) } else { Err(DropReason::UnknownOrder) };
                    assert_eq!(books.resize(book, &id, qty), expected);
                    if let Some(known) = known {
                        let (at, _, before) = plain[known];
                        if qty == 0 || qty > before {
                            plain.remove(known);
                            if qty > 0 {
                                plain.push((at, number, qty));
                            }
                        } else {
                            plain[known].2 = qty;
                        }
                    }
                }
                15 if seed >> 55 & 15 == 0 => {
                    books.clear(book);
                    plain.retain(|(at, _, _)| at.book != book);
                }
                14 => {
                    books.delete_level(&at);
                    plain.retain(|(other, _, _)| *other != at);
                }
                _ => {
                    books.delete(book, &id);
                    plain.retain(|(at, other, _)| at.book != book || *other != number);
                }
            }
            let expected: Vec<i64> =
                plain.iter().filter(|(other, _, _)| *other == at).map(|(_, _, qty)| *qty).collect();
            assert_eq!(books.quantities(&at).collect::<Vec<_>>(), expected);
            assert_eq!(books.qty(&at), expected.iter().sum::<i64>());
            let found = plain.iter().find(|(at, other, _)| at.book == book && *other == number);
            assert_eq!(books.find(book, &id), found.map(|(at, _, qty)| (*at, *qty)));
        }
    }
}
