//! `/api/v1/turn/bans`, `/api/v1/turn/drain` and the list of `/api/v1/turn/users`: for requests with the API token.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path as Named, Query};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{get, post, put};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tt_status::turn::{AllocationAdmin, AllocationCursor, BanError, LiveAllocation, NoReply, user_of};

use crate::allocations::{PAGE, PAGE_MAX, no_reply};
use crate::answer::{absent, json_of, rejected};
use crate::state::{Admin, App, Shared};
use crate::token::authorize;

/// The longest ban: 30 days. What is to last longer belongs to the firewall.
const BAN_SECONDS_MAX: u64 = 30 * 86_400;
const BAN_SECONDS: u64 = 3_600;

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/v1/turn/users", get(users))
        .route("/api/v1/turn/bans", get(bans))
        .route("/api/v1/turn/bans/{*source}", put(ban).delete(end_ban))
        .route("/api/v1/turn/drain", post(drain).delete(end_drain))
}

/// What the live allocations of a user hold and have relayed.
#[derive(Debug, Default, Serialize)]
struct User {
    realm: String,
    user: String,
    allocations: u64,
    permissions: u64,
    channels: u64,
    to_peers_bytes: u64,
    to_client_bytes: u64,
}

impl User {
    fn add(&mut self, row: &LiveAllocation) {
        self.allocations += 1;
        self.permissions += u64::from(row.permissions);
        self.channels += u64::from(row.channels);
        self.to_peers_bytes += row.to_peers_bytes;
        self.to_client_bytes += row.to_client_bytes;
    }

    const fn bytes(&self) -> u64 {
        self.to_peers_bytes + self.to_client_bytes
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsersQuery {
    /// Maximum number of users.
    limit: Option<usize>,
}

/// The users with live allocations, those that have relayed most first.
async fn users(app: App, headers: HeaderMap, query: Result<Query<UsersQuery>, QueryRejection>) -> Response {
    let admin = match authorized(&app, &headers) {
        Ok(admin) => admin,
        Err(rejection) => return *rejection,
    };
    let limit = match query {
        Ok(Query(UsersQuery { limit })) => limit.unwrap_or(PAGE).clamp(1, PAGE_MAX),
        Err(reason) => return rejected(StatusCode::BAD_REQUEST, &reason.body_text()),
    };
    let Ok(by_user) = by_user(&*admin.allocations).await else { return no_reply() };
    let total = by_user.len();
    let mut users: Vec<User> = by_user.into_iter().map(|((realm, user), of)| User { realm, user, ..of }).collect();
    users
        .sort_unstable_by(|a, b| b.bytes().cmp(&a.bytes()).then_with(|| (&a.realm, &a.user).cmp(&(&b.realm, &b.user))));
    users.truncate(limit);
    let realm = app.state.turn.as_ref().map(|turn| turn().realm);
    let ended = admin.allocations.ended_users(limit);
    json_of(&json!({ "realm": realm, "users": total, "list": users, "ended": ended }))
}

async fn by_user(allocations: &dyn AllocationAdmin) -> Result<HashMap<(String, String), User>, NoReply> {
    let mut by_user: HashMap<(String, String), User> = HashMap::new();
    let mut from = Some(AllocationCursor::default());
    while let Some(cursor) = from {
        let page = allocations.page(cursor, PAGE_MAX).await?;
        for row in &page.rows {
            by_user.entry((row.realm.clone(), user_of(&row.user).to_owned())).or_default().add(row);
        }
        from = page.next;
    }
    Ok(by_user)
}

async fn bans(app: App, headers: HeaderMap) -> Response {
    match authorized(&app, &headers) {
        Ok(admin) => json_of(&json!({ "bans": admin.operator.bans() })),
        Err(rejection) => *rejection,
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct BanRequest {
    /// How long; an hour without.
    seconds: Option<u64>,
}

/// Bans an address or a prefix for a time.
async fn ban(app: App, headers: HeaderMap, source: Named<String>, body: Bytes) -> Response {
    let admin = match authorized(&app, &headers) {
        Ok(admin) => admin,
        Err(rejection) => return *rejection,
    };
    let seconds = match read::<BanRequest>(&body) {
        Ok(request) => request.seconds.unwrap_or(BAN_SECONDS),
        Err(rejection) => return *rejection,
    };
    if !(1..=BAN_SECONDS_MAX).contains(&seconds) {
        let reason = format!("`seconds` is {seconds}; a ban lasts from 1 second to {BAN_SECONDS_MAX}");
        return rejected(StatusCode::BAD_REQUEST, &reason);
    }
    match admin.operator.ban(&source, Duration::from_secs(seconds)).await {
        Ok((source, ended)) => {
            tracing::info!(source, seconds, allocations = ended, "source banned over the API");
            json_of(&json!({ "source": source, "seconds": seconds, "ended": ended }))
        }
        Err(error) => refused(&error),
    }
}

async fn end_ban(app: App, headers: HeaderMap, source: Named<String>) -> Response {
    let admin = match authorized(&app, &headers) {
        Ok(admin) => admin,
        Err(rejection) => return *rejection,
    };
    match admin.operator.end_ban(&source).await {
        Ok(true) => {
            tracing::info!(source = %source.0, "ban ended over the API");
            json_of(&json!({ "source": source.0 }))
        }
        Ok(false) => rejected(StatusCode::NOT_FOUND, "this range is not banned"),
        Err(error) => refused(&error),
    }
}

fn refused(error: &BanError) -> Response {
    let status = match error {
        BanError::Source(_) => StatusCode::BAD_REQUEST,
        BanError::Full(_) => StatusCode::INSUFFICIENT_STORAGE,
        BanError::NoReply => StatusCode::SERVICE_UNAVAILABLE,
    };
    rejected(status, &error.to_string())
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct DrainRequest {
    /// The servers that take clients, at most one of each family.
    #[serde(default)]
    alternates: Vec<SocketAddr>,
}

/// Creates no new allocations from now on.
async fn drain(app: App, headers: HeaderMap, body: Bytes) -> Response {
    let admin = match authorized(&app, &headers) {
        Ok(admin) => admin,
        Err(rejection) => return *rejection,
    };
    let alternates = match read::<DrainRequest>(&body) {
        Ok(request) => request.alternates,
        Err(rejection) => return *rejection,
    };
    let of_v4 = alternates.iter().filter(|addr| addr.is_ipv4()).count();
    if of_v4 > 1 || alternates.len() - of_v4 > 1 {
        return rejected(StatusCode::BAD_REQUEST, "`alternates` holds at most one IPv4 and one IPv6 address");
    }
    let answer = json!({ "draining": true, "alternates": alternates });
    match admin.operator.drain(alternates).await {
        Ok(()) => {
            tracing::info!(order = %answer, "draining over the API: new allocations are rejected");
            json_of(&answer)
        }
        Err(NoReply) => no_reply(),
    }
}

async fn end_drain(app: App, headers: HeaderMap) -> Response {
    match authorized(&app, &headers) {
        Ok(admin) => {
            admin.operator.end_drain();
            tracing::info!("the drain has ended over the API");
            json_of(&json!({ "draining": false }))
        }
        Err(rejection) => *rejection,
    }
}

/// Reads the body of a request; an empty one has the defaults.
fn read<T: Default + DeserializeOwned>(body: &[u8]) -> Result<T, Box<Response>> {
    if body.is_empty() {
        return Ok(T::default());
    }
    let wrong = |error: serde_json::Error| rejected(StatusCode::BAD_REQUEST, &format!("the body: {error}"));
    serde_json::from_slice(body).map_err(|error| Box::new(wrong(error)))
}

/// Returns access to the workers if the request carries the API token.
fn authorized<'a>(app: &'a Shared, headers: &HeaderMap) -> Result<&'a Admin, Box<Response>> {
    let Some(admin) = &app.state.admin else { return Err(Box::new(absent("turn"))) };
    authorize(app.state.token.as_ref(), headers).map(|()| admin)
}
