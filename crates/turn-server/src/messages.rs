//! Messages about allocations for a database of statistics, sent by a thread of their own.
//!
//! A worker never waits for the database: while the thread is behind, messages that find its queue full are dropped, and
//! while the database is away, all are. Each is counted under a name.

mod counts;
mod text;
mod worker;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tt_net::stream::TlsNames;
use tt_status::allocation_messages::{AllocationMessage, MessageOutput};
use tt_turn::WorkerId;
use tt_turn::event::{AllocationStart, GrantRequest, Traffic};

use crate::privileges;
use crate::realm_names::RealmNames;
pub(crate) use counts::MessageCounts;
use counts::MessageLoss;
use text::Texts;
pub(crate) use worker::WorkerMessages;

/// Events that may wait for the thread.
const ENTRIES_MAX: usize = 4_096;
/// Messages that are sent at once, and a few more.
const BATCH_MAX: usize = 128;
/// Without messages, the database is asked so often whether it answers.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// Shortest and longest time until the next attempt while the database is away.
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(8);

/// One event on its way to the thread.
#[derive(Debug)]
struct Entry {
    worker: WorkerId,
    /// Number of the allocation in this worker, also after a restart of the worker.
    number: u64,
    start: AllocationStart,
    event: Event,
}

#[derive(Debug)]
enum Event {
    /// The client got a lifetime.
    Granted { request: GrantRequest, lifetime_s: u32, tls: Option<TlsNames> },
    /// Payloads since the last message about them.
    Relayed(Traffic),
    /// The end, with the payloads since the last message, and all of them.
    Ended { rest: Traffic, total: Traffic },
}

impl Event {
    /// Returns the number of messages.
    const fn messages(&self) -> u64 {
        match self {
            Self::Granted { .. } => 1,
            Self::Relayed(_) => 2,
            Self::Ended { .. } => 5,
        }
    }
}

/// The started messages; without an output there are none.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    pub(crate) queue: Option<MessageQueue>,
    pub(crate) counts: Option<Arc<MessageCounts>>,
    pub(crate) thread: Option<JoinHandle<()>>,
}

/// Handle for workers. Clones share one queue.
#[derive(Clone, Debug)]
pub(crate) struct MessageQueue {
    to: SyncSender<Entry>,
    counts: Arc<MessageCounts>,
}

/// Starts the thread that sends. It ends when all clones of the handle are dropped.
///
/// # Errors
/// The system starts no thread.
pub(crate) fn start(output: Option<Box<dyn MessageOutput>>, realms: RealmNames) -> anyhow::Result<Messages> {
    let Some(output) = output else { return Ok(Messages::default()) };
    let (to, from) = sync_channel(ENTRIES_MAX);
    let counts = Arc::new(MessageCounts::default());
    let mut publisher = Publisher { output, counts: Arc::clone(&counts), link: Link::Up };
    let texts = Texts { realms };
    let run = move || {
        privileges::drop_all();
        publisher.run(&from, &texts);
    };
    let thread = thread::Builder::new().name("turn-messages".into()).spawn(run);
    let thread = thread.context("turn: cannot start a thread")?;
    let queue = MessageQueue { to, counts: Arc::clone(&counts) };
    Ok(Messages { queue: Some(queue), counts: Some(counts), thread: Some(thread) })
}

/// The thread that sends.
struct Publisher {
    output: Box<dyn MessageOutput>,
    counts: Arc<MessageCounts>,
    link: Link,
}

/// Whether the database answered the last time.
#[derive(Clone, Copy, Debug)]
enum Link {
    Up,
    Down { retry_at: Instant, pause: Duration, lost: u64 },
}

impl Publisher {
    fn run(&mut self, from: &Receiver<Entry>, texts: &Texts) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        // The log says at once whether the database is there.
        self.send(&[]);
        loop {
            batch.clear();
            match from.recv_timeout(PROBE_EVERY) {
                Ok(first) => {
                    texts.write(&mut batch, &first);
                    while batch.len() < BATCH_MAX
                        && let Ok(next) = from.try_recv()
                    {
                        texts.write(&mut batch, &next);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.send(&batch);
        }
    }

    /// Sends messages unless the database is away, and counts what becomes of them.
    fn send(&mut self, batch: &[AllocationMessage]) {
        let messages = batch.len() as u64;
        if let Link::Down { retry_at, lost, .. } = &mut self.link
            && Instant::now() < *retry_at
        {
            *lost += messages;
            return self.counts.lose(MessageLoss::NoConnection, messages);
        }
        match (self.output.send(batch), self.link) {
            (Ok(()), link) => {
                self.counts.publish(messages);
                if let Link::Down { lost, .. } = link {
                    tracing::warn!(lost, "the database of statistics is back");
                }
                self.link = Link::Up;
            }
            (Err(error), Link::Up) => {
                self.counts.lose(MessageLoss::SendFailed, messages);
                tracing::error!(error, lost = messages, "the database of statistics takes no messages");
                self.link = Link::Down { retry_at: Instant::now() + PAUSE_MIN, pause: PAUSE_MIN, lost: messages };
            }
            (Err(_), Link::Down { pause, lost, .. }) => {
                self.counts.lose(MessageLoss::NoConnection, messages);
                let pause = (pause * 2).min(PAUSE_MAX);
                self.link = Link::Down { retry_at: Instant::now() + pause, pause, lost: lost + messages };
            }
        }
        self.counts.set_up(matches!(self.link, Link::Up));
    }
}

#[cfg(test)]
mod tests;
