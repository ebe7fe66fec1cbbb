//! How books begin, and how their updates are numbered.

/// How a book begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JoinRule {
    /// A REST snapshot joins the deltas that were buffered for it.
    Rest(Overlap),
    /// The subscription brings a snapshot.
    Socket,
    /// As `Socket`, and by REST on request.
    Both(Overlap),
    /// Each message is the whole book.
    Whole,
}

/// How deltas join the REST snapshot of update `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overlap {
    /// Deltas up to `last` are dropped; the first one must begin at `last + 1` or before.
    Next,
    /// Deltas before `last` are dropped; the first one must include `last`.
    Same,
    /// Deltas up to `last` are dropped; the first one must follow `last` or an update before it. The first message after
    /// the subscription is not buffered.
    Follows,
}

/// How updates of a book are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Numbering {
    /// Without numbers.
    None,
    /// An update begins with the number after the previous one.
    Range,
    /// As `Range`, and numbers may start again with a snapshot; one without levels is the last of what was delisted
    /// (bybit-exchange.github.io/docs/v5/websocket/public/orderbook, read in 2026-11).
    RangeFromOne,
    /// An update names the previous one; numbers only grow.
    Previous,
    /// An update names the previous one; numbers may decrease. An update with a checksum may have no number.
    Chain,
    /// Each message of a connection has the number after the previous one, whatever its topic.
    Connection,
}

/// How a venue numbers the trades of an instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TradeIds {
    /// Each has about the number after the one before.
    Counted,
    /// Anyhow: hashes, or one count for all instruments.
    Scattered,
}
