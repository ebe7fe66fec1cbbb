//! The gate's thread: drains the rings in a fixed order, judges, publishes, sleeps.

use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};
use tt_meter::{Histogram, Sampler};
use tt_model::{InstrumentId, OrderIntent, Price};
use tt_risk::{Capacity, Fault, Gate, Limits, Mark};

use super::clock::Clock;
use super::orders::Outcome;
use super::policy::{self, ACCOUNT, ACCOUNT_RATE, WIDE_RATE};
use super::published::{BoardWriter, Tally};
use super::{GateEnds, Quotes, RiskConfig, Tradable};

/// How long the thread sleeps where nothing comes; timings are shown that often at least.
const SLEEP_MAX: Duration = Duration::from_millis(250);

/// What the thread owns.
pub(super) struct Loop {
    gate: Gate,
    ends: GateEnds,
    writer: BoardWriter,
    quotes: Quotes,
    tradables: Vec<Tradable>,
    /// The account's limits in each tradable instrument, from its first quote on.
    limits: Vec<Option<Limits>>,
    clock: Clock,
    probe: Sampler,
    journey: Histogram,
    tally: Tally,
}

impl Loop {
    pub(super) fn new(config: &RiskConfig, ends: GateEnds, writer: BoardWriter, clock: Clock) -> Result<Self> {
        let instruments = config.tradables.iter().map(|tradable| tradable.instrument.0 + 1).max().unwrap_or(0);
        let (client_ids, own_orders) = (policy::CLIENT_IDS, policy::OPEN_ORDERS_MAX as u16);
        let mut gate = Gate::new(Capacity { accounts: 1, instruments, client_ids, own_orders });
        let fault = |fault: Fault| anyhow!("risk: the gate does not take its limits: {fault:?}");
        gate.set_account_rate(ACCOUNT, ACCOUNT_RATE).map_err(fault)?;
        gate.set_global_rate(WIDE_RATE);
        gate.set_id_window(policy::ID_WINDOW_NS);
        for tradable in &config.tradables {
            gate.set_instrument_limits(tradable.instrument, &policy::INSTRUMENT).map_err(fault)?;
            gate.restore(ACCOUNT, tradable.instrument, &tt_risk::Exposure::default()).map_err(fault)?;
        }
        Ok(Self {
            gate,
            ends,
            writer,
            quotes: config.quotes.clone(),
            tradables: config.tradables.clone(),
            limits: vec![None; config.tradables.len()],
            clock,
            // Intents are few here: each one is timed.
            probe: Sampler::new(crate::clock::calibration().clock, 1),
            journey: Histogram::new(),
            tally: Tally::ZERO,
        })
    }

    /// Runs until the strategy is gone and the rings are empty.
    pub(super) fn run(mut self) {
        loop {
            let is_last = self.ends.intents.is_abandoned();
            let worked = self.drain();
            if worked || is_last {
                self.publish();
            }
            if is_last && !worked {
                return;
            }
            if !worked {
                thread::park_timeout(SLEEP_MAX);
            }
        }
    }

    /// Takes all outcomes, then one intent after the other with the outcomes that came meanwhile. Returns whether
    /// there was anything.
    fn drain(&mut self) -> bool {
        let mut worked = self.take_outcomes();
        while let Some(intent) = self.ends.intents.pop() {
            worked = true;
            self.judge(&intent);
            self.take_outcomes();
        }
        worked
    }

    fn take_outcomes(&mut self) -> bool {
        let mut any = false;
        while let Some(outcome) = self.ends.outcomes.pop() {
            any = true;
            let applied = match outcome {
                Outcome::Fill(fill) => self.gate.apply_fill(&fill),
                Outcome::Cancel(cancel) => self.gate.apply_cancel(&cancel),
            };
            self.tally.outcomes += 1;
            self.tally.outcome_faults += u64::from(applied.is_err());
        }
        any
    }

    fn judge(&mut self, intent: &OrderIntent) {
        self.refresh_mark(intent.instrument);
        let now_ns = self.clock.now_ns();
        let verdict = self.gate.evaluate(now_ns, intent, &mut self.probe);
        let journey_ns = self.clock.now_ns().saturating_sub(intent.ts_ns);
        self.journey.record(journey_ns);
        self.tally.count(&verdict);
        self.writer.store_verdict(&verdict, intent, journey_ns);
        self.tally.verdicts_lost += u64::from(self.ends.verdicts.push(verdict).is_err());
    }

    /// Takes in the newest quote of `instrument`. Without a bid or an offer there is no reference, whatever was before.
    fn refresh_mark(&mut self, instrument: InstrumentId) {
        let Some(quote) = (self.quotes)(instrument).filter(|quote| quote.bid_px > 0 && quote.ask_px > 0) else {
            let none = Mark { ref_px: Price(0), ts_ns: 0, is_verified: false };
            let _ = self.gate.set_reference(instrument, &none);
            return;
        };
        let ref_px = Price(quote.bid_px.midpoint(quote.ask_px));
        let mark = Mark { ref_px, ts_ns: quote.ts_recv.0, is_verified: quote.is_verified };
        // The instrument is one of those that the gate was made for.
        let _ = self.gate.set_reference(instrument, &mark);
        let Some(index) = self.tradables.iter().position(|tradable| tradable.instrument == instrument) else { return };
        if self.limits[index].is_none() {
            let limits = policy::limits(&self.tradables[index], ref_px.0);
            match self.gate.set_limits(ACCOUNT, instrument, &limits) {
                Ok(_version) => self.limits[index] = Some(limits),
                Err(fault) => tracing::warn!(?fault, symbol = self.tradables[index].symbol, "limits not taken"),
            }
        }
    }

    fn publish(&mut self) {
        self.writer.store_tally(&self.tally);
        for (index, tradable) in self.tradables.iter().enumerate() {
            if let Some(exposure) = self.gate.exposure(ACCOUNT, tradable.instrument) {
                self.writer.store_standing(index, &exposure, self.limits[index].as_ref());
            }
        }
        self.writer.try_store_timings(self.probe.stages(), &self.journey);
    }
}
