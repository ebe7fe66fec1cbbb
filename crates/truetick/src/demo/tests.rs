//! The demonstration against a market of the test's own.

use std::time::Instant;

use risk_gate::Quote;
use tt_model::{Decimal, InstrumentId};
use tt_status::risk::{LevelRow, RiskStatus};

use super::*;

/// A market with one price, or none.
struct FixedQuotes {
    has_price: bool,
    reads: AtomicBool,
}

impl QuoteSource for FixedQuotes {
    fn quote(&self, _instrument: InstrumentId) -> Option<Quote> {
        self.reads.store(true, Ordering::Release);
        let ts_recv = tt_os::clock::unix_now();
        let quote =
            Quote { bid_px: 639_999, ask_px: 640_001, ts_recv, is_verified: true, proof_ts: ts_recv, update_id: 5 };
        self.has_price.then_some(quote)
    }
}

fn start_with(quotes: Arc<FixedQuotes>) -> Running {
    let (tick_size, lot_size) = (Decimal::new(100, 3), Decimal::new(1, 4));
    let symbol = |number: u32| format!("C{number}/USDT");
    let listed = |number: u32| {
        let ref_px = if quotes.has_price { 640_000 } else { 0 };
        Listed { name: format!("test:{}", symbol(number)), tick_size, lot_size, ref_px }
    };
    let limits = LimitsFile::parse(&limits(&[0, 1, 2].map(listed))).expect("limits of the demonstration");
    let instrument = |number: u32| DemoInstrument {
        instrument: InstrumentId(number),
        symbol: symbol(number),
        venue: "test",
        lot_size,
    };
    let instruments = (0..3).map(instrument).collect();
    let open_max = Duration::from_millis(2_500);
    let config = DemoConfig { limits, instruments, quotes, intents_per_s: 2000, open_max, silent_after: None, seed: 1 };
    start(config).expect("the gate takes the limits")
}

fn wait_until(running: &Running, enough: impl Fn(&RiskStatus) -> bool) -> RiskStatus {
    let started = Instant::now();
    loop {
        let risk = running.board().status();
        assert!(risk.ledger.closes, "{:?}", risk.ledger);
        assert!(risk.ring.pushed >= risk.ring.popped);
        if enough(&risk) {
            return risk;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{:?} {:?}", risk.ledger, risk.reasons);
        thread::yield_now();
    }
}

fn reason(risk: &RiskStatus, name: &str) -> u64 {
    risk.reasons.iter().find(|reason| reason.name == name).expect("a known reason").count
}

#[test]
fn the_mix_is_accepted_and_rejected_for_different_reasons() {
    let running = start_with(Arc::new(FixedQuotes { has_price: true, reads: AtomicBool::new(false) }));
    let risk = wait_until(&running, |risk| {
        let met = ["PRICE_TICK", "QTY_MAX", "NOTIONAL_MAX", "COLLAR_REF", "RATE_ACCOUNT", "OPEN_ORDERS", "DUP_ID"];
        met.iter().all(|name| reason(risk, name) > 0)
            && risk.limits.iter().any(|limits| limits.position.contains(|digit| matches!(digit, '1'..='9')))
    });
    assert_eq!((reason(&risk, "BOOK_UNVERIFIED"), reason(&risk, "NOT_PERMITTED")), (0, 0));
    assert!(risk.verdicts.iter().all(|verdict| verdict.accept == verdict.reasons.is_empty()), "{:?}", risk.verdicts);
    assert!(risk.verdicts.is_sorted_by(|a, b| a.seq > b.seq));
    let board = running.board();
    running.stop();
    let (risk, tally) = (board.status(), board.tally());
    assert_eq!((risk.ring.pushed, risk.ring.popped), (risk.ledger.input, risk.ledger.input));
    assert_eq!((tally.update_errors, tally.unjudged), (0, 0));
    // The firm has one account, which has one strategy: each holds the same, under the limits of the file.
    let held = |of: &LevelRow| (of.symbol.clone(), of.venue, of.position.clone(), of.open_orders);
    for (level, account, strategy) in [("firm", None, None), ("strategy", Some(0), Some(1))] {
        let rows: Vec<_> = risk.levels.iter().filter(|row| row.level == level).collect();
        assert!(rows.iter().all(|row| (row.account, row.strategy) == (account, strategy)), "{rows:?}");
        let expected = risk.limits.iter().map(|of| (of.symbol.clone(), of.venue, of.position.clone(), of.open_orders));
        assert_eq!(rows.iter().map(|row| held(row)).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        for (row, of) in rows.iter().zip(&risk.limits) {
            let maxima = |long: &str, short: &str, orders| (long.to_owned(), short.to_owned(), orders);
            assert_eq!(
                maxima(&row.position_long_max, &row.position_short_max, row.open_orders_max),
                maxima(&of.position_long_max, &of.position_short_max, of.open_orders_max)
            );
            assert_ne!(row.position_long_max, "0");
        }
    }
}

#[test]
fn there_is_no_intent_without_a_price() {
    let quotes = Arc::new(FixedQuotes { has_price: false, reads: AtomicBool::new(false) });
    let running = start_with(Arc::clone(&quotes));
    while !quotes.reads.load(Ordering::Acquire) {
        thread::yield_now();
    }
    let board = running.board();
    running.stop();
    assert_eq!(board.status().ledger.input, 0);
}
