//! A recording's inputs through engines of the same making: what becomes of them is compared with what became of them
//! then.

use anyhow::{Context as _, Result, ensure};
use std::hash::Hasher as _;
use tt_journal::Entry;
use tt_journal::recording::RecordKind;
use tt_market::Engine;
use tt_market::board::TopOfBook;
use tt_market::counters::VenueCounters;
use tt_meter::Off;
use tt_model::{Decimal, InstrumentId, Nanos, sort_short_by_key};
use tt_venue::Venue;
use twox_hash::XxHash3_64;

use super::intake::{Intake, StateHash};
use super::listener::{FeedListener, Listener};
use super::record_format::{EngineRecord, InstrumentRecord, PositionRecord, parse_steps};

/// One engine's part of a recording: from its making to its end, or to the end of the file.
#[derive(Clone, Debug)]
pub struct Run {
    /// How often the feed had begun before: a recording may have been gone on with.
    pub earlier: usize,
    /// The feed's number.
    pub feed: u16,
    /// The venue.
    pub venue: Venue,
    /// What goes into the engine: frames, snapshots, timers, connections.
    pub inputs: u64,
    /// WebSocket frames among them.
    pub frames: u64,
    /// Hashes that were recorded with them.
    pub checkpoints: u64,
    /// Those that the replay has not come to.
    pub differing: u64,
    /// The number of the first record with one of those.
    pub first_differing: Option<u64>,
    /// Inputs that were not recorded because the recorder's queue was full.
    pub lost: u64,
    /// Whether the recording goes to the feed's end.
    pub has_ended: bool,
    /// Hash of everything that is published at the end.
    pub state_hash: u64,
    /// Hash of every book that was published, in turn.
    pub books_hash: u64,
    /// The engine's counters at the end.
    pub counters: VenueCounters,
}

impl Run {
    /// Whether everything that could be compared is the same.
    #[must_use]
    pub const fn is_same(&self) -> bool {
        self.differing == 0 && self.lost == 0
    }
}

/// An instrument of a feed that is replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayedInstrument {
    /// The feed's number.
    pub feed: u16,
    /// The instrument's number in the feed.
    pub id: InstrumentId,
    /// The venue.
    pub venue: Venue,
    /// The venue's symbol.
    pub symbol: String,
    /// The normalised symbol.
    pub name: String,
    /// The price step.
    pub tick_size: Decimal,
}

/// Returns the listener of a feed.
type ListenerOf = Box<dyn Fn(u16) -> Listener + Send>;

struct Feed {
    run: Run,
    intake: Intake,
}

/// Replays records in their order.
#[derive(Default)]
pub struct Replay {
    feeds: Vec<Feed>,
    instruments: Vec<ReplayedInstrument>,
    /// Whether hashes are neither made nor compared.
    is_unchecked: bool,
    listener_of: Option<ListenerOf>,
    /// Runs after which the same feed began again.
    done: Vec<Run>,
    records: u64,
}

impl Replay {
    /// Creates a replay that does not compare states: it does the work of the live feed only.
    #[must_use]
    pub fn unchecked() -> Self {
        Self { is_unchecked: true, ..Self::default() }
    }

    /// Creates a replay that calls the listener of each feed for every event, as the live feed did. Its instruments have
    /// their numbers in the feed.
    #[must_use]
    pub fn with_listeners(listener_of: impl Fn(u16) -> Listener + Send + 'static) -> Self {
        Self { listener_of: Some(Box::new(listener_of)), ..Self::default() }
    }

    /// Returns the instruments so far. Steps may become finer.
    #[must_use]
    pub fn instruments(&self) -> &[ReplayedInstrument] {
        &self.instruments
    }

    /// Returns the best levels of an instrument and their proof.
    #[must_use]
    pub fn top_of_book(&self, feed: u16, id: InstrumentId) -> Option<TopOfBook> {
        self.feeds.iter().find(|of| of.run.feed == feed)?.intake.top_of_book(id)
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// It does not follow from the ones before: the recording was not made by this program, or was edited.
    pub fn take(&mut self, entry: &Entry<'_>) -> Result<()> {
        self.records += 1;
        let number = self.records;
        if self.is_unchecked && matches!(entry.head.kind, RecordKind::Checkpoint | RecordKind::End) {
            return Ok(());
        }
        self.follow(entry).and_then(|()| self.list(entry)).with_context(|| format!("record {number}"))
    }

    /// Follows the list of instruments.
    fn list(&mut self, entry: &Entry<'_>) -> Result<()> {
        let (feed, id) = (entry.head.feed, InstrumentId(entry.head.subject));
        if entry.head.kind == RecordKind::Instrument {
            let record = InstrumentRecord::of(entry.body)?;
            let spec = record.setup()?.spec;
            let (venue, tick_size) = (spec.venue, spec.tick_size);
            let InstrumentRecord { symbol, name, .. } = record;
            self.instruments.push(ReplayedInstrument { feed, id, venue, symbol, name, tick_size });
        } else if entry.head.kind == RecordKind::Refined {
            let (tick_size, _) = parse_steps(entry.body)?;
            let is_it = |of: &&mut ReplayedInstrument| (of.feed, of.id) == (feed, id);
            self.instruments.iter_mut().filter(is_it).for_each(|of| of.tick_size = tick_size);
        }
        Ok(())
    }

    fn follow(&mut self, entry: &Entry<'_>) -> Result<()> {
        let (head, now) = (entry.head, Nanos(entry.head.ts_ns));
        if head.kind == RecordKind::Engine {
            return self.begin(head.feed, entry.body, now);
        }
        let number = self.records;
        let feed = self.feeds.iter_mut().find(|feed| feed.run.feed == head.feed).context("a feed that never began")?;
        let intake = &mut feed.intake;
        let connection = || intake.connection(head.subject).context("a connection that was never opened");
        // The engine may reject an input, then as now; the hashes show whether the result is the same.
        match head.kind {
            RecordKind::Instrument => {
                let record = InstrumentRecord::of(entry.body)?;
                let added = intake.add_instrument(&record.setup()?, &record.symbol, &record.name, now);
                ensure!(added == Ok(InstrumentId(head.subject)), "instrument {}: {added:?}", head.subject);
            }
            RecordKind::Refined => {
                let (tick_size, lot_size) = parse_steps(entry.body)?;
                let refined = intake.refine(InstrumentId(head.subject), tick_size, lot_size, now);
                ensure!(refined.is_ok(), "steps of instrument {}: {refined:?}", head.subject);
            }
            RecordKind::Position => {
                let position = PositionRecord::of(entry.body)?.position()?;
                let set = intake.set_position(head.subject as usize, position, now);
                ensure!(set.is_ok(), "position {}: {set:?}", head.subject);
            }
            RecordKind::Opened => {
                let opened = intake.open_connection(feed.run.venue, "", now);
                ensure!(opened.is_ok(), "connection {}: {opened:?}", head.subject);
            }
            RecordKind::Subscribed => {
                let connection = connection()?;
                let id = <[u8; 4]>::try_from(entry.body).context("an instrument's number")?;
                let _ = intake.subscribe(connection, InstrumentId(u32::from_le_bytes(id)), now);
            }
            RecordKind::Successor => {
                let connection = connection()?;
                let id = <[u8; 4]>::try_from(entry.body).context("an instrument's number")?;
                let _ = intake.announce_successor(connection, InstrumentId(u32::from_le_bytes(id)), now);
            }
            RecordKind::Frame => {
                let connection = connection()?;
                feed.run.frames += 1;
                let _ = intake.handle_frame(now, connection, entry.body, &mut Off);
            }
            RecordKind::Snapshot => drop(intake.handle_snapshot(now, InstrumentId(head.subject), entry.body, &mut Off)),
            RecordKind::SnapshotFailed => intake.snapshot_failed(InstrumentId(head.subject), now),
            RecordKind::Unsubscribed => drop(intake.unsubscribe(InstrumentId(head.subject), now)),
            RecordKind::Comparison => drop(intake.begin_comparison(InstrumentId(head.subject), now)),
            RecordKind::Timeout => intake.handle_timeout(now),
            RecordKind::Closed => {
                let connection = connection()?;
                intake.close_connection(connection, now);
            }
            RecordKind::Checkpoint | RecordKind::End => {
                feed.run.has_ended = head.kind == RecordKind::End;
                feed.run.checkpoints += 1;
                let then = StateHash::from_bytes(entry.body).context("a hash")?;
                if feed.intake.state_hash() != then {
                    feed.run.differing += 1;
                    feed.run.first_differing = feed.run.first_differing.or(Some(number));
                }
            }
            RecordKind::Lost => {
                let count = entry.body.first_chunk().context("a count")?;
                feed.run.lost += u64::from_le_bytes(*count);
            }
            RecordKind::Engine => {}
        }
        // Requests went to the venue then; its answers are records.
        while feed.intake.next_request().is_some() {}
        Ok(())
    }

    /// A feed begins, maybe for another time: a recording may be gone on with.
    fn begin(&mut self, feed: u16, body: &[u8], now: Nanos) -> Result<()> {
        let record = EngineRecord::of(body)?;
        let venue = record.venue()?;
        if let Some(at) = self.feeds.iter().position(|known| known.run.feed == feed) {
            self.done.push(self.feeds.remove(at).concluded());
            self.instruments.retain(|of| of.feed != feed);
        }
        let mut intake = Intake::new(Engine::new(record.capacity()), None, !self.is_unchecked, &record, now);
        if let Some(listener_of) = &self.listener_of {
            intake.call(FeedListener::new(listener_of(feed), 0, Vec::new()));
        }
        let run = Run {
            earlier: self.done.iter().filter(|run| run.feed == feed).count(),
            feed,
            venue,
            inputs: 0,
            frames: 0,
            checkpoints: 0,
            differing: 0,
            first_differing: None,
            lost: 0,
            has_ended: false,
            state_hash: 0,
            books_hash: 0,
            counters: VenueCounters::default(),
        };
        self.feeds.push(Feed { run, intake });
        Ok(())
    }

    /// What became of each engine, the first run of every feed before the second ones.
    #[must_use]
    pub fn finish(mut self) -> Vec<Run> {
        self.done.extend(self.feeds.into_iter().map(Feed::concluded));
        sort_short_by_key(&mut self.done, |run| (run.earlier, run.feed));
        self.done
    }
}

impl Feed {
    fn concluded(self) -> Run {
        let StateHash { state, books, inputs } = self.intake.state_hash();
        let counters = *self.intake.engine().counters().venue(self.run.venue);
        Run { inputs, state_hash: state, books_hash: books, counters, ..self.run }
    }
}

/// One hash of all runs.
#[must_use]
pub fn hash_runs(runs: &[Run]) -> u64 {
    let mut hasher = XxHash3_64::with_seed(0);
    for run in runs {
        for word in [u64::from(run.feed), run.inputs, run.state_hash, run.books_hash] {
            hasher.write(&word.to_le_bytes());
        }
    }
    hasher.finish()
}
