//! Connections that open and close, books that are lost, and what the caller is asked for.

use super::{AddError, Applied, BookUpdate, Engine, Request, budget};
use crate::continuity::Continuity;
use crate::drop_reason::DropReason;
use crate::instrument::{BookState, RequestState, Trust};
use crate::{ConnectionId, Proof};
use tt_model::{InstrumentId, Nanos};
use tt_venue::rules::Overlap;

/// The first wait after a snapshot that did not help; doubled each time.
const RETRY_MIN: Nanos = Nanos::from_millis(250);
/// The longest wait before the first try: books that are lost together are not asked for together.
const FIRST_WAIT_MAX: Nanos = Nanos::from_millis(50);
/// Doublings after which the wait stays.
const RETRY_DOUBLINGS: u32 = 7;
/// How long a snapshot may take before it is asked for again.
const SNAPSHOT_WAIT: Nanos = Nanos::from_secs(30);
/// How long a book may stay crossed, or locked where that cannot be, before it is synchronised again.
const CROSSED_MAX: Nanos = Nanos::from_millis(500);

impl Engine {
    /// Follows an instrument's book on `connection`, on which the caller subscribes it.
    ///
    /// # Errors
    /// `BadInstrument` or `Closed`; nothing changes.
    pub fn subscribe(
        &mut self,
        connection: ConnectionId,
        instrument: InstrumentId,
        now: Nanos,
    ) -> Result<(), AddError> {
        let index = instrument.0 as usize;
        let known = self.instruments.get_mut(index).ok_or(AddError::BadInstrument)?;
        if known.spec.venue != connection.venue() {
            return Err(AddError::BadInstrument);
        }
        if !self.connections.is_open(connection) {
            return Err(AddError::Closed);
        }
        known.connection = Some(connection);
        known.successor = None;
        known.overlap = known.join_overlap;
        known.skips_next = known.overlap == Some(Overlap::Follows);
        known.trust = Trust::default();
        known.attempts = 0;
        (known.ts_book, known.ts_best) = (Nanos(0), Nanos(0));
        known.is_resync = false;
        known.not_before = now;
        known.tickers.clear();
        self.free_backlog(index);
        self.instruments[index].state = BookState::Awaiting;
        self.quotes[index].has_book = true;
        self.show_standing(index, Proof::Syncing, now);
        if self.instruments[index].overlap.is_some() {
            self.queue_request(index);
        } else {
            // The subscription itself brings the snapshot.
            self.instruments[index].request = RequestState::InFlight(now);
        }
        Ok(())
    }

    /// Ends a connection: its books are `Stale` before the next read, and frames that still arrive are dropped.
    pub fn close_connection(&mut self, connection: ConnectionId, now: Nanos) {
        if !self.connections.close(connection) {
            return;
        }
        for index in 0..self.instruments.len() {
            self.instruments[index].successor.take_if(|successor| successor.connection == connection);
            if self.instruments[index].connection == Some(connection) && !self.hand_over(index, now) {
                self.leave(index, now);
            }
        }
    }

    /// Ends an instrument's book, whose subscriptions the caller ends: it is `Stale` before the next read, and frames that
    /// still arrive are dropped. [`subscribe`](Self::subscribe) begins it again.
    ///
    /// # Errors
    /// `BadInstrument`; nothing changes.
    pub fn unsubscribe(&mut self, instrument: InstrumentId, now: Nanos) -> Result<(), AddError> {
        let index = instrument.0 as usize;
        let known = self.instruments.get_mut(index).ok_or(AddError::BadInstrument)?;
        known.successor = None;
        known.wrong_since = None;
        self.comparison.abandon(index);
        self.leave(index, now);
        Ok(())
    }

    fn leave(&mut self, index: usize, now: Nanos) {
        self.free_backlog(index);
        let instrument = &mut self.instruments[index];
        instrument.connection = None;
        instrument.state = BookState::Idle;
        instrument.request = RequestState::None;
        self.quotes[index].has_book = false;
        self.show_standing(index, Proof::Stale, now);
    }

    /// The next thing that the caller is asked to do, each once.
    pub fn poll_request(&mut self, now: Nanos) -> Option<Request> {
        if let Some(connection) = self.reconnects.pop_front() {
            return Some(Request::Reconnect { connection });
        }
        if let Some(connection) = self.pongs.pop_front() {
            return Some(Request::Pong { connection });
        }
        if let Some(connection) = self.endings.pop_front() {
            return Some(Request::Replace { connection });
        }
        for _ in 0..self.requests.len() {
            let id = self.requests.pop_front()?;
            let index = id.0 as usize;
            let instrument = &self.instruments[index];
            let (venue, is_resync) = (instrument.spec.venue, instrument.is_resync);
            let Some(connection) = instrument.connection.filter(|_| instrument.request == RequestState::Queued) else {
                continue;
            };
            let fetch = instrument.overlap.is_some();
            let waits = instrument.not_before > now
                || (fetch && !self.take_backlog(index))
                || (is_resync && !self.budgets[venue as usize].take(now));
            if waits {
                self.requests.push_back(id);
                continue;
            }
            self.instruments[index].request = RequestState::InFlight(now);
            return Some(if fetch {
                Request::FetchSnapshot { instrument: id }
            } else {
                Request::Resubscribe { instrument: id, connection }
            });
        }
        None
    }

    /// Takes note that a snapshot could not be fetched; it is asked for again after a while.
    pub fn snapshot_failed(&mut self, instrument: InstrumentId, now: Nanos) {
        let index = instrument.0 as usize;
        let Some(known) = self.instruments.get_mut(index) else { return };
        if known.state == BookState::Live {
            // It was wanted for a comparison.
            self.comparison.abandon(index);
            return;
        }
        if known.state != BookState::Awaiting || known.request == RequestState::Queued {
            return;
        }
        let attempts = known.attempts;
        known.attempts = attempts.saturating_add(1);
        self.put_off(index, attempts, now);
        self.queue_request(index);
    }

    /// The venue asks for a sign of life; one answer is enough for any number of questions.
    pub(super) fn request_pong(&mut self, connection: ConnectionId) {
        if !self.pongs.contains(&connection) && self.pongs.len() < self.capacity.connections {
            self.pongs.push_back(connection);
        }
    }

    /// The connection is of no more use: its books are lost, and the caller is asked for another one.
    pub(super) fn ask_for_connection(&mut self, connection: ConnectionId, now: Nanos) {
        self.close_connection(connection, now);
        if self.reconnects.len() < self.capacity.connections {
            self.reconnects.push_back(connection);
        }
    }

    /// A numbered message of a connection: after a gap none of its books is known to be whole.
    pub(super) fn follow_connection(
        &mut self,
        now: Nanos,
        connection: ConnectionId,
        number: u64,
    ) -> Result<(), DropReason> {
        match self.connections.follow(connection, number) {
            Continuity::Next => Ok(()),
            Continuity::Duplicate => Err(DropReason::Duplicate),
            Continuity::Gap => {
                self.counters.venue_mut(connection.venue()).gaps += 1;
                self.lose_connection_books(connection, now);
                Ok(())
            }
        }
    }

    /// Looks after what has been silent, crossed or unanswered for too long. To be called at least ten times a second.
    pub fn handle_timeout(&mut self, now: Nanos) {
        while let Some(connection) = self.connections.silent(now) {
            self.ask_for_connection(connection, now);
        }
        self.check_comparison(now);
        for index in 0..self.instruments.len() {
            let instrument = &self.instruments[index];
            if let RequestState::InFlight(since) = instrument.request
                && now.saturating_sub(since) > SNAPSHOT_WAIT
            {
                self.snapshot_failed(InstrumentId(index as u32), now);
            } else if instrument.wrong_since.is_some_and(|since| now.saturating_sub(since) > CROSSED_MAX) {
                self.lose_book(index, now);
            }
        }
    }

    /// The book is known to be wrong: it is `Stale` before the next read, and exactly one snapshot is asked for.
    pub(super) fn lose_book(&mut self, index: usize, now: Nanos) {
        let instrument = &mut self.instruments[index];
        if matches!(instrument.state, BookState::Idle | BookState::Awaiting) {
            return;
        }
        self.note_loss(index);
        let instrument = &mut self.instruments[index];
        instrument.state = BookState::Awaiting;
        instrument.wrong_since = None;
        instrument.is_resync = true;
        // Checksums that fail again and again make resyncs rarer, even if the snapshots between them fit.
        let attempts = instrument.attempts.max(instrument.trust.mismatches.saturating_sub(1));
        instrument.attempts = instrument.attempts.saturating_add(1);
        self.counters.venue_mut(instrument.spec.venue).resyncs += 1;
        if attempts == 0 {
            let wait = self.next_jitter(index, FIRST_WAIT_MAX);
            self.instruments[index].not_before = now.saturating_add(wait);
        } else {
            self.put_off(index, attempts, now);
        }
        let instrument = &self.instruments[index];
        let proof = if instrument.top.status.proof == Proof::Syncing { Proof::Syncing } else { Proof::Stale };
        self.show_standing(index, proof, now);
        if self.instruments[index].overlap.is_some() {
            self.take_backlog(index);
        }
        self.queue_request(index);
    }

    /// A frame of the connection was lost, and its instrument is unknown.
    pub(super) fn lose_connection_books(&mut self, connection: ConnectionId, now: Nanos) {
        for index in 0..self.instruments.len() {
            if self.instruments[index].connection == Some(connection) {
                self.lose_book(index, now);
            }
        }
    }

    /// No request before a wait that grows with each attempt: between half of it and the whole.
    fn put_off(&mut self, index: usize, attempts: u32, now: Nanos) {
        let half = Nanos(retry_wait(attempts).0 / 2);
        let wait = half.saturating_add(self.next_jitter(index, half));
        self.instruments[index].not_before = now.saturating_add(wait);
    }

    fn next_jitter(&mut self, index: usize, most: Nanos) -> Nanos {
        let instrument = &mut self.instruments[index];
        instrument.resyncs += 1;
        budget::jitter(self.capacity.jitter_seed, instrument.resyncs << 32 | index as u64, most)
    }

    pub(super) fn show_standing(&mut self, index: usize, proof: Proof, now: Nanos) {
        let instrument = &mut self.instruments[index];
        instrument.top.status.proof = proof;
        instrument.top.ts_recv = now;
        instrument.top.status = instrument.top.status.since(instrument.last_proof, instrument.top.update_id, now);
        self.writer.store_top(InstrumentId(index as u32), instrument.top);
        if self.changes.is_on() {
            self.changes.note_status(InstrumentId(index as u32));
        }
    }

    pub(super) fn queue_request(&mut self, index: usize) {
        let instrument = &mut self.instruments[index];
        if instrument.request == RequestState::Queued {
            return;
        }
        instrument.request = RequestState::Queued;
        let id = InstrumentId(index as u32);
        // A closed and reopened subscription may still be queued; each instrument is queued once.
        if !self.requests.contains(&id) {
            self.requests.push_back(id);
        }
    }

    /// Sees to it that the book has a backlog, `false` where none is free.
    fn take_backlog(&mut self, index: usize) -> bool {
        if self.instruments[index].backlog.is_none() {
            self.instruments[index].backlog = self.free_backlogs.pop();
        }
        self.instruments[index].backlog.is_some()
    }

    /// Gives the book's backlog back.
    pub(super) fn free_backlog(&mut self, index: usize) {
        let instrument = &mut self.instruments[index];
        if let Some(slot) = instrument.backlog.take() {
            let backlog = &mut self.backlogs[slot];
            self.counters.venue_mut(instrument.spec.venue).discarded += backlog.len() as u64;
            backlog.clear();
            self.free_backlogs.push(slot);
        }
    }

    /// Keeps a delta for the join. One that does not continue the kept ones replaces them: only a row without a gap helps.
    pub(super) fn keep_delta(
        &mut self,
        index: usize,
        delta: &tt_venue::event::BookDelta,
        levels: &[tt_venue::event::Level],
    ) -> Result<Applied, DropReason> {
        let instrument = &self.instruments[index];
        let venue = instrument.spec.venue;
        let Some(slot) = instrument.backlog else { return Err(DropReason::BacklogFull) };
        let backlog = &mut self.backlogs[slot];
        let counters = self.counters.venue_mut(venue);
        if let Some(last) = backlog.last() {
            match Continuity::of(instrument.rules.numbering, last.last_id, delta) {
                Continuity::Next => {}
                Continuity::Duplicate => return Err(DropReason::Duplicate),
                Continuity::Gap => {
                    counters.discarded += backlog.len() as u64;
                    backlog.clear();
                }
            }
        }
        if !backlog.keep(delta, levels) {
            counters.discarded += backlog.len() as u64;
            backlog.clear();
            if !backlog.keep(delta, levels) {
                return Err(DropReason::BacklogFull);
            }
        }
        counters.kept += 1;
        Ok(Applied::Book { instrument: InstrumentId(index as u32), update: BookUpdate::Buffered })
    }
}

const fn retry_wait(attempts: u32) -> Nanos {
    let doublings = if attempts < RETRY_DOUBLINGS { attempts } else { RETRY_DOUBLINGS };
    Nanos(RETRY_MIN.0 << doublings)
}
