//! Room for what one frame lists.

use super::{
    Balance, BookOrder, BookOrders, Coverage, Execution, Level, Levels, Liquidation, OrderUpdate, PositionUpdate,
    Ticker, Trade, VenueCandle,
};
use crate::error::ParseError;
use alloc::boxed::Box;
use alloc::vec::Vec;
use tt_model::Decimal;

/// Reusable room for the lists of one parsed frame, reserved once; the default one has no room.
#[derive(Debug, Default)]
pub struct EventBuffer {
    /// The first `levels_len` are of the last frame. Grows up to the longest frame, within the room reserved for it, so
    /// that memory that is never used is not touched.
    levels: Vec<Level>,
    levels_max: usize,
    levels_len: usize,
    trades: Vec<Trade>,
    /// The lists of rarer frames, apart so that the buffer is cheap to move.
    lists: Option<Box<Lists>>,
    /// Whether one of them may hold something.
    has_entries: bool,
    /// Whether the message has a number on its connection.
    is_numbered: bool,
    /// Whether the message's trade took an order of the book.
    has_taken: bool,
    is_general: bool,
}

impl EventBuffer {
    /// Room for `levels_max` levels, and `entries_max` entries of each other list in one frame.
    #[must_use]
    pub fn new(levels_max: usize, entries_max: usize) -> Self {
        Self::with_orders(levels_max, entries_max, entries_max)
    }

    /// As [`new`](Self::new), with room for `orders_max` orders of a book in one frame.
    #[must_use]
    pub fn with_orders(levels_max: usize, entries_max: usize, orders_max: usize) -> Self {
        Self {
            levels: Vec::with_capacity(levels_max),
            levels_max,
            levels_len: 0,
            trades: Vec::with_capacity(entries_max),
            lists: Some(Box::new(Lists::new(entries_max, orders_max))),
            has_entries: false,
            is_numbered: false,
            has_taken: false,
            is_general: false,
        }
    }

    /// The levels of the last parsed book event; its [`Levels`] say which are bids.
    #[must_use]
    #[inline]
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
        self.lists.as_ref().map_or(&[], |lists| &lists.order_updates)
    }

    /// The tickers of the last parsed frame.
    #[must_use]
    pub fn tickers(&self) -> &[Ticker] {
        self.lists.as_ref().map_or(&[], |lists| &lists.tickers)
    }

    /// The venue's candles of the last parsed frame.
    #[must_use]
    pub fn candles(&self) -> &[VenueCandle] {
        self.lists.as_ref().map_or(&[], |lists| &lists.candles)
    }

    /// The liquidations of the last parsed frame.
    #[must_use]
    pub fn liquidations(&self) -> &[Liquidation] {
        self.lists.as_ref().map_or(&[], |lists| &lists.liquidations)
    }

    /// The executions of the last parsed frame.
    #[must_use]
    pub fn executions(&self) -> &[Execution] {
        self.lists.as_ref().map_or(&[], |lists| &lists.executions)
    }

    /// The balances of the last parsed frame.
    #[must_use]
    pub fn balances(&self) -> &[Balance] {
        self.lists.as_ref().map_or(&[], |lists| &lists.balances)
    }

    /// The positions of the last parsed frame.
    #[must_use]
    pub fn positions(&self) -> &[PositionUpdate] {
        self.lists.as_ref().map_or(&[], |lists| &lists.positions)
    }

    /// What happened to the orders of a book, by the last parsed frame.
    #[must_use]
    pub fn book_orders(&self) -> &[BookOrder] {
        self.lists.as_ref().map_or(&[], |lists| &lists.book_orders)
    }

    /// Effect of the last parsed frame's trade on an order-by-order book.
    #[inline]
    #[must_use]
    pub fn taken_order(&self) -> Option<&BookOrders> {
        if self.has_taken { self.lists.as_ref()?.taken.as_ref() } else { None }
    }

    /// The number of the last parsed message on its connection, where the venue numbers those.
    #[inline]
    #[must_use]
    pub fn message_number(&self) -> Option<u64> {
        if self.is_numbered { self.lists.as_ref()?.message_number } else { None }
    }

    /// Which of the account's orders the last parsed frame lists.
    #[must_use]
    pub fn orders_coverage(&self) -> Coverage {
        self.lists.as_ref().map_or(Coverage::Changed, |lists| lists.orders_coverage)
    }

    /// Which of the account's positions the last parsed frame lists.
    #[must_use]
    pub fn positions_coverage(&self) -> Coverage {
        self.lists.as_ref().map_or(Coverage::Changed, |lists| lists.positions_coverage)
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
        if self.has_entries {
            self.clear_entries();
        }
    }

    #[cold]
    fn clear_entries(&mut self) {
        self.has_entries = false;
        self.is_numbered = false;
        self.has_taken = false;
        if let Some(lists) = &mut self.lists {
            lists.clear();
        }
    }

    fn lists_mut(&mut self) -> Result<&mut Lists, ParseError> {
        self.has_entries = true;
        self.lists.as_deref_mut().ok_or(ParseError::TooManyEntries)
    }

    pub(crate) fn push_trade(&mut self, trade: Trade) -> Result<(), ParseError> {
        push(&mut self.trades, trade)
    }

    pub(crate) fn push_order_update(&mut self, order_update: OrderUpdate) -> Result<(), ParseError> {
        push(&mut self.lists_mut()?.order_updates, order_update)
    }

    pub(crate) fn push_ticker(&mut self, ticker: Ticker) -> Result<(), ParseError> {
        push(&mut self.lists_mut()?.tickers, ticker)
    }

    pub(crate) fn push_candle(&mut self, candle: VenueCandle) -> Result<(), ParseError> {
        push(&mut self.lists_mut()?.candles, candle)
    }

    pub(crate) fn push_liquidation(&mut self, liquidation: Liquidation) -> Result<(), ParseError> {
        push(&mut self.lists_mut()?.liquidations, liquidation)
    }

    pub(crate) fn push_book_order(&mut self, order: BookOrder) -> Result<(), ParseError> {
        push(&mut self.lists_mut()?.book_orders, order)
    }

    pub(crate) fn take_order(&mut self, update: BookOrders) -> Result<(), ParseError> {
        self.lists_mut()?.taken = Some(update);
        self.has_taken = true;
        Ok(())
    }

    pub(crate) fn push_execution(&mut self, execution: Execution) -> Result<(), ParseError> {
        push(&mut self.lists_mut()?.executions, execution)
    }

    pub(crate) fn push_balance(&mut self, balance: Balance) -> Result<(), ParseError> {
        push(&mut self.lists_mut()?.balances, balance)
    }

    pub(crate) fn push_position(&mut self, position: PositionUpdate) -> Result<(), ParseError> {
        push(&mut self.lists_mut()?.positions, position)
    }

    pub(crate) fn number_message(&mut self, number: u64) -> Result<(), ParseError> {
        self.lists_mut()?.message_number = Some(number);
        self.is_numbered = true;
        Ok(())
    }

    pub(crate) fn cover_orders(&mut self, coverage: Coverage) -> Result<(), ParseError> {
        self.lists_mut()?.orders_coverage = coverage;
        Ok(())
    }

    pub(crate) fn cover_positions(&mut self, coverage: Coverage) -> Result<(), ParseError> {
        self.lists_mut()?.positions_coverage = coverage;
        Ok(())
    }

    /// Appends a level to the list whose decimals are kept in `list`; digits are added to whichever has fewer.
    #[inline(always)]
    pub(crate) fn push_level(&mut self, list: &mut Levels, px: Decimal, qty: Decimal) -> Result<(), ParseError> {
        if px.decimals != list.px_decimals || qty.decimals != list.qty_decimals {
            return self.push_rescaled(list, px, qty);
        }
        self.append(Level { px: px.mantissa, qty: qty.mantissa })
    }

    #[inline(always)]
    fn append(&mut self, level: Level) -> Result<(), ParseError> {
        let Some(slot) = self.levels.get_mut(self.levels_len) else { return self.push_new(level) };
        *slot = level;
        self.levels_len += 1;
        Ok(())
    }

    /// Appends a level beyond those of every frame before.
    #[cold]
    fn push_new(&mut self, level: Level) -> Result<(), ParseError> {
        if self.levels.len() >= self.levels_max {
            return Err(ParseError::TooManyLevels);
        }
        self.levels.push(level);
        self.levels_len += 1;
        Ok(())
    }

    #[cold]
    fn push_rescaled(&mut self, list: &mut Levels, px: Decimal, qty: Decimal) -> Result<(), ParseError> {
        let first = self.levels_len == 0;
        let px_decimals = if first { px.decimals } else { list.px_decimals.max(px.decimals) };
        let qty_decimals = if first { qty.decimals } else { list.qty_decimals.max(qty.decimals) };
        for level in &mut self.levels[..self.levels_len] {
            level.px = Decimal::new(level.px, list.px_decimals).mantissa_at(px_decimals)?;
            level.qty = Decimal::new(level.qty, list.qty_decimals).mantissa_at(qty_decimals)?;
        }
        self.append(Level { px: px.mantissa_at(px_decimals)?, qty: qty.mantissa_at(qty_decimals)? })?;
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

/// Never beyond the capacity that was taken in the beginning.
fn push<T>(list: &mut Vec<T>, entry: T) -> Result<(), ParseError> {
    if list.len() == list.capacity() {
        return Err(ParseError::TooManyEntries);
    }
    list.push(entry);
    Ok(())
}

#[derive(Debug)]
struct Lists {
    order_updates: Vec<OrderUpdate>,
    tickers: Vec<Ticker>,
    candles: Vec<VenueCandle>,
    liquidations: Vec<Liquidation>,
    executions: Vec<Execution>,
    balances: Vec<Balance>,
    positions: Vec<PositionUpdate>,
    book_orders: Vec<BookOrder>,
    taken: Option<BookOrders>,
    message_number: Option<u64>,
    orders_coverage: Coverage,
    positions_coverage: Coverage,
}

impl Lists {
    fn new(entries_max: usize, orders_max: usize) -> Self {
        Self {
            order_updates: Vec::with_capacity(entries_max),
            tickers: Vec::with_capacity(entries_max),
            candles: Vec::with_capacity(entries_max),
            liquidations: Vec::with_capacity(entries_max),
            executions: Vec::with_capacity(entries_max),
            balances: Vec::with_capacity(entries_max),
            positions: Vec::with_capacity(entries_max),
            book_orders: Vec::with_capacity(orders_max),
            taken: None,
            message_number: None,
            orders_coverage: Coverage::Changed,
            positions_coverage: Coverage::Changed,
        }
    }

    fn clear(&mut self) {
        self.order_updates.clear();
        self.tickers.clear();
        self.candles.clear();
        self.liquidations.clear();
        self.executions.clear();
        self.balances.clear();
        self.positions.clear();
        self.book_orders.clear();
        self.taken = None;
        self.message_number = None;
        self.orders_coverage = Coverage::Changed;
        self.positions_coverage = Coverage::Changed;
    }
}
