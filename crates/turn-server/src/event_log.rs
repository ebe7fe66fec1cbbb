//! Log events of the engines, rate-limited by class and written by a thread of their own.

use std::collections::{HashMap, hash_map};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tt_model::FiveTuple;
use tt_status::turn::RejectedSource;
use tt_turn::config::RealmId;
use tt_turn::event::{AllocationEvent, RejectedRequest, UserName};
use tt_turn::{ErrorCode, RejectReason, WorkerId};

use crate::commands::transport_name;
use crate::privileges;
use crate::realm_names::RealmNames;
use crate::rejected_sources::RejectedSources;

/// Entries that may wait to be written.
const ENTRIES_MAX: usize = 256;
/// One rejected request per source and error code is logged in this time; the others are counted.
const WINDOW: Duration = Duration::from_secs(10);
/// Sources and error codes that are followed; rejected requests of others are counted by error code only.
const CLASSES_MAX: usize = 4_096;

/// Bytes of a user name in a log event.
const NAME_LEN_MAX: usize = 63;

/// One event that waits to be written.
#[derive(Debug)]
struct Entry {
    worker: WorkerId,
    event: Event,
}

#[derive(Debug)]
enum Event {
    /// The beginning of an allocation, or its end with the bytes to the peers and to the client.
    Allocation { flow: FiveTuple, relayed: Option<SocketAddr>, realm: RealmId, user: UserName, end: Option<(u64, u64)> },
    /// `suppressed` events of this class came before this one.
    Rejected { request: RejectedRequest, suppressed: u64 },
}

/// Handle of the log for workers. Clones share one queue.
#[derive(Clone, Debug)]
pub(crate) struct EventLog {
    to: SyncSender<Entry>,
    limits: Arc<Limits>,
}

/// Reads the number of events that found the queue full.
#[derive(Clone, Debug)]
pub(crate) struct LogLoss(Arc<Limits>);

impl LogLoss {
    pub(crate) fn events(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Returns the number of requests with a wrong name or password.
    pub(crate) fn failed_logins(&self) -> u64 {
        self.0.sources.failed_logins()
    }

    /// Returns the sources with the most rejected requests.
    pub(crate) fn rejected_sources(&self) -> Vec<RejectedSource> {
        self.0.sources.most()
    }
}

/// The rate limits of rejected requests.
#[derive(Debug)]
struct Limits {
    epoch: Instant,
    classes: Mutex<Classes>,
    /// Rejected requests of sources that are not followed, by error code.
    others: [AtomicU64; ErrorCode::ALL.len()],
    /// Entries that found the queue full.
    lost: AtomicU64,
    /// Sources of rejected requests in the last minutes.
    sources: RejectedSources,
}

/// A source and the index of an error code.
type ClassKey = (IpAddr, usize);

#[derive(Debug, Default)]
struct Classes(HashMap<ClassKey, Class>);

#[derive(Debug)]
struct Class {
    admitted_ns: u64,
    suppressed: u64,
}

impl Classes {
    /// Admits an event if the window since the last one of its class is over, and returns the number suppressed in
    /// between.
    ///
    /// # Errors
    /// Too many classes: the event is counted nowhere.
    fn admit(&mut self, key: ClassKey, at_ns: u64) -> Result<Option<u64>, TooMany> {
        let is_full = self.0.len() >= CLASSES_MAX;
        match self.0.entry(key) {
            hash_map::Entry::Vacant(_) if is_full => Err(TooMany),
            hash_map::Entry::Vacant(vacant) => {
                vacant.insert(Class { admitted_ns: at_ns, suppressed: 0 });
                Ok(Some(0))
            }
            hash_map::Entry::Occupied(mut occupied) => {
                let class = occupied.get_mut();
                if at_ns.saturating_sub(class.admitted_ns) < WINDOW.as_nanos() as u64 {
                    class.suppressed += 1;
                    return Ok(None);
                }
                class.admitted_ns = at_ns;
                Ok(Some(std::mem::take(&mut class.suppressed)))
            }
        }
    }

    /// Removes the classes whose window has ended, and returns those with suppressed events.
    fn take_ended(&mut self, at_ns: u64, age_min: Duration) -> Vec<(ClassKey, u64)> {
        let is_ended = |class: &Class| at_ns.saturating_sub(class.admitted_ns) >= age_min.as_nanos() as u64;
        let ended = self.0.extract_if(|_, class| is_ended(class)).map(|(key, class)| (key, class.suppressed));
        ended.filter(|(_, suppressed)| *suppressed > 0).collect()
    }
}

#[derive(Debug, PartialEq, Eq)]
struct TooMany;

impl Limits {
    fn new() -> Self {
        Self {
            epoch: Instant::now(),
            classes: Mutex::default(),
            others: Default::default(),
            lost: AtomicU64::new(0),
            sources: RejectedSources::default(),
        }
    }

    fn at_ns(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns the number suppressed before, if an event of this class is to be logged. Never waits.
    fn admit(&self, source: IpAddr, code: ErrorCode) -> Option<u64> {
        // While the log's thread holds the lock the event is counted as one of the others.
        let admitted = match self.classes.try_lock() {
            Ok(mut classes) => classes.admit((source, code as usize), self.at_ns()),
            Err(TryLockError::Poisoned(classes)) => classes.into_inner().admit((source, code as usize), self.at_ns()),
            Err(TryLockError::WouldBlock) => Err(TooMany),
        };
        admitted.unwrap_or_else(|TooMany| {
            self.others[code as usize].fetch_add(1, Ordering::Relaxed);
            None
        })
    }
}

/// Starts the thread that writes. It ends when all clones of the handle are dropped.
pub(crate) fn start(realms: RealmNames) -> anyhow::Result<(EventLog, JoinHandle<()>)> {
    let (to, from) = sync_channel(ENTRIES_MAX);
    let limits = Arc::new(Limits::new());
    let event_log = EventLog { to, limits: Arc::clone(&limits) };
    let run = move || {
        privileges::drop_all();
        write_all(&from, &limits, &realms);
    };
    let thread = thread::Builder::new().name("turn-log".into()).spawn(run);
    Ok((event_log, thread.context("turn: cannot start a thread")?))
}

impl EventLog {
    /// Queues the beginning or the end of an allocation, unless its level is disabled or the queue is full. Never waits.
    pub(crate) fn push(&self, worker: WorkerId, event: &AllocationEvent) {
        if tracing::enabled!(tracing::Level::DEBUG) {
            let (start, end) = (&event.start, &event.end);
            let end = end.as_ref().map(|end| (end.bytes_to_peers, end.bytes_to_client));
            let (flow, relayed, realm, user) = (start.flow, start.first_relayed(), start.realm, start.user);
            self.send(worker, Event::Allocation { flow, relayed, realm, user, end });
        }
    }

    /// Queues a rejected request, unless its class is rate-limited or the queue is full. Never waits.
    pub(crate) fn push_rejected(&self, worker: WorkerId, request: RejectedRequest) {
        self.limits.sources.note(request.client.ip(), request.code.code());
        if let Some(suppressed) = self.limits.admit(request.client.ip(), request.code) {
            self.send(worker, Event::Rejected { request, suppressed });
        }
    }

    fn send(&self, worker: WorkerId, event: Event) {
        if self.to.try_send(Entry { worker, event }).is_err() {
            self.limits.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns a reader of the number of lost events, which does not keep the log open.
    pub(crate) fn loss(&self) -> LogLoss {
        LogLoss(Arc::clone(&self.limits))
    }
}

fn write_all(from: &Receiver<Entry>, limits: &Limits, realms: &RealmNames) {
    let mut flush_at = Instant::now() + WINDOW;
    loop {
        match from.recv_timeout(flush_at.saturating_duration_since(Instant::now())) {
            Ok(entry) => write(&entry, realms),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return log_suppressed(limits, Duration::ZERO),
        }
        if Instant::now() >= flush_at {
            log_suppressed(limits, WINDOW);
            flush_at = Instant::now() + WINDOW;
        }
    }
}

/// Logs the number of suppressed events of each class whose window has ended.
fn log_suppressed(limits: &Limits, age_min: Duration) {
    let at_ns = limits.at_ns();
    let ended = limits.classes.lock().unwrap_or_else(PoisonError::into_inner).take_ended(at_ns, age_min);
    for ((source, code), suppressed) in ended {
        let code = ErrorCode::ALL[code].code();
        tracing::info!(%source, code, suppressed, "more requests rejected");
    }
    for (error, others) in ErrorCode::ALL.iter().zip(&limits.others) {
        let suppressed = others.swap(0, Ordering::Relaxed);
        if suppressed > 0 {
            tracing::info!(code = error.code(), suppressed, "more requests of other sources rejected");
        }
    }
}

fn write(entry: &Entry, realms: &RealmNames) {
    let worker = entry.worker.0;
    match &entry.event {
        Event::Allocation { flow, relayed, realm, user, end } => {
            let realm = realms.of(*realm);
            let (user, client, transport) = (name(user), flow.client, transport_name(flow.transport));
            let relayed = relayed.map(tracing::field::display);
            match end {
                None => tracing::debug!(worker, user, realm, %client, transport, relayed, "allocation created"),
                Some((bytes_to_peers, bytes_to_client)) => {
                    tracing::debug!(
                        worker, user, realm, %client, relayed, bytes_to_peers, bytes_to_client, "allocation ended"
                    );
                }
            }
        }
        Event::Rejected { request, suppressed } => {
            let RejectedRequest { method, code, client, peer, reason, rule, realm, user } = request;
            let peer = peer.map(|peer| peer.to_string());
            let rule = rule.map(|rule| rule.to_string());
            // A filter reads source and code: they come before text of the client.
            tracing::info!(
                source = %client.ip(),
                code = code.code(),
                worker,
                method = ?method,
                error = ?code,
                reason = reason.map(RejectReason::name),
                rule = rule.as_deref(),
                user = name(user),
                realm = realms.of(*realm),
                %client,
                peer = peer.as_deref(),
                suppressed,
                "request rejected"
            );
        }
    }
}

/// Returns the beginning of the name as text with invalid UTF-8 replaced. The log output escapes control characters.
fn name(user: &UserName) -> String {
    let bytes = user.as_bytes();
    String::from_utf8_lossy(&bytes[..bytes.len().min(NAME_LEN_MAX)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn admits_one_event_per_class_and_window_and_counts_the_rest() {
        let (mut classes, key) = (Classes::default(), (IpAddr::from([192, 0, 2, 1]), 3));
        assert_eq!(classes.admit(key, 0), Ok(Some(0)));
        assert!((1..=9_999).all(|step| classes.admit(key, step * SECOND / 1_000) == Ok(None)));
        assert_eq!(classes.admit((key.0, 4), SECOND), Ok(Some(0)), "another code");
        assert_eq!(classes.admit((IpAddr::from([192, 0, 2, 2]), 3), SECOND), Ok(Some(0)), "another source");
        assert_eq!(classes.admit(key, 11 * SECOND), Ok(Some(9_999)));
        assert_eq!(classes.admit(key, 20 * SECOND), Ok(None));
        assert_eq!(classes.take_ended(12 * SECOND, WINDOW), [], "nothing was suppressed of the two that ended");
        assert_eq!(classes.take_ended(21 * SECOND, WINDOW), [(key, 1)]);
        assert!(classes.0.is_empty());
    }

    #[test]
    fn sources_without_number_are_counted_by_code_until_places_are_free() {
        let limits = Limits::new();
        let source = |number: u32| IpAddr::from(number.to_be_bytes());
        let admitted = (0..5_000).filter(|number| limits.admit(source(*number), ErrorCode::ALL[2]).is_some()).count();
        assert_eq!(admitted, CLASSES_MAX);
        assert_eq!(limits.others[2].load(Ordering::Relaxed), 5_000 - CLASSES_MAX as u64);
        limits.classes.lock().unwrap().take_ended(u64::MAX, WINDOW);
        assert_eq!(limits.admit(source(4_999), ErrorCode::ALL[2]), Some(0));
    }
}
