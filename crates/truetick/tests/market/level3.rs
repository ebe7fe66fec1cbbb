//! Books that are followed order by order at the simulated Kraken: true, proved by the checksum of every order, repaired
//! after faults, recorded, and refused without a login.

use std::fs::{self, File};
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use market_feed::{
    self as market, BookChange, BookSide, Credentials, Event, FeedConfig, Listener, MarketConfig, Reader,
};
use market_feed::{Nanos, RecordingConfig};
use serde_json::Value;
use sim::{Fault, Venue as SimVenue};
use tempfile::TempDir;
use tt_journal::recording::RecordKind;
use tt_journal::{RecorderConfig, RecordingReader};
use tt_market::Proof;
use tt_venue::{BookLevel, Venue};

/// Everything that is waited for happens within this time, also on a busy machine.
const SOON: Duration = Duration::from_secs(60);

const INSTRUMENTS: usize = 2;

fn simulator() -> sim::Running {
    let instruments = INSTRUMENTS as u32;
    sim::start(sim::Config { instruments, rate_hz: 600.0, seed: 21, ..sim::Config::default() }).unwrap()
}

fn account() -> Credentials {
    Credentials::new(sim::API_KEY, sim::API_SECRET, sim::PASSPHRASE)
}

fn url(sim: &sim::Running) -> String {
    format!("ws://{}/v2", sim.address(SimVenue::Kraken))
}

fn feed(sim: &sim::Running, depth: u32) -> FeedConfig {
    let symbols = sim.instruments(SimVenue::Kraken).into_iter().map(|listed| listed.symbol).collect();
    let mut feed = FeedConfig::at(Venue::Kraken, url(sim).parse().unwrap(), symbols);
    feed.account = Some(account());
    feed.follow_orders().unwrap();
    feed.ask_depth(Some(depth)).unwrap();
    feed.timing.backoff_min = Duration::from_millis(10);
    feed
}

fn follow(sim: &sim::Running, depth: u32) -> market::Runner {
    market::start(MarketConfig { feeds: vec![feed(sim, depth)], sample_one_in: 8, ..MarketConfig::default() }).unwrap()
}

fn truetick(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_truetick")).args(arguments).output().unwrap()
}

/// A file of credentials that only its owner may read.
fn account_file(folder: &TempDir, secret: &str) -> PathBuf {
    let path = folder.path().join("account.toml");
    fs::write(&path, format!("key = \"{}\"\nsecret = \"{secret}\"\n", sim::API_KEY)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// Halts the market, waits until every book is proved and the true one, and lets the market go on.
fn assert_true(sim: &sim::Running, reader: &Reader) {
    sim.set_rate(0.0);
    for (index, listed) in reader.instruments().iter().enumerate() {
        let is_true = || {
            let depth = reader.depth(listed.id).unwrap();
            let levels =
                |side: &[BookLevel]| side.iter().map(|level| (level.px.0, level.qty.0)).collect::<Vec<(i64, i64)>>();
            let (_, truth) = sim.truth(SimVenue::Kraken, index);
            let best = |(px, qty): (&i64, &i64)| (*px, *qty);
            depth.status.proof == Proof::Crc
                && levels(depth.bids()) == truth.bids().map(best).take(10).collect::<Vec<_>>()
                && levels(depth.asks()) == truth.asks().map(best).take(10).collect::<Vec<_>>()
        };
        assert!(reader.wait(SOON, is_true), "{}: {:?}", listed.symbol, reader.depth(listed.id));
    }
    sim.set_rate(600.0);
}

#[test]
fn every_order_makes_a_true_book_with_its_own_proof() {
    for depth in [10, 100] {
        let sim = simulator();
        let running = follow(&sim, depth);
        let reader = running.reader();
        assert!(reader.wait(SOON, || reader.all_verified()), "{:?}", reader.status(0));
        for _ in 0..5 {
            let deltas = reader.counters(0).deltas;
            assert!(reader.wait(SOON, || reader.counters(0).deltas > deltas + 200));
            assert_true(&sim, &reader);
        }
        let has_others = || reader.counters(0).trades > 0 && reader.counters(0).tickers > 0;
        assert!(reader.wait(SOON, has_others), "other topics come with it: {:?}", reader.counters(0));
        let counters = reader.counters(0);
        assert!(counters.crc_matches > 1000 && counters.crc_mismatches == 0, "{counters:?}");
        assert_eq!((counters.gaps, counters.resyncs), (0, 0));
        assert_eq!(reader.status(0).refusals, []);
        running.stop();
        sim.stop();
    }
}

/// Compares the orders of a book with its levels, and returns how many sides had any.
fn compare_orders(book: &BookChange<'_>) -> u64 {
    let mut compared = 0;
    for side in [BookSide::Bid, BookSide::Ask] {
        let mut sums: Vec<(i64, i64)> = Vec::new();
        for order in book.orders(side) {
            if order.position == 0 {
                sums.push((order.px.0, 0));
            }
            let level = sums.last_mut().unwrap();
            assert_eq!((order.px.0, order.qty_ahead.0), *level);
            level.1 += order.qty.0;
            assert!(order.ts_event > Nanos(0));
        }
        let levels: Vec<(i64, i64)> = book.levels(side).map(|level| (level.px.0, level.qty.0)).collect();
        assert_eq!(sums, levels);
        compared += u64::from(!levels.is_empty());
    }
    compared
}

#[test]
fn a_listener_reads_every_order_of_an_update() {
    let sim = simulator();
    let compared = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&compared);
    let listener = Listener::new(move |event| {
        if let Event::Book(book) = event {
            count.fetch_add(compare_orders(book), Relaxed);
        }
    });
    let config = MarketConfig { feeds: vec![feed(&sim, 10)], listener: Some(listener), ..MarketConfig::default() };
    let running = market::start(config).unwrap();
    let reader = running.reader();
    assert!(reader.wait(SOON, || compared.load(Relaxed) > 1000), "{:?}", reader.counters(0));
    running.stop();
    sim.stop();
}

#[test]
fn what_goes_wrong_with_an_order_is_noticed_and_repaired() {
    let sim = simulator();
    let running = follow(&sim, 10);
    let reader = running.reader();
    assert!(reader.wait(SOON, || reader.all_verified()));
    for fault in [Fault::FlipDigit, Fault::Drop, Fault::Checksum, Fault::Truncate] {
        // A lost update of a far level may harm nothing: until one does.
        let before = reader.counters(0);
        let mut planted_at = 0;
        let is_noticed = || {
            let counters = reader.counters(0);
            if counters.deltas > planted_at + 50 {
                planted_at = counters.deltas;
                sim.fault(SimVenue::Kraken, 0, fault);
            }
            counters.resyncs > before.resyncs
        };
        assert!(reader.wait(SOON, is_noticed), "{fault:?}: {:?}", reader.counters(0));
        let counters = reader.counters(0);
        assert!(fault == Fault::Truncate || counters.crc_mismatches > before.crc_mismatches, "{fault:?}");
        // What is injected still passes.
        let deltas = counters.deltas;
        assert!(reader.wait(SOON, || reader.counters(0).deltas > deltas + 300 && reader.all_verified()), "{fault:?}");
        assert_true(&sim, &reader);
    }
    assert_eq!(reader.status(0).connections, 1, "repaired on the same connection");
    running.stop();
    sim.stop();
}

#[test]
fn a_new_connection_logs_in_again() {
    let sim = simulator();
    let running = follow(&sim, 100);
    let reader = running.reader();
    assert!(reader.wait(SOON, || reader.all_verified()));
    for connections in 2..4 {
        sim.disconnect(SimVenue::Kraken);
        assert!(reader.wait(SOON, || reader.status(0).connections == connections && reader.all_verified()));
        assert_true(&sim, &reader);
    }
    running.stop();
    sim.stop();
}

#[test]
fn a_recording_of_single_orders_is_replayed_and_audited_as_it_was() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("level3.ttj");
    let sim = simulator();
    let sync_every = RecorderConfig::default().sync_every;
    let recording = RecordingConfig { path: path.clone(), append: false, sync_every, packed: false };
    let feeds = vec![feed(&sim, 10)];
    let running = market::start(MarketConfig { feeds, recording: Some(recording), ..MarketConfig::default() }).unwrap();
    let reader = running.reader();
    assert!(reader.wait(SOON, || reader.all_verified()));
    for fault in [Fault::FlipDigit, Fault::Drop, Fault::Swap] {
        let frames = reader.counters(0).frames;
        sim.fault(SimVenue::Kraken, 0, fault);
        assert!(reader.wait(SOON, || reader.counters(0).frames > frames + 200 && reader.all_verified()));
    }
    assert!(reader.counters(0).crc_mismatches > 0);
    running.stop();
    sim.stop();
    let path = path.to_str().unwrap();
    let replayed = || {
        let output = truetick(&["replay", "--json", path]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let (first, second) = (replayed(), replayed());
    assert_eq!(first["right"], true, "{first}");
    assert!(first["runs"][0]["checkpoints"].as_u64().unwrap() >= 1, "{first}");
    assert_eq!((&first["hash"], &first["runs"]), (&second["hash"], &second["runs"]));
    // The audit finds what went wrong.
    let audited = truetick(&["audit", "--json", path]);
    let text = String::from_utf8(audited.stdout).unwrap();
    assert_eq!(audited.status.code(), Some(1), "{text}");
    assert!(text.contains("checksum"), "{text}");
}

/// Frames as somebody else keeps them: a receive time and the frame in each line.
#[test]
fn an_audit_recognises_single_orders_in_recordings_of_others() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("level3.ttj");
    let sim = simulator();
    let sync_every = RecorderConfig::default().sync_every;
    let recording = Some(RecordingConfig { path: path.clone(), append: false, sync_every, packed: false });
    let feeds = vec![feed(&sim, 10)];
    let running = market::start(MarketConfig { feeds, recording, ..MarketConfig::default() }).unwrap();
    let following = running.reader();
    assert!(following.wait(SOON, || following.counters(0).deltas > 500));
    running.stop();
    sim.stop();
    let mut reader = RecordingReader::new(BufReader::new(File::open(&path).unwrap())).unwrap();
    let mut lines = Vec::new();
    while let Some(entry) = reader.read().unwrap() {
        if entry.head.kind == RecordKind::Frame {
            lines.push(format!("{} {}\n", entry.head.ts_ns, String::from_utf8_lossy(entry.body)));
        }
    }
    let others = folder.path().join("others.txt");
    let audit = |lines: &[String]| {
        fs::write(&others, lines.concat()).unwrap();
        let output = truetick(&["audit", "--json", others.to_str().unwrap()]);
        let text = String::from_utf8(output.stdout).unwrap();
        (serde_json::from_str::<Value>(text.lines().next().unwrap()).unwrap(), output.status.code())
    };
    let (clean, status) = audit(&lines);
    assert_eq!(status, Some(0), "{clean}");
    let feed = &clean["feeds"][0];
    assert_eq!(feed["venue"], "kraken");
    let fitted = feed["counters"]["crc_matches"].as_u64().unwrap();
    assert!(fitted > 100 && feed["counters"]["crc_mismatches"] == 0, "{feed}");
    // One order less.
    let deleted = lines.iter().position(|line| line.contains("\"event\":\"delete\"")).unwrap();
    let at = lines.iter().skip(deleted).position(|line| line.contains("\"event\":\"add\"")).unwrap() + deleted;
    lines[at] = lines[at].replace("\"event\":\"add\"", "\"event\":\"delete\"");
    let (changed, status) = audit(&lines);
    assert_eq!(status, Some(1), "{changed}");
    assert!(changed["feeds"][0]["counters"]["crc_mismatches"].as_u64().unwrap() > 0, "{changed}");
}

#[test]
fn the_command_follows_single_orders_with_an_account_only() {
    let folder = TempDir::new().unwrap();
    let sim = simulator();
    let (url, symbol) = (url(&sim), &sim.instruments(SimVenue::Kraken)[0].symbol);
    let file = account_file(&folder, sim::API_SECRET);
    let file = file.to_str().unwrap();
    let common = ["market", "--venue", "kraken", "--url", &url, "--symbols", symbol, "--level3", "--seconds", "3"];
    let shown = truetick(&[&common[..], &["--json", "--account-file", file]].concat());
    let text = String::from_utf8(shown.stdout).unwrap();
    assert_eq!(shown.status.code(), Some(0), "{text}");
    assert!(text.lines().any(|line| line.contains("\"proof\":\"crc\"")), "{text}");
    assert!(!text.contains(sim::API_SECRET), "a secret is printed");
    let error = |output: Output| {
        assert_ne!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let anonymous = error(truetick(&common));
    assert!(anonymous.contains("--level3 of kraken needs a login: --account-file FILE"), "{anonymous}");
    let elsewhere = error(truetick(&["market", "--venue", "okx", "--symbols", "BTC-USDT", "--level3"]));
    assert!(elsewhere.contains("okx sends no single orders (level3): kraken, coinbase_exchange"), "{elsewhere}");
    let odd = error(truetick(&[&common[..], &["--account-file", file, "--depth", "25"]].concat()));
    assert!(odd.contains("kraken has no depth 25: 10, 100, 1000"), "{odd}");
    sim.stop();
}

#[test]
fn a_configuration_without_a_login_is_refused_before_the_start() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("truetick.toml");
    let check = |text: &str| {
        fs::write(&path, text).unwrap();
        truetick(&["serve", "--check-config", "--config", path.to_str().unwrap()])
    };
    let keys = "[[market.feeds]]\nvenue = \"kraken\"\nsymbols = [\"BTC/USD\"]\nlevel3 = true\ndepth = 1000\n";
    let output = check(keys);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_ne!(output.status.code(), Some(0));
    assert!(error.contains("the single orders (level3) of kraken need a login: account_file"), "{error}");
    let file = account_file(&folder, sim::API_SECRET);
    let output = check(&format!("{keys}account_file = \"{}\"\n", file.display()));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let output = check(&keys.replace("kraken", "deribit"));
    assert!(String::from_utf8(output.stderr).unwrap().contains("deribit sends no single orders"), "{error}");
}

#[test]
fn a_refused_login_is_named_with_the_venues_words() {
    let sim = simulator();
    let mut refused = feed(&sim, 10);
    refused.account = Some(Credentials::new(sim::API_KEY, "bm90IHRoZSBzZWNyZXQ=", ""));
    let running = market::start(MarketConfig { feeds: vec![refused], ..MarketConfig::default() }).unwrap();
    let reader = running.reader();
    assert!(reader.wait(SOON, || !reader.status(0).refusals.is_empty()));
    let status = reader.status(0);
    assert_eq!(status.refusals[0].subject, "account");
    assert!(status.refusals[0].reason.contains("EAPI:Invalid signature"), "{status:?}");
    assert!(reader.wait(SOON, || reader.status(0).last_error.is_some_and(|error| error.contains("login is refused"))));
    assert_eq!(reader.counters(0).frames, 0, "nothing is followed without it");
    running.stop();
    sim.stop();
}

#[test]
fn the_doctor_and_the_recorder_log_in_at_the_simulator() {
    let output = truetick(&["doctor", "--json", "--simulated", "--venue", "kraken", "--level3", "--updates", "30"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    let steps: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let step = |name: &str| steps.iter().find(|step| step["step"] == name).unwrap();
    assert!(step("proof")["facts"]["crc_matches"].as_u64().unwrap() > 20, "{text}");
    assert_eq!((&step("login")["outcome"], &step("topics")["outcome"]), (&"ok".into(), &"ok".into()), "{text}");
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("simulated.ttj");
    let recorded = truetick(&record(&path));
    assert_eq!(recorded.status.code(), Some(0), "{recorded:?}");
    let replayed = truetick(&["replay", "--json", path.to_str().unwrap()]);
    let replayed: Value = serde_json::from_slice(&replayed.stdout).unwrap();
    assert_eq!(replayed["right"], true);
    assert!(replayed["runs"][0]["frames"].as_u64().unwrap() > 50, "{replayed}");
}

fn record(path: &Path) -> Vec<&str> {
    vec!["record", "--venue", "kraken", "--level3", "--seconds", "2", "--json", "--out", path.to_str().unwrap()]
}
