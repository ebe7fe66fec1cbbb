//! Limits files of format 2 from outside: `truetick gate check|diff`, verdicts, temporary limits, replacement.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const LIMITS: &str = include_str!("../../../../deploy/gate-limits.toml");

/// 2026-12-01T00:00:00Z, when the temporary limits of the sample revert.
const UNTIL_MS: u64 = 1_796_083_200_000;

fn truetick(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_truetick"));
    command.current_dir(folder).args(["--log-level", "off"]).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Limits with `changes`, in a folder under `name`.
fn write(folder: &Path, name: &str, changes: &[(&str, &str)]) {
    // Rates that no test meets.
    let wide = LIMITS.replace("per-second = 2, burst = 2", "per-second = 100, burst = 100");
    let wide = wide.replace("# temporary = {", "temporary = {");
    let changed = changes.iter().fold(wide, |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    });
    fs::write(folder.join(name), changed).unwrap();
}

fn rows(folder: &Path, flags: &[&str], events: &[String]) -> Vec<Value> {
    fs::write(folder.join("events.jsonl"), events.join("\n")).unwrap();
    let arguments = ["risk", "--limits", "1.toml", "--events", "events.jsonl", "--json"];
    let printed = text(&truetick(folder, &[&arguments[..], flags].concat()));
    printed.lines().map(|row| row.parse().unwrap()).collect()
}

/// The reasons of each verdict.
fn reasons(rows: &[Value]) -> Vec<String> {
    let names = rows.iter().filter_map(|row| row["reasons"].as_array());
    names.map(|names| names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")).collect()
}

fn mark(at_ms: u64) -> String {
    format!(
        r#"{{"at_ms":{at_ms},"mark":{{"symbol":"BTC/USDT","px":"60000","bid":"59999.9","ask":"60000.1","is_verified":true}}}}"#
    )
}

fn order(at_ms: u64, side: &str, qty: &str) -> String {
    format!(
        r#"{{"at_ms":{at_ms},"intent":{{"strategy":1,"symbol":"BTC/USDT","side":"{side}","px":"60000","qty":"{qty}"}}}}"#
    )
}

fn fill(client_id: u64, side: &str, qty: &str) -> String {
    format!(
        r#"{{"at_ms":1,"fill":{{"client_id":{client_id},"symbol":"BTC/USDT","side":"{side}","qty":"{qty}","px":"60000"}}}}"#
    )
}

#[test]
fn check_says_what_a_file_means_and_refuses_contradictions_with_line_and_values() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "1.toml", &[]);
    let said = text(&truetick(folder.path(), &["gate", "check", "1.toml"]));
    for line in [
        "1.toml: format 2, version 1, sha256 ",
        "account main: strategy mm1, BTC/USDT\n  qty-max                  1.00000\n",
        "  contract                 spot 10/1 of currency 0, fee 10 bps",
        "currency BTC\n  haircut-bps              100\n",
        "\nwarning: account main: margin is off\n",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let json: Value = text(&truetick(folder.path(), &["gate", "check", "1.toml", "--json"])).parse().unwrap();
    assert_eq!((json["version"].as_u64(), json["sha256"].as_str().map(str::len)), (Some(1), Some(64)));
    assert_eq!(json["limits"]["firm"]["net-max"], "100000.00000000");
    write(folder.path(), "2.toml", &[("2026-12-01T00:00:00Z", "2020-12-01T00:00:00Z")]);
    let said = text(&truetick(folder.path(), &["gate", "check", "2.toml"]));
    assert!(said.contains("\nwarning: temporary limits until 2020-12-01T00:00:00Z are over\n"), "{said}");
    let format_1 = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/limits.toml");
    assert!(text(&truetick(folder.path(), &["gate", "check", format_1])).contains("limits.toml: format 1, sha256 "));
    for (from, to, error) in [
        (
            "\nqty-max = \"1\"",
            "\nqty-max = \"3\"",
            "account main, BTC/USDT: qty-max = 3 is above 2, that of firm, BTC/USDT in line 66",
        ),
        ("collar-bps = 100", "collar_bps = 100", "instrument BTC/USDT: `collar-bps` is missing"),
        ("[firm]", "[firm]\nfirm-max = \"1\"", "line 59: firm: unknown key `firm-max`"),
    ] {
        write(folder.path(), "2.toml", &[(from, to)]);
        let output = truetick(folder.path(), &["gate", "check", "2.toml"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.contains(error)), (Some(1), true), "{said}");
    }
}

/// Balance, margin and leverage are judged as the file says, and a missing input is a breach.
#[test]
fn balance_margin_and_leverage_are_judged_as_the_file_says() {
    let folder = tempfile::tempdir().unwrap();
    let on = [
        ("balance = \"off\"", "balance = \"checked\""),
        ("margin = \"off\"", "margin = \"checked\""),
        ("leverage-max = \"off\"", "leverage-max = \"2\""),
    ];
    write(folder.path(), "1.toml", &on);
    let equity = |total: u64| format!(r#"{{"at_ms":1,"equity":{{"account":0,"total":"{total}"}}}}"#);
    let usdt = |total: &str| format!(r#"{{"at_ms":1,"balance":{{"account":0,"currency":"USDT","total":"{total}"}}}}"#);
    let btc = |total: &str| format!(r#"{{"at_ms":1,"balance":{{"account":0,"currency":"BTC","total":"{total}"}}}}"#);
    let events = [
        mark(1),
        // 6000, and a fee of 10 bps.
        order(1, "buy", "0.1"),
        usdt("6005.99"),
        equity(5_999),
        order(1, "buy", "0.1"),
        usdt("6006"),
        equity(6_000),
        order(1, "buy", "0.1"),
        fill(8, "buy", "0.1"),
        usdt("100000"),
        // The whole value is margin, and a gross of 9000 is within twice 4500.
        equity(4_500),
        order(1, "buy", "0.05"),
        equity(4_499),
        order(1, "buy", "0.05"),
        // A sale needs the coins, and the fee; it reduces.
        btc("0.05004"),
        order(1, "sell", "0.05"),
        btc("0.05005"),
        order(1, "sell", "0.05"),
    ];
    let found = reasons(&rows(folder.path(), &[], &events));
    let expected = ["BALANCE MARGIN LEVERAGE", "BALANCE MARGIN", "", "MARGIN", "MARGIN LEVERAGE", "BALANCE", ""];
    assert_eq!(found, expected);
}

#[test]
fn temporary_limits_revert_by_themselves_and_the_journal_says_when() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "1.toml", &[]);
    let before = UNTIL_MS - 1;
    let events = [
        mark(before),
        order(before, "buy", "0.4"),
        order(before, "buy", "0.05"),
        mark(UNTIL_MS),
        order(UNTIL_MS, "buy", "0.05"),
        order(UNTIL_MS, "buy", "0.06"),
    ];
    let rows = rows(folder.path(), &["--journal", "journal"], &events);
    assert_eq!(reasons(&rows), ["", "POS_LONG", "", "POS_LONG"]);
    assert!(rows.iter().filter(|row| row["seq"].is_u64()).all(|row| row["limits_version"] == 1));
    let replayed = text(&truetick(folder.path(), &["gate", "replay", "journal"]));
    assert!(replayed.contains("4 verdicts: every answer is the recorded one"), "{replayed}");
    let export = text(&truetick(folder.path(), &["gate", "export", "journal"]));
    let loads: Vec<_> = export.lines().filter(|row| row.contains(",load,")).collect();
    assert_eq!(loads.len(), 1, "{export}");
    assert!(loads[0].contains(&format!(",{UNTIL_MS}000000,load,")), "{loads:?}");
}

/// The whole file is swapped between two intents: the version in each verdict is that of the file. What is refused leaves
/// the running limits, and a node that is beyond the new limits takes only orders that reduce.
#[test]
fn a_running_gate_takes_another_file_whole_and_the_journal_continues_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let tighter = [
        ("version = 1", "version = 2"),
        ("position-long-max = \"0.5\"", "position-long-max = \"0.4\""),
        ("temporary = {", "# {"),
    ];
    write(folder.path(), "1.toml", &[("temporary = {", "# {")]);
    let below = [tighter[0], ("temporary = {", "# {")];
    let text_2 = {
        write(folder.path(), "2.toml", &below);
        let text = fs::read_to_string(folder.path().join("2.toml")).unwrap();
        text.replace("position-long-max = \"0.5\"", "position-long-max = \"0.1\"")
    };
    fs::write(folder.path().join("2.toml"), &text_2).unwrap();
    fs::write(folder.path().join("bad.toml"), text_2.replace("qty-max = \"1\"", "qty-max = \"9\"")).unwrap();
    fs::write(folder.path().join("late.toml"), text_2.replace("version = 2", "version = 4")).unwrap();
    let units = text_2.replace("px-unit = \"0.01\"", "px-unit = \"0.02\"");
    fs::write(folder.path().join("units.toml"), units).unwrap();
    let load = |name: &str| format!(r#"{{"at_ms":1,"load":"{name}.toml"}}"#);
    let events = [
        mark(1),
        order(1, "buy", "0.3"),
        fill(2, "buy", "0.3"),
        load("bad"),
        load("late"),
        load("units"),
        order(1, "buy", "0.1"),
        load("2"),
        order(1, "buy", "0.001"),
        // Still 0.1 open: a sale that leaves a long position reduces.
        order(1, "sell", "0.2"),
        order(1, "sell", "0.2"),
    ];
    let rows = rows(folder.path(), &["--journal", "journal"], &events);
    assert_eq!(reasons(&rows), ["", "", "POS_LONG", "SELF_MATCH", "SELF_MATCH"]);
    let versions: Vec<_> =
        rows.iter().filter_map(|row| row["seq"].as_u64().and(row["limits_version"].as_u64())).collect();
    assert_eq!(versions, [1, 1, 2, 2, 2]);
    let loads: Vec<_> = rows.iter().filter(|row| row["load"].is_string()).collect();
    let errors: Vec<_> = loads.iter().filter_map(|row| row["error"].as_str()).collect();
    assert!(errors[0].contains("qty-max = 9 is above 2"), "{errors:?}");
    assert_eq!(errors[1], "version = 4: the running one is 1, the next one is 2");
    assert_eq!(errors[2], "BTC/USDT: the unit of a price is 0.01 and would be 0.02");
    assert_eq!((errors.len(), loads[3]["limits_version"].as_u64()), (3, Some(2)));
    let hash = loads[3]["sha256"].as_str().unwrap();
    let export = text(&truetick(folder.path(), &["gate", "export", "journal"]));
    assert!(export.contains(&format!(",load,,,,,,,,{hash},")), "{export}");
    assert!(text(&truetick(folder.path(), &["gate", "replay", "journal"])).contains("5 verdicts: every answer"));
    // Who is beyond the limits of the second file, at the end of the journal?
    let said = text(&truetick(folder.path(), &["gate", "diff", "1.toml", "2.toml", "--journal", "journal"]));
    let beyond =
        "beyond    account main, BTC/USDT: 0.40000 is above position-long-max = 0.10000: only orders that reduce pass";
    assert!(said.contains(beyond), "{said}");
    assert!(said.contains("tightens  account main, BTC/USDT: position-long-max 0.50000 -> 0.10000"), "{said}");
    assert!(said.ends_with("0 loosen, 2 tighten, 0 others\n"), "{said}");
    next_run(folder.path(), &text_2);
}

/// The next run begins with the file that the journal ended with, or the one after it.
fn next_run(folder: &Path, text_2: &str) {
    let adopt = r#"{"at_ms":2,"adopt":0}"#.to_owned();
    let events = [adopt, mark(2), order(2, "buy", "0.001")];
    fs::write(folder.join("1.toml"), text_2).unwrap();
    let of = rows(folder, &["--journal", "journal"], &events);
    assert_eq!((reasons(&of), of[0]["limits_version"].as_u64()), (vec!["POS_LONG".to_owned()], Some(2)));
    let wider = text_2
        .replace("version = 2", "version = 3")
        .replace("position-long-max = \"0.1\"", "position-long-max = \"0.5\"");
    fs::write(folder.join("1.toml"), wider).unwrap();
    let of = rows(folder, &["--journal", "journal"], &events);
    assert_eq!((reasons(&of), of[0]["limits_version"].as_u64()), (vec![String::new()], Some(3)));
    fs::write(folder.join("1.toml"), text_2).unwrap();
    let arguments = ["risk", "--limits", "1.toml", "--events", "events.jsonl", "--journal", "journal"];
    let output = truetick(folder, &arguments);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(error.contains("version = 2: the running one is 3, the next one is 4"), "{error}");
}

/// Each reason is explained with value, limit and node: firm, account and strategy have other limits.
#[test]
fn reasons_are_explained_with_the_node_whose_limit_is_exceeded() {
    let folder = tempfile::tempdir().unwrap();
    let text_1 = {
        write(folder.path(), "1.toml", &[("temporary = {", "# {")]);
        fs::read_to_string(folder.path().join("1.toml")).unwrap()
    };
    // The limits of the strategy are the last ones.
    let (of_others, of_strategy) = text_1.split_once("[account.main.strategy.mm1]").unwrap();
    let of_strategy = of_strategy
        .replace("qty-max = \"1\"", "qty-max = \"0.3\"")
        .replace("position-long-max = \"0.5\"", "position-long-max = \"0.2\"")
        .replace("gross-max = \"50000\"", "gross-max = \"10000\"");
    let of_others = of_others.replace("gross-max = \"100000\"", "gross-max = \"20000\"");
    let limits = format!("{of_others}[account.main.strategy.mm1]{of_strategy}");
    fs::write(folder.path().join("1.toml"), limits).unwrap();
    let events = [mark(1), order(1, "buy", "0.25"), order(1, "buy", "0.6")];
    let found = reasons(&rows(folder.path(), &["--journal", "journal"], &events));
    assert_eq!(found, ["POS_LONG GROSS_EXPOSURE", "QTY_MAX POS_LONG GROSS_EXPOSURE"]);
    let explain = |verdict: &str| {
        let said = text(&truetick(folder.path(), &["gate", "explain", verdict, "--journal", "journal"]));
        said.split_once("\nlimits, version 1: ").unwrap().1.split_once('\n').unwrap().1.to_owned()
    };
    let strategy = "account main: strategy mm1";
    let position = "with all open buys filled the position would be";
    assert_eq!(
        explain("1"),
        format!(
            "POS_LONG: {strategy}: {position} 0.25000, the limit is 0.20000\n\
             GROSS_EXPOSURE: {strategy}: the gross exposure would be 15000.00000000, the limit is 10000.00000000\n"
        )
    );
    assert_eq!(
        explain("2"),
        format!(
            "QTY_MAX: {strategy}: the quantity is 0.60000, the limit is 0.30000\n\
             POS_LONG: account main: {position} 0.60000, the limit is 0.50000\n\
             POS_LONG: {strategy}: {position} 0.60000, the limit is 0.20000\n\
             GROSS_EXPOSURE: account main: the gross exposure would be 36000.00000000, the limit is 20000.00000000\n\
             GROSS_EXPOSURE: {strategy}: the gross exposure would be 36000.00000000, the limit is 10000.00000000\n"
        )
    );
}

/// Reasons that count messages or compare times have a limit and a node too; a mode names its scope.
#[test]
fn rates_times_and_modes_are_explained_with_their_limit_and_node() {
    let folder = tempfile::tempdir().unwrap();
    let rate = ("per-second = 100, burst = 100 }\n", "per-second = 2, burst = 2 }\n");
    let changes = [("temporary = {", "# {"), ("same-orders-max = 10", "same-orders-max = 2")];
    // The last two rates are those of the account and the strategy.
    write(folder.path(), "1.toml", &[changes, [rate, rate]].concat());
    let old = order(1, "buy", "0.01").replace("\"intent\":{", "\"intent\":{\"made_ms\":0,\"ttl_ms\":3,");
    let events = [
        mark(1),
        order(1, "buy", "0.01"),
        order(1, "buy", "0.01"),
        order(1, "buy", "0.01"),
        r#"{"at_ms":7000,"reduce":{"account":0}}"#.to_owned(),
        mark(7_000),
        old.replace("\"at_ms\":1,", "\"at_ms\":7000,"),
    ];
    let found = reasons(&rows(folder.path(), &["--journal", "journal"], &events));
    assert_eq!(found, ["", "", "RATE_ACCOUNT DUP_ORDER", "REDUCE_ONLY_STATE EXPIRED"]);
    let explain = |verdict: &str| {
        let said = text(&truetick(folder.path(), &["gate", "explain", verdict, "--journal", "journal"]));
        said.split_once("\nlimits, version 1: ").unwrap().1.split_once('\n').unwrap().1.to_owned()
    };
    let rate = "its message rate is exceeded, the limit is 2 per second, 2 at once";
    assert_eq!(
        explain("3"),
        format!(
            "RATE_ACCOUNT: account main: {rate}\n\
             RATE_ACCOUNT: account main: strategy mm1: {rate}\n\
             DUP_ORDER: the same order was sent too often a moment ago, the limit is 2 within 1000 ms\n"
        )
    );
    assert_eq!(
        explain("4"),
        "REDUCE_ONLY_STATE: only orders that reduce the position pass (reduce mode of account main)\n\
         EXPIRED: the intent is 7000000000 ns old, its time to live is 3 ms, the limit is 5000 ms\n"
    );
}

/// A ratio of cancels is the instrument's and the account's; executions stop a strategy.
#[test]
fn ratios_of_cancels_and_repeated_executions_are_explained_with_their_limit_and_node() {
    let folder = tempfile::tempdir().unwrap();
    let ratio = |limit| ("cancels-per-fill-max = \"off\"", limit);
    let (of_instrument, of_account) = ("cancels-per-fill-max = \"1.5\"", "cancels-per-fill-max = \"2\"");
    let stop = ("executions-stop = 100", "executions-stop = 2");
    write(folder.path(), "1.toml", &[("temporary = {", "# {"), ratio(of_instrument), ratio(of_account), stop]);
    let order = |client_id: u64, at_ms| {
        order(at_ms, "buy", "0.01").replace("\"intent\":{", &format!("\"intent\":{{\"client_id\":{client_id},"))
    };
    let cancel = |at_ms: u64| {
        let of = r#""strategy":1,"symbol":"BTC/USDT","side":"buy""#;
        format!(r#"{{"at_ms":{at_ms},"intent":{{"kind":"cancel","client_id":1,{of}}}}}"#)
    };
    let fill =
        |number: u64| fill(1, "buy", "0.001").replace("\"fill\":{", &format!("\"fill\":{{\"execution_id\":{number},"));
    let cancels = [order(1, 1), cancel(200), cancel(400), cancel(600), order(2, 601)];
    let fills = [fill(1), fill(2), order(3, 602)].map(|event| event.replace("\"at_ms\":1,", "\"at_ms\":601,"));
    let events: Vec<String> = [mark(1)].into_iter().chain(cancels).chain(fills).collect();
    let found = reasons(&rows(folder.path(), &["--journal", "journal"], &events));
    assert_eq!(found, ["", "", "", "", "CANCEL_RATIO", "REPEAT_EXEC"]);
    let explain = |verdict: &str| {
        let said = text(&truetick(folder.path(), &["gate", "explain", verdict, "--journal", "journal"]));
        said.split_once("\nlimits, version 1: ").unwrap().1.split_once('\n').unwrap().1.to_owned()
    };
    let ratio = "too many cancels and replaces for its fills, the limit is";
    assert_eq!(
        explain("5"),
        format!("CANCEL_RATIO: account main: {ratio} 2.00 per fill\nCANCEL_RATIO: BTC/USDT: {ratio} 1.50 per fill\n")
    );
    let strategy = "account main: strategy mm1";
    assert_eq!(
        explain("6"),
        format!("REPEAT_EXEC: {strategy}: executions have stopped it, the limit is 2 within 60000 ms\n")
    );
}
