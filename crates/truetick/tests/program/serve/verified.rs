//! `--verify-every`: digits that change on the way at venues without a checksum, and snapshots of limited depth.

use std::time::{Duration, Instant};

use serde_json::Value;
use sim::{Fault, Side, TrueBook, Venue};

use crate::served::Served;

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

fn simulator(levels: impl Into<Option<u32>>) -> sim::Running {
    sim::start(sim::Config { instruments: 1, rate_hz: 0.0, levels: levels.into(), ..sim::Config::default() }).unwrap()
}

/// `market` with the first instrument of a simulated venue.
fn market(sim: &sim::Running, venue: Venue, flags: &[&str]) -> Served {
    let url = format!("ws://{}{}", sim.address(venue), venue.streams_path());
    let symbol = sim.instruments(venue).remove(0).symbol;
    let of_venue = ["market", "--http", "127.0.0.1:0", "--venue", venue.name(), "--symbols", &symbol, "--url", &url];
    let served = Served::of(&[&of_venue[..], flags].concat());
    // The page is there before the venue's list is.
    served.wait("/api/v1/market/status", |status| status["books"] == 1);
    served
}

fn book(served: &Served) -> Value {
    served.json("/api/v1/market/orderbook?depth=all")[0].take()
}

fn feed(served: &Served) -> Value {
    served.json("/api/v1/market/status")["feeds"][0].take()
}

fn is_proved(book: &Value) -> bool {
    ["sequence", "oracle", "snapshot"].contains(&book["proof"].as_str().unwrap())
}

/// Steps until the book joins.
fn step_until_proved(sim: &sim::Running, venue: Venue, served: &Served) {
    let start = Instant::now();
    while !is_proved(&book(served)) {
        assert!(start.elapsed() < PATIENCE, "{}", book(served));
        testkit::pause();
        sim.step(venue, 0, 1);
    }
}

/// Decimal text in steps of 10^-`decimals`.
fn steps(text: &Value, decimals: u32) -> i64 {
    let (whole, part) = text.as_str().unwrap().split_once('.').unwrap_or((text.as_str().unwrap(), ""));
    let padded = format!("{whole}{part:0<width$}", width = decimals as usize);
    padded.parse().unwrap()
}

type Levels = Vec<(i64, i64)>;

/// The levels of an answer, bids and asks, in the simulator's steps.
fn levels(sim: &sim::Running, venue: Venue, book: &Value) -> [Levels; 2] {
    let listed = sim.instruments(venue).remove(0);
    let level = |level: &Value| (steps(&level["px"], listed.px_decimals), steps(&level["qty"], listed.qty_decimals));
    ["bids", "asks"].map(|side| book[side].as_array().unwrap().iter().map(level).collect())
}

fn truth(book: &TrueBook) -> [Levels; 2] {
    let level = |(&px, &qty): (&i64, &i64)| (px, qty);
    [book.bids().map(level).collect(), book.asks().map(level).collect()]
}

/// Whether the book is proved and is the true one, once it has the last update; `None` while it has not.
fn is_true(sim: &sim::Running, venue: Venue, book: &Value) -> Option<bool> {
    let (update_id, script) = sim.truth(venue, 0);
    let id = book["update_id"].as_u64().unwrap();
    let is_last = if venue == Venue::Okx { sim.update_id_of(venue, 0, 400, id) } else { Some(id) } == Some(update_id);
    (is_proved(book) && is_last).then(|| levels(sim, venue, book) == truth(&script))
}

/// Changes digits of updates until a book is proved and wrong.
fn plant(sim: &sim::Running, venue: Venue, served: &Served) {
    let start = Instant::now();
    loop {
        sim.fault(venue, 0, Fault::FlipDigit);
        let frames = feed(served)["frames"].as_u64().unwrap();
        sim.step(venue, 0, 1);
        // The best bid and offer may show it, which costs the book at once.
        let is_planted = loop {
            assert!(start.elapsed() < PATIENCE, "{} {}", book(served), feed(served));
            testkit::pause();
            if feed(served)["frames"].as_u64().unwrap() > frames
                && let Some(is_true) = is_true(sim, venue, &book(served))
            {
                break !is_true;
            }
            if !is_proved(&book(served)) {
                sim.step(venue, 0, 1);
            }
        };
        if is_planted {
            return;
        }
    }
}

/// Whether the book is the true one after another update.
fn is_true_soon(sim: &sim::Running, venue: Venue, served: &Served) -> bool {
    let start = Instant::now();
    sim.step(venue, 0, 1);
    loop {
        assert!(start.elapsed() < PATIENCE, "{} {}", book(served), feed(served));
        testkit::pause();
        let shown = book(served);
        if let Some(is_true) = is_true(sim, venue, &shown) {
            return is_true;
        }
        if !is_proved(&shown) {
            sim.step(venue, 0, 1);
        }
    }
}

#[test]
fn a_changed_digit_stays_where_nothing_verifies_it() {
    for venue in [Venue::BinanceUsdm, Venue::Okx] {
        let sim = simulator(None);
        let served = market(&sim, venue, &[]);
        step_until_proved(&sim, venue, &served);
        let start = Instant::now();
        let before = loop {
            assert!(start.elapsed() < PATIENCE, "{}", feed(&served));
            plant(&sim, venue, &served);
            let before = feed(&served);
            // The next update may replace the digit.
            if !is_true_soon(&sim, venue, &served) {
                break before;
            }
        };
        let after = feed(&served);
        assert_eq!((&after["snapshot_mismatches"], &after["differences"]), (&0.into(), &Value::Array(vec![])));
        assert_eq!(before["gaps"], after["gaps"]);
    }
}

#[test]
fn a_changed_digit_is_found_by_the_verification_named_and_mended() {
    for venue in [Venue::BinanceUsdm, Venue::Okx] {
        let sim = simulator(None);
        let served = market(&sim, venue, &["--verify-every", "1s"]);
        step_until_proved(&sim, venue, &served);
        let path = "/api/v1/market/orderbook?depth=all";
        let verified = served.wait(path, |books| books[0]["proof"] == "snapshot");
        assert_eq!(verified[0]["proof_update_id"], verified[0]["update_id"]);
        assert!(verified[0]["proof_age_ms"].as_f64().is_some_and(|age| age < 60_000.0), "{}", verified[0]);
        let start = Instant::now();
        let found = loop {
            assert!(start.elapsed() < PATIENCE, "{}", feed(&served));
            sim.fault(venue, 0, Fault::FlipDigit);
            sim.step(venue, 0, 1);
            let seconds = Instant::now();
            while seconds.elapsed() < Duration::from_secs(2) && feed(&served)["snapshot_mismatches"] == 0 {
                testkit::pause();
                if !is_proved(&book(&served)) {
                    sim.step(venue, 0, 1);
                }
            }
            let feed = feed(&served);
            if feed["snapshot_mismatches"] != 0 {
                break feed;
            }
        };
        let named = &found["differences"][0];
        let listed = sim.instruments(venue).remove(0);
        assert_eq!(named["symbol"], listed.symbol);
        let id = named["update_id"].as_u64().unwrap();
        let id = if venue == Venue::Okx { sim.update_id_of(venue, 0, 400, id).unwrap() } else { id };
        let side = if named["side"] == "bid" { Side::Bid } else { Side::Ask };
        let (px, qty) = (steps(&named["px"], listed.px_decimals), steps(&named["snapshot_qty"], listed.qty_decimals));
        let mut script = sim.script(venue, 0);
        assert_eq!(script.play_to(id).unwrap().qty(side, px), qty, "{named}");
        assert_ne!(named["book_qty"], named["snapshot_qty"]);
        step_until_proved(&sim, venue, &served);
        let mended = served.wait(path, |books| books[0]["proof"] == "snapshot");
        assert_eq!(is_true(&sim, venue, &mended[0]), Some(true), "{}", feed(&served));
        assert_eq!(found["gaps"], 0, "{found}");
    }
}

#[test]
fn a_book_of_a_thousand_levels_is_known_to_their_end_and_a_comparison_adds_to_it() {
    let sim = simulator(2_000);
    let venue = Venue::BinanceSpot;
    let (_, whole) = sim.truth(venue, 0);
    assert!(whole.bids().count() > 1_500 && whole.asks().count() > 1_500);
    let served = market(&sim, venue, &["--verify-every", "1s"]);
    step_until_proved(&sim, venue, &served);
    let ticker = served.json("/api/v1/market/ticker");
    assert_eq!(ticker[0]["known_levels"], 1000);
    let decimals = sim.instruments(venue)[0].px_decimals;
    // The book agrees with the truth as far as it says that it is known.
    let check = |book: &Value| {
        let range = &book["known_range"];
        let (bid, ask) = (steps(&range["bid_px"], decimals), steps(&range["ask_px"], decimals));
        let known = |[bids, asks]: [Levels; 2]| {
            let bids: Levels = bids.into_iter().filter(|level| level.0 >= bid).collect();
            let asks: Levels = asks.into_iter().filter(|level| level.0 <= ask).collect();
            [bids, asks]
        };
        let mut script = sim.script(venue, 0);
        let at = script.play_to(book["update_id"].as_u64().unwrap()).unwrap();
        let (in_book, in_truth) = (known(levels(&sim, venue, book)), known(truth(at)));
        assert_eq!(in_book, in_truth);
        in_book.map(|side| side.len())
    };
    let first = book(&served);
    assert!(check(&first).into_iter().all(|count| count > 900), "{:?}", check(&first));
    let before = feed(&served)["snapshot_matches"].as_u64().unwrap();
    sim.step(venue, 0, 30);
    served
        .wait("/api/v1/market/status", |status| status["feeds"][0]["snapshot_matches"].as_u64().unwrap() > before + 1);
    let second = book(&served);
    assert_eq!(second["proof"], "snapshot");
    assert!(check(&second).into_iter().all(|count| count > 900), "{:?}", check(&second));
    assert_eq!(feed(&served)["snapshot_mismatches"], 0);
}

#[test]
fn rejects_venues_without_numbered_snapshots_and_times_that_are_none() {
    let said = |arguments: &[&str]| {
        let output =
            std::process::Command::new(env!("CARGO_BIN_EXE_truetick")).arg("market").args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let of =
        |venue, time| said(&["--venue", venue, "--symbols", "X", "--url", "ws://127.0.0.1:9", "--verify-every", time]);
    let (status, text) = of("kraken", "60s");
    assert!(status == Some(1) && text.contains("kraken has no REST snapshots"), "{text}");
    let (status, text) = of("okx", "60");
    assert!(status == Some(2) && text.contains("a time such as 60s"), "{text}");
    for time in ["500ms", "2h"] {
        let (status, text) = of("okx", time);
        assert!(status == Some(1) && text.contains("every 1 s to 3600 s"), "{text}");
    }
    let (status, text) = said(&["--verify-every", "60s"]);
    assert!(status == Some(2) && text.contains("--venue"), "{text}");
}
