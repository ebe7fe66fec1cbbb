//! `truetick floor` as a program that reads its JSON sees it.

use serde_json::Value;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use testkit::{Requirement, require};

/// What the command prints, and its messages; skips the test while another bench runs. One test at a time.
fn require_floor(arguments: &[&str]) -> Option<(String, String)> {
    static MACHINE: Mutex<()> = Mutex::new(());
    let _held = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let output = Command::new(env!("CARGO_BIN_EXE_truetick")).arg("floor").args(arguments).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    if err.contains("another bench is running") {
        return require(Requirement::IdleMachine, Err("another bench is running"));
    }
    assert!(output.status.success(), "{err}");
    Some((out, err))
}

fn figure(row: &Value, field: &str) -> f64 {
    row[field].as_f64().unwrap_or_else(|| panic!("{field} in {row}"))
}

#[test]
fn every_section_has_figures_within_their_intervals() {
    let folder = tempfile::tempdir().unwrap();
    let Some((out, _)) = require_floor(&["--quick", "--force", "--json", "--out", folder.path().to_str().unwrap()])
    else {
        return;
    };
    let result: Value = serde_json::from_str(&out).unwrap();
    for (section, field) in [("clocks", "read_ns"), ("transfers", "ns"), ("costs", "ns")] {
        for row in result[section].as_array().unwrap() {
            let [low, value, high] = ["low", "value", "high"].map(|end| figure(&row[field], end));
            assert!(low > 0.0 && low <= value && value <= high, "{section}: {row}");
        }
    }
    let rows = result["costs"].as_array().unwrap();
    let cost = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name} is missing"));
        figure(&row["ns"], "value")
    };
    // Further away takes longer, and what goes through the kernel longer than what does not, in a debug build as well.
    for (less, more) in [
        ("l1_hit", "dram"),
        ("l2_hit", "dram"),
        ("mutex_free", "context_switch"),
        ("system_call", "udp_round_trip"),
        ("page_fault", "page_fault_huge"),
    ] {
        if rows.iter().any(|row| row["name"] == more) {
            assert!(cost(less) < cost(more), "{less} {} {more} {}", cost(less), cost(more));
        }
    }
    let clocks = result["clocks"].as_array().unwrap();
    assert!(
        clocks.iter().any(|row| row["name"] == "monotonic_raw" && row["drift_ppm"].as_f64().unwrap().abs() < 1.0),
        "{clocks:?}"
    );
    let cores = result["environment"]["machine"]["cores"].as_u64().unwrap();
    assert_eq!(result["transfers"].as_array().unwrap().len() as u64, cores * (cores - 1) / 2);
    assert_eq!(result["jitter"].as_array().unwrap().len() as u64, cores);
    if cfg!(debug_assertions) {
        assert!(result["warnings"][0].as_str().unwrap().contains("DEBUG BUILD"));
    }
    let kept: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("floor.json")).unwrap()).unwrap();
    assert_eq!(kept, result);
}

#[test]
fn jitter_alone_spins_on_each_core_for_so_long() {
    let Some((out, _)) = require_floor(&["--jitter", "1", "--at-once", "--json"]) else { return };
    let result: Value = serde_json::from_str(&out).unwrap();
    let cores = result["environment"]["machine"]["cores"].as_u64().unwrap();
    let rows = result["jitter"].as_array().unwrap();
    assert_eq!(rows.len() as u64, 2 * cores);
    for row in rows {
        assert!(figure(row, "seconds") >= 1.0, "{row}");
        let causes = row["causes"].as_array().unwrap();
        let names: Vec<_> = causes.iter().map(|cause| cause["cause"].as_str().unwrap()).collect();
        assert_eq!(names, ["interrupt", "preemption", "steal", "page_fault", "frequency", "unknown"]);
        let per_s: f64 = causes.iter().map(|cause| figure(cause, "per_s")).sum();
        assert!((per_s - figure(row, "stalls_per_s")).abs() < 1e-6, "{row}");
    }
    assert!(result["costs"].as_array().unwrap().is_empty());
    let missing = result["environment"]["not_measured"].to_string();
    assert!(missing.contains("--jitter measures nothing else"), "{missing}");
}
