//! WebSocket streams of every update: `/ws/orderbook`, `/ws/trades` and others.
//!
//! A reader has a bounded queue. A message that finds no room is lost for this reader alone; it gets a mark with the
//! number of lost messages and a snapshot as soon as its queue has drained.
//!
//! The thread that offers messages also writes them, as far as the socket takes them at once: no other thread has to be
//! woken, and all readers share one copy of a message. What the socket does not take is left to the connection's task.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::{Notify, OwnedSemaphorePermit, watch};
use tt_status::market_streams::Sink;

use crate::wire::{Frame, Incoming};

/// Messages that wait for one reader.
const MESSAGES_MAX: usize = 1024;
/// Bytes that wait for one reader, besides the last message.
const BYTES_MAX: usize = 8 << 20;
/// Messages that one system call writes.
const BATCH_MAX: usize = 64;
/// Time limit for a reader to take a batch; then the stream ends.
const STALL_MAX: Duration = Duration::from_secs(60);
/// Time limit for the last frame.
const CLOSE_MAX: Duration = Duration::from_secs(1);

/// The messages that wait for one reader.
#[derive(Debug)]
pub(crate) struct Queue {
    socket: Arc<TcpStream>,
    waiting: Mutex<Waiting>,
    /// The task has to write what the socket did not take, or to end.
    ready: Notify,
    readers: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Waiting {
    frames: VecDeque<Frame>,
    bytes: usize,
    /// Bytes of the first frame that are written.
    written: usize,
    /// Whether the task waits for the socket.
    is_blocked: bool,
}

impl Waiting {
    fn push(&mut self, frame: Frame) {
        self.bytes += frame.len();
        self.frames.push_back(frame);
    }

    /// Writes up to [`BATCH_MAX`] frames; returns whether nothing is left.
    fn write(&mut self, socket: &TcpStream) -> io::Result<bool> {
        if self.frames.is_empty() {
            return Ok(true);
        }
        let mut slices = [IoSlice::new(&[]); 2 * BATCH_MAX];
        let mut skipped = self.written;
        for (frame, slices) in self.frames.iter().zip(slices.as_chunks_mut::<2>().0) {
            for (part, slice) in frame.parts().into_iter().zip(slices) {
                let skip = skipped.min(part.len());
                *slice = IoSlice::new(&part[skip..]);
                skipped -= skip;
            }
        }
        let used = 2 * self.frames.len().min(BATCH_MAX);
        self.take(socket.try_write_vectored(&slices[..used])?);
        Ok(self.frames.is_empty())
    }

    /// Removes `count` written bytes.
    fn take(&mut self, count: usize) {
        self.written += count;
        while let Some(len) = self.frames.front().map(Frame::len).filter(|len| *len <= self.written) {
            (self.written, self.bytes) = (self.written - len, self.bytes - len);
            self.frames.pop_front();
        }
    }

    /// Writes all that the socket takes now; returns whether that is everything.
    fn flush(&mut self, socket: &TcpStream) -> io::Result<bool> {
        loop {
            match self.write(socket) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Queue {
    /// An empty queue in front of `socket`, which counts among `readers` until it is dropped.
    pub(crate) fn new(socket: Arc<TcpStream>, readers: &Arc<AtomicU64>) -> Self {
        readers.fetch_add(1, Relaxed);
        Self { socket, waiting: Mutex::default(), ready: Notify::new(), readers: Arc::clone(readers) }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a frame that is no message.
    fn add(&self, frame: Frame) {
        let mut waiting = self.waiting();
        // A reader that asks and never reads is not answered.
        if waiting.bytes <= BYTES_MAX {
            waiting.push(frame);
        }
    }

    /// Writes what waits, while the socket takes it. A batch at least has to leave in [`STALL_MAX`].
    async fn write_all(&self) -> io::Result<()> {
        loop {
            match tokio::time::timeout(STALL_MAX, self.write_batch()).await {
                Ok(Ok(true)) => return Ok(()),
                Ok(Ok(false)) => {}
                Ok(Err(error)) => return Err(error),
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
    }

    /// Waits until [`BATCH_MAX`] frames, or all, are written; returns whether none is left.
    async fn write_batch(&self) -> io::Result<bool> {
        let mut left = self.waiting().frames.len().min(BATCH_MAX);
        loop {
            let (is_empty, written) = self.write_once()?;
            left = left.saturating_sub(written);
            if is_empty || left == 0 {
                return Ok(is_empty);
            }
            self.socket.writable().await?;
        }
    }

    /// Writes what the socket takes with one call; returns whether nothing is left, and how many frames have left.
    fn write_once(&self) -> io::Result<(bool, usize)> {
        let mut waiting = self.waiting();
        let before = waiting.frames.len();
        let is_empty = match waiting.write(&self.socket) {
            Ok(is_empty) => is_empty,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(error) => return Err(error),
        };
        if is_empty {
            waiting.is_blocked = false;
        }
        Ok((is_empty, before - waiting.frames.len()))
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
        waiting.frames.len() <= MESSAGES_MAX / 2 && waiting.bytes <= BYTES_MAX / 2
    }

    fn offer(&self, message: &Arc<str>) -> bool {
        let mut waiting = self.waiting();
        if waiting.frames.len() >= MESSAGES_MAX || waiting.bytes > BYTES_MAX {
            return false;
        }
        waiting.push(Frame::text(Arc::clone(message)));
        true
    }

    fn flush(&self) {
        let mut waiting = self.waiting();
        if waiting.is_blocked || matches!(waiting.flush(&self.socket), Ok(true)) {
            return;
        }
        // The task meets an error, too.
        waiting.is_blocked = true;
        drop(waiting);
        self.ready.notify_one();
    }
}

/// Serves a reader until either side ends, or it takes nothing for [`STALL_MAX`].
pub(crate) async fn serve(
    queue: Arc<Queue>,
    mut incoming: Incoming,
    mut stopping: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
) {
    loop {
        tokio::select! {
            () = queue.ready.notified() => {}
            _ = stopping.wait_for(|stop| *stop) => break,
            readable = queue.socket.readable() => {
                let is_open = readable.is_ok() && incoming.read();
                incoming.take_answers().into_iter().for_each(|answer| queue.add(answer));
                queue.flush();
                if !is_open {
                    return;
                }
                continue;
            }
        }
        let written = tokio::select! {
            written = queue.write_all() => written,
            _ = stopping.wait_for(|stop| *stop) => break,
        };
        if written.is_err() {
            return;
        }
    }
    queue.add(Frame::close());
    // Whoever does not take it in time finds the connection closed.
    let _ = tokio::time::timeout(CLOSE_MAX, queue.write_all()).await;
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (Arc<TcpStream>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let socket = listener.accept().await.unwrap().0;
        // What the kernel says of it is known from here on.
        socket.writable().await.unwrap();
        (Arc::new(socket), client)
    }

    #[tokio::test]
    async fn a_queue_is_bounded_and_has_room_for_a_mark_and_a_snapshot_again() {
        let (socket, mut client) = pair().await;
        let readers = Arc::new(AtomicU64::new(0));
        let queue = Queue::new(socket, &readers);
        assert_eq!(readers.load(Relaxed), 1);
        let message: Arc<str> = "x".repeat(100).into();
        let taken = (0..10 * MESSAGES_MAX).filter(|_| queue.offer(&message)).count();
        assert_eq!((taken, queue.has_room()), (MESSAGES_MAX, false));
        queue.write_all().await.unwrap();
        assert!(queue.has_room());
        let mut frames = vec![0; MESSAGES_MAX * 102];
        client.read_exact(&mut frames).await.unwrap();
        let frame = [&[0x81, 100], message.as_bytes()].concat();
        assert!(frames.chunks(102).all(|found| found == frame));
        let whole: Arc<str> = "x".repeat(BYTES_MAX).into();
        assert!(queue.offer(&message) && queue.offer(&whole) && !queue.offer(&message), "bytes are bounded, too");
        drop(queue);
        assert_eq!(readers.load(Relaxed), 0);
    }

    /// A socket takes a part of a frame, and later the rest: a reader that is slow gets every byte in order.
    #[tokio::test]
    async fn what_the_socket_does_not_take_is_written_later_and_in_order() {
        let (socket, mut client) = pair().await;
        let queue = Arc::new(Queue::new(socket, &Arc::new(AtomicU64::new(0))));
        let message = |number: usize| -> Arc<str> { format!("{number:07}").repeat(10_000).into() };
        let mut offered = 0;
        while !queue.waiting().is_blocked {
            assert!(queue.offer(&message(offered)));
            queue.flush();
            offered += 1;
        }
        assert!(offered > 1 && !queue.waiting().frames.is_empty());
        let writer = Arc::clone(&queue);
        let rest = tokio::spawn(async move { writer.write_all().await });
        let mut found = vec![0; 70_010];
        for number in 0..offered {
            client.read_exact(&mut found).await.unwrap();
            let head = [0x81, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x70];
            assert!(found[..10] == head && found[10..] == *message(number).as_bytes(), "message {number}");
        }
        rest.await.unwrap().unwrap();
        assert!(!queue.waiting().is_blocked);
    }
}
