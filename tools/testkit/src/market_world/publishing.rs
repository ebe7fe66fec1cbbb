//! The streams of a world: one publisher for all engines, and readers that each read at their own pace.

use std::sync::Arc;

use market_feed::offline::{OfflineInstrument, OfflineStreams, Sink, StreamKind};
use tt_model::{Decimal, Nanos};

use super::books::DEPTH;
use super::client::Feed;
use super::planted::Planted;
use super::reader::{Decimals, Message, Queue, ReaderBook, Source};
use super::script::{ReaderScript, Script};
use super::tape::Taped;
use super::world::{Event, World};

/// Rounds after which everything has been read in the end, and the time of each: longer than any stream waits.
const ROUNDS: u64 = 4;
const ROUND: Nanos = Nanos::from_secs(1);
/// Messages that fit between the publisher and a reader that is looked at in the end.
const MESSAGES_PER_ROUND: usize = 4_096;

/// A reader and what it has.
#[derive(Debug)]
struct Reader {
    script: ReaderScript,
    queue: Arc<Queue>,
    books: Vec<ReaderBook>,
    blocked_until: Nanos,
    taken: u64,
    /// Events of each book before it came; `None` where they were not all with the publisher.
    before: Option<Vec<u64>>,
}

/// The streams of a world.
#[derive(Debug)]
pub(super) struct Publishing {
    streams: OfflineStreams,
    readers: Vec<Option<Reader>>,
    /// The first book of each engine.
    firsts: Vec<usize>,
    decimals: Vec<Decimals>,
    blocked_until: Nanos,
}

impl Publishing {
    /// Connects `engines` with streams; `None` if the seed has no readers.
    pub(super) fn new(script: &Script, feeds: &[Feed], engines: &mut [Taped]) -> Option<Self> {
        if script.readers.is_empty() {
            return None;
        }
        let of = |engine: usize| feeds.iter().filter(move |feed| feed.engine == engine);
        let (mut instruments, mut decimals, mut firsts) = (Vec::new(), Vec::new(), Vec::new());
        for engine in 0..engines.len() {
            firsts.push(instruments.len());
            for (venue, listed) in
                of(engine).flat_map(|feed| feed.listed.iter().map(move |listed| (feed.engine_venue, listed)))
            {
                let (px, qty) = (listed.px_decimals, listed.qty_decimals);
                let (tick_size, lot_size) = (Decimal::new(1, px as u8), Decimal::new(1, qty as u8));
                let name = listed.symbol.clone();
                instruments.push(OfflineInstrument { venue: venue.name(), name, tick_size, lot_size });
                decimals.push(Decimals { px, qty });
            }
        }
        let mut streams = OfflineStreams::new(&instruments);
        for (engine, first) in engines.iter_mut().zip(&firsts) {
            engine.publish_to(|len| streams.add_feed(*first, len, script.ring_slots));
        }
        let readers = script.readers.iter().map(|_| None).collect();
        Some(Self { streams, readers, firsts, decimals, blocked_until: Nanos(0) })
    }

    fn engine_of(&self, instrument: usize) -> usize {
        self.firsts.partition_point(|first| *first <= instrument) - 1
    }

    fn source<'a>(&'a self, engines: &'a [Taped], instrument: usize, is_deep: bool, has_lost: bool) -> Source<'a> {
        let engine = self.engine_of(instrument);
        let first = self.firsts[engine];
        Source { books: engines[engine].books(), first, decimals: &self.decimals[first..], is_deep, has_lost }
    }

    /// Reads up to `most` messages; the last ones' bytes go to `note`.
    fn read(
        &mut self,
        engines: &[Taped],
        number: usize,
        most: usize,
        loses: bool,
        mut note: impl FnMut(&str),
    ) -> Result<(), String> {
        let Some(mut reader) = self.readers[number].take() else { return Ok(()) };
        let has_lost = reader.queue.counts().1 > 0 || self.streams.counts().lost_by_feeds > 0;
        for _ in 0..most {
            let Some(text) = reader.queue.pop() else { break };
            note(&text);
            reader.taken += 1;
            if loses && reader.taken.is_multiple_of(64) {
                continue;
            }
            let message = Message::parse(&text)?;
            let instrument = message.instrument;
            let source = self.source(engines, instrument, reader.script.depth.is_none(), has_lost);
            reader.books[instrument]
                .take(&message, &source)
                .map_err(|what| format!("reader {number}, book {instrument}: {what}"))?;
        }
        self.readers[number] = Some(reader);
        Ok(())
    }

    /// What is missing in the end: each reader has the last state of each book, and everything is counted.
    fn rest(&self, engines: &[Taped]) -> Option<String> {
        let counts = self.streams.counts();
        let (mut messages, mut gaps, mut lost, mut readers) = (0, 0, 0, 0);
        for (number, reader) in self.readers.iter().enumerate() {
            let Some(reader) = reader else { continue };
            readers += 1;
            messages += reader.queue.counts().0;
            for (instrument, book) in reader.books.iter().enumerate() {
                gaps += book.gaps;
                lost += book.lost;
                let engine = self.engine_of(instrument);
                let (books, index) = (engines[engine].books(), instrument - self.firsts[engine]);
                if let Some(what) = book.rest(books.last(index)) {
                    return Some(format!("reader {number}, book {instrument}, in the end: {what}"));
                }
                let before = reader.before.as_ref().filter(|_| reader.script.every.is_none());
                let events = before.map(|before| books.events(index) - before[instrument]);
                if events.is_some_and(|events| book.skips(events)) {
                    return Some(format!("reader {number}, book {instrument}: {events:?} events, {}", book.summary()));
                }
            }
        }
        let lost_max = counts.lost + readers * counts.lost_by_feeds;
        let is_counted = (messages, gaps) == (counts.messages, counts.gaps) && (counts.lost..=lost_max).contains(&lost);
        (!is_counted).then(|| format!("{messages} messages, {gaps} marks and {lost} lost at the readers, {counts:?}"))
    }
}

impl World<'_> {
    /// Lets the streams take what the engines have published.
    pub(super) fn distribute(&mut self) {
        let Some(publishing) = &mut self.publishing else { return };
        if self.now >= publishing.blocked_until {
            while publishing.streams.advance(self.now) > 0 {}
        }
    }

    /// The publisher's thread does not run for a while.
    pub(super) fn block_publisher(&mut self, pause: Nanos) {
        if let Some(publishing) = &mut self.publishing {
            publishing.blocked_until = Nanos(self.now.0 + pause.0);
        }
    }

    /// One of the readers does not read for a while.
    pub(super) fn block_reader(&mut self, draw: u64, pause: Nanos) {
        let Some(publishing) = &mut self.publishing else { return };
        let number = draw as usize % publishing.readers.len();
        if let Some(reader) = &mut publishing.readers[number] {
            reader.blocked_until = Nanos(self.now.0 + pause.0);
        }
    }

    /// A reader comes.
    pub(super) fn begin_reader(&mut self, number: usize) {
        let (script, Some(publishing)) = (self.script.readers[number], &mut self.publishing) else { return };
        let books = publishing.decimals.len();
        // The first message of each book finds room.
        let queue = Arc::new(Queue::new(script.messages_max.max(2 * books)));
        let sink: Arc<dyn Sink> = Arc::clone(&queue) as Arc<dyn Sink>;
        let kind = StreamKind::Books { depth: script.depth.map(|()| DEPTH), every: script.every };
        for instrument in 0..books {
            publishing.streams.subscribe(instrument as u32, kind, &sink, self.now);
        }
        let events = (0..books).map(|instrument| {
            let engine = publishing.engine_of(instrument);
            self.engines[engine].books().events(instrument - publishing.firsts[engine])
        });
        let is_even = self.now >= publishing.blocked_until && publishing.streams.counts().lost_by_feeds == 0;
        let before = is_even.then(|| events.collect());
        let books = (0..books).map(|_| ReaderBook::default()).collect();
        let blocked_until = Nanos(0);
        publishing.readers[number] = Some(Reader { script, queue, books, blocked_until, taken: 0, before });
        self.at(Nanos(self.now.0 + script.reads_every.0), Event::Read { reader: number });
    }

    /// A reader reads what it can at once.
    pub(super) fn read(&mut self, number: usize) {
        let script = self.script.readers[number];
        let Some(publishing) = &mut self.publishing else { return };
        let blocked_until = publishing.readers[number].as_ref().map_or(Nanos(0), |reader| reader.blocked_until);
        if self.now >= blocked_until {
            self.read_up_to(number, script.reads);
        }
        self.at(Nanos(self.now.0 + script.reads_every.0).max(blocked_until), Event::Read { reader: number });
    }

    fn read_up_to(&mut self, number: usize, most: usize) {
        let loses = self.planted == Some(Planted::LosesMessages);
        let (now, trace, tally) = (self.now, &mut self.trace, &mut self.tally);
        let Some(publishing) = &mut self.publishing else { return };
        let read = publishing.read(&self.engines, number, most, loses, |text| {
            tally.messages += 1;
            trace.note(now, 1 << 32 | number as u64, text.as_bytes());
        });
        if let Err(what) = read {
            self.fail(8, what);
        }
    }

    /// Lets every reader read everything, and looks whether anything is missing.
    pub(super) fn end_readers(&mut self) {
        if self.publishing.is_none() || self.failure.is_some() {
            return;
        }
        for _ in 0..ROUNDS {
            self.now = Nanos(self.now.0 + ROUND.0);
            self.block_publisher(Nanos(0));
            self.engines.iter_mut().for_each(Taped::send_owed);
            self.distribute();
            for number in 0..self.script.readers.len() {
                self.read_up_to(number, MESSAGES_PER_ROUND);
            }
        }
        let Some(publishing) = &self.publishing else { return };
        let counts = publishing.streams.counts();
        (self.tally.marks, self.tally.unread, self.tally.unsent) = (counts.gaps, counts.lost, counts.lost_by_feeds);
        if let Some(what) = publishing.rest(&self.engines) {
            self.fail(8, what);
        }
    }
}
