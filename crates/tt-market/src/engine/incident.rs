//! Why a book was lost, or an update ignored, with what was expected and what came.

use super::Engine;
use crate::instrument::{Instrument, SeenTicker};
use tt_model::{InstrumentId, Nanos};
use tt_venue::BookLevel;
use tt_venue::event::BookDelta;
use tt_venue::rules::Numbering;

/// What was wrong with the last input of a book; see [`Engine::poll_incident`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incident {
    /// The instrument.
    pub instrument: InstrumentId,
    /// The last update that the book had before.
    pub update_id: u64,
    /// What was expected, and what came.
    pub cause: IncidentCause,
}

/// The cause of an [`Incident`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncidentCause {
    /// Updates are missing: the next one had to follow `expected` and follows `received`, both numbers of the venue.
    Gap {
        /// The book's update.
        expected: u64,
        /// The update that the received one follows.
        received: u64,
    },
    /// The book holds the update already. The book stays as it is.
    Duplicate {
        /// The update that came again.
        received: u64,
    },
    /// The book's checksum after the update is another one than the venue's.
    Checksum {
        /// The venue's.
        expected: u32,
        /// The book's.
        received: u32,
    },
    /// The best bid and offer of the book are others than the venue's at the same update.
    BestLevels {
        /// Bid and offer of the venue's ticker.
        expected: [BookLevel; 2],
        /// Those of the book.
        received: [BookLevel; 2],
    },
    /// The venue's best levels are newer than its last whole book by more than its books are apart
    /// ([`Engine::set_book_spacing`]). Both are the venue's times.
    Behind {
        /// Of the best levels.
        expected: Nanos,
        /// Of the book.
        received: Nanos,
    },
    /// Another reason for which the book was lost: a level outside its rules, a frame that cannot be read, a crossed book.
    Other,
}

impl Engine {
    /// Returns what was wrong with the last input of a book, once. An input that loses several books names the first. The
    /// next incident replaces one that was not polled.
    pub const fn poll_incident(&mut self) -> Option<Incident> {
        self.incident.take()
    }

    #[cold]
    pub(super) fn note_incident(&mut self, index: usize, cause: IncidentCause) {
        let update_id = self.instruments[index].top.update_id;
        self.incident = Some(Incident { instrument: InstrumentId(index as u32), update_id, cause });
    }

    /// Notes the loss of a book for which nothing more precise was noted.
    pub(super) fn note_loss(&mut self, index: usize) {
        if self.incident.is_none() {
            self.note_incident(index, IncidentCause::Other);
        }
    }

    pub(super) fn note_gap(&mut self, index: usize, delta: &BookDelta) {
        let instrument = &self.instruments[index];
        let received = match instrument.rules.numbering {
            Numbering::Range | Numbering::RangeFromOne => delta.first_id.saturating_sub(1),
            Numbering::Chain | Numbering::Previous | Numbering::None | Numbering::Connection => {
                delta.previous_id.unwrap_or_else(|| delta.first_id.saturating_sub(1))
            }
        };
        self.note_incident(index, IncidentCause::Gap { expected: instrument.top.update_id, received });
    }

    pub(super) fn note_best_levels(&mut self, index: usize, seen: &SeenTicker) {
        let best = |instrument: &Instrument| {
            [&instrument.bids, &instrument.asks].map(|side| side.as_slice().first().copied().unwrap_or_default())
        };
        let received = best(&self.instruments[index]);
        self.note_incident(index, IncidentCause::BestLevels { expected: [seen.bid, seen.ask], received });
    }
}
