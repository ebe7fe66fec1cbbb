//! Whole books by REST: to join, and to compare a book with.

use std::time::Instant;

use tt_market::{BookSide, Difference, DropReason};
use tt_model::InstrumentId;
use tt_os::clock::unix_now;
use tt_status::decimal_text::steps_text;

use super::Feed;
use super::connection::Connection;
use crate::rest::{self, Response, RestRequest};

/// Use of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The book begins with it.
    Join,
    /// The book is compared with it.
    Comparison,
}

/// A snapshot that has arrived.
#[derive(Debug)]
pub(super) struct Fetched {
    instrument: InstrumentId,
    purpose: Purpose,
    response: Result<Response, rest::Failed>,
}

impl Connection<'_> {
    /// Requests a snapshot to join, as soon as the venue's limits allow, unless one is on its way.
    pub(super) fn fetch(&mut self, instrument: InstrumentId) {
        if !self.fetching.begin(instrument) {
            return;
        }
        let at = self.feed.address.fetch(self.feed.config.timing.snapshot_gap);
        self.fetch_at(instrument, Purpose::Join, at);
    }

    /// Requests a snapshot at a moment that was reserved.
    pub(super) fn fetch_at(&mut self, instrument: InstrumentId, purpose: Purpose, at: Instant) {
        let symbol = self.symbol(instrument);
        // Elsewhere snapshots come on the socket.
        let Some(path) = self.feed.config.snapshot_path(&symbol) else { return };
        let (uris, clock) = (self.feed.config.rest_uris(&path), self.feed.clock);
        let place = self.feed.address.place(at, self.feed.config.timing.snapshot_gap);
        self.fetches.push(Box::pin(async move {
            place.wait().await;
            let response = match uris {
                Ok(uris) => rest::send_to(&uris, RestRequest::get(), clock).await,
                Err(error) => Err(rest::Failed::new(error)),
            };
            Fetched { instrument, purpose, response }
        }));
    }

    pub(super) fn take_snapshot(&mut self, fetched: Fetched) {
        let Fetched { instrument, purpose, response } = fetched;
        if purpose == Purpose::Join {
            self.fetching.end(instrument);
        }
        let feed = &mut *self.feed;
        let now = unix_now();
        let header = feed.address.weight_header();
        if let Some(used) = response.as_ref().ok().and_then(|response| response.number(header?)) {
            feed.address.note_weight(used, now);
        }
        // A book that was lost meanwhile has requested another snapshot.
        let is_wanted = purpose == Purpose::Join || feed.intake.engine().is_comparing(instrument);
        if purpose == Purpose::Comparison {
            feed.verifier.end_step();
        }
        match response {
            Ok(_) if !is_wanted => {}
            Ok(Response { body, .. }) => {
                feed.status.snapshots += 1;
                // A body that does not help is counted and asked for again by the engine.
                let taken = feed.intake.handle_snapshot(now, instrument, &body, &mut feed.timings);
                let is_compared = matches!(taken, Ok(_) | Err(DropReason::SnapshotMismatch));
                if purpose == Purpose::Comparison && !is_compared {
                    feed.verifier.fail(instrument);
                }
                self.look_at_drop(taken);
                if let Ok(applied) = taken {
                    self.feed.end_incidents(applied);
                }
            }
            Err(failed) => {
                feed.status.snapshots_failed += 1;
                if let Some(wait) = failed.retry_after {
                    feed.address.leave_alone(wait);
                }
                let venue = feed.config.venue.name();
                tracing::warn!(venue, reason = failed.reason, "market: no snapshot");
                if purpose == Purpose::Comparison {
                    feed.verifier.fail(instrument);
                }
                if is_wanted {
                    feed.intake.snapshot_failed(instrument, now);
                }
            }
        }
        self.feed.change_signal.notify();
    }
}

impl Feed {
    /// Logs and shows the level of which a book and a snapshot differed.
    pub(super) fn name_difference(&mut self) {
        let Some(found) = self.intake.next_difference() else { return };
        let Difference { instrument, update_id, side, px, book_qty, snapshot_qty } = found;
        let Some(spec) = self.intake.engine().instrument(instrument) else { return };
        let (tick_size, lot_size) = (spec.tick_size, spec.lot_size);
        let symbol = self.symbol(instrument).unwrap_or_default().to_owned();
        let side = match side {
            BookSide::Bid => "bid",
            BookSide::Ask => "ask",
        };
        let px = steps_text(px.0, tick_size);
        let [book_qty, snapshot_qty] = [book_qty, snapshot_qty].map(|qty| steps_text(qty.0, lot_size));
        let venue = self.config.venue.name();
        tracing::error!(
            venue,
            symbol,
            update_id,
            side,
            px,
            book_qty,
            snapshot_qty,
            "market: the book differs from the venue's snapshot"
        );
        let found_unix_ns = unix_now().0;
        let difference =
            tt_status::market::Difference { symbol, update_id, side, px, book_qty, snapshot_qty, found_unix_ns };
        self.status.differ(difference);
    }
}
