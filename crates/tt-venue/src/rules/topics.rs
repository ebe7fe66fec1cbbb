//! What a venue's streams carry.

/// One topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topic {
    /// The kind of its updates.
    pub kind: TopicKind,
    /// Its name, with `{symbol}`, `{lower}`, `{symbols}` or `{depth}`.
    pub text: &'static str,
    /// Whether it is subscribed by default.
    pub is_default: bool,
    /// The address of its WebSocket, if it is not the venue's usual one.
    pub streams: Option<&'static str>,
}

impl Topic {
    /// Returns a topic that is subscribed by default.
    #[must_use]
    pub const fn standard(kind: TopicKind, text: &'static str) -> Self {
        Self { kind, text, is_default: true, streams: None }
    }

    /// Returns a topic that is subscribed by default, on another WebSocket.
    #[must_use]
    pub const fn standard_at(kind: TopicKind, text: &'static str, streams: &'static str) -> Self {
        Self { kind, text, is_default: true, streams: Some(streams) }
    }

    /// Returns a topic that is subscribed on request.
    #[must_use]
    pub const fn optional(kind: TopicKind, text: &'static str) -> Self {
        Self { kind, text, is_default: false, streams: None }
    }

    /// Returns a topic that is subscribed on request, on another WebSocket.
    #[must_use]
    pub const fn optional_at(kind: TopicKind, text: &'static str, streams: &'static str) -> Self {
        Self { kind, text, is_default: false, streams: Some(streams) }
    }
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
    /// Own orders.
    Orders,
    /// Own executions.
    Executions,
    /// Own balances.
    Balances,
    /// Own positions.
    Positions,
}
