//! Streams in virtual time, without a thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tt_market::board::Board;
use tt_market::changes::BookEvent;
use tt_market::{BookStatus, Engine};
use tt_model::{Decimal, InstrumentId, Nanos};
use tt_status::market_streams::{Sink, StreamCounts, StreamKind};
use tt_sync::spsc;
use tt_venue::listing::ContractUnit;

use super::UpdateSender;
use super::book::BookCopy;
use super::distributor::{Books, Distributor, Ring};
use super::message::Subject;
use crate::CandlesKept;

/// What the publisher's thread does, at the caller's times.
#[derive(Debug)]
pub struct OfflineStreams {
    books: Arc<Books>,
    distributor: Distributor,
    began: Instant,
}

/// An instrument of [`OfflineStreams`].
#[derive(Clone, Debug)]
pub struct OfflineInstrument {
    /// The venue's name.
    pub venue: &'static str,
    /// The symbol.
    pub name: String,
    /// The price step.
    pub tick_size: Decimal,
    /// The quantity step.
    pub lot_size: Decimal,
}

impl OfflineStreams {
    /// Streams of `instruments`, which messages number from zero on.
    #[must_use]
    pub fn new(instruments: &[OfflineInstrument]) -> Self {
        let book = |(id, of): (usize, &OfflineInstrument)| {
            let steps = [of.tick_size, of.lot_size];
            let subject = Subject::new(of.venue, &of.name, id as u32, true, steps, ContractUnit::Base);
            BookCopy::new(subject, CandlesKept { seconds: 1, minutes: 1 })
        };
        let books = Arc::new(Books::new(instruments.iter().enumerate().map(book)));
        let began = Instant::now();
        Self { distributor: Distributor::new(Arc::clone(&books), began), books, began }
    }

    /// Adds a feed with the instruments of `len` numbers from `first` on, and a ring of `slots` slots.
    pub fn add_feed(&mut self, first: usize, len: usize, slots: usize) -> OfflineFeed {
        let (producer, events) = spsc::ring(slots);
        self.distributor.add(Ring { events, first, sharing: Vec::new() });
        let lost = Arc::clone(&self.books.counts.lost_by_feeds);
        OfflineFeed(UpdateSender::new(producer, len, lost, None))
    }

    /// Sends the stream of an instrument to `sink` until it is dropped.
    pub fn subscribe(&self, instrument: u32, kind: StreamKind, sink: &Arc<dyn Sink>, now: Nanos) {
        if let Some(mut book) = self.books.book(instrument as usize) {
            book.subscribe(kind, sink, &self.books.counts, self.instant(now));
        }
    }

    /// Gives each feed a turn, and sends what is due; returns how many events there were.
    pub fn advance(&mut self, now: Nanos) -> usize {
        let now = self.instant(now);
        self.distributor.advance(now)
    }

    /// Returns what was sent and lost.
    #[must_use]
    pub fn counts(&self) -> StreamCounts {
        self.books.counts.read()
    }

    fn instant(&self, now: Nanos) -> Instant {
        self.began + Duration::from_nanos(now.0)
    }
}

/// An event that went to the streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentEvent {
    /// The feed's own number of the instrument.
    pub instrument: InstrumentId,
    /// The last update that the book includes.
    pub update_id: u64,
    /// When its frame was received, or the proof changed.
    pub ts_recv: Nanos,
    /// How the book was verified.
    pub status: BookStatus,
}

/// A feed of [`OfflineStreams`].
#[derive(Debug)]
pub struct OfflineFeed(UpdateSender);

impl OfflineFeed {
    /// Sends the next event of the engine's last input, which `note` sees; to be called until there is none.
    pub fn send_next(&mut self, engine: &mut Engine, note: impl FnOnce(&BookEvent<'_>)) -> Option<SentEvent> {
        let event = engine.poll_book_event()?;
        note(&event);
        let (instrument, update_id) = (event.instrument, event.update_id);
        let sent = SentEvent { instrument, update_id, ts_recv: event.ts_recv, status: event.status };
        let head = self.0.begin(&event);
        self.0.finish(engine, head);
        Some(sent)
    }

    /// Sends the trades and liquidations of the engine's last input.
    pub fn send_trades(&mut self, engine: &mut Engine) {
        while let Some((id, print)) = engine.poll_trade() {
            self.0.send_trade(id, print);
        }
        while let Some((id, liquidation)) = engine.poll_liquidation() {
            self.0.send_liquidation(id, liquidation);
        }
    }

    /// Sends the books that found no room, if there is room now: after each look at deadlines.
    pub fn send_owed(&mut self, engine: &Engine, board: &Board) {
        self.0.send_owed(engine, board);
    }
}
