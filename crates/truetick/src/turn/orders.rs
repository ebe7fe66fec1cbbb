//! What the control plane asks of the workers. A worker answers between two rounds, from what it has.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use tokio::sync::oneshot;
use tt_net::Waker;
use tt_turn::Secrets;
use tt_turn::policy::PeerPolicy;

use crate::http::snapshot::LiveAllocation;

/// Orders that may wait for one worker.
pub(super) const ORDERS_MAX: usize = 16;
/// How long an answer is waited for.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// One order to one worker.
#[derive(Debug)]
pub(super) enum Order {
    /// From now on these users, secrets and peer rules.
    Reload { secrets: Box<Secrets>, policy: Box<PeerPolicy> },
    /// The live allocations from a place of the table on.
    List { from: u32, max: usize, answer: oneshot::Sender<Vec<LiveAllocation>> },
    /// The live allocation that relays on an address.
    Find { relayed: SocketAddr, answer: oneshot::Sender<Option<LiveAllocation>> },
    /// The same, which is to end.
    End { relayed: SocketAddr, answer: oneshot::Sender<bool> },
    /// A fault of the program.
    #[cfg(test)]
    Panic,
}

/// The way to one worker.
#[derive(Clone, Debug)]
pub(super) struct Post {
    pub(super) orders: SyncSender<Order>,
    pub(super) waker: Waker,
}

impl Post {
    /// Waits until the worker has room for `order`; false where it has ended.
    pub(super) fn send(&self, order: Order) -> bool {
        let sent = self.orders.send(order).is_ok();
        self.waker.wake();
        sent
    }

    async fn ask<T>(&self, order: impl FnOnce(oneshot::Sender<T>) -> Order) -> Result<T, Unanswered> {
        let (answer, answered) = oneshot::channel();
        self.orders.try_send(order(answer)).map_err(|_| Unanswered)?;
        self.waker.wake();
        match tokio::time::timeout(ANSWER_MAX, answered).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) | Err(_) => Err(Unanswered),
        }
    }
}

/// A worker does not answer: it is starting again, or overwhelmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unanswered;

/// Where a page of the list ends: the next one begins there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    worker: usize,
    place: u32,
}

impl Cursor {
    /// Reads what [`Cursor`]'s `Display` has written; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (worker, place) = text.split_once('.')?;
        Some(Self { worker: worker.parse().ok()?, place: place.parse().ok()? })
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.worker, self.place)
    }
}

/// Live allocations of all workers, for the control plane.
#[derive(Clone, Debug)]
pub struct Desk {
    posts: Arc<[Post]>,
}

impl Desk {
    pub(super) fn new(posts: Arc<[Post]>) -> Self {
        Self { posts }
    }

    /// Up to `max` live allocations from `from` on, and where the next page begins, if there is one.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub async fn page(&self, from: Cursor, max: usize) -> Result<(Vec<LiveAllocation>, Option<Cursor>), Unanswered> {
        let mut rows = Vec::new();
        let mut cursor = from;
        // One more than wanted tells whether there is another page.
        while rows.len() <= max
            && let Some(post) = self.posts.get(cursor.worker)
        {
            let more = max + 1 - rows.len();
            rows.extend(post.ask(|answer| Order::List { from: cursor.place, max: more, answer }).await?);
            cursor = Cursor { worker: cursor.worker + 1, place: 0 };
        }
        let next = rows.get(max).map(|row| Cursor { worker: row.worker, place: row.place });
        rows.truncate(max);
        Ok((rows, next))
    }

    /// The live allocation that relays on `relayed`.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub async fn find(&self, relayed: SocketAddr) -> Result<Option<LiveAllocation>, Unanswered> {
        for post in self.posts.iter() {
            let found = post.ask(|answer| Order::Find { relayed, answer }).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Ends the live allocation that relays on `relayed`; false where there is none.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub async fn end(&self, relayed: SocketAddr) -> Result<bool, Unanswered> {
        for post in self.posts.iter() {
            if post.ask(|answer| Order::End { relayed, answer }).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
