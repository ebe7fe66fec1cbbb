//! Books: levels, deltas, snapshots, and the ticker that is numbered by its book.

use crate::event::OrderId;
use crate::symbol::Symbol;
use core::ops::Range;
use tt_model::{Decimal, Nanos, OrderSide};

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

/// One price level as the venue wrote it: mantissas with the decimals of its event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// The price's digits.
    pub px: i64,
    /// The quantity's digits; zero deletes the level.
    pub qty: i64,
}

/// Where the levels of one event stand in [`EventBuffer::levels`](crate::event::EventBuffer::levels), and how many decimals they have.
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

impl Levels {
    /// Sets the bids' place in the buffer.
    #[inline]
    pub const fn set_bids(&mut self, start: u32, end: u32) {
        self.bids = (start, end);
    }

    /// Sets the offers' place in the buffer.
    #[inline]
    pub const fn set_asks(&mut self, start: u32, end: u32) {
        self.asks = (start, end);
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

/// What happened to the orders of an order-by-order book; they are in
/// [`EventBuffer::book_orders`](crate::event::EventBuffer::book_orders).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookOrders {
    /// The instrument.
    pub symbol: Symbol,
    /// Whether these are all orders, the best first and at the same price the oldest.
    pub is_snapshot: bool,
    /// The message's number among those of the instrument (Coinbase `sequence`); zero where the venue numbers nothing.
    pub number: u64,
    /// CRC-32 over the orders of the best levels after this message (Kraken).
    pub checksum: Option<u32>,
    /// The venue's time, Unix epoch; zero where the venue sends none.
    pub ts_event: Nanos,
}

/// What happened to one order of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookOrder {
    /// What happened.
    pub action: OrderAction,
    /// Whether it bids.
    pub side: OrderSide,
    /// The venue's identifier.
    pub order_id: OrderId,
    /// The price; `None` where it stays as it was.
    pub px: Option<Decimal>,
    /// The quantity: what is left of the order, or what an execution took from it.
    pub qty: Decimal,
    /// The venue's time of the order, Unix epoch; zero where the venue sends none.
    pub ts_event: Nanos,
}

/// What happened to an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OrderAction {
    /// It rests in the book from now on, behind all others of its price.
    Add,
    /// What is left of it, or its price, is another; nothing happens where it does not rest in the book.
    Change,
    /// An execution took a part of it.
    Take,
    /// It rests no more, if it ever did.
    Delete,
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
