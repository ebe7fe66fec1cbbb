//! The thread between the feeds' rings and the readers.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tt_market::board::Board;
use tt_model::InstrumentId;
use tt_os::clock::unix_now;
use tt_status::market_account::AccountState;
use tt_status::market_streams::{
    BookOrders, CandleHistory, CandleQuestion, MarketStreams, Sink, StreamCounts, StreamKind, WholeBook,
};
use tt_sync::spsc::{self, Consumer};

use super::UpdateSender;
use super::account::{AccountCopy, AccountSubject};
use super::account_sender::{AccountSender, NEWS_MAX};
use super::book::BookCopy;
use super::message::Subject;
use super::slot::{CHANGES_PER_SLOT, Change, First, Head, Kind, LEVELS_PER_SLOT, Slot};
use super::view::Counts;
use crate::Publishing;
use crate::instruments::Instrument;
use tt_venue::Venue;

/// Slots of a feed's ring, 64 bytes each: a book of every level that an engine can hold takes 46,423.
const RING_SLOTS: usize = 1 << 16;
/// Events of one feed before the others get their turn.
const EVENTS_PER_TURN: usize = 256;
/// Readers that fell behind are looked at so often, also in a quiet market.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The books as the publisher has them.
#[derive(Debug)]
struct Books {
    books: Vec<Mutex<BookCopy>>,
    accounts: Mutex<Vec<AccountCopy>>,
    counts: Counts,
    is_stopping: AtomicBool,
}

impl Books {
    fn book(&self, index: usize) -> Option<MutexGuard<'_, BookCopy>> {
        // A reader's sink that panics has left the book as it was.
        self.books.get(index).map(|book| book.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn accounts(&self) -> MutexGuard<'_, Vec<AccountCopy>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The running thread.
#[derive(Debug)]
pub(crate) struct Publisher {
    books: Arc<Books>,
    thread: JoinHandle<()>,
    rings: mpsc::Sender<Ring>,
    is_simulated: bool,
}

/// A feed's ring, and the first of its instruments.
struct Ring {
    events: Consumer<Slot>,
    first: usize,
    /// Instruments that share another one's book: its number in the feed, and theirs.
    sharing: Vec<(InstrumentId, InstrumentId)>,
}

impl Ring {
    /// The books of an instrument of the feed.
    fn books(first: usize, sharing: &[(InstrumentId, InstrumentId)], instrument: u32) -> impl Iterator<Item = usize> {
        let shares = sharing.iter().filter(move |(local, _)| local.0 == instrument).map(|(_, id)| id.0 as usize);
        std::iter::once(first + instrument as usize).chain(shares)
    }
}

/// Whole books and streams for other threads.
#[derive(Clone, Debug)]
struct Published {
    books: Arc<Books>,
    thread: Thread,
}

impl Publisher {
    /// Starts the thread for `instruments`, in the order of their ids; messages number them from `first` on.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(instruments: &[Instrument], first: u32, publishing: Publishing) -> anyhow::Result<Self> {
        let Publishing { is_simulated, candles } = publishing;
        let book = |listed: &Instrument| {
            let (venue, steps) = (listed.venue.name(), [listed.tick_size, listed.lot_size]);
            let id = first + listed.id.0;
            let subject = Subject::new(venue, &listed.name, id, is_simulated, steps, listed.unit);
            Mutex::new(BookCopy::new(subject, candles))
        };
        let books = instruments.iter().map(book).collect();
        let books = Arc::new(Books {
            books,
            accounts: Mutex::default(),
            counts: Counts::default(),
            is_stopping: AtomicBool::new(false),
        });
        let (rings, added) = mpsc::channel();
        let shared = Arc::clone(&books);
        let thread = thread::Builder::new().name("market-updates".to_owned()).spawn(move || {
            let (rings, touched, waiting) = Default::default();
            Loop { books: &shared, added, rings, touched, waiting }.run();
        });
        Ok(Self { books, thread: thread.context("market: thread of updates")?, rings, is_simulated })
    }

    /// The end of a ring for a feed with `len` books from `first` on, and the instruments that share them.
    pub(crate) fn sender(&self, first: usize, len: usize, sharing: Vec<(InstrumentId, InstrumentId)>) -> UpdateSender {
        let (producer, events) = spsc::ring(RING_SLOTS);
        // The thread lives until `stop`.
        let _ = self.rings.send(Ring { events, first, sharing });
        UpdateSender::new(producer, len, Arc::clone(&self.books.counts.lost_by_feeds), self.thread.thread().clone())
    }

    /// The end of a channel for a feed's account.
    pub(crate) fn account_sender(&self, venue: Venue, names: Vec<String>, board: Board) -> AccountSender {
        let (sender, news) = mpsc::sync_channel(NEWS_MAX);
        let of = AccountSubject { venue: venue.name(), is_simulated: self.is_simulated, names, board };
        self.books.accounts().push(AccountCopy::new(of, news));
        AccountSender::new(venue, sender, self.thread.thread().clone())
    }

    pub(crate) fn streams(&self) -> Arc<dyn MarketStreams> {
        Arc::new(Published { books: Arc::clone(&self.books), thread: self.thread.thread().clone() })
    }

    /// Ends the thread after the last events of feeds that have ended.
    pub(crate) fn stop(self) {
        self.books.is_stopping.store(true, Release);
        self.thread.thread().unpark();
        let _ = self.thread.join();
    }
}

impl MarketStreams for Published {
    fn book(&self, instrument: u32, depth: usize) -> Option<WholeBook> {
        let excerpt = self.books.book(instrument as usize)?.excerpt(depth);
        Some(excerpt.into_book(unix_now()))
    }

    fn candles(&self, instrument: u32, asked: &CandleQuestion) -> Option<CandleHistory> {
        Some(self.books.book(instrument as usize)?.candles(asked, unix_now()))
    }

    /// The feeds themselves have them.
    fn orders(&self, _: &[u32], _: usize) -> Vec<(u32, BookOrders)> {
        Vec::new()
    }

    fn subscribe(&self, instruments: &[u32], kind: StreamKind, sink: &Arc<dyn Sink>) {
        for instrument in instruments {
            if let Some(mut book) = self.books.book(*instrument as usize) {
                book.subscribe(kind, sink, &self.books.counts);
            }
        }
        self.thread.unpark();
    }

    fn accounts(&self) -> Vec<AccountState> {
        self.books.accounts().iter().map(AccountCopy::state).collect()
    }

    fn subscribe_accounts(&self, venue: Option<&str>, sink: &Arc<dyn Sink>) {
        let mut accounts = self.books.accounts();
        for account in accounts.iter_mut().filter(|account| venue.is_none_or(|venue| venue == account.venue())) {
            account.subscribe(sink, &self.books.counts);
        }
        drop(accounts);
        self.thread.unpark();
    }

    fn counts(&self) -> StreamCounts {
        self.books.counts.read()
    }
}

struct Loop<'a> {
    books: &'a Books,
    added: mpsc::Receiver<Ring>,
    rings: Vec<Ring>,
    /// Instruments with an event in this turn.
    touched: Vec<usize>,
    /// Instruments with a message that waits, or a reader that fell behind.
    waiting: BTreeSet<usize>,
}

impl Loop<'_> {
    fn run(&mut self) {
        let mut look_at = Instant::now();
        let mut next_due: Option<Instant> = None;
        loop {
            let is_stopping = self.books.is_stopping.load(Acquire);
            self.rings.extend(self.added.try_iter());
            let now = Instant::now();
            let mut taken = 0;
            for index in 0..self.rings.len() {
                let (events, due) = self.take_turn(index, now);
                taken += events;
                next_due = earliest(next_due, due);
            }
            for account in self.books.accounts().iter_mut() {
                taken += account.take_news(&self.books.counts);
                if look_at <= now {
                    account.look_after(&self.books.counts, now);
                }
                account.flush();
            }
            if next_due.is_some_and(|due| due <= now) || look_at <= now {
                next_due = self.look_after(now, look_at <= now);
                if look_at <= now {
                    look_at = now + LOOK_EVERY;
                }
            }
            if taken == 0 {
                if is_stopping {
                    return;
                }
                let until = next_due.map_or(look_at, |due| due.min(look_at));
                thread::park_timeout(until.saturating_duration_since(Instant::now()));
            }
        }
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
            self.waiting = (0..self.books.books.len()).collect();
        }
        let books = self.books;
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

#[cfg(test)]
mod tests;
