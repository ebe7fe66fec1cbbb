//! Tickers, trades, candles, mark prices, liquidations.

use crate::symbol::Symbol;
use tt_model::{Decimal, Nanos};

/// A venue's ticker, or the part of it that changed: a value of `None` stays as it was.
///
/// A side of the book that has become empty has a quantity of zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticker {
    /// The instrument.
    pub symbol: Symbol,
    /// The best bid's price.
    pub bid_px: Option<Decimal>,
    /// The best bid's quantity.
    pub bid_qty: Option<Decimal>,
    /// The best offer's price.
    pub ask_px: Option<Decimal>,
    /// The best offer's quantity.
    pub ask_qty: Option<Decimal>,
    /// The last trade's price.
    pub last_px: Option<Decimal>,
    /// The mark price.
    pub mark_px: Option<Decimal>,
    /// The index price.
    pub index_px: Option<Decimal>,
    /// Halfway between the best bid and the best offer.
    pub mid_px: Option<Decimal>,
    /// The rate of the next funding, a fraction.
    pub funding_rate: Option<Decimal>,
    /// When the next funding is paid, Unix epoch.
    pub ts_next_funding: Option<Nanos>,
    /// Contracts that are open, in the venue's unit of quantity.
    pub open_interest: Option<Decimal>,
    /// The venue's time, Unix epoch; zero where the venue sends none.
    pub ts_event: Nanos,
}

/// A public trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trade {
    /// The instrument.
    pub symbol: Symbol,
    /// The venue's number of the trade.
    pub trade_id: u64,
    /// The price.
    pub px: Decimal,
    /// The quantity.
    pub qty: Decimal,
    /// Who took liquidity.
    pub aggressor: AggressorSide,
    /// Whether the trade was made in the market; insurance fund and liquidation prints are not, and make no candle.
    pub in_market: bool,
    /// Whether the venue repeats it to a new subscription: it was made before.
    pub is_history: bool,
    /// The venue's time of the trade, Unix epoch.
    pub ts_event: Nanos,
}

/// The side that took liquidity in a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AggressorSide {
    /// The buyer.
    Buy,
    /// The seller.
    Sell,
}

/// A candle of the venue's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VenueCandle {
    /// The instrument.
    pub symbol: Symbol,
    /// Its length.
    pub timeframe: Nanos,
    /// Its beginning, Unix epoch.
    pub ts_open: Nanos,
    /// The first price.
    pub open_px: Decimal,
    /// The highest price.
    pub high_px: Decimal,
    /// The lowest price.
    pub low_px: Decimal,
    /// The last price up to now.
    pub close_px: Decimal,
    /// The traded quantity, in the venue's unit of quantity.
    pub volume: Decimal,
    /// Whether it is complete.
    pub is_closed: bool,
    /// The venue's time of the message, Unix epoch; zero where the venue sends none.
    pub ts_event: Nanos,
}

/// A position that the venue closed by force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Liquidation {
    /// The instrument.
    pub symbol: Symbol,
    /// What the closing order did: `Sell` closes a long position.
    pub side: AggressorSide,
    /// The price.
    pub px: Decimal,
    /// The quantity.
    pub qty: Decimal,
    /// The venue's time, Unix epoch.
    pub ts_event: Nanos,
}

/// A mark price and funding rate (Binance `markPriceUpdate`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkPrice {
    /// The instrument.
    pub symbol: Symbol,
    /// The mark price.
    pub mark_px: Decimal,
    /// The index price; zero where the venue does not send it along.
    pub index_px: Decimal,
    /// The rate of the next funding; `None` where the contract has none.
    pub funding_rate: Option<Decimal>,
    /// When the next funding is paid, Unix epoch; zero where the contract has none.
    pub ts_next_funding: Nanos,
    /// The venue's time, Unix epoch.
    pub ts_event: Nanos,
}
