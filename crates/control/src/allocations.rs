//! `/api/v1/turn/allocations` and `/api/v1/turn/users`: counts for every request, single allocations for requests with the API token.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path as Named, Query};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{delete, get};
use serde::Deserialize;
use serde_json::json;
use tt_status::turn::{AllocationAdmin, AllocationCursor, AllocationPage, LiveAllocation, NoReply, user_of};

use crate::answer::{absent, json_of, rejected};
use crate::state::{App, Shared};
use crate::token::authorize;

/// Default and maximum number of rows of a page.
pub(crate) const PAGE: usize = 100;
pub(crate) const PAGE_MAX: usize = 1_000;

/// Query parameters of the allocation list.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// `next` of the previous page.
    after: Option<String>,
    /// Maximum number of rows.
    limit: Option<usize>,
    /// Only those of a user: a name, or the id of time-limited names.
    user: Option<String>,
    /// Only those of a realm.
    realm: Option<String>,
}

/// Query parameters of the end of a user's allocations.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EndQuery {
    /// Only those of a realm.
    realm: Option<String>,
}

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/v1/turn/allocations", get(list))
        .route("/api/v1/turn/allocations/{relayed}", get(one).delete(end))
        .route("/api/v1/turn/users/{name}", delete(end_user))
}

/// Returns counts; with a token or query parameters, the list as well.
async fn list(app: App, headers: HeaderMap, Query(query): Query<ListQuery>) -> Response {
    let Some(turn) = &app.state.turn else { return absent("turn") };
    let turn = turn();
    let mut response = json!({
        "listens": turn.listens,
        "realm": turn.realm,
        "workers": turn.workers,
        "draining": turn.draining,
        "allocations": turn.allocations,
    });
    if !headers.contains_key(AUTHORIZATION) && query == ListQuery::default() {
        return json_of(&response);
    }
    let admin = match authorized(&app, &headers) {
        Ok(admin) => admin,
        Err(rejection) => return *rejection,
    };
    let Some(from) = query.after.as_deref().map_or(Some(AllocationCursor::default()), AllocationCursor::parse) else {
        return rejected(StatusCode::BAD_REQUEST, "`after` must be `next` of the previous page");
    };
    let limit = query.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
    let page = match (&query.user, &query.realm) {
        (None, None) => admin.page(from, limit).await,
        (user, realm) => {
            let is_meant = |row: &LiveAllocation| {
                user.as_ref().is_none_or(|user| row.user == *user || user_of(&row.user) == user)
                    && realm.as_ref().is_none_or(|realm| row.realm == *realm)
            };
            page_of(admin, is_meant, from, limit).await
        }
    };
    match page {
        Ok(page) => {
            response["list"] = json!(page.rows);
            response["next"] = json!(page.next.map(|next| next.to_string()));
            json_of(&response)
        }
        Err(NoReply) => no_reply(),
    }
}

/// Returns a page of the allocations that `is_meant` names.
async fn page_of(
    admin: &dyn AllocationAdmin,
    is_meant: impl Fn(&LiveAllocation) -> bool,
    from: AllocationCursor,
    rows_max: usize,
) -> Result<AllocationPage, NoReply> {
    let (mut rows, mut next) = (Vec::new(), Some(from));
    while let Some(cursor) = next
        && rows.len() <= rows_max
    {
        let page = admin.page(cursor, PAGE_MAX).await?;
        rows.extend(page.rows.into_iter().filter(&is_meant));
        next = page.next;
    }
    if let Some(row) = rows.get(rows_max) {
        next = Some(AllocationCursor { worker: row.worker, slot: row.slot });
    }
    rows.truncate(rows_max);
    Ok(AllocationPage { rows, next })
}

/// Returns the allocation with a relayed address.
async fn one(app: App, headers: HeaderMap, relayed: Named<String>) -> Response {
    let admin = match authorized(&app, &headers) {
        Ok(admin) => admin,
        Err(rejection) => return *rejection,
    };
    let Ok(relayed) = relayed.parse::<SocketAddr>() else { return no_address() };
    match admin.find(relayed).await {
        Ok(Some(row)) => json_of(&row),
        Ok(None) => rejected(StatusCode::NOT_FOUND, "no live allocation has this relayed address"),
        Err(NoReply) => no_reply(),
    }
}

/// Ends the allocation with a relayed address.
async fn end(app: App, headers: HeaderMap, relayed: Named<String>) -> Response {
    let admin = match authorized(&app, &headers) {
        Ok(admin) => admin,
        Err(rejection) => return *rejection,
    };
    let Ok(relayed) = relayed.parse::<SocketAddr>() else { return no_address() };
    match admin.end(relayed).await {
        Ok(true) => {
            tracing::info!(%relayed, "allocation ended over the API");
            json_of(&json!({ "ended": relayed }))
        }
        Ok(false) => rejected(StatusCode::NOT_FOUND, "no live allocation has this relayed address"),
        Err(NoReply) => no_reply(),
    }
}

/// Ends the allocations of a user.
async fn end_user(
    app: App,
    headers: HeaderMap,
    name: Named<String>,
    query: Result<Query<EndQuery>, QueryRejection>,
) -> Response {
    let admin = match authorized(&app, &headers) {
        Ok(admin) => admin,
        Err(rejection) => return *rejection,
    };
    let realm = match query {
        Ok(Query(EndQuery { realm })) => realm,
        Err(reason) => return rejected(StatusCode::BAD_REQUEST, &reason.body_text()),
    };
    match admin.end_user(name.0.clone(), realm).await {
        Ok(0) => rejected(StatusCode::NOT_FOUND, "this user has no live allocation"),
        Ok(allocations) => {
            tracing::info!(user = %name.0, allocations, "allocations of a user ended over the API");
            json_of(&json!({ "user": name.0, "ended": allocations }))
        }
        Err(NoReply) => no_reply(),
    }
}

/// Returns access to the workers if the request carries the API token.
fn authorized<'a>(app: &'a Shared, headers: &HeaderMap) -> Result<&'a dyn AllocationAdmin, Box<Response>> {
    let Some(admin) = &app.state.admin else { return Err(Box::new(absent("turn"))) };
    authorize(app.state.token.as_ref(), headers).map(|()| &*admin.allocations)
}

fn no_address() -> Response {
    rejected(StatusCode::BAD_REQUEST, "the path must end with the relayed ADDRESS:PORT of an allocation")
}

pub(crate) fn no_reply() -> Response {
    rejected(StatusCode::SERVICE_UNAVAILABLE, "a worker did not reply in time; try again")
}
