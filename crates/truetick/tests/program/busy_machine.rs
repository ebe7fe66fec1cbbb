//! `truetick bench`, `truetick floor` and `truetick why` while another process keeps a CPU busy.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use testkit::{Requirement, require, two_cpus};

const LABEL: &str = "FORCED on a busy machine";
const REASON: &str = "other processes use ";

/// A process that uses as much of a CPU as it gets, until it is dropped.
struct BusyLoop(Child);

impl BusyLoop {
    fn start() -> Self {
        Self(Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for BusyLoop {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Runs the program with a lock in `folder`, so that no other bench matters.
fn run(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_truetick")).args(arguments).env("TMPDIR", folder).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// How often a run may fail because the machine has too much else to do, as in `report_page`.
const TRIES: usize = 3;

/// Runs a forced measurement until it has written `last`, its last file, and judges its text; its files are in `out`.
/// The run may be void after that.
fn forced(arguments: &[&str], folder: &Path, out: &Path, last: &str) {
    let arguments = [arguments, &["--quick", "--force", "--out", out.to_str().unwrap()]].concat();
    let mut messages = String::new();
    for _ in 0..TRIES {
        let output = run(&arguments, folder);
        if out.join(last).is_file() {
            let printed = text(&output.stdout);
            let first = printed.lines().next().unwrap_or_default();
            assert!(first.contains(&format!(", {LABEL}, QUICK run")), "{first}");
            assert!(printed.contains(&format!("! {LABEL}: {REASON}")), "{printed}");
            return;
        }
        messages += text(&output.stderr);
    }
    panic!("{arguments:?}: {messages}");
}

/// Asserts that `environment` of a result and its warnings say that the run was forced.
#[track_caller]
fn assert_labelled(result: &Value) {
    let reason = result["environment"]["forced"].as_str().unwrap_or_else(|| panic!("{}", result["environment"]));
    assert!(reason.contains(REASON), "{reason}");
    let warning = Value::from(format!("{LABEL}: {reason}"));
    assert!(result["warnings"].as_array().unwrap().contains(&warning), "{}", result["warnings"]);
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))).unwrap()
}

/// Asserts that each line of a CSV file ends with the column `forced`, true.
#[track_caller]
fn assert_forced_lines(path: &Path) {
    let csv = fs::read_to_string(path).unwrap();
    let mut lines = csv.lines();
    assert!(lines.next().unwrap().ends_with(",forced"), "{csv}");
    assert!(lines.clone().count() > 0 && lines.all(|line| line.ends_with(",true")), "{csv}");
}

#[test]
fn a_busy_machine_is_refused_with_status_3_and_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("result");
    let _busy = BusyLoop::start();
    for command in [&["bench", "turn", "--row", "xor_mapped_v4"][..], &["bench", "ring"], &["floor"], &["why"]] {
        let output = run(&[command, &["--quick", "--out", out.to_str().unwrap()]].concat(), folder.path());
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{command:?}: {message}");
        assert!(message.starts_with("truetick: the machine is busy: other processes use "), "{message}");
        assert!(message.contains("--force") && message.lines().count() == 1, "{message}");
        assert!(output.stdout.is_empty() && !out.exists(), "{command:?} measured");
    }
}

#[test]
fn stalls_are_measured_on_a_busy_machine_without_a_label() {
    let folder = tempfile::tempdir().unwrap();
    let _busy = BusyLoop::start();
    let output = run(&["floor", "--jitter", "1", "--json"], folder.path());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["environment"]["forced"], Value::Null);
    assert!(!result["jitter"].as_array().unwrap().is_empty());
}

#[test]
fn every_output_of_a_forced_run_is_labelled() {
    let folder = tempfile::tempdir().unwrap();
    let _busy = BusyLoop::start();

    let out = folder.path().join("rows");
    forced(&["bench", "turn", "--row", "xor_mapped_v4"], folder.path(), &out, "report.html");
    assert_labelled(&json(&out.join("summary.json")));
    assert_labelled(&json(&out.join("report.json"))["summary"]);
    assert!(fs::read_to_string(out.join("report.html")).unwrap().contains(&format!("{LABEL}: {REASON}")));
    assert_forced_lines(&out.join("result.csv"));

    let out = folder.path().join("floor");
    forced(&["floor"], folder.path(), &out, "stalls.csv");
    assert_labelled(&json(&out.join("floor.json")));
    assert_forced_lines(&out.join("floor.csv"));

    let Some(_) = require(Requirement::TwoCpus, two_cpus()) else { return };
    let out = folder.path().join("ring");
    forced(&["bench", "ring", "--events", "2000", "--rate", "100000"], folder.path(), &out, "report.html");
    assert_labelled(&json(&out.join("ring.json")));
    assert_labelled(&json(&out.join("report.json"))["summary"]);
    assert!(fs::read_to_string(out.join("report.html")).unwrap().contains(&format!("{LABEL}: {REASON}")));

    let out = folder.path().join("why");
    forced(&["why"], folder.path(), &out, "why.svg");
    let why = json(&out.join("why.json"));
    assert_labelled(&why);
    let page = fs::read_to_string(out.join("why.html")).unwrap();
    assert!(page.contains(&format!("{LABEL}: {REASON}")));
    assert!(fs::read_to_string(out.join("why.svg")).unwrap().contains("on a busy machine"));
    assert_whole(&why);
    // A machine that is busy enough lets no watched event through, and the page says so.
    let has_events = why["stalls"]["events"].as_u64().unwrap() > 0;
    assert_ne!(page.contains("Stalls are unknown"), has_events, "{}", why["stalls"]);
}

/// Asserts that the answer holds together: the parts are the median, and everything that was to be tried is there.
#[track_caller]
fn assert_whole(why: &Value) {
    let value = |estimate: &Value| estimate["value"].as_f64().unwrap_or_else(|| panic!("{estimate}"));
    let answer = why["answer"].as_str().unwrap();
    assert!(answer.starts_with(&format!("{:.0} ns at the median from CPU ", value(&why["p50_ns"]))), "{answer}");
    if let parts @ Value::Object(_) = &why["parts"] {
        let sum = value(&parts["floor_ns"]) + value(&parts["ring_ns"][0]) + value(&parts["evaluator_ns"][1]);
        assert!((sum / value(&why["p50_ns"]) - 1.0).abs() < 1e-9, "{parts} {}", why["p50_ns"]);
    }
    let changes = why["changes"].as_array().unwrap();
    for name in ["pin", "hold_next", "fifo", "no_deep_sleep"] {
        let change = changes.iter().find(|change| change["name"] == name).unwrap_or_else(|| panic!("{name}"));
        assert!(change["refused"].is_string() || change["p50_gain_ns"].is_object(), "{change}");
    }
    assert!(why["advice"].as_array().unwrap().len() >= 5, "{}", why["advice"]);
    assert!(value(&why["gate_ns"]) > 0.0, "{}", why["gate_ns"]);
}
