//! Binance's paths and requests.

use axum::{
    Json, Router,
    extract::{OriginalUri, Path, Query, State, WebSocketUpgrade},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{any, get, post},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Shared, connection, rest_book, stale_script};
use crate::{
    account::{API_KEY, API_KEY_ED25519, is_signed_by_key_pair, is_signed_in_hex},
    binance::{Printer, SUBSCRIPTION, stream},
    exchange::Exchange,
    instrument::{LISTEN_KEY, Venue},
    market::{SnapshotFault, Subscriber, Topic},
};

/// Paths of the spot venue.
pub(super) fn spot(shared: Shared) -> Router {
    streams(Router::new(), "")
        .route("/api/v3/depth", get(depth))
        .route("/api/v3/exchangeInfo", get(exchange_info))
        .route("/ws-api/v3", any(open_interface))
        .with_state(shared)
}

/// Paths of the USD-M venue.
pub(super) fn usdm(shared: Shared) -> Router {
    let router = ["", "/public", "/market", "/private"].into_iter().fold(Router::new(), streams);
    router
        .route("/fapi/v1/depth", get(depth))
        .route("/fapi/v1/rpiDepth", get(depth))
        .route("/fapi/v1/exchangeInfo", get(exchange_info))
        .route("/fapi/v1/listenKey", post(listen_key).put(listen_key))
        .with_state(shared)
}

async fn open_interface(upgrade: WebSocketUpgrade, State(shared): State<Shared>) -> Response {
    connection::bounded(upgrade).on_upgrade(move |socket| async move {
        let (connection, frames) = shared.lock().connect();
        connection::serve(socket, shared, connection, frames, answer_interface, None).await;
    })
}

/// Takes a request of the interface by WebSocket: for the account's own events, signed or on a session that is.
fn answer_interface(exchange: &mut Exchange, connection: u64, text: &str) {
    let request: Value = serde_json::from_str(text).unwrap_or_default();
    let outcome = match request["method"].as_str().unwrap_or_default() {
        "userDataStream.subscribe.signature" => check_signed(exchange, &request).map(|()| true),
        // Sessions are for Ed25519 keys alone.
        "session.logon" if request["params"]["apiKey"] == API_KEY => {
            Err((-4056, "HMAC_SHA256 API key is not supported."))
        }
        "session.logon" => check_signed(exchange, &request).map(|()| false),
        "userDataStream.subscribe" if exchange.is_logged_in(connection) => Ok(true),
        "userDataStream.subscribe" => Err((-1002, "You are not authorized to execute this request.")),
        _ => Err((-1000, "unknown method")),
    };
    let mut reply = match outcome {
        Err((code, reason)) => json!({"status": 400, "error": {"code": code, "msg": reason}}),
        Ok(true) => {
            let stream = SUBSCRIPTION.to_owned();
            exchange.subscribe_private(Subscriber { connection, stream, wrapped: true });
            json!({"status": 200, "result": {"subscriptionId": 0}})
        }
        Ok(false) => {
            exchange.log_in(connection);
            let now_ms = exchange.now_us() / 1000;
            json!({"status": 200, "result": {
                "apiKey": request["params"]["apiKey"], "authorizedSince": now_ms, "connectedSince": now_ms,
                "returnRateLimits": false, "serverTime": now_ms, "userDataStream": false,
            }})
        }
    };
    reply["id"] = request["id"].clone();
    reply["rateLimits"] = json!([]);
    exchange.send(connection, reply.to_string());
}

/// Whether a signed request may be granted; otherwise the code and the words of the refusal.
fn check_signed(exchange: &Exchange, request: &Value) -> Result<(), (i32, &'static str)> {
    let parameter = |key: &str| {
        let value = &request["params"][key];
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    };
    let (key, signature) = (parameter("apiKey"), parameter("signature"));
    let signed = format!("apiKey={key}&timestamp={}", parameter("timestamp"));
    let age_ms = parameter("timestamp").parse::<u64>().unwrap_or_default().abs_diff(exchange.now_us() / 1000);
    let is_signed = match key.as_str() {
        API_KEY => is_signed_in_hex(&signed, &signature),
        API_KEY_ED25519 => is_signed_by_key_pair(&signed, &signature),
        _ => return Err((-2015, "Invalid API-key, IP, or permissions for action.")),
    };
    if age_ms > 5000 {
        return Err((-1021, "Timestamp for this request is outside of the recvWindow."));
    }
    if is_signed { Ok(()) } else { Err((-1022, "Signature for this request is not valid.")) }
}

fn streams(router: Router<Shared>, prefix: &str) -> Router<Shared> {
    router
        .route(&format!("{prefix}/ws"), any(bare))
        .route(&format!("{prefix}/ws/{{*streams}}"), any(bare_named))
        .route(&format!("{prefix}/stream"), any(combined))
}

#[derive(Deserialize)]
struct Combined {
    #[serde(default)]
    streams: String,
    #[serde(default, rename = "timeUnit")]
    time_unit: String,
}

#[derive(Deserialize)]
struct Bare {
    #[serde(default, rename = "listenKey")]
    listen_key: String,
}

/// The unit of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Milliseconds,
    Microseconds,
}

/// The value of `timeUnit` for microseconds.
const MICROSECOND: &str = "MICROSECOND";

/// What a path serves. Every path accepts every subscription, as measured on USD-M in 2026.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    /// Spot, and exchanges without a server.
    All,
    /// USD-M's `/public`, and its former address.
    Public,
    /// USD-M's `/market`.
    Market,
    /// USD-M's `/private`: the account of the listen key in its address.
    Private,
}

impl Served {
    fn of(venue: Venue, path: &str) -> Self {
        match path {
            _ if venue != Venue::BinanceUsdm => Self::All,
            path if path.starts_with("/market/") => Self::Market,
            path if path.starts_with("/private/") => Self::Private,
            _ => Self::Public,
        }
    }

    const fn serves(self, topic: Topic) -> bool {
        match topic {
            Topic::BestQuote | Topic::Trades | Topic::Depth | Topic::Book(_) | Topic::Orders(_) => {
                matches!(self, Self::All | Self::Public)
            }
            Topic::Aggregates | Topic::DayTicker | Topic::MarkPrice | Topic::Liquidations | Topic::Candle => {
                matches!(self, Self::All | Self::Market)
            }
            Topic::BlockTrades => matches!(self, Self::All),
        }
    }

    /// The reader of requests, which are a plain function.
    const fn answer(self, wrapped: bool) -> connection::Answer {
        match (self, wrapped) {
            (Self::All, true) => answer_wrapped,
            (Self::All, false) => |exchange, id, text| answer(exchange, id, text, (Self::All, false)),
            (Self::Public, true) => |exchange, id, text| answer(exchange, id, text, (Self::Public, true)),
            (Self::Public, false) => |exchange, id, text| answer(exchange, id, text, (Self::Public, false)),
            (Self::Market, true) => |exchange, id, text| answer(exchange, id, text, (Self::Market, true)),
            (Self::Market, false) => |exchange, id, text| answer(exchange, id, text, (Self::Market, false)),
            (Self::Private, true) => |exchange, id, text| answer(exchange, id, text, (Self::Private, true)),
            (Self::Private, false) => |exchange, id, text| answer(exchange, id, text, (Self::Private, false)),
        }
    }
}

async fn bare(
    upgrade: WebSocketUpgrade,
    OriginalUri(uri): OriginalUri,
    Query(query): Query<Bare>,
    State(shared): State<Shared>,
) -> Response {
    let served = Served::of(shared.lock().venue, uri.path());
    let names = if served == Served::Private { query.listen_key.as_str() } else { "" };
    open(upgrade, shared, names, (served, false, Unit::Milliseconds))
}

async fn bare_named(
    upgrade: WebSocketUpgrade,
    OriginalUri(uri): OriginalUri,
    Path(names): Path<String>,
    State(shared): State<Shared>,
) -> Response {
    let served = Served::of(shared.lock().venue, uri.path());
    open(upgrade, shared, &names, (served, false, Unit::Milliseconds))
}

async fn combined(
    upgrade: WebSocketUpgrade,
    OriginalUri(uri): OriginalUri,
    Query(query): Query<Combined>,
    State(shared): State<Shared>,
) -> Response {
    let venue = shared.lock().venue;
    let unit = if venue == Venue::BinanceSpot && query.time_unit.eq_ignore_ascii_case(MICROSECOND) {
        Unit::Microseconds
    } else {
        Unit::Milliseconds
    };
    open(upgrade, shared, &query.streams, (Served::of(venue, uri.path()), true, unit))
}

fn open(upgrade: WebSocketUpgrade, shared: Shared, names: &str, form: (Served, bool, Unit)) -> Response {
    // Subscribed before the handshake is answered: whoever holds an open socket misses nothing.
    let mut exchange = shared.lock();
    let (connection, frames) = exchange.connect();
    if form.1 {
        exchange.wrap(connection);
    }
    if form.2 == Unit::Microseconds {
        exchange.send_microseconds(connection);
    }
    for name in names.split('/').filter(|name| !name.is_empty()) {
        // The listen key in the address is the one that `/private` serves.
        subscribe(&mut exchange, connection, name, (if name == LISTEN_KEY { Served::All } else { form.0 }, form.1));
    }
    drop(exchange);
    let answer = form.0.answer(form.1);
    let failed = shared.clone();
    connection::bounded(upgrade)
        .on_failed_upgrade(move |_| failed.lock().disconnect(connection))
        .on_upgrade(move |socket| connection::serve(socket, shared, connection, frames, answer, None))
}

/// The sessions of markets that some perpetuals follow.
const SESSIONS: &str = "tradingSession";

/// The sessions of both markets, which the venue sends each second, once.
fn sessions(exchange: &mut Exchange, connection: u64, wrapped: bool) {
    let now_ms = exchange.now_us() / 1000;
    for (kind, session) in [("EquityUpdate", "OVERNIGHT"), ("CommodityUpdate", "NO_TRADING")] {
        let end_ms = now_ms + 3_600_000;
        let frame = format!("{{\"e\":\"{kind}\",\"E\":{now_ms},\"t\":{now_ms},\"T\":{end_ms},\"S\":\"{session}\"}}");
        let frame = if wrapped { format!("{{\"stream\":\"{SESSIONS}\",\"data\":{frame}}}") } else { frame };
        exchange.send(connection, frame);
    }
}

/// Binance takes names of symbols that it does not have, and stays silent about them.
fn subscribe(exchange: &mut Exchange, connection: u64, name: &str, (served, wrapped): (Served, bool)) {
    if name == LISTEN_KEY && served == Served::All {
        return exchange.subscribe_private(Subscriber { connection, stream: name.to_owned(), wrapped });
    }
    if name == SESSIONS && served == Served::Market {
        return sessions(exchange, connection, wrapped);
    }
    let found = stream(exchange.venue, name);
    let found = found.filter(|(_, topic)| served.serves(*topic));
    if let Some((index, topic)) = found.and_then(|(symbol, topic)| Some((exchange.market_index(&symbol)?, topic))) {
        exchange.subscribe(index, topic, Subscriber { connection, stream: name.to_owned(), wrapped });
    }
}

#[derive(Deserialize)]
struct Request {
    method: String,
    #[serde(default)]
    params: Vec<String>,
    id: Value,
}

/// Takes a request on the address of wrapped streams.
pub(super) fn answer_wrapped(exchange: &mut Exchange, connection: u64, text: &str) {
    answer(exchange, connection, text, (Served::All, true));
}

fn answer(exchange: &mut Exchange, connection: u64, text: &str, form: (Served, bool)) {
    let reply = match serde_json::from_str::<Request>(text) {
        Err(error) => json!({"error": {"code": 3, "msg": format!("Invalid JSON: {error}")}}),
        Ok(request) => match request.method.as_str() {
            "SUBSCRIBE" => {
                for name in &request.params {
                    subscribe(exchange, connection, name, form);
                }
                json!({"result": null, "id": request.id})
            }
            "UNSUBSCRIBE" => {
                let venue = exchange.venue;
                for (symbol, topic) in request.params.iter().filter_map(|name| stream(venue, name)) {
                    if let Some(index) = exchange.market_index(&symbol) {
                        exchange.markets[index].unsubscribe(connection, Some(topic));
                    }
                }
                json!({"result": null, "id": request.id})
            }
            method => json!({"error": {"code": 2, "msg": format!("unknown method {method}")}, "id": request.id}),
        },
    };
    exchange.send(connection, reply.to_string());
}

#[derive(Deserialize)]
struct Depth {
    symbol: String,
    #[serde(default = "default_limit")]
    limit: usize,
}

const fn default_limit() -> usize {
    100
}

async fn depth(Query(query): Query<Depth>, State(shared): State<Shared>) -> Response {
    let mut exchange = shared.lock();
    if exchange.refusals > 0 {
        exchange.refusals -= 1;
        let body = json!({"code": -1003, "msg": "Too many requests."});
        return (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "1")], Json(body)).into_response();
    }
    let Some(index) = exchange.market_index(&query.symbol) else {
        return (StatusCode::BAD_REQUEST, Json(json!({"code": -1121, "msg": "Invalid symbol."}))).into_response();
    };
    rest_book(&mut exchange, index, query.limit.clamp(1, 5000))
        .map_or_else(|| StatusCode::NOT_FOUND.into_response(), json_text)
}

/// The body of a snapshot.
pub(super) fn snapshot(exchange: &Exchange, index: usize, limit: usize, fault: Option<SnapshotFault>) -> String {
    let market = &exchange.markets[index];
    let printer = Printer { venue: exchange.venue, instrument: &market.instrument, unix_us: exchange.now_us() };
    match fault {
        Some(SnapshotFault::Stale) => printer.snapshot(&stale_script(exchange, index), limit),
        Some(SnapshotFault::Partial) | None => printer.snapshot(&market.script, limit),
    }
}

#[derive(Deserialize)]
struct Listing {
    symbol: Option<String>,
    /// A JSON array in the query, as Binance wants it.
    symbols: Option<String>,
}

async fn exchange_info(Query(query): Query<Listing>, State(shared): State<Shared>) -> Response {
    let exchange = shared.lock();
    let mut wanted: Vec<String> = query.symbol.into_iter().collect();
    if let Some(list) = query.symbols {
        wanted.extend(serde_json::from_str::<Vec<String>>(&list).unwrap_or_default());
    }
    if wanted.iter().any(|symbol| exchange.market_index(symbol).is_none()) {
        return (StatusCode::BAD_REQUEST, Json(json!({"code": -1121, "msg": "Invalid symbol."}))).into_response();
    }
    let unix_us = exchange.now_us();
    let listings: Vec<String> = exchange
        .listed()
        .filter(|market| wanted.is_empty() || wanted.contains(&market.instrument.symbol))
        .map(|market| Printer { venue: exchange.venue, instrument: &market.instrument, unix_us }.listing())
        .collect();
    json_text(format!(
        "{{\"timezone\":\"UTC\",\"serverTime\":{},\"rateLimits\":[],\"exchangeFilters\":[],\"symbols\":[{}]}}",
        unix_us / 1000,
        listings.join(",")
    ))
}

async fn listen_key(headers: HeaderMap) -> Response {
    if headers.get("x-mbx-apikey").is_none_or(|key| key != API_KEY) {
        let body = json!({"code": -2015, "msg": "Invalid API-key, IP, or permissions for action."});
        return (StatusCode::UNAUTHORIZED, Json(body)).into_response();
    }
    Json(json!({"listenKey": LISTEN_KEY})).into_response()
}

pub(super) fn json_text(body: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json;charset=UTF-8")], body).into_response()
}
