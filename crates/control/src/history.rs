//! The past of what the page shows, so that a reload loses nothing: `/api/v1/history` and `/api/v1/market/history/…`.
//!
//! One hour in memory: a point a second of a few series, a cell per half second of each book's proof, and incidents.
//! Depth and trades are kept for five minutes. Every list has a bound.

mod books;
mod points;

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tt_status::market_streams::MarketStreams;

use crate::incident::BookIncident;
use crate::snapshot::Snapshot;
use books::Books;
use points::Points;

/// Time that is kept, seconds.
pub(crate) const SECONDS: usize = 3_600;

/// Everything that is kept. The HTTP thread alone uses it.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    points: Points,
    books: Books,
}

impl History {
    /// Takes what a snapshot adds.
    pub(crate) fn take(&self, snapshot: &Snapshot, streams: Option<&dyn MarketStreams>) {
        let mut kept = self.kept();
        kept.points.take(snapshot);
        if let Some(market) = &snapshot.market {
            kept.books.take(snapshot.at_unix_ms, market, streams);
        }
    }

    /// The newest incidents that are meant, newest first, at most so many.
    pub(crate) fn incidents(&self, most: usize, is_meant: impl Fn(&BookIncident) -> bool) -> Vec<BookIncident> {
        self.kept().books.incidents().rev().filter(|of| is_meant(of)).take(most).cloned().collect()
    }

    /// The series of the last `seconds`, one value per `step` seconds.
    pub(crate) fn points(&self, seconds: usize, step: usize) -> Value {
        self.kept().points.answer(seconds, step)
    }

    /// Cells of the last `seconds` of each book that is meant, by venue and symbol.
    pub(crate) fn proofs(&self, seconds: usize, is_meant: impl Fn(&str, &str) -> bool) -> Value {
        self.kept().books.proofs(seconds, is_meant)
    }

    /// Depth and trades after `since_ms` of the first book that is meant.
    pub(crate) fn depth(&self, is_meant: impl Fn(&str, &str) -> bool, since_ms: u64) -> Option<Value> {
        self.kept().books.depth(is_meant, since_ms)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
