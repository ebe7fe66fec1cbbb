//! Snapshots and deltas: from the venue's levels to a proved book.

use super::{Applied, Engine};
use crate::board::{DepthUpdate, TopOfBook};
use crate::book::PageSlab;
use crate::continuity::{Continuity, Join};
use crate::instrument::{BookState, Instrument, RequestState, SeenTicker};
use crate::kraken::checksum;
use crate::proof::LastProof;
use crate::rules::{JoinRule, Numbering, Overlap};
use crate::{BookDelta, BookSide, BookSnapshot, ConnectionId, Fault, Level, Levels, Proof, Standing};
use tt_meter::{Probe, Stage};
use tt_model::{InstrumentId, Nanos};

/// What a book's change is published with.
#[derive(Clone, Copy)]
struct Change {
    update_id: u64,
    ts_recv: Nanos,
    ts_event: Nanos,
    checksum: Option<u32>,
    /// Whether one of the best levels may be another.
    touches_top: bool,
}

impl Engine {
    #[inline]
    pub(super) fn apply_delta(
        &mut self,
        ts_recv: Nanos,
        connection: ConnectionId,
        delta: &BookDelta,
        levels: &[Level],
        probe: &mut impl Probe,
    ) -> Result<Applied, Fault> {
        let venue = connection.venue();
        let index = self.find(venue, &delta.symbol)?;
        let id = InstrumentId(index as u32);
        probe.mark(Stage::LookUp);
        let instrument = &mut self.instruments[index];
        if instrument.connection != Some(connection) {
            return Err(Fault::ForeignConnection);
        }
        let counters = self.counters.venue_mut(venue);
        match instrument.state {
            BookState::Live => match instrument.rules.numbering.continuity(instrument.top.update_id, delta) {
                Continuity::Next => {}
                Continuity::Duplicate => return Err(Fault::Duplicate),
                Continuity::Gap => {
                    counters.gaps += 1;
                    self.lose_book(index, ts_recv);
                    return self.keep_delta(index, delta, levels);
                }
            },
            BookState::Joining(overlap) => match overlap.join(instrument.top.update_id, delta) {
                Join::Next => {
                    instrument.state = BookState::Live;
                    instrument.request = RequestState::None;
                    counters.joins += 1;
                }
                Join::Superseded => return Err(Fault::Superseded),
                Join::TooNew => {
                    counters.gaps += 1;
                    self.lose_book(index, ts_recv);
                    return self.keep_delta(index, delta, levels);
                }
            },
            BookState::Awaiting if instrument.overlap.is_none() => return Err(Fault::AwaitingSnapshot),
            BookState::Awaiting => return self.keep_delta(index, delta, levels),
            BookState::Idle => return Err(Fault::AwaitingSnapshot),
        }
        probe.mark(Stage::Validate);
        let applied = apply_levels(instrument, &mut self.slab, &delta.levels, levels);
        probe.mark(Stage::Build);
        counters.deltas += 1;
        counters.levels += delta.levels.len() as u64;
        counters.lag_ns = ts_recv.0.wrapping_sub(delta.ts_event.0);
        let result = applied.and_then(|touches_top| {
            let known = &self.instruments[index];
            let is_numbered = known.rules.numbering != Numbering::None;
            // Frames since the snapshot are counted where the venue numbers nothing.
            let update_id = if is_numbered { delta.last_id } else { known.top.update_id + 1 };
            let change = Change { update_id, ts_recv, ts_event: delta.ts_event, checksum: delta.checksum, touches_top };
            self.show_book(index, change)
        });
        probe.mark(Stage::Serialize);
        match result {
            Ok(()) => Ok(Applied::Book(id)),
            Err(fault) => {
                self.lose_book(index, ts_recv);
                Err(fault)
            }
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
    ) -> Result<Applied, Fault> {
        let venue = connection.venue();
        let symbol = snapshot.symbol.ok_or(Fault::MissingKey)?;
        let index = self.find(venue, &symbol)?;
        probe.mark(Stage::LookUp);
        if self.instruments[index].connection != Some(connection) {
            return Err(Fault::ForeignConnection);
        }
        let result = self.replace_book(index, snapshot, levels, ts_recv);
        probe.mark(Stage::Build);
        let change = Change {
            update_id: snapshot.last_id,
            ts_recv,
            ts_event: snapshot.ts_event,
            checksum: snapshot.checksum,
            touches_top: true,
        };
        let result = result.and_then(|()| {
            self.set_live(index);
            self.show_book(index, change)
        });
        probe.mark(Stage::Serialize);
        match result {
            Ok(()) => Ok(Applied::Book(InstrumentId(index as u32))),
            Err(fault) => {
                self.instruments[index].state = BookState::Live;
                self.instruments[index].request = RequestState::None;
                self.lose_book(index, ts_recv);
                Err(fault)
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
    ) -> Result<Applied, Fault> {
        let index = id.0 as usize;
        let instrument = self.instruments.get(index).ok_or(Fault::UnknownSymbol)?;
        let Some(overlap) = instrument.overlap.filter(|_| instrument.state == BookState::Awaiting) else {
            return Err(Fault::UnexpectedSnapshot);
        };
        let first = instrument.backlog.and_then(|slot| self.backlogs[slot].first());
        if first.is_some_and(|first| overlap.join(snapshot.last_id, first) == Join::TooNew) {
            return Err(Fault::SnapshotTooOld);
        }
        probe.mark(Stage::Validate);
        self.replace_book(index, snapshot, levels, now)?;
        let mut change = Change {
            update_id: snapshot.last_id,
            ts_recv: now,
            ts_event: snapshot.ts_event,
            checksum: None,
            touches_top: true,
        };
        let replayed = self.replay(index, overlap, snapshot.last_id)?;
        let instrument = &mut self.instruments[index];
        instrument.request = RequestState::None;
        instrument.state = BookState::Joining(overlap);
        if let Some(last) = replayed {
            change.update_id = last.last_id;
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
        shown.map(|()| Applied::Book(id))
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
    fn replay(&mut self, index: usize, overlap: Overlap, last_id: u64) -> Result<Option<BookDelta>, Fault> {
        let instrument = &mut self.instruments[index];
        let Some(slot) = instrument.backlog else { return Ok(None) };
        let backlog = &mut self.backlogs[slot];
        let counters = self.counters.venue_mut(instrument.spec.venue);
        let mut last = None;
        for i in 0..backlog.len() {
            let Some(kept) = backlog.get(i) else { break };
            if last.is_none() && overlap.join(last_id, &kept.delta) == Join::Superseded {
                counters.superseded += 1;
                continue;
            }
            let mut levels = kept.delta.levels;
            levels.set_bids(kept.bids().start as u32, kept.bids().end as u32);
            levels.set_asks(kept.asks().start as u32, kept.asks().end as u32);
            apply_levels(instrument, &mut self.slab, &levels, backlog.levels())?;
            counters.replayed += 1;
            counters.deltas += 1;
            counters.sequence_matches += 1;
            counters.levels += levels.len() as u64;
            last = Some(kept.delta);
        }
        backlog.clear();
        Ok(last)
    }

    /// Replaces all levels by those of a snapshot, which must be sorted best first without a price twice.
    fn replace_book(
        &mut self,
        index: usize,
        snapshot: &BookSnapshot,
        levels: &[Level],
        ts_recv: Nanos,
    ) -> Result<(), Fault> {
        let instrument = &mut self.instruments[index];
        let counters = self.counters.venue_mut(instrument.spec.venue);
        counters.levels_dropped += dropped(instrument);
        instrument.book.clear(&mut self.slab);
        instrument.bids.count = 0;
        instrument.asks.count = 0;
        check_order(BookSide::Bid, &levels[snapshot.levels.bids()])?;
        check_order(BookSide::Ask, &levels[snapshot.levels.asks()])?;
        apply_levels(instrument, &mut self.slab, &snapshot.levels, levels)?;
        counters.snapshots += 1;
        counters.levels += snapshot.levels.len() as u64;
        if snapshot.ts_event.0 != 0 {
            counters.lag_ns = ts_recv.0.wrapping_sub(snapshot.ts_event.0);
        }
        Ok(())
    }

    /// Verifies the book after a whole frame and shows it.
    #[inline]
    fn show_book(&mut self, index: usize, change: Change) -> Result<(), Fault> {
        let instrument = &mut self.instruments[index];
        let venue = instrument.spec.venue;
        let counters = self.counters.venue_mut(venue);
        if change.touches_top {
            refresh_top(instrument, &mut self.slab)?;
        }
        let proof = match change.checksum {
            Some(expected) => {
                if change.touches_top {
                    let (asks, bids) = (instrument.asks.as_slice(), instrument.bids.as_slice());
                    instrument.checksum = checksum::checksum(asks, bids, &instrument.px, &instrument.qty);
                }
                if instrument.checksum != expected {
                    return Err(Fault::ChecksumMismatch);
                }
                counters.crc_matches += 1;
                Proof::Crc
            }
            None if instrument.state == BookState::Live && !instrument.rules.is_provable() => Proof::Unverified,
            None if instrument.state == BookState::Live => {
                counters.sequence_matches += 1;
                Proof::Sequence
            }
            None => Proof::Syncing,
        };
        let mut proof = proof;
        if proof == Proof::Sequence
            && let Some(seen) = instrument.tickers.find(change.update_id)
        {
            if !agrees(instrument, &seen) {
                return Err(Fault::OracleMismatch);
            }
            counters.oracle_matches += 1;
            proof = Proof::Oracle;
        }
        if proof == Proof::Unverified {
            instrument.attempts = 0;
        }
        if proof.is_verified() {
            instrument.attempts = 0;
            instrument.last_proof = LastProof { update_id: change.update_id, ts: change.ts_recv };
        }
        let (bid, ask) = (instrument.bids.as_slice().first().copied(), instrument.asks.as_slice().first().copied());
        let (is_crossed, is_locked) = match (bid, ask) {
            (Some(bid), Some(ask)) => (bid.px > ask.px, bid.px == ask.px),
            (Some(_) | None, None) | (None, Some(_)) => (false, false),
        };
        counters.crossed += u64::from(is_crossed);
        instrument.crossed_since = if is_crossed { instrument.crossed_since.or(Some(change.ts_recv)) } else { None };
        let is_truncated = dropped(instrument) != 0;
        let standing = Standing { proof, is_crossed, is_locked, is_truncated, ..Standing::default() }.since(
            instrument.last_proof,
            change.update_id,
            change.ts_recv,
        );
        instrument.top = TopOfBook { bid, ask, update_id: change.update_id, ts_recv: change.ts_recv, standing };
        let id = InstrumentId(index as u32);
        if change.touches_top {
            let depth = DepthUpdate {
                bids: instrument.bids.as_slice(),
                asks: instrument.asks.as_slice(),
                update_id: change.update_id,
                ts_recv: change.ts_recv,
                ts_event: change.ts_event,
                standing,
            };
            self.writer.store_depth(id, &depth);
        }
        self.writer.store_top(id, instrument.top);
        Ok(())
    }

    /// Holds a ticker against the book of the same update id.
    #[inline]
    pub(super) fn confront(&mut self, index: usize, seen: &SeenTicker, now: Nanos) -> Result<(), Fault> {
        let instrument = &mut self.instruments[index];
        if !agrees(instrument, seen) {
            self.lose_book(index, now);
            return Err(Fault::OracleMismatch);
        }
        if instrument.top.standing.proof == Proof::Oracle {
            return Ok(());
        }
        self.counters.venue_mut(instrument.spec.venue).oracle_matches += 1;
        instrument.last_proof = LastProof { update_id: instrument.top.update_id, ts: now };
        instrument.top.ts_recv = now;
        instrument.top.standing = Standing { proof: Proof::Oracle, ..instrument.top.standing }.since(
            instrument.last_proof,
            instrument.top.update_id,
            now,
        );
        self.writer.store_top(InstrumentId(index as u32), instrument.top);
        Ok(())
    }
}

/// Applies levels to both sides and tells whether one of the best may have changed.
#[inline]
fn apply_levels(
    instrument: &mut Instrument,
    slab: &mut PageSlab,
    levels: &Levels,
    buffer: &[Level],
) -> Result<bool, Fault> {
    let (px_decimals, qty_decimals) = (levels.px_decimals, levels.qty_decimals);
    if !instrument.px.remembers(px_decimals) {
        instrument.px.remember(px_decimals);
    }
    if !instrument.qty.remembers(qty_decimals) {
        instrument.qty.remember(qty_decimals);
    }
    let sides = [(BookSide::Bid, levels.bids()), (BookSide::Ask, levels.asks())];
    let mut touches_top = false;
    for (side, range) in sides {
        let floor = match side {
            BookSide::Bid => instrument.bids.floor(side),
            BookSide::Ask => instrument.asks.floor(side),
        };
        let ladder = instrument.book.side_mut(side);
        for level in &buffer[range] {
            let px = instrument.px.steps(level.px, px_decimals).ok_or(Fault::OffTickSize)?;
            let qty = instrument.qty.steps(level.qty, qty_decimals).ok_or(Fault::OffLotSize)?;
            let key = side.key(px);
            touches_top |= key >= floor;
            ladder.set(slab, key, qty);
        }
        if let Some(depth_max) = instrument.spec.depth_max {
            while ladder.len() > depth_max
                && let Some((key, _)) = ladder.worst(slab)
            {
                ladder.set(slab, key, 0);
            }
        }
    }
    Ok(touches_top)
}

/// Reads the best levels anew.
#[inline]
fn refresh_top(instrument: &mut Instrument, slab: &mut PageSlab) -> Result<(), Fault> {
    for side in [BookSide::Bid, BookSide::Ask] {
        let ladder = instrument.book.side_mut(side);
        ladder.settle(slab);
        if !ladder.knows_best(slab) {
            return Err(Fault::LevelCap);
        }
        let top = match side {
            BookSide::Bid => &mut instrument.bids,
            BookSide::Ask => &mut instrument.asks,
        };
        top.count = instrument.book.top(side, slab, &mut top.levels);
    }
    Ok(())
}

fn dropped(instrument: &Instrument) -> u64 {
    instrument.book.side(BookSide::Bid).dropped() + instrument.book.side(BookSide::Ask).dropped()
}

#[inline]
fn agrees(instrument: &Instrument, seen: &SeenTicker) -> bool {
    let some = |level: crate::BookLevel| (level.qty.0 != 0).then_some(level);
    instrument.bids.as_slice().first().copied() == some(seen.bid)
        && instrument.asks.as_slice().first().copied() == some(seen.ask)
}

/// A snapshot's side must be sorted, best first, and hold no price twice and no level without quantity.
fn check_order(side: BookSide, levels: &[Level]) -> Result<(), Fault> {
    let sorted = levels.windows(2).all(|pair| side.key(pair[0].px) > side.key(pair[1].px));
    if sorted && levels.iter().all(|level| level.qty > 0) { Ok(()) } else { Err(Fault::SnapshotOrder) }
}
