//! What updates change in books: for readers that follow every level and every update.
//!
//! [`Engine::follow_changes`](crate::Engine::follow_changes) turns it on. Then the caller polls
//! [`Engine::poll_book_event`](crate::Engine::poll_book_event), [`Engine::poll_trade`](crate::Engine::poll_trade) and
//! [`Engine::poll_liquidation`](crate::Engine::poll_liquidation) after each call that takes an input.

use crate::BookSide;
use crate::board::TradePrint;
use crate::book::{LadderLevels, Replaced};
use crate::proof::BookStatus;
use crate::venue_state::LiquidationState;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use tt_model::{InstrumentId, Nanos, Price, Qty};
use tt_venue::BookLevel;

/// A level whose quantity an update changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelChange {
    /// The side.
    pub side: BookSide,
    /// The price.
    pub px: Price,
    /// The quantity before; zero where the level is new.
    pub old_qty: Qty,
    /// The quantity now; zero where the level is gone.
    pub new_qty: Qty,
}

/// What happened to a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookEventKind {
    /// All levels were replaced; [`Engine::levels`](crate::Engine::levels) has them.
    Snapshot,
    /// The levels of [`BookEvent::changes`] were changed, in that order.
    Delta,
    /// The proof alone is another one.
    Status,
}

/// An update of a book, or of its proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookEvent<'a> {
    /// The instrument.
    pub instrument: InstrumentId,
    /// What happened.
    pub kind: BookEventKind,
    /// The venue's id of the last update that is included; where the venue numbers nothing, frames since the snapshot.
    pub update_id: u64,
    /// The same of the event before.
    pub previous_id: u64,
    /// The venue's time of the update, Unix epoch; zero where the venue sends none, and for `Status`.
    pub ts_event: Nanos,
    /// When the frame was received, or the proof changed; Unix epoch.
    pub ts_recv: Nanos,
    /// How the book was verified.
    pub status: BookStatus,
    /// The changed levels of a `Delta`; empty otherwise. A level may be listed twice.
    pub changes: &'a [LevelChange],
}

/// The levels of one side of a book, best first.
#[derive(Clone, Debug)]
pub struct BookLevels<'a> {
    side: BookSide,
    levels: LadderLevels<'a>,
}

impl<'a> BookLevels<'a> {
    pub(crate) const fn new(side: BookSide, levels: LadderLevels<'a>) -> Self {
        Self { side, levels }
    }
}

impl Iterator for BookLevels<'_> {
    type Item = BookLevel;

    #[inline]
    fn next(&mut self) -> Option<BookLevel> {
        let (key, qty) = self.levels.next()?;
        Some(BookLevel { px: Price(self.side.key(key)), qty: Qty(qty) })
    }
}

/// The book of the last input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChangedBook {
    pub(crate) instrument: InstrumentId,
    pub(crate) kind: BookEventKind,
    pub(crate) previous_id: u64,
    pub(crate) ts_event: Nanos,
}

/// What has not been polled yet.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    is_on: bool,
    levels_max: usize,
    /// Trades, and liquidations, of one input.
    entries_max: usize,
    levels: Vec<LevelChange>,
    /// Whether the changes of the last input are not all listed.
    is_whole: bool,
    book: Option<ChangedBook>,
    statuses: VecDeque<InstrumentId>,
    /// Whether an instrument is among them, by its number.
    is_status_noted: Vec<bool>,
    trades: VecDeque<(InstrumentId, TradePrint)>,
    liquidations: VecDeque<(InstrumentId, LiquidationState)>,
}

impl Changes {
    pub(crate) fn new(levels_max: usize, entries_max: usize, instruments_max: usize) -> Self {
        Self {
            is_on: true,
            levels_max,
            entries_max,
            levels: Vec::with_capacity(levels_max),
            is_whole: false,
            book: None,
            statuses: VecDeque::with_capacity(instruments_max),
            is_status_noted: alloc::vec![false; instruments_max],
            trades: VecDeque::with_capacity(entries_max),
            liquidations: VecDeque::with_capacity(entries_max),
        }
    }

    #[inline(always)]
    pub(crate) const fn is_on(&self) -> bool {
        self.is_on
    }

    /// A delta begins: its changes are listed from here on.
    pub(crate) fn begin_delta(&mut self) {
        self.levels.clear();
        self.is_whole = false;
    }

    /// All levels are replaced, or some cannot be listed.
    pub(crate) const fn take_whole(&mut self) {
        self.is_whole = true;
    }

    /// Takes what became of the level at `px`.
    pub(crate) fn note_level(&mut self, side: BookSide, key: i64, qty: i64, replaced: Replaced) {
        match replaced {
            Replaced::Level(old) => self.push(side, key, old, qty),
            Replaced::Displaced { old, worst } => {
                self.push(side, worst.0, worst.1, 0);
                self.push(side, key, old, qty);
            }
            Replaced::Refused => {}
            Replaced::Page => self.is_whole = true,
        }
    }

    fn push(&mut self, side: BookSide, key: i64, old: i64, new: i64) {
        if old == new {
            return;
        }
        if self.levels.len() == self.levels_max {
            self.is_whole = true;
            return;
        }
        let px = Price(side.key(key));
        self.levels.push(LevelChange { side, px, old_qty: Qty(old), new_qty: Qty(new) });
    }

    /// The book is shown as the changes have made it.
    pub(crate) fn note_book(&mut self, instrument: InstrumentId, previous_id: u64, ts_event: Nanos) {
        let kind = if self.is_whole { BookEventKind::Snapshot } else { BookEventKind::Delta };
        self.book = Some(ChangedBook { instrument, kind, previous_id, ts_event });
    }

    /// The instrument's proof is another one.
    pub(crate) fn note_status(&mut self, instrument: InstrumentId) {
        if let Some(is_noted) = self.is_status_noted.get_mut(instrument.0 as usize).filter(|is_noted| !**is_noted) {
            *is_noted = true;
            self.statuses.push_back(instrument);
        }
    }

    pub(crate) fn begin_trades(&mut self) {
        self.trades.clear();
    }

    pub(crate) fn note_trade(&mut self, instrument: InstrumentId, print: TradePrint) {
        if self.trades.len() < self.entries_max {
            self.trades.push_back((instrument, print));
        }
    }

    pub(crate) fn next_trade(&mut self) -> Option<(InstrumentId, TradePrint)> {
        self.trades.pop_front()
    }

    pub(crate) fn begin_liquidations(&mut self) {
        self.liquidations.clear();
    }

    pub(crate) fn note_liquidation(&mut self, instrument: InstrumentId, liquidation: LiquidationState) {
        if self.liquidations.len() < self.entries_max {
            self.liquidations.push_back((instrument, liquidation));
        }
    }

    pub(crate) fn next_liquidation(&mut self) -> Option<(InstrumentId, LiquidationState)> {
        self.liquidations.pop_front()
    }

    /// The same, as the caller says it.
    pub(crate) const fn put_book(&mut self, book: ChangedBook) {
        self.book = Some(book);
    }

    pub(crate) const fn next_book(&mut self) -> Option<ChangedBook> {
        self.book.take()
    }

    pub(crate) fn next_status(&mut self) -> Option<InstrumentId> {
        let instrument = self.statuses.pop_front()?;
        self.is_status_noted[instrument.0 as usize] = false;
        Some(instrument)
    }

    pub(crate) fn levels(&self) -> &[LevelChange] {
        &self.levels
    }
}
