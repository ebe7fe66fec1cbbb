//! Between the feeds' rings and the readers: a thread, and the feeds themselves while there are few readers in all.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle, Thread};
use std::time::Instant;

use anyhow::Context as _;
use tt_market::board::Board;
use tt_model::InstrumentId;
use tt_os::clock::unix_now;
use tt_status::market_account::AccountState;
use tt_status::market_streams::{
    BookOrders, CandleHistory, CandleQuestion, MarketStreams, Sink, StreamCounts, StreamKind, WholeBook,
};
use tt_sync::spsc;

use super::UpdateSender;
use super::account::{AccountCopy, AccountSubject};
use super::account_sender::{AccountSender, NEWS_MAX};
use super::book::BookCopy;
use super::distributor::{Books, Distributor, Ring};
use super::handover::{Handover, SharedDistributor};
use super::message::Subject;
use super::view::Counts;
use crate::Publishing;
use crate::instruments::Instrument;
use tt_venue::Venue;

/// Slots of a feed's ring, 64 bytes each: a book of every level that an engine can hold takes 46,423.
const RING_SLOTS: usize = 1 << 16;

/// What the thread shares with others.
#[derive(Debug)]
struct Shared {
    books: Arc<Books>,
    accounts: Mutex<Vec<AccountCopy>>,
    is_stopping: AtomicBool,
}

impl Shared {
    fn counts(&self) -> &Counts {
        &self.books.counts
    }

    fn accounts(&self) -> MutexGuard<'_, Vec<AccountCopy>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The running thread.
#[derive(Debug)]
pub(crate) struct Publisher {
    shared: Arc<Shared>,
    distributor: SharedDistributor,
    thread: JoinHandle<()>,
    is_simulated: bool,
}

/// Whole books and streams for other threads.
#[derive(Clone, Debug)]
struct Published {
    shared: Arc<Shared>,
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
            BookCopy::new(subject, candles)
        };
        let books = Arc::new(Books::new(instruments.iter().map(book)));
        let shared = Arc::new(Shared { books, accounts: Mutex::default(), is_stopping: AtomicBool::new(false) });
        let distributor = SharedDistributor::new(Distributor::new(Arc::clone(&shared.books), Instant::now()));
        let seen = (Arc::clone(&shared), distributor.clone());
        let thread = thread::Builder::new().name("market-updates".to_owned()).spawn(move || run(&seen.0, &seen.1));
        Ok(Self { shared, distributor, thread: thread.context("market: thread of updates")?, is_simulated })
    }

    /// The end of a ring for a feed with `len` books from `first` on, and the instruments that share them.
    pub(crate) fn sender(&self, first: usize, len: usize, sharing: Vec<(InstrumentId, InstrumentId)>) -> UpdateSender {
        let (producer, events) = spsc::ring(RING_SLOTS);
        let handover = Handover {
            books: Arc::clone(&self.shared.books),
            distributor: self.distributor.clone(),
            ring: self.distributor.lock().add(Ring { events, first, sharing }),
            thread: self.thread.thread().clone(),
        };
        UpdateSender::new(producer, len, Arc::clone(&self.shared.counts().lost_by_feeds), Some(handover))
    }

    /// The end of a channel for a feed's account.
    pub(crate) fn account_sender(&self, venue: Venue, names: Vec<String>, board: Board) -> AccountSender {
        let (sender, news) = mpsc::sync_channel(NEWS_MAX);
        let of = AccountSubject { venue: venue.name(), is_simulated: self.is_simulated, names, board };
        self.shared.accounts().push(AccountCopy::new(of, news));
        AccountSender::new(venue, sender, self.thread.thread().clone())
    }

    pub(crate) fn streams(&self) -> Arc<dyn MarketStreams> {
        Arc::new(Published { shared: Arc::clone(&self.shared), thread: self.thread.thread().clone() })
    }

    /// Ends the thread after the last events of feeds that have ended.
    pub(crate) fn stop(self) {
        self.shared.is_stopping.store(true, Release);
        self.thread.thread().unpark();
        let _ = self.thread.join();
    }
}

impl MarketStreams for Published {
    fn book(&self, instrument: u32, depth: usize) -> Option<WholeBook> {
        let excerpt = self.shared.books.book(instrument as usize)?.excerpt(depth);
        Some(excerpt.into_book(unix_now()))
    }

    fn candles(&self, instrument: u32, asked: &CandleQuestion) -> Option<CandleHistory> {
        Some(self.shared.books.book(instrument as usize)?.candles(asked, unix_now()))
    }

    /// The feeds themselves have them.
    fn orders(&self, _: &[u32], _: usize) -> Vec<(u32, BookOrders)> {
        Vec::new()
    }

    fn subscribe(&self, instruments: &[u32], kind: StreamKind, sink: &Arc<dyn Sink>) {
        for instrument in instruments {
            if let Some(mut book) = self.shared.books.book(*instrument as usize) {
                book.subscribe(kind, sink, self.shared.counts(), Instant::now());
            }
        }
        self.thread.unpark();
    }

    fn accounts(&self) -> Vec<AccountState> {
        self.shared.accounts().iter().map(AccountCopy::state).collect()
    }

    fn subscribe_accounts(&self, venue: Option<&str>, sink: &Arc<dyn Sink>) {
        let mut accounts = self.shared.accounts();
        for account in accounts.iter_mut().filter(|account| venue.is_none_or(|venue| venue == account.venue())) {
            account.subscribe(sink, self.shared.counts());
        }
        drop(accounts);
        self.thread.unpark();
    }

    fn counts(&self) -> StreamCounts {
        self.shared.counts().read()
    }
}

/// Takes events until the publisher is stopped.
fn run(shared: &Shared, distributor: &SharedDistributor) {
    loop {
        let is_stopping = shared.is_stopping.load(Acquire);
        let now = Instant::now();
        let (looks, mut taken, due) = {
            let mut distributor = distributor.lock();
            let looks = distributor.is_look_due(now);
            (looks, distributor.advance(now), distributor.due())
        };
        for account in shared.accounts().iter_mut() {
            taken += account.take_news(shared.counts());
            if looks {
                account.look_after(shared.counts(), now);
            }
            account.flush();
        }
        if taken == 0 {
            if is_stopping {
                return;
            }
            thread::park_timeout(due.saturating_duration_since(Instant::now()));
        }
    }
}

#[cfg(test)]
mod tests;
