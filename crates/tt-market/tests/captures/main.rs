//! The engine on captured frames, against the proofs that the venues themselves sent.
//! Each proof is shown to notice what it can in `mutations`.

#![allow(clippy::unwrap_used, reason = "a test's way to fail, in its helpers too")]

mod account;
mod captured;
mod chained;
mod detectors;
mod expected;
mod fixtures;
mod mutations;
mod oracles;
mod parsers;
mod random;
mod truth;
mod unproved;
mod whole_books;

use captured::{Capture, Feed};
use tt_market::DropReason;
use tt_market::Proof;

#[test]
fn usdm_book_agrees_with_every_ticker_of_its_update_ids() {
    let Some(capture) = Capture::require_usdm() else { return };
    let mut feed = Feed::new(&capture);
    feed.run(&capture.frames);
    let counters = *feed.counters();
    assert_eq!(counters.oracle_matches, 629);
    assert_eq!(counters.dropped(DropReason::OracleMismatch), 0);
    assert_eq!((counters.gaps, counters.resyncs, counters.crossed), (0, 0, 0));
    assert_eq!(counters.general, 0, "the scanner reads every captured frame");
    assert!(counters.closes());
    assert_eq!(counters.kept, counters.replayed + counters.superseded + counters.discarded);
    assert!(feed.top().status.proof.is_verified());
}

#[test]
fn spot_book_agrees_with_every_ticker_of_its_update_ids() {
    let Some(capture) = Capture::require_spot() else { return };
    let mut feed = Feed::new(&capture);
    feed.run(&capture.frames);
    let counters = *feed.counters();
    assert_eq!(counters.oracle_matches, 1072);
    assert_eq!(counters.dropped(DropReason::OracleMismatch), 0);
    assert_eq!((counters.gaps, counters.resyncs, counters.crossed), (0, 0, 0));
    assert_eq!(counters.deltas, 6493, "depth frames that the snapshot does not hold already");
    assert!(counters.closes());
}

#[test]
fn coinm_book_agrees_with_every_ticker_of_its_update_ids() {
    let Some(capture) = Capture::require_coinm() else { return };
    let mut feed = Feed::new(&capture);
    feed.run(&capture.frames);
    let counters = *feed.counters();
    assert_eq!(counters.oracle_matches, 1124);
    assert_eq!(counters.dropped(DropReason::OracleMismatch), 0);
    assert_eq!((counters.gaps, counters.resyncs, counters.crossed), (0, 0, 0));
    assert_eq!(counters.general, 0, "the scanner reads every captured frame");
    assert!(counters.closes());
}

#[test]
fn kraken_checksums_match_on_every_frame() {
    // The shorter capture subscribes and unsubscribes several times; only those answers and the status are not scanned.
    for (depth, expected, other) in [(25, 2052, 2), (10, 301, 16)] {
        let Some(capture) = Capture::require_kraken(depth) else { return };
        let mut feed = Feed::new(&capture);
        feed.run(&capture.frames);
        let counters = *feed.counters();
        assert_eq!(counters.crc_matches, expected);
        assert_eq!(counters.drops_total(), 0);
        assert_eq!(counters.general, other, "every frame of a book is scanned");
        assert_eq!(feed.top().status.proof, Proof::Crc);
        assert!(counters.closes());
    }
}

#[test]
fn okx_checksums_match_on_every_book() {
    let Some(capture) = Capture::require_okx() else { return };
    let mut feed = Feed::new(&capture);
    feed.run(&capture.frames);
    let counters = *feed.counters();
    assert_eq!((counters.crc_matches, counters.crc_mismatches), (290, 0));
    assert_eq!((counters.snapshots, counters.deltas), (3, 287));
    assert_eq!((counters.tickers, counters.trades, counters.controls), (28, 74, 18));
    assert_eq!(counters.general, 18, "only answers are not scanned");
    assert_eq!((counters.drops_total(), counters.gaps, counters.epochs), (0, 0, 0));
    assert_eq!(feed.top().status.proof, Proof::Crc);
    assert!(counters.closes());
}

#[test]
fn deribit_changes_chain() {
    let Some(capture) = Capture::require_deribit() else { return };
    let mut feed = Feed::new(&capture);
    feed.run(&capture.frames);
    let counters = *feed.counters();
    assert_eq!((counters.sequence_matches, counters.snapshots, counters.deltas), (36, 10, 36));
    assert_eq!((counters.tickers, counters.controls), (89, 1));
    assert_eq!(counters.general, 1, "only the answer is not scanned");
    assert_eq!((counters.drops_total(), counters.gaps, counters.crossed), (0, 0, 0));
    assert_eq!(feed.top().status.proof, Proof::Sequence);
    assert!(counters.closes());
}

#[test]
fn bybit_updates_follow_each_other() {
    let Some(capture) = Capture::require_bybit() else { return };
    let mut feed = Feed::new(&capture);
    feed.run(&capture.frames);
    let counters = *feed.counters();
    assert_eq!((counters.sequence_matches, counters.snapshots, counters.deltas), (49, 1, 49));
    assert_eq!((counters.general, counters.drops_total(), counters.gaps, counters.crossed), (0, 0, 0, 0));
    assert_eq!(feed.engine.levels_len(feed.id), Some((500, 500)), "the venue keeps to its depth by itself");
    assert_eq!(feed.top().status.proof, Proof::Sequence);
    assert!(counters.closes());
}
