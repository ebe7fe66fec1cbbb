//! Whole books against the times of the venue's best levels, on frames in the form that Hyperliquid documents
//! (hyperliquid.gitbook.io/hyperliquid-docs/for-developers/api/websocket/subscriptions).

use super::{Bench, BookUpdate, DropReason, IncidentCause, MS};
use tt_market::{AddError, Applied, Proof};
use tt_model::{InstrumentId, Nanos, Price, Qty};
use tt_venue::{BookLevel, Venue};

const SPACING: Nanos = Nanos::from_millis(500);

fn level(px: &str, sz: &str) -> String {
    format!(r#"{{"px":"{px}","sz":"{sz}","n":1}}"#)
}

impl Bench {
    fn hyperliquid() -> Self {
        let mut bench = Self::new(Venue::Hyperliquid);
        bench.engine.set_book_spacing(bench.id, SPACING).unwrap();
        bench
    }

    /// A book of `MS + ms` with these best levels.
    fn whole(&mut self, ms: u64, bid: &str, ask: &str) -> Proof {
        let (bids, asks) = (level(bid, "1.000"), level(ask, "2.000"));
        let levels = format!(r#"[[{bids}],[{asks}]]"#);
        let time = MS + ms;
        let applied = self
            .frame(&format!(r#"{{"channel":"l2Book","data":{{"coin":"BTCUSDT","time":{time},"levels":{levels}}}}}"#));
        assert_eq!(applied, Ok(Applied::Book { instrument: self.id, update: BookUpdate::Snapshot }));
        self.top().status.proof
    }

    /// Best levels of `MS + ms`.
    fn best(&mut self, ms: u64, bid: &str, ask: &str) -> Proof {
        let levels = format!("[{},{}]", level(bid, "1.000"), level(ask, "2.000"));
        self.best_of("BTCUSDT", ms, &levels).unwrap();
        self.top().status.proof
    }

    fn best_of(&mut self, coin: &str, ms: u64, levels: &str) -> Result<Applied, DropReason> {
        let time = MS + ms;
        self.frame(&format!(r#"{{"channel":"bbo","data":{{"coin":"{coin}","time":{time},"bbo":{levels}}}}}"#))
    }

    fn cause(&mut self) -> Option<IncidentCause> {
        let incident = self.engine.poll_incident();
        assert!(incident.is_none_or(|incident| incident.instrument == self.id), "{incident:?}");
        incident.map(|incident| incident.cause)
    }
}

#[test]
fn a_book_that_the_best_levels_are_ahead_of_is_stale_until_the_next_one() {
    let mut bench = Bench::hyperliquid();
    assert_eq!(bench.best(9_000, "10.0", "10.1"), Proof::Syncing, "no book yet");
    assert_eq!(bench.whole(10_000, "10.0", "10.1"), Proof::Unverified);
    // One and a half times 500 ms: the next book comes with the first block after half a second.
    assert_eq!(bench.best(10_750, "10.2", "10.3"), Proof::Unverified);
    assert_eq!(bench.cause(), None);
    assert_eq!(bench.best(10_751, "10.3", "10.4"), Proof::Stale);
    let at = |ms: u64| Nanos::from_millis(MS + ms);
    assert_eq!(bench.cause(), Some(IncidentCause::Behind { expected: at(10_751), received: at(10_000) }));
    assert_eq!((bench.best(11_500, "10.4", "10.5"), bench.cause()), (Proof::Stale, None), "named once");
    // Older than the best levels still, and the next is as new as they are.
    assert_eq!((bench.whole(10_500, "10.1", "10.2"), bench.cause()), (Proof::Stale, None));
    assert_eq!((bench.whole(11_000, "10.4", "10.5"), bench.cause()), (Proof::Unverified, None));
    assert_eq!(bench.best(11_751, "10.0", "10.1"), Proof::Stale, "again");
    assert!(matches!(bench.cause(), Some(IncidentCause::Behind { .. })));
    // The venue sends the next book unasked.
    assert_eq!(bench.requests(), []);
}

#[test]
fn best_levels_of_the_same_time_are_those_of_the_book() {
    let mut bench = Bench::hyperliquid();
    let matches = |bench: &Bench| bench.engine.counters().venue(Venue::Hyperliquid).oracle_matches;
    let level = |px: i64, qty: i64| BookLevel { px: Price(px), qty: Qty(qty) };
    for (ms, book_first) in [(0, true), (500, false)] {
        let before = matches(&bench);
        let proofs = if book_first {
            [bench.whole(ms, "10.0", "10.1"), bench.best(ms, "10.0", "10.1")]
        } else {
            [bench.best(ms, "10.0", "10.1"), bench.whole(ms, "10.0", "10.1")]
        };
        assert_eq!((proofs, bench.cause()), ([Proof::Unverified; 2], None));
        assert_eq!(matches(&bench), before + 1);
    }
    assert_eq!(bench.best(1_000, "10.0", "10.2"), Proof::Unverified);
    assert_eq!(bench.whole(1_000, "10.0", "10.1"), Proof::Stale);
    let expected = [level(100, 1_000), level(102, 2_000)];
    let received = [level(100, 1_000), level(101, 2_000)];
    assert_eq!(bench.cause(), Some(IncidentCause::BestLevels { expected, received }));
    assert_eq!(bench.whole(1_500, "10.0", "10.1"), Proof::Unverified);
    assert_eq!(bench.best(1_500, "9.9", "10.1"), Proof::Stale);
    assert!(matches!(bench.cause(), Some(IncidentCause::BestLevels { .. })));
    assert_eq!(matches(&bench), 2);
}

#[test]
fn only_books_with_a_spacing_and_no_other_proof_are_held_against_times() {
    let mut bench = Bench::new(Venue::Hyperliquid);
    assert_eq!(bench.whole(0, "10.0", "10.1"), Proof::Unverified);
    assert_eq!(bench.best(60_000, "10.2", "10.3"), Proof::Unverified);
    assert_eq!(bench.engine.set_book_spacing(InstrumentId(9), SPACING), Err(AddError::BadInstrument));
    // Another coin's best levels say nothing of this book.
    let mut bench = Bench::hyperliquid();
    assert_eq!(bench.whole(0, "10.0", "10.1"), Proof::Unverified);
    bench.best_of("ETHUSDT", 60_000, &format!("[null,{}]", level("10.1", "1.000"))).unwrap();
    assert_eq!((bench.top().status.proof, bench.cause()), (Proof::Unverified, None));
    let mut other = Bench::new(Venue::Okx);
    let refused = other.engine.set_book_spacing(other.id, SPACING);
    assert_eq!(refused, Err(AddError::BadInstrument), "its numbers prove it");
}
