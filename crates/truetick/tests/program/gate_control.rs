//! `truetick gate kill|reduce|resume|load` on a running `truetick serve` and `truetick risk`.

use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Output, Stdio};

use serde_json::{Value, json};

use crate::served::Served;

const TOKEN: &str = "a token of some length";

/// Writes a file that only its owner reads.
fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// `truetick serve` with an API token, and the path of the token's file.
pub(crate) fn serve(folder: &Path) -> (Served, String) {
    serve_with(folder, &[])
}

/// The same, with further flags.
fn serve_with(folder: &Path, flags: &[&str]) -> (Served, String) {
    let token = write(folder, "token.txt", TOKEN);
    let config = write(folder, "truetick.toml", &format!("[http]\napi_token_file = \"{token}\"\n"));
    let served = Served::start(&[&["--config", &config, "--fault-every", "0", "--intents", "500"][..], flags].concat());
    served.wait_ready();
    (served, token)
}

/// Runs `truetick gate` with `arguments` on the gate at `url`.
fn gate(url: &str, token: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_truetick"));
    command.args(["--log-level", "off", "gate"]).args(arguments);
    command.args(["--url", url, "--token-file", token]).output().unwrap()
}

fn said(output: &Output) -> (Option<i32>, String) {
    let text = String::from_utf8([&output.stdout[..], &output.stderr[..]].concat()).unwrap();
    (output.status.code(), text)
}

/// Sets a mode until it is acknowledged: on a busy machine, who is not heard of in time is named, and the mode is in
/// force anyway. Returns the mode before the first attempt.
pub(crate) fn set(url: &str, token: &str, command: &str, scope: &str) -> String {
    let mode = if command == "resume" { "active" } else { command };
    let mut first = None;
    loop {
        let (status, text) = said(&gate(url, token, &[command, scope]));
        let (before, answer) = text.split_once("): ").unwrap_or_else(|| panic!("{status:?} {text}"));
        let before = before.strip_prefix(&format!("{scope} is {mode} (before: ")).unwrap_or_else(|| panic!("{text}"));
        let first = first.get_or_insert_with(|| before.to_owned());
        match status {
            Some(0) if answer.starts_with("acknowledged by the gate and every sender after ") => return first.clone(),
            Some(2) if answer.starts_with("in force, but silent: ") => {}
            status => panic!("{status:?} {text}"),
        }
    }
}

/// Waits until the newest verdict is one that `is_so`.
fn wait_verdict(served: &Served, is_so: impl Fn(&Value) -> bool) {
    let newest = |value: &Value| value["verdicts"].as_array().and_then(|rows| rows.first().cloned());
    served.wait("/api/v1/risk/verdicts", |value| newest(value).is_some_and(|verdict| is_so(&verdict)));
}

fn has(verdict: &Value, reason: &str) -> bool {
    verdict["reasons"].as_array().unwrap().iter().any(|found| found == reason)
}

#[test]
fn a_kill_is_acknowledged_stops_every_order_and_ends_with_resume() {
    let folder = tempfile::tempdir().unwrap();
    let (served, token) = serve(folder.path());
    let url = format!("http://{}", served.http);
    wait_verdict(&served, |verdict| verdict["accept"] == true);
    assert_eq!(served.json("/api/v1/risk/modes"), json!([]));
    for (command, scope, mode, reason) in [
        ("kill", "global", "kill", "KILL_GLOBAL"),
        ("kill", "account:0", "kill", "KILL_ACCOUNT"),
        ("kill", "strategy:1", "kill", "KILL_STRATEGY"),
        ("reduce", "account:0", "reduce", "REDUCE_ONLY_STATE"),
    ] {
        assert_eq!(set(&url, &token, command, scope), "active");
        assert_eq!(served.json("/api/v1/risk/modes"), json!([{ "scope": scope, "mode": mode }]));
        wait_verdict(&served, |verdict| has(verdict, reason));
        assert_eq!(set(&url, &token, "resume", scope), mode);
        wait_verdict(&served, |verdict| verdict["accept"] == true);
    }
    // An instrument of one venue of several.
    let row = served.json("/api/v1/risk/limits")[0].clone();
    let (symbol, venue) = (row["symbol"].as_str().unwrap(), row["venue"].as_str().unwrap());
    let full = format!("instrument:{venue}:{symbol}");
    assert_eq!(set(&url, &token, "kill", &full), "active");
    let of_it = |verdict: &Value| verdict["symbol"] == symbol && verdict["venue"] == venue;
    let killed = |value: &Value| {
        let mut of_instrument = value["verdicts"].as_array().unwrap().iter().filter(|verdict| of_it(verdict));
        of_instrument.next().is_some_and(|verdict| has(verdict, "KILL_INSTRUMENT"))
    };
    served.wait("/api/v1/risk/verdicts", killed);
    wait_verdict(&served, |verdict| verdict["accept"] == true && !of_it(verdict));
}

/// Every open order of the strategy is cancelled at the venue, where none ends by itself. After a kill none is left.
#[test]
fn a_cancel_of_a_scope_ends_every_order_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let (served, token) = serve_with(folder.path(), &["--order-lifetime", "1000000"]);
    let url = format!("http://{}", served.http);
    let open =
        |value: &Value| value.as_array().unwrap().iter().map(|row| row["open_orders"].as_u64().unwrap()).sum::<u64>();
    served.wait("/api/v1/risk/limits", |value| open(value) >= 5);
    set(&url, &token, "kill", "global");
    let (status, text) = said(&gate(&url, &token, &["cancel", "global", "--wait", "60"]));
    let cancels = text.strip_prefix("global: ").and_then(|text| text.strip_suffix(" cancels, no order is open\n"));
    let cancels: u64 = cancels.unwrap_or_else(|| panic!("{status:?} {text}")).parse().unwrap();
    assert!(status == Some(0) && cancels >= 5, "{text}");
    served.wait("/api/v1/risk/limits", |value| open(value) == 0);
    let (status, text) = said(&gate(&url, &token, &["cancel", "account:main"]));
    assert!(status == Some(1) && text.contains("no account `main`"), "{status:?} {text}");
}

/// Returns the limits file in force, and the version that the gate names.
fn limits_in_force(served: &Served) -> (String, u64) {
    let file = served.json_with_token("/api/v1/risk/limits-file", TOKEN);
    (file["text"].as_str().unwrap().to_owned(), file["version"].as_u64().unwrap())
}

/// The demonstration has a limits file, which is read, checked, changed and loaded.
#[test]
fn limits_of_the_demonstration_are_a_file_and_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (served, token) = serve(folder.path());
    let url = format!("http://{}", served.http);
    wait_verdict(&served, |verdict| verdict["accept"] == true);
    let (text, version) = limits_in_force(&served);
    assert!(version == 1 && text.contains("\nformat = 2\n"), "{version} {text}");
    let path = write(folder.path(), "1.toml", &text);
    let checked = Command::new(env!("CARGO_BIN_EXE_truetick")).args(["gate", "check", &path]).output().unwrap();
    let (status, said_of_it) = said(&checked);
    assert!(status == Some(0) && said_of_it.contains("1.toml: format 2, version 1, sha256 "), "{said_of_it}");
    let (status, refused) = said(&gate(&url, &token, &["load", &path]));
    let error = "version = 1: the running one is 1, the next one is 2";
    assert!(status == Some(1) && refused.contains(error), "{refused}");
    let none = text.replace("version = 1\n", "version = 2\n").replace("open-orders-max = 5", "open-orders-max = 0");
    let path = write(folder.path(), "2.toml", &none);
    let (status, loaded) = said(&gate(&url, &token, &["load", &path]));
    assert!(status == Some(0) && loaded.contains("2.toml: version 2 is in force, sha256 "), "{loaded}");
    assert_eq!(limits_in_force(&served), (none, 2));
    wait_verdict(&served, |verdict| has(verdict, "OPEN_ORDERS"));
    let rows = served.json("/api/v1/risk/limits");
    assert!(rows.as_array().unwrap().iter().all(|row| row["open_orders_max"] == 0), "{rows}");
    configured_limits(folder.path(), &token, &text);
}

/// `limits` in `[risk]` names the file of the gate of `serve`.
fn configured_limits(folder: &Path, token: &str, text: &str) {
    let named = text.replace("[account.demo", "[account.main").replace("account.demo.", "account.main.");
    let limits = write(folder, "own.toml", &named.replace("version = 1\n", "version = 7\n"));
    let config = format!("[http]\napi_token_file = \"{token}\"\n[risk]\nlimits = \"{limits}\"\n");
    let config = write(folder, "own-truetick.toml", &config);
    let served = Served::start(&["--config", &config, "--fault-every", "0", "--intents", "500"]);
    served.wait_ready();
    wait_verdict(&served, |verdict| verdict["accept"] == true);
    assert_eq!(limits_in_force(&served).1, 7);
    assert_eq!(set(&format!("http://{}", served.http), token, "kill", "account:0"), "active");
    let (_, said) = said(&gate(&format!("http://{}", served.http), token, &["kill", "account:main"]));
    assert!(said.contains("(before: kill)"), "{said}");
    write(folder, "own.toml", "format = 2\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_truetick"));
    let refused = command.args(["--config", &config, "serve"]).output().unwrap();
    let (status, said) = self::said(&refused);
    assert!(status == Some(1) && said.contains("own.toml: line 1: `version` is missing"), "{status:?} {said}");
}

/// Simulated venues update each book a few times a second, and every update of Kraken's proves its book. With 40 ms for the
/// age of a proof, an order shortly after an update passes, and later ones do not, until the next update.
#[test]
fn an_order_on_a_book_that_was_proved_too_long_ago_is_refused_until_the_next_proof() {
    const AGE_MAX_MS: u64 = 40;
    let folder = tempfile::tempdir().unwrap();
    let (served, token) = serve_with(folder.path(), &["--rate", "4", "--instruments", "1"]);
    let url = format!("http://{}", served.http);
    let (text, version) = limits_in_force(&served);
    let next = text.replace(&format!("version = {version}\n"), &format!("version = {}\n", version + 1));
    let next = next.replace("proof-age-max-ms = \"off\"", &format!("proof-age-max-ms = {AGE_MAX_MS}"));
    let path = write(folder.path(), "proof.toml", &next);
    // Before, a proof may have any age. Books of other venues may wait for their first one.
    let verdicts = served.json("/api/v1/risk/verdicts");
    let mut verdicts = verdicts["verdicts"].as_array().unwrap().iter().filter(|verdict| verdict["venue"] == "kraken");
    assert!(verdicts.all(|verdict| !has(verdict, "BOOK_UNVERIFIED")), "{verdicts:?}");
    let (status, loaded) = said(&gate(&url, &token, &["load", &path]));
    assert!(status == Some(0) && loaded.contains("is in force"), "{loaded}");
    // Of the verdicts by the new limits: those on books of Kraken, newest first, with the age of their book.
    let first = served.json("/api/v1/risk/verdicts")["verdicts"][0]["seq"].as_u64().unwrap();
    let of_kraken = |value: &Value| {
        let rows = value["verdicts"].as_array().unwrap().iter();
        let rows = rows.filter(|verdict| verdict["venue"] == "kraken" && verdict["seq"].as_u64().unwrap() > first);
        rows.map(|verdict| (verdict["book_age_us"].as_u64().unwrap(), verdict.clone())).collect::<Vec<_>>()
    };
    let seen = served.wait("/api/v1/risk/verdicts", |value| {
        let is_refused = |(_, verdict): &&(u64, Value)| verdict["reasons"] == json!(["BOOK_UNVERIFIED"]);
        let rows = of_kraken(value);
        // An order that passes after one that did not.
        let refused = rows.iter().position(|row| is_refused(&row));
        let passed = rows.iter().position(|(_, verdict)| verdict["accept"] == true);
        refused.zip(passed).is_some_and(|(refused, passed)| passed < refused)
    });
    let limit_us = AGE_MAX_MS * 1_000;
    for (age_us, verdict) in of_kraken(&seen).into_iter().filter(|(age_us, _)| *age_us != limit_us) {
        assert_eq!(has(&verdict, "BOOK_UNVERIFIED"), age_us > limit_us, "{verdict}");
        assert!(age_us < limit_us || verdict["accept"] == false, "{verdict}");
    }
}

/// The strategy sleeps between its intents, longer than it may be silent here.
#[test]
fn a_silent_strategy_is_in_reduce_mode_until_resume() {
    let served = Served::start(&["--fault-every", "0", "--silent-after", "0.000001"]);
    served.wait_ready();
    let modes = served.wait("/api/v1/risk/modes", |modes| modes != &json!([]));
    assert_eq!(modes, json!([{ "scope": "strategy:1", "mode": "reduce" }]));
    let refused =
        |value: &Value| value["verdicts"].as_array().unwrap().iter().any(|verdict| has(verdict, "REDUCE_ONLY_STATE"));
    served.wait("/api/v1/risk/verdicts", refused);
}

#[test]
fn without_the_token_or_a_scope_nothing_changes() {
    let folder = tempfile::tempdir().unwrap();
    let (served, token) = serve(folder.path());
    let url = format!("http://{}", served.http);
    let other = write(folder.path(), "other.txt", "another token of some length");
    for (token, arguments, error) in [
        (&other, ["kill", "global"], "Authorization: Bearer TOKEN"),
        (&token, ["kill", "everything"], "`everything` is no scope"),
        (&token, ["kill", "account:main"], "no account `main`"),
        (&token, ["kill", "instrument:NO/SUCH"], "no instrument `NO/SUCH`"),
    ] {
        let (status, text) = said(&gate(&url, token, &arguments));
        assert!(status == Some(1) && text.contains(error), "{status:?} {text}");
    }
    assert_eq!(served.json("/api/v1/risk/modes"), json!([]));
    // Without a token there is no control at all.
    let open = Served::start(&["--fault-every", "0"]);
    let (status, text) = said(&gate(&format!("http://{}", open.http), &token, &["kill", "global"]));
    assert!(status == Some(1) && text.contains("no API token is configured"), "{status:?} {text}");
    assert_eq!(open.json("/api/v1/risk/modes"), json!([]));
}

/// A running `truetick risk` with a journal, and control over HTTP.
pub(crate) struct Events {
    child: Child,
    events: Option<ChildStdin>,
    rows: Lines<BufReader<ChildStdout>>,
    /// Standard error stays open: the log goes there.
    _log: Lines<BufReader<ChildStderr>>,
    pub(crate) url: String,
}

impl Events {
    pub(crate) fn start(folder: &Path) -> Self {
        write(folder, "token.txt", TOKEN);
        write(folder, "truetick.toml", "[http]\napi_token_file = \"token.txt\"\n");
        write(folder, "1.toml", &limits());
        let mut command = Command::new(env!("CARGO_BIN_EXE_truetick"));
        command.current_dir(folder).args([
            "--config",
            "truetick.toml",
            "risk",
            "--limits",
            "1.toml",
            "--modes",
            "modes",
        ]);
        command.args(["--journal", "journal", "--json", "--http", "127.0.0.1:0"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (events, rows) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()).lines());
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = log.find(|line| line.as_ref().unwrap().contains("http://")).expect("the address").unwrap();
        let address: String =
            line.split("http://").nth(1).unwrap().chars().take_while(|c| !"\" ".contains(*c)).collect();
        Self { child, events, rows, _log: log, url: format!("http://{address}") }
    }

    /// Sends an order; returns the version of the limits, and the reasons.
    pub(crate) fn ask(&mut self, qty: &str) -> (u64, Value) {
        let order = format!(r#"{{"strategy":1,"symbol":"BTC/USDT","side":"buy","px":"60000","qty":"{qty}"}}"#);
        let mark = r#"{"at_ms":5,"mark":{"symbol":"BTC/USDT","px":"60000","is_verified":true}}"#;
        writeln!(self.events.as_mut().unwrap(), "{mark}\n{{\"at_ms\":5,\"intent\":{order}}}").unwrap();
        let row: Value = self.rows.next().unwrap().unwrap().parse().unwrap();
        (row["limits_version"].as_u64().unwrap(), row["reasons"].clone())
    }
}

/// The sample limits, with a rate that the tests stay within.
fn limits() -> String {
    include_str!("../../../../deploy/gate-limits.toml")
        .replace("per-second = 2, burst = 2", "per-second = 9, burst = 9")
}

/// Limits and modes of a gate that is fed with events change between two of them, and are in its journal.
#[test]
fn limits_are_loaded_into_a_running_gate_and_kept_in_its_journal() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token.txt").display().to_string();
    let second = limits().replace("version = 1", "version = 2").replace("\nqty-max = \"1\"", "\nqty-max = \"0.1\"");
    let path = write(folder.path(), "2.toml", &second);
    let mut events = Events::start(folder.path());
    let url = events.url.clone();
    assert_eq!(events.ask("0.11"), (1, json!([])));
    let (status, text) = said(&gate(&url, &token, &["load", &path]));
    assert!(status == Some(0) && text.contains("2.toml: version 2 is in force, sha256 "), "{status:?} {text}");
    assert_eq!(events.ask("0.11"), (2, json!(["QTY_MAX"])));
    let (status, text) = said(&gate(&url, &token, &["load", &path]));
    let error = "version = 2: the running one is 2, the next one is 3";
    assert!(status == Some(1) && text.contains(error), "{status:?} {text}");
    let (status, text) = said(&gate(&url, &token, &["kill", "strategy:mm1"]));
    assert!(text.starts_with("strategy:1 is kill (before: active)"), "{status:?} {text}");
    assert_eq!(events.ask("0.01"), (2, json!(["KILL_STRATEGY"])));
    let modes = fs::read_to_string(folder.path().join("modes")).unwrap();
    assert!(modes.ends_with("kill strategy 1\n"), "{modes}");
    let (status, text) = said(&gate(&url, &token, &["resume", "strategy:mm1"]));
    assert!(text.starts_with("strategy:1 is active (before: kill)"), "{status:?} {text}");
    assert_eq!(events.ask("0.01"), (2, json!([])));
    events.events = None;
    assert!(events.child.wait().unwrap().success());
    let journal = folder.path().join("journal");
    let of_journal = |command: &str| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_truetick")).args(["gate", command]).arg(&journal).output().unwrap();
        said(&output)
    };
    let (status, text) = of_journal("replay");
    assert!(status == Some(0) && text.contains("4 verdicts: every answer is the recorded one"), "{text}");
    let (_, text) = of_journal("export");
    let inputs: Vec<_> = text.lines().filter_map(|line| line.split(',').nth(2)).collect();
    for input in ["load", "kill", "active"] {
        assert_eq!(inputs.iter().filter(|of| **of == input).count(), 1, "{input}: {inputs:?}");
    }
}

/// A gate whose sender is silent: the answer of a control plane, as its tests have it.
#[test]
fn a_silent_sender_is_named_with_status_2() {
    let folder = tempfile::tempdir().unwrap();
    let token = write(folder.path(), "token.txt", TOKEN);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"}") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            request.push(byte[0]);
        }
        let body = json!({ "scope": "global", "mode": "kill", "before": "active", "acknowledged": false,
            "silent": ["venue A"], "waited_us": 10_000 })
        .to_string();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        String::from_utf8(request).unwrap().to_ascii_lowercase()
    });
    let (status, text) = said(&gate(&url, &token, &["kill", "global"]));
    let expected = "global is kill (before: active): in force, but silent: venue A; a silent sender is closed\n";
    assert_eq!((status, text.as_str()), (Some(2), expected));
    let request = server.join().unwrap();
    assert!(request.contains(&format!("authorization: bearer {TOKEN}")), "{request}");
}
