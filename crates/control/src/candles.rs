//! `/api/v1/market/candles`: candles of any timeframe, with their past.

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Value, json};
use tt_status::interval;
use tt_status::market::Book;
use tt_status::market_streams::CandleQuestion;

use crate::answer::{absent, json_of};
use crate::market::{Refusal, Which, parameters};
use crate::state::{App, Shared};

/// Candles of an answer without `limit`, and at most.
const LIMIT: usize = 500;
const LIMIT_MAX: usize = 5_000;
/// The longest timeframe: a week.
const TIMEFRAME_MAX_S: u64 = 7 * 86_400;

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/api/v1/market/candles", get(candles))
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
        let timeframe_s = timeframe.map_or(Ok(60), |text| timeframe_of(&text))?;
        let limit = limit.unwrap_or(LIMIT);
        if !(1..=LIMIT_MAX).contains(&limit) {
            let reason = format!("limit: {limit} is not from 1 to {LIMIT_MAX}");
            return Err(Refusal(StatusCode::BAD_REQUEST, reason));
        }
        let (from_s, to_s) = (from.map(|ms| ms.div_ceil(1000)), to.map(|ms| ms.div_ceil(1000)));
        let asked = CandleQuestion { timeframe_s, from_s, to_s, limit };
        Ok(Self { which: Which { venue, symbol }.followed(shared)?, asked })
    }
}

/// A timeframe in seconds.
fn timeframe_of(text: &str) -> Result<u64, Refusal> {
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
