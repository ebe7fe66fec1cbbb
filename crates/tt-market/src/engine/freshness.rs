//! Whether whole books keep up with the venue's best levels, where nothing else says how old a book is.

use super::{AddError, Engine, IncidentCause};
use crate::Proof;
use crate::instrument::{BookState, Instrument};
use tt_model::{InstrumentId, Nanos};

impl Instrument {
    /// Whether the best levels are newer than the book by more than the spacing of books and half of it: a book comes
    /// with the first block after its time.
    fn is_behind(&self) -> bool {
        let behind = self.ts_best.saturating_sub(self.ts_book);
        self.spacing.is_some_and(|spacing| behind > spacing.saturating_add(Nanos(spacing.0 / 2)))
    }
}

impl Engine {
    /// Holds the instrument's book against the times of its best levels: the venue promises a whole book each `spacing`.
    /// A book that the newest best levels are ahead of by one and a half times that, or that has others at the same time,
    /// is `Stale` until the next one.
    ///
    /// # Errors
    /// `BadInstrument` if there is no such instrument, or its venue proves books otherwise.
    pub fn set_book_spacing(&mut self, instrument: InstrumentId, spacing: Nanos) -> Result<(), AddError> {
        let known = self.instruments.get_mut(instrument.0 as usize).ok_or(AddError::BadInstrument)?;
        if known.rules.is_provable() {
            return Err(AddError::BadInstrument);
        }
        known.spacing = Some(spacing);
        Ok(())
    }

    /// Takes the time of best levels that were just published.
    #[cold]
    pub(super) fn note_best_time(&mut self, index: usize, ts_event: Nanos, ts_recv: Nanos) {
        let instrument = &mut self.instruments[index];
        instrument.ts_best = ts_event;
        let is_shown = instrument.state == BookState::Live && instrument.top.status.proof == Proof::Unverified;
        if is_shown && self.proof_by_time(index) == Proof::Stale {
            self.show_standing(index, Proof::Stale, ts_recv);
        }
    }

    /// What the times say of the book as it is now. An incident names what is wrong with one that was not stale before.
    #[cold]
    pub(super) fn proof_by_time(&mut self, index: usize) -> Proof {
        let instrument = &self.instruments[index];
        let is_first = instrument.top.status.proof != Proof::Stale;
        let cause = if instrument.is_behind() {
            IncidentCause::Behind { expected: instrument.ts_best, received: instrument.ts_book }
        } else {
            let ticker = self.writer.ticker(InstrumentId(index as u32));
            let best = [&instrument.bids, &instrument.asks].map(|side| side.as_slice().first().copied());
            if instrument.ts_best != instrument.ts_book {
                return Proof::Unverified;
            }
            if [ticker.bid, ticker.ask] == best {
                self.counters.venue_mut(instrument.spec.venue).oracle_matches += 1;
                return Proof::Unverified;
            }
            IncidentCause::BestLevels {
                expected: [ticker.bid, ticker.ask].map(Option::unwrap_or_default),
                received: best.map(Option::unwrap_or_default),
            }
        };
        if is_first {
            self.note_incident(index, cause);
        }
        Proof::Stale
    }
}
