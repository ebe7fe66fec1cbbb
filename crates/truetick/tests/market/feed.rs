//! The simulator, the feed client and the engine together: what is published as proved is what is true.

mod aliases;
mod binance;
mod ends;
mod hostile;
mod hyperliquid;
mod limits;
mod options;
mod rest;
mod states;
mod steps;
mod venue;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Lines};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use market_feed::{self as market, FeedConfig, Instrument, MarketConfig, OpenPosition, Reader};
use serde_json::Value;
use sim::{Fault, Venue as SimVenue};
use tt_market::DropReason as Dropped;
use tt_market::Proof;
use tt_model::{Decimal, InstrumentId};
use tt_venue::Venue;
use tt_venue::rules::TopicKind;

/// Everything that is waited for happens within this time, also on a busy machine.
const SOON: Duration = Duration::from_secs(30);

const VENUES: [(Venue, SimVenue, &str); 6] = [
    (Venue::BinanceSpot, SimVenue::BinanceSpot, "/stream"),
    (Venue::BinanceUsdm, SimVenue::BinanceUsdm, "/public/stream"),
    (Venue::Kraken, SimVenue::Kraken, "/v2"),
    (Venue::Okx, SimVenue::Okx, "/ws/v5/public"),
    (Venue::BybitLinear, SimVenue::Bybit, "/v5/public/linear"),
    (Venue::Deribit, SimVenue::Deribit, "/ws/api/v2"),
];

fn simulated(venue: Venue) -> (SimVenue, &'static str) {
    let (_, of_sim, path) = VENUES.iter().find(|known| known.0 == venue).unwrap();
    (*of_sim, path)
}

fn simulator(instruments: u32, rate_hz: f64) -> sim::Running {
    sim::start(sim::Config { instruments, rate_hz, seed: 20_260_801, ..sim::Config::default() }).unwrap()
}

fn feed(sim: &sim::Running, venue: Venue) -> FeedConfig {
    let (of_sim, path) = simulated(venue);
    let symbols = sim.instruments(of_sim).into_iter().map(|listed| listed.symbol).collect();
    let mut feed = FeedConfig::at(venue, format!("ws://{}{path}", sim.address(of_sim)).parse().unwrap(), symbols);
    feed.timing.backoff_min = Duration::from_millis(10);
    feed
}

fn follow(feeds: Vec<FeedConfig>) -> market::Runner {
    market::start(MarketConfig { feeds, sample_one_in: 8, ..MarketConfig::default() }).unwrap()
}

/// The instrument's place in the simulator: both list in the same order.
fn of_sim(reader: &Reader, listed: &Instrument) -> (SimVenue, usize) {
    let first = reader.instruments().iter().position(|other| other.venue == listed.venue).unwrap();
    (simulated(listed.venue).0, listed.id.0 as usize - first)
}

fn proof(reader: &Reader, listed: &Instrument) -> Proof {
    reader.top_of_book(listed.id).unwrap().status.proof
}

fn connected(reader: &Reader) -> bool {
    (0..reader.feeds_len()).all(|feed| reader.status(feed).connected)
}

/// Steps each instrument until its book is proved: Binance joins a snapshot with the first update after it.
fn step_until_proved(sim: &sim::Running, reader: &Reader) {
    assert!(reader.wait(SOON, || connected(reader)), "not connected: {:?}", reader.status(0));
    let proved = || {
        for listed in reader.instruments() {
            if !proof(reader, listed).is_verified() {
                let (venue, index) = of_sim(reader, listed);
                sim.step(venue, index, 1);
            }
        }
        reader.all_verified()
    };
    assert!(reader.wait(SOON, proved), "not proved");
}

/// A level as the engine publishes it: price and quantity in steps.
type Levels = Vec<(i64, i64)>;

/// What was published as proved: by update id, or by the time of the update where the venue numbers nothing.
type Seen = BTreeMap<u64, [Levels; 2]>;

/// Notes the book of `listed` if it is proved now; one that changes meanwhile is noted another time.
fn note(reader: &Reader, listed: &Instrument, seen: &mut Seen) {
    let (top, depth) = (reader.top_of_book(listed.id).unwrap(), reader.depth(listed.id).unwrap());
    if !top.status.proof.is_verified() || !depth.status.proof.is_verified() {
        return;
    }
    let levels = |side: &[tt_venue::BookLevel]| side.iter().map(|level| (level.px.0, level.qty.0)).collect::<Levels>();
    let key = if listed.venue == Venue::Kraken { depth.ts_event.0 / 1000 } else { depth.update_id };
    seen.insert(key, [levels(depth.bids()), levels(depth.asks())]);
    if listed.venue != Venue::Kraken {
        let best =
            |level: Option<tt_venue::BookLevel>| level.map(|level| (level.px.0, level.qty.0)).into_iter().collect();
        seen.entry(top.update_id).or_insert([best(top.bid), best(top.ask)]);
    }
}

/// Compares everything in `seen` with the truth, and returns how many books were compared.
fn compare(sim: &sim::Running, reader: &Reader, listed: &Instrument, seen: &Seen) -> usize {
    let (venue, index) = of_sim(reader, listed);
    let mut script = sim.script(venue, index);
    let mut compared = 0;
    for (key, [bids, asks]) in seen {
        // Deribit sends the whole book.
        let depth = if venue == SimVenue::Deribit { u32::MAX } else { listed.venue.rules().depth };
        let update_id = match venue {
            SimVenue::Kraken => sim.update_id_at(venue, index, *key),
            SimVenue::BinanceSpot | SimVenue::BinanceUsdm => Some(*key),
            SimVenue::Okx | SimVenue::Bybit | SimVenue::Deribit => sim.update_id_of(venue, index, depth, *key),
        };
        // A snapshot on the socket carries the time of the request, which is no step's.
        let Some(truth) = update_id.and_then(|update_id| script.play_to(update_id)) else { continue };
        let level = |(&px, &qty): (&i64, &i64)| (px, qty);
        let true_bids: Levels = truth.bids().map(level).take(bids.len()).collect();
        let true_asks: Levels = truth.asks().map(level).take(asks.len()).collect();
        assert_eq!((bids, asks), (&true_bids, &true_asks), "{} {} at {key}", listed.venue.name(), listed.symbol);
        compared += 1;
    }
    compared
}

/// Follows every book for some updates, which must be the true ones.
fn assert_true(sim: &sim::Running, reader: &Reader) {
    let mut seen = vec![Seen::new(); reader.instruments().len()];
    let noted = reader.wait(SOON, || {
        reader.instruments().iter().zip(&mut seen).for_each(|(listed, seen)| note(reader, listed, seen));
        seen.iter().all(|seen| seen.len() >= 20)
    });
    assert!(noted);
    for (listed, seen) in reader.instruments().iter().zip(&seen) {
        assert!(compare(sim, reader, listed, seen) >= 10, "{} {}", listed.venue.name(), listed.symbol);
    }
}

#[test]
fn every_book_published_as_proved_equals_the_true_one() {
    let sim = simulator(4, 1500.0);
    let running = follow(VENUES.map(|(venue, ..)| feed(&sim, venue)).to_vec());
    let reader = running.reader();
    let mut seen: Vec<Seen> = vec![Seen::new(); reader.instruments().len()];
    let watched = reader.wait(SOON, || {
        for (listed, seen) in reader.instruments().iter().zip(&mut seen) {
            note(&reader, listed, seen);
        }
        seen.iter().all(|seen| seen.len() >= 60)
    });
    assert!(watched, "{:?}", seen.iter().map(BTreeMap::len).collect::<Vec<_>>());
    sim.set_rate(0.0);
    for (listed, seen) in reader.instruments().iter().zip(&seen) {
        let compared = compare(&sim, &reader, listed, seen);
        assert!(compared >= 50, "{}: {compared} of {}", listed.symbol, seen.len());
    }
    // With the market at rest, the last book is the true one.
    for listed in reader.instruments() {
        let (venue, index) = of_sim(&reader, listed);
        let (update_id, truth) = sim.truth(venue, index);
        let [(bid_px, bid_qty), (ask_px, ask_qty)] = truth.touch();
        let at_rest = reader.wait(SOON, || {
            let top = reader.top_of_book(listed.id).unwrap();
            let (bid, ask) = (top.bid.unwrap(), top.ask.unwrap());
            let is_the_scripts = matches!(listed.venue, Venue::BinanceSpot | Venue::BinanceUsdm);
            (!is_the_scripts || top.update_id == update_id)
                && top.status.proof.is_verified()
                && (bid.px.0, bid.qty.0, ask.px.0, ask.qty.0) == (bid_px, bid_qty, ask_px, ask_qty)
        });
        assert!(at_rest, "{}: {:?}, true: {:?}", listed.symbol, reader.top_of_book(listed.id), truth.touch());
    }
    let sum =
        |of: fn(&tt_market::counters::VenueCounters) -> u64| (0..3).map(|feed| of(&reader.counters(feed))).sum::<u64>();
    assert_eq!((sum(|venue| venue.gaps), sum(|venue| venue.resyncs)), (0, 0));
    assert!(sum(|venue| venue.oracle_matches) > 0 && sum(|venue| venue.crc_matches) > 0);
    running.stop();
    sim.stop();
}

#[test]
fn counters_close_when_a_feed_stops() {
    let sim = simulator(2, 1000.0);
    let running = follow(VENUES.map(|(venue, ..)| feed(&sim, venue)).to_vec());
    let reader = running.reader();
    assert!(reader.wait(SOON, || (0..3).all(|feed| reader.counters(feed).frames > 500)));
    running.stop();
    for feed in 0..3 {
        let (counters, status) = (reader.counters(feed), reader.status(feed));
        assert!(counters.closes(), "{counters:?}");
        assert_eq!(counters.frames, counters.applied + counters.drops_total());
        assert_eq!(counters.frames, status.frames + status.snapshots, "every frame that arrived was handed in");
    }
    for listed in reader.instruments() {
        assert_eq!(proof(&reader, listed), Proof::Stale, "a book that is not followed is not verified");
    }
    let times = reader.times();
    for row in [market::Row::EndToEnd, market::Row::StateBookDelta, market::Row::Parse] {
        assert!(times.rows[row as usize].count() > 10, "{}", row.name());
    }
    sim.stop();
}

#[test]
fn updates_that_come_before_the_snapshot_are_kept_for_it() {
    for venue in [Venue::BinanceSpot, Venue::BinanceUsdm] {
        let of_sim = VENUES[venue as usize].1;
        let sim = simulator(3, 1000.0);
        // The updates of a second come before the snapshots do.
        sim.refuse_snapshots(of_sim, 3);
        let running = follow(vec![feed(&sim, venue)]);
        let reader = running.reader();
        assert!(reader.wait(SOON, || reader.all_verified()), "{:?}", reader.status(0));
        assert!(reader.wait(SOON, || reader.counters(0).frames > 1000));
        running.stop();
        let counters = reader.counters(0);
        assert!(counters.kept > 50, "{counters:?}");
        assert_eq!(counters.drops_total(), counters.dropped(Dropped::Superseded), "{counters:?}");
        assert_eq!((counters.gaps, counters.resyncs), (0, 0), "the first snapshot of each book joins");
        sim.stop();
    }
}

#[test]
fn a_dropped_binance_frame_makes_the_book_stale_and_is_mended_by_one_resync() {
    for venue in [Venue::BinanceSpot, Venue::BinanceUsdm] {
        let of_sim = VENUES[venue as usize].1;
        let sim = simulator(2, 0.0);
        let running = follow(vec![feed(&sim, venue)]);
        let reader = running.reader();
        step_until_proved(&sim, &reader);
        let (hit, other) = (&reader.instruments()[0], &reader.instruments()[1]);
        let before = reader.counters(0);
        // Refused once, so that the stale book lasts long enough to be seen.
        sim.refuse_snapshots(of_sim, 1);
        sim.fault(of_sim, 0, Fault::Drop);
        sim.step(of_sim, 0, 2);
        assert!(reader.wait(SOON, || proof(&reader, hit) == Proof::Stale), "{:?}", reader.top_of_book(hit.id));
        assert!(proof(&reader, other).is_verified(), "the other instrument lost nothing");
        let proved = || {
            sim.step(of_sim, 0, 1);
            proof(&reader, hit).is_verified()
        };
        assert!(reader.wait(SOON, proved), "{:?}", reader.top_of_book(hit.id));
        let last = sim.step(of_sim, 0, 5);
        assert!(reader.wait(SOON, || reader.top_of_book(hit.id).unwrap().update_id == last));
        let mut seen = Seen::new();
        note(&reader, hit, &mut seen);
        assert!(compare(&sim, &reader, hit, &seen) > 0);
        assert!(reader.wait(SOON, || reader.counters(0).resyncs > before.resyncs));
        let after = reader.counters(0);
        assert_eq!((after.gaps - before.gaps, after.resyncs - before.resyncs), (1, 1));
        assert_eq!(reader.status(0).snapshots_failed, 1);
        assert_eq!(reader.status(0).connections, 1, "a gap is no reason to reconnect");
        running.stop();
        sim.stop();
    }
}

#[test]
fn krakens_checksum_finds_a_dropped_frame_and_one_subscription_mends_it() {
    let sim = simulator(2, 0.0);
    let running = follow(vec![feed(&sim, Venue::Kraken)]);
    let reader = running.reader();
    step_until_proved(&sim, &reader);
    let before = reader.counters(0);
    sim.fault(SimVenue::Kraken, 0, Fault::Drop);
    // The checksum covers ten levels of 25: some drops are only found when a later frame touches the top.
    let found = reader.wait(SOON, || {
        if reader.counters(0).resyncs == before.resyncs {
            sim.step(SimVenue::Kraken, 0, 1);
        }
        reader.counters(0).resyncs > before.resyncs
    });
    assert!(found);
    let hit = &reader.instruments()[0];
    assert!(reader.wait(SOON, || proof(&reader, hit) == Proof::Crc), "{:?}", reader.top_of_book(hit.id));
    sim.step(SimVenue::Kraken, 0, 20);
    let [(bid_px, _), (ask_px, _)] = sim.truth(SimVenue::Kraken, 0).1.touch();
    let true_again = || {
        let top = reader.top_of_book(hit.id).unwrap();
        top.status.proof == Proof::Crc && (top.bid.unwrap().px.0, top.ask.unwrap().px.0) == (bid_px, ask_px)
    };
    assert!(reader.wait(SOON, true_again), "{:?}", reader.top_of_book(hit.id));
    assert!(reader.wait(SOON, || reader.counters(0).snapshots == before.snapshots + 1));
    assert_eq!(reader.counters(0).resyncs, before.resyncs + 1);
    assert_eq!(reader.status(0).connections, 1);
    running.stop();
    sim.stop();
}

#[test]
fn case_m29_m30_a_closed_connection_is_made_again_and_a_silent_one_given_up() {
    for (venue, of_sim, _) in VENUES {
        let sim = simulator(2, 400.0);
        let mut config = feed(&sim, venue);
        config.timing.silence_max = Duration::from_millis(1500);
        config.timing.answer_max = Duration::from_millis(1500);
        let running = follow(vec![config]);
        let reader = running.reader();
        assert!(reader.wait(SOON, || reader.all_verified() && connected(&reader)), "{}", venue.name());
        sim.disconnect(of_sim);
        let again = || reader.status(0).connections == 2 && connected(&reader) && reader.all_verified();
        assert!(reader.wait(SOON, again), "{}: {:?}", venue.name(), reader.status(0));
        sim.mute(of_sim, true);
        let stale = || reader.instruments().iter().all(|listed| proof(&reader, listed) == Proof::Stale);
        assert!(reader.wait(SOON, stale), "{}: silence was not noticed", venue.name());
        sim.mute(of_sim, false);
        assert!(reader.wait(SOON, || connected(&reader) && reader.all_verified()), "{}", venue.name());
        assert!(reader.status(0).reconnects() >= 2);
        assert!(reader.counters(0).closes());
        running.stop();
        sim.stop();
    }
}

/// A venue that accepts every topic and serves half of them.
#[test]
fn a_topic_that_is_accepted_and_silent_is_named_until_it_is_sent() {
    let sim = simulator(2, 400.0);
    sim.withhold(SimVenue::BinanceUsdm, &["mark-price", "best-levels"]);
    let running = follow(vec![feed(&sim, Venue::BinanceUsdm), feed(&sim, Venue::Kraken)]);
    let reader = running.reader();
    let silent = |feed: usize| {
        let topics = reader.status(feed).silent_topics;
        let mut names: Vec<_> =
            topics.into_iter().map(|silent| format!("{} {}", silent.topic, silent.symbol)).collect();
        names.sort();
        names
    };
    let expected = ["best-levels BTCUSDT", "best-levels ETHUSDT", "mark-price BTCUSDT", "mark-price ETHUSDT"];
    assert!(reader.wait(SOON, || silent(0) == expected), "{:?}", silent(0));
    // The books are as good as before, and the other venue is not concerned.
    assert!(reader.wait(SOON, || reader.all_verified() && connected(&reader)));
    assert_eq!((silent(1), reader.status(0).reconnects()), (Vec::<String>::new(), 0));
    assert!(!reader.snapshot(tt_os::clock::unix_now(), 1).is_ready());
    sim.withhold(SimVenue::BinanceUsdm, &["best-levels"]);
    assert!(reader.wait(SOON, || silent(0) == expected[..2]), "{:?}", silent(0));
    sim.withhold(SimVenue::BinanceUsdm, &[""; 0]);
    assert!(reader.wait(SOON, || silent(0).is_empty() && reader.all_verified()), "{:?}", silent(0));
    assert!(reader.wait(SOON, || reader.snapshot(tt_os::clock::unix_now(), 1).is_ready()));
    // The mark price is promised each second: it is missed after it has come, too.
    sim.withhold(SimVenue::BinanceUsdm, &["mark-price"]);
    assert!(reader.wait(SOON, || silent(0) == expected[2..]), "{:?}", silent(0));
    running.stop();
    sim.stop();
}

#[test]
fn okx_joins_by_rest_and_has_its_candles_from_a_second_socket() {
    let sim = simulator(2, 400.0);
    let mut config = feed(&sim, Venue::Okx);
    config.join_by_rest = true;
    config.also = vec![TopicKind::Candles];
    let running = follow(vec![config]);
    let reader = running.reader();
    assert!(reader.wait(SOON, || connected(&reader) && reader.all_verified()), "{:?}", reader.status(0));
    assert!(reader.wait(SOON, || reader.status(0).snapshots >= 2), "not by REST: {:?}", reader.status(0));
    assert_eq!((sim.stats(SimVenue::Okx).open, reader.status(0).connections), (2, 1));
    let minute = 1;
    let message = || {
        let of = |listed: &Instrument| reader.board(listed.id).and_then(|(board, id)| board.venue_candle(id, minute));
        reader.instruments().iter().all(|listed| of(listed).is_some_and(|candle| candle.high_px.mantissa > 0))
    };
    assert!(reader.wait(SOON, message), "{:?}", reader.counters(0));
    // A gap asks for another snapshot by REST.
    let snapshots = reader.status(0).snapshots;
    sim.fault(SimVenue::Okx, 0, Fault::Drop);
    assert!(reader.wait(SOON, || reader.counters(0).resyncs == 1 && reader.all_verified()));
    assert!(reader.wait(SOON, || reader.status(0).snapshots > snapshots));
    // Both sockets are the connection: without one of them there is none.
    sim.disconnect(SimVenue::Okx);
    assert!(reader.wait(SOON, || reader.status(0).connections == 2 && reader.all_verified()));
    assert!(reader.wait(SOON, || sim.stats(SimVenue::Okx).open == 2));
    assert!(reader.instruments().iter().all(|listed| reader.messages(listed.id) > 0));
    running.stop();
    assert!(reader.counters(0).closes());
    sim.stop();
}

#[test]
fn reports_what_a_venue_lacks_before_requesting_it() {
    let sim = simulator(1, 0.0);
    let mut without = feed(&sim, Venue::Kraken);
    without.also = vec![TopicKind::Liquidations];
    let mut by_rest = feed(&sim, Venue::Kraken);
    by_rest.join_by_rest = true;
    for (config, message) in
        [(without, "kraken has no topic liquidations"), (by_rest, "kraken has no snapshots by REST")]
    {
        let refused = market::start(MarketConfig { feeds: vec![config], ..MarketConfig::default() }).unwrap_err();
        assert!(refused.to_string().contains(message), "{refused}");
    }
    assert_eq!(sim.stats(SimVenue::Kraken).opened, 0);
    sim.stop();
}

#[test]
fn own_orders_arrive_and_mark_prices_value_a_position() {
    let sim = simulator(1, 1000.0);
    let mut spot = feed(&sim, Venue::BinanceSpot);
    spot.listen_key = Some(sim::LISTEN_KEY.to_owned());
    let mut usdm = feed(&sim, Venue::BinanceUsdm);
    usdm.listen_key = Some(sim::LISTEN_KEY.to_owned());
    // 0.250 BTC (lots of 0.001), bought at 61,800.
    let (lots, entry_px) = (250, Decimal::new(61_800, 0));
    usdm.positions = vec![OpenPosition { symbol: "BTCUSDT".to_owned(), lots, entry_px }];
    let running = follow(vec![spot, usdm]);
    let reader = running.reader();
    let perpetual = reader.instruments()[1].id;
    let message = || (0..2).all(|feed| reader.counters(feed).order_updates > 10) && reader.counters(1).mark_prices > 0;
    assert!(reader.wait(SOON, message), "{:?}", reader.counters(1));
    let (board, _) = reader.board(perpetual).unwrap();
    let whole = |decimal: Decimal| decimal.mantissa as f64 / 10_f64.powi(i32::from(decimal.decimals));
    let valued = reader.wait(SOON, || {
        let (mark, position) = (board.mark_price(InstrumentId(0)), board.position(0));
        let Some((mark, position)) = mark.zip(position).filter(|(mark, found)| mark.ts_recv == found.ts_recv) else {
            return false;
        };
        let pnl = position.pnl_mantissa as f64 / 10_f64.powi(i32::from(position.pnl_decimals));
        let expected = 0.250 * (whole(mark.mark_px) - 61_800.0);
        assert!((pnl - expected).abs() < 1e-6, "{pnl} is not {expected}");
        true
    });
    assert!(valued, "no position was valued");
    for feed in 0..2 {
        let counters = reader.counters(feed);
        // Updates that the snapshot held already are dropped under that name; nothing else is.
        assert_eq!(counters.drops_total(), counters.dropped(Dropped::Superseded), "{counters:?}");
    }
    running.stop();
    sim.stop();
}

#[test]
fn case_m31_reports_rejected_subscriptions_by_symbol() {
    let sim = simulator(2, 0.0);
    let mut config = feed(&sim, Venue::Kraken);
    config.depth = 27;
    let running = follow(vec![config]);
    let reader = running.reader();
    assert!(reader.wait(SOON, || reader.status(0).refusals.len() == 2), "{:?}", reader.status(0));
    for refusal in reader.status(0).refusals {
        assert!(refusal.subject.ends_with("/USD") && refusal.reason.contains("depth"), "{refusal:?}");
    }
    assert!(!reader.all_verified());
    running.stop();
    let mut config = feed(&sim, Venue::BinanceSpot);
    config.symbols = vec!["NOPEUSDT".to_owned()];
    let refused =
        market::start(MarketConfig { feeds: vec![config], sample_one_in: 8, ..MarketConfig::default() }).unwrap_err();
    assert!(format!("{refused:#}").starts_with("market: binance_spot"), "{refused:#}");
    sim.stop();
}

#[test]
fn many_instruments_are_proved_and_everything_stops_cleanly() {
    const INSTRUMENTS: u32 = 400;
    let sim = simulator(INSTRUMENTS, 3000.0);
    let running = follow(vec![feed(&sim, Venue::BinanceSpot), feed(&sim, Venue::Kraken)]);
    let reader = running.reader();
    assert_eq!(reader.instruments().len(), 2 * INSTRUMENTS as usize);
    assert_eq!(reader.feeds_len(), 4, "400 symbols with three topics each need two connections");
    assert!(reader.wait(2 * SOON, || reader.all_verified()), "{:?}", reader.status(0));
    assert!(reader.wait(SOON, || connected(&reader)), "an answer got lost: {:?}", reader.status(2));
    // Bursts of more frames than one turn takes must not lose any.
    for index in 0..INSTRUMENTS as usize {
        sim.step(SimVenue::BinanceSpot, index, 20);
        sim.step(SimVenue::Kraken, index, 20);
    }
    sim.set_rate(0.0);
    let last = reader.instruments().iter().filter(|listed| listed.venue == Venue::BinanceSpot);
    for listed in last {
        let (update_id, _) = sim.truth(SimVenue::BinanceSpot, of_sim(&reader, listed).1);
        assert!(reader.wait(SOON, || reader.top_of_book(listed.id).unwrap().update_id == update_id));
    }
    let resyncs: Vec<u64> = (0..4).map(|feed| reader.counters(feed).resyncs).collect();
    assert_eq!(resyncs, [0; 4], "nothing was lost, so nothing is to be mended");
    running.stop();
    for venue in [SimVenue::BinanceSpot, SimVenue::Kraken] {
        assert!(reader.wait(SOON, || sim.stats(venue).open == 0), "a socket is still open");
        assert_eq!(sim.stats(venue).cut_off, 0);
    }
    sim.stop();
}

/// `truetick market --json` of BTCUSDT at a port of loopback; it does not outlive the test.
struct Client {
    child: Child,
    printed: Lines<BufReader<ChildStdout>>,
}

impl Client {
    fn start(venue: &str, symbol: &str, url: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_truetick"))
            .args(["--log-level", "off", "market", "--json", "--venue", venue, "--symbols", symbol, "--url", url])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let printed = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, printed }
    }

    /// The next line of which `is_it` holds.
    fn line(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        let lines = self.printed.by_ref().map(|line| serde_json::from_str(&line.unwrap()).unwrap());
        lines.into_iter().find(is_it).expect("it runs until it is reported")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_venue_that_comes_later_is_waited_for() {
    for (venue, symbol, path) in [("binance-spot", "BTCUSDT", "/stream"), ("kraken", "BTC/USD", "/v2")] {
        // A port that was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut client = Client::start(venue, symbol, &format!("ws://127.0.0.1:{port}{path}"));
        let message = client.line(|line| line["connected"] == false);
        assert!(message["last_error"].as_str().unwrap().contains("refused"), "{message}");
        assert!((1..=30_000).contains(&message["retry_in_ms"].as_u64().unwrap()), "{message}");
        let mut ports = [0; sim::Venue::COUNT];
        ports[if venue == "kraken" { sim::Venue::Kraken } else { sim::Venue::BinanceSpot } as usize] = port;
        let config = sim::Config { ports, instruments: 1, rate_hz: 200.0, ..sim::Config::default() };
        let sim = sim::start(config).unwrap();
        client.line(|line| line["proof"] == "crc" || line["proof"] == "oracle");
        client.line(|line| line["connected"] == true);
        sim.stop();
    }
}

#[test]
fn a_venue_that_will_never_be_there_is_not_waited_for() {
    let sim = simulator(1, 0.0);
    let (spot, kraken) = (sim.address(SimVenue::BinanceSpot), sim.address(SimVenue::Kraken));
    for (venue, symbol, url, message) in [
        ("binance-spot", "BTCUSDT", "ftp://127.0.0.1/stream".to_owned(), "ftp is no scheme"),
        ("binance-spot", "NOPEUSDT", format!("ws://{spot}/stream"), "400 Bad Request"),
        ("kraken", "NOPE/USD", format!("ws://{kraken}/v2"), "kraken does not list NOPE/USD"),
        ("kraken", "BTC/USD", format!("ws://{kraken}/nowhere"), "404"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_truetick"));
        let command = command.args(["market", "--venue", venue, "--symbols", symbol, "--url", &url]);
        let ended = command.output().unwrap();
        let error = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{error}");
        assert!(error.lines().count() == 1 && error.contains(message), "{error}");
    }
    sim.stop();
}

#[test]
fn a_depth_is_the_venues_usual_one_or_one_that_it_has() {
    let sim = simulator(1, 200.0);
    for venue in [Venue::BybitLinear, Venue::Okx, Venue::Kraken, Venue::Deribit] {
        let FeedConfig { streams, symbols, .. } = feed(&sim, venue);
        let mut client = Client::start(venue.name(), &symbols[0], &streams.to_string());
        client.line(|line| line["proof"] == "crc" || line["proof"] == "sequence" || line["proof"] == "oracle");
    }
    sim.stop();
    // No venue listens: unsupported options are rejected before connecting.
    for (venue, depth, message) in [
        ("bybit-linear", "25", "market: bybit_linear has no depth 25: 1, 50, 200, 1000"),
        ("kraken", "50", "market: kraken has no depth 50: 10, 25, 100, 500, 1000"),
        ("deribit", "10", "market: deribit is asked for no depth"),
    ] {
        let asked = ["--venue", venue, "--symbols", "A", "--url", "ws://127.0.0.1:1/", "--depth", depth];
        for first in [&["market"][..], &["record", "--out", "/nowhere/at/all"][..]] {
            let ended = Command::new(env!("CARGO_BIN_EXE_truetick")).args(first).args(asked).output().unwrap();
            let error = String::from_utf8(ended.stderr).unwrap();
            assert!(ended.status.code() == Some(1) && error.contains(message), "{error}");
        }
    }
}
