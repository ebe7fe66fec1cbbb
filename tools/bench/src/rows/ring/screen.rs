//! The eight checks for a batch of orders at once, which carries no state from one order to the next.

use anyhow::ensure;
use tt_model::{Breach, IntentKind, OrderIntent, Price, Qty};
use tt_risk::{Evaluator, Limits};

use super::evaluator::{eight_checks, gate, orders};
use super::reference::Reference;
use crate::harness::operation::{Label, Operation};

/// Orders of a call: one side of one account in one instrument.
const BATCH: usize = 64;
/// Orders that the batches are taken from.
const ORDERS: usize = 1 << 15;
/// On the gate's clock; the rates allow any number of orders there.
const NOW_NS: u64 = 1_000_000;

/// Texts of the row.
pub(super) fn label() -> Label {
    Label {
        name: "evaluator_screen_ns",
        what: "Screen::check on 64 limit orders of one side of one account in one instrument, and Evaluator::screen before \
               it: the eight checks, the full reason mask of each order alone. No order counts towards the next one, which \
               it does in the published row",
        rate: eight_checks().rate.map(|(_, published)| ("evaluator_screen", published)),
        ..eight_checks()
    }
}

struct Batch {
    first: OrderIntent,
    px: [Price; BATCH],
    qty: [Qty; BATCH],
}

/// The batches, and one place for reasons.
pub(super) struct Screens {
    gate: Evaluator,
    batches: Vec<Batch>,
    reasons: [Breach; BATCH],
}

impl Screens {
    pub(super) fn new() -> Self {
        let limit_orders = orders(527, ORDERS).into_iter().filter(|terms| terms.kind == IntentKind::LIMIT);
        let mut intents: Vec<OrderIntent> = limit_orders.map(|terms| terms.numbered(0)).collect();
        let key = |intent: &OrderIntent| (intent.account, intent.instrument, intent.side as u8);
        intents.sort_by_key(key);
        let of_key = intents.chunk_by(|one, other| key(one) == key(other));
        let batches = of_key.flat_map(|alike| alike.as_chunks::<BATCH>().0).map(|batch| Batch {
            first: batch[0],
            px: batch.map(|intent| intent.limit_px),
            qty: batch.map(|intent| intent.qty),
        });
        Self { gate: gate(), batches: batches.collect(), reasons: [Breach::NONE; BATCH] }
    }
}

impl Operation for Screens {
    fn per_run(&self) -> u32 {
        BATCH as u32
    }

    fn inputs(&self) -> usize {
        self.batches.len()
    }

    #[inline(always)]
    fn run(&mut self, index: usize) -> u64 {
        let Batch { first: OrderIntent { account, strategy, instrument, side, .. }, px, qty } = &self.batches[index];
        self.gate.screen(NOW_NS, *account, *strategy, *instrument, *side).check(px, qty, &mut self.reasons);
        self.reasons.iter().fold(0, |digest, reasons| digest ^ reasons.0)
    }

    fn verify(&mut self, index: usize) -> anyhow::Result<u64> {
        let digest = self.run(index);
        let Batch { first, px, qty } = &self.batches[index];
        for ((px, qty), reasons) in px.iter().zip(qty).zip(self.reasons) {
            let intent = OrderIntent { limit_px: *px, qty: *qty, ..*first };
            let (expected, _) = Reference::default().evaluate(&intent);
            let expected = Breach(expected.0 & Limits::EIGHT.0);
            ensure!(reasons == expected, "batch {index}: {reasons:?} for {expected:?} of {intent:?}");
        }
        Ok(digest)
    }
}
