//! Answers in JSON.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};

/// `value` as JSON.
pub(crate) fn json_of<T: Serialize>(value: &T) -> Response {
    Json(value).into_response()
}

/// `value` as JSON, with `simulated` in the object, or in each object of the list.
pub(crate) fn marked<T: Serialize>(value: &T, simulated: bool) -> Response {
    let mark = |value: &mut Value| {
        if let Value::Object(fields) = value {
            fields.insert("simulated".to_owned(), simulated.into());
        }
    };
    let mut value = json!(value);
    if let Value::Array(rows) = &mut value {
        rows.iter_mut().for_each(mark);
    } else {
        mark(&mut value);
    }
    json_of(&value)
}

/// `status` with its reason.
pub(crate) fn rejected(status: StatusCode, reason: &str) -> Response {
    (status, Json(json!({ "error": reason }))).into_response()
}

/// 404: `part` does not run in this process.
pub(crate) fn absent(part: &str) -> Response {
    (StatusCode::NOT_FOUND, Json(json!({ "absent": part }))).into_response()
}
