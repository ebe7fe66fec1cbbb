//! Holds live books against REST snapshots at the same update id: it shows what numbers cannot, digits that changed on
//! the way.

use super::{AddError, Applied, BookUpdate, Engine};
use crate::book::PageSlab;
use crate::changes::{BookEventKind, ChangedBook};
use crate::drop_reason::DropReason;
use crate::instrument::{BookState, Instrument, KNOWN_WHOLE};
use crate::proof::LastProof;
use crate::{BookSide, Proof};
use alloc::vec::Vec;
use tt_model::{InstrumentId, Nanos, Price, Qty};
use tt_venue::event::{BookDelta, BookOrder, BookSnapshot, Level};

/// Levels of a side of a snapshot.
const LEVELS_MAX: usize = 5_000;
/// Levels that updates may change while a comparison is under way.
const TOUCHED_MAX: usize = 32_768;
/// How long a snapshot, or the update that it belongs to, may take.
const WAIT_MAX: Nanos = Nanos::from_secs(30);
/// No instrument.
const NONE: u32 = u32::MAX;

/// A level of which book and snapshot differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The instrument.
    pub instrument: InstrumentId,
    /// The update that the snapshot includes.
    pub update_id: u64,
    /// The side.
    pub side: BookSide,
    /// The price.
    pub px: Price,
    /// The quantity in the book; zero where it has no such level.
    pub book_qty: Qty,
    /// The quantity in the snapshot, likewise.
    pub snapshot_qty: Qty,
}

/// A level that an update changed.
#[derive(Clone, Copy, Debug)]
struct Touched {
    update_id: u64,
    side: BookSide,
    key: i64,
}

/// One comparison, of one instrument at a time.
#[derive(Debug)]
pub(super) struct Comparison {
    /// The number of the instrument; [`NONE`] where none is compared.
    instrument: u32,
    began: Nanos,
    /// Every change after this update is in `touched`.
    first_id: u64,
    last_id: u64,
    /// The update that the received snapshot includes.
    snapshot_id: Option<u64>,
    /// The snapshot's levels by side, best first: key and quantity.
    levels: [Vec<(i64, i64)>; 2],
    /// The worst key of each side that the snapshot would name.
    known: [i64; 2],
    touched: Vec<Touched>,
    difference: Option<Difference>,
}

impl Default for Comparison {
    fn default() -> Self {
        Self {
            instrument: NONE,
            began: Nanos(0),
            first_id: 0,
            last_id: 0,
            snapshot_id: None,
            levels: [const { Vec::new() }; 2],
            known: KNOWN_WHOLE,
            touched: Vec::new(),
            difference: None,
        }
    }
}

impl Comparison {
    #[inline(always)]
    pub(super) const fn is_of(&self, index: usize) -> bool {
        self.instrument == index as u32
    }

    /// Ends the comparison of an instrument without a result.
    pub(super) const fn abandon(&mut self, index: usize) {
        if self.is_of(index) {
            self.instrument = NONE;
        }
    }

    /// Keeps what a delta changes; `false` where there is no room, or its number fell.
    fn note(&mut self, instrument: &Instrument, delta: &BookDelta, levels: &[Level]) -> bool {
        let of = &delta.levels;
        if delta.last_id < self.last_id || of.len() > TOUCHED_MAX - self.touched.len() {
            return false;
        }
        self.last_id = delta.last_id;
        for (side, range) in [(BookSide::Bid, of.bids()), (BookSide::Ask, of.asks())] {
            for level in &levels[range] {
                // The delta was applied: each price is whole steps.
                let Some(px) = instrument.px.steps(level.px, of.px_decimals) else { return false };
                self.touched.push(Touched { update_id: delta.last_id, side, key: side.key(px) });
            }
        }
        true
    }

    /// Takes the levels of a snapshot in the instrument's steps.
    fn take(
        &mut self,
        instrument: &Instrument,
        snapshot: &BookSnapshot,
        buffer: &[Level],
        levels_max: usize,
    ) -> Result<(), DropReason> {
        let of = &snapshot.levels;
        self.known = KNOWN_WHOLE;
        for (side, range) in [(BookSide::Bid, of.bids()), (BookSide::Ask, of.asks())] {
            let levels = &mut self.levels[side as usize];
            levels.clear();
            if range.len() > LEVELS_MAX {
                return Err(DropReason::TooManyLevels);
            }
            for level in &buffer[range] {
                let px = instrument.px.steps(level.px, of.px_decimals).ok_or(DropReason::OffTickSize)?;
                let qty = instrument.qty.steps(level.qty, of.qty_decimals).ok_or(DropReason::OffLotSize)?;
                let key = side.key(px);
                if qty == 0 || levels.last().is_some_and(|last| last.0 <= key) {
                    return Err(DropReason::SnapshotOrder);
                }
                levels.push((key, qty));
            }
            if levels.len() >= levels_max {
                self.known[side as usize] = levels.last().map_or(i64::MIN, |worst| worst.0);
            }
        }
        self.snapshot_id = Some(snapshot.last_id);
        Ok(())
    }

    /// Takes the orders of a snapshot, best first, as the sums of their levels: of the best [`LEVELS_MAX`] of a side.
    fn take_orders(
        &mut self,
        instrument: &mut Instrument,
        snapshot_id: u64,
        orders: &[BookOrder],
    ) -> Result<(), DropReason> {
        self.known = KNOWN_WHOLE;
        self.levels.iter_mut().for_each(Vec::clear);
        for order in orders {
            let side = BookSide::of(order.side);
            let px = instrument.price(order.px.ok_or(DropReason::MissingKey)?)?;
            let (key, qty) = (side.key(px.0), instrument.quantity(order.qty)?.0);
            let levels = &mut self.levels[side as usize];
            let is_full = levels.len() == LEVELS_MAX;
            match levels.last_mut() {
                Some(last) if last.0 == key => last.1 = last.1.checked_add(qty).ok_or(DropReason::NumberRange)?,
                Some(last) if last.0 < key => return Err(DropReason::SnapshotOrder),
                Some(last) if is_full => self.known[side as usize] = last.0,
                Some(_) | None => levels.push((key, qty)),
            }
        }
        self.snapshot_id = Some(snapshot_id);
        Ok(())
    }

    /// Leaves the changes after the snapshot, in an order that can be searched.
    fn settle(&mut self, snapshot_id: u64) {
        self.touched.retain(|touched| touched.update_id > snapshot_id);
        self.touched.sort_unstable_by_key(|touched| (touched.side as u8, touched.key));
    }

    fn is_touched(&self, side: BookSide, key: i64) -> bool {
        let place = (side as u8, key);
        self.touched.binary_search_by_key(&place, |touched| (touched.side as u8, touched.key)).is_ok()
    }

    /// Compares a side from the best level down to the worst one that both know; returns how many levels are the same.
    ///
    /// # Errors
    /// The first level that differs: key, quantity in the book, quantity in the snapshot.
    fn compare(&self, side: BookSide, instrument: &Instrument, slab: &PageSlab) -> Result<usize, (i64, i64, i64)> {
        let ladder = instrument.book.side(side);
        // Below, the book has dropped levels, or the venue deletes them without an update.
        let cap = instrument.spec.depth_max.is_some_and(|depth| ladder.len() >= depth) || ladder.dropped() != 0;
        let cap = if cap { ladder.worst(slab).map_or(i64::MIN, |worst| worst.0) } else { i64::MIN };
        let (worst, book_known) = (self.known[side as usize].max(cap), instrument.known[side as usize]);
        let mut named = self.levels[side as usize].iter().copied().take_while(|level| level.0 >= worst).peekable();
        let mut held = ladder.levels(slab).take_while(|level| level.0 >= worst).peekable();
        let mut same = 0;
        loop {
            let (in_book, in_snapshot) = (held.peek().copied(), named.peek().copied());
            let Some(key) = in_book.map(|level| level.0).max(in_snapshot.map(|level| level.0)) else { return Ok(same) };
            let qty = |level: Option<(i64, i64)>| level.filter(|level| level.0 == key).map_or(0, |level| level.1);
            let (book_qty, snapshot_qty) = (qty(in_book), qty(in_snapshot));
            if book_qty != 0 {
                held.next();
            }
            if snapshot_qty != 0 {
                named.next();
            }
            if self.is_touched(side, key) {
                continue;
            }
            if book_qty == snapshot_qty {
                same += 1;
            } else if book_qty != 0 || key >= book_known {
                return Err((key, book_qty, snapshot_qty));
            }
        }
    }
}

impl Engine {
    /// Begins to hold the instrument's book against a REST snapshot, which the caller requests after this call and hands
    /// to [`handle_snapshot`](Self::handle_snapshot). One book at a time; the first call allocates.
    ///
    /// A snapshot that fits makes the proof [`Proof::Snapshot`]. One that differs costs the book
    /// ([`DropReason::SnapshotMismatch`]), and [`poll_difference`](Self::poll_difference) names the level.
    ///
    /// # Errors
    /// `BadInstrument` where the venue has no numbered snapshots by REST, `Full` while another book is
    /// compared, `Closed` while the book is not proved.
    pub fn begin_comparison(&mut self, instrument: InstrumentId, now: Nanos) -> Result<(), AddError> {
        let known = self.instruments.get(instrument.0 as usize).ok_or(AddError::BadInstrument)?;
        if !known.rules.is_comparable() {
            return Err(AddError::BadInstrument);
        }
        if self.comparison.instrument != NONE {
            return Err(AddError::Full);
        }
        if known.state != BookState::Live || !known.top.status.proof.is_verified() {
            return Err(AddError::Closed);
        }
        let comparison = &mut self.comparison;
        comparison.touched.clear();
        comparison.touched.reserve_exact(TOUCHED_MAX);
        comparison.levels.iter_mut().for_each(|levels| {
            levels.clear();
            levels.reserve_exact(LEVELS_MAX);
        });
        (comparison.first_id, comparison.last_id) = (known.top.update_id, known.top.update_id);
        (comparison.instrument, comparison.began, comparison.snapshot_id) = (instrument.0, now, None);
        Ok(())
    }

    /// Whether the instrument's book is being compared with a snapshot.
    #[must_use]
    pub const fn is_comparing(&self, instrument: InstrumentId) -> bool {
        self.comparison.is_of(instrument.0 as usize)
    }

    /// The level that cost the last book that a snapshot contradicted, once.
    pub const fn poll_difference(&mut self) -> Option<Difference> {
        self.comparison.difference.take()
    }

    /// Ends a comparison that has taken too long.
    pub(super) fn check_comparison(&mut self, now: Nanos) {
        if self.comparison.instrument != NONE && now.saturating_sub(self.comparison.began) > WAIT_MAX {
            self.comparison.instrument = NONE;
        }
    }

    /// Takes a delta that the book of the comparison holds by now.
    #[cold]
    pub(super) fn follow_comparison(
        &mut self,
        index: usize,
        delta: &BookDelta,
        levels: &[Level],
        now: Nanos,
    ) -> Result<Applied, DropReason> {
        if !self.comparison.note(&self.instruments[index], delta, levels) {
            self.comparison.abandon(index);
        } else if let Some(id) = self.comparison.snapshot_id
            && self.instruments[index].top.update_id >= id
        {
            self.compare(index, id, now)?;
        }
        Ok(Applied::Book { instrument: InstrumentId(index as u32), update: BookUpdate::Delta })
    }

    /// Takes the snapshot that a live book is compared with, now or once the book has reached its update.
    pub(super) fn compare_snapshot(
        &mut self,
        now: Nanos,
        id: InstrumentId,
        snapshot: &BookSnapshot,
        buffer: &[Level],
    ) -> Result<Applied, DropReason> {
        let instrument = &self.instruments[id.0 as usize];
        let levels_max = instrument.rules.snapshot.map_or(0, |rule| rule.levels as usize);
        let taken = if snapshot.last_id < self.comparison.first_id {
            Err(DropReason::SnapshotTooOld)
        } else {
            self.comparison.take(instrument, snapshot, buffer, levels_max)
        };
        self.compare_when_reached(now, id, snapshot.last_id, taken)
    }

    /// As [`compare_snapshot`](Self::compare_snapshot), for a book that is followed order by order: levels are compared.
    pub(super) fn compare_orders(
        &mut self,
        now: Nanos,
        id: InstrumentId,
        snapshot_id: u64,
        orders: &[BookOrder],
    ) -> Result<Applied, DropReason> {
        let taken = if snapshot_id < self.comparison.first_id {
            Err(DropReason::SnapshotTooOld)
        } else {
            self.comparison.take_orders(&mut self.instruments[id.0 as usize], snapshot_id, orders)
        };
        self.compare_when_reached(now, id, snapshot_id, taken)
    }

    fn compare_when_reached(
        &mut self,
        now: Nanos,
        id: InstrumentId,
        snapshot_id: u64,
        taken: Result<(), DropReason>,
    ) -> Result<Applied, DropReason> {
        let index = id.0 as usize;
        if taken.is_err() {
            self.comparison.abandon(index);
        }
        taken?;
        if self.instruments[index].top.update_id < snapshot_id {
            return Ok(Applied::Book { instrument: id, update: BookUpdate::Buffered });
        }
        self.compare(index, snapshot_id, now)?;
        Ok(Applied::Book { instrument: id, update: BookUpdate::Compared })
    }

    fn compare(&mut self, index: usize, snapshot_id: u64, now: Nanos) -> Result<(), DropReason> {
        self.comparison.settle(snapshot_id);
        let (instrument, slab) = (&self.instruments[index], &self.slab);
        let venue = instrument.spec.venue;
        let mut same = 0;
        for side in [BookSide::Bid, BookSide::Ask] {
            match self.comparison.compare(side, instrument, slab) {
                Ok(levels) => same += levels,
                Err((key, book_qty, snapshot_qty)) => {
                    self.comparison.difference = Some(Difference {
                        instrument: InstrumentId(index as u32),
                        update_id: snapshot_id,
                        side,
                        px: Price(side.key(key)),
                        book_qty: Qty(book_qty),
                        snapshot_qty: Qty(snapshot_qty),
                    });
                    self.counters.venue_mut(venue).snapshot_mismatches += 1;
                    self.comparison.abandon(index);
                    self.lose_book(index, now);
                    return Err(DropReason::SnapshotMismatch);
                }
            }
        }
        self.comparison.abandon(index);
        if same == 0 {
            return Ok(());
        }
        self.counters.venue_mut(venue).snapshot_matches += 1;
        self.adopt_levels(index);
        let instrument = &mut self.instruments[index];
        instrument.snapshot_proof = LastProof { update_id: snapshot_id, ts: now };
        // A checksum proves each update, and keeps doing so.
        if instrument.top.status.proof != Proof::Crc {
            instrument.last_proof = instrument.snapshot_proof;
            self.show_standing(index, Proof::Snapshot, now);
        }
        Ok(())
    }

    /// Adds the levels that the snapshot knows and the book, whose own snapshot ended before them, does not.
    fn adopt_levels(&mut self, index: usize) {
        let Self { comparison, instruments, slab, changes, .. } = self;
        let instrument = &mut instruments[index];
        let mut has_adopted = false;
        for side in [BookSide::Bid, BookSide::Ask] {
            let (of_snapshot, known) = (comparison.known[side as usize], instrument.known[side as usize]);
            let ladder = instrument.book.side_mut(side);
            if of_snapshot >= known || ladder.dropped() != 0 {
                continue;
            }
            for &(key, qty) in comparison.levels[side as usize].iter().skip_while(|level| level.0 >= known) {
                if ladder.qty(slab, key) == 0 && !comparison.is_touched(side, key) {
                    ladder.set(slab, key, qty);
                    has_adopted = true;
                }
            }
            instrument.known[side as usize] = of_snapshot;
        }
        instrument.is_limited = instrument.known != KNOWN_WHOLE;
        instrument.top.status.is_limited = instrument.is_limited;
        if has_adopted && changes.is_on() {
            let (update_id, ts_event) = (instrument.top.update_id, instrument.last_event);
            let pending = changes.next_book().filter(|book| book.instrument.0 as usize == index);
            let previous_id = pending.map_or(update_id, |book| book.previous_id);
            let (instrument, kind) = (InstrumentId(index as u32), BookEventKind::Snapshot);
            changes.put_book(ChangedBook { instrument, kind, previous_id, ts_event });
        }
    }
}
