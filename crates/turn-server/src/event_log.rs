//! Log events of the engines, rate-limited by class and written by a thread of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tt_turn::event::{Event, UserName};
use tt_turn::{ErrorCode, RejectReason, WorkerId};

use crate::commands::transport_name;

/// Entries that may wait to be written.
const ENTRIES_MAX: usize = 256;
/// One rejected request per error code is logged in this time; the others are counted.
const WINDOW: Duration = Duration::from_secs(10);

/// One event that waits to be written.
#[derive(Debug)]
struct Entry {
    worker: WorkerId,
    event: Event,
    /// Events of this class that were suppressed before this one.
    suppressed: u64,
}

/// Handle of the log for workers. Clones share one queue.
#[derive(Clone, Debug)]
pub(crate) struct EventLog {
    to: SyncSender<Entry>,
    limits: Arc<Limits>,
}

/// The rate limit of each class.
#[derive(Debug)]
struct Limits {
    epoch: Instant,
    classes: [Class; ErrorCode::ALL.len()],
}

#[derive(Debug, Default)]
struct Class {
    /// Time of the last admitted event in nanoseconds since the epoch, plus one; zero for none.
    admitted: AtomicU64,
    suppressed: AtomicU64,
}

impl Class {
    /// Admits an event if the window since the last one is over, and returns the number suppressed in between.
    fn admit(&self, at_ns: u64) -> Option<u64> {
        let last = self.admitted.load(Ordering::Relaxed);
        let is_over = last == 0 || at_ns.saturating_sub(last) >= WINDOW.as_nanos() as u64;
        if is_over && self.admitted.compare_exchange(last, at_ns + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            return Some(self.suppressed.swap(0, Ordering::Relaxed));
        }
        self.suppressed.fetch_add(1, Ordering::Relaxed);
        None
    }
}

impl Limits {
    fn at_ns(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX - 1)
    }
}

/// Starts the thread that writes. It ends when all clones of the handle are dropped.
pub(crate) fn start() -> anyhow::Result<(EventLog, JoinHandle<()>)> {
    let (to, from) = sync_channel(ENTRIES_MAX);
    let limits = Arc::new(Limits { epoch: Instant::now(), classes: Default::default() });
    let event_log = EventLog { to, limits: Arc::clone(&limits) };
    let thread = thread::Builder::new().name("turn-log".into()).spawn(move || write_all(&from, &limits));
    Ok((event_log, thread.context("turn: cannot start a thread")?))
}

impl EventLog {
    /// Queues `event` unless its level is disabled, its class is rate-limited or the queue is full. Never waits.
    pub(crate) fn push(&self, worker: WorkerId, event: Event) {
        let suppressed = match &event {
            Event::Allocated { .. } | Event::Ended { .. } => tracing::enabled!(tracing::Level::DEBUG).then_some(0),
            Event::Rejected { code, .. } => self.limits.classes[*code as usize].admit(self.limits.at_ns()),
        };
        if let Some(suppressed) = suppressed {
            let _ = self.to.try_send(Entry { worker, event, suppressed });
        }
    }
}

fn write_all(from: &Receiver<Entry>, limits: &Limits) {
    loop {
        match from.recv_timeout(WINDOW) {
            Ok(entry) => write(&entry),
            Err(RecvTimeoutError::Timeout) => log_suppressed(limits, WINDOW),
            Err(RecvTimeoutError::Disconnected) => return log_suppressed(limits, Duration::ZERO),
        }
    }
}

/// Logs the number of suppressed events of each class whose window has ended.
fn log_suppressed(limits: &Limits, age_min: Duration) {
    for (error, class) in ErrorCode::ALL.iter().zip(&limits.classes) {
        let age_ns = limits.at_ns().saturating_sub(class.admitted.load(Ordering::Relaxed));
        if age_ns >= age_min.as_nanos() as u64 {
            let suppressed = class.suppressed.swap(0, Ordering::Relaxed);
            if suppressed > 0 {
                tracing::info!(code = error.code(), suppressed, "more requests rejected");
            }
        }
    }
}

fn write(entry: &Entry) {
    let worker = entry.worker.0;
    match &entry.event {
        Event::Allocated { flow, relayed, user } => {
            let transport = transport_name(flow.transport);
            tracing::debug!(worker, user = name(user), client = %flow.client, transport, %relayed, "allocation created");
        }
        Event::Ended { flow, relayed, user, bytes_to_peers, bytes_to_client } => {
            let client = flow.client;
            tracing::debug!(
                worker, user = name(user), %client, %relayed, bytes_to_peers, bytes_to_client, "allocation ended"
            );
        }
        Event::Rejected { method, code, client, peer, reason, rule, user } => {
            let peer = peer.map(|peer| peer.to_string());
            let rule = rule.map(|rule| rule.to_string());
            tracing::info!(
                worker,
                method = ?method,
                code = code.code(),
                error = ?code,
                reason = reason.map(RejectReason::name),
                rule = rule.as_deref(),
                user = name(user),
                %client,
                peer = peer.as_deref(),
                suppressed = entry.suppressed,
                "request rejected"
            );
        }
    }
}

/// Returns the name as text with invalid UTF-8 replaced. The log output escapes control characters.
fn name(user: &UserName) -> String {
    String::from_utf8_lossy(user.as_bytes()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admits_one_event_per_class_and_window_and_counts_the_rest() {
        let class = Class::default();
        let second = 1_000_000_000;
        assert_eq!(class.admit(0), Some(0));
        assert!((1..=9_999).all(|step| class.admit(step * second / 1_000).is_none()));
        assert_eq!(class.admit(11 * second), Some(9_999));
        assert_eq!(class.admit(20 * second), None);
        assert_eq!(class.admit(21 * second + 1), Some(1));
    }
}
