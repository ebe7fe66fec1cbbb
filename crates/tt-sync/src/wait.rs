//! Blocking ends of a ring: they wait for room, for an event, or until the other end is closed.
//!
//! Both ends of a ring must use the same kind of strategy: only the other end's [`Park`] wakes an end that parks.
//!
//! [`Park`] loses no wake-up. An end that found nothing swaps [`SLEEPING`] into its wake word with Acquire, looks once
//! more, and sleeps only if the word is still [`SLEEPING`]. The other end, after it changed the ring, swaps the word
//! back with Release. All swaps of one word have one order. If the other end's swap is later, it sees [`SLEEPING`] and
//! wakes the sleeper. If it is earlier, the sleeper's swap synchronises with it, and the second look sees the change.

use crate::spsc::{Consumer, End, Producer, Sealed, Storage, ring};
use crate::sync::{AtomicU32, Ordering, spin_loop};
use core::fmt;

#[cfg(test)]
mod tests;

/// Value of a wake word while its end sleeps or is about to.
pub const SLEEPING: u32 = 1;
const AWAKE: u32 = 0;

/// A way to wait.
pub trait WaitStrategy {
    /// Calls `look` on `end` until it finds something.
    fn wait<E: RingEnd, R>(&self, end: &mut E, look: impl FnMut(&mut E) -> Option<R>) -> R;

    /// Wakes the end that sleeps on `wake_word`, after a change.
    fn wake(&self, wake_word: &AtomicU32);
}

/// Polls with the CPU's pause instruction: the lowest latency, for a dedicated core.
#[derive(Clone, Copy, Debug)]
pub struct Spin;

impl WaitStrategy for Spin {
    #[inline]
    fn wait<E: RingEnd, R>(&self, end: &mut E, mut look: impl FnMut(&mut E) -> Option<R>) -> R {
        loop {
            if let Some(found) = look(end) {
                return found;
            }
            spin_loop();
        }
    }

    #[inline]
    fn wake(&self, _bell: &AtomicU32) {}
}

/// Calls a function between two polls, such as `std::thread::yield_now`: for a core that other threads need, too.
#[derive(Clone, Copy, Debug)]
pub struct Yield<Y>(pub Y);

impl<Y: Fn()> WaitStrategy for Yield<Y> {
    #[inline]
    fn wait<E: RingEnd, R>(&self, end: &mut E, mut look: impl FnMut(&mut E) -> Option<R>) -> R {
        loop {
            if let Some(found) = look(end) {
                return found;
            }
            (self.0)();
        }
    }

    #[inline]
    fn wake(&self, _bell: &AtomicU32) {}
}

/// Polls a few times, then sleeps until the other end wakes it. Adds one atomic swap to each change of the ring.
#[derive(Clone, Copy, Debug)]
pub struct Park<S, W> {
    /// Number of polls before going to sleep.
    pub polls: u32,
    /// Sleeps on a word unless it differs from the number, like `futex(2)`'s wait; may return early.
    pub sleep: S,
    /// Wakes all who sleep on the word, like `futex(2)`'s wake.
    pub wake: W,
}

impl<S: Fn(&AtomicU32, u32), W: Fn(&AtomicU32)> WaitStrategy for Park<S, W> {
    #[inline]
    fn wait<E: RingEnd, R>(&self, end: &mut E, mut look: impl FnMut(&mut E) -> Option<R>) -> R {
        for _ in 0..self.polls {
            if let Some(found) = look(end) {
                return found;
            }
            spin_loop();
        }
        loop {
            end.wake_word().swap(SLEEPING, Ordering::Acquire);
            if let Some(found) = look(end) {
                return found;
            }
            (self.sleep)(end.wake_word(), SLEEPING);
        }
    }

    #[inline]
    fn wake(&self, wake_word: &AtomicU32) {
        if wake_word.swap(AWAKE, Ordering::Release) == SLEEPING {
            (self.wake)(wake_word);
        }
    }
}

/// Reason why a wait ended without success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitError {
    /// The other end is closed; for a consumer, all pushed events are popped.
    Closed,
    /// The other end wrote an invalid position ([`Producer::is_corrupt`], [`Consumer::is_corrupt`]).
    Corrupt,
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "the other end is closed",
            Self::Corrupt => "the ring is corrupt",
        })
    }
}

impl core::error::Error for WaitError {}

/// A [`Producer`] or [`Consumer`]. Sealed.
pub trait RingEnd: Sealed {
    /// Returns the word on which this end sleeps.
    fn wake_word(&self) -> &AtomicU32;
    /// Returns the word on which the other end sleeps.
    fn other_wake_word(&self) -> &AtomicU32;
    /// Closes this end.
    fn close(&self);
}

impl<T: Copy + Send, P: Storage<T>> Sealed for Producer<T, P> {}

impl<T: Copy + Send, P: Storage<T>> RingEnd for Producer<T, P> {
    #[inline]
    fn wake_word(&self) -> &AtomicU32 {
        self.storage().wake_word(End::Producer)
    }

    #[inline]
    fn other_wake_word(&self) -> &AtomicU32 {
        self.storage().wake_word(End::Consumer)
    }

    fn close(&self) {
        Self::close(self);
    }
}

impl<T: Copy + Send, P: Storage<T>> Sealed for Consumer<T, P> {}

impl<T: Copy + Send, P: Storage<T>> RingEnd for Consumer<T, P> {
    #[inline]
    fn wake_word(&self) -> &AtomicU32 {
        self.storage().wake_word(End::Consumer)
    }

    #[inline]
    fn other_wake_word(&self) -> &AtomicU32 {
        self.storage().wake_word(End::Producer)
    }

    fn close(&self) {
        Self::close(self);
    }
}

/// An end of a ring that waits by strategy `S`. When it is dropped, it wakes the other end.
#[derive(Debug)]
pub struct Blocking<E: RingEnd, S: WaitStrategy> {
    end: E,
    strategy: S,
}

/// Creates a ring like [`ring`], both ends of which wait by `strategy`.
///
/// ```
/// use tt_sync::wait::{WaitError, Yield, blocking_ring};
///
/// let (mut producer, mut consumer) = blocking_ring::<u64, _>(2, Yield(std::thread::yield_now));
/// let producing = std::thread::spawn(move || (0..9).try_for_each(|number| producer.push(number)));
/// for number in 0..9 {
///     assert_eq!(consumer.pop(), Ok(number));
/// }
/// assert_eq!(consumer.pop(), Err(WaitError::Closed));
/// assert_eq!(producing.join().expect("the producer failed"), Ok(()));
/// ```
///
/// # Panics
/// Like [`ring`].
#[must_use]
pub fn blocking_ring<T: Copy + Send, S: WaitStrategy + Clone>(
    capacity: usize,
    strategy: S,
) -> (Blocking<Producer<T>, S>, Blocking<Consumer<T>, S>) {
    let (producer, consumer) = ring(capacity);
    (Blocking::new(producer, strategy.clone()), Blocking::new(consumer, strategy))
}

impl<E: RingEnd, S: WaitStrategy> Blocking<E, S> {
    /// Makes `end` wait by `strategy`, which must be of the same kind as the other end's.
    #[must_use]
    pub fn new(end: E, strategy: S) -> Self {
        Self { end, strategy }
    }

    /// Returns the end, for calls that do not wait.
    #[must_use]
    pub fn end(&self) -> &E {
        &self.end
    }

    /// Wakes the other end if it sleeps.
    #[inline]
    fn wake_other(&self) {
        self.strategy.wake(self.end.other_wake_word());
    }
}

impl<T: Copy + Send, P: Storage<T>, S: WaitStrategy> Blocking<Producer<T, P>, S> {
    /// Appends `event`; waits while the ring is full.
    ///
    /// # Errors
    /// [`WaitError`] if the consumer is closed or the ring is corrupt; the event is not in the ring.
    #[inline]
    pub fn push(&mut self, event: T) -> Result<(), WaitError> {
        self.push_slice(&[event])
    }

    /// Appends all of `events`, in batches; waits while the ring is full.
    ///
    /// # Errors
    /// [`WaitError`] if the consumer is closed or the ring is corrupt; some of the first events may be in the ring.
    #[inline]
    pub fn push_slice(&mut self, mut events: &[T]) -> Result<(), WaitError> {
        while !events.is_empty() {
            let pushed = self.strategy.wait(&mut self.end, |end| {
                if end.is_abandoned() {
                    return Some(Err(WaitError::Closed));
                }
                match end.push_slice(events) {
                    0 => end.is_corrupt().then_some(Err(WaitError::Corrupt)),
                    pushed => Some(Ok(pushed)),
                }
            })?;
            events = &events[pushed..];
            self.wake_other();
        }
        Ok(())
    }
}

impl<T: Copy + Send, P: Storage<T>, S: WaitStrategy> Blocking<Consumer<T, P>, S> {
    /// Removes and returns the oldest event; waits while the ring is empty.
    ///
    /// # Errors
    /// [`WaitError`] if the producer is closed and the ring is empty, or the ring is corrupt.
    #[inline]
    pub fn pop(&mut self) -> Result<T, WaitError> {
        self.wait(|consumer| consumer.pop())
    }

    /// Calls `visit` with the oldest events, at least one and at most `count_max`, in place and in order, and returns
    /// their number; waits while the ring is empty.
    ///
    /// # Errors
    /// Like [`pop`](Self::pop).
    #[inline]
    pub fn drain(&mut self, count_max: usize, mut visit: impl FnMut(&T)) -> Result<usize, WaitError> {
        self.wait(|consumer| Some(consumer.drain(count_max.max(1), &mut visit)).filter(|count| *count != 0))
    }

    #[inline]
    fn wait<R>(&mut self, mut take: impl FnMut(&mut Consumer<T, P>) -> Option<R>) -> Result<R, WaitError> {
        let taken = self.strategy.wait(&mut self.end, |consumer| {
            if let Some(taken) = take(consumer) {
                return Some(Ok(taken));
            }
            if consumer.is_abandoned() {
                // Events that were pushed between the first look and the close.
                return Some(take(consumer).ok_or(WaitError::Closed));
            }
            consumer.is_corrupt().then_some(Err(WaitError::Corrupt))
        });
        self.wake_other();
        taken
    }
}

impl<E: RingEnd, S: WaitStrategy> Drop for Blocking<E, S> {
    fn drop(&mut self) {
        self.end.close();
        self.wake_other();
    }
}
