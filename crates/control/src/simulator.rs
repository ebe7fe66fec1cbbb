//! `/api/v1/simulator/faults`: faults of simulated venues for visitors who want to see one caught.
//!
//! It needs no token: without a simulator there is nothing here, and a fault harms simulated books only.

use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;

use crate::answer::{absent, json_of, rejected};
use crate::state::{App, Shared};

/// A fault for the next update of a book.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultRequest {
    venue: String,
    symbol: String,
    fault: String,
}

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/api/v1/simulator/faults", get(list).post(inject))
}

async fn list(app: App) -> Response {
    let Some(simulator) = &app.state.simulator else { return absent("simulator") };
    json_of(&json!({ "simulated": true, "faults": simulator.faults() }))
}

async fn inject(app: App, request: Result<Json<FaultRequest>, JsonRejection>) -> Response {
    let Some(simulator) = &app.state.simulator else { return absent("simulator") };
    let FaultRequest { venue, symbol, fault } = match request {
        Ok(Json(request)) => request,
        Err(reason) => return rejected(StatusCode::BAD_REQUEST, &reason.body_text()),
    };
    match simulator.inject(&venue, &symbol, &fault) {
        Ok(()) => json_of(&json!({ "simulated": true, "venue": venue, "symbol": symbol, "fault": fault })),
        Err(reason) => rejected(StatusCode::NOT_FOUND, &reason),
    }
}
