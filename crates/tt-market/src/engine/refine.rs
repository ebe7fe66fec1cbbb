//! An instrument that turns out to have finer steps than it was added with.

use super::Engine;
use crate::board::{DepthUpdate, TickerState, TopOfBook};
use crate::candle::{Candle, TIMEFRAMES_MAX};
use crate::instrument::TopLevels;
use crate::scale::Scale;
use crate::{AddError, BookSide};
use alloc::vec::Vec;
use tt_model::{Decimal, InstrumentId, Nanos, Price, Qty};
use tt_venue::BookLevel;

/// How many new steps an old one is.
#[derive(Clone, Copy)]
struct Factors {
    px: i64,
    qty: i64,
}

impl Factors {
    fn px(self, px: Price) -> Result<Price, AddError> {
        px.0.checked_mul(self.px).map(Price).ok_or(AddError::BadSize)
    }

    fn qty(self, qty: Qty) -> Result<Qty, AddError> {
        qty.0.checked_mul(self.qty).map(Qty).ok_or(AddError::BadSize)
    }

    fn level(self, level: BookLevel) -> Result<BookLevel, AddError> {
        Ok(BookLevel { px: self.px(level.px)?, qty: self.qty(level.qty)? })
    }

    fn best(self, level: Option<BookLevel>) -> Result<Option<BookLevel>, AddError> {
        level.map(|level| self.level(level)).transpose()
    }

    fn top(self, top: &TopLevels) -> Result<TopLevels, AddError> {
        let mut scaled = *top;
        for level in &mut scaled.levels[..top.count] {
            *level = self.level(*level)?;
        }
        Ok(scaled)
    }
}

/// The steps of `old` in one of `new`, which must be whole.
fn factor(old: Decimal, new: Decimal) -> Result<i64, AddError> {
    let decimals = old.decimals.max(new.decimals);
    let at = |size: Decimal| size.mantissa_at(decimals).map_err(|_| AddError::BadSize);
    let (old, new) = (at(old)?, at(new)?);
    if new <= 0 || old % new != 0 { Err(AddError::BadSize) } else { Ok(old / new) }
}

impl Engine {
    /// Counts an instrument in finer steps from here on: its book, tickers and candles keep their values, its
    /// positions their size. The book is rebuilt, which allocates.
    ///
    /// # Errors
    /// `BadInstrument`; `BadSize` where an old step is no whole number of new ones, or a value needs more than an
    /// `i64` of them. Then nothing has changed.
    pub fn refine(&mut self, id: InstrumentId, tick_size: Decimal, lot_size: Decimal) -> Result<(), AddError> {
        let instrument = self.instruments.get(id.0 as usize).ok_or(AddError::BadInstrument)?;
        let spec = instrument.spec;
        let factors = Factors { px: factor(spec.tick_size, tick_size)?, qty: factor(spec.lot_size, lot_size)? };
        let scale = |size| Scale::new(size).map_err(|_| AddError::BadSize);
        let (px, qty) = (scale(tick_size)?, scale(lot_size)?);
        let levels = [self.scaled_side(id, BookSide::Bid, factors)?, self.scaled_side(id, BookSide::Ask, factors)?];
        let (bids, asks) = (factors.top(&instrument.bids)?, factors.top(&instrument.asks)?);
        let top = TopOfBook {
            bid: factors.best(instrument.top.bid)?,
            ask: factors.best(instrument.top.ask)?,
            ..instrument.top
        };
        let shown = self.writer.ticker(id);
        let ticker = TickerState {
            bid: factors.best(shown.bid)?,
            ask: factors.best(shown.ask)?,
            last_px: factors.px(self.quotes[id.0 as usize].last_px)?,
            ..shown
        };
        let mut tickers = instrument.tickers;
        for seen in tickers.iter_mut() {
            (seen.bid, seen.ask) = (factors.level(seen.bid)?, factors.level(seen.ask)?);
        }
        let mut candles = [Candle::default(); TIMEFRAMES_MAX];
        for (timeframe, candle) in candles.iter_mut().enumerate().take(self.timeframes) {
            *candle = self.writer.candle(id, timeframe);
            for px in [&mut candle.open_px, &mut candle.high_px, &mut candle.low_px, &mut candle.close_px] {
                *px = factors.px(*px)?;
            }
            candle.volume = factors.qty(candle.volume)?;
        }
        let of_it = |position: &&mut crate::mark::Position| position.instrument == id;
        let fits = |position: &crate::mark::Position| {
            position.instrument != id || position.lots.checked_mul(factors.qty).is_some()
        };
        if !self.positions.iter().flatten().all(fits) {
            return Err(AddError::BadSize);
        }
        self.positions.iter_mut().filter(of_it).for_each(|position| position.lots *= factors.qty);

        let instrument = &mut self.instruments[id.0 as usize];
        if instrument.follows_orders {
            self.l3_books.scale(id.0, factors.px, factors.qty);
        }
        instrument.book.clear(&mut self.slab);
        for (side, levels) in [BookSide::Bid, BookSide::Ask].into_iter().zip(&levels) {
            let ladder = instrument.book.side_mut(side);
            levels.iter().for_each(|level| ladder.set(&mut self.slab, side.key(level.px.0), level.qty.0));
            ladder.settle(&mut self.slab);
        }
        for side in [BookSide::Bid, BookSide::Ask] {
            let known = &mut instrument.known[side as usize];
            if *known != i64::MIN {
                *known = side.key(side.key(*known).saturating_mul(factors.px));
            }
        }
        self.comparison.abandon(id.0 as usize);
        instrument.spec.tick_size = tick_size;
        instrument.spec.lot_size = lot_size;
        (instrument.px, instrument.qty) = (px, qty);
        (instrument.bids, instrument.asks) = (bids, asks);
        (instrument.top, instrument.tickers) = (top, tickers);
        let quote = &mut self.quotes[id.0 as usize];
        quote.follow_steps(instrument);
        quote.last_px = ticker.last_px;
        self.writer.store_ticker(id, ticker);
        for (timeframe, candle) in candles.iter().enumerate().take(self.timeframes) {
            self.writer.store_candle(id, timeframe, candle);
        }
        self.show_refined(id);
        Ok(())
    }

    fn scaled_side(&self, id: InstrumentId, side: BookSide, factors: Factors) -> Result<Vec<BookLevel>, AddError> {
        let book = &self.instruments[id.0 as usize].book;
        let mut levels = alloc::vec![BookLevel::default(); book.side(side).len()];
        let count = book.top(side, &self.slab, &mut levels);
        levels[..count].iter().map(|level| factors.level(*level)).collect()
    }

    fn show_refined(&mut self, id: InstrumentId) {
        let instrument = &self.instruments[id.0 as usize];
        if let Some(depth) = self.board.depth(id) {
            let (update_id, ts_recv, ts_event) = (depth.update_id, depth.ts_recv, depth.ts_event);
            let (bids, asks) = (instrument.bids.as_slice(), instrument.asks.as_slice());
            let status = depth.status;
            self.writer.store_depth(id, &DepthUpdate { bids, asks, update_id, ts_recv, ts_event, status });
        }
        self.writer.store_top(id, instrument.top);
        if self.changes.is_on() {
            self.changes.take_whole();
            self.changes.note_book(id, instrument.top.update_id, Nanos(0));
        }
    }
}
