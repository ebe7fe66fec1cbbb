//! A venue that makes the steps of an instrument finer while it is followed.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use flate2::Crc;
use market_feed::RecordingConfig;
use serde_json::{Value, json};
use tempfile::TempDir;
use tt_market::DropReason;
use tt_market::Proof;
use tt_model::{Decimal, InstrumentId};
use tt_venue::BookLevel;

use super::SOON;
use super::venue::{Hostile, Line, SYMBOL};

/// A price and a quantity, digit by digit.
type Level = (&'static str, &'static str);

/// CRC-32 over offers and bids, as Kraken's guide to it says: without points and leading zeros.
fn checksum(bids: &[Level], asks: &[Level]) -> u32 {
    let digits = |text: &str| text.replace('.', "").trim_start_matches('0').to_owned();
    let text: String = asks.iter().chain(bids).map(|(px, qty)| digits(px) + &digits(qty)).collect();
    let mut crc = Crc::new();
    crc.update(text.as_bytes());
    crc.sum()
}

/// A message of the book in Kraken's words.
fn book(kind: &str, [bids, asks]: [&[Level]; 2], checksum: u32, second: u32) -> String {
    let side = |levels: &[Level]| {
        let texts: Vec<String> = levels.iter().map(|(px, qty)| format!("{{\"price\":{px},\"qty\":{qty}}}")).collect();
        texts.join(",")
    };
    format!(
        "{{\"channel\":\"book\",\"type\":\"{kind}\",\"data\":[{{\"symbol\":\"{SYMBOL}\",\"bids\":[{}],\"asks\":[{}],\
         \"checksum\":{checksum},\"timestamp\":\"2026-08-01T12:00:{second:02}.000000Z\"}}]}}",
        side(bids),
        side(asks),
    )
}

/// Answers requests up to the next one for a book.
fn asked_for_a_book(line: &mut Line) {
    loop {
        let (_, asked) = line.receive().unwrap();
        let asked: Value = serde_json::from_slice(&asked).unwrap_or_default();
        let topic = &asked["params"]["channel"];
        let result = json!({"channel": topic, "symbol": SYMBOL});
        let method = &asked["method"];
        let answer = json!({"method": method, "req_id": asked["req_id"], "result": result, "success": true});
        if method == "subscribe" || method == "unsubscribe" {
            line.text(&answer.to_string());
        }
        if method == "subscribe" && topic == "book" {
            return;
        }
    }
}

/// The JSON output of a command on the recording.
fn output_of(command: &str, path: &Path) -> Value {
    let done = Command::new(env!("CARGO_BIN_EXE_truetick")).args([command, "--json"]).arg(path).output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout);
    serde_json::from_str(&text)
        .unwrap_or_else(|_| panic!("{command}: {text} {}", String::from_utf8_lossy(&done.stderr)))
}

#[test]
fn case_m46_finer_prices_are_followed_by_the_venues_new_list_and_replayed() {
    let coarse: [&[Level]; 2] = [&[("61800.1", "0.50000000")], &[("61800.2", "0.25000000")]];
    let fine: [&[Level]; 2] =
        [&[("61800.15", "0.50000000"), ("61800.10", "1.00000000")], &[("61800.20", "0.25000000")]];
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("finer.ttj");
    let recording =
        RecordingConfig { path: path.clone(), append: false, sync_every: Duration::from_millis(10), packed: false };
    let venue = Hostile::new();
    let running = venue.recorded(Some(recording), |_| {});
    let reader = running.reader();
    let id = InstrumentId(0);
    let top = || reader.top_of_book(id).unwrap();
    let proof = || top().status.proof;
    let mut line = venue.established();
    line.text(&book("snapshot", coarse, checksum(coarse[0], coarse[1]), 0));
    assert!(reader.wait(SOON, || proof() == Proof::Crc), "{:?}", top());
    assert_eq!(reader.instruments()[0].tick_size, Decimal::new(1, 1));

    // Between two steps: nothing is rounded.
    line.text(&book("update", [&fine[0][..1], &[]], 1, 1));
    assert!(reader.wait(SOON, || proof() == Proof::Stale), "{:?}", top());
    asked_for_a_book(&mut line);
    line.text(&book("snapshot", fine, checksum(fine[0], fine[1]), 2));
    // Both are dropped under that name, and the list is asked for once for both.
    let mut other = venue.upgraded();
    assert!(reader.wait(SOON, || reader.counters(0).dropped(DropReason::OffTickSize) == 2), "{:?}", reader.counters(0));
    assert_eq!(proof(), Proof::Stale);
    let asked = other.receive().unwrap();
    assert!(String::from_utf8_lossy(&asked.1).contains("instrument"), "{asked:?}");
    other.text(&Hostile::list(0.01));
    assert!(reader.wait(SOON, || reader.instruments()[0].tick_size == Decimal::new(1, 2)));
    assert_eq!(proof(), Proof::Stale, "new steps prove nothing");

    // However often it has been asked for meanwhile.
    while proof() == Proof::Stale {
        asked_for_a_book(&mut line);
        line.text(&book("snapshot", fine, checksum(fine[0], fine[1]), 3));
        reader.wait(Duration::from_secs(1), || proof() == Proof::Crc);
    }
    let (listed, seen) = reader.consistent(|list| (list[0].tick_size, top()));
    let level = |px, qty| Some(BookLevel { px: tt_model::Price(px), qty: tt_model::Qty(qty) });
    assert_eq!(
        (listed, seen.bid, seen.ask),
        (Decimal::new(1, 2), level(6_180_015, 50_000_000), level(6_180_020, 25_000_000))
    );
    let update: [&[Level]; 2] = [&[("61800.16", "0.10000000")], &[]];
    let after = [&[update[0], fine[0]].concat()[..], fine[1]];
    line.text(&book("update", update, checksum(after[0], after[1]), 4));
    assert!(reader.wait(SOON, || top().bid == level(6_180_016, 10_000_000) && proof() == Proof::Crc), "{:?}", top());
    assert_eq!(reader.status(0).connections, 1, "it goes on where it was");
    let progress = running.stop().unwrap();
    assert!(progress.closes() && progress.dropped() == 0, "{progress:?}");

    let replayed = output_of("replay", &path);
    assert_eq!((&replayed["right"], &replayed["runs"][0]["differing"]), (&json!(true), &json!(0)), "{replayed}");
    assert!(replayed["runs"][0]["has_ended"] == true, "{replayed}");
    let audited = &output_of("audit", &path)["feeds"][0];
    let (counters, watched) = (&audited["counters"], &audited["instruments"][0]);
    assert_eq!((&counters["crc_matches"], &counters["crc_mismatches"]), (&json!(3), &json!(0)), "{audited}");
    assert_eq!((&watched["refined"], &watched["tick_size"]), (&json!(1), &json!("0.01")), "{audited}");
}
