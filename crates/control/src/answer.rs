//! Answers in JSON.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

/// `value` as JSON.
pub(crate) fn json_of<T: Serialize>(value: &T) -> Response {
    Json(value).into_response()
}

/// `status` with its reason.
pub(crate) fn rejected(status: StatusCode, reason: &str) -> Response {
    (status, Json(json!({ "error": reason }))).into_response()
}

/// 404: `part` does not run in this process.
pub(crate) fn absent(part: &str) -> Response {
    (StatusCode::NOT_FOUND, Json(json!({ "absent": part }))).into_response()
}
