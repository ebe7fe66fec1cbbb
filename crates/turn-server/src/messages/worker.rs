//! The messages of one worker.

use std::collections::HashMap;
use std::sync::mpsc::TrySendError;
use std::thread;
use std::time::{Duration, Instant};

use tt_turn::Server;
use tt_turn::event::{AllocationEvent, Traffic};

use super::{Entry, Event, MessageLoss, MessageQueue};
use crate::streams::Streams;

/// Payloads after which there is a message about them: coturn's number, which counts each twice.
const PAYLOADS: u64 = 2_048;
/// Places of the table of allocations whose traffic is read at once: a few microseconds.
const PLACES_MAX: u32 = 256;
/// Interval at which a worker at its end tries again to queue.
const RETRY: Duration = Duration::from_millis(2);

/// What a worker sends.
#[derive(Debug)]
pub(crate) struct WorkerMessages {
    queue: MessageQueue,
    /// Traffic in messages so far, of allocations that had one, by their number since the start.
    reported: HashMap<u64, Traffic>,
    /// The place to read next.
    next_place: u32,
    /// Lost lifetimes of this engine that are counted.
    grants_lost: u64,
    /// Until then it waits for the queue.
    wait_until: Option<Instant>,
}

impl WorkerMessages {
    pub(crate) fn new(queue: MessageQueue) -> Self {
        Self { queue, reported: HashMap::new(), next_place: 0, grants_lost: 0, wait_until: None }
    }

    /// Begins again with a new engine.
    pub(crate) fn restart(&mut self) {
        *self = Self::new(self.queue.clone());
    }

    /// Lets the messages to come wait for the queue, at most until `deadline`: the worker ends.
    pub(crate) fn wait_until(&mut self, deadline: Instant) {
        self.wait_until = Some(deadline);
    }

    /// Queues the lifetimes that clients got. `before` counts the allocations of earlier engines of the worker.
    pub(crate) fn pass_grants(&mut self, before: u64, server: &mut Server, streams: &Streams) {
        while let Some(grant) = server.poll_grant() {
            let tls = streams.tls_names(&grant.start.flow);
            let event = Event::Granted { request: grant.request, lifetime_s: grant.lifetime_s, tls };
            let number = before + grant.start.number;
            self.push(Entry { worker: server.worker(), number, start: grant.start, event });
        }
        let lost = server.grants_lost() - self.grants_lost;
        if lost > 0 {
            self.grants_lost += lost;
            self.queue.counts.take(lost);
            self.queue.counts.lose(MessageLoss::EngineQueueFull, lost);
        }
    }

    /// Queues the end of an allocation.
    pub(crate) fn pass_event(&mut self, before: u64, server: &Server, event: &AllocationEvent) {
        let Some(end) = &event.end else { return };
        let (number, total) = (before + event.start.number, end.traffic());
        let rest = total.since(&self.reported.remove(&number).unwrap_or_default());
        self.push(Entry { worker: server.worker(), number, start: event.start, event: Event::Ended { rest, total } });
    }

    /// Queues the traffic of the allocations at the next places that have relayed enough since their last message.
    pub(crate) fn read_traffic(&mut self, before: u64, server: &Server) {
        let places = server.places();
        for _ in 0..places.min(PLACES_MAX) {
            let place = if self.next_place < places { self.next_place } else { 0 };
            self.next_place = place + 1;
            let Some(at) = server.traffic_at(place).filter(|at| at.traffic.packets() >= PAYLOADS) else { continue };
            let number = before + at.number;
            let since = at.traffic.since(self.reported.get(&number).unwrap_or(&Traffic::default()));
            if since.packets() >= PAYLOADS
                && let Some(start) = server.start_at(place)
            {
                self.reported.insert(number, at.traffic);
                self.push(Entry { worker: server.worker(), number, start, event: Event::Relayed(since) });
            }
        }
    }

    fn push(&self, mut entry: Entry) {
        let messages = entry.event.messages();
        self.queue.counts.take(messages);
        loop {
            match self.queue.to.try_send(entry) {
                Ok(()) => return,
                Err(TrySendError::Full(back)) if self.wait_until.is_some_and(|until| Instant::now() < until) => {
                    entry = back;
                    thread::park_timeout(RETRY);
                }
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                    return self.queue.counts.lose(MessageLoss::QueueFull, messages);
                }
            }
        }
    }
}
