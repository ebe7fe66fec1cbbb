//! A venue's rules as data: addresses, topics, sequence numbers, proofs, limits and logins.
//!
//! The engine and the client read the same value, so a change at the venue is one edit.
//!
//! Texts may hold places that the client fills: `{symbol}` the venue's symbol, `{lower}` the same in lower case,
//! `{symbols}` several in quotes with commas between, `{depth}` levels per side, `{topics}` the topics of a request with
//! commas between, `{method}` the request's verb, `{id}` its number. A login has [further places](AccountStream).

mod evidence;
mod limits;
mod login;
mod requests;
mod sequence;
mod topics;

use crate::checksum::Checksum;
use crate::detection::Detection;
use crate::error::ParseError;
use crate::event::{BookSnapshot, EventBuffer};
use crate::listing::InstrumentList;
use tt_model::Nanos;

pub use evidence::Evidence;
pub use limits::{AddressLimits, Rate, WeightLimit};
pub use login::{
    AccountStream, Hash, KeyEncoding, KeyPairLogin, LoginTime, Signature, SignatureEncoding, SignedText, TokenRequest,
    TokenSource,
};
pub use requests::{Grouping, RequestRule, ResponseRule};
pub use sequence::{JoinRule, Numbering, Overlap, TradeIds};
pub use topics::{FirstFrame, Topic, TopicCheck, TopicKind};

/// Everything that is particular to a venue except the form of its messages.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The venue's name in configuration, reports and metrics.
    pub name: &'static str,
    /// Evidence that the parser and the rules are right.
    pub evidence: Evidence,
    /// The address of the public WebSocket.
    pub streams: &'static str,
    /// Other addresses of the same streams, for when the first one cannot be reached, in the order of trial.
    pub streams_fallback: &'static [&'static str],
    /// Scheme and host of the REST interface, if the client needs it.
    pub rest: Option<&'static str>,
    /// A second host of the REST interface, for when the first one cannot be reached.
    pub rest_fallback: Option<&'static str>,
    /// Other addresses of the venue, for clients of a country or for tests.
    pub regions: &'static [Region],
    /// The list of instruments.
    pub instruments: InstrumentList,
    /// The symbol of the main BTC market; empty where no instrument lasts.
    pub main_symbol: &'static str,
    /// Whole books by REST, if the venue has them.
    pub snapshot: Option<Snapshot>,
    /// Public topics.
    pub topics: &'static [Topic],
    /// Levels per side that a subscription, or a snapshot, can request, ascending; empty if the venue offers no choice.
    pub depths: &'static [u32],
    /// Levels per side that are requested by default.
    pub depth: u32,
    /// Whether levels that are pushed beyond the depth vanish without an update.
    pub truncates: bool,
    /// How topics are requested.
    pub request: RequestRule,
    /// How the venue responds to a request.
    pub response: ResponseRule,
    /// How a book begins.
    pub join: JoinRule,
    /// How updates of a book are numbered.
    pub numbering: Numbering,
    /// How trades are numbered.
    pub trade_ids: TradeIds,
    /// The checksum that book frames carry.
    pub checksum: Checksum,
    /// Whether best bid and offer may be equal for longer than one message: before and in an auction.
    pub may_lock: bool,
    /// What keeps a connection alive.
    pub keep_alive: KeepAlive,
    /// A connection that is silent for longer is dead.
    pub silence_max: Nanos,
    /// The venue ends a connection after this time.
    pub connection_max: Option<Nanos>,
    /// The most topics of one connection.
    pub topics_max: u32,
    /// The most topics, or symbols of one topic, in one request.
    pub topics_per_request: u32,
    /// How often the client may send a message on one connection.
    pub requests: Rate,
    /// The least time between two snapshot requests that the venue's limits allow permanently.
    pub snapshot_gap: Nanos,
    /// How often books may be synchronised again, all together; first joins do not count.
    pub resyncs: Rate,
    /// What the venue counts by the address of its clients.
    pub address: AddressLimits,
    /// The order-by-order (L3) feed, if the venue has one that truetick reads.
    pub l3: Option<&'static Rules>,
    /// Books that include orders of the kind "retail price improvement", which programs cannot trade with, if the venue
    /// sends them.
    pub rpi: Option<&'static Rules>,
    /// Books of all levels, where they come apart from those of the other depths. Its depth is the one to ask for.
    pub full: Option<&'static Rules>,
    /// The stream of an account.
    pub account: Option<AccountStream>,
    /// The keys that the venue documents for its public frames and responses.
    pub documented_keys: &'static [&'static str],
    /// How a recording of the venue is recognised.
    pub detection: Detection,
}

impl Rules {
    /// Returns the topic of a kind, if the venue has it; that of the usual depth where it has several.
    #[must_use]
    pub fn topic(&self, kind: TopicKind) -> Option<&'static Topic> {
        self.topics_of(self.depth).find(|topic| topic.kind == kind)
    }

    /// Returns the topics that are subscribed by default.
    pub fn default_topics(&self) -> impl Iterator<Item = &'static Topic> {
        self.topics_of(self.depth).filter(|topic| topic.is_default)
    }

    /// Returns the topics for books of `depth` levels.
    pub fn topics_of(&self, depth: u32) -> impl Iterator<Item = &'static Topic> {
        self.topics.iter().filter(move |topic| topic.depth.is_none_or(|only| only == depth))
    }

    /// Returns when topics without a check of their own were last checked, and against what.
    #[must_use]
    pub const fn check(&self) -> TopicCheck {
        TopicCheck { month: self.evidence.checked, source: self.evidence.source }
    }

    /// Returns whether requests for topics prove who the client is: they contain a token or a signature.
    #[must_use]
    pub fn needs_login(&self) -> bool {
        let is_signed = |text: &str| text.contains("{token}") || text.contains("{signature}");
        is_signed(self.request.text) || self.topics.iter().any(|topic| is_signed(topic.text))
    }

    /// Returns the most topics, or symbols of one topic, in one request at `depth` levels. Venues that send single orders
    /// count levels beyond the usual depth.
    #[must_use]
    pub fn topics_per_request(&self, depth: u32) -> u32 {
        let most = self.topics_per_request.max(1);
        if matches!(self.checksum, Checksum::Orders(_)) && depth > self.depth {
            (most * self.depth / depth).max(1)
        } else {
            most
        }
    }

    /// Returns whether levels come by REST with the numbers of the updates, so that a book can be compared with them.
    #[must_use]
    pub const fn is_comparable(&self) -> bool {
        self.snapshot.is_some()
            && matches!(self.join, JoinRule::Rest(_) | JoinRule::Both(_))
            && matches!(
                self.numbering,
                Numbering::Range | Numbering::RangeFromOne | Numbering::Previous | Numbering::Chain
            )
            && !matches!(self.checksum, Checksum::Orders(_))
    }

    /// Returns whether anything that the venue sends can prove a book.
    #[must_use]
    pub const fn is_provable(&self) -> bool {
        !matches!((self.numbering, &self.checksum), (Numbering::None, Checksum::None))
    }
}

/// Addresses of a venue for some of its clients. Paths of other streams are the same as at the usual addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its name in configuration.
    pub name: &'static str,
    /// The address of the public WebSocket.
    pub streams: &'static str,
    /// Scheme and host of the REST interface.
    pub rest: &'static str,
}

/// Reads the body of a whole book by REST.
pub type SnapshotParser = fn(&[u8], &mut EventBuffer) -> Result<BookSnapshot, ParseError>;

/// A whole book by REST.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    /// The path, with `{symbol}` and, where a subscription has no depth, `{depth}` of the snapshot.
    pub path: &'static str,
    /// The levels of each side of the smallest snapshot that is requested; a side with fewer is whole.
    pub levels: u32,
    /// Reads the body.
    pub parse: SnapshotParser,
    /// Reads the body by the names of its keys in any order.
    pub parse_general: SnapshotParser,
    /// Whether a joined book is compared with another snapshot, once: the venue does not say that both have the same
    /// numbers.
    pub compare_once: bool,
}

/// What keeps a connection alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// The message that the client sends, and how often; `None` if the venue pings by WebSocket frames.
    pub ping: Option<(&'static str, Nanos)>,
    /// The message that the client sends once to enable heartbeats.
    pub enable: Option<&'static str>,
    /// The response to the venue's own request for a sign of life.
    pub pong: Option<&'static str>,
}
