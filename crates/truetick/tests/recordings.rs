//! The committed recordings of the simulator, through the engine: every oracle that they carry fits.

#![allow(clippy::unwrap_used, reason = "a test may end where it fails")]

use std::path::PathBuf;

use tt_journal::{CbcapReader, GzLines, Record};
use tt_market::{
    CandleSource, Capacity, Decimal, Engine, InstrumentSpec, Proof, Request, Symbol, Venue, VenueCounters,
};
use tt_meter::Off;
use tt_model::{InstrumentId, Nanos};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testkit/recordings").join(name)
}

/// Replays `records` of one instrument, and returns the venue's counters and the book's last proof.
fn replay(venue: Venue, symbol: &str, steps: [Decimal; 2], records: Vec<Record>) -> (VenueCounters, Proof) {
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
    for record in records {
        let now = Nanos(record.ts_ns);
        let outcome = if record.payload.starts_with(b"{\"lastUpdateId\"") {
            engine.handle_snapshot(now, id, &record.payload, &mut Off)
        } else {
            engine.handle_frame(now, connection, &record.payload, &mut Off)
        };
        assert!(outcome.is_ok(), "{outcome:?}: {}", String::from_utf8_lossy(&record.payload));
        assert_eq!(engine.poll_request(now), None);
    }
    (*engine.counters().venue(venue), engine.board().top_of_book(id).unwrap().standing.proof)
}

#[test]
fn binance_recordings_fit_every_best_quote() {
    for (venue, name, steps, quotes) in [
        (Venue::BinanceSpot, "binance_spot_btcusdt.gz", [Decimal::new(1, 2), Decimal::new(1, 5)], 450),
        (Venue::BinanceUsdm, "binance_usdm_btcusdt.gz", [Decimal::new(1, 1), Decimal::new(1, 3)], 429),
    ] {
        let records = GzLines::open(&path(name)).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
        let (counters, proof) = replay(venue, "BTCUSDT", steps, records);
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
    let (counters, proof) = replay(Venue::Kraken, "BTC/USD", steps, records.unwrap());
    assert!(counters.closes() && counters.drops_total() == 0, "{counters:?}");
    assert_eq!((counters.crc_matches, counters.resyncs, proof), (235, 0, Proof::Crc));
}
