//! Live streams: server-sent events for the page, WebSockets for programs.
//!
//! One task takes the snapshots for all of them, four times a second and only while somebody listens; a listener
//! that is slow misses snapshots, never gets old ones.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::extract::Query;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::market::{Told, Which, books, candles, new_trades, tickers};
use super::snapshot::{Machine, Market, Risk, Turn};
use super::{App, Reading, Shared, machine};

/// How often a snapshot is taken while somebody listens.
const SNAPSHOT_EVERY: Duration = Duration::from_millis(250);

/// How long a WebSocket may take to accept a snapshot.
const SEND_MAX: Duration = Duration::from_secs(5);

/// Everything at one instant.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Everything {
    at_unix_ms: u64,
    /// Whether there is a credential to try out.
    trial: bool,
    machine: Machine,
    turn: Option<Turn>,
    market: Option<Market>,
    risk: Option<Risk>,
}

/// The latest snapshot, absent until the first.
pub(super) struct Live {
    latest: watch::Sender<Option<Arc<Everything>>>,
    /// Parts that panicked when they were read: TURN, market, risk.
    failed: [AtomicBool; 3],
}

impl Live {
    pub(super) fn new() -> Self {
        Self { latest: watch::Sender::new(None), failed: Default::default() }
    }
}

pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/api/v1/live", get(events))
        .route("/ws/ticker", get(ws_ticker))
        .route("/ws/orderbook", get(ws_orderbook))
        .route("/ws/ohlcv", get(ws_ohlcv))
        .route("/ws/trades", get(ws_trades))
}

/// Takes snapshots for ever.
pub(super) async fn sample(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(SNAPSHOT_EVERY).await;
        if shared.live.latest.receiver_count() > 0 {
            shared.live.latest.send_replace(Some(Arc::new(everything(&shared))));
        }
    }
}

fn everything(shared: &Shared) -> Everything {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Everything {
        at_unix_ms: u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX),
        trial: shared.state.ice_servers.is_some(),
        machine: machine::snapshot(shared),
        turn: read(shared.state.turn.as_ref(), &shared.live.failed[0]),
        market: read(shared.state.market.as_ref(), &shared.live.failed[1]),
        risk: read(shared.state.risk.as_ref(), &shared.live.failed[2]),
    }
}

/// What a part says of itself. One that panics is missing from then on; whoever listens to the others never notices.
fn read<T>(reading: Option<&Reading<T>>, failed: &AtomicBool) -> Option<T> {
    let reading = reading.filter(|_| !failed.load(Relaxed))?;
    let read = catch_unwind(AssertUnwindSafe(|| reading()));
    if read.is_err() {
        failed.store(true, Relaxed);
        tracing::error!(part = std::any::type_name::<T>(), "a reading panicked: the live streams go on without it");
    }
    read.ok()
}

/// One listener: the snapshots to come, and its place among [`super::STREAMS_MAX`].
struct Listener {
    latest: watch::Receiver<Option<Arc<Everything>>>,
    stopping: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
}

impl Listener {
    fn new(shared: &Shared) -> Option<Self> {
        let place = Arc::clone(&shared.streams).try_acquire_owned().ok()?;
        Some(Self { latest: shared.live.latest.subscribe(), stopping: shared.stopping.clone(), _place: place })
    }

    /// The next snapshot; `None` when the server ends.
    async fn next(&mut self) -> Option<Arc<Everything>> {
        loop {
            tokio::select! {
                _ = self.stopping.wait_for(|stop| *stop) => return None,
                changed = self.latest.changed() => changed.ok()?,
            }
            let latest = self.latest.borrow_and_update().clone();
            if latest.is_some() {
                return latest;
            }
        }
    }
}

async fn events(app: App) -> Response {
    let Some(listener) = Listener::new(&app) else { return too_many() };
    let events = stream::unfold(listener, |mut listener| async {
        let event = Event::default().json_data(&*listener.next().await?).ok()?;
        Some((Ok::<_, Infallible>(event), listener))
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

fn too_many() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "too many live streams\n").into_response()
}

async fn ws_ticker(app: App, which: Query<Which>, upgrade: WebSocketUpgrade) -> Response {
    ws(&app, which.0, upgrade, tickers)
}

async fn ws_orderbook(app: App, which: Query<Which>, upgrade: WebSocketUpgrade) -> Response {
    ws(&app, which.0, upgrade, books)
}

async fn ws_ohlcv(app: App, which: Query<Which>, upgrade: WebSocketUpgrade) -> Response {
    ws(&app, which.0, upgrade, candles)
}

async fn ws_trades(app: App, which: Query<Which>, upgrade: WebSocketUpgrade) -> Response {
    let mut told = Told::default();
    ws(&app, which.0, upgrade, move |market, which| {
        let new = new_trades(market, which, &mut told);
        if new.as_array().is_some_and(Vec::is_empty) { Value::Null } else { new }
    })
}

/// What `of` makes of each snapshot is sent; `null` is not.
fn ws(
    shared: &Shared,
    which: Which,
    upgrade: WebSocketUpgrade,
    of: impl FnMut(&Market, &Which) -> Value + Send + 'static,
) -> Response {
    let Some(listener) = Listener::new(shared) else { return too_many() };
    upgrade.max_message_size(1024).on_upgrade(move |socket| send_all(socket, listener, which, of))
}

/// Sends the market part of every snapshot until either side ends.
async fn send_all(
    mut socket: WebSocket,
    mut listener: Listener,
    which: Which,
    mut of: impl FnMut(&Market, &Which) -> Value + Send,
) {
    loop {
        let everything = tokio::select! {
            next = listener.next() => match next {
                Some(everything) => everything,
                None => break,
            },
            received = socket.recv() => match received {
                Some(Ok(_)) => continue, // pings are answered inside; nothing else is expected
                Some(Err(_)) | None => return,
            },
        };
        let Some(market) = &everything.market else { break };
        let value = of(market, &which);
        if value.is_null() {
            continue;
        }
        match tokio::time::timeout(SEND_MAX, socket.send(Message::text(value.to_string()))).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
    let _ = tokio::time::timeout(SEND_MAX, socket.send(Message::Close(None))).await;
}
