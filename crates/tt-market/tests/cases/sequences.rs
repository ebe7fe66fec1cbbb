//! Updates that are missing, doubled, swapped or empty, at every venue that sends updates.

use crate::wire::{self, ASKS, BIDS, Rig};
use tt_market::DropReason;
use tt_market::Proof;
use tt_venue::Venue;

#[test]
fn case_m01_no_venue_shows_a_delta_before_its_snapshot() {
    for venue in wire::with_deltas() {
        let mut rig = Rig::new(venue);
        rig.requests(50);
        let _ = rig.delta(BIDS, ASKS);
        let _ = rig.delta(&[("9.8", "1.000")], &[]);
        assert_eq!((rig.touch(), rig.proof()), ([None, None], Proof::Syncing), "{venue:?}");
        assert_eq!(rig.engine.levels_len(rig.id), Some((0, 0)), "{venue:?}");
        rig.answer();
        assert_eq!((rig.touch(), rig.proof()), ([Some((100, 1000)), Some((101, 3000))], rig.best_proof()), "{venue:?}");
    }
}

#[test]
fn case_m05_a_gap_at_any_venue_is_stale_at_once_and_asks_once() {
    for venue in wire::numbered() {
        let mut rig = Rig::live(venue);
        rig.wire.delta(&[("9.8", "1.000")], &[]);
        let _ = rig.delta(&[], &[("10.3", "1.000")]);
        assert_eq!(rig.counters().gaps, 1, "{venue:?}");
        rig.is_lost_and_found("gap");
        assert_eq!((rig.counters().gaps, rig.counters().resyncs), (1, 1), "{venue:?}");
        assert_eq!(rig.requests(20_000), [], "{venue:?}: exactly one");
        assert_eq!(
            rig.levels(),
            [vec![(100, 1000), (99, 2000), (98, 1000)], vec![(101, 3000), (102, 4500), (103, 1000)]]
        );
    }
}

#[test]
fn case_m06_a_doubled_delta_at_any_venue_changes_nothing() {
    for venue in wire::with_deltas() {
        let mut rig = Rig::live(venue);
        let frame = rig.wire.delta(&[("10.0", "7.000")], &[("10.1", "0.000")]);
        rig.frame(&frame).unwrap();
        let before = (rig.levels(), rig.top().update_id, rig.proof());
        let again = rig.frame(&frame);
        if wire::numbered().any(|numbered| numbered == venue) {
            assert_eq!(
                (again, rig.counters().dropped(DropReason::Duplicate)),
                (Err(DropReason::Duplicate), 1),
                "{venue:?}"
            );
            assert_eq!(rig.top().update_id, before.1, "{venue:?}");
        } else {
            assert!(again.is_ok(), "{venue:?}: setting a level twice is what it was");
        }
        assert_eq!((rig.levels(), rig.proof()), (before.0, before.2), "{venue:?}");
        assert_eq!((rig.requests(5000), rig.counters().resyncs), (vec![], 0), "{venue:?}");
    }
}

#[test]
fn case_m07_neighbours_in_the_wrong_order_are_a_gap() {
    let proved = wire::numbered().chain([Venue::Kraken, Venue::KrakenDerivatives]);
    for venue in proved {
        let mut rig = Rig::live(venue);
        let one = rig.wire.delta(&[("9.8", "1.000")], &[]);
        let two = rig.wire.delta(&[("9.7", "2.000")], &[]);
        let _ = rig.frame(&two);
        assert_eq!(rig.proof(), Proof::Stale, "{venue:?}: before the next read");
        let _ = rig.frame(&one);
        let (gaps, wrong) = (rig.counters().gaps, rig.counters().dropped(DropReason::ChecksumMismatch));
        assert_eq!((gaps + wrong, rig.counters().resyncs), (1, 1), "{venue:?}");
        rig.is_lost_and_found("swap");
        assert_eq!(rig.levels()[0], [(100, 1000), (99, 2000), (98, 1000), (97, 2000)], "{venue:?}");
    }
}

#[test]
fn case_m10_an_empty_delta_of_any_venue_moves_the_id_alone() {
    for venue in wire::with_deltas() {
        let mut rig = Rig::live(venue);
        let (levels, id) = (rig.levels(), rig.top().update_id);
        for moved in 1..=3 {
            rig.delta(&[], &[]).unwrap();
            assert_eq!((rig.levels(), rig.top().update_id), (levels.clone(), id + moved), "{venue:?}");
            assert_eq!(rig.proof(), rig.best_proof(), "{venue:?}");
        }
    }
}

#[test]
fn case_m11_a_checksum_that_does_not_fit_is_stale_within_its_message() {
    let has_one = |venue: &Venue| !venue.rules().checksum.is_none();
    for venue in Venue::ALL.into_iter().filter(has_one) {
        for flipped in [1, 1 << 31] {
            let mut rig = Rig::new(venue);
            rig.wire.sends_checksums = true;
            rig.join(BIDS, ASKS);
            let changes = [("10.0", "5.000")];
            rig.wire.delta(&changes, &[]);
            let wrong = rig.wire.frame(false, [&changes, &[]], rig.wire.id - 1, rig.wire.checksum() ^ flipped);
            assert_eq!(rig.frame(&wrong), Err(DropReason::ChecksumMismatch), "{venue:?}");
            assert_eq!((rig.counters().crc_mismatches, rig.counters().resyncs), (1, 1), "{venue:?}");
            rig.is_lost_and_found("checksum");
            assert_eq!(rig.requests(20_000), [], "{venue:?}: exactly one");
        }
    }
}

#[test]
fn case_m17_removing_what_is_not_there_changes_nothing() {
    for venue in wire::with_deltas() {
        let mut rig = Rig::live(venue);
        let levels = rig.levels();
        // Between the levels, beyond them, far outside of any window, and on the other side's prices.
        let absent = [("9.8", "0.000"), ("10.1", "0.000"), ("0.1", "0.000"), ("99999999.9", "0.000")];
        rig.delta(&absent, &[("10.0", "0.000"), ("10.3", "0.000"), ("0.1", "0.000")]).unwrap();
        assert_eq!((rig.levels(), rig.engine.levels_len(rig.id)), (levels, Some((2, 2))), "{venue:?}");
        assert_eq!((rig.proof(), rig.requests(5000)), (rig.best_proof(), vec![]), "{venue:?}");
        // The same on a side without levels.
        let mut rig = Rig::joined(venue, &[], ASKS);
        rig.delta(&absent, &[]).unwrap();
        assert_eq!((rig.touch(), rig.proof()), ([None, Some((101, 3000))], rig.best_proof()), "{venue:?}");
    }
}
