//! The send queue of a connection.

use super::framing::{Framed, Turn, frame};

/// Unsent bytes of messages.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) bytes: Vec<u8>,
    /// Bytes at the front that have left.
    sent: usize,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.sent == self.bytes.len()
    }

    /// The unsent bytes.
    pub(super) fn front(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// The next message to send, with its padding. It gets a separate TLS record, because some clients take a record
    /// for a message.
    pub(super) fn front_message(&self) -> &[u8] {
        let waiting = self.front();
        match frame(waiting, Turn::Later) {
            Ok(Framed::Whole { len, padding }) => &waiting[..waiting.len().min(len + padding)],
            Ok(Framed::Part { .. }) | Err(_) => waiting,
        }
    }

    pub(super) fn leave(&mut self, len: usize) {
        self.sent += len;
        if self.sent == self.bytes.len() {
            // A connection that has nothing to send holds no memory for it.
            *self = Self::default();
        } else if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }
}
