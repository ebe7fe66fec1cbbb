//! Status of the market engine.

use std::sync::Arc;

use serde::Serialize;

use crate::accounting::{Accounting, Quantiles, Stages};

/// The market engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
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
    /// Connections that took over from one whose end was announced or due.
    pub planned_reconnects: u64,
    /// Topics that the venue accepted and does not send.
    pub silent_topics: Vec<SilentTopic>,
    /// The sessions of markets that contracts of the venue follow, if the feed follows them.
    pub sessions: Vec<MarketHours>,
    /// Symbols and topics that the venue does not list or refuses.
    pub refused: Vec<Refused>,
    /// Books that a REST snapshot fitted at the same update id.
    pub snapshot_matches: u64,
    /// Books that a REST snapshot contradicted.
    pub snapshot_mismatches: u64,
    /// The last of those, oldest first.
    pub differences: Vec<Difference>,
    /// The last incidents of its books, oldest first; `/api/v1/market/incidents` has those of the last hour.
    #[serde(skip)]
    pub incidents: Arc<Vec<Incident>>,
    /// Messages of its account.
    pub account: Account,
}

/// A level of which a book and a REST snapshot differed at the same update id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The venue's symbol.
    pub symbol: String,
    /// The update.
    pub update_id: u64,
    /// `bid` or `ask`.
    pub side: &'static str,
    /// The price.
    pub px: String,
    /// The quantity in the book; 0 if it had no such level.
    pub book_qty: String,
    /// The quantity in the snapshot, likewise.
    pub snapshot_qty: String,
    /// When it was found, nanoseconds of the Unix epoch.
    pub found_unix_ns: u64,
}

/// Something that was wrong with an input of a book, and what became of the book.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Incident {
    /// Counts the feed's incidents from 1 on.
    pub number: u64,
    /// The venue's symbol; empty if it was every book of the connection.
    pub symbol: String,
    /// `gap`, `duplicate`, `checksum`, `best_levels`, `behind`, `connection` or `other`.
    pub cause: &'static str,
    /// What was expected: the update to follow, the venue's checksum, or its best bid and offer. Empty without one.
    pub expected: String,
    /// What came: the update that was followed, the book's checksum, or its best bid and offer.
    pub received: String,
    /// `ignored` (the book is unchanged), `snapshot_requested`, `waiting` (for the venue's next whole book) or
    /// `reconnecting` (the book was stale at once).
    pub reaction: &'static str,
    /// The last update that the book had before.
    pub update_id: u64,
    /// How often it came without another incident of the feed between.
    pub count: u64,
    /// When it was found, nanoseconds of the Unix epoch.
    pub at_unix_ns: u64,
    /// When the book was proved again; absent before, and if it was never lost.
    pub proven_unix_ns: Option<u64>,
}

/// A topic that a venue accepted and does not send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SilentTopic {
    /// The venue's symbol; empty for a topic of the whole venue.
    pub symbol: String,
    /// The topic's name, as in the configuration.
    pub topic: &'static str,
}

/// The session of a market with trading hours, which contracts of a venue follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MarketHours {
    /// `stocks` or `commodities`.
    pub market: &'static str,
    /// `pre_market`, `regular`, `after_market`, `overnight`, `closed` or `unknown`.
    pub session: &'static str,
}

/// What a venue does not list or refuses; nothing else is concerned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// The venue's symbol, or the topics that were requested.
    pub subject: String,
    /// The reason, in the venue's words if there are some.
    pub reason: String,
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
        self.planned_reconnects += other.planned_reconnects;
        self.silent_topics.extend_from_slice(&other.silent_topics);
        self.sessions.extend_from_slice(&other.sessions);
        self.refused.extend_from_slice(&other.refused);
        self.snapshot_matches += other.snapshot_matches;
        self.snapshot_mismatches += other.snapshot_mismatches;
        self.differences.extend_from_slice(&other.differences);
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
    /// The venue's time of the last update of the ten best levels, nanoseconds of the Unix epoch; absent if the venue sends
    /// none.
    #[serde(skip)]
    pub ts_event: Option<u64>,
    /// When the last update was received or the proof changed, nanoseconds of the Unix epoch; absent before the first.
    #[serde(skip)]
    pub ts_recv: Option<u64>,
    /// Mark price, index price, funding, open interest and liquidations; absent if the venue has sent none of them.
    #[serde(skip)]
    pub derivative: Option<Derivative>,
    /// What the book is made of: `levels`, `orders` (order by order) or `rpi` (levels with the orders that only retail
    /// clients can trade with). The proof is of that book.
    pub kind: &'static str,
    /// Levels of each side to which the book is known, if its REST snapshot had no more; absent if it is known whole.
    pub known_levels: Option<u32>,
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

/// What a venue sends of a contract besides its book. Each value is as it last was; absent if the venue has sent none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Derivative {
    /// The mark price in quote currency.
    pub mark_px: Option<String>,
    /// The index price in quote currency.
    pub index_px: Option<String>,
    /// Rate of the next funding, a fraction of the position's value.
    pub funding_rate: Option<String>,
    /// When that is paid, milliseconds of the Unix epoch.
    pub next_funding_unix_ms: Option<u64>,
    /// Open contracts, in the instrument's unit of quantity.
    pub open_interest: Option<String>,
    /// The venue's time of the mark price, nanoseconds of the Unix epoch.
    pub ts_event: Option<u64>,
    /// When the newest of these values was received, nanoseconds of the Unix epoch.
    pub ts_recv: Option<u64>,
    /// The last liquidation.
    pub liquidation: Option<Liquidation>,
}

/// A liquidation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Liquidation {
    /// Counts the instrument's liquidations from 1 on since the engine started.
    pub number: u64,
    /// What the closing order did: `sell` closes a long position.
    pub side: &'static str,
    /// The price.
    pub px: String,
    /// The quantity, in the instrument's unit of quantity.
    pub qty: String,
    /// The venue's time, nanoseconds of the Unix epoch.
    pub ts_event: u64,
    /// When it was received, nanoseconds of the Unix epoch.
    pub ts_recv: u64,
}

/// What distinguishes an instrument from others of its pair, as its venue lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Terms {
    /// `spot`, `perpetual`, `future`, `option` or `event`.
    pub kind: &'static str,
    /// When it ends, milliseconds of the Unix epoch; absent if it does not, or the list does not say.
    pub expiry_unix_ms: Option<u64>,
    /// An option's strike, exact decimal text.
    pub strike: Option<String>,
    /// An option's right: `call` or `put`.
    pub right: Option<&'static str>,
    /// Whether it was traded when the feed started: `trading`, `cancel_only`, `post_only`, `settling`, `halted`, `pending`,
    /// `closed` or `unknown`.
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
    /// Whether the book's last state was verified by a checksum, a sequence, a second stream or a snapshot.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        matches!(self.proof, "crc" | "sequence" | "oracle" | "snapshot")
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
