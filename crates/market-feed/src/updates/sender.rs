//! The feed's end: engine events into a ring, without waiting.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use tt_market::board::{Board, TopOfBook, TradePrint};
use tt_market::changes::{BookEvent, BookEventKind};
use tt_market::venue_state::LiquidationState;
use tt_market::{BookSide, Engine, Proof};
use tt_model::{Decimal, InstrumentId, Nanos};
use tt_sync::spsc::Producer;

use super::handover::Handover;
use super::slot::{CHANGES_PER_SLOT, Change, First, Head, Kind, LEVELS_PER_SLOT, Slot};

/// A feed's events on their way to the publisher.
#[derive(Debug)]
pub(crate) struct UpdateSender {
    ring: Producer<Slot>,
    /// The event that is being written.
    event: Vec<Slot>,
    /// Events of each instrument that found no room since its last whole book.
    owed: Vec<u64>,
    owing: usize,
    /// Steps that are sent before the instrument's next book.
    steps: Vec<(InstrumentId, Decimal, Decimal)>,
    lost: Arc<AtomicU64>,
    /// Whether something was sent since the last handover.
    has_sent: bool,
    /// `None` if the caller takes the ring's events.
    handover: Option<Handover>,
}

impl UpdateSender {
    pub(super) fn new(
        ring: Producer<Slot>,
        instruments: usize,
        lost: Arc<AtomicU64>,
        handover: Option<Handover>,
    ) -> Self {
        let event = Vec::with_capacity(ring.capacity());
        Self { ring, event, owed: vec![0; instruments], owing: 0, steps: Vec::new(), lost, has_sent: false, handover }
    }

    /// Writes an event; [`finish`](Self::finish) publishes it.
    pub(crate) fn begin(&mut self, event: &BookEvent<'_>) -> Head {
        let kind = match event.kind {
            BookEventKind::Delta => Kind::Delta,
            BookEventKind::Snapshot => Kind::Snapshot,
            BookEventKind::Status => Kind::Status,
        };
        let head = Head {
            kind,
            instrument: event.instrument.0,
            levels: event.changes.len(),
            update_id: event.update_id,
            previous_id: event.previous_id,
            ts_event: event.ts_event,
            ts_recv: event.ts_recv,
            status: event.status,
            lost: 0,
        };
        self.event.clear();
        self.event.push(Slot::of(&First::Book(head)));
        for pair in event.changes.chunks(CHANGES_PER_SLOT) {
            let mut changes = [Change { side: BookSide::Bid, px: 0, old: 0, new: 0 }; CHANGES_PER_SLOT];
            for (change, changed) in changes.iter_mut().zip(pair) {
                let (old, new) = (changed.old_qty.0, changed.new_qty.0);
                *change = Change { side: changed.side, px: changed.px.0, old, new };
            }
            self.event.push(Slot::of_changes(&changes[..pair.len()]));
        }
        head
    }

    /// Publishes the event that was begun; as a whole book where one is owed.
    pub(crate) fn finish(&mut self, engine: &Engine, head: Head) {
        let is_whole = head.kind == Kind::Snapshot || self.owed[head.instrument as usize] > 0;
        let sent = if is_whole { self.send_whole(engine, head) } else { self.push() };
        self.settle(head.instrument, sent);
    }

    /// Publishes a trade. The number of the next one that finds room says how many did not.
    pub(crate) fn send_trade(&mut self, id: InstrumentId, print: TradePrint) {
        self.has_sent = true;
        let is_in_known_steps = self.steps.iter().all(|(known, ..)| *known != id);
        if !is_in_known_steps || self.ring.push(Slot::of(&First::Trade(id.0, print))).is_err() {
            self.lost.fetch_add(1, Relaxed);
        }
    }

    /// Publishes a liquidation; as [`send_trade`](Self::send_trade).
    pub(crate) fn send_liquidation(&mut self, id: InstrumentId, liquidation: LiquidationState) {
        self.has_sent = true;
        if self.ring.push(Slot::of(&First::Liquidation(id.0, liquidation))).is_err() {
            self.lost.fetch_add(1, Relaxed);
        }
    }

    /// Has what was sent published, if there is something.
    pub(crate) fn wake(&mut self) {
        if std::mem::take(&mut self.has_sent)
            && let Some(handover) = &self.handover
        {
            handover.publish();
        }
    }

    /// The instrument's steps are others from here on; its whole book is the next event.
    pub(crate) fn change_steps(&mut self, id: InstrumentId, tick_size: Decimal, lot_size: Decimal) {
        self.steps.retain(|(known, ..)| *known != id);
        self.steps.push((id, tick_size, lot_size));
    }

    /// Sends the books that are owed, where there is room by now.
    pub(crate) fn send_owed(&mut self, engine: &Engine, board: &Board) {
        if self.owing == 0 {
            return;
        }
        for index in 0..self.owed.len() {
            let id = InstrumentId(index as u32);
            let Some(top) = board.top_of_book(id).filter(|_| self.owed[index] > 0) else { continue };
            // Its next event is a snapshot.
            // One that finds no room again is no further event.
            if top.status.proof != Proof::Syncing && self.send_whole(engine, status_of(id, &top)) {
                self.settle(id.0, true);
            }
        }
        self.wake();
    }

    /// Sends all levels; `false` if there is no room. A book that is stale has none: the last ones that were proved are not
    /// known any more.
    fn send_whole(&mut self, engine: &Engine, head: Head) -> bool {
        let id = InstrumentId(head.instrument);
        let is_known = match head.status.proof {
            Proof::Stale => false,
            Proof::Syncing => head.kind != Kind::Status,
            Proof::Crc | Proof::Sequence | Proof::Oracle | Proof::Snapshot | Proof::Unverified => true,
        };
        let levels = if is_known { engine.levels_len(id).map_or(0, |(bids, asks)| bids + asks) } else { 0 };
        let steps = self.steps.iter().position(|(known, ..)| *known == id);
        let slots = 2 + usize::from(steps.is_some()) + levels.div_ceil(LEVELS_PER_SLOT);
        if self.ring.capacity() - self.ring.occupancy() < slots {
            return false;
        }
        let lost = self.owed[id.0 as usize];
        self.event.clear();
        if let Some(index) = steps {
            let (_, tick_size, lot_size) = self.steps.swap_remove(index);
            self.event.push(Slot::of(&First::Steps(id.0, tick_size, lot_size)));
        }
        self.event.push(Slot::of(&First::Known(id.0, engine.known_range(id).map(|px| px.map(|px| px.0)))));
        self.event.push(Slot::of(&First::Book(Head { kind: Kind::Snapshot, levels, lost, ..head })));
        if is_known {
            let (mut slot, mut filled) = (Slot::default(), 0);
            for side in [BookSide::Bid, BookSide::Ask] {
                for level in engine.levels(id, side).into_iter().flatten() {
                    slot.set_level(filled, side, level.px.0, level.qty.0);
                    filled += 1;
                    if filled == LEVELS_PER_SLOT {
                        self.event.push(std::mem::take(&mut slot));
                        filled = 0;
                    }
                }
            }
            if filled > 0 {
                self.event.push(slot);
            }
        }
        self.push()
    }

    /// Publishes the event as a whole, or nothing of it.
    fn push(&mut self) -> bool {
        self.has_sent = true;
        let room = self.ring.capacity() - self.ring.occupancy();
        self.event.len() <= room && self.ring.push_slice(&self.event) == self.event.len()
    }

    fn settle(&mut self, instrument: u32, sent: bool) {
        let owed = &mut self.owed[instrument as usize];
        let was_owed = *owed > 0;
        if sent {
            *owed = 0;
        } else {
            *owed += 1;
            self.lost.fetch_add(1, Relaxed);
        }
        self.owing = self.owing + usize::from(!sent && !was_owed) - usize::from(sent && was_owed);
    }
}

fn status_of(id: InstrumentId, top: &TopOfBook) -> Head {
    Head {
        kind: Kind::Status,
        instrument: id.0,
        levels: 0,
        update_id: top.update_id,
        previous_id: top.update_id,
        ts_event: Nanos(0),
        ts_recv: top.ts_recv,
        status: top.status,
        lost: 0,
    }
}
