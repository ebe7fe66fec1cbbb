//! `serve` and `market --http` follow the venues of the configuration, here simulators in another process.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::served::Served;

/// `truetick simulate`, killed when dropped, and a configuration that follows two of its venues.
struct Venues {
    child: Child,
    _folder: TempDir,
    config: PathBuf,
}

impl Drop for Venues {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Venues {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_truetick"))
            .args(["simulate", "--json", "--instruments", "2", "--rate", "400"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(3);
        let feed = |line: std::io::Result<String>| {
            let venue: Value = serde_json::from_str(&line.unwrap()).unwrap();
            let symbols = venue["symbols"].to_string();
            format!("[[market.feeds]]\nvenue = {}\nsymbols = {symbols}\nurl = {}\n", venue["venue"], venue["streams"])
        };
        // Spot comes first; USD-M and Kraken are followed.
        let feeds: String = lines.map(feed).skip(1).collect();
        let folder = TempDir::new().unwrap();
        let config = folder.path().join("truetick.toml");
        fs::write(&config, format!("{feeds}\n[http]\nlisten = \"127.0.0.1:0\"\n")).unwrap();
        Self { child, _folder: folder, config }
    }

    fn config(&self) -> &str {
        self.config.to_str().unwrap()
    }
}

/// The books are those of the venues, proved, and nothing calls them simulated.
fn shows_the_configured_venues(served: &Served) {
    let proven = served.wait("/api/v1/market/status", |status| status["books_proven"] == 4);
    assert_eq!((&proven["books"], &proven["simulated"]), (&4.into(), &false.into()), "{proven}");
    let feeds: Vec<_> =
        proven["feeds"].as_array().unwrap().iter().map(|feed| feed["venue"].as_str().unwrap()).collect();
    assert_eq!(feeds, ["binance_usdm", "kraken"]);
    let kraken =
        served.wait("/api/v1/market/orderbook?venue=kraken&symbol=BTC/USD", |books| books[0]["proof"] == "crc");
    assert_eq!(kraken.as_array().map(Vec::len), Some(1));
    assert!(served.get("/metrics").body.contains("\ntruetick_market_simulated 0\n"));
}

#[test]
fn market_and_serve_follow_the_configured_feeds() {
    let venues = Venues::start();
    let market = Served::of(&["--config", venues.config(), "market"]);
    shows_the_configured_venues(&market);
    let flag = ["--config", venues.config(), "market", "--http", "127.0.0.1:0", "--json"];
    let lines = Command::new(env!("CARGO_BIN_EXE_truetick")).args(flag).args(["--seconds", "0.1"]).output().unwrap();
    let first = String::from_utf8(lines.stdout).unwrap();
    let first: Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    assert!(first["page"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{first}");
    let served = Served::start(&["--config", venues.config()]);
    assert!(served.banner.contains("4 symbols of 2 configured feeds"), "{}", served.banner);
    shows_the_configured_venues(&served);
}

/// What is read and cannot apply is an error.
#[test]
fn rejects_keys_and_flags_that_do_not_apply() {
    let folder = TempDir::new().unwrap();
    let config = folder.path().join("truetick.toml");
    let feed = "[[market.feeds]]\nvenue = \"kraken\"\nsymbols = [\"BTC/USD\"]\nurl = \"ws://127.0.0.1:9\"\n";
    fs::write(&config, format!("{feed}[http]\nlisten = \"127.0.0.1:0\"\napi_token_file = \"token\"\n")).unwrap();
    let said = |arguments: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_truetick")).arg("--config").arg(&config).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, text) = said(&["market"]);
    assert!(status == Some(1) && text.contains("token"), "a token that cannot be read: {text}");
    for flag in [["--rate", "5"], ["--instruments", "1"], ["--levels", "60"], ["--fault-every", "0"]] {
        let (status, text) = said(&[&["serve"], &flag[..]].concat());
        assert!(status == Some(1) && text.contains(flag[0]) && text.contains("[[market.feeds]]"), "{text}");
    }
    fs::write(&config, "[risk]\njournal = \"/nowhere\"\n").unwrap();
    let (status, text) = said(&["serve", "--http", "127.0.0.1:0"]);
    assert!(status == Some(1) && text.contains("[risk]: journal, modes"), "{text}");
}
