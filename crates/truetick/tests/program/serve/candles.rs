//! Candles of any timeframe: what trades of the same time make of them.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use serde_json::Value;
use tt_model::Decimal;

use super::openapi::answer_validator;
use crate::served::Served;

const PATH: &str = "/api/v1/market/candles?venue=kraken&symbol=BTC/USD";

fn decimal(value: &Value) -> Decimal {
    Decimal::parse(value.as_str().unwrap().as_bytes()).unwrap()
}

/// Steps of 10^-8.
fn steps(value: &Value) -> i64 {
    decimal(value).mantissa_at(8).unwrap()
}

/// Open, high, low, close, volume and count of each candle, as trades make them.
fn expected(trades: &[Value], length_ms: u64) -> BTreeMap<u64, [i64; 6]> {
    let mut candles = BTreeMap::new();
    for trade in trades {
        let start = trade["event_unix_ns"].as_u64().unwrap() / 1_000_000 / length_ms * length_ms;
        let (px, qty) = (steps(&trade["px"]), steps(&trade["qty"]));
        let candle = candles.entry(start).or_insert([px, px, px, px, 0, 0]);
        *candle = [candle[0], candle[1].max(px), candle[2].min(px), px, candle[4] + qty, candle[5] + 1];
    }
    candles
}

fn rows(answer: &Value) -> BTreeMap<u64, ([i64; 6], bool)> {
    let row = |candle: &Value| {
        let [open, high, low, close, volume] =
            ["open", "high", "low", "close", "volume"].map(|key| steps(&candle[key]));
        let count = candle["trades"].as_i64().unwrap();
        let start = candle["start_unix_ms"].as_u64().unwrap();
        (start, ([open, high, low, close, volume, count], candle["is_whole"].as_bool().unwrap()))
    };
    answer[0]["candles"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn candles_are_what_the_trades_of_their_time_make() {
    let served = Served::start(&["--fault-every", "0", "--instruments", "1", "--rate", "100"]);
    served.wait_ready();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let url = format!("ws://{}/ws/trades?venue=kraken&symbol=BTC/USD", served.http);
    let (mut stream, _) = runtime.block_on(tokio_tungstenite::connect_async(url)).unwrap();
    let mut trades: Vec<Value> = Vec::new();
    let mut answer = served.json(PATH);
    // Three seconds that are over, by the venue's clock.
    while trades.len() < 20
        || trades.last().unwrap()["event_unix_ns"].as_u64().unwrap()
            < trades[0]["event_unix_ns"].as_u64().unwrap() + 4_000_000_000
    {
        let text = runtime.block_on(stream.next()).unwrap().unwrap().into_text().unwrap();
        let message: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(message["type"], "trades", "{message}");
        trades.extend(message["trades"].as_array().unwrap().iter().cloned());
    }
    let last_ms = trades.last().unwrap()["event_unix_ns"].as_u64().unwrap() / 1_000_000;
    let first_ms = trades[0]["event_unix_ns"].as_u64().unwrap() / 1_000_000;
    for (timeframe, length_ms) in [("1s", 1_000), ("2s", 2_000)] {
        answer = served.json(&format!("{PATH}&timeframe={timeframe}"));
        let found = rows(&answer);
        let made = expected(&trades, length_ms);
        let mut compared = 0;
        for (start, candle) in &made {
            // The first one began before the stream, the last one goes on.
            if *start > first_ms && start + length_ms <= last_ms {
                let (shown, is_whole) = found[start];
                assert_eq!(shown, *candle, "{timeframe} {start}: {answer}");
                assert!(is_whole, "{answer}");
                compared += 1;
            }
        }
        assert!(compared > 0, "{timeframe}: {answer}");
    }
    assert_eq!((&answer[0]["gaps"], &answer[0]["timeframe_s"]), (&Value::Array(Vec::new()), &2.into()));
    assert!(answer[0]["known_since_unix_ms"].as_u64().unwrap() <= first_ms, "{answer}");
    // All of it is in one candle of a week, which is not whole.
    let week = rows(&served.json(&format!("{PATH}&timeframe=168h")));
    let total: i64 = week.values().map(|(candle, _)| candle[5]).sum();
    assert!(total >= i64::try_from(trades.len()).unwrap() && week.values().all(|candle| !candle.1), "{week:?}");
    // A range and a limit.
    let all = rows(&served.json(&format!("{PATH}&timeframe=1s")));
    let (second, third) = (*all.keys().nth(1).unwrap(), *all.keys().nth(2).unwrap());
    let range = rows(&served.json(&format!("{PATH}&timeframe=1s&from={second}&to={third}")));
    assert_eq!(range.keys().collect::<Vec<_>>(), [&second]);
    let newest = rows(&served.json(&format!("{PATH}&timeframe=1s&to={third}&limit=1")));
    assert_eq!(newest.keys().collect::<Vec<_>>(), [&second]);
    assert!(answer_validator(&served, "/api/v1/market/candles").is_valid(&answer), "{answer}");
}

#[test]
fn rejects_questions_that_name_no_candles() {
    let served = Served::start(&["--instruments", "1"]);
    for (parameters, status) in [
        ("timeframe=7x", 400),
        ("timeframe=0s", 400),
        ("timeframe=1500ms", 400),
        ("timeframe=169h", 400),
        ("limit=0", 400),
        ("limit=5001", 400),
        ("limit=-1", 400),
        ("from=yesterday", 400),
        ("until=1", 400),
        ("symbol=NO/SUCH", 404),
        ("venue=nope", 404),
        ("timeframe=1h&from=1&to=2&limit=5000", 200),
    ] {
        let answer = served.get(&format!("/api/v1/market/candles?{parameters}"));
        assert_eq!(answer.status, status, "{parameters}: {}", answer.body);
    }
}

/// What a reader of the stream has after each message.
#[derive(Default)]
struct Copy {
    candles: BTreeMap<u64, Value>,
    kinds: BTreeMap<String, usize>,
}

impl Copy {
    fn take(&mut self, message: &Value) {
        for row in message.as_array().unwrap() {
            assert_eq!((&row["symbol"], &row["timeframe_s"]), (&"BTC/USD".into(), &1.into()), "{row}");
            let kind = row["type"].as_str().unwrap();
            *self.kinds.entry(kind.to_owned()).or_default() += 1;
            if kind == "snapshot" {
                self.candles.clear();
            }
            for candle in row["candles"].as_array().unwrap() {
                self.candles.insert(candle["start_unix_ms"].as_u64().unwrap(), candle.clone());
            }
        }
    }
}

#[test]
fn the_stream_of_candles_adds_up_to_the_answer() {
    let served = Served::start(&["--fault-every", "0", "--instruments", "1", "--rate", "100"]);
    served.wait_ready();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let path = "/ws/candles?venue=kraken&symbol=BTC/USD&timeframe=1s";
    let (mut stream, _) =
        runtime.block_on(tokio_tungstenite::connect_async(format!("ws://{}{path}", served.http))).unwrap();
    let mut copy = Copy::default();
    let is_whole = |copy: &Copy| copy.candles.values().filter(|candle| candle["is_whole"] == true).count();
    // Three seconds that are over, and updates: the first snapshot may have them all.
    while is_whole(&copy) < 4 || copy.kinds.get("update") < Some(&3) {
        let text = runtime.block_on(stream.next()).unwrap().unwrap().into_text().unwrap();
        copy.take(&serde_json::from_str(&text).unwrap());
    }
    let newest = copy.candles.last_key_value().unwrap().0;
    let answer = served.json(&format!("{PATH}&timeframe=1s&to={newest}"));
    let candles = answer[0]["candles"].as_array().unwrap();
    assert!(candles.len() >= 3, "{answer}");
    for candle in candles {
        assert_eq!(copy.candles.get(&candle["start_unix_ms"].as_u64().unwrap()), Some(candle), "{:?}", copy.candles);
    }
    assert_eq!(copy.kinds["snapshot"], 1, "nothing of the past has changed: {:?}", copy.kinds);
    assert!(copy.kinds["update"] >= 3, "{:?}", copy.kinds);
}
