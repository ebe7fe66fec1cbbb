//! Kraken's path and requests.

use axum::{
    Router,
    extract::{State, WebSocketUpgrade},
    http::HeaderMap,
    response::Response,
    routing::{any, post},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Shared,
    binance::json_text,
    connection::{self, Answer},
};
use crate::{
    account::{API_KEY, TOKEN, is_signed_for_kraken},
    exchange::Exchange,
    instrument::Instrument,
    kraken::{DEPTHS, ORDER_DEPTHS, Printer, answer, status},
    market::{Subscriber, Topic},
};

const TOKEN_PATH: &str = "/0/private/GetWebSocketsToken";

const HEARTBEAT: &str = r#"{"channel":"heartbeat"}"#;

/// Paths of the venue.
pub(super) fn router(shared: Shared) -> Router {
    Router::new()
        .route("/v2", any(open))
        .route("/v2/public", any(open_unified))
        .route(TOKEN_PATH, post(token))
        .with_state(shared)
}

/// Gives a token to whoever has the secret.
async fn token(headers: HeaderMap, body: String) -> Response {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let answer = if header("api-key") != API_KEY {
        json!({"error": ["EAPI:Invalid key"]})
    } else if !is_signed_for_kraken(TOKEN_PATH, &body, header("api-sign")) {
        json!({"error": ["EAPI:Invalid signature"]})
    } else {
        json!({"error": [], "result": {"token": TOKEN, "expires": 900}})
    };
    json_text(answer.to_string())
}

/// The account's own orders, for whoever has the token; none is open at first.
fn executions(exchange: &mut Exchange, connection: u64, req_id: &str, params: &Params) {
    if params.token != TOKEN {
        let refusal = answer("subscribe", req_id, Err("ESession:Invalid session"), exchange.now_us());
        return exchange.send(connection, refusal);
    }
    let result = r#"{"channel":"executions","maxratecount":60,"snapshot":true}"#;
    exchange.send(connection, answer("subscribe", req_id, Ok(result), exchange.now_us()));
    exchange.send(connection, r#"{"channel":"executions","type":"snapshot","data":[],"sequence":1}"#);
    exchange.subscribe_private(Subscriber { connection, stream: String::new(), wrapped: false });
}

fn beat(exchange: &mut Exchange, connection: u64) -> bool {
    exchange.send(connection, HEARTBEAT);
    true
}

async fn open(upgrade: WebSocketUpgrade, State(shared): State<Shared>) -> Response {
    serve(upgrade, shared, take)
}

async fn open_unified(upgrade: WebSocketUpgrade, State(shared): State<Shared>) -> Response {
    serve(upgrade, shared, take_unified)
}

fn serve(upgrade: WebSocketUpgrade, shared: Shared, answer: Answer) -> Response {
    connection::bounded(upgrade).on_upgrade(move |socket| async move {
        let (connection, frames) = {
            let mut exchange = shared.lock();
            let (connection, frames) = exchange.connect();
            exchange.send(connection, status(connection));
            (connection, frames)
        };
        connection::serve(socket, shared, connection, frames, answer, Some(beat)).await;
    })
}

#[derive(Deserialize)]
struct Request {
    method: String,
    #[serde(default)]
    params: Params,
    req_id: Option<u64>,
}

#[derive(Default, Deserialize)]
struct Params {
    #[serde(default)]
    channel: String,
    #[serde(default)]
    symbol: Vec<String>,
    depth: Option<Value>,
    snapshot: Option<bool>,
    #[serde(default)]
    include_tokenized_assets: bool,
    asset_class: Option<String>,
    #[serde(default)]
    token: String,
}

/// Takes a request to the WebSocket of version 2, which serves spot markets.
pub(super) fn take(exchange: &mut Exchange, connection: u64, text: &str) {
    take_of(exchange, connection, text, AssetClass::Spot);
}

/// Takes a request to the unified WebSocket, which serves derivatives to who names their class.
fn take_unified(exchange: &mut Exchange, connection: u64, text: &str) {
    take_of(exchange, connection, text, AssetClass::Derivatives);
}

/// What an address serves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AssetClass {
    Spot,
    Derivatives,
}

impl AssetClass {
    fn has(self, instrument: &Instrument) -> bool {
        instrument.is_kraken_derivative() == (self == Self::Derivatives)
    }
}

fn take_of(exchange: &mut Exchange, connection: u64, text: &str, class: AssetClass) {
    let Ok(request) = serde_json::from_str::<Request>(text) else {
        let refusal = answer("unknown", "", Err("Malformed request"), exchange.now_us());
        return exchange.send(connection, refusal);
    };
    let req_id = request.req_id.map(|id| format!("\"req_id\":{id},")).unwrap_or_default();
    let method = request.method.as_str();
    match method {
        "ping" => {
            let pong = answer("pong", &req_id, Ok("{}"), exchange.now_us()).replace("\"result\":{},", "");
            exchange.send(connection, pong);
        }
        "subscribe" | "unsubscribe"
            if class == AssetClass::Derivatives && request.params.asset_class.as_deref() != Some("derivatives") =>
        {
            exchange.send(connection, answer(method, &req_id, Err("Asset class not supported"), exchange.now_us()));
        }
        "subscribe" | "unsubscribe" if request.params.channel == "instrument" => {
            let result = r#"{"channel":"instrument","snapshot":true}"#;
            exchange.send(connection, answer(method, &req_id, Ok(result), exchange.now_us()));
            instruments(exchange, connection, request.params.include_tokenized_assets, class);
        }
        "subscribe" if request.params.channel == "executions" && class == AssetClass::Spot => {
            executions(exchange, connection, &req_id, &request.params);
        }
        "subscribe" | "unsubscribe" => {
            for symbol in &request.params.symbol {
                let of = exchange.market_index(symbol).filter(|index| class.has(&exchange.markets[*index].instrument));
                change(exchange, connection, method, &req_id, &request.params, (symbol, of));
            }
        }
        _ => exchange.send(connection, answer(method, &req_id, Err("Unsupported method"), exchange.now_us())),
    }
}

/// One symbol of a request: the acknowledgement or refusal, then the snapshot.
fn change(
    exchange: &mut Exchange,
    connection: u64,
    method: &str,
    req_id: &str,
    params: &Params,
    (symbol, index): (&str, Option<usize>),
) {
    let refuse = |exchange: &mut Exchange, error: &str| {
        let of = format!("{req_id}\"symbol\":\"{symbol}\",");
        exchange.send(connection, answer(method, &of, Err(error), exchange.now_us()));
    };
    let Some(index) = index else {
        return refuse(exchange, &format!("Currency pair not supported {symbol}"));
    };
    let topic = match (params.channel.as_str(), params.depth.as_ref().map(Value::as_u64)) {
        ("ticker", _) => Topic::BestQuote,
        ("trade", _) => Topic::Trades,
        ("book", None) => Topic::Book(10),
        ("book", Some(Some(depth))) if DEPTHS.iter().any(|&known| u64::from(known) == depth) => {
            Topic::Book(depth as u32)
        }
        ("level3", _) if params.token != TOKEN => return refuse(exchange, "ESession:Invalid session"),
        ("level3", None) => Topic::Orders(10),
        ("level3", Some(Some(depth))) if ORDER_DEPTHS.iter().any(|&known| u64::from(known) == depth) => {
            Topic::Orders(depth as u32)
        }
        ("book" | "level3", Some(_)) => return refuse(exchange, "Subscription depth not supported"),
        _ => return refuse(exchange, "Subscription channel not supported"),
    };
    let subscribes = method == "subscribe";
    let with_snapshot = params.snapshot.unwrap_or(true);
    let depth = if let Topic::Book(depth) | Topic::Orders(depth) = topic {
        format!("\"depth\":{depth},")
    } else {
        String::new()
    };
    let result =
        format!("{{\"channel\":\"{}\",{depth}\"snapshot\":{with_snapshot},\"symbol\":\"{symbol}\"}}", params.channel);
    exchange.send(connection, answer(method, req_id, Ok(&result), exchange.now_us()));
    if !subscribes {
        return exchange.markets[index].unsubscribe(connection, Some(topic));
    }
    exchange.subscribe(index, topic, Subscriber { connection, stream: String::new(), wrapped: false });
    let market = &exchange.markets[index];
    let printer = Printer { instrument: &market.instrument, unix_us: exchange.now_us() };
    let snapshot = match topic {
        Topic::Book(depth) => printer.book_snapshot(&market.windows[&depth]),
        Topic::Orders(depth) => printer.orders_snapshot(&market.order_windows[&depth]),
        Topic::BestQuote => printer.ticker("snapshot", &market.script, &market.day),
        Topic::Trades
        | Topic::Aggregates
        | Topic::BlockTrades
        | Topic::Depth
        | Topic::DayTicker
        | Topic::MarkPrice
        | Topic::Liquidations
        | Topic::Candle => {
            return;
        }
    };
    if with_snapshot {
        exchange.send(connection, snapshot);
    }
}

/// The list of instruments, as the venue's snapshot; tokenized stocks are in it only on request.
fn instruments(exchange: &mut Exchange, connection: u64, with_stocks: bool, class: AssetClass) {
    let here = exchange.listed().filter(|market| class.has(&market.instrument));
    let listed = here.filter(|market| with_stocks || !market.instrument.is_stock());
    let pairs: Vec<String> =
        listed.map(|market| Printer { instrument: &market.instrument, unix_us: 0 }.pair()).collect();
    let frame = format!(
        "{{\"channel\":\"instrument\",\"type\":\"snapshot\",\"data\":{{\"assets\":[],\"pairs\":[{}]}}}}",
        pairs.join(",")
    );
    exchange.send(connection, frame);
}
