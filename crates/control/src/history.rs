//! The past of what the page shows, so that a reload loses nothing: `/api/v1/history` and `/api/v1/market/history/…`.
//!
//! One hour in memory: a point a second of a few series, a cell per half second of each book's proof, and incidents.
//! Depth and trades are kept for five minutes. Every list has a bound.

mod books;
mod points;
mod routes;

use std::sync::{Mutex, MutexGuard, PoisonError};

use tt_status::market_streams::MarketStreams;

use crate::snapshot::Snapshot;
use books::Books;
use points::Points;

pub(crate) use books::BookIncident;
pub(crate) use routes::routes;

/// Time that is kept, seconds.
const SECONDS: usize = 3_600;

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

    /// The newest incidents of books, newest first.
    pub(crate) fn incidents(&self, most: usize) -> Vec<BookIncident> {
        self.kept().books.incidents().rev().take(most).cloned().collect()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
