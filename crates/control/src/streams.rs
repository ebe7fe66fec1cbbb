//! WebSocket streams of every update: `/ws/orderbook` and `/ws/trades`.
//!
//! A reader has a bounded queue. A message that finds no room is lost for this reader alone; it gets a mark with the
//! number of lost messages and a snapshot as soon as its queue has drained.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use futures_util::SinkExt as _;
use tokio::sync::{Notify, OwnedSemaphorePermit, watch};
use tt_status::market_streams::Sink;

/// Messages that wait for one reader.
const MESSAGES_MAX: usize = 1024;
/// Bytes that wait for one reader, besides the last message.
const BYTES_MAX: usize = 8 << 20;
/// Messages that are written before the socket is flushed.
const BATCH_MAX: usize = 64;
/// Time limit for a reader to take a batch; then the stream ends.
const STALL_MAX: Duration = Duration::from_secs(60);

/// The messages that wait for one reader.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    ready: Notify,
    readers: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Waiting {
    messages: VecDeque<Arc<str>>,
    bytes: usize,
}

impl Queue {
    /// An empty queue, which counts among `readers` until it is dropped.
    pub(crate) fn new(readers: &Arc<AtomicU64>) -> Self {
        readers.fetch_add(1, Relaxed);
        Self { waiting: Mutex::default(), ready: Notify::new(), readers: Arc::clone(readers) }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, batch: &mut Vec<Arc<str>>) {
        let mut waiting = self.waiting();
        let count = waiting.messages.len().min(BATCH_MAX);
        batch.extend(waiting.messages.drain(..count));
        waiting.bytes -= batch.iter().map(|message| message.len()).sum::<usize>();
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.readers.fetch_sub(1, Relaxed);
    }
}

impl Sink for Queue {
    fn has_room(&self) -> bool {
        let waiting = self.waiting();
        waiting.messages.len() <= MESSAGES_MAX / 2 && waiting.bytes <= BYTES_MAX / 2
    }

    fn offer(&self, message: &Arc<str>) -> bool {
        let mut waiting = self.waiting();
        if waiting.messages.len() >= MESSAGES_MAX || waiting.bytes > BYTES_MAX {
            return false;
        }
        waiting.bytes += message.len();
        waiting.messages.push_back(Arc::clone(message));
        drop(waiting);
        self.ready.notify_one();
        true
    }
}

/// Sends what comes into `queue` until either side ends, or the reader takes nothing for [`STALL_MAX`].
pub(crate) async fn send_all(
    mut socket: WebSocket,
    queue: Arc<Queue>,
    mut stopping: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    loop {
        tokio::select! {
            () = queue.ready.notified() => {}
            _ = stopping.wait_for(|stop| *stop) => break,
            received = socket.recv() => match received {
                Some(Ok(_)) => continue, // pings are answered inside; nothing else is expected
                Some(Err(_)) | None => return,
            },
        }
        loop {
            queue.take(&mut batch);
            if batch.is_empty() {
                break;
            }
            let sent = tokio::select! {
                sent = tokio::time::timeout(STALL_MAX, send(&mut socket, &mut batch)) => sent,
                _ = stopping.wait_for(|stop| *stop) => return,
            };
            if !matches!(sent, Ok(Ok(()))) {
                return;
            }
        }
    }
    let _ = tokio::time::timeout(Duration::from_secs(1), socket.send(Message::Close(None))).await;
}

async fn send(socket: &mut WebSocket, batch: &mut Vec<Arc<str>>) -> Result<(), axum::Error> {
    for message in batch.drain(..) {
        socket.feed(Message::text(&*message)).await?;
    }
    socket.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_bounded_and_has_room_for_a_mark_and_a_snapshot_again() {
        let readers = Arc::new(AtomicU64::new(0));
        let queue = Queue::new(&readers);
        assert_eq!(readers.load(Relaxed), 1);
        let message: Arc<str> = "x".repeat(100).into();
        let taken = (0..10 * MESSAGES_MAX).filter(|_| queue.offer(&message)).count();
        assert_eq!((taken, queue.has_room()), (MESSAGES_MAX, false));
        let mut batch = Vec::new();
        while !queue.has_room() {
            batch.clear();
            queue.take(&mut batch);
            assert_eq!(batch.len(), BATCH_MAX);
        }
        let whole: Arc<str> = "x".repeat(BYTES_MAX).into();
        assert!(queue.offer(&message) && queue.offer(&whole) && !queue.offer(&message), "bytes are bounded, too");
        drop(queue);
        assert_eq!(readers.load(Relaxed), 0);
    }
}
