//! What other threads see: one line for each value of each instrument, always whole.

use crate::BookStatus;
use crate::candle::Candle;
use crate::counters::{Counters, VenueCounters, WORDS as COUNTER_WORDS};
use crate::mark::{Contract, Mark, PositionMark};
use crate::venue_state::{LiquidationState, VenueCandleState};
use alloc::vec::Vec;
use tt_model::{InstrumentId, Nanos, Price, Qty, sort_short_by_key};
use tt_sync::seqlock::{self, TableReader, TableWriter};
use tt_venue::event::AggressorSide;
use tt_venue::{BookLevel, Venue};

/// Levels of each side in a published [`Depth`].
pub const DEPTH: usize = 10;
const DEPTH_WORDS: usize = 5 + 4 * DEPTH;

/// The best levels of a book with their status. One cache line together with its version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopOfBook {
    /// The best bid; `None` where the side is empty.
    pub bid: Option<BookLevel>,
    /// The best offer; `None` where the side is empty.
    pub ask: Option<BookLevel>,
    /// The venue's id of the last update that is included; where the venue numbers nothing, frames since the snapshot.
    pub update_id: u64,
    /// When the frame that led to this line was received, or the state changed; Unix epoch.
    pub ts_recv: Nanos,
    /// How the book was last verified, and when.
    pub status: BookStatus,
}

impl TopOfBook {
    /// The update id at which the book was last verified, if that is known.
    #[must_use]
    pub fn proof_update_id(&self) -> Option<u64> {
        self.status.proof_ids_ago.map(|ids| self.update_id.wrapping_sub(u64::from(ids)))
    }

    /// How old the proof is at `now`, to the microsecond, at least.
    #[must_use]
    pub fn proof_age(&self, now: Nanos) -> Nanos {
        now.saturating_sub(self.ts_recv).saturating_add(Nanos(u64::from(self.status.proof_age_us) * 1000))
    }

    #[inline]
    fn to_words(self) -> [u64; 7] {
        let bid = self.bid.unwrap_or_default();
        let ask = self.ask.unwrap_or_default();
        [
            bid.px.0 as u64,
            bid.qty.0 as u64,
            ask.px.0 as u64,
            ask.qty.0 as u64,
            self.update_id,
            self.ts_recv.0,
            self.status.to_bits(),
        ]
    }

    fn from_words(words: [u64; 7]) -> Self {
        Self {
            bid: level(words[0], words[1]),
            ask: level(words[2], words[3]),
            update_id: words[4],
            ts_recv: Nanos(words[5]),
            status: BookStatus::from_bits(words[6]),
        }
    }
}

/// A quantity of zero is one that the venue does not send, unless there is no price either.
fn ticker_level(px: u64, qty: u64) -> Option<BookLevel> {
    (px != 0 || qty != 0).then_some(BookLevel { px: Price(px as i64), qty: Qty(qty as i64) })
}

/// A quantity of zero means no level.
fn level(px: u64, qty: u64) -> Option<BookLevel> {
    (qty != 0).then_some(BookLevel { px: Price(px as i64), qty: Qty(qty as i64) })
}

/// The best [`DEPTH`] levels of both sides. Replaced whenever one of them changes; [`TopOfBook`] shows how a book that
/// is unchanged was verified since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    bids: [BookLevel; DEPTH],
    asks: [BookLevel; DEPTH],
    bid_count: usize,
    ask_count: usize,
    /// As [`TopOfBook::update_id`], of the update that changed the levels.
    pub update_id: u64,
    /// When that frame was received, Unix epoch.
    pub ts_recv: Nanos,
    /// The venue's time of that update, Unix epoch; zero where the venue sends none.
    pub ts_event: Nanos,
    /// How the book was verified at that update.
    pub status: BookStatus,
}

impl Default for Depth {
    fn default() -> Self {
        Self::from_words([0; DEPTH_WORDS])
    }
}

impl Depth {
    /// Bids, best first.
    #[must_use]
    pub fn bids(&self) -> &[BookLevel] {
        &self.bids[..self.bid_count.min(DEPTH)]
    }

    /// Offers, best first.
    #[must_use]
    pub fn asks(&self) -> &[BookLevel] {
        &self.asks[..self.ask_count.min(DEPTH)]
    }

    fn from_words(words: [u64; DEPTH_WORDS]) -> Self {
        let side = |start: usize| {
            core::array::from_fn(|i| BookLevel {
                px: Price(words[start + 2 * i] as i64),
                qty: Qty(words[start + 2 * i + 1] as i64),
            })
        };
        Self {
            bids: side(5),
            asks: side(5 + 2 * DEPTH),
            bid_count: (words[4] & 0xffff) as usize,
            ask_count: (words[4] >> 16 & 0xffff) as usize,
            update_id: words[0],
            ts_recv: Nanos(words[1]),
            ts_event: Nanos(words[2]),
            status: BookStatus::from_bits(words[3]),
        }
    }
}

/// What [`Depth`] is published from.
pub(crate) struct DepthUpdate<'a> {
    pub(crate) bids: &'a [BookLevel],
    pub(crate) asks: &'a [BookLevel],
    pub(crate) update_id: u64,
    pub(crate) ts_recv: Nanos,
    pub(crate) ts_event: Nanos,
    pub(crate) status: BookStatus,
}

impl DepthUpdate<'_> {
    #[inline]
    fn to_words(&self) -> [u64; DEPTH_WORDS] {
        let mut words = [0; DEPTH_WORDS];
        words[0] = self.update_id;
        words[1] = self.ts_recv.0;
        words[2] = self.ts_event.0;
        words[3] = self.status.to_bits();
        words[4] = self.bids.len() as u64 | (self.asks.len() as u64) << 16;
        for (pair, level) in words[5..5 + 2 * DEPTH].as_chunks_mut::<2>().0.iter_mut().zip(self.bids) {
            *pair = [level.px.0 as u64, level.qty.0 as u64];
        }
        for (pair, level) in words[5 + 2 * DEPTH..].as_chunks_mut::<2>().0.iter_mut().zip(self.asks) {
            *pair = [level.px.0 as u64, level.qty.0 as u64];
        }
        words
    }
}

/// The venue's own best bid and offer and last price, which may be ahead of the book or behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickerState {
    /// The best bid; `None` if the side is empty. Its quantity is zero if the venue sends the price alone.
    pub bid: Option<BookLevel>,
    /// The best offer, likewise.
    pub ask: Option<BookLevel>,
    /// The price of the last trade; zero before the first one.
    pub last_px: Price,
    /// The venue's id of the book update that the best levels belong to; zero where the venue sends none.
    pub update_id: u64,
    /// When the frame was received, Unix epoch.
    pub ts_recv: Nanos,
}

impl TickerState {
    #[inline]
    fn to_words(self) -> [u64; 7] {
        let bid = self.bid.unwrap_or_default();
        let ask = self.ask.unwrap_or_default();
        [
            bid.px.0 as u64,
            bid.qty.0 as u64,
            ask.px.0 as u64,
            ask.qty.0 as u64,
            self.last_px.0 as u64,
            self.update_id,
            self.ts_recv.0,
        ]
    }

    fn from_words(words: [u64; 7]) -> Self {
        Self {
            bid: ticker_level(words[0], words[1]),
            ask: ticker_level(words[2], words[3]),
            last_px: Price(words[4] as i64),
            update_id: words[5],
            ts_recv: Nanos(words[6]),
        }
    }
}

/// Trades of each instrument that are shown.
pub const TRADES: usize = 32;

/// A trade as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TradePrint {
    /// Counts the instrument's trades from 1 on: a reader that finds a hole was too slow, and knows by how many.
    pub number: u64,
    /// The venue's number of the trade; zero where it is text.
    pub trade_id: u64,
    /// The price.
    pub px: Price,
    /// The quantity.
    pub qty: Qty,
    /// Who took liquidity.
    pub aggressor: AggressorSide,
    /// Whether it is older than a trade that came before it: it is no last price.
    pub is_late: bool,
    /// Whether the venue repeated it to a new subscription: it was made before.
    pub is_history: bool,
    /// The venue's time of the trade, Unix epoch.
    pub ts_event: Nanos,
    /// When the frame was received, Unix epoch.
    pub ts_recv: Nanos,
}

impl TradePrint {
    /// The side is the number's highest bit.
    const SELL: u64 = 1 << 63;

    fn to_words(self) -> [u64; 7] {
        let sell = if self.aggressor == AggressorSide::Sell { Self::SELL } else { 0 };
        let flags = u64::from(self.is_late) | u64::from(self.is_history) << 1;
        [self.number | sell, self.trade_id, self.px.0 as u64, self.qty.0 as u64, self.ts_event.0, self.ts_recv.0, flags]
    }

    fn from_words(words: [u64; 7]) -> Self {
        Self {
            number: words[0] & !Self::SELL,
            trade_id: words[1],
            px: Price(words[2] as i64),
            qty: Qty(words[3] as i64),
            aggressor: if words[0] & Self::SELL == 0 { AggressorSide::Buy } else { AggressorSide::Sell },
            is_late: words[6] & 1 != 0,
            is_history: words[6] & 2 != 0,
            ts_event: Nanos(words[4]),
            ts_recv: Nanos(words[5]),
        }
    }
}

/// The writing half, owned by the engine.
#[derive(Debug)]
pub(crate) struct BoardWriter {
    top: TableWriter<7>,
    depth: TableWriter<DEPTH_WORDS>,
    ticker: TableWriter<7>,
    candle: TableWriter<7>,
    mark: TableWriter<7>,
    contract: TableWriter<7>,
    venue_candle: TableWriter<7>,
    liquidation: TableWriter<7>,
    position: TableWriter<7>,
    trade: TableWriter<7>,
    counters: TableWriter<COUNTER_WORDS>,
    timeframes: usize,
}

/// Reads the engine's published state from any thread; clone it freely.
#[derive(Clone, Debug)]
pub struct Board {
    top: TableReader<7>,
    depth: TableReader<DEPTH_WORDS>,
    ticker: TableReader<7>,
    candle: TableReader<7>,
    mark: TableReader<7>,
    contract: TableReader<7>,
    venue_candle: TableReader<7>,
    liquidation: TableReader<7>,
    position: TableReader<7>,
    trade: TableReader<7>,
    counters: TableReader<COUNTER_WORDS>,
    timeframes: usize,
}

pub(crate) fn board(instruments: usize, timeframes: usize, positions: usize) -> (BoardWriter, Board) {
    let (top_writer, top) = seqlock::table(instruments, TopOfBook::default().to_words());
    let (depth_writer, depth) = seqlock::table(instruments, [0; DEPTH_WORDS]);
    let (ticker_writer, ticker) = seqlock::table(instruments, [0; 7]);
    let (candle_writer, candle) = seqlock::table(instruments * timeframes, [0; 7]);
    let (mark_writer, mark) = seqlock::table(instruments, [0; 7]);
    let (contract_writer, contract) = seqlock::table(instruments, [0; 7]);
    let (venue_candle_writer, venue_candle) = seqlock::table(instruments * timeframes, [0; 7]);
    let (liquidation_writer, liquidation) = seqlock::table(instruments, [0; 7]);
    let (position_writer, position) = seqlock::table(positions, [0; 7]);
    let (trade_writer, trade) = seqlock::table(instruments * TRADES, [0; 7]);
    let (counters_writer, counters) = seqlock::table(Venue::COUNT, [0; COUNTER_WORDS]);
    let writer = BoardWriter {
        top: top_writer,
        depth: depth_writer,
        ticker: ticker_writer,
        candle: candle_writer,
        mark: mark_writer,
        contract: contract_writer,
        venue_candle: venue_candle_writer,
        liquidation: liquidation_writer,
        position: position_writer,
        trade: trade_writer,
        counters: counters_writer,
        timeframes,
    };
    let board = Board {
        top,
        depth,
        ticker,
        candle,
        mark,
        contract,
        venue_candle,
        liquidation,
        position,
        trade,
        counters,
        timeframes,
    };
    (writer, board)
}

impl BoardWriter {
    #[inline]
    pub(crate) fn store_top(&mut self, id: InstrumentId, top: TopOfBook) {
        self.top.store(id.0 as usize, &top.to_words());
    }

    #[inline]
    pub(crate) fn store_depth(&mut self, id: InstrumentId, depth: &DepthUpdate<'_>) {
        self.depth.store(id.0 as usize, &depth.to_words());
    }

    #[inline]
    pub(crate) fn store_ticker(&mut self, id: InstrumentId, ticker: TickerState) {
        self.ticker.store(id.0 as usize, &ticker.to_words());
    }

    /// What was last published of the instrument's tickers.
    #[inline]
    pub(crate) fn ticker(&self, id: InstrumentId) -> TickerState {
        self.ticker.load(id.0 as usize).map(TickerState::from_words).unwrap_or_default()
    }

    /// The candle that was last published.
    #[inline]
    pub(crate) fn candle(&self, id: InstrumentId, timeframe: usize) -> Candle {
        let row = id.0 as usize * self.timeframes + timeframe;
        self.candle.load(row).map(Candle::from_words).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn store_candle(&mut self, id: InstrumentId, timeframe: usize, candle: &Candle) {
        self.candle.store(id.0 as usize * self.timeframes + timeframe, &candle.to_words());
    }

    #[inline]
    pub(crate) fn store_mark(&mut self, id: InstrumentId, mark: &Mark) {
        self.mark.store(id.0 as usize, &mark.to_words());
    }

    pub(crate) fn store_contract(&mut self, id: InstrumentId, contract: &Contract) {
        self.contract.store(id.0 as usize, &contract.to_words());
    }

    pub(crate) fn store_venue_candle(&mut self, id: InstrumentId, timeframe: usize, candle: VenueCandleState) {
        self.venue_candle.store(id.0 as usize * self.timeframes + timeframe, &candle.to_words());
    }

    pub(crate) fn store_liquidation(&mut self, id: InstrumentId, last: LiquidationState) {
        self.liquidation.store(id.0 as usize, &last.to_words());
    }

    #[inline]
    pub(crate) fn store_position(&mut self, index: usize, position: &PositionMark) {
        self.position.store(index, &position.to_words());
    }

    #[inline]
    pub(crate) fn store_trade(&mut self, id: InstrumentId, print: &TradePrint) {
        let slot = (print.number % TRADES as u64) as usize;
        self.trade.store(id.0 as usize * TRADES + slot, &print.to_words());
    }

    pub(crate) fn store_counters(&mut self, counters: &Counters) {
        for venue in Venue::ALL {
            self.counters.store(venue as usize, &counters.venue(venue).to_words());
        }
    }
}

impl Board {
    /// The best levels and their status; `None` for an id beyond the capacity.
    #[inline]
    #[must_use]
    pub fn top_of_book(&self, id: InstrumentId) -> Option<TopOfBook> {
        self.top.load(id.0 as usize).map(TopOfBook::from_words)
    }

    /// The best [`DEPTH`] levels of both sides.
    #[must_use]
    pub fn depth(&self, id: InstrumentId) -> Option<Depth> {
        self.depth.load(id.0 as usize).map(Depth::from_words)
    }

    /// The venue's own best bid and offer and last price.
    #[must_use]
    pub fn ticker(&self, id: InstrumentId) -> Option<TickerState> {
        self.ticker.load(id.0 as usize).map(TickerState::from_words)
    }

    /// The running candle of the timeframe with that index in `Capacity::timeframes`; `None` before its first price.
    #[must_use]
    pub fn candle(&self, id: InstrumentId, timeframe: usize) -> Option<Candle> {
        if timeframe >= self.timeframes {
            return None;
        }
        let candle = self.candle.load(id.0 as usize * self.timeframes + timeframe).map(Candle::from_words)?;
        (candle.ts_start.0 != 0).then_some(candle)
    }

    /// The mark price; `None` before the first one.
    #[must_use]
    pub fn mark_price(&self, id: InstrumentId) -> Option<Mark> {
        self.mark.load(id.0 as usize).map(Mark::from_words).filter(|mark| mark.ts_recv.0 != 0)
    }

    /// Index price, funding and open interest if the venue sends them in its ticker; `None` before the first of them.
    #[must_use]
    pub fn contract(&self, id: InstrumentId) -> Option<Contract> {
        self.contract.load(id.0 as usize).map(Contract::from_words).filter(|contract| contract.ts_recv.0 != 0)
    }

    /// The venue's own newest candle of the timeframe with that index in `Capacity::timeframes`; `None` before the
    /// first one.
    #[must_use]
    pub fn venue_candle(&self, id: InstrumentId, timeframe: usize) -> Option<VenueCandleState> {
        if timeframe >= self.timeframes {
            return None;
        }
        let candle = self.venue_candle.load(id.0 as usize * self.timeframes + timeframe)?;
        Some(VenueCandleState::from_words(candle)).filter(|candle| candle.ts_open.0 != 0)
    }

    /// The last liquidation; `None` before the first one.
    #[must_use]
    pub fn liquidation(&self, id: InstrumentId) -> Option<LiquidationState> {
        self.liquidation.load(id.0 as usize).map(LiquidationState::from_words).filter(|last| last.count != 0)
    }

    /// The position in slot `index` as of the last mark price; `None` before the first one.
    #[must_use]
    pub fn position(&self, index: usize) -> Option<PositionMark> {
        self.position.load(index).map(PositionMark::from_words).filter(|position| position.ts_recv.0 != 0)
    }

    /// How many positions can be shown.
    #[must_use]
    pub fn positions_len(&self) -> usize {
        self.position.len()
    }

    /// The newest [`TRADES`] trades of an instrument, oldest first.
    #[must_use]
    pub fn trades(&self, id: InstrumentId) -> Vec<TradePrint> {
        let rows = id.0 as usize * TRADES..(id.0 as usize + 1) * TRADES;
        let prints = rows.filter_map(|row| self.trade.load(row).map(TradePrint::from_words));
        let mut prints: Vec<TradePrint> = prints.filter(|print| print.number != 0).collect();
        sort_short_by_key(&mut prints, |print| print.number);
        prints
    }

    /// A venue's counters as of the last `Engine::publish_counters`.
    #[must_use]
    pub fn counters(&self, venue: Venue) -> VenueCounters {
        VenueCounters::from_words(self.counters.load(venue as usize).unwrap_or([0; COUNTER_WORDS]))
    }

    /// How many timeframes there are.
    #[must_use]
    pub const fn timeframes(&self) -> usize {
        self.timeframes
    }
}
