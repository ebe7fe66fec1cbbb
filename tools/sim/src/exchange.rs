//! One venue: its instruments, who is connected and what each of them asked for.

mod ends;
mod faults;
mod publisher;
mod states;

pub(crate) use faults::half;

use std::{
    collections::{HashMap, hash_map::Entry},
    time::{SystemTime, UNIX_EPOCH},
};

use axum::extract::ws::Utf8Bytes;
use tokio::sync::mpsc;

use crate::{
    chain::Numbering,
    instrument::{Instrument, Standing, Venue},
    market::{Market, Subscriber, Topic},
    orders::Orders,
};

/// Frames that may wait for a connection; a client that falls further behind is cut off, as venues do.
const QUEUE_FRAMES: usize = 1 << 16;

/// Credits of Deribit's clients.
const CREDITS_MAX: u64 = 30_000;

/// Counters of a venue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Steps of the scripts: book updates made, whether anybody listened or not.
    pub updates: u64,
    /// Frames handed to connections, copies counted.
    pub frames: u64,
    /// Connections opened.
    pub opened: u64,
    /// Connections open at present.
    pub open: u64,
    /// Connections cut off because they read too slowly.
    pub cut_off: u64,
    /// Snapshots served over REST.
    pub snapshots: u64,
    /// Connections cut off because they asked too often.
    pub cut_off_for_requests: u64,
    /// Steps that were due and left out because the simulator could not keep up.
    pub steps_late: u64,
}

/// One open connection.
struct Connection {
    frames: mpsc::Sender<Utf8Bytes>,
    /// The venue knows whose it is.
    is_logged_in: bool,
    /// Nothing passes through it any more.
    is_half_open: bool,
    /// Frames have the name of their stream around them.
    is_wrapped: bool,
    /// Times are sent in microseconds.
    has_microseconds: bool,
    /// It follows the state of the platform.
    has_platform_state: bool,
    /// It follows the states of all instruments.
    has_instrument_states: bool,
    /// Its end was announced.
    is_ending: bool,
    /// Seconds since the client was last heard.
    silent_s: u32,
    /// Seconds between two heartbeats, where the client asked for them.
    heartbeat_s: Option<u32>,
    /// Seconds since the last heartbeat.
    since_heartbeat_s: u32,
}

/// A venue.
pub(crate) struct Exchange {
    pub(crate) venue: Venue,
    pub(crate) markets: Vec<Market>,
    pub(crate) stats: Stats,
    /// REST requests to refuse with 429.
    pub(crate) refusals: u32,
    /// Nothing is sent; connections stay open.
    pub(crate) mute: bool,
    /// Entries of a page of the list of instruments.
    pub(crate) page_len: usize,
    /// Credits that requests cost, where the venue counts them, and when they were counted.
    credits: (u64, u64),
    /// Names of topics that are accepted and not sent.
    pub(crate) withheld: Vec<String>,
    seed: u64,
    index_by_symbol: HashMap<String, usize>,
    /// The time of a venue in virtual time; the system's where there is none.
    clock_us: Option<u64>,
    connections: HashMap<u64, Connection>,
    /// Subscribers of the account's own orders.
    private: Vec<Subscriber>,
    orders: Orders,
    next_market: usize,
    /// The time of the last step.
    stepped_us: u64,
}

impl Exchange {
    pub(crate) fn new(venue: Venue, instruments: u32, seed: u64) -> Self {
        Self::of(venue, Instrument::list(venue, instruments), seed)
    }

    /// The venue of these instruments.
    pub(crate) fn of(venue: Venue, instruments: Vec<Instrument>, seed: u64) -> Self {
        let seed = seed.wrapping_add(venue as u64);
        let markets: Vec<Market> = instruments.into_iter().map(|instrument| Market::new(instrument, seed)).collect();
        let index_by_symbol =
            markets.iter().enumerate().map(|(index, market)| (market.instrument.symbol.clone(), index)).collect();
        Self {
            venue,
            markets,
            stats: Stats::default(),
            refusals: 0,
            mute: false,
            page_len: usize::MAX,
            credits: (CREDITS_MAX, 0),
            withheld: Vec::new(),
            seed,
            clock_us: None,
            index_by_symbol,
            connections: HashMap::new(),
            private: Vec::new(),
            orders: Orders::default(),
            next_market: 0,
            stepped_us: 0,
        }
    }

    /// The seed of this venue's scripts.
    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn market_index(&self, symbol: &str) -> Option<usize> {
        let index = self.index_by_symbol.get(symbol).copied();
        index.filter(|index| self.markets[*index].instrument.standing != Standing::Delisted)
    }

    /// The instruments of the list.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &Market> {
        self.markets.iter().filter(|market| market.instrument.standing != Standing::Delisted)
    }

    /// Changes whether an instrument is traded. Its book begins again where trading does.
    pub(crate) fn set_standing(&mut self, index: usize, standing: Standing) {
        self.announce_state(index, standing);
        let market = &mut self.markets[index];
        market.instrument.standing = standing;
        if standing == Standing::Delisted {
            market.subscribers.clear();
            market.windows.clear();
        }
    }

    /// A new connection: its number and what is to be sent to it.
    pub(crate) fn connect(&mut self) -> (u64, mpsc::Receiver<Utf8Bytes>) {
        let (sender, receiver) = mpsc::channel(QUEUE_FRAMES);
        self.stats.opened += 1;
        let connection = self.stats.opened;
        let opened = Connection {
            frames: sender,
            is_logged_in: false,
            is_half_open: false,
            is_wrapped: false,
            has_microseconds: false,
            has_platform_state: false,
            has_instrument_states: false,
            is_ending: false,
            silent_s: 0,
            heartbeat_s: None,
            since_heartbeat_s: 0,
        };
        self.connections.insert(connection, opened);
        self.stats.open = self.connections.len() as u64;
        (connection, receiver)
    }

    /// Forgets a connection.
    pub(crate) fn disconnect(&mut self, connection: u64) {
        self.connections.remove(&connection);
        self.private.retain(|other| other.connection != connection);
        self.markets.iter_mut().for_each(|market| market.unsubscribe(connection, None));
        self.stats.open = self.connections.len() as u64;
    }

    /// Forgets all connections: their sockets close.
    pub(crate) fn disconnect_all(&mut self) {
        let open: Vec<u64> = self.connections.keys().copied().collect();
        open.into_iter().for_each(|connection| self.disconnect(connection));
    }

    /// Now, microseconds since the Unix epoch.
    pub(crate) fn now_us(&self) -> u64 {
        self.clock_us.unwrap_or_else(unix_us)
    }

    /// From now on the time is what the caller says.
    pub(crate) const fn set_clock(&mut self, unix_us: u64) {
        self.clock_us = Some(unix_us);
    }

    /// From now on the venue knows whose connection it is.
    pub(crate) fn log_in(&mut self, connection: u64) {
        if let Some(connection) = self.connections.get_mut(&connection) {
            connection.is_logged_in = true;
        }
    }

    /// Takes `cost` credits, of which 10,000 come back in a second; without enough of them the connection is cut off.
    pub(crate) fn spend(&mut self, connection: u64, cost: u64) -> bool {
        let now_us = self.now_us();
        let (left, at_us) = self.credits;
        let back = now_us.saturating_sub(at_us).min(CREDITS_MAX * 100) / 100;
        let left = (left + back).min(CREDITS_MAX);
        self.credits = (left.saturating_sub(cost), now_us);
        if left < cost {
            self.stats.cut_off_for_requests += 1;
            self.disconnect(connection);
        }
        left >= cost
    }

    /// Whether the venue knows whose connection it is.
    pub(crate) fn is_logged_in(&self, connection: u64) -> bool {
        self.connections.get(&connection).is_some_and(|connection| connection.is_logged_in)
    }

    /// The client was heard.
    pub(crate) fn hear(&mut self, connection: u64) {
        if let Some(connection) = self.connections.get_mut(&connection) {
            connection.silent_s = 0;
        }
    }

    /// The client asks for a heartbeat each `seconds`.
    pub(crate) fn set_heartbeat(&mut self, connection: u64, seconds: u32) {
        if let Some(connection) = self.connections.get_mut(&connection) {
            connection.heartbeat_s = Some(seconds);
        }
    }

    /// Seconds between two heartbeats, where the client asked for them.
    pub(crate) fn heartbeat_s(&self, connection: u64) -> Option<u32> {
        self.connections.get(&connection)?.heartbeat_s
    }

    /// Whether nothing passes through the connection any more.
    pub(crate) fn is_half_open(&self, connection: u64) -> bool {
        self.connections.get(&connection).is_some_and(|connection| connection.is_half_open)
    }

    /// A second has passed on the connection: seconds since the client was heard, and whether a heartbeat is due.
    pub(crate) fn pass_second(&mut self, connection: u64) -> (u32, bool) {
        let Some(connection) = self.connections.get_mut(&connection) else { return (0, false) };
        connection.silent_s += 1;
        connection.since_heartbeat_s += 1;
        let due = connection.heartbeat_s.is_some_and(|seconds| connection.since_heartbeat_s >= seconds);
        if due {
            connection.since_heartbeat_s = 0;
        }
        (connection.silent_s, due)
    }

    /// Adds a subscriber; a second request of the same connection for the same topic replaces the first.
    pub(crate) fn subscribe(&mut self, market: usize, topic: Topic, subscriber: Subscriber) {
        let numbering = numbering(self.venue);
        let market = &mut self.markets[market];
        if let Topic::Book(depth) = topic
            && !market.windows.contains_key(&depth)
        {
            market.renew_window(depth);
            // The chain of a book without subscribers has moved on.
            if let Some(numbering) = numbering {
                let update_id = market.script.update_id();
                let chain = market.chain(depth, numbering);
                if chain.update_id(chain.id()) != Some(update_id) {
                    chain.advance(update_id);
                }
            }
        }
        if let Topic::Orders(depth) = topic
            && !market.order_windows.contains_key(&depth)
        {
            market.renew_order_window(depth);
        }
        let subscribers = market.subscribers.entry(topic).or_default();
        subscribers.retain(|other| other.connection != subscriber.connection);
        subscribers.push(subscriber);
    }

    /// Sends the account's own orders to `subscriber`.
    pub(crate) fn subscribe_private(&mut self, subscriber: Subscriber) {
        self.private.retain(|other| other.connection != subscriber.connection);
        self.private.push(subscriber);
    }

    /// Queues one frame for one connection.
    pub(crate) fn send(&mut self, connection: u64, frame: impl Into<Utf8Bytes>) {
        if self.mute {
            return;
        }
        if let Entry::Occupied(entry) = self.connections.entry(connection) {
            if entry.get().is_half_open {
                return;
            }
            if entry.get().frames.try_send(frame.into()).is_ok() {
                self.stats.frames += 1;
            } else {
                entry.remove();
                self.stats.cut_off += 1;
                self.disconnect(connection);
            }
        }
    }
}

/// How `venue` numbers the updates of a windowed book.
const fn numbering(venue: Venue) -> Option<Numbering> {
    match venue {
        Venue::BinanceSpot | Venue::BinanceUsdm | Venue::Kraken => None,
        Venue::Okx | Venue::Deribit => Some(Numbering::Script),
        Venue::Bybit => Some(Numbering::Counted),
    }
}

/// Microseconds since the Unix epoch.
pub(crate) fn unix_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}
