//! Bybit's paths and requests.

use axum::{
    Router,
    extract::{Query, State, WebSocketUpgrade},
    response::Response,
    routing::{any, get},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Shared, binance::json_text, connection, rest_book, stale_script};
use crate::{
    account::{API_KEY, is_signed_in_hex},
    bybit::{Category, Printer, topic},
    exchange::Exchange,
    instrument::Standing,
    market::{FULL, Market, SnapshotFault, Subscriber, Topic, window},
};

/// How far the number of a stale snapshot is behind.
const STALE_NUMBERS: u64 = 200;

/// Paths of the venue.
pub(super) fn router(shared: Shared) -> Router {
    Router::new()
        .route("/v5/public/linear", any(open))
        .route("/v5/public/option", any(open_options))
        .route("/v5/private", any(open_private))
        .route("/v5/market/instruments-info", get(instruments))
        .route("/v5/market/full_orderbook", get(full_book))
        .with_state(shared)
}

async fn open(upgrade: WebSocketUpgrade, State(shared): State<Shared>) -> Response {
    connection::bounded(upgrade).on_upgrade(move |socket| async move {
        let (connection, frames) = shared.lock().connect();
        connection::serve(socket, shared, connection, frames, take, None).await;
    })
}

async fn open_options(upgrade: WebSocketUpgrade, State(shared): State<Shared>) -> Response {
    connection::bounded(upgrade).on_upgrade(move |socket| async move {
        let (connection, frames) = shared.lock().connect();
        connection::serve(socket, shared, connection, frames, take_options, None).await;
    })
}

async fn open_private(upgrade: WebSocketUpgrade, State(shared): State<Shared>) -> Response {
    connection::bounded(upgrade).on_upgrade(move |socket| async move {
        let (connection, frames) = shared.lock().connect();
        connection::serve(socket, shared, connection, frames, take_private, None).await;
    })
}

/// Takes a request on the account's own address, where nothing but a login is taken before the login.
fn take_private(exchange: &mut Exchange, connection: u64, text: &str) {
    let request: Value = serde_json::from_str(text).unwrap_or_default();
    let op = request["op"].as_str().unwrap_or_default();
    let argument = |index: usize| {
        let value = &request["args"][index];
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    };
    let outcome = match op {
        "ping" => Ok("pong"),
        "auth" => {
            let (key, expires, signature) = (argument(0), argument(1), argument(2));
            let is_late = expires.parse::<u64>().map_or(true, |expires_ms| expires_ms * 1000 < exchange.now_us());
            if key != API_KEY {
                Err("Invalid apikey")
            } else if is_late || !is_signed_in_hex(&format!("GET/realtime{expires}"), &signature) {
                Err("Params Error")
            } else {
                exchange.log_in(connection);
                Ok("")
            }
        }
        "subscribe" if exchange.is_logged_in(connection) => {
            let names: Vec<String> = (0..request["args"].as_array().map_or(0, Vec::len)).map(argument).collect();
            if names.iter().all(|name| ["order", "execution", "position", "wallet"].contains(&name.as_str())) {
                if names.contains(&"order".to_owned()) {
                    exchange.subscribe_private(Subscriber { connection, stream: String::new(), wrapped: false });
                }
                Ok("")
            } else {
                Err("error:handler not found")
            }
        }
        "subscribe" => Err("Request not authorized"),
        _ => Err("Invalid op"),
    };
    let (success, reason) = (outcome.is_ok(), outcome.unwrap_or_else(|reason| reason));
    let answer = json!({
        "success": success, "ret_msg": reason, "op": op, "conn_id": format!("sim-{connection}"), "req_id": request["req_id"],
    });
    exchange.send(connection, answer.to_string());
}

#[derive(Deserialize)]
struct Request {
    op: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    req_id: String,
}

/// Takes a request. One name that the venue does not know refuses the whole of it.
pub(super) fn take(exchange: &mut Exchange, connection: u64, text: &str) {
    let answer = |exchange: &mut Exchange, success: bool, reason: &str, req_id: &str, op: &str| {
        let frame = format!(
            "{{\"success\":{success},\"ret_msg\":\"{reason}\",\"conn_id\":\"sim-{connection}\",\"req_id\":\"{req_id}\",\
             \"op\":\"{op}\"}}"
        );
        exchange.send(connection, frame);
    };
    let Ok(request) = serde_json::from_str::<Request>(text) else {
        return answer(exchange, false, "Request not json", "", "");
    };
    let Request { op, args, req_id } = &request;
    if op == "ping" {
        return answer(exchange, true, "pong", req_id, "ping");
    }
    if op != "subscribe" && op != "unsubscribe" {
        return answer(exchange, false, "Invalid op", req_id, op);
    }
    let mut found = Vec::with_capacity(args.len());
    for name in args {
        let known = markets_of(exchange, Category::Linear, name);
        if known.is_empty() {
            return answer(exchange, false, &format!("error:handler not found,topic:{name}"), req_id, op);
        }
        found.extend(known);
    }
    answer(exchange, true, "", req_id, op);
    follow(exchange, connection, op, found);
}

/// Takes a request for options, whose answer names the topics. One that the venue does not know costs no other one.
fn take_options(exchange: &mut Exchange, connection: u64, text: &str) {
    let request = serde_json::from_str::<Request>(text).ok();
    match request {
        Some(Request { op, .. }) if op == "ping" => {
            let now_ms = exchange.now_us() / 1000;
            exchange.send(connection, format!("{{\"args\":[\"{now_ms}\"],\"op\":\"pong\"}}"));
        }
        Some(Request { op, args, .. }) if op == "subscribe" || op == "unsubscribe" => {
            let known = args.iter().map(|name| (name, markets_of(exchange, Category::Option, name)));
            let (known, unknown): (Vec<_>, Vec<_>) = known.partition(|(_, markets)| !markets.is_empty());
            let names = |of: &[(&String, Vec<(Topic, usize)>)]| of.iter().map(|(name, _)| *name).cloned().collect();
            let (known_names, unknown_names): (Vec<String>, Vec<String>) = (names(&known), names(&unknown));
            let answer = json!({
                "success": true, "conn_id": format!("sim-{connection}"),
                "data": {"failTopics": unknown_names, "successTopics": known_names}, "type": "COMMAND_RESP",
            });
            exchange.send(connection, answer.to_string());
            follow(exchange, connection, &op, known.into_iter().flat_map(|(_, markets)| markets).collect());
        }
        Some(_) | None => {
            exchange.send(connection, "{\"success\":false,\"ret_msg\":\"Invalid op\",\"type\":\"COMMAND_RESP\"}")
        }
    }
}

/// The instruments of a topic: those of a base asset where it is of options' trades.
fn markets_of(exchange: &Exchange, category: Category, name: &str) -> Vec<(Topic, usize)> {
    let Some((topic, of)) = topic(category, name) else { return Vec::new() };
    let is_meant = |index: &usize| Category::of(&exchange.markets[*index].instrument) == category;
    let is_traded = |index: &usize| exchange.markets[*index].instrument.standing != Standing::Delisted;
    let of_base = |index: &usize| exchange.markets[*index].instrument.base == of;
    let indices: Vec<usize> = match (category, topic) {
        (Category::Option, Topic::Trades) => (0..exchange.markets.len()).filter(of_base).filter(is_traded).collect(),
        _ => exchange.market_index(of).into_iter().collect(),
    };
    indices.into_iter().filter(is_meant).map(|index| (topic, index)).collect()
}

fn follow(exchange: &mut Exchange, connection: u64, op: &str, found: Vec<(Topic, usize)>) {
    for (topic, index) in found {
        if op == "unsubscribe" {
            exchange.markets[index].unsubscribe(connection, Some(topic));
            continue;
        }
        exchange.subscribe(index, topic, Subscriber { connection, stream: String::new(), wrapped: false });
        let market = &exchange.markets[index];
        let printer = Printer { instrument: &market.instrument, unix_us: exchange.now_us() };
        let snapshot = match topic {
            // The whole of it is by REST alone.
            Topic::Book(FULL) => continue,
            Topic::Book(depth) => {
                let (whole, id) = (&market.windows[&depth], market.chains[&depth].id());
                printer.book("snapshot", depth, whole, id, market.script.update_id())
            }
            Topic::DayTicker => printer.ticker(true, &market.script, &market.day),
            Topic::BestQuote
            | Topic::Trades
            | Topic::Aggregates
            | Topic::BlockTrades
            | Topic::Depth
            | Topic::Orders(_)
            | Topic::MarkPrice
            | Topic::Liquidations
            | Topic::Candle => continue,
        };
        exchange.send(connection, snapshot);
    }
}

#[derive(Deserialize)]
struct Page {
    #[serde(default = "default_limit")]
    limit: usize,
    /// The first entry of the page; any text that the venue has handed out.
    #[serde(default)]
    cursor: String,
    #[serde(default)]
    category: String,
    /// The base asset of options.
    #[serde(default = "default_base", rename = "baseCoin")]
    base: String,
}

fn default_base() -> String {
    "BTC".to_owned()
}

const fn default_limit() -> usize {
    500
}

#[derive(Deserialize)]
struct FullBook {
    category: String,
    symbol: String,
}

async fn full_book(Query(query): Query<FullBook>, State(shared): State<Shared>) -> Response {
    let mut exchange = shared.lock();
    let found = exchange.market_index(&query.symbol).filter(|_| query.category == "linear");
    let body = found.and_then(|index| rest_book(&mut exchange, index, FULL as usize));
    json_text(body.unwrap_or_else(|| json!({"retCode": 10001, "retMsg": "params error", "result": {}}).to_string()))
}

/// The body of a whole book, under the number that the socket's book of all levels has.
pub(super) fn snapshot(exchange: &Exchange, index: usize, limit: usize, fault: Option<SnapshotFault>) -> String {
    let market = &exchange.markets[index];
    let printer = Printer { instrument: &market.instrument, unix_us: exchange.now_us() };
    let seq = market.script.update_id();
    // Without subscribers no number was given yet.
    let id = market.chains.get(&FULL).map_or(seq, crate::chain::Chain::id);
    match fault {
        Some(SnapshotFault::Stale) => {
            let script = stale_script(exchange, index);
            printer.rest_book(&window(script.book(), limit), id.saturating_sub(STALE_NUMBERS), script.update_id())
        }
        Some(SnapshotFault::Partial) | None => printer.rest_book(&window(market.script.book(), limit), id, seq),
    }
}

async fn instruments(Query(page): Query<Page>, State(shared): State<Shared>) -> Response {
    let exchange = shared.lock();
    let unix_us = exchange.now_us();
    let first = page.cursor.strip_prefix("page,").and_then(|first| first.parse().ok()).unwrap_or(0_usize);
    let len = page.limit.clamp(1, 1000).min(exchange.page_len);
    let category = if page.category == "option" { Category::Option } else { Category::Linear };
    let is_meant = |market: &&Market| {
        let instrument = &market.instrument;
        Category::of(instrument) == category && (!instrument.is_option || instrument.base == page.base)
    };
    let here = exchange.listed().filter(is_meant).skip(first).take(len);
    let listings: Vec<String> =
        here.map(|market| Printer { instrument: &market.instrument, unix_us }.listing()).collect();
    let next = first + listings.len();
    let cursor =
        if next < exchange.listed().filter(is_meant).count() { format!("page%2C{next}") } else { String::new() };
    json_text(format!(
        "{{\"retCode\":0,\"retMsg\":\"OK\",\"result\":{{\"category\":\"{}\",\"list\":[{}],\"nextPageCursor\":\"{cursor}\"}},\
         \"retExtInfo\":{{}},\"time\":{}}}",
        if category == Category::Option { "option" } else { "linear" },
        listings.join(","),
        unix_us / 1000
    ))
}
