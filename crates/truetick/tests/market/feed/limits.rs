//! What a venue allows one address, lists in pages, and refuses in parts.

use std::time::Duration;

use tt_venue::Venue;

use super::rest::{BadDay, of};
use super::*;

/// The feed of the simulator's instruments `from..to`.
fn part(sim: &sim::Running, venue: Venue, from: usize, to: usize) -> FeedConfig {
    let whole = feed(sim, venue);
    FeedConfig { symbols: whole.symbols[from..to].to_vec(), ..whole }
}

#[test]
fn feeds_at_one_address_share_its_snapshots_and_its_ban() {
    let sim = simulator(8, 200.0);
    let ban = of("418 I'm a teapot\r\nRetry-After: 2", b"{}");
    let day = BadDay::start(sim.address(SimVenue::BinanceSpot), vec![ban]);
    let gap = Duration::from_millis(150);
    let feeds = [(0, 4), (4, 8)].map(|(from, to)| {
        let mut part = part(&sim, Venue::BinanceSpot, from, to);
        part.rest = Some(format!("http://{}", day.addr).parse().unwrap());
        part.timing.snapshot_gap = gap;
        part
    });
    let running = follow(feeds.to_vec());
    let reader = running.reader();
    assert!(reader.wait(SOON, || reader.all_verified()), "{:?} {:?}", reader.status(0), reader.status(1));
    running.stop();
    let asked = day.asked.lock().unwrap().clone();
    assert!(asked.len() >= 9, "eight books, one of them twice: {}", asked.len());
    assert!(asked[1] - asked[0] >= Duration::from_secs(2), "neither feed asks during the ban");
    for pair in asked[1..].windows(2) {
        // They are counted when they are sent; one may arrive late, and the next one not.
        assert!(pair[1] - pair[0] >= gap / 2, "{:?} between two snapshots", pair[1] - pair[0]);
    }
    assert!(asked[asked.len() - 1] - asked[1] >= gap * 7 - gap / 2);
    sim.stop();
}

#[test]
fn books_that_are_lost_together_are_asked_for_together() {
    const BOOKS: usize = 60;
    let sim = simulator(BOOKS as u32, 0.0);
    let running = follow(vec![part(&sim, Venue::Deribit, 0, 30), part(&sim, Venue::Deribit, 30, BOOKS)]);
    let reader = running.reader();
    assert!(reader.wait(SOON, || connected(&reader) && reader.all_verified()), "{:?}", reader.status(0));
    for index in 0..BOOKS {
        sim.fault(SimVenue::Deribit, index, Fault::Drop);
        // A step may leave the window as it is.
        sim.step(SimVenue::Deribit, index, 8);
    }
    let lost = || reader.counters(0).resyncs + reader.counters(1).resyncs;
    assert!(reader.wait(SOON, || lost() == BOOKS as u64), "{}", lost());
    assert!(reader.wait(SOON, || reader.all_verified()), "{:?}", reader.status(0));
    let stats = sim.stats(SimVenue::Deribit);
    assert_eq!((stats.cut_off_for_requests, stats.opened), (0, 2), "within the venue's credits");
    running.stop();
    sim.stop();
}

#[test]
fn a_list_in_pages_is_read_to_its_end() {
    let sim = simulator(8, 400.0);
    sim.page_instruments(SimVenue::Bybit, 3);
    let running = follow(vec![feed(&sim, Venue::BybitLinear)]);
    let reader = running.reader();
    assert_eq!(reader.instruments().len(), 8);
    assert!(reader.wait(SOON, || reader.all_verified()), "{:?}", reader.status(0));
    running.stop();
    sim.stop();
}

#[test]
fn a_symbol_that_is_not_listed_costs_no_other() {
    let sim = simulator(3, 400.0);
    let long = "A".repeat(65);
    let feeds = VENUES.map(|(venue, ..)| {
        let mut config = feed(&sim, venue);
        config.symbols.insert(1, "NOPE".to_owned());
        config.symbols.push(long.clone());
        config
    });
    let running = follow(feeds.to_vec());
    let reader = running.reader();
    assert_eq!(reader.instruments().len(), 3 * VENUES.len());
    assert!(reader.wait(SOON, || connected(&reader) && reader.all_verified()), "{:?}", reader.status(0));
    for feed in 0..VENUES.len() {
        let refused: Vec<String> = reader.status(feed).refusals.into_iter().map(|refusal| refusal.subject).collect();
        assert_eq!(refused, ["NOPE", &long]);
    }
    let shown = reader.snapshot(tt_os::clock::unix_now(), 1);
    assert!(shown.is_ready() && shown.feeds.iter().all(|feed| feed.refused[0].subject == "NOPE"));
    running.stop();
    // A feed without a symbol is not ready; the other one goes on.
    let mut nothing = feed(&sim, Venue::BinanceSpot);
    nothing.symbols = vec!["NOPE".to_owned()];
    let running = follow(vec![nothing, feed(&sim, Venue::Kraken)]);
    let reader = running.reader();
    assert!(reader.wait(SOON, || reader.all_verified() && reader.status(1).connected));
    assert!(!reader.snapshot(tt_os::clock::unix_now(), 1).is_ready());
    running.stop();
    sim.stop();
}

/// `币安人生` is at Binance; names of 24 and more characters are at Deribit.
#[test]
fn symbols_of_more_than_23_bytes_and_in_any_script_are_followed() {
    let base_prefix = "\u{5e01}\u{5b89}\u{4eba}\u{751f}1000000000000";
    let config =
        sim::Config { instruments: 2, rate_hz: 800.0, seed: 20_260_801, base_prefix, ..sim::Config::default() };
    let sim = sim::start(config).unwrap();
    let running = follow(VENUES.map(|(venue, ..)| feed(&sim, venue)).to_vec());
    let reader = running.reader();
    assert!(reader.instruments().iter().all(|listed| listed.symbol.len() > 23 && listed.name.starts_with(base_prefix)));
    assert!(reader.wait(SOON, || connected(&reader) && reader.all_verified()), "{:?}", reader.status(0));
    assert_true(&sim, &reader);
    for feed in 0..VENUES.len() {
        assert_eq!((reader.counters(feed).gaps, reader.status(feed).silent_topics), (0, vec![]));
    }
    running.stop();
    sim.stop();
}
