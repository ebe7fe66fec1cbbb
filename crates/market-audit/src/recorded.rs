//! Instruments and connections that a recording of truetick contains.

use anyhow::Context as _;
use market_feed::InstrumentSetup;
use tt_market::{ConnectionId, Engine};
use tt_model::{Decimal, InstrumentId, Nanos};

use super::examiner::Examiner;
use super::instrument::Watched;
use super::steps::Digits;

impl Examiner {
    /// Adds an instrument of the recording, with its steps.
    pub(super) fn add_recorded(&mut self, listed: &InstrumentSetup) -> anyhow::Result<()> {
        let spec = listed.spec;
        let id = self.add_instrument(listed).with_context(|| format!("{} cannot be followed", spec.symbol))?;
        let watched = &mut self.watched[id.0 as usize];
        (watched.px, watched.qty) = (Digits::of(spec.tick_size), Digits::of(spec.lot_size));
        Ok(())
    }

    /// Refines the steps as recorded.
    pub(super) fn refine(&mut self, id: InstrumentId, tick_size: Decimal, lot_size: Decimal) {
        let Some(watched) = self.watched.get_mut(id.0 as usize) else { return };
        (watched.px, watched.qty) = (Digits::of(tick_size), Digits::of(lot_size));
        watched.refined += 1;
        if self.engine.refine(id, tick_size, lot_size).is_err() {
            self.note("beyond_i64", true, "a number needs more than 63 bits in the instrument's steps");
        }
    }

    /// Opens a recorded connection.
    pub(super) fn open_recorded(&mut self, number: u32, now: Nanos) {
        if self.connections.is_empty() {
            self.watched.iter_mut().for_each(Watched::forget);
        }
        self.connections.extend(self.engine.open_connection(self.venue, now).map(|id| (number, id)));
    }

    fn connection(&self, number: u32) -> Option<ConnectionId> {
        self.connections.iter().find(|open| open.0 == number).map(|open| open.1)
    }

    /// Handles a frame of the connection `number`.
    pub(super) fn frame_of(&mut self, number: u32, record: u64, ts_ns: u64, frame: &[u8]) {
        if let Some(connection) = self.connection(number) {
            self.frame_on(Some(connection), record, ts_ns, frame);
        } else {
            self.record = record;
            self.note("old_connection", false, "frames of a closed connection");
        }
    }

    /// Passes the connection `number` to `follow`, which subscribes a book on it.
    pub(super) fn follow(&mut self, number: u32, now: Nanos, follow: impl FnOnce(&mut Engine, ConnectionId)) {
        if let Some(connection) = self.connection(number) {
            follow(&mut self.engine, connection);
            self.poll(now);
        }
    }

    /// Closes the connection `number`.
    pub(super) fn close(&mut self, number: u32, now: Nanos) {
        if let Some(connection) = self.connection(number) {
            self.connections.retain(|open| open.0 != number);
            self.engine.close_connection(connection, now);
        }
    }
}
