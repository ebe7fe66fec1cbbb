//! Books that are crossed, locked, cut, empty on one side, out of order, or counted in other steps.

use crate::wire::{self, ASKS, BIDS, Levels, MS, Rig};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tt_market::DropReason;
use tt_market::Proof;
use tt_meter::Off;
use tt_model::{Decimal, Nanos};
use tt_venue::Venue;
use tt_venue::rules::JoinRule;

/// Prices with one decimal from `first` on, in steps of a tenth.
fn prices(first: i32, step: i32, count: i32) -> Vec<String> {
    (0..count).map(|i| first + i * step).map(|px| format!("{}.{}", px / 10, px % 10)).collect()
}

fn of_one(prices: &[String]) -> Vec<(&str, &str)> {
    prices.iter().map(|px| (px.as_str(), "1.000")).collect()
}

#[test]
fn case_m14_a_level_pushed_beyond_the_depth_is_dropped() {
    for venue in Venue::ALL.into_iter().filter(|venue| venue.rules().truncates) {
        let (bids, asks) = (prices(1000, -1, 25), prices(1002, 1, 25));
        let (bids, asks) = (of_one(&bids), of_one(&asks));
        let mut rig = Rig::joined(venue, &bids, &asks);
        rig.delta(&[("100.1", "2.000")], &[]).unwrap();
        assert_eq!(rig.engine.levels_len(rig.id), Some((25, 25)), "{venue:?}");
        // The better ones go: what was pushed out does not come back by itself.
        rig.delta(&[("100.1", "0.000"), ("100.0", "0.000")], &[("100.2", "0.000")]).unwrap();
        assert_eq!(rig.engine.levels_len(rig.id), Some((23, 24)), "{venue:?}");
        // One message may push out more than one, and the same one that it brings.
        let many = prices(1050, -1, 40);
        rig.delta(&of_one(&many), &[("90.0", "1.000")]).unwrap();
        assert_eq!(rig.engine.levels_len(rig.id).map(|len| len.0), Some(25), "{venue:?}");
        let best = rig.levels()[0].iter().map(|level| level.0).collect::<Vec<_>>();
        assert_eq!(best, (0..10).map(|rank| 1050 - rank).collect::<Vec<_>>(), "{venue:?}");
    }
}

#[test]
fn case_m15_at_any_venue_a_crossed_book_is_flagged_and_given_up_after_half_a_second() {
    for venue in Venue::ALL {
        let mut rig = Rig::live(venue);
        rig.delta(&[("10.5", "1.000")], &[]).unwrap();
        assert!(rig.top().status.is_crossed && !rig.top().status.is_locked, "{venue:?}");
        assert_eq!(rig.counters().crossed, 1, "{venue:?}");
        let crossed_at = rig.now;
        rig.engine.handle_timeout(crossed_at.saturating_add(Nanos::from_millis(500)));
        assert_eq!((rig.proof(), rig.requests(400)), (rig.best_proof(), vec![]), "{venue:?}: not before its time");
        rig.engine.handle_timeout(crossed_at.saturating_add(Nanos::from_millis(501)));
        assert_eq!(rig.proof(), Proof::Stale, "{venue:?}");
        assert_eq!(rig.requests(5000), rig.resync(), "{venue:?}");
        rig.delta(&[("10.5", "0.000")], &[]).ok();
        rig.answer();
        assert_eq!((rig.proof(), rig.top().status.is_crossed), (rig.best_proof(), false), "{venue:?}");
        // One that uncrosses itself in time is left alone.
        rig.delta(&[("10.5", "1.000")], &[]).unwrap();
        rig.delta(&[("10.5", "0.000")], &[]).unwrap();
        rig.now = rig.now.saturating_add(Nanos::from_secs(2));
        rig.engine.handle_timeout(rig.now);
        assert_eq!((rig.proof(), rig.requests(5000)), (rig.best_proof(), vec![]), "{venue:?}");
    }
}

/// The touch jumps by more than the spread in each message: after its bids alone the book is crossed.
#[test]
fn case_m15_what_is_crossed_within_a_message_is_never_seen() {
    const UP: [Levels<'_>; 2] = [&[("11.0", "1.000")], &[("10.1", "0.000"), ("10.2", "0.000"), ("11.1", "3.000")]];
    const DOWN: [Levels<'_>; 2] = [&[("11.0", "0.000")], &[("11.1", "0.000"), ("10.1", "3.000"), ("10.2", "4.500")]];
    let mut rig = Rig::live(Venue::BinanceSpot);
    let (board, id, has_ended) = (rig.engine.board(), rig.id, AtomicBool::new(false));
    let seen = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = [0_u32; 2];
            while !has_ended.load(Ordering::Relaxed) {
                let top = board.top_of_book(id).unwrap();
                let (bid, ask) = (top.bid.unwrap().px.0, top.ask.unwrap().px.0);
                assert!(bid < ask && !top.status.is_crossed, "{bid} {ask}");
                seen[usize::from(bid == 110)] += 1;
                let depth = board.depth(id).unwrap();
                assert!(depth.bids()[0].px < depth.asks()[0].px);
            }
            seen
        });
        for _ in 0..20_000 {
            for [bids, asks] in [UP, DOWN] {
                rig.delta(bids, asks).unwrap();
            }
        }
        has_ended.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    });
    assert_eq!((rig.counters().crossed, rig.counters().deltas), (0, 40_001));
    assert!(seen.iter().sum::<u32>() > 0, "{seen:?}");
}

#[test]
fn case_m16_a_locked_book_is_flagged_and_judged_by_the_venues_rule() {
    for venue in Venue::ALL {
        let mut rig = Rig::live(venue);
        rig.delta(&[("10.1", "1.000")], &[]).unwrap();
        let status = rig.top().status;
        assert!(status.is_locked && !status.is_crossed && status.proof == rig.best_proof(), "{venue:?}");
        assert_eq!(rig.counters().crossed, 0, "{venue:?}");
        let locked_at = rig.now;
        rig.engine.handle_timeout(locked_at.saturating_add(Nanos::from_millis(501)));
        if venue.rules().may_lock {
            assert_eq!((rig.proof(), rig.requests(5000)), (rig.best_proof(), vec![]), "{venue:?}: an auction may last");
            rig.delta(&[("10.1", "0.000")], &[]).unwrap();
        } else {
            assert_eq!((rig.proof(), rig.requests(5000)), (Proof::Stale, rig.resync()), "{venue:?}");
            rig.delta(&[("10.1", "0.000")], &[]).ok();
            rig.answer();
        }
        assert_eq!((rig.top().status.is_locked, rig.proof()), (false, rig.best_proof()), "{venue:?}");
    }
    assert!(Venue::ALL.into_iter().any(|venue| venue.rules().may_lock), "there are venues with auctions");
    assert!(Venue::ALL.into_iter().any(|venue| !venue.rules().may_lock), "and without");
}

#[test]
fn case_m36_a_snapshot_out_of_order_is_refused_at_any_venue() {
    let wrong: [[Levels<'_>; 2]; 5] = [
        [&[("9.9", "1.000"), ("10.0", "1.000")], ASKS],
        [&[("10.0", "1.000"), ("10.0", "1.000")], ASKS],
        [BIDS, &[("10.2", "1.000"), ("10.1", "1.000")]],
        [BIDS, &[("10.1", "1.000"), ("10.2", "1.000"), ("10.2", "2.000")]],
        [&[("10.0", "0.000"), ("9.9", "1.000")], ASKS],
    ];
    for venue in Venue::ALL {
        for [bids, asks] in wrong {
            let mut rig = Rig::new(venue);
            rig.requests(50);
            rig.wire.delta(BIDS, ASKS);
            rig.wire.id += u64::from(venue == Venue::CoinbaseAdvanced);
            // Right by its checksum: only the order is wrong.
            let body = rig.wire.whole(bids, asks, rig.wire.checksum());
            let taken = if matches!(venue.rules().join, JoinRule::Rest(_)) {
                rig.engine.handle_snapshot(rig.now, rig.id, body.as_bytes(), &mut Off)
            } else {
                rig.frame(&body)
            };
            assert_eq!(taken, Err(DropReason::SnapshotOrder), "{venue:?} {bids:?} {asks:?}");
            assert_eq!((rig.touch(), rig.proof().is_verified()), ([None, None], false), "{venue:?}");
            rig.now = rig.now.saturating_add(Nanos::from_secs(1));
            rig.requests(2000);
            rig.answer();
            assert_eq!((rig.touch()[0], rig.proof()), (Some((100, 1000)), rig.best_proof()), "{venue:?}");
        }
    }
}

#[test]
fn case_m37_a_side_without_levels_has_no_price() {
    for venue in Venue::ALL {
        for (bids, asks, touch) in [
            (BIDS, &[][..], [Some((100, 1000)), None]),
            (&[][..], ASKS, [None, Some((101, 3000))]),
            (&[][..], &[][..], [None, None]),
        ] {
            let mut rig = Rig::joined(venue, bids, asks);
            assert_eq!(rig.touch(), touch, "{venue:?}: from the snapshot on");
            let levels = rig.levels();
            assert_eq!([levels[0].is_empty(), levels[1].is_empty()], touch.map(|level| level.is_none()), "{venue:?}");
            let status = rig.top().status;
            assert!(!status.is_crossed && !status.is_locked, "{venue:?}");
            // The sides fill and empty by updates.
            rig.delta(BIDS, ASKS).unwrap();
            assert_eq!(rig.touch(), [Some((100, 1000)), Some((101, 3000))], "{venue:?}");
            rig.delta(&[("10.0", "0.000"), ("9.9", "0.000")], &[]).unwrap();
            assert_eq!((rig.touch(), rig.proof()), ([None, Some((101, 3000))], rig.best_proof()), "{venue:?}");
            rig.delta(&[], &[("10.1", "0.000"), ("10.2", "0.000")]).unwrap();
            assert_eq!((rig.touch(), rig.proof()), ([None, None], rig.best_proof()), "{venue:?}");
        }
    }
}

/// Where a venue's ticker has a side without an offer: null, zero, an empty text.
#[test]
fn case_m37_a_ticker_without_a_side_has_no_price_there() {
    let deribit = |bid: &str, ask: &str| {
        let levels = format!(
            "\"best_bid_price\":{bid},\"best_bid_amount\":1.000,\"best_ask_price\":{ask},\"best_ask_amount\":2.000"
        );
        let data = format!("{{\"timestamp\":{MS},\"instrument_name\":\"{}\",{levels}}}", wire::SYMBOL);
        let topic = format!("\"channel\":\"quote.{}\"", wire::SYMBOL);
        format!("{{\"jsonrpc\":\"2.0\",\"method\":\"subscription\",\"params\":{{{topic},\"data\":{data}}}}}")
    };
    let hyperliquid = |bid: &str, ask: &str| {
        format!(
            "{{\"channel\":\"bbo\",\"data\":{{\"coin\":\"{}\",\"time\":{MS},\"bbo\":[{bid},{ask}]}}}}",
            wire::SYMBOL
        )
    };
    let spot = |bid: &str, ask: &str| {
        format!(
            "{{\"u\":400900217,\"s\":\"{}\",\"b\":\"{bid}\",\"B\":\"{}\",\"a\":\"{ask}\",\"A\":\"{}\"}}",
            wire::SYMBOL,
            if bid == "10.0" { "1.000" } else { "0.000" },
            if ask == "10.1" { "2.000" } else { "0.000" }
        )
    };
    let level = |px: &str, qty: &str| format!("{{\"px\":\"{px}\",\"sz\":\"{qty}\",\"n\":1}}");
    let cases = [
        (Venue::Deribit, deribit("10.0", "null"), [true, false]),
        (Venue::Deribit, deribit("0.0", "10.1"), [false, true]),
        (Venue::Hyperliquid, hyperliquid(&level("10.0", "1.000"), "null"), [true, false]),
        (Venue::Hyperliquid, hyperliquid("null", &level("10.1", "2.000")), [false, true]),
        (Venue::BinanceSpot, spot("10.0", "0.0"), [true, false]),
        (Venue::BinanceSpot, spot("0.0", "10.1"), [false, true]),
    ];
    for (venue, frame, sides) in cases {
        let mut rig = Rig::new(venue);
        rig.frame(&frame).unwrap();
        let ticker = rig.engine.board().ticker(rig.id).unwrap();
        assert_eq!([ticker.bid.is_some(), ticker.ask.is_some()], sides, "{frame}");
    }
}

#[test]
fn case_m46_a_finer_tick_size_makes_stale_until_the_steps_are_known() {
    for venue in Venue::ALL {
        let mut rig = Rig::live(venue);
        assert_eq!(rig.delta(&[("10.05", "1.000")], &[]), Err(DropReason::OffTickSize), "{venue:?}");
        assert_eq!((rig.proof(), rig.counters().resyncs), (Proof::Stale, 1), "{venue:?}: never rounded");
        assert_eq!(rig.requests(5000), rig.resync(), "{venue:?}: once");
        // The venue's list has the new size.
        rig.engine.refine(rig.id, Decimal::new(1, 2), Decimal::new(1, 3)).unwrap();
        assert_eq!(rig.proof(), Proof::Stale, "{venue:?}");
        let mut fresh = wire::Wire::new(venue);
        fresh.id = rig.wire.id;
        fresh.delta(&[("10.00", "1.000"), ("9.95", "2.000")], &[("10.10", "3.000")]);
        rig.wire = fresh;
        rig.answer();
        assert_eq!(
            (rig.proof(), rig.touch()),
            (rig.best_proof(), [Some((1000, 1000)), Some((1010, 3000))]),
            "{venue:?}"
        );
        assert_eq!(rig.levels()[0], [(1000, 1000), (995, 2000)], "{venue:?}");
    }
    // A coarser size needs nothing: its prices are still whole steps.
    let mut rig = Rig::live(Venue::BybitLinear);
    rig.delta(&[("5.0", "1.000")], &[]).unwrap();
    // Bybit announces a new size by a book whose numbers restart: an epoch, and nothing of before it is left.
    rig.wire = wire::Wire::new(Venue::BybitLinear);
    rig.wire.id = 0;
    rig.wire.delta(&[("20.0", "1.000")], &[("25.0", "1.000")]);
    let whole = {
        rig.wire.id = 0;
        rig.wire.snapshot()
    };
    rig.frame(&whole).unwrap();
    assert_eq!((rig.counters().epochs, rig.levels()), (1, [vec![(200, 1000)], vec![(250, 1000)]]));
}
