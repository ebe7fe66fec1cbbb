//! `/api/v1/market/feeds`: the list for every request, changes for requests with the API token.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{DefaultBodyLimit, Path as Named, Query};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{delete, get};
use serde::Deserialize;
use serde_json::json;
use tt_status::market_feeds::FeedAdmin;

use crate::answer::{absent, json_of, rejected};
use crate::state::{App, Shared};
use crate::token::authorize;

/// The longest description of a feed in bytes.
const BODY_MAX: usize = 256 << 10;

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/v1/market/feeds", get(list).post(add))
        .route("/api/v1/market/feeds/{id}", delete(remove))
        .layer(DefaultBodyLimit::max(BODY_MAX))
}

async fn list(app: App) -> Response {
    app.state.feeds.as_ref().map_or_else(|| absent("feeds"), |feeds| json_of(&feeds.list()))
}

/// Begins to follow a feed, in the words of `[[market.feeds]]`.
async fn add(app: App, headers: HeaderMap, body: Bytes) -> Response {
    let admin = match authorized(&app, &headers) {
        Ok(admin) => admin,
        Err(rejection) => return *rejection,
    };
    match admin.add(&body) {
        Ok(id) => {
            tracing::info!(feed = id, "market: feed added over the API");
            json_of(&json!({ "id": id }))
        }
        Err(reason) => rejected(StatusCode::BAD_REQUEST, &reason),
    }
}

/// What ends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Removal {
    /// One symbol of the feed, as its venue writes it; without one all of it.
    symbol: Option<String>,
}

/// Ends a feed, or one of its symbols.
async fn remove(
    app: App,
    headers: HeaderMap,
    id: Named<String>,
    removal: Result<Query<Removal>, QueryRejection>,
) -> Response {
    let admin = match authorized(&app, &headers) {
        Ok(admin) => admin,
        Err(rejection) => return *rejection,
    };
    let Removal { symbol } = match removal {
        Ok(Query(removal)) => removal,
        Err(reason) => return rejected(StatusCode::BAD_REQUEST, &reason.body_text()),
    };
    let is_removed = |id: u32| match &symbol {
        Some(symbol) => admin.unsubscribe(id, symbol),
        None => admin.remove(id),
    };
    let Some(id) = id.parse().ok().filter(|id| is_removed(*id)) else {
        let reason =
            if symbol.is_some() { "no feed of this number follows the symbol" } else { "no feed has this number" };
        return rejected(StatusCode::NOT_FOUND, reason);
    };
    tracing::info!(feed = id, symbol, "market: feed removed over the API");
    json_of(&json!({ "removed": id, "symbol": symbol }))
}

fn authorized<'a>(app: &'a Shared, headers: &HeaderMap) -> Result<&'a dyn FeedAdmin, Box<Response>> {
    let Some(feeds) = &app.state.feeds else { return Err(Box::new(absent("feeds"))) };
    authorize(app.state.token.as_ref(), headers).map(|()| &**feeds)
}
