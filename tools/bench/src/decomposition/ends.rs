//! The two ends of a queue and the stamps, with what a build adds. One piece of code for all builds of a queue: a part that
//! a build does not have is a delay of no steps or a `None`.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tt_meter::Clock;
use tt_model::OrderTerms;
use tt_sync::spsc::{Consumer, Producer, ring};

use crate::loops::Delay;
use crate::loops::hand_over::{Receives, Sends, Stamps};

/// Slots of a ring that never leaves its core.
const OWN_SLOTS: usize = 64;

/// 0, known only once `spent` is.
#[inline(always)]
fn zero_after(spent: u64) -> u64 {
    black_box(spent) & black_box(0)
}

/// A line that goes with each message.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct SecondLine(AtomicU64);

/// A ring with both ends at one thread.
struct OwnRing {
    producer: Producer<OrderTerms>,
    consumer: Consumer<OrderTerms>,
}

impl OwnRing {
    fn new() -> Self {
        let (producer, consumer) = ring(OWN_SLOTS);
        Self { producer, consumer }
    }
}

/// The sender of a build.
pub(super) struct TermSender<S> {
    sender: S,
    delay: Delay,
    push: Option<OwnRing>,
    second: Option<Arc<SecondLine>>,
    sent: u64,
}

impl<S> TermSender<S> {
    pub(super) fn new(sender: S, delay: Delay, has_push: bool, second: Option<Arc<SecondLine>>) -> Self {
        Self { sender, delay, push: has_push.then(OwnRing::new), second, sent: 0 }
    }
}

impl<S: Sends> Sends for TermSender<S> {
    #[inline(always)]
    fn send(&mut self, mut terms: OrderTerms) -> bool {
        terms.client_id ^= zero_after(self.delay.spend(terms.ts_ns));
        if let Some(push) = &mut self.push {
            let _ = push.producer.push(terms);
        }
        if let Some(second) = &self.second {
            self.sent += 1;
            second.0.store(self.sent, Ordering::Release);
        }
        self.sender.send(terms)
    }

    fn settle(&mut self) {
        if let Some(push) = &mut self.push {
            black_box(push.consumer.pop());
        }
    }
}

/// The receiver of a build.
pub(super) struct TermReceiver<R> {
    receiver: R,
    delay: Delay,
    look: Option<OwnRing>,
    second: Option<Arc<SecondLine>>,
    received: u64,
}

impl<R> TermReceiver<R> {
    pub(super) fn new(receiver: R, delay: Delay, has_look: bool, second: Option<Arc<SecondLine>>) -> Self {
        let mut receiver = Self { receiver, delay, look: has_look.then(OwnRing::new), second, received: 0 };
        receiver.fill();
        receiver
    }

    /// Puts an event of zeros where the next look finds it.
    fn fill(&mut self) {
        if let Some(look) = &mut self.look {
            let _ = look.producer.push(OrderTerms::default());
        }
    }
}

impl<R: Receives> Receives for TermReceiver<R> {
    #[inline(always)]
    fn receive(&mut self) -> Option<(u64, OrderTerms)> {
        let (number, mut terms) = self.receiver.receive()?;
        if let Some(second) = &self.second {
            // Written before the message: another number makes the event a wrong one.
            self.received += 1;
            terms.client_id ^= second.0.load(Ordering::Acquire) ^ self.received;
        }
        if let Some(look) = &mut self.look {
            // A look that finds nothing makes the event a wrong one.
            terms.client_id ^= look.consumer.pop_numbered().map_or(1, |(_, found)| found.client_id);
        }
        terms.client_id ^= zero_after(self.delay.spend(terms.client_id));
        Some((number, terms))
    }

    fn settle(&mut self) {
        self.fill();
    }
}

/// The stamps of a build: closing ones beyond the first, and a delay before each of these.
#[derive(Clone, Copy, Debug)]
pub(super) struct TermStamps {
    pub(super) clock: Clock,
    pub(super) extra: u8,
    pub(super) delay: Delay,
}

impl Stamps for TermStamps {
    #[inline(always)]
    fn before(self) -> u64 {
        self.clock.start().0
    }

    #[inline(always)]
    fn after(self) -> u64 {
        let mut stamp = self.clock.end().0;
        for _ in 0..self.extra {
            black_box(self.delay.spend(stamp));
            stamp = self.clock.end().0;
        }
        stamp
    }
}
