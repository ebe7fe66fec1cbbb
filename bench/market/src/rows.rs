//! The rows, and who takes part in which.

use ::hftbacktest::depth::{BTreeMarketDepth, HashMapMarketDepth, ROIVectorMarketDepth};
use anyhow::bail;
use tt_meter::Calibration;

use crate::books::barter::Barter;
use crate::books::hftbacktest::Hftbacktest;
use crate::books::nautilus::Nautilus;
use crate::books::plain::{SerdeBTree, SonicVec};
use crate::books::{self, Book, Timing};
use crate::input::{Feed, Verified};
use crate::tickers::{Nested, Ticker, TwoStrings};
use crate::{kraken, tickers, truetick};

/// What a row does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Ticker { is_many: bool },
    Delta,
    Snapshot,
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
pub(crate) const ALL: [Row; 7] = [
    Row {
        name: "ticker_write_100",
        work: Work::Ticker { is_many: false },
        unit: "ticker",
        what: "a parsed best bid and offer into the state of one of 100 instruments in no order; truetick checks its \
               number, mirrors a candle of one minute and publishes both",
    },
    Row {
        name: "ticker_write_20000",
        work: Work::Ticker { is_many: true },
        unit: "ticker",
        what: "the same with 20,000 instruments, beyond the nearer caches",
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
    SerdeBTree,
    SonicVec,
    Nautilus,
    HftHash,
    HftBTree,
    HftVector,
    Barter,
}

pub(crate) const CONTESTANTS: [Contestant; 11] = [
    Contestant::Truetick,
    Contestant::TruetickAgain,
    Contestant::TwoStrings,
    Contestant::MapOfMaps,
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
            Self::TwoStrings | Self::MapOfMaps => matches!(work, Work::Ticker { .. }),
            Self::SerdeBTree | Self::SonicVec => !matches!(work, Work::Ticker { .. }),
            Self::Nautilus | Self::HftHash | Self::HftBTree | Self::HftVector | Self::Barter => {
                matches!(work, Work::Delta | Work::Snapshot | Work::SnapshotBytes | Work::Bytes)
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
    tickers: Vec<Ticker>,
    truetick: truetick::Tickers,
    two_strings: TwoStrings,
    map_of_maps: Nested,
}

impl TickerField {
    fn new(seed: u64, instruments: usize) -> anyhow::Result<Self> {
        let (symbols, tickers) = (tickers::symbols(instruments), tickers::tickers(seed, instruments));
        Ok(Self {
            truetick: truetick::Tickers::new(&symbols, &tickers)?,
            two_strings: TwoStrings::new(&symbols, &tickers),
            map_of_maps: Nested::new(&symbols, &tickers),
            tickers,
        })
    }

    fn run(&mut self, contestant: Contestant, calibration: &Calibration) -> anyhow::Result<Timing> {
        match contestant {
            Contestant::Truetick | Contestant::TruetickAgain => self.truetick.run(&self.tickers, calibration),
            Contestant::TwoStrings => self.two_strings.run(calibration),
            Contestant::MapOfMaps => self.map_of_maps.run(calibration),
            Contestant::SerdeBTree
            | Contestant::SonicVec
            | Contestant::Nautilus
            | Contestant::HftHash
            | Contestant::HftBTree
            | Contestant::HftVector
            | Contestant::Barter => bail!("it keeps books only"),
        }
    }
}

impl Field {
    /// # Errors
    /// The sessions cannot be read.
    pub(crate) fn new(seed: u64) -> anyhow::Result<Self> {
        Ok(Self {
            session: Feed::read()?,
            verified: Verified::read()?,
            few: TickerField::new(seed, FEW)?,
            many: TickerField::new(seed, MANY)?,
        })
    }

    /// One run; its end is checked.
    ///
    /// # Errors
    /// The contestant's state at the end is not the true one, or it does not take part.
    pub(crate) fn run(
        &mut self,
        work: Work,
        contestant: Contestant,
        calibration: &Calibration,
    ) -> anyhow::Result<Timing> {
        let Self { session, verified, few, many } = self;
        match (contestant, work) {
            (contestant, Work::Ticker { is_many }) => if is_many { many } else { few }.run(contestant, calibration),
            (Contestant::Truetick | Contestant::TruetickAgain, Work::Delta) => truetick::delta(session, calibration),
            (Contestant::Truetick | Contestant::TruetickAgain, Work::Snapshot) => {
                truetick::snapshot(session, truetick::From::Parsed, calibration)
            }
            (Contestant::Truetick | Contestant::TruetickAgain, Work::SnapshotBytes) => {
                truetick::snapshot(session, truetick::From::Bytes, calibration)
            }
            (Contestant::Truetick | Contestant::TruetickAgain, Work::Bytes) => truetick::bytes(session, calibration),
            (Contestant::Truetick | Contestant::TruetickAgain, Work::Verified) => {
                truetick::verified(verified, calibration)
            }
            (Contestant::SerdeBTree, Work::Verified) => kraken::verified::<kraken::SerdeBTree>(verified, calibration),
            (Contestant::SonicVec, Work::Verified) => kraken::verified::<kraken::SonicVec>(verified, calibration),
            (Contestant::SerdeBTree, work) => book::<SerdeBTree>(work, session, calibration),
            (Contestant::SonicVec, work) => book::<SonicVec>(work, session, calibration),
            (Contestant::Nautilus, work) => book::<Nautilus>(work, session, calibration),
            (Contestant::HftHash, work) => book::<Hftbacktest<HashMapMarketDepth>>(work, session, calibration),
            (Contestant::HftBTree, work) => book::<Hftbacktest<BTreeMarketDepth>>(work, session, calibration),
            (Contestant::HftVector, work) => book::<Hftbacktest<ROIVectorMarketDepth>>(work, session, calibration),
            (Contestant::Barter, work) => book::<Barter>(work, session, calibration),
            (Contestant::TwoStrings | Contestant::MapOfMaps, _) => bail!("it keeps tickers only"),
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
            format!("tickers: {} a run", self.many.tickers.len()),
        ]
    }
}

fn book<B: Book>(work: Work, session: &Feed, calibration: &Calibration) -> anyhow::Result<Timing> {
    match work {
        Work::Delta => books::delta::<B>(session, calibration),
        Work::Snapshot => books::snapshot::<B>(session, calibration),
        Work::SnapshotBytes => books::snapshot_bytes::<B>(session, calibration),
        Work::Bytes => books::bytes::<B>(session, calibration),
        Work::Ticker { .. } | Work::Verified => bail!("it keeps books only"),
    }
}
