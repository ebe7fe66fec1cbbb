//! What a frame says, before any instrument is known: numbers as the venue wrote them.

use crate::status::InstrumentStatus;
use crate::symbol::Symbol;

mod account;
mod book;
mod buffer;
mod order_id;
mod prices;

pub use account::{
    Balance, Coverage, Execution, Fill, OrderList, OrderListStatus, OrderStatus, OrderUpdate, PositionLeg,
    PositionUpdate,
};
pub use book::{BookDelta, BookOrder, BookOrders, BookSnapshot, BookTicker, Level, Levels, OrderAction};
pub use buffer::EventBuffer;
pub use order_id::OrderId;
pub use prices::{AggressorSide, Liquidation, MarkPrice, Ticker, Trade, VenueCandle};

/// One parsed frame. Its lists are in the [`EventBuffer`] that it was parsed into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The venue's best bid and offer, numbered by its book.
    BookTicker(BookTicker),
    /// Best bid and offer, last price, mark and index price, funding, open interest: what of it the venue sent, in
    /// [`EventBuffer::tickers`].
    Tickers,
    /// One or more trades, in [`EventBuffer::trades`]; what one did to the book's orders is in
    /// [`EventBuffer::taken_order`], where the venue says so.
    Trades,
    /// One or more candles of the venue's own, in [`EventBuffer::candles`].
    Candles,
    /// One or more liquidations, in [`EventBuffer::liquidations`].
    Liquidations,
    /// Changed levels of a book.
    BookDelta(BookDelta),
    /// All levels of a book.
    BookSnapshot(BookSnapshot),
    /// Orders of an order-by-order book, in [`EventBuffer::book_orders`].
    BookOrders(BookOrders),
    /// A mark price and funding rate.
    MarkPrice(MarkPrice),
    /// One or more updates of own orders, in [`EventBuffer::order_updates`].
    OrderUpdates,
    /// Anything else of the account: [`EventBuffer::executions`], [`EventBuffer::balances`],
    /// [`EventBuffer::positions`], and [`EventBuffer::order_updates`] among them.
    Account,
    /// The state of several orders that depend on each other; each of them also has its own update.
    OrderList(OrderList),
    /// Something that changes no market state.
    Control(Control),
}

/// A frame that changes no market state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// A request was accepted; a refused one is the frame's [`ParseError::Rejected`](crate::error::ParseError::Rejected).
    Accepted,
    /// The venue knows now whose connection this is.
    LoggedIn,
    /// The account's stream has ended, because the login was not renewed.
    LoginExpired,
    /// A sign of life.
    Heartbeat,
    /// The answer to a ping of the client.
    Pong,
    /// The venue asks for a sign of life.
    TestRequest,
    /// The venue ends the connection soon: another one is to be opened before.
    Ending,
    /// The venue's own state.
    Status,
    /// Whether an instrument is traded.
    Instrument(InstrumentState),
    /// The venue's list of instruments says something else now, such as that a currency is locked.
    ListChanged,
    /// The session of a market that contracts of the venue follow.
    Session(UnderlyingHours),
}

/// The session of a market with trading hours, which contracts of a venue follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnderlyingHours {
    /// The market.
    pub market: UnderlyingMarket,
    /// Its session now.
    pub session: TradingHours,
}

/// A market with trading hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnderlyingMarket {
    /// Stocks of the US.
    Stocks,
    /// Commodities.
    Commodities,
}

impl UnderlyingMarket {
    /// The market's name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stocks => "stocks",
            Self::Commodities => "commodities",
        }
    }
}

/// A part of a market's day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TradingHours {
    /// Before the regular hours.
    PreMarket,
    /// The regular hours.
    Regular,
    /// After the regular hours.
    AfterMarket,
    /// At night.
    Overnight,
    /// The market is closed.
    Closed,
    /// In a word that is not known.
    Unknown,
}

impl TradingHours {
    /// The session's name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PreMarket => "pre_market",
            Self::Regular => "regular",
            Self::AfterMarket => "after_market",
            Self::Overnight => "overnight",
            Self::Closed => "closed",
            Self::Unknown => "unknown",
        }
    }
}

/// Whether an instrument is traded, by a message of its venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstrumentState {
    /// The instrument.
    pub symbol: Symbol,
    /// Its status from here on.
    pub status: InstrumentStatus,
}
