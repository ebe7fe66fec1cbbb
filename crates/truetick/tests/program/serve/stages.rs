//! The parts of a pass sum to the whole, in every interface of every engine.

use std::net::UdpSocket;

use crate::served::Served;
use serde_json::Value;

/// The stages of every engine, in their order.
const STAGES: [&str; 5] = ["parse", "validate", "look_up", "build", "serialize"];

/// Datagrams between two looks: one pass in 64 is timed, and every second one of those by its stages.
const REQUESTS: usize = 64;

#[track_caller]
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Checks the parts of `engine`, which has stamped passes.
fn assert_sums(engine: &str, timed: &Value) {
    let stages = timed["stages"].as_array().unwrap_or_else(|| panic!("no stages of {engine}: {timed}"));
    assert_eq!(stages.iter().map(|stage| stage["stage"].as_str().unwrap()).collect::<Vec<_>>(), STAGES, "{engine}");
    let stamped = &timed["stamped"];
    let passes = number(&stamped["n"]);
    for stage in stages {
        // A mean of its samples, and of all passes: both are the same time.
        let [sampled, all] = [number(&stage["n"]) * number(&stage["mean_ns"]), passes * number(&stage["per_pass_ns"])];
        assert!((sampled - all).abs() <= 1e-6 * all.max(1.0), "{engine}: {stage} of {passes}");
    }
    let parts = stages.iter().map(|stage| &stage["per_pass_ns"]).chain([&stamped["rest_ns"], &stamped["probe_ns"]]);
    let (sum, whole) = (parts.map(number).sum::<f64>(), number(&stamped["mean_ns"]));
    assert!(whole > 0.0 && (sum / whole - 1.0).abs() < 1e-9, "{engine}: {sum} of {timed}");
    assert!(number(&stamped["probe_ns"]) > 0.0, "{engine}: stamps cost nothing: {timed}");
}

/// Checks the parts in `/metrics`.
fn assert_metrics(engine: &str, text: &str) {
    let values = |name: &str| -> f64 {
        let name = format!("truetick_{engine}_{name}_seconds_sum");
        let of = text.lines().filter(|line| line.starts_with(&name) && !line.contains("quantile"));
        of.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum()
    };
    let (parts, whole) = (values("stage"), values("stamped_pass"));
    assert!(whole > 0.0 && (parts / whole - 1.0).abs() < 1e-9, "{engine}: {parts} of {whole}");
}

#[test]
fn parts_of_a_pass_sum_to_the_whole_in_every_engine() {
    let served = Served::start(&["--fault-every", "0"]);
    served.wait_ready();
    let listen = served.json("/api/v1/turn/allocations")["listens"][0].to_string();
    let server = listen.trim_matches('"').trim_start_matches("udp ").to_owned();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let request: Vec<u8> = [0x0001_0000_u32, 0x2112_a442, 1, 2, 3].iter().flat_map(|word| word.to_be_bytes()).collect();
    let is_stamped = |timed: &Value| timed["stamped"]["n"].as_u64() > Some(1) && timed["pass"]["n"].as_u64() > Some(1);
    let turn = served.wait("/api/v1/turn/stages", |timed| {
        for _ in 0..REQUESTS {
            client.send_to(&request, &server).unwrap();
        }
        is_stamped(timed)
    });
    assert_sums("turn", &turn);
    assert_sums("market", &served.wait("/api/v1/market/stages", is_stamped));
    let risk = served.wait("/api/v1/risk/stages", |risk| is_stamped(&risk["stages"]));
    assert_sums("risk", &risk["stages"]);
    let metrics = served.get("/metrics").body;
    ["turn", "market", "risk"].iter().for_each(|engine| assert_metrics(engine, &metrics));
}
