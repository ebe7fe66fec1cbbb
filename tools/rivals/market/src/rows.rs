//! The rows, and who takes part in which.

use crate::books::barter::Barter;
use crate::books::hftbacktest::Hftbacktest;
use crate::books::nautilus::Nautilus;
use crate::books::plain::{SerdeBTree, SonicVec};
use crate::books::{self, Book, Timing};
use crate::gauge::Gauge;
use crate::input::{Extent, Feed, Verified};
use crate::tickers::{Borrowed, Candled, Entry, Map, Nested, Seen, Shared, TwoStrings, Write};
use crate::{kraken, tickers, truetick};
use ::hftbacktest::depth::{BTreeMarketDepth, HashMapMarketDepth, ROIVectorMarketDepth};
use anyhow::bail;

/// What a row does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// With a candle in the maps as in truetick, or without.
    Ticker {
        is_many: bool,
        has_candle: bool,
    },
    Delta,
    Snapshot,
    SnapshotChecked,
    SnapshotBytes,
    Bytes,
    Verified,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) work: Work,
    /// What the nanoseconds are of.
    pub(crate) unit: &'static str,
    pub(crate) what: &'static str,
}

/// All rows in the order of the report.
pub(crate) const ALL: [Row; 10] = [
    Row {
        name: "ticker_write_100",
        work: Work::Ticker { is_many: false, has_candle: false },
        unit: "ticker",
        what: "a parsed best bid and offer into the state of one of 100 instruments in no order; truetick checks its \
               number, mirrors a candle of one minute and publishes both",
    },
    Row {
        name: "ticker_write_20000",
        work: Work::Ticker { is_many: true, has_candle: false },
        unit: "ticker",
        what: "the same with 20,000 instruments, beyond the nearer caches",
    },
    Row {
        name: "ticker_candle_100",
        work: Work::Ticker { is_many: false, has_candle: true },
        unit: "ticker",
        what: "ticker_write_100 where the maps mirror a candle of one minute too, behind their lock",
    },
    Row {
        name: "ticker_candle_20000",
        work: Work::Ticker { is_many: true, has_candle: true },
        unit: "ticker",
        what: "the same with 20,000 instruments",
    },
    Row {
        name: "book_delta",
        work: Work::Delta,
        unit: "level",
        what: "parsed depth frames into the book, the best levels read after each; truetick checks the chain and publishes \
               ten levels with their proof",
    },
    Row {
        name: "snapshot",
        work: Work::Snapshot,
        unit: "snapshot",
        what: "a parsed snapshot in the place of the book; truetick publishes it; where the parsed form is the book's own, \
               it is a copy",
    },
    Row {
        name: "snapshot_checked",
        work: Work::SnapshotChecked,
        unit: "snapshot",
        what: "the same where everybody does what truetick does: the order, steps and quantities of the levels are checked, \
               and the book is visible to readers on other threads (the others': behind a RwLock)",
    },
    Row {
        name: "snapshot_bytes",
        work: Work::SnapshotBytes,
        unit: "snapshot",
        what: "the body of a snapshot as it came to the visible book",
    },
    Row {
        name: "bytes_to_book",
        work: Work::Bytes,
        unit: "frame",
        what: "depth frames as they came from the socket to the visible book",
    },
    Row {
        name: "verified_frame",
        work: Work::Verified,
        unit: "frame",
        what: "Kraken's frames to a visible book that agrees with the frame's checksum",
    },
];

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contestant {
    Truetick,
    TruetickAgain,
    TwoStrings,
    MapOfMaps,
    FastMap,
    SerdeBTree,
    SonicVec,
    Nautilus,
    HftHash,
    HftBTree,
    HftVector,
    Barter,
}

pub(crate) const CONTESTANTS: [Contestant; 12] = [
    Contestant::Truetick,
    Contestant::TruetickAgain,
    Contestant::TwoStrings,
    Contestant::MapOfMaps,
    Contestant::FastMap,
    Contestant::SerdeBTree,
    Contestant::SonicVec,
    Contestant::Nautilus,
    Contestant::HftHash,
    Contestant::HftBTree,
    Contestant::HftVector,
    Contestant::Barter,
];

impl Contestant {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Truetick => "truetick",
            Self::TruetickAgain => "truetick_again",
            Self::TwoStrings => "two_strings",
            Self::MapOfMaps => "map_of_maps",
            Self::FastMap => "fast_map",
            Self::SerdeBTree => "serde_btree",
            Self::SonicVec => "sonic_vec",
            Self::Nautilus => "nautilus",
            Self::HftHash => "hft_hash",
            Self::HftBTree => "hft_btree",
            Self::HftVector => "hft_vector",
            Self::Barter => "barter",
        }
    }

    /// What it is, for the head of a file of runs.
    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::Truetick => "tt_market::Engine, the shipped one",
            Self::TruetickAgain => "the same once more",
            Self::TwoStrings => {
                "the published shape of Melaya's cache: a HashMap keyed by two Strings, behind a RwLock"
            }
            Self::MapOfMaps => "the same without a key for each write: a HashMap of HashMaps, behind a RwLock",
            Self::FastMap => {
                "hashbrown 0.17 keyed by two Strings, with its own fast hash and without a key for each write, behind a RwLock"
            }
            Self::SerdeBTree => "serde_json 1.0 into borrowed texts, integers in a BTreeMap a side",
            Self::SonicVec => "sonic-rs 0.5 into borrowed texts, integers in a sorted Vec a side",
            Self::Nautilus => "nautilus-model 0.57, OrderBook L2_MBP, behind serde_json and its own number types",
            Self::HftHash => "hftbacktest 0.9, HashMapMarketDepth, behind serde_json and f64",
            Self::HftBTree => "hftbacktest 0.9, BTreeMarketDepth, behind serde_json and f64",
            Self::HftVector => {
                "hftbacktest 0.9, ROIVectorMarketDepth over just the prices of the session, known beforehand, behind \
                 serde_json and f64"
            }
            Self::Barter => "barter-data 0.13, its OrderBook behind its own types for Binance's frames",
        }
    }

    pub(crate) const fn takes_part(self, work: Work) -> bool {
        match self {
            Self::Truetick | Self::TruetickAgain => true,
            Self::TwoStrings | Self::MapOfMaps | Self::FastMap => matches!(work, Work::Ticker { .. }),
            Self::SerdeBTree | Self::SonicVec => !matches!(work, Work::Ticker { .. }),
            Self::Nautilus | Self::HftHash | Self::HftBTree | Self::HftVector | Self::Barter => {
                !matches!(work, Work::Ticker { .. } | Work::Verified)
            }
        }
    }

    pub(crate) const fn is_rival(self) -> bool {
        !matches!(self, Self::Truetick | Self::TruetickAgain)
    }
}

/// What all runs are of.
pub(crate) struct Field {
    pub(crate) session: Feed,
    pub(crate) verified: Verified,
    few: TickerField,
    many: TickerField,
}

/// Setting: instruments of the two ticker rows.
const FEW: usize = 100;
const MANY: usize = 20_000;

/// The same tickers in every shape.
struct TickerField {
    symbols: Vec<String>,
    seen: Vec<Option<Seen>>,
    writes: Vec<Write>,
    truetick: truetick::Tickers,
    plain: Maps<Entry>,
    candled: Maps<Candled>,
}

/// The maps, of one kind of value.
struct Maps<V> {
    two_strings: Shared<TwoStrings<V>>,
    map_of_maps: Shared<Nested<V>>,
    fast_map: Shared<Borrowed<V>>,
}

impl<V> Maps<V>
where
    TwoStrings<V>: Map,
    Nested<V>: Map,
    Borrowed<V>: Map,
{
    fn new(symbols: &[String]) -> Self {
        Self { two_strings: Shared::new(symbols), map_of_maps: Shared::new(symbols), fast_map: Shared::new(symbols) }
    }

    fn run(
        &self,
        contestant: Contestant,
        writes: &[Write],
        (symbols, seen): (&[String], &[Option<Seen>]),
        gauge: &Gauge,
    ) -> anyhow::Result<Timing> {
        match contestant {
            Contestant::TwoStrings => self.two_strings.run(writes, symbols, seen, gauge),
            Contestant::MapOfMaps => self.map_of_maps.run(writes, symbols, seen, gauge),
            Contestant::FastMap => self.fast_map.run(writes, symbols, seen, gauge),
            Contestant::Truetick
            | Contestant::TruetickAgain
            | Contestant::SerdeBTree
            | Contestant::SonicVec
            | Contestant::Nautilus
            | Contestant::HftHash
            | Contestant::HftBTree
            | Contestant::HftVector
            | Contestant::Barter => bail!("it is no map"),
        }
    }
}

impl TickerField {
    fn new(seed: u64, instruments: usize, count: usize) -> anyhow::Result<Self> {
        let (symbols, tickers) = (tickers::symbols(instruments), tickers::tickers(seed, instruments, count));
        Ok(Self {
            truetick: truetick::Tickers::new(&symbols, &tickers)?,
            plain: Maps::new(&symbols),
            candled: Maps::new(&symbols),
            seen: tickers::seen(&tickers, instruments),
            writes: tickers::writes(&symbols, &tickers),
            symbols,
        })
    }

    fn run(&mut self, contestant: Contestant, has_candle: bool, gauge: &Gauge) -> anyhow::Result<Timing> {
        let Self { symbols, seen, writes, truetick, plain, candled } = self;
        if matches!(contestant, Contestant::Truetick | Contestant::TruetickAgain) {
            return truetick.run(seen, gauge);
        }
        if has_candle {
            candled.run(contestant, writes, (symbols, seen), gauge)
        } else {
            plain.run(contestant, writes, (symbols, seen), gauge)
        }
    }
}

impl Field {
    /// # Errors
    /// The sessions cannot be read.
    pub(crate) fn new(seed: u64, extent: Extent) -> anyhow::Result<Self> {
        Ok(Self {
            session: Feed::read(extent)?,
            verified: Verified::read(extent)?,
            few: TickerField::new(seed, FEW, extent.tickers)?,
            many: TickerField::new(seed, MANY, extent.tickers)?,
        })
    }

    /// One run; its end is checked.
    ///
    /// # Errors
    /// The contestant's state at the end is not the true one, or it does not take part.
    pub(crate) fn run(&mut self, work: Work, contestant: Contestant, gauge: &Gauge) -> anyhow::Result<Timing> {
        let Self { session, verified, few, many } = self;
        match (contestant, work) {
            (contestant, Work::Ticker { is_many, has_candle }) => {
                if is_many { many } else { few }.run(contestant, has_candle, gauge)
            }
            (Contestant::Truetick | Contestant::TruetickAgain, Work::Delta) => truetick::delta(session, gauge),
            (Contestant::Truetick | Contestant::TruetickAgain, Work::Snapshot | Work::SnapshotChecked) => {
                truetick::snapshot(session, truetick::From::Parsed, gauge)
            }
            (Contestant::Truetick | Contestant::TruetickAgain, Work::SnapshotBytes) => {
                truetick::snapshot(session, truetick::From::Bytes, gauge)
            }
            (Contestant::Truetick | Contestant::TruetickAgain, Work::Bytes) => truetick::bytes(session, gauge),
            (Contestant::Truetick | Contestant::TruetickAgain, Work::Verified) => truetick::verified(verified, gauge),
            (Contestant::SerdeBTree, Work::Verified) => kraken::verified::<kraken::SerdeBTree>(verified, gauge),
            (Contestant::SonicVec, Work::Verified) => kraken::verified::<kraken::SonicVec>(verified, gauge),
            (Contestant::SerdeBTree, work) => book::<SerdeBTree>(work, session, gauge),
            (Contestant::SonicVec, work) => book::<SonicVec>(work, session, gauge),
            (Contestant::Nautilus, work) => book::<Nautilus>(work, session, gauge),
            (Contestant::HftHash, work) => book::<Hftbacktest<HashMapMarketDepth>>(work, session, gauge),
            (Contestant::HftBTree, work) => book::<Hftbacktest<BTreeMarketDepth>>(work, session, gauge),
            (Contestant::HftVector, work) => book::<Hftbacktest<ROIVectorMarketDepth>>(work, session, gauge),
            (Contestant::Barter, work) => book::<Barter>(work, session, gauge),
            (Contestant::TwoStrings | Contestant::MapOfMaps | Contestant::FastMap, _) => bail!("it keeps tickers only"),
        }
    }

    /// What the sessions are, for the head of a file of runs.
    pub(crate) fn notes(&self) -> [String; 3] {
        let Feed { name, live, levels, end, .. } = &self.session;
        let per_frame = *levels as f64 / live.len() as f64;
        let frame_len = live.iter().map(|record| record.payload.len()).sum::<usize>() as f64 / live.len() as f64;
        [
            format!(
                "session: {name}, {} depth frames of {frame_len:.0} bytes with {per_frame:.1} levels in the mean; the book at the \
                 end has {} bids and {} offers",
                live.len(),
                end[0].len(),
                end[1].len()
            ),
            format!("verified session: {}, {} frames", self.verified.name, self.verified.frames.len() - 1),
            format!("tickers: {} a run", self.many.writes.len()),
        ]
    }
}

fn book<B: Book>(work: Work, session: &Feed, gauge: &Gauge) -> anyhow::Result<Timing> {
    match work {
        Work::Delta => books::delta::<B>(session, gauge),
        Work::Snapshot => books::snapshot::<B>(session, gauge),
        Work::SnapshotChecked => books::snapshot_checked::<B>(session, gauge),
        Work::SnapshotBytes => books::snapshot_bytes::<B>(session, gauge),
        Work::Bytes => books::bytes::<B>(session, gauge),
        Work::Ticker { .. } | Work::Verified => bail!("it keeps books only"),
    }
}
