//! Connections that fall silent, drop again and again, or carry what is none of theirs, at every venue.

use crate::wire::{ASKS, BIDS, Rig};
use tt_market::DropReason;
use tt_market::candle::CandleSource;
use tt_market::{Applied, BookUpdate, Capacity, Engine, InstrumentSpec, Proof, Request};
use tt_meter::Off;
use tt_model::{Decimal, InstrumentId, Nanos};
use tt_venue::rules::JoinRule;
use tt_venue::{Symbol, Venue};

/// Another connection in the place of the one before, with the first book on it.
fn reconnect(rig: &mut Rig) {
    rig.connection = rig.engine.open_connection(rig.wire.venue, rig.now).unwrap();
    rig.engine.subscribe(rig.connection, rig.id, rig.now).unwrap();
    if rig.wire.venue == Venue::CoinbaseAdvanced {
        // Its numbers restart with each connection.
        rig.wire.id = 0;
    }
}

#[test]
fn case_m02_snapshots_that_stay_old_are_fetched_less_and_less_often() {
    for venue in [Venue::BinanceSpot, Venue::BinanceUsdm, Venue::BinanceCoinm] {
        let mut rig = Rig::new(venue);
        let fetch = rig.resync();
        assert_eq!(rig.requests(50), fetch);
        let old = rig.wire.whole(BIDS, ASKS, 0);
        rig.wire.id = 300;
        assert_eq!(rig.delta(BIDS, ASKS), Ok(Applied::Book { instrument: rig.id, update: BookUpdate::Buffered }));
        let mut waits = Vec::new();
        for _ in 0..6 {
            let taken = rig.engine.handle_snapshot(rig.now, rig.id, old.as_bytes(), &mut Off);
            assert_eq!(taken, Err(DropReason::SnapshotTooOld), "{venue:?}");
            assert_eq!((rig.touch(), rig.proof()), ([None, None], Proof::Syncing), "{venue:?}");
            let since = rig.now;
            while rig.requests(10).is_empty() {}
            waits.push(rig.now.saturating_sub(since).0);
        }
        assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]) && waits[5] > 8 * waits[0], "{venue:?} {waits:?}");
        rig.answer();
        assert_eq!((rig.proof(), rig.counters().resyncs), (Proof::Sequence, 0), "{venue:?}");
    }
}

#[test]
fn case_m04_binance_futures_begin_over_the_snapshot_or_not_at_all() {
    for venue in [Venue::BinanceUsdm, Venue::BinanceCoinm] {
        // The first update after the snapshot neither includes it nor follows it.
        let mut rig = Rig::new(venue);
        rig.requests(50);
        let body = rig.wire.whole(BIDS, ASKS, 0);
        rig.engine.handle_snapshot(rig.now, rig.id, body.as_bytes(), &mut Off).unwrap();
        assert_eq!(rig.proof(), Proof::Syncing, "{venue:?}");
        rig.wire.id += 9;
        let _ = rig.delta(BIDS, ASKS);
        assert_eq!((rig.proof(), rig.counters().gaps), (Proof::Syncing, 1), "{venue:?}");
        assert_eq!(rig.requests(5000), rig.resync(), "{venue:?}: once");
        rig.answer();
        assert_eq!(rig.proof(), Proof::Sequence, "{venue:?}");
        // Later, `pu` alone decides: not the number that an update begins with.
        let id = rig.wire.id;
        rig.wire.id = id + 7;
        let frame = rig.wire.frame(false, [&[], &[]], id, 0);
        rig.frame(&frame).unwrap();
        rig.wire.id += 1;
        let frame = rig.wire.frame(false, [&[], &[]], id + 6, 0);
        let _ = rig.frame(&frame);
        rig.is_lost_and_found("pu");
    }
}

#[test]
fn case_m29_at_any_venue_silence_ends_at_its_deadline_and_not_before() {
    for venue in Venue::ALL {
        let mut rig = Rig::live(venue);
        // The last sign of life of the connection.
        rig.delta(&[], &[]).unwrap();
        let deadline = rig.now.saturating_add(venue.rules().silence_max);
        rig.engine.handle_timeout(deadline);
        assert_eq!((rig.proof(), rig.engine.poll_request(deadline)), (rig.best_proof(), None), "{venue:?}");
        let after = deadline.saturating_add(Nanos(1));
        rig.engine.handle_timeout(after);
        assert_eq!(rig.proof(), Proof::Stale, "{venue:?}");
        let asked = rig.engine.poll_request(after);
        assert_eq!(asked, Some(Request::Reconnect { connection: rig.connection }), "{venue:?}");
        assert_eq!(rig.engine.poll_request(after), None, "{venue:?}: once");
        // A connection that is open by half may still bring something: too late.
        rig.now = after;
        assert_eq!(rig.delta(&[], &[]), Err(DropReason::OldConnection), "{venue:?}");
        assert_eq!(rig.proof(), Proof::Stale, "{venue:?}");
        reconnect(&mut rig);
        rig.requests(50);
        rig.answer();
        assert_eq!(rig.proof(), rig.best_proof(), "{venue:?}");
    }
}

#[test]
fn case_m30_fifty_drops_a_minute_leave_nothing_of_the_old_connection() {
    for venue in Venue::ALL {
        let mut rig = Rig::live(venue);
        for drop in 1..=50 {
            let (old, before) = (rig.connection, rig.levels());
            rig.engine.close_connection(old, rig.now);
            assert_eq!(rig.proof(), Proof::Stale, "{venue:?}");
            rig.now = rig.now.saturating_add(Nanos::from_millis(1200));
            // What the old one still had to say, before and after there is a new one.
            let mut late = rig.wire.clone();
            let frames = [late.delta(&[("10.0", "9.000")], &[]), late.snapshot()];
            assert_eq!(rig.frame(&frames[0]), Err(DropReason::OldConnection), "{venue:?}");
            reconnect(&mut rig);
            let new = std::mem::replace(&mut rig.connection, old);
            for frame in &frames {
                assert_eq!(rig.frame(frame), Err(DropReason::OldConnection), "{venue:?}");
            }
            rig.connection = new;
            assert_eq!((rig.proof(), rig.levels()), (Proof::Syncing, before), "{venue:?}");
            assert_eq!(rig.counters().dropped(DropReason::OldConnection), 3 * drop, "{venue:?}");
            // The subscription brings the book, or it is fetched: once.
            let asked = rig.requests(1000);
            let by_rest = matches!(venue.rules().join, JoinRule::Rest(_));
            assert_eq!(asked, if by_rest { rig.resync() } else { vec![] }, "{venue:?}");
            rig.answer();
            assert_eq!(rig.proof(), rig.best_proof(), "{venue:?}");
        }
        assert_eq!(rig.counters().resyncs, 0, "{venue:?}: a new connection is no resync");
    }
}

#[test]
fn case_m32_two_long_symbols_that_begin_alike_are_two_books() {
    let venue = Venue::BinanceSpot;
    let symbols = ["XRP_USDC-30JUN23-0d625-C".to_owned(), "XRP_USDC-30JUN23-0d625-P".to_owned(), "\u{5e01}".repeat(21)];
    let mut engine = Engine::new(Capacity { instruments: 3, ..Capacity::default() });
    let now = Nanos::from_millis(1_700_000_000_000);
    let connection = engine.open_connection(venue, now).unwrap();
    for symbol in &symbols {
        let spec = InstrumentSpec {
            venue,
            symbol: Symbol::new(symbol.as_bytes()).unwrap(),
            tick_size: Decimal::new(1, 1),
            lot_size: Decimal::new(1, 3),
            depth_max: None,
            candles: CandleSource::Trades,
        };
        let id = engine.add_instrument(spec).unwrap();
        engine.subscribe(connection, id, now).unwrap();
    }
    while engine.poll_request(now).is_some() {}
    for (index, symbol) in symbols.iter().enumerate() {
        let frame = format!(
            r#"{{"e":"depthUpdate","E":1700000000000,"s":"{symbol}","U":8,"u":8,"b":[["1{index}.0","2"]],"a":[]}}"#
        );
        engine.handle_frame(now, connection, frame.as_bytes(), &mut Off).unwrap();
        let body = br#"{"lastUpdateId":7,"bids":[["9.0","1"]],"asks":[["20.0","3"]]}"#;
        engine.handle_snapshot(now, InstrumentId(index as u32), body, &mut Off).unwrap();
    }
    for index in 0..3 {
        let top = engine.board().top_of_book(InstrumentId(index)).unwrap();
        assert_eq!((top.bid.unwrap().px.0, top.status.proof), (100 + 10 * i64::from(index), Proof::Sequence));
    }
}

#[test]
fn case_m32_at_any_venue_symbols_of_any_length_and_script_cost_no_other_book() {
    for venue in Venue::ALL {
        let mut rig = Rig::live(venue);
        let (levels, mut other) = (rig.levels(), rig.wire.clone());
        let symbols = [
            "XRP_USDC-30JUN23-0d625-C",
            "BTCUSDT-AND-A-TAIL-THAT-NO-VENUE-HAS-TODAY-BUT-ANY-MAY-HAVE-TOMORROW",
            "\u{5e01}\u{5b89}\u{4eba}\u{751f}USDT",
        ];
        for symbol in symbols {
            other.symbol = symbol;
            let frame = other.delta(&[("10.0", "9.000")], &[]);
            assert_eq!(rig.frame(&frame), Err(DropReason::UnknownSymbol), "{venue:?} {symbol}");
        }
        assert_eq!((rig.levels(), rig.proof(), rig.requests(5000)), (levels, rig.best_proof(), vec![]), "{venue:?}");
    }
}

#[test]
fn case_m32_at_any_venue_symbols_that_are_not_followed_are_counted_drops() {
    for venue in Venue::ALL {
        let mut rig = Rig::live(venue);
        let (levels, mut other) = (rig.levels(), rig.wire.clone());
        other.symbol = "XRPUSDT";
        let frame = other.delta(&[("10.0", "9.000")], &[]);
        assert_eq!(rig.frame(&frame), Err(DropReason::UnknownSymbol), "{venue:?}");
        assert_eq!(rig.counters().dropped(DropReason::UnknownSymbol), 1, "{venue:?}");
        // One that is followed on another connection.
        let second = rig.engine.open_connection(venue, rig.now).unwrap();
        rig.engine.subscribe(second, InstrumentId(1), rig.now).unwrap();
        other.symbol = "ETHUSDT";
        let frame = other.delta(&[("10.0", "9.000")], &[]);
        assert_eq!(rig.frame(&frame), Err(DropReason::ForeignConnection), "{venue:?}");
        assert_eq!(rig.counters().dropped(DropReason::ForeignConnection), 1, "{venue:?}");
        let ethers = rig.engine.board().top_of_book(InstrumentId(1)).unwrap();
        assert_eq!((ethers.bid, ethers.status.proof), (None, Proof::Syncing), "{venue:?}");
        assert_eq!((rig.levels(), rig.proof(), rig.requests(5000)), (levels, rig.best_proof(), vec![]), "{venue:?}");
    }
}
