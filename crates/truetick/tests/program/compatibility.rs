//! Files of released versions are still read, and what they showed is still there: docs/compatibility.md.
//!
//! `TRUETICK_ACCEPT=1` writes the list of HTTP fields of a version that is not released yet.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::served::Served;
use serde_json::Value;

/// What is asked of `serve` for the list of fields.
const PATHS: &[&str] = &[
    "/api/v1/turn/stages",
    "/api/v1/turn/drops",
    "/api/v1/turn/streams",
    "/api/v1/turn/ice-servers",
    "/api/v1/turn/allocations",
    "/api/v1/market/status",
    "/api/v1/market/stages",
    "/api/v1/market/drops",
    "/api/v1/market/ticker",
    "/api/v1/market/orderbook",
    "/api/v1/market/ohlcv",
    "/api/v1/market/trades",
    "/api/v1/market/derivatives",
    "/api/v1/market/markets",
    "/api/v1/risk/verdicts",
    "/api/v1/risk/limits",
    "/api/v1/risk/reasons",
    "/api/v1/risk/stages",
    "/api/v1/machine",
    "/api/v1/internal/engine/ingest-metrics",
];

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// The folder of each version.
fn versions() -> Vec<PathBuf> {
    let folders = fs::read_dir(tests().join("compatibility")).unwrap().map(|entry| entry.unwrap().path());
    let folders: Vec<_> = folders.collect();
    assert!(!folders.is_empty());
    folders
}

fn truetick(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_truetick")).args(["--log-level", "off"]).args(arguments).output().unwrap()
}

/// Writes the version's configuration to `folder`, with the files that it names.
fn configuration(version: &Path, folder: &Path) -> PathBuf {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    };
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    write("fullchain.pem", &certified.cert.pem());
    write("privkey.pem", &certified.signing_key.serialize_pem());
    write("users.txt", "ann:secret\n");
    write("secrets.txt", "shared secret\n");
    write("nonce-keys.txt", &"0a".repeat(32));
    write("api-token.txt", "a token of some length\n");
    write("account.toml", "key = \"k\"\nsecret = \"c2VjcmV0\"\npassphrase = \"p\"\n");
    for name in ["limits.toml", "report.json"] {
        write(name, &fs::read_to_string(version.join(name)).unwrap());
    }
    let text = fs::read_to_string(version.join("truetick.toml")).unwrap();
    write("truetick.toml", &text.replace("FOLDER", folder.to_str().unwrap()))
}

#[test]
fn configurations_of_earlier_versions_are_read() {
    for version in versions() {
        let folder = tempfile::tempdir().unwrap();
        let path = configuration(&version, folder.path());
        // It reads the whole file, the sections of other commands too.
        let output = truetick(&["turn", "--config", path.to_str().unwrap(), "--check-config"]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {error}", version.display());
    }
}

#[test]
fn limits_of_earlier_versions_are_read() {
    for version in versions() {
        let [limits, events] = ["limits.toml", "events.jsonl"].map(|name| version.join(name));
        let output =
            truetick(&["risk", "--json", "--limits", limits.to_str().unwrap(), "--events", events.to_str().unwrap()]);
        assert!(output.status.success(), "{}: {output:?}", version.display());
        let printed = String::from_utf8(output.stdout).unwrap();
        let verdicts: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let accepted = verdicts.iter().filter_map(|verdict| verdict["accept"].as_bool());
        assert_eq!(accepted.collect::<Vec<_>>(), [true, false], "{printed}");
    }
}

/// A journal is read and exported; a gate that judges otherwise need not continue it.
#[test]
fn gate_journals_of_earlier_versions_are_exported() {
    for version in versions() {
        let output = truetick(&["gate", "export", version.join("journal").to_str().unwrap()]);
        assert!(output.status.success(), "{}: {output:?}", version.display());
        let expected = fs::read_to_string(version.join("journal.csv")).unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{}", version.display());
        assert!(expected.lines().count() > 10);
    }
}

/// `simulator.ttj` and the hashes in it are of the version of 22 November 2026, 00:49 (git log).
#[test]
fn case_m45_a_recording_of_an_earlier_version_makes_the_states_that_it_made() {
    let folder = tests().join("../../../tools/testkit/recordings");
    let output = truetick(&["replay", folder.join("simulator.ttj").to_str().unwrap()]);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}");
    let of_venues = printed.lines().filter_map(|line| {
        let (before, after) = line.split_once(" of ")?;
        let (count, _) = after.split_once(" hashes match")?;
        Some((before.rsplit(' ').next()?.parse().ok()?, count.parse().ok()?))
    });
    let counts: Vec<(u32, u32)> = of_venues.collect();
    assert_eq!(counts.len(), 3, "{printed}");
    assert!(counts.iter().all(|(same, all)| same == all && *all > 0), "{printed}");
}

/// Every path of a field in `value`, with `[]` for the elements of a list.
fn fields(value: &Value, before: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let path = format!("{before}.{key}");
                fields(value, &path, found);
                found.insert(path);
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| fields(element, &format!("{before}[]"), found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn paths_and_fields_of_earlier_versions_are_served() {
    let served = Served::start(&["--fault-every", "0"]);
    served.wait_ready();
    let has_trades = |rows: &Value| {
        rows.as_array()
            .is_some_and(|rows| rows.iter().all(|row| row["trades"].as_array().is_some_and(|t| !t.is_empty())))
    };
    served.wait("/api/v1/market/trades", has_trades);
    served.wait("/api/v1/market/stages", |market| market["pass"]["n"].as_u64() > Some(0));
    served.wait("/api/v1/risk/stages", |risk| risk["stages"]["pass"]["n"].as_u64() > Some(0));
    let mut found = BTreeSet::new();
    PATHS.iter().for_each(|path| fields(&served.json(path), path, &mut found));
    for version in versions() {
        let list = version.join("http.txt");
        if std::env::var_os("TRUETICK_ACCEPT").is_some() {
            fs::write(&list, found.iter().map(|field| format!("{field}\n")).collect::<String>()).unwrap();
        }
        let text = fs::read_to_string(&list).unwrap();
        let missing: Vec<_> = text.lines().filter(|field| !found.contains(*field)).collect();
        assert!(text.lines().count() > 100 && missing.is_empty(), "{}: {missing:?}", list.display());
    }
}
