//! `truetick simulate` and `truetick market` as two processes that find each other by what the first one prints.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

#[test]
fn market_shows_proved_books_of_a_simulator_in_another_process() {
    let mut simulator = Command::new(env!("CARGO_BIN_EXE_truetick"))
        .args(["simulate", "--json", "--instruments", "2", "--rate", "400"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(simulator.stdout.take().unwrap()).lines();
    let kraken: Value =
        lines.by_ref().take(3).map(|line| serde_json::from_str(&line.unwrap()).unwrap()).last().unwrap();
    assert_eq!(
        (kraken["venue"].as_str(), &kraken["symbols"]),
        (Some("kraken"), &serde_json::json!(["BTC/USD", "ETH/USD"]))
    );
    let url = kraken["streams"].as_str().unwrap();
    let shown = Command::new(env!("CARGO_BIN_EXE_truetick"))
        .args(["market", "--json", "--venue", "kraken", "--symbols", "BTC/USD,ETH/USD", "--seconds", "3", "--url", url])
        .output();
    simulator.kill().unwrap();
    simulator.wait().unwrap();
    let shown = shown.unwrap();
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    let shown = String::from_utf8(shown.stdout).unwrap();
    let lines: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for symbol in ["BTC/USD", "ETH/USD"] {
        let proved = lines.iter().filter(|line| line["symbol"] == symbol && line["proof"] == "crc").count();
        assert!(proved > 0, "{symbol} was never proved:\n{shown}");
    }
    let feed = lines.iter().rfind(|line| line["frames"].is_u64()).unwrap();
    assert_eq!(feed["frames"].as_u64().unwrap(), feed["applied"].as_u64().unwrap() + feed["dropped"].as_u64().unwrap());
}
