//! Deribit's paths and requests.

use axum::{
    Router,
    extract::{State, WebSocketUpgrade},
    response::Response,
    routing::{any, get},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Shared, binance::json_text, connection};
use crate::{
    account::{API_KEY, API_SECRET},
    deribit::{Printer, topic},
    exchange::Exchange,
    market::{Subscriber, Topic, Window},
};

/// What a request for topics costs (docs.deribit.com, "Rate limits").
const SUBSCRIPTION_CREDITS: u64 = 3_000;

const TEST_REQUEST: &str = r#"{"jsonrpc":"2.0","method":"heartbeat","params":{"type":"test_request"}}"#;

/// Paths of the venue.
pub(super) fn router(shared: Shared) -> Router {
    Router::new()
        .route("/ws/api/v2", any(open))
        .route("/api/v2/public/get_instruments", get(instruments))
        .with_state(shared)
}

async fn open(upgrade: WebSocketUpgrade, State(shared): State<Shared>) -> Response {
    connection::bounded(upgrade).on_upgrade(move |socket| async move {
        let (connection, frames) = shared.lock().connect();
        connection::serve(socket, shared, connection, frames, take, Some(beat)).await;
    })
}

/// Asks for a sign of life where the client wants heartbeats; one that stays silent for two of them is cut off.
fn beat(exchange: &mut Exchange, connection: u64) -> bool {
    let (silent_s, due) = exchange.pass_second(connection);
    if due {
        exchange.send(connection, TEST_REQUEST);
    }
    exchange.heartbeat_s(connection).is_none_or(|seconds| silent_s < 3 * seconds)
}

#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    id: Value,
    method: String,
    #[serde(default)]
    params: Params,
}

#[derive(Default, Deserialize)]
struct Params {
    #[serde(default)]
    channels: Vec<String>,
    interval: Option<u32>,
    #[serde(default)]
    grant_type: String,
    #[serde(default)]
    client_id: String,
    #[serde(default)]
    client_secret: String,
}

/// The channel of the platform's own state.
const PLATFORM_STATE: &str = "platform_state";

/// The channel of the states of all instruments.
const INSTRUMENT_STATES: &str = "instrument.state.any.any";

/// Takes a request.
pub(super) fn take(exchange: &mut Exchange, connection: u64, text: &str) {
    let unix_us = exchange.now_us();
    let answer = |id: &Value, outcome: Result<Value, (i32, &str)>| {
        let mut frame = match outcome {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, message)) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}),
        };
        for (key, value) in [("usIn", json!(unix_us)), ("usOut", json!(unix_us)), ("usDiff", json!(0))] {
            frame[key] = value;
        }
        frame["testnet"] = json!(false);
        frame.to_string()
    };
    let Ok(Request { id, method, params }) = serde_json::from_str::<Request>(text) else {
        return exchange.send(connection, answer(&Value::Null, Err((-32700, "Parse error"))));
    };
    match method.as_str() {
        "public/test" => exchange.send(connection, answer(&id, Ok(json!({"version": "1.2.26"})))),
        "public/set_heartbeat" => {
            let Some(seconds) = params.interval.filter(|seconds| *seconds >= 10) else {
                return exchange.send(connection, answer(&id, Err((-32602, "Invalid params"))));
            };
            exchange.set_heartbeat(connection, seconds);
            exchange.send(connection, answer(&id, Ok(json!("ok"))));
        }
        "public/auth" => {
            let Params { grant_type, client_id, client_secret, .. } = &params;
            let outcome = if grant_type != "client_credentials" {
                Err((-32602, "Invalid params"))
            } else if client_id != API_KEY || client_secret != API_SECRET {
                Err((13004, "invalid_credentials"))
            } else {
                exchange.log_in(connection);
                let scope = "connection mainaccount";
                Ok(
                    json!({"access_token": "sim", "expires_in": 900, "refresh_token": "sim", "scope": scope, "token_type": "bearer"}),
                )
            };
            exchange.send(connection, answer(&id, outcome));
        }
        "private/subscribe" if !exchange.is_logged_in(connection) => {
            exchange.send(connection, answer(&id, Err((13009, "unauthorized"))));
        }
        "private/subscribe" => {
            let names: Vec<&String> = params.channels.iter().filter(|name| name.starts_with("user.")).collect();
            exchange.send(connection, answer(&id, Ok(json!(names))));
            if names.iter().any(|name| name.starts_with("user.changes.")) {
                exchange.subscribe_private(Subscriber { connection, stream: String::new(), wrapped: false });
            }
        }
        "public/subscribe" | "public/unsubscribe" if !exchange.spend(connection, SUBSCRIPTION_CREDITS) => {}
        "public/subscribe" | "public/unsubscribe" => {
            // What it does not know it leaves out of its answer.
            let is_known = |name: &&String| {
                [PLATFORM_STATE, INSTRUMENT_STATES].contains(&name.as_str()) || market_topic(exchange, name).is_some()
            };
            let names: Vec<&String> = params.channels.iter().filter(is_known).collect();
            exchange.send(connection, answer(&id, Ok(json!(names))));
            for name in names {
                change(exchange, connection, name, method == "public/subscribe");
            }
        }
        _ => exchange.send(connection, answer(&id, Err((-32601, "Method not found")))),
    }
}

/// The topic of a market, and which market.
fn market_topic(exchange: &Exchange, name: &str) -> Option<(Topic, usize)> {
    let (topic, symbol) = topic(name)?;
    Some((topic, exchange.market_index(symbol)?))
}

/// One topic of a request, and what the venue sends of it at once.
fn change(exchange: &mut Exchange, connection: u64, name: &str, subscribes: bool) {
    match name {
        PLATFORM_STATE => return exchange.follow_platform_state(connection, subscribes),
        INSTRUMENT_STATES => return exchange.follow_instrument_states(connection, subscribes),
        _ => {}
    }
    let Some((topic, index)) = market_topic(exchange, name) else { return };
    if !subscribes {
        return exchange.markets[index].unsubscribe(connection, Some(topic));
    }
    exchange.subscribe(index, topic, Subscriber { connection, stream: String::new(), wrapped: false });
    let market = &exchange.markets[index];
    let printer = Printer { instrument: &market.instrument, unix_us: exchange.now_us() };
    let snapshot = match topic {
        Topic::Book(depth) => {
            let id = market.chains[&depth].id();
            printer.book(&market.windows[&depth], &Window::default(), None, id)
        }
        Topic::BestQuote => printer.quote(&market.script),
        Topic::DayTicker => printer.ticker(&market.script, &market.day),
        Topic::Trades
        | Topic::Aggregates
        | Topic::BlockTrades
        | Topic::Depth
        | Topic::Orders(_)
        | Topic::MarkPrice
        | Topic::Liquidations
        | Topic::Candle => {
            return;
        }
    };
    exchange.send(connection, snapshot);
}

async fn instruments(State(shared): State<Shared>) -> Response {
    let exchange = shared.lock();
    let unix_us = exchange.now_us();
    let listings: Vec<String> =
        exchange.listed().map(|market| Printer { instrument: &market.instrument, unix_us }.listing()).collect();
    json_text(format!("{{\"jsonrpc\":\"2.0\",\"result\":[{}],\"testnet\":false}}", listings.join(",")))
}
