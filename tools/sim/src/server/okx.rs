//! OKX's paths and requests.

use axum::{
    Router,
    extract::{Query, State, WebSocketUpgrade},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{any, get},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Shared,
    binance::json_text,
    connection::{self, Answer},
    rest_book, stale_script,
};
use crate::{
    account::{API_KEY, PASSPHRASE, is_signed_in_base64},
    exchange::Exchange,
    market::{SnapshotFault, Subscriber, Topic, window},
    okx::{DEPTH, Printer, topic},
};

/// Seconds without a word from the client after which the venue closes.
const SILENCE_MAX_S: u32 = 30;

/// Paths of the venue.
pub(super) fn router(shared: Shared) -> Router {
    Router::new()
        .route("/ws/v5/public", any(open))
        .route("/ws/v5/business", any(open_business))
        .route("/ws/v5/private", any(open_private))
        .route("/api/v5/market/books", get(books))
        .route("/api/v5/public/instruments", get(instruments))
        .with_state(shared)
}

async fn open(upgrade: WebSocketUpgrade, State(shared): State<Shared>) -> Response {
    serve(upgrade, shared, take)
}

async fn open_business(upgrade: WebSocketUpgrade, State(shared): State<Shared>) -> Response {
    serve(upgrade, shared, take_business)
}

fn serve(upgrade: WebSocketUpgrade, shared: Shared, answer: Answer) -> Response {
    connection::bounded(upgrade).on_upgrade(move |socket| async move {
        let (connection, frames) = shared.lock().connect();
        connection::serve(socket, shared, connection, frames, answer, Some(beat)).await;
    })
}

async fn open_private(upgrade: WebSocketUpgrade, State(shared): State<Shared>) -> Response {
    serve(upgrade, shared, take_private)
}

/// Takes a request on the account's own address.
fn take_private(exchange: &mut Exchange, connection: u64, text: &str) {
    if text == "ping" {
        return exchange.send(connection, "pong");
    }
    let conn_id = format!("{connection:08x}");
    let refusal = |code: &str, reason: &str| json!({"event": "error", "code": code, "msg": reason, "connId": conn_id});
    let request: Value = serde_json::from_str(text).unwrap_or_default();
    let arguments = request["args"].as_array().cloned().unwrap_or_default();
    for argument in &arguments {
        let field = |key: &str| argument[key].as_str().unwrap_or_default();
        let answer = match request["op"].as_str() {
            Some("login") => {
                let signed = format!("{}GET/users/self/verify", field("timestamp"));
                let seconds = field("timestamp").parse::<u64>().unwrap_or_default();
                if field("apiKey") != API_KEY {
                    refusal("60005", "Invalid apiKey")
                } else if field("passphrase") != PASSPHRASE {
                    refusal("60024", "Wrong passphrase")
                } else if seconds.abs_diff(exchange.now_us() / 1_000_000) > 30 {
                    refusal("60006", "Timestamp request expired")
                } else if !is_signed_in_base64(&signed, field("sign")) {
                    refusal("60007", "Invalid sign")
                } else {
                    exchange.log_in(connection);
                    json!({"event": "login", "code": "0", "msg": "", "connId": conn_id})
                }
            }
            Some("subscribe") if !exchange.is_logged_in(connection) => refusal("60011", "Please log in"),
            Some("subscribe") if ["orders", "positions", "account"].contains(&field("channel")) => {
                if field("channel") == "orders" {
                    exchange.subscribe_private(Subscriber { connection, stream: String::new(), wrapped: false });
                }
                json!({"event": "subscribe", "arg": argument, "connId": conn_id})
            }
            Some(_) | None => refusal("60012", "Invalid request"),
        };
        exchange.send(connection, answer.to_string());
    }
}

fn beat(exchange: &mut Exchange, connection: u64) -> bool {
    let (silent_s, _) = exchange.pass_second(connection);
    silent_s < SILENCE_MAX_S
}

#[derive(Deserialize)]
struct Request {
    op: String,
    args: Vec<Argument>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Argument {
    channel: String,
    #[serde(default)]
    inst_id: String,
}

/// Takes a request on the public socket.
pub(super) fn take(exchange: &mut Exchange, connection: u64, text: &str) {
    take_of(exchange, connection, text, false);
}

/// Takes a request on the business socket, which has the candles.
fn take_business(exchange: &mut Exchange, connection: u64, text: &str) {
    take_of(exchange, connection, text, true);
}

fn take_of(exchange: &mut Exchange, connection: u64, text: &str, is_business: bool) {
    if text == "ping" {
        return exchange.send(connection, "pong");
    }
    let refuse = |exchange: &mut Exchange, code: &str, reason: &str| {
        let refusal = json!({"event": "error", "code": code, "msg": reason, "connId": format!("{connection:08x}")});
        exchange.send(connection, refusal.to_string());
    };
    let Ok(request) = serde_json::from_str::<Request>(text) else {
        return refuse(exchange, "60012", &format!("Invalid request: {text}"));
    };
    let subscribes = match request.op.as_str() {
        "subscribe" => true,
        "unsubscribe" => false,
        _ => return refuse(exchange, "60012", &format!("Invalid request: {text}")),
    };
    for Argument { channel: name, inst_id } in &request.args {
        let here = topic(name).filter(|topic| (*topic == Topic::Candle) == is_business);
        let found = here.and_then(|topic| Some((topic, exchange.market_index(inst_id)?)));
        let Some((topic, index)) = found else {
            let reason = format!(
                "Wrong URL or channel:{name},instId:{inst_id} doesn't exist. Please use the correct URL, channel and \
                 parameters referring to API document."
            );
            refuse(exchange, "60018", &reason);
            continue;
        };
        let event = &request.op;
        let accepted = format!(
            "{{\"event\":\"{event}\",\"arg\":{{\"channel\":\"{name}\",\"instId\":\"{inst_id}\"}},\"connId\":\"{connection:08x}\"}}"
        );
        exchange.send(connection, accepted);
        if !subscribes {
            exchange.markets[index].unsubscribe(connection, Some(topic));
            continue;
        }
        exchange.subscribe(index, topic, Subscriber { connection, stream: String::new(), wrapped: false });
        let market = &exchange.markets[index];
        let printer = Printer { instrument: &market.instrument, unix_us: exchange.now_us() };
        let snapshot = match topic {
            Topic::Book(depth) => printer.book_snapshot(depth, &market.windows[&depth], market.chains[&depth].id()),
            Topic::DayTicker => printer.ticker(&market.script, &market.day),
            Topic::MarkPrice => printer.mark_price(&market.script),
            Topic::BestQuote
            | Topic::Trades
            | Topic::Aggregates
            | Topic::BlockTrades
            | Topic::Depth
            | Topic::Orders(_)
            | Topic::Liquidations
            | Topic::Candle => continue,
        };
        exchange.send(connection, snapshot);
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Books {
    inst_id: String,
    #[serde(default = "one")]
    sz: usize,
}

const fn one() -> usize {
    1
}

async fn books(Query(query): Query<Books>, State(shared): State<Shared>) -> Response {
    let mut exchange = shared.lock();
    if exchange.refusals > 0 {
        exchange.refusals -= 1;
        let body = json!({"code": "50011", "msg": "Too Many Requests", "data": []}).to_string();
        return (StatusCode::TOO_MANY_REQUESTS, json_text(body)).into_response();
    }
    let Some(index) = exchange.market_index(&query.inst_id) else {
        return json_text(json!({"code": "51001", "msg": "Instrument ID doesn't exist", "data": []}).to_string());
    };
    rest_book(&mut exchange, index, query.sz.clamp(1, DEPTH as usize))
        .map_or_else(|| StatusCode::NOT_FOUND.into_response(), json_text)
}

/// The body of a snapshot, under the number that the socket's book has.
pub(super) fn snapshot(exchange: &Exchange, index: usize, limit: usize, fault: Option<SnapshotFault>) -> String {
    let market = &exchange.markets[index];
    let printer = Printer { instrument: &market.instrument, unix_us: exchange.now_us() };
    match fault {
        Some(SnapshotFault::Stale) => {
            let script = stale_script(exchange, index);
            printer.rest_book(&window(script.book(), limit), script.update_id())
        }
        Some(SnapshotFault::Partial) | None => {
            let id = market.chains.get(&DEPTH).map_or_else(|| market.script.update_id(), crate::chain::Chain::id);
            printer.rest_book(&window(market.script.book(), limit), id)
        }
    }
}

async fn instruments(State(shared): State<Shared>) -> Response {
    let exchange = shared.lock();
    let unix_us = exchange.now_us();
    let listings: Vec<String> =
        exchange.listed().map(|market| Printer { instrument: &market.instrument, unix_us }.listing()).collect();
    json_text(format!("{{\"code\":\"0\",\"msg\":\"\",\"data\":[{}]}}", listings.join(",")))
}
