//! The control plane over HTTP: the page, the JSON interfaces, live streams and Prometheus metrics.
//!
//! It only reads, but for ending an allocation. It runs on one thread with a runtime of its own, takes what the engines have published through
//! [`Reading`]s, and never waits for an engine nor makes one wait.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use axum::Router;
use axum::middleware;
use axum::routing::get;
use tokio::sync::{Semaphore, watch};

mod allocations;
mod answer;
mod connections;
mod guard;
mod live;
mod machine;
mod market;
mod metrics;
mod page;
mod passes;
mod report;
mod risk;
pub mod snapshot;
mod turn;

pub use allocations::{Admin, ApiToken};
pub use report::KeptReport;

/// The address where the control plane listens unless told otherwise.
pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9641);

/// Live streams that may be open at once; one more is answered 503.
const STREAMS_MAX: usize = 64;

/// How long an ending server waits for the answers that are being written.
const STOP_MAX: Duration = Duration::from_secs(2);

/// Takes one snapshot of an engine. It must not block: the control plane calls it in place.
pub type Reading<T> = Arc<dyn Fn() -> T + Send + Sync>;

/// What the control plane shows. An engine without a reading is shown as absent.
#[derive(Default)]
pub struct State {
    /// The TURN server.
    pub turn: Option<Reading<snapshot::Turn>>,
    /// The market engine.
    pub market: Option<Reading<snapshot::Market>>,
    /// The gate and the strategy in front of it.
    pub risk: Option<Reading<snapshot::Risk>>,
    /// The credential that the page offers for trying out. Absent wherever real users are configured.
    pub ice_servers: Option<snapshot::IceServers>,
    /// Single allocations. Absent without a TURN server.
    pub admin: Option<Admin>,
    /// A bench's result on this machine, for the page's figures.
    pub report: Option<KeptReport>,
}

/// What every route sees.
struct Shared {
    state: State,
    started: Instant,
    /// Read once: `/proc/cpuinfo` asks every core for its frequency, which no engine should notice.
    host: tt_os::machine::Machine,
    live: live::Live,
    streams: Arc<Semaphore>,
    stopping: watch::Receiver<bool>,
}

type App = axum::extract::State<Arc<Shared>>;

/// A running control plane. Dropping it without [`Running::stop`] leaves the thread to the end of the process.
#[derive(Debug)]
pub struct Running {
    listen: SocketAddr,
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl Running {
    /// The address that it listens on, with the port that the kernel chose where 0 was asked for.
    #[must_use]
    pub const fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// Ends the streams, waits for answers under way (2 s at most), and joins the thread.
    pub fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.thread.join();
    }
}

/// Binds `addr` and serves `state` there from a thread of its own.
///
/// # Errors
/// Where the address cannot be bound or the thread cannot be started; the text names the address.
pub fn start(addr: SocketAddr, state: State) -> Result<Running> {
    let listener = TcpListener::bind(addr).with_context(|| format!("http: cannot listen on {addr}"))?;
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
        started: Instant::now(),
        host: tt_os::machine::Machine::read(),
        live: live::Live::new(),
        streams: Arc::new(Semaphore::new(STREAMS_MAX)),
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
    Router::new()
        .merge(page::routes())
        .merge(turn::routes())
        .merge(allocations::routes())
        .merge(market::routes())
        .merge(risk::routes())
        .merge(live::routes())
        .route("/metrics", get(metrics::metrics))
        .route("/healthz", get(machine::healthz))
        .route("/readyz", get(machine::readyz))
        .route("/api/v1/machine", get(machine::machine))
        .route("/api/v1/machine/passes", get(passes::passes))
        .route("/api/v1/machine/report", get(report::report))
        .fallback(guard::not_found)
        .layer(middleware::from_fn(guard::guard))
        .with_state(shared)
}

#[cfg(test)]
mod tests;
