//! Live streams: snapshots for listeners, and server-sent events for the page.
//!
//! One task takes the snapshots for all of them and for the history: four times a second while a client listens, else
//! twice a second with a market engine and once without. A listener that is slow misses snapshots, never gets old ones.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::snapshot::{GateSnapshot, Snapshot};
use crate::state::{App, Shared};
use tt_status::Reading;

/// Interval between two snapshots while a client listens.
const SNAPSHOT_EVERY: Duration = Duration::from_millis(250);
/// Incidents of books in a snapshot.
const INCIDENTS_SHOWN: usize = 12;

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/api/v1/live", get(events))
}

/// Takes snapshots for ever.
pub(crate) async fn sample(shared: Arc<Shared>) {
    let unwatched = SNAPSHOT_EVERY * if shared.state.market.is_some() { 2 } else { 4 };
    let (mut last, mut rest) = (Instant::now(), Duration::ZERO);
    loop {
        let soon = last + SNAPSHOT_EVERY.max(rest);
        if shared.latest.snapshot.receiver_count() == 0 {
            // The first listener waits no longer than others do.
            tokio::select! {
                () = tokio::time::sleep_until((last + unwatched.max(rest)).into()) => {}
                () = shared.latest.listener_came.notified() => tokio::time::sleep_until(soon.into()).await,
            }
        } else {
            tokio::time::sleep_until(soon.into()).await;
        }
        last = Instant::now();
        let snapshot = everything(&shared);
        shared.history.take(&snapshot, shared.state.market_streams.as_deref());
        // Thousands of books take longer to read: then they are read less often, for 2 % of a core at most.
        rest = last.elapsed() * 50;
        if shared.latest.snapshot.receiver_count() > 0 {
            let incidents = shared.history.incidents(INCIDENTS_SHOWN, |_| true);
            shared.latest.snapshot.send_replace(Some(Arc::new(Snapshot { incidents, ..snapshot })));
        }
    }
}

fn everything(shared: &Shared) -> Snapshot {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Snapshot {
        at_unix_ms: u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX),
        trial: shared.state.ice_servers.is_some(),
        simulated: shared.state.simulated,
        faults: shared.state.simulator.as_ref().map(|simulator| simulator.faults()).unwrap_or_default(),
        machine: shared.state.machine.as_ref().map(|machine| machine()),
        turn: read(shared.state.turn.as_ref(), &shared.latest.failed[0]),
        market: read(shared.state.market.as_ref(), &shared.latest.failed[1]),
        risk: read(shared.state.risk.as_ref(), &shared.latest.failed[2]),
        gate: shared.state.gate.as_ref().map(|gate| {
            let has_token = shared.state.token.is_some();
            let (modes, limits_version, journal) = (gate.modes(), gate.limits_version(), gate.journal());
            GateSnapshot { modes, limits_version, journal, has_token }
        }),
        incidents: Vec::new(),
        has_token: shared.state.token.is_some(),
    }
}

/// Reads the status of a part. A part whose reading panics is absent from then on; the others continue.
fn read<T>(reading: Option<&Reading<T>>, failed: &AtomicBool) -> Option<T> {
    let reading = reading.filter(|_| !failed.load(Relaxed))?;
    let read = catch_unwind(AssertUnwindSafe(|| reading()));
    if read.is_err() {
        failed.store(true, Relaxed);
        tracing::error!(
            part = std::any::type_name::<T>(),
            "a status reading panicked; live streams continue without it"
        );
    }
    read.ok()
}

/// One listener: the snapshots to come, and its permit among the open streams.
pub(crate) struct Listener {
    latest: watch::Receiver<Option<Arc<Snapshot>>>,
    stopping: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
}

impl Listener {
    pub(crate) fn new(shared: &Shared) -> Option<Self> {
        let place = Arc::clone(&shared.streams).try_acquire_owned().ok()?;
        let latest = shared.latest.snapshot.subscribe();
        shared.latest.listener_came.notify_one();
        Some(Self { latest, stopping: shared.stopping.clone(), _place: place })
    }

    /// The next snapshot; `None` when the server ends.
    pub(crate) async fn next(&mut self) -> Option<Arc<Snapshot>> {
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

pub(crate) fn too_many() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "too many live streams\n").into_response()
}
