//! `/api/v1/risk/modes`, `/api/v1/risk/cancels` and `/api/v1/risk/limits-file`: control of the gate, with the API token.

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tt_status::risk::{AdminError, CancelledOrders, GateAdmin};

use crate::answer::{absent, json_of, rejected};
use crate::state::{App, Shared};
use crate::token::authorize;

/// Maximum size of a limits file.
const LIMITS_BYTES_MAX: usize = 4 << 20;

/// A change of a mode, as requested.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModeRequest {
    scope: String,
    mode: String,
}

/// A cancel of all orders of a scope, as requested.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CancelRequest {
    scope: String,
}

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/v1/risk/modes", get(modes).post(set_mode))
        .route("/api/v1/risk/cancels", post(cancel))
        .route("/api/v1/risk/limits-file", get(limits_file).post(load))
        .layer(DefaultBodyLimit::max(LIMITS_BYTES_MAX))
}

/// Returns every scope that is not active.
async fn modes(app: App) -> Response {
    app.state.gate.as_ref().map_or_else(|| absent("gate"), |gate| json_of(&gate.modes()))
}

/// Puts a scope into a mode.
async fn set_mode(app: App, headers: HeaderMap, Json(request): Json<ModeRequest>) -> Response {
    let ModeRequest { scope, mode } = request;
    control(&app, &headers, move |gate| {
        let change = gate.set_mode(&scope, &mode)?;
        tracing::warn!(scope = change.scope, mode = change.mode, before = change.before, silent = ?change.silent,
            "risk: a mode was set over the API");
        Ok(change)
    })
    .await
}

/// Cancels every open order of a scope.
async fn cancel(app: App, headers: HeaderMap, Json(CancelRequest { scope }): Json<CancelRequest>) -> Response {
    control(&app, &headers, move |gate| {
        let found = gate.cancel(&scope)?;
        let CancelledOrders { scope, requested, open } = &found;
        tracing::warn!(scope, requested, open = open.len(), "risk: open orders are cancelled over the API");
        Ok(found)
    })
    .await
}

/// Returns the limits file in force.
async fn limits_file(app: App, headers: HeaderMap) -> Response {
    control(&app, &headers, |gate| {
        gate.limits().ok_or_else(|| AdminError::Unknown("no limits file has made this gate".to_owned()))
    })
    .await
}

/// Replaces all limits by those of the file in the body.
async fn load(app: App, headers: HeaderMap, text: String) -> Response {
    control(&app, &headers, move |gate| {
        let loaded = gate.load(&text)?;
        tracing::warn!(version = loaded.version, sha256 = loaded.sha256, "risk: limits were loaded over the API");
        Ok(loaded)
    })
    .await
}

/// Calls `act` on a thread that may block, if the request carries the API token.
async fn control<T: Serialize + Send + 'static>(
    app: &Shared,
    headers: &HeaderMap,
    act: impl FnOnce(&dyn GateAdmin) -> Result<T, AdminError> + Send + 'static,
) -> Response {
    let Some(gate) = app.state.gate.clone() else { return absent("gate") };
    if let Err(rejection) = authorize(app.state.token.as_ref(), headers) {
        return *rejection;
    }
    match tokio::task::spawn_blocking(move || act(&*gate)).await {
        Ok(Ok(value)) => json_of(&value),
        Ok(Err(error)) => {
            let status = match error {
                AdminError::Unknown(_) => StatusCode::NOT_FOUND,
                AdminError::Refused(_) => StatusCode::UNPROCESSABLE_ENTITY,
                AdminError::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
            };
            rejected(status, &error.to_string())
        }
        Err(_) => rejected(StatusCode::INTERNAL_SERVER_ERROR, "the request panicked"),
    }
}
