//! `/api/v1/market/candles` and `/ws/candles`: candles of any timeframe, with their past.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::FromRequestParts;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Value, json};
use tt_status::interval;
use tt_status::market::Book;
use tt_status::market_streams::{CandleHistory, CandleQuestion, HistoryCandle, MarketStreams};

use crate::answer::{absent, json_of};
use crate::market::{Refusal, Which, parameters};
use crate::state::{App, Shared};
use crate::websocket::ws;

/// Candles of an answer without `limit`, and at most.
const LIMIT: usize = 500;
const LIMIT_MAX: usize = 5_000;
/// The longest timeframe: a week.
const TIMEFRAME_MAX_S: u64 = 7 * 86_400;

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/api/v1/market/candles", get(candles)).route("/ws/candles", get(ws_candles))
}

/// Query parameters: [`Which`], the length of a candle, and which candles; times in milliseconds of the Unix epoch.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    venue: Option<String>,
    symbol: Option<String>,
    timeframe: Option<String>,
    from: Option<u64>,
    to: Option<u64>,
    limit: Option<usize>,
}

struct Question {
    which: Which,
    asked: CandleQuestion,
}

impl FromRequestParts<Arc<Shared>> for Question {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Refusal> {
        let Parameters { venue, symbol, timeframe, from, to, limit } = parameters(parts)?;
        let (timeframe_s, limit) = (timeframe_of(timeframe.as_deref())?, limit_of(limit)?);
        let (from_s, to_s) = (from.map(|ms| ms.div_ceil(1000)), to.map(|ms| ms.div_ceil(1000)));
        let asked = CandleQuestion { timeframe_s, from_s, to_s, limit };
        Ok(Self { which: Which { venue, symbol }.followed(shared)?, asked })
    }
}

/// Query parameters of the stream: as [`Parameters`], without a range.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamParameters {
    venue: Option<String>,
    symbol: Option<String>,
    timeframe: Option<String>,
    limit: Option<usize>,
}

struct StreamQuestion(Question);

impl FromRequestParts<Arc<Shared>> for StreamQuestion {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Refusal> {
        let StreamParameters { venue, symbol, timeframe, limit } = parameters(parts)?;
        let (timeframe_s, limit) = (timeframe_of(timeframe.as_deref())?, limit_of(limit)?);
        let asked = CandleQuestion { timeframe_s, from_s: None, to_s: None, limit };
        Ok(Self(Question { which: Which { venue, symbol }.followed(shared)?, asked }))
    }
}

fn limit_of(limit: Option<usize>) -> Result<usize, Refusal> {
    let limit = limit.unwrap_or(LIMIT);
    let reason = || Refusal(StatusCode::BAD_REQUEST, format!("limit: {limit} is not from 1 to {LIMIT_MAX}"));
    (1..=LIMIT_MAX).contains(&limit).then_some(limit).ok_or_else(reason)
}

/// A timeframe in seconds.
fn timeframe_of(text: Option<&str>) -> Result<u64, Refusal> {
    let text = text.unwrap_or("1m");
    let length = interval::parse(text).filter(|length| length.subsec_nanos() == 0).map(|length| length.as_secs());
    length.filter(|length| (1..=TIMEFRAME_MAX_S).contains(length)).ok_or_else(|| {
        Refusal(StatusCode::BAD_REQUEST, format!("timeframe: `{text}` is no time from 1s to 168h, such as 5m"))
    })
}

async fn candles(app: App, question: Question) -> Response {
    let (Some(market), Some(streams)) = (&app.state.market, &app.state.market_streams) else { return absent("market") };
    let row = |book: &Book| {
        let history = serde_json::to_value(streams.candles(book.instrument, &question.asked)?);
        let mut row = json!({
            "instrument": book.instrument, "venue": book.venue, "symbol": book.symbol,
            "simulated": app.state.simulated,
        });
        if let (Some(row), Ok(Value::Object(history))) = (row.as_object_mut(), history) {
            row.extend(history);
        }
        Some(row)
    };
    let rows: Vec<Value> = market().books.iter().filter(|book| question.which.takes(book)).filter_map(row).collect();
    json_of(&rows)
}

async fn ws_candles(app: App, StreamQuestion(question): StreamQuestion, upgrade: WebSocketUpgrade) -> Response {
    let Some(streams) = app.state.market_streams.clone() else { return absent("market") };
    let (simulated, asked) = (app.state.simulated, question.asked);
    let mut readers: HashMap<u32, Sent> = HashMap::new();
    ws(&app, question.which, upgrade, move |market, which| {
        let row = |book: &Book| {
            let (kind, history) =
                readers.entry(book.instrument).or_default().news(&*streams, book.instrument, &asked)?;
            let mut row = json!({
                "type": kind, "instrument": book.instrument, "venue": book.venue, "symbol": book.symbol,
                "simulated": simulated, "timeframe_s": history.timeframe_s, "candles": history.candles,
            });
            if kind == SNAPSHOT {
                row["known_since_unix_ms"] = json!(history.known_since_unix_ms);
                row["gaps"] = json!(history.gaps);
            }
            Some(row)
        };
        let rows: Vec<Value> = market.books.iter().filter(|book| which.takes(book)).filter_map(row).collect();
        if rows.is_empty() { Value::Null } else { Value::Array(rows) }
    })
}

const SNAPSHOT: &str = "snapshot";
/// Newest candles that are compared with what was sent: the venue's clock may begin one before ours ends the other.
const TAIL: usize = 2;

/// What a reader of the stream has of an instrument.
#[derive(Debug, Default)]
struct Sent {
    revision: Option<u64>,
    tail: Vec<HistoryCandle>,
}

impl Sent {
    /// The candles that the reader lacks, with the row's type; `None` if it has all.
    fn news(
        &mut self,
        streams: &dyn MarketStreams,
        instrument: u32,
        asked: &CandleQuestion,
    ) -> Option<(&'static str, CandleHistory)> {
        let from_s = self.tail.first().map(|candle| candle.start_unix_ms / 1000);
        let mut history = streams.candles(instrument, &CandleQuestion { from_s, ..*asked })?;
        let is_update = self.revision == Some(history.revision);
        if !is_update {
            history = streams.candles(instrument, asked)?;
            self.revision = Some(history.revision);
        }
        let tail = history.candles[history.candles.len().saturating_sub(TAIL)..].to_vec();
        if is_update {
            history.candles.retain(|candle| !self.tail.contains(candle));
            if history.candles.is_empty() {
                return None;
            }
        }
        self.tail = tail;
        Some((if is_update { "update" } else { SNAPSHOT }, history))
    }
}
