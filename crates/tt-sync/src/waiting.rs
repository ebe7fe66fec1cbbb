//! Ends that wait: for room, for an event, or for the other end to be gone.
//!
//! Both ends of a ring wait by strategies of one kind: an end that parks is woken by the other's [`Park`] alone.
//!
//! [`Park`] loses no wake-up. An end that found nothing swaps [`LISTENING`] into its bell with Acquire, looks once more, and
//! only then sleeps, if the bell still says so. The other end, after it changed the ring, swaps the bell back with Release.
//! Swaps of one word stand in one order: either the other's comes later, then it sees that somebody listens and wakes; or
//! it came earlier, then the listener's swap has synchronised with it and its second look sees the change.

use crate::spsc::{Consumer, End, Place, Producer, Sealed, ring};
use crate::sync::{AtomicU32, Ordering, spin_loop};
use core::fmt;

#[cfg(test)]
mod tests;

/// What a bell says while its end sleeps or is about to.
pub const LISTENING: u32 = 1;
const QUIET: u32 = 0;

/// How an end waits.
pub trait Strategy {
    /// Calls `look` on `end` until it finds something.
    fn wait<E: RingEnd, R>(&self, end: &mut E, look: impl FnMut(&mut E) -> Option<R>) -> R;

    /// Tells who waits at `bell` that something has changed.
    fn wake(&self, bell: &AtomicU32);
}

/// Looks again at once, with the CPU's pause in between: the quickest, for a core of one's own.
#[derive(Clone, Copy, Debug)]
pub struct Spin;

impl Strategy for Spin {
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

/// Calls what it holds between two looks, such as `std::thread::yield_now`: for cores that others want, too.
#[derive(Clone, Copy, Debug)]
pub struct Yield<Y>(pub Y);

impl<Y: Fn()> Strategy for Yield<Y> {
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

/// Looks a few times and then sleeps until the other end wakes it. Costs each change of the ring one atomic swap.
#[derive(Clone, Copy, Debug)]
pub struct Park<S, W> {
    /// How often to look, with the CPU's pause in between, before going to sleep.
    pub looks: u32,
    /// Sleeps at a word unless that differs from the number; may return early. As `futex(2)`'s wait.
    pub sleep: S,
    /// Wakes who sleeps at the word. As `futex(2)`'s wake.
    pub wake: W,
}

impl<S: Fn(&AtomicU32, u32), W: Fn(&AtomicU32)> Strategy for Park<S, W> {
    #[inline]
    fn wait<E: RingEnd, R>(&self, end: &mut E, mut look: impl FnMut(&mut E) -> Option<R>) -> R {
        for _ in 0..self.looks {
            if let Some(found) = look(end) {
                return found;
            }
            spin_loop();
        }
        loop {
            end.bell().swap(LISTENING, Ordering::Acquire);
            if let Some(found) = look(end) {
                return found;
            }
            (self.sleep)(end.bell(), LISTENING);
        }
    }

    #[inline]
    fn wake(&self, bell: &AtomicU32) {
        if bell.swap(QUIET, Ordering::Release) == LISTENING {
            (self.wake)(bell);
        }
    }
}

/// Why an end waits no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The other end is gone, and for a consumer: everything that it pushed is popped.
    Gone,
    /// What the other end wrote beside the events cannot be right ([`Producer::is_corrupt`], [`Consumer::is_corrupt`]).
    Corrupt,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gone => "the other end is gone",
            Self::Corrupt => "the ring is corrupt",
        })
    }
}

impl core::error::Error for Ended {}

/// [`Producer`] or [`Consumer`], in whatever place.
pub trait RingEnd: Sealed {
    /// The word on which this end sleeps.
    fn bell(&self) -> &AtomicU32;
    /// The word on which the other end sleeps.
    fn other_bell(&self) -> &AtomicU32;
    /// Tells the other end that this one is gone.
    fn leave(&self);
}

impl<T: Copy + Send, P: Place<T>> Sealed for Producer<T, P> {}

impl<T: Copy + Send, P: Place<T>> RingEnd for Producer<T, P> {
    #[inline]
    fn bell(&self) -> &AtomicU32 {
        self.place().bell(End::Producer)
    }

    #[inline]
    fn other_bell(&self) -> &AtomicU32 {
        self.place().bell(End::Consumer)
    }

    fn leave(&self) {
        Self::leave(self);
    }
}

impl<T: Copy + Send, P: Place<T>> Sealed for Consumer<T, P> {}

impl<T: Copy + Send, P: Place<T>> RingEnd for Consumer<T, P> {
    #[inline]
    fn bell(&self) -> &AtomicU32 {
        self.place().bell(End::Consumer)
    }

    #[inline]
    fn other_bell(&self) -> &AtomicU32 {
        self.place().bell(End::Producer)
    }

    fn leave(&self) {
        Self::leave(self);
    }
}

/// An end of a ring that waits by strategy `S`. Dropped, it wakes the other end.
#[derive(Debug)]
pub struct Waiting<E: RingEnd, S: Strategy> {
    end: E,
    strategy: S,
}

/// As [`ring`], with both ends waiting by `strategy`.
///
/// ```
/// use tt_sync::waiting::{Ended, Yield, waiting_ring};
///
/// let (mut producer, mut consumer) = waiting_ring::<u64, _>(2, Yield(std::thread::yield_now));
/// let producing = std::thread::spawn(move || (0..9).try_for_each(|number| producer.push(number)));
/// for number in 0..9 {
///     assert_eq!(consumer.pop(), Ok(number));
/// }
/// assert_eq!(consumer.pop(), Err(Ended::Gone));
/// assert_eq!(producing.join().expect("the producer failed"), Ok(()));
/// ```
///
/// # Panics
/// As [`ring`].
#[must_use]
pub fn waiting_ring<T: Copy + Send, S: Strategy + Clone>(
    capacity: usize,
    strategy: S,
) -> (Waiting<Producer<T>, S>, Waiting<Consumer<T>, S>) {
    let (producer, consumer) = ring(capacity);
    (Waiting::new(producer, strategy.clone()), Waiting::new(consumer, strategy))
}

impl<E: RingEnd, S: Strategy> Waiting<E, S> {
    /// Lets `end` wait by `strategy`, which must be of the kind by which the other end waits.
    #[must_use]
    pub fn new(end: E, strategy: S) -> Self {
        Self { end, strategy }
    }

    /// The end itself, for what never waits.
    #[must_use]
    pub fn end(&self) -> &E {
        &self.end
    }

    /// Wakes the other end if it sleeps.
    #[inline]
    fn wake_other(&self) {
        self.strategy.wake(self.end.other_bell());
    }
}

impl<T: Copy + Send, P: Place<T>, S: Strategy> Waiting<Producer<T, P>, S> {
    /// Appends `event`; waits while there is no room.
    ///
    /// # Errors
    /// [`Ended`] if the consumer is gone or the ring is corrupt; the event is not in the ring.
    #[inline]
    pub fn push(&mut self, event: T) -> Result<(), Ended> {
        self.push_slice(&[event])
    }

    /// Appends all of `events`, in batches as room comes; waits for it.
    ///
    /// # Errors
    /// [`Ended`] if the consumer is gone or the ring is corrupt; some of the first events may be in the ring.
    #[inline]
    pub fn push_slice(&mut self, mut events: &[T]) -> Result<(), Ended> {
        while !events.is_empty() {
            let pushed = self.strategy.wait(&mut self.end, |end| {
                if end.is_abandoned() {
                    return Some(Err(Ended::Gone));
                }
                match end.push_slice(events) {
                    0 => end.is_corrupt().then_some(Err(Ended::Corrupt)),
                    pushed => Some(Ok(pushed)),
                }
            })?;
            events = &events[pushed..];
            self.wake_other();
        }
        Ok(())
    }
}

impl<T: Copy + Send, P: Place<T>, S: Strategy> Waiting<Consumer<T, P>, S> {
    /// Takes the oldest event; waits while there is none.
    ///
    /// # Errors
    /// [`Ended`] if the producer is gone and all it pushed is popped, or the ring is corrupt.
    #[inline]
    pub fn pop(&mut self) -> Result<T, Ended> {
        self.wait(|consumer| consumer.pop())
    }

    /// Shows the oldest events to `visit`, in place and in order, at most `count_max`, and at least one: waits while there
    /// is none. Returns how many.
    ///
    /// # Errors
    /// As [`pop`](Self::pop).
    #[inline]
    pub fn drain(&mut self, count_max: usize, mut visit: impl FnMut(&T)) -> Result<usize, Ended> {
        self.wait(|consumer| Some(consumer.drain(count_max.max(1), &mut visit)).filter(|count| *count != 0))
    }

    #[inline]
    fn wait<R>(&mut self, mut take: impl FnMut(&mut Consumer<T, P>) -> Option<R>) -> Result<R, Ended> {
        let taken = self.strategy.wait(&mut self.end, |consumer| {
            if let Some(taken) = take(consumer) {
                return Some(Ok(taken));
            }
            if consumer.is_abandoned() {
                // What was pushed between the first look and the producer's end.
                return Some(take(consumer).ok_or(Ended::Gone));
            }
            consumer.is_corrupt().then_some(Err(Ended::Corrupt))
        });
        self.wake_other();
        taken
    }
}

impl<E: RingEnd, S: Strategy> Drop for Waiting<E, S> {
    fn drop(&mut self) {
        self.end.leave();
        self.wake_other();
    }
}
