//! Sends order intents from a strategy's thread through a ring into the gate, and prints the verdicts.
//!
//! ```text
//! cargo run -p risk-gate --example intents
//! ```

use std::sync::Arc;
use std::thread;

use anyhow::Result;
use risk_gate::{GateConfig, LimitsFile, Ports, Quote, QuoteSource, start};
use tt_model::{InstrumentId, OrderIntent, OrderSide, Price, Qty, Report, ReportKind, Verdict};
use tt_os::clock::unix_now;
use tt_risk::KillSwitch;

const LIMITS: &str = r#"
global_rate = { per_second = 1000, burst = 100 }

[[instrument]]
symbol = "BTC/USDT"
px_decimals = 2
qty_decimals = 5
collar_bps = 100
mark_age_max_ms = 2000
rate = { per_second = 1000, burst = 100 }

[[account]]
account = 0
rate = { per_second = 50, burst = 10 }

[[account.limits]]
symbol = "BTC/USDT"
px_step = "0.10"
qty_step = "0.00001"
qty_min = "0.00010"
qty_max = "1"
notional_min = "5"
notional_max = "50000"
position_long_max = "0.5"
position_short_max = "0.5"
open_qty_max = "2"
open_orders_max = 10
"#;

/// A market with a fixed price. A real source reads a verified book, such as `market_feed::Reader::top_of_book`.
struct FixedMarket;

impl QuoteSource for FixedMarket {
    fn quote(&self, _instrument: InstrumentId) -> Option<Quote> {
        // 59,999.90 and 60,000.10 in steps of 0.01.
        let (bid_px, ask_px) = (5_999_990, 6_000_010);
        let now = unix_now();
        Some(Quote { bid_px, ask_px, ts_recv: now, is_verified: true, proof_ts: now, update_id: 0 })
    }
}

fn main() -> Result<()> {
    let limits = LimitsFile::parse(LIMITS)?;
    let (btc, instrument) = limits.find("BTC/USDT")?;
    let order = |client_id, side, px: &str, qty: &str| -> Result<OrderIntent> {
        let (limit_px, qty) = (instrument.px(px)?, instrument.qty(qty)?);
        Ok(OrderIntent { client_id, instrument: btc, side, limit_px, qty, ..OrderIntent::default() })
    };
    let intents = [
        order(1, OrderSide::Buy, "60000.00", "0.3")?,
        order(2, OrderSide::Buy, "66000.00", "0.3")?, // 10 % above the market
        order(3, OrderSide::Buy, "60000.05", "9")?,   // between two price steps, and too large
        order(1, OrderSide::Sell, "60100.00", "0.1")?, // the client id of the first order
    ];

    let config = GateConfig {
        gate: limits.gate()?.into(),
        rows: Vec::new(),
        quotes: Some(Arc::new(FixedMarket)),
        ring_slots: 64,
        sample_one_in: 1,
        cpu: None,
        spins: false,
        senders: Vec::new(),
        dead_man: None,
    };
    let (gate, Ports { intents: mut sender, mut reports, mut verdicts, .. }) = start(config)?;
    let control = gate.control();

    let strategy = thread::spawn(move || {
        for mut intent in intents {
            intent.ts_ns = unix_now().0;
            if sender.send(intent).is_err() {
                eprintln!("the ring is full");
            }
        }
        sender
    });
    for _ in &intents {
        if let Some(verdict) = verdicts.wait() {
            print(&verdict);
        }
    }
    let Ok(mut sender) = strategy.join() else { anyhow::bail!("the strategy panicked") };

    // The venue reports a fill, and an operator stops the account.
    let filled = Report {
        kind: ReportKind::FILL,
        instrument: btc,
        client_id: 1,
        execution_id: 7001,
        qty: Qty(30_000),
        px: Price(6_000_000),
        executed: Qty(30_000),
        ..Report::default()
    };
    reports.send(filled)?;
    control.switches().kill(KillSwitch::Account(0));
    sender.send(OrderIntent { client_id: 4, ts_ns: unix_now().0, limit_px: Price(5_990_000), ..intents[0] })?;
    drop(sender);
    while let Some(verdict) = verdicts.wait() {
        print(&verdict);
    }
    let board = gate.board();
    gate.join();
    let tally = board.tally();
    println!("{} intents = {} accepted + {} rejected", tally.intents, tally.accepted, tally.rejected);
    Ok(())
}

fn print(verdict: &Verdict) {
    let word = if verdict.accept == 1 { "accepted" } else { "rejected" };
    let reasons: Vec<_> = verdict.reasons.names().collect();
    println!("{} client id {} {word} {}", verdict.seq, verdict.client_id, reasons.join(" "));
}
