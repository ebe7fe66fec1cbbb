//! Every state of an engine's books, as numbers that readers' books are compared with.

use std::collections::HashMap;

use market_feed::offline::{OfflineFeed, SentEvent};
use tt_market::changes::{BookEvent, BookEventKind};
use tt_market::{BookSide, Engine};
use tt_model::InstrumentId;

use crate::draw::mix;

/// Levels of each side in a book of limited depth.
pub(super) const DEPTH: usize = 5;
/// Of so many events, one is compared with all levels of the engine.
const EVENTS_PER_LOOK: u64 = 32;

/// The share of one level in a book's number, which is the sum of all.
pub(super) fn share(is_ask: bool, px: i64, qty: i64) -> u64 {
    if qty == 0 { 0 } else { mix(px as u64 ^ u64::from(is_ask) << 63, qty as u64) }
}

/// A book at one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// Of all levels.
    pub(super) whole: u64,
    /// Of the best [`DEPTH`] levels of each side.
    pub(super) best: u64,
}

/// The update and the time of receipt that a message names.
pub(super) type Moment = (u64, u64);

/// The states of one book.
#[derive(Debug, Default)]
struct Book {
    whole: u64,
    events: u64,
    /// Where a venue numbers nothing, two snapshots that are read at once have the same moment.
    states: HashMap<Moment, Vec<State>>,
    last: Option<(Moment, &'static str)>,
}

/// The states of all books of an engine.
#[derive(Debug)]
pub(super) struct Books {
    books: Vec<Book>,
    wrong: Option<String>,
}

impl Books {
    pub(super) fn new(len: usize) -> Self {
        Self { books: (0..len).map(|_| Book::default()).collect(), wrong: None }
    }

    /// The states of a book at a moment.
    pub(super) fn at(&self, index: usize, moment: Moment) -> &[State] {
        self.books[index].states.get(&moment).map_or(&[], Vec::as_slice)
    }

    /// The last moment of a book with its proof.
    pub(super) fn last(&self, index: usize) -> Option<(Moment, &'static str)> {
        self.books[index].last
    }

    /// Events of a book so far.
    pub(super) fn events(&self, index: usize) -> u64 {
        self.books[index].events
    }

    /// Where changes that the engine lists did not lead to its levels.
    pub(super) fn take_wrong(&mut self) -> Option<String> {
        self.wrong.take()
    }

    /// Hands the engine's events to the streams, and notes the book after each.
    pub(super) fn publish(&mut self, engine: &mut Engine, feed: &mut OfflineFeed) {
        loop {
            let mut listed = 0_u64;
            let mut kind = BookEventKind::Status;
            let note = |event: &BookEvent<'_>| {
                kind = event.kind;
                for change in event.changes {
                    let (is_ask, px) = (change.side == BookSide::Ask, change.px.0);
                    listed = listed.wrapping_add(share(is_ask, px, change.new_qty.0));
                    listed = listed.wrapping_sub(share(is_ask, px, change.old_qty.0));
                }
            };
            let Some(sent) = feed.send_next(engine, note) else { break };
            self.note(engine, &sent, kind, listed);
        }
        feed.send_trades(engine);
    }

    fn note(&mut self, engine: &Engine, sent: &SentEvent, kind: BookEventKind, listed: u64) {
        let book = &mut self.books[sent.instrument.0 as usize];
        book.events += 1;
        book.whole = book.whole.wrapping_add(listed);
        let is_snapshot = kind == BookEventKind::Snapshot;
        if is_snapshot || book.events.is_multiple_of(EVENTS_PER_LOOK) {
            let whole = of_levels(engine, sent.instrument, usize::MAX);
            if !is_snapshot && whole != book.whole && sent.status.proof.is_verified() {
                self.wrong = Some(format!("the changes of {:?} do not lead to its levels", sent.instrument));
            }
            book.whole = whole;
        }
        let state = State { whole: book.whole, best: of_levels(engine, sent.instrument, DEPTH) };
        let moment = (sent.update_id, sent.ts_recv.0);
        let states = book.states.entry(moment).or_default();
        if states.last() != Some(&state) {
            states.push(state);
        }
        book.last = Some((moment, sent.status.proof.name()));
    }
}

fn of_levels(engine: &Engine, id: InstrumentId, depth: usize) -> u64 {
    let side = |side: BookSide| {
        let levels = engine.levels(id, side).into_iter().flatten().take(depth);
        let shares = levels.map(|level| share(side == BookSide::Ask, level.px.0, level.qty.0));
        shares.fold(0, u64::wrapping_add)
    };
    side(BookSide::Bid).wrapping_add(side(BookSide::Ask))
}
