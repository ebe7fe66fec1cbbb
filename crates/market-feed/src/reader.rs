//! SharedStatus state, read from any thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tt_market::board::{Board, Depth, TickerState, TopOfBook, TradePrint};
use tt_market::counters::VenueCounters;
use tt_meter::Calibration;
use tt_model::InstrumentId;
use tt_venue::Venue;

use super::frame_timings::Times;
use super::instruments::{Instrument, Instruments};
use super::status::{ChangeSignal, FeedStatus, SharedStatus};

/// One feed as other threads see it.
#[derive(Debug)]
pub(super) struct FeedView {
    pub(super) venue: Venue,
    pub(super) url: String,
    /// What its books are made of.
    pub(super) kind: &'static str,
    /// Levels of a side of its snapshots by REST.
    pub(super) levels: Option<u32>,
    pub(super) board: Board,
    pub(super) shared_status: Arc<SharedStatus>,
    pub(super) messages: Arc<[AtomicU64]>,
}

/// Reads published state from any thread, without ever making an engine wait. Clone it freely.
#[derive(Clone, Debug)]
pub struct Reader(Arc<View>);

#[derive(Debug)]
struct View {
    feeds: Vec<FeedView>,
    instruments: Arc<Instruments>,
    change_signal: ChangeSignal,
}

impl Reader {
    pub(super) fn set_followed(&self, id: InstrumentId, is_followed: bool) {
        self.0.instruments.set_followed(id, is_followed);
    }

    pub(super) fn new(feeds: Vec<FeedView>, instruments: Arc<Instruments>, change_signal: ChangeSignal) -> Self {
        Self(Arc::new(View { feeds, instruments, change_signal }))
    }

    /// All instruments, in the order of their ids. A venue may make steps finer later, while the book is not proved:
    /// [`Reader::consistent`] reads steps and what is counted in them together.
    #[must_use]
    pub fn instruments(&self) -> &[Instrument] {
        self.0.instruments.newest()
    }

    /// Whether an instrument is followed: neither its caller nor its venue has ended it. One that has ended keeps its id, and
    /// its book is stale.
    #[must_use]
    pub fn is_followed(&self, id: InstrumentId) -> bool {
        self.0.instruments.is_followed(id)
    }

    /// What `look` sees of the instruments and whatever it reads of them, all in the same steps: it looks again where
    /// they became finer meanwhile.
    pub fn consistent<T>(&self, look: impl FnMut(&[Instrument]) -> T) -> T {
        self.0.instruments.consistent(look)
    }

    /// How many feeds there are.
    #[must_use]
    pub fn feeds_len(&self) -> usize {
        self.0.feeds.len()
    }

    /// A feed's venue and address.
    ///
    /// # Panics
    /// Where there is no such feed.
    #[must_use]
    pub fn feed(&self, index: usize) -> (Venue, &str) {
        (self.0.feeds[index].venue, &self.0.feeds[index].url)
    }

    /// What the book of an instrument is made of: `levels`, `orders` or `rpi`.
    pub(super) fn book_kind(&self, listed: &Instrument) -> &'static str {
        self.0.feeds[listed.feed].kind
    }

    /// Levels of a side of a snapshot by REST of the instrument.
    pub(super) fn snapshot_levels(&self, listed: &Instrument) -> Option<u32> {
        self.0.feeds[listed.feed].levels
    }

    /// How a feed fares.
    ///
    /// # Panics
    /// Where there is no such feed.
    #[must_use]
    pub fn status(&self, index: usize) -> FeedStatus {
        self.0.feeds[index].shared_status.status()
    }

    /// A feed's counters, at most 50 ms old.
    ///
    /// # Panics
    /// Where there is no such feed.
    #[must_use]
    pub fn counters(&self, index: usize) -> VenueCounters {
        let feed = &self.0.feeds[index];
        feed.board.counters(feed.venue)
    }

    /// What all feeds have timed together, in cycles of [`Reader::calibration`]'s clock.
    #[must_use]
    pub fn times(&self) -> Times {
        let mut all = Times::default();
        self.0.feeds.iter().for_each(|feed| all.merge(&feed.shared_status.times()));
        all
    }

    /// The clock of the times, with its scale: in a new process the first call takes up to 50 ms.
    #[must_use]
    pub fn calibration(&self) -> &'static Calibration {
        tt_os::clock::calibration()
    }

    /// Messages of an instrument since the start.
    #[must_use]
    pub fn messages(&self, id: InstrumentId) -> u64 {
        let Some(instrument) = self.instruments().get(id.0 as usize) else { return 0 };
        let messages = &self.0.feeds[instrument.feed].messages;
        messages.get(instrument.local.0 as usize).map_or(0, |count| count.load(Relaxed))
    }

    /// The best levels of an instrument and their proof.
    #[must_use]
    pub fn top_of_book(&self, id: InstrumentId) -> Option<TopOfBook> {
        let (board, local) = self.board(id)?;
        board.top_of_book(local)
    }

    /// The best ten levels of both sides.
    #[must_use]
    pub fn depth(&self, id: InstrumentId) -> Option<Depth> {
        let (board, local) = self.board(id)?;
        board.depth(local)
    }

    /// The venue's own best bid and offer and last price.
    #[must_use]
    pub fn ticker(&self, id: InstrumentId) -> Option<TickerState> {
        let (board, local) = self.board(id)?;
        board.ticker(local)
    }

    /// The newest trades of an instrument, oldest first.
    #[must_use]
    pub fn trades(&self, id: InstrumentId) -> Vec<TradePrint> {
        self.board(id).map_or_else(Vec::new, |(board, local)| board.trades(local))
    }

    /// The engine's board that shows instrument `id`, and the instrument's number on it.
    #[must_use]
    pub fn board(&self, id: InstrumentId) -> Option<(&Board, InstrumentId)> {
        let instrument = self.instruments().get(id.0 as usize)?;
        Some((&self.0.feeds[instrument.feed].board, instrument.local))
    }

    /// Blocks until `is_so`, looked at whenever a feed has published something; `false` after `most`.
    pub fn wait(&self, most: Duration, is_so: impl FnMut() -> bool) -> bool {
        self.0.change_signal.wait(Instant::now() + most, is_so)
    }

    /// As [`Reader::wait`], until a moment.
    pub fn wait_until(&self, deadline: Instant, is_so: impl FnMut() -> bool) -> bool {
        self.0.change_signal.wait(deadline, is_so)
    }

    /// Whether the book of every instrument that is followed is verified.
    #[must_use]
    pub fn all_verified(&self) -> bool {
        self.instruments()
            .iter()
            .filter(|listed| self.is_followed(listed.id))
            .all(|listed| self.top_of_book(listed.id).is_some_and(|top| top.status.proof.is_verified()))
    }
}
