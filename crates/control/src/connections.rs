//! Connections of the control plane: few, and none that keeps it waiting.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

/// Maximum number of open connections. At the bound a new one replaces the oldest that has sent no whole request.
const CONNECTIONS_MAX: usize = 256;
/// Time limit for a request's head, from the connection or the last response.
const HEAD_MAX: Duration = Duration::from_secs(10);
/// Bytes of a request's head at most.
const HEAD_LEN_MAX: usize = 16 * 1024;
/// Delay after a connection could not be accepted (no descriptors).
const PAUSE: Duration = Duration::from_millis(100);

/// An open connection.
struct Open {
    /// It has sent a whole request.
    has_requested: Arc<AtomicBool>,
    task: AbortHandle,
}

/// Serves `router` until `stopping` says to stop, then waits for the responses in progress.
pub(crate) async fn serve(listener: TcpListener, router: Router, mut stopping: watch::Receiver<bool>) {
    let (mut tasks, mut open) = (JoinSet::new(), Vec::new());
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
        if !make_room(&mut open) {
            continue;
        }
        let has_requested = Arc::new(AtomicBool::new(false));
        let task = tasks.spawn(answer(stream, router.clone(), Arc::clone(&has_requested), stopping.clone()));
        open.push(Open { has_requested, task });
    }
    while tasks.join_next().await.is_some() {}
}

/// Returns whether one more connection fits, after it closed the oldest that has sent no whole request if need be.
fn make_room(open: &mut Vec<Open>) -> bool {
    if open.len() < CONNECTIONS_MAX {
        return true;
    }
    open.retain(|connection| !connection.task.is_finished());
    if open.len() < CONNECTIONS_MAX {
        return true;
    }
    let Some(oldest) = open.iter().position(|connection| !connection.has_requested.load(Ordering::Relaxed)) else {
        return false;
    };
    open.remove(oldest).task.abort();
    true
}

async fn answer(
    stream: TcpStream,
    router: Router,
    has_requested: Arc<AtomicBool>,
    mut stopping: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request| {
        has_requested.store(true, Ordering::Relaxed);
        router.call(request)
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
