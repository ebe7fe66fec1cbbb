//! Connections of the control plane: few, and none that keeps it waiting.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// Connections that may be open at once; one more is closed as it comes.
const CONNECTIONS_MAX: usize = 256;
/// Time limit for a request's head, from the connection or the last response.
const HEAD_MAX: Duration = Duration::from_secs(10);
/// Bytes of a request's head at most.
const HEAD_LEN_MAX: usize = 16 * 1024;
/// Delay after a connection could not be accepted (no descriptors).
const PAUSE: Duration = Duration::from_millis(100);

/// Serves `router` until `stopping` says to stop, then waits for the answers under way.
pub(crate) async fn serve(listener: TcpListener, router: Router, mut stopping: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stop| *stop) => break,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let (router, stopping) = (router.clone(), stopping.clone());
        tokio::spawn(async move {
            answer(stream, router, stopping).await;
            drop(place);
        });
    }
    // All places are free when the last connection is closed.
    let _ = places.acquire_many(CONNECTIONS_MAX as u32).await;
}

async fn answer(stream: TcpStream, router: Router, mut stopping: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_MAX)
        .max_buf_size(HEAD_LEN_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .with_upgrades();
    let mut connection = pin!(connection);
    // What goes wrong on a connection is the client's to notice.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopping.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
