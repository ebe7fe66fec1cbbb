//! Log records of what the engines tell: one line each, few of a kind, written by a thread that serves nobody.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tt_model::Transport;
use tt_turn::WorkerId;
use tt_turn::error::ErrorCode;
use tt_turn::event::{Event, UserName};
use tt_turn::refusal::Refusal;

/// Records that may wait to be written.
const RECORDS_MAX: usize = 256;
/// Of the refusals with one error code, one in this time is written; the others are counted.
const WINDOW: Duration = Duration::from_secs(10);

/// One record on its way to be written.
#[derive(Debug)]
struct Record {
    worker: WorkerId,
    event: Event,
    /// Records of the class that were left out before this one.
    suppressed: u64,
}

/// Where workers leave what there is to tell. Clones lead to the same place.
#[derive(Clone, Debug)]
pub(super) struct Records {
    to: SyncSender<Record>,
    limits: Arc<Limits>,
}

/// When a record of each class was last let through, and how many were not since.
#[derive(Debug)]
struct Limits {
    epoch: Instant,
    classes: [Class; ErrorCode::ALL.len()],
}

#[derive(Debug, Default)]
struct Class {
    /// Nanoseconds since the epoch, plus one; zero for never.
    admitted: AtomicU64,
    suppressed: AtomicU64,
}

impl Class {
    /// Lets one through where the last is a window ago, and says how many were not let through since; else counts it.
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

/// Starts the thread that writes. It ends when all clones of the records are gone.
pub(super) fn start() -> anyhow::Result<(Records, JoinHandle<()>)> {
    let (to, from) = sync_channel(RECORDS_MAX);
    let limits = Arc::new(Limits { epoch: Instant::now(), classes: Default::default() });
    let records = Records { to, limits: Arc::clone(&limits) };
    let thread = thread::Builder::new().name("turn-log".into()).spawn(move || write_all(&from, &limits));
    Ok((records, thread.context("turn: cannot start a thread")?))
}

impl Records {
    /// Leaves `event` to be written, unless nobody would read it or its class has had its turn. Never waits.
    pub(super) fn leave(&self, worker: WorkerId, event: Event) {
        let suppressed = match &event {
            Event::Made { .. } | Event::Ended { .. } => tracing::enabled!(tracing::Level::DEBUG).then_some(0),
            Event::Refused { error, .. } => self.limits.classes[*error as usize].admit(self.limits.at_ns()),
        };
        if let Some(suppressed) = suppressed {
            let _ = self.to.try_send(Record { worker, event, suppressed });
        }
    }
}

fn write_all(from: &Receiver<Record>, limits: &Limits) {
    loop {
        match from.recv_timeout(WINDOW) {
            Ok(record) => write(&record),
            Err(RecvTimeoutError::Timeout) => tell_suppressed(limits, WINDOW),
            Err(RecvTimeoutError::Disconnected) => return tell_suppressed(limits, Duration::ZERO),
        }
    }
}

/// Tells what was left out in windows that have ended with nothing after them.
fn tell_suppressed(limits: &Limits, age_min: Duration) {
    for (error, class) in ErrorCode::ALL.iter().zip(&limits.classes) {
        let age_ns = limits.at_ns().saturating_sub(class.admitted.load(Ordering::Relaxed));
        if age_ns >= age_min.as_nanos() as u64 {
            let suppressed = class.suppressed.swap(0, Ordering::Relaxed);
            if suppressed > 0 {
                tracing::info!(code = error.code(), suppressed, "more requests refused");
            }
        }
    }
}

fn write(record: &Record) {
    let worker = record.worker.0;
    match &record.event {
        Event::Made { flow, relayed, user } => {
            let transport = transport_of(flow.transport);
            tracing::debug!(worker, user = name(user), client = %flow.client, transport, %relayed, "allocation made");
        }
        Event::Ended { flow, relayed, user, bytes_to_peers, bytes_to_client } => {
            let client = flow.client;
            tracing::debug!(
                worker, user = name(user), %client, %relayed, bytes_to_peers, bytes_to_client, "allocation ended"
            );
        }
        Event::Refused { method, error, client, peer, refusal, rule, user } => {
            let peer = peer.map(|peer| peer.to_string());
            let rule = rule.map(|rule| rule.to_string());
            tracing::info!(
                worker,
                method = ?method,
                code = error.code(),
                error = ?error,
                reason = refusal.map(Refusal::name),
                rule = rule.as_deref(),
                user = name(user),
                %client,
                peer = peer.as_deref(),
                suppressed = record.suppressed,
                "request refused"
            );
        }
    }
}

/// The name as text; what is no UTF-8 is replaced. The log escapes the rest.
fn name(user: &UserName) -> String {
    String::from_utf8_lossy(user.as_bytes()).into_owned()
}

const fn transport_of(transport: Transport) -> &'static str {
    match transport {
        Transport::Udp => "udp",
        Transport::Tcp => "tcp",
        Transport::Tls => "tls",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_class_in_a_window_and_the_rest_is_counted() {
        let class = Class::default();
        let second = 1_000_000_000;
        assert_eq!(class.admit(0), Some(0));
        assert!((1..=9_999).all(|step| class.admit(step * second / 1_000).is_none()));
        assert_eq!(class.admit(11 * second), Some(9_999));
        assert_eq!(class.admit(20 * second), None);
        assert_eq!(class.admit(21 * second + 1), Some(1));
    }
}
