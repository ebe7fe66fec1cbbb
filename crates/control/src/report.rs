//! `/api/v1/machine/report`: the kept result of a bench on this machine, from which the page draws its figures.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use crate::answer::json_of;
use crate::state::App;

/// The command that writes a report.
const COMMAND: &str = "truetick bench ring";

/// Returns the kept report. Without one, returns the command that writes one with status 200, since the page always asks.
pub(crate) async fn report(app: App) -> Response {
    match &app.state.report {
        Some(report) => ([(CONTENT_TYPE, "application/json")], report.to_string()).into_response(),
        None => json_of(&serde_json::json!({ "absent": "report", "command": COMMAND })),
    }
}
