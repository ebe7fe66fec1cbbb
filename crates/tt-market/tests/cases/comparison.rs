//! Books compared with REST snapshots, and books that began with a snapshot of limited depth.

use super::*;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use tt_market::{BookSide, Difference};
use tt_model::{Price, Qty};

const WHOLE: (&str, &str) = ("[\"10.0\",\"1\"],[\"9.9\",\"2\"]", "[\"10.1\",\"3\"]");

impl Bench {
    fn rest(&mut self, last_id: u64, bids: &str, asks: &str) -> Result<Applied, DropReason> {
        let body = format!("{{\"lastUpdateId\":{last_id},\"bids\":[{bids}],\"asks\":[{asks}]}}");
        let result = self.engine.handle_snapshot(self.now, self.id, body.as_bytes(), &mut Off);
        assert!(self.engine.counters().venue(self.venue).closes());
        result
    }

    fn compare(&mut self) {
        self.engine.begin_comparison(self.id, self.now).unwrap();
        assert!(self.engine.is_comparing(self.id));
    }

    fn compared(&self) -> Result<Applied, DropReason> {
        Ok(Applied::Book { instrument: self.id, update: BookUpdate::Compared })
    }

    fn buffered(&self) -> Result<Applied, DropReason> {
        Ok(Applied::Book { instrument: self.id, update: BookUpdate::Buffered })
    }

    /// Whether the proof is that of a snapshot, how many ids ago, and how old in milliseconds.
    fn snapshot_proof(&self) -> (Proof, Option<u32>, u32) {
        let status = self.top().status;
        (status.proof, status.proof_ids_ago, status.proof_age_us / 1000)
    }

    fn matches(&self) -> (u64, u64) {
        let counters = self.engine.counters().venue(self.venue);
        (counters.snapshot_matches, counters.snapshot_mismatches)
    }
}

/// Levels of so many tenths, best first for a bid.
fn bids(tenths: RangeInclusive<u64>, qty: u64) -> String {
    let mut text = String::new();
    for px in tenths.rev() {
        let comma = if text.is_empty() { "" } else { "," };
        write!(text, "{comma}[\"{}.{}\",\"{qty}\"]", px / 10, px % 10).unwrap();
    }
    text
}

#[test]
fn a_snapshot_at_the_same_id_raises_the_proof_and_its_age_grows() {
    let mut bench = Bench::live_spot();
    bench.compare();
    assert_eq!(bench.rest(110, WHOLE.0, WHOLE.1), bench.compared());
    assert_eq!((bench.snapshot_proof(), bench.matches()), ((Proof::Snapshot, Some(0), 0), (1, 0)));
    assert!(bench.top().status.proof.is_verified() && !bench.engine.is_comparing(bench.id));
    bench.now = bench.now.saturating_add(Nanos::from_secs(60));
    bench.spot(111, 114, "[\"9.9\",\"5\"]", "").unwrap();
    assert_eq!(bench.snapshot_proof(), (Proof::Snapshot, Some(4), 60_000));
    bench.now = bench.now.saturating_add(Nanos::from_secs(209));
    bench.spot(115, 115, "", "").unwrap();
    assert_eq!(bench.snapshot_proof(), (Proof::Sequence, Some(0), 0), "older than an age can say");
}

#[test]
fn a_digit_that_changed_on_the_way_is_found_by_the_comparison_and_not_before() {
    let mut bench = Bench::live_spot();
    bench.spot(111, 111, "[\"9.9\",\"2.001\"]", "").unwrap();
    bench.spot(112, 113, "[\"9.8\",\"4\"]", "").unwrap();
    assert_eq!(bench.top().status.proof, Proof::Sequence);
    bench.compare();
    let before = bench.rest(113, "[\"10.0\",\"1\"],[\"9.9\",\"2\"],[\"9.8\",\"4\"]", WHOLE.1);
    assert_eq!(before, Err(DropReason::SnapshotMismatch));
    assert_eq!((bench.top().status.proof, bench.matches()), (Proof::Stale, (0, 1)));
    let (side, px, instrument) = (BookSide::Bid, Price(99), bench.id);
    let found = Difference { instrument, update_id: 113, side, px, book_qty: Qty(2001), snapshot_qty: Qty(2000) };
    assert_eq!(bench.engine.poll_difference(), Some(found));
    assert_eq!(bench.engine.poll_difference(), None, "once");
    assert_eq!(bench.requests(), bench.fetch());
    bench.rest(113, WHOLE.0, WHOLE.1).unwrap();
    bench.spot(114, 114, "", "").unwrap();
    assert_eq!(bench.top().status.proof, Proof::Sequence, "the proof of the snapshot is gone with its book");
}

#[test]
fn a_level_that_one_of_both_lacks_is_a_difference() {
    for (bids, asks, side, px, book, snapshot) in [
        ("[\"10.0\",\"1\"]", WHOLE.1, BookSide::Bid, 99, 2000, 0),
        ("[\"10.0\",\"1\"],[\"9.9\",\"2\"],[\"9.0\",\"7\"]", WHOLE.1, BookSide::Bid, 90, 0, 7000),
        (WHOLE.0, "[\"10.1\",\"3\"],[\"10.4\",\"1\"]", BookSide::Ask, 104, 0, 1000),
        (WHOLE.0, "[\"10.2\",\"3\"]", BookSide::Ask, 101, 3000, 0),
    ] {
        let mut bench = Bench::live_spot();
        bench.compare();
        assert_eq!(bench.rest(110, bids, asks), Err(DropReason::SnapshotMismatch), "{bids} {asks}");
        let found = bench.engine.poll_difference().unwrap();
        let got = (found.side, found.px, found.book_qty, found.snapshot_qty);
        assert_eq!(got, (side, Price(px), Qty(book), Qty(snapshot)));
    }
}

#[test]
fn a_snapshot_ahead_of_the_book_waits_and_changes_after_it_do_not_count() {
    let mut bench = Bench::live_spot();
    bench.compare();
    // Of update 112; 9.7 came with it, 9.9 changes in 113 to 115.
    let ahead = "[\"10.0\",\"1\"],[\"9.9\",\"2\"],[\"9.7\",\"6\"]";
    assert_eq!(bench.rest(112, ahead, WHOLE.1), bench.buffered());
    bench.spot(111, 111, "", "").unwrap();
    assert_eq!(bench.top().status.proof, Proof::Sequence);
    bench.spot(112, 115, "[\"9.9\",\"8\"],[\"9.7\",\"6\"]", "").unwrap();
    assert_eq!((bench.snapshot_proof().0, bench.snapshot_proof().1), (Proof::Snapshot, Some(3)));

    let mut bench = Bench::live_spot();
    bench.compare();
    bench.rest(112, "[\"10.0\",\"4\"],[\"9.9\",\"2\"]", WHOLE.1).unwrap();
    let straddling = bench.spot(111, 115, "[\"9.9\",\"8\"]", "");
    assert_eq!(straddling, Err(DropReason::SnapshotMismatch), "10.0 did not change after the snapshot");
    assert_eq!(bench.engine.poll_difference().map(|found| found.px), Some(Price(100)));
    assert_eq!(bench.top().status.proof, Proof::Stale);
}

#[test]
fn changes_between_the_request_and_the_answer_are_known() {
    let mut bench = Bench::live_spot();
    bench.compare();
    bench.spot(111, 113, "[\"9.9\",\"8\"]", "").unwrap();
    bench.spot(114, 120, "[\"9.6\",\"1\"]", "[\"10.1\",\"0\"],[\"10.2\",\"5\"]").unwrap();
    // The venue took it at 113, before the last update.
    assert_eq!(bench.rest(113, "[\"10.0\",\"1\"],[\"9.9\",\"8\"]", WHOLE.1), bench.compared());
    assert_eq!(bench.snapshot_proof().1, Some(7));
}

#[test]
fn a_comparison_without_a_result_leaves_the_book_as_it_is() {
    let mut bench = Bench::live_spot();
    bench.compare();
    assert_eq!(bench.rest(109, WHOLE.0, WHOLE.1), Err(DropReason::SnapshotTooOld));
    assert!(!bench.engine.is_comparing(bench.id));
    bench.compare();
    assert_eq!(bench.rest(110, "[\"9.9\",\"1\"],[\"10.0\",\"2\"]", WHOLE.1), Err(DropReason::SnapshotOrder));
    bench.compare();
    assert!(bench.rest(110, "[\"9.9\"", WHOLE.1).is_err());
    assert!(!bench.engine.is_comparing(bench.id));
    bench.compare();
    bench.engine.snapshot_failed(bench.id, bench.now);
    assert!(!bench.engine.is_comparing(bench.id));
    bench.compare();
    // All that the snapshot names changed after it: nothing was compared.
    bench.spot(111, 111, "[\"10.0\",\"0\"],[\"9.9\",\"0\"],[\"9.8\",\"1\"]", "[\"10.1\",\"4\"]").unwrap();
    assert_eq!(bench.rest(110, WHOLE.0, WHOLE.1), bench.compared());
    assert_eq!((bench.top().status.proof, bench.matches()), (Proof::Sequence, (0, 0)));
    bench.compare();
    bench.engine.handle_timeout(bench.now.saturating_add(Nanos::from_secs(31)));
    assert!(!bench.engine.is_comparing(bench.id), "an answer that does not come");
    assert_eq!((bench.requests(), bench.top().update_id), (vec![], 111));
}

#[test]
fn a_comparison_ends_with_the_book() {
    let mut bench = Bench::live_spot();
    bench.compare();
    assert_eq!(bench.spot(120, 121, "", ""), bench.buffered(), "a gap");
    assert_eq!(bench.requests(), bench.fetch());
    assert!(bench.rest(119, WHOLE.0, WHOLE.1).is_ok());
    assert!(!bench.engine.is_comparing(bench.id));
    assert_eq!(bench.top().status.proof, Proof::Sequence);
}

#[test]
fn books_that_cannot_be_compared_are_refused() {
    let mut bench = Bench::new(Venue::BinanceSpot);
    assert_eq!(bench.engine.begin_comparison(bench.id, bench.now), Err(AddError::Closed), "syncing");
    for venue in Venue::ALL {
        let mut bench = Bench::new(venue);
        let comparable = [Venue::BinanceSpot, Venue::BinanceUsdm, Venue::BinanceCoinm, Venue::Okx].contains(&venue);
        let error = if comparable { AddError::Closed } else { AddError::BadInstrument };
        assert_eq!(bench.engine.begin_comparison(bench.id, bench.now), Err(error), "{venue:?}");
        assert_eq!(venue.rules().is_comparable(), comparable);
    }
    let mut bench = Bench::live_spot();
    bench.compare();
    assert_eq!(bench.engine.begin_comparison(bench.id, bench.now), Err(AddError::Full));
}

/// A book of 1,000 bids, 200.0 to 100.1, and one offer.
fn limited() -> Bench {
    let mut bench = Bench::new(Venue::BinanceSpot);
    assert_eq!(bench.requests(), bench.fetch());
    bench.spot(101, 110, "", "").unwrap();
    bench.rest(100, &bids(1001..=2000, 1), "[\"200.1\",\"3\"]").unwrap();
    assert_eq!(bench.top().status.proof, Proof::Sequence);
    bench
}

#[test]
fn a_snapshot_of_a_thousand_levels_limits_what_is_known() {
    let mut bench = limited();
    assert!(bench.top().status.is_limited && bench.engine.board().depth(bench.id).unwrap().status.is_limited);
    assert_eq!(bench.engine.known_range(bench.id), [Some(Price(1001)), None]);
    bench.spot(111, 111, "[\"100.0\",\"5\"]", "").unwrap();
    assert_eq!(bench.engine.known_range(bench.id), [Some(Price(1001)), None], "more levels, no more knowledge");
    // The best bid leaves what is known; the range says so.
    bench.spot(112, 112, &bids(1001..=2000, 0), "").unwrap();
    assert_eq!(bench.top().bid.map(|best| best.px), Some(Price(1000)));
    assert!(bench.top().status.is_limited && bench.engine.known_range(bench.id)[0] > Some(Price(1000)));

    let bench = Bench::live_spot();
    assert!(!bench.top().status.is_limited);
    assert_eq!(bench.engine.known_range(bench.id), [None, None]);
}

#[test]
fn a_comparison_widens_what_is_known() {
    let mut bench = limited();
    bench.spot(111, 111, &bids(1501..=2000, 0), "").unwrap();
    bench.spot(112, 112, "[\"90.0\",\"7\"],[\"80.0\",\"0\"]", "").unwrap();
    assert_eq!(bench.engine.levels_len(bench.id), Some((501, 1)));
    bench.compare();
    let named = format!("{},[\"90.0\",\"7\"],{}", bids(901..=1500, 1), bids(501..=899, 1));
    assert_eq!(bench.rest(112, &named, "[\"200.1\",\"3\"]"), bench.compared());
    assert_eq!(bench.engine.known_range(bench.id), [Some(Price(501)), None]);
    assert_eq!((bench.engine.levels_len(bench.id), bench.top().status.is_limited), (Some((1000, 1)), true));
    bench.compare();
    assert_eq!(bench.rest(112, &named, "[\"200.1\",\"3\"]"), bench.compared(), "what was added is right");

    // A level below the range that has changed since is known.
    let mut bench = limited();
    bench.spot(111, 111, &bids(1501..=2000, 0), "").unwrap();
    bench.spot(112, 112, "[\"90.0\",\"7\"]", "").unwrap();
    bench.compare();
    assert_eq!(bench.rest(112, &bids(501..=1500, 1), "[\"200.1\",\"3\"]"), Err(DropReason::SnapshotMismatch));
    assert_eq!(bench.engine.poll_difference().map(|found| found.px), Some(Price(900)));

    // A snapshot with all levels ends the limit.
    let mut bench = limited();
    bench.spot(111, 111, &bids(1501..=2000, 0), "").unwrap();
    bench.compare();
    assert_eq!(bench.rest(111, &bids(1001..=1500, 1), "[\"200.1\",\"3\"]"), bench.compared());
    assert!(!bench.top().status.is_limited);
    assert_eq!(bench.engine.known_range(bench.id), [None, None]);
}

#[test]
fn finer_steps_keep_what_is_known() {
    let mut bench = limited();
    bench.compare();
    bench.engine.refine(bench.id, Decimal::new(1, 2), Decimal::new(1, 3)).unwrap();
    assert_eq!(bench.engine.known_range(bench.id), [Some(Price(10_010)), None]);
    assert!(!bench.engine.is_comparing(bench.id));
}
