//! `truetick gate rehearse`: recorded frames in, marks, intents, verdicts, and the frame behind each refusal.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tt_journal::RecordingReader;
use tt_journal::recording::RecordKind;

const LIMITS: &str = include_str!("../../../../deploy/gate-limits.toml");

/// The venue whose update is missing, and its symbol on the wire.
const BOOK: (&str, &str) = ("binance_spot", "BTCUSDT");

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/testkit/recordings").join(name)
}

/// The sample limits, wide enough for an order after each record.
fn limits() -> String {
    LIMITS
        .replace("same-orders-max = 10", "same-orders-max = 10000")
        .replace("id-window-ms = 600000", "id-window-ms = 10000")
        .replace("per-second = 2, burst = 2", "per-second = 1000, burst = 10000")
        .replace("per-second = 1000, burst = 100 }", "per-second = 1000, burst = 10000 }")
        .replace("open-orders-max = ", "open-orders-max = 10000 # ")
}

/// What the frames themselves say.
struct Frames {
    records: u64,
    last_ms: u64,
    /// The record whose first update id does not follow, and the last id before it.
    gap: Option<(u64, u64)>,
    /// The record with which the book's feed closes its connection.
    closed: u64,
}

fn frames(name: &str) -> Frames {
    let mut reader = RecordingReader::new(BufReader::new(File::open(recording(name)).unwrap())).unwrap();
    let (mut last_id, mut feed) = (None::<u64>, None);
    let mut found = Frames { records: 0, last_ms: 0, gap: None, closed: 0 };
    while let Some(entry) = reader.read().unwrap() {
        found.records += 1;
        found.last_ms = entry.head.ts_ns / 1_000_000;
        if entry.head.kind == RecordKind::Closed && feed == Some(entry.head.feed) {
            found.closed = found.records;
        }
        if entry.head.kind != RecordKind::Frame {
            continue;
        }
        let Ok(frame) = serde_json::from_slice::<Value>(entry.body) else { continue };
        let data = frame.get("data").unwrap_or(&frame);
        // The update of USD-M has `pu`, too.
        if data["e"] != "depthUpdate" || data["s"] != BOOK.1 || data.get("pu").is_some() {
            continue;
        }
        feed = Some(entry.head.feed);
        let (first, last) = (data["U"].as_u64().unwrap(), data["u"].as_u64().unwrap());
        if let Some(last_id) = last_id.filter(|last_id| first > last_id + 1) {
            found.gap = found.gap.or(Some((found.records, last_id)));
        }
        last_id = Some(last);
    }
    found
}

fn rehearse(name: &str, events: &str, flags: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let (limits_path, events_path) = (folder.path().join("limits.toml"), folder.path().join("events.jsonl"));
    fs::write(&limits_path, limits()).unwrap();
    fs::write(&events_path, events).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_truetick"));
    command.args(["--log-level", "off", "gate", "rehearse"]).arg(recording(name)).args(flags);
    command.arg("--limits").arg(limits_path).arg("--events").arg(events_path).output().unwrap()
}

/// A market order after each record: the rows of verdicts and of books.
fn after_each_record(name: &str, records: u64) -> Vec<(Value, Value)> {
    let event = |record: u64| {
        format!(
            "{{\"at_record\":{record},\"intent\":{{\"symbol\":\"BTC/USDT\",\"strategy\":1,\"kind\":\"market\",\
             \"side\":\"{}\",\"qty\":\"0.0002\"}}}}\n",
            ["buy", "sell"][(record % 2) as usize]
        )
    };
    let events: String = (1..=records).map(event).collect();
    let output = rehearse(name, &events, &["--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (verdicts, books): (Vec<_>, Vec<_>) =
        rows.into_iter().filter(|row| row.get("seq").is_some()).partition(|row| row.get("accept").is_some());
    assert_eq!((verdicts.len() as u64, books.len() as u64), (records, records));
    verdicts.into_iter().zip(books).collect()
}

fn reasons(verdict: &Value) -> Vec<&str> {
    verdict["reasons"].as_array().unwrap().iter().map(|reason| reason.as_str().unwrap()).collect()
}

#[test]
fn a_refusal_names_the_frame_with_the_gap() {
    let name = "simulator_without_an_update.ttj";
    let Frames { records, gap, .. } = frames(name);
    let (gap, last_id) = gap.expect("an update is missing");
    let rows = after_each_record(name, records);
    let is_accepted = |(verdict, _): &(Value, Value)| verdict["accept"] == true;
    let proved = rows.iter().position(is_accepted).expect("an accepted order");
    let (before, after) = rows.split_at(gap as usize - 1);
    assert!(before.len() > proved && before[proved..].iter().all(is_accepted));
    // No snapshot comes before the end of the recording.
    for (verdict, book) in after {
        assert_eq!(reasons(verdict), ["BOOK_UNVERIFIED"]);
        assert_eq!((&book["venue"], &book["book"]), (&BOOK.0.into(), &"BTC/USDT".into()));
        let [cause] = &book["causes"].as_array().unwrap()[..] else { panic!("{book}") };
        let at = (&cause["reason"], &cause["record"], &cause["kind"], &cause["update_id"], &cause["proof"]);
        let expected = ("BOOK_UNVERIFIED".into(), gap.into(), "frame".into(), last_id.into(), "stale".into());
        assert_eq!(at, (&expected.0, &expected.1, &expected.2, &expected.3, &expected.4));
    }
}

#[test]
fn a_whole_recording_refuses_nothing_between_its_first_proof_and_its_end() {
    let Frames { records, gap, closed, .. } = frames("simulator.ttj");
    assert_eq!(gap, None);
    let rows = after_each_record("simulator.ttj", records);
    let proved = rows[..closed as usize - 1].iter().skip_while(|(verdict, _)| verdict["accept"] == false);
    let mut updates = BTreeSet::new();
    for (verdict, book) in proved {
        assert_eq!(reasons(verdict), [""; 0]);
        assert_eq!(book["causes"], Value::Array(Vec::new()));
        updates.insert(book["update_id"].as_u64().unwrap());
        for stage in ["frame", "mark", "verdict"] {
            assert!(book["ns"][stage].as_u64().unwrap() > 0, "{book}");
        }
    }
    assert!(updates.len() > 10, "{} updates", updates.len());
}

#[test]
fn a_price_beyond_the_collar_and_silence_name_the_last_record_of_the_book() {
    let Frames { last_ms, closed, .. } = frames("simulator.ttj");
    let intent = |at: String, px: &str| {
        let intent =
            format!("\"symbol\":\"BTC/USDT\",\"strategy\":1,\"side\":\"buy\",\"qty\":\"0.01\",\"px\":\"{px}\"");
        format!("{{{at},\"intent\":{{{intent}}}}}\n")
    };
    // The sample's marks may be 2 s old.
    let late = intent(format!("\"at_ms\":{}", last_ms + 10_000), "61000");
    let output = rehearse("simulator.ttj", &(intent(format!("\"at_record\":{}", closed - 1), "1000000") + &late), &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = text.lines().filter(|line| line.starts_with("        ")).map(str::trim).collect();
    let [collar, _, stale, unproved] = lines[..] else { panic!("{text}") };
    assert!(collar.starts_with("COLLAR_REF: binance_spot BTC/USDT, record ") && collar.contains("(frame)"), "{text}");
    let closed = format!("binance_spot BTC/USDT, record {closed} (connection closed), update ");
    assert!(stale.starts_with(&format!("MD_STALE: {closed}")), "{text}");
    assert!(unproved.starts_with(&format!("BOOK_UNVERIFIED: {closed}")), "{text}");
    assert!(text.contains("\nframe ") && text.contains("\nmark ") && text.contains("\nverdict "), "{text}");
}

#[test]
fn a_record_beyond_the_recording_is_named() {
    let output = rehearse("simulator.ttj", "{\"at_record\":100000000,\"time\":{}}\n", &[]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && error.contains("line 1") && error.contains("not 100000000"), "{error}");
}
