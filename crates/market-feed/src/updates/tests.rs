//! What the tests of this folder share.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tt_status::market_streams::Sink;

/// A reader that keeps every message, once it is flushed.
#[derive(Debug, Default)]
pub(super) struct Kept(pub(super) Mutex<Vec<Value>>, Mutex<Vec<Value>>);

impl Sink for Kept {
    fn has_room(&self) -> bool {
        true
    }

    fn offer(&self, message: &Arc<str>) -> bool {
        self.1.lock().unwrap().push(serde_json::from_str(message).unwrap());
        true
    }

    fn flush(&self) {
        self.0.lock().unwrap().append(&mut self.1.lock().unwrap());
    }
}
