//! `truetick serve` from outside: every interface answers, every sum closes, and a signal ends it cleanly.

mod accounts;
mod books;
mod candles;
mod changes;
mod feeds;
mod liquidations;
mod openapi;
mod orders;
mod reloads;
mod stages;
mod verified;

use std::collections::BTreeMap;
use std::process::Command;

use crate::served::Served;
use futures_util::StreamExt as _;
use nix::sys::signal::Signal;
use serde_json::Value;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;

const LEDGERS: [&str; 3] = ["/api/v1/turn/drops", "/api/v1/market/drops", "/api/v1/risk/verdicts"];

/// The rows of the published result, `seed-tables`: names of others, not ours.
const INGEST_ROWS: [&str; 7] = [
    "state_ticker_ns",
    "state_mark_price_ns",
    "state_order_update_ns",
    "state_ob_snap_ns",
    "state_ob_delta_ns",
    "parse_ns",
    "end_to_end_ns",
];

fn ledger(value: &Value) -> &Value {
    value.get("ledger").unwrap_or(value)
}

fn sum(counts: &Value) -> u64 {
    counts.as_array().expect("a list").iter().map(|count| count["count"].as_u64().expect("a count")).sum()
}

fn assert_closes(value: &Value) {
    let ledger = ledger(value);
    let number = |name: &str| ledger[name].as_u64().unwrap_or_else(|| panic!("no {name} in {ledger}"));
    assert_eq!(number("in"), number("out") + number("dropped"), "{ledger}");
    assert_eq!((number("out"), number("dropped")), (sum(&ledger["outcomes"]), sum(&ledger["drops"])), "{ledger}");
    assert_eq!(ledger["closes"], true);
}

#[test]
fn every_engine_works_and_every_sum_closes() {
    let served = Served::start(&["--fault-every", "0"]);
    served.wait_ready();
    let status = served.json("/api/v1/market/status");
    assert_eq!((&status["books"], &status["simulated"]), (&18.into(), &true.into()));
    assert_eq!(served.get("/healthz").body, "ok\n");
    for path in &LEDGERS[1..] {
        let before = ledger(&served.json(path))["in"].as_u64();
        let after = served.wait(path, |value| ledger(value)["in"].as_u64() > before);
        assert_closes(&after);
    }
    assert_closes(&served.json(LEDGERS[0]));
    let market = served.wait("/api/v1/market/stages", |stages| stages["pass"]["n"].as_u64() > Some(0));
    assert_eq!(market["stages"].as_array().map(Vec::len), Some(5));
    let allocations = &served.json("/api/v1/turn/allocations")["allocations"];
    assert_eq!(allocations["live"], 0);
    assert!(served.json("/api/v1/machine")["cores"].as_u64() > Some(0));
    let rows = served.json("/api/v1/internal/engine/ingest-metrics");
    let names: Vec<_> = rows["rows"].as_array().expect("rows").iter().filter_map(|row| row["name"].as_str()).collect();
    for name in INGEST_ROWS {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
}

#[test]
fn books_carry_their_proof() {
    let served = Served::start(&["--instruments", "2", "--fault-every", "0"]);
    served.wait_ready();
    let kraken = served.json("/api/v1/market/orderbook?venue=kraken");
    let books = kraken.as_array().expect("books");
    assert_eq!(books.len(), 2);
    for book in books {
        assert_eq!(book["proof"], "crc", "{book}");
        assert_eq!(
            (book["bids"].as_array().map(Vec::len), book["asks"].as_array().map(Vec::len)),
            (Some(10), Some(10))
        );
        let px = |side: &str, index: usize| -> f64 {
            book[side][index]["px"].as_str().and_then(|px| px.parse().ok()).expect("a price")
        };
        assert!(px("bids", 0) < px("asks", 0), "{book}");
        assert!(px("bids", 1) < px("bids", 0) && px("asks", 0) < px("asks", 1), "{book}");
    }
    let traded = |rows: &Value| {
        let one = |row: &Value| row["candles"].as_array().is_some_and(|all| all.len() == 2);
        rows.as_array().is_some_and(|all| all.len() == 2 && all.iter().all(one))
    };
    for row in served.wait("/api/v1/market/ohlcv?venue=kraken", traded).as_array().expect("rows") {
        let px = |candle: &Value, name: &str| -> f64 {
            candle[name].as_str().and_then(|px| px.parse().ok()).expect("a price")
        };
        for candle in row["candles"].as_array().expect("candles") {
            let (low, high) = (px(candle, "low"), px(candle, "high"));
            assert!(0.0 < low && low <= px(candle, "open").min(px(candle, "close")), "{candle}");
            assert!(px(candle, "open").max(px(candle, "close")) <= high, "{candle}");
        }
    }
    let oracle = |tickers: &Value| tickers.as_array().is_some_and(|all| all.iter().any(|one| one["proof"] == "oracle"));
    served.wait("/api/v1/market/ticker?venue=binance_spot", oracle);
}

#[test]
fn tickers_and_contracts_have_times_and_units() {
    let served = Served::start(&["--instruments", "2", "--fault-every", "0"]);
    served.wait_ready();
    let markets = served.json("/api/v1/market/markets");
    let tickers = served.json("/api/v1/market/ticker");
    assert_eq!(tickers.as_array().map(Vec::len), Some(12));
    for (ticker, market) in tickers.as_array().expect("rows").iter().zip(markets.as_array().expect("rows")) {
        for key in ["instrument", "tick_size", "lot_size", "contract"] {
            assert_eq!(ticker[key], market[key], "{ticker}");
        }
        let (event, recv) = (ticker["ts_event"].as_u64().expect("a time"), ticker["ts_recv"].as_u64().expect("a time"));
        assert!(event > 1_700_000_000_000_000_000 && recv > 1_700_000_000_000_000_000, "{ticker}");
        assert_eq!(ticker["simulated"], true);
    }
    let has_both = |rows: &Value| rows.as_array().is_some_and(|rows| rows.len() == 2);
    let contracts = served.wait("/api/v1/market/derivatives?venue=binance_usdm", has_both);
    for row in contracts.as_array().expect("rows") {
        let number = |text: &Value| text.as_str().expect("text").parse::<f64>().expect("a number");
        let ticker = tickers.as_array().expect("rows").iter().find(|ticker| ticker["instrument"] == row["instrument"]);
        let bid = number(&ticker.expect("its ticker")["bid"]["px"]);
        assert!((number(&row["mark_px"]) / bid - 1.0).abs() < 0.05 && row["mark_px"] == row["index_px"], "{row}");
        assert_eq!((number(&row["funding_rate"]), &row["open_interest"]), (0.0001, &Value::Null), "{row}");
        assert_eq!(row["next_funding_unix_ms"].as_u64().expect("a time") % 28_800_000, 0);
        assert_eq!(row["simulated"], true);
        // The venue sends a liquidation now and then; `liquidations` tests what they contain.
        let liquidation = &row["liquidation"];
        assert!(liquidation.is_null() || liquidation["number"].as_u64() >= Some(1), "{row}");
        assert!(row["ts_event"].is_u64() && row["ts_recv"].is_u64() && row["contract"]["kind"] == "base", "{row}");
    }
    let spot = served.json("/api/v1/market/derivatives?venue=binance_spot");
    assert_eq!(spot, Value::Array(vec![]), "a spot market has none of it");
}

#[test]
fn questions_without_an_answer_are_refused() {
    let served = Served::start(&["--instruments", "1", "--fault-every", "0"]);
    served.wait_ready();
    let paths = ["ticker", "orderbook", "ohlcv", "trades", "derivatives", "markets"]
        .map(|name| format!("/api/v1/market/{name}"));
    for path in &paths {
        for (question, status, reason) in [
            ("", 200, ""),
            ("?venue=kraken&symbol=BTC/USD", 200, ""),
            ("?venue=nope", 404, "no feed of venue `nope`"),
            ("?symbol=BTCUSDT", 404, "no symbol `BTCUSDT` at any venue"),
            ("?venue=kraken&symbol=NO/SUCH", 404, "no symbol `NO/SUCH` at venue `kraken`"),
            ("?timeframe=60", 400, "unknown field `timeframe`"),
            ("?venue=kraken&limit=5", 400, "unknown field `limit`"),
        ] {
            let answer = served.get(&format!("{path}{question}"));
            assert_eq!(answer.status, status, "{path}{question}: {}", answer.body);
            assert!(answer.body.contains(reason), "{path}{question}: {}", answer.body);
        }
    }
    for path in ["status", "stages", "drops"] {
        assert_eq!(served.get(&format!("/api/v1/market/{path}?venue=kraken")).status, 400, "{path}");
    }
}

#[tokio::test]
async fn streams_of_nothing_are_refused_before_the_upgrade() {
    let served = tokio::task::spawn_blocking(|| {
        let served = Served::start(&["--instruments", "1", "--fault-every", "0"]);
        served.wait_ready();
        served
    });
    let served = served.await.expect("serve starts");
    for name in ["ticker", "orderbook", "ohlcv", "trades", "derivatives"] {
        for (question, status) in [("venue=nope", 404), ("symbol=NOPE", 404), ("timeframe=5", 400)] {
            let url = format!("ws://{}/ws/{name}?{question}", served.http);
            let refused = connect_async(&url).await.expect_err("an HTTP status");
            let tokio_tungstenite::tungstenite::Error::Http(answer) = refused else { panic!("{url}: {refused}") };
            assert_eq!(answer.status().as_u16(), status, "{url}");
        }
    }
}

#[test]
fn what_goes_wrong_at_a_venue_is_noticed_and_mended() {
    let served = Served::start(&["--instruments", "1", "--fault-every", "0.2"]);
    let count = |feed: &Value, name: &str| feed[name].as_u64().expect("a count");
    let status = served.wait("/api/v1/market/status", |status| {
        let feeds = status["feeds"].as_array().expect("feeds");
        feeds.iter().all(|feed| count(feed, "resyncs") > 1) && status["books_proven"] == 6
    });
    assert!(status["feeds"].as_array().expect("feeds").iter().any(|feed| count(feed, "gaps") > 0), "{status}");
    let drops = served.json("/api/v1/market/drops");
    assert!(drops["dropped"].as_u64() > Some(0), "{drops}");
    assert_closes(&drops);
}

#[test]
fn the_gate_accepts_and_refuses_with_reasons() {
    let served = Served::start(&["--intents", "400"]);
    let count = |reasons: &Value, name: &str| {
        let found = reasons.as_array().expect("reasons").iter().find(|reason| reason["name"] == name);
        found.and_then(|reason| reason["count"].as_u64()).unwrap_or_else(|| panic!("no {name}"))
    };
    let met = ["COLLAR_REF", "NOTIONAL_MAX", "QTY_MAX", "PRICE_TICK", "RATE_ACCOUNT"];
    served.wait("/api/v1/risk/reasons", |reasons| met.iter().all(|name| count(reasons, name) > 0));
    let answer = served.json("/api/v1/risk/verdicts");
    assert_closes(&answer);
    assert!(answer["ring"]["pushed"].as_u64() >= answer["ring"]["popped"].as_u64());
    for verdict in answer["verdicts"].as_array().expect("verdicts") {
        let reasons = verdict["reasons"].as_array().expect("reasons");
        assert_eq!(verdict["accept"], reasons.is_empty(), "{verdict}");
    }
    served.wait("/api/v1/risk/limits", |limits| {
        let positions = limits.as_array().expect("limits").iter().filter_map(|row| row["position"].as_str());
        positions.into_iter().any(|position| position.contains(|digit| matches!(digit, '1'..='9')))
    });
}

/// Samples of the text format by name with labels.
fn samples(text: &str) -> BTreeMap<&str, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            line.rsplit_once(' ').map(|(series, value)| (series, value.parse().expect("a number"))).expect(line)
        })
        .collect()
}

#[test]
fn metrics_move_and_name_no_user_and_no_address() {
    let served = Served::start(&["--fault-every", "0"]);
    let first = served.get("/metrics");
    assert!(first.head.contains("content-type: text/plain; version=0.0.4"), "{}", first.head);
    let frames = |text: &str| samples(text)["truetick_market_frames_in_total{simulated=\"true\"}"];
    let before = frames(&first.body);
    served.wait("/api/v1/market/drops", |drops| drops["in"].as_f64() > Some(before));
    let text = served.get("/metrics").body;
    assert!(frames(&text) > before);
    let all = samples(&text);
    for engine in ["turn_datagrams", "market_frames", "risk_intents"] {
        let family = |what: &str| -> f64 {
            let name = format!("truetick_{engine}_{what}_total");
            all.iter().filter(|(series, _)| series.split('{').next() == Some(&name)).map(|(_, value)| value).sum()
        };
        assert_eq!(family("in"), family("out") + family("dropped"), "{engine}");
    }
    let user = served.json("/api/v1/turn/ice-servers")["iceServers"][0]["username"].to_string();
    assert!(!text.contains(user.trim_matches('"')) && !text.contains("127.0.0.1"), "{text}");
}

#[test]
fn websockets_stream_to_programs_and_not_to_other_sites() {
    let served = Served::start(&["--fault-every", "0"]);
    let url = format!("ws://{}/ws/ticker?venue=kraken&symbol=BTC/USD", served.http);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (mut stream, _) = connect_async(&url).await.expect("connects");
        let mut updates = Vec::new();
        while updates.len() < 2 {
            let text = stream.next().await.expect("open").expect("whole").into_text().expect("text");
            let tickers: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(tickers.as_array().map(Vec::len), Some(1), "{tickers}");
            let update = tickers[0]["update_id"].as_u64().expect("an id");
            if updates.last() != Some(&update) {
                updates.push(update);
            }
        }
        assert!(updates.is_sorted(), "{updates:?}");
        let mut foreign = url.as_str().into_client_request().expect("a request");
        foreign.headers_mut().insert("Origin", HeaderValue::from_static("https://evil.example"));
        let refusal = connect_async(foreign).await.expect_err("another site is refused").to_string();
        assert!(refusal.contains("403"), "{refusal}");
    });
}

#[test]
fn the_credential_is_fresh_each_time_and_ready_to_paste() {
    let credential = || {
        let served = Served::start(&["--fault-every", "0"]);
        let servers = served.json("/api/v1/turn/ice-servers");
        // The banner's block is the same value, as JSON.
        let (_, block) = served.banner.split_once("{ \"iceServers\"").expect("a block");
        let (block, _) = block.split_once("\n\n").expect("its end");
        let message: Value = serde_json::from_str(&format!("{{ \"iceServers\"{block}")).expect("JSON");
        assert_eq!(message, servers);
        servers["iceServers"][0]["credential"].to_string()
    };
    assert_ne!(credential(), credential());
}

#[test]
fn signals_end_it_with_a_closing_sum() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let served = Served::start(&["--fault-every", "0.1"]);
        served.wait(LEDGERS[2], |value| ledger(value)["in"].as_u64() > Some(0));
        served.signal(signal);
        let (last_words, status) = served.end();
        assert!(status.success(), "{signal}: {status}: {last_words}");
        for unit in ["datagrams", "frames", "intents"] {
            let line = last_words.lines().find(|line| line.contains(unit)).unwrap_or_else(|| panic!("{last_words}"));
            assert!(line.contains(" in = "), "{line}");
        }
    }
}

#[test]
fn a_closed_standard_output_does_not_stop_it() {
    let status = Served::start(&["--fault-every", "0"]).end_unread();
    assert!(status.success(), "{status}");
}

/// The one line that `serve` with `flags` ends in.
fn refusal(flags: &[&str]) -> (String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_truetick"));
    let output = command.args(["--log-level", "error", "serve"]).args(flags).output().expect("the binary starts");
    let message = String::from_utf8(output.stderr).expect("UTF-8");
    // The errors of clap end with usage and suggestions.
    assert!(output.status.code() == Some(2) || message.lines().count() == 1, "{message}");
    assert_eq!(output.stdout, b"");
    (message, output.status.code())
}

#[test]
fn what_cannot_start_says_why_in_one_line() {
    let served = Served::start(&[]);
    let http = served.http.to_string();
    let (message, status) = refusal(&["--turn-listen", "127.0.0.1:0", "--http", &http]);
    assert!(message.contains(&http) && status == Some(1), "{message}");
    let server = served.json("/api/v1/turn/allocations")["listens"][0].to_string();
    let turn = server.trim_matches('"').trim_start_matches("udp ");
    let (message, status) = refusal(&["--http", "127.0.0.1:0", "--turn-listen", turn]);
    assert!(message.contains(turn) && status == Some(1), "{message}");
    for (flags, named) in
        [(["--rate=-1", "--http=127.0.0.1:0"], "--rate"), (["--fault-every=-1", "--http=127.0.0.1:0"], "--fault-every")]
    {
        let (message, status) = refusal(&flags);
        assert!(message.contains(named) && status == Some(1), "{message}");
    }
    for flags in [["--intents=0", "--lan"], ["--instruments=0", "--lan"], ["--turn-listen=127.0.0.1:0", "--lan"]] {
        assert_eq!(refusal(&flags).1, Some(2), "{flags:?}");
    }
}

/// Anonymous memory. A release build maps 12 MiB of files besides; a debug build maps more.
const ANONYMOUS_MAX: u64 = (80 - 12) << 20;

#[test]
fn eighteen_books_take_little_memory() {
    let served = Served::start(&[]);
    served.wait_ready();
    let bytes = testkit::memory_bytes(served.id(), "RssAnon");
    println!("{} KiB", bytes >> 10);
    assert!(bytes <= ANONYMOUS_MAX, "{} KiB", bytes >> 10);
}
