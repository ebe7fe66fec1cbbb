//! The page: its files and those of the figures, inside the binary; nothing from outside.

use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;

use crate::state::Shared;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

pub(crate) fn routes() -> Router<Arc<Shared>> {
    let figures = tt_status::assets::all().fold(Router::new(), |router, asset| {
        router.route(&format!("/figures/{}", asset.name), get(move || async move { file(asset.kind, asset.text) }))
    });
    figures
        .route("/", get(|| async { file(HTML, include_str!("page/index.html")) }))
        .route("/page.css", get(|| async { file(CSS, include_str!("page/page.css")) }))
        .route("/page.js", get(|| async { file(SCRIPT, include_str!("page/page.js")) }))
        .route("/show.js", get(|| async { file(SCRIPT, include_str!("page/show.js")) }))
        .route("/gate.js", get(|| async { file(SCRIPT, include_str!("page/gate.js")) }))
        .route("/kept.js", get(|| async { file(SCRIPT, include_str!("page/kept.js")) }))
        .route("/relay.js", get(|| async { file(SCRIPT, include_str!("page/relay.js")) }))
        .route("/favicon.svg", get(|| async { file(SVG, include_str!("page/favicon.svg")) }))
}

fn file(kind: &'static str, text: &'static str) -> impl IntoResponse {
    ([(CONTENT_TYPE, kind)], text)
}
