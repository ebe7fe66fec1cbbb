//! Liquidations and what a contract's venue computes, against the trades and books of the same time.

use futures_util::StreamExt as _;
use serde_json::Value;

use crate::served::Served;

const WHICH: &str = "venue=binance_usdm&symbol=BTC/USDT:USDT";

type Socket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

async fn connect(served: &Served, path: &str) -> Socket {
    let url = format!("ws://{}{path}?{WHICH}", served.http);
    tokio_tungstenite::connect_async(url).await.unwrap().0
}

async fn next(socket: &mut Socket) -> Value {
    let text = socket.next().await.unwrap().unwrap().into_text().unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The simulated venue makes an order that closes a position of every sixteenth trade.
#[test]
fn each_liquidation_comes_once_and_is_a_trade_of_its_venue() {
    let served = Served::start(&["--fault-every", "0", "--instruments", "1", "--rate", "600"]);
    served.wait_ready();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (trades, liquidations) = runtime.block_on(async {
        let (mut of_trades, mut of_liquidations) =
            (connect(&served, "/ws/trades").await, connect(&served, "/ws/liquidations").await);
        let first = next(&mut of_liquidations).await;
        assert_eq!(first["type"], "liquidations");
        let mut known = first["liquidations"][0]["number"].as_u64();
        let (mut trades, mut liquidations) = (Vec::new(), Vec::new());
        while liquidations.len() < 5 {
            tokio::select! {
                message = next(&mut of_trades) => trades.extend(message["trades"].as_array().unwrap().iter().cloned()),
                message = next(&mut of_liquidations) => {
                    let [liquidation] = &message["liquidations"].as_array().unwrap()[..] else { panic!("{message}") };
                    let number = liquidation["number"].as_u64().unwrap();
                    assert_eq!(number, known.unwrap_or(0) + 1, "{message}");
                    known = Some(number);
                    liquidations.push(liquidation.clone());
                }
            }
        }
        let last = liquidations.last().unwrap()["ts_event"].as_u64().unwrap();
        while trades.last().is_none_or(|trade: &Value| trade["event_unix_ns"].as_u64().unwrap() <= last) {
            trades.extend(next(&mut of_trades).await["trades"].as_array().unwrap().iter().cloned());
        }
        (trades, liquidations)
    });
    for liquidation in &liquidations {
        let number = |value: &Value| value.as_str().unwrap().parse::<f64>().unwrap();
        // The venue's times are milliseconds: other trades of the same side may have the same one.
        let is_it = |trade: &&Value| {
            trade["event_unix_ns"] == liquidation["ts_event"]
                && trade["aggressor"] == liquidation["side"]
                && trade["trade_id"].as_u64().unwrap().is_multiple_of(16)
                && ["px", "qty"].iter().all(|name| (number(&trade[*name]) - number(&liquidation[*name])).abs() < 1e-12)
        };
        assert_eq!(trades.iter().filter(is_it).count(), 1, "{liquidation} in {trades:?}");
    }
    let shown = served.json(&format!("/api/v1/market/derivatives?{WHICH}"));
    assert!(shown[0]["liquidation"]["number"].as_u64() >= liquidations.last().unwrap()["number"].as_u64(), "{shown}");
}

/// The simulated venue's rate of funding is 0.01 % every eight hours, its mark price the middle of the best bid and offer.
#[test]
fn mark_price_and_funding_are_those_of_the_venue() {
    let served = Served::start(&["--fault-every", "0", "--instruments", "1", "--rate", "60"]);
    served.wait_ready();
    let path = format!("/api/v1/market/derivatives?{WHICH}");
    let shown = served.wait(&path, |rows| rows[0]["mark_px"].is_string());
    let row = &shown[0];
    let number = |value: &Value| value.as_str().unwrap().parse::<f64>().unwrap();
    assert_eq!(number(&row["funding_rate"]), 0.0001, "{row}");
    assert_eq!(row["mark_px"], row["index_px"]);
    let (event_ms, next_ms) = (row["ts_event"].as_u64().unwrap() / 1_000_000, row["next_funding_unix_ms"].as_u64());
    assert_eq!(next_ms, Some((event_ms / 28_800_000 + 1) * 28_800_000));
    let book = served.json(&format!("/api/v1/market/orderbook?{WHICH}"));
    let touch = [&book[0]["bids"][0]["px"], &book[0]["asks"][0]["px"]].map(number);
    // The book has gone on for up to a second.
    assert!((number(&row["mark_px"]) / (touch[0] + touch[1]) * 2.0 - 1.0).abs() < 0.01, "{row} {touch:?}");
    let bybit =
        served.wait("/api/v1/market/derivatives?venue=bybit_linear", |rows| rows[0]["open_interest"].is_string());
    assert_eq!(number(&bybit[0]["open_interest"]), 68_744.761, "{bybit}");
}
