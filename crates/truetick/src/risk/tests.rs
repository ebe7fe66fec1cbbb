//! Both threads against a market of the test's own.

use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::*;
use crate::http::snapshot::Risk;

/// A quote of now, 1 step wide around 640,000.
fn quote() -> Quote {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Quote { bid_px: 639_999, ask_px: 640_001, ts_recv: Nanos(now.as_nanos() as u64), is_verified: true }
}

fn tradables() -> Vec<Tradable> {
    (0..3)
        .map(|number| Tradable {
            instrument: InstrumentId(number * 2),
            symbol: format!("C{number}/USDT"),
            venue: "test",
            tick_size: Decimal::new(100, 3),
            lot_size: Decimal::new(1, 4),
        })
        .collect()
}

fn start_with(quotes: Quotes) -> Running {
    start(RiskConfig { tradables: tradables(), quotes, intents_per_s: 2000, seed: 1 }).unwrap()
}

/// Reads until `enough`, for a minute at most.
fn wait_until(running: &Running, enough: impl Fn(&Risk) -> bool) -> Risk {
    let start = Instant::now();
    loop {
        let risk = running.published().snapshot();
        assert!(risk.ledger.closes, "{:?}", risk.ledger);
        assert!(risk.ring.pushed >= risk.ring.popped);
        if enough(&risk) {
            return risk;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{:?} {:?}", risk.ledger, risk.reasons);
        thread::yield_now();
    }
}

fn reason(risk: &Risk, name: &str) -> u64 {
    risk.reasons.iter().find(|reason| reason.name == name).unwrap().count
}

#[test]
fn the_mix_is_accepted_and_refused_for_different_reasons() {
    let running = start_with(Arc::new(|_| Some(quote())));
    let risk = wait_until(&running, |risk| {
        let met = ["PRICE_TICK", "QTY_MAX", "NOTIONAL_MAX", "COLLAR_REF", "RATE_ACCOUNT", "OPEN_ORDERS", "DUP_ID"];
        met.iter().all(|name| reason(risk, name) > 0)
            && risk.limits.iter().any(|limits| limits.position.contains(|digit| matches!(digit, '1'..='9')))
    });
    assert_eq!(reason(&risk, "BOOK_UNVERIFIED"), 0);
    assert_eq!(reason(&risk, "NOT_PERMITTED"), 0);
    assert!(risk.verdicts.iter().all(|verdict| verdict.accept == verdict.reasons.is_empty()), "{:?}", risk.verdicts);
    assert!(risk.verdicts.is_sorted_by(|a, b| a.seq > b.seq));
    let published = running.published();
    running.stop();
    let (risk, tally) = (published.snapshot(), published.tally());
    assert_eq!((risk.ring.pushed, risk.ring.popped), (risk.ledger.input, risk.ledger.input));
    assert_eq!((tally.outcome_faults, tally.verdicts_lost), (0, 0));
}

#[test]
fn without_proof_nothing_passes_and_with_it_again_something_does() {
    let shown = Arc::new(Mutex::new(Quote { is_verified: false, ..quote() }));
    let source = Arc::clone(&shown);
    let running = start_with(Arc::new(move |_| Some(*source.lock().unwrap())));
    let unproven = wait_until(&running, |risk| risk.ledger.input > 100);
    assert_eq!(unproven.ledger.outcomes[0].count, 0, "accepted without a proof");
    assert_eq!(reason(&unproven, "BOOK_UNVERIFIED"), unproven.ledger.input);
    *shown.lock().unwrap() = Quote { ts_recv: Nanos(u64::MAX / 2), ..quote() };
    wait_until(&running, |risk| risk.ledger.outcomes[0].count > 0);
    *shown.lock().unwrap() = Quote { ts_recv: Nanos(1), ..quote() };
    wait_until(&running, |risk| reason(risk, "MD_STALE") > 0);
    running.stop();
}

#[test]
fn without_a_price_there_is_no_intent() {
    let asked = Arc::new(AtomicBool::new(false));
    let asking = Arc::clone(&asked);
    let running = start_with(Arc::new(move |_| {
        asking.store(true, Ordering::Release);
        None
    }));
    while !asked.load(Ordering::Acquire) {
        thread::yield_now();
    }
    let published = running.published();
    running.stop();
    assert_eq!(published.snapshot().ledger.input, 0);
}

/// The strategy still sees the price that the gate sees no more.
#[test]
fn case_k09_a_book_that_lost_a_side_is_no_reference() {
    let has_both = Arc::new(AtomicBool::new(true));
    let source = Arc::clone(&has_both);
    let running = start_with(Arc::new(move |_| {
        let is_whole = source.load(Ordering::Acquire) || thread::current().name() != Some("gate");
        Some(if is_whole { quote() } else { Quote { ask_px: 0, ..quote() } })
    }));
    wait_until(&running, |risk| risk.ledger.outcomes[0].count > 0);
    has_both.store(false, Ordering::Release);
    // What the gate had begun to judge is through as soon as one is refused for want of a reference.
    let first = wait_until(&running, |risk| reason(risk, "BOOK_UNVERIFIED") > 0);
    let later = wait_until(&running, |risk| risk.ledger.input > first.ledger.input + 100);
    assert_eq!(later.ledger.outcomes[0].count, first.ledger.outcomes[0].count, "accepted without a reference");
    running.stop();
}
