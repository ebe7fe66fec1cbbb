use super::{CostRow, FloorResult, InterruptCount, JitterRow, LongStall, TransferClass, TransferRow};
use crate::report::ring::CauseCount;
use crate::report::{Environment, Estimate};

fn result() -> FloorResult {
    let near = |value: f64| Estimate { value, low: value * 0.9, high: value * 1.1 };
    FloorResult {
        truetick: "floor",
        quick: true,
        resamples: 100,
        environment: Environment { not_measured: vec!["frequency".to_owned()], ..Environment::default() },
        warnings: vec!["the machine is shared".to_owned()],
        clocks: Vec::new(),
        transfers: vec![TransferRow {
            cpus: [0, 1],
            ns: near(47.0),
            probes: 200,
            seconds: 2.0,
            placement: "same_cache".to_owned(),
            classes: vec![TransferClass { placement: "same_cache".to_owned(), share: 0.9, ns: 47.0 }],
            changes: 9,
        }],
        costs: vec![CostRow {
            name: "system_call".to_owned(),
            what: "getppid".to_owned(),
            batch: 256,
            chunks: 16,
            blocks: 1,
            ns: near(180.0),
            mean_ns: near(190.0),
            v100_ns: Some(150.0),
        }],
        latencies: Vec::new(),
        jitter: vec![JitterRow {
            cpu: 1,
            at_once: false,
            seconds: 2.0,
            asking_seconds: 0.1,
            threshold_ns: 1_000,
            stalls_per_s: 250.0,
            share: 0.001,
            causes: vec![CauseCount {
                cause: "interrupt".to_owned(),
                count: 500,
                per_s: 250.0,
                total_ns: 2e6,
                max_ns: 25_000.0,
            }],
            interrupts: vec![InterruptCount { name: "LOC".to_owned(), count: 501 }],
            longest: vec![LongStall { at_s: 0.5, length_ns: 25_000, cause: "interrupt".to_owned() }],
            unkept: 0,
        }],
    }
}

fn text_of(result: &FloorResult) -> String {
    let mut text = Vec::new();
    result.write_text(&mut text).expect("a vector takes every byte");
    String::from_utf8(text).expect("UTF-8")
}

#[test]
fn text_shows_each_figure_with_its_interval_and_what_was_stated() {
    let text = text_of(&result());
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = |head: &str| words(text.lines().find(|line| line.starts_with(head)).unwrap_or_default());
    assert!(line("system_call (256)").contains("180.0 ns [162.0, 198.0] 190.0 ns 150.0 ns"), "{text}");
    assert!(line("0 and 1").contains("4.5 same_cache 90.0 % (47.00 ns)"), "{text}");
    assert!(line("  interrupt ").contains("4000 ns 25.00 us"), "{text}");
    assert!(text.contains("! the machine is shared") && text.contains("not measured: frequency"), "{text}");
}

#[test]
fn kept_lines_have_as_many_columns_as_names() {
    let mut csv = Vec::new();
    result().write_csv(&mut csv).expect("a vector takes every byte");
    let csv = String::from_utf8(csv).expect("UTF-8");
    assert!(csv.lines().all(|line| line.split(',').count() >= 8), "{csv}");
    assert!(csv.contains("cost,system_call,180.000,ns,162.000,198.000,150,\"getppid\""), "{csv}");
}

#[test]
fn json_names_its_kind() {
    let mut json = Vec::new();
    result().write_json(&mut json).expect("a vector takes every byte");
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(json["truetick"], "floor");
    assert_eq!(json["jitter"][0]["causes"][0]["count"], 500);
    assert_eq!(json["costs"][0]["ns"]["low"], 162.0);
}
