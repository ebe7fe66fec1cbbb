//! Whole books, and streams of every update: what the market engine's driver offers to the control plane.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::market::{Contract, Level};
use crate::market_account::AccountState;

/// What a stream carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// Books: a snapshot, then each update.
    Books {
        /// The best levels of each side; all levels if absent.
        depth: Option<usize>,
        /// At most one message in this time, which has all changes; each update if absent.
        every: Option<Duration>,
    },
    /// Trades: those that are shown, then each one.
    Trades,
    /// Liquidations: the last one if there was any, then each one.
    Liquidations,
}

/// The receiving end of a stream. Its methods never block.
pub trait Sink: Debug + Send + Sync {
    /// Returns whether a reader that lost messages can go on: there is room for a mark and a snapshot of any size.
    fn has_room(&self) -> bool;
    /// Takes a message of JSON; `false` if there is no room, and the message is lost.
    fn offer(&self, message: &Arc<str>) -> bool;
    /// Sends what was offered, as far as that is possible without waiting. To be called after the last of several offers.
    fn flush(&self);
}

/// Whole books and streams.
pub trait MarketStreams: Send + Sync {
    /// Returns the best `depth` levels of each side of an instrument's book.
    fn book(&self, instrument: u32, depth: usize) -> Option<WholeBook>;
    /// Returns candles of an instrument's past.
    fn candles(&self, instrument: u32, asked: &CandleQuestion) -> Option<CandleHistory>;
    /// Returns every order of the best `depth` levels of each side, of those `instruments` that are followed order by order.
    /// It may wait for a part of a second.
    fn orders(&self, instruments: &[u32], depth: usize) -> Vec<(u32, BookOrders)>;
    /// Sends the streams of `instruments` to `sink` until it is dropped.
    fn subscribe(&self, instruments: &[u32], kind: StreamKind, sink: &Arc<dyn Sink>);
    /// Returns the accounts that feeds have logged in to, or that were set up.
    fn accounts(&self) -> Vec<AccountState>;
    /// Sends every change of the accounts of `venue`, or of all, to `sink` until it is dropped.
    fn subscribe_accounts(&self, venue: Option<&str>, sink: &Arc<dyn Sink>);
    /// Returns what was sent and lost since the start.
    fn counts(&self) -> StreamCounts;
}

/// What was sent to readers of streams, and lost, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamCounts {
    /// Messages handed to readers.
    pub messages: u64,
    /// Marks of lost messages.
    pub gaps: u64,
    /// Messages that a slow reader lost.
    pub lost: u64,
    /// Updates that found no room between a feed and the streams. Every reader gets a mark and a snapshot.
    pub lost_by_feeds: u64,
}

/// The prices between which every level of a book is known. Of levels beyond, only those are known that changed since
/// the book began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KnownRange {
    /// The lowest such price of the bids; absent if all bids are known.
    pub bid_px: Option<String>,
    /// The highest such price of the asks, likewise.
    pub ask_px: Option<String>,
}

/// A book with all of its followed levels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WholeBook {
    /// The bids, best first.
    pub bids: Vec<Level>,
    /// The asks, best first.
    pub asks: Vec<Level>,
    /// How many bids are followed.
    pub bid_levels: usize,
    /// How many asks are followed.
    pub ask_levels: usize,
    /// The last update that is included.
    pub update_id: u64,
    /// The venue's time of that update, nanoseconds of the Unix epoch; absent if the venue sends none.
    pub ts_event: Option<u64>,
    /// When its frame was received, or the proof changed; nanoseconds of the Unix epoch. Absent before the first one.
    pub ts_recv: Option<u64>,
    /// The proof of the last verification.
    pub proof: &'static str,
    /// The update at which it was verified.
    pub proof_update_id: u64,
    /// Time since the last verification, milliseconds; absent if there was none.
    pub proof_age_ms: Option<f64>,
    /// Time since the last update, milliseconds.
    pub age_ms: Option<f64>,
    /// Whether levels far from the best price were dropped at a capacity.
    pub is_truncated: bool,
    /// The prices between which every level is known, where the book began with a snapshot of limited depth; absent if it
    /// is known whole.
    pub known_range: Option<KnownRange>,
    /// The price step.
    pub tick_size: String,
    /// The quantity step.
    pub lot_size: String,
    /// The unit of quantities.
    pub contract: Contract,
}

/// Every order of a book's best levels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BookOrders {
    /// The bids, best first.
    pub bids: Vec<OrderLevel>,
    /// The asks, best first.
    pub asks: Vec<OrderLevel>,
    /// When the last frame of the book was received, nanoseconds of the Unix epoch; absent before the first one.
    pub ts_recv: Option<u64>,
    /// The proof of the last verification.
    pub proof: &'static str,
}

/// A level and its orders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OrderLevel {
    /// The price.
    pub px: String,
    /// The quantity of all orders.
    pub qty: String,
    /// The orders, the oldest first.
    pub orders: Vec<RestingOrder>,
}

/// An order in the queue of its level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RestingOrder {
    /// The venue's identifier.
    pub id: String,
    /// The quantity.
    pub qty: String,
    /// Orders before it in the queue.
    pub position: u32,
    /// Their quantity.
    pub qty_ahead: String,
    /// The venue's time of its last event, nanoseconds of the Unix epoch; absent if the venue sent none.
    pub ts_event: Option<u64>,
}

/// Which candles of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandleQuestion {
    /// Length of a candle, seconds, at least 1.
    pub timeframe_s: u64,
    /// Candles that begin at this second of the Unix epoch or later.
    pub from_s: Option<u64>,
    /// Candles that begin before this second.
    pub to_s: Option<u64>,
    /// The newest so many, at least 1.
    pub limit: usize,
}

/// Candles of an instrument's past, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CandleHistory {
    /// Length of a candle, seconds.
    pub timeframe_s: u64,
    /// Trades are known since then, milliseconds of the Unix epoch; absent before the first proved book.
    pub known_since_unix_ms: Option<u64>,
    /// Times since then in which trades may be missing, oldest first.
    pub gaps: Vec<HistoryGap>,
    /// The candles, oldest first. A time without trades has none.
    pub candles: Vec<HistoryCandle>,
    /// Another number when anything but the newest candles has changed: gaps, and candles to which a late trade belongs.
    #[serde(skip)]
    pub revision: u64,
}

/// A time in which trades may be missing: the book was not proved, or trades were lost on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HistoryGap {
    /// Its beginning, milliseconds of the Unix epoch.
    pub from_unix_ms: u64,
    /// Its end; absent while it lasts.
    pub to_unix_ms: Option<u64>,
}

/// A candle of the past, by the venue's times of the trades.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HistoryCandle {
    /// Its beginning, milliseconds of the Unix epoch: a multiple of the length.
    pub start_unix_ms: u64,
    /// The first price.
    pub open: String,
    /// The highest price.
    pub high: String,
    /// The lowest price.
    pub low: String,
    /// The last price.
    pub close: String,
    /// The traded quantity.
    pub volume: String,
    /// Number of trades.
    pub trades: u64,
    /// Whether it has ended, and no trade of it is missing as far as it is known.
    pub is_whole: bool,
}
