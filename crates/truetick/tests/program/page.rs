//! A real browser clicks through the page of `truetick serve`.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::served::Served;
use nix::sys::signal::Signal;
use serde_json::Value;
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

    assert_eq!(seen["console"], Value::Array(Vec::new()));
    assert_eq!(seen["outside"], Value::Array(Vec::new()));
    for engine in ["turn", "market", "risk"] {
        assert!(text(&seen["ledgers"][engine]["ledger"]).contains(" in = "), "{}", seen["ledgers"]);
        assert!(text(&seen["ledgers"][engine]["rate"]).contains("/s"), "{}", seen["ledgers"]);
    }
    assert_ne!(seen["ledgers"]["market"]["ledger"], seen["ledgers"]["market"]["later"]);
    assert_eq!(seen["outcomes"][0][0], "applied");
    assert!(text(&seen["simulated"]["notice"]).contains("not from an exchange"), "{}", seen["simulated"]);
    assert_eq!(seen["simulated"]["chips"], 2, "order books and verdicts are labelled: {}", seen["simulated"]);

    let books = &seen["books"];
    assert_eq!(rows(&books["list"]).len(), 18, "{books}");
    assert_eq!(rows(&books["ladder"]).len(), 10, "{books}");
    let is_price = |cell: &Value| text(cell).parse::<f64>().is_ok_and(|px| px > 0.0);
    assert!(rows(&books["ladder"]).iter().all(|row| is_price(&row[1]) && is_price(&row[2])), "{books}");

    let verdicts = &seen["verdicts"];
    let rejected = rows(&verdicts["list"]).iter().filter(|row| text(&row[2]).contains("rejected"));
    assert!(rejected.clone().all(|row| text(&row[2]).lines().count() > 1), "a refusal without a reason: {verdicts}");
    assert!(!rows(&verdicts["reasons"]).is_empty() && rows(&verdicts["limits"]).len() == 18, "{verdicts}");
    let passes = &seen["passes"];
    let samples =
        |when: &str| text(&passes[when]["market"]["samples"]).replace(',', "").parse::<u64>().expect("a count");
    assert!(samples("before") < samples("later"), "{passes}");
    assert!(text(&passes["later"]["market"]["p50"]).ends_with('s') && passes["canvas"] == 1, "{passes}");
    assert_eq!(seen["pause"]["before"], seen["pause"]["during"]);

    let relay = &seen["relay"];
    assert_eq!(relay["state"], "passed", "{relay}");
    assert!(text(&relay["steps"]).contains("relay 127.0.0.1:"), "{relay}");
    assert!(text(&relay["steps"]).contains("64 of 64 messages"), "{relay}");
    let snippet: Value = serde_json::from_str(text(&relay["snippet"])).expect("the snippet is JSON");
    assert!(text(&snippet["iceServers"][0]["urls"][0]).starts_with("turn:127.0.0.1:"), "{snippet}");
    for name in ["laptop", "phone"] {
        let [content, window] = [0, 1].map(|index| seen["widths"][name][index].as_u64());
        assert!(content <= window, "{name} scrolls sideways: {}", seen["widths"]);
        assert!(screenshots.join(format!("page-{name}.png")).is_file());
    }
    assert_eq!(seen["lost"], "Connection lost, retrying");
    println!("screenshots in {}", screenshots.display());
}
