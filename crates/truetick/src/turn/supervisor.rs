//! A worker's thread: the worker, and another one in its place after a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use super::launch::Blueprint;
use super::ledger::Counts;
use super::worker::{Parts, Worker};

/// How long a worker is down after a panic, and how long at most where one follows another.
const PAUSE: Duration = Duration::from_millis(if cfg!(test) { 3_000 } else { 250 });
const PAUSE_MAX: Duration = Duration::from_secs(8);
/// A worker that has lasted this long starts with the shortest pause again.
const LASTED: Duration = Duration::from_secs(60);

/// Serves until it is told to stop. A panic ends the worker's allocations and no other worker's; its listeners stay
/// bound, so that the kernel spreads clients as before.
pub(super) fn supervise(mut parts: Parts, blueprint: &Arc<Blueprint>) {
    let (mut counts, mut pause) = (Counts::default(), PAUSE);
    loop {
        let (started, id, published) = (Instant::now(), parts.server.worker().0, Arc::clone(&parts.published));
        let mut worker = Worker::new(parts, counts);
        if catch_unwind(AssertUnwindSafe(|| worker.run())).is_ok() {
            return;
        }
        published.panics.fetch_add(1, Ordering::Relaxed);
        published.is_down.store(true, Ordering::Relaxed);
        (parts, counts) = worker.give_up();
        if started.elapsed() > LASTED {
            pause = PAUSE;
        }
        tracing::error!(
            worker = id,
            restart_ms = pause.as_millis() as u64,
            "a worker has panicked; its allocations ended"
        );
        loop {
            thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
            if parts.stop.load(Ordering::Relaxed) {
                return;
            }
            match catch_unwind(AssertUnwindSafe(|| blueprint.renew(&mut parts))) {
                Ok(Ok(())) => break,
                Ok(Err(error)) => tracing::error!(worker = id, error = format!("{error:#}"), "a worker cannot restart"),
                Err(_) => tracing::error!(worker = id, "a worker cannot restart"),
            }
        }
        published.is_down.store(false, Ordering::Relaxed);
        tracing::info!(worker = id, "a worker serves again");
    }
}
