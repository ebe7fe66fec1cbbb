//! The orders that rest, and what becomes of them: a venue that fills or cancels after a while, in the strategy's thread.

use tt_model::{OrderIntent, Qty, Verdict};
use tt_risk::{Cancel, Fill};

use super::strategy::Random;

/// How long an order rests, milliseconds.
const REST_MS: core::ops::Range<u64> = 300..2500;

/// Of 100 orders, how many are filled at once, and how many in two parts; the others are cancelled.
const FILLED: u64 = 50;
const FILLED_IN_PARTS: u64 = 15;

/// What became of an accepted order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was filled, or a part of it.
    Fill(Fill),
    /// It left without a fill.
    Cancel(Cancel),
}

/// An order that rests, and when what comes next comes.
#[derive(Clone, Copy, Debug)]
struct Resting {
    intent: OrderIntent,
    due_ns: u64,
    fills_left: u8,
}

/// Intents without a verdict, and orders that rest.
#[derive(Debug, Default)]
pub(super) struct Orders {
    unjudged: Vec<OrderIntent>,
    resting: Vec<Resting>,
}

impl Orders {
    /// Remembers `intent` until its verdict comes.
    pub(super) fn sent(&mut self, intent: OrderIntent) {
        self.unjudged.push(intent);
    }

    /// Lets the order of an accepting verdict rest; forgets a refused one.
    pub(super) fn judged(&mut self, verdict: &Verdict, now_ns: u64, random: &mut Random) {
        let Some(index) = self.unjudged.iter().position(|intent| intent.client_id == verdict.client_id) else { return };
        let intent = self.unjudged.swap_remove(index);
        if verdict.accept == 0 {
            return;
        }
        let lot = random.below(100);
        let fills_left = match lot {
            _ if lot < FILLED => 1,
            _ if lot < FILLED + FILLED_IN_PARTS && intent.qty.0 > 1 => 2,
            _ => 0,
        };
        let due_ns = now_ns + random.between(REST_MS) * 1_000_000;
        self.resting.push(Resting { intent, due_ns, fills_left });
    }

    /// When the next outcome is due.
    pub(super) fn poll_timeout(&self) -> Option<u64> {
        self.resting.iter().map(|resting| resting.due_ns).min()
    }

    /// One outcome that is due at `now_ns`.
    pub(super) fn poll_outcome(&mut self, now_ns: u64, random: &mut Random) -> Option<Outcome> {
        let index = self.resting.iter().position(|resting| resting.due_ns <= now_ns)?;
        let OrderIntent { account, instrument, client_id, side, qty, .. } = self.resting[index].intent;
        let resting = &mut self.resting[index];
        match resting.fills_left {
            0 => {
                self.resting.swap_remove(index);
                Some(Outcome::Cancel(Cancel { account, instrument, client_id, side, qty }))
            }
            1 => {
                self.resting.swap_remove(index);
                Some(Outcome::Fill(Fill { account, instrument, client_id, side, qty, is_last: true }))
            }
            _ => {
                let part = Qty(qty.0 / 2);
                resting.fills_left -= 1;
                resting.intent.qty = Qty(qty.0 - part.0);
                resting.due_ns = now_ns + random.between(REST_MS) * 1_000_000;
                Some(Outcome::Fill(Fill { account, instrument, client_id, side, qty: part, is_last: false }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_accepted_leaves_whole() {
        let (mut orders, mut random) = (Orders::default(), Random::new(7));
        let mut open = 0;
        for client_id in 0..1000 {
            let qty = Qty(1 + random.below(9) as i64);
            orders.sent(OrderIntent { client_id, qty, ..OrderIntent::default() });
            let accept = u8::from(client_id % 3 != 0);
            open += i64::from(accept) * qty.0;
            orders.judged(&Verdict { client_id, accept, ..Verdict::default() }, client_id, &mut random);
        }
        while let Some(now_ns) = orders.poll_timeout() {
            match orders.poll_outcome(now_ns, &mut random).expect("something is due") {
                Outcome::Fill(fill) => open -= fill.qty.0,
                Outcome::Cancel(cancel) => open -= cancel.qty.0,
            }
        }
        assert_eq!(open, 0);
        assert!(orders.unjudged.is_empty());
    }
}
