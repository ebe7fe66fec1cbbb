//! Events from the feeds' rings to the copies of the books and their readers, at the caller's times.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tt_model::InstrumentId;
use tt_sync::spsc::Consumer;

use super::book::BookCopy;
use super::slot::{CHANGES_PER_SLOT, Change, First, Head, Kind, LEVELS_PER_SLOT, Slot};
use super::view::Counts;

/// Events of one feed before the others get their turn.
const EVENTS_PER_TURN: usize = 256;
/// Readers that fell behind are looked at so often, also in a quiet market.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The copies of all books, and what their readers were sent.
#[derive(Debug)]
pub(super) struct Books {
    books: Vec<Mutex<BookCopy>>,
    pub(super) counts: Counts,
}

impl Books {
    pub(super) fn new(books: impl IntoIterator<Item = BookCopy>) -> Self {
        Self { books: books.into_iter().map(Mutex::new).collect(), counts: Counts::default() }
    }

    pub(super) fn book(&self, index: usize) -> Option<MutexGuard<'_, BookCopy>> {
        // A reader's sink that panics has left the book as it was.
        self.books.get(index).map(|book| book.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A feed's ring, and the first of its instruments.
#[derive(Debug)]
pub(super) struct Ring {
    pub(super) events: Consumer<Slot>,
    pub(super) first: usize,
    /// Instruments that share another one's book: its number in the feed, and theirs.
    pub(super) sharing: Vec<(InstrumentId, InstrumentId)>,
}

impl Ring {
    /// The books of an instrument of the feed.
    fn books(first: usize, sharing: &[(InstrumentId, InstrumentId)], instrument: u32) -> impl Iterator<Item = usize> {
        let shares = sharing.iter().filter(move |(local, _)| local.0 == instrument).map(|(_, id)| id.0 as usize);
        std::iter::once(first + instrument as usize).chain(shares)
    }
}

/// Takes the feeds' events, and gives the readers what is due.
#[derive(Debug)]
pub(super) struct Distributor {
    books: Arc<Books>,
    rings: Vec<Ring>,
    /// Instruments with an event in this turn.
    touched: Vec<usize>,
    /// Instruments with a message that waits, or a reader that fell behind.
    waiting: BTreeSet<usize>,
    next_due: Option<Instant>,
    look_at: Instant,
}

impl Distributor {
    pub(super) fn new(books: Arc<Books>, now: Instant) -> Self {
        let (rings, touched, waiting) = Default::default();
        Self { books, rings, touched, waiting, next_due: None, look_at: now }
    }

    /// Whether readers that fell behind are looked at in the next turn.
    pub(super) fn is_look_due(&self, now: Instant) -> bool {
        self.look_at <= now
    }

    /// When there is something to do, if no event comes before.
    pub(super) fn due(&self) -> Instant {
        self.next_due.map_or(self.look_at, |due| due.min(self.look_at))
    }

    /// Gives each feed a turn, and sends what is due at `now`; returns how many events there were.
    pub(super) fn advance(&mut self, now: Instant) -> usize {
        let mut taken = 0;
        for index in 0..self.rings.len() {
            let (events, due) = self.take_turn(index, now);
            taken += events;
            self.next_due = earliest(self.next_due, due);
        }
        let looks = self.is_look_due(now);
        if looks || self.next_due.is_some_and(|due| due <= now) {
            self.next_due = self.look_after(now, looks);
            if looks {
                self.look_at = now + LOOK_EVERY;
            }
        }
        taken
    }

    /// Gives one feed a turn, on its own thread. Returns whether another [`advance`](Self::advance) need not come sooner
    /// than it was [`due`](Self::due) before.
    pub(super) fn advance_one(&mut self, ring: usize, now: Instant) -> bool {
        let (taken, due) = self.take_turn(ring, now);
        let is_sooner = due.is_some_and(|due| due < self.due());
        self.next_due = earliest(self.next_due, due);
        taken < EVENTS_PER_TURN && !is_sooner
    }

    /// Adds a feed's ring, and returns its number.
    pub(super) fn add(&mut self, ring: Ring) -> usize {
        self.rings.push(ring);
        self.rings.len() - 1
    }

    /// Takes events of one feed; returns how many, and when a message is due.
    fn take_turn(&mut self, index: usize, now: Instant) -> (usize, Option<Instant>) {
        let (mut taken, mut due) = (0, None);
        let touched = &mut self.touched;
        let Ring { events, first, sharing } = &mut self.rings[index];
        while taken < EVENTS_PER_TURN {
            let Some(slot) = events.pop() else { break };
            taken += 1;
            match slot.first() {
                Some(First::Book(head)) => {
                    let levels = levels(events, &head);
                    for index in Ring::books(*first, sharing, head.instrument) {
                        let Some(mut book) = self.books.book(index) else { continue };
                        touched.push(index);
                        let waits = book.take(&head, levels.iter().copied(), &self.books.counts, now);
                        due = earliest(due, waits);
                        if waits.is_some() || book.is_behind() {
                            self.waiting.insert(index);
                        }
                    }
                }
                Some(First::Trade(instrument, print)) => {
                    for index in Ring::books(*first, sharing, instrument) {
                        let Some(mut book) = self.books.book(index) else { continue };
                        touched.push(index);
                        book.take_trade(print, &self.books.counts);
                        if book.is_behind() {
                            self.waiting.insert(index);
                        }
                    }
                }
                Some(First::Liquidation(instrument, liquidation)) => {
                    for index in Ring::books(*first, sharing, instrument) {
                        let Some(mut book) = self.books.book(index) else { continue };
                        touched.push(index);
                        book.take_liquidation(liquidation, &self.books.counts);
                        if book.is_behind() {
                            self.waiting.insert(index);
                        }
                    }
                }
                Some(First::Steps(instrument, tick_size, lot_size)) => {
                    for index in Ring::books(*first, sharing, instrument) {
                        let Some(mut book) = self.books.book(index) else { continue };
                        book.take_steps(tick_size, lot_size);
                    }
                }
                Some(First::Known(instrument, range)) => {
                    for index in Ring::books(*first, sharing, instrument) {
                        let Some(mut book) = self.books.book(index) else { continue };
                        book.take_known(range);
                    }
                }
                // A feed writes whole events.
                None => {}
            }
        }
        // All messages of a turn leave together; a second look at the same book finds none.
        for index in self.touched.drain(..) {
            if let Some(mut book) = self.books.book(index) {
                book.flush();
            }
        }
        (taken, due)
    }

    /// Sends what is due; `all` looks at every book, since a new reader may have fallen behind at once.
    fn look_after(&mut self, now: Instant, all: bool) -> Option<Instant> {
        let mut next = None;
        if all {
            self.waiting.extend(0..self.books.books.len());
        }
        let books = &self.books;
        self.waiting.retain(|index| {
            let Some(mut book) = books.book(*index) else { return false };
            let due = book.look_after(&books.counts, now);
            book.flush();
            next = earliest(next, due);
            due.is_some() || book.is_behind()
        });
        next
    }
}

fn earliest(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

/// The levels of an event, which are in the ring as a whole.
fn levels(events: &mut Consumer<Slot>, head: &Head) -> Vec<Change> {
    let mut levels = Vec::with_capacity(head.levels);
    let per_slot = if head.kind == Kind::Snapshot { LEVELS_PER_SLOT } else { CHANGES_PER_SLOT };
    while levels.len() < head.levels {
        let Some(slot) = events.pop() else { break };
        for index in 0..per_slot.min(head.levels - levels.len()) {
            levels.push(if head.kind == Kind::Snapshot {
                let (side, px, qty) = slot.level(index);
                Change { side, px, old: 0, new: qty }
            } else {
                slot.change(index)
            });
        }
    }
    levels
}
