//! Tickers, trades, candles, mark prices and own orders.

use super::{Applied, Engine};
use crate::board::TickerState;
use crate::candle::CandleSource;
use crate::instrument::{BookState, SeenTicker};
use crate::mark::{Mark, PositionMark};
use crate::{BookLevel, BookTicker, Fault, MarkPrice, OrderUpdate, Ticker, Trade, Venue};
use tt_meter::{Probe, Stage};
use tt_model::{InstrumentId, Nanos, Price, Qty};

impl Engine {
    /// The ticker of a venue that numbers it by its book: also the book's second witness.
    #[inline]
    pub(super) fn apply_book_ticker(
        &mut self,
        ts_recv: Nanos,
        venue: Venue,
        event: &BookTicker,
        probe: &mut impl Probe,
    ) -> Result<Applied, Fault> {
        let index = self.find(venue, &event.symbol)?;
        probe.mark(Stage::LookUp);
        let instrument = &mut self.instruments[index];
        let seen = SeenTicker {
            update_id: event.update_id,
            bid: instrument.level(event.bid_px, event.bid_qty)?,
            ask: instrument.level(event.ask_px, event.ask_qty)?,
        };
        probe.mark(Stage::Validate);
        instrument.tickers.push(seen);
        instrument.ticker = TickerState {
            bid: some_level(seen.bid),
            ask: some_level(seen.ask),
            last_px: instrument.ticker.last_px,
            update_id: event.update_id,
            ts_recv,
        };
        let at_book = instrument.state == BookState::Live && instrument.top.update_id == event.update_id;
        let id = InstrumentId(index as u32);
        // Shown while it is still in registers; that stage counts it, `Serialize` has the proof alone.
        self.writer.store_ticker(id, instrument.ticker);
        self.counters.venue_mut(venue).tickers += 1;
        self.mirror(index, CandleSource::BestBid, ts_recv, event.ts_event, (seen.bid.px, Qty(0)));
        probe.mark(Stage::Build);
        let verdict = if at_book { self.confront(index, &seen, ts_recv) } else { Ok(()) };
        probe.mark(Stage::Serialize);
        verdict.map(|()| Applied::Ticker(id))
    }

    /// The ticker of a venue that does not number it.
    pub(super) fn apply_ticker(
        &mut self,
        ts_recv: Nanos,
        venue: Venue,
        event: &Ticker,
        probe: &mut impl Probe,
    ) -> Result<Applied, Fault> {
        let index = self.find(venue, &event.symbol)?;
        probe.mark(Stage::LookUp);
        let instrument = &mut self.instruments[index];
        let bid = instrument.level(event.bid_px, event.bid_qty)?;
        let ask = instrument.level(event.ask_px, event.ask_qty)?;
        let last_px = instrument.price(event.last_px)?;
        probe.mark(Stage::Validate);
        instrument.ticker = TickerState { bid: some_level(bid), ask: some_level(ask), last_px, update_id: 0, ts_recv };
        self.counters.venue_mut(venue).tickers += 1;
        self.mirror(index, CandleSource::BestBid, ts_recv, event.ts_event, (bid.px, Qty(0)));
        self.mirror(index, CandleSource::LastPrice, ts_recv, event.ts_event, (last_px, Qty(0)));
        probe.mark(Stage::Build);
        let id = InstrumentId(index as u32);
        self.writer.store_ticker(id, self.instruments[index].ticker);
        probe.mark(Stage::Serialize);
        Ok(Applied::Ticker(id))
    }

    /// Every trade of the frame must be for a known instrument, or none is applied.
    pub(super) fn apply_trades(
        &mut self,
        ts_recv: Nanos,
        venue: Venue,
        trades: &[Trade],
        probe: &mut impl Probe,
    ) -> Result<Applied, Fault> {
        for trade in trades {
            let index = self.find(venue, &trade.symbol)?;
            let instrument = &mut self.instruments[index];
            // Prints outside of the market may have a price of zero, or none of the instrument's steps.
            if trade.in_market {
                instrument.price(trade.px)?;
                instrument.quantity(trade.qty)?;
            }
        }
        probe.mark(Stage::Validate);
        for trade in trades {
            if !trade.in_market {
                continue;
            }
            let index = self.find(venue, &trade.symbol)?;
            let instrument = &mut self.instruments[index];
            let (px, qty) = (instrument.price(trade.px)?, instrument.quantity(trade.qty)?);
            instrument.ticker.last_px = px;
            self.mirror(index, CandleSource::Trades, ts_recv, trade.ts_event, (px, qty));
        }
        self.counters.venue_mut(venue).trades += trades.len() as u64;
        probe.mark(Stage::Build);
        Ok(Applied::Trades)
    }

    /// Adds a price to the instrument's candles if they are made of `source`, and shows them.
    #[inline]
    fn mirror(&mut self, index: usize, source: CandleSource, ts_recv: Nanos, ts_event: Nanos, price: (Price, Qty)) {
        let instrument = &mut self.instruments[index];
        let venue = self.counters.venue_mut(instrument.spec.venue);
        let ts = if ts_event.0 == 0 {
            ts_recv
        } else {
            venue.lag_ns = ts_recv.0.wrapping_sub(ts_event.0);
            ts_event
        };
        if instrument.spec.candles != source {
            return;
        }
        for timeframe in 0..self.timeframes {
            let candle = &mut instrument.candles[timeframe];
            if candle.add(self.capacity.timeframes[timeframe], ts, price.0, price.1) {
                self.writer.store_candle(InstrumentId(index as u32), timeframe, candle);
            } else {
                venue.late_prices += 1;
            }
        }
    }

    pub(super) fn apply_mark_price(
        &mut self,
        ts_recv: Nanos,
        venue: Venue,
        event: &MarkPrice,
        probe: &mut impl Probe,
    ) -> Result<Applied, Fault> {
        let index = self.find(venue, &event.symbol)?;
        let id = InstrumentId(index as u32);
        probe.mark(Stage::LookUp);
        let mark = Mark::new(event, ts_recv);
        let instrument = &mut self.instruments[index];
        instrument.mark = Some(mark);
        let lot = instrument.spec.lot_size;
        for (slot, position) in self.positions.iter().enumerate() {
            if let Some(position) = position.as_ref().filter(|position| position.instrument == id) {
                let value = PositionMark::new(position, lot, &mark)?;
                self.writer.store_position(slot, &value);
            }
        }
        let counters = self.counters.venue_mut(venue);
        counters.mark_prices += 1;
        counters.lag_ns = ts_recv.0.wrapping_sub(event.ts_event.0);
        probe.mark(Stage::Build);
        self.writer.store_mark(id, &mark);
        probe.mark(Stage::Serialize);
        Ok(Applied::MarkPrice(id))
    }

    /// Every update of the frame that can be applied is; the first reason why one was not is the frame's.
    pub(super) fn apply_order_updates(
        &mut self,
        venue: Venue,
        updates: &[OrderUpdate],
        probe: &mut impl Probe,
    ) -> Result<Applied, Fault> {
        let mut result = Ok(Applied::Orders);
        for update in updates {
            match self.apply_order_update(venue, update) {
                Ok(()) => self.counters.venue_mut(venue).order_updates += 1,
                Err(fault) => result = result.and(Err(fault)),
            }
        }
        probe.mark(Stage::Build);
        result
    }

    fn apply_order_update(&mut self, venue: Venue, update: &OrderUpdate) -> Result<(), Fault> {
        let instrument = match &update.symbol {
            Some(symbol) => Some(InstrumentId(self.find(venue, symbol)? as u32)),
            None => None,
        };
        self.orders.apply(venue, instrument, update).map(|_| ())
    }
}

/// A venue shows an empty side as a quantity of zero.
#[inline]
fn some_level(level: BookLevel) -> Option<BookLevel> {
    (level.qty.0 != 0).then_some(level)
}
