//! OKX, Bybit and Deribit over real sockets, read by a client that knows only the venues' documentation.

#![allow(clippy::unwrap_used, reason = "a test may end where it fails")]

use std::{collections::BTreeMap, time::Duration};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use sim::{Config, Fault, Running, Venue};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async, tungstenite::Message};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

fn stepped() -> Running {
    sim::start(Config { instruments: 2, rate_hz: 0.0, seed: 42, ..Config::default() }).unwrap()
}

async fn text(socket: &mut Socket) -> String {
    loop {
        match timeout(Duration::from_secs(10), socket.next()).await.expect("a frame within 10 s").unwrap().unwrap() {
            Message::Text(text) => return text.as_str().to_owned(),
            Message::Ping(_) | Message::Pong(_) => {}
            other @ (Message::Binary(_) | Message::Close(_) | Message::Frame(_)) => panic!("{other:?}"),
        }
    }
}

async fn next(socket: &mut Socket) -> Value {
    serde_json::from_str(&text(socket).await).unwrap()
}

async fn say(socket: &mut Socket, request: Value) {
    socket.send(Message::text(request.to_string())).await.unwrap();
}

/// The digits of a text or a number as an integer of `decimals` decimal places.
fn steps(value: &Value, decimals: u32) -> i64 {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = format!("{fraction:0<16}");
    let kept = decimals as usize;
    assert!(fraction[kept..].bytes().all(|digit| digit == b'0'), "{text} has more than {decimals} decimals");
    format!("{whole}{}", &fraction[..kept]).parse().unwrap()
}

/// Bids and asks by price.
type Sides = [BTreeMap<i64, i64>; 2];

fn apply(sides: &mut Sides, book: &Value, keys: [&str; 2], px_at: usize, instrument: &sim::Instrument) {
    for (side, key) in sides.iter_mut().zip(keys) {
        for level in book[key].as_array().unwrap() {
            let px = steps(&level[px_at], instrument.px_decimals);
            let qty = steps(&level[px_at + 1], instrument.qty_decimals);
            side.insert(px, qty);
        }
        side.retain(|_, qty| *qty > 0);
    }
}

fn truth(sim: &Running, venue: Venue, depth: usize) -> Sides {
    let (_, book) = sim.truth(venue, 0);
    let level = |(&px, &qty): (&i64, &i64)| (px, qty);
    [book.bids().take(depth).map(level).collect(), book.asks().take(depth).map(level).collect()]
}

#[tokio::test]
async fn okx_numbers_lead_from_the_snapshot_to_the_true_book_through_a_reset() {
    let sim = stepped();
    let instrument = &sim.instruments(Venue::Okx)[0];
    let mut socket = connect_async(format!("ws://{}/ws/v5/public", sim.address(Venue::Okx))).await.unwrap().0;
    let books = |inst: &str| json!({"op": "subscribe", "args": [{"channel": "books", "instId": inst}]});
    say(&mut socket, books("NO-SUCH")).await;
    assert_eq!(next(&mut socket).await["code"], "60018");
    say(&mut socket, books("BTC-USDT")).await;
    assert_eq!(next(&mut socket).await["event"], "subscribe");
    let snapshot = next(&mut socket).await;
    assert_eq!((snapshot["action"].as_str(), snapshot["data"][0]["prevSeqId"].as_i64()), (Some("snapshot"), Some(-1)));
    let mut sides = Sides::default();
    apply(&mut sides, &snapshot["data"][0], ["bids", "asks"], 0, instrument);
    let mut at = snapshot["data"][0]["seqId"].as_i64().unwrap();
    let (mut quiet, mut resets) = (0, 0);
    for step in 0..300 {
        if step == 150 {
            sim.fault(Venue::Okx, 0, Fault::Reset);
        }
        let last = sim.step(Venue::Okx, 0, 1);
        loop {
            let update = next(&mut socket).await;
            assert_eq!(update["action"], "update");
            let update = &update["data"][0];
            assert_eq!((update["prevSeqId"].as_i64(), update["checksum"].as_i64()), (Some(at), Some(0)));
            let id = update["seqId"].as_i64().unwrap();
            quiet += i32::from(id == at);
            resets += i32::from(id < at);
            at = id;
            apply(&mut sides, update, ["bids", "asks"], 0, instrument);
            if sim.update_id_of(Venue::Okx, 0, 400, id as u64) == Some(last) {
                break;
            }
        }
        assert_eq!(sides, truth(&sim, Venue::Okx, 400));
    }
    assert!(quiet <= 30 && resets == 1, "{quiet} {resets}");
    socket.send(Message::text("ping")).await.unwrap();
    while text(&mut socket).await != "pong" {}
    sim.stop();
}

#[tokio::test]
async fn bybit_counts_updates_of_its_window_and_restarts_with_one() {
    let sim = stepped();
    let instrument = &sim.instruments(Venue::Bybit)[0];
    let mut socket = connect_async(format!("ws://{}/v5/public/linear", sim.address(Venue::Bybit))).await.unwrap().0;
    let request = |topic: &str| json!({"op": "subscribe", "args": [topic], "req_id": "7"});
    say(&mut socket, request("orderbook.51.BTCUSDT")).await;
    assert_eq!(next(&mut socket).await["success"], false);
    say(&mut socket, request("orderbook.50.BTCUSDT")).await;
    let accepted = next(&mut socket).await;
    assert_eq!((accepted["success"].as_bool(), accepted["req_id"].as_str()), (Some(true), Some("7")));
    let mut sides = Sides::default();
    let (mut at, mut resets) = (0, 0);
    for step in 0..300 {
        if step == 150 {
            sim.fault(Venue::Bybit, 0, Fault::Reset);
        }
        if sides != truth(&sim, Venue::Bybit, 50) {
            let book = next(&mut socket).await;
            let (kind, book) = (book["type"].as_str().unwrap(), &book["data"]);
            let id = book["u"].as_u64().unwrap();
            if kind == "snapshot" {
                sides = Sides::default();
                resets += i32::from(id == 1);
            } else {
                assert_eq!(id, at + 1);
            }
            at = id;
            apply(&mut sides, book, ["b", "a"], 0, instrument);
            assert_eq!(sides, truth(&sim, Venue::Bybit, 50));
        }
        sim.step(Venue::Bybit, 0, 1);
    }
    assert_eq!(resets, 1);
    say(&mut socket, json!({"op": "ping"})).await;
    while next(&mut socket).await["ret_msg"] != "pong" {}
    sim.stop();
}

#[tokio::test]
async fn deribit_changes_chain_to_the_true_book_and_short_heartbeats_are_refused() {
    let sim = stepped();
    let instrument = &sim.instruments(Venue::Deribit)[0];
    let mut socket = connect_async(format!("ws://{}/ws/api/v2", sim.address(Venue::Deribit))).await.unwrap().0;
    let names = ["book.BTC-PERPETUAL.100ms", "book.NONE.100ms"];
    say(&mut socket, json!({"jsonrpc": "2.0", "id": 3, "method": "public/subscribe", "params": {"channels": names}}))
        .await;
    let accepted = next(&mut socket).await;
    assert_eq!((accepted["id"].as_u64(), accepted["result"].as_array().unwrap().len()), (Some(3), 1));
    let mut sides = Sides::default();
    let mut at = Value::Null;
    for _ in 0..200 {
        if sides != truth(&sim, Venue::Deribit, usize::MAX) {
            let notification = next(&mut socket).await;
            let book = &notification["params"]["data"];
            assert_eq!(book["prev_change_id"], at);
            at = book["change_id"].clone();
            for (side, key) in sides.iter().zip(["bids", "asks"]) {
                for level in book[key].as_array().unwrap() {
                    let held = side.contains_key(&steps(&level[1], instrument.px_decimals));
                    let action = level[0].as_str().unwrap();
                    assert!(action == "delete" || held == (action == "change"), "{level}");
                }
            }
            apply(&mut sides, book, ["bids", "asks"], 1, instrument);
            assert_eq!(sides, truth(&sim, Venue::Deribit, usize::MAX));
        }
        sim.step(Venue::Deribit, 0, 1);
    }
    say(&mut socket, json!({"jsonrpc": "2.0", "id": 4, "method": "public/set_heartbeat", "params": {"interval": 9}}))
        .await;
    let refusal = loop {
        let frame = next(&mut socket).await;
        if frame["id"] == 4 {
            break frame;
        }
    };
    assert_eq!(refusal["error"]["code"], -32602);
    sim.stop();
}
