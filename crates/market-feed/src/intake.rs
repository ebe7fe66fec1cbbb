//! The one way into a feed's engine: each input is written down where a recording is wanted, goes in, and is followed
//! by the engine's requests. A replay takes the same way, so that it makes the same calls in the same order.

use std::collections::VecDeque;
use std::hash::Hasher as _;

use tt_journal::RecordSender;
use tt_journal::recording::RecordKind;
use tt_market::DropReason;
use tt_market::board::{Board, TopOfBook};
use tt_market::changes::{BookEvent, BookEventKind};
use tt_market::mark::Position;
use tt_market::{AddError, Applied, BookUpdate, ConnectionId, Difference, Engine, Incident, Proof, Request};
use tt_meter::Probe;
use tt_model::{Decimal, InstrumentId, Nanos};
use tt_venue::Venue;
use twox_hash::XxHash3_64;

use super::listener::FeedListener;
use super::record_format::{EngineRecord, InstrumentRecord, InstrumentSetup, PositionRecord, StepsRecord};
use super::updates::{AccountSender, UpdateSender};

/// Levels of one delta that are listed. The hashes of a recording depend on it.
const CHANGES_MAX: usize = 16_384;

/// What is hashed of a book at each of its updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hashed {
    Nothing,
    /// The ten best levels: recordings of before 23 November 2026.
    TopLevels,
    /// The ten best levels and every level that changes; all levels at a checkpoint.
    WholeBooks,
}

/// Connections whose numbers are known: what arrives late is of one of the last.
const CONNECTIONS_KEPT: usize = 16;

/// What two runs over the same inputs must agree in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StateHash {
    /// Of everything that is published.
    pub(super) state: u64,
    /// Of every book that was published, in turn.
    pub(super) books: u64,
    /// Inputs up to here.
    pub(super) inputs: u64,
}

impl StateHash {
    pub(super) fn to_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        for (eight, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip([self.state, self.books, self.inputs]) {
            *eight = word.to_le_bytes();
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [state, books, inputs] = <[[u8; 8]; 3]>::try_from(bytes.as_chunks::<8>().0).ok()?.map(u64::from_le_bytes);
        Some(Self { state, books, inputs })
    }
}

/// One engine with what goes in and what comes back.
#[derive(Debug)]
pub(super) struct Intake {
    engine: Engine,
    board: Board,
    sender: Option<RecordSender>,
    hashed: Hashed,
    updates: Option<UpdateSender>,
    account: Option<AccountSender>,
    listener: Option<FeedListener>,
    requests: VecDeque<Request>,
    connections: VecDeque<(u32, ConnectionId)>,
    opened: u32,
    books: u64,
    inputs: u64,
}

impl Intake {
    /// `record` describes `engine` to whoever replays the recording that `sender` goes into.
    pub(super) fn new(
        mut engine: Engine,
        mut sender: Option<RecordSender>,
        is_hashed: bool,
        record: &EngineRecord,
        now: Nanos,
    ) -> Self {
        if let Some(sender) = &mut sender {
            sender.record(now.0, RecordKind::Engine, 0, &record.to_bytes());
        }
        let hashed = match (is_hashed || sender.is_some(), record.whole_books) {
            (false, _) => Hashed::Nothing,
            (true, false) => Hashed::TopLevels,
            (true, true) => Hashed::WholeBooks,
        };
        if hashed == Hashed::WholeBooks {
            engine.follow_changes(CHANGES_MAX);
        }
        let board = engine.board();
        let (requests, connections) = (VecDeque::new(), VecDeque::new());
        Self {
            engine,
            board,
            sender,
            hashed,
            updates: None,
            account: None,
            listener: None,
            requests,
            connections,
            opened: 0,
            books: 0,
            inputs: 0,
        }
    }

    /// Publishes every update from here on.
    pub(super) fn publish_to(&mut self, updates: UpdateSender) {
        self.list_changes();
        self.updates = Some(updates);
    }

    /// Publishes every change of the account from here on.
    pub(super) fn publish_account_to(&mut self, mut account: AccountSender) {
        account.send_whole(&self.engine);
        self.account = Some(account);
    }

    /// Calls a function for every event from here on.
    pub(super) fn call(&mut self, listener: FeedListener) {
        self.list_changes();
        self.listener = Some(listener);
    }

    /// Has the engine list what inputs change, if it does not yet.
    fn list_changes(&mut self) {
        if self.hashed != Hashed::WholeBooks && self.updates.is_none() && self.listener.is_none() {
            self.engine.follow_changes(CHANGES_MAX);
        }
    }

    pub(super) const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Shows the engine's counters to other threads.
    pub(super) fn publish_counters(&mut self) {
        self.engine.publish_counters();
    }

    fn note(&mut self, now: Nanos, kind: RecordKind, subject: u32, body: &[u8]) {
        self.inputs += 1;
        if let Some(sender) = &mut self.sender {
            sender.record(now.0, kind, subject, body);
        }
    }

    pub(super) fn add_instrument(
        &mut self,
        setup: &InstrumentSetup,
        symbol: &str,
        name: &str,
        now: Nanos,
    ) -> Result<InstrumentId, AddError> {
        let added = setup.add_to(&mut self.engine)?;
        self.note(now, RecordKind::Instrument, added.0, &InstrumentRecord::new(setup, symbol, name).to_bytes());
        Ok(added)
    }

    /// Counts an instrument in finer steps from here on.
    pub(super) fn refine(
        &mut self,
        id: InstrumentId,
        tick_size: Decimal,
        lot_size: Decimal,
        now: Nanos,
    ) -> Result<(), AddError> {
        self.engine.refine(id, tick_size, lot_size)?;
        if let Some(updates) = &mut self.updates {
            updates.change_steps(id, tick_size, lot_size);
        }
        self.note(now, RecordKind::Refined, id.0, &StepsRecord::new(tick_size, lot_size).to_bytes());
        self.take_changes();
        Ok(())
    }

    /// The best levels of an instrument and their proof.
    pub(super) fn top_of_book(&self, id: InstrumentId) -> Option<TopOfBook> {
        self.board.top_of_book(id)
    }

    /// Whether the instrument's book is proved.
    pub(super) fn is_verified(&self, id: InstrumentId) -> bool {
        self.top_of_book(id).is_some_and(|top| top.status.proof.is_verified())
    }

    /// As [`is_verified`](Self::is_verified); a venue that proves nothing shows its books without.
    pub(super) fn is_restored(&self, id: InstrumentId) -> bool {
        let proves = self.engine.instrument(id).is_none_or(|spec| spec.venue.rules().is_provable());
        self.top_of_book(id)
            .is_some_and(|top| top.status.proof.is_verified() || (!proves && top.status.proof == Proof::Unverified))
    }

    pub(super) fn set_position(&mut self, slot: usize, position: Position, now: Nanos) -> Result<(), AddError> {
        self.engine.set_position(slot, Some(position))?;
        self.note(now, RecordKind::Position, slot as u32, &PositionRecord::new(&position).to_bytes());
        Ok(())
    }

    pub(super) fn open_connection(
        &mut self,
        venue: Venue,
        address: &str,
        now: Nanos,
    ) -> Result<ConnectionId, AddError> {
        let id = self.open_successor(venue, address, now)?;
        // What the connection before was asked for and did not come to.
        self.requests.clear();
        Ok(id)
    }

    /// Opens a connection while another one goes on.
    pub(super) fn open_successor(&mut self, venue: Venue, address: &str, now: Nanos) -> Result<ConnectionId, AddError> {
        let id = self.engine.open_connection(venue, now)?;
        self.opened += 1;
        self.note(now, RecordKind::Opened, self.opened, address.as_bytes());
        self.connections.push_front((self.opened, id));
        self.connections.truncate(CONNECTIONS_KEPT);
        Ok(id)
    }

    /// Lets a connection take an instrument's book over.
    pub(super) fn announce_successor(
        &mut self,
        connection: ConnectionId,
        instrument: InstrumentId,
        now: Nanos,
    ) -> Result<(), AddError> {
        self.note(now, RecordKind::Successor, self.number(connection), &instrument.0.to_le_bytes());
        let announced = self.engine.announce_successor(connection, instrument, now);
        self.poll(now);
        announced
    }

    /// The connection of a recorded number.
    pub(super) fn connection(&self, number: u32) -> Option<ConnectionId> {
        self.connections.iter().find(|known| known.0 == number).map(|known| known.1)
    }

    fn number(&self, connection: ConnectionId) -> u32 {
        self.connections.iter().find(|known| known.1 == connection).map_or(0, |known| known.0)
    }

    pub(super) fn subscribe(
        &mut self,
        connection: ConnectionId,
        instrument: InstrumentId,
        now: Nanos,
    ) -> Result<(), AddError> {
        self.note(now, RecordKind::Subscribed, self.number(connection), &instrument.0.to_le_bytes());
        let subscribed = self.engine.subscribe(connection, instrument, now);
        self.poll(now);
        subscribed
    }

    /// Ends an instrument's book.
    pub(super) fn unsubscribe(&mut self, instrument: InstrumentId, now: Nanos) -> Result<(), AddError> {
        self.note(now, RecordKind::Unsubscribed, instrument.0, &[]);
        let unsubscribed = self.engine.unsubscribe(instrument, now);
        self.poll(now);
        unsubscribed
    }

    pub(super) fn handle_frame(
        &mut self,
        now: Nanos,
        connection: ConnectionId,
        frame: &[u8],
        probe: &mut impl Probe,
    ) -> Result<Applied, DropReason> {
        // Before the engine: the frame that an engine dies of is the one that is wanted.
        self.note(now, RecordKind::Frame, self.number(connection), frame);
        let applied = self.engine.handle_frame(now, connection, frame, probe);
        if let Some(account) = &mut self.account {
            account.send(&self.engine);
        }
        self.follow(applied, now);
        applied
    }

    pub(super) fn handle_snapshot(
        &mut self,
        now: Nanos,
        instrument: InstrumentId,
        body: &[u8],
        probe: &mut impl Probe,
    ) -> Result<Applied, DropReason> {
        self.note(now, RecordKind::Snapshot, instrument.0, body);
        let applied = self.engine.handle_snapshot(now, instrument, body, probe);
        self.follow(applied, now);
        applied
    }

    pub(super) fn snapshot_failed(&mut self, instrument: InstrumentId, now: Nanos) {
        self.note(now, RecordKind::SnapshotFailed, instrument.0, &[]);
        self.engine.snapshot_failed(instrument, now);
        self.poll(now);
    }

    /// Holds an instrument's book against the next REST snapshot.
    pub(super) fn begin_comparison(&mut self, instrument: InstrumentId, now: Nanos) -> Result<(), AddError> {
        self.note(now, RecordKind::Comparison, instrument.0, &[]);
        self.engine.begin_comparison(instrument, now)
    }

    /// What was wrong with the last input.
    pub(super) const fn next_incident(&mut self) -> Option<Incident> {
        self.engine.poll_incident()
    }

    /// The level that cost the last book that a snapshot contradicted.
    pub(super) const fn next_difference(&mut self) -> Option<Difference> {
        self.engine.poll_difference()
    }

    pub(super) fn handle_timeout(&mut self, now: Nanos) {
        self.note(now, RecordKind::Timeout, 0, &[]);
        self.engine.handle_timeout(now);
        self.poll(now);
        if let Some(updates) = &mut self.updates {
            updates.send_owed(&self.engine, &self.board);
        }
    }

    pub(super) fn close_connection(&mut self, connection: ConnectionId, now: Nanos) {
        self.note(now, RecordKind::Closed, self.number(connection), &[]);
        self.engine.close_connection(connection, now);
        self.poll(now);
    }

    /// What the engine asks for, each once, in its order.
    pub(super) fn next_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    fn poll(&mut self, now: Nanos) {
        self.take_changes();
        while let Some(request) = self.engine.poll_request(now) {
            self.requests.push_back(request);
        }
    }

    #[inline]
    fn follow(&mut self, applied: Result<Applied, DropReason>, now: Nanos) {
        if self.hashed == Hashed::TopLevels
            && let Ok(Applied::Book { instrument: id, update: BookUpdate::Snapshot | BookUpdate::Delta }) = applied
        {
            let mut hasher = XxHash3_64::with_seed(self.books);
            self.board.hash_book_into(id, &mut hasher);
            self.books = hasher.finish();
        }
        self.poll(now);
    }

    /// Hashes and publishes what the last input changed.
    fn take_changes(&mut self) {
        let is_hashed = self.hashed == Hashed::WholeBooks;
        if !is_hashed && self.updates.is_none() && self.listener.is_none() {
            return;
        }
        while let Some(event) = self.engine.poll_book_event() {
            let (id, kind) = (event.instrument, event.kind);
            let mut hasher = XxHash3_64::with_seed(self.books);
            if is_hashed {
                hash_levels(&event, &mut hasher);
            }
            let head = self.updates.as_mut().map(|updates| updates.begin(&event));
            let heard = self.listener.as_mut().map(|listener| listener.hear(&event));
            if is_hashed && kind != BookEventKind::Status {
                if kind == BookEventKind::Snapshot {
                    self.engine.hash_levels_into(id, &mut hasher);
                }
                self.board.hash_book_into(id, &mut hasher);
                self.books = hasher.finish();
            }
            if let Some((updates, head)) = self.updates.as_mut().zip(head) {
                updates.finish(&self.engine, head);
            }
            if let Some((listener, heard)) = self.listener.as_ref().zip(heard) {
                listener.call_book(&self.engine, &heard);
            }
        }
        if self.updates.is_none() && self.listener.is_none() {
            return;
        }
        while let Some((id, print)) = self.engine.poll_trade() {
            if let Some(updates) = &mut self.updates {
                updates.send_trade(id, print);
            }
            if let Some(listener) = &self.listener {
                listener.call_trade(id, print);
            }
        }
        while let Some((id, liquidation)) = self.engine.poll_liquidation() {
            if let Some(updates) = &mut self.updates {
                updates.send_liquidation(id, liquidation);
            }
            if let Some(listener) = &self.listener {
                listener.call_liquidation(id, liquidation);
            }
        }
        if let Some(updates) = &mut self.updates {
            updates.wake();
        }
    }

    /// What has become of the inputs up to here.
    pub(super) fn state_hash(&self) -> StateHash {
        let mut hasher = XxHash3_64::with_seed(0);
        if self.hashed == Hashed::WholeBooks {
            self.engine.hash_into(&mut hasher);
        } else {
            self.board.hash_into(&mut hasher);
        }
        StateHash { state: hasher.finish(), books: self.books, inputs: self.inputs }
    }

    /// Writes down what has become of the inputs, where there is a recording.
    pub(super) fn checkpoint(&mut self, now: Nanos) {
        self.write_hash(RecordKind::Checkpoint, now);
    }

    /// As [`checkpoint`](Self::checkpoint); nothing comes after.
    pub(super) fn end(&mut self, now: Nanos) {
        self.write_hash(RecordKind::End, now);
        self.sender = None;
    }

    fn write_hash(&mut self, kind: RecordKind, now: Nanos) {
        let Some(mut sender) = self.sender.take() else { return };
        sender.record(now.0, kind, 0, &self.state_hash().to_bytes());
        self.sender = Some(sender);
    }

    /// Hands what is written down to the recorder.
    #[inline]
    pub(super) fn flush(&mut self) {
        if let Some(sender) = &mut self.sender {
            sender.flush();
        }
    }
}

fn hash_levels(event: &BookEvent<'_>, hasher: &mut XxHash3_64) {
    for change in event.changes {
        for word in [change.side as u64, change.px.0 as u64, change.old_qty.0 as u64, change.new_qty.0 as u64] {
            hasher.write(&word.to_le_bytes());
        }
    }
}
