//! A real browser clicks through the page of `truetick serve`.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::served::{Served, program};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testkit::{Requirement, find_browser, require};

/// Chromium's flag for machines whose only interface is loopback.
const LOOPBACK_FLAG: &str = "--allow-loopback-in-peer-connection";

/// Whether an interface besides loopback is up with an address: without one Chromium gathers no candidates.
fn has_network() -> bool {
    use nix::net::if_::InterfaceFlags;
    let addresses = nix::ifaddrs::getifaddrs().expect("addresses");
    let mut ip = addresses.filter(|entry| {
        let address = entry.address.as_ref();
        address.is_some_and(|address| address.as_sockaddr_in().is_some() || address.as_sockaddr_in6().is_some())
    });
    ip.any(|entry| entry.flags.contains(InterfaceFlags::IFF_UP) && !entry.flags.contains(InterfaceFlags::IFF_LOOPBACK))
}

/// The script; killed when dropped.
struct Script(Child);

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the script, ends the server when it says so, and returns what it has seen.
fn click_through(served: Served, chromium: &Path, folder: &Path, screenshots: &Path) -> Value {
    let mut command = Command::new("node");
    command.current_dir(folder).arg("page.mjs").arg(chromium).arg(format!("http://{}/", served.http)).arg(screenshots);
    if !has_network() {
        println!("loopback is the only interface: Chromium runs with {LOOPBACK_FLAG}");
        command.arg(LOOPBACK_FLAG);
    }
    let mut script = Script(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("node starts"));
    let mut stdout = BufReader::new(script.0.stdout.take().expect("piped"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("UTF-8");
    if line.trim_end() != "stop the server" {
        let mut errors = String::new();
        script.0.stderr.take().expect("piped").read_to_string(&mut errors).expect("UTF-8");
        panic!("{line}{errors}");
    }
    served.signal(Signal::SIGTERM);
    let (last_words, status) = served.end();
    assert!(status.success(), "{status}: {last_words}");
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("UTF-8");
    serde_json::from_str(&rest).unwrap_or_else(|error| panic!("{error}: {rest}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no rows: {value}"))
}

#[test]
fn the_page_shows_every_engine_live_and_relays() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let Some(chromium) = require(Requirement::Program, find_browser(&folder)) else { return };
    let screenshots = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
    std::fs::create_dir_all(&screenshots).expect("a folder");
    let served = Served::start(&["--intents", "40", "--fault-every", "0"]);
    served.wait_ready();
    let seen = click_through(served, &chromium, &folder, &screenshots);
    assert_clean(&seen);
    for engine in ["turn", "market", "risk"] {
        assert!(text(&seen["ledgers"][engine]["ledger"]).contains(" in = "), "{}", seen["ledgers"]);
        assert!(text(&seen["ledgers"][engine]["rate"]).contains("/s"), "{}", seen["ledgers"]);
    }
    assert_ne!(seen["ledgers"]["market"]["ledger"], seen["ledgers"]["market"]["later"]);
    assert_eq!((&seen["outcomes"][0][0], &seen["spark"]), (&"applied".into(), &true.into()));
    assert_eq!(seen["pause"]["before"], seen["pause"]["during"]);
    let sentence = text(&seen["top"]["sentence"]);
    assert!(sentence.starts_with("18 of 18 books agree with their venue; no call is relayed; "), "{sentence}");
    assert_eq!(seen["top"]["facts"], "Nothing needs attention.");

    let tabs = &seen["tabs"];
    let addresses = json!([
        ["#now", 1, "truetick"],
        ["#relay", 1, "Relay · truetick"],
        ["#books", 1, "Books · truetick"],
        ["#gate", 1, "Gate · truetick"],
        ["#machine", 1, "Machine · truetick"],
    ]);
    assert_eq!((&tabs["addresses"], &tabs["wrapped"], &tabs["next"]), (&addresses, &"#now".into(), &"#relay".into()));

    assert!(text(&seen["simulated"]["notice"]).contains("not from an exchange"), "{}", seen["simulated"]);
    assert_eq!((&seen["simulated"]["rows"], &seen["simulated"]["verdicts"]), (&18.into(), &16.into()));
    let books = &seen["books"];
    assert_eq!(rows(&books["list"]).len(), 18, "{books}");
    assert!(text(&books["address"]).starts_with("#books/"), "{books}");
    let is_price = |cell: &Value| text(cell).parse::<f64>().is_ok_and(|px| px > 0.0);
    assert!(rows(&books["ladder"]).len() > 5, "{books}");
    assert!(rows(&books["ladder"]).iter().all(|row| is_price(&row[1]) && is_price(&row[2])), "{books}");
    assert_book(&seen);

    let verdicts = &seen["verdicts"];
    let rejected = rows(&verdicts["list"]).iter().filter(|row| text(&row[2]).contains("rejected"));
    assert!(rejected.clone().all(|row| text(&row[2]).lines().count() > 1), "a refusal without a reason: {verdicts}");
    assert!(!rows(&verdicts["reasons"]).is_empty() && rows(&verdicts["limits"]).len() == 3 * 18, "{verdicts}");
    // Bars of each level.
    let levels = verdicts["limits"].as_array().unwrap().iter().filter_map(|row| row[0].as_str());
    let levels: std::collections::BTreeSet<_> = levels.collect();
    assert_eq!(levels.into_iter().collect::<Vec<_>>(), ["account 0", "firm", "strategy 0/1"], "{verdicts}");
    assert!(verdicts["bars"].as_u64() > Some(0), "no exposure has a bar: {verdicts}");
    let machine = &seen["machine"];
    let samples =
        |when: &str| text(&machine[when]["market"]["samples"]).replace(',', "").parse::<u64>().expect("a count");
    assert!(samples("before") < samples("later"), "{machine}");
    assert!(text(&machine["later"]["market"]["p50"]).ends_with('s') && machine["canvas"] == 1, "{machine}");
    assert_eq!(
        (&machine["chart"], &machine["ranges"]),
        (&true.into(), &json!(["?seconds=3600&step=12", "?seconds=600&step=2"]))
    );
    assert_relay(&seen["relay"]);
    assert_eq!(seen["lost"], "Connection lost, retrying");
    println!("screenshots in {}", screenshots.display());
}

/// Levels of each side in the test of the ladder.
const LEVELS: usize = 1_000;

#[test]
fn the_ladder_scrolls_through_a_thousand_bids_and_asks() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let Some(chromium) = require(Requirement::Program, find_browser(&folder)) else { return };
    let screenshots = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ladder");
    std::fs::create_dir_all(&screenshots).expect("a folder");
    let served = Served::start(&["--levels", "1000", "--fault-every", "0"]);
    served.wait_ready();
    let url = format!("http://{}/", served.http);
    let seen = see(&folder, &["ladder.mjs".as_ref(), &chromium, url.as_ref(), "kraken".as_ref(), &screenshots]);
    for list in ["console", "outside", "axe", "shifts"] {
        assert_eq!(seen[list], json!([]), "{list}");
    }
    for (name, width) in seen["widths"].as_object().expect("pictures") {
        assert!(width[0].as_u64() <= width[1].as_u64(), "{name} scrolls sideways: {width}");
    }
    assert_eq!(seen["says"], "1,000 bids, 1,000 asks");

    // Every level of the book is reached, in its order, and few are in the document at a time.
    let walked = &seen["walked"];
    let row = |(bid, ask): (&Value, &Value)| json!([bid[1], bid[0], ask[0], ask[1]]);
    let levels: Vec<Value> = rows(&walked["bids"]).iter().zip(rows(&walked["asks"])).map(row).collect();
    assert_eq!((levels.len(), rows(&walked["rows"]).len()), (LEVELS, LEVELS));
    assert_eq!(rows(&walked["rows"]), levels);
    assert_eq!(walked["proof"], "crc");
    let px = |row: &Value, column: usize| text(&row[column]).parse::<f64>().expect("a price");
    assert!(levels.windows(2).all(|two| px(&two[0], 1) > px(&two[1], 1) && px(&two[0], 2) < px(&two[1], 2)));
    let in_sight = walked["inDocument"].as_u64().expect("a count");
    assert!((5..40).contains(&in_sight), "{in_sight} levels are in the document");

    // Updates move neither the position nor the ranks in sight.
    for (place, held) in seen["held"].as_object().expect("places") {
        let (before, after) = (&held["before"], &held["after"]);
        assert!(held["updates"].as_u64() > Some(2), "{place}: no update came: {held}");
        assert_eq!((&before["top"], &before["first"]), (&after["top"], &after["first"]), "{place}");
        assert_ne!(before["rows"], after["rows"], "{place}: nothing changed");
    }
    let end = &seen["held"]["end"]["after"];
    assert_eq!(end["top"], end["most"]);
    assert_eq!(end["first"].as_u64().expect("a row") + rows(&end["rows"]).len() as u64, LEVELS as u64);
    assert!(
        end["lastIsInside"] == true && rows(&end["rows"]).last().is_some_and(|row| !text(&row[1]).is_empty()),
        "{end}"
    );

    let by_hand = rows(&seen["byHand"]);
    assert_eq!((&by_hand[0][1][0], &by_hand[1][1][0]), (&by_hand[0][1][1], &0.into()), "{by_hand:?}");
    assert!(by_hand[2..].iter().all(|moved| moved[1][0].as_f64() > Some(100.0)), "{by_hand:?}");
    println!("screenshots in {}", screenshots.display());
}

/// Runs a script of the browser in `folder`, and returns what it has seen.
fn see(folder: &Path, arguments: &[&Path]) -> Value {
    let output = Command::new("node").current_dir(folder).args(arguments).output().expect("node starts");
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}{errors}"))
}

/// What no page may do: write to the console, ask another host, break a rule of axe-core, scroll sideways, or move.
fn assert_clean(seen: &Value) {
    for list in ["console", "outside", "axe", "shifts"] {
        assert_eq!(seen[list], json!([]), "{list}");
    }
    let widths = seen["widths"].as_object().expect("pictures");
    assert!(widths.len() >= 3 * 4 * 2, "{widths:?}");
    for (name, width) in widths {
        assert!(width[0].as_u64() <= width[1].as_u64(), "{name} scrolls sideways: {width}");
    }
}

/// One book by its address, each control of it, every fault, and a reload.
fn assert_book(seen: &Value) {
    let book = &seen["book"];
    assert_eq!(book["drawn"], json!([true, true, true]));
    assert_ne!(book["top"], book["below"], "the ladder scrolls");
    assert!(book["inDocument"].as_u64().is_some_and(|levels| levels < 20), "only what is in sight: {book}");
    assert_ne!(book["candles"][0], book["candles"][1]);

    let broken = |name: &str| {
        let row = &seen["broken"][name]["row"];
        (text(&row[1]).to_owned(), text(&row[2]).to_owned(), text(&row[3]).to_owned(), text(&row[4]).to_owned())
    };
    let (expected, received, did, proved) = broken("duplicate");
    assert!(expected == "a new update" && received.ends_with(" again"), "{expected}, {received}");
    assert_eq!((did.as_str(), proved.as_str()), ("ignored it; the book is unchanged", "never lost"));
    assert_eq!(broken("half-open").2, "marked its books stale and reconnects", "{}", seen["broken"]);
    let number = |words: &str| words.split(" (").next().and_then(|words| words.rsplit(' ').next()).map(str::to_owned);
    for (name, start) in [("drop", "an update after "), ("reorder", "an update after "), ("flip-digit", "checksum ")] {
        let (expected, received, did, proved) = broken(name);
        assert!(expected.starts_with(start), "{name}: {expected}, {received}");
        assert_ne!(number(&expected), number(&received), "{name}");
        assert_eq!(did, "marked the book stale and requested a snapshot", "{name}");
        assert!(proved.ends_with('s') && proved.as_bytes()[0].is_ascii_digit(), "{name}: {proved}");
    }
    let reloaded = &seen["reloaded"];
    assert!(reloaded["after"]["incidents"].as_u64() >= reloaded["before"]["incidents"].as_u64(), "{reloaded}");
    assert!(!text(&reloaded["after"]["strip"]).ends_with(": 0 failed"), "{reloaded}");
    assert!(text(&seen["after"]).contains("ago and was proved again in"), "{}", seen["after"]);
    assert!(!rows(&seen["newest"]).is_empty());
}

/// The tests of each way, and what is to be pasted elsewhere.
fn assert_relay(relay: &Value) {
    assert_eq!(relay["state"], "passed", "{relay}");
    let ways = rows(&relay["ways"]);
    for (way, name) in ways.iter().zip(["UDP", "TCP"]) {
        assert_eq!((&way[0], &way[4]), (&name.into(), &"works".into()), "{ways:?}");
        assert!(text(&way[1]).starts_with("relay 127.0.0.1:") && text(&way[2]).ends_with(" ms"), "{ways:?}");
        assert!(text(&way[3]).ends_with(" of 500"), "{ways:?}");
    }
    assert_eq!(ways[2][4], "no listener", "{ways:?}");
    assert!(text(&ways[3][4]).starts_with("refused with 401"), "{ways:?}");
    assert!(
        text(&ways[4][4]).starts_with("refused with 403, rule ") && text(&ways[4][4]).contains("10.0.0.0/8"),
        "{ways:?}"
    );
    let snippets = &relay["snippets"];
    let script: Value = serde_json::from_str(text(&snippets["JavaScript"])).expect("the snippet is JSON");
    assert!(text(&script["iceServers"][0]["urls"][0]).starts_with("turn:127.0.0.1:"), "{script}");
    for (product, key) in [
        ("Synapse", "turn_shared_secret: "),
        ("Jitsi", "external_service_secret = "),
        ("Nextcloud Talk", "occ talk:turn:add turn 127.0.0.1:"),
        ("LiveKit", "turn_servers:"),
    ] {
        assert!(text(&snippets[product]).contains(key), "{product}: {snippets}");
    }
    assert!(!text(&relay["copied"]).is_empty() && relay["chart"] == json!([true, true]), "{relay}");
    assert!(rows(&relay["sources"]).iter().any(|row| text(&row[1]).starts_with("401")), "{relay}");
    assert!(text(&relay["closed"]).starts_with("No API token is configured"), "{relay}");
}

/// A password for the operator's page.
const TOKEN: &str = "aTokenOfTheOperator";

#[test]
fn an_operator_sees_attacks_and_ends_allocations() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let Some(chromium) = require(Requirement::Program, find_browser(&folder)) else { return };
    let screenshots = Path::new(env!("CARGO_TARGET_TMPDIR")).join("operator");
    std::fs::create_dir_all(&screenshots).expect("a folder");
    let (configured, port) = (tempfile::tempdir().expect("a folder"), free_port());
    let token = configured.path().join("token.txt");
    std::fs::write(&token, TOKEN).expect("written");
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).expect("its mode");
    let http = format!("127.0.0.1:{port}");
    let mut server = Command::new(program());
    server.args([
        "--log-level",
        "error",
        "turn",
        "--listen",
        "127.0.0.1:0",
        "--relay-ip",
        "127.0.0.1",
        "--http",
        &http,
    ]);
    server.args(["--allow-own-host", "127.0.0.1", "--allow-peer", "127.0.0.0/8", "--user", "ann:pencil"]);
    let server = server.arg("--api-token-file").arg(&token).stdout(Stdio::piped()).spawn().expect("the binary starts");
    let mut server = Script(server);
    let stdout = BufReader::new(server.0.stdout.take().expect("piped"));
    assert!(stdout.lines().any(|line| line.expect("UTF-8") == "ready"), "it does not start");

    let mut command = Command::new("node");
    command.current_dir(&folder).arg("operator.mjs").arg(&chromium).arg(format!("http://{http}/")).arg(TOKEN);
    command.args(["ann", "pencil"]).arg(&screenshots);
    if !has_network() {
        command.arg(LOOPBACK_FLAG);
    }
    let output = command.output().expect("node starts");
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}{errors}"));
    assert_clean(&seen);
    assert_eq!((&seen["tabs"], &seen["cards"]), (&json!(["Now", "Relay", "Machine"]), &json!(["engine-turn"])));
    assert_eq!(seen["elsewhere"], "#now", "the address of an engine that does not run");
    assert!(text(&seen["calm"]).starts_with("No call is relayed"), "{}", seen["calm"]);
    assert!(text(&seen["wrong"]).contains("refused with 401"), "{}", seen["wrong"]);

    assert_eq!(seen["kernel"], false, "no share of a kernel path that is off");
    let listed = rows(&seen["listed"]);
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert!(listed.iter().all(|row| row[0] == "ann" && text(&row[1]).starts_with("udp 127.0.0.1:")), "{listed:?}");
    assert_ne!(seen["sorted"][0], seen["sorted"][1], "a second click sorts the other way");
    assert_eq!((&seen["filtered"], &seen["nothing"]), (&1.into(), &0.into()));
    assert!(text(&seen["ended"]).ends_with(" has ended."), "{}", seen["ended"]);
    assert_eq!(seen["left"], 1);

    let all = "1 user; all: 2, 0 B to peers, 0 B to clients";
    assert_eq!(seen["endedTraffic"], json!([all, [["ann", "truetick", "2", "0 B", "0 B"]]]));
    assert_eq!(seen["users"], json!([["ann", "1", "0", "0 B", "0 B", "End all"]]));
    let bans = &seen["bans"];
    assert_eq!((&bans[0], &bans[3]), (&true.into(), &false.into()), "none, until there is one: {bans}");
    assert_eq!(bans[1], "192.0.2.0/24 is banned; 0 allocations have ended.");
    assert_eq!(bans[2], json!([["192.0.2.0/24", "30 min", "End"]]));
    assert!(text(&bans[4]).contains("bits are set behind the prefix"), "{bans}");
    assert_eq!(bans[5], "192.0.2.0/24 is not banned any more.");
    assert_eq!(seen["kicked"], "1 of ann have ended.");

    let attack = text(&seen["attack"]["fact"]);
    assert!(attack.contains(" with a wrong name or password in ") && attack.ends_with(" from 127.0.0.1."), "{attack}");
    assert_eq!(seen["attack"]["colour"], seen["attack"]["bad"], "it is red");
    assert_eq!(seen["attack"]["source"][0], json!(["127.0.0.1", "401, wrong name or password"]));
    let ways = rows(&seen["ways"]);
    assert!(ways[..2].iter().all(|way| way[4] == "works"), "{ways:?}");
    assert!(!seen["stored"].to_string().contains(TOKEN), "the token is in the document or its address");
    println!("screenshots in {}", screenshots.display());
}

/// A port that nothing listens on.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}
