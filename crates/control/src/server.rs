//! The HTTP server: one thread with its own runtime, bound connections and streams, and an orderly end.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::middleware;
use axum::routing::get;
use tokio::sync::{Semaphore, watch};

use crate::history::History;
use crate::snapshot::Latest;
use crate::state::{Shared, State};
#[cfg(feature = "market")]
use crate::{account, candles, feeds, market, websocket};
use crate::{
    allocations, connections, gate, guard, live, machine, metrics, operator, page, passes, past, reload, report, risk,
};
use crate::{simulator, turn};

/// Maximum number of open live streams; further ones get 503.
const STREAMS_MAX: usize = 160;

/// Time that a stopping server waits for responses in progress.
const STOP_MAX: Duration = Duration::from_secs(2);

/// A running control plane. Without [`Running::stop`] its thread runs until the process ends.
#[derive(Debug)]
pub struct Running {
    listen: SocketAddr,
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl Running {
    /// Returns the address, with the kernel's choice for port 0.
    #[must_use]
    pub const fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// Ends the streams, waits up to 2 s for responses in progress, and joins the thread.
    pub fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.thread.join();
    }
}

/// Binds `addr` and serves `state` from a new thread.
///
/// # Errors
/// The address cannot be bound or the thread cannot be started; the error names the address.
pub fn start(addr: SocketAddr, state: State) -> Result<Running> {
    start_on(TcpListener::bind(addr).with_context(|| format!("http: cannot listen on {addr}"))?, state)
}

/// Serves `state` on a bound socket from a new thread.
///
/// # Errors
/// The thread cannot be started, or the kernel's error.
pub fn start_on(listener: TcpListener, state: State) -> Result<Running> {
    listener.set_nonblocking(true).context("http: non-blocking listener")?;
    let listen = listener.local_addr().context("http: local address")?;
    let (stop, stopping) = watch::channel(false);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("http: runtime")?;
    let thread = std::thread::Builder::new()
        .name("http".into())
        .spawn(move || runtime.block_on(serve(listener, state, stopping)))
        .context("http: thread")?;
    Ok(Running { listen, stop, thread })
}

async fn serve(listener: TcpListener, state: State, stopping: watch::Receiver<bool>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "http: cannot poll the listener"),
    };
    let shared = Arc::new(Shared {
        state,
        latest: Latest::new(),
        history: History::default(),
        streams: Arc::new(Semaphore::new(STREAMS_MAX)),
        readers: Arc::default(),
        stopping: stopping.clone(),
    });
    let sampler = tokio::spawn(live::sample(Arc::clone(&shared)));
    let mut deadline = stopping.clone();
    tokio::select! {
        () = connections::serve(listener, router(shared), stopping.clone()) => {}
        () = async {
            let _ = deadline.wait_for(|stop| *stop).await;
            tokio::time::sleep(STOP_MAX).await;
        } => {}
    }
    sampler.abort();
}

fn router(shared: Arc<Shared>) -> Router {
    let routes = Router::new();
    #[cfg(feature = "market")]
    let routes = routes
        .merge(market::routes())
        .merge(account::routes())
        .merge(candles::routes())
        .merge(feeds::routes())
        .merge(websocket::routes());
    routes
        .merge(page::routes())
        .merge(turn::routes())
        .merge(allocations::routes())
        .merge(operator::routes())
        .merge(reload::routes())
        .merge(risk::routes())
        .merge(gate::routes())
        .merge(live::routes())
        .merge(past::routes())
        .merge(simulator::routes())
        .route("/metrics", get(metrics::metrics))
        .route("/healthz", get(machine::healthz))
        .route("/readyz", get(machine::readyz))
        .route("/api/v1/machine", get(machine::machine))
        .route("/api/v1/machine/passes", get(passes::passes))
        .route("/api/v1/machine/report", get(report::report))
        .route("/api/v1/machine/why", get(report::why))
        .fallback(guard::not_found)
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), guard::guard))
        .with_state(shared)
}
