//! What a frame must have done to the books.

use tt_market::{Applied, DropReason};

use super::client::Feed;
use super::faults::Claim;
use super::reading::Seen;
use super::words::{self, Kind};
use super::world::World;

impl World<'_> {
    /// A best quote that the engine read, and that is not the book's.
    pub(super) fn note_misquote(
        &mut self,
        number: usize,
        kind: Kind,
        claim: Claim,
        result: Result<Applied, DropReason>,
    ) {
        let is_mismatch = result == Err(DropReason::OracleMismatch);
        self.causes[number] += u64::from(is_mismatch);
        if let (Kind::Quote(index), Claim::Misquoted(update_id)) = (kind, claim)
            && (is_mismatch || result.is_ok())
        {
            self.feeds[number].misquoted[index] = Some(update_id);
        }
        // The other connection brings the same quote, unspoiled.
        if let (Kind::Quote(index), Claim::Whole, true) = (kind, claim, result.is_ok())
            && self.feeds[number].next.is_some()
        {
            self.feeds[number].misquoted[index] = None;
        }
    }

    /// A frame is missing from here on.
    pub(super) fn lose(&mut self, number: usize, index: usize, update_id: u64) {
        let feed = &mut self.feeds[number];
        let seen = Seen::of(self.engines[feed.engine].board(), feed.ids[index], self.planted);
        // A snapshot by REST may hold what was lost.
        let is_missed = !words::is_fetched(feed.market.venue) || seen.top.update_id < update_id;
        // The connection that takes over may bring it.
        if words::is_numbered(feed.market.venue) && seen.is_verified() && is_missed && feed.next.is_none() {
            feed.lost[index] = true;
        }
    }

    /// Whether the books say what the frame did to them.
    pub(super) fn judge(&mut self, number: usize, kind: Kind, claim: Claim, fault: Option<DropReason>) {
        let feed = &mut self.feeds[number];
        let board = self.engines[feed.engine].board();
        let is_verified = |feed: &Feed, index: usize| Seen::of(board, feed.ids[index], self.planted).is_verified();
        let is_unreadable = claim == Claim::Unreadable || fault.is_some_and(DropReason::is_malformed);
        if is_unreadable && let Some(index) = (0..feed.listed.len()).find(|&index| is_verified(feed, index)) {
            let what = format!("{} is published as verified after an unreadable frame", feed.listed[index].symbol);
            return self.fail(2, what);
        }
        if let (Kind::Snapshot(index), None) = (kind, fault) {
            feed.lost[index] = false;
        }
        let Kind::Update(index) = kind else { return };
        let symbol = &feed.listed[index].symbol;
        if claim == Claim::Mismatched && is_verified(feed, index) {
            let what = format!("{symbol} is published as verified after a checksum mismatch");
            return self.fail(2, what);
        }
        if feed.lost[index] && claim == Claim::Whole {
            if is_verified(feed, index) {
                let what = format!("{symbol} is published as verified after a lost frame and the next one");
                return self.fail(2, what);
            }
            feed.lost[index] = false;
            self.gaps_made[number] += 1;
        }
        if claim == Claim::Marred
            && fault.is_some_and(|fault| !fault.is_malformed())
            && words::is_numbered(feed.market.venue)
        {
            // No engine received it; its content is missing now, unless it was a copy.
            self.causes[number] += 1;
        }
    }
}
