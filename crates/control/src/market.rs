//! `/api/v1/market/…` and the ingest metrics.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::answer::{absent, json_of, rejected};
use crate::state::{App, Shared};
use tt_status::market::{Book, MarketStatus};

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/v1/market/status", get(status))
        .route("/api/v1/market/stages", get(stages))
        .route("/api/v1/market/drops", get(drops))
        .route("/api/v1/market/ticker", get(ticker))
        .route("/api/v1/market/orderbook", get(orderbook))
        .route("/api/v1/market/ohlcv", get(ohlcv))
        .route("/api/v1/market/trades", get(trades))
        .route("/api/v1/market/markets", get(markets))
        .route("/api/v1/openapi.json", get(openapi))
        .route("/api/v1/internal/engine/ingest-metrics", get(ingest))
}

/// Query parameters that select books [default: all]. An unknown parameter is answered with 400, a venue or a symbol that
/// is not followed with 404.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    venue: Option<String>,
    symbol: Option<String>,
}

/// A path without query parameters; any is answered with 400.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoParameters {}

/// A status with its reason, as JSON.
pub(crate) struct Refusal(StatusCode, String);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        rejected(self.0, &self.1)
    }
}

impl FromRequestParts<Arc<Shared>> for Which {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Refusal> {
        let which = parameters::<Self>(parts)?;
        let unknown = shared.state.market.as_ref().and_then(|market| which.unknown(&market()));
        unknown.map_or(Ok(which), |reason| Err(Refusal(StatusCode::NOT_FOUND, reason)))
    }
}

impl FromRequestParts<Arc<Shared>> for NoParameters {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Shared>) -> Result<Self, Refusal> {
        parameters(parts)
    }
}

fn parameters<T: DeserializeOwned>(parts: &Parts) -> Result<T, Refusal> {
    let read = Query::try_from_uri(&parts.uri).map(|Query(parameters)| parameters);
    read.map_err(|reason| Refusal(StatusCode::BAD_REQUEST, reason.body_text()))
}

impl Which {
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

    fn takes(&self, book: &Book) -> bool {
        self.venue.as_deref().is_none_or(|venue| venue == book.venue)
            && self.symbol.as_deref().is_none_or(|symbol| symbol == book.symbol)
    }
}

/// The best bid and offer of every book in `which`, each with its proof.
pub(crate) fn tickers(market: &MarketStatus, which: &Which) -> Value {
    let row = |book: &Book| {
        json!({
            "instrument": book.instrument, "venue": book.venue, "symbol": book.symbol,
            "bid": book.bids.first(), "ask": book.asks.first(), "spread_bps": book.spread_bps,
            "update_id": book.update_id, "age_ms": book.age_ms,
            "proof": book.proof, "proof_update_id": book.proof_update_id, "proof_age_ms": book.proof_age_ms,
        })
    };
    market.books.iter().filter(|book| which.takes(book)).map(row).collect()
}

/// Every book in `which` with its levels.
pub(crate) fn books(market: &MarketStatus, which: &Which) -> Value {
    json!(market.books.iter().filter(|book| which.takes(book)).collect::<Vec<_>>())
}

/// The running candles of every instrument in `which`.
pub(crate) fn candles(market: &MarketStatus, which: &Which) -> Value {
    let row = |book: &Book| {
        json!({
            "instrument": book.instrument, "venue": book.venue, "symbol": book.symbol, "candles": book.candles,
        })
    };
    market.books.iter().filter(|book| which.takes(book)).map(row).collect()
}

/// The newest trades of every instrument in `which`.
fn recent_trades(market: &MarketStatus, which: &Which) -> Value {
    let row = |book: &Book| {
        json!({
            "instrument": book.instrument, "venue": book.venue, "symbol": book.symbol, "trades": book.trades,
        })
    };
    market.books.iter().filter(|book| which.takes(book)).map(row).collect()
}

/// Number of the last trade that a client of the stream received, by instrument.
pub(crate) type SeenTrades = HashMap<u32, u64>;

/// Returns the trades of every instrument in `which` that are newer than `seen`, and the number missed between two
/// snapshots. The first snapshot contains the trades that are shown.
pub(crate) fn new_trades(market: &MarketStatus, which: &Which, seen: &mut SeenTrades) -> Value {
    let mut row = |book: &Book| {
        let last = book.trades.last()?.number;
        let known =
            seen.insert(book.instrument, last).unwrap_or_else(|| book.trades.first().map_or(0, |t| t.number - 1));
        let new: Vec<_> = book.trades.iter().filter(|trade| trade.number > known).collect();
        let missed = new.first().map_or(0, |first| first.number - known - 1);
        (!new.is_empty()).then(|| {
            json!({
                "instrument": book.instrument, "venue": book.venue, "symbol": book.symbol, "missed": missed,
                "trades": new,
            })
        })
    };
    market.books.iter().filter(|book| which.takes(book)).filter_map(&mut row).collect()
}

/// The available books with their steps.
fn listed(market: &MarketStatus, which: &Which) -> Value {
    let row = |book: &Book| {
        json!({
            "instrument": book.instrument, "venue": book.venue, "symbol": book.symbol,
            "venue_symbol": book.venue_symbol, "tick_size": book.tick_size, "lot_size": book.lot_size,
            "timeframes_s": book.candles.iter().map(|candle| candle.timeframe_s).collect::<Vec<_>>(),
        })
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
    app.state.market.as_ref().map_or_else(|| absent("market"), |market| json_of(&market().stages))
}

async fn drops(app: App, _: NoParameters) -> Response {
    app.state.market.as_ref().map_or_else(|| absent("market"), |market| json_of(&market().ledger))
}

async fn ticker(app: App, which: Which) -> Response {
    app.state.market.as_ref().map_or_else(|| absent("market"), |market| json_of(&tickers(&market(), &which)))
}

async fn orderbook(app: App, which: Which) -> Response {
    app.state.market.as_ref().map_or_else(|| absent("market"), |market| json_of(&books(&market(), &which)))
}

async fn ohlcv(app: App, which: Which) -> Response {
    app.state.market.as_ref().map_or_else(|| absent("market"), |market| json_of(&candles(&market(), &which)))
}

async fn trades(app: App, which: Which) -> Response {
    app.state.market.as_ref().map_or_else(|| absent("market"), |market| json_of(&recent_trades(&market(), &which)))
}

async fn markets(app: App, which: Which) -> Response {
    app.state.market.as_ref().map_or_else(|| absent("market"), |market| json_of(&listed(&market(), &which)))
}

/// The description of these interfaces (OpenAPI 3.1).
async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], include_str!("openapi.json")).into_response()
}

async fn ingest(app: App, _: NoParameters) -> Response {
    app.state.market.as_ref().map_or_else(|| absent("market"), |market| json_of(&json!({ "rows": market().ingest })))
}
