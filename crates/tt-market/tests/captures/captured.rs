//! Captured frames in memory, and an engine that is fed with them.

use std::io::Read;
use std::path::Path;
use testkit::require_captures;
use tt_journal::{CbcapReader, GzLines, Record};
use tt_market::DropReason;
use tt_market::board::{Board, TopOfBook};
use tt_market::candle::CandleSource;
use tt_market::counters::VenueCounters;
use tt_market::{Applied, Capacity, ConnectionId, Engine, InstrumentSpec, Request};
use tt_meter::Off;
use tt_model::{Decimal, InstrumentId, Nanos};
use tt_venue::{Symbol, Venue};

/// One capture: what was subscribed, and the frames in the order of their arrival.
pub(crate) struct Capture {
    pub(crate) specs: Vec<InstrumentSpec>,
    pub(crate) frames: Vec<Record>,
}

impl Capture {
    pub(crate) fn require_usdm() -> Option<Self> {
        let spec = binance(Venue::BinanceUsdm, Decimal::new(1, 1), Decimal::new(1, 3));
        Some(Self { specs: vec![spec], frames: gz(&require_captures()?, &["binance/usdm_btcusdt_20240808.gz"]) })
    }

    pub(crate) fn require_spot() -> Option<Self> {
        // Fees and dust leave quantities finer than the order step of 0.00001 in the book.
        let spec = binance(Venue::BinanceSpot, Decimal::new(1, 2), Decimal::new(1, 8));
        let files = ["binance/spot_btcusdt_20240808.gz", "binance/spot_btcusdt_20240809.gz"];
        Some(Self { specs: vec![spec], frames: gz(&require_captures()?, &files) })
    }

    pub(crate) fn require_coinm() -> Option<Self> {
        // Quantities are contracts.
        let symbol = Symbol::new(b"BTCUSD_PERP").unwrap();
        let spec = InstrumentSpec { symbol, ..binance(Venue::BinanceCoinm, Decimal::new(1, 1), Decimal::new(1, 0)) };
        Some(Self { specs: vec![spec], frames: gz(&require_captures()?, &["binance/coinm_btcusd_perp_20240808.gz"]) })
    }

    /// Frames of ten products; the specification is of one of them.
    pub(crate) fn require_coinbase_exchange() -> Option<Self> {
        let frames = received(&require_captures()?.join("coinbase/exchange_2021.ws"));
        let spec = unproved(Venue::CoinbaseExchange, "YFI-BTC", Decimal::new(1, 5), Decimal::new(1, 6));
        Some(Self { specs: vec![spec], frames })
    }

    pub(crate) fn require_hyperliquid() -> Option<Self> {
        let spec = unproved(Venue::Hyperliquid, "BTC", Decimal::new(1, 0), Decimal::new(1, 5));
        Some(Self { specs: vec![spec], frames: gz(&require_captures()?, &["hyperliquid/btcusd_20250126.gz"]) })
    }

    pub(crate) fn require_kraken(depth: usize) -> Option<Self> {
        let path = require_captures()?.join(format!("kraken/v2_btcusd_depth{depth}.cbcap"));
        let frames = CbcapReader::open(&path).unwrap().collect::<Result<_, _>>().unwrap();
        let spec = InstrumentSpec {
            venue: Venue::Kraken,
            symbol: Symbol::new(b"BTC/USD").unwrap(),
            tick_size: Decimal::new(1, 1),
            lot_size: Decimal::new(1, 8),
            depth_max: Some(depth),
            candles: CandleSource::LastPrice,
        };
        Some(Self { specs: vec![spec], frames })
    }

    /// One linear contract, 500 levels of each side.
    pub(crate) fn require_bybit() -> Option<Self> {
        let file = std::fs::File::open(require_captures()?.join("bybit/xrpusdt_ob500_20241201.zip")).unwrap();
        let mut archive = zip::ZipArchive::new(file).unwrap();
        let mut text = String::new();
        archive.by_index(0).unwrap().read_to_string(&mut text).unwrap();
        let record = |line: &str| {
            let at = line.find("\"ts\":").unwrap() + 5;
            let ms: u64 = line[at..at + 13].parse().unwrap();
            Record { ts_ns: ms * 1_000_000, payload: line.as_bytes().to_vec() }
        };
        let spec = spec(Venue::BybitLinear, "XRPUSDT", Decimal::new(1, 4), Decimal::new(1, 0), Some(500));
        Some(Self { specs: vec![spec], frames: text.lines().map(record).collect() })
    }

    /// Three instruments, numbers not yet sent and checksums still sent.
    pub(crate) fn require_okx() -> Option<Self> {
        let spec = |symbol, tick_size, lot_size| spec(Venue::Okx, symbol, tick_size, lot_size, Some(400));
        let specs = vec![
            spec("BTC-USDT", Decimal::new(1, 1), Decimal::new(1, 8)),
            spec("BTC-USD-220527", Decimal::new(1, 1), Decimal::new(1, 0)),
            spec("UNI-USD-SWAP", Decimal::new(1, 3), Decimal::new(1, 0)),
        ];
        Some(Self { specs, frames: received(&require_captures()?.join("okx/okx_2022.ws")) })
    }

    /// Ten options.
    pub(crate) fn require_deribit() -> Option<Self> {
        let frames = received(&require_captures()?.join("deribit/deribit.ws"));
        let mut names: Vec<String> = Vec::new();
        for frame in &frames {
            let frame: serde_json::Value = serde_json::from_slice(&frame.payload).unwrap();
            if let Some(name) = frame.pointer("/params/data/instrument_name").and_then(serde_json::Value::as_str)
                && !names.iter().any(|known| known == name)
            {
                names.push(name.to_owned());
            }
        }
        let spec = |name: &String| spec(Venue::Deribit, name, Decimal::new(1, 6), Decimal::new(1, 1), None);
        Some(Self { specs: names.iter().map(spec).collect(), frames })
    }

    pub(crate) fn venue(&self) -> Venue {
        self.specs[0].venue
    }
}

fn spec(venue: Venue, symbol: &str, tick_size: Decimal, lot_size: Decimal, depth_max: Option<usize>) -> InstrumentSpec {
    let symbol = Symbol::new(symbol.as_bytes()).unwrap();
    InstrumentSpec { venue, symbol, tick_size, lot_size, depth_max, candles: CandleSource::Trades }
}

fn binance(venue: Venue, tick_size: Decimal, lot_size: Decimal) -> InstrumentSpec {
    let symbol = Symbol::new(b"BTCUSDT").unwrap();
    InstrumentSpec { venue, symbol, tick_size, lot_size, depth_max: None, candles: CandleSource::BestBid }
}

pub(crate) fn unproved(venue: Venue, symbol: &str, tick_size: Decimal, lot_size: Decimal) -> InstrumentSpec {
    let symbol = Symbol::new(symbol.as_bytes()).unwrap();
    InstrumentSpec { venue, symbol, tick_size, lot_size, depth_max: None, candles: CandleSource::Trades }
}

/// The received frames of a recording by cryptofeed: `unix_seconds: json`.
fn received(path: &Path) -> Vec<Record> {
    let text = std::fs::read_to_string(path).unwrap();
    let record = |line: &str| {
        let (seconds, payload) = line.split_once(": ")?;
        let (whole, fraction) = seconds.split_once('.')?;
        let ns = format!("{fraction:0<9}").parse::<u64>().ok()?;
        let ts_ns = whole.parse::<u64>().ok()? * 1_000_000_000 + ns;
        Some(Record { ts_ns, payload: payload.as_bytes().to_vec() })
    };
    text.lines().filter_map(record).collect()
}

fn gz(folder: &Path, files: &[&str]) -> Vec<Record> {
    files.iter().flat_map(|file| GzLines::open(&folder.join(file)).unwrap()).map(Result::unwrap).collect()
}

/// An engine with all of a capture's instruments subscribed. REST snapshots that stand between the frames answer its requests.
pub(crate) struct Feed {
    pub(crate) engine: Engine,
    /// The first instrument.
    pub(crate) id: InstrumentId,
    pub(crate) connection: ConnectionId,
    board: Board,
    venue: Venue,
    /// Requests that were polled.
    pub(crate) requests: Vec<Request>,
}

impl Feed {
    pub(crate) fn new(capture: &Capture) -> Self {
        let instruments = capture.specs.len();
        let mut engine = Engine::new(Capacity { instruments, pages: 4096, backlogs: 1, ..Capacity::default() });
        let now = Nanos(capture.frames[0].ts_ns);
        let venue = capture.venue();
        let connection = engine.open_connection(venue, now).unwrap();
        for spec in &capture.specs {
            let id = engine.add_instrument(*spec).unwrap();
            engine.subscribe(connection, id, now).unwrap();
        }
        let (id, board) = (InstrumentId(0), engine.board());
        let mut feed = Self { engine, id, connection, board, venue, requests: Vec::new() };
        feed.poll(now);
        feed
    }

    pub(crate) fn run(&mut self, frames: &[Record]) {
        for frame in frames {
            let result = self.feed(frame);
            assert!(result.is_ok() || result == Err(DropReason::Superseded), "{result:?}");
        }
    }

    /// One frame or REST body; then what the engine asks for.
    pub(crate) fn feed(&mut self, frame: &Record) -> Result<Applied, DropReason> {
        let now = Nanos(frame.ts_ns);
        let result = if frame.payload.starts_with(b"{\"lastUpdateId\"") {
            self.engine.handle_snapshot(now, self.id, &frame.payload, &mut Off)
        } else {
            self.engine.handle_frame(now, self.connection, &frame.payload, &mut Off)
        };
        if result.is_err() {
            assert!(!self.top().status.proof.is_verified() || is_harmless(result));
        }
        self.poll(now);
        result
    }

    pub(crate) fn poll(&mut self, now: Nanos) {
        while let Some(request) = self.engine.poll_request(now) {
            self.requests.push(request);
        }
    }

    pub(crate) fn top(&self) -> TopOfBook {
        self.board.top_of_book(self.id).unwrap()
    }

    pub(crate) fn counters(&self) -> &VenueCounters {
        self.engine.counters().venue(self.venue)
    }
}

/// Whether a drop leaves the book as good as it was.
fn is_harmless(result: Result<Applied, DropReason>) -> bool {
    matches!(
        result,
        Err(DropReason::Duplicate
            | DropReason::Superseded
            | DropReason::UnexpectedSnapshot
            | DropReason::UnknownTopic
            | DropReason::UnknownSymbol
            | DropReason::AwaitingSnapshot
            | DropReason::Rejected
            | DropReason::OffTickSize
            | DropReason::OffLotSize)
    )
}
