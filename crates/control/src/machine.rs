//! `/healthz`, `/readyz` and `/api/v1/machine`.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::answer::{absent, json_of};
use crate::state::App;
use tt_status::market::Feed;

/// 200 as long as the control plane answers.
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Returns 200 if every engine of this process is ready, else 503. The body names the part that is not ready.
///
/// The TURN server is ready if it listens, all workers run, it does not drain and its memory is not full; the market engine, if every feed is
/// connected, no topic that a venue accepted is silent, and every book is verified. `silent_topics` names those;
/// `refused` names what a venue does not list or refuses, which does not make the others less ready.
pub(crate) async fn readyz(app: App) -> Response {
    let word = |ready: Option<bool>| match ready {
        Some(true) => "ready",
        Some(false) => "not ready",
        None => "absent",
    };
    let turn = app.state.turn.as_ref().map(|turn| {
        let turn = turn();
        !turn.listens.is_empty()
            && !turn.draining
            && turn.workers_down == 0
            && turn.memory.is_none_or(|memory| !memory.is_full)
    });
    let market = app.state.market.as_ref().map(|market| market());
    let silent: Vec<String> = market.iter().flat_map(|market| &market.feeds).flat_map(silent_topics).collect();
    let refused: Vec<String> = market.iter().flat_map(|market| &market.feeds).flat_map(refusals).collect();
    let market = market.map(|market| market.is_ready());
    let risk = app.state.risk.as_ref().map(|_| true);
    let ready = [turn, market, risk].iter().all(|part| part.unwrap_or(true));
    let mut body = json!({ "ready": ready, "turn": word(turn), "market": word(market), "risk": word(risk) });
    if !silent.is_empty() {
        body["silent_topics"] = silent.into();
    }
    if !refused.is_empty() {
        body["refused"] = refused.into();
    }
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, axum::Json(body)).into_response()
}

/// The silent topics of a feed, each with its venue.
fn silent_topics(feed: &Feed) -> impl Iterator<Item = String> {
    feed.silent_topics
        .iter()
        .map(|silent| format!("{} {} {}", feed.venue, silent.topic, silent.symbol).trim_end().to_owned())
}

/// What a feed's venue does not list or refuses, each with the venue.
fn refusals(feed: &Feed) -> impl Iterator<Item = String> {
    feed.refused.iter().map(|refused| format!("{} {}", feed.venue, refused.subject))
}

/// `GET /api/v1/machine`.
pub(crate) async fn machine(app: App) -> Response {
    app.state.machine.as_ref().map_or_else(|| absent("machine"), |machine| json_of(&machine()))
}
