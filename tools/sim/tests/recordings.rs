//! The committed recordings are what the simulator says today. `TRUETICK_RECORD=1` rewrites them.

#![allow(clippy::unwrap_used, reason = "a test may end where it fails")]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, Write as _};
use std::path::PathBuf;

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use sim::{RecordedFrame, RecordingConfig, Venue};

/// 2026-08-01 00:00:00 UTC.
const START_UNIX_US: u64 = 1_785_542_400_000_000;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testkit/recordings")
}

fn recorded(venue: Venue, steps: u64) -> Vec<RecordedFrame> {
    sim::record(&RecordingConfig { venue, seed: 1, steps, start_unix_us: START_UNIX_US, step_us: 40_000 })
}

/// One line a frame: nanoseconds and the text.
fn lines(frames: &[RecordedFrame]) -> String {
    let mut out = String::new();
    for frame in frames {
        writeln!(out, "{} {}", frame.unix_us * 1000, frame.text).unwrap();
    }
    out
}

/// A header, then for each frame a line with nanoseconds and length, the text, and a line feed.
fn cbcap(frames: &[RecordedFrame]) -> String {
    let mut out = format!("CBCAP1 kraken BTC/USD {}\n", START_UNIX_US * 1000);
    for frame in frames {
        writeln!(out, "{} {}\n{}", frame.unix_us * 1000, frame.text.len(), frame.text).unwrap();
    }
    out
}

fn rewrites() -> bool {
    std::env::var_os("TRUETICK_RECORD").is_some_and(|value| value == "1")
}

#[test]
fn binance_recordings_are_what_the_simulator_says() {
    for (venue, steps, name) in
        [(Venue::BinanceSpot, 900, "binance_spot_btcusdt.gz"), (Venue::BinanceUsdm, 900, "binance_usdm_btcusdt.gz")]
    {
        let expected = lines(&recorded(venue, steps));
        let path = folder().join(name);
        if rewrites() {
            let mut file = GzEncoder::new(File::create(&path).unwrap(), Compression::best());
            file.write_all(expected.as_bytes()).unwrap();
            file.finish().unwrap();
        }
        let mut found = String::new();
        GzDecoder::new(File::open(&path).unwrap()).read_to_string(&mut found).unwrap();
        assert!(found == expected, "{name} differs; TRUETICK_RECORD=1 rewrites it");
    }
}

#[test]
fn krakens_recording_is_what_the_simulator_says() {
    let expected = cbcap(&recorded(Venue::Kraken, 250));
    let path = folder().join("kraken_btcusd_depth25.cbcap");
    if rewrites() {
        fs::write(&path, &expected).unwrap();
    }
    assert!(fs::read_to_string(&path).unwrap() == expected, "the recording differs; TRUETICK_RECORD=1 rewrites it");
}
