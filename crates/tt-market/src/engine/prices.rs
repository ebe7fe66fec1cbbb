//! Tickers, trades, candles and mark prices.

use super::{Applied, Engine};
use crate::board::{TickerState, TradePrint};
use crate::candle::CandleSource;
use crate::counters::CLOCKS_APART_MAX;
use crate::drop_reason::DropReason;
use crate::instrument::SeenTicker;
use crate::mark::{Contract, Mark, PositionMark};
use crate::seen_trades::TradeOrder;
use tt_meter::{Probe, Stage};
use tt_model::{Decimal, InstrumentId, Nanos, Price, Qty};
use tt_venue::event::{BookTicker, MarkPrice, Ticker, Trade};
use tt_venue::listing::ContractUnit;
use tt_venue::{BookLevel, Venue};

impl Engine {
    /// The ticker of a venue that numbers it by its book: also the book's second witness.
    #[inline]
    pub(super) fn apply_book_ticker(
        &mut self,
        ts_recv: Nanos,
        venue: Venue,
        event: &BookTicker,
        probe: &mut impl Probe,
    ) -> Result<Applied, DropReason> {
        let index = self.find(venue, &event.symbol)?;
        probe.mark(Stage::LookUp);
        let seen = SeenTicker {
            update_id: event.update_id,
            bid: self.best_level(index, event.bid_px, event.bid_qty)?,
            ask: self.best_level(index, event.ask_px, event.ask_qty)?,
        };
        probe.mark(Stage::Validate);
        let quote = &self.quotes[index];
        let at_book = quote.has_book && self.instruments[index].note_ticker(seen);
        let ticker = TickerState {
            bid: some_level(seen.bid),
            ask: some_level(seen.ask),
            last_px: quote.last_px,
            update_id: event.update_id,
            ts_recv,
        };
        let id = InstrumentId(index as u32);
        // Shown while it is still in registers; that stage counts it, `Serialize` has the proof alone.
        self.writer.store_ticker(id, ticker);
        self.counters.venue_mut(venue).tickers += 1;
        self.mirror(index, CandleSource::BestBid, ts_recv, event.ts_event, (seen.bid.px, Qty(0)));
        probe.mark(Stage::Build);
        let verdict = if at_book { self.cross_check_ticker(index, &seen, ts_recv) } else { Ok(()) };
        probe.mark(Stage::Serialize);
        verdict.map(|()| Applied::Ticker(id))
    }

    /// A best level in whole steps.
    #[inline]
    fn best_level(&mut self, index: usize, px: Decimal, qty: Decimal) -> Result<BookLevel, DropReason> {
        match self.quotes[index].level(px, qty) {
            Some(level) => level,
            None => self.unusual_level(index, px, qty),
        }
    }

    #[cold]
    fn unusual_level(&mut self, index: usize, px: Decimal, qty: Decimal) -> Result<BookLevel, DropReason> {
        let instrument = &mut self.instruments[index];
        let level = instrument.level(px, qty);
        self.quotes[index].follow_steps(instrument);
        level
    }

    /// Tickers that are not numbered by the book, whole or in part. Every one that can be applied is; where none can,
    /// the first reason is the frame's.
    pub(super) fn apply_tickers(
        &mut self,
        ts_recv: Nanos,
        venue: Venue,
        tickers: &[Ticker],
        probe: &mut impl Probe,
    ) -> Result<Applied, DropReason> {
        let mut result = Ok(Applied::Control);
        for ticker in tickers {
            match self.apply_ticker(ts_recv, venue, ticker) {
                Ok(id) => result = Ok(Applied::Ticker(id)),
                // A list of all instruments names some that are not followed.
                Err(reason) if matches!(result, Ok(Applied::Control)) || reason != DropReason::UnknownSymbol => {
                    result = Err(reason);
                }
                Err(_) => {}
            }
        }
        probe.mark(Stage::Build);
        result
    }

    fn apply_ticker(&mut self, ts_recv: Nanos, venue: Venue, event: &Ticker) -> Result<InstrumentId, DropReason> {
        let index = self.find(venue, &event.symbol)?;
        let id = InstrumentId(index as u32);
        let instrument = &mut self.instruments[index];
        let quote = &mut self.quotes[index];
        let known = TickerState { last_px: quote.last_px, ..self.writer.ticker(id) };
        let bid = instrument.merged(known.bid, event.bid_px, event.bid_qty)?;
        let ask = instrument.merged(known.ask, event.ask_px, event.ask_qty)?;
        let last_px = event.last_px.map(|px| instrument.price(px)).transpose()?;
        let update_id = if event.bid_px.is_some() || event.ask_px.is_some() { 0 } else { known.update_id };
        let ticker = TickerState { bid, ask, last_px: last_px.unwrap_or(known.last_px), update_id, ts_recv };
        quote.last_px = ticker.last_px;
        self.counters.venue_mut(venue).tickers += 1;
        if let Some(bid) = bid.filter(|_| event.bid_px.is_some()) {
            self.mirror(index, CandleSource::BestBid, ts_recv, event.ts_event, (bid.px, Qty(0)));
        }
        if let Some(last_px) = last_px {
            self.mirror(index, CandleSource::LastPrice, ts_recv, event.ts_event, (last_px, Qty(0)));
        }
        self.writer.store_ticker(id, ticker);
        let has_best = event.bid_qty.is_some() && event.ask_qty.is_some() && event.ts_event.0 != 0;
        if has_best && self.instruments[index].spacing.is_some() {
            self.note_best_time(index, event.ts_event, ts_recv);
        }
        self.merge_contract(index, event, ts_recv)?;
        Ok(id)
    }

    /// Mark price, index price, funding and open interest of a ticker.
    fn merge_contract(&mut self, index: usize, event: &Ticker, ts_recv: Nanos) -> Result<(), DropReason> {
        let instrument = &mut self.instruments[index];
        let id = InstrumentId(index as u32);
        let values = [event.index_px, event.mid_px, event.funding_rate, event.open_interest];
        if values.iter().any(Option::is_some) || event.ts_next_funding.is_some() {
            let known = &mut instrument.contract;
            known.index_px = event.index_px.or(known.index_px);
            known.mid_px = event.mid_px.or(known.mid_px);
            known.funding_rate = event.funding_rate.or(known.funding_rate);
            known.open_interest = event.open_interest.or(known.open_interest);
            known.ts_next_funding = event.ts_next_funding.unwrap_or(known.ts_next_funding);
            known.ts_recv = ts_recv;
            self.writer.store_contract(id, known);
        }
        let Some(mark_px) = event.mark_px else { return Ok(()) };
        let Contract { index_px, funding_rate, ts_next_funding, .. } = instrument.contract;
        let mark = Mark {
            mark_px,
            index_px: index_px.unwrap_or_default(),
            funding_rate,
            ts_next_funding,
            ts_event: event.ts_event,
            ts_recv,
        };
        self.value_positions(index, mark)
    }

    /// Every trade of the frame must be for a known instrument, or none is applied.
    pub(super) fn apply_trades(
        &mut self,
        ts_recv: Nanos,
        venue: Venue,
        trades: &[Trade],
        probe: &mut impl Probe,
    ) -> Result<Applied, DropReason> {
        let mut off_market = 0;
        for trade in trades {
            off_market += u64::from(!trade.in_market);
            let index = self.find(venue, &trade.symbol)?;
            let instrument = &mut self.instruments[index];
            // Prints outside of the market may have a price of zero, or none of the instrument's steps.
            if trade.in_market {
                instrument.price(trade.px)?;
                instrument.quantity(trade.qty)?;
            }
        }
        probe.mark(Stage::Validate);
        let (mut duplicates, mut late, mut history) = (0, 0, 0);
        if self.changes.is_on() {
            self.changes.begin_trades();
        }
        for trade in trades.iter().filter(|trade| trade.in_market) {
            let index = self.find(venue, &trade.symbol)?;
            let instrument = &mut self.instruments[index];
            let (px, qty) = (instrument.price(trade.px)?, instrument.quantity(trade.qty)?);
            // A venue's clock that runs ahead must not make all trades late once it is set right.
            let ts_trade = trade.ts_event.min(ts_recv.saturating_add(CLOCKS_APART_MAX));
            let order = instrument.trades.note(trade.trade_id, ts_trade);
            if order != TradeOrder::Repeated {
                instrument.trade_count += 1;
                let print = TradePrint {
                    number: instrument.trade_count,
                    trade_id: trade.trade_id,
                    px,
                    qty,
                    aggressor: trade.aggressor,
                    is_late: order == TradeOrder::Late,
                    is_history: trade.is_history,
                    ts_event: trade.ts_event,
                    ts_recv,
                };
                self.writer.store_trade(InstrumentId(index as u32), &print);
                if self.changes.is_on() {
                    self.changes.note_trade(InstrumentId(index as u32), print);
                }
            }
            match order {
                TradeOrder::Next if trade.is_history => {
                    history += 1;
                    self.quotes[index].last_px = px;
                    self.mirror_history(index, ts_recv, trade.ts_event, (px, qty));
                }
                TradeOrder::Late if trade.is_history => {
                    history += 1;
                    self.mirror_late(index, trade.ts_event, px, qty);
                }
                TradeOrder::Next => {
                    self.quotes[index].last_px = px;
                    self.mirror(index, CandleSource::Trades, ts_recv, trade.ts_event, (px, qty));
                }
                TradeOrder::Late => {
                    late += 1;
                    self.counters.venue_mut(venue).note_lag(ts_recv, trade.ts_event);
                    self.mirror_late(index, trade.ts_event, px, qty);
                }
                TradeOrder::Repeated => duplicates += 1,
            }
        }
        let counters = self.counters.venue_mut(venue);
        counters.trades += trades.len() as u64 - duplicates - history - off_market;
        counters.off_market_trades += off_market;
        counters.history_trades += history;
        counters.duplicate_trades += duplicates;
        counters.late_trades += late;
        probe.mark(Stage::Build);
        Ok(Applied::Trades)
    }

    /// Adds a price to the instrument's candles if they are made of `source`, and shows them. Where the venue's clock runs
    /// far ahead, a price counts as of its receipt: a candle of the future would keep all others out.
    #[inline]
    fn mirror(&mut self, index: usize, source: CandleSource, ts_recv: Nanos, ts_event: Nanos, price: (Price, Qty)) {
        let quote = &self.quotes[index];
        let venue = quote.venue;
        let has_candles = quote.candles == source && self.timeframes > 0;
        self.counters.venue_mut(venue).note_lag(ts_recv, ts_event);
        if has_candles {
            self.mirror_candles(index, venue, ts_recv, ts_event, price);
        }
    }

    /// As `mirror`, for a trade from before the subscription: when it was made says nothing of the way here.
    fn mirror_history(&mut self, index: usize, ts_recv: Nanos, ts_event: Nanos, price: (Price, Qty)) {
        let quote = &self.quotes[index];
        if quote.candles == CandleSource::Trades && self.timeframes > 0 {
            self.mirror_candles(index, quote.venue, ts_recv, ts_event, price);
        }
    }

    /// The candles of `mirror`: apart from it, since most prices have none.
    #[inline(never)]
    fn mirror_candles(&mut self, index: usize, venue: Venue, ts_recv: Nanos, ts_event: Nanos, price: (Price, Qty)) {
        let ts = if ts_event.0 == 0 { ts_recv } else { ts_event.min(ts_recv.saturating_add(CLOCKS_APART_MAX)) };
        let id = InstrumentId(index as u32);
        for timeframe in 0..self.timeframes {
            let mut candle = self.writer.candle(id, timeframe);
            if candle.add(self.capacity.timeframes[timeframe], ts, price.0, price.1) {
                self.writer.store_candle(id, timeframe, &candle);
            } else {
                self.counters.venue_mut(venue).late_prices += 1;
            }
        }
    }

    /// As `mirror`, for a trade that is older than the last one.
    fn mirror_late(&mut self, index: usize, ts_event: Nanos, px: Price, qty: Qty) {
        let quote = &self.quotes[index];
        if quote.candles != CandleSource::Trades {
            return;
        }
        let id = InstrumentId(index as u32);
        for timeframe in 0..self.timeframes {
            let mut candle = self.writer.candle(id, timeframe);
            if candle.add_late(self.capacity.timeframes[timeframe], ts_event, px, qty) {
                self.writer.store_candle(id, timeframe, &candle);
            } else {
                self.counters.venue_mut(quote.venue).late_prices += 1;
            }
        }
    }

    pub(super) fn apply_mark_price(
        &mut self,
        ts_recv: Nanos,
        venue: Venue,
        event: &MarkPrice,
        probe: &mut impl Probe,
    ) -> Result<Applied, DropReason> {
        let index = self.find(venue, &event.symbol)?;
        let id = InstrumentId(index as u32);
        probe.mark(Stage::LookUp);
        let mark = Mark::new(event, ts_recv);
        self.value_positions(index, mark)?;
        self.counters.venue_mut(venue).note_lag(ts_recv, event.ts_event);
        probe.mark(Stage::Build);
        Ok(Applied::MarkPrice(id))
    }

    /// Values every position of the instrument at its new mark price, and shows both.
    #[inline]
    fn value_positions(&mut self, index: usize, mark: Mark) -> Result<(), DropReason> {
        let id = InstrumentId(index as u32);
        let instrument = &mut self.instruments[index];
        instrument.mark = Some(mark);
        let (lot, unit) = (instrument.spec.lot_size, instrument.unit);
        let is_base = matches!(unit, ContractUnit::Base);
        for (slot, position) in self.positions.of(id) {
            let value = if is_base {
                PositionMark::new(position, lot, &mark)?
            } else {
                PositionMark::of_contract(position, lot, unit, &mark)?
            };
            self.writer.store_position(slot, &value);
        }
        self.counters.venue_mut(instrument.spec.venue).mark_prices += 1;
        self.writer.store_mark(id, &mark);
        Ok(())
    }
}

/// A venue shows an empty side as a quantity of zero.
#[inline]
fn some_level(level: BookLevel) -> Option<BookLevel> {
    (level.qty.0 != 0).then_some(level)
}
