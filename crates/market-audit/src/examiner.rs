//! Passes one feed of a recording through the engine, frame by frame.

use std::collections::VecDeque;

use tt_market::DropReason;
use tt_market::board::Board;
use tt_market::candle::CandleSource;
use tt_market::counters::VenueCounters;
use tt_market::{Applied, BookUpdate, Capacity, ConnectionId, Engine, InstrumentSpec, Proof, Request};
use tt_meter::Off;
use tt_model::{Decimal, InstrumentId, Nanos};
use tt_venue::event::{Event, EventBuffer};
use tt_venue::listing::ContractUnit;
use tt_venue::rules::{JoinRule, Numbering};
use tt_venue::{Symbol, Venue};

use super::finding::{Findings, is_wrong};
use super::instrument::{Order, Watched};
use super::skew::Skew;
use super::timers::Timers;
use market_feed::InstrumentSetup;

/// Instruments of one feed.
const INSTRUMENTS_MAX: usize = 1024;
/// REST snapshots kept for instruments without other messages.
const EARLY_MAX: usize = 64;

/// Orders of all books that are recorded order by order.
const BOOK_ORDERS: usize = 1 << 18;

/// Capacity for any recording of `venue`; unused parts take no memory.
fn capacity(venue: Venue) -> Capacity {
    Capacity {
        instruments: INSTRUMENTS_MAX,
        connections: 4,
        pages: 1 << 17,
        overflow_levels: 1 << 14,
        frame_levels: 1 << 16,
        frame_entries: 1 << 13,
        backlogs: 32,
        backlog_deltas: 2048,
        backlog_levels: 1 << 17,
        book_orders: if venue.rules().l3.is_some() { BOOK_ORDERS } else { 0 },
        ..Capacity::default()
    }
}

/// A feed with its findings.
#[derive(Debug)]
pub(super) struct Examiner {
    pub(super) venue: Venue,
    pub(super) engine: Engine,
    board: Board,
    /// The open connections by their number in the recording; a feed may have more than one.
    pub(super) connections: Vec<(u32, ConnectionId)>,
    buffer: EventBuffer,
    pub(super) watched: Vec<Watched>,
    /// Whether the recording contains instruments, connections and subscriptions.
    pub(super) has_setup: bool,
    wanted: VecDeque<InstrumentId>,
    early: Vec<(Symbol, Vec<u8>)>,
    pub(super) skew: Skew,
    pub(super) findings: Findings,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
    pub(super) has_receive_times: bool,
    pub(super) bytes: u64,
    /// Frames that the general reader read.
    general: u64,
    timers: Timers,
    /// The current record.
    pub(super) record: u64,
}

impl Examiner {
    pub(super) fn new(venue: Venue, has_setup: bool) -> Self {
        let capacity = capacity(venue);
        let engine = Engine::new(capacity);
        Self {
            venue,
            board: engine.board(),
            engine,
            connections: Vec::new(),
            buffer: EventBuffer::with_orders(
                capacity.frame_levels,
                capacity.frame_entries,
                capacity.frame_entries.max(capacity.book_orders),
            ),
            watched: Vec::new(),
            has_setup,
            wanted: VecDeque::new(),
            early: Vec::new(),
            skew: Skew::default(),
            findings: Findings::default(),
            first_ns: 0,
            last_ns: 0,
            has_receive_times: false,
            bytes: 0,
            general: 0,
            timers: Timers::default(),
            record: 0,
        }
    }

    /// The engine's counters, with those of the parser: the examiner parses.
    pub(super) fn counters(&self) -> VenueCounters {
        VenueCounters { bytes: self.bytes, general: self.general, ..*self.engine.counters().venue(self.venue) }
    }

    /// Returns the proof of an instrument's book.
    pub(super) fn proof(&self, index: usize) -> Proof {
        self.board.top_of_book(InstrumentId(index as u32)).map_or(Proof::Syncing, |top| top.status.proof)
    }

    /// Records the receipt of a frame. REST responses need not be in the order of frames.
    fn receive(&mut self, ts_ns: u64) {
        if ts_ns == 0 {
            return;
        }
        self.has_receive_times = true;
        if self.skew.receive(ts_ns) {
            self.note("receive_time_backwards", true, "a frame was received before the one before it");
        }
        self.first_ns = if self.first_ns == 0 { ts_ns } else { self.first_ns };
        self.last_ns = ts_ns;
    }

    pub(super) fn note(&mut self, name: &'static str, wrong: bool, text: &str) {
        self.findings.add(name, 1, wrong, Some(self.record), text);
    }

    /// Handles a frame; `ts_ns` is zero without a receive time.
    pub(super) fn frame(&mut self, record: u64, ts_ns: u64, frame: &[u8]) {
        self.frame_on(None, record, ts_ns, frame);
    }

    /// As `frame`, on a recorded connection.
    pub(super) fn frame_on(&mut self, recorded: Option<ConnectionId>, record: u64, ts_ns: u64, frame: &[u8]) {
        self.record = record;
        self.bytes += frame.len() as u64;
        self.receive(ts_ns);
        let mut buffer = std::mem::take(&mut self.buffer);
        let event = self.venue.parse(frame, &mut buffer);
        self.general += u64::from(buffer.is_general());
        let ts_event = event.as_ref().map_or(0, ts_event_of);
        if ts_ns != 0 && ts_event != 0 {
            self.skew.record(ts_ns, ts_event);
        }
        let now = Nanos(if ts_ns == 0 { ts_event.max(self.last_ns) } else { ts_ns });
        self.last_ns = now.0;
        self.first_ns = if self.first_ns == 0 { now.0 } else { self.first_ns };
        let Some(connection) = recorded.or_else(|| self.open(now)) else {
            self.buffer = buffer;
            return;
        };
        if !self.has_setup && self.timers.is_silent(now, self.venue.rules().silence_max) {
            self.note(
                "silence",
                false,
                "no frame for longer than the venue promises; the connection may have been lost",
            );
        }
        let VenueCounters { gaps, crossed, .. } = self.counters();
        let result = match &event {
            Ok(event) => {
                self.prepare(event, &buffer, frame, now);
                self.engine.handle_event(now, connection, event, &buffer, &mut Off)
            }
            // The engine drops it and counts the drop.
            Err(_) => self.engine.handle_frame(now, connection, frame, &mut Off),
        };
        self.buffer = buffer;
        // The frame that is dropped for it is a finding by itself.
        if self.counters().gaps > gaps && result != Err(DropReason::Gap) {
            self.note("gap", true, "updates are missing");
        }
        if self.counters().crossed > crossed {
            self.note("crossed", true, "the best bid is above the best ask after a whole message");
        }
        self.conclude(result);
        // A recording of truetick holds the times of its timers.
        if !self.has_setup && self.timers.are_due(now) {
            self.handle_timeout(now);
        }
        self.poll(now);
    }

    /// Runs the engine's timers.
    pub(super) fn handle_timeout(&mut self, now: Nanos) {
        let resyncs = self.counters().resyncs;
        self.engine.handle_timeout(now);
        let lost = self.counters().resyncs - resyncs;
        let text = "a book stayed crossed, or locked outside of an auction, for more than 500 ms";
        self.findings.add("crossed_too_long", lost, true, Some(self.record), text);
        self.poll(now);
    }

    /// Handles the body of a REST snapshot; `symbol` may be unknown.
    pub(super) fn snapshot(&mut self, record: u64, ts_ns: u64, symbol: Option<Symbol>, body: &[u8]) {
        self.record = record;
        self.bytes += body.len() as u64;
        let now = Nanos(if ts_ns == 0 { self.last_ns } else { ts_ns });
        let id = match symbol {
            Some(symbol) => self.engine.find_instrument(self.venue, &symbol),
            None => self.wanted.pop_front().or((self.watched.len() == 1).then_some(InstrumentId(0))),
        };
        let Some(id) = id else {
            if let Some(symbol) = symbol.filter(|_| self.early.len() < EARLY_MAX) {
                self.early.push((symbol, body.to_vec()));
            }
            return;
        };
        self.join(id, now, body);
    }

    fn join(&mut self, id: InstrumentId, now: Nanos, body: &[u8]) {
        self.wanted.retain(|wanted| *wanted != id);
        let mut buffer = std::mem::take(&mut self.buffer);
        let parsed = self.rules_of(id).snapshot.map(|rule| (rule.parse)(body, &mut buffer));
        if let Some(Ok(snapshot)) = parsed {
            self.see(id, |watched| watched.see_levels(&snapshot.levels, buffer.levels()));
        }
        self.buffer = buffer;
        let (is_join, result) = (!self.engine.is_comparing(id), self.engine.handle_snapshot(now, id, body, &mut Off));
        if is_join && result.is_ok() {
            self.watched[id.0 as usize].restart();
        }
        self.conclude(result);
        self.poll(now);
    }

    /// Returns the connection of the frames. A recording without connections has one.
    pub(super) fn open(&mut self, now: Nanos) -> Option<ConnectionId> {
        if self.connections.is_empty() && !self.has_setup {
            self.connections.extend(self.engine.open_connection(self.venue, now).map(|id| (0, id)));
        }
        self.connections.first().map(|open| open.1)
    }

    /// Adds new instruments, and refines those with more digits than before.
    fn prepare(&mut self, event: &Event, buffer: &EventBuffer, frame: &[u8], now: Nanos) {
        match event {
            Event::BookDelta(delta) => {
                let Some(id) = self.watch_delta(delta.symbol, now) else { return };
                self.see(id, |watched| watched.see_levels(&delta.levels, buffer.levels()));
                let top = self.board.top_of_book(id).unwrap_or_default();
                let numbering = self.venue.rules().numbering;
                // Where times alone order the updates, the checksum of the same frame decides.
                let is_checked = numbering == Numbering::None && top.status.proof != Proof::Stale;
                let watched = &mut self.watched[id.0 as usize];
                watched.measure(delta, buffer.levels(), &top);
                match watched.order(delta, numbering, frame) {
                    Order::Next => {}
                    Order::Duplicate => self.note("duplicate", true, "an update occurs twice"),
                    Order::Late if is_checked && delta.checksum.is_some() => {
                        self.note(
                            "time_fell",
                            false,
                            "the venue's time of an update is before that of the update before",
                        );
                    }
                    Order::Late => self.note("reordered", true, "an update follows a later one"),
                }
            }
            Event::BookSnapshot(snapshot) => {
                let Some(symbol) = snapshot.symbol else { return };
                let Some(id) = self.watch(symbol, now) else { return };
                self.limit_depth(id, snapshot.levels.bids().len().max(snapshot.levels.asks().len()));
                self.see(id, |watched| watched.see_levels(&snapshot.levels, buffer.levels()));
                self.watched[id.0 as usize].restart();
            }
            Event::BookTicker(ticker) => {
                let Some(id) = self.watch(ticker.symbol, now) else { return };
                self.see(id, |watched| {
                    [ticker.bid_px, ticker.ask_px].into_iter().for_each(|px| watched.px.see_one(px));
                    [ticker.bid_qty, ticker.ask_qty].into_iter().for_each(|qty| watched.qty.see_one(qty));
                });
            }
            Event::Tickers => {
                for ticker in buffer.tickers() {
                    let Some(id) = self.watch(ticker.symbol, now) else { continue };
                    self.see(id, |watched| {
                        let prices = [ticker.bid_px, ticker.ask_px, ticker.last_px];
                        prices.into_iter().flatten().for_each(|px| watched.px.see_one(px));
                        let quantities = [ticker.bid_qty, ticker.ask_qty];
                        quantities.into_iter().flatten().for_each(|qty| watched.qty.see_one(qty));
                    });
                }
            }
            Event::Trades => {
                for trade in buffer.trades().iter().filter(|trade| trade.in_market) {
                    let Some(id) = self.watch(trade.symbol, now) else { continue };
                    self.see(id, |watched| {
                        watched.px.see_one(trade.px);
                        watched.qty.see_one(trade.qty);
                    });
                }
            }
            Event::BookOrders(update) => self.prepare_orders(update, buffer.book_orders(), now),
            Event::MarkPrice(mark) => {
                let _ = self.watch(mark.symbol, now);
            }
            Event::Candles
            | Event::Liquidations
            | Event::OrderUpdates
            | Event::OrderList(_)
            | Event::Account
            | Event::Control(_) => {}
        }
    }

    /// As `watch`, but a book of limited depth begins with its snapshot.
    fn watch_delta(&mut self, symbol: Symbol, now: Nanos) -> Option<InstrumentId> {
        let known = self.engine.find_instrument(self.venue, &symbol);
        if self.venue.rules().truncates { known } else { self.watch(symbol, now) }
    }

    /// Returns the instrument of a symbol; adds and subscribes a new one.
    pub(super) fn watch(&mut self, symbol: Symbol, now: Nanos) -> Option<InstrumentId> {
        if let Some(id) = self.engine.find_instrument(self.venue, &symbol) {
            return Some(id);
        }
        if self.has_setup {
            return None;
        }
        let unit = Decimal::new(1, 0);
        let candles = CandleSource::Trades;
        let spec =
            InstrumentSpec { venue: self.venue, symbol, tick_size: unit, lot_size: unit, depth_max: None, candles };
        let id = self.add_instrument(&InstrumentSetup {
            spec,
            unit: ContractUnit::Base,
            join_by_rest: false,
            by_order: false,
            full: false,
            book_spacing: None,
        })?;
        let connection = self.open(now)?;
        self.engine.subscribe(connection, id, now).ok()?;
        self.poll(now);
        self.join_early(id, now);
        Some(id)
    }

    /// Joins the snapshot that came before the instrument's first message.
    pub(super) fn join_early(&mut self, id: InstrumentId, now: Nanos) {
        let symbol = self.watched[id.0 as usize].symbol;
        // A book that comes with its own snapshot leaves it to the one that does not.
        let joins = matches!(self.rules_of(id).join, JoinRule::Rest(_) | JoinRule::Both(_));
        if joins && let Some(at) = self.early.iter().position(|early| early.0 == symbol) {
            let (_, body) = self.early.swap_remove(at);
            self.join(id, now, &body);
        }
    }

    /// Limits the depth of a book to the least of the venue's depths that holds its snapshot.
    pub(super) fn limit_depth(&mut self, id: InstrumentId, seen: usize) {
        let rules = self.rules_of(id);
        if self.has_setup || !rules.truncates || self.watched[id.0 as usize].has_depth {
            return;
        }
        self.watched[id.0 as usize].has_depth = true;
        let depth_max = rules.depths.iter().map(|depth| *depth as usize).find(|depth| *depth >= seen);
        // The venue's own depths are none that the engine rejects.
        let _ = self.engine.set_depth_max(id, depth_max);
    }

    pub(super) fn add_instrument(&mut self, listed: &InstrumentSetup) -> Option<InstrumentId> {
        let (spec, added) = (listed.spec, listed.add_to(&mut self.engine).ok());
        if added.is_none() {
            self.note("too_many_instruments", true, "more instruments than the audit follows");
        }
        if added.is_some() {
            let as_written = !spec.venue.rules().checksum.is_none();
            let mut watched = Watched::new(spec.symbol, as_written);
            watched.by_order = listed.by_order;
            self.watched.push(watched);
        }
        added
    }

    /// Passes the digits of an instrument to `look`, and refines its steps if necessary.
    pub(super) fn see(&mut self, id: InstrumentId, look: impl FnOnce(&mut Watched)) {
        if self.has_setup {
            return;
        }
        let watched = &mut self.watched[id.0 as usize];
        let before = (watched.px.decimals, watched.qty.decimals);
        look(watched);
        if (watched.px.decimals, watched.qty.decimals) == before {
            return;
        }
        let is_first = watched.deltas + watched.snapshots == 0 && watched.refined == 0 && before == (0, 0);
        watched.refined += u64::from(!is_first);
        let (tick_size, lot_size) = (watched.px.step(), watched.qty.step());
        if self.engine.refine(id, tick_size, lot_size).is_err() {
            self.note("beyond_i64", true, "a number needs more than 63 bits in the instrument's steps");
        }
    }

    fn conclude(&mut self, result: Result<Applied, DropReason>) {
        match result {
            Ok(Applied::Book { instrument: id, update: BookUpdate::Snapshot | BookUpdate::Delta }) => {
                self.watched[id.0 as usize].applied += 1;
            }
            Ok(_) => {}
            Err(fault) => self.findings.add(fault.name(), 1, is_wrong(fault), Some(self.record), "dropped"),
        }
    }

    pub(super) fn poll(&mut self, now: Nanos) {
        while let Some(request) = self.engine.poll_request(now) {
            match request {
                Request::FetchSnapshot { instrument } if !self.wanted.contains(&instrument) => {
                    self.wanted.push_back(instrument);
                }
                Request::Reconnect { .. } => {
                    self.note("silence", false, "a connection was silent for longer than the venue promises");
                }
                Request::FetchSnapshot { .. } | Request::Resubscribe { .. } => {}
                Request::Pong { .. } | Request::Replace { .. } => {}
            }
        }
    }

    /// Returns the symbol of an instrument.
    pub(super) fn symbol(&self, id: InstrumentId) -> Option<Symbol> {
        self.engine.instrument(id).map(|spec| spec.symbol)
    }

    /// Adds the findings about the whole feed.
    pub(super) fn finish(&mut self) {
        let never = self.watched.iter().filter(|watched| watched.deltas > 0 && watched.applied == 0).count();
        self.findings.add(
            "never_synchronised",
            never as u64,
            true,
            None,
            "books with updates that never joined a snapshot",
        );
        let ahead = "frames received before the venue's timestamp";
        self.findings.add("clock_ahead", self.skew.early(), false, None, ahead);
        let truncated = self.counters().levels_dropped;
        self.findings.add("levels_dropped", truncated, false, None, "levels beyond the audit's capacity");
    }
}

/// The venue's time of an event, zero where it has none.
fn ts_event_of(event: &Event) -> u64 {
    match event {
        Event::BookDelta(delta) => delta.ts_event.0,
        Event::BookSnapshot(snapshot) => snapshot.ts_event.0,
        Event::BookOrders(update) => update.ts_event.0,
        Event::BookTicker(ticker) => ticker.ts_event.0,
        Event::MarkPrice(mark) => mark.ts_event.0,
        Event::Tickers
        | Event::Trades
        | Event::Candles
        | Event::Liquidations
        | Event::OrderUpdates
        | Event::OrderList(_)
        | Event::Account
        | Event::Control(_) => 0,
    }
}
