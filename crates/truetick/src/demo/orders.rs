//! Open orders of the strategy, and a simulated venue that fills or cancels them after a while.

use risk_gate::OrderUpdate;
use tt_model::{OrderIntent, Qty, SplitMix64, Verdict};
use tt_risk::{Cancel, Fill};

/// Time that an order stays open, milliseconds.
const OPEN_MS: core::ops::Range<u64> = 300..2_500;

/// Of 100 orders, the number filled at once and in two parts; the others are cancelled.
const FILLED: u64 = 50;
const FILLED_IN_PARTS: u64 = 15;

/// An open order and the time of its next update.
#[derive(Clone, Copy, Debug)]
struct OpenOrder {
    intent: OrderIntent,
    due_ns: u64,
    fills_left: u8,
}

fn open_ns(random: &mut SplitMix64) -> u64 {
    (OPEN_MS.start + random.below(OPEN_MS.end - OPEN_MS.start)) * 1_000_000
}

/// Intents without a verdict, and open orders.
#[derive(Debug, Default)]
pub(super) struct Orders {
    pending: Vec<OrderIntent>,
    open: Vec<OpenOrder>,
}

impl Orders {
    /// Stores `intent` until its verdict comes.
    pub(super) fn add_sent(&mut self, intent: OrderIntent) {
        self.pending.push(intent);
    }

    /// Opens the order of an accepting verdict; removes a rejected one.
    pub(super) fn apply_verdict(&mut self, verdict: &Verdict, now_ns: u64, random: &mut SplitMix64) {
        let Some(index) = self.pending.iter().position(|intent| intent.client_id == verdict.client_id) else { return };
        let intent = self.pending.swap_remove(index);
        if verdict.accept == 0 {
            return;
        }
        let draw = random.below(100);
        let fills_left = match draw {
            _ if draw < FILLED => 1,
            _ if draw < FILLED + FILLED_IN_PARTS && intent.qty.0 > 1 => 2,
            _ => 0,
        };
        let due_ns = now_ns + open_ns(random);
        self.open.push(OpenOrder { intent, due_ns, fills_left });
    }

    /// Returns the time of the next update.
    pub(super) fn poll_timeout(&self) -> Option<u64> {
        self.open.iter().map(|order| order.due_ns).min()
    }

    /// Returns an update that is due at `now_ns`.
    pub(super) fn poll_update(&mut self, now_ns: u64, random: &mut SplitMix64) -> Option<OrderUpdate> {
        let index = self.open.iter().position(|order| order.due_ns <= now_ns)?;
        let OrderIntent { account, instrument, client_id, side, qty, .. } = self.open[index].intent;
        let order = &mut self.open[index];
        match order.fills_left {
            0 => {
                self.open.swap_remove(index);
                Some(OrderUpdate::Cancel(Cancel { account, instrument, client_id, side, qty }))
            }
            1 => {
                self.open.swap_remove(index);
                Some(OrderUpdate::Fill(Fill { account, instrument, client_id, side, qty, is_last: true }))
            }
            _ => {
                let part = Qty(qty.0 / 2);
                order.fills_left -= 1;
                order.intent.qty = Qty(qty.0 - part.0);
                order.due_ns = now_ns + open_ns(random);
                Some(OrderUpdate::Fill(Fill { account, instrument, client_id, side, qty: part, is_last: false }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_accepted_quantity_is_filled_or_cancelled() {
        let (mut orders, mut random) = (Orders::default(), SplitMix64::new(7));
        let mut open = 0;
        for client_id in 0..1000 {
            let qty = Qty(1 + random.below(9).cast_signed());
            orders.add_sent(OrderIntent { client_id, qty, ..OrderIntent::default() });
            let accept = u8::from(client_id % 3 != 0);
            open += i64::from(accept) * qty.0;
            orders.apply_verdict(&Verdict { client_id, accept, ..Verdict::default() }, client_id, &mut random);
        }
        while let Some(now_ns) = orders.poll_timeout() {
            match orders.poll_update(now_ns, &mut random).expect("an update is due") {
                OrderUpdate::Fill(fill) => open -= fill.qty.0,
                OrderUpdate::Cancel(cancel) => open -= cancel.qty.0,
            }
        }
        assert_eq!(open, 0);
        assert!(orders.pending.is_empty());
    }
}
