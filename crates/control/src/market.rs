//! `/api/v1/market/…` and the ingest metrics.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::answer::{absent, json_of, marked, rejected};
use crate::state::{App, Shared};
use tt_status::interval;
use tt_status::market::{Book, Level, MarketStatus};
use tt_status::market_streams::{BookOrders, MarketStreams, StreamKind, WholeBook};
use tt_status::packed;

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/v1/market/status", get(status))
        .route("/api/v1/market/stages", get(stages))
        .route("/api/v1/market/drops", get(drops))
        .route("/api/v1/market/ticker", get(ticker))
        .route("/api/v1/market/orderbook", get(orderbook))
        .route("/api/v1/market/orders", get(orders))
        .route("/api/v1/market/ohlcv", get(ohlcv))
        .route("/api/v1/market/trades", get(trades))
        .route("/api/v1/market/derivatives", get(contracts))
        .route("/api/v1/market/markets", get(markets))
        .route("/api/v1/openapi.json", get(openapi))
        .route("/api/v1/asyncapi.json", get(asyncapi))
        .route("/api/v1/internal/engine/ingest-metrics", get(ingest))
}

/// Query parameters that select books [default: all]. An unknown parameter is answered with 400, a venue or a symbol that
/// is not followed with 404.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    pub(crate) venue: Option<String>,
    pub(crate) symbol: Option<String>,
}

/// Query parameters of whole books: [`Which`], and how many levels.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BookParameters {
    venue: Option<String>,
    symbol: Option<String>,
    depth: Option<String>,
}

/// Books with so many levels of each side.
struct BookQuestion {
    which: Which,
    depth: usize,
}

/// Query parameters of a stream of books: [`Which`], how many levels, and how often.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamParameters {
    venue: Option<String>,
    symbol: Option<String>,
    depth: Option<String>,
    every: Option<String>,
}

/// A stream of books.
pub(crate) struct StreamQuestion {
    which: Which,
    /// What is sent.
    pub(crate) kind: StreamKind,
}

/// A path without query parameters; any is answered with 400.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoParameters {}

/// A status with its reason, as JSON.
pub(crate) struct Refusal(pub(crate) StatusCode, pub(crate) String);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        rejected(self.0, &self.1)
    }
}

impl FromRequestParts<Arc<Shared>> for Which {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Refusal> {
        parameters::<Self>(parts)?.followed(shared)
    }
}

impl FromRequestParts<Arc<Shared>> for BookQuestion {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Refusal> {
        let BookParameters { venue, symbol, depth } = parameters(parts)?;
        let depth = depth.map_or(Ok(Some(DEPTH)), |text| depth_of(&text))?.unwrap_or(usize::MAX);
        Ok(Self { which: Which { venue, symbol }.followed(shared)?, depth })
    }
}

impl FromRequestParts<Arc<Shared>> for StreamQuestion {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Refusal> {
        let StreamParameters { venue, symbol, depth, every } = parameters(parts)?;
        let depth = depth.map_or(Ok(None), |text| depth_of(&text))?;
        let every = every.map(|text| interval_of(&text)).transpose()?;
        Ok(Self { which: Which { venue, symbol }.followed(shared)?, kind: StreamKind::Books { depth, every } })
    }
}

/// Levels of each side in an answer without `depth`.
const DEPTH: usize = 10;
/// Levels of each side with single orders: the feed reads nothing while it lists them.
const ORDER_LEVELS_MAX: usize = 1000;
/// The shortest and the longest interval of a stream.
const EVERY: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(60);

/// A number of levels; `None` for `all`.
fn depth_of(text: &str) -> Result<Option<usize>, Refusal> {
    if text == "all" {
        return Ok(None);
    }
    let depth = text.parse().ok().filter(|depth| *depth > 0).map(Some);
    depth.ok_or_else(|| Refusal(StatusCode::BAD_REQUEST, format!("depth: `{text}` is no number above 0 and not `all`")))
}

/// An interval in milliseconds or seconds: `100ms`, `1s`.
fn interval_of(text: &str) -> Result<Duration, Refusal> {
    interval::parse(text).filter(|every| EVERY.contains(every)).ok_or_else(|| {
        Refusal(StatusCode::BAD_REQUEST, format!("every: `{text}` is no interval from 10ms to 60s, such as 100ms"))
    })
}

impl StreamQuestion {
    /// The numbers of the instruments.
    pub(crate) fn instruments(&self, shared: &Shared) -> Vec<u32> {
        self.which.instruments(shared)
    }
}

impl FromRequestParts<Arc<Shared>> for NoParameters {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Shared>) -> Result<Self, Refusal> {
        parameters(parts)
    }
}

pub(crate) fn parameters<T: DeserializeOwned>(parts: &Parts) -> Result<T, Refusal> {
    let read = Query::try_from_uri(&parts.uri).map(|Query(parameters)| parameters);
    read.map_err(|reason| Refusal(StatusCode::BAD_REQUEST, reason.body_text()))
}

impl Which {
    /// The same, unless it selects what is not followed.
    pub(crate) fn followed(self, shared: &Shared) -> Result<Self, Refusal> {
        let unknown = shared.state.market.as_ref().and_then(|market| self.unknown(&market()));
        unknown.map_or(Ok(self), |reason| Err(Refusal(StatusCode::NOT_FOUND, reason)))
    }

    /// The numbers of the instruments.
    pub(crate) fn instruments(&self, shared: &Shared) -> Vec<u32> {
        let Some(market) = &shared.state.market else { return Vec::new() };
        market().books.iter().filter(|book| self.takes(book)).map(|book| book.instrument).collect()
    }

    /// Why nothing can be selected, now or later.
    fn unknown(&self, market: &MarketStatus) -> Option<String> {
        if let Some(venue) = &self.venue
            && !market.feeds.iter().any(|feed| feed.venue == *venue)
            && !market.books.iter().any(|book| book.venue == *venue)
        {
            return Some(format!("no feed of venue `{venue}`"));
        }
        let symbol = self.symbol.as_ref()?;
        let is_followed = market.books.iter().any(|book| self.takes(book));
        (!is_followed).then(|| match &self.venue {
            Some(venue) => format!("no symbol `{symbol}` at venue `{venue}`"),
            None => format!("no symbol `{symbol}` at any venue"),
        })
    }

    pub(crate) fn takes(&self, book: &Book) -> bool {
        self.venue.as_deref().is_none_or(|venue| venue == book.venue)
            && self.symbol.as_deref().is_none_or(|symbol| symbol == book.symbol)
    }
}

/// The best bid and offer of every book in `which`, each with its proof, times and units.
pub(crate) fn tickers(market: &MarketStatus, which: &Which, simulated: bool) -> Value {
    let row = |book: &Book| {
        json!({
            "instrument": book.instrument, "venue": book.venue, "symbol": book.symbol, "simulated": simulated,
            "ts_event": book.ts_event, "ts_recv": book.ts_recv,
            "tick_size": book.tick_size, "lot_size": book.lot_size, "contract": book.terms.contract,
            "bid": book.bids.first(), "ask": book.asks.first(), "spread_bps": book.spread_bps,
            "kind": book.kind, "known_levels": book.known_levels,
            "update_id": book.update_id, "age_ms": book.age_ms,
            "proof": book.proof, "proof_update_id": book.proof_update_id, "proof_age_ms": book.proof_age_ms,
        })
    };
    market.books.iter().filter(|book| which.takes(book)).map(row).collect()
}

/// Every book of `question` with its levels, units and times.
fn whole_books(shared: &Shared, streams: &dyn MarketStreams, question: &BookQuestion) -> Value {
    let Some(market) = &shared.state.market else { return Value::Null };
    let row = |book: &Book| {
        let whole = streams.book(book.instrument, question.depth)?;
        let spread_bps = spread_bps(&whole);
        let mut row = json!({
            "instrument": book.instrument, "venue": book.venue, "symbol": book.symbol, "spread_bps": spread_bps,
            "simulated": shared.state.simulated, "kind": book.kind,
        });
        if let (Some(row), Ok(Value::Object(whole))) = (row.as_object_mut(), serde_json::to_value(&whole)) {
            row.extend(whole);
        }
        Some(row)
    };
    market().books.iter().filter(|book| question.which.takes(book)).filter_map(row).collect()
}

/// Best ask less best bid over their middle, basis points.
fn spread_bps(book: &WholeBook) -> Option<f64> {
    let px = |levels: &[Level]| levels.first().and_then(|level| level.px.parse::<f64>().ok());
    let (bid, ask) = px(&book.bids).zip(px(&book.asks))?;
    Some((ask - bid) / ((ask + bid) / 2.0) * 1e4)
}

/// The running candles of every instrument in `which`.
pub(crate) fn candles(market: &MarketStatus, which: &Which, simulated: bool) -> Value {
    let row = |book: &Book| {
        json!({
            "instrument": book.instrument, "venue": book.venue, "symbol": book.symbol, "simulated": simulated,
            "candles": book.candles,
        })
    };
    market.books.iter().filter(|book| which.takes(book)).map(row).collect()
}

/// Mark price, index price, funding, open interest and the last liquidation of every instrument in `which` that has any.
pub(crate) fn derivatives(market: &MarketStatus, which: &Which, simulated: bool) -> Value {
    let row = |book: &Book| {
        let mut row = json!({
            "instrument": book.instrument, "venue": book.venue, "symbol": book.symbol, "simulated": simulated,
            "contract": book.terms.contract,
        });
        let values = serde_json::to_value(book.derivative.as_ref()?);
        if let (Some(row), Ok(Value::Object(values))) = (row.as_object_mut(), values) {
            row.extend(values);
        }
        Some(row)
    };
    market.books.iter().filter(|book| which.takes(book)).filter_map(row).collect()
}

/// The newest trades of every instrument in `which`.
fn recent_trades(market: &MarketStatus, which: &Which, simulated: bool) -> Value {
    let row = |book: &Book| {
        json!({
            "instrument": book.instrument, "venue": book.venue, "symbol": book.symbol, "simulated": simulated,
            "trades": book.trades,
        })
    };
    market.books.iter().filter(|book| which.takes(book)).map(row).collect()
}

/// The available books with their steps and terms.
fn listed(market: &MarketStatus, which: &Which, simulated: bool) -> Value {
    let row = |book: &Book| {
        let mut row = json!({
            "instrument": book.instrument, "venue": book.venue, "symbol": book.symbol, "simulated": simulated,
            "venue_symbol": book.venue_symbol, "tick_size": book.tick_size, "lot_size": book.lot_size,
            "timeframes_s": book.candles.iter().map(|candle| candle.timeframe_s).collect::<Vec<_>>(),
        });
        if let (Some(row), Ok(Value::Object(terms))) = (row.as_object_mut(), serde_json::to_value(&book.terms)) {
            row.extend(terms);
        }
        row
    };
    market.books.iter().filter(|book| which.takes(book)).map(row).collect()
}

async fn status(app: App, _: NoParameters) -> Response {
    let Some(market) = &app.state.market else { return absent("market") };
    let market = market();
    let proven = market.books.iter().filter(|book| book.is_proven()).count();
    json_of(&json!({
        "feeds": market.feeds, "books": market.books.len(), "books_proven": proven,
        "simulated": app.state.simulated,
    }))
}

async fn stages(app: App, _: NoParameters) -> Response {
    app.state.market.as_ref().map_or_else(|| absent("market"), |market| marked(&market().stages, app.state.simulated))
}

async fn drops(app: App, _: NoParameters) -> Response {
    app.state.market.as_ref().map_or_else(|| absent("market"), |market| marked(&market().ledger, app.state.simulated))
}

async fn ticker(app: App, which: Which) -> Response {
    let simulated = app.state.simulated;
    app.state.market.as_ref().map_or_else(|| absent("market"), |market| json_of(&tickers(&market(), &which, simulated)))
}

async fn contracts(app: App, which: Which) -> Response {
    let Some(market) = &app.state.market else { return absent("market") };
    json_of(&derivatives(&market(), &which, app.state.simulated))
}

async fn orderbook(app: App, question: BookQuestion) -> Response {
    match &app.state.market_streams {
        Some(streams) => json_of(&whole_books(&app, &**streams, &question)),
        None => absent("market"),
    }
}

/// The feeds answer between two inputs: that is waited for where nothing else has to wait.
async fn orders(app: App, question: BookQuestion) -> Response {
    let Some((streams, market)) = app.state.market_streams.clone().zip(app.state.market.clone()) else {
        return absent("market");
    };
    let simulated = app.state.simulated;
    let rows = tokio::task::spawn_blocking(move || resting_orders(&*streams, &market(), &question, simulated)).await;
    rows.map_or_else(|_| rejected(StatusCode::INTERNAL_SERVER_ERROR, "no answer"), |rows| json_of(&rows))
}

/// Every order of the books of `question` that are followed order by order.
fn resting_orders(
    streams: &dyn MarketStreams,
    market: &MarketStatus,
    question: &BookQuestion,
    simulated: bool,
) -> Value {
    let books: Vec<&Book> = market.books.iter().filter(|book| question.which.takes(book)).collect();
    let instruments: Vec<u32> = books.iter().map(|book| book.instrument).collect();
    let row = |(instrument, orders): (u32, BookOrders)| {
        let book = books.iter().find(|book| book.instrument == instrument)?;
        let mut row = json!({
            "instrument": instrument, "venue": book.venue, "symbol": book.symbol, "simulated": simulated,
            "tick_size": book.tick_size, "lot_size": book.lot_size, "contract": book.terms.contract,
        });
        if let (Some(row), Ok(Value::Object(orders))) = (row.as_object_mut(), serde_json::to_value(&orders)) {
            row.extend(orders);
        }
        Some(row)
    };
    streams.orders(&instruments, question.depth.min(ORDER_LEVELS_MAX)).into_iter().filter_map(row).collect()
}

async fn ohlcv(app: App, which: Which) -> Response {
    app.state
        .market
        .as_ref()
        .map_or_else(|| absent("market"), |market| json_of(&candles(&market(), &which, app.state.simulated)))
}

async fn trades(app: App, which: Which) -> Response {
    app.state
        .market
        .as_ref()
        .map_or_else(|| absent("market"), |market| json_of(&recent_trades(&market(), &which, app.state.simulated)))
}

async fn markets(app: App, which: Which) -> Response {
    app.state
        .market
        .as_ref()
        .map_or_else(|| absent("market"), |market| json_of(&listed(&market(), &which, app.state.simulated)))
}

/// The description of these interfaces (OpenAPI 3.1).
async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], packed!("openapi.json").text()).into_response()
}

/// The description of the WebSocket streams (AsyncAPI 3.0), with the schemas of the other file.
async fn asyncapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], packed!("asyncapi.json").text()).into_response()
}

async fn ingest(app: App, _: NoParameters) -> Response {
    let Some(market) = &app.state.market else { return absent("market") };
    marked(&json!({ "rows": market().ingest }), app.state.simulated)
}
