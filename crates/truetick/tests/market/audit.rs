//! `truetick audit --json` on captures, on the simulator's recordings, and on what was done to them.

mod formats;
mod repairs;

use std::fs::{self, File};
use std::io::{BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use testkit::require_captures;
use tt_journal::recording::{RecordHead, RecordKind, encode, header, seal};
use tt_journal::{GzLines, Record, RecordingReader};

/// The first line that `truetick audit --json` prints, and its status.
fn audit(arguments: &[&Path], flags: &[&str]) -> (Value, i32) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_truetick")).args(["audit", "--json"]).args(flags).args(arguments).output();
    let output = output.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let value = serde_json::from_str(text.lines().next().unwrap_or("null")).unwrap();
    (value, output.status.code().unwrap())
}

fn recordings() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tools/testkit/recordings")
}

/// What is found, by name.
fn found(value: &Value) -> Vec<String> {
    let of_feeds = value["feeds"].as_array().into_iter().flatten().map(|feed| &feed["findings"]);
    let all = of_feeds.chain([&value["findings"]]).filter_map(Value::as_array).flatten();
    all.filter(|finding| finding["wrong"] == true).map(|finding| finding["name"].as_str().unwrap().to_owned()).collect()
}

fn count(value: &Value, name: &str) -> u64 {
    value["feeds"][0]["counters"][name].as_u64().unwrap_or_else(|| panic!("{name}: {value}"))
}

/// Frames in, and what became of each.
fn closes(value: &Value) {
    for feed in value["feeds"].as_array().unwrap() {
        let drops: u64 = feed["drops"].as_object().unwrap().values().map(|drop| drop.as_u64().unwrap()).sum();
        let counters = &feed["counters"];
        assert_eq!(counters["frames"].as_u64().unwrap(), counters["applied"].as_u64().unwrap() + drops, "{feed}");
    }
}

#[test]
fn captures_of_binance_agree_with_their_tickers() {
    let Some(folder) = require_captures() else { return };
    let folder = folder.join("binance");
    let spot = ["spot_btcusdt_20240808.gz", "spot_btcusdt_20240809.gz"];
    for (files, venue, steps, oracles, deltas) in [
        (&["usdm_btcusdt_20240808.gz"][..], "binance_usdm", ["0.1", "0.001"], 629, 6547),
        (&spot, "binance_spot", ["0.01", "0.000001"], 1072, 6493),
        (&["coinm_btcusd_perp_20240808.gz"], "binance_coinm", ["0.1", "1"], 1124, 26_824),
    ] {
        let paths: Vec<PathBuf> = files.iter().map(|file| folder.join(file)).collect();
        let (value, status) = audit(&paths.iter().map(PathBuf::as_path).collect::<Vec<_>>(), &["--continued"]);
        assert_eq!((status, found(&value)), (0, Vec::new()), "{value}");
        assert_eq!(value["feeds"][0]["venue"], venue);
        assert_eq!(value["feeds"][0]["proofs"]["oracle"], oracles);
        assert_eq!((count(&value, "deltas"), count(&value, "gaps"), count(&value, "joins")), (deltas, 0, 1), "{value}");
        let instrument = &value["feeds"][0]["instruments"][0];
        assert_eq!([&instrument["tick_size"], &instrument["lot_size"]], steps, "{instrument}");
        closes(&value);
    }
    // What their repository says of these captures, to a percent.
    let (value, _) = audit(&[&folder.join("usdm_btcusdt_20240808.gz")], &[]);
    let instrument = &value["feeds"][0]["instruments"][0];
    let levels = &instrument["levels_per_message"];
    assert!((67.0..68.5).contains(&levels["mean"].as_f64().unwrap()) && levels["max"] == 1226, "{levels}");
    assert!((0.88..0.90).contains(&instrument["within_4096_steps"].as_f64().unwrap()), "{instrument}");
    assert!((0.93..0.96).contains(&instrument["within_16384_steps"].as_f64().unwrap()), "{instrument}");
}

#[test]
fn captures_of_many_symbols_join_the_responses_of_their_http_file() {
    let Some(folder) = require_captures() else { return };
    for (file, venue, deltas) in [("spot_multi.ws", "binance_spot", 176), ("usdm_multi.ws", "binance_usdm", 756)] {
        let (value, status) = audit(&[&folder.join("binance").join(file)], &[]);
        assert_eq!((status, found(&value)), (0, Vec::new()), "{value}");
        assert_eq!((&value["feeds"][0]["venue"], &value["format"]), (&Value::from(venue), &Value::from("cryptofeed")));
        assert_eq!((count(&value, "joins"), count(&value, "snapshots"), count(&value, "gaps")), (4, 4, 0), "{value}");
        let instruments = value["feeds"][0]["instruments"].as_array().unwrap();
        assert_eq!(instruments.len(), 4);
        assert!(instruments.iter().all(|known| known["proof"] == "sequence" || known["proof"] == "oracle"), "{value}");
        let applied: u64 = instruments.iter().map(|known| known["applied"].as_u64().unwrap()).sum();
        assert_eq!(applied, deltas, "{value}");
        assert!(value["feeds"][0]["proofs"]["oracle"].as_u64().unwrap() >= 26, "{value}");
        closes(&value);
    }
}

#[test]
fn captures_of_kraken_fit_every_checksum() {
    let Some(folder) = require_captures() else { return };
    for (depth, checksums) in [(25, 2052), (10, 301)] {
        let (value, status) = audit(&[&folder.join(format!("kraken/v2_btcusd_depth{depth}.cbcap"))], &[]);
        let lag_ns = &value["feeds"][0]["counters"]["lag_ns"];
        assert!(lag_ns.as_i64().is_some(), "signed, also where the venue's clock is ahead: {lag_ns}");
        assert_eq!((status, found(&value)), (0, Vec::new()), "{value}");
        assert_eq!(value["feeds"][0]["proofs"]["crc"], checksums);
        assert_eq!(value["feeds"][0]["instruments"][0]["applied"], checksums);
        assert_eq!(value["feeds"][0]["drops"], Value::Object(serde_json::Map::new()), "{value}");
        closes(&value);
    }
}

#[test]
fn captures_of_chains_and_of_okxs_checksum_are_proved() {
    let Some(folder) = require_captures() else { return };
    for (file, venue, proof, proved, snapshots) in [
        ("bybit/xrpusdt_ob500_20241201.zip", "bybit_linear", "sequence", 49, 1),
        ("okx/okx_2022.ws", "okx", "crc", 290, 3),
        ("deribit/deribit.ws", "deribit", "sequence", 36, 10),
    ] {
        let (value, status) = audit(&[&folder.join(file)], &[]);
        assert_eq!((status, found(&value)), (0, Vec::new()), "{value}");
        let feed = &value["feeds"][0];
        assert_eq!((&feed["venue"], &feed["proofs"][proof]), (&Value::from(venue), &Value::from(proved)), "{value}");
        assert_eq!((count(&value, "snapshots"), count(&value, "gaps")), (snapshots, 0), "{value}");
        let standing = |known: &Value| known["proof"] == proof;
        assert!(feed["instruments"].as_array().unwrap().iter().all(standing), "{value}");
        closes(&value);
    }
}

#[test]
fn captures_without_a_proof_are_applied_to_the_last_frame() {
    let Some(folder) = require_captures() else { return };
    for (file, venue, books, updates) in [
        ("coinbase/exchange_2021.ws", "coinbase_exchange", 10, 9719 + 10),
        ("hyperliquid/btcusd_20250126.gz", "hyperliquid", 1, 46),
    ] {
        let (value, status) = audit(&[&folder.join(file)], &[]);
        assert_eq!((status, found(&value)), (0, Vec::new()), "{value}");
        let feed = &value["feeds"][0];
        assert_eq!((&feed["venue"], &feed["drops"]), (&Value::from(venue), &Value::Object(serde_json::Map::new())));
        assert_eq!(feed["counters"]["frames"], value["records"]);
        let instruments = feed["instruments"].as_array().unwrap();
        assert_eq!(instruments.len(), books);
        assert!(instruments.iter().all(|known| known["proof"] == "unverified"), "{value}");
        let applied: u64 = instruments.iter().map(|known| known["applied"].as_u64().unwrap()).sum();
        assert_eq!(applied, updates, "{value}");
    }
}

fn lines(venue: &str) -> Vec<Record> {
    GzLines::open(&recordings().join(format!("binance_{venue}_btcusdt.gz"))).unwrap().collect::<Result<_, _>>().unwrap()
}

fn write_lines(path: &Path, records: &[Record]) {
    let mut file = File::create(path).unwrap();
    for Record { ts_ns, payload } in records {
        writeln!(file, "{ts_ns} {}", String::from_utf8_lossy(payload)).unwrap();
    }
}

#[test]
fn recordings_of_the_simulator_are_right() {
    for (file, oracles, checksums) in [
        ("binance_spot_btcusdt.gz", 447..=450, 0),
        ("binance_usdm_btcusdt.gz", 426..=429, 0),
        ("kraken_btcusd_depth25.cbcap", 0..=0, 235),
    ] {
        let (value, status) = audit(&[&recordings().join(file)], &[]);
        assert_eq!((status, found(&value)), (0, Vec::new()), "{value}");
        let proofs = &value["feeds"][0]["proofs"];
        assert!(oracles.contains(&proofs["oracle"].as_u64().unwrap()) && proofs["crc"] == checksums, "{value}");
        closes(&value);
    }
}

/// Records of the book in the second half.
fn books(records: &[Record]) -> Vec<usize> {
    let is_book = |record: &Record| record.payload.windows(11).any(|text| text == b"depthUpdate");
    (records.len() / 2..records.len()).filter(|at| is_book(&records[*at])).collect()
}

#[test]
fn what_was_done_to_a_recording_is_found_by_name() {
    type Deed = fn(&mut Vec<Record>, usize, usize);
    let deeds: [(&str, Deed); 7] = [
        ("gap", |records, at, _| drop(records.remove(at))),
        ("duplicate", |records, at, _| records.insert(at, records[at].clone())),
        ("reordered", |records, at, next| {
            let payload = records[at].payload.clone();
            records[at].payload = std::mem::replace(&mut records[next].payload, payload);
        }),
        ("receive_time_backwards", |records, at, _| records[at].ts_ns -= 1_000_000_000),
        ("syntax", |records, at, _| {
            let _ = records[at].payload.pop();
        }),
        ("never_synchronised", |records, _, _| {
            records.retain(|record| !record.payload.starts_with(b"{\"lastUpdateId\""))
        }),
        ("crossed", |records, _, _| {
            // If a ticker has the same update id, the ticker detects it.
            let is_ticker = |at: usize| records[at].payload.windows(10).any(|text| text == b"bookTicker");
            let lone = books(records).into_iter().find(|at| !is_ticker(at - 1) && !is_ticker(at + 1));
            let at = lone.unwrap();
            let text = String::from_utf8(records[at].payload.clone()).unwrap();
            let start = text.find("\"b\":[").unwrap() + 5;
            let comma = if text[start..].starts_with(']') { "" } else { "," };
            records[at].payload =
                format!("{}[\"999999.00\",\"1\"]{comma}{}", &text[..start], &text[start..]).into_bytes();
        }),
    ];
    let folder = TempDir::new().unwrap();
    for venue in ["spot", "usdm"] {
        let clean = lines(venue);
        let books = books(&clean);
        for (name, deed) in &deeds {
            let mut wrong = clean.clone();
            deed(&mut wrong, books[10], books[11]);
            let path = folder.path().join(name);
            write_lines(&path, &wrong);
            let (value, status) = audit(&[&path], &[]);
            assert_eq!(status, 1, "{venue} {name}: {value}");
            assert!(found(&value).iter().any(|found| found == name), "{venue} {name}: {:?}", found(&value));
            closes(&value);
        }
        // The same lines, unpacked and untouched.
        let path = folder.path().join("clean");
        write_lines(&path, &clean);
        let (value, status) = audit(&[&path], &[]);
        assert_eq!((status, found(&value)), (0, Vec::new()), "{value}");
    }
}

#[test]
fn a_wrong_digit_is_found_by_ticker_or_checksum() {
    let folder = TempDir::new().unwrap();
    let mut records = lines("usdm");
    let ticker =
        (records.len() / 2..).find(|at| records[*at].payload.windows(10).any(|text| text == b"bookTicker")).unwrap();
    let text = String::from_utf8(records[ticker].payload.clone()).unwrap();
    let at = text.find("\"B\":\"").unwrap() + 5;
    let digit = if &text[at..=at] == "9" { "8" } else { "9" };
    records[ticker].payload = format!("{}{digit}{}", &text[..at], &text[at + 1..]).into_bytes();
    let path = folder.path().join("ticker");
    write_lines(&path, &records);
    let (value, status) = audit(&[&path], &[]);
    assert_eq!((status, found(&value)[0].as_str()), (1, "oracle_mismatch"), "{value}");

    let mut bytes = fs::read(recordings().join("kraken_btcusd_depth25.cbcap")).unwrap();
    let middle = bytes.len() / 2;
    let at = middle + bytes[middle..].windows(11).position(|text| text == b"\"checksum\":").unwrap() + 11;
    bytes[at] = if bytes[at] == b'9' { b'8' } else { bytes[at] + 1 };
    let path = folder.path().join("checksum");
    fs::write(&path, bytes).unwrap();
    let (value, status) = audit(&[&path], &[]);
    assert_eq!((status, found(&value)[0].as_str()), (1, "checksum_mismatch"), "{value}");
}

#[test]
fn rejects_files_that_are_no_recording_with_status_2() {
    let folder = TempDir::new().unwrap();
    let (absent, text, unknown) =
        (folder.path().join("absent"), folder.path().join("text"), folder.path().join("unknown"));
    fs::write(&text, "dear diary").unwrap();
    fs::write(&unknown, "17 {\"a\":1}\n18 {\"a\":2}\n").unwrap();
    for path in [&absent, &text, &unknown] {
        let (value, status) = audit(&[path], &[]);
        assert_eq!((status, &value["right"]), (2, &Value::Bool(false)), "{value}");
        assert!(value["unreadable"].is_string(), "{value}");
    }
    // Together with a valid one, too.
    let right = recordings().join("kraken_btcusd_depth25.cbcap");
    assert_eq!(audit(&[&right, &text], &[]).1, 2);
}

/// truetick's own recording of its simulator, and the same without one update of a book.
const WHOLE: &str = "simulator.ttj";
const LACKING: &str = "simulator_without_an_update.ttj";

fn records(path: &Path) -> Vec<(RecordHead, Vec<u8>)> {
    let mut reader = RecordingReader::new(BufReader::new(File::open(path).unwrap())).unwrap();
    let mut records = Vec::new();
    while let Some(entry) = reader.read().unwrap() {
        records.push((entry.head, entry.body.to_vec()));
    }
    assert_eq!(reader.tail(), None);
    records
}

/// The whole recording but for the tenth update of the first feed's book.
fn lacking() -> Vec<u8> {
    let is_book = |(head, body): &(RecordHead, Vec<u8>)| {
        head.feed == 0 && head.kind == RecordKind::Frame && body.windows(11).any(|text| text == b"depthUpdate")
    };
    let mut records = records(&recordings().join(WHOLE));
    let tenth = (0..records.len()).filter(|at| is_book(&records[*at])).nth(9).unwrap();
    records.remove(tenth);
    let mut bytes = header(records[0].0.ts_ns).to_vec();
    for (head, body) in &records {
        let start = bytes.len();
        encode(&mut bytes, *head, body);
        seal(&mut bytes[start..]);
    }
    bytes
}

#[test]
fn our_own_recording_is_right_and_without_an_update_it_is_not() {
    if std::env::var_os("TRUETICK_RECORD").is_some() {
        fs::write(recordings().join(LACKING), lacking()).unwrap();
    }
    assert!(fs::read(recordings().join(LACKING)).unwrap() == lacking(), "TRUETICK_RECORD=1 writes it again");
    let (value, status) = audit(&[&recordings().join(WHOLE)], &[]);
    assert_eq!((status, found(&value)), (0, Vec::new()), "{value}");
    assert_eq!(value["feeds"].as_array().unwrap().len(), 3);
    assert!(value["checkpoints"].as_u64().unwrap() >= 6, "{value}");
    let proofs = |feed: usize, name: &str| value["feeds"][feed]["proofs"][name].as_u64().unwrap();
    let of: Vec<u64> = (0..3).map(|feed| proofs(feed, "oracle") + proofs(feed, "crc")).collect();
    assert!(of.iter().all(|count| *count > 10), "{of:?}");
    closes(&value);
    let (value, status) = audit(&[&recordings().join(LACKING)], &[]);
    assert_eq!(status, 1, "{value}");
    let names = found(&value);
    assert!(names.iter().any(|name| name == "gap") && names.iter().any(|name| name == "state_differs"), "{names:?}");
    // One bit of a frame, and the record's checksum says so.
    let folder = TempDir::new().unwrap();
    let mut bytes = fs::read(recordings().join(WHOLE)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let path = folder.path().join("flipped");
    fs::write(&path, bytes).unwrap();
    let (value, status) = audit(&[&path], &[]);
    assert_eq!((status, found(&value)), (1, vec!["damaged".to_owned()]), "{value}");
}
