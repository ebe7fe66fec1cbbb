//! The past over HTTP.

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::get;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::answer::{absent, json_of, rejected};
use crate::history::SECONDS;
use crate::incident::BookIncident;
use crate::state::{App, Shared};

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/v1/history", get(history))
        .route("/api/v1/market/history/proofs", get(proofs))
        .route("/api/v1/market/history/incidents", get(incidents))
        .route("/api/v1/market/history/depth", get(depth))
}

/// Query parameters of the series.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeriesParameters {
    /// How far back [default: 600].
    seconds: Option<usize>,
    /// Seconds between two values [default: as many as make 600 values].
    step: Option<usize>,
}

/// Query parameters of one or several books.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BookParameters {
    venue: Option<String>,
    symbol: Option<String>,
    seconds: Option<usize>,
    /// Only what is newer, milliseconds of the Unix epoch.
    since: Option<u64>,
}

/// Query parameters, or 400.
struct Asked<T>(T);

impl<T: DeserializeOwned> FromRequestParts<Arc<Shared>> for Asked<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Shared>) -> Result<Self, Response> {
        let read = axum::extract::Query::<T>::try_from_uri(&parts.uri);
        read.map(|query| Self(query.0)).map_err(|reason| rejected(StatusCode::BAD_REQUEST, &reason.body_text()))
    }
}

impl BookParameters {
    fn is_meant(&self, venue: &str, symbol: &str) -> bool {
        self.venue.as_deref().is_none_or(|wanted| wanted == venue)
            && self.symbol.as_deref().is_none_or(|wanted| wanted == symbol)
    }
}

async fn history(app: App, Asked(asked): Asked<SeriesParameters>) -> Response {
    let seconds = asked.seconds.unwrap_or(600).clamp(1, SECONDS);
    let step = asked.step.unwrap_or_else(|| seconds.div_ceil(600)).clamp(1, SECONDS);
    let mut answer = app.history.points(seconds, step);
    answer["simulated"] = json!(app.state.simulated);
    json_of(&answer)
}

async fn proofs(app: App, Asked(asked): Asked<BookParameters>) -> Response {
    if app.state.market.is_none() {
        return absent("market");
    }
    let seconds = asked.seconds.unwrap_or(120).clamp(1, SECONDS);
    let mut answer = app.history.proofs(seconds, |venue, symbol| asked.is_meant(venue, symbol));
    answer["simulated"] = json!(app.state.simulated);
    json_of(&answer)
}

async fn incidents(app: App, Asked(asked): Asked<BookParameters>) -> Response {
    if app.state.market.is_none() {
        return absent("market");
    }
    // A lost connection concerns every book of its venue.
    let any = asked.symbol.as_deref().unwrap_or_default();
    let is_meant = |of: &BookIncident| asked.is_meant(of.venue, if of.book.is_empty() { any } else { &of.book });
    let incidents = app.history.incidents(usize::MAX, is_meant);
    json_of(&json!({ "simulated": app.state.simulated, "incidents": incidents }))
}

async fn depth(app: App, Asked(asked): Asked<BookParameters>) -> Response {
    if app.state.market.is_none() {
        return absent("market");
    }
    let found = app.history.depth(|venue, symbol| asked.is_meant(venue, symbol), asked.since.unwrap_or(0));
    let Some(mut answer) = found else { return rejected(StatusCode::NOT_FOUND, "the depth of this book is not kept") };
    answer["simulated"] = json!(app.state.simulated);
    json_of(&answer)
}
