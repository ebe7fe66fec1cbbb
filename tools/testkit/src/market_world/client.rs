//! One venue and the client that follows it.

use std::collections::VecDeque;

use market_feed::offline::{Fetching, Pace};
use sim::{Instrument, Offline, Received, Venue};
use tt_market::candle::CandleSource;
use tt_market::{Capacity, ConnectionId, Engine, InstrumentSpec};
use tt_model::{Decimal, InstrumentId, Nanos};
use tt_venue::Symbol;

use super::addresses::Wait;
use super::faults::{InFlight, Layer, What};
use super::gate::Times;
use super::script::{Market, Script};
use super::tape::Taped;
use super::truth::Truth;
use super::words::{self, Kind};
use crate::draw::mix;

/// The first time of a world: 2026-08-01 00:00:00 UTC.
pub(super) const START: Nanos = Nanos(1_785_542_400_000_000_000);

/// The time between a client's end and its next connection, doubled each time.
const RECONNECT_MIN: Nanos = Nanos::from_millis(250);
const RECONNECT_DOUBLINGS: u32 = 5;

/// The time that a snapshot by REST takes, there and back.
const REST_LATENCY: Nanos = Nanos::from_millis(40);

/// An open connection.
pub(super) struct Open {
    /// Counts the connections of a feed.
    pub(super) number: u64,
    pub(super) received: Received,
    pub(super) connection: ConnectionId,
    /// When the client may make its next request, and when it made the last ones.
    pub(super) pace: Pace,
    pub(super) requests: Times,
}

/// One venue, the client that follows it, and what lies between them.
pub(super) struct Feed {
    pub(super) market: Market,
    /// Its engine among those of the world, and its address.
    pub(super) engine: usize,
    pub(super) address: usize,
    pub(super) engine_venue: tt_venue::Venue,
    pub(super) offline: Offline,
    pub(super) listed: Vec<Instrument>,
    pub(super) ids: Vec<InstrumentId>,
    pub(super) truths: Vec<Truth>,
    pub(super) layers: Vec<Layer>,
    pub(super) open: Option<Open>,
    /// The connection that is to take over, and since when it is open.
    pub(super) next: Option<(Open, Nanos)>,
    /// The venue sends nothing of each book before this.
    pub(super) topic_silent_until: Vec<Nanos>,
    pub(super) in_flight: VecDeque<InFlight>,
    /// The client does not read before this.
    pub(super) blocked_until: Nanos,
    pub(super) silent_until: Nanos,
    pub(super) rest_latency: Nanos,
    pub(super) skew_us: u64,
    pub(super) attempts: u32,
    /// Counts connections: what was asked on behalf of an earlier one is of no use.
    pub(super) generation: u64,
    /// The steps behind the last frame that the engine took for each book.
    pub(super) taken: Vec<usize>,
    /// A frame of a verified book was lost; the next one must be noticed.
    pub(super) lost: Vec<bool>,
    /// The update id at which a false best quote arrived.
    pub(super) misquoted: Vec<Option<u64>>,
    /// Whether the client follows each symbol.
    pub(super) followed: Vec<bool>,
    /// When the engine asked last for a snapshot that has not come.
    pub(super) asked: Vec<Option<Nanos>>,
    /// The snapshots by REST that are on their way, or wait to be asked for.
    pub(super) fetching: Fetching,
    pub(super) waits: Vec<Wait>,
    /// Connections opened so far.
    pub(super) opened: u64,
    /// A connection that is to take over is being opened.
    pub(super) is_dialling: bool,
}

/// The engine's name of a simulated venue.
const fn engine_venue(venue: Venue) -> tt_venue::Venue {
    match venue {
        Venue::BinanceSpot => tt_venue::Venue::BinanceSpot,
        Venue::BinanceUsdm => tt_venue::Venue::BinanceUsdm,
        Venue::Kraken => tt_venue::Venue::Kraken,
        Venue::Okx => tt_venue::Venue::Okx,
        Venue::Bybit => tt_venue::Venue::BybitLinear,
        Venue::Deribit => tt_venue::Venue::Deribit,
    }
}

/// An engine with room for a world.
pub(super) fn engine() -> Engine {
    Engine::new(Capacity { instruments: 8, connections: 4, pages: 4096, backlog_deltas: 256, ..Capacity::default() })
}

impl Feed {
    pub(super) fn new(script: &Script, number: usize, engines: &mut [Taped]) -> Self {
        let engine_number = script.engine_of(number);
        let engine = &mut engines[engine_number];
        let market = script.markets[number];
        let seed = mix(script.seed, number as u64);
        let offline = Offline::new(market.venue, market.instruments, seed, START.0 / 1000);
        let listed = offline.instruments();
        let engine_venue = engine_venue(market.venue);
        let add = |listed: &Instrument| {
            let spec = InstrumentSpec {
                venue: engine_venue,
                symbol: Symbol::new(listed.symbol.as_bytes()).expect("a symbol of the simulator is short"),
                tick_size: Decimal::new(1, listed.px_decimals as u8),
                lot_size: Decimal::new(1, listed.qty_decimals as u8),
                depth_max: match market.venue {
                    Venue::Kraken | Venue::Bybit => Some(words::depth(market.venue) as usize),
                    Venue::BinanceSpot | Venue::BinanceUsdm | Venue::Okx | Venue::Deribit => None,
                },
                candles: CandleSource::Trades,
            };
            engine.add_instrument(spec)
        };
        let ids: Vec<InstrumentId> = listed.iter().map(add).collect();
        let mut truths = vec![Truth::default(); listed.len()];
        for (index, truth) in truths.iter_mut().enumerate() {
            let (update_id, book) = offline.truth(index);
            truth.note(update_id, book);
        }
        let count = listed.len();
        Self {
            market,
            engine: engine_number,
            address: 0,
            engine_venue,
            offline,
            ids,
            truths,
            layers: vec![Layer::default(); count],
            open: None,
            next: None,
            topic_silent_until: vec![Nanos(0); count],
            in_flight: VecDeque::new(),
            blocked_until: Nanos(0),
            silent_until: Nanos(0),
            rest_latency: REST_LATENCY,
            skew_us: 0,
            attempts: 0,
            generation: 0,
            taken: vec![0; count],
            lost: vec![false; count],
            misquoted: vec![None; count],
            followed: vec![true; count],
            asked: vec![None; count],
            fetching: Fetching::default(),
            waits: Vec::new(),
            opened: 0,
            is_dialling: false,
            listed,
        }
    }

    /// A connection at the venue, with its number.
    pub(super) fn dial(&mut self, connection: ConnectionId) -> Open {
        self.opened += 1;
        let (pace, requests) = (Pace::default(), Times::default());
        Open { number: self.opened, received: self.offline.connect(), connection, pace, requests }
    }

    /// The open connection with that number.
    pub(super) fn open_of(&mut self, number: u64) -> Option<&mut Open> {
        let next = self.next.as_mut().map(|(next, _)| next);
        self.open.iter_mut().chain(next).find(|open| open.number == number)
    }

    /// The venue's clock, microseconds of the Unix epoch.
    pub(super) fn venue_us(&self, now: Nanos) -> u64 {
        (START.0 + now.0) / 1000 + self.skew_us
    }

    /// One step of an instrument: sends its messages. Returns when the first of them arrives.
    pub(super) fn step(&mut self, index: usize, now: Nanos) -> Option<Nanos> {
        let unix_us = self.venue_us(now);
        self.offline.step(index, unix_us);
        let (update_id, book) = self.offline.truth(index);
        self.truths[index].note(update_id, book);
        self.collect(now)
    }

    /// Puts what the venue has said on its way. Returns when the first of it arrives.
    pub(super) fn collect(&mut self, now: Nanos) -> Option<Nanos> {
        let before = self.in_flight.len();
        if let Some(mut open) = self.open.take() {
            self.collect_from(&mut open, now, true);
            self.open = Some(open);
        }
        if let Some((mut next, since)) = self.next.take() {
            self.collect_from(&mut next, now, false);
            self.next = Some((next, since));
        }
        (self.in_flight.len() > before).then(|| self.arrival(now))
    }

    const fn arrival(&self, now: Nanos) -> Nanos {
        Nanos(now.0 + self.market.latency.0)
    }

    /// Faults of frames are those of the first connection alone.
    fn collect_from(&mut self, open: &mut Open, now: Nanos, is_first: bool) {
        let arrives = self.arrival(now);
        while let Some(frame) = open.received.take() {
            let kind = words::kind(self.market.venue, &frame, &self.listed);
            for (steps, what) in self.pass(kind, frame.into_bytes(), now, is_first) {
                self.in_flight.push_back(InFlight { arrives, connection: open.connection, steps, what });
            }
        }
        let is_ending = |sent: &InFlight| sent.connection == open.connection && matches!(sent.what, What::End);
        if open.received.is_closed() && !self.in_flight.iter().any(is_ending) {
            self.in_flight.push_back(InFlight { arrives, connection: open.connection, steps: 0, what: What::End });
        }
    }

    /// What arrives for a frame that the venue sends, each with the steps that its instrument had made.
    fn pass(&mut self, kind: Kind, bytes: Vec<u8>, now: Nanos, is_first: bool) -> Vec<(usize, What)> {
        let whole = |bytes| What::Frame { bytes, kind, claim: super::faults::Claim::Whole };
        let (Kind::Update(index) | Kind::Quote(index) | Kind::Snapshot(index)) = kind else {
            return vec![(0, whole(bytes))];
        };
        let (update_id, steps) = (self.offline.truth(index).0, self.truths[index].len());
        let is_silent = now < self.topic_silent_until[index];
        match kind {
            Kind::Quote(_) if is_silent => Vec::new(),
            Kind::Update(_) if is_silent && is_first => vec![(steps, What::Lost { index, update_id })],
            Kind::Update(_) if is_silent => Vec::new(),
            Kind::Update(_) if is_first => self.layers[index].pass(self.market.venue, index, bytes, update_id, steps),
            Kind::Quote(_) if is_first => vec![(0, self.layers[index].quote(index, bytes, update_id))],
            Kind::Snapshot(_) => {
                let released = if is_first { self.layers[index].release(index) } else { None };
                released.into_iter().chain([(steps, whole(bytes))]).collect()
            }
            Kind::Update(_) | Kind::Quote(_) | Kind::Other => vec![(steps, whole(bytes))],
        }
    }

    /// The client says `request` on a connection. Returns when the first answer arrives.
    pub(super) fn say(&mut self, connection: u64, request: &str, now: Nanos) -> Option<Nanos> {
        let next = self.next.as_ref().map(|(next, _)| next);
        let open = self.open.iter().chain(next).find(|open| open.number == connection)?;
        self.offline.request(&open.received, request);
        self.collect(now)
    }

    /// Whether `connection` is the open one, or the one that is to take over.
    pub(super) fn has(&self, connection: ConnectionId) -> bool {
        let next = self.next.as_ref().map(|(next, _)| next);
        self.open.iter().chain(next).any(|open| open.connection == connection)
    }

    /// Nothing more goes wrong.
    pub(super) fn heal(&mut self) {
        self.offline.heal();
        self.layers.iter_mut().for_each(|layer| {
            layer.waiting.clear();
            layer.quotes.clear();
        });
        self.topic_silent_until.fill(Nanos(0));
        self.rest_latency = REST_LATENCY;
    }

    /// How long the client waits before it connects again.
    pub(super) fn reconnect_wait(&mut self) -> Nanos {
        let wait = RECONNECT_MIN.0 << self.attempts.min(RECONNECT_DOUBLINGS);
        self.attempts += 1;
        Nanos(wait)
    }
}
