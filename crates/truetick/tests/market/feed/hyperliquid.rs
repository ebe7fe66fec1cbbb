//! A venue without numbers and checksums: its books are held against the times of its best levels.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::routing::{any, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::*;

const MS: u64 = 1_790_000_000_000;

/// A venue that sends what a test has it send, to whoever has subscribed to two topics of the book.
struct Scripted {
    address: SocketAddr,
    frames: broadcast::Sender<String>,
    asked: Arc<Mutex<Vec<Value>>>,
}

async fn lists(Json(asked): Json<Value>) -> Json<Value> {
    Json(match asked["type"].as_str() {
        Some("allPerpMetas") => json!([{"universe": [{"name": "BTC", "szDecimals": 5, "maxLeverage": 50}]}]),
        _ => json!({"tokens": [{"name": "USDC", "szDecimals": 8, "index": 0}], "universe": []}),
    })
}

async fn converse(mut socket: WebSocket, frames: broadcast::Sender<String>, asked: Arc<Mutex<Vec<Value>>>) {
    let mut frames = frames.subscribe();
    loop {
        let sent = tokio::select! {
            request = socket.recv() => {
                let Some(Ok(Message::Text(request))) = request else { return };
                let request: Value = serde_json::from_str(&request).unwrap();
                let answer = if request["method"] == "ping" {
                    json!({"channel": "pong"})
                } else {
                    asked.lock().unwrap().push(request["subscription"].clone());
                    json!({"channel": "subscriptionResponse", "data": request})
                };
                socket.send(Message::text(answer.to_string())).await
            }
            frame = frames.recv() => socket.send(Message::text(frame.unwrap())).await,
        };
        if sent.is_err() {
            return;
        }
    }
}

impl Scripted {
    fn start() -> Self {
        let (message, address) = std::sync::mpsc::channel();
        let (frames, _) = broadcast::channel(64);
        let asked = Arc::default();
        let (sender, kept) = (frames.clone(), Arc::clone(&asked));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let open = move |upgrade: WebSocketUpgrade| {
                    let (sender, kept) = (sender.clone(), Arc::clone(&kept));
                    async move { upgrade.on_upgrade(move |socket| converse(socket, sender, kept)) }
                };
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                message.send(listener.local_addr().unwrap()).unwrap();
                axum::serve(listener, Router::new().route("/info", post(lists)).route("/ws", any(open))).await.unwrap();
            });
        });
        Self { address: address.recv().unwrap(), frames, asked }
    }

    fn send(&self, frame: String) {
        self.frames.send(frame).unwrap();
    }

    fn book(&self, ms: u64) {
        let side = |px: &str| format!(r#"[{{"px":"{px}","sz":"0.5","n":2}}]"#);
        let (time, bids, asks) = (MS + ms, side("61000.0"), side("61001.0"));
        self.send(format!(r#"{{"channel":"l2Book","data":{{"coin":"BTC","time":{time},"levels":[{bids},{asks}]}}}}"#));
    }

    fn best(&self, ms: u64) {
        let level = |px: &str| format!(r#"{{"px":"{px}","sz":"0.7","n":1}}"#);
        let (time, bid, ask) = (MS + ms, level("61002.0"), level("61003.0"));
        self.send(format!(r#"{{"channel":"bbo","data":{{"coin":"BTC","time":{time},"bbo":[{bid},{ask}]}}}}"#));
    }
}

#[test]
fn a_book_older_than_the_newest_best_levels_is_stale_and_named() {
    let venue = Scripted::start();
    let url = format!("ws://{}/ws", venue.address);
    let config = FeedConfig::at(Venue::Hyperliquid, url.parse().unwrap(), vec!["BTC".to_owned()]);
    let running = follow(vec![config]);
    let reader = running.reader();
    let is_asked = |kind: &str| venue.asked.lock().unwrap().iter().any(|topic| topic["type"] == kind);
    assert!(reader.wait(SOON, || connected(&reader) && is_asked("l2Book") && is_asked("bbo")));
    let proof_is = |expected: Proof| reader.wait(SOON, || proof(&reader, &reader.instruments()[0]) == expected);
    venue.book(0);
    assert!(proof_is(Proof::Unverified));
    let tickers = |count: u64| reader.wait(SOON, || reader.counters(0).tickers == count);
    venue.best(700);
    assert!(tickers(1) && proof_is(Proof::Unverified), "the next book may still come");
    venue.best(800);
    assert!(tickers(2) && proof_is(Proof::Stale));
    let incident = || reader.status(0).incidents.first().cloned();
    assert!(reader.wait(SOON, || incident().is_some()));
    let named = incident().unwrap();
    let nanos = |ms: u64| ((MS + ms) * 1_000_000).to_string();
    assert_eq!((named.symbol.as_str(), named.cause, named.reaction), ("BTC", "behind", "waiting"));
    assert_eq!((named.expected, named.received, named.proven_unix_ns), (nanos(800), nanos(0), None));
    venue.book(900);
    assert!(proof_is(Proof::Unverified));
    assert!(reader.wait(SOON, || incident().is_some_and(|incident| incident.proven_unix_ns.is_some())));
    running.stop();
    assert_eq!((reader.status(0).reconnects(), reader.counters(0).resyncs), (0, 0), "nothing is asked for again");
}
