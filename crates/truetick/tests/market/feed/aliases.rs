//! A venue that serves two products under one symbol, as Coinbase Advanced does `BTC-USDC` and `BTC-USD`.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::extract::ws::{Message, WebSocket};
use axum::extract::{State, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::{any, get};
use axum::{Json, Router};
use market_feed::{Event, FeedConfig, Listener, MarketConfig, Publishing};
use serde_json::{Value, json};
use tt_venue::Venue;

use super::SOON;

/// What was asked for: method, channel and products of each request.
type Asked = Arc<Mutex<Vec<String>>>;

async fn products() -> Json<Value> {
    let product = |id: &str, alias: &str| {
        json!({"product_id": id, "price_increment": "0.01", "base_increment": "0.00000001", "status": "online",
            "alias": alias, "alias_to": []})
    };
    Json(json!({"products": [product("BTC-USDC", "BTC-USD"), product("BTC-USD", "")], "num_products": 2}))
}

/// Acknowledges everything, and sends a book and a trade of `BTC-USD` to whoever asks for them.
async fn follow(mut socket: WebSocket, asked: Asked) {
    let mut number = 0;
    let time = "2026-11-24T12:00:00.000000Z";
    while let Some(Ok(Message::Text(request))) = socket.recv().await {
        let request: Value = serde_json::from_str(&request).unwrap();
        let channel = request["channel"].as_str().unwrap().to_owned();
        asked.lock().unwrap().push(format!(
            "{} {channel} {}",
            request["type"].as_str().unwrap(),
            request["product_ids"]
        ));
        let mut frames = vec![("subscriptions", json!({"subscriptions": {&channel: request["product_ids"]}}))];
        let level =
            |side: &str, px: &str| json!({"side": side, "event_time": time, "price_level": px, "new_quantity": "0.5"});
        if request["type"] == "subscribe" && channel == "level2" {
            let updates = [level("bid", "61000.01"), level("offer", "61000.02")];
            frames.push(("l2_data", json!({"type": "snapshot", "product_id": "BTC-USD", "updates": updates})));
        }
        if request["type"] == "subscribe" && channel == "market_trades" {
            let trade = json!({"trade_id": "7", "product_id": "BTC-USD", "price": "61000.01", "size": "0.1",
                "side": "BUY", "time": time});
            frames.push(("market_trades", json!({"type": "update", "trades": [trade]})));
        }
        for (channel, event) in frames {
            let frame = format!(
                r#"{{"channel":"{channel}","client_id":"","timestamp":"{time}","sequence_num":{number},"events":[{event}]}}"#
            );
            number += 1;
            if socket.send(Message::text(frame)).await.is_err() {
                return;
            }
        }
    }
}

fn start(asked: Asked) -> SocketAddr {
    let (message, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let open = |upgrade: WebSocketUpgrade, State(asked): State<Asked>| async move {
            let response: Response = upgrade.on_upgrade(move |socket| follow(socket, asked));
            response
        };
        let router = Router::new()
            .route("/", any(open))
            .route("/api/v3/brokerage/market/products", get(products))
            .with_state(asked);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            message.send(listener.local_addr().unwrap()).unwrap();
            axum::serve(listener, router).await.unwrap();
        });
    });
    address.recv().unwrap()
}

#[test]
fn products_under_one_symbol_share_a_subscription_and_each_has_the_book() {
    let asked = Asked::default();
    let url = format!("ws://{}/", start(Arc::clone(&asked)));
    let symbols = ["BTC-USDC", "BTC-USD"].map(str::to_owned).to_vec();
    let feed = FeedConfig::at(Venue::CoinbaseAdvanced, url.parse().unwrap(), symbols);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&heard);
    let listener = Listener::new(move |event: &Event<'_>| {
        if let Event::Trade { instrument, .. } = event {
            noted.lock().unwrap().push(instrument.0);
        }
    });
    let publishing = Some(Publishing::default());
    let config = MarketConfig { feeds: vec![feed], publishing, listener: Some(listener), ..MarketConfig::default() };
    let running = market_feed::start(config).unwrap();
    let reader = running.reader();
    let names: Vec<_> = reader.instruments().iter().map(|listed| (listed.symbol.as_str(), &*listed.name)).collect();
    assert_eq!(names, [("BTC-USD", "BTC/USD"), ("BTC-USDC", "BTC/USDC")]);
    assert_eq!(reader.status(0).refusals, []);
    assert!(reader.wait(SOON, || reader.all_verified()), "{:?} {:?}", reader.status(0), reader.counters(0));
    let has_all = || reader.instruments().iter().all(|listed| reader.trades(listed.id).len() == 1);
    assert!(reader.wait(SOON, has_all));
    let tops: Vec<_> = reader.instruments().iter().map(|listed| reader.top_of_book(listed.id).unwrap()).collect();
    assert_eq!((tops[0].bid, tops[0].update_id), (tops[1].bid, tops[1].update_id));
    assert!(tops[0].bid.is_some_and(|bid| bid.px.0 == 6_100_001), "{tops:?}");
    // Streams and listeners have both as well.
    let streams = running.streams().unwrap();
    let published = || (0..2).all(|id| streams.book(id, 10).is_some_and(|book| book.bids.len() == 1));
    assert!(reader.wait(SOON, published));
    assert!(reader.wait(SOON, || heard.lock().unwrap().len() == 2));
    assert_eq!(*heard.lock().unwrap(), [0, 1]);
    let of_products = |asked: &[String]| asked.iter().filter(|text| text.contains("BTC-")).cloned().collect::<Vec<_>>();
    let once = ["level2", "ticker", "market_trades"].map(|channel| format!(r#"subscribe {channel} ["BTC-USD"]"#));
    assert_eq!(of_products(&asked.lock().unwrap()), once);
    // One of them ends, and the other goes on; with the second one the subscription ends.
    assert!(running.unsubscribe(reader.instruments()[0].id));
    assert!(!reader.is_followed(reader.instruments()[0].id) && reader.is_followed(reader.instruments()[1].id));
    assert!(running.unsubscribe(reader.instruments()[1].id));
    let is_over = || asked.lock().unwrap().iter().any(|text| text.starts_with("unsubscribe level2"));
    assert!(reader.wait(SOON, is_over), "{:?}", asked.lock().unwrap());
    let ends = asked.lock().unwrap().iter().filter(|text| text.starts_with("unsubscribe level2")).count();
    assert_eq!(ends, 1, "the first one's end costs the other nothing");
    running.stop();
}
