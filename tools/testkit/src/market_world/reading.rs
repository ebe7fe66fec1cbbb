//! Checks what a reader sees after each event.

use sim::Venue;
use tt_market::Proof;
use tt_market::board::{Board, Depth, TopOfBook};
use tt_model::{InstrumentId, Nanos};
use tt_venue::BookLevel;

use super::client::Feed;
use super::planted::Planted;
use super::truth::Levels;

/// A reader's view of one instrument.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) top: TopOfBook,
    depth: Depth,
    is_verified: bool,
    /// A planted fault: the first bid's quantity is one lot larger than it is.
    wrong_level: bool,
}

impl Seen {
    pub(super) fn of(board: &Board, id: InstrumentId, planted: Option<Planted>) -> Self {
        let top = board.top_of_book(id).unwrap_or_default();
        let depth = board.depth(id).unwrap_or_default();
        let hides = planted == Some(Planted::HidesStale) && top.status.proof == Proof::Stale;
        Self {
            top,
            depth,
            is_verified: top.status.proof.is_verified() || hides,
            wrong_level: planted == Some(Planted::WrongLevel) && top.update_id.is_multiple_of(16),
        }
    }

    pub(super) const fn is_verified(&self) -> bool {
        self.is_verified
    }

    fn sides(&self) -> [Levels; 2] {
        let steps = |level: &BookLevel| (level.px.0, level.qty.0);
        let mut bids: Levels = self.depth.bids().iter().map(steps).collect();
        if self.wrong_level
            && let Some(best) = bids.first_mut()
        {
            best.1 += 1;
        }
        [bids, self.depth.asks().iter().map(steps).collect()]
    }

    /// The difference of a book published as verified; `None` if it equals the venue's.
    pub(super) fn untrue(&self, feed: &Feed, index: usize) -> Option<String> {
        let truth = &feed.truths[index];
        let expected = match feed.market.venue {
            Venue::BinanceSpot | Venue::BinanceUsdm => truth.at_id(self.top.update_id),
            Venue::Kraken | Venue::Okx | Venue::Bybit | Venue::Deribit => truth.after(feed.taken[index]),
        };
        let symbol = &feed.listed[index].symbol;
        let Some(expected) = expected else {
            return Some(format!("{symbol}: the venue never had a book {}", self.top.update_id));
        };
        let seen = self.sides();
        let best = [self.top.bid, self.top.ask].map(|level| level.map(|level| (level.px.0, level.qty.0)));
        let best_expected = [expected[0].first().copied(), expected[1].first().copied()];
        (seen != *expected || (best != best_expected && !self.wrong_level)).then(|| {
            let differs = if seen[0] == expected[0] { 1 } else { 0 };
            format!(
                "{symbol} at {} is {:?}, best {best:?}, side {differs} is {:?}, at the venue {:?}",
                self.top.update_id, self.top.status.proof, seen[differs], expected[differs]
            )
        })
    }

    /// Whether the book is verified and at the venue's update.
    pub(super) fn is_current(&self, feed: &Feed, index: usize) -> bool {
        self.is_verified && feed.truths[index].last().is_some_and(|last| self.sides() == *last)
    }
}

/// How long after the last fault every book must be healed: the engine's own patience with a silent connection, and a
/// minute of new attempts.
pub(super) const fn healing_max(venue: Venue) -> Nanos {
    Nanos::from_secs(match venue {
        Venue::BinanceSpot | Venue::Okx | Venue::Bybit | Venue::Deribit => 130,
        Venue::BinanceUsdm => 310,
        // Checksums that failed often are believed again after a hundred that fit.
        Venue::Kraken => 200,
    })
}
