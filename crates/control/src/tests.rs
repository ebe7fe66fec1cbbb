//! The control plane over real connections, with snapshots in the place of engines.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use std::sync::Arc;

use tt_status::Reading;

use super::*;
use tt_status::accounting::{Accounting, Count, Quantiles, StageMean, Stages, StampedPass};
use tt_status::allocation_messages::MessageStatus;
use tt_status::market::MarketStatus;
use tt_status::risk::{
    AdminError, CancelledOrders, GateAdmin, JournalRow, LimitsText, ModeChange, ModeRow, OpenOrderRow,
};
use tt_status::turn::{
    Allocations, Bindings, CallErrors, CodeCount, EndedTraffic, KernelPath, Memory, PathInterface, RealmTraffic,
    RuleCount, Streams, TurnStatus,
};

struct Answer {
    status: u16,
    head: String,
    body: String,
}

fn ask(running: &Running, request: &str) -> Answer {
    let mut stream = TcpStream::connect(running.listen()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}

fn get(running: &Running, path: &str) -> Answer {
    ask(running, &format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", running.listen()))
}

fn json(running: &Running, path: &str) -> Value {
    let answer = get(running, path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    serde_json::from_str(&answer.body).unwrap()
}

fn start_with(state: State) -> Running {
    start("127.0.0.1:0".parse().unwrap(), state).unwrap()
}

fn ended_traffic() -> EndedTraffic {
    EndedTraffic {
        allocations: 31,
        to_peers_bytes: 32,
        to_clients_bytes: 33,
        to_peers_packets: 34,
        to_clients_packets: 35,
    }
}

fn messages() -> MessageStatus {
    let count = |name, count| Count { name, count };
    MessageStatus {
        is_up: true,
        input: 21,
        published: 22,
        dropped: vec![count("queue_full", 23), count("send_failed", 24)],
    }
}

fn turn() -> TurnStatus {
    let drops = vec![Count { name: "not_stun", count: 2 }, Count { name: "peer \"denied\"", count: 1 }];
    let pass = Quantiles {
        n: 4,
        mean_ns: 250.0,
        min_ns: 200,
        p50_ns: 240,
        p95_ns: Some(300),
        p99_ns: Some(300),
        p999_ns: Some(300),
        max_ns: 300,
    };
    TurnStatus {
        listens: vec!["udp 127.0.0.1:3478".into()],
        realm: "truetick".into(),
        workers: 1,
        ledger: Accounting::new("datagrams", 10, vec![Count { name: "replied", count: 7 }], drops),
        stages: Stages {
            one_in: 64,
            stages: vec![StageMean { stage: "parse", n: 4, mean_ns: 50.0, per_pass_ns: 40.0 }],
            stamped: Some(StampedPass { n: 5, mean_ns: 75.0, rest_ns: 15.0, probe_ns: 20.0 }),
            pass: Some(pass),
            buckets: vec![
                tt_status::distribution::Bucket { low_ns: 198.0, high_ns: 202.0, count: 3 },
                tt_status::distribution::Bucket { low_ns: 296.0, high_ns: 304.0, count: 1 },
            ],
        },
        allocations: Allocations { live: 1, capacity: 1000, created: 3, ended: 2, ..Allocations::default() },
        bindings: Bindings { requests: 3, answered: 2 },
        streams: Streams { open: 5, ended: vec![Count { name: "idle", count: 6 }], ..Streams::default() },
        draining: false,
        workers_down: 0,
        panics: 0,
        kernel_lost: 7,
        overloads: 22,
        kernel_path: Some(KernelPath {
            to_peers: 14,
            to_clients: 15,
            passed: vec![Count { name: "no_flow", count: 16 }],
            open: 17,
            write_failed: 18,
            interfaces: vec![PathInterface {
                name: "eth0".into(),
                driver: Some("virtio_net".into()),
                mode: "native",
                proof: "proven",
                checked: 19,
                bad: 20,
            }],
        }),
        events_lost: vec![Count { name: "engine", count: 8 }, Count { name: "log", count: 9 }],
        memory: Some(Memory { resident_bytes: 12, max_bytes: 13, is_full: false }),
        records: vec![Count { name: "written", count: 10 }, Count { name: "queue_full", count: 11 }],
        ended_by_realm: vec![RealmTraffic { realm: "b.example".into(), traffic: ended_traffic() }],
        messages: Some(messages()),
        faults: vec![CallErrors { call: "receive", error: "no_buffers", count: 2 }],
        errors: vec![CodeCount { code: 403, count: 5 }],
        failed_logins: 12,
        rejected_sources: Vec::new(),
        refusals: vec![Count { name: "user_quota", count: 4 }],
        denied: vec![RuleCount { rule: "deny 10.0.0.0/8 (built-in)".into(), count: 5 }],
    }
}

/// Every sample as name with labels and value, after the format's rules were checked: a family's comments stand
/// before its samples, no family and no sample comes twice.
fn samples(text: &str) -> Vec<(String, f64)> {
    let (mut families, mut samples): (Vec<String>, Vec<(String, f64)>) = (Vec::new(), Vec::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let name = rest.split(' ').next().unwrap().to_owned();
            assert!(!families.contains(&name), "{name} twice");
            families.push(name);
        } else if !line.starts_with("# HELP ") {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            let family = families.last().unwrap();
            let suffix = name.strip_prefix(family.as_str()).unwrap_or_else(|| panic!("{name} outside {family}"));
            assert!(matches!(suffix, "" | "_sum" | "_count"), "{name} in {family}");
            assert!(samples.iter().all(|(known, _)| known != series), "{series} twice");
            samples.push((series.to_owned(), value.parse().unwrap()));
        }
    }
    samples
}

#[test]
fn distinguishes_absent_engines_from_unknown_paths() {
    let running = start_with(State::default());
    for path in ["turn/stages", "market/ticker", "risk/verdicts", "internal/engine/ingest-metrics"] {
        let answer = get(&running, &format!("/api/v1/{path}"));
        assert_eq!(answer.status, 404);
        assert!(answer.body.contains("\"absent\""), "{path}: {}", answer.body);
    }
    assert!(get(&running, "/api/v1/nothing").body.contains("no such path"));
    assert_eq!(json(&running, "/readyz")["turn"], "absent");
    assert_eq!(get(&running, "/healthz").body, "ok\n");
    running.stop();
}

/// Case A83: health is red while a worker is down.
#[test]
fn ready_only_while_every_worker_runs() {
    let down = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let workers_down = Arc::clone(&down);
    let reading: Reading<TurnStatus> =
        Arc::new(move || TurnStatus { workers_down: workers_down.load(std::sync::atomic::Ordering::SeqCst), ..turn() });
    let running = start_with(State { turn: Some(reading), ..State::default() });
    assert_eq!(get(&running, "/readyz").status, 200);
    down.store(1, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(get(&running, "/readyz").status, 503);
    down.store(0, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(get(&running, "/readyz").status, 200);
    running.stop();
}

#[test]
fn a_reading_reaches_json_and_metrics_with_its_sum() {
    let running = start_with(State { turn: Some(Arc::new(turn)), ..State::default() });
    let drops = json(&running, "/api/v1/turn/drops");
    assert_eq!((drops["in"].as_u64(), drops["out"].as_u64()), (Some(10), Some(7)));
    assert_eq!((drops["dropped"].as_u64(), drops["closes"].as_bool()), (Some(3), Some(true)));
    assert_eq!((&drops["kernel_lost"], &drops["faults"][0]["count"]), (&7.into(), &2.into()));
    assert_eq!(drops["overloads"], 22);
    let answer = get(&running, "/metrics");
    let samples = samples(&answer.body);
    let value = |series: &str| samples.iter().find(|(name, _)| name == series).unwrap_or_else(|| panic!("{series}")).1;
    assert_eq!(value("truetick_turn_datagrams_in_total"), 10.0);
    assert_eq!(value("truetick_turn_connections"), 5.0);
    assert_eq!(value("truetick_turn_connections_ended_total{reason=\"idle\"}"), 6.0);
    assert_eq!(value("truetick_turn_datagrams_dropped_total{reason=\"peer \\\"denied\\\"\"}"), 1.0);
    assert_eq!(value("truetick_turn_kernel_lost_total"), 7.0);
    assert_eq!(value("truetick_turn_listener_overloads_total"), 22.0);
    assert_eq!(value("truetick_turn_path_packets_total{direction=\"to_peers\"}"), 14.0);
    assert_eq!(value("truetick_turn_path_packets_total{direction=\"to_clients\"}"), 15.0);
    assert_eq!(value("truetick_turn_path_passed_total{reason=\"no_flow\"}"), 16.0);
    assert_eq!(value("truetick_turn_paths"), 17.0);
    assert_eq!(value("truetick_turn_path_write_failed_total"), 18.0);
    let interface = "{interface=\"eth0\",driver=\"virtio_net\",mode=\"native\"}";
    assert_eq!(value(&format!("truetick_turn_path_interface{interface}")), 1.0);
    assert_eq!(value("truetick_turn_events_lost_total{queue=\"engine\"}"), 8.0);
    assert_eq!(value("truetick_turn_events_lost_total{queue=\"log\"}"), 9.0);
    assert_eq!(value("truetick_turn_records_total{outcome=\"written\"}"), 10.0);
    assert_eq!((value("truetick_turn_memory_max_bytes"), value("truetick_turn_memory_full")), (13.0, 0.0));
    assert_eq!(value("truetick_turn_records_total{outcome=\"queue_full\"}"), 11.0);
    let of_realm = |rest: &str| value(&format!("truetick_turn_ended_{rest}"));
    assert_eq!(of_realm("allocations_total{realm=\"b.example\"}"), 31.0);
    assert_eq!(of_realm("relayed_bytes_total{realm=\"b.example\",direction=\"to_peers\"}"), 32.0);
    assert_eq!(of_realm("relayed_bytes_total{realm=\"b.example\",direction=\"to_clients\"}"), 33.0);
    assert_eq!(of_realm("relayed_packets_total{realm=\"b.example\",direction=\"to_peers\"}"), 34.0);
    assert_eq!(of_realm("relayed_packets_total{realm=\"b.example\",direction=\"to_clients\"}"), 35.0);
    assert_eq!(value("truetick_turn_stats_up"), 1.0);
    assert_eq!(value("truetick_turn_stats_messages_in_total"), 21.0);
    assert_eq!(value("truetick_turn_stats_messages_published_total"), 22.0);
    assert_eq!(value("truetick_turn_stats_messages_dropped_total{reason=\"queue_full\"}"), 23.0);
    assert_eq!(value("truetick_turn_stats_messages_dropped_total{reason=\"send_failed\"}"), 24.0);
    assert_eq!(value("truetick_turn_faults_total{call=\"receive\",fault=\"no_buffers\"}"), 2.0);
    assert_eq!(value("truetick_turn_errors_total{code=\"403\"}"), 5.0);
    assert_eq!(value("truetick_turn_refused_total{reason=\"user_quota\"}"), 4.0);
    assert_eq!(value("truetick_turn_peers_denied_total{rule=\"deny 10.0.0.0/8 (built-in)\"}"), 5.0);
    assert_eq!(value("truetick_turn_pass_seconds{quantile=\"0.5\"}"), 240e-9);
    let is_near = |found: f64, wanted: f64| (found - wanted).abs() < 1e-15;
    let stage = |part: &str, of: &str| value(&format!("truetick_turn_stage_seconds_{of}{{stage=\"{part}\"}}"));
    assert!(is_near(stage("parse", "sum"), 200e-9) && is_near(stage("probe", "sum"), 100e-9));
    assert_eq!(["parse", "rest", "probe"].map(|part| stage(part, "count")), [4.0, 5.0, 5.0]);
    // All parts are the whole of the passes that they are parts of.
    let parts: f64 = ["parse", "rest", "probe"].iter().map(|part| stage(part, "sum")).sum();
    assert!(is_near(parts, value("truetick_turn_stamped_pass_seconds_sum")), "{parts}");
    assert_eq!(value("truetick_turn_stamped_pass_seconds_count"), 5.0);
    running.stop();
}

#[test]
fn a_database_reaches_metrics() {
    let database = || tt_status::turn::DatabaseStatus {
        kind: "sqlite",
        is_up: false,
        age_ms: Some(1_500),
        users: 2,
        secrets: 3,
        peers: 4,
        reads: vec![Count { name: "changed", count: 5 }, Count { name: "connect", count: 6 }],
        skipped: vec![Count { name: "key_not_hex", count: 7 }],
    };
    let running = start_with(State { database: Some(Arc::new(database)), ..State::default() });
    let samples = samples(&get(&running, "/metrics").body);
    let value = |rest: &str| {
        let name = format!("truetick_turn_database_{rest}");
        samples.iter().find(|(series, _)| *series == name).unwrap_or_else(|| panic!("{name}")).1
    };
    assert_eq!((value("up{kind=\"sqlite\"}"), value("age_seconds")), (0.0, 1.5));
    assert_eq!((value("users"), value("secrets"), value("peers")), (2.0, 3.0, 4.0));
    let reads = (value("reads_total{result=\"changed\"}"), value("reads_total{result=\"connect\"}"));
    assert_eq!((reads, value("rows_skipped{reason=\"key_not_hex\"}")), ((5.0, 6.0), 7.0));
    running.stop();
}

#[test]
fn a_ledger_that_does_not_close_says_so() {
    assert!(!Accounting::new("frames", 3, vec![Count { name: "applied", count: 1 }], vec![]).closes);
}

#[test]
fn only_reading_is_possible_and_only_from_this_machine() {
    let running = start_with(State::default());
    let listen = running.listen();
    let post = format!("POST /healthz HTTP/1.1\r\nHost: {listen}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    assert_eq!(ask(&running, &post).status, 405);
    let rebound = ask(&running, "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    assert_eq!(rebound.status, 403);
    assert!(rebound.head.contains("content-security-policy: default-src 'none'"), "{}", rebound.head);
    assert!(!rebound.head.contains("access-control-allow-origin"));
    running.stop();
}

/// RFC 9110 has no answer for a request that is never finished: the oldest of them make room for a new connection.
#[test]
fn answers_while_a_thousand_requests_are_half_sent() {
    let running = start_with(State::default());
    let mut streaming = TcpStream::connect(running.listen()).unwrap();
    streaming.write_all(format!("GET /api/v1/live HTTP/1.1\r\nHost: {}\r\n\r\n", running.listen()).as_bytes()).unwrap();
    let mut first = [0; 12];
    streaming.read_exact(&mut first).unwrap();
    let half: Vec<TcpStream> = (0..1000)
        .map(|_| {
            let mut stream = TcpStream::connect(running.listen()).unwrap();
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: ").unwrap();
            stream
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(get(&running, "/healthz").body, "ok\n");
    }
    let mut more = [0; 64];
    assert!(streaming.read(&mut more).unwrap() > 0, "a connection with a whole request is not closed for others");
    drop(half);
    running.stop();
}

#[test]
fn the_live_stream_sends_snapshots_until_the_server_stops() {
    let running = start_with(State { turn: Some(Arc::new(turn)), ..State::default() });
    let mut stream = TcpStream::connect(running.listen()).unwrap();
    stream.write_all(format!("GET /api/v1/live HTTP/1.1\r\nHost: {}\r\n\r\n", running.listen()).as_bytes()).unwrap();
    let mut text = String::new();
    let mut chunk = [0; 4096];
    while text.matches("\ndata: ").count() < 2 {
        let length = stream.read(&mut chunk).unwrap();
        assert!(length > 0, "ended early: {text}");
        text.push_str(core::str::from_utf8(&chunk[..length]).unwrap());
    }
    assert!(text.contains("\"listens\":[\"udp 127.0.0.1:3478\"]"), "{text}");
    running.stop();
    while stream.read(&mut chunk).unwrap() > 0 {}
}

/// Reads events of the live stream until `enough`.
fn live_until(running: &Running, enough: impl Fn(&str) -> bool) -> String {
    let mut stream = TcpStream::connect(running.listen()).unwrap();
    stream.write_all(format!("GET /api/v1/live HTTP/1.1\r\nHost: {}\r\n\r\n", running.listen()).as_bytes()).unwrap();
    let (mut text, mut chunk) = (String::new(), [0; 4096]);
    while !enough(&text) {
        let length = stream.read(&mut chunk).unwrap();
        assert!(length > 0, "ended early: {text}");
        text.push_str(core::str::from_utf8(&chunk[..length]).unwrap());
    }
    text
}

#[test]
fn case_m42_a_part_that_panics_is_detached_and_the_streams_of_the_others_go_on() {
    let asked = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counter = Arc::clone(&asked);
    let market: Reading<MarketStatus> = Arc::new(move || {
        counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        panic!("a reader of the market fails, as this test wants it")
    });
    let running = start_with(State { turn: Some(Arc::new(turn)), market: Some(market), ..State::default() });
    for _ in 0..2 {
        let text = live_until(&running, |text| text.matches("\ndata: ").count() >= 3);
        assert!(text.contains("\"listens\":[\"udp 127.0.0.1:3478\"]") && text.contains("\"market\":null"), "{text}");
    }
    assert_eq!(asked.load(std::sync::atomic::Ordering::SeqCst), 1, "it is asked no more");
    assert_eq!(get(&running, "/api/v1/turn/stages").status, 200);
    // A request that asks for the market itself takes its own connection along, and no other.
    let mut stream = TcpStream::connect(running.listen()).unwrap();
    stream
        .write_all(format!("GET /api/v1/market/ticker HTTP/1.1\r\nHost: {}\r\n\r\n", running.listen()).as_bytes())
        .unwrap();
    assert_eq!(stream.read_to_end(&mut Vec::new()).unwrap(), 0, "it ends without an answer");
    assert_eq!(get(&running, "/api/v1/turn/stages").status, 200);
    live_until(&running, |text| text.contains("\ndata: "));
    running.stop();
}

/// A gate with a silent sender, which refuses every file but one.
struct SilentGate;

impl GateAdmin for SilentGate {
    fn modes(&self) -> Vec<ModeRow> {
        vec![ModeRow { scope: "account:7".into(), mode: "kill" }]
    }

    fn set_mode(&self, scope: &str, mode: &str) -> Result<ModeChange, AdminError> {
        if scope == "disk" {
            return Err(AdminError::Failed("no room".into()));
        }
        let silent = vec!["venue A".to_owned()];
        let known = if mode == "kill" { "kill" } else { return Err(AdminError::Unknown(format!("no mode {mode}"))) };
        let (scope, before) = (scope.to_owned(), "reduce");
        Ok(ModeChange { scope, mode: known, before, acknowledged: false, silent, senders: 2, waited_us: 10_001 })
    }

    fn limits_version(&self) -> Option<u32> {
        Some(3)
    }

    fn journal(&self) -> Option<JournalRow> {
        Some(JournalRow { record: 41, is_lost: true })
    }

    fn limits(&self) -> Option<LimitsText> {
        Some(LimitsText { version: 3, sha256: "ab".into(), text: "old".into() })
    }

    fn load(&self, text: &str) -> Result<LimitsText, AdminError> {
        if text != "new" {
            return Err(AdminError::Refused(format!("{text} is refused")));
        }
        Ok(LimitsText { version: 4, sha256: "cd".into(), text: text.into() })
    }

    fn cancel(&self, scope: &str) -> Result<CancelledOrders, AdminError> {
        let open = vec![OpenOrderRow { account: 8, client_id: 9 }];
        Ok(CancelledOrders { scope: scope.to_owned(), requested: 5, open })
    }
}

#[test]
fn the_gate_is_controlled_with_the_token_only() {
    let token = Some(ApiToken::new(zeroize::Zeroizing::new("a token".to_owned())));
    let running = start_with(State { gate: Some(Arc::new(SilentGate)), token, ..State::default() });
    let post = |running: &Running, token: &str, path: &str, kind: &str, body: &str| {
        let host = running.listen();
        let head = format!("POST /api/v1/risk/{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{token}");
        let head = format!("{head}Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len());
        let answer = ask(running, &(head + body));
        (answer.status, answer.body)
    };
    let json_kind = "application/json";
    let right = "Authorization: Bearer a token\r\n";
    for token in ["", "Authorization: Bearer a toke\r\n"] {
        for (path, body) in [
            ("modes", r#"{"scope":"global","mode":"kill"}"#),
            ("cancels", r#"{"scope":"global"}"#),
            ("limits-file", "new"),
        ] {
            let kind = if path == "limits-file" { "application/toml" } else { json_kind };
            assert_eq!(post(&running, token, path, kind, body).0, 401, "{path}");
        }
    }
    assert_eq!(get(&running, "/api/v1/risk/limits-file").status, 401);
    assert_eq!(json(&running, "/api/v1/risk/modes")[0]["scope"], "account:7");
    let (status, body) = post(&running, right, "modes", json_kind, r#"{"scope":"global","mode":"kill"}"#);
    let expected = r#"{"scope":"global","mode":"kill","before":"reduce","acknowledged":false,"silent":["venue A"],"senders":2,"waited_us":10001}"#;
    assert_eq!((status, body.as_str()), (200, expected));
    for (body, status) in [
        (r#"{"scope":"global","mode":"stop"}"#, 404),
        (r#"{"scope":"disk","mode":"kill"}"#, 500),
        (r#"{"scope":"global","mode":"kill","more":1}"#, 422),
    ] {
        assert_eq!(post(&running, right, "modes", json_kind, body).0, status, "{body}");
    }
    let (status, body) = post(&running, right, "cancels", json_kind, r#"{"scope":"account:8"}"#);
    let expected = r#"{"scope":"account:8","requested":5,"open":[{"account":8,"client_id":9}]}"#;
    assert_eq!((status, body.as_str()), (200, expected));
    // The page shows the modes, and knows whether it can change them.
    let live = |running: &Running| live_until(running, |text| text.matches("\ndata: ").count() >= 2);
    let text = live(&running);
    let modes = r#""gate":{"modes":[{"scope":"account:7","mode":"kill"}],"#;
    let expected = format!(r#"{modes}"limits_version":3,"journal":{{"record":41,"is_lost":true}},"has_token":true}}"#);
    assert!(text.contains(&expected), "{text}");
    let (status, body) = post(&running, right, "limits-file", "application/toml", "new");
    assert_eq!((status, body.as_str()), (200, r#"{"version":4,"sha256":"cd","text":"new"}"#));
    let (status, body) = post(&running, right, "limits-file", "application/toml", "other");
    assert_eq!((status, body.as_str()), (422, r#"{"error":"other is refused"}"#));
    running.stop();
    let running = start_with(State { gate: Some(Arc::new(SilentGate)), ..State::default() });
    assert_eq!(post(&running, right, "limits-file", "application/toml", "new").0, 403, "no token is configured");
    let text = live(&running);
    assert!(text.contains(r#""has_token":false}"#), "{text}");
    running.stop();
    let running = start_with(State::default());
    assert_eq!(post(&running, right, "limits-file", "application/toml", "new").0, 404, "no gate");
    let text = live(&running);
    assert!(text.contains(r#""gate":null"#), "{text}");
    running.stop();
}

#[test]
fn an_address_in_use_is_named() {
    let running = start_with(State::default());
    let error = start(running.listen(), State::default()).unwrap_err();
    assert!(error.to_string().contains(&running.listen().to_string()), "{error}");
    running.stop();
}

#[test]
fn simulated_market_data_are_labelled() {
    let market: Reading<MarketStatus> = Arc::new(|| MarketStatus {
        ledger: Accounting::new("frames", 5, vec![Count { name: "applied", count: 5 }], vec![]),
        stages: Stages { one_in: 8, ..Stages::default() },
        feeds: vec![],
        books: vec![],
        ingest: vec![],
    });
    for simulated in [true, false] {
        let (market, turn): (_, Reading<TurnStatus>) = (Some(Arc::clone(&market)), Arc::new(turn));
        let running = start_with(State { market, turn: Some(turn), simulated, ..State::default() });
        assert_eq!(json(&running, "/api/v1/market/status")["simulated"], simulated);
        let metric = format!("\ntruetick_market_simulated {}\n", u8::from(simulated));
        let text = get(&running, "/metrics").body;
        assert!(text.contains(&metric), "{text}");
        // The label is on every other series of the market, and on nothing else.
        let label = "simulated=\"true\"";
        let series: Vec<_> = samples(&text).into_iter().map(|(series, _)| series).collect();
        assert!(series.iter().any(|series| series.starts_with("truetick_turn_")), "{series:?}");
        let market = series.iter().filter(|series| series.starts_with("truetick_market_frames_"));
        assert!(market.clone().count() >= 2 && market.clone().all(|of| of.contains(label) == simulated), "{series:?}");
        let others = series.iter().filter(|series| !series.starts_with("truetick_market_frames_"));
        assert!(others.clone().all(|series| !series.contains(label)), "{series:?}");
        live_until(&running, |text| text.contains(&format!("\"simulated\":{simulated}")));
        running.stop();
    }
}

/// The distribution of passes as the page's chart takes it, and nothing for an engine that has not passed anything.
#[test]
fn passes_are_reported_by_bucket() {
    let running = start_with(State { turn: Some(Arc::new(turn)), ..State::default() });
    let passes = json(&running, "/api/v1/machine/passes");
    assert_eq!(passes["classes"].as_array().unwrap().len(), 1, "{passes}");
    assert_eq!(passes["classes"][0]["placement"], "turn");
    let passes_of_turn = &passes["classes"][0]["distributions"][0];
    assert_eq!(
        (&passes_of_turn["n"], &passes_of_turn["p50_ns"], &passes_of_turn["max_ns"]),
        (&4.into(), &240.0.into(), &300.0.into())
    );
    let counts: Vec<_> =
        passes_of_turn["buckets"].as_array().unwrap().iter().map(|bucket| bucket["count"].as_u64()).collect();
    assert_eq!(counts, [Some(3), Some(1)]);
    running.stop();
}
