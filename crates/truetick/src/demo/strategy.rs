//! The strategy: quotes around the market, with the mistakes that a gate is for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use risk_gate::{Ports, Quote, QuoteSource};
use tt_model::{OrderIntent, OrderSide, Price, Qty, SplitMix64};
use tt_os::clock::unix_now;

use super::orders::Orders;
use super::policy::{self, ACCOUNT, STRATEGY};
use super::{DemoConfig, DemoInstrument};

/// Longest sleep of the thread.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// Mean number of intents between two bursts, and intents per burst.
const BURST_ONCE_IN: u64 = 150;
const BURST_INTENTS: u32 = 24;

/// Number of intents after which the prevailing side of an instrument changes.
const LEANING_INTENTS: u64 = 40;

/// Age, in intents, of a client id that is used twice: its verdict has arrived.
const IDS_AGO: u64 = 100;

/// A mistake in an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    None,
    /// A price some percent away from the market.
    FatFinger,
    /// A quantity with an extra zero.
    Oversized,
    /// A quantity within its limit whose notional is not.
    Heavy,
    /// A price between two steps.
    OffStep,
    /// The client id of an earlier order.
    UsedId,
}

impl Mistake {
    fn draw(random: &mut SplitMix64) -> Self {
        match random.below(100) {
            0..5 => Self::FatFinger,
            5..8 => Self::Oversized,
            8..12 => Self::Heavy,
            12..15 => Self::OffStep,
            15..17 => Self::UsedId,
            _ => Self::None,
        }
    }
}

/// The strategy's state.
pub(super) struct Strategy {
    ports: Ports,
    quotes: Arc<dyn QuoteSource>,
    instruments: Vec<DemoInstrument>,
    orders: Orders,
    random: SplitMix64,
    interval_ns: u64,
    burst_left: u32,
    made: u64,
}

impl Strategy {
    pub(super) fn new(config: DemoConfig, ports: Ports) -> Self {
        Self {
            ports,
            quotes: config.quotes,
            instruments: config.instruments,
            orders: Orders::new(config.open_max),
            random: SplitMix64::new(config.seed),
            interval_ns: 1_000_000_000 / u64::from(config.intents_per_s.max(1)),
            burst_left: 0,
            made: 0,
        }
    }

    /// Runs until `stop` is set.
    pub(super) fn run(mut self, stop: &AtomicBool) {
        let mut due_ns = unix_now().0;
        while !stop.load(Ordering::Acquire) {
            let now_ns = unix_now().0;
            self.ports.intents.beat();
            self.take_verdicts(now_ns);
            self.take_cancels(now_ns);
            self.send_reports(now_ns);
            if now_ns >= due_ns {
                self.send_next();
                due_ns = if self.burst_left > 0 { now_ns } else { now_ns + self.pause_ns() };
            }
            let next_ns = self.orders.poll_timeout().map_or(due_ns, |update_ns| update_ns.min(due_ns));
            let sleep = Duration::from_nanos(next_ns.saturating_sub(unix_now().0));
            thread::park_timeout(sleep.min(SLEEP_MAX));
        }
    }

    /// Returns a pause of half to one and a half of the mean interval.
    fn pause_ns(&mut self) -> u64 {
        self.interval_ns / 2 + self.random.below(self.interval_ns)
    }

    fn take_verdicts(&mut self, now_ns: u64) {
        while let Some(verdict) = self.ports.verdicts.poll() {
            let Some(intent) = self.orders.take_accepted(&verdict) else { continue };
            let Some(sender) = self.ports.senders.first_mut() else { continue };
            let sent = sender.send(&intent, &verdict, |intent| self.orders.open(intent, now_ns, &mut self.random));
            if let Some(report) = sent.err().and_then(|error| error.report(&intent))
                && self.ports.reports.send(report).is_err()
            {
                tracing::error!("serve: a report was lost");
            }
        }
    }

    /// Writes the cancels of operators and of the dead man's switch.
    fn take_cancels(&mut self, now_ns: u64) {
        while let Some(cancel) = self.ports.cancels.poll() {
            let Some(sender) = self.ports.senders.first_mut() else { continue };
            if let Err(error) = sender.cancel(&cancel, |cancel| self.orders.cancel(cancel, now_ns)) {
                tracing::error!(%error, client_id = cancel.client_id, "serve: a cancel was not sent");
            }
        }
    }

    fn send_reports(&mut self, now_ns: u64) {
        // A report that was polled must reach the gate.
        while !self.ports.reports.is_full() {
            let Some(report) = self.orders.poll_report(now_ns, &mut self.random) else { break };
            if self.ports.reports.send(report).is_err() {
                tracing::error!("serve: a report was lost");
            }
        }
    }

    /// Makes one intent and sends it to the gate.
    fn send_next(&mut self) {
        if self.burst_left > 0 {
            self.burst_left -= 1;
        } else if self.random.below(BURST_ONCE_IN) == 0 {
            self.burst_left = BURST_INTENTS;
        }
        let Some(mut intent) = self.next_intent() else {
            self.burst_left = 0;
            return;
        };
        intent.ts_ns = unix_now().0;
        // The board counts pushes into a full ring.
        if self.ports.intents.send(intent).is_ok() {
            self.orders.add_sent(intent);
        }
    }

    /// Returns an intent for a random instrument; `None` if it has no price.
    fn next_intent(&mut self) -> Option<OrderIntent> {
        let index = self.random.below(self.instruments.len() as u64) as usize;
        let of = self.instruments.get(index)?;
        let quote = self.quotes.quote(of.instrument).filter(|quote| quote.bid_px > 0 && quote.ask_px > 0)?;
        self.made += 1;
        let leans_to_buy = (self.made / LEANING_INTENTS + index as u64).is_multiple_of(2);
        let side = if (self.random.below(100) < 65) == leans_to_buy { OrderSide::Buy } else { OrderSide::Sell };
        let mistake = Mistake::draw(&mut self.random);
        Some(OrderIntent {
            seq: self.made,
            client_id: if mistake == Mistake::UsedId { self.made.saturating_sub(IDS_AGO) } else { self.made },
            limit_px: Price(limit_px(quote, side, mistake, &mut self.random)),
            qty: Qty(qty(of, mistake, &mut self.random)),
            account: ACCOUNT,
            strategy: STRATEGY,
            instrument: of.instrument,
            side,
            ..OrderIntent::default()
        })
    }
}

/// Returns a price at the touch or some steps behind it, on the account's price step.
fn limit_px(quote: Quote, side: OrderSide, mistake: Mistake, random: &mut SplitMix64) -> i64 {
    let step = policy::px_step(quote.bid_px.midpoint(quote.ask_px));
    let behind = step * random.below(4).cast_signed();
    let (touch, away) = match side {
        OrderSide::Buy => (quote.bid_px - behind, 1),
        OrderSide::Sell => (quote.ask_px + behind, -1),
    };
    let on_step = touch - touch.rem_euclid(step);
    match mistake {
        Mistake::None | Mistake::Oversized | Mistake::Heavy | Mistake::UsedId => on_step,
        Mistake::FatFinger => {
            let far = on_step + away * on_step / 100 * (2 + random.below(7)).cast_signed();
            far - far.rem_euclid(step)
        }
        Mistake::OffStep => on_step + (step / 2).max(1),
    }
}

fn qty(of: &DemoInstrument, mistake: Mistake, random: &mut SplitMix64) -> i64 {
    let regular = policy::qty_regular(of.lot_size);
    match mistake {
        Mistake::None | Mistake::FatFinger | Mistake::OffStep | Mistake::UsedId => {
            (regular * (20 + random.below(80)).cast_signed() / 100).max(1)
        }
        Mistake::Oversized => regular * 10,
        Mistake::Heavy => regular * 5 / 2,
    }
}
