//! The committed recordings of the simulator, through the engine: every oracle that they carry fits.

use std::path::PathBuf;

use tt_journal::{CbcapReader, GzLines, Record};
use tt_market::candle::CandleSource;
use tt_market::counters::VenueCounters;
use tt_market::{Capacity, Engine, InstrumentSpec, Proof, Request};
use tt_meter::Off;
use tt_model::{Decimal, InstrumentId, Nanos};
use tt_venue::{Symbol, Venue};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tools/testkit/recordings").join(name)
}

/// Replays `records` of one instrument, and returns the venue's counters, the book's last proof, and a hash over the row
/// of its published levels (FNV-1a over prices and quantities in steps).
fn replay(venue: Venue, symbol: &str, steps: [Decimal; 2], records: Vec<Record>) -> (VenueCounters, Proof, u64) {
    let mut engine = Engine::new(Capacity { instruments: 1, ..Capacity::default() });
    let spec = InstrumentSpec {
        venue,
        symbol: Symbol::new(symbol.as_bytes()).unwrap(),
        tick_size: steps[0],
        lot_size: steps[1],
        depth_max: (venue == Venue::Kraken).then_some(25),
        candles: CandleSource::Trades,
    };
    let id = engine.add_instrument(spec).unwrap();
    let start = Nanos(records[0].ts_ns);
    let connection = engine.open_connection(venue, start).unwrap();
    engine.subscribe(connection, id, start).unwrap();
    let wants = Request::FetchSnapshot { instrument: InstrumentId(0) };
    assert_eq!(engine.poll_request(start), (venue != Venue::Kraken).then_some(wants));
    let (board, mut books) = (engine.board(), 0xcbf2_9ce4_8422_2325_u64);
    for record in records {
        let now = Nanos(record.ts_ns);
        let outcome = if record.payload.starts_with(b"{\"lastUpdateId\"") {
            engine.handle_snapshot(now, id, &record.payload, &mut Off)
        } else {
            engine.handle_frame(now, connection, &record.payload, &mut Off)
        };
        assert!(outcome.is_ok(), "{outcome:?}: {}", String::from_utf8_lossy(&record.payload));
        assert_eq!(engine.poll_request(now), None);
        let depth = board.depth(id).unwrap();
        for number in depth.bids().iter().chain(depth.asks()).flat_map(|level| [level.px.0, level.qty.0]) {
            books = (books ^ number as u64).wrapping_mul(0x100_0000_01b3);
        }
    }
    (*engine.counters().venue(venue), board.top_of_book(id).unwrap().status.proof, books)
}

#[test]
fn binance_recordings_fit_every_best_quote() {
    for (venue, name, steps, quotes) in [
        (Venue::BinanceSpot, "binance_spot_btcusdt.gz", [Decimal::new(1, 2), Decimal::new(1, 5)], 450),
        (Venue::BinanceUsdm, "binance_usdm_btcusdt.gz", [Decimal::new(1, 1), Decimal::new(1, 3)], 429),
    ] {
        let records = GzLines::open(&path(name)).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
        let (counters, proof, _) = replay(venue, "BTCUSDT", steps, records);
        assert!(counters.closes() && counters.drops_total() == 0, "{counters:?}");
        assert_eq!((counters.gaps, counters.resyncs, counters.snapshots, counters.joins), (0, 0, 1, 1));
        // Three updates come before the snapshot; the quotes among them are behind the book.
        assert!((quotes - 3..=quotes).contains(&counters.oracle_matches), "{counters:?}");
        assert_eq!(counters.order_updates, 22);
        assert!(proof.is_verified(), "{proof:?}");
    }
}

#[test]
fn krakens_recording_fits_every_checksum() {
    let records = CbcapReader::open(&path("kraken_btcusd_depth25.cbcap")).unwrap().collect::<Result<Vec<_>, _>>();
    let steps = [Decimal::new(1, 1), Decimal::new(1, 8)];
    let (counters, proof, _) = replay(Venue::Kraken, "BTC/USD", steps, records.unwrap());
    assert!(counters.closes() && counters.drops_total() == 0, "{counters:?}");
    assert_eq!((counters.crc_matches, counters.resyncs, proof), (235, 0, Proof::Crc));
}

/// The rows of books as they were when the recordings were made a test: a version with other books states the reason.
#[test]
fn case_m45_recordings_make_the_books_that_they_always_made() {
    let binance = |name: &str| GzLines::open(&path(name)).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    let kraken =
        || CbcapReader::open(&path("kraken_btcusd_depth25.cbcap")).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    for _ in 0..2 {
        let steps = [Decimal::new(1, 2), Decimal::new(1, 5)];
        let spot = replay(Venue::BinanceSpot, "BTCUSDT", steps, binance("binance_spot_btcusdt.gz")).2;
        let steps = [Decimal::new(1, 1), Decimal::new(1, 3)];
        let usdm = replay(Venue::BinanceUsdm, "BTCUSDT", steps, binance("binance_usdm_btcusdt.gz")).2;
        let steps = [Decimal::new(1, 1), Decimal::new(1, 8)];
        let kraken = replay(Venue::Kraken, "BTC/USD", steps, kraken()).2;
        assert_eq!(
            [spot, usdm, kraken],
            [3_139_824_910_803_941_938, 1_435_622_585_889_523_563, 12_583_361_471_452_436_313]
        );
    }
}

/// Runs the program on a recording that ends after `len` bytes: its status and output.
fn cut(command: &str, len: usize) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.ttj");
    let bytes = std::fs::read(path("simulator.ttj")).unwrap();
    std::fs::write(&cut, &bytes[..len]).unwrap();
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_truetick"));
    let output = program.arg(command).arg(&cut).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn nothing_to_compare_or_check_is_not_success() {
    const HEADER_LEN: usize = 24;
    let (status, text) = cut("replay", HEADER_LEN);
    assert!(status == Some(2) && text.contains("nothing to compare"), "{status:?}: {text}");
    let (status, text) = cut("audit", HEADER_LEN);
    assert!(status == Some(2) && text.contains("nothing to check"), "{status:?}: {text}");
}
