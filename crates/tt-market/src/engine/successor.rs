//! Books that go over from a connection to the next one without a gap.

use super::{AddError, Engine};
use crate::ConnectionId;
use crate::continuity::Join;
use crate::drop_reason::DropReason;
use crate::instrument::{BookState, Instrument, Successor};
use tt_model::{InstrumentId, Nanos};
use tt_venue::event::BookDelta;
use tt_venue::rules::{Numbering, Overlap};

impl Engine {
    /// Lets `connection` take an instrument's book over, on which the caller subscribes it. The book stays with its
    /// connection until an update of the new one continues it, or until that connection is closed. Without a connection,
    /// this is [`subscribe`](Self::subscribe).
    ///
    /// # Errors
    /// As of `subscribe`.
    pub fn announce_successor(
        &mut self,
        connection: ConnectionId,
        instrument: InstrumentId,
        now: Nanos,
    ) -> Result<(), AddError> {
        let known = self.instruments.get(instrument.0 as usize).ok_or(AddError::BadInstrument)?;
        if known.connection.is_none_or(|known| !self.connections.is_open(known)) {
            return self.subscribe(connection, instrument, now);
        }
        if known.spec.venue != connection.venue() {
            return Err(AddError::BadInstrument);
        }
        if !self.connections.is_open(connection) {
            return Err(AddError::Closed);
        }
        self.instruments[instrument.0 as usize].successor = Some(Successor { connection, has_met: false });
        Ok(())
    }

    /// Whether the instrument's book has a successor whose updates do not continue it yet.
    #[must_use]
    pub fn awaits_successor(&self, instrument: InstrumentId) -> bool {
        let known = self.instruments.get(instrument.0 as usize);
        known.and_then(|known| known.successor).is_some_and(|successor| !successor.has_met)
    }

    /// The connection ends soon; one request is enough.
    pub(super) fn request_successor(&mut self, connection: ConnectionId) {
        if !self.endings.contains(&connection) && self.endings.len() < self.capacity.connections {
            self.endings.push_back(connection);
        }
    }

    /// A delta of a connection that does not have the book: takes the book over if the delta continues it.
    ///
    /// # Errors
    /// Why the delta is not for the book. One that the book has not reached comes on its own connection, too.
    #[cold]
    pub(super) fn meet_successor(
        &mut self,
        index: usize,
        connection: ConnectionId,
        delta: &BookDelta,
    ) -> Result<(), DropReason> {
        let instrument = &mut self.instruments[index];
        let (joins, foreign) = (joins_by_delta(instrument), instrument.foreign());
        let successor = instrument.successor.as_mut().filter(|successor| successor.connection == connection);
        let successor = successor.ok_or(foreign)?;
        let (BookState::Live | BookState::Joining(_), Some(overlap)) = (instrument.state, joins) else {
            return Err(DropReason::ForeignConnection);
        };
        match Join::of(overlap, instrument.top.update_id, delta) {
            Join::Superseded => {
                successor.has_met = true;
                Err(DropReason::Superseded)
            }
            Join::Next => {
                instrument.connection = Some(connection);
                instrument.successor = None;
                instrument.state = BookState::Joining(overlap);
                Ok(())
            }
            Join::TooNew => Err(DropReason::ForeignConnection),
        }
    }

    /// A snapshot of a connection that does not have the book: takes the book over.
    ///
    /// # Errors
    /// `ForeignConnection` if it is not the successor, or its deltas are to decide.
    #[cold]
    pub(super) fn meet_successor_snapshot(&mut self, index: usize, connection: ConnectionId) -> Result<(), DropReason> {
        let instrument = &mut self.instruments[index];
        let is_successor = instrument.successor.is_some_and(|successor| successor.connection == connection);
        if !is_successor || joins_by_delta(instrument).is_some() {
            return Err(instrument.foreign());
        }
        instrument.connection = Some(connection);
        instrument.successor = None;
        Ok(())
    }

    /// The book's connection has ended: its successor takes it over; `false` if it has none.
    pub(super) fn hand_over(&mut self, index: usize, now: Nanos) -> bool {
        let instrument = &mut self.instruments[index];
        let Some(Successor { connection, .. }) = instrument.successor.take() else { return false };
        if !self.connections.is_open(connection) {
            return false;
        }
        instrument.connection = Some(connection);
        if !matches!(instrument.state, BookState::Live | BookState::Joining(_)) {
            // What it waits for comes on the new connection, or by REST.
            return true;
        }
        match (joins_by_delta(instrument), instrument.rules.numbering) {
            (Some(overlap), _) => instrument.state = BookState::Joining(overlap),
            // The next update shows whether it follows.
            (None, Numbering::Range | Numbering::RangeFromOne | Numbering::Previous | Numbering::Chain) => {}
            // Nothing shows what was sent between the two.
            (None, Numbering::None | Numbering::Connection) => self.lose_book(index, now),
        }
        true
    }
}

/// How a delta of another connection continues the book. Only numbers that never fall distinguish an old update from one
/// after a restart of the venue; elsewhere the new connection's snapshot replaces the book.
const fn joins_by_delta(instrument: &Instrument) -> Option<Overlap> {
    match (instrument.overlap, instrument.rules.numbering) {
        (Some(overlap), Numbering::Range | Numbering::Previous) => Some(overlap),
        (Some(_) | None, _) => None,
    }
}
