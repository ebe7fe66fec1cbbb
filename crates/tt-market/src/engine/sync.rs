//! Snapshots and deltas: from the venue's levels to a proved book.

use super::verify::Change;
use super::{Applied, BookUpdate, Engine, IncidentCause};
use crate::book::{Ladder, PageSlab};
use crate::changes::Changes;
use crate::continuity::{self, Continuity, Join};
use crate::drop_reason::DropReason;
use crate::instrument::{BookState, Instrument, KNOWN_WHOLE, RequestState};
use crate::proof::LastProof;
use crate::{BookSide, ConnectionId};
use tt_meter::{Probe, Stage};
use tt_model::{InstrumentId, Nanos};
use tt_venue::Checksum;
use tt_venue::event::{BookDelta, BookOrder, BookSnapshot, Level, Levels};
use tt_venue::rules::{JoinRule, Overlap};

impl Engine {
    #[inline]
    pub(super) fn apply_delta(
        &mut self,
        ts_recv: Nanos,
        connection: ConnectionId,
        delta: &BookDelta,
        levels: &[Level],
        probe: &mut impl Probe,
    ) -> Result<Applied, DropReason> {
        let venue = connection.venue();
        let index = self.find(venue, &delta.symbol)?;
        let id = InstrumentId(index as u32);
        self.prefetch_levels(index, delta, levels);
        probe.mark(Stage::LookUp);
        let instrument = &mut self.instruments[index];
        if instrument.connection != Some(connection) {
            self.meet_successor(index, connection, delta)?;
            return self.apply_delta(ts_recv, connection, delta, levels, probe);
        }
        let counters = self.counters.venue_mut(venue);
        match instrument.state {
            BookState::Live => {
                let (last_id, numbering) = (instrument.top.update_id, instrument.rules.numbering);
                match Continuity::of(numbering, last_id, delta) {
                    // A venue that was restarted goes on from a lower number.
                    Continuity::Next => counters.epochs += u64::from(delta.last_id < last_id && delta.last_id != 0),
                    Continuity::Duplicate => return Err(self.drop_duplicate(index, delta)),
                    Continuity::Gap => return self.after_gap(index, ts_recv, delta, levels),
                }
            }
            BookState::Joining(overlap) => match Join::of(overlap, instrument.top.update_id, delta) {
                Join::Next => {
                    instrument.state = BookState::Live;
                    instrument.request = RequestState::None;
                    counters.joins += 1;
                }
                Join::Superseded => return Err(DropReason::Superseded),
                Join::TooNew => return self.after_gap(index, ts_recv, delta, levels),
            },
            BookState::Awaiting if instrument.overlap.is_none() => return Err(DropReason::AwaitingSnapshot),
            BookState::Awaiting if instrument.skips_next => {
                instrument.skips_next = false;
                return Err(DropReason::Superseded);
            }
            BookState::Awaiting => return self.keep_delta(index, delta, levels),
            BookState::Idle => return Err(DropReason::AwaitingSnapshot),
        }
        probe.mark(Stage::Validate);
        let has_fallen = delta.ts_event < instrument.last_event && delta.ts_event.0 != 0;
        counters.times_fell += u64::from(has_fallen);
        instrument.last_event = delta.ts_event;
        let applied = apply_delta_levels(instrument, &mut self.slab, &delta.levels, levels, &mut self.changes);
        probe.mark(Stage::Build);
        counters.deltas += 1;
        counters.levels += delta.levels.len() as u64;
        counters.note_lag(ts_recv, delta.ts_event);
        let result = applied.and_then(|touches_top| {
            let known = &self.instruments[index];
            // Frames since the snapshot are counted where the venue numbers nothing.
            let is_numbered = continuity::is_numbered(known.rules.numbering, delta);
            let update_id = if is_numbered { delta.last_id } else { known.top.update_id + 1 };
            let change = Change {
                update_id,
                ts_recv,
                ts_event: delta.ts_event,
                checksum: delta.checksum,
                touches_top,
                follows: true,
                has_fallen: has_fallen && !is_numbered,
            };
            self.show_book(index, change)
        });
        probe.mark(Stage::Serialize);
        match result {
            Ok(()) if self.comparison.is_of(index) => self.follow_comparison(index, delta, levels, ts_recv),
            Ok(()) => Ok(Applied::Book { instrument: id, update: BookUpdate::Delta }),
            Err(reason) => {
                self.lose_book(index, ts_recv);
                Err(reason)
            }
        }
    }

    /// Loads what a delta changes, where books are too many for the cache.
    #[inline]
    fn prefetch_levels(&self, index: usize, delta: &BookDelta, levels: &[Level]) {
        if self.are_far {
            prefetch(&self.instruments[index], &self.slab, &delta.levels, levels);
        }
    }

    #[cold]
    fn drop_duplicate(&mut self, index: usize, delta: &BookDelta) -> DropReason {
        self.note_incident(index, IncidentCause::Duplicate { received: delta.last_id });
        DropReason::Duplicate
    }

    /// What becomes of the book, and of the delta before which something is missing.
    #[cold]
    fn after_gap(
        &mut self,
        index: usize,
        ts_recv: Nanos,
        delta: &BookDelta,
        levels: &[Level],
    ) -> Result<Applied, DropReason> {
        self.counters.venue_mut(self.instruments[index].spec.venue).gaps += 1;
        self.note_gap(index, delta);
        self.lose_book(index, ts_recv);
        if self.instruments[index].overlap.is_some() {
            self.keep_delta(index, delta, levels)
        } else {
            Err(DropReason::Gap)
        }
    }

    /// A snapshot on the socket: it replaces whatever was there.
    pub(super) fn apply_snapshot(
        &mut self,
        ts_recv: Nanos,
        connection: ConnectionId,
        snapshot: &BookSnapshot,
        levels: &[Level],
        probe: &mut impl Probe,
    ) -> Result<Applied, DropReason> {
        let venue = connection.venue();
        let symbol = snapshot.symbol.ok_or(DropReason::MissingKey)?;
        let index = self.find(venue, &symbol)?;
        probe.mark(Stage::LookUp);
        let instrument = &mut self.instruments[index];
        if instrument.connection != Some(connection) {
            self.meet_successor_snapshot(index, connection)?;
        }
        let instrument = &mut self.instruments[index];
        if instrument.overlap.is_some() && instrument.state == BookState::Awaiting {
            // The REST snapshot will hold all of it.
            instrument.skips_next = false;
            return Err(DropReason::Superseded);
        }
        let numbers_fell = snapshot.last_id != 0 && snapshot.last_id < instrument.top.update_id;
        self.counters.venue_mut(venue).epochs += u64::from(numbers_fell && instrument.state == BookState::Live);
        let result = self.replace_book(index, snapshot, levels, ts_recv);
        probe.mark(Stage::Build);
        let change = Change {
            update_id: snapshot.last_id,
            ts_recv,
            ts_event: snapshot.ts_event,
            checksum: snapshot.checksum,
            touches_top: true,
            follows: false,
            has_fallen: false,
        };
        let result = result.and_then(|()| {
            self.set_live(index);
            self.show_book(index, change)
        });
        probe.mark(Stage::Serialize);
        match result {
            Ok(()) => Ok(Applied::Book { instrument: InstrumentId(index as u32), update: BookUpdate::Snapshot }),
            Err(reason) => {
                self.instruments[index].state = BookState::Live;
                self.instruments[index].request = RequestState::None;
                self.lose_book(index, ts_recv);
                Err(reason)
            }
        }
    }

    /// A snapshot by REST: it joins the deltas that were kept for it.
    pub(super) fn apply_rest_snapshot(
        &mut self,
        now: Nanos,
        id: InstrumentId,
        snapshot: &BookSnapshot,
        levels: &[Level],
        probe: &mut impl Probe,
    ) -> Result<Applied, DropReason> {
        let index = id.0 as usize;
        let instrument = self.instruments.get(index).ok_or(DropReason::UnknownSymbol)?;
        if instrument.state == BookState::Live && self.comparison.is_of(index) {
            return self.compare_snapshot(now, id, snapshot, levels);
        }
        let Some(overlap) = instrument.overlap.filter(|_| instrument.state == BookState::Awaiting) else {
            return Err(DropReason::UnexpectedSnapshot);
        };
        let first = instrument.backlog.and_then(|slot| self.backlogs[slot].first());
        if first.is_some_and(|first| Join::of(overlap, snapshot.last_id, first) == Join::TooNew) {
            return Err(DropReason::SnapshotTooOld);
        }
        probe.mark(Stage::Validate);
        self.replace_book(index, snapshot, levels, now)?;
        self.limit_book(index, snapshot);
        let mut change = Change {
            update_id: snapshot.last_id,
            ts_recv: now,
            ts_event: snapshot.ts_event,
            checksum: None,
            touches_top: true,
            follows: false,
            has_fallen: false,
        };
        let replayed = self.replay(index, overlap, snapshot.last_id)?;
        let instrument = &mut self.instruments[index];
        instrument.request = RequestState::None;
        instrument.state = BookState::Joining(overlap);
        if let Some(last) = replayed {
            change.update_id = last.last_id;
            change.follows = true;
            change.ts_event = last.ts_event;
            self.set_live(index);
        }
        self.free_backlog(index);
        probe.mark(Stage::Build);
        let shown = self.show_book(index, change);
        if shown.is_err() {
            self.lose_book(index, now);
        }
        probe.mark(Stage::Serialize);
        shown.map(|()| Applied::Book { instrument: id, update: BookUpdate::Snapshot })
    }

    /// A side with as many levels as a REST snapshot can have is known to the last of them only, unless the venue's
    /// updates cover no more either.
    fn limit_book(&mut self, index: usize, snapshot: &BookSnapshot) {
        let instrument = &mut self.instruments[index];
        let Some(rule) = instrument.rules.snapshot.filter(|_| !instrument.rules.truncates) else { return };
        for (side, range) in [(BookSide::Bid, snapshot.levels.bids()), (BookSide::Ask, snapshot.levels.asks())] {
            if range.len() >= rule.levels as usize {
                let worst = instrument.book.side(side).worst(&self.slab);
                instrument.known[side as usize] = worst.map_or(i64::MIN, |worst| worst.0);
            }
        }
        instrument.is_limited = instrument.known != KNOWN_WHOLE;
    }

    fn set_live(&mut self, index: usize) {
        let instrument = &mut self.instruments[index];
        // Where each message is the whole book, only the first one makes it valid.
        let joins = u64::from(instrument.state != BookState::Live || instrument.rules.join != JoinRule::Whole);
        instrument.state = BookState::Live;
        instrument.request = RequestState::None;
        self.counters.venue_mut(instrument.spec.venue).joins += joins;
    }

    /// Applies what was kept beyond update `last_id`, and returns the last delta if there was any.
    fn replay(&mut self, index: usize, overlap: Overlap, last_id: u64) -> Result<Option<BookDelta>, DropReason> {
        let Some(slot) = self.instruments[index].backlog else { return Ok(None) };
        let mut last = None;
        for i in 0..self.backlogs[slot].len() {
            let Some(kept) = self.backlogs[slot].get(i) else { break };
            let instrument = &mut self.instruments[index];
            let counters = self.counters.venue_mut(instrument.spec.venue);
            if last.is_none() && Join::of(overlap, last_id, &kept.delta) == Join::Superseded {
                counters.superseded += 1;
                continue;
            }
            let mut levels = kept.delta.levels;
            levels.set_bids(kept.bids().start as u32, kept.bids().end as u32);
            levels.set_asks(kept.asks().start as u32, kept.asks().end as u32);
            counters.replayed += 1;
            counters.deltas += 1;
            counters.sequence_matches += 1;
            counters.levels += levels.len() as u64;
            apply_levels(instrument, &mut self.slab, &levels, self.backlogs[slot].levels())?;
            if let Some(order) = self.backlogs[slot].order(i) {
                self.replay_order(index, &order)?;
            }
            last = Some(kept.delta);
        }
        self.backlogs[slot].clear();
        Ok(last)
    }

    /// What happened to an order while its book waited for a snapshot.
    fn replay_order(&mut self, index: usize, order: &BookOrder) -> Result<(), DropReason> {
        for place in self.change_order(index, order)?.into_iter().flatten() {
            let (level, (px_decimals, qty_decimals)) = self.level_of(index, &place)?;
            let mut levels = Levels::default();
            (levels.px_decimals, levels.qty_decimals) = (px_decimals, qty_decimals);
            match place.side {
                BookSide::Bid => levels.set_bids(0, 1),
                BookSide::Ask => levels.set_asks(0, 1),
            }
            let instrument = &mut self.instruments[index];
            self.counters.venue_mut(instrument.spec.venue).levels += 1;
            apply_levels(instrument, &mut self.slab, &levels, &[level])?;
        }
        Ok(())
    }

    /// Replaces all levels by those of a snapshot, which must be sorted best first without a price twice. Where it is
    /// not, the book is empty.
    fn replace_book(
        &mut self,
        index: usize,
        snapshot: &BookSnapshot,
        levels: &[Level],
        ts_recv: Nanos,
    ) -> Result<(), DropReason> {
        self.comparison.abandon(index);
        let instrument = &mut self.instruments[index];
        let counters = self.counters.venue_mut(instrument.spec.venue);
        self.changes.take_whole();
        counters.levels_dropped += dropped(instrument);
        instrument.book.clear(&mut self.slab);
        instrument.bids.count = 0;
        instrument.asks.count = 0;
        instrument.last_event = Nanos(0);
        instrument.snapshot_proof = LastProof::default();
        (instrument.known, instrument.is_limited) = (KNOWN_WHOLE, false);
        instrument.levels_max = instrument.levels_max(&snapshot.levels);
        if let Err(reason) = fill_book(instrument, &mut self.slab, &snapshot.levels, levels) {
            counters.levels_dropped += dropped(instrument);
            instrument.book.clear(&mut self.slab);
            return Err(reason);
        }
        counters.snapshots += 1;
        counters.levels += snapshot.levels.len() as u64;
        counters.note_lag(ts_recv, snapshot.ts_event);
        Ok(())
    }
}

/// Takes both sides of a snapshot into an empty book.
fn fill_book(
    instrument: &mut Instrument,
    slab: &mut PageSlab,
    levels: &Levels,
    buffer: &[Level],
) -> Result<(), DropReason> {
    let (px_decimals, qty_decimals) = (levels.px_decimals, levels.qty_decimals);
    instrument.remember(levels);
    let (px, qty) = (instrument.px, instrument.qty);
    for (side, range) in [(BookSide::Bid, levels.bids()), (BookSide::Ask, levels.asks())] {
        let ladder = instrument.book.side_mut(side);
        let in_steps = |level: &Level| {
            let px = px.steps(level.px, px_decimals).ok_or(DropReason::OffTickSize)?;
            let qty = qty.steps(level.qty, qty_decimals).ok_or(DropReason::OffLotSize)?;
            Ok((side.key(px), qty))
        };
        ladder.fill(slab, &buffer[range], in_steps)?;
        cut(ladder, slab, instrument.spec.depth_max);
    }
    Ok(())
}

/// Levels of a side that are prefetched at most: more would displace each other.
const PREFETCHED_MAX: usize = 128;

/// Begins to load what a delta needs of its instrument, and the places of its levels.
#[inline(never)]
fn prefetch(instrument: &Instrument, slab: &PageSlab, levels: &Levels, buffer: &[Level]) {
    instrument.prefetch();
    let (px, decimals) = (instrument.px, levels.px_decimals);
    if !px.remembers(decimals) {
        return;
    }
    for (side, range) in [(BookSide::Bid, levels.bids()), (BookSide::Ask, levels.asks())] {
        let ladder = instrument.book.side(side);
        for level in buffer[range].iter().take(PREFETCHED_MAX) {
            if let Some(px) = px.steps(level.px, decimals) {
                ladder.prefetch_level(slab, side.key(px));
            }
        }
    }
}

/// Applies the levels of a delta, and lists what they change if that is followed.
#[inline]
fn apply_delta_levels(
    instrument: &mut Instrument,
    slab: &mut PageSlab,
    levels: &Levels,
    buffer: &[Level],
    changes: &mut Changes,
) -> Result<bool, DropReason> {
    if changes.is_on() {
        apply_levels_noted(instrument, slab, levels, buffer, changes)
    } else {
        apply_levels(instrument, slab, levels, buffer)
    }
}

/// Applies levels to both sides; returns whether one of the best may have changed.
#[inline]
fn apply_levels(
    instrument: &mut Instrument,
    slab: &mut PageSlab,
    levels: &Levels,
    buffer: &[Level],
) -> Result<bool, DropReason> {
    let (px_decimals, qty_decimals) = (levels.px_decimals, levels.qty_decimals);
    instrument.remember(levels);
    let sides = [(BookSide::Bid, levels.bids()), (BookSide::Ask, levels.asks())];
    let mut touches_top = false;
    for (side, range) in sides {
        let floor = match side {
            BookSide::Bid => instrument.bids.floor(side),
            BookSide::Ask => instrument.asks.floor(side),
        };
        let ladder = instrument.book.side_mut(side);
        for level in &buffer[range] {
            let px = instrument.px.steps(level.px, px_decimals).ok_or(DropReason::OffTickSize)?;
            let qty = instrument.qty.steps(level.qty, qty_decimals).ok_or(DropReason::OffLotSize)?;
            let key = side.key(px);
            touches_top |= key >= floor;
            ladder.set(slab, key, qty);
        }
        cut(ladder, slab, instrument.spec.depth_max);
        if ladder.len() > instrument.levels_max {
            return Err(DropReason::BeyondDepth);
        }
    }
    Ok(touches_top)
}

/// As [`apply_levels`], and lists what it changes.
#[inline(never)]
fn apply_levels_noted(
    instrument: &mut Instrument,
    slab: &mut PageSlab,
    levels: &Levels,
    buffer: &[Level],
    changes: &mut Changes,
) -> Result<bool, DropReason> {
    changes.begin_delta();
    if matches!(instrument.rules.checksum, Checksum::Orders(_)) {
        // The orders' own path has changed the ladder already.
        changes.take_whole();
    }
    let (px_decimals, qty_decimals) = (levels.px_decimals, levels.qty_decimals);
    instrument.remember(levels);
    let mut touches_top = false;
    for (side, range) in [(BookSide::Bid, levels.bids()), (BookSide::Ask, levels.asks())] {
        let floor = match side {
            BookSide::Bid => instrument.bids.floor(side),
            BookSide::Ask => instrument.asks.floor(side),
        };
        let ladder = instrument.book.side_mut(side);
        for level in &buffer[range] {
            let px = instrument.px.steps(level.px, px_decimals).ok_or(DropReason::OffTickSize)?;
            let qty = instrument.qty.steps(level.qty, qty_decimals).ok_or(DropReason::OffLotSize)?;
            let key = side.key(px);
            touches_top |= key >= floor;
            changes.note_level(side, key, qty, ladder.replace(slab, key, qty));
        }
        while instrument.spec.depth_max.is_some_and(|depth| ladder.len() > depth)
            && let Some((key, _)) = ladder.worst(slab)
        {
            changes.note_level(side, key, 0, ladder.replace(slab, key, 0));
        }
        if ladder.len() > instrument.levels_max {
            return Err(DropReason::BeyondDepth);
        }
    }
    Ok(touches_top)
}

/// Drops what lies beyond the subscription's depth.
#[inline]
fn cut(ladder: &mut Ladder, slab: &mut PageSlab, depth_max: Option<usize>) {
    let Some(depth_max) = depth_max else { return };
    while ladder.len() > depth_max
        && let Some((key, _)) = ladder.worst(slab)
    {
        ladder.set(slab, key, 0);
    }
}

pub(super) fn dropped(instrument: &Instrument) -> u64 {
    instrument.book.side(BookSide::Bid).dropped() + instrument.book.side(BookSide::Ask).dropped()
}
