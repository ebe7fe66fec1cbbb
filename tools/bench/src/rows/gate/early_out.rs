//! A gate that stops at the first reason, on the evaluator's orders.

use anyhow::ensure;
use tt_model::OrderIntent;

use crate::harness::operation::Operation;
use crate::loops::ablation::EarlyOutGate;
use crate::rows::ring::evaluator::{GATE_SETUP, orders};
use crate::rows::ring::reference::Reference;

/// Different orders: those of `evaluator_ns`.
const INPUTS: usize = 1 << 16;

/// Nanoseconds from one order to the next on the gate's clock.
const STEP_NS: u64 = 100;

pub(super) struct EarlyOut {
    gate: EarlyOutGate,
    intents: Vec<OrderIntent>,
    reference: Reference,
    now_ns: u64,
}

impl EarlyOut {
    pub(super) fn new() -> Self {
        let intents = orders(527, INPUTS).into_iter().zip(0..).map(|(terms, seq)| terms.numbered(seq)).collect();
        Self { gate: EarlyOutGate::new(&GATE_SETUP), intents, reference: Reference::default(), now_ns: 1_000_000 }
    }
}

impl Operation for EarlyOut {
    fn inputs(&self) -> usize {
        INPUTS
    }

    #[inline(always)]
    fn run(&mut self, index: usize) -> u64 {
        self.now_ns += STEP_NS;
        u64::from(self.gate.accepts(self.now_ns, &self.intents[index]))
    }

    fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
        let (reasons, _) = self.reference.evaluate(&self.intents[index]);
        let (found, expected) = (self.run(index), u64::from(reasons.0 == 0));
        ensure!(found == expected, "order {index}: {found} for {:?}", reasons.names().collect::<Vec<_>>());
        Ok(expected)
    }

    fn rewind(&mut self) {
        self.gate = EarlyOutGate::new(&GATE_SETUP);
        self.now_ns += 1_000_000_000;
    }
}
