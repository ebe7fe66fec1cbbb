//! Connections whose end is announced or due: another one has the books before.

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread;

use market_feed::RecordingConfig;

use super::*;

/// Reads every book all the time until `done`; returns how often one was not verified, and how often one was read.
fn watch(reader: &Reader, done: &AtomicBool) -> (u64, u64) {
    let (mut unverified, mut read) = (0, 0);
    while !done.load(Acquire) {
        for listed in reader.instruments() {
            unverified += u64::from(!proof(reader, listed).is_verified());
            read += 1;
        }
    }
    (unverified, read)
}

/// Follows `config` until `ends` have been survived, and checks that no reader saw a book without a proof.
fn survive(sim: &sim::Running, config: FeedConfig, ends: u64, mut end: impl FnMut(&Reader)) {
    let (of_sim, _) = simulated(config.venue);
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("ends.ttj");
    let recording =
        RecordingConfig { path: path.clone(), append: false, sync_every: Duration::from_secs(1), packed: false };
    let feeds = vec![config];
    let running = market::start(MarketConfig { feeds, recording: Some(recording), ..MarketConfig::default() }).unwrap();
    let reader = running.reader();
    assert!(reader.wait(SOON, || connected(&reader) && reader.all_verified()), "{:?}", reader.status(0));
    let (before, snapshots) = (reader.counters(0), sim.stats(of_sim).snapshots);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watched = scope.spawn(|| watch(&reader, &done));
        for number in 1..=ends {
            end(&reader);
            let taken_over = reader.wait(SOON, || reader.status(0).planned_reconnects >= number);
            assert!(taken_over, "{:?}", reader.status(0));
            sim.end_announced(of_sim);
        }
        let frames = reader.counters(0).frames;
        assert!(reader.wait(SOON, || reader.counters(0).frames > frames + 200));
        done.store(true, Release);
        let (unverified, read) = watched.join().unwrap();
        assert!(unverified == 0 && read > 1000, "{unverified} of {read} without a proof: {:?}", reader.status(0));
    });
    let (status, after) = (reader.status(0), reader.counters(0));
    assert_eq!((status.reconnects(), status.last_error), (0, None));
    assert_eq!((after.gaps - before.gaps, after.resyncs - before.resyncs), (0, 0));
    assert_eq!(sim.stats(of_sim).snapshots, snapshots, "no snapshot by REST was needed");
    // The books are true after the change, too.
    assert_true(sim, &reader);
    running.stop();
    assert!(reader.counters(0).closes());
    let replayed = Command::new(env!("CARGO_BIN_EXE_truetick")).arg("replay").arg(&path).output().unwrap();
    assert!(replayed.status.success(), "{}", String::from_utf8_lossy(&replayed.stdout));
}

#[test]
fn an_announced_end_leaves_no_book_without_a_proof() {
    for (venue, by_rest) in [
        (Venue::BinanceSpot, false),
        (Venue::BinanceUsdm, false),
        (Venue::Okx, false),
        (Venue::Okx, true),
        (Venue::Deribit, false),
    ] {
        let sim = simulator(3, 800.0);
        let mut config = feed(&sim, venue);
        config.join_by_rest = by_rest;
        survive(&sim, config, 2, |_| sim.announce_end(simulated(venue).0));
        sim.stop();
    }
}

#[test]
fn a_connection_is_replaced_before_the_venue_ends_it() {
    let sim = simulator(2, 800.0);
    let mut config = feed(&sim, Venue::BinanceSpot);
    config.timing.connection_max = Some(Duration::from_secs(2));
    survive(&sim, config, 2, |_| {});
    sim.stop();
    assert_eq!(FeedConfig::public(Venue::BinanceUsdm, Vec::new()).timing.connection_max.unwrap().as_secs(), 86_400);
}

#[test]
fn an_end_that_comes_before_the_next_connection_is_mended() {
    for venue in [Venue::BinanceSpot, Venue::Okx] {
        let of_sim = simulated(venue).0;
        let sim = simulator(2, 400.0);
        let running = follow(vec![feed(&sim, venue)]);
        let reader = running.reader();
        assert!(reader.wait(SOON, || connected(&reader) && reader.all_verified()));
        sim.announce_end(of_sim);
        sim.end_announced(of_sim);
        let again = || {
            let status = reader.status(0);
            status.reconnects() + status.planned_reconnects == 1 && status.connected && reader.all_verified()
        };
        assert!(reader.wait(SOON, again), "{:?}", reader.status(0));
        assert!(reader.wait(SOON, || sim.stats(of_sim).open == 1));
        running.stop();
        sim.stop();
    }
}
