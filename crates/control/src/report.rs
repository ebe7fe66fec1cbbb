//! `/api/v1/machine/report` and `/api/v1/machine/why`: kept results of this machine, from which the page draws its figures.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use crate::answer::json_of;
use crate::kept_report::{self, Kind};
use crate::state::App;

/// Returns the kept report. Without one, returns the command that writes one with status 200, since the page always asks.
pub(crate) async fn report(app: App) -> Response {
    kept(app.state.report.as_deref(), "report", kept_report::FIGURES)
}

/// Returns the kept answer of `truetick why`, or the command, as [`report`] does.
pub(crate) async fn why(app: App) -> Response {
    kept(app.state.why.as_deref(), "why", kept_report::ANSWER)
}

fn kept(text: Option<&str>, name: &str, kind: Kind) -> Response {
    match text {
        Some(text) => ([(CONTENT_TYPE, "application/json")], text.to_owned()).into_response(),
        None => json_of(&serde_json::json!({ "absent": name, "command": kind.command })),
    }
}
