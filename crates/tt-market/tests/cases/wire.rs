//! What each venue would send of one book, and an engine that follows it.

use std::collections::BTreeMap;
use std::fmt::Write;
use tt_market::DropReason;
use tt_market::board::TopOfBook;
use tt_market::candle::CandleSource;
use tt_market::counters::VenueCounters;
use tt_market::{Applied, Capacity, ConnectionId, Engine, InstrumentSpec, Proof, Request};
use tt_meter::Off;
use tt_model::{Decimal, InstrumentId, Nanos};
use tt_venue::rules::{JoinRule, Numbering};
use tt_venue::{Symbol, Venue};

pub(crate) const MS: u64 = 1_700_000_000_000;
const TIME: &str = "2023-11-14T22:13:20.000000Z";
pub(crate) const SYMBOL: &str = "BTCUSDT";

/// Levels as the venue writes them: price with one decimal, quantity with three.
pub(crate) type Levels<'a> = &'a [(&'a str, &'a str)];

pub(crate) const BIDS: Levels<'_> = &[("10.0", "1.000"), ("9.9", "2.000")];
pub(crate) const ASKS: Levels<'_> = &[("10.1", "3.000"), ("10.2", "4.500")];

/// The venues that send changes of their books; the other one sends whole books.
pub(crate) fn with_deltas() -> impl Iterator<Item = Venue> {
    Venue::ALL.into_iter().filter(|venue| venue.rules().join != JoinRule::Whole)
}

/// The venues whose updates are numbered.
pub(crate) fn numbered() -> impl Iterator<Item = Venue> {
    Venue::ALL.into_iter().filter(|venue| venue.rules().numbering != Numbering::None)
}

/// CRC-32 (IEEE), bit by bit.
pub(crate) fn crc32(text: &str) -> u32 {
    let step = |crc: u32, _| crc >> 1 ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
    !text.bytes().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(byte), step))
}

/// The venue's side: its true book, and the number of its last update.
#[derive(Clone)]
pub(crate) struct Wire {
    pub(crate) venue: Venue,
    pub(crate) id: u64,
    /// The venue's time, in milliseconds.
    pub(crate) ms: u64,
    pub(crate) symbol: &'static str,
    /// Whether OKX's book carries its historic checksum.
    pub(crate) sends_checksums: bool,
    sides: [BTreeMap<u64, (String, String)>; 2],
}

impl Wire {
    pub(crate) fn new(venue: Venue) -> Self {
        let sides = [BTreeMap::new(), BTreeMap::new()];
        Self { venue, id: 100, ms: MS, symbol: SYMBOL, sends_checksums: false, sides }
    }

    fn apply(&mut self, changes: [Levels<'_>; 2]) {
        for (side, changes) in self.sides.iter_mut().zip(changes) {
            for (px, qty) in changes {
                let Ok(key) = px.replace('.', "").parse() else { continue };
                if qty.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) {
                    side.insert(key, ((*px).to_owned(), (*qty).to_owned()));
                } else {
                    side.remove(&key);
                }
            }
        }
    }

    /// The levels of a side, best first.
    fn best_first(&self, side: usize) -> Vec<(&str, &str)> {
        let levels = self.sides[side].values().map(|(px, qty)| (px.as_str(), qty.as_str()));
        if side == 0 { levels.rev().collect() } else { levels.collect() }
    }

    pub(crate) fn checksum(&self) -> u32 {
        let (bids, asks) = (self.best_first(0), self.best_first(1));
        if matches!(self.venue, Venue::Kraken | Venue::KrakenDerivatives) {
            let digits = |text: &str| text.replace('.', "").trim_start_matches('0').to_owned();
            let level = |(px, qty): &(&str, &str)| digits(px) + &digits(qty);
            crc32(&asks.iter().take(10).chain(bids.iter().take(10)).map(level).collect::<String>())
        } else if self.venue == Venue::Okx && self.sends_checksums {
            let plain = |text: &str| text.trim_end_matches('0').trim_end_matches('.').to_owned();
            let mut texts = Vec::new();
            for rank in 0..25 {
                for (px, qty) in [bids.get(rank), asks.get(rank)].into_iter().flatten() {
                    texts.extend([plain(px), plain(qty)]);
                }
            }
            crc32(&texts.join(":"))
        } else {
            0
        }
    }

    /// The whole book: a REST body where that is how books begin, else a frame.
    pub(crate) fn snapshot(&mut self) -> String {
        let this = self.clone();
        let (bids, asks) = (this.best_first(0), this.best_first(1));
        let by_rest = matches!(self.venue.rules().join, JoinRule::Rest(_));
        self.id += u64::from(!by_rest && self.venue != Venue::Okx);
        self.whole(&bids, &asks, self.checksum())
    }

    /// A message of these levels that claims to be the whole book.
    pub(crate) fn whole(&self, bids: Levels<'_>, asks: Levels<'_>, checksum: u32) -> String {
        if matches!(self.venue.rules().join, JoinRule::Rest(_)) {
            return format!("{{\"lastUpdateId\":{},\"bids\":[{}],\"asks\":[{}]}}", self.id, pairs(bids), pairs(asks));
        }
        self.frame(true, [bids, asks], self.id.wrapping_sub(1), checksum)
    }

    /// The next change of the book.
    pub(crate) fn delta(&mut self, bids: Levels<'_>, asks: Levels<'_>) -> String {
        self.apply([bids, asks]);
        if self.venue.rules().join == JoinRule::Whole {
            return self.snapshot();
        }
        let previous = self.id;
        self.id += 1;
        self.frame(false, [bids, asks], previous, self.checksum())
    }

    /// As [`delta`](Self::delta), written in another way.
    pub(crate) fn written(&mut self, written: [Levels<'_>; 2], meant: [Levels<'_>; 2]) -> String {
        self.delta(meant[0], meant[1]);
        self.frame(self.venue.rules().join == JoinRule::Whole, written, self.id - 1, self.checksum())
    }

    /// A message that follows update `previous`.
    pub(crate) fn frame(&self, is_whole: bool, sides: [Levels<'_>; 2], previous: u64, checksum: u32) -> String {
        let (id, ms, symbol, [bids, asks]) = (self.id, self.ms, self.symbol, sides);
        match self.venue {
            Venue::BinanceSpot | Venue::BinanceUsdm | Venue::BinanceCoinm => {
                let (time, chain) = if self.venue == Venue::BinanceSpot {
                    (String::new(), String::new())
                } else {
                    (format!("\"T\":{ms},"), format!("\"pu\":{previous},"))
                };
                let head = format!("\"e\":\"depthUpdate\",\"E\":{ms},{time}\"s\":\"{symbol}\"");
                format!("{{{head},\"U\":{id},\"u\":{id},{chain}\"b\":[{}],\"a\":[{}]}}", pairs(bids), pairs(asks))
            }
            Venue::BybitSpot | Venue::BybitLinear | Venue::BybitInverse | Venue::BybitOption => {
                let kind = if is_whole { "snapshot" } else { "delta" };
                let (b, a) = (pairs(bids), pairs(asks));
                let data = format!("{{\"s\":\"{symbol}\",\"b\":[{b}],\"a\":[{a}],\"u\":{id},\"seq\":9}}");
                let head = format!("\"topic\":\"orderbook.50.{symbol}\",\"type\":\"{kind}\",\"ts\":{ms}");
                format!("{{{head},\"data\":{data},\"cts\":{ms}}}")
            }
            Venue::Okx => {
                let action = if is_whole { "snapshot" } else { "update" };
                let previous = if is_whole { -1 } else { previous as i64 };
                let level = |(px, qty): &(&str, &str)| format!("[\"{px}\",\"{qty}\",\"0\",\"1\"]");
                let (a, b) = (listed(asks, level), listed(bids, level));
                let numbers = format!("\"checksum\":{},\"prevSeqId\":{previous},\"seqId\":{id}", checksum as i32);
                let arg = format!("{{\"channel\":\"books\",\"instId\":\"{symbol}\"}}");
                let data = format!("{{\"asks\":[{a}],\"bids\":[{b}],\"ts\":\"{ms}\",{numbers}}}");
                format!("{{\"arg\":{arg},\"action\":\"{action}\",\"data\":[{data}]}}")
            }
            Venue::Kraken | Venue::KrakenDerivatives => {
                let kind = if is_whole { "snapshot" } else { "update" };
                let level = |(px, qty): &(&str, &str)| format!("{{\"price\":{px},\"qty\":{qty}}}");
                let (b, a) = (listed(bids, level), listed(asks, level));
                let end = format!("\"checksum\":{checksum},\"timestamp\":\"{TIME}\"");
                let data = format!("{{\"symbol\":\"{symbol}\",\"bids\":[{b}],\"asks\":[{a}],{end}}}");
                format!("{{\"channel\":\"book\",\"type\":\"{kind}\",\"data\":[{data}]}}")
            }
            Venue::CoinbaseExchange => self.coinbase_exchange(is_whole, sides),
            Venue::CoinbaseAdvanced => self.coinbase_advanced(is_whole, sides),
            Venue::Hyperliquid => {
                let level = |(px, qty): &(&str, &str)| format!("{{\"px\":\"{px}\",\"sz\":\"{qty}\",\"n\":1}}");
                let (b, a) = (listed(bids, level), listed(asks, level));
                let data = format!("{{\"coin\":\"{symbol}\",\"time\":{ms},\"levels\":[[{b}],[{a}]]}}");
                format!("{{\"channel\":\"l2Book\",\"data\":{data}}}")
            }
            Venue::Deribit => {
                let level = |(px, qty): &(&str, &str)| {
                    let is_gone = qty.bytes().all(|byte| matches!(byte, b'0' | b'.')) && !qty.is_empty();
                    format!("[\"{}\",{px},{qty}]", if is_gone { "delete" } else { "new" })
                };
                let (b, a) = (listed(bids, level), listed(asks, level));
                let kind = if is_whole { "snapshot" } else { "change" };
                let chain = if is_whole { String::new() } else { format!("\"prev_change_id\":{previous},") };
                let head = format!("\"type\":\"{kind}\",\"timestamp\":{ms},{chain}\"instrument_name\":\"{symbol}\"");
                let data = format!("{{{head},\"change_id\":{id},\"bids\":[{b}],\"asks\":[{a}]}}");
                let topic = format!("\"channel\":\"book.{symbol}.raw\"");
                format!("{{\"jsonrpc\":\"2.0\",\"method\":\"subscription\",\"params\":{{{topic},\"data\":{data}}}}}")
            }
        }
    }

    fn coinbase_exchange(&self, is_whole: bool, [bids, asks]: [Levels<'_>; 2]) -> String {
        let symbol = self.symbol;
        if is_whole {
            let (b, a) = (pairs(bids), pairs(asks));
            return format!("{{\"type\":\"snapshot\",\"product_id\":\"{symbol}\",\"bids\":[{b}],\"asks\":[{a}]}}");
        }
        let of =
            |side: &str, levels: Levels<'_>| listed(levels, |(px, qty)| format!("[\"{side}\",\"{px}\",\"{qty}\"]"));
        let changes = joined(of("buy", bids), of("sell", asks));
        let head = format!("\"type\":\"l2update\",\"product_id\":\"{symbol}\"");
        format!("{{{head},\"changes\":[{changes}],\"time\":\"{TIME}\"}}")
    }

    fn coinbase_advanced(&self, is_whole: bool, [bids, asks]: [Levels<'_>; 2]) -> String {
        let (id, symbol) = (self.id, self.symbol);
        let kind = if is_whole { "snapshot" } else { "update" };
        let of = |side: &str, levels: Levels<'_>| {
            listed(levels, |(px, qty)| {
                let value = format!("\"price_level\":\"{px}\",\"new_quantity\":\"{qty}\"");
                format!("{{\"side\":\"{side}\",\"event_time\":\"{TIME}\",{value}}}")
            })
        };
        let updates = joined(of("bid", bids), of("offer", asks));
        let event = format!("{{\"type\":\"{kind}\",\"product_id\":\"{symbol}\",\"updates\":[{updates}]}}");
        let head = format!("\"channel\":\"l2_data\",\"client_id\":\"\",\"timestamp\":\"{TIME}\"");
        format!("{{{head},\"sequence_num\":{id},\"events\":[{event}]}}")
    }
}

fn listed(levels: Levels<'_>, write: impl Fn(&(&str, &str)) -> String) -> String {
    levels.iter().map(write).collect::<Vec<_>>().join(",")
}

fn pairs(levels: Levels<'_>) -> String {
    listed(levels, |(px, qty)| format!("[\"{px}\",\"{qty}\"]"))
}

fn joined(one: String, two: String) -> String {
    let mut both = one;
    if !both.is_empty() && !two.is_empty() {
        both.push(',');
    }
    write!(both, "{two}").unwrap();
    both
}

/// An engine with two books of a venue, of which the first one is followed.
pub(crate) struct Rig {
    pub(crate) engine: Engine,
    pub(crate) wire: Wire,
    pub(crate) id: InstrumentId,
    pub(crate) connection: ConnectionId,
    pub(crate) now: Nanos,
}

impl Rig {
    pub(crate) fn new(venue: Venue) -> Self {
        Self::with(venue, Decimal::new(1, 1), Decimal::new(1, 3), 25)
    }

    pub(crate) fn with(venue: Venue, tick_size: Decimal, lot_size: Decimal, depth: usize) -> Self {
        let mut engine = Engine::new(Capacity { instruments: 4, pages: 256, ..Capacity::default() });
        let now = Nanos::from_millis(MS);
        let connection = engine.open_connection(venue, now).unwrap();
        for symbol in [SYMBOL, "ETHUSDT"] {
            let spec = InstrumentSpec {
                venue,
                symbol: Symbol::new(symbol.as_bytes()).unwrap(),
                tick_size,
                lot_size,
                depth_max: venue.rules().truncates.then_some(depth),
                candles: CandleSource::Trades,
            };
            let id = engine.add_instrument(spec).unwrap();
            engine.subscribe(connection, id, now).unwrap();
        }
        Self { engine, wire: Wire::new(venue), id: InstrumentId(0), connection, now }
    }

    /// With a book of these levels that is as good as the venue allows.
    pub(crate) fn joined(venue: Venue, bids: Levels<'_>, asks: Levels<'_>) -> Self {
        let mut rig = Self::new(venue);
        rig.join(bids, asks);
        rig
    }

    /// With the usual book.
    pub(crate) fn live(venue: Venue) -> Self {
        Self::joined(venue, BIDS, ASKS)
    }

    pub(crate) fn join(&mut self, bids: Levels<'_>, asks: Levels<'_>) {
        self.wire.delta(bids, asks);
        self.requests(50);
        self.answer();
        assert_eq!(self.proof(), self.best_proof(), "{:?}", self.wire.venue);
        assert_eq!(self.requests(50), []);
    }

    /// The venue answers the request for its book, and one more update comes.
    pub(crate) fn answer(&mut self) {
        let whole = self.wire.snapshot();
        if matches!(self.wire.venue.rules().join, JoinRule::Rest(_)) {
            self.engine.handle_snapshot(self.now, self.id, whole.as_bytes(), &mut Off).unwrap();
        } else {
            self.frame(&whole).unwrap();
        }
        let next = self.wire.delta(&[], &[]);
        self.frame(&next).unwrap();
    }

    pub(crate) fn best_proof(&self) -> Proof {
        let rules = self.wire.venue.rules();
        match (self.wire.venue, rules.numbering) {
            (Venue::Kraken | Venue::KrakenDerivatives, _) => Proof::Crc,
            (Venue::Okx, _) if self.wire.sends_checksums => Proof::Crc,
            (_, Numbering::None) => Proof::Unverified,
            (_, _) => Proof::Sequence,
        }
    }

    pub(crate) fn frame(&mut self, frame: &str) -> Result<Applied, DropReason> {
        self.now = self.now.saturating_add(Nanos(1000));
        let result = self.engine.handle_frame(self.now, self.connection, frame.as_bytes(), &mut Off);
        assert!(self.counters().closes());
        result
    }

    pub(crate) fn delta(&mut self, bids: Levels<'_>, asks: Levels<'_>) -> Result<Applied, DropReason> {
        let frame = self.wire.delta(bids, asks);
        self.frame(&frame)
    }

    /// What the engine asks for of the first book and its connection within so many milliseconds.
    pub(crate) fn requests(&mut self, ms: u64) -> Vec<Request> {
        let mut found = Vec::new();
        for _ in 0..ms.div_ceil(10) {
            self.now = self.now.saturating_add(Nanos::from_millis(10));
            found.extend(std::iter::from_fn(|| self.engine.poll_request(self.now)));
        }
        let id = self.id;
        found.retain(|request| match request {
            Request::FetchSnapshot { instrument } | Request::Resubscribe { instrument, .. } => *instrument == id,
            Request::Reconnect { .. } | Request::Pong { .. } | Request::Replace { .. } => true,
        });
        found
    }

    /// The request for a new book.
    pub(crate) fn resync(&self) -> Vec<Request> {
        let (instrument, connection) = (self.id, self.connection);
        if matches!(self.wire.venue.rules().join, JoinRule::Rest(_)) {
            vec![Request::FetchSnapshot { instrument }]
        } else {
            vec![Request::Resubscribe { instrument, connection }]
        }
    }

    /// The book is `Stale` already, exactly one new one is asked for, and it is as good as the one before.
    pub(crate) fn is_lost_and_found(&mut self, what: &str) {
        let venue = self.wire.venue;
        assert_eq!(self.proof(), Proof::Stale, "{venue:?} {what}");
        let resyncs = self.counters().resyncs;
        let frame = self.wire.delta(&[], &[]);
        let _ = self.frame(&frame);
        if venue.rules().join != JoinRule::Whole {
            assert_eq!(self.proof(), Proof::Stale, "{venue:?} {what}");
            assert_eq!(self.requests(5000), self.resync(), "{venue:?} {what}");
            self.answer();
        }
        assert_eq!(self.proof(), self.best_proof(), "{venue:?} {what}");
        assert_eq!(self.counters().resyncs, resyncs, "{venue:?} {what}");
    }

    pub(crate) fn top(&self) -> TopOfBook {
        self.engine.board().top_of_book(self.id).unwrap()
    }

    pub(crate) fn proof(&self) -> Proof {
        self.top().status.proof
    }

    /// Best bid and offer in steps.
    pub(crate) fn touch(&self) -> [Option<(i64, i64)>; 2] {
        let top = self.top();
        [top.bid, top.ask].map(|level| level.map(|level| (level.px.0, level.qty.0)))
    }

    /// The published levels of both sides in steps, best first.
    pub(crate) fn levels(&self) -> [Vec<(i64, i64)>; 2] {
        let depth = self.engine.board().depth(self.id).unwrap();
        [depth.bids(), depth.asks()].map(|side| side.iter().map(|level| (level.px.0, level.qty.0)).collect())
    }

    pub(crate) fn counters(&self) -> &VenueCounters {
        self.engine.counters().venue(self.wire.venue)
    }
}
