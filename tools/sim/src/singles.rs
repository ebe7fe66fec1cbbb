//! The single orders behind a true book, as a venue shows them that sends each order.

use std::collections::BTreeMap;

use crate::{
    rng::Rng,
    script::{Side, Step, TrueBook},
};

/// A resting order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleOrder {
    /// The venue's identifier.
    pub id: String,
    /// In quantity steps.
    pub qty: i64,
    /// When it came or changed, microseconds of the Unix epoch.
    pub unix_us: u64,
}

/// Price and orders, the oldest first.
pub type OrderLevel = (i64, Vec<SingleOrder>);

/// The best levels of both sides with their orders, best first: bids, asks.
pub type OrderWindow = [Vec<OrderLevel>; 2];

/// Every resting order of a book.
#[derive(Clone, Debug)]
pub(crate) struct Singles {
    sides: [BTreeMap<i64, Vec<SingleOrder>>; 2],
    rng: Rng,
    orders: u64,
}

impl Singles {
    /// Splits the levels of `book` into orders.
    pub(crate) fn new(book: &TrueBook, seed: u64, unix_us: u64) -> Self {
        let mut singles = Self { sides: [BTreeMap::new(), BTreeMap::new()], rng: Rng::new(seed), orders: 0 };
        for (px, qty) in book.bids() {
            singles.set(Side::Bid, *px, *qty, unix_us);
        }
        for (px, qty) in book.asks() {
            singles.set(Side::Ask, *px, *qty, unix_us);
        }
        singles
    }

    /// Places, reduces and removes orders until each level has the quantity that `step` gives it.
    pub(crate) fn step(&mut self, step: &Step, unix_us: u64) {
        for (side, levels) in [(Side::Bid, &step.bids), (Side::Ask, &step.asks)] {
            levels.iter().for_each(|&(px, qty)| self.set(side, px, qty, unix_us));
        }
    }

    /// The best `depth` levels.
    pub(crate) fn window(&self, depth: usize) -> OrderWindow {
        let level = |(px, orders): (&i64, &Vec<SingleOrder>)| (*px, orders.clone());
        let [bids, asks] = &self.sides;
        [bids.iter().rev().take(depth).map(level).collect(), asks.iter().take(depth).map(level).collect()]
    }

    fn set(&mut self, side: Side, px: i64, target: i64, unix_us: u64) {
        let mut queue = self.sides[side as usize].remove(&px).unwrap_or_default();
        let held: i64 = queue.iter().map(|order| order.qty).sum();
        if target > held {
            let missing = target - held;
            let first = if missing > 1 && self.rng.chance(40) { self.rng.between(1, missing - 1) } else { missing };
            for qty in [first, missing - first].into_iter().filter(|qty| *qty > 0) {
                self.orders += 1;
                queue.push(SingleOrder { id: identifier(self.orders), qty, unix_us });
            }
        }
        let mut surplus = (held - target).max(0);
        while surplus > 0 && !queue.is_empty() {
            // Traded from the front, or cancelled anywhere.
            let at = if self.rng.chance(60) { 0 } else { self.rng.between(0, queue.len() as i64 - 1) as usize };
            let taken = surplus.min(queue[at].qty);
            surplus -= taken;
            if taken == queue[at].qty {
                queue.remove(at);
            } else {
                (queue[at].qty, queue[at].unix_us) = (queue[at].qty - taken, unix_us);
            }
        }
        if !queue.is_empty() {
            self.sides[side as usize].insert(px, queue);
        }
    }
}

/// An identifier in the form of Kraken's, such as `OAAAAA-AAAAA-AAAAAB`.
fn identifier(number: u64) -> String {
    let mut left = number;
    let mut letters: Vec<u8> = (0..16)
        .map(|_| {
            let letter = b'A' + (left % 26) as u8;
            left /= 26;
            letter
        })
        .collect();
    letters.reverse();
    let text = String::from_utf8_lossy(&letters);
    format!("O{}-{}-{}", &text[..5], &text[5..10], &text[10..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::{Instrument, Venue};
    use crate::script::Script;

    #[test]
    fn orders_add_up_to_the_true_book_at_every_step() {
        let instrument = &Instrument::list(Venue::Kraken, 1)[0];
        let mut script = Script::new(instrument, 5);
        let mut singles = Singles::new(script.book(), 5, 0);
        let mut most = 0;
        for at in 1..2_000 {
            let step = script.step();
            singles.step(&step, at);
            let sums = |levels: &[OrderLevel]| -> Vec<(i64, i64)> {
                levels.iter().map(|(px, orders)| (*px, orders.iter().map(|order| order.qty).sum())).collect()
            };
            let window = singles.window(usize::MAX);
            let [bids, asks] = &window;
            let level = |(px, qty): (&i64, &i64)| (*px, *qty);
            assert_eq!(sums(bids), script.book().bids().map(level).collect::<Vec<_>>());
            assert_eq!(sums(asks), script.book().asks().map(level).collect::<Vec<_>>());
            most = bids.iter().map(|(_, orders)| orders.len()).max().unwrap_or(0).max(most);
            let mut ids: Vec<&str> =
                window.iter().flatten().flat_map(|(_, orders)| orders.iter().map(|order| order.id.as_str())).collect();
            let count = ids.len();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), count, "an identifier twice");
        }
        assert!(most > 3, "{most} orders in a level at most");
    }

    #[test]
    fn identifiers_have_the_form_of_krakens() {
        assert_eq!(identifier(1), "OAAAAA-AAAAA-AAAAAB");
        assert_eq!(identifier(26 * 26), "OAAAAA-AAAAA-AAABAA");
    }
}
