//! Published state as bytes in one order, so that two runs can be compared by a hash.

use crate::BookStatus;
use crate::board::{Board, Depth, TickerState, TopOfBook};
use crate::candle::Candle;
use crate::mark::{Contract, Mark, PositionMark};
use core::hash::Hasher;
use tt_model::{Decimal, InstrumentId};
use tt_venue::BookLevel;

/// Tag before each value, so that one kind is never taken for another. A value that was never published is left
/// out: what a later version publishes besides leaves the hash of an older recording as it is.
#[derive(Clone, Copy)]
#[repr(u64)]
enum Kind {
    Instrument = 1,
    Ticker = 2,
    Candle = 3,
    Mark = 4,
    Contract = 5,
    Position = 6,
}

fn begin(hasher: &mut impl Hasher, kind: Kind, index: usize) {
    put(hasher, &[kind as u64, index as u64]);
}

impl Board {
    /// Hands everything that is published to `hasher`: of each instrument in turn top of book and status, depth,
    /// ticker, candles (the engine's and the venue's), mark price, contract and last liquidation, then the positions. Counters are left out: they may gain names.
    ///
    /// The bytes are the same on every machine; the hash is what `hasher` makes of them.
    pub fn hash_into(&self, hasher: &mut impl Hasher) {
        let mut id = InstrumentId(0);
        while let Some(top) = self.top_of_book(id) {
            let index = id.0 as usize;
            if top != TopOfBook::default() {
                begin(hasher, Kind::Instrument, index);
                self.hash_book_into(id, hasher);
            }
            if let Some(ticker) = self.ticker(id).filter(|ticker| *ticker != TickerState::default()) {
                begin(hasher, Kind::Ticker, index);
                hash_ticker(&ticker, hasher);
            }
            for timeframe in 0..self.timeframes() {
                if let Some(candle) = self.candle(id, timeframe) {
                    begin(hasher, Kind::Candle, timeframe);
                    hash_candle(&candle, hasher);
                }
                if let Some(candle) = self.venue_candle(id, timeframe) {
                    put(hasher, &candle.to_words());
                }
            }
            if let Some(mark) = self.mark_price(id) {
                begin(hasher, Kind::Mark, index);
                hash_mark(&mark, hasher);
            }
            if let Some(contract) = self.contract(id) {
                begin(hasher, Kind::Contract, index);
                hash_contract(&contract, hasher);
            }
            if let Some(last) = self.liquidation(id) {
                put(hasher, &last.to_words());
            }
            id.0 += 1;
        }
        for slot in 0..self.positions_len() {
            if let Some(position) = self.position(slot) {
                begin(hasher, Kind::Position, slot);
                hash_position(&position, hasher);
            }
        }
    }

    /// Hands one instrument's book to `hasher`: top and depth, each with its status. Nothing for an id beyond the
    /// capacity.
    pub fn hash_book_into(&self, id: InstrumentId, hasher: &mut impl Hasher) {
        if let Some((top, depth)) = self.top_of_book(id).zip(self.depth(id)) {
            hash_top(&top, hasher);
            hash_depth(&depth, hasher);
        }
    }
}

fn put(hasher: &mut impl Hasher, words: &[u64]) {
    for word in words {
        hasher.write(&word.to_le_bytes());
    }
}

fn hash_level(level: BookLevel, hasher: &mut impl Hasher) {
    put(hasher, &[level.px.0 as u64, level.qty.0 as u64]);
}

fn hash_book_status(status: BookStatus, hasher: &mut impl Hasher) {
    let odd = u64::from(status.is_crossed) | u64::from(status.is_locked) << 1 | u64::from(status.is_truncated) << 2;
    let ids_ago = status.proof_ids_ago.map_or(u64::MAX, u64::from);
    put(hasher, &[status.proof as u64, odd, ids_ago, u64::from(status.proof_age_us)]);
}

fn hash_top(top: &TopOfBook, hasher: &mut impl Hasher) {
    for side in [top.bid, top.ask] {
        hash_level(side.unwrap_or_default(), hasher);
    }
    put(hasher, &[top.update_id, top.ts_recv.0]);
    hash_book_status(top.status, hasher);
}

fn hash_depth(depth: &Depth, hasher: &mut impl Hasher) {
    for side in [depth.bids(), depth.asks()] {
        put(hasher, &[side.len() as u64]);
        side.iter().for_each(|level| hash_level(*level, hasher));
    }
    put(hasher, &[depth.update_id, depth.ts_recv.0, depth.ts_event.0]);
    hash_book_status(depth.status, hasher);
}

fn hash_ticker(ticker: &TickerState, hasher: &mut impl Hasher) {
    for side in [ticker.bid, ticker.ask] {
        hash_level(side.unwrap_or_default(), hasher);
    }
    put(hasher, &[ticker.last_px.0 as u64, ticker.update_id, ticker.ts_recv.0]);
}

fn hash_candle(candle: &Candle, hasher: &mut impl Hasher) {
    let prices = [candle.open_px, candle.high_px, candle.low_px, candle.close_px];
    put(hasher, &prices.map(|px| px.0 as u64));
    put(hasher, &[candle.volume.0 as u64, candle.ts_start.0, candle.updates]);
}

fn hash_decimal(value: Decimal, hasher: &mut impl Hasher) {
    put(hasher, &[value.mantissa as u64, u64::from(value.decimals)]);
}

fn hash_mark(mark: &Mark, hasher: &mut impl Hasher) {
    hash_decimal(mark.mark_px, hasher);
    hash_decimal(mark.index_px, hasher);
    put(hasher, &[u64::from(mark.funding_rate.is_some())]);
    hash_decimal(mark.funding_rate.unwrap_or_default(), hasher);
    put(hasher, &[mark.ts_next_funding.0, mark.ts_event.0, mark.ts_recv.0]);
}

fn hash_contract(contract: &Contract, hasher: &mut impl Hasher) {
    for value in [contract.index_px, contract.funding_rate, contract.open_interest, contract.mid_px] {
        put(hasher, &[u64::from(value.is_some())]);
        hash_decimal(value.unwrap_or_default(), hasher);
    }
    put(hasher, &[contract.ts_next_funding.0, contract.ts_recv.0]);
}

fn hash_position(position: &PositionMark, hasher: &mut impl Hasher) {
    let pnl = position.pnl_mantissa;
    put(hasher, &[u64::from(position.instrument.0), u64::from(position.account), position.lots as u64]);
    put(hasher, &[pnl as u64, (pnl >> 64) as u64, u64::from(position.pnl_decimals), position.ts_recv.0]);
}
