//! Numbers, identifiers and times that are none, too long, or in other units, at every venue.

use crate::wire::{self, ASKS, BIDS, Levels, MS, Rig};
use tt_market::DropReason;
use tt_market::Proof;
use tt_model::{Decimal, Nanos};
use tt_venue::Venue;
use tt_venue::rules::Numbering;

/// Refused, `Stale`, and one new book is asked for.
fn is_refused(venue: Venue, bids: Levels<'_>, faults: &[DropReason], what: &str) {
    let mut rig = Rig::live(venue);
    rig.wire.id += 1;
    let is_whole = venue.rules().join == tt_venue::rules::JoinRule::Whole;
    let frame = rig.wire.frame(is_whole, [bids, &[]], rig.wire.id - 1, rig.wire.checksum());
    let before = rig.levels();
    let reason = rig.frame(&frame).expect_err(&frame);
    assert!(faults.contains(&reason), "{venue:?} {what}: {reason:?} {frame}");
    assert_eq!(rig.proof(), Proof::Stale, "{venue:?} {what}: {frame}");
    assert_eq!(rig.levels(), before, "{venue:?} {what}: nothing of it is shown");
    rig.is_lost_and_found(what);
}

#[test]
fn case_m18_at_any_venue_numbers_that_are_none_make_the_book_stale() {
    const NONE: [&str; 16] = [
        "-1",
        "-0",
        "-0.0",
        "NaN",
        "Infinity",
        "-Infinity",
        "",
        " 1",
        "1 ",
        "+1",
        "0x10",
        "١",
        "1_000",
        "1,0",
        "null",
        ".5",
    ];
    const FAULTS: [DropReason; 5] = [
        DropReason::Number,
        DropReason::WrongType,
        DropReason::Syntax,
        DropReason::MissingKey,
        DropReason::NumberRange,
    ];
    for venue in Venue::ALL {
        for text in NONE {
            // Where numbers stand bare, white space is none of theirs.
            let is_bare = matches!(venue, Venue::Kraken | Venue::KrakenDerivatives | Venue::Deribit);
            if is_bare && text.trim() != text {
                continue;
            }
            is_refused(venue, &[(text, "1.000")], &FAULTS, text);
            is_refused(venue, &[("10.0", text)], &FAULTS, text);
        }
    }
}

#[test]
fn case_m19_numbers_that_do_not_fit_are_refused_and_never_wrapped_or_rounded() {
    // Beyond 64 bits, beyond 18 decimals, 40 digits; then beyond the steps.
    const LONG: [&str; 6] = [
        "9223372036854775808",
        "18446744073709551616",
        "922337203685477580.80",
        "0.1234567890123456789",
        "1234567890123456789012345678901234567890",
        "0.000000000000000000000000000000000000001",
    ];
    for venue in Venue::ALL {
        for text in LONG {
            is_refused(venue, &[(text, "1.000")], &[DropReason::NumberRange, DropReason::OffTickSize], text);
            is_refused(venue, &[("10.0", text)], &[DropReason::NumberRange, DropReason::OffLotSize], text);
        }
        for px in ["10.05", "10.00000000000000001", "9223372036854775807"] {
            is_refused(venue, &[(px, "1.000")], &[DropReason::OffTickSize], px);
        }
        is_refused(venue, &[("10.0", "1.0005")], &[DropReason::OffLotSize], "a part of a lot");
        is_refused(venue, &[("10.0", "9223372036854775807")], &[DropReason::OffLotSize], "more lots than there can be");
        // The greatest that fit are there to the last digit, and the checksum says so too.
        let mut rig = Rig::live(venue);
        rig.delta(&[("9.8", "9223372036854775.807")], &[("922337203685477580.7", "1.000")]).unwrap();
        let [bids, asks] = rig.levels();
        assert_eq!((bids.last(), asks.last()), (Some(&(98, i64::MAX)), Some(&(i64::MAX, 1000))), "{venue:?}");
        assert_eq!(rig.proof(), rig.best_proof(), "{venue:?}");
    }
}

/// Steps that are no power of ten, where a product could leave 64 bits.
#[test]
fn case_m19_a_step_of_five_never_leaves_64_bits() {
    for venue in Venue::ALL {
        let mut rig = Rig::with(venue, Decimal::new(5, 1), Decimal::new(5, 3), 25);
        rig.wire.sends_checksums = true;
        rig.join(&[("10.0", "1.000")], &[("10.5", "1.000")]);
        for (px, qty) in
            [("4611686018427387903", "1.000"), ("10.5", "9223372036854775807"), ("922337203685477581", "1.000")]
        {
            let frame = rig.wire.clone().delta(&[], &[(px, qty)]);
            assert!(
                matches!(
                    rig.frame(&frame),
                    Err(DropReason::OffTickSize | DropReason::OffLotSize | DropReason::NumberRange)
                ),
                "{venue:?} {px} {qty}"
            );
            assert_eq!(rig.proof(), Proof::Stale, "{venue:?}");
            rig.wire.delta(&[], &[]);
            rig.now = rig.now.saturating_add(Nanos::from_secs(70));
            rig.requests(5000);
            rig.answer();
        }
        rig.delta(&[], &[("922337203685477580.5", "9223372036854775.805")]).unwrap();
        assert_eq!(rig.levels()[1].last(), Some(&(i64::MAX / 5, i64::MAX / 5)), "{venue:?}");
        assert_eq!(rig.proof(), rig.best_proof(), "{venue:?}");
    }
}

#[test]
fn case_m20_exponents_are_exact_or_refused() {
    for venue in Venue::ALL {
        for (px, qty) in [("1e1", "1E+0"), ("1E+1", "10e-1"), ("100.0e-1", "0.001e3"), ("1000000000000000000e-17", "1")]
        {
            let mut rig = Rig::live(venue);
            let [mut bids, asks] = rig.levels();
            let (written, meant) = ([(px, qty), ("9.9", "2.000")], [("10.0", "1.000"), ("9.9", "2.000")]);
            let frame = rig.wire.written([&written, ASKS], [&meant, ASKS]);
            rig.frame(&frame).unwrap();
            bids[0] = (100, 1000);
            assert_eq!((rig.levels(), rig.proof()), ([bids, asks], rig.best_proof()), "{venue:?} {px} {qty}");
        }
        let any = [
            DropReason::Number,
            DropReason::NumberRange,
            DropReason::OffTickSize,
            DropReason::OffLotSize,
            DropReason::Syntax,
            DropReason::WrongType,
        ];
        for text in
            ["1e-8", "1e400", "1e-400", "1e19", "1e", "1e+", "1e1.5", "e5", "-20165.4676_e-+4294967292", "1e4294967297"]
        {
            is_refused(venue, &[(text, "1.000")], &any, text);
            is_refused(venue, &[("10.0", text)], &any, text);
        }
        // Where the lot is that small, 1e-8 is one lot and no other number.
        let mut rig = Rig::with(venue, Decimal::new(1, 1), Decimal::new(1, 8), 25);
        rig.join(&[("10.0", "1.00000000")], &[("10.1", "1.00000000")]);
        let frame = rig.wire.written([&[("9.9", "1e-8")], &[]], [&[("9.9", "0.00000001")], &[]]);
        if venue.rules().join == tt_venue::rules::JoinRule::Whole {
            rig.frame(&rig.wire.clone().whole(&[("9.9", "1e-8")], &[], 0)).unwrap();
        } else {
            rig.frame(&frame).unwrap();
        }
        assert_eq!((rig.levels()[0].last(), rig.proof()), (Some(&(99, 1)), rig.best_proof()), "{venue:?}");
    }
}

#[test]
fn case_m21_numbers_of_updates_above_2_to_the_53_stay_distinct() {
    for venue in wire::numbered() {
        for first in [(1_u64 << 53) - 2, (1 << 62) + 1] {
            let mut rig = Rig::new(venue);
            rig.wire.id = first;
            rig.join(BIDS, ASKS);
            for _ in 0..4 {
                rig.delta(&[], &[]).unwrap();
                assert_eq!((rig.top().update_id, rig.proof()), (rig.wire.id, Proof::Sequence), "{venue:?}");
            }
            // Neighbours that are one and the same to a float: a gap of one is a gap, and the same again is doubled.
            let frame = rig.wire.delta(&[], &[]);
            rig.frame(&frame).unwrap();
            assert_eq!(rig.frame(&frame), Err(DropReason::Duplicate), "{venue:?}");
            rig.wire.delta(&[], &[]);
            let _ = rig.delta(&[], &[]);
            assert_eq!((rig.proof(), rig.counters().gaps), (Proof::Stale, 1), "{venue:?}");
        }
        // Beyond 64 bits there is no such number, bare or in quotes.
        for text in ["18446744073709551616", "\"18446744073709551616\"", "1e20", "101.0", "-5", "1.5"] {
            let mut rig = Rig::live(venue);
            let id = rig.wire.id + 1;
            let frame = rig.wire.delta(&[], &[]);
            let wrong = frame
                .replace(&format!(":{id},"), &format!(":{text},"))
                .replace(&format!(":{id}}}"), &format!(":{text}}}"));
            assert_ne!(wrong, frame, "{venue:?}");
            let reason = rig.frame(&wrong).expect_err(&wrong);
            assert!(reason.is_malformed(), "{venue:?} {reason:?}: {wrong}");
            rig.is_lost_and_found(text);
        }
    }
}

#[test]
fn case_m21_identifiers_above_2_to_the_53_are_exact_or_refused() {
    let kraken = |id: &str| {
        let trade = format!("\"side\":\"buy\",\"price\":10.0,\"qty\":1.000,\"ord_type\":\"limit\",\"trade_id\":{id}");
        let end = "\"timestamp\":\"2023-11-14T22:13:20.000000Z\"";
        format!(
            "{{\"channel\":\"trade\",\"type\":\"update\",\"data\":[{{\"symbol\":\"{}\",{trade},{end}}}]}}",
            wire::SYMBOL
        )
    };
    let okx = |id: &str| {
        let trade = format!(
            "\"instId\":\"{0}\",\"tradeId\":\"{id}\",\"px\":\"10.0\",\"sz\":\"1.000\",\"side\":\"buy\"",
            wire::SYMBOL
        );
        let arg = format!("{{\"channel\":\"trades\",\"instId\":\"{}\"}}", wire::SYMBOL);
        format!("{{\"arg\":{arg},\"data\":[{{{trade},\"ts\":\"{MS}\"}}]}}")
    };
    let usdm = |id: &str| {
        let trade = format!("\"t\":{id},\"p\":\"10.0\",\"q\":\"1.000\",\"X\":\"MARKET\",\"m\":true");
        format!("{{\"e\":\"trade\",\"E\":{MS},\"T\":{MS},\"s\":\"{}\",{trade}}}", wire::SYMBOL)
    };
    let venues: [(Venue, Written<'_>); 3] = [(Venue::Kraken, &kraken), (Venue::Okx, &okx), (Venue::BinanceUsdm, &usdm)];
    for (venue, trade) in venues {
        let mut rig = Rig::live(venue);
        for id in ["9007199254740992", "9007199254740993", "18446744073709551614", "18446744073709551615"] {
            rig.frame(&trade(id)).unwrap();
            assert_eq!(rig.engine.last_entries().trades()[0].trade_id.to_string(), id, "{venue:?}");
        }
        assert_eq!((rig.counters().trades, rig.counters().duplicate_trades), (4, 0), "{venue:?}: four, not two");
        for id in ["18446744073709551616", "1e3", "1.0", "-1"] {
            assert!(rig.frame(&trade(id)).is_err_and(DropReason::is_malformed), "{venue:?} {id}");
        }
    }
    // What is not read may be as long as it likes.
    let mut rig = Rig::live(Venue::Kraken);
    let status = "{\"channel\":\"status\",\"type\":\"update\",\"data\":[{\"connection_id\":13834774380200032777,\"system\":\"online\"}]}";
    rig.frame(status).unwrap();
    rig.frame(&status.replace("13834774380200032777", "138347743802000327771383477438020003277713834")).unwrap();
    assert_eq!(rig.proof(), Proof::Crc);
}

#[test]
fn case_m39_times_in_other_units_are_recognised_by_their_range() {
    for venue in Venue::ALL {
        let mut rig = Rig::live(venue);
        let right = rig.wire.delta(&[], &[]);
        if !right.contains(&MS.to_string()) {
            // These write dates: one without its form is none.
            for wrong in
                [MS.to_string(), (MS / 1000).to_string(), "2023-11-14".to_owned(), "1970-01-01T00:00:00Z".to_owned()]
            {
                let frame = right.replace("2023-11-14T22:13:20.000000Z", &wrong);
                assert_eq!(rig.frame(&frame), Err(DropReason::Time), "{venue:?}");
            }
            continue;
        }
        for (unit, ms) in
            [("seconds", MS / 1000), ("microseconds", MS * 1000), ("nanoseconds", MS * 1_000_000), ("none", 0)]
        {
            let mut rig = Rig::live(venue);
            rig.wire.ms = ms;
            let read = rig.delta(&[("10.0", "5.000")], &[]);
            // Spot sends microseconds where `timeUnit` asks for them (web-socket-streams.md of its documentation), and
            // futures have the same reader: the number of digits says which it is.
            let is_binance = matches!(venue, Venue::BinanceSpot | Venue::BinanceUsdm | Venue::BinanceCoinm);
            if is_binance && unit == "microseconds" {
                assert!(read.is_ok(), "{venue:?} {read:?}");
                let depth = rig.engine.board().depth(rig.id).unwrap();
                assert_eq!(depth.ts_event, Nanos::from_millis(MS), "{venue:?}");
                continue;
            }
            assert_eq!(read, Err(DropReason::Time), "{venue:?} {unit}");
            rig.wire.ms = MS;
            rig.is_lost_and_found(unit);
        }
        // The first and the last milliseconds that are times.
        for ms in [978_307_200_000, 7_258_118_399_999] {
            rig.wire.ms = ms;
            assert!(rig.delta(&[], &[]).is_ok() || numbers_lost(&rig), "{venue:?}");
            rig.wire.id -= 1;
        }
    }
}

/// Writes a trade of this identifier.
type Written<'a> = &'a dyn Fn(&str) -> String;

/// Whether the frame before was one that the venue's numbers say was lost.
fn numbers_lost(rig: &Rig) -> bool {
    rig.wire.venue.rules().numbering != Numbering::None
}
