//! `truetick simulate --fault`: what goes wrong at each venue is noticed by the engine that follows it over WebSocket.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use market_feed::{self as market, FeedConfig, FeedStatus, MarketConfig, Reader};
use serde_json::Value;
use tt_market::DropReason;
use tt_market::Proof;
use tt_market::counters::VenueCounters;
use tt_venue::Venue;

/// Everything that is waited for happens within this time, also on a busy machine.
const SOON: Duration = Duration::from_secs(120);
/// A connection that says nothing for longer is given up.
const SILENCE_MAX: Duration = Duration::from_millis(1500);

const VENUES: [Venue; 6] =
    [Venue::BinanceSpot, Venue::BinanceUsdm, Venue::Kraken, Venue::Okx, Venue::BybitLinear, Venue::Deribit];

/// `truetick simulate --fault KIND`, one instrument a venue; it does not outlive the test.
struct Simulator {
    child: Child,
    feeds: Vec<FeedConfig>,
    /// Reported faults, by venue.
    caused: Arc<[AtomicU64; VENUES.len()]>,
}

impl Simulator {
    fn start(kind: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_truetick"))
            .args(["--log-level", "off", "simulate", "--json", "--instruments", "1", "--rate", "300"])
            .args(["--fault", kind, "--fault-every", "0.4", "--silence", "3"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut reports = lines.map_while(Result::ok).map(|line| serde_json::from_str::<Value>(&line).unwrap());
        let feeds = reports.by_ref().take(VENUES.len()).zip(VENUES).map(|(line, venue)| {
            assert_eq!(line["venue"], venue.name());
            let symbols = vec![line["symbols"][0].as_str().unwrap().to_owned()];
            let mut feed = FeedConfig::at(venue, line["streams"].as_str().unwrap().parse().unwrap(), symbols);
            feed.timing.backoff_min = Duration::from_millis(10);
            feed.timing.silence_max = SILENCE_MAX;
            feed
        });
        let feeds = feeds.collect();
        let caused: Arc<[AtomicU64; VENUES.len()]> = Arc::default();
        let (counts, kind) = (Arc::clone(&caused), kind.to_owned());
        thread::spawn(move || {
            for line in reports.filter(|line| line["fault"] == kind) {
                let at = VENUES.iter().position(|venue| line["venue"] == venue.name()).unwrap();
                counts[at].fetch_add(1, Relaxed);
            }
        });
        Self { child, feeds, caused }
    }

    fn caused(&self, at: usize) -> u64 {
        self.caused[at].load(Relaxed)
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What an engine shows of one venue.
struct Seen {
    venue: Venue,
    counters: VenueCounters,
    status: FeedStatus,
}

impl Seen {
    fn of(reader: &Reader, at: usize) -> Self {
        Self { venue: VENUES[at], counters: reader.counters(at), status: reader.status(at) }
    }

    /// Whether its updates have numbers.
    fn is_numbered(&self) -> bool {
        self.venue != Venue::Kraken
    }

    fn malformed(&self) -> u64 {
        let drops = DropReason::ALL.into_iter().zip(self.counters.drops);
        drops.filter(|(fault, _)| fault.is_malformed()).map(|(_, count)| count).sum()
    }
}

/// Follows a simulator at which `kind` goes wrong until at each venue `is_noticed` holds, and, where a fault is
/// `mended`, until every book is verified again. Returns what is seen in the end, after at least two faults a venue.
fn noticed(kind: &str, mended: bool, is_noticed: impl Fn(&Seen) -> bool) -> Vec<Seen> {
    let simulator = Simulator::start(kind);
    let running = market::start(MarketConfig { feeds: simulator.feeds.clone(), ..MarketConfig::default() }).unwrap();
    let reader = running.reader();
    for (at, venue) in VENUES.into_iter().enumerate() {
        let found = reader.wait(SOON, || simulator.caused(at) >= 2 && is_noticed(&Seen::of(&reader, at)));
        let seen = Seen::of(&reader, at);
        assert!(found, "{kind} at {}: {:?} {:?}", venue.name(), seen.counters, seen.status);
        let proof = || reader.top_of_book(reader.instruments()[at].id).unwrap().status.proof;
        assert!(!mended || reader.wait(SOON, || proof().is_verified()), "{kind} at {}: {:?}", venue.name(), proof());
    }
    let seen = (0..VENUES.len()).map(|at| Seen::of(&reader, at)).collect::<Vec<_>>();
    running.stop();
    for (at, venue) in VENUES.into_iter().enumerate() {
        assert!(reader.counters(at).closes(), "{}", venue.name());
        assert_eq!(reader.top_of_book(reader.instruments()[at].id).unwrap().status.proof, Proof::Stale);
    }
    seen
}

#[test]
fn dropped_updates_are_gaps_and_at_kraken_checksums_that_do_not_fit() {
    noticed("drop", true, |seen| {
        let found = if seen.is_numbered() { seen.counters.gaps } else { seen.counters.crc_mismatches };
        found > 0 && seen.counters.resyncs > 0 && seen.counters.joins > 1
    });
}

#[test]
fn doubled_updates_are_refused_by_number_and_change_nothing_at_kraken() {
    let all =
        noticed("duplicate", true, |seen| !seen.is_numbered() || seen.counters.dropped(DropReason::Duplicate) > 0);
    for seen in all {
        let VenueCounters { gaps, resyncs, crc_mismatches, .. } = seen.counters;
        assert_eq!((gaps, resyncs, crc_mismatches), (0, 0, 0), "{}", seen.venue.name());
    }
}

#[test]
fn reordered_updates_are_gaps_by_number_or_by_time() {
    noticed("reorder", true, |seen| {
        let by_checksum = if seen.is_numbered() { 0 } else { seen.counters.crc_mismatches };
        seen.counters.gaps + by_checksum > 0 && seen.counters.resyncs > 0
    });
}

#[test]
fn delayed_updates_show_in_the_lag_and_cost_no_book() {
    let all = noticed("delay", true, |seen| seen.counters.lag_max_ns > 900_000_000);
    for seen in all {
        assert_eq!((seen.counters.gaps, seen.counters.crc_mismatches), (0, 0), "{}", seen.venue.name());
    }
}

#[test]
fn truncated_updates_are_no_json_and_cost_the_book() {
    noticed("truncate", true, |seen| seen.malformed() > 0 && seen.counters.resyncs > 0 && seen.counters.joins > 1);
}

#[test]
fn half_open_connections_are_given_up_after_their_silence() {
    noticed("half-open", false, |seen| seen.status.reconnects() > 0 && seen.counters.joins > 1);
}

#[test]
fn wrong_checksums_are_noticed_where_the_venue_sends_any() {
    // OKX's is always zero since June 2026 and says nothing; any other has to fit.
    let has_one = |seen: &Seen| matches!(seen.venue, Venue::Kraken | Venue::Okx);
    let is_noticed = |seen: &Seen| seen.counters.crc_mismatches > 0 && seen.counters.resyncs > 0;
    let all = noticed("checksum", true, |seen| !has_one(seen) || is_noticed(seen));
    for seen in all.iter().filter(|seen| !has_one(seen)) {
        assert_eq!((seen.counters.gaps, seen.counters.resyncs), (0, 0), "{}", seen.venue.name());
    }
}

#[test]
fn silent_venues_are_left_and_found_again() {
    noticed("silence", false, |seen| seen.status.reconnects() > 0 && seen.counters.joins > 1);
}

#[test]
fn restarted_numbers_are_a_new_epoch_if_the_venue_has_epochs() {
    noticed("reset", true, |seen| match seen.venue {
        Venue::Okx
        | Venue::BybitSpot
        | Venue::BybitLinear
        | Venue::BybitInverse
        | Venue::BybitOption
        | Venue::Deribit => seen.counters.epochs > 0,
        Venue::BinanceSpot
        | Venue::BinanceUsdm
        | Venue::BinanceCoinm
        | Venue::Kraken
        | Venue::KrakenDerivatives
        | Venue::CoinbaseExchange
        | Venue::CoinbaseAdvanced
        | Venue::Hyperliquid => true,
    });
}
