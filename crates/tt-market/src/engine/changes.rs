//! Every level of a book, and every update.

use super::Engine;
use crate::BookSide;
use crate::board::TradePrint;
use crate::changes::{BookEvent, BookEventKind, BookLevels, Changes};
use crate::venue_state::LiquidationState;
use core::hash::Hasher;
use tt_model::{InstrumentId, Nanos, Price};

impl Engine {
    /// All levels of a side of a book, best first; `None` for an unknown instrument. Nothing is allocated.
    ///
    /// A book that is `Stale` may hold a part of the update that was rejected, until its snapshot arrives.
    #[must_use]
    pub fn levels(&self, id: InstrumentId, side: BookSide) -> Option<BookLevels<'_>> {
        let book = &self.instruments.get(id.0 as usize)?.book;
        Some(BookLevels::new(side, book.side(side).levels(&self.slab)))
    }

    /// The prices between which every level of a book is known: the worst bid and the worst offer of the REST snapshots
    /// that it began with or was compared with. `None` for a side that is known whole. Of what lies beyond, only the
    /// levels that changed since are known.
    #[must_use]
    pub fn known_range(&self, id: InstrumentId) -> [Option<Price>; 2] {
        let Some(instrument) = self.instruments.get(id.0 as usize) else { return [None; 2] };
        [BookSide::Bid, BookSide::Ask].map(|side| {
            let key = instrument.known[side as usize];
            (key != i64::MIN).then(|| Price(side.key(key)))
        })
    }

    /// Lists from here on what inputs change, at most `levels_max` levels of each delta; one that changes more becomes
    /// a [`BookEventKind::Snapshot`]. Takes its memory at once.
    pub fn follow_changes(&mut self, levels_max: usize) {
        self.changes = Changes::new(levels_max, self.capacity.frame_entries, self.capacity.instruments);
    }

    /// What the last input changed in books: at most one book's levels, then proofs. Listed after
    /// [`follow_changes`](Self::follow_changes) only. What is not polled before the next input may be lost.
    pub fn poll_book_event(&mut self) -> Option<BookEvent<'_>> {
        if let Some(book) = self.changes.next_book() {
            let top = &self.instruments.get(book.instrument.0 as usize)?.top;
            let changes = if book.kind == BookEventKind::Delta { self.changes.levels() } else { &[] };
            return Some(BookEvent {
                instrument: book.instrument,
                kind: book.kind,
                update_id: top.update_id,
                previous_id: book.previous_id,
                ts_event: book.ts_event,
                ts_recv: top.ts_recv,
                status: top.status,
                changes,
            });
        }
        let instrument = self.changes.next_status()?;
        let top = &self.instruments.get(instrument.0 as usize)?.top;
        Some(BookEvent {
            instrument,
            kind: BookEventKind::Status,
            update_id: top.update_id,
            previous_id: top.update_id,
            ts_event: Nanos(0),
            ts_recv: top.ts_recv,
            status: top.status,
            changes: &[],
        })
    }

    /// The trades of the last input in their order, without those that were repeated. As
    /// [`poll_book_event`](Self::poll_book_event).
    pub fn poll_trade(&mut self) -> Option<(InstrumentId, TradePrint)> {
        self.changes.next_trade()
    }

    /// The liquidations of the last input in their order. As [`poll_book_event`](Self::poll_book_event).
    pub fn poll_liquidation(&mut self) -> Option<(InstrumentId, LiquidationState)> {
        self.changes.next_liquidation()
    }

    /// Hands all levels of one book to `hasher`: of each side the number, then price and quantity of each level.
    pub fn hash_levels_into(&self, id: InstrumentId, hasher: &mut impl Hasher) {
        let Some(instrument) = self.instruments.get(id.0 as usize) else { return };
        let mut put = |word: u64| hasher.write(&word.to_le_bytes());
        for side in [BookSide::Bid, BookSide::Ask] {
            put(instrument.book.side(side).len() as u64);
            for level in BookLevels::new(side, instrument.book.side(side).levels(&self.slab)) {
                put(level.px.0 as u64);
                put(level.qty.0 as u64);
            }
            for order in self.resting_orders(id, side).into_iter().flatten() {
                order.order_id.words().iter().for_each(|word| put(*word));
                put(order.qty.0 as u64);
                put(order.ts_event.0);
            }
        }
    }

    /// Hands everything that is published to `hasher`, as [`Board::hash_into`](crate::board::Board::hash_into), and then
    /// all levels of each book.
    pub fn hash_into(&self, hasher: &mut impl Hasher) {
        self.board.hash_into(hasher);
        (0..self.instruments.len()).for_each(|index| self.hash_levels_into(InstrumentId(index as u32), hasher));
    }
}
