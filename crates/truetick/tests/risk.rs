//! `truetick risk` from outside: each line is judged as the limits in the file say.

use std::path::Path;
use std::process::{Command, Output};

const LIMITS: &str = include_str!("../../../deploy/limits.toml");

/// Each event beside the reasons of its verdict; `-` for an event without one.
const EVENTS: &[(&str, &str)] = &[
    (
        r#"{"intent":{"symbol":"BTC/USDT","side":"buy","px":"100.00","qty":"0.1"}}"#,
        "COLLAR_REF MD_STALE BOOK_UNVERIFIED",
    ),
    (r#"{"mark":{"symbol":"BTC/USDT","px":"60000.00","is_verified":true}}"#, "-"),
    (r#"{"intent":{"symbol":"BTC/USDT","side":"buy","px":"60600.00","qty":"0.3"}}"#, ""),
    (r#"{"intent":{"symbol":"BTC/USDT","side":"buy","px":"60600.10","qty":"0.1"}}"#, "COLLAR_REF"),
    (r#"{"intent":{"symbol":"BTC/USDT","side":"sell","px":"60000.05","qty":"0.1"}}"#, "PRICE_TICK"),
    (r#"{"intent":{"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.20001"}}"#, "POS_LONG"),
    (r#"{"intent":{"symbol":"BTC/USDT","side":"sell","px":"60000","qty":"0.00009"}}"#, "QTY_MIN"),
    (r#"{"intent":{"symbol":"BTC/USDT","side":"sell","px":"60000","qty":"0.9"}}"#, "NOTIONAL_MAX POS_SHORT"),
    (r#"{"fill":{"symbol":"BTC/USDT","side":"buy","qty":"0.3","is_last":true}}"#, "-"),
    (r#"{"intent":{"symbol":"BTC/USDT","side":"sell","px":"60000","qty":"0.8"}}"#, ""),
    (r#"{"intent":{"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.1"}}"#, "RATE_ACCOUNT"),
    (r#"{"at_ms":1000,"kill":{"instrument":"BTC/USDT"}}"#, "-"),
    (r#"{"at_ms":1000,"intent":{"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.1"}}"#, "KILL_INSTRUMENT"),
    (r#"{"at_ms":1000,"revive":{"instrument":"BTC/USDT"}}"#, "-"),
    (r#"{"at_ms":2001,"intent":{"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.1"}}"#, "MD_STALE"),
];

fn judged(folder: &Path, events: &str, flags: &[&str]) -> Output {
    judging(folder, events, flags).output().expect("the binary starts")
}

fn judging(folder: &Path, events: &str, flags: &[&str]) -> Command {
    let (limits, file) = (folder.join("limits.toml"), folder.join("events.jsonl"));
    std::fs::write(&limits, LIMITS).expect("written");
    std::fs::write(&file, events).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_truetick"));
    command.arg("risk").arg("--limits").arg(limits).arg("--events").arg(file).args(flags);
    command
}

#[test]
fn a_reader_that_has_gone_is_no_failure() {
    let folder = tempfile::tempdir().expect("folder");
    let (reader, writer) = std::io::pipe().expect("pipe");
    drop(reader);
    let output = judging(folder.path(), EVENTS[0].0, &[]).stdout(writer).output().expect("the binary starts");
    assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]));
}

#[test]
fn every_intent_gets_the_verdict_that_the_limits_ask_for() {
    let folder = tempfile::tempdir().expect("folder");
    let events: Vec<_> = EVENTS.iter().map(|(event, _)| *event).collect();
    let output = judged(folder.path(), &events.join("\n"), &["--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows: Vec<serde_json::Value> =
        String::from_utf8(output.stdout).expect("UTF-8").lines().map(|row| row.parse().expect("JSON")).collect();
    let expected: Vec<_> = EVENTS.iter().filter(|(_, reasons)| *reasons != "-").collect();
    assert_eq!(rows.len(), expected.len() + 1);
    for (row, (event, reasons)) in rows.iter().zip(&expected) {
        let found: Vec<_> =
            row["reasons"].as_array().expect("a list").iter().filter_map(|name| name.as_str()).collect();
        assert_eq!(found.join(" "), *reasons, "{event}");
        assert_eq!(row["accept"], reasons.is_empty(), "{event}");
    }
    let total = rows.last().expect("a total");
    assert_eq!((total["intents"].as_u64(), total["accepted"].as_u64()), (Some(expected.len() as u64), Some(2)));
    assert_eq!(total["refused"].as_u64(), Some(expected.len() as u64 - 2));
}

#[test]
fn what_makes_no_sense_is_named_with_its_line() {
    let folder = tempfile::tempdir().expect("folder");
    let cases = [
        ("\n{\"intent\":{\"symbol\":\"X\",\"side\":\"buy\",\"qty\":\"1\"}}", "line 2: no instrument `X`"),
        ("{\"intent\":{\"symbol\":\"BTC/USDT\",\"side\":\"buy\",\"px\":\"1.001\",\"qty\":\"1\"}}", "line 1: `1.001`"),
        ("{\"cancel\":{\"symbol\":\"BTC/USDT\",\"side\":\"buy\",\"qty\":\"1\"}}", "line 1: less was open"),
        ("{\"order\":1}", "line 1: "),
    ];
    for (events, told) in cases {
        let output = judged(folder.path(), events, &[]);
        let error = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{error}");
        assert!(error.contains(told), "{error}");
    }
}
