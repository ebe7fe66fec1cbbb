//! Status of the market engine.

use serde::Serialize;

use crate::accounting::{Accounting, Quantiles, Stages};

/// The market engine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MarketStatus {
    /// Frames.
    pub ledger: Accounting,
    /// The pass of a frame.
    pub stages: Stages,
    /// Venue connections.
    pub feeds: Vec<Feed>,
    /// Instruments with their book.
    pub books: Vec<Book>,
    /// The rows of the published result that this engine reproduces, from live traffic.
    pub ingest: Vec<IngestRow>,
}

impl MarketStatus {
    /// Whether every feed is connected, gets every topic that its venue accepted, and every book is proven.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.feeds.iter().all(|feed| feed.connected && feed.silent_topics.is_empty())
            && self.books.iter().all(Book::is_proven)
    }
}

/// One venue connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Feed {
    /// The venue.
    pub venue: &'static str,
    /// The WebSocket address.
    pub url: String,
    /// Whether it is connected.
    pub connected: bool,
    /// Frames received.
    pub frames: u64,
    /// Gaps found.
    pub gaps: u64,
    /// Resyncs done.
    pub resyncs: u64,
    /// Connections made again after the first.
    pub reconnects: u64,
    /// Topics that the venue accepted and does not send.
    pub silent_topics: Vec<SilentTopic>,
    /// Messages of its account.
    pub account: Account,
}

/// A topic that a venue accepted and does not send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SilentTopic {
    /// The venue's symbol; empty for a topic of the whole venue.
    pub symbol: String,
    /// The topic's name, as in the configuration.
    pub topic: &'static str,
}

/// Messages of an account that were applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// Updates of own orders.
    pub order_updates: u64,
    /// Own executions, each once.
    pub executions: u64,
    /// Balances.
    pub balances: u64,
    /// Positions.
    pub positions: u64,
}

impl Feed {
    /// Adds the counts of another connection to the same venue.
    pub fn add(&mut self, other: &Self) {
        self.connected &= other.connected;
        self.frames += other.frames;
        self.gaps += other.gaps;
        self.resyncs += other.resyncs;
        self.reconnects += other.reconnects;
        self.silent_topics.extend_from_slice(&other.silent_topics);
        self.account.order_updates += other.account.order_updates;
        self.account.executions += other.account.executions;
        self.account.balances += other.account.balances;
        self.account.positions += other.account.positions;
    }
}

/// A price level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Level {
    /// The price.
    pub px: String,
    /// The quantity.
    pub qty: String,
}

/// An instrument's published book with its proof.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Book {
    /// The instrument's number.
    pub instrument: u32,
    /// The venue.
    pub venue: &'static str,
    /// The normalised symbol, `BTC/USDT`.
    pub symbol: String,
    /// The best bids, best first.
    pub bids: Vec<Level>,
    /// The best asks, best first.
    pub asks: Vec<Level>,
    /// Best ask less best bid over their middle, basis points.
    pub spread_bps: Option<f64>,
    /// The last update that was applied.
    pub update_id: u64,
    /// The proof of the last verification.
    pub proof: &'static str,
    /// The update at which it was verified.
    pub proof_update_id: u64,
    /// Time since the last verification, milliseconds; absent if there was none.
    pub proof_age_ms: Option<f64>,
    /// Time since the last update, milliseconds.
    pub age_ms: Option<f64>,
    /// The running candle of each timeframe, mirrored from trades.
    #[serde(skip)]
    pub candles: Vec<Candle>,
    /// The venue's own symbol.
    #[serde(skip)]
    pub venue_symbol: String,
    /// The price step.
    #[serde(skip)]
    pub tick_size: String,
    /// The quantity step.
    #[serde(skip)]
    pub lot_size: String,
    /// What distinguishes it from others of its pair.
    #[serde(skip)]
    pub terms: Terms,
    /// The newest trades, oldest first.
    #[serde(skip)]
    pub trades: Vec<Trade>,
}

/// What distinguishes an instrument from others of its pair, as its venue lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Terms {
    /// `spot`, `perpetual`, `future` or `option`.
    pub kind: &'static str,
    /// When it ends, milliseconds of the Unix epoch; absent if it does not, or the list does not say.
    pub expiry_unix_ms: Option<u64>,
    /// An option's strike, exact decimal text.
    pub strike: Option<String>,
    /// An option's right: `call` or `put`.
    pub right: Option<&'static str>,
    /// Whether it was traded when the feed started: `trading`, `cancel_only`, `post_only`, `halted`, `pending`, `closed`
    /// or `unknown`.
    pub status: &'static str,
    /// What one unit of quantity is.
    pub contract: Option<Contract>,
}

/// The size of one unit of an instrument's quantity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contract {
    /// `base`: units of the base asset; `linear`: contracts over `size` of the base asset; `inverse`: contracts worth
    /// `size` of the quote asset.
    pub kind: &'static str,
    /// The size, exact decimal text.
    pub size: String,
}

/// A public trade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trade {
    /// Counts the instrument's trades from 1 on since the engine started.
    pub number: u64,
    /// The venue's number of the trade; 0 where it is text.
    pub trade_id: u64,
    /// The price.
    pub px: String,
    /// The quantity.
    pub qty: String,
    /// The side that took liquidity: `buy` or `sell`.
    pub aggressor: &'static str,
    /// Whether it is older than a trade received before it.
    pub is_late: bool,
    /// Whether the venue repeated it to a new subscription: it was made before.
    pub is_history: bool,
    /// The venue's time, nanoseconds of the Unix epoch.
    pub event_unix_ns: u64,
    /// When the frame was received, nanoseconds of the Unix epoch.
    pub recv_unix_ns: u64,
}

/// A candle that is still open, or the last one of a quiet instrument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Candle {
    /// Its length, seconds.
    pub timeframe_s: u64,
    /// When it began, milliseconds of the Unix epoch.
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
}

impl Book {
    /// Whether the book's last state was verified by a checksum, a sequence or a second stream.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        matches!(self.proof, "crc" | "sequence" | "oracle")
    }
}

/// One row of `/api/v1/internal/engine/ingest-metrics`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct IngestRow {
    /// The row's published name.
    pub name: &'static str,
    /// The distribution; absent until there was one sample.
    #[serde(flatten)]
    pub quantiles: Option<Quantiles>,
}
