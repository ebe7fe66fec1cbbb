//! What an audit counts and reports of single frames: readers, bytes, early trades, gaps, timers, times that fall.

use super::{audit, count, found, lines, recordings, write_lines};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;
use tt_journal::Record;

const MS: u64 = 1_700_000_000_000;

fn okx(topic: &str, rest: &str) -> String {
    format!("{{\"arg\":{{\"channel\":\"{topic}\",\"instId\":\"BTC-USDT\"}},{rest}}}")
}

fn okx_book(action: &str, previous: i64, id: i64, bids: &str) -> String {
    let numbers = format!("\"checksum\":0,\"prevSeqId\":{previous},\"seqId\":{id}");
    let asks = if action == "snapshot" { "[\"11\",\"1\",\"0\",\"1\"]" } else { "" };
    okx(
        "books",
        &format!(
            "\"action\":\"{action}\",\"data\":[{{\"asks\":[{asks}],\"bids\":[{bids}],\"ts\":\"{MS}\",{numbers}}}]"
        ),
    )
}

fn okx_trade(id: u64) -> String {
    let trade = format!("\"instId\":\"BTC-USDT\",\"tradeId\":\"{id}\",\"px\":\"10.5\",\"sz\":\"0.1\",\"side\":\"buy\"");
    okx("trades", &format!("\"data\":[{{{trade},\"ts\":\"{MS}\",\"count\":\"1\"}}]"))
}

/// The audit of OKX's frames, each received so many milliseconds after the beginning.
fn audit_okx(folder: &TempDir, frames: &[(u64, String)]) -> (Value, i32) {
    let path = folder.path().join("okx.gz");
    let record =
        |(ms, text): &(u64, String)| Record { ts_ns: (MS + ms) * 1_000_000, payload: text.clone().into_bytes() };
    write_lines(&path, &frames.iter().map(record).collect::<Vec<_>>());
    audit(&[&path], &["--venue", "okx"])
}

/// How often a finding was made, and whether it is an error.
fn finding(value: &Value, name: &str) -> Option<(u64, bool)> {
    let all = value["feeds"][0]["findings"].as_array().unwrap();
    let one = all.iter().find(|finding| finding["name"] == name)?;
    Some((one["count"].as_u64().unwrap(), one["wrong"].as_bool().unwrap()))
}

const BID: &str = "[\"10\",\"1\",\"0\",\"1\"]";

#[test]
fn frames_of_the_general_reader_and_bytes_are_counted() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("general.gz");
    let mut records = lines("usdm");
    let is_changed = |record: &mut Record| {
        let text = String::from_utf8(record.payload.clone()).unwrap();
        record.payload = text.replacen("\"e\":\"", "\"unknown\":{\"to\":[1]},\"e\":\"", 1).into_bytes();
        record.payload.len() != text.len()
    };
    let changed = records.iter_mut().map(is_changed).filter(|is| *is).count() as u64;
    let bytes: usize = records.iter().map(|record| record.payload.len()).sum();
    write_lines(&path, &records);
    let (value, status) = audit(&[&path], &[]);
    assert_eq!((status, found(&value)), (0, Vec::new()), "{value}");
    assert!(changed > 100 && count(&value, "general") >= changed, "{changed}: {value}");
    assert_eq!(count(&value, "bytes"), bytes as u64);
}

#[test]
fn trades_before_the_first_book_are_counted() {
    let folder = TempDir::new().unwrap();
    let frames = [
        (0, okx_trade(1)),
        (10, okx_trade(2)),
        (20, okx_book("snapshot", -1, 7, BID)),
        (30, okx_book("update", 7, 8, "[\"9\",\"2\",\"0\",\"1\"]")),
        (40, okx_trade(3)),
    ];
    let (value, status) = audit_okx(&folder, &frames);
    assert_eq!((status, found(&value)), (0, Vec::new()), "{value}");
    assert_eq!((count(&value, "trades"), count(&value, "deltas")), (3, 1), "{value}");
    assert_eq!(value["feeds"][0]["drops"], Value::Object(serde_json::Map::new()), "{value}");
}

#[test]
fn one_gap_is_one_finding() {
    let folder = TempDir::new().unwrap();
    let frames = [
        (0, okx_book("snapshot", -1, 7, BID)),
        (10, okx_book("update", 7, 8, "[\"9\",\"2\",\"0\",\"1\"]")),
        (20, okx_book("update", 9, 10, "[\"8\",\"2\",\"0\",\"1\"]")),
    ];
    let (value, status) = audit_okx(&folder, &frames);
    assert_eq!((status, finding(&value, "gap")), (1, Some((1, true))), "{value}");
}

#[test]
fn a_book_that_stays_crossed_and_a_silent_connection_are_found() {
    let folder = TempDir::new().unwrap();
    let crossing = okx_book("update", 7, 8, "[\"12\",\"2\",\"0\",\"1\"]");
    let whole = okx_book("snapshot", -1, 7, BID);
    let frames = [(0, whole.clone()), (10, crossing.clone()), (400, okx_trade(1))];
    let (value, _) = audit_okx(&folder, &frames);
    assert_eq!(finding(&value, "crossed_too_long"), None, "{value}");
    let frames = [(0, whole.clone()), (10, crossing), (400, okx_trade(1)), (511, okx_trade(2)), (800, okx_trade(3))];
    let (value, status) = audit_okx(&folder, &frames);
    assert_eq!((status, finding(&value, "crossed_too_long")), (1, Some((1, true))), "{value}");
    assert_eq!(finding(&value, "silence"), None, "{value}");
    let frames = [(0, whole), (29_000, okx_trade(1)), (120_000, okx_trade(2))];
    let (value, status) = audit_okx(&folder, &frames);
    assert_eq!((status, finding(&value, "silence")), (0, Some((1, false))), "{value}");
}

/// Kraken's checksum decides, not its time.
#[test]
fn a_time_that_falls_is_a_note() {
    let bytes = fs::read(recordings().join("kraken_btcusd_depth25.cbcap")).unwrap();
    let mark = b"\"timestamp\":\"20";
    let books = bytes.windows(23).enumerate().filter(|(_, text)| text.starts_with(b"\"type\":\"update\",\"data\":"));
    let at = books.map(|(at, _)| at).nth(60).unwrap();
    let at = at + bytes[at..].windows(mark.len()).position(|text| text == mark).unwrap() + mark.len();
    let mut changed = bytes;
    // The last digit of the year.
    changed[at + 1] -= 1;
    let folder = TempDir::new().unwrap();
    let path: PathBuf = folder.path().join("times.cbcap");
    fs::write(&path, changed).unwrap();
    let (value, status) = audit(&[&path], &[]);
    assert_eq!((status, found(&value)), (0, Vec::new()), "{value}");
    assert_eq!((count(&value, "times_fell"), finding(&value, "time_fell")), (1, Some((1, false))), "{value}");
    assert_eq!((count(&value, "gaps"), count(&value, "resyncs")), (0, 0));
}
