//! What a venue's streams carry.

use tt_model::Nanos;

/// One topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topic {
    /// The kind of its updates.
    pub kind: TopicKind,
    /// Its name, with `{symbol}`, `{lower}`, `{symbols}` or `{depth}`; with `{family}` it is of all symbols of a family.
    pub text: &'static str,
    /// Whether it is subscribed by default.
    pub is_default: bool,
    /// The address of its WebSocket, if it is not the venue's usual one.
    pub streams: Option<&'static str>,
    /// Words of its frames: one of them occurs in quotes, and so does the symbol, unless the word contains it.
    pub words: &'static [&'static str],
    /// When its first frame is due.
    pub first: FirstFrame,
    /// The longest time between two of its frames that the venue promises.
    pub spacing: Option<Nanos>,
    /// The depth that it is subscribed for; `None` for every depth.
    pub depth: Option<u32>,
    /// What is followed instead where the venue accepts the topic and never sends it.
    pub fallback: Option<&'static Self>,
    /// When it was last checked, and against what; `None` if with the other [rules](super::Rules::evidence).
    pub check: Option<TopicCheck>,
}

/// When a topic was last checked, and against what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicCheck {
    /// The month, as `2026-11`.
    pub month: &'static str,
    /// The documentation, or who has measured or reported it.
    pub source: &'static str,
}

impl FirstFrame {
    /// A book's snapshot, a mark price, a heartbeat.
    pub const SOON: Self = Self::Within(Nanos::from_secs(5));
    /// Changes of a book.
    pub const ACTIVE: Self = Self::IfActive(Nanos::from_secs(5));
    /// Candles and tickers that follow trades.
    pub const TRADED: Self = Self::IfTraded(Nanos::from_secs(10));
}

impl Topic {
    /// Returns a topic that is subscribed by default.
    #[must_use]
    pub const fn standard(kind: TopicKind, text: &'static str) -> Self {
        Self {
            kind,
            text,
            is_default: true,
            streams: None,
            words: &[],
            first: FirstFrame::AnyTime,
            spacing: None,
            depth: None,
            fallback: None,
            check: None,
        }
    }

    /// Returns a topic that is subscribed by default, on another WebSocket.
    #[must_use]
    pub const fn standard_at(kind: TopicKind, text: &'static str, streams: &'static str) -> Self {
        Self { streams: Some(streams), ..Self::standard(kind, text) }
    }

    /// Returns a topic that is subscribed on request.
    #[must_use]
    pub const fn optional(kind: TopicKind, text: &'static str) -> Self {
        Self { is_default: false, ..Self::standard(kind, text) }
    }

    /// Returns a topic that is subscribed on request, on another WebSocket.
    #[must_use]
    pub const fn optional_at(kind: TopicKind, text: &'static str, streams: &'static str) -> Self {
        Self { streams: Some(streams), ..Self::optional(kind, text) }
    }

    /// Returns the topic with the words of its frames and the time of the first.
    #[must_use]
    pub const fn comes(self, words: &'static [&'static str], first: FirstFrame) -> Self {
        Self { words, first, ..self }
    }

    /// Returns the topic with a promised spacing of its frames.
    #[must_use]
    pub const fn every(self, spacing: Nanos) -> Self {
        Self { spacing: Some(spacing), ..self }
    }

    /// Returns the topic, to be subscribed for books of this depth only.
    #[must_use]
    pub const fn at_depth(self, depth: u32) -> Self {
        Self { depth: Some(depth), ..self }
    }

    /// Returns the topic with what is followed instead where the venue accepts it and never sends it.
    #[must_use]
    pub const fn or(self, fallback: &'static Self) -> Self {
        Self { fallback: Some(fallback), ..self }
    }

    /// Returns the topic with a check apart from that of the other rules.
    #[must_use]
    pub const fn checked(self, month: &'static str, source: &'static str) -> Self {
        Self { check: Some(TopicCheck { month, source }), ..self }
    }

    /// Returns whether the topic is of one symbol rather than of the whole venue.
    #[must_use]
    pub fn names_symbol(&self) -> bool {
        ["{symbol}", "{lower}", "{symbols}"].iter().any(|place| self.text.contains(place))
    }
}

/// When the first frame of a topic is due, from the venue's acknowledgement on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstFrame {
    /// Within this time: the topic begins with a snapshot, or has a fixed spacing.
    Within(Nanos),
    /// Within this time, if other topics of the instrument show that it is active: the topic sends changes only.
    IfActive(Nanos),
    /// Within this time, if the instrument has trades: the topic sends what follows from trades.
    IfTraded(Nanos),
    /// Nothing is promised.
    AnyTime,
}

/// The kind of a topic's updates.
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
    /// Trades that were agreed on outside of the market.
    BlockTrades,
    /// The venue's own candles.
    Candles,
    /// Mark price, with the funding rate at some venues.
    MarkPrice,
    /// Index price.
    IndexPrice,
    /// Funding rate.
    Funding,
    /// Open interest.
    OpenInterest,
    /// Liquidations.
    Liquidations,
    /// Heartbeats that must be subscribed.
    Heartbeat,
    /// What the venue says of itself: maintenance.
    Status,
    /// Sessions of markets with trading hours, which contracts of the venue follow.
    Sessions,
    /// Own orders.
    Orders,
    /// Own executions.
    Executions,
    /// Own balances.
    Balances,
    /// Own positions.
    Positions,
}
