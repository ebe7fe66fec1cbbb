//! The publisher's copy of a book, with its readers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use tt_market::board::TradePrint;
use tt_market::venue_state::LiquidationState;
use tt_market::{BookSide, BookStatus, Proof};
use tt_model::{Decimal, Nanos};
use tt_status::decimal_text::steps_text;
use tt_status::market::Level;
use tt_status::market_streams::{CandleHistory, CandleQuestion, Sink, StreamKind, WholeBook};

use super::history::History;
use super::message::{Row, Stamp, Subject, contract, known_range};
use super::slot::{Change, Head, Kind};
use super::view::{BookState, Counts, Happened, Readers, View};
use crate::CandlesKept;

/// Trades that a new reader gets first.
const TRADES: usize = 32;

/// The levels of both sides, bids first: quantity by key, best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sides(pub(super) [BTreeMap<i64, i64>; 2]);

impl Sides {
    pub(super) const fn key(side: BookSide, px: i64) -> i64 {
        match side {
            BookSide::Bid => !px,
            BookSide::Ask => px,
        }
    }

    pub(super) const fn px(side: usize, key: i64) -> i64 {
        if side == BookSide::Bid as usize { !key } else { key }
    }

    pub(super) fn set(&mut self, side: BookSide, px: i64, qty: i64) {
        let (levels, key) = (&mut self.0[side as usize], Self::key(side, px));
        if qty == 0 {
            levels.remove(&key);
        } else {
            levels.insert(key, qty);
        }
    }

    /// The best `depth` levels.
    pub(super) fn best(&self, depth: usize) -> Self {
        Self([0, 1].map(|side: usize| self.0[side].iter().take(depth).map(|(key, qty)| (*key, *qty)).collect()))
    }

    pub(super) fn rows(&self, side: usize, depth: usize) -> impl Iterator<Item = Row> + '_ {
        self.0[side].iter().take(depth).map(move |(key, qty)| (Self::px(side, *key), *qty, None))
    }

    fn levels(&self, side: usize, depth: usize) -> Vec<(i64, i64)> {
        self.rows(side, depth).map(|(px, qty, _)| (px, qty)).collect()
    }
}

/// The worst bid and offer between which every level is known; `None` for a side that is known whole.
pub(super) type Known = [Option<i64>; 2];

/// One instrument.
#[derive(Debug)]
pub(super) struct BookCopy {
    subject: Subject,
    sides: Sides,
    known: Known,
    stamp: Stamp,
    views: Vec<View>,
    trades: VecDeque<TradePrint>,
    /// The number of the last trade.
    traded: u64,
    traders: Readers,
    liquidation: Option<LiquidationState>,
    liquidation_readers: Readers,
    history: History,
}

/// Some levels of a book in steps, to be written out without holding the book.
pub(super) struct Excerpt {
    sides: [Vec<(i64, i64)>; 2],
    known: Known,
    lens: [usize; 2],
    stamp: Stamp,
    subject: Subject,
}

impl BookCopy {
    pub(super) fn new(subject: Subject, kept: CandlesKept) -> Self {
        let stamp = Stamp { update_id: 0, ts_event: Nanos(0), ts_recv: Nanos(0), status: BookStatus::default() };
        let (sides, trades, traders) = (Sides::default(), VecDeque::with_capacity(TRADES), Readers::default());
        Self {
            subject,
            sides,
            known: [None; 2],
            stamp,
            views: Vec::new(),
            trades,
            traded: 0,
            traders,
            liquidation: None,
            liquidation_readers: Readers::default(),
            history: History::new(kept),
        }
    }

    /// Takes an event; returns when a message is due that waits.
    pub(super) fn take(
        &mut self,
        head: &Head,
        levels: impl Iterator<Item = Change>,
        counts: &Counts,
        now: Instant,
    ) -> Option<Instant> {
        let happened = match head.kind {
            Kind::Delta => Happened::Delta,
            Kind::Snapshot => Happened::Snapshot,
            Kind::Status => Happened::Status,
        };
        if happened == Happened::Snapshot {
            self.sides = Sides::default();
        }
        let is_listed = happened == Happened::Delta && !self.views.is_empty();
        let mut changes = Vec::new();
        for change in levels {
            self.sides.set(change.side, change.px, change.new);
            if is_listed {
                changes.push(change);
            }
        }
        let ts_event = if happened == Happened::Status { self.stamp.ts_event } else { head.ts_event };
        self.stamp = Stamp { update_id: head.update_id, ts_event, ts_recv: head.ts_recv, status: head.status };
        self.history.hear(head.ts_recv, !matches!(head.status.proof, Proof::Stale | Proof::Syncing));
        self.views.retain(|view| !view.readers.is_empty());
        let book =
            BookState { subject: &self.subject, sides: &self.sides, known: self.known, stamp: &self.stamp, counts };
        if head.lost > 0 {
            self.views.iter_mut().for_each(|view| view.lose(head.lost, &book));
            return None;
        }
        self.views.iter_mut().filter_map(|view| view.take(happened, &changes, &book, now)).min()
    }

    pub(super) fn take_trade(&mut self, print: TradePrint, counts: &Counts) {
        let lost = print.number.saturating_sub(self.traded + 1);
        self.traded = print.number;
        self.history.take(&print, lost);
        if self.trades.len() == TRADES {
            self.trades.pop_front();
        }
        self.trades.push_back(print);
        if self.traders.is_empty() {
            return;
        }
        let (subject, last) = (&self.subject, std::slice::from_ref(&print));
        if lost > 0 {
            self.traders.lose(lost + 1, subject, counts, || subject.trades(last));
        } else {
            self.traders.send(&subject.trades(last), subject, counts, || subject.trades(last));
        }
    }

    pub(super) fn take_liquidation(&mut self, liquidation: LiquidationState, counts: &Counts) {
        let known = self.liquidation.replace(liquidation).map_or(0, |last| last.count);
        let lost = liquidation.count.saturating_sub(known + 1);
        if self.liquidation_readers.is_empty() {
            return;
        }
        let (subject, message) = (&self.subject, self.subject.liquidations(self.liquidation));
        if lost > 0 {
            self.liquidation_readers.lose(lost + 1, subject, counts, || Arc::clone(&message));
        } else {
            self.liquidation_readers.send(&message, subject, counts, || Arc::clone(&message));
        }
    }

    /// The range of the snapshot that comes next.
    pub(super) const fn take_known(&mut self, range: Known) {
        self.known = range;
    }

    /// The instrument is counted in other steps from here on; its levels follow.
    pub(super) fn take_steps(&mut self, tick_size: Decimal, lot_size: Decimal) {
        (self.subject.tick_size, self.subject.lot_size) = (tick_size, lot_size);
        self.sides = Sides::default();
        self.trades.clear();
        self.history.begin_again();
    }

    /// Candles of the past at `now`.
    pub(super) fn candles(&self, asked: &CandleQuestion, now: Nanos) -> CandleHistory {
        self.history.answer(asked, [self.subject.tick_size, self.subject.lot_size], now)
    }

    /// Sends what is due and to whom there is room again; returns when the next message is due.
    pub(super) fn look_after(&mut self, counts: &Counts, now: Instant) -> Option<Instant> {
        let book =
            BookState { subject: &self.subject, sides: &self.sides, known: self.known, stamp: &self.stamp, counts };
        for view in &mut self.views {
            if view.due().is_some_and(|due| due <= now) {
                view.flush(&book, now);
            }
            view.catch_up(&book);
        }
        if self.traders.are_behind()
            && let Some(last) = self.trades.back()
        {
            let subject = &self.subject;
            self.traders.catch_up(subject, counts, || subject.trades(std::slice::from_ref(last)));
        }
        if self.liquidation_readers.are_behind() {
            let (subject, last) = (&self.subject, self.liquidation);
            self.liquidation_readers.catch_up(subject, counts, || subject.liquidations(last));
        }
        self.views.iter().filter_map(View::due).min()
    }

    /// Sends what readers were offered.
    pub(super) fn flush(&mut self) {
        self.views.iter_mut().for_each(|view| view.readers.flush());
        self.traders.flush();
        self.liquidation_readers.flush();
    }

    /// Whether a reader lost messages and waits for a snapshot.
    pub(super) fn is_behind(&self) -> bool {
        self.traders.are_behind()
            || self.liquidation_readers.are_behind()
            || self.views.iter().any(|view| view.readers.are_behind())
    }

    pub(super) fn subscribe(&mut self, kind: StreamKind, sink: &Arc<dyn Sink>, counts: &Counts, now: Instant) {
        match kind {
            StreamKind::Books { depth, every } => {
                let book = BookState {
                    subject: &self.subject,
                    sides: &self.sides,
                    known: self.known,
                    stamp: &self.stamp,
                    counts,
                };
                let known = self.views.iter().position(|view| view.is(depth, every));
                let index = known.unwrap_or_else(|| {
                    self.views.push(View::new(depth, every, &book));
                    self.views.len() - 1
                });
                self.views[index].add(sink, &book, now);
            }
            StreamKind::Trades => {
                let shown: Vec<TradePrint> = self.trades.iter().copied().collect();
                self.traders.add(sink, &self.subject.trades(&shown), counts);
            }
            StreamKind::Liquidations => {
                self.liquidation_readers.add(sink, &self.subject.liquidations(self.liquidation), counts);
            }
        }
    }

    pub(super) fn excerpt(&self, depth: usize) -> Excerpt {
        Excerpt {
            sides: [0, 1].map(|side| self.sides.levels(side, depth)),
            known: self.known,
            lens: [0, 1].map(|side: usize| self.sides.0[side].len()),
            stamp: self.stamp,
            subject: self.subject.clone(),
        }
    }
}

impl Excerpt {
    /// The levels as text, with ages at `now`.
    pub(super) fn into_book(self, now: Nanos) -> WholeBook {
        let Stamp { update_id, ts_event, ts_recv, status } = self.stamp;
        let Subject { tick_size, lot_size, unit, .. } = self.subject;
        let level = |(px, qty): (i64, i64)| Level { px: steps_text(px, tick_size), qty: steps_text(qty, lot_size) };
        let [bids, asks] = self.sides.map(|side| side.into_iter().map(level).collect());
        let proof_id = status.proof_ids_ago.map(|ago| update_id.wrapping_sub(u64::from(ago)));
        let age = now.saturating_sub(ts_recv);
        let proof_age = age.saturating_add(Nanos(u64::from(status.proof_age_us) * 1000));
        let ms = |age: Nanos| age.0 as f64 / 1e6;
        let time = |at: Nanos| (at.0 != 0).then_some(at.0);
        WholeBook {
            bids,
            asks,
            bid_levels: self.lens[0],
            ask_levels: self.lens[1],
            update_id,
            ts_event: time(ts_event),
            ts_recv: time(ts_recv),
            proof: status.proof.name(),
            proof_update_id: proof_id.unwrap_or(0),
            proof_age_ms: proof_id.map(|_| ms(proof_age)),
            age_ms: time(ts_recv).map(|_| ms(age)),
            is_truncated: status.is_truncated,
            known_range: known_range(self.known, tick_size),
            tick_size: steps_text(1, tick_size),
            lot_size: steps_text(1, lot_size),
            contract: contract(unit),
        }
    }
}
