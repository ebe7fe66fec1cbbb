//! Numbers of messages.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tt_status::accounting::Count;
use tt_status::allocation_messages::MessageStatus;

/// Why a message is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageLoss {
    /// The queue of the thread was full.
    QueueFull,
    /// The queue of the engine was full.
    EngineQueueFull,
    /// The database was away.
    NoConnection,
    /// The connection broke, or the database answered with an error. It may have taken the message.
    SendFailed,
}

impl MessageLoss {
    const ALL: [Self; 4] = [Self::QueueFull, Self::EngineQueueFull, Self::NoConnection, Self::SendFailed];

    const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::EngineQueueFull => "engine_queue_full",
            Self::NoConnection => "no_connection",
            Self::SendFailed => "send_failed",
        }
    }
}

/// Numbers of messages since the start.
#[derive(Debug, Default)]
pub(crate) struct MessageCounts {
    is_up: AtomicBool,
    input: AtomicU64,
    published: AtomicU64,
    dropped: [AtomicU64; MessageLoss::ALL.len()],
}

impl MessageCounts {
    /// Counts messages that a worker has.
    pub(super) fn take(&self, messages: u64) {
        self.input.fetch_add(messages, Ordering::Relaxed);
    }

    pub(super) fn publish(&self, messages: u64) {
        self.published.fetch_add(messages, Ordering::Relaxed);
    }

    pub(super) fn lose(&self, loss: MessageLoss, messages: u64) {
        self.dropped[loss as usize].fetch_add(messages, Ordering::Relaxed);
    }

    pub(super) fn set_up(&self, is_up: bool) {
        self.is_up.store(is_up, Ordering::Relaxed);
    }

    pub(crate) fn status(&self) -> MessageStatus {
        let dropped = |loss: MessageLoss| self.dropped[loss as usize].load(Ordering::Relaxed);
        MessageStatus {
            is_up: self.is_up.load(Ordering::Relaxed),
            // What comes in between does not make the sum larger than this.
            dropped: MessageLoss::ALL.map(|loss| Count { name: loss.name(), count: dropped(loss) }).to_vec(),
            published: self.published.load(Ordering::Relaxed),
            input: self.input.load(Ordering::Relaxed),
        }
    }
}
