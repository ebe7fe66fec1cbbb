//! Messages about allocations for a database of statistics, as coturn's `redis-statsdb` sends them.

use serde::Serialize;

use crate::accounting::Count;

/// One message, and what becomes of the key that has its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocationMessage {
    /// The channel, and the name of the key.
    pub key: String,
    /// The text.
    pub text: String,
    /// The change of the key before the message is published.
    pub change: KeyChange,
}

/// A change of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyChange {
    /// None.
    Keep,
    /// It gets the text for this time.
    Set {
        /// Seconds after which the database removes the key.
        lifetime_s: u32,
    },
    /// It is removed.
    Remove,
}

/// A connection to a database of statistics.
pub trait MessageOutput: Send {
    /// Sends messages in their order, and waits until the database has taken them. Connects before, if there is no
    /// connection. Without messages, it asks whether the database answers.
    ///
    /// # Errors
    /// The cause, without a credential. The database may have taken some of the messages; the next call connects again.
    fn send(&mut self, messages: &[AllocationMessage]) -> Result<(), String>;
}

/// Messages since the start: `input = published + sum(dropped)` once none waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MessageStatus {
    /// Whether the database answered the last time.
    pub is_up: bool,
    /// Messages that workers had.
    pub input: u64,
    /// Those of them that the database has taken.
    pub published: u64,
    /// Those of them that are lost, by reason.
    pub dropped: Vec<Count>,
}
