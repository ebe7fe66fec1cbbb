//! `/api/v1/market/accounts` and `/ws/accounts`: own orders, executions, balances and positions, with the API token.

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use serde::Deserialize;
use tt_status::market_account::AccountState;

use crate::answer::{absent, json_of};
use crate::market::{Which, parameters};
use crate::state::{App, Shared};
use crate::token::authorize;
use crate::websocket::stream;
use crate::wire::Upgrade;

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/api/v1/market/accounts", get(accounts)).route("/ws/accounts", get(ws_accounts))
}

/// Query parameters: one venue, or all.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    venue: Option<String>,
}

/// A request that has shown the API token.
struct Question {
    venue: Option<String>,
}

impl FromRequestParts<Arc<Shared>> for Question {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Response> {
        authorize(shared.state.token.as_ref(), &parts.headers).map_err(|rejection| *rejection)?;
        let Parameters { venue } = parameters(parts).map_err(axum::response::IntoResponse::into_response)?;
        let which = Which { venue, symbol: None }.followed(shared).map_err(|refusal| refusal.into_response())?;
        Ok(Self { venue: which.venue })
    }
}

async fn accounts(app: App, Question { venue }: Question) -> Response {
    let Some(streams) = &app.state.market_streams else { return absent("market") };
    let is_asked = |account: &AccountState| venue.as_deref().is_none_or(|venue| venue == account.venue);
    json_of(&streams.accounts().into_iter().filter(is_asked).collect::<Vec<_>>())
}

async fn ws_accounts(app: App, Question { venue }: Question, upgrade: Upgrade) -> Response {
    stream(&app, upgrade, move |streams, sink| streams.subscribe_accounts(venue.as_deref(), sink))
}
