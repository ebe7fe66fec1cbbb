//! The page: its files and those of the figures, inside the binary; nothing from outside.

use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use tt_status::packed;
use tt_status::packed::Packed;

use crate::state::Shared;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

pub(crate) fn routes() -> Router<Arc<Shared>> {
    let figures = tt_status::assets::all().fold(Router::new(), |router, asset| {
        router.route(&format!("/figures/{}", asset.name), get(move || async move { file(asset.kind, asset.packed) }))
    });
    figures
        .route("/", get(|| async { file(HTML, packed!("index.html")) }))
        .route("/page.css", get(|| async { file(CSS, packed!("page.css")) }))
        .route("/address.js", get(|| async { file(SCRIPT, packed!("address.js")) }))
        .route("/allocations.js", get(|| async { file(SCRIPT, packed!("allocations.js")) }))
        .route("/users.js", get(|| async { file(SCRIPT, packed!("users.js")) }))
        .route("/books.js", get(|| async { file(SCRIPT, packed!("books.js")) }))
        .route("/canvas.js", get(|| async { file(SCRIPT, packed!("canvas.js")) }))
        .route("/engines.js", get(|| async { file(SCRIPT, packed!("engines.js")) }))
        .route("/fault.js", get(|| async { file(SCRIPT, packed!("fault.js")) }))
        .route("/gate.js", get(|| async { file(SCRIPT, packed!("gate.js")) }))
        .route("/history.js", get(|| async { file(SCRIPT, packed!("history.js")) }))
        .route("/incidents.js", get(|| async { file(SCRIPT, packed!("incidents.js")) }))
        .route("/kept.js", get(|| async { file(SCRIPT, packed!("kept.js")) }))
        .route("/page.js", get(|| async { file(SCRIPT, packed!("page.js")) }))
        .route("/relay.js", get(|| async { file(SCRIPT, packed!("relay.js")) }))
        .route("/risk.js", get(|| async { file(SCRIPT, packed!("risk.js")) }))
        .route("/snippets.js", get(|| async { file(SCRIPT, packed!("snippets.js")) }))
        .route("/text.js", get(|| async { file(SCRIPT, packed!("text.js")) }))
        .route("/top.js", get(|| async { file(SCRIPT, packed!("top.js")) }))
        .route("/trial.js", get(|| async { file(SCRIPT, packed!("trial.js")) }))
        .route("/favicon.svg", get(|| async { file(SVG, packed!("favicon.svg")) }))
}

fn file(kind: &'static str, packed: Packed) -> impl IntoResponse {
    ([(CONTENT_TYPE, kind)], packed.text())
}
