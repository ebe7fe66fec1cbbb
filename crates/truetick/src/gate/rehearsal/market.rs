//! A recorded market in front of the gate: each change of a book is a mark.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use market_feed::{Replay, ReplayedInstrument};
use risk_gate::{Input, LimitsFile, Quote};
use tt_journal::recording::{RecordHead, RecordKind};
use tt_journal::{Entry, RecordingReader};
use tt_market::Proof;
use tt_market::board::TopOfBook;
use tt_model::{Decimal, InstrumentId};
use tt_venue::Venue;

use super::Times;
use crate::risk::Run;

/// Up to where a recording is performed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    /// The record with this number, from 1.
    Record(u64),
    /// The last record that is not later, milliseconds of the Unix epoch.
    Ms(u64),
}

/// A record that has changed a book, and the book after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The record's number, from 1.
    pub(super) record: u64,
    /// What it is.
    pub(super) kind: &'static str,
    /// When it was received.
    pub(super) at_ns: u64,
    /// The venue's number of the update.
    pub(super) update_id: u64,
    /// The book's proof.
    pub(super) proof: Proof,
}

/// A book that the gate is marked by.
pub(super) struct Book {
    /// The gate's instrument.
    instrument: InstrumentId,
    feed: u16,
    local: InstrumentId,
    pub(super) venue: Venue,
    pub(super) symbol: String,
    tick_size: Decimal,
    /// Price steps of the limits in one of the market.
    px_factor: i64,
    top: TopOfBook,
    /// The record that has changed it last.
    pub(super) last: Place,
    /// The record that has ended its proof; `None` while it is proved, and before it ever was.
    pub(super) unproved: Option<Place>,
    /// Cycles from the last record to the visible book, and for its mark in the gate.
    pub(super) frame_cycles: u64,
    pub(super) mark_cycles: u64,
}

/// A recording, and the books of the gate's instruments.
pub(super) struct Market {
    reader: RecordingReader<BufReader<File>>,
    /// A record that is later than the last event.
    pending: Option<(RecordHead, Vec<u8>)>,
    replay: Replay,
    books: Vec<Book>,
    records: u64,
    now_ns: u64,
}

impl Market {
    /// # Errors
    /// The file cannot be read, or is no recording.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let shown = || path.display().to_string();
        let file = File::open(path).with_context(shown)?;
        let reader = RecordingReader::new(BufReader::with_capacity(1 << 18, file)).with_context(shown)?;
        let (replay, books) = (Replay::unchecked(), Vec::new());
        Ok(Self { reader, pending: None, replay, books, records: 0, now_ns: 0 })
    }

    /// Returns the gate's time.
    pub(super) const fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Returns the book of an instrument of the gate.
    pub(super) fn book(&self, instrument: InstrumentId) -> Option<&Book> {
        self.books.iter().find(|book| book.instrument == instrument)
    }

    /// Performs records up to an event, and sets the gate's marks.
    ///
    /// # Errors
    /// The recording is broken, has fewer records, or cannot be counted in the units of the limits.
    pub(super) fn advance(&mut self, until: Until, run: &mut Run, times: &mut Times) -> Result<()> {
        loop {
            if matches!(until, Until::Record(record) if record <= self.records) {
                return Ok(());
            }
            let pending = match self.pending.take() {
                Some(pending) => Some(pending),
                None => self.reader.read()?.map(|entry| (entry.head, entry.body.to_vec())),
            };
            match (pending, until) {
                (Some((head, body)), Until::Ms(ms)) if head.ts_ns > ms.saturating_mul(1_000_000) => {
                    self.pending = Some((head, body));
                    self.now_ns = self.now_ns.max(ms.saturating_mul(1_000_000));
                    return Ok(());
                }
                (Some((head, body)), _) => self.take(&Entry { head, body: &body }, run, times)?,
                (None, Until::Record(record)) => bail!("the recording has {} records, not {record}", self.records),
                (None, Until::Ms(ms)) => {
                    self.now_ns = self.now_ns.max(ms.saturating_mul(1_000_000));
                    return Ok(());
                }
            }
        }
    }

    fn take(&mut self, entry: &Entry<'_>, run: &mut Run, times: &mut Times) -> Result<()> {
        let clock = tt_os::clock::clock();
        self.records += 1;
        self.now_ns = self.now_ns.max(entry.head.ts_ns);
        let begin = clock.start();
        self.replay.take(entry)?;
        let frame_cycles = clock.end().since(begin);
        if matches!(entry.head.kind, RecordKind::Engine | RecordKind::Instrument | RecordKind::Refined) {
            self.bind(&run.limits)?;
        }
        if entry.head.kind == RecordKind::Frame {
            times.frame.record(frame_cycles);
        }
        let (record, at_ns, kind) = (self.records, self.now_ns, kind_name(entry.head.kind));
        for book in self.books.iter_mut().filter(|book| book.feed == entry.head.feed) {
            let top = self.replay.top_of_book(book.feed, book.local).unwrap_or_default();
            if top == book.top {
                continue;
            }
            let place = Place { record, kind, at_ns, update_id: top.update_id, proof: top.status.proof };
            book.change(top, place);
            book.frame_cycles = frame_cycles;
            let begin = clock.start();
            run.gate.set_reference(at_ns, book.instrument, &book.quote().mark())?;
            book.mark_cycles = clock.end().since(begin);
            times.mark.record(book.mark_cycles);
        }
        Ok(())
    }

    /// Finds the instruments of the limits in the recording.
    fn bind(&mut self, limits: &LimitsFile) -> Result<()> {
        for (id, symbol) in (0..).map(InstrumentId).zip(limits.symbols()) {
            let is_it =
                |of: &&ReplayedInstrument| of.name == symbol || format!("{}:{}", of.venue.name(), of.name) == symbol;
            let mut found = self.replay.instruments().iter().filter(is_it);
            let (Some(listed), other) = (found.next(), found.next()) else { continue };
            if let Some(other) = other {
                let (one, two) = (listed.venue.name(), other.venue.name());
                bail!("{one} and {two} have `{symbol}`: name one in the limits file, `{one}:{symbol}`");
            }
            let steps = limits.instrument(id).and_then(|of| of.px_steps_of(listed.tick_size));
            let px_factor = steps.with_context(|| {
                format!("{symbol}: the recording's price step {} is no multiple of the limits' unit", listed.tick_size)
            })?;
            let (feed, local) = (listed.feed, listed.id);
            let known = |book: &Book| (book.feed, book.local, book.tick_size) == (feed, local, listed.tick_size);
            if self.books.iter().any(|book| book.instrument == id && known(book)) {
                continue;
            }
            self.books.retain(|book| book.instrument != id);
            let (top, proof) = (TopOfBook::default(), Proof::Syncing);
            let last = Place { record: self.records, kind: "instrument", at_ns: self.now_ns, update_id: 0, proof };
            self.books.push(Book {
                instrument: id,
                feed,
                local,
                venue: listed.venue,
                symbol: listed.name.clone(),
                tick_size: listed.tick_size,
                px_factor,
                top,
                last,
                unproved: None,
                frame_cycles: 0,
                mark_cycles: 0,
            });
        }
        Ok(())
    }

    /// Sets the rates of currencies that a proved book prices in the currency of limits.
    pub(super) fn convert(&self, run: &mut Run) {
        for book in &self.books {
            if let Some((currency, conversion)) = run.limits.rate_of(book.instrument, &book.quote().mark()) {
                run.gate.perform(self.now_ns, &Input::Conversion(currency, conversion));
            }
        }
    }
}

impl Book {
    fn change(&mut self, top: TopOfBook, place: Place) {
        let (was_proved, is_proved) = (self.last.proof.is_verified(), place.proof.is_verified());
        if is_proved {
            self.unproved = None;
        } else if was_proved {
            self.unproved = Some(place);
        }
        (self.top, self.last) = (top, place);
    }

    /// Returns the book's best levels in the units of the limits.
    fn quote(&self) -> Quote {
        let px = |level: Option<tt_venue::BookLevel>| {
            level.map_or(0, |level| level.px.0.checked_mul(self.px_factor).unwrap_or(0))
        };
        Quote {
            bid_px: px(self.top.bid),
            ask_px: px(self.top.ask),
            ts_recv: self.top.ts_recv,
            is_verified: self.top.status.proof.is_verified(),
            proof_ts: self.top.status.proof_ts(self.top.ts_recv),
            update_id: self.top.update_id,
        }
    }
}

/// Returns what a record that changes a book is.
fn kind_name(kind: RecordKind) -> &'static str {
    let names = [
        (RecordKind::Frame, "frame"),
        (RecordKind::Snapshot, "snapshot"),
        (RecordKind::Timeout, "timer"),
        (RecordKind::Opened, "connection opened"),
        (RecordKind::Closed, "connection closed"),
        (RecordKind::Refined, "finer steps"),
    ];
    names.iter().find(|(of, _)| *of == kind).map_or("record", |(_, name)| name)
}
