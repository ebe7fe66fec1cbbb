//! What goes over the wire, read by a client that knows only the venues' documentation.

#![allow(clippy::unwrap_used, reason = "a test may end where it fails")]

use std::{collections::BTreeMap, time::Duration};

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use sim::{Config, Fault, Running, Venue};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async, tungstenite::Message};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Makes steps only on request.
fn stepped() -> Running {
    sim::start(Config { instruments: 3, rate_hz: 0.0, seed: 42, ..Config::default() }).unwrap()
}

async fn open(url: String) -> Socket {
    connect_async(url).await.unwrap().0
}

async fn next(socket: &mut Socket) -> Value {
    loop {
        match timeout(Duration::from_secs(10), socket.next()).await.expect("a frame within 10 s").unwrap().unwrap() {
            Message::Text(text) if !text.contains("\"heartbeat\"") => return serde_json::from_str(&text).unwrap(),
            Message::Text(_) | Message::Ping(_) | Message::Pong(_) => {}
            other @ (Message::Binary(_) | Message::Close(_) | Message::Frame(_)) => panic!("{other:?}"),
        }
    }
}

async fn get(address: std::net::SocketAddr, path: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// The digits of `text` as an integer of `decimals` decimal places.
fn steps(text: &str, decimals: usize) -> i64 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = format!("{fraction:0<16}");
    assert!(fraction[decimals..].bytes().all(|digit| digit == b'0'), "{text} has more than {decimals} decimals");
    format!("{whole}{}", &fraction[..decimals]).parse().unwrap()
}

#[tokio::test]
async fn binance_snapshot_and_chain_of_updates_give_the_true_book() {
    for (venue, path) in [(Venue::BinanceSpot, "/api/v3/depth"), (Venue::BinanceUsdm, "/fapi/v1/depth")] {
        let sim = stepped();
        let instrument = &sim.instruments(venue)[0];
        let address = sim.address(venue);
        let mut socket = open(format!("ws://{address}/stream?streams=btcusdt@depth@100ms/btcusdt@bookTicker")).await;
        sim.step(venue, 0, 5);
        let snapshot: Value =
            serde_json::from_str(&get(address, &format!("{path}?symbol=BTCUSDT&limit=1000")).await).unwrap();
        let last = sim.step(venue, 0, 300);

        let mut sides = ["bids", "asks"].map(|side| {
            let levels = snapshot[side].as_array().unwrap().iter();
            levels.map(|level| read(level, instrument)).collect::<BTreeMap<i64, i64>>()
        });
        let joined = snapshot["lastUpdateId"].as_u64().unwrap();
        let (mut at, mut quotes, mut dropped) = (0, 0, 0);
        while at < last {
            let wrapped = next(&mut socket).await;
            let payload = &wrapped["data"];
            if wrapped["stream"] == "btcusdt@bookTicker" {
                quotes += 1;
                assert!(payload["u"].as_u64().unwrap() > 0);
                continue;
            }
            let (first, id) = (payload["U"].as_u64().unwrap(), payload["u"].as_u64().unwrap());
            if id <= joined {
                dropped += 1;
                at = id;
                continue;
            }
            if venue == Venue::BinanceSpot {
                assert_eq!(first, at + 1);
            } else {
                assert_eq!(payload["pu"].as_u64().unwrap(), at);
            }
            at = id;
            for (side, key) in sides.iter_mut().zip(["b", "a"]) {
                for level in payload[key].as_array().unwrap() {
                    let (px, qty) = read(level, instrument);
                    side.insert(px, qty);
                }
                side.retain(|_, qty| *qty > 0);
            }
        }
        let (id, truth) = sim.truth(venue, 0);
        assert_eq!(id, last);
        assert_eq!(dropped, 5);
        assert!(quotes > 20, "{quotes}");
        assert!(sides[0].iter().rev().eq(truth.bids()), "bids");
        assert!(sides[1].iter().eq(truth.asks()), "asks");
        sim.stop();
    }
}

fn read(level: &Value, instrument: &sim::Instrument) -> (i64, i64) {
    let text = |i: usize| level[i].as_str().unwrap();
    (steps(text(0), instrument.px_decimals as usize), steps(text(1), instrument.qty_decimals as usize))
}

#[tokio::test]
async fn kraken_updates_keep_the_subscribed_window_of_the_true_book() {
    let sim = stepped();
    let instrument = &sim.instruments(Venue::Kraken)[1];
    let mut socket = open(format!("ws://{}/v2", sim.address(Venue::Kraken))).await;
    assert_eq!(next(&mut socket).await["channel"], "status");
    let subscribe = |depth: u32| {
        Message::text(format!(
            r#"{{"method":"subscribe","params":{{"channel":"book","symbol":["ETH/USD"],"depth":{depth}}},"req_id":9}}"#
        ))
    };
    socket.send(subscribe(27)).await.unwrap();
    let refusal = next(&mut socket).await;
    assert_eq!((refusal["success"].as_bool(), refusal["req_id"].as_u64()), (Some(false), Some(9)));
    socket.send(subscribe(10)).await.unwrap();
    assert_eq!(next(&mut socket).await["success"], true);

    let mut sides = [BTreeMap::new(), BTreeMap::new()];
    let mut last_checksum = 0;
    apply(&next(&mut socket).await, "snapshot", &mut sides, &mut last_checksum, instrument);
    for _ in 0..400 {
        let before = window(&sim.truth(Venue::Kraken, 1).1);
        sim.step(Venue::Kraken, 1, 1);
        let truth = window(&sim.truth(Venue::Kraken, 1).1);
        if before != truth {
            apply(&next(&mut socket).await, "update", &mut sides, &mut last_checksum, instrument);
        }
        assert_eq!(sides, truth);
    }
    sim.stop();
}

fn window(book: &sim::TrueBook) -> [BTreeMap<i64, i64>; 2] {
    [
        book.bids().take(10).map(|(&px, &qty)| (px, qty)).collect(),
        book.asks().take(10).map(|(&px, &qty)| (px, qty)).collect(),
    ]
}

fn apply(
    frame: &Value,
    kind: &str,
    sides: &mut [BTreeMap<i64, i64>; 2],
    last_checksum: &mut u64,
    instrument: &sim::Instrument,
) {
    assert_eq!((frame["channel"].as_str(), frame["type"].as_str()), (Some("book"), Some(kind)));
    let book = &frame["data"][0];
    for (side, key) in sides.iter_mut().zip(["bids", "asks"]) {
        for level in book[key].as_array().unwrap() {
            // serde_json keeps the digits of numbers (`arbitrary_precision`).
            let px = steps(&level["price"].to_string(), instrument.px_decimals as usize);
            let qty = steps(&level["qty"].to_string(), instrument.qty_decimals as usize);
            side.insert(px, qty);
        }
        side.retain(|_, qty| *qty > 0);
    }
    while sides[0].len() > 10 {
        sides[0].pop_first();
    }
    while sides[1].len() > 10 {
        sides[1].pop_last();
    }
    let checksum = book["checksum"].as_u64().unwrap();
    assert_ne!(checksum, *last_checksum);
    *last_checksum = checksum;
}

#[tokio::test]
async fn faults_are_seen_on_the_wire_and_only_once() {
    let sim = stepped();
    let mut socket = open(format!("ws://{}/ws/btcusdt@depth", sim.address(Venue::BinanceSpot))).await;
    let mut seen = async |fault: Option<Fault>, steps: u64| {
        if let Some(fault) = fault {
            sim.fault(Venue::BinanceSpot, 0, fault);
        }
        let last = sim.step(Venue::BinanceSpot, 0, steps);
        (next(&mut socket).await["u"].as_u64().unwrap(), last)
    };
    let (id, last) = seen(None, 1).await;
    assert_eq!(id, last);
    let (id, last) = seen(Some(Fault::Drop), 2).await;
    assert_eq!(id, last, "the first of the two is gone");
    let (first, last) = seen(Some(Fault::Duplicate), 1).await;
    assert_eq!(first, last);
    let again = next(&mut socket).await;
    assert_eq!(again["u"].as_u64().unwrap(), last);
    sim.fault(Venue::BinanceSpot, 0, Fault::Swap);
    let last = sim.step(Venue::BinanceSpot, 0, 2);
    assert_eq!(next(&mut socket).await["u"].as_u64().unwrap(), last);
    assert!(next(&mut socket).await["u"].as_u64().unwrap() < last);
    sim.stop();
}

#[tokio::test]
async fn the_pace_is_kept_and_private_orders_flow() {
    let sim = sim::start(Config { rate_hz: 4000.0, ..Config::default() }).unwrap();
    let mut socket = open(format!("ws://{}/ws/{}", sim.address(Venue::BinanceSpot), sim::LISTEN_KEY)).await;
    let mut states = Vec::new();
    while states.len() < 9 {
        let report = next(&mut socket).await;
        assert_eq!(report["e"], "executionReport");
        states.push(report["X"].as_str().unwrap().to_owned());
    }
    assert!(states.iter().any(|state| state == "FILLED") && states.iter().any(|state| state == "CANCELED"));
    assert!(sim.stats(Venue::BinanceSpot).updates > 0);
    sim.stop();
}

/// USD-M since 2026-04-23: every path accepts every subscription, and serves its own kind of data.
#[tokio::test]
async fn usdm_serves_by_path_and_accepts_everything() {
    let sim = sim::start(Config { rate_hz: 400.0, ..Config::default() }).unwrap();
    let address = sim.address(Venue::BinanceUsdm);
    // Updates of the book for more than a second, or two mark prices.
    for (path, kind, frames) in [
        ("/public/stream", "depthUpdate", 200),
        ("/stream", "depthUpdate", 200),
        ("/market/stream", "markPriceUpdate", 2),
    ] {
        let mut socket = open(format!("ws://{address}{path}")).await;
        let topics = "\"btcusdt@depth@100ms\",\"btcusdt@markPrice@1s\"";
        let request = format!("{{\"method\":\"SUBSCRIBE\",\"params\":[{topics},\"{}\"],\"id\":1}}", sim::LISTEN_KEY);
        socket.send(Message::text(request)).await.unwrap();
        let mut seen = BTreeMap::<String, u32>::new();
        let mut is_accepted = false;
        while seen.values().sum::<u32>() < frames {
            let frame = next(&mut socket).await;
            is_accepted |= frame == serde_json::json!({"result": null, "id": 1});
            if let Some(kind) = frame["data"]["e"].as_str() {
                *seen.entry(kind.to_owned()).or_default() += 1;
            }
        }
        assert!(is_accepted, "{path}");
        assert_eq!(seen.keys().collect::<Vec<_>>(), [kind], "{path}");
    }
    let mut socket = open(format!("ws://{address}/private/ws?listenKey={}", sim::LISTEN_KEY)).await;
    assert_eq!(next(&mut socket).await["e"], "ORDER_TRADE_UPDATE");
    sim.stop();
}

#[test]
fn after_a_rate_of_0_nothing_changes() {
    // Steps of a quarter of a second are due at most times: making them takes longer than the rate allows.
    let sim = sim::start(Config { instruments: 3, rate_hz: 1_000_000.0, seed: 42, ..Config::default() }).unwrap();
    let id = || sim.truth(Venue::Kraken, 0).0;
    for _ in 0..20 {
        sim.set_rate(1_000_000.0);
        let before = id();
        while id() < before + 100 {
            std::thread::yield_now();
        }
        sim.set_rate(0.0);
        let stopped = id();
        for _ in 0..1_000 {
            assert_eq!(id(), stopped);
            std::thread::yield_now();
        }
    }
    sim.stop();
}
