//! The pace: steps at a rate that one sets, and an honest account of those that were not made in time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::time::{Instant, MissedTickBehavior};

use crate::{exchange::unix_us, server::Shared};

/// How often steps are made.
const BEAT: Duration = Duration::from_millis(1);

/// Steps that are made under one lock.
const STEPS_PER_LOCK: u64 = 32;

/// Debt beyond this much time is left out and counted: a simulator that hurries after a stall makes a burst that no
/// venue would.
const DEBT_MAX_S: f64 = 0.25;

/// Makes `rate_mhz` (thousandths of a step per second) steps of the venue until the task is dropped.
pub(crate) async fn run(shared: Shared, rate_mhz: Arc<AtomicU64>) {
    let mut beats = tokio::time::interval(BEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = Instant::now();
    let mut due = 0.0_f64;
    loop {
        beats.tick().await;
        let rate_hz = rate_mhz.load(Relaxed) as f64 / 1000.0;
        due += last.elapsed().as_secs_f64() * rate_hz;
        last = Instant::now();
        if rate_hz == 0.0 {
            due = 0.0;
        }
        let debt_max = rate_hz * DEBT_MAX_S + 1.0;
        if due > debt_max {
            let late = (due - debt_max) as u64;
            shared.lock().stats.steps_late += late;
            due -= late as f64;
        }
        while due >= 1.0 {
            let batch = (due as u64).min(STEPS_PER_LOCK);
            step(&shared, &rate_mhz, batch);
            due -= batch as f64;
            // The connections of the same thread write what they were given.
            tokio::task::yield_now().await;
        }
    }
}

/// Makes `count` steps, or none where the rate became 0 meanwhile: whoever set it to 0 may read the truth at once.
fn step(shared: &Shared, rate_mhz: &AtomicU64, count: u64) {
    let mut exchange = shared.lock();
    if rate_mhz.load(Relaxed) == 0 {
        return;
    }
    for _ in 0..count {
        exchange.step_next(unix_us());
    }
}
