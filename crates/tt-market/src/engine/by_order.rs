//! Order-by-order books: what happens to orders becomes changed levels, which go the way of any other
//! book.

use super::{AddError, Applied, BookUpdate, Engine};
use crate::continuity::{Continuity, Join};
use crate::drop_reason::DropReason;
use crate::instrument::{BookState, RequestState};
use crate::l3_book::{L3Books, Place, RestingOrder};
use crate::{BookSide, ConnectionId};
use alloc::vec::Vec;
use core::mem;
use tt_meter::Probe;
use tt_model::{InstrumentId, Nanos, Price, Qty};
use tt_venue::event::{BookDelta, BookOrder, BookOrders, BookSnapshot, EventBuffer, Level, Levels, OrderAction};
use tt_venue::rules::JoinRule;
use tt_venue::{BookLevel, Checksum, OrderChecksum, Venue};

/// Room for what the orders of one frame change.
#[derive(Debug, Default)]
pub(super) struct Changed {
    places: Vec<Place>,
    levels: Vec<Level>,
    /// What a checksum is made of.
    text: Vec<u8>,
}

impl Changed {
    pub(super) fn new(orders_max: usize) -> Self {
        Self {
            places: Vec::with_capacity(2 * orders_max),
            levels: Vec::with_capacity(2 * orders_max),
            text: Vec::with_capacity(order_text_len_max() * orders_max),
        }
    }

    fn clear(&mut self) {
        self.places.clear();
        self.levels.clear();
    }

    fn push(&mut self, place: Place) -> Result<(), DropReason> {
        if self.places.len() == self.places.capacity() {
            return Err(DropReason::TooManyEntries);
        }
        if self.places.last() != Some(&place) {
            self.places.push(place);
        }
        Ok(())
    }
}

impl Engine {
    /// Follows an instrument's book order by order from the next subscription on, by its venue's
    /// [`Rules::l3`](tt_venue::rules::Rules::l3).
    ///
    /// # Errors
    /// `BadInstrument` if there is no such instrument, or its venue has no such feed; `Full` if the capacity has no room
    /// for orders of books.
    pub fn follow_orders(&mut self, instrument: InstrumentId) -> Result<(), AddError> {
        let known = self.instruments.get_mut(instrument.0 as usize).ok_or(AddError::BadInstrument)?;
        let rules = known.spec.venue.rules().l3.ok_or(AddError::BadInstrument)?;
        if self.capacity.book_orders == 0 {
            return Err(AddError::Full);
        }
        known.rules = rules;
        known.follows_orders = true;
        known.join_overlap = match rules.join {
            JoinRule::Rest(overlap) => Some(overlap),
            JoinRule::Socket | JoinRule::Both(_) | JoinRule::Whole => None,
        };
        Ok(())
    }

    /// How many orders rest in the books that are followed order by order.
    #[must_use]
    pub fn book_orders_len(&self) -> usize {
        self.l3_books.len()
    }

    /// Every resting order of a side, the best level first and in it the oldest; `None` where the book is not followed
    /// order by order. Nothing is allocated.
    ///
    /// A book that is `Stale` may hold a part of the update that was rejected, until its snapshot arrives.
    #[must_use]
    pub fn resting_orders(&self, id: InstrumentId, side: BookSide) -> Option<impl Iterator<Item = RestingOrder>> {
        self.instruments.get(id.0 as usize).filter(|instrument| instrument.follows_orders)?;
        let level = move |px: Price| self.l3_books.level(&Place { book: id.0, side, px: px.0 });
        Some(self.levels(id, side)?.flat_map(move |at| level(at.px)))
    }

    /// A trade that took an order of the book: it is both, and the book's reason is the frame's before the trade's.
    #[inline(never)]
    pub(super) fn apply_match(
        &mut self,
        ts_recv: Nanos,
        connection: ConnectionId,
        update: &BookOrders,
        buffer: &EventBuffer,
        probe: &mut impl Probe,
    ) -> Result<Applied, DropReason> {
        let venue = connection.venue();
        let traded = self.apply_trades(ts_recv, venue, buffer.trades(), probe);
        let index = self.find(venue, &update.symbol)?;
        if !self.instruments[index].follows_orders {
            return traded;
        }
        let applied = self.apply_book_orders(ts_recv, connection, update, buffer.book_orders(), probe)?;
        traded.map(|_| applied)
    }

    #[inline(never)]
    pub(super) fn apply_book_orders(
        &mut self,
        ts_recv: Nanos,
        connection: ConnectionId,
        update: &BookOrders,
        orders: &[BookOrder],
        probe: &mut impl Probe,
    ) -> Result<Applied, DropReason> {
        let index = self.find(connection.venue(), &update.symbol)?;
        let instrument = &self.instruments[index];
        if !instrument.follows_orders {
            return Err(DropReason::UnknownTopic);
        }
        if instrument.connection != Some(connection) {
            return Err(instrument.foreign());
        }
        let mut changed = mem::take(&mut self.changed);
        let result = if update.is_snapshot {
            self.apply_all_orders(index, ts_recv, connection, update, orders, &mut changed, probe)
        } else {
            self.apply_changed_orders(index, ts_recv, connection, update, orders, &mut changed, probe)
        };
        self.changed = changed;
        result
    }

    #[allow(clippy::too_many_arguments, reason = "the frame's circumstances, all of which the book's path wants")]
    fn apply_all_orders(
        &mut self,
        index: usize,
        ts_recv: Nanos,
        connection: ConnectionId,
        update: &BookOrders,
        orders: &[BookOrder],
        changed: &mut Changed,
        probe: &mut impl Probe,
    ) -> Result<Applied, DropReason> {
        match self.replace_orders(index, orders, changed) {
            Ok(levels) => {
                let snapshot = BookSnapshot {
                    symbol: Some(update.symbol),
                    last_id: update.number,
                    checksum: update.checksum,
                    levels,
                    ts_event: update.ts_event,
                };
                self.apply_snapshot(ts_recv, connection, &snapshot, &changed.levels, probe)
            }
            Err(reason) => {
                self.instruments[index].state = BookState::Live;
                self.instruments[index].request = RequestState::None;
                self.lose_book(index, ts_recv);
                Err(reason)
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "as of `apply_all_orders`")]
    fn apply_changed_orders(
        &mut self,
        index: usize,
        ts_recv: Nanos,
        connection: ConnectionId,
        update: &BookOrders,
        orders: &[BookOrder],
        changed: &mut Changed,
        probe: &mut impl Probe,
    ) -> Result<Applied, DropReason> {
        let delta = BookDelta {
            symbol: update.symbol,
            first_id: update.number,
            last_id: update.number,
            previous_id: None,
            checksum: update.checksum,
            levels: Levels::default(),
            ts_event: update.ts_event,
        };
        let instrument = &self.instruments[index];
        let last_id = instrument.top.update_id;
        let follows = match instrument.state {
            BookState::Live => Continuity::of(instrument.rules.numbering, last_id, &delta) == Continuity::Next,
            BookState::Joining(overlap) => Join::of(overlap, last_id, &delta) == Join::Next,
            BookState::Awaiting | BookState::Idle => false,
        };
        if !follows {
            let result = self.apply_delta(ts_recv, connection, &delta, &[], probe);
            if let (Ok(Applied::Book { update: BookUpdate::Buffered, .. }), Some(slot)) =
                (result, self.instruments[index].backlog)
            {
                self.backlogs[slot].keep_order(orders.first().copied());
            }
            return result;
        }
        match self.change_orders(index, orders, changed) {
            Ok(levels) => self.apply_delta(ts_recv, connection, &BookDelta { levels, ..delta }, &changed.levels, probe),
            Err(reason) => {
                self.lose_book(index, ts_recv);
                Err(reason)
            }
        }
    }

    /// The REST book of all orders, which joins what was kept for it.
    #[inline(never)]
    pub(super) fn apply_rest_orders(
        &mut self,
        now: Nanos,
        id: InstrumentId,
        snapshot: &BookSnapshot,
        orders: &[BookOrder],
        probe: &mut impl Probe,
    ) -> Result<Applied, DropReason> {
        let index = id.0 as usize;
        let instrument = &self.instruments[index];
        if instrument.state == BookState::Live && self.comparison.is_of(index) {
            return self.compare_orders(now, id, snapshot.last_id, orders);
        }
        if instrument.overlap.is_none() || instrument.state != BookState::Awaiting {
            return Err(DropReason::UnexpectedSnapshot);
        }
        let mut changed = mem::take(&mut self.changed);
        let result = self.replace_orders(index, orders, &mut changed).and_then(|levels| {
            self.apply_rest_snapshot(now, id, &BookSnapshot { levels, ..*snapshot }, &changed.levels, probe)
        });
        self.changed = changed;
        result
    }

    /// Replaces all orders of a book, and leaves its levels in `changed`.
    fn replace_orders(
        &mut self,
        index: usize,
        orders: &[BookOrder],
        changed: &mut Changed,
    ) -> Result<Levels, DropReason> {
        changed.clear();
        self.l3_books.clear(index as u32);
        for order in orders {
            let Some(place) = self.place(index, order)? else { return Err(DropReason::MissingKey) };
            let qty = self.instruments[index].quantity(order.qty)?.0;
            self.l3_books.add(place, order.order_id, qty, order.ts_event)?;
            changed.push(place)?;
        }
        let levels = self.changed_levels(index, changed)?;
        if let Checksum::Orders(rule) = self.instruments[index].rules.checksum {
            let best = |side| changed.places.iter().filter(move |place| place.side == side).take(rule.levels).copied();
            let sum = order_checksum(
                rule,
                &self.l3_books,
                &self.instruments[index],
                &mut changed.text,
                best(BookSide::Ask).chain(best(BookSide::Bid)),
            );
            self.instruments[index].checksum = sum;
        }
        Ok(levels)
    }

    /// Applies what happened to orders, and leaves the levels that are others now in `changed`.
    fn change_orders(
        &mut self,
        index: usize,
        orders: &[BookOrder],
        changed: &mut Changed,
    ) -> Result<Levels, DropReason> {
        changed.clear();
        for order in orders {
            for place in self.change_order(index, order)?.into_iter().flatten() {
                changed.push(place)?;
            }
        }
        if let Checksum::Orders(rule) = self.instruments[index].rules.checksum {
            self.cut_orders(rule, index, changed);
        }
        self.changed_levels(index, changed)
    }

    /// Applies what happened to one order; returns the levels that are others now.
    pub(super) fn change_order(&mut self, index: usize, order: &BookOrder) -> Result<[Option<Place>; 2], DropReason> {
        let (book, id) = (index as u32, &order.order_id);
        let known = self.l3_books.find(book, id);
        let before = known.map(|(place, _)| place);
        match order.action {
            OrderAction::Add => {
                let Some(place) = self.place(index, order)? else { return Err(DropReason::MissingKey) };
                let qty = self.instruments[index].quantity(order.qty)?.0;
                self.l3_books.add(place, *id, qty, order.ts_event)?;
                Ok([before, Some(place)])
            }
            OrderAction::Change => {
                let Some((place, _)) = known else { return Ok([None; 2]) };
                let qty = self.instruments[index].quantity(order.qty)?.0;
                let after = self.place(index, order)?.unwrap_or(place);
                if after == place {
                    self.l3_books.resize(book, id, qty)?;
                    self.l3_books.note_time(book, id, order.ts_event);
                } else if qty == 0 {
                    self.l3_books.delete(book, id);
                } else {
                    self.l3_books.add(after, *id, qty, order.ts_event)?;
                }
                Ok([before, Some(after)])
            }
            OrderAction::Take => {
                let taken = self.instruments[index].quantity(order.qty)?.0;
                let left =
                    known.map(|(_, qty)| qty - taken).filter(|left| *left >= 0).ok_or(DropReason::UnknownOrder)?;
                self.l3_books.resize(book, id, left)?;
                Ok([before, None])
            }
            OrderAction::Delete => {
                self.l3_books.delete(book, id);
                Ok([before, None])
            }
        }
    }

    /// The level that an order names.
    fn place(&mut self, index: usize, order: &BookOrder) -> Result<Option<Place>, DropReason> {
        let side = BookSide::of(order.side);
        let px = order.px.map(|px| self.instruments[index].price(px)).transpose()?;
        Ok(px.map(|px| Place { book: index as u32, side, px: px.0 }))
    }

    /// Takes the changed levels into the book, drops the orders beyond its depth, and computes the checksum of the rest.
    fn cut_orders(&mut self, rule: OrderChecksum, index: usize, changed: &mut Changed) {
        let instrument = &mut self.instruments[index];
        for place in &changed.places {
            let ladder = instrument.book.side_mut(place.side);
            ladder.set(&mut self.slab, place.side.key(place.px), self.l3_books.qty(place));
        }
        let mut best = [Place { book: index as u32, side: BookSide::Ask, px: 0 }; 2 * Checksum::LEVELS_MAX];
        let mut count = 0;
        for side in [BookSide::Ask, BookSide::Bid] {
            let ladder = instrument.book.side_mut(side);
            while instrument.spec.depth_max.is_some_and(|depth| ladder.len() > depth)
                && let Some((key, _)) = ladder.worst(&self.slab)
            {
                ladder.set(&mut self.slab, key, 0);
                self.l3_books.delete_level(&Place { book: index as u32, side, px: side.key(key) });
            }
            ladder.settle(&mut self.slab);
            let mut levels = [BookLevel::default(); Checksum::LEVELS_MAX];
            let found = instrument.book.top(side, &self.slab, &mut levels[..rule.levels]);
            for level in &levels[..found] {
                best[count] = Place { book: index as u32, side, px: level.px.0 };
                count += 1;
            }
        }
        let best = best[..count].iter().copied();
        let sum = order_checksum(rule, &self.l3_books, &self.instruments[index], &mut changed.text, best);
        self.instruments[index].checksum = sum;
    }

    /// The sums of the changed levels, each as it is now.
    fn changed_levels(&self, index: usize, changed: &mut Changed) -> Result<Levels, DropReason> {
        let Changed { places, levels, .. } = changed;
        let mut list = Levels::default();
        for side in [BookSide::Bid, BookSide::Ask] {
            let start = levels.len() as u32;
            for place in places.iter().filter(|place| place.side == side) {
                let (level, decimals) = self.level_of(index, place)?;
                (list.px_decimals, list.qty_decimals) = decimals;
                levels.push(level);
            }
            match side {
                BookSide::Bid => list.set_bids(start, levels.len() as u32),
                BookSide::Ask => list.set_asks(start, levels.len() as u32),
            }
        }
        Ok(list)
    }

    /// A level in the form of a frame, and the decimals of its price and quantity.
    pub(super) fn level_of(&self, index: usize, place: &Place) -> Result<(Level, (u8, u8)), DropReason> {
        let instrument = &self.instruments[index];
        let (px, qty) = (instrument.px.step(), instrument.qty.step());
        let product = |one: i64, two: i64| one.checked_mul(two).ok_or(DropReason::NumberRange);
        let level =
            Level { px: product(place.px, px.mantissa)?, qty: product(self.l3_books.qty(place), qty.mantissa)? };
        Ok((level, (px.decimals, qty.decimals)))
    }
}

/// The longest text of one order in any venue's checksum.
fn order_text_len_max() -> usize {
    let of_venue = |venue: Venue| match venue.rules().l3?.checksum {
        Checksum::Orders(rule) => Some(rule.text_len_max),
        Checksum::Levels(_) | Checksum::None => None,
    };
    Venue::ALL.into_iter().filter_map(of_venue).max().unwrap_or(0)
}

/// The checksum of all orders of these levels.
fn order_checksum(
    rule: OrderChecksum,
    l3_books: &L3Books,
    instrument: &crate::instrument::Instrument,
    text: &mut Vec<u8>,
    best: impl Iterator<Item = Place>,
) -> u32 {
    text.clear();
    for place in best {
        for qty in l3_books.quantities(&place) {
            let level = BookLevel { px: Price(place.px), qty: Qty(qty) };
            (rule.push)(text, level, instrument.px.step(), instrument.qty.step());
        }
    }
    tt_simd::crc32(text)
}
