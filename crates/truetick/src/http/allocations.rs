//! `/api/v1/turn/allocations`: counts for everybody, the list for whoever has the token.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use axum::extract::{Path as Named, Query};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use super::answer::{absent, json_of};
use super::{App, Shared};
use crate::config::Config;
use crate::turn::{Cursor, Desk, Unanswered, secret_in};

/// Rows of a page unless told otherwise, and at most.
const PAGE: usize = 100;
const PAGE_MAX: usize = 1_000;

/// The token that a request must bear. It has no `Debug`.
pub struct ApiToken(Zeroizing<String>);

impl ApiToken {
    /// The token in the file that `flag` or else `config` names, if one does.
    ///
    /// # Errors
    /// The file cannot be read, others than its owner may read it, or it holds none; the error names it.
    pub fn of(flag: Option<&Path>, config: &Config) -> Result<Option<Self>> {
        let path = flag.or(config.http.api_token_file.as_deref());
        path.map(|path| secret_in(path).map(Self)).transpose()
    }

    /// Whether `headers` bear it; it takes as long however much of it is right.
    fn is_borne_by(&self, headers: &HeaderMap) -> bool {
        let borne = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        borne.is_some_and(|borne| bool::from(borne.as_bytes().ct_eq(self.0.as_bytes())))
    }
}

/// What single allocations are shown and ended through.
pub struct Admin {
    /// The way to them.
    pub desk: Desk,
    /// What it takes; without one nobody is let in.
    pub token: Option<ApiToken>,
}

/// What a list is asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// Where the last page ended.
    after: Option<String>,
    /// Rows at most.
    limit: Option<usize>,
}

pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/v1/turn/allocations", get(list))
        .route("/api/v1/turn/allocations/{relayed}", get(one).delete(end))
}

/// Counts; with a token or a page asked for the list, too.
async fn list(app: App, headers: HeaderMap, Query(asked): Query<Asked>) -> Response {
    let Some(turn) = &app.state.turn else { return absent("turn") };
    let turn = turn();
    let mut answer = json!({
        "listens": turn.listens,
        "realm": turn.realm,
        "workers": turn.workers,
        "draining": turn.draining,
        "allocations": turn.allocations,
    });
    if !headers.contains_key(AUTHORIZATION) && asked.after.is_none() && asked.limit.is_none() {
        return json_of(&answer);
    }
    let desk = match admitted(&app, &headers) {
        Ok(desk) => desk,
        Err(refusal) => return *refusal,
    };
    let Some(from) = asked.after.as_deref().map_or(Some(Cursor::default()), Cursor::parse) else {
        return refused(StatusCode::BAD_REQUEST, "`after` is what the last page called `next`");
    };
    let limit = asked.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
    match desk.page(from, limit).await {
        Ok((rows, next)) => {
            answer["list"] = json!(rows);
            answer["next"] = json!(next.map(|next| next.to_string()));
            json_of(&answer)
        }
        Err(Unanswered) => unanswered(),
    }
}

/// The allocation that relays on an address and port.
async fn one(app: App, headers: HeaderMap, relayed: Named<String>) -> Response {
    let desk = match admitted(&app, &headers) {
        Ok(desk) => desk,
        Err(refusal) => return *refusal,
    };
    let Ok(relayed) = relayed.parse::<SocketAddr>() else { return no_address() };
    match desk.find(relayed).await {
        Ok(Some(row)) => json_of(&row),
        Ok(None) => refused(StatusCode::NOT_FOUND, "no live allocation relays on this address"),
        Err(Unanswered) => unanswered(),
    }
}

/// Ends it.
async fn end(app: App, headers: HeaderMap, relayed: Named<String>) -> Response {
    let desk = match admitted(&app, &headers) {
        Ok(desk) => desk,
        Err(refusal) => return *refusal,
    };
    let Ok(relayed) = relayed.parse::<SocketAddr>() else { return no_address() };
    match desk.end(relayed).await {
        Ok(true) => {
            tracing::info!(%relayed, "allocation ended over the API");
            json_of(&json!({ "ended": relayed }))
        }
        Ok(false) => refused(StatusCode::NOT_FOUND, "no live allocation relays on this address"),
        Err(Unanswered) => unanswered(),
    }
}

/// The desk, for whoever has the token.
fn admitted<'a>(app: &'a Shared, headers: &HeaderMap) -> Result<&'a Desk, Box<Response>> {
    let Some(admin) = &app.state.admin else { return Err(Box::new(absent("turn"))) };
    match &admin.token {
        None => {
            let told = "no token is configured (--api-token-file), so nobody sees single allocations";
            Err(Box::new(refused(StatusCode::FORBIDDEN, told)))
        }
        Some(token) if token.is_borne_by(headers) => Ok(&admin.desk),
        Some(_) => {
            let told = refused(StatusCode::UNAUTHORIZED, "Authorization: Bearer TOKEN, with the configured token");
            Err(Box::new(([(WWW_AUTHENTICATE, "Bearer")], told).into_response()))
        }
    }
}

fn refused(status: StatusCode, told: &str) -> Response {
    (status, Json(json!({ "error": told }))).into_response()
}

fn no_address() -> Response {
    refused(StatusCode::BAD_REQUEST, "an allocation is named by its relayed ADDRESS:PORT")
}

fn unanswered() -> Response {
    refused(StatusCode::SERVICE_UNAVAILABLE, "a worker does not answer; try again")
}
