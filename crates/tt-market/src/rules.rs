//! A venue's rules as data: where it is, what is asked of it and how, how its updates are numbered and proved, and how
//! patient both sides are. The engine and the client of the binary read the same value, so that a change at the venue
//! is one edit.
//!
//! Texts may hold places that whoever sends them fills: `{symbol}` the venue's symbol, `{lower}` the same in lower
//! case, `{symbols}` several in quotes with commas between, `{depth}` levels of a side, `{topics}` the topics of a
//! request with commas between, `{method}` the request's word, `{id}` its number. Where an account logs in: `{key}`,
//! `{secret}` and `{passphrase}` as the venue gave them, `{time}`, `{signature}`, and `{listen_key}` the account's stream,
//! token or address.

use crate::{BookSnapshot, EventBuffer, Fault};
use tt_model::Nanos;

/// Everything that is particular to a venue but the form of its frames.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The venue's name in configuration, reports and metrics.
    pub name: &'static str,
    /// What the parser and the rules were held against.
    pub tested: Tested,
    /// The address of its public WebSocket.
    pub streams: &'static str,
    /// Scheme and host of its REST interface, where the client needs one.
    pub rest: Option<&'static str>,
    /// Where its list of instruments is.
    pub instruments: Instruments,
    /// Where its whole books are and how they are read, where it has them by REST.
    pub snapshot: Option<Snapshot>,
    /// Its topics.
    pub topics: &'static [Topic],
    /// Levels of each side that can be asked for, the fewest first; empty where the venue does not want to know.
    pub depths: &'static [u32],
    /// Levels of each side that are asked for unless told otherwise.
    pub depth: u32,
    /// Whether levels that are pushed beyond the depth vanish without an update.
    pub truncates: bool,
    /// How topics are asked for.
    pub request: RequestRule,
    /// How the venue answers.
    pub answer: AnswerRule,
    /// How a book begins.
    pub join: JoinRule,
    /// How updates of a book follow each other.
    pub numbering: Numbering,
    /// The checksum that its book frames carry.
    pub checksum: Checksum,
    /// Whether best bid and offer may be one price for longer than a message: before and in an auction.
    pub may_lock: bool,
    /// What keeps a connection alive.
    pub keep_alive: KeepAlive,
    /// A connection that says nothing for longer is dead.
    pub silence_max: Nanos,
    /// Topics that one connection carries.
    pub topics_max: u32,
    /// Topics, or symbols of one topic, in one request.
    pub topics_per_request: u32,
    /// The time between two messages of the client on one connection.
    pub request_gap: Nanos,
    /// The time between two snapshots that are asked for, which the venue's limits allow for good.
    pub snapshot_gap: Nanos,
    /// How often books may be synchronised anew.
    pub resyncs: ResyncBudget,
    /// The account's own stream.
    pub private: Option<Private>,
}

impl Rules {
    /// The topic of a kind, if the venue has it.
    #[must_use]
    pub fn topic(&self, kind: TopicKind) -> Option<&'static Topic> {
        self.topics.iter().find(|topic| topic.kind == kind)
    }

    /// The topics that are asked for unless told otherwise.
    pub fn followed(&self) -> impl Iterator<Item = &'static Topic> {
        self.topics.iter().filter(|topic| topic.followed)
    }

    /// Whether anything that the venue sends can prove a book.
    #[must_use]
    pub const fn is_provable(&self) -> bool {
        !matches!((self.numbering, self.checksum), (Numbering::None, Checksum::None))
    }
}

/// What a venue's parser and rules were held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tested {
    /// Captures of the venue itself.
    Captured,
    /// The venue's documentation and single frames; nobody has followed the live venue with it.
    UnverifiedLive,
}

impl Tested {
    /// The label in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Captured => "captured",
            Self::UnverifiedLive => "unverified live",
        }
    }
}

/// Where a venue lists its instruments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruments {
    /// REST paths that list every instrument together.
    Lists(&'static [&'static str]),
    /// A REST path with `{symbols}`.
    Named(&'static str),
    /// A REST path and the JSON texts that are posted to it, one after the other.
    Posted(&'static str, &'static [&'static str]),
    /// A request on the WebSocket.
    Socket(&'static str),
}

/// A whole book by REST.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    /// The path, with `{symbol}`.
    pub path: &'static str,
    /// Reads the body.
    pub parse: fn(&[u8], &mut EventBuffer) -> Result<BookSnapshot, Fault>,
}

/// One topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topic {
    /// What it tells.
    pub kind: TopicKind,
    /// Its name, with `{symbol}`, `{lower}`, `{symbols}` or `{depth}`.
    pub text: &'static str,
    /// Whether it is asked for unless told otherwise.
    pub followed: bool,
    /// Its WebSocket's address where it is not the venue's usual one.
    pub streams: Option<&'static str>,
}

impl Topic {
    /// A topic that is asked for.
    #[must_use]
    pub const fn followed(kind: TopicKind, text: &'static str) -> Self {
        Self { kind, text, followed: true, streams: None }
    }

    /// A topic that is there for whoever wants it.
    #[must_use]
    pub const fn offered(kind: TopicKind, text: &'static str) -> Self {
        Self { kind, text, followed: false, streams: None }
    }

    /// As [`offered`](Self::offered), on another WebSocket.
    #[must_use]
    pub const fn elsewhere(kind: TopicKind, text: &'static str, streams: &'static str) -> Self {
        Self { kind, text, followed: false, streams: Some(streams) }
    }
}

/// What a topic tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TopicKind {
    /// Levels of the book.
    Book,
    /// Best bid and offer.
    BestLevels,
    /// Ticker.
    Ticker,
    /// Trades.
    Trades,
    /// The venue's own candles.
    Candles,
    /// Mark price, and funding where it comes along.
    MarkPrice,
    /// Index price.
    IndexPrice,
    /// Funding rate.
    Funding,
    /// Open interest.
    OpenInterest,
    /// Liquidations.
    Liquidations,
    /// A sign of life that has to be asked for.
    Heartbeat,
    /// Own orders.
    Orders,
    /// Own executions.
    Executions,
    /// Own balances.
    Balances,
    /// Own positions.
    Positions,
}

/// How topics are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRule {
    /// The message, with `{method}`, `{topics}` and `{id}`.
    pub text: &'static str,
    /// The word that asks.
    pub subscribe: &'static str,
    /// The word that ends it.
    pub unsubscribe: &'static str,
    /// What one request names.
    pub grouping: Grouping,
}

/// What one request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Any topics of any symbols.
    Topics,
    /// One topic of several symbols.
    Symbols,
    /// One topic of one symbol.
    One,
}

/// How a venue answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerRule {
    /// How a frame begins that answers.
    pub starts: &'static [&'static str],
    /// Where the request's number is (JSON pointer, RFC 6901); `None` where answers come in the order of requests.
    pub id: Option<&'static str>,
    /// Whether each topic or symbol of a request is answered on its own.
    pub each: bool,
    /// Where the topics that were accepted are listed; one that is not there was refused.
    pub accepted: Option<&'static str>,
    /// A place and what stands there in a refusal; an empty text stands for anything but null.
    pub refused: &'static [(&'static str, &'static str)],
    /// Where the reason of a refusal may be.
    pub reason: &'static [&'static str],
    /// Where the symbol of an answer may be.
    pub subject: &'static [&'static str],
}

/// How a book begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JoinRule {
    /// A REST snapshot joins deltas that were kept for it; how is the venue's [`Overlap`].
    Rest(Overlap),
    /// The subscription brings a snapshot.
    Socket,
    /// As `Socket`, and by REST for whoever asks for that.
    Both(Overlap),
    /// Each message is the whole book.
    Whole,
}

/// How a delta meets the REST snapshot of update `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overlap {
    /// Deltas up to `last` are dropped; the first one must begin at `last + 1` or before (Binance spot).
    Next,
    /// Deltas before `last` are dropped; the first one must include `last` (Binance futures).
    Same,
    /// Deltas up to `last` are dropped; the first one must follow `last` or an update before it (OKX). The first
    /// message after the subscription is not kept.
    Follows,
}

/// How updates of a book follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Numbering {
    /// Nothing is numbered.
    None,
    /// Nothing is numbered, and the times of a book's updates only grow (Kraken).
    Times,
    /// An update begins with the number after the one before (Binance spot).
    Range,
    /// As `Range`, and numbers may begin anew with a snapshot (Bybit).
    RangeFromOne,
    /// An update names the one before; numbers only grow (Binance futures).
    Previous,
    /// An update names the one before; numbers may fall (OKX, Deribit).
    Chain,
    /// Each message of a connection has the number after the one before, whatever it tells of (Coinbase Advanced).
    Connection,
}

/// The checksum that book frames carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Checksum {
    /// None.
    None,
    /// CRC-32 over the digits of ten levels of each side (Kraken).
    Kraken,
    /// CRC-32 over the digits of every order of ten levels of each side, the oldest first (Kraken `level3`).
    KrakenOrders,
    /// CRC-32 over the texts of 25 levels of both sides in turn; zero says nothing (OKX until June 2026).
    Okx,
}

impl Checksum {
    /// Levels of each side that the checksum covers.
    #[must_use]
    pub const fn levels(self) -> usize {
        match self {
            Self::None => 0,
            Self::Kraken | Self::KrakenOrders => 10,
            Self::Okx => 25,
        }
    }
}

/// What keeps a connection alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// The message that the client sends, and how often; `None` where the venue pings by WebSocket frames.
    pub ping: Option<(&'static str, Nanos)>,
    /// What is sent once, so that the venue says something from time to time.
    pub begin: Option<&'static str>,
    /// What the client answers when the engine asks for [`Request::Answer`](crate::Request::Answer).
    pub answer: Option<&'static str>,
}

/// How often the books of a venue may be synchronised anew, all together; first joins do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResyncBudget {
    /// So many at once.
    pub burst: u32,
    /// Then one in this time.
    pub gap: Nanos,
}

/// The account's own stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Private {
    /// The address of the WebSocket.
    pub streams: &'static str,
    /// How the client proves who it is.
    pub login: Login,
    /// What is signed, with `{key}` and `{time}`; empty where nothing is.
    pub signed: &'static str,
    /// What `{time}` is.
    pub time: LoginTime,
    /// The message that logs in; empty where each request proves it, or nothing has to.
    pub message: &'static str,
    /// The request for topics.
    pub request: &'static str,
    /// Where a listen key or token is asked for by REST.
    pub token: Option<TokenRule>,
    /// The topics.
    pub topics: &'static [Topic],
}

/// What a login calls time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoginTime {
    /// Now, in whole seconds of the Unix epoch.
    Seconds,
    /// Now, in milliseconds.
    Milliseconds,
    /// When the signature ends to be good, in milliseconds.
    ExpiryMilliseconds,
}

/// A listen key or token by REST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenRule {
    /// Scheme and host.
    pub rest: &'static str,
    /// The path that is posted to.
    pub path: &'static str,
    /// Where the token is in the answer (JSON pointer, RFC 6901).
    pub found: &'static str,
    /// How often it has to be renewed by a PUT; `None` where it lasts as long as its connection.
    pub renewed: Option<Nanos>,
}

/// How a client proves who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Login {
    /// A listen key, got by REST and kept alive, is the topic.
    ListenKey,
    /// A token, got by a signed POST, goes into each request (Kraken).
    Token,
    /// A HMAC-SHA256 in hex (Bybit, Binance spot).
    HmacHex,
    /// A HMAC-SHA256 in base64 (OKX).
    HmacBase64,
    /// Client id and secret in `public/auth` (Deribit).
    ClientCredentials,
    /// A signed JSON Web Token goes into each request (Coinbase Advanced).
    Jwt,
    /// A HMAC-SHA256 in base64, by a secret that is base64 itself, goes into each request (Coinbase Exchange).
    SignedRequest,
    /// None: the account's address, which stands for its key, is public (Hyperliquid).
    Address,
}
