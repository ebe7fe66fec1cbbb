//! `/api/v1/reload`: for requests with the API token.

use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::post;
use serde_json::json;
use tt_status::reload::ReloadError;

use crate::answer::{absent, json_of, rejected};
use crate::state::{App, Shared};
use crate::token::authorize;

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/api/v1/reload", post(reload))
}

async fn reload(app: App, headers: HeaderMap) -> Response {
    let Some(configuration) = &app.state.reload else { return absent("reload") };
    if let Err(rejection) = authorize(app.state.token.as_ref(), &headers) {
        return *rejection;
    }
    match configuration.reload().await {
        Ok(()) => json_of(&json!({ "reloaded": true })),
        Err(error) => {
            let status = match error {
                ReloadError::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
                ReloadError::Stopping => StatusCode::SERVICE_UNAVAILABLE,
            };
            rejected(status, &error.to_string())
        }
    }
}
