//! `/api/v1/risk/…`

use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use serde_json::json;

use crate::answer::{absent, marked};
use crate::state::{App, Shared};

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/v1/risk/verdicts", get(verdicts))
        .route("/api/v1/risk/limits", get(limits))
        .route("/api/v1/risk/levels", get(levels))
        .route("/api/v1/risk/reasons", get(reasons))
        .route("/api/v1/risk/stages", get(stages))
}

async fn verdicts(app: App) -> Response {
    let Some(risk) = &app.state.risk else { return absent("risk") };
    let risk = risk();
    marked(&json!({ "ledger": risk.ledger, "ring": risk.ring, "verdicts": risk.verdicts }), app.state.simulated)
}

async fn limits(app: App) -> Response {
    app.state.risk.as_ref().map_or_else(|| absent("risk"), |risk| marked(&risk().limits, app.state.simulated))
}

async fn levels(app: App) -> Response {
    app.state.risk.as_ref().map_or_else(|| absent("risk"), |risk| marked(&risk().levels, app.state.simulated))
}

async fn reasons(app: App) -> Response {
    app.state.risk.as_ref().map_or_else(|| absent("risk"), |risk| marked(&risk().reasons, app.state.simulated))
}

async fn stages(app: App) -> Response {
    let Some(risk) = &app.state.risk else { return absent("risk") };
    let risk = risk();
    marked(&json!({ "stages": risk.stages, "journey": risk.journey }), app.state.simulated)
}
