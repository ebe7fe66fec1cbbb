//! Updates on their way from a feed's thread to a reader.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::image::BookImage;

/// A bounded queue. If it is full, the oldest update is dropped, and the next one of its instrument counts it.
pub(crate) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    /// A byte wakes the event loop that watches the other end.
    waker: UnixStream,
    woken: UnixStream,
}

struct State {
    updates: VecDeque<BookImage>,
    room: usize,
    /// Dropped updates by instrument, since the last one that was read.
    missed: Vec<u64>,
    missed_total: u64,
    is_watched: bool,
    is_closed: bool,
}

/// Result of a wait.
pub(crate) enum Popped {
    Update(BookImage),
    /// Nothing came in time.
    Nothing,
    /// The queue is closed.
    Closed,
}

impl Queue {
    pub(crate) fn new(room: usize) -> std::io::Result<Self> {
        let (waker, woken) = UnixStream::pair()?;
        waker.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let state = State {
            updates: VecDeque::with_capacity(room.min(1024)),
            room: room.max(1),
            missed: Vec::new(),
            missed_total: 0,
            is_watched: false,
            is_closed: false,
        };
        Ok(Self { state: Mutex::new(state), filled: Condvar::new(), waker, woken })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an update and never waits for a reader.
    pub(crate) fn push(&self, image: BookImage) {
        let mut state = self.lock();
        if state.updates.len() == state.room
            && let Some(oldest) = state.updates.pop_front()
        {
            let index = oldest.instrument as usize;
            if state.missed.len() <= index {
                state.missed.resize(index + 1, 0);
            }
            state.missed[index] += 1;
            state.missed_total += 1;
        }
        state.updates.push_back(image);
        self.wake(&mut state);
    }

    /// Ends all waits.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        self.wake(&mut state);
    }

    fn wake(&self, state: &mut State) {
        if std::mem::take(&mut state.is_watched) {
            // A full socket has a byte that wakes.
            let _ = (&self.waker).write(&[1]);
        }
        self.filled.notify_all();
    }

    /// Takes the oldest update; waits for one until `deadline`.
    pub(crate) fn pop(&self, deadline: Instant) -> Popped {
        let mut state = self.lock();
        loop {
            if state.is_closed {
                return Popped::Closed;
            }
            if let Some(mut image) = state.updates.pop_front() {
                let missed = state.missed.get_mut(image.instrument as usize);
                image.missed = missed.map_or(0, std::mem::take);
                return Popped::Update(image);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Popped::Nothing;
            }
            state = self.filled.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Has the next update write a byte to [`Queue::fd`]; `false` if there is something to read already.
    pub(crate) fn watch(&self) -> bool {
        let mut state = self.lock();
        state.is_watched = state.updates.is_empty() && !state.is_closed;
        state.is_watched
    }

    /// The file descriptor that becomes readable.
    pub(crate) fn fd(&self) -> i32 {
        self.woken.as_raw_fd()
    }

    /// Takes the bytes that woke the event loop.
    pub(crate) fn drain(&self) {
        let mut bytes = [0; 64];
        while matches!((&self.woken).read(&mut bytes), Ok(len) if len > 0) {}
    }

    /// Updates that were dropped since the start.
    pub(crate) fn missed_total(&self) -> u64 {
        self.lock().missed_total
    }
}

/// How long a wait goes on before signals are looked at.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(50);
