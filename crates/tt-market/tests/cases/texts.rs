//! Frames that are no whole JSON of the documented form, at every venue.

use crate::speed;
use crate::wire::{ASKS, BIDS, Rig, SYMBOL, Wire};
use std::time::Duration;
use tt_market::Proof;
use tt_venue::ParseError;
use tt_venue::Venue;
use tt_venue::event::{Event, EventBuffer};

/// A frame of the venue's book.
pub(crate) fn book_frame(venue: Venue) -> String {
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
        Venue::BybitSpot | Venue::BybitLinear | Venue::BybitInverse | Venue::BybitOption => {
            &["topic", "type", "ts", "data", "s", "b", "a", "u"]
        }
        Venue::Okx => &["arg", "channel", "instId", "action", "data", "asks", "bids", "ts"],
        Venue::Kraken | Venue::KrakenDerivatives => {
            &["channel", "type", "data", "symbol", "bids", "asks", "checksum", "price", "qty"]
        }
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
        for symbol in ["BTC\\u0000", "BTC\\ud800", "BTC\\u0055SDT", "BTC USDT", "", "BTC\u{a0}USDT"] {
            let text = frame.replace(SYMBOL, symbol);
            assert!(parse(venue, text.as_bytes()).is_err_and(ParseError::is_malformed), "{venue:?} {symbol}");
        }
    }
}

/// Through the engine: it is unknown whose the frame was, so that no book of the connection is trusted.
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

/// Four times as long takes four times as long; sixteen would be square.
#[test]
fn case_m22_what_is_refused_takes_time_in_proportion() {
    /// Below it the clock says nothing.
    const LONG_ENOUGH: Duration = Duration::from_millis(4);
    for venue in Venue::ALL {
        let (short, long) = (speed::refused(venue, 25_000), speed::refused(venue, 100_000));
        for ((shape, short), (_, long)) in short.iter().zip(&long) {
            let slow = speed::time_to_refuse(venue, long, 2);
            if slow > LONG_ENOUGH {
                let ratio = slow.as_secs_f64() / speed::time_to_refuse(venue, short, 4).as_secs_f64();
                assert!(ratio < 10.0, "{venue:?} {shape}: {ratio:.1} times the time, {slow:?}");
            }
        }
    }
}
