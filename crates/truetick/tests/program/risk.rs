//! `truetick risk` from outside: each line is judged as the limits in the file say.

use std::path::Path;
use std::process::{Command, Output};

const LIMITS: &str = include_str!("../../../../deploy/limits.toml");

/// Each event with the reasons of its verdict; `-` for an event without one.
const EVENTS: &[(&str, &str)] = &[
    (
        r#"{"intent":{"symbol":"BTC/USDT","side":"buy","px":"100.00","qty":"0.1"}}"#,
        "COLLAR_REF MD_STALE BOOK_UNVERIFIED",
    ),
    (r#"{"mark":{"symbol":"BTC/USDT","px":"60000.00","is_verified":true}}"#, "-"),
    (r#"{"intent":{"client_id":107,"symbol":"BTC/USDT","side":"buy","px":"60600.00","qty":"0.3"}}"#, ""),
    (r#"{"intent":{"symbol":"BTC/USDT","side":"buy","px":"60600.10","qty":"0.1"}}"#, "COLLAR_REF"),
    (r#"{"intent":{"symbol":"BTC/USDT","side":"sell","px":"60000.05","qty":"0.1"}}"#, "PRICE_TICK SELF_MATCH"),
    (r#"{"intent":{"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.20001"}}"#, "POS_LONG"),
    (r#"{"intent":{"symbol":"BTC/USDT","side":"sell","px":"60000","qty":"0.00009"}}"#, "QTY_MIN SELF_MATCH"),
    (r#"{"intent":{"symbol":"BTC/USDT","side":"sell","px":"60000","qty":"0.9"}}"#, "NOTIONAL_MAX POS_SHORT SELF_MATCH"),
    (r#"{"intent":{"client_id":107,"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.1"}}"#, "DUP_ID"),
    (r#"{"intent":{"client_id":108,"symbol":"BTC/USDT","side":"sell","px":"60600","qty":"0.1"}}"#, "SELF_MATCH"),
    (r#"{"fill":{"client_id":107,"symbol":"BTC/USDT","side":"buy","qty":"0.3","px":"60600"}}"#, "-"),
    (r#"{"intent":{"client_id":108,"symbol":"BTC/USDT","side":"sell","px":"60000","qty":"0.8"}}"#, ""),
    (r#"{"intent":{"symbol":"BTC/USDT","side":"buy","px":"59999.9","qty":"0.1"}}"#, "RATE_ACCOUNT"),
    (r#"{"at_ms":1000,"kill":{"instrument":"BTC/USDT"}}"#, "-"),
    (r#"{"at_ms":1000,"intent":{"symbol":"BTC/USDT","side":"buy","px":"59999.9","qty":"0.1"}}"#, "KILL_INSTRUMENT"),
    (r#"{"at_ms":1000,"revive":{"instrument":"BTC/USDT"}}"#, "-"),
    (r#"{"at_ms":2001,"intent":{"symbol":"BTC/USDT","side":"buy","px":"59999.9","qty":"0.1"}}"#, "MD_STALE"),
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
    let (reports, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row["report"].is_string());
    assert_eq!((reports.len(), reports[0]["outcome"].as_str()), (1, Some("applied")), "{reports:?}");
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
    assert_eq!(total["rejected"].as_u64(), Some(expected.len() as u64 - 2));
}

#[test]
fn what_makes_no_sense_is_named_with_its_line() {
    let folder = tempfile::tempdir().expect("folder");
    let cases = [
        ("\n{\"kill\":{\"instrument\":\"X\"}}", "line 2: no instrument `X`"),
        (
            "{\"fill\":{\"client_id\":1,\"symbol\":\"BTC/USDT\",\"qty\":\"1\",\"is_last\":true}}",
            "unknown field `is_last`",
        ),
        ("{\"cancel\":{\"symbol\":\"BTC/USDT\",\"side\":\"buy\",\"qty\":\"1\"}}", "missing field `client_id`"),
        ("{\"order\":1}", "line 1: "),
    ];
    for (events, message) in cases {
        let output = judged(folder.path(), events, &[]);
        let error = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{error}");
        assert!(error.contains(message), "{error}");
    }
}

/// A typo of one strategy stops no other: it is refused, or ignored, by name.
#[test]
fn unknown_symbols_and_values_that_cannot_be_read_do_not_end_the_run() {
    let order = r#"{"intent":{"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.01"}}"#;
    let rows = rows_of(
        &[],
        &[
            MARK,
            r#"{"mark":{"symbol":"NO/SUCH","px":"1"}}"#,
            r#"{"intent":{"symbol":"NO/SUCH","side":"buy","px":"60000","qty":"0.01"}}"#,
            r#"{"intent":{"symbol":"BTC/USDT","side":"buy","px":"60000.001","qty":"0.01"}}"#,
            r#"{"intent":{"symbol":"BTC/USDT","px":"60000","qty":"0.01"}}"#,
            r#"{"intent":{"symbol":"BTC/USDT","side":"buy","px":"60000"}}"#,
            r#"{"intent":{"kind":"cancel","client_id":9,"symbol":"NO/SUCH"}}"#,
            r#"{"intent":{"strategy":7,"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.01"}}"#,
            order,
            r#"{"fill":{"client_id":1,"symbol":"NO/SUCH","side":"buy","qty":"1","px":"1"}}"#,
            order,
            r#"{"adopt":0}"#,
            r#"{"fill":{"client_id":9,"symbol":"BTC/USDT","side":"buy","qty":"0.000001","px":"60000"}}"#,
            order,
        ],
    );
    assert_eq!((rows[0]["ignored"].as_u64(), rows[0]["error"].as_str()), (Some(2), Some("no instrument `NO/SUCH`")));
    let said = said(&rows);
    let expected = [
        ("INSTRUMENT_UNKNOWN", 0),
        ("MALFORMED", 1),
        ("MALFORMED", 2),
        ("MALFORMED", 3),
        ("INSTRUMENT_UNKNOWN", 4),
        ("NOT_PERMITTED", 5),
        ("", 6),
        ("malformed", 7),
        ("UNRECONCILED", 8),
        ("malformed", 9),
        ("UNRECONCILED", 10),
    ];
    assert_eq!(said.len(), expected.len(), "{said:?}");
    for (reason, index) in expected {
        assert!(said[index].contains(reason) && (reason.is_empty() == said[index].is_empty()), "{index}: {said:?}");
    }
}

/// A producer whose intents are refused too often loses its strategies, until a person revives them.
#[test]
fn refusals_beyond_their_rate_kill_the_producers_strategies() {
    let order = |strategy: u16, qty: &str| {
        format!(r#"{{"intent":{{"strategy":{strategy},"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"{qty}"}}}}"#)
    };
    let (good, bad, other) = (order(0, "0.01"), order(0, "40"), order(1, "0.01"));
    let revive = r#"{"revive":{"strategy":0}}"#;
    let rows = rows_of(
        &[
            ("strategies = [0]", "strategies = [0, 1]"),
            ("refusal_rate = { per_second = 100, burst = 1000 }", "refusal_rate = { per_second = 1, burst = 2 }"),
        ],
        &[MARK, &bad, &bad, &good, &bad, &good, &other, revive, &good],
    );
    let said = said(&rows);
    assert_eq!([&said[2], &said[4], &said[5], &said[6]], ["", "KILL_STRATEGY", "KILL_STRATEGY", ""], "{said:?}");
}

/// Limits in money of the firm, the account and its strategies, from the file.
#[test]
fn exposure_and_losses_in_money_are_limited_at_every_level() {
    let order = |side: &str, qty: &str| {
        format!(r#"{{"intent":{{"symbol":"BTC/USDT","side":"{side}","px":"60000","qty":"{qty}"}}}}"#)
    };
    let (at, more) = (order("buy", "0.3"), order("buy", "0.30001"));
    for (key, from, to) in [
        ("firm", "global_rate =", "firm = { gross_max = \"18000\" }\nglobal_rate ="),
        ("account", "strategies = [0]", "strategies = [0]\nmoney = { gross_max = \"18000\" }"),
        ("strategy", "strategies = [0]", "strategies = [0]\nstrategy_money = { gross_max = \"18000\" }"),
    ] {
        let rows = rows_of(&[(from, to)], &[MARK, &more, &at, &order("buy", "0.00010")]);
        assert_eq!(said(&rows), ["GROSS_EXPOSURE", "", "GROSS_EXPOSURE"], "{key}");
        assert_eq!((&rows[0]["level"], &rows[1]["level"]), (&serde_json::json!(key), &serde_json::Value::Null));
        assert_eq!(rows[1]["notes"], serde_json::json!(["NEAR_LIMIT", "AT_LIMIT"]));
    }
    // A loss of 30 at a limit of 29.9: reduce mode.
    let fill = r#"{"fill":{"client_id":2,"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.3"}}"#;
    let fall = r#"{"mark":{"symbol":"BTC/USDT","px":"59900","is_verified":true}}"#;
    let money = ("strategies = [0]", "strategies = [0]\nmoney = { daily_loss_max = \"29.9\" }");
    let rows = rows_of(&[money], &[MARK, &at, fill, fall, &order("buy", "0.01"), &order("sell", "0.1")]);
    assert_eq!(said(&rows), ["", "applied", "REDUCE_ONLY_STATE DAILY_LOSS", ""]);
}

/// The gate's own modes are kept as an operator's are.
#[test]
fn reduce_mode_after_an_overfill_outlives_the_process() {
    let folder = tempfile::tempdir().expect("folder");
    let modes = folder.path().join("modes");
    let order = r#"{"intent":{"client_id":1,"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.1"}}"#;
    let fill = r#"{"fill":{"client_id":1,"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.2"}}"#;
    let run = |events: &[&str]| {
        let lines = [&[MARK], events].concat().join("\n");
        let output = judged(folder.path(), &lines, &["--json", "--modes", modes.to_str().expect("UTF-8")]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        said(&text.lines().map(|row| row.parse().expect("JSON")).collect::<Vec<_>>())
    };
    assert_eq!(run(&[order, fill]), ["", "overfill"]);
    let kept = std::fs::read_to_string(&modes).expect("a file");
    assert!(kept.lines().any(|line| line == "reduce account 0"), "{kept}");
    assert_eq!(run(&[order]), ["REDUCE_ONLY_STATE"]);
}

/// Rows of `truetick risk --json` for these lines, under the shipped limits with `from` replaced by `to`.
fn rows_of(replaced: &[(&str, &str)], lines: &[&str]) -> Vec<serde_json::Value> {
    let folder = tempfile::tempdir().expect("folder");
    let mut limits =
        LIMITS.replace("rate = { per_second = 2, burst = 2 }", "rate = { per_second = 1000, burst = 1000 }");
    for (from, to) in replaced {
        assert!(limits.contains(from), "{from}");
        limits = limits.replace(from, to);
    }
    let mut command = judging(folder.path(), &lines.join("\n"), &["--json"]);
    std::fs::write(folder.path().join("limits.toml"), limits).expect("written");
    let output = command.output().expect("the binary starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8").lines().map(|row| row.parse().expect("JSON")).collect()
}

/// What each row says: the reasons of a verdict, or the outcome of a report.
fn said(rows: &[serde_json::Value]) -> Vec<String> {
    let reasons = |row: &serde_json::Value| {
        let names = row["reasons"].as_array()?.iter().filter_map(|name| name.as_str());
        Some(names.collect::<Vec<_>>().join(" "))
    };
    let outcome = |row: &serde_json::Value| row["outcome"].as_str().map(str::to_owned);
    rows.iter().filter_map(|row| reasons(row).or_else(|| outcome(row))).collect()
}

const MARK: &str = r#"{"mark":{"symbol":"BTC/USDT","px":"60000","bid":"59999.9","ask":"60000.1","is_verified":true}}"#;

/// The shipped limits allow a long position of 0.5. A cancel that claims 0.50 of an order of 0.25 frees 0.25.
#[test]
fn case_k11_a_wrong_cancel_frees_no_more_than_its_order() {
    let rows = rows_of(
        &[],
        &[
            MARK,
            r#"{"intent":{"client_id":1,"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.25"}}"#,
            r#"{"intent":{"client_id":2,"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.25"}}"#,
            r#"{"cancel":{"client_id":1,"symbol":"BTC/USDT","side":"buy","qty":"0.50"}}"#,
            r#"{"intent":{"client_id":3,"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.25001"}}"#,
            r#"{"intent":{"client_id":4,"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.25"}}"#,
        ],
    );
    assert_eq!(said(&rows), ["", "", "applied", "POS_LONG", ""]);
    assert_eq!(rows[4]["worst_position"], "0.50000");
}

#[test]
fn case_k11_a_repeated_or_unknown_fill_passes_no_limit() {
    let rows = rows_of(
        &[],
        &[
            MARK,
            r#"{"intent":{"client_id":1,"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.25"}}"#,
            r#"{"fill":{"client_id":1,"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.1","execution_id":"77"}}"#,
            r#"{"fill":{"client_id":1,"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.1","execution_id":77}}"#,
            r#"{"intent":{"client_id":2,"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.25"}}"#,
            r#"{"intent":{"client_id":3,"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.00010"}}"#,
            r#"{"fill":{"client_id":4242,"symbol":"BTC/USDT","side":"sell","px":"60000","qty":"0.1"}}"#,
            r#"{"intent":{"client_id":5,"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.00010"}}"#,
            r#"{"intent":{"kind":"cancel","client_id":2,"symbol":"BTC/USDT"}}"#,
            r#"{"adopt":0}"#,
            r#"{"intent":{"client_id":6,"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.1"}}"#,
        ],
    );
    let expected = ["", "applied", "duplicate", "", "POS_LONG", "unknown_fill", "UNRECONCILED", "", ""];
    assert_eq!(said(&rows), expected);
    let total = rows.last().expect("a total");
    assert_eq!(total["reports"], serde_json::json!({ "applied": 1, "duplicate": 1, "unknown_fill": 1 }));
}

#[test]
fn each_row_of_the_reports_has_its_outcome() {
    let order = r#"{"intent":{"client_id":1,"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.2"}}"#;
    let line = |kind: &str, more: &str| {
        format!(r#"{{"report":{{"kind":"{kind}","client_id":1,"symbol":"BTC/USDT","side":"buy"{more}}}}}"#)
    };
    let reports = [
        ("ack", "", "applied"),
        ("fill", r#","execution_id":1,"qty":"0.05","px":"60000""#, "applied"),
        ("correct", r#","undone_id":1,"execution_id":2,"qty":"0.04","px":"60000""#, "applied"),
        ("bust", r#","undone_id":2"#, "applied"),
        ("bust", r#","undone_id":9"#, "unknown"),
        ("cancel_rejected", "", "duplicate"),
        ("replace_rejected", "", "duplicate"),
        ("restated", r#","order_qty":"0.1""#, "applied"),
        ("restated", r#","order_qty":"0.3""#, "enlarged"),
        // Without a version a smaller quantity may be older than the larger one.
        ("replaced", r#","order_qty":"0.2""#, "overtaken"),
        ("replaced", r#","order_qty":"0.2","version":"current""#, "applied"),
        ("fill", r#","execution_id":3,"qty":"0.9","px":"60000""#, "overfill"),
        ("expired", "", "duplicate"),
        ("unsent", "", "duplicate"),
        ("rejected", r#","executed":"5""#, "conflict"),
        ("no_such_kind", "", "malformed"),
    ];
    let lines: Vec<_> = reports.iter().map(|(kind, more, _)| line(kind, more)).collect();
    let events: Vec<_> = [MARK, order].into_iter().chain(lines.iter().map(String::as_str)).collect();
    let expected: Vec<_> = [""].into_iter().chain(reports.iter().map(|(_, _, outcome)| *outcome)).collect();
    assert_eq!(said(&rows_of(&[], &events)), expected);
}

#[test]
fn a_halted_instrument_and_a_strategy_that_repeats_itself_are_refused() {
    let order = r#"{"intent":{"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.01"}}"#;
    let state = |state: &str| format!(r#"{{"state":{{"symbol":"BTC/USDT","state":"{state}"}}}}"#);
    let (halted, open) = (state("halted"), state("open"));
    let rows = rows_of(
        &[("same_orders_max = 10", "same_orders_max = 2")],
        &[MARK, order, &halted, order, &open, order, order],
    );
    assert_eq!(said(&rows), ["", "INSTRUMENT_HALTED", "", "DUP_ORDER"]);
}

/// Modes in a file are in force in the next process.
#[test]
fn case_k18_a_kill_outlives_the_process() {
    let folder = tempfile::tempdir().expect("folder");
    let modes = folder.path().join("modes");
    let order = r#"{"intent":{"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"0.1"}}"#;
    let run = |events: &[&str]| {
        let lines = [&[MARK], events].concat().join("\n");
        let output = judged(folder.path(), &lines, &["--json", "--modes", modes.to_str().expect("UTF-8")]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        said(&text.lines().map(|row| row.parse().expect("JSON")).collect::<Vec<_>>())
    };
    assert_eq!(run(&[order, r#"{"kill":{"account":0}}"#, order]), ["", "KILL_ACCOUNT"]);
    assert_eq!(run(&[order]), ["KILL_ACCOUNT"]);
    assert_eq!(run(&[r#"{"revive":{"account":0}}"#, order, r#"{"reduce":{"instrument":"BTC/USDT"}}"#]), [""]);
    assert_eq!(run(&[order]), ["REDUCE_ONLY_STATE"]);
    std::fs::write(&modes, "kill everything\n").expect("written");
    let output = judged(folder.path(), order, &["--modes", modes.to_str().expect("UTF-8")]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "a file that cannot be read stops the start");
}

/// Verdicts of two crossing orders under one client id, with `keys` added to the account's limits.
fn crossing(keys: &str) -> (Vec<String>, Output) {
    let folder = tempfile::tempdir().expect("folder");
    let limits = LIMITS.replace("id_window_ms = 600000", "id_window_ms = 1000");
    let limits = limits.replace("reject_duplicate_ids = true\nreject_self_match = true\n", keys);
    std::fs::write(folder.path().join("limits.toml"), limits).expect("written");
    let mark = r#"{"mark":{"symbol":"BTC/USDT","px":"60000","is_verified":true}}"#;
    let order = |side, at_ms| {
        let intent = format!(r#""client_id":7,"symbol":"BTC/USDT","side":"{side}","px":"60000","qty":"0.1""#);
        format!(r#"{{"at_ms":{at_ms},"intent":{{{intent}}}}}"#)
    };
    let rejected = r#"{"report":{"kind":"rejected","client_id":7,"symbol":"BTC/USDT"}}"#.to_owned();
    let lines = [mark.to_owned(), order("buy", 0), order("sell", 0), rejected, order("sell", 999), order("sell", 1000)];
    let events = lines.join("\n");
    std::fs::write(folder.path().join("events.jsonl"), events).expect("written");
    let run = |flags: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_truetick"));
        command.current_dir(folder.path()).args(["risk", "--limits", "limits.toml", "--events", "events.jsonl"]);
        command.args(flags).output().expect("the binary starts")
    };
    let text = String::from_utf8(run(&["--json"]).stdout).expect("UTF-8");
    let rows = text.lines().map(|row| row.parse::<serde_json::Value>().expect("JSON"));
    let verdicts = rows.filter(|row| row["seq"].is_u64()).map(|row| format!("{} {}", row["accept"], row["reasons"]));
    (verdicts.collect(), run(&["--print-limits"]))
}

#[test]
fn case_k07_k08_the_limits_file_cannot_switch_them_off() {
    let (verdicts, printed) = crossing("");
    assert_eq!(verdicts, ["true []", r#"false ["DUP_ID","SELF_MATCH"]"#, r#"false ["DUP_ID"]"#, "true []"]);
    let printed = String::from_utf8(printed.stdout).expect("UTF-8");
    for line in ["id_window_ms = 1000", "reject_duplicate_ids = true", "reject_self_match = true"] {
        assert!(printed.lines().any(|printed| printed == line), "{printed}");
    }
    for key in ["reject_self_match", "reject_duplicate_ids"] {
        let (verdicts, printed) = crossing(&format!("{key} = false\n"));
        let error = String::from_utf8(printed.stderr).expect("UTF-8");
        assert_eq!((verdicts.len(), printed.status.code()), (0, Some(1)));
        assert!(error.contains(&format!("{key} = false: the check cannot be switched off")), "{error}");
    }
}

#[test]
fn what_could_not_be_remembered_is_refused_at_the_start() {
    let folder = tempfile::tempdir().expect("folder");
    for (from, to, message) in [
        ("id_window_ms = 600000", "id_window_ms = 8640000000", "id_window_ms"),
        ("open_orders_max = 10", "open_orders_max = 5000000", "open_orders_max"),
    ] {
        let path = folder.path().join("limits.toml");
        std::fs::write(&path, LIMITS.replace(from, to)).expect("written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_truetick"));
        let output =
            command.args(["risk", "--events", "/dev/null", "--limits"]).arg(&path).output().expect("it starts");
        let error = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{error}");
        assert!(error.contains(message), "{error}");
    }
}
