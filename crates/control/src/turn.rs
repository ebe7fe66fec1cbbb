//! `/api/v1/turn/…`

use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use serde_json::json;

use crate::answer::{absent, json_of};
use crate::state::{App, Shared};

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/v1/turn/stages", get(stages))
        .route("/api/v1/turn/drops", get(drops))
        .route("/api/v1/turn/streams", get(streams))
        .route("/api/v1/turn/kernel-path", get(kernel_path))
        .route("/api/v1/turn/ice-servers", get(ice_servers))
}

async fn stages(app: App) -> Response {
    app.state.turn.as_ref().map_or_else(|| absent("turn"), |turn| json_of(&turn().stages))
}

async fn drops(app: App) -> Response {
    let Some(turn) = &app.state.turn else { return absent("turn") };
    let turn = turn();
    let mut answer = json!(turn.ledger);
    answer["kernel_lost"] = json!(turn.kernel_lost);
    answer["overloads"] = json!(turn.overloads);
    answer["faults"] = json!(turn.faults);
    answer["errors"] = json!(turn.errors);
    answer["refusals"] = json!(turn.refusals);
    answer["denied"] = json!(turn.denied);
    json_of(&answer)
}

async fn streams(app: App) -> Response {
    app.state.turn.as_ref().map_or_else(|| absent("turn"), |turn| json_of(&turn().streams))
}

/// What the kernel relays; 404 where it relays nothing.
async fn kernel_path(app: App) -> Response {
    let path = app.state.turn.as_ref().and_then(|turn| turn().kernel_path);
    path.map_or_else(|| absent("kernel path"), |path| json_of(&path))
}

/// The trial credential; 404 wherever real users are configured.
async fn ice_servers(app: App) -> Response {
    app.state.ice_servers.as_ref().map_or_else(|| absent("trial credential"), json_of)
}
