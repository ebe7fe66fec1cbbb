//! A venue that proves nothing, lists its instruments when asked by POST, and sends undocumented messages.

use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::WebSocketUpgrade;
use axum::extract::ws::{Message, WebSocket};
use axum::response::Response;
use axum::routing::{any, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::patient::{Patient, STEPS};

async fn lists(Json(asked): Json<Value>) -> Json<Value> {
    Json(match asked["type"].as_str() {
        Some("allPerpMetas") => json!([
            {"universe": [{"name": "BTC", "szDecimals": 5, "maxLeverage": 50}]},
            {"universe": [{"name": "xyz:GOOGL", "szDecimals": 3, "maxLeverage": 10}], "collateralToken": 0},
        ]),
        Some("spotMeta") => json!({"tokens": [{"name": "USDC", "szDecimals": 8, "index": 0}], "universe": []}),
        _ => panic!("{asked}"),
    })
}

/// A book each 20 ms to whoever subscribed to one.
async fn follow(mut socket: WebSocket) {
    let mut beats = tokio::time::interval(Duration::from_millis(20));
    let (mut follows, mut time) = (false, 1_700_000_000_000_u64);
    loop {
        let sent = tokio::select! {
            request = socket.recv() => {
                let Some(Ok(Message::Text(request))) = request else { return };
                let request: Value = serde_json::from_str(&request).unwrap();
                let answer = if request["method"] == "ping" {
                    json!({"channel": "pong"})
                } else {
                    follows |= request["subscription"]["type"] == "l2Book";
                    json!({"channel": "subscriptionResponse", "data": request})
                };
                socket.send(Message::text(answer.to_string())).await
            }
            _ = beats.tick(), if follows => {
                time += 20;
                let side = |px: &str| format!(r#"[{{"px":"{px}","sz":"0.5","n":2}}]"#);
                let (bids, asks) = (side("61000.0"), side("61001.0"));
                let book = format!(
                    r#"{{"channel":"l2Book","data":{{"coin":"BTC","time":{time},"levels":[{bids},{asks}],"freshness":1}}}}"#
                );
                socket.send(Message::text(book)).await
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

async fn open(upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(follow)
}

fn start() -> SocketAddr {
    let (message, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            message.send(listener.local_addr().unwrap()).unwrap();
            axum::serve(listener, Router::new().route("/info", post(lists)).route("/ws", any(open))).await.unwrap();
        });
    });
    address.recv().unwrap()
}

#[test]
fn a_venue_without_proofs_passes_and_new_messages_are_reported() {
    let url = format!("ws://{}/ws", start());
    let (steps, verdict, status) =
        Patient::visit(&["--venue", "hyperliquid", "--url", &url, "--updates", "5"]).finish();
    let names: Vec<&str> = steps.iter().map(|step| step["step"].as_str().unwrap()).collect();
    assert_eq!(names, STEPS);
    let of = |name: &str| steps.iter().find(|step| step["step"] == name).unwrap();
    assert!(of("instruments")["text"].as_str().unwrap().contains("BTC price step 0.1, quantity step 0.00001"));
    assert!(of("proof")["text"].as_str().unwrap().starts_with("none: "), "{}", of("proof"));
    assert_eq!(of("keep_alive")["outcome"], "ok", "{}", of("keep_alive"));
    // Books of 2023 are no live market.
    assert_eq!((status, &verdict["failed"]), (1, &json!(["lag"])), "{steps:?}");
    let frames = of("frames");
    assert_eq!(frames["facts"]["unknown_keys"], json!(["freshness"]), "{frames}");
    assert!(frames["excerpts"].to_string().contains("x key freshness: {\\\"channel\\\":\\\"l2Book\\\""), "{frames}");
}
