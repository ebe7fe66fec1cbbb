//! After each frame of a book: is it the venue's, and what is shown of it.

use super::sync::dropped;
use super::{Engine, IncidentCause};
use crate::board::{DEPTH, DepthUpdate, TopOfBook};
use crate::book::PageSlab;
use crate::drop_reason::DropReason;
use crate::instrument::{BookState, Instrument, SeenTicker};
use crate::proof::LastProof;
use crate::{BookSide, BookStatus, Proof};
use tt_model::{InstrumentId, Nanos};
use tt_venue::{BookLevel, Checksum, LevelChecksum};

/// What a book's change is published with.
#[derive(Clone, Copy)]
pub(super) struct Change {
    pub(super) update_id: u64,
    pub(super) ts_recv: Nanos,
    pub(super) ts_event: Nanos,
    pub(super) checksum: Option<u32>,
    /// Whether one of the best levels may be another.
    pub(super) touches_top: bool,
    /// Whether it followed the update before it; a snapshot on the socket follows nothing.
    pub(super) follows: bool,
    /// Whether nothing but its time orders it, and the time is before that of the update before: its checksum is that of
    /// the book as it was then.
    pub(super) has_fallen: bool,
}

impl Engine {
    /// Verifies the book after a whole frame and shows it.
    #[inline]
    pub(super) fn show_book(&mut self, index: usize, change: Change) -> Result<(), DropReason> {
        let instrument = &mut self.instruments[index];
        if change.touches_top {
            let is_followed = self.changes.is_on();
            let dropped_before = if is_followed { dropped(instrument) } else { 0 };
            refresh_top(instrument, &mut self.slab)?;
            // A window that moves may leave levels behind.
            if is_followed && dropped(instrument) != dropped_before {
                self.changes.take_whole();
            }
        }
        let proof = self.verify(index, &change)?;
        let instrument = &mut self.instruments[index];
        let counters = self.counters.venue_mut(instrument.spec.venue);
        if proof.is_verified() || proof == Proof::Unverified {
            instrument.attempts = 0;
        }
        if proof.is_of_last_update() {
            instrument.last_proof = LastProof { update_id: change.update_id, ts: change.ts_recv };
        }
        let (bid, ask) = (instrument.bids.as_slice().first().copied(), instrument.asks.as_slice().first().copied());
        let (is_crossed, is_locked) = match (bid, ask) {
            (Some(bid), Some(ask)) => (bid.px > ask.px, bid.px == ask.px),
            (Some(_) | None, None) | (None, Some(_)) => (false, false),
        };
        counters.crossed += u64::from(is_crossed);
        let is_wrong = is_crossed | (is_locked & !instrument.rules.may_lock);
        instrument.wrong_since = if is_wrong { instrument.wrong_since.or(Some(change.ts_recv)) } else { None };
        let is_truncated = dropped(instrument) != 0;
        let is_limited = instrument.is_limited;
        let status = BookStatus { proof, is_crossed, is_locked, is_truncated, is_limited, ..BookStatus::default() }
            .since(instrument.last_proof, change.update_id, change.ts_recv);
        let previous_id = instrument.top.update_id;
        instrument.top = TopOfBook { bid, ask, update_id: change.update_id, ts_recv: change.ts_recv, status };
        let id = InstrumentId(index as u32);
        if self.changes.is_on() {
            self.changes.note_book(id, previous_id, change.ts_event);
        }
        if change.touches_top {
            let depth = DepthUpdate {
                bids: instrument.bids.as_slice(),
                asks: instrument.asks.as_slice(),
                update_id: change.update_id,
                ts_recv: change.ts_recv,
                ts_event: change.ts_event,
                status,
            };
            self.writer.store_depth(id, &depth);
        }
        self.writer.store_top(id, instrument.top);
        Ok(())
    }

    /// What proves the book as it is now.
    #[inline]
    fn verify(&mut self, index: usize, change: &Change) -> Result<Proof, DropReason> {
        let instrument = &mut self.instruments[index];
        let counters = self.counters.venue_mut(instrument.spec.venue);
        if let Some(expected) = change.checksum {
            let received = checksum(instrument, &self.slab, change.touches_top);
            let fits = received == expected;
            counters.crc_matches += u64::from(fits);
            counters.crc_mismatches += u64::from(!fits);
            return match (instrument.trust.note(fits, change.ts_recv), fits) {
                (true, true) if change.has_fallen => Ok(Proof::Unverified),
                (true, true) => Ok(Proof::Crc),
                (true, false) => {
                    self.note_incident(index, IncidentCause::Checksum { expected, received });
                    Err(DropReason::ChecksumMismatch)
                }
                // The cause is unknown by now.
                (false, _) => Ok(Proof::Unverified),
            };
        }
        if instrument.state != BookState::Live {
            return Ok(Proof::Syncing);
        }
        if !instrument.rules.is_provable() {
            if instrument.spacing.is_none() {
                return Ok(Proof::Unverified);
            }
            instrument.ts_book = change.ts_event;
            return Ok(self.proof_by_time(index));
        }
        counters.sequence_matches += u64::from(change.follows);
        let proof = match instrument.tickers.find(change.update_id) {
            None => Proof::Sequence,
            Some(seen) if !agrees(instrument, &seen) => {
                self.note_best_levels(index, &seen);
                return Err(DropReason::OracleMismatch);
            }
            Some(_) => {
                counters.oracle_matches += 1;
                Proof::Oracle
            }
        };
        Ok(if instrument.snapshot_proof.ts.0 == 0 { proof } else { after_snapshot(instrument, proof, change.ts_recv) })
    }

    /// Holds a ticker against the book of the same update id.
    #[inline]
    pub(super) fn cross_check_ticker(&mut self, index: usize, seen: &SeenTicker, now: Nanos) -> Result<(), DropReason> {
        let instrument = &mut self.instruments[index];
        if !agrees(instrument, seen) {
            self.note_best_levels(index, seen);
            self.lose_book(index, now);
            return Err(DropReason::OracleMismatch);
        }
        if instrument.top.status.proof == Proof::Oracle {
            return Ok(());
        }
        self.counters.venue_mut(instrument.spec.venue).oracle_matches += 1;
        if instrument.top.status.proof == Proof::Snapshot {
            return Ok(());
        }
        instrument.last_proof = LastProof { update_id: instrument.top.update_id, ts: now };
        instrument.top.ts_recv = now;
        instrument.top.status = BookStatus { proof: Proof::Oracle, ..instrument.top.status }.since(
            instrument.last_proof,
            instrument.top.update_id,
            now,
        );
        self.writer.store_top(InstrumentId(index as u32), instrument.top);
        if self.changes.is_on() {
            self.changes.note_status(InstrumentId(index as u32));
        }
        Ok(())
    }
}

/// The longest time for which a book is shown as proved by a snapshot: what a status can say of an age.
const SNAPSHOT_AGE_MAX: Nanos = Nanos::from_secs(268);

/// The proof of a book that a snapshot fitted, and whose updates were proved by `proof` since.
#[cold]
fn after_snapshot(instrument: &mut Instrument, proof: Proof, now: Nanos) -> Proof {
    if now.saturating_sub(instrument.snapshot_proof.ts) > SNAPSHOT_AGE_MAX {
        instrument.snapshot_proof = LastProof::default();
        return proof;
    }
    instrument.last_proof = instrument.snapshot_proof;
    Proof::Snapshot
}

/// Reads the best levels again.
#[inline]
fn refresh_top(instrument: &mut Instrument, slab: &mut PageSlab) -> Result<(), DropReason> {
    for side in [BookSide::Bid, BookSide::Ask] {
        let ladder = instrument.book.side_mut(side);
        ladder.settle(slab);
        if !ladder.knows_best(slab) {
            return Err(DropReason::LevelCap);
        }
        let top = match side {
            BookSide::Bid => &mut instrument.bids,
            BookSide::Ask => &mut instrument.asks,
        };
        top.count = instrument.book.top(side, slab, &mut top.levels);
    }
    Ok(())
}

/// The book's checksum as its venue computes it; one over published levels is kept until one of the levels that it covers changes.
#[inline]
fn checksum(instrument: &mut Instrument, slab: &PageSlab, touches_top: bool) -> u32 {
    match instrument.rules.checksum {
        Checksum::Levels(LevelChecksum { levels, compute, .. }) if levels <= DEPTH => {
            if touches_top {
                let [bids, asks] = [&instrument.bids, &instrument.asks].map(|side| side.best(levels));
                instrument.checksum = compute(bids, asks, instrument.px.step(), instrument.qty.step());
            }
            instrument.checksum
        }
        Checksum::Levels(LevelChecksum { levels, compute, .. }) => {
            let mut sides = [[BookLevel::default(); Checksum::LEVELS_MAX]; 2];
            let [bids, asks] = &mut sides;
            let bids_len = instrument.book.top(BookSide::Bid, slab, &mut bids[..levels]);
            let asks_len = instrument.book.top(BookSide::Ask, slab, &mut asks[..levels]);
            compute(&bids[..bids_len], &asks[..asks_len], instrument.px.step(), instrument.qty.step())
        }
        // It was computed when the orders were applied.
        Checksum::Orders(_) => instrument.checksum,
        Checksum::None => 0,
    }
}

#[inline]
fn agrees(instrument: &Instrument, seen: &SeenTicker) -> bool {
    let some = |level: BookLevel| (level.qty.0 != 0).then_some(level);
    instrument.bids.as_slice().first().copied() == some(seen.bid)
        && instrument.asks.as_slice().first().copied() == some(seen.ask)
}
