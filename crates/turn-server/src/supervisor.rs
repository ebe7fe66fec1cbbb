//! The thread of a worker, which restarts the worker after a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use crate::blueprint::Blueprint;
use crate::counters::WorkerCounters;
use crate::worker::{Parts, Worker};

/// Maximum delay between a panic and the restart. The delay doubles while one panic follows another.
const DELAY_MAX: Duration = Duration::from_secs(8);
/// A worker that ran for this long restarts with the shortest delay again.
const STABLE_AFTER: Duration = Duration::from_secs(60);

/// Runs a worker until the stop flag is set or it has retired. A panic ends the allocations of this worker only. Its
/// listeners stay bound, so the kernel spreads clients as before.
pub(crate) fn supervise(mut parts: Parts, blueprint: &Arc<Blueprint>) {
    let (mut counts, mut delay): (WorkerCounters, _) = (*parts.status.counts(), blueprint.restart_delay);
    loop {
        let (started, id, status) = (Instant::now(), parts.server.worker().0, Arc::clone(&parts.status));
        let mut worker = Worker::new(parts, counts);
        if catch_unwind(AssertUnwindSafe(|| worker.run())).is_ok() {
            return;
        }
        status.panics.fetch_add(1, Ordering::Relaxed);
        status.is_down.store(true, Ordering::Relaxed);
        (parts, counts) = worker.into_parts();
        if started.elapsed() > STABLE_AFTER {
            delay = blueprint.restart_delay;
        }
        tracing::error!(worker = id, restart_ms = delay.as_millis() as u64, "a worker panicked; its allocations ended");
        loop {
            thread::sleep(delay);
            delay = (delay * 2).min(DELAY_MAX);
            if parts.stop.load(Ordering::Relaxed) {
                return;
            }
            match catch_unwind(AssertUnwindSafe(|| blueprint.renew(&mut parts))) {
                Ok(Ok(())) => break,
                Ok(Err(error)) => tracing::error!(worker = id, error = format!("{error:#}"), "a worker cannot restart"),
                Err(_) => tracing::error!(worker = id, "a worker cannot restart"),
            }
        }
        status.is_down.store(false, Ordering::Relaxed);
        tracing::info!(worker = id, "worker restarted");
    }
}
