//! A replay reaches the recorded state: after faults of the venue, after a kill, on a full disk.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use market_feed::{self as market, FeedConfig, MarketConfig, OpenPosition, RecordingConfig, Replay, Run};
use serde_json::Value;
use sim::{Fault, Venue as SimVenue};
use tempfile::TempDir;
use tt_journal::recording::{RecordHead, RecordKind, encode, header, seal};
use tt_journal::{RecorderConfig, RecordingReader};
use tt_market::Proof;
use tt_model::Decimal;
use tt_venue::Venue;
use tt_venue::rules::TopicKind;

/// Everything that is waited for happens within this time, also on a busy machine.
const SOON: Duration = Duration::from_secs(60);

const VENUES: [(Venue, SimVenue, &str); 6] = [
    (Venue::BinanceSpot, SimVenue::BinanceSpot, "/stream"),
    (Venue::BinanceUsdm, SimVenue::BinanceUsdm, "/public/stream"),
    (Venue::Kraken, SimVenue::Kraken, "/v2"),
    (Venue::Okx, SimVenue::Okx, "/ws/v5/public"),
    (Venue::BybitLinear, SimVenue::Bybit, "/v5/public/linear"),
    (Venue::Deribit, SimVenue::Deribit, "/ws/api/v2"),
];

fn simulator() -> sim::Running {
    sim::start(sim::Config { instruments: 2, rate_hz: 600.0, seed: 7, ..sim::Config::default() }).unwrap()
}

fn feeds(sim: &sim::Running) -> Vec<FeedConfig> {
    let feed = |(venue, of_sim, path): (Venue, SimVenue, &str)| {
        let symbols = sim.instruments(of_sim).into_iter().map(|listed| listed.symbol).collect();
        let mut feed = FeedConfig::at(venue, format!("ws://{}{path}", sim.address(of_sim)).parse().unwrap(), symbols);
        feed.timing.backoff_min = Duration::from_millis(10);
        if venue == Venue::Okx {
            feed.join_by_rest = true;
            feed.also = vec![TopicKind::Candles];
        }
        if venue == Venue::BinanceUsdm {
            let entry_px = Decimal::new(618_000, 1);
            feed.positions = vec![OpenPosition { symbol: "BTCUSDT".to_owned(), lots: 250, entry_px }];
            feed.listen_key = Some(sim::LISTEN_KEY.to_owned());
        }
        feed
    };
    VENUES.map(feed).to_vec()
}

fn recorded_to(path: &Path, feeds: Vec<FeedConfig>) -> MarketConfig {
    let sync_every = RecorderConfig::default().sync_every;
    let recording = RecordingConfig { path: path.to_owned(), append: false, sync_every, packed: false };
    MarketConfig { feeds, recording: Some(recording), ..MarketConfig::default() }
}

fn truetick(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_truetick")).args(arguments).output().unwrap()
}

fn replayed(path: &Path) -> (Value, Option<i32>) {
    let output = truetick(&["replay", "--json", path.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    let value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text} {:?}", output.stderr));
    (value, output.status.code())
}

type Records = Vec<(RecordHead, Vec<u8>)>;

fn records(path: &Path) -> Records {
    let mut reader = RecordingReader::new(BufReader::new(File::open(path).unwrap())).unwrap();
    let mut records = Vec::new();
    while let Some(entry) = reader.read().unwrap() {
        records.push((entry.head, entry.body.to_vec()));
    }
    records
}

fn write(path: &Path, records: &Records) {
    let mut bytes = header(1).to_vec();
    for (head, body) in records {
        let start = bytes.len();
        encode(&mut bytes, *head, body);
        seal(&mut bytes[start..]);
    }
    fs::write(path, bytes).unwrap();
}

/// Follows a venue that loses, doubles, swaps and garbles updates, refuses snapshots and closes connections.
fn record_a_bad_day(path: &Path) {
    let sim = simulator();
    let running = market::start(recorded_to(path, feeds(&sim))).unwrap();
    let reader = running.reader();
    assert!(reader.wait(SOON, || reader.all_verified()));
    let frames = |least: u64| (0..VENUES.len()).all(|feed| reader.counters(feed).frames > least);
    for fault in [Fault::Drop, Fault::Duplicate, Fault::Swap, Fault::FlipDigit] {
        for (.., of_sim, _) in VENUES.map(|(venue, of_sim, path)| (venue, of_sim, path)) {
            sim.refuse_snapshots(of_sim, 1);
            sim.fault(of_sim, 0, fault);
            sim.fault(of_sim, 1, fault);
        }
        let so_far = (0..VENUES.len()).map(|feed| reader.counters(feed).frames).max().unwrap();
        assert!(reader.wait(SOON, || frames(so_far + 100)));
    }
    for (.., of_sim, _) in VENUES {
        sim.disconnect(of_sim);
    }
    assert!(reader.wait(SOON, || (0..VENUES.len()).all(|feed| reader.status(feed).connections == 2)));
    assert!(reader.wait(SOON, || reader.all_verified()));
    let progress = running.stop().unwrap();
    assert!(progress.closes() && progress.dropped() == 0, "{progress:?}");
    let gaps: u64 = (0..2).map(|feed| reader.counters(feed).gaps).sum();
    assert!(gaps >= 2, "the faults were noticed: {gaps}");
    sim.stop();
}

#[test]
fn a_replay_and_an_audit_repeat_the_end_of_a_symbol() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("ended.ttj");
    let sim = simulator();
    let of_usdm: Vec<FeedConfig> = feeds(&sim).into_iter().filter(|feed| feed.venue == Venue::BinanceUsdm).collect();
    let running = market::start(recorded_to(&path, of_usdm)).unwrap();
    let reader = running.reader();
    assert!(reader.wait(SOON, || reader.all_verified()));
    let [first, second] = [0, 1].map(|index| reader.instruments()[index].id);
    assert!(running.unsubscribe(first) && !running.unsubscribe(first));
    assert!(reader.wait(SOON, || reader.top_of_book(first).unwrap().status.proof == Proof::Stale));
    let frames = reader.counters(0).frames;
    assert!(reader.wait(SOON, || reader.counters(0).frames > frames + 200));
    assert!(reader.all_verified() && reader.top_of_book(second).unwrap().status.proof.is_verified());
    running.stop();
    sim.stop();
    let mut kept = records(&path);
    let ended = kept.iter().filter(|(head, _)| head.kind == RecordKind::Unsubscribed);
    assert_eq!(ended.map(|(head, _)| head.subject).collect::<Vec<_>>(), [first.0]);
    let (replayed, status) = replayed(&path);
    assert_eq!((status, &replayed["right"]), (Some(0), &Value::Bool(true)), "{replayed}");
    let audited = truetick(&["audit", "--json", path.to_str().unwrap()]);
    assert_eq!(audited.status.code(), Some(0), "{}", String::from_utf8_lossy(&audited.stdout));
    kept.retain(|(head, _)| head.kind != RecordKind::Unsubscribed);
    write(&path, &kept);
    assert_eq!(truetick(&["replay", path.to_str().unwrap()]).status.code(), Some(1));
}

#[test]
fn case_m45_a_replay_reaches_the_state_of_the_live_engine_each_time() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("day.ttj");
    record_a_bad_day(&path);
    let (first, status) = replayed(&path);
    assert_eq!((status, &first["right"]), (Some(0), &Value::Bool(true)), "{first}");
    for run in first["runs"].as_array().unwrap() {
        assert!(run["checkpoints"].as_u64().unwrap() >= 2 && run["has_ended"] == true, "{run}");
        assert_eq!((&run["differing"], &run["lost"]), (&Value::from(0), &Value::from(0)), "{run}");
    }
    let (second, _) = replayed(&path);
    assert_eq!((&first["hash"], &first["runs"]), (&second["hash"], &second["runs"]));
    let frames = |value: &Value| {
        value["runs"].as_array().unwrap().iter().map(|run| run["frames"].as_u64().unwrap()).sum::<u64>()
    };
    assert!(frames(&first) > 1000, "{first}");
}

#[test]
fn a_recording_of_two_sockets_and_a_join_by_rest_is_audited_as_it_was() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("okx.ttj");
    let sim = simulator();
    let okx = feeds(&sim).into_iter().filter(|feed| feed.venue == Venue::Okx).collect();
    let running = market::start(recorded_to(&path, okx)).unwrap();
    let reader = running.reader();
    assert!(reader.wait(SOON, || reader.all_verified() && reader.counters(0).candles > 2));
    assert!(reader.wait(SOON, || reader.counters(0).frames > 500));
    running.stop();
    sim.stop();
    let is_setup = |(head, body): &(RecordHead, Vec<u8>)| {
        let is = |text: &str| String::from_utf8_lossy(body).contains(text);
        (head.kind == RecordKind::Instrument && is("\"join_by_rest\":true"))
            || (head.kind == RecordKind::Opened && is("business"))
    };
    assert_eq!(
        records(&path).iter().filter(|record| is_setup(record)).count(),
        3,
        "two instruments and a second socket"
    );
    let audited = truetick(&["audit", "--json", path.to_str().unwrap()]);
    let text = String::from_utf8(audited.stdout).unwrap();
    assert_eq!(audited.status.code(), Some(0), "{text}");
    let (replayed, status) = replayed(&path);
    assert_eq!((status, &replayed["right"]), (Some(0), &Value::Bool(true)), "{replayed}");
}

#[test]
fn a_replay_and_an_audit_repeat_comparisons_with_snapshots() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("verified.ttj");
    let sim = simulator();
    let mut of_usdm: Vec<FeedConfig> =
        feeds(&sim).into_iter().filter(|feed| feed.venue == Venue::BinanceUsdm).collect();
    of_usdm[0].verify_every = Some(Duration::from_secs(1));
    let running = market::start(recorded_to(&path, of_usdm)).unwrap();
    let reader = running.reader();
    assert!(reader.wait(SOON, || reader.counters(0).snapshot_matches >= 3));
    let mut planted_at = 0;
    let is_found = || {
        let counters = reader.counters(0);
        if counters.deltas > planted_at + 100 {
            sim.fault(SimVenue::BinanceUsdm, 0, Fault::FlipDigit);
            planted_at = counters.deltas;
        }
        counters.snapshot_mismatches > 0
    };
    assert!(reader.wait(SOON, is_found), "{:?}", reader.counters(0));
    running.stop();
    sim.stop();
    let counters = reader.counters(0);
    let compared = records(&path).iter().filter(|(head, _)| head.kind == RecordKind::Comparison).count() as u64;
    assert!(compared >= counters.snapshot_matches + counters.snapshot_mismatches, "{compared} {counters:?}");
    let (replayed, status) = replayed(&path);
    assert_eq!((status, &replayed["right"]), (Some(0), &Value::Bool(true)), "{replayed}");
    let audited = truetick(&["audit", "--json", path.to_str().unwrap()]);
    let value: Value = serde_json::from_slice(&audited.stdout).unwrap();
    assert_eq!(audited.status.code(), Some(1), "{value}");
    let named = value.to_string();
    assert!(named.contains("snapshot_mismatch") && !named.contains("state_differs"), "{value}");
    // Without the record of a comparison, the snapshot comes unexpected.
    let mut without = records(&path);
    without.retain(|(head, _)| head.kind != RecordKind::Comparison);
    write(&path, &without);
    assert_eq!(truetick(&["replay", path.to_str().unwrap()]).status.code(), Some(1));
}

#[test]
fn case_m45_detects_a_recording_without_one_of_its_inputs() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("day.ttj");
    record_a_bad_day(&path);
    let whole = records(&path);
    let is_book =
        |body: &[u8]| body.windows(11).any(|text| text == b"depthUpdate") || body.starts_with(b"{\"channel\":\"book");
    let middle = whole.len() / 2;
    let book = middle
        + whole[middle..].iter().position(|(head, body)| head.kind == RecordKind::Frame && is_book(body)).unwrap();
    let snapshot = whole.iter().position(|(head, _)| head.kind == RecordKind::Snapshot).unwrap();
    let timer = whole.iter().position(|(head, _)| head.kind == RecordKind::Timeout).unwrap();
    for (name, at) in [("book", book), ("snapshot", snapshot), ("timer", timer)] {
        let mut wrong = whole.clone();
        wrong.remove(at);
        let path = folder.path().join(name);
        write(&path, &wrong);
        let (found, status) = replayed(&path);
        assert_eq!((status, &found["right"]), (Some(1), &Value::Bool(false)), "{name}: {found}");
    }
    // One unit of quantity at the deepest level of a snapshot, which no published value shows.
    let mut wrong = whole.clone();
    let of_binance = |(head, body): &(RecordHead, Vec<u8>)| {
        head.kind == RecordKind::Snapshot && body.starts_with(b"{\"lastUpdateId")
    };
    let snapshot = whole.iter().position(of_binance).unwrap();
    let mut body: Value = serde_json::from_slice(&wrong[snapshot].1).unwrap();
    let deepest = body["bids"].as_array().unwrap().len() - 1;
    assert!(deepest > 10, "{deepest}");
    let qty = body["bids"][deepest][1].as_str().unwrap().to_owned();
    let last = if qty.ends_with('1') { "2" } else { "1" };
    body["bids"][deepest][1] = Value::from(format!("{}{last}", &qty[..qty.len() - 1]));
    wrong[snapshot].1 = body.to_string().into_bytes();
    let deep = folder.path().join("deep");
    write(&deep, &wrong);
    let (found, status) = replayed(&deep);
    assert_eq!((status, &found["right"]), (Some(1), &Value::Bool(false)), "level {deepest}: {found}");
    let mut flipped = fs::read(&path).unwrap();
    let body = &whole[book].1;
    let at = flipped.windows(body.len()).position(|bytes| bytes == body).expect("the book's bytes in the file");
    flipped[at + body.len() / 2] ^= 4;
    fs::write(&path, flipped).unwrap();
    let (found, status) = replayed(&path);
    assert_eq!((status, &found["tail"]), (Some(1), &Value::from("a record's checksum does not fit")), "{found}");
    fs::write(&path, b"no recording at all, but long enough for one").unwrap();
    let output = truetick(&["replay", path.to_str().unwrap()]);
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).lines().count()), (Some(2), 1));
}

/// Returns whether the recording at `path` has a checkpoint of every feed.
fn has_checkpoints(path: &Path) -> bool {
    let mut recording = RecordingReader::new(File::open(path).unwrap()).unwrap();
    let mut feeds = BTreeSet::new();
    while let Some(entry) = recording.read().unwrap() {
        if entry.head.kind == RecordKind::Checkpoint {
            feeds.insert(entry.head.feed);
        }
    }
    feeds.len() == VENUES.len()
}

#[test]
fn case_m44_a_killed_recorder_leaves_what_can_be_replayed_and_gone_on_with() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("killed.ttj");
    let out = path.to_str().unwrap();
    let arguments = ["--log-level", "off", "record", "--packed", "--json", "--rate", "3000", "--out", out];
    let mut child =
        Command::new(env!("CARGO_BIN_EXE_truetick")).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let progress = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let written =
        progress.into_iter().find_map(|line| line["bytes"].as_u64().filter(|_| has_checkpoints(&path))).unwrap();
    // SIGKILL: nothing is flushed, nothing is closed.
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(fs::metadata(&path).unwrap().len() >= written, "what was reported as written is there");
    let (killed, status) = replayed(&path);
    assert_eq!(status, Some(0), "{killed}");
    let tail = &killed["tail"];
    assert!(tail.is_null() || *tail == "it ends within a record", "{killed}");
    for run in killed["runs"].as_array().unwrap() {
        assert!(run["has_ended"] == false && run["checkpoints"].as_u64().unwrap() >= 1, "{run}");
    }
    // A torn end on top, whatever the kill has left.
    let torn = fs::OpenOptions::new().append(true).open(&path);
    torn.unwrap().write_all(&[7, 0, 0, 0, 1, 2, 3, 4, 5]).unwrap();
    let again = truetick(&["record", "--append", "--seconds", "1.5", "--out", out]);
    assert!(again.status.success(), "{again:?}");
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(said.contains("bytes: it ends within a record"), "{said}");
    let (both, status) = replayed(&path);
    assert_eq!(
        (status, &both["tail"], both["runs"].as_array().unwrap().len()),
        (Some(0), &Value::Null, 2 * VENUES.len()),
        "{both}"
    );
    let frames = |of: &[Value]| of.iter().map(|run| run["frames"].as_u64().unwrap()).collect::<Vec<_>>();
    let runs = both["runs"].as_array().unwrap();
    assert_eq!(frames(&runs[..VENUES.len()]), frames(killed["runs"].as_array().unwrap()), "nothing whole was cut");
    assert!(runs[VENUES.len()..].iter().all(|run| run["has_ended"] == true));
    let refused = truetick(&["record", "--out", out]);
    assert_eq!(refused.status.code(), Some(1), "a recording is never written over");
}

#[test]
fn case_m43_on_a_full_disk_the_recording_stops_loudly_and_the_engine_lives() {
    let sim = simulator();
    let running = market::start(recorded_to(&PathBuf::from("/dev/full"), feeds(&sim))).unwrap();
    let reader = running.reader();
    let has_stopped = || running.recording().is_some_and(|progress| progress.failure.is_some());
    assert!(reader.wait(SOON, has_stopped), "{:?}", running.recording());
    let so_far = reader.counters(0).frames;
    assert!(reader.wait(SOON, || reader.counters(0).frames > so_far + 200 && reader.all_verified()));
    let progress = running.stop().unwrap();
    assert!(progress.closes() && progress.written == 0 && progress.dropped_stopped > 200, "{progress:?}");
    sim.stop();
    // The command that does nothing else ends and says why.
    let output = truetick(&["--log-level", "off", "record", "--out", "/dev/full"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("/dev/full: recording stopped: No space left on device"), "{error}");
}

#[test]
fn a_recording_is_replayed_at_its_own_pace_or_faster() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("short.ttj");
    let out = path.to_str().unwrap();
    assert!(
        truetick(&["record", "--venue", "kraken", "--symbols", "BTC/USD", "--seconds", "1", "--out", out])
            .status
            .success()
    );
    let times: Vec<u64> = records(&path).iter().map(|(head, _)| head.ts_ns).collect();
    let seconds = (times.iter().max().unwrap() - times[0]) as f64 / 1e9;
    for (pace, least) in [("recorded", seconds), ("4", seconds / 4.0)] {
        let output = truetick(&["replay", "--json", "--pace", pace, out]);
        let value: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(value["right"] == true && value["seconds"].as_f64().unwrap() >= least, "{pace}: {value}");
    }
}

#[test]
fn a_lost_connection_is_no_fault_of_the_recording() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("reconnected.ttj");
    let sim = simulator();
    let running = market::start(recorded_to(&path, feeds(&sim))).unwrap();
    let reader = running.reader();
    for connections in 1..=3 {
        let settled =
            || (0..VENUES.len()).all(|feed| reader.status(feed).connections == connections) && reader.all_verified();
        assert!(reader.wait(SOON, settled), "{:?}", reader.status(0));
        for (_, of_sim, _) in VENUES {
            sim.disconnect(of_sim);
        }
    }
    running.stop();
    sim.stop();
    let output = truetick(&["audit", "--json", path.to_str().unwrap()]);
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &value["right"]), (Some(0), &Value::Bool(true)), "{value}");
    for feed in value["feeds"].as_array().unwrap() {
        assert!(feed["counters"]["joins"].as_u64().unwrap() >= 6, "two books, three connections: {feed}");
    }
}

#[test]
fn runs_report_their_inputs() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("day.ttj");
    record_a_bad_day(&path);
    let mut replaying = Replay::default();
    let mut reader = RecordingReader::new(BufReader::new(File::open(&path).unwrap())).unwrap();
    while let Some(entry) = reader.read().unwrap() {
        replaying.take(&entry).unwrap();
    }
    let runs = replaying.finish();
    assert!(runs.iter().all(Run::is_same));
    assert_eq!(runs.iter().map(|run| run.venue).collect::<Vec<_>>(), VENUES.map(|(venue, ..)| venue));
    for run in &runs {
        assert!(run.counters.closes() && run.counters.resyncs > 0, "{run:?}");
    }
}
