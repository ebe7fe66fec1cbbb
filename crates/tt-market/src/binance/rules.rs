//! How Binance numbers its updates, and how a snapshot joins the stream.

use crate::BookDelta;
use crate::continuity::{Continuity, Join};

/// Where a delta stands after update `last_id` on spot: it must begin with the very next update.
#[inline]
pub(crate) fn continuity_spot(last_id: u64, delta: &BookDelta) -> Continuity {
    if delta.first_id == last_id.wrapping_add(1) && delta.last_id >= delta.first_id {
        Continuity::Next
    } else if delta.last_id <= last_id {
        Continuity::Duplicate
    } else {
        Continuity::Gap
    }
}

/// Where a delta stands after update `last_id` on USD-M: it must name that very update as the one before.
#[inline]
pub(crate) fn continuity_usdm(last_id: u64, delta: &BookDelta) -> Continuity {
    if delta.previous_id == Some(last_id) && delta.last_id >= last_id {
        Continuity::Next
    } else if delta.last_id <= last_id {
        Continuity::Duplicate
    } else {
        Continuity::Gap
    }
}

/// How a delta joins a snapshot of update `last_id` on spot: drop `u <= last_id`; the first must include the next one.
pub(crate) fn join_spot(last_id: u64, delta: &BookDelta) -> Join {
    if delta.last_id <= last_id {
        Join::Superseded
    } else if delta.first_id <= last_id.saturating_add(1) {
        Join::Next
    } else {
        Join::TooNew
    }
}

/// How a delta joins a snapshot of update `last_id` on USD-M: drop `u < last_id`; the first must include `last_id`.
pub(crate) fn join_usdm(last_id: u64, delta: &BookDelta) -> Join {
    if delta.last_id < last_id {
        Join::Superseded
    } else if delta.first_id <= last_id || delta.previous_id == Some(last_id) {
        Join::Next
    } else {
        Join::TooNew
    }
}
