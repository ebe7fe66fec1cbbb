//! Books that are told order by order: what happens to orders becomes changed levels, which go the way of any other
//! book.

use super::{AddError, Applied, Engine};
use crate::continuity::{Continuity, Join};
use crate::instrument::{BookState, RequestState};
use crate::kraken::checksum::{self, LEVELS};
use crate::resting::{Place, Resting};
use crate::rules::{Checksum, JoinRule};
use crate::{
    BookDelta, BookLevel, BookOrder, BookOrders, BookSide, BookSnapshot, ConnectionId, EventBuffer, Fault, Level,
    Levels, OrderAction,
};
use alloc::vec::Vec;
use core::mem;
use tt_meter::Probe;
use tt_model::{InstrumentId, Nanos, OrderSide};

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
            text: Vec::with_capacity(checksum::LEVEL_TEXT_MAX * orders_max),
        }
    }

    fn clear(&mut self) {
        self.places.clear();
        self.levels.clear();
    }

    fn push(&mut self, place: Place) -> Result<(), Fault> {
        if self.places.len() == self.places.capacity() {
            return Err(Fault::TooManyEntries);
        }
        if self.places.last() != Some(&place) {
            self.places.push(place);
        }
        Ok(())
    }
}

impl Engine {
    /// Follows an instrument's book order by order from the next subscription on, by its venue's
    /// [`order_rules`](crate::Venue::order_rules).
    ///
    /// # Errors
    /// `BadInstrument` if there is no such instrument, or its venue has no such feed; `Full` if the capacity has no room
    /// for orders of books.
    pub fn follow_orders(&mut self, instrument: InstrumentId) -> Result<(), AddError> {
        let known = self.instruments.get_mut(instrument.0 as usize).ok_or(AddError::BadInstrument)?;
        let rules = known.spec.venue.order_rules().ok_or(AddError::BadInstrument)?;
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
        self.resting.len()
    }

    /// A trade that took an order of the book: it is both, and the book's fault is the frame's before the trade's.
    #[inline(never)]
    pub(super) fn apply_match(
        &mut self,
        ts_recv: Nanos,
        connection: ConnectionId,
        update: &BookOrders,
        buffer: &EventBuffer,
        probe: &mut impl Probe,
    ) -> Result<Applied, Fault> {
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
    ) -> Result<Applied, Fault> {
        let index = self.find(connection.venue(), &update.symbol)?;
        let instrument = &self.instruments[index];
        if !instrument.follows_orders {
            return Err(Fault::UnknownTopic);
        }
        if instrument.connection != Some(connection) {
            return Err(Fault::ForeignConnection);
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
    ) -> Result<Applied, Fault> {
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
            Err(fault) => {
                self.instruments[index].state = BookState::Live;
                self.instruments[index].request = RequestState::None;
                self.lose_book(index, ts_recv);
                Err(fault)
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
    ) -> Result<Applied, Fault> {
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
            BookState::Live => {
                instrument.rules.numbering.continuity(last_id, instrument.last_event, &delta) == Continuity::Next
            }
            BookState::Joining(overlap) => overlap.join(last_id, &delta) == Join::Next,
            BookState::Awaiting | BookState::Idle => false,
        };
        if !follows {
            let result = self.apply_delta(ts_recv, connection, &delta, &[], probe);
            if let (Ok(Applied::Kept(_)), Some(slot)) = (result, self.instruments[index].backlog) {
                self.backlogs[slot].keep_order(orders.first().copied());
            }
            return result;
        }
        match self.change_orders(index, orders, changed) {
            Ok(levels) => self.apply_delta(ts_recv, connection, &BookDelta { levels, ..delta }, &changed.levels, probe),
            Err(fault) => {
                self.lose_book(index, ts_recv);
                Err(fault)
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
    ) -> Result<Applied, Fault> {
        let index = id.0 as usize;
        let instrument = &self.instruments[index];
        if instrument.overlap.is_none() || instrument.state != BookState::Awaiting {
            return Err(Fault::UnexpectedSnapshot);
        }
        let mut changed = mem::take(&mut self.changed);
        let result = self.replace_orders(index, orders, &mut changed).and_then(|levels| {
            self.apply_rest_snapshot(now, id, &BookSnapshot { levels, ..*snapshot }, &changed.levels, probe)
        });
        self.changed = changed;
        result
    }

    /// Replaces all orders of a book, and leaves its levels in `changed`.
    fn replace_orders(&mut self, index: usize, orders: &[BookOrder], changed: &mut Changed) -> Result<Levels, Fault> {
        changed.clear();
        self.resting.clear(index as u32);
        for order in orders {
            let Some(place) = self.place(index, order)? else { return Err(Fault::MissingKey) };
            let qty = self.instruments[index].quantity(order.qty)?.0;
            self.resting.add(place, order.order_id, qty)?;
            changed.push(place)?;
        }
        let levels = self.changed_levels(index, changed)?;
        if self.instruments[index].rules.checksum == Checksum::KrakenOrders {
            let best = |side| changed.places.iter().filter(move |place| place.side == side).take(LEVELS).copied();
            let sum = order_checksum(
                &self.resting,
                &self.instruments[index],
                &mut changed.text,
                best(BookSide::Ask).chain(best(BookSide::Bid)),
            );
            self.instruments[index].checksum = sum;
        }
        Ok(levels)
    }

    /// Applies what happened to orders, and leaves the levels that are others now in `changed`.
    fn change_orders(&mut self, index: usize, orders: &[BookOrder], changed: &mut Changed) -> Result<Levels, Fault> {
        changed.clear();
        for order in orders {
            for place in self.change_order(index, order)?.into_iter().flatten() {
                changed.push(place)?;
            }
        }
        if self.instruments[index].rules.checksum == Checksum::KrakenOrders {
            self.cut_orders(index, changed);
        }
        self.changed_levels(index, changed)
    }

    /// Applies what happened to one order; returns the levels that are others now.
    pub(super) fn change_order(&mut self, index: usize, order: &BookOrder) -> Result<[Option<Place>; 2], Fault> {
        let (book, id) = (index as u32, &order.order_id);
        let known = self.resting.find(book, id);
        let before = known.map(|(place, _)| place);
        match order.action {
            OrderAction::Add => {
                let Some(place) = self.place(index, order)? else { return Err(Fault::MissingKey) };
                let qty = self.instruments[index].quantity(order.qty)?.0;
                self.resting.add(place, *id, qty)?;
                Ok([before, Some(place)])
            }
            OrderAction::Change => {
                let Some((place, _)) = known else { return Ok([None; 2]) };
                let qty = self.instruments[index].quantity(order.qty)?.0;
                let after = self.place(index, order)?.unwrap_or(place);
                if after == place {
                    self.resting.resize(book, id, qty)?;
                } else if qty == 0 {
                    self.resting.delete(book, id);
                } else {
                    self.resting.add(after, *id, qty)?;
                }
                Ok([before, Some(after)])
            }
            OrderAction::Take => {
                let taken = self.instruments[index].quantity(order.qty)?.0;
                let left = known.map(|(_, qty)| qty - taken).filter(|left| *left >= 0).ok_or(Fault::UnknownOrder)?;
                self.resting.resize(book, id, left)?;
                Ok([before, None])
            }
            OrderAction::Delete => {
                self.resting.delete(book, id);
                Ok([before, None])
            }
        }
    }

    /// The level that an order names.
    fn place(&mut self, index: usize, order: &BookOrder) -> Result<Option<Place>, Fault> {
        let side = match order.side {
            OrderSide::Buy => BookSide::Bid,
            OrderSide::Sell => BookSide::Ask,
        };
        let px = order.px.map(|px| self.instruments[index].price(px)).transpose()?;
        Ok(px.map(|px| Place { book: index as u32, side, px: px.0 }))
    }

    /// Takes the changed levels into the book, drops the orders beyond its depth, and computes the checksum of the rest.
    fn cut_orders(&mut self, index: usize, changed: &mut Changed) {
        let instrument = &mut self.instruments[index];
        for place in &changed.places {
            let ladder = instrument.book.side_mut(place.side);
            ladder.set(&mut self.slab, place.side.key(place.px), self.resting.qty(place));
        }
        let mut best = [Place { book: index as u32, side: BookSide::Ask, px: 0 }; 2 * LEVELS];
        let mut count = 0;
        for side in [BookSide::Ask, BookSide::Bid] {
            let ladder = instrument.book.side_mut(side);
            while instrument.spec.depth_max.is_some_and(|depth| ladder.len() > depth)
                && let Some((key, _)) = ladder.worst(&self.slab)
            {
                ladder.set(&mut self.slab, key, 0);
                self.resting.delete_level(&Place { book: index as u32, side, px: side.key(key) });
            }
            ladder.settle(&mut self.slab);
            let mut levels = [BookLevel::default(); LEVELS];
            let found = instrument.book.top(side, &self.slab, &mut levels);
            for level in &levels[..found] {
                best[count] = Place { book: index as u32, side, px: level.px.0 };
                count += 1;
            }
        }
        let best = best[..count].iter().copied();
        let sum = order_checksum(&self.resting, &self.instruments[index], &mut changed.text, best);
        self.instruments[index].checksum = sum;
    }

    /// The sums of the changed levels, each as it is now.
    fn changed_levels(&self, index: usize, changed: &mut Changed) -> Result<Levels, Fault> {
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

    /// A level as a frame would tell it, and the decimals of its price and quantity.
    pub(super) fn level_of(&self, index: usize, place: &Place) -> Result<(Level, (u8, u8)), Fault> {
        let instrument = &self.instruments[index];
        let (px, qty) = (instrument.px.step(), instrument.qty.step());
        let product = |one: i64, two: i64| one.checked_mul(two).ok_or(Fault::NumberRange);
        let level = Level { px: product(place.px, px.mantissa)?, qty: product(self.resting.qty(place), qty.mantissa)? };
        Ok((level, (px.decimals, qty.decimals)))
    }
}

/// Kraken's checksum of all orders of these levels.
fn order_checksum(
    resting: &Resting,
    instrument: &crate::instrument::Instrument,
    text: &mut Vec<u8>,
    best: impl Iterator<Item = Place>,
) -> u32 {
    text.clear();
    for place in best {
        for qty in resting.quantities(&place) {
            checksum::push_level(text, place.px, qty, &instrument.px, &instrument.qty);
        }
    }
    tt_simd::crc32(text)
}
