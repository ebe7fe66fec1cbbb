//! Frames that are no whole JSON of the documented form, at every venue.

use crate::wire::{ASKS, BIDS, Rig, SYMBOL, Wire};
use std::time::Duration;
use testkit::cpu_time;
use tt_market::Proof;
use tt_venue::ParseError;
use tt_venue::Venue;
use tt_venue::event::{Event, EventBuffer};
use tt_venue::rules::JoinRule;

/// A frame of the venue's book.
fn book_frame(venue: Venue) -> String {
    Wire::new(venue).delta(BIDS, ASKS)
}

/// What the venue's parser says, which is what the general path says too.
fn parse(venue: Venue, frame: &[u8]) -> Result<Event, ParseError> {
    let (mut one, mut two) = (EventBuffer::new(1024, 16), EventBuffer::new(1024, 16));
    let scanned = venue.parse(frame, &mut one);
    let general = venue.parse_general(frame, &mut two);
    assert_eq!(
        scanned.is_ok(),
        general.is_ok(),
        "{venue:?} {scanned:?} {general:?} {}",
        String::from_utf8_lossy(frame)
    );
    scanned
}

/// Keys without which there is no change of a book.
fn needed(venue: Venue) -> &'static [&'static str] {
    match venue {
        Venue::BinanceSpot => &["s", "U", "u", "b", "a"],
        Venue::BinanceUsdm | Venue::BinanceCoinm => &["e", "s", "U", "u", "b", "a"],
        Venue::BybitSpot | Venue::BybitLinear | Venue::BybitInverse => {
            &["topic", "type", "ts", "data", "s", "b", "a", "u"]
        }
        Venue::Okx => &["arg", "channel", "instId", "action", "data", "asks", "bids", "ts"],
        Venue::Kraken => &["channel", "type", "data", "symbol", "bids", "asks", "checksum", "price", "qty"],
        Venue::CoinbaseExchange => &["type", "product_id", "changes", "time"],
        Venue::CoinbaseAdvanced => {
            &["channel", "sequence_num", "events", "product_id", "updates", "side", "price_level", "new_quantity"]
        }
        Venue::Hyperliquid => &["channel", "data", "coin", "time", "levels", "px", "sz"],
        Venue::Deribit => &["method", "params", "data", "timestamp", "instrument_name", "change_id", "bids", "asks"],
    }
}

#[test]
fn case_m22_at_any_venue_what_is_no_whole_json_is_refused() {
    for venue in Venue::ALL {
        let frame = book_frame(venue);
        assert!(parse(venue, frame.as_bytes()).is_ok(), "{frame}");
        for end in 0..frame.len() {
            let reason = parse(venue, &frame.as_bytes()[..end]).unwrap_err();
            assert!(reason.is_malformed(), "{venue:?} {reason:?} {}", &frame[..end]);
        }
        for junk in ["x", "{}", "]", "}", ",", "\0", "\"", "1", "null", "\u{feff}"] {
            assert!(
                parse(venue, format!("{frame}{junk}").as_bytes()).is_err_and(ParseError::is_malformed),
                "{venue:?} {junk}"
            );
        }
        assert!(
            parse(venue, format!("\u{feff}{frame}").as_bytes()).is_err_and(ParseError::is_malformed),
            "{venue:?}: BOM"
        );
        assert!(parse(venue, format!(" {frame}\r\n\t ").as_bytes()).is_ok(), "{venue:?}: white space is none");
        assert!(parse(venue, &[]).is_err());
    }
}

#[test]
fn case_m22_at_any_venue_keys_that_lack_double_or_have_another_type_are_named() {
    for venue in Venue::ALL {
        let frame = book_frame(venue);
        for key in needed(venue) {
            let at = frame.find(&format!("\"{key}\":")).unwrap_or_else(|| panic!("{key}: {frame}"));
            let renamed = frame.replacen(&format!("\"{key}\":"), "\"other\":", 1);
            let reason = parse(venue, renamed.as_bytes()).expect_err(&renamed);
            assert!(
                matches!(reason, ParseError::MissingKey | ParseError::UnknownTopic | ParseError::WrongType),
                "{reason:?} {renamed}"
            );
            let twice = format!("{}\"{key}\":null,{}", &frame[..at], &frame[at..]);
            assert_eq!(parse(venue, twice.as_bytes()), Err(ParseError::DuplicateKey), "{twice}");
            for other in ["null", "true", "7.5", "\"zzz\"", "{}", "[]", "[[]]", "[{}]", "\"\\u0000\"", "-1"] {
                let end = at + key.len() + 3 + value_len(&frame[at + key.len() + 3..]);
                let text = format!("{}\"{key}\":{other}{}", &frame[..at], &frame[end..]);
                match parse(venue, text.as_bytes()) {
                    // A list of no levels is one; a number may have a point where numbers are bare.
                    Ok(_) => assert!(
                        matches!(other, "[]" | "7.5")
                            || (other == "\"zzz\""
                                && matches!(
                                    *key,
                                    "topic" | "s" | "coin" | "symbol" | "instId" | "product_id" | "instrument_name"
                                )),
                        "{venue:?} {text}"
                    ),
                    Err(reason) => {
                        assert!(reason.is_malformed() || reason == ParseError::UnknownTopic, "{reason:?} {text}")
                    }
                }
            }
        }
    }
}

/// How long the JSON value at the front of `text` is.
fn value_len(text: &str) -> usize {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>();
    values.next().unwrap().unwrap();
    values.byte_offset()
}

#[test]
fn case_m22_at_any_venue_strange_values_of_unknown_keys_are_judged_as_json() {
    let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let deep_objects = "{\"a\":".repeat(10_000) + "1" + &"}".repeat(10_000);
    let fine = [
        "null",
        "\"\\u0041\\n\\ud83d\\ude00\"",
        "{\"a\":[1,-2.5e-7,true,{}]}",
        "1e999999",
        "\"\u{7f}\u{e9}\"",
        "\"\\u0000\"",
        &deep(60),
    ];
    let wrong = [
        "\"\\ud800\"",
        "\"\\udc00\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"\\x41\"",
        "\"\\u00g0\"",
        "\"\u{1}\"",
        "\"a\nb\"",
        "nul",
        "True",
        "01",
        "-",
        "1.",
        ".5",
        "+1",
        "0x1",
        "NaN",
        "Infinity",
        "'a'",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "[1 2]",
        "{\"a\" 1}",
        "",
        "// 1",
        &deep(10_000),
        &deep_objects,
    ];
    for venue in Venue::ALL {
        let frame = book_frame(venue);
        let with = |value: &str| format!("{{\"strange\":{value},{}", &frame[1..]);
        for value in fine {
            assert!(parse(venue, with(value).as_bytes()).is_ok(), "{venue:?} {value}");
        }
        for value in wrong {
            let reason = parse(venue, with(value).as_bytes()).expect_err(value);
            assert!(reason.is_malformed(), "{venue:?} {reason:?} {}", &value[..value.len().min(40)]);
        }
        assert_eq!(parse(venue, with(&deep(10_000)).as_bytes()), Err(ParseError::Nesting), "{venue:?}");
        for bytes in [&b"\xff"[..], b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"] {
            let mut text = with("\"?\"").into_bytes();
            let at = text.iter().position(|byte| *byte == b'?').unwrap();
            text.splice(at..=at, bytes.iter().copied());
            assert_eq!(parse(venue, &text), Err(ParseError::NotUtf8), "{venue:?} {bytes:?}");
        }
        // In a symbol no escape and no control byte has any business.
        for symbol in ["BTC\\u0000", "BTC\\ud800", "BTC\\u0055SDT", "BTC USDT", "", "BTCUSDT-1234567890-1234567"] {
            let text = frame.replace(SYMBOL, symbol);
            assert!(parse(venue, text.as_bytes()).is_err_and(ParseError::is_malformed), "{venue:?} {symbol}");
        }
    }
}

/// Through the engine: nobody knows whose the frame was, so that no book of the connection is trusted.
#[test]
fn case_m22_after_a_broken_frame_no_book_of_the_connection_is_trusted() {
    for venue in Venue::ALL {
        let mut rig = Rig::live(venue);
        let frame = rig.wire.delta(&[("10.0", "9.000")], &[]);
        assert!(rig.frame(&frame[..frame.len() - 1]).is_err_and(tt_market::DropReason::is_malformed), "{venue:?}");
        assert_eq!(rig.proof(), Proof::Stale, "{venue:?}");
        rig.is_lost_and_found("broken frame");
    }
}

/// The longest time for a megabyte of what is refused, in the release profile; without optimisation only what is linear.
const A_MEGABYTE_MAX: Duration = Duration::from_millis(if cfg!(debug_assertions) { 400 } else { 1 });
/// The same where 50,000 right levels stand before the reason: they are read first, and then once more by name.
const LEVELS_FIRST_MAX: Duration = Duration::from_millis(if cfg!(debug_assertions) { 2000 } else { 60 });

#[test]
fn case_m22_a_megabyte_of_anything_is_refused_in_a_millisecond() {
    const MEGABYTE: usize = 1_000_000;
    let fill = |unit: &str| unit.repeat(MEGABYTE / unit.len());
    let mut slowest = [(Duration::ZERO, String::new()), (Duration::ZERO, String::new())];
    for venue in Venue::ALL {
        let frame = book_frame(venue);
        let px: Vec<String> = (0..50_000).map(|i| format!("{}.{}", 9_000 - i / 10, 9 - i % 10)).collect();
        let levels: Vec<_> = px.iter().map(|px| (px.as_str(), "0.125")).collect();
        let long = Wire::new(venue).frame(venue.rules().join == JoinRule::Whole, [&levels, &[]], 100, 1);
        let last = long.rfind("0.125").unwrap();
        let shapes = [
            ("brackets", fill("[")),
            ("objects", fill("{\"a\":")),
            ("spaces", fill(" ")),
            ("digits", fill("9")),
            ("text", format!("{{\"strange\":\"{}", fill("abcdefgh"))),
            ("escapes", format!("{{\"strange\":\"{}", fill("\\u0041\\n"))),
            ("keys", format!("{{{}", fill("\"aaaaaaaaaaaa\":1,"))),
            ("different keys", format!("{{{}", (0..60_000).map(|i| format!("\"k{i:09}\":1,")).collect::<String>())),
            ("levels without an end", long[..long.len() - 1].to_owned()),
            ("levels and one brace more", format!("{long}}}")),
            ("levels and a key that is doubled", format!("{},\"strange\":1,\"strange\":2}}", &long[..long.len() - 1])),
            ("levels, the first one wrong", long.replacen("0.125", "0.1x5", 1)),
            ("levels, the last one wrong", format!("{}-{}", &long[..last], &long[last..])),
            ("a frame and a text", format!("{{\"strange\":\"{}\",{}x", fill("abcdefgh"), &frame[1..])),
            ("a frame and a list", format!("{{\"strange\":[{}1],{}x", fill("1.25,"), &frame[1..])),
            ("a frame and spaces", format!("{frame}{}x", fill(" "))),
            ("no UTF-8", fill("\u{e9}") + "\""),
        ];
        // With a brace at the end nothing tells at once that the frame is none.
        let closed = shapes.clone().map(|(shape, text)| (shape, text + "]}"));
        for (shape, text) in shapes.into_iter().chain(closed) {
            let mut buffer = EventBuffer::new(65_536, 1024);
            let mut best = Duration::MAX;
            for _ in 0..if cfg!(debug_assertions) { 1 } else { 7 } {
                let start = cpu_time();
                assert!(venue.parse(text.as_bytes(), &mut buffer).is_err(), "{venue:?} {shape}");
                best = best.min(cpu_time() - start);
            }
            let per_megabyte = best.mul_f64(1e6 / text.len() as f64);
            let slowest = &mut slowest[usize::from(shape.starts_with("levels"))];
            if per_megabyte > slowest.0 {
                *slowest = (per_megabyte, format!("{venue:?} {shape}"));
            }
            println!("{venue:?} {shape}: {:.3} ms/MB", per_megabyte.as_secs_f64() * 1e3);
        }
    }
    for (slowest, max) in slowest.iter().zip([A_MEGABYTE_MAX, LEVELS_FIRST_MAX]) {
        println!("slowest: {} {:.3} ms/MB", slowest.1, slowest.0.as_secs_f64() * 1e3);
        assert!(slowest.0 < max, "{slowest:?}");
    }
}
