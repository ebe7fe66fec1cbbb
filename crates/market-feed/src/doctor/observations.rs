//! What arrived, and what was odd about it.

use std::collections::BTreeMap;

use serde_json::Value;
use tt_market::DropReason;
use tt_model::sort_short_by_key;
use tt_venue::ParseError;
use tt_venue::Venue;
use tt_venue::event::{Control, Event};

use super::keys;

/// Lags that are kept.
const LAGS_MAX: usize = 1 << 20;

/// Frames of one kind that are odd in one way: how many, and the first of them.
#[derive(Debug)]
pub(super) struct Oddity {
    pub(super) count: u64,
    pub(super) first: String,
}

/// What has arrived on a connection.
#[derive(Debug, Default)]
pub(super) struct Observations {
    /// WebSocket messages with text or bytes.
    pub(super) frames: u64,
    /// Bytes of those.
    pub(super) bytes: u64,
    /// Frames by their content.
    pub(super) kinds: BTreeMap<&'static str, u64>,
    /// Frames that were dropped.
    pub(super) dropped: BTreeMap<DropReason, Oddity>,
    /// Frames whose keys came in another order than the venue's usual one.
    pub(super) general: BTreeMap<&'static str, Oddity>,
    /// Frames with a key that the venue does not document.
    pub(super) unknown: BTreeMap<String, Oddity>,
    /// The frame after which an update was missing.
    pub(super) gap: Option<String>,
    /// The venue's pings by WebSocket frames.
    pub(super) pings: u64,
    /// Answers to pings of ours.
    pub(super) pongs: u64,
    /// Acceptances of requests.
    pub(super) accepted: u64,
    lags_ns: Vec<i64>,
}

impl Observations {
    /// Takes note of a frame: what it was read as, and whether in the usual form.
    pub(super) fn note(&mut self, venue: Venue, text: &str, read: Result<&Event, ParseError>, is_general: bool) {
        self.frames += 1;
        self.bytes += text.len() as u64;
        let Ok(event) = read else { return };
        let kind = kind(event);
        *self.kinds.entry(kind).or_default() += 1;
        if let Event::Control(control) = event {
            self.pongs += u64::from(*control == Control::Pong);
            self.accepted += u64::from(*control == Control::Accepted);
        } else if is_general {
            count(&mut self.general, kind, text);
        }
        if let Ok(frame) = serde_json::from_str::<Value>(text)
            && let Some(key) = keys::unknown(venue, &frame)
        {
            count(&mut self.unknown, key.to_owned(), text);
        }
    }

    /// Takes note of a frame that was dropped.
    pub(super) fn drop(&mut self, fault: DropReason, text: &str) {
        count(&mut self.dropped, fault, text);
    }

    /// Takes note of a frame's age.
    pub(super) fn lag(&mut self, lag_ns: i64) {
        if self.lags_ns.len() < LAGS_MAX {
            self.lags_ns.push(lag_ns);
        }
    }

    /// Lags in their order.
    pub(super) fn sorted_lags_ns(&self) -> Vec<i64> {
        let mut lags = self.lags_ns.clone();
        sort_short_by_key(&mut lags, |lag| *lag);
        lags
    }
}

fn count<K: Ord>(odd: &mut BTreeMap<K, Oddity>, key: K, text: &str) {
    odd.entry(key).or_insert_with(|| Oddity { count: 0, first: text.to_owned() }).count += 1;
}

/// The content of a frame, by name.
const fn kind(event: &Event) -> &'static str {
    match event {
        Event::BookTicker(_) => "best_levels",
        Event::Tickers => "ticker",
        Event::Trades => "trades",
        Event::Candles => "candles",
        Event::Liquidations => "liquidations",
        Event::BookDelta(_) => "book_delta",
        Event::BookSnapshot(_) => "book_snapshot",
        Event::BookOrders(_) => "book_orders",
        Event::MarkPrice(_) => "mark_price",
        Event::OrderUpdates | Event::OrderList(_) => "orders",
        Event::Account => "account",
        Event::Control(_) => "control",
    }
}
