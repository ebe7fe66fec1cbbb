//! The engine: frames in, published state out.

mod account;
mod budget;
mod by_order;
mod changes;
mod comparison;
mod frames;
mod freshness;
mod incident;
mod prices;
mod refine;
mod requests;
mod successor;
mod sync;
mod venue_state;
mod verify;

use self::budget::Budget;
use self::by_order::Changed;
use self::comparison::Comparison;
pub use self::comparison::Difference;
pub use self::incident::{Incident, IncidentCause};
use crate::backlog::Backlog;
use crate::board::{self, Board, BoardWriter};
use crate::book::PageSlab;
use crate::changes::Changes;
use crate::connection::Connections;
use crate::counters::Counters;
use crate::drop_reason::DropReason;
use crate::fills::Fills;
use crate::instrument::Instrument;
use crate::l3_book::L3Books;
use crate::listing::Listings;
use crate::mark::Position;
use crate::mark::PositionOrigin;
use crate::orders::OrderState;
use crate::orders::Orders;
use crate::positions::Positions;
use crate::quote::Quote;
use crate::symbol_table::SymbolTable;
use crate::{Capacity, ConnectionId, InstrumentSpec};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::error::Error;
use core::fmt;
use tt_model::{InstrumentId, Nanos};
use tt_venue::Venue;
use tt_venue::event::{Balance, EventBuffer, OrderId, UnderlyingHours};
use tt_venue::listing::{ContractUnit, InstrumentStatus};
use tt_venue::rules::JoinRule;

/// What a frame changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// An instrument's book and its proof.
    Book {
        /// The instrument.
        instrument: InstrumentId,
        /// The kind of the update.
        update: BookUpdate,
    },
    /// The instrument's ticker.
    Ticker(InstrumentId),
    /// Trades and candles.
    Trades,
    /// The instrument's mark price, and the value of its positions.
    MarkPrice(InstrumentId),
    /// Candles of the venue's own; they stand in [`Engine::last_entries`].
    Candles,
    /// Liquidations; they stand in [`Engine::last_entries`].
    Liquidations,
    /// Own orders.
    Orders,
    /// Own executions, balances, positions, and orders among them.
    Account,
    /// Only the time of the connection's last sign of life.
    Control,
    /// Nothing yet: the venue says whether an instrument is traded, and whether to follow it is the caller's to decide.
    Status {
        /// The instrument.
        instrument: InstrumentId,
        /// Its status from here on.
        status: InstrumentStatus,
    },
    /// Nothing yet: the venue's list of instruments is worth another request.
    ListChanged,
    /// Nothing: a market that contracts of the venue follow has this session now.
    Session(UnderlyingHours),
}

impl Applied {
    /// Returns the instrument, if the frame is of a single one.
    #[must_use]
    pub const fn instrument(self) -> Option<InstrumentId> {
        match self {
            Self::Book { instrument: id, .. }
            | Self::Status { instrument: id, .. }
            | Self::Ticker(id)
            | Self::MarkPrice(id) => Some(id),
            Self::Trades
            | Self::Candles
            | Self::Liquidations
            | Self::Orders
            | Self::Account
            | Self::Control
            | Self::ListChanged
            | Self::Session(_) => None,
        }
    }
}

/// The kind of an update of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookUpdate {
    /// All levels were replaced.
    Snapshot,
    /// Levels were changed.
    Delta,
    /// The delta is buffered until the instrument's snapshot arrives, or a snapshot until the book has reached it; the
    /// book is unchanged.
    Buffered,
    /// A REST snapshot agrees with the levels of the book ([`Engine::begin_comparison`]).
    Compared,
}

/// What the caller is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Fetch the instrument's REST snapshot, then call `handle_snapshot` or `snapshot_failed`.
    FetchSnapshot {
        /// The instrument.
        instrument: InstrumentId,
    },
    /// Unsubscribe and subscribe the instrument's book, so that the venue sends a snapshot on the socket.
    Resubscribe {
        /// The instrument.
        instrument: InstrumentId,
        /// On which connection.
        connection: ConnectionId,
    },
    /// The venue asks for a sign of life: send its rules' [`KeepAlive::pong`](tt_venue::rules::KeepAlive::pong).
    Pong {
        /// On which connection.
        connection: ConnectionId,
    },
    /// The venue ends the connection soon: open another one, and hand its books over
    /// ([`Engine::announce_successor`]).
    Replace {
        /// The connection that ends.
        connection: ConnectionId,
    },
    /// The connection has been silent for too long: close it and open another.
    Reconnect {
        /// The silent connection.
        connection: ConnectionId,
    },
}

/// The error of adding something to an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddError {
    /// The capacity is used up.
    Full,
    /// The venue's symbol is there already.
    SymbolTaken,
    /// A size is not positive, or the depth is below the levels that the venue's checksum covers.
    BadSize,
    /// No such instrument, or it belongs to another venue than the connection.
    BadInstrument,
    /// The connection is not open.
    Closed,
}

impl fmt::Display for AddError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "the engine's capacity is used up",
            Self::SymbolTaken => "the symbol exists already",
            Self::BadSize => "a size is not positive, or the depth is below the levels of the venue's checksum",
            Self::BadInstrument => "no such instrument at this venue",
            Self::Closed => "the connection is not open",
        })
    }
}

impl Error for AddError {}

/// Above this many instruments, little of what an update needs is in the nearest cache, and it is prefetched.
const NEAR_MAX: usize = 16;

/// All market state of one thread.
#[derive(Debug)]
pub struct Engine {
    capacity: Capacity,
    timeframes: usize,
    buffer: EventBuffer,
    connections: Connections,
    symbols: SymbolTable,
    /// Whether there are more than [`NEAR_MAX`] instruments.
    are_far: bool,
    instruments: Vec<Instrument>,
    /// One for each instrument.
    quotes: Vec<Quote>,
    slab: PageSlab,
    /// Orders of the books that are followed order by order.
    l3_books: L3Books,
    changed: Changed,
    backlogs: Vec<Backlog>,
    free_backlogs: Vec<usize>,
    requests: VecDeque<InstrumentId>,
    reconnects: VecDeque<ConnectionId>,
    /// What each venue still allows.
    budgets: [Budget; Venue::COUNT],
    pongs: VecDeque<ConnectionId>,
    /// Connections that end soon.
    endings: VecDeque<ConnectionId>,
    orders: Orders,
    fills: Fills,
    positions: Positions,
    /// Where each slot's position comes from.
    position_origins: Vec<PositionOrigin>,
    position_listings: Listings,
    balances: Vec<(Venue, Balance)>,
    counters: Counters,
    /// The book that is compared with a snapshot.
    comparison: Comparison,
    /// What was wrong with the last input of a book, until it is polled.
    incident: Option<Incident>,
    /// What is listed for readers of every update.
    changes: Changes,
    writer: BoardWriter,
    board: Board,
}

impl Engine {
    /// Takes all memory that the engine will ever use.
    #[must_use]
    pub fn new(capacity: Capacity) -> Self {
        let timeframes = capacity.timeframes_len();
        let (writer, board) = board::board(capacity.instruments, timeframes, capacity.positions);
        let orders = if capacity.book_orders == 0 { 0 } else { capacity.backlog_deltas };
        let backlog = || Backlog::new(capacity.backlog_deltas, capacity.backlog_levels, orders);
        Self {
            capacity,
            timeframes,
            buffer: EventBuffer::with_orders(
                capacity.frame_levels,
                capacity.frame_entries,
                capacity.book_orders.max(capacity.frame_entries),
            ),
            connections: Connections::new(capacity.connections),
            symbols: SymbolTable::new(capacity.instruments),
            are_far: false,
            instruments: Vec::with_capacity(capacity.instruments),
            quotes: Vec::with_capacity(capacity.instruments),
            slab: PageSlab::new(capacity.pages),
            l3_books: L3Books::new(capacity.book_orders),
            changed: Changed::new(capacity.book_orders),
            backlogs: (0..capacity.backlogs).map(|_| backlog()).collect(),
            free_backlogs: (0..capacity.backlogs).rev().collect(),
            requests: VecDeque::with_capacity(capacity.instruments),
            reconnects: VecDeque::with_capacity(capacity.connections),
            budgets: Venue::ALL.map(|venue| Budget::new(venue.rules().resyncs)),
            pongs: VecDeque::with_capacity(capacity.connections),
            endings: VecDeque::with_capacity(capacity.connections),
            orders: Orders::new(capacity.orders),
            fills: Fills::new(capacity.fills),
            positions: Positions::new(capacity.positions, capacity.instruments),
            position_origins: alloc::vec![PositionOrigin::default(); capacity.positions],
            position_listings: Listings::default(),
            balances: Vec::with_capacity(capacity.balances),
            counters: Counters::default(),
            comparison: Comparison::default(),
            incident: None,
            changes: Changes::default(),
            writer,
            board,
        }
    }

    /// Adds an instrument; its id is the number of instruments before it. This allocates the instrument's own tables.
    ///
    /// # Errors
    /// `Full`, `SymbolTaken`, or `BadSize`; nothing changes.
    pub fn add_instrument(&mut self, spec: InstrumentSpec) -> Result<InstrumentId, AddError> {
        if self.instruments.len() >= self.capacity.instruments {
            return Err(AddError::Full);
        }
        if self.symbols.find(spec.venue, &spec.symbol).is_some() {
            return Err(AddError::SymbolTaken);
        }
        if spec.depth_max.is_some_and(|depth| depth < spec.venue.rules().checksum.levels().max(1)) {
            return Err(AddError::BadSize);
        }
        let instrument = Instrument::new(spec, self.capacity.overflow_levels).map_err(|_| AddError::BadSize)?;
        let id = InstrumentId(self.instruments.len() as u32);
        self.quotes.push(Quote::new(&instrument));
        self.instruments.push(instrument);
        self.are_far = self.instruments.len() > NEAR_MAX;
        self.symbols.insert(spec.venue, spec.symbol, id);
        Ok(id)
    }

    /// What was added under `id`.
    #[must_use]
    pub fn instrument(&self, id: InstrumentId) -> Option<&InstrumentSpec> {
        self.instruments.get(id.0 as usize).map(|instrument| &instrument.spec)
    }

    /// The instrument of a venue's symbol.
    #[must_use]
    pub fn find_instrument(&self, venue: Venue, symbol: &tt_venue::Symbol) -> Option<InstrumentId> {
        self.symbols.find(venue, symbol)
    }

    /// Joins the instrument's book by REST from the next subscription on, or by the snapshot on the socket.
    ///
    /// # Errors
    /// `BadInstrument` if there is no such instrument, or its venue offers no choice.
    pub fn set_join_by_rest(&mut self, instrument: InstrumentId, by_rest: bool) -> Result<(), AddError> {
        let known = self.instruments.get_mut(instrument.0 as usize).ok_or(AddError::BadInstrument)?;
        let JoinRule::Both(overlap) = known.rules.join else { return Err(AddError::BadInstrument) };
        known.join_overlap = by_rest.then_some(overlap);
        Ok(())
    }

    /// Follows the instrument's book with all levels, where the venue sends those apart
    /// ([`Rules::full`](tt_venue::rules::Rules::full)), from the next subscription on.
    ///
    /// # Errors
    /// `BadInstrument` if there is no such instrument, or its venue has no such books.
    pub fn follow_full_book(&mut self, instrument: InstrumentId) -> Result<(), AddError> {
        let known = self.instruments.get_mut(instrument.0 as usize).ok_or(AddError::BadInstrument)?;
        known.rules = known.spec.venue.rules().full.ok_or(AddError::BadInstrument)?;
        known.join_overlap = match known.rules.join {
            JoinRule::Rest(overlap) => Some(overlap),
            JoinRule::Socket | JoinRule::Both(_) | JoinRule::Whole => None,
        };
        Ok(())
    }

    /// Cuts the sides of the instrument's book to `depth_max` levels from its next snapshot on.
    ///
    /// # Errors
    /// `BadInstrument` if there is no such instrument, `BadSize` as of [`add_instrument`](Self::add_instrument).
    pub fn set_depth_max(&mut self, id: InstrumentId, depth_max: Option<usize>) -> Result<(), AddError> {
        let instrument = self.instruments.get_mut(id.0 as usize).ok_or(AddError::BadInstrument)?;
        if depth_max.is_some_and(|depth| depth < instrument.rules.checksum.levels().max(1)) {
            return Err(AddError::BadSize);
        }
        instrument.spec.depth_max = depth_max;
        Ok(())
    }

    /// Puts `position` into slot `index`, or empties the slot. It is valued at the next mark price.
    ///
    /// # Errors
    /// `Full` if `index` is beyond the capacity, `BadInstrument` if there is no such instrument.
    pub fn set_position(&mut self, index: usize, position: Option<Position>) -> Result<(), AddError> {
        if position.is_some_and(|position| position.instrument.0 as usize >= self.instruments.len()) {
            return Err(AddError::BadInstrument);
        }
        if index >= self.positions.len() {
            return Err(AddError::Full);
        }
        self.positions.set(index, position);
        self.position_origins[index] = PositionOrigin::default();
        Ok(())
    }

    /// Says what one unit of an instrument's quantity is; one of the base asset by default.
    ///
    /// # Errors
    /// `BadInstrument` if there is no such instrument, `BadSize` if the unit's size is not positive.
    pub fn set_contract_unit(&mut self, id: InstrumentId, unit: ContractUnit) -> Result<(), AddError> {
        let instrument = self.instruments.get_mut(id.0 as usize).ok_or(AddError::BadInstrument)?;
        let size = match unit {
            ContractUnit::Base => 1,
            ContractUnit::Linear(size) | ContractUnit::Inverse(size) => size.mantissa,
        };
        if size <= 0 {
            return Err(AddError::BadSize);
        }
        instrument.unit = unit;
        Ok(())
    }

    /// An own order that is open.
    #[must_use]
    pub fn order(&self, venue: Venue, id: &OrderId) -> Option<&OrderState> {
        self.orders.get(venue, id)
    }

    /// How many own orders are open.
    #[must_use]
    pub const fn orders_len(&self) -> usize {
        self.orders.len()
    }

    /// How many levels a book holds on its bid side and its offer side.
    #[must_use]
    pub fn levels_len(&self, id: InstrumentId) -> Option<(usize, usize)> {
        let book = &self.instruments.get(id.0 as usize)?.book;
        Some((book.side(crate::BookSide::Bid).len(), book.side(crate::BookSide::Ask).len()))
    }

    /// Pages of the slab in use.
    #[must_use]
    pub fn pages_used(&self) -> usize {
        self.slab.used()
    }

    /// What the last frame listed: its trades, candles, liquidations, executions.
    #[must_use]
    pub const fn last_entries(&self) -> &EventBuffer {
        &self.buffer
    }

    /// A reader of the published state for another thread.
    #[must_use]
    pub fn board(&self) -> Board {
        self.board.clone()
    }

    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Shows the counters to other threads through [`Board::counters`].
    pub fn publish_counters(&mut self) {
        self.writer.store_counters(&self.counters);
    }

    #[inline]
    fn find(&self, venue: Venue, symbol: &tt_venue::Symbol) -> Result<usize, DropReason> {
        self.symbols.find(venue, symbol).map(|id| id.0 as usize).ok_or(DropReason::UnknownSymbol)
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// `Full` if as many connections are open as the capacity allows.
    pub fn open_connection(&mut self, venue: Venue, now: Nanos) -> Result<ConnectionId, AddError> {
        self.connections.open(venue, now).ok_or(AddError::Full)
    }
}
