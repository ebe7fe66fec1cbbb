//! A strategy's thread from quote to wire and back, with the types that `truetick serve` gives its own strategy: quotes,
//! intents, verdicts, the last check before the wire, and reports. The feed loses its proof on the way: the refusal names
//! the update.
//!
//! ```text
//! cargo run -p risk-gate --example producer
//! ```

use std::sync::Arc;
use std::thread;

use anyhow::{Context as _, Result, bail, ensure};
use risk_gate::{BoardRow, DurableGate, GateConfig, LimitsFile, Ports, Quote, QuoteSource, start};
use tt_model::{Decimal, InstrumentId, Nanos, OrderIntent, OrderSide, Price, Qty, Report, ReportKind, Verdict};
use tt_os::clock::unix_now;
use tt_sync::seqlock::{Reader, Writer, cell};

/// The sample of this repository: one instrument, the account `main`, its strategy `mm1`.
const LIMITS: &str = include_str!("../../../deploy/gate-limits.toml");
const BTC: InstrumentId = InstrumentId(0);
const STRATEGY: u16 = 1;

/// A feed's newest quote, which any thread reads without making the feed wait. `truetick serve` reads
/// `market_feed::Reader::top_of_book` here.
struct Book(Reader<5>);

impl QuoteSource for Book {
    fn quote(&self, instrument: InstrumentId) -> Option<Quote> {
        let [bid, ask, ts_recv, is_verified, update_id] = self.0.load();
        (instrument == BTC).then_some(Quote {
            bid_px: bid.cast_signed(),
            ask_px: ask.cast_signed(),
            ts_recv: Nanos(ts_recv),
            is_verified: is_verified == 1,
            // Every update of this book proves it.
            proof_ts: Nanos(ts_recv),
            update_id,
        })
    }
}

/// The feed: a frame has changed the book.
fn publish(book: &mut Writer<5>, update_id: u64, is_verified: bool) {
    book.store(&[5_999_990, 6_000_010, unix_now().0, u64::from(is_verified), update_id]);
}

/// The producer: one order at a time, each until its verdict, and on to the venue if it is accepted.
struct Producer {
    ports: Ports,
    orders: u64,
    wire: Vec<OrderIntent>,
}

impl Producer {
    fn order(&mut self, side: OrderSide, px: i64) -> Result<Verdict> {
        self.orders += 1;
        let intent = OrderIntent {
            client_id: self.orders,
            ts_ns: unix_now().0,
            instrument: BTC,
            strategy: STRATEGY,
            side,
            limit_px: Price(px),
            qty: Qty(1_000),
            ..OrderIntent::default()
        };
        self.ports.intents.send(intent).ok().context("the ring of intents is full")?;
        let verdict = self.ports.verdicts.wait().context("the gate has ended")?;
        let sender = self.ports.senders.first_mut().context("a sender")?;
        if let Err(not_sent) = sender.send(&intent, &verdict, |intent| self.wire.push(*intent))
            && let Some(report) = not_sent.report(&intent)
        {
            self.ports.reports.send(report)?;
        }
        Ok(verdict)
    }

    /// The venue fills the last order.
    fn fill(&mut self) -> Result<()> {
        let Some(OrderIntent { client_id, instrument, side, qty, limit_px, .. }) = self.wire.pop() else {
            bail!("no order is at the venue")
        };
        let kind = ReportKind::FILL;
        let execution_id = u128::from(client_id);
        let (px, executed) = (limit_px, qty);
        let report = Report { kind, side, instrument, client_id, execution_id, qty, px, executed, ..Report::default() };
        Ok(self.ports.reports.send(report)?)
    }
}

fn main() -> Result<()> {
    let limits = LimitsFile::parse(LIMITS)?;
    let (mut book, reader) = cell([0; 5]);
    let row = BoardRow {
        account: 0,
        instrument: BTC,
        symbol: "BTC/USDT".to_owned(),
        venue: "example",
        tick_size: Decimal::new(1, 2),
        lot_size: Decimal::new(1, 5),
        limits: None,
        collar_bps: 100,
        rate_per_s: 2,
    };
    let config = GateConfig {
        // `DurableGate::open` instead: every input is in a journal before its verdict.
        gate: DurableGate::of(&limits)?,
        rows: vec![row],
        quotes: Some(Arc::new(Book(reader))),
        ring_slots: 64,
        sample_one_in: 1,
        cpu: None,
        spins: false,
        senders: vec!["example".to_owned()],
        dead_man: None,
    };
    let (gate, ports) = start(config)?;
    let strategy = thread::spawn(move || {
        let mut producer = Producer { ports, orders: 0, wire: Vec::new() };
        publish(&mut book, 101, true);
        ensure!(producer.order(OrderSide::Buy, 5_999_990)?.accept == 1, "a proved book");
        producer.fill()?;
        // Update 102 has not come: the book is no longer proved.
        publish(&mut book, 103, false);
        ensure!(producer.order(OrderSide::Sell, 6_000_010)?.accept == 0, "a book without a proof");
        publish(&mut book, 104, true);
        ensure!(producer.order(OrderSide::Sell, 6_000_010)?.accept == 1, "a snapshot has mended it");
        Ok(producer.wire.len())
    });
    let Ok(sent) = strategy.join() else { bail!("the strategy panicked") };
    println!("{} order at the venue", sent?);
    let board = gate.board();
    gate.join();
    for row in board.status().verdicts.iter().rev() {
        let word = if row.accept { "accepted" } else { "rejected" };
        let update = row.book_update_id.map_or_else(String::new, |id| format!("by update {id} of {}", row.venue));
        println!("{} {} {} {word} {update} {}", row.seq, row.side, row.symbol, row.reasons.join(" "));
    }
    Ok(())
}
