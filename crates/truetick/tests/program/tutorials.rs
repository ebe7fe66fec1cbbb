//! The tutorials of docs/, executed word by word.
//!
//! Where a tutorial begins with a package, the test uses the built program in an empty folder, under the name
//! `truetick`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};
use testkit::tutorial::{Followed, OpenPage, find_launcher, follow};
use testkit::{Requirement, find_browser, require};

/// A shell in a new network namespace, in which every port is free.
const ALONE: [&str; 8] = [
    "unshare",
    "--user",
    "--map-root-user",
    "--net",
    "sh",
    "-c",
    "ip link set lo up && exec bash --noprofile --norc \"$@\"",
    "bash",
];
/// The same with an address of the documentation (RFC 5737).
const WITH_ADDRESS: [&str; 8] = [
    "unshare",
    "--user",
    "--map-root-user",
    "--net",
    "sh",
    "-c",
    "ip link set lo up && ip addr add 203.0.113.7/32 dev lo && exec bash --noprofile --norc \"$@\"",
    "bash",
];
const PLAIN: [&str; 3] = ["bash", "--noprofile", "--norc"];

fn follow_page(name: &str, launcher: &[&str]) -> Followed {
    follow_in(tempfile::tempdir().unwrap().path(), name, launcher, None)
}

/// The same in `folder`, which has the files of the tutorial afterwards.
fn follow_in(folder: &Path, name: &str, launcher: &[&str], open: Option<OpenPage<'_>>) -> Followed {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let document = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{name}: {error}"));
    let bin = tempfile::tempdir().unwrap();
    symlink(env!("CARGO_BIN_EXE_truetick"), bin.path().join("truetick")).unwrap();
    follow(&document, launcher, folder, bin.path(), open)
}

#[test]
fn the_gate_tutorial_prints_what_it_says() {
    assert_eq!(follow_page("gate-tutorial.md", &PLAIN), Followed { files: 3, commands: 6, pages: 0 });
}

#[test]
fn the_operator_tutorial_prints_what_it_says() {
    for (program, package) in [("openssl", "openssl"), ("curl", "curl")] {
        let Some(_) = require(Requirement::Program, testkit::find_program(program, package)) else { return };
    }
    let Some(launcher) = require(Requirement::NetNamespace, find_launcher(&ALONE)) else { return };
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let browser = require(Requirement::Program, find_browser(&scripts));
    let folder = tempfile::tempdir().unwrap();
    let open = open_with(browser.as_deref(), |chromium, address| {
        format!("tutorial.mjs {chromium} '{address}' \"$(cat api-token)\"")
    });
    let followed = follow_in(folder.path(), "tutorial-operator.md", launcher, Some(&open));
    assert_eq!(followed, Followed { files: 1, commands: 21, pages: 1 });
    if browser.is_some() {
        assert_call_is_seen(&seen(folder.path()));
    }
}

/// What Chromium has seen on the page: the call, its end, and the wrong passwords of before.
fn assert_call_is_seen(seen: &Value) {
    assert!(seen["says"].as_str().unwrap().ends_with("; 8 made since the start"), "{seen}");
    let calls = seen["calls"].as_array().unwrap();
    assert!(calls.iter().all(|row| row[0].as_str().unwrap().ends_with("alice")), "{seen}");
    assert!(calls.iter().all(|row| row[1].as_str().unwrap().starts_with("udp 127.0.0.1:")), "{seen}");
    assert_ne!(seen["bytes"][0], seen["bytes"][1], "nothing is relayed");
    assert_eq!(seen["users"][0][1], "2", "{seen}");
    assert!(seen["refusals"].as_str().unwrap().contains("401, wrong name or password"), "{seen}");
    assert_eq!(seen["products"], json!(["JavaScript", "Synapse", "Jitsi", "Nextcloud Talk", "LiveKit"]));
    assert!(seen["ended"].as_str().unwrap().starts_with("2 of "), "{seen}");
}

/// Debian's coturn serves a call of coturn's client, and truetick takes its place on the same port. Prints what is lost.
#[test]
fn the_migration_from_coturn_prints_what_it_says() {
    for program in ["turnserver", "turnutils_uclient"] {
        let Some(_) = require(Requirement::Program, testkit::find_program(program, "coturn")) else { return };
    }
    let Some(launcher) = require(Requirement::NetNamespace, find_launcher(&WITH_ADDRESS)) else { return };
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(
        follow_in(folder.path(), "migrate-coturn.md", launcher, None),
        Followed { files: 1, commands: 30, pages: 0 }
    );
    let lost = fs::read_to_string(folder.path().join("change.log")).unwrap();
    println!("from coturn to truetick: {}", lost.trim().replace('\n', "; "));
    let numbers: Vec<u32> = lost.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [gap_ms, packets] = numbers[..] else { panic!("{lost}") };
    assert!((1..30_000).contains(&gap_ms) && (1..600).contains(&packets), "{lost}");
}

#[test]
fn the_latency_tutorial_prints_what_it_says() {
    let Some(_) = require(Requirement::Program, testkit::find_program("curl", "curl")) else { return };
    let Some(_) = require(Requirement::TwoCpus, testkit::two_cpus()) else { return };
    let Some(launcher) = require(Requirement::NetNamespace, find_launcher(&ALONE)) else { return };
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let browser = require(Requirement::Program, find_browser(&scripts));
    let folder = tempfile::tempdir().unwrap();
    let open = open_with(browser.as_deref(), |chromium, address| format!("why.mjs {chromium} '{address}'"));
    let followed = follow_in(folder.path(), "tutorial-latency.md", launcher, Some(&open));
    assert_eq!(followed, Followed { files: 0, commands: 14, pages: 1 });
    if browser.is_some() {
        assert_changes_have_verdicts(&seen(folder.path()));
    }
}

/// Each change that was tried is on the page with its measured effect or with none, as the kept answer says; the machine
/// decides which.
fn assert_changes_have_verdicts(seen: &Value) {
    let kept = &seen["kept"];
    assert_eq!(seen["answer"], kept["answer"]);
    let (shown, changes) = (seen["changes"].as_array().unwrap(), kept["changes"].as_array().unwrap());
    assert_eq!(shown.len(), changes.len(), "{seen}");
    let mut tried = 0;
    for (row, change) in shown.iter().zip(changes) {
        assert_eq!(row[0], change["what"]);
        let effect = row[1].as_str().unwrap();
        let gain = &change["p50_gain_ns"];
        match (change["refused"].as_str(), gain["value"].as_f64()) {
            (Some(reason), _) => assert_eq!(effect, format!("not tried: {reason}")),
            (None, None) => assert_eq!(effect, "too few runs"),
            (None, Some(_)) if change["is_none"] == true => assert_eq!(effect, "no effect on the median"),
            (None, Some(value)) => {
                assert!(effect.ends_with("s at the median") && effect.starts_with('−') == (value > 0.0), "{change}");
                assert!(gain["low"].as_f64().unwrap() <= value && value <= gain["high"].as_f64().unwrap(), "{change}");
            }
        }
        tried += usize::from(gain.is_object());
    }
    // Where other programs have the CPUs, no run may be left that counts; the answer then says that it was forced.
    assert!(changes.len() >= 2 && (tried >= 2 || kept["environment"]["forced"].is_string()), "{changes:?}");
    let verdicts: Vec<_> = shown.iter().map(|row| format!("{}: {}", row[0], row[1])).collect();
    println!("{}", verdicts.join("\n"));
}

/// The command that opens a page with a script of the browser's folder, whose arguments are those of `script`; it leaves
/// `seen.json`. Without a browser it does nothing.
fn open_with<'a>(
    browser: Option<&'a Path>,
    script: impl Fn(&str, &str) -> String + 'a,
) -> impl Fn(&str) -> String + 'a {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    move |address| match browser {
        Some(chromium) => {
            format!("node {}/{} > seen.json", scripts.display(), script(&chromium.display().to_string(), address))
        }
        None => "true".to_owned(),
    }
}

fn seen(folder: &Path) -> Value {
    let seen: Value = serde_json::from_str(&fs::read_to_string(folder.join("seen.json")).unwrap()).unwrap();
    for list in ["console", "outside"] {
        assert_eq!(seen[list], json!([]), "{list}");
    }
    seen
}
