//! Connections of the control plane: few, and none that keeps it waiting.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use http_body_util::BodyExt as _;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

/// Maximum number of open connections. At the bound a new one replaces another: the oldest that has sent no whole request,
/// else the one without a response in progress whose last request is the oldest, else the one with the oldest request.
const CONNECTIONS_MAX: usize = 256;
/// Time limit for a request's head, from the connection or the last response.
const HEAD_MAX: Duration = Duration::from_secs(10);
/// Bytes of a request's head at most.
const HEAD_LEN_MAX: usize = 16 * 1024;
/// Delay after a connection could not be accepted (no descriptors).
const PAUSE: Duration = Duration::from_millis(100);

/// An open connection.
struct Open {
    activity: Arc<Activity>,
    task: AbortHandle,
}

/// What a connection has asked for.
#[derive(Debug, Default)]
struct Activity {
    /// The number of its last request among those of all connections, from 1; 0 before the first.
    last_request: AtomicU64,
    /// Requests that are answered now.
    responses: AtomicUsize,
}

/// Part of the response while it is made and sent.
#[derive(Debug)]
struct InProgress(Arc<Activity>);

impl InProgress {
    fn begin(activity: &Arc<Activity>) -> Self {
        activity.responses.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(activity))
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.responses.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves `router` until `stopping` says to stop, then waits for the responses in progress.
pub(crate) async fn serve(listener: TcpListener, router: Router, mut stopping: watch::Receiver<bool>) {
    let (mut tasks, mut open, requests) = (JoinSet::new(), Vec::new(), Arc::default());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stop| *stop) => break,
        };
        while tasks.try_join_next().is_some() {}
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        make_room(&mut open);
        let activity = Arc::default();
        let counts = (Arc::clone(&requests), Arc::clone(&activity));
        let task = tasks.spawn(answer(stream, router.clone(), counts, stopping.clone()));
        open.push(Open { activity, task });
    }
    while tasks.join_next().await.is_some() {}
}

/// Closes a connection if there is no room for one more.
fn make_room(open: &mut Vec<Open>) {
    if open.len() < CONNECTIONS_MAX {
        return;
    }
    open.retain(|connection| !connection.task.is_finished());
    if open.len() < CONNECTIONS_MAX {
        return;
    }
    let use_of = |(_, Open { activity, .. }): &(usize, &Open)| {
        (activity.responses.load(Ordering::Relaxed) > 0, activity.last_request.load(Ordering::Relaxed))
    };
    if let Some((least, _)) = open.iter().enumerate().min_by_key(use_of) {
        open.remove(least).task.abort();
    }
}

async fn answer(
    stream: TcpStream,
    router: Router,
    (requests, activity): (Arc<AtomicU64>, Arc<Activity>),
    mut stopping: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request| {
        activity.last_request.store(requests.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        let (in_progress, response) = (InProgress::begin(&activity), router.call(request));
        async move {
            // It is in progress until the last byte of its body is sent.
            let hold = move |frame| {
                let _ = &in_progress;
                frame
            };
            Ok::<_, Infallible>(response.await?.map(|body| body.map_frame(hold)))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_MAX)
        .max_buf_size(HEAD_LEN_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    // What goes wrong on a connection is the client's to notice.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopping.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
