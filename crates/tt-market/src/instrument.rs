//! One instrument: its sizes, its book and the state of that.

use crate::board::{DEPTH, TopOfBook};
use crate::book::Book;
use crate::candle::CandleSource;
use crate::drop_reason::DropReason;
use crate::mark::{Contract, Mark};
use crate::proof::LastProof;
use crate::scale::Scale;
use crate::seen_trades::SeenTrades;
use crate::{BookSide, ConnectionId};
use tt_model::{Decimal, Nanos, Price, Qty};
use tt_venue::event::Levels;
use tt_venue::listing::ContractUnit;
use tt_venue::rules::{JoinRule, Overlap, Rules};
use tt_venue::{BookLevel, Symbol, Venue};

/// Description of an instrument for the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstrumentSpec {
    /// The venue.
    pub venue: Venue,
    /// The venue's symbol, as in its frames.
    pub symbol: Symbol,
    /// The price step.
    pub tick_size: Decimal,
    /// The quantity step: the finest that the venue shows in its book, which may be finer than the one of orders.
    pub lot_size: Decimal,
    /// Levels of each side that the subscription covers; what lies beyond is dropped after each frame. `None` where
    /// the venue sends the whole book.
    pub depth_max: Option<usize>,
    /// What candles are made of.
    pub candles: CandleSource,
}

/// [`Instrument::known`] of a book whose snapshot had all levels.
pub(crate) const KNOWN_WHOLE: [i64; 2] = [i64::MIN; 2];

/// State of a book.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BookState {
    /// Not subscribed.
    #[default]
    Idle,
    /// A snapshot is awaited.
    Awaiting,
    /// The snapshot is in; the first delta that continues it is awaited.
    Joining(Overlap),
    /// Every update since the snapshot is in.
    Live,
}

/// State of a request for a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RequestState {
    /// None is wanted.
    #[default]
    None,
    /// In the queue.
    Queued,
    /// Given to the caller at this time.
    InFlight(Nanos),
}

/// The best levels of a side, as published.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TopLevels {
    pub(crate) levels: [BookLevel; DEPTH],
    pub(crate) count: usize,
}

impl TopLevels {
    #[inline]
    pub(crate) fn as_slice(&self) -> &[BookLevel] {
        &self.levels[..self.count.min(DEPTH)]
    }

    /// The best `count_max` levels.
    #[inline]
    pub(crate) fn best(&self, count_max: usize) -> &[BookLevel] {
        &self.levels[..self.count.min(DEPTH).min(count_max)]
    }

    /// Changes below this key leave the best levels as they are.
    #[inline]
    pub(crate) fn floor(&self, side: BookSide) -> i64 {
        if self.count < DEPTH { i64::MIN } else { side.key(self.levels[DEPTH - 1].px.0) }
    }
}

/// One of the venue's tickers, kept until the book reaches its update id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeenTicker {
    pub(crate) update_id: u64,
    pub(crate) bid: BookLevel,
    pub(crate) ask: BookLevel,
}

/// How many tickers are kept: on captures, a book was never more than ten tickers behind.
const TICKERS: usize = 32;

/// The newest tickers in a ring.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct SeenTickers {
    next: usize,
    ring: [SeenTicker; TICKERS],
}

impl SeenTickers {
    #[inline]
    pub(crate) fn push(&mut self, ticker: SeenTicker) {
        self.ring[self.next % TICKERS] = ticker;
        self.next = self.next.wrapping_add(1);
    }

    /// The ticker of exactly that update id.
    #[inline]
    pub(crate) fn find(&self, update_id: u64) -> Option<SeenTicker> {
        for back in 1..=TICKERS {
            let ticker = self.ring[self.next.wrapping_sub(back) % TICKERS];
            if ticker.update_id <= update_id {
                return (ticker.update_id == update_id && update_id != 0).then_some(ticker);
            }
        }
        None
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut SeenTicker> {
        self.ring.iter_mut()
    }
}

/// Checksums that do not fit within [`FITS_TO_TRUST`] of each other before the engine stops relying on them.
const MISMATCHES_MAX: u32 = 5;
/// Checksums in a row that must fit before they are relied on again.
const FITS_TO_TRUST: u32 = 100;
/// While the engine does not rely on them, one that does not fit still asks for a new book so often: the mistake may be ours.
const RETRY_EVERY: Nanos = Nanos::from_secs(60);

/// How far the venue's own checksum can be relied on: it has been wrong by itself before, for a symbol, for hours.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trust {
    pub(crate) mismatches: u32,
    fits: u32,
    /// When a checksum that did not fit last cost a book.
    ts_lost: Nanos,
}

impl Trust {
    /// Takes note of a checksum at `now`; whether it is to be relied on.
    pub(crate) fn note(&mut self, fits: bool, now: Nanos) -> bool {
        if fits {
            self.fits += 1;
            if self.fits >= FITS_TO_TRUST {
                *self = Self::default();
            }
        } else {
            self.fits = 0;
            self.mismatches = self.mismatches.saturating_add(1);
            if self.mismatches <= MISMATCHES_MAX || now.saturating_sub(self.ts_lost) >= RETRY_EVERY {
                self.ts_lost = now;
                return true;
            }
        }
        self.mismatches <= MISMATCHES_MAX
    }
}

/// The connection that takes a book over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Successor {
    pub(crate) connection: ConnectionId,
    /// Whether it has sent an update that the book holds: what it sends from there on continues the book.
    pub(crate) has_met: bool,
}

/// An instrument. What every update of its book needs is first, in the order in which it is needed, so that it is in as
/// few cache lines as possible; [`prefetch`](Self::prefetch) loads these.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Instrument {
    pub(crate) rules: &'static Rules,
    pub(crate) connection: Option<ConnectionId>,
    pub(crate) state: BookState,
    /// How a REST snapshot meets the deltas; `None` where the snapshot comes on the socket.
    pub(crate) overlap: Option<Overlap>,
    /// Whether the next message of the book is not buffered: the first one after a subscription ([`Overlap::Follows`]).
    pub(crate) skips_next: bool,
    /// Whether [`known`](Self::known) is not the whole book.
    pub(crate) is_limited: bool,
    /// Whether it is an order-by-order book.
    pub(crate) follows_orders: bool,
    /// The venue's time of the last update; zero after a snapshot, whose time is not in their row.
    pub(crate) last_event: Nanos,
    pub(crate) px: Scale,
    pub(crate) qty: Scale,
    /// A side that holds more levels is not the venue's.
    pub(crate) levels_max: usize,
    /// Snapshots asked for since the book was last live.
    pub(crate) attempts: u32,
    pub(crate) checksum: u32,
    /// Since when the book has been crossed, or locked where the venue has no auctions.
    pub(crate) wrong_since: Option<Nanos>,
    pub(crate) last_proof: LastProof,
    /// When a REST snapshot last fitted the book; not since its own snapshot where that is zero.
    pub(crate) snapshot_proof: LastProof,
    /// The top of book as last published.
    pub(crate) top: TopOfBook,
    pub(crate) book: Book,
    pub(crate) bids: TopLevels,
    pub(crate) asks: TopLevels,
    pub(crate) spec: InstrumentSpec,
    pub(crate) tickers: SeenTickers,
    pub(crate) trust: Trust,
    /// The same as `overlap`, of the next subscription.
    pub(crate) join_overlap: Option<Overlap>,
    pub(crate) successor: Option<Successor>,
    /// The worst key of each side above which every level is known.
    pub(crate) known: [i64; 2],
    pub(crate) trades: SeenTrades,
    /// Trades shown so far.
    pub(crate) trade_count: u64,
    pub(crate) mark: Option<Mark>,
    pub(crate) contract: Contract,
    pub(crate) unit: ContractUnit,
    pub(crate) liquidations: u64,
    pub(crate) backlog: Option<usize>,
    pub(crate) request: RequestState,
    /// Requests ever made for it.
    pub(crate) resyncs: u64,
    /// Whether the request is for a book that was there before, which counts against the venue's budget.
    pub(crate) is_resync: bool,
    /// No request before this time.
    pub(crate) not_before: Nanos,
    /// How often the venue promises a whole book, if the book is held against the times of its best levels.
    pub(crate) spacing: Option<Nanos>,
    /// The venue's time of the last whole book; kept where there is a spacing.
    pub(crate) ts_book: Nanos,
    /// The same of the newest best levels.
    pub(crate) ts_best: Nanos,
}

impl Instrument {
    /// Why a frame of another connection than the book's is dropped.
    pub(crate) const fn foreign(&self) -> DropReason {
        if self.connection.is_some() { DropReason::ForeignConnection } else { DropReason::UnknownSymbol }
    }

    pub(crate) fn new(spec: InstrumentSpec, overflow_levels: usize) -> Result<Self, DropReason> {
        let rules = spec.venue.rules();
        let overlap = match rules.join {
            JoinRule::Rest(overlap) => Some(overlap),
            JoinRule::Socket | JoinRule::Both(_) | JoinRule::Whole => None,
        };
        Ok(Self {
            spec,
            rules,
            overlap,
            levels_max: usize::MAX,
            last_event: Nanos(0),
            join_overlap: overlap,
            follows_orders: false,
            skips_next: false,
            px: Scale::new(spec.tick_size)?,
            qty: Scale::new(spec.lot_size)?,
            state: BookState::Idle,
            connection: None,
            successor: None,
            book: Book::new(overflow_levels),
            bids: TopLevels::default(),
            asks: TopLevels::default(),
            top: TopOfBook::default(),
            last_proof: LastProof::default(),
            snapshot_proof: LastProof::default(),
            known: KNOWN_WHOLE,
            is_limited: false,
            checksum: 0,
            trust: Trust::default(),
            tickers: SeenTickers::default(),
            trades: SeenTrades::new(rules.trade_ids),
            trade_count: 0,
            mark: None,
            contract: Contract::default(),
            unit: ContractUnit::default(),
            liquidations: 0,
            backlog: None,
            request: RequestState::None,
            attempts: 0,
            resyncs: 0,
            is_resync: false,
            not_before: Nanos(0),
            wrong_since: None,
            spacing: None,
            ts_book: Nanos(0),
            ts_best: Nanos(0),
        })
    }

    /// Begins to load what every update of the book needs.
    #[inline]
    pub(crate) fn prefetch(&self) {
        tt_simd::prefetch(&self.rules);
        tt_simd::prefetch(&self.qty);
        tt_simd::prefetch(&self.snapshot_proof);
        tt_simd::prefetch(&self.top.status);
        for (side, top) in [(BookSide::Bid, &self.bids), (BookSide::Ask, &self.asks)] {
            self.book.side(side).prefetch();
            tt_simd::prefetch(&top.levels[0]);
            tt_simd::prefetch(&top.levels[DEPTH / 2]);
            tt_simd::prefetch(&top.count);
        }
        tt_simd::prefetch(&self.spec.depth_max);
        tt_simd::prefetch(&self.tickers.next);
    }

    /// The most levels of a side after a snapshot with `levels`. Where the venue drops by itself what leaves the depth,
    /// that is the depth: the one of the subscription, or the least that holds the snapshot.
    pub(crate) fn levels_max(&self, levels: &Levels) -> usize {
        if !self.rules.truncates {
            return usize::MAX;
        }
        let seen = levels.bids().len().max(levels.asks().len());
        let least = || self.rules.depths.iter().map(|depth| *depth as usize).find(|depth| *depth >= seen);
        self.spec.depth_max.or_else(least).unwrap_or(usize::MAX)
    }

    /// Keeps a ticker until the book reaches its update id; returns whether the book has reached it already.
    #[inline]
    pub(crate) fn note_ticker(&mut self, ticker: SeenTicker) -> bool {
        self.tickers.push(ticker);
        self.state == BookState::Live && self.top.update_id == ticker.update_id
    }

    /// Makes the decimals of `levels` the cheap case.
    #[inline]
    pub(crate) fn remember(&mut self, levels: &Levels) {
        if !self.px.remembers(levels.px_decimals) {
            self.px.remember(levels.px_decimals);
        }
        if !self.qty.remembers(levels.qty_decimals) {
            self.qty.remember(levels.qty_decimals);
        }
    }

    /// A price in whole steps.
    #[inline]
    pub(crate) fn price(&mut self, px: Decimal) -> Result<Price, DropReason> {
        if !self.px.remembers(px.decimals) {
            self.px.remember(px.decimals);
        }
        self.px.steps(px.mantissa, px.decimals).map(Price).ok_or(DropReason::OffTickSize)
    }

    /// A quantity in whole lots.
    #[inline]
    pub(crate) fn quantity(&mut self, qty: Decimal) -> Result<Qty, DropReason> {
        if !self.qty.remembers(qty.decimals) {
            self.qty.remember(qty.decimals);
        }
        self.qty.steps(qty.mantissa, qty.decimals).map(Qty).ok_or(DropReason::OffLotSize)
    }

    #[inline]
    pub(crate) fn level(&mut self, px: Decimal, qty: Decimal) -> Result<BookLevel, DropReason> {
        Ok(BookLevel { px: self.price(px)?, qty: self.quantity(qty)? })
    }
    /// A quantity in whole lots, negative when short.
    pub(crate) fn signed_lots(&mut self, qty: Decimal) -> Result<i64, DropReason> {
        let size = Decimal { mantissa: qty.mantissa.checked_abs().ok_or(DropReason::NumberRange)?, ..qty };
        let lots = self.quantity(size)?.0;
        Ok(if qty.mantissa < 0 { -lots } else { lots })
    }

    /// A best level of which price, quantity or both are new. A quantity of zero is no level.
    pub(crate) fn merged(
        &mut self,
        known: Option<BookLevel>,
        px: Option<Decimal>,
        qty: Option<Decimal>,
    ) -> Result<Option<BookLevel>, DropReason> {
        let qty = match qty {
            Some(qty) if qty.mantissa == 0 => return Ok(None),
            Some(qty) => Some(self.quantity(qty)?),
            // Some venues send the price alone.
            None => Some(known.map_or(Qty(0), |level| level.qty)),
        };
        let px = match px {
            Some(px) => Some(self.price(px)?),
            None => known.map(|level| level.px),
        };
        Ok(px.zip(qty).map(|(px, qty)| BookLevel { px, qty }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distrusted_checksum_still_costs_a_book_once_a_minute() {
        let mut trust = Trust::default();
        let at = |s: u64| Nanos::from_secs(1_000 + s);
        assert!((0..5).all(|s| trust.note(false, at(s))));
        assert!(!trust.note(false, at(5)) && !trust.note(false, at(63)), "not before a minute has passed");
        assert!(trust.note(false, at(64)) && !trust.note(false, at(65)), "once");
        assert!((0..99).all(|_| !trust.note(true, at(66))));
        assert!(trust.note(true, at(67)), "a hundred that fit");
    }
}
