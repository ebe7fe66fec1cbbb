//! deploy/prometheus and deploy/grafana: promtool's tests of every alert rule, and every metric that they name is one of
//! the running program.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::{Requirement, find_program, require};

use super::gate_control;
use super::served::Served;

/// How long metrics may be missing.
const PATIENCE: Duration = Duration::from_secs(60);

fn deploy(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(deploy(name)).unwrap()
}

#[test]
fn promtool_accepts_the_rules_and_their_tests_pass() {
    let promtool = find_program("promtool", "prometheus");
    let Some(promtool) = require(Requirement::Program, promtool) else { return };
    for arguments in [["check", "rules", "truetick.rules.yml"], ["test", "rules", "tests.yml"]] {
        let output = Command::new(&promtool).args(arguments).current_dir(deploy("prometheus")).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("SUCCESS"), "{arguments:?}: {text}");
    }
}

/// The names behind `key` of a file's lines.
fn names(text: &str, key: &str) -> Vec<String> {
    text.lines().filter_map(|line| Some(line.split_once(key)?.1.trim().to_owned())).collect()
}

#[test]
fn each_rule_has_a_test_in_which_it_fires_and_one_in_which_it_does_not() {
    let (rules, tests) = (read("prometheus/truetick.rules.yml"), read("prometheus/tests.yml"));
    let alerts = names(&rules, "- alert: ");
    assert!(alerts.len() >= 8, "{alerts:?}");
    let expected = |end: &str| alerts.iter().map(|alert| format!("{alert} {end}")).collect::<BTreeSet<_>>();
    let named: BTreeSet<String> = names(&tests, "- name: ").into_iter().collect();
    assert_eq!(named, &expected("fires") | &expected("stays quiet"));
    let firing = tests.matches("        exp_alerts:\n          - exp_labels:").count();
    assert_eq!((firing, tests.matches("exp_alerts: []").count()), (alerts.len(), alerts.len()));
}

/// The metrics in an expression: the words before braces, or those with the program's prefixes.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_ours = |word: &&str| word.starts_with("truetick_") || word.starts_with("process_");
    words.filter(is_ours).map(str::to_owned).collect()
}

/// The expressions of the dashboard.
fn expressions(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let mut all: Vec<String> = targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    all.extend(variables.iter().map(|variable| variable["query"].as_str().unwrap().to_owned()));
    all
}

/// The families in the text format.
fn families(text: &str) -> BTreeSet<String> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

#[test]
fn every_metric_of_the_kit_is_one_of_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("truetick.toml");
    // Some metrics need a bound of memory or allocation records.
    let records = folder.path().join("records");
    std::fs::write(&config, format!("[turn]\nmemory_max = \"1G\"\ncdr = {records:?}\n")).unwrap();
    let served = Served::start(&["--config", config.to_str().unwrap()]);
    served.wait_ready();
    let dashboard: Value = serde_json::from_str(&read("grafana/truetick.json")).unwrap();
    let expressions = expressions(&dashboard);
    assert!(expressions.len() >= 30, "{}", expressions.len());
    let rules = read("prometheus/truetick.rules.yml");
    let used = &metrics_in(&rules) | &expressions.iter().flat_map(|of| metrics_in(of)).collect();
    assert!(used.len() >= 35, "{used:?}");
    // Times are there after the first samples: of every eighth datagram.
    let servers = served.json("/api/v1/turn/ice-servers");
    let server = servers["iceServers"][0]["urls"][0].as_str().unwrap().trim_start_matches("turn:").to_owned();
    let started = Instant::now();
    let text = loop {
        let text = served.get("/metrics").body;
        let missing: Vec<_> = used.difference(&families(&text)).cloned().collect();
        if missing.is_empty() {
            break text;
        }
        assert!(started.elapsed() < PATIENCE, "/metrics has no {missing:?}");
        let asked = Command::new(env!("CARGO_BIN_EXE_truetick")).args(["stun", &server]).output().unwrap();
        assert!(asked.status.success(), "{asked:?}");
    };
    // Labels that rules select: of series that exist from the start.
    for series in [
        "truetick_risk_reasons_total{reason=\"JOURNAL\"} ",
        "truetick_risk_restricted_scopes{mode=\"kill\"} ",
        "truetick_turn_records_total{outcome=\"written\"} ",
        "truetick_turn_records_total{outcome=\"queue_full\"} ",
        "truetick_turn_events_lost_total{queue=",
    ] {
        assert!(text.contains(&format!("\n{series}")), "/metrics has no {series}");
    }
}

#[test]
fn a_killed_scope_is_counted_in_the_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let (served, token) = gate_control::serve(folder.path());
    let url = format!("http://{}", served.http);
    let killed = |count: u32| {
        let line = format!("\ntruetick_risk_restricted_scopes{{mode=\"kill\"}} {count}\n");
        let text = served.get("/metrics").body;
        assert!(text.contains(&line), "{text}");
    };
    killed(0);
    gate_control::set(&url, &token, "kill", "account:1");
    killed(1);
    gate_control::set(&url, &token, "resume", "account:1");
    killed(0);
}
