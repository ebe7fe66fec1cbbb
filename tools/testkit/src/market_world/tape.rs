//! The engine with a tape of everything that went into it, so that it can be played once more.

use std::hash::{DefaultHasher, Hasher as _};

use market_feed::offline::OfflineFeed;
use tt_market::DropReason;
use tt_market::board::Board;
use tt_market::counters::{Counters, VenueCounters};
use tt_market::{Applied, ConnectionId, Engine, InstrumentSpec, Request};
use tt_meter::Off;
use tt_model::{InstrumentId, Nanos};
use tt_venue::Venue;

use super::books::Books;
use super::client::engine;
use super::planted::Planted;

/// Inputs between two hashes of everything that is published.
const INPUTS_PER_HASH: usize = 256;
/// Levels of one update that are listed, as market-feed lists them.
const CHANGES_MAX: usize = 16_384;
/// A planted fault leaves out each so many-th frame.
const LOST_EVERY: usize = 64;

/// One call of the engine.
#[derive(Clone, Debug)]
enum Input {
    Open(Venue),
    Subscribe(ConnectionId, InstrumentId),
    Announce(ConnectionId, InstrumentId),
    Unsubscribe(InstrumentId),
    Close(ConnectionId),
    Frame(ConnectionId, Vec<u8>),
    Snapshot(InstrumentId, Vec<u8>),
    SnapshotFailed(InstrumentId),
    Timeout,
    Poll,
}

/// Inputs, and the states published between them.
#[derive(Debug, Default)]
struct Tape {
    inputs: Vec<(Nanos, Input)>,
    hashes: Vec<u64>,
    loses: bool,
}

/// The engine of a world.
pub(super) struct Taped {
    engine: Engine,
    board: Board,
    specs: Vec<InstrumentSpec>,
    tape: Option<Tape>,
    feed: Option<OfflineFeed>,
    books: Books,
}

fn hash(board: &Board) -> u64 {
    let mut hasher = DefaultHasher::new();
    board.hash_into(&mut hasher);
    hasher.finish()
}

impl Taped {
    pub(super) fn new(is_kept: bool, planted: Option<Planted>) -> Self {
        let engine = engine();
        let tape = Tape { loses: planted == Some(Planted::LosesInput), ..Tape::default() };
        let (tape, books) = (is_kept.then_some(tape), Books::new(0));
        Self { board: engine.board(), engine, specs: Vec::new(), tape, feed: None, books }
    }

    /// Sends every update from here on to what `feed` makes for so many instruments.
    pub(super) fn publish_to(&mut self, feed: impl FnOnce(usize) -> OfflineFeed) {
        self.engine.follow_changes(CHANGES_MAX);
        self.feed = Some(feed(self.specs.len()));
        self.books = Books::new(self.specs.len());
    }

    /// The states of the books at each event that was sent.
    pub(super) const fn books(&self) -> &Books {
        &self.books
    }

    /// Where the changes that the engine listed did not lead to its levels.
    pub(super) fn take_wrong(&mut self) -> Option<String> {
        self.books.take_wrong()
    }

    fn publish(&mut self) {
        if let Some(feed) = &mut self.feed {
            self.books.publish(&mut self.engine, feed);
        }
    }

    /// Sends the books that found no room.
    pub(super) fn send_owed(&mut self) {
        if let Some(feed) = &mut self.feed {
            feed.send_owed(&self.engine, &self.board);
        }
    }

    pub(super) const fn board(&self) -> &Board {
        &self.board
    }

    pub(super) fn counters(&self, venue: Venue) -> &VenueCounters {
        let counters: &Counters = self.engine.counters();
        counters.venue(venue)
    }

    pub(super) fn add_instrument(&mut self, spec: InstrumentSpec) -> InstrumentId {
        self.specs.push(spec);
        self.engine.add_instrument(spec).expect("the capacity is for a world")
    }

    fn keep(&mut self, now: Nanos, input: impl FnOnce() -> Input) {
        let Some(tape) = &mut self.tape else { return };
        if tape.hashes.len() * INPUTS_PER_HASH <= tape.inputs.len() {
            tape.hashes.push(hash(&self.board));
        }
        let input = input();
        if !(tape.loses && matches!(input, Input::Frame(..)) && tape.inputs.len().is_multiple_of(LOST_EVERY)) {
            tape.inputs.push((now, input));
        }
    }

    pub(super) fn open_connection(&mut self, venue: Venue, now: Nanos) -> ConnectionId {
        self.keep(now, || Input::Open(venue));
        let opened = self.engine.open_connection(venue, now).expect("the capacity is for a world");
        self.publish();
        opened
    }

    pub(super) fn subscribe(&mut self, connection: ConnectionId, id: InstrumentId, now: Nanos) {
        self.keep(now, || Input::Subscribe(connection, id));
        self.engine.subscribe(connection, id, now).expect("its own instrument on an open connection");
        self.publish();
    }

    pub(super) fn announce_successor(&mut self, connection: ConnectionId, id: InstrumentId, now: Nanos) {
        self.keep(now, || Input::Announce(connection, id));
        self.engine.announce_successor(connection, id, now).expect("its own instrument on an open connection");
        self.publish();
    }

    pub(super) fn awaits_successor(&self, id: InstrumentId) -> bool {
        self.engine.awaits_successor(id)
    }

    pub(super) fn unsubscribe(&mut self, id: InstrumentId, now: Nanos) {
        self.keep(now, || Input::Unsubscribe(id));
        self.engine.unsubscribe(id, now).expect("its own instrument");
        self.publish();
    }

    pub(super) fn close_connection(&mut self, connection: ConnectionId, now: Nanos) {
        self.keep(now, || Input::Close(connection));
        self.engine.close_connection(connection, now);
        self.publish();
    }

    pub(super) fn handle_frame(
        &mut self,
        now: Nanos,
        connection: ConnectionId,
        frame: &[u8],
    ) -> Result<Applied, DropReason> {
        self.keep(now, || Input::Frame(connection, frame.to_vec()));
        let result = self.engine.handle_frame(now, connection, frame, &mut Off);
        self.publish();
        result
    }

    pub(super) fn handle_snapshot(&mut self, now: Nanos, id: InstrumentId, body: &[u8]) -> Result<Applied, DropReason> {
        self.keep(now, || Input::Snapshot(id, body.to_vec()));
        let result = self.engine.handle_snapshot(now, id, body, &mut Off);
        self.publish();
        result
    }

    pub(super) fn snapshot_failed(&mut self, id: InstrumentId, now: Nanos) {
        self.keep(now, || Input::SnapshotFailed(id));
        self.engine.snapshot_failed(id, now);
        self.publish();
    }

    pub(super) fn handle_timeout(&mut self, now: Nanos) {
        self.keep(now, || Input::Timeout);
        self.engine.handle_timeout(now);
        self.publish();
        self.send_owed();
    }

    pub(super) fn poll_request(&mut self, now: Nanos) -> Option<Request> {
        self.keep(now, || Input::Poll);
        self.engine.poll_request(now)
    }

    /// Plays the tape to an engine that has seen nothing; what is published otherwise than the first time.
    pub(super) fn differs_again(&self) -> Option<String> {
        let tape = self.tape.as_ref()?;
        let mut again = Self::new(false, None);
        for spec in &self.specs {
            again.add_instrument(*spec);
        }
        for (number, (now, input)) in tape.inputs.iter().enumerate() {
            if number.is_multiple_of(INPUTS_PER_HASH)
                && tape.hashes.get(number / INPUTS_PER_HASH) != Some(&hash(&again.board))
            {
                return Some(format!("played again, another state before input {number} of {}", tape.inputs.len()));
            }
            again.play(*now, input);
        }
        (hash(&self.board) != hash(&again.board)).then(|| "played again, another state in the end".to_owned())
    }

    fn play(&mut self, now: Nanos, input: &Input) {
        // What comes of it shows in what is published.
        match input {
            Input::Open(venue) => drop(self.open_connection(*venue, now)),
            Input::Subscribe(connection, id) => self.subscribe(*connection, *id, now),
            Input::Announce(connection, id) => self.announce_successor(*connection, *id, now),
            Input::Unsubscribe(id) => self.unsubscribe(*id, now),
            Input::Close(connection) => self.close_connection(*connection, now),
            Input::Frame(connection, frame) => drop(self.handle_frame(now, *connection, frame)),
            Input::Snapshot(id, body) => drop(self.handle_snapshot(now, *id, body)),
            Input::SnapshotFailed(id) => self.snapshot_failed(*id, now),
            Input::Timeout => self.handle_timeout(now),
            Input::Poll => drop(self.poll_request(now)),
        }
    }
}
