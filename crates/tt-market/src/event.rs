//! What a frame says, before any instrument is known: numbers as the venue wrote them.

use crate::{Decimal, Fault, Symbol};
use alloc::vec::Vec;
use core::ops::Range;
use tt_model::{Nanos, OrderSide};

/// One parsed frame. Levels, trades and order updates stand in the [`EventBuffer`] that was parsed into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The venue's best bid and offer.
    BookTicker(BookTicker),
    /// The venue's ticker with the last price.
    Ticker(Ticker),
    /// One or more trades, in [`EventBuffer::trades`].
    Trades,
    /// Changed levels of a book.
    BookDelta(BookDelta),
    /// All levels of a book.
    BookSnapshot(BookSnapshot),
    /// A mark price and funding rate.
    MarkPrice(MarkPrice),
    /// One or more updates of own orders, in [`EventBuffer::order_updates`].
    OrderUpdates,
    /// Something that changes no market state.
    Control(Control),
}

/// A frame that changes no market state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// A request was accepted.
    Accepted,
    /// A sign of life.
    Heartbeat,
    /// The venue's own state.
    Status,
}

/// The venue's best bid and offer (Binance `bookTicker`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookTicker {
    /// The instrument.
    pub symbol: Symbol,
    /// The book's update id at which these were the best levels.
    pub update_id: u64,
    /// The best bid's price.
    pub bid_px: Decimal,
    /// The best bid's quantity.
    pub bid_qty: Decimal,
    /// The best offer's price.
    pub ask_px: Decimal,
    /// The best offer's quantity.
    pub ask_qty: Decimal,
    /// The venue's time, Unix epoch; zero where the venue sends none.
    pub ts_event: Nanos,
}

/// The venue's ticker: best levels and the last trade's price (Kraken `ticker`, Binance `24hrTicker`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticker {
    /// The instrument.
    pub symbol: Symbol,
    /// The best bid's price.
    pub bid_px: Decimal,
    /// The best bid's quantity.
    pub bid_qty: Decimal,
    /// The best offer's price.
    pub ask_px: Decimal,
    /// The best offer's quantity.
    pub ask_qty: Decimal,
    /// The last trade's price.
    pub last_px: Decimal,
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

/// One price level as the venue wrote it: mantissas with the decimals of its event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// The price's digits.
    pub px: i64,
    /// The quantity's digits; zero deletes the level.
    pub qty: i64,
}

/// Where the levels of one event stand in [`EventBuffer::levels`], and how many decimals they have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    bids: (u32, u32),
    asks: (u32, u32),
    /// Decimals of every price.
    pub px_decimals: u8,
    /// Decimals of every quantity.
    pub qty_decimals: u8,
}

impl Levels {
    /// The bids' place in the buffer.
    #[must_use]
    pub const fn bids(&self) -> Range<usize> {
        self.bids.0 as usize..self.bids.1 as usize
    }

    /// The offers' place in the buffer.
    #[must_use]
    pub const fn asks(&self) -> Range<usize> {
        self.asks.0 as usize..self.asks.1 as usize
    }

    /// How many levels there are on both sides.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bids().len() + self.asks().len()
    }

    /// Whether no level is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Changed levels of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookDelta {
    /// The instrument.
    pub symbol: Symbol,
    /// The first update that is included (Binance `U`); zero where the venue numbers nothing.
    pub first_id: u64,
    /// The last update that is included (Binance `u`); zero where the venue numbers nothing.
    pub last_id: u64,
    /// The last update of the delta before (Binance USD-M `pu`).
    pub previous_id: Option<u64>,
    /// CRC-32 over the best levels after this delta (Kraken).
    pub checksum: Option<u32>,
    /// The levels.
    pub levels: Levels,
    /// The venue's time, Unix epoch.
    pub ts_event: Nanos,
}

/// All levels of a book, best first on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookSnapshot {
    /// The instrument; `None` in a REST body, which does not name it.
    pub symbol: Option<Symbol>,
    /// The last update that is included; zero where the venue numbers nothing.
    pub last_id: u64,
    /// CRC-32 over the best levels (Kraken).
    pub checksum: Option<u32>,
    /// The levels.
    pub levels: Levels,
    /// The venue's time, Unix epoch; zero where the venue sends none.
    pub ts_event: Nanos,
}

/// A mark price and funding rate (Binance `markPriceUpdate`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkPrice {
    /// The instrument.
    pub symbol: Symbol,
    /// The mark price.
    pub mark_px: Decimal,
    /// The index price.
    pub index_px: Decimal,
    /// The rate of the next funding; `None` where the contract has none.
    pub funding_rate: Option<Decimal>,
    /// When the next funding is paid, Unix epoch; zero where the contract has none.
    pub ts_next_funding: Nanos,
    /// The venue's time, Unix epoch.
    pub ts_event: Nanos,
}

/// A venue's identifier of an order: its number or text, up to 23 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OrderId(pub Symbol);

/// An update of an own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderUpdate {
    /// The instrument; `None` where the update leaves it out.
    pub symbol: Option<Symbol>,
    /// The venue's identifier.
    pub order_id: OrderId,
    /// Buy or sell; `None` where the update leaves it out.
    pub side: Option<OrderSide>,
    /// The order's state after the update.
    pub status: OrderStatus,
    /// The limit price, zero for a market order; `None` where the update leaves it out.
    pub limit_px: Option<Decimal>,
    /// The whole quantity; `None` where the update leaves it out.
    pub qty: Option<Decimal>,
    /// The quantity executed up to now; `None` where the update leaves it out.
    pub filled_qty: Option<Decimal>,
    /// The execution that the update tells of, if it does.
    pub fill: Option<Fill>,
    /// The venue's time, Unix epoch.
    pub ts_event: Nanos,
}

/// One execution of an own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The venue's number of the trade; zero where it is text.
    pub trade_id: u64,
    /// The price.
    pub px: Decimal,
    /// The quantity.
    pub qty: Decimal,
}

/// The state of an own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OrderStatus {
    /// Sent, not yet acknowledged by the matching engine.
    Pending,
    /// Open, nothing executed.
    New,
    /// Open, partly executed.
    PartiallyFilled,
    /// Executed in full.
    Filled,
    /// Withdrawn.
    Cancelled,
    /// Refused.
    Rejected,
    /// Ended by its own conditions.
    Expired,
}

impl OrderStatus {
    /// Whether the order can still change.
    #[must_use]
    pub const fn is_open(self) -> bool {
        match self {
            Self::Pending | Self::New | Self::PartiallyFilled => true,
            Self::Filled | Self::Cancelled | Self::Rejected | Self::Expired => false,
        }
    }
}

/// Reusable room for the lists of one parsed frame. It never grows; the default one has no room.
#[derive(Debug, Default)]
pub struct EventBuffer {
    /// Filled to its capacity; the first `levels_len` are of the last frame.
    levels: Vec<Level>,
    levels_len: usize,
    trades: Vec<Trade>,
    order_updates: Vec<OrderUpdate>,
    entries_max: usize,
    is_general: bool,
}

impl EventBuffer {
    /// Room for `levels_max` levels, and `entries_max` trades and order updates in one frame.
    #[must_use]
    pub fn new(levels_max: usize, entries_max: usize) -> Self {
        Self {
            levels: alloc::vec![Level::default(); levels_max],
            levels_len: 0,
            trades: Vec::with_capacity(entries_max),
            order_updates: Vec::with_capacity(entries_max),
            entries_max,
            is_general: false,
        }
    }

    /// The levels of the last parsed book event; its [`Levels`] say which are bids.
    #[must_use]
    pub fn levels(&self) -> &[Level] {
        &self.levels[..self.levels_len]
    }

    /// The trades of the last parsed frame.
    #[must_use]
    pub fn trades(&self) -> &[Trade] {
        &self.trades
    }

    /// The order updates of the last parsed frame.
    #[must_use]
    pub fn order_updates(&self) -> &[OrderUpdate] {
        &self.order_updates
    }

    /// Whether the last frame was read by the general path.
    #[must_use]
    pub const fn is_general(&self) -> bool {
        self.is_general
    }

    /// As `clear`, by the general path.
    pub(crate) fn begin_general(&mut self) {
        self.clear();
        self.is_general = true;
    }

    /// Forgets the last frame.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.levels_len = 0;
        self.is_general = false;
        self.trades.clear();
        self.order_updates.clear();
    }

    pub(crate) fn push_trade(&mut self, trade: Trade) -> Result<(), Fault> {
        if self.trades.len() == self.entries_max {
            return Err(Fault::TooManyEntries);
        }
        self.trades.push(trade);
        Ok(())
    }

    pub(crate) fn push_order_update(&mut self, update: OrderUpdate) -> Result<(), Fault> {
        if self.order_updates.len() == self.entries_max {
            return Err(Fault::TooManyEntries);
        }
        self.order_updates.push(update);
        Ok(())
    }

    /// Appends a level to the list whose decimals are kept in `list`; digits are added to whichever has fewer.
    #[inline]
    pub(crate) fn push_level(&mut self, list: &mut Levels, px: Decimal, qty: Decimal) -> Result<(), Fault> {
        if px.decimals != list.px_decimals || qty.decimals != list.qty_decimals {
            return self.push_rescaled(list, px, qty);
        }
        let slot = self.levels.get_mut(self.levels_len).ok_or(Fault::TooManyLevels)?;
        *slot = Level { px: px.mantissa, qty: qty.mantissa };
        self.levels_len += 1;
        Ok(())
    }

    #[cold]
    fn push_rescaled(&mut self, list: &mut Levels, px: Decimal, qty: Decimal) -> Result<(), Fault> {
        let first = self.levels_len == 0;
        let px_decimals = if first { px.decimals } else { list.px_decimals.max(px.decimals) };
        let qty_decimals = if first { qty.decimals } else { list.qty_decimals.max(qty.decimals) };
        for level in &mut self.levels[..self.levels_len] {
            level.px = Decimal::new(level.px, list.px_decimals).mantissa_at(px_decimals)?;
            level.qty = Decimal::new(level.qty, list.qty_decimals).mantissa_at(qty_decimals)?;
        }
        let slot = self.levels.get_mut(self.levels_len).ok_or(Fault::TooManyLevels)?;
        *slot = Level { px: px.mantissa_at(px_decimals)?, qty: qty.mantissa_at(qty_decimals)? };
        self.levels_len += 1;
        list.px_decimals = px_decimals;
        list.qty_decimals = qty_decimals;
        Ok(())
    }

    /// The buffer's length as the start or the end of a side.
    #[inline]
    pub(crate) fn mark(&self) -> u32 {
        self.levels_len as u32
    }
}

impl Levels {
    #[inline]
    pub(crate) fn set_bids(&mut self, start: u32, end: u32) {
        self.bids = (start, end);
    }

    #[inline]
    pub(crate) fn set_asks(&mut self, start: u32, end: u32) {
        self.asks = (start, end);
    }
}
