//! One venue: its instruments, who is connected and what each of them asked for.

use std::{
    collections::{HashMap, hash_map::Entry},
    time::{SystemTime, UNIX_EPOCH},
};

use axum::extract::ws::Utf8Bytes;
use tokio::sync::mpsc;

use crate::{
    binance,
    instrument::{Instrument, Venue},
    kraken,
    market::{Fault, Market, Subscriber, Topic},
    orders::Orders,
    script::Step,
};

/// Frames that may wait for a connection; a client that falls further behind is cut off, as venues do.
const QUEUE_FRAMES: usize = 1 << 16;

/// Steps of the venue between two events of the private order stream.
const STEPS_PER_ORDER_EVENT: u64 = 40;

/// What a venue has done so far.
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
    /// Steps that were due and left out because the simulator could not keep up.
    pub steps_late: u64,
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
    seed: u64,
    index_by_symbol: HashMap<String, usize>,
    connections: HashMap<u64, mpsc::Sender<Utf8Bytes>>,
    /// Who asked for the account's own orders.
    private: Vec<Subscriber>,
    orders: Orders,
    next_market: usize,
}

impl Exchange {
    pub(crate) fn new(venue: Venue, instruments: u32, seed: u64) -> Self {
        let seed = seed.wrapping_add(venue as u64);
        let markets: Vec<Market> =
            Instrument::list(venue, instruments).into_iter().map(|instrument| Market::new(instrument, seed)).collect();
        let index_by_symbol =
            markets.iter().enumerate().map(|(index, market)| (market.instrument.symbol.clone(), index)).collect();
        Self {
            venue,
            markets,
            stats: Stats::default(),
            refusals: 0,
            mute: false,
            seed,
            index_by_symbol,
            connections: HashMap::new(),
            private: Vec::new(),
            orders: Orders::default(),
            next_market: 0,
        }
    }

    /// The seed of this venue's scripts.
    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn market_index(&self, symbol: &str) -> Option<usize> {
        self.index_by_symbol.get(symbol).copied()
    }

    /// A new connection: its number and what is to be sent to it.
    pub(crate) fn connect(&mut self) -> (u64, mpsc::Receiver<Utf8Bytes>) {
        let (sender, receiver) = mpsc::channel(QUEUE_FRAMES);
        self.stats.opened += 1;
        let connection = self.stats.opened;
        self.connections.insert(connection, sender);
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

    /// Adds a subscriber; a second request of the same connection for the same topic replaces the first.
    pub(crate) fn subscribe(&mut self, market: usize, topic: Topic, subscriber: Subscriber) {
        let market = &mut self.markets[market];
        if let Topic::Book(depth) = topic
            && !market.windows.contains_key(&depth)
        {
            market.renew_window(depth);
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
            if entry.get().try_send(frame.into()).is_ok() {
                self.stats.frames += 1;
            } else {
                entry.remove();
                self.stats.cut_off += 1;
                self.disconnect(connection);
            }
        }
    }

    /// One step of the instrument whose turn it is.
    pub(crate) fn step_next(&mut self, unix_us: u64) {
        self.step(self.next_market, unix_us);
        self.next_market = (self.next_market + 1) % self.markets.len();
    }

    /// One step of one instrument, told to everybody who asked.
    pub(crate) fn step(&mut self, index: usize, unix_us: u64) {
        let (step, unix_us) = self.markets[index].step(unix_us);
        self.stats.updates += 1;
        if self.markets[index].subscribers.is_empty() {
            return self.step_orders(index, unix_us);
        }
        match self.venue {
            Venue::BinanceSpot | Venue::BinanceUsdm => self.tell_binance(index, &step, unix_us),
            Venue::Kraken => self.tell_kraken(index, &step, unix_us),
        }
        self.step_orders(index, unix_us);
    }

    fn tell_binance(&mut self, index: usize, step: &Step, unix_us: u64) {
        let market = &self.markets[index];
        let printer = binance::Printer { venue: self.venue, instrument: &market.instrument, unix_us };
        let asked = |topic| market.subscribers.contains_key(&topic);
        let trade = step.trade.filter(|_| asked(Topic::Trades)).map(|trade| printer.trade(trade));
        let quote = (step.touch_changed && asked(Topic::BestQuote)).then(|| printer.book_ticker(&market.script));
        let depth = asked(Topic::Depth).then(|| printer.depth_update(step));
        let new_second = unix_us / 1_000_000 != market.told_at_s;
        let day = (new_second && asked(Topic::DayTicker)).then(|| printer.day_ticker(&market.script, &market.day));
        let mark = (new_second && asked(Topic::MarkPrice)).then(|| printer.mark_price(&market.script));
        self.markets[index].told_at_s = unix_us / 1_000_000;
        // The best quote leads its depth update at the venue; every fourth one trails here, to have both.
        let (before, after) = if step.last_update_id.is_multiple_of(4) { (None, quote) } else { (quote, None) };
        for (topic, frame) in [
            (Topic::Trades, trade),
            (Topic::BestQuote, before),
            (Topic::Depth, depth),
            (Topic::BestQuote, after),
            (Topic::DayTicker, day),
            (Topic::MarkPrice, mark),
        ] {
            if let Some(frame) = frame {
                self.tell_faulty(index, topic, frame);
            }
        }
    }

    fn tell_kraken(&mut self, index: usize, step: &Step, unix_us: u64) {
        let market = &mut self.markets[index];
        let depths: Vec<u32> = market.windows.keys().copied().collect();
        let old: Vec<_> = depths.into_iter().map(|depth| (depth, market.renew_window(depth))).collect();
        let printer = kraken::Printer { instrument: &market.instrument, unix_us };
        let mut frames = Vec::with_capacity(3);
        if let Some(trade) = step.trade.filter(|_| market.subscribers.contains_key(&Topic::Trades)) {
            frames.push((Topic::Trades, printer.trade(trade)));
        }
        for (depth, old) in &old {
            let update = printer.book_update(old, &market.windows[depth], &market.script);
            frames.extend(update.map(|frame| (Topic::Book(*depth), frame)));
        }
        if step.touch_changed && market.subscribers.contains_key(&Topic::BestQuote) {
            frames.push((Topic::BestQuote, printer.ticker("update", &market.script, &market.day)));
        }
        for (topic, frame) in frames {
            self.tell_faulty(index, topic, frame);
        }
    }

    /// Sends `frame`, a book update only after what is to go wrong with it.
    fn tell_faulty(&mut self, index: usize, topic: Topic, frame: String) {
        if !matches!(topic, Topic::Depth | Topic::Book(_)) {
            return self.tell(index, topic, &frame);
        }
        let market = &mut self.markets[index];
        let late = market.swapped.remove(&topic);
        match if late.is_some() { None } else { market.faults.pop_front() } {
            Some(Fault::Drop) => {}
            Some(Fault::Swap) => {
                market.swapped.insert(topic, frame);
            }
            Some(Fault::Duplicate) => {
                self.tell(index, topic, &frame);
                self.tell(index, topic, &frame);
            }
            Some(Fault::FlipDigit) => self.tell(index, topic, &flip_digit(&frame)),
            None => self.tell(index, topic, &frame),
        }
        if let Some(late) = late {
            self.tell(index, topic, &late);
        }
    }

    fn tell(&mut self, index: usize, topic: Topic, payload: &str) {
        let Some(subscribers) = self.markets[index].subscribers.get(&topic).cloned() else { return };
        for subscriber in subscribers {
            self.send_to(&subscriber, payload);
        }
    }

    fn send_to(&mut self, subscriber: &Subscriber, payload: &str) {
        let Subscriber { connection, stream, wrapped } = subscriber;
        if *wrapped {
            self.send(*connection, format!("{{\"stream\":\"{stream}\",\"data\":{payload}}}"));
        } else {
            self.send(*connection, payload);
        }
    }

    fn step_orders(&mut self, index: usize, unix_us: u64) {
        if self.venue == Venue::Kraken || !self.stats.updates.is_multiple_of(STEPS_PER_ORDER_EVENT) {
            return;
        }
        let market = &self.markets[index];
        let event = self.orders.next(self.venue, &market.instrument, market.script.book().touch(), unix_us);
        for subscriber in self.private.clone() {
            self.send_to(&subscriber, &event);
        }
    }
}

/// `frame` with another last digit in the first quantity that it prints.
fn flip_digit(frame: &str) -> String {
    let mut bytes = frame.as_bytes().to_vec();
    let level = ["\"qty\":", "[[\""].iter().find_map(|mark| frame.find(mark).map(|at| at + mark.len()));
    let Some(level) = level else { return frame.to_owned() };
    // Binance prints the price first: its quantity is the second text of the level.
    let from = if frame[..level].ends_with("[[\"") {
        level + frame[level..].find(",\"").map_or(0, |comma| comma + 2)
    } else {
        level
    };
    if let Some(point) = frame[from..].find('.') {
        let digit = &mut bytes[from + point + 1];
        *digit = if *digit == b'9' { b'0' } else { *digit + 1 };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| frame.to_owned())
}

/// Microseconds since the Unix epoch.
pub(crate) fn unix_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}
