//! The script of one instrument: a seeded market whose book is the truth.
//!
//! The same seed and instrument give the same steps, so the truth at any update id is found by playing the script
//! again. Nothing that subscribers, faults or clocks do changes it.

use std::collections::{BTreeMap, btree_map};

use crate::{instrument::Instrument, rng::Rng};

/// A side of the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Buyers.
    Bid,
    /// Sellers.
    Ask,
}

/// The true book: quantity at each price, both in whole steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrueBook {
    bids: BTreeMap<i64, i64>,
    asks: BTreeMap<i64, i64>,
}

impl TrueBook {
    /// Bids, best (highest) first, as (price, quantity).
    pub fn bids(&self) -> std::iter::Rev<btree_map::Iter<'_, i64, i64>> {
        self.bids.iter().rev()
    }

    /// Asks, best (lowest) first, as (price, quantity).
    pub fn asks(&self) -> btree_map::Iter<'_, i64, i64> {
        self.asks.iter()
    }

    /// The best bid and the best ask as (price, quantity). The script never empties a side.
    #[must_use]
    pub fn touch(&self) -> [(i64, i64); 2] {
        let level = |found: Option<(&i64, &i64)>| found.map_or((0, 0), |(&px, &qty)| (px, qty));
        [level(self.bids.last_key_value()), level(self.asks.first_key_value())]
    }

    /// The quantity at `px` on `side`, zero where there is none.
    #[must_use]
    pub fn qty(&self, side: Side, px: i64) -> i64 {
        self.side(side).get(&px).copied().unwrap_or(0)
    }

    const fn side(&self, side: Side) -> &BTreeMap<i64, i64> {
        match side {
            Side::Bid => &self.bids,
            Side::Ask => &self.asks,
        }
    }

    fn set(&mut self, side: Side, px: i64, qty: i64) {
        let levels = match side {
            Side::Bid => &mut self.bids,
            Side::Ask => &mut self.asks,
        };
        if qty == 0 {
            levels.remove(&px);
        } else {
            levels.insert(px, qty);
        }
    }
}

/// An execution at the touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trade {
    /// Counts from 1.
    pub trade_id: u64,
    /// In price steps.
    pub px: i64,
    /// In quantity steps.
    pub qty: i64,
    /// The side whose resting quantity was taken.
    pub maker: Side,
}

/// Changes of one step of the script.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// The update id of the first change.
    pub first_update_id: u64,
    /// The update id of the last change; the book after the step is the book at this id.
    pub last_update_id: u64,
    /// The last id of the step before.
    pub previous_update_id: u64,
    /// Bid levels that changed with the quantity they have after the step, best first.
    pub bids: Vec<(i64, i64)>,
    /// Ask levels that changed with the quantity they have after the step, best first.
    pub asks: Vec<(i64, i64)>,
    /// At most one execution.
    pub trade: Option<Trade>,
    /// The best price or its quantity differs from before.
    pub touch_changed: bool,
}

/// A seeded market of one instrument.
#[derive(Clone, Debug)]
pub struct Script {
    rng: Rng,
    book: TrueBook,
    start_px: i64,
    levels_min: usize,
    levels_max: usize,
    update_id: u64,
    steps: u64,
    trades: u64,
    last_trade: Trade,
    /// -1, 0 or 1: where the price is drawn to at present.
    drift: i64,
}

impl Script {
    /// The script of `instrument` under `seed`, before its first step.
    #[must_use]
    pub fn new(instrument: &Instrument, seed: u64) -> Self {
        let name_hash = instrument
            .symbol
            .bytes()
            .fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17));
        let mut rng = Rng::new(name_hash);
        let mut book = TrueBook::default();
        let start_px = instrument.start_px;
        for _ in 0..instrument.levels {
            let (below, above) = (distance(&mut rng), distance(&mut rng));
            book.set(Side::Bid, (start_px - 1 - below).max(1), quantity(&mut rng));
            book.set(Side::Ask, start_px + above, quantity(&mut rng));
        }
        let levels_min = usize::try_from(start_px / 2).unwrap_or_default().min(instrument.levels_min as usize);
        let reach = (4 * levels_min as i64).min(start_px - 2);
        while book.bids.len() < levels_min {
            book.set(Side::Bid, start_px - 1 - rng.between(0, reach), quantity(&mut rng));
        }
        while book.asks.len() < levels_min {
            book.set(Side::Ask, start_px + rng.between(0, reach), quantity(&mut rng));
        }
        let update_id = 1_000_000 + (rng.next() >> 28);
        let last_trade = Trade { trade_id: 0, px: start_px, qty: 1, maker: Side::Ask };
        let levels_max = 2 * instrument.levels as usize;
        Self { rng, book, start_px, levels_min, levels_max, update_id, steps: 0, trades: 0, last_trade, drift: 0 }
    }

    /// The book after the last step.
    #[must_use]
    pub const fn book(&self) -> &TrueBook {
        &self.book
    }

    /// The id of the last change.
    #[must_use]
    pub const fn update_id(&self) -> u64 {
        self.update_id
    }

    /// Steps made.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// The last execution.
    #[must_use]
    pub const fn last_trade(&self) -> Trade {
        self.last_trade
    }

    /// Plays the script up to `update_id`; `None` if no step ends there.
    pub fn play_to(&mut self, update_id: u64) -> Option<&TrueBook> {
        while self.update_id < update_id {
            self.step();
        }
        (self.update_id == update_id).then_some(&self.book)
    }

    /// Makes one step: a few changes of the book, now and then an execution.
    pub fn step(&mut self) -> Step {
        let before = self.book.touch();
        let previous_update_id = self.update_id;
        self.steps += 1;
        if self.steps % 64 == 1 {
            self.turn();
        }
        let mut changed = [BTreeMap::new(), BTreeMap::new()];
        let trade = self.rng.chance(15).then(|| self.trade(&mut changed));
        for _ in 0..self.change_count() {
            self.change(&mut changed);
        }
        let [bids, asks] = changed;
        Step {
            first_update_id: previous_update_id + 1,
            last_update_id: self.update_id,
            previous_update_id,
            bids: bids.into_iter().rev().collect(),
            asks: asks.into_iter().collect(),
            trade,
            touch_changed: before != self.book.touch(),
        }
    }

    /// A new drift, towards the start where the price has wandered by a tenth.
    fn turn(&mut self) {
        let [(best_bid, _), _] = self.book.touch();
        self.drift = if best_bid > self.start_px / 10 * 11 {
            -1
        } else if best_bid < self.start_px / 10 * 9 {
            1
        } else {
            self.rng.between(-1, 1)
        };
    }

    fn change_count(&mut self) -> i64 {
        match self.rng.between(0, 99) {
            0..60 => self.rng.between(1, 4),
            60..95 => self.rng.between(5, 20),
            _ => self.rng.between(21, 80),
        }
    }

    /// Takes from the touch: the side that the price is drawn to, or either.
    fn trade(&mut self, changed: &mut [BTreeMap<i64, i64>; 2]) -> Trade {
        let buyer_takes = if self.drift == 0 { self.rng.chance(50) } else { self.drift > 0 };
        let maker = if buyer_takes { Side::Ask } else { Side::Bid };
        let (px, resting) = self.book.touch()[maker as usize];
        let may_empty = self.book.side(maker).len() > self.levels_min;
        let qty = if resting > 1 { self.rng.between(1, if may_empty { resting } else { resting - 1 }) } else { 1 };
        let left = if may_empty { resting - qty } else { (resting - qty).max(1) };
        self.write(maker, px, left, changed);
        self.trades += 1;
        self.last_trade = Trade { trade_id: self.trades, px, qty, maker };
        self.last_trade
    }

    fn change(&mut self, changed: &mut [BTreeMap<i64, i64>; 2]) {
        let side = if self.rng.chance(50) { Side::Bid } else { Side::Ask };
        let count = self.book.side(side).len();
        let [(best_bid, _), (best_ask, _)] = self.book.touch();
        let far = self.rng.chance(50);
        let px = if far {
            let offset = distance(&mut self.rng);
            match side {
                Side::Bid => (best_ask - 1 - offset).max(1),
                Side::Ask => best_bid + 1 + offset,
            }
        } else {
            self.existing(side)
        };
        let qty = if self.book.qty(side, px) == 0 {
            if count >= self.levels_max { 0 } else { quantity(&mut self.rng) }
        } else if count > self.levels_min && (count >= self.levels_max || self.rng.chance(45)) {
            0
        } else {
            quantity(&mut self.rng)
        };
        // A venue may also name a level that is not there (an order placed and cancelled within one step).
        self.write(side, px, qty, changed);
    }

    /// The price of a level near the touch, more often than not.
    fn existing(&mut self, side: Side) -> i64 {
        let levels = self.book.side(side);
        let reach = if self.rng.chance(70) { 8 } else { levels.len() as i64 - 1 };
        let index = self.rng.between(0, reach.min(levels.len() as i64 - 1)) as usize;
        let found = match side {
            Side::Bid => levels.keys().rev().nth(index),
            Side::Ask => levels.keys().nth(index),
        };
        found.copied().unwrap_or(1)
    }

    fn write(&mut self, side: Side, px: i64, qty: i64, changed: &mut [BTreeMap<i64, i64>; 2]) {
        self.book.set(side, px, qty);
        changed[side as usize].insert(px, qty);
        self.update_id += 1;
    }
}

/// How far from the other side's best price, in steps: mostly near, with a long tail (as the captures show).
fn distance(rng: &mut Rng) -> i64 {
    match rng.between(0, 99) {
        0..55 => rng.between(0, 12),
        55..85 => rng.between(0, 400),
        85..97 => rng.between(0, 4_000),
        _ => rng.between(0, 16_000),
    }
}

fn quantity(rng: &mut Rng) -> i64 {
    let magnitude = rng.between(1, 7) as u32;
    rng.between(1, 10_i64.pow(magnitude))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::Venue;

    #[test]
    fn the_same_seed_gives_the_same_market_and_it_is_never_crossed() {
        for venue in Venue::ALL {
            for instrument in Instrument::list(venue, 10) {
                let (mut one, mut two) = (Script::new(&instrument, 7), Script::new(&instrument, 7));
                for _ in 0..3000 {
                    let step = one.step();
                    assert_eq!(step.last_update_id, two.step().last_update_id);
                    assert_eq!(step.first_update_id, step.previous_update_id + 1);
                    let [(bid, bid_qty), (ask, ask_qty)] = one.book().touch();
                    assert!(bid < ask && bid > 0 && bid_qty > 0 && ask_qty > 0, "{instrument:?}: {bid} {ask}");
                }
                assert_eq!(one.book(), two.book());
                assert_ne!(one.book(), Script::new(&instrument, 8).book());
            }
        }
    }

    #[test]
    fn a_side_never_has_fewer_levels_than_are_wanted_or_than_prices_allow() {
        for instrument in Instrument::list(Venue::Kraken, 3) {
            let listed = instrument.with_levels(1_000);
            let mut script = Script::new(&listed, 5);
            for _ in 0..3000 {
                let (bids, asks) = (script.book().bids().count(), script.book().asks().count());
                assert!(
                    (1_000..=2_000).contains(&bids) && (1_000..=2_000).contains(&asks),
                    "{bids} {asks}: {listed:?}"
                );
                script.step();
            }
        }
        // There are 2,000 prices below the start.
        let cheap = Instrument { start_px: 2_000, ..Instrument::list(Venue::Kraken, 1).remove(0) };
        let bids = Script::new(&cheap.with_levels(100_000), 5).book().bids().count();
        assert!((1_000..2_000).contains(&bids), "{bids}");
    }

    #[test]
    fn steps_applied_to_a_copy_give_the_book() {
        let instrument = &Instrument::list(Venue::BinanceSpot, 1)[0];
        let mut script = Script::new(instrument, 3);
        let mut copy = script.book().clone();
        for _ in 0..2000 {
            let step = script.step();
            step.bids.iter().for_each(|&(px, qty)| copy.set(Side::Bid, px, qty));
            step.asks.iter().for_each(|&(px, qty)| copy.set(Side::Ask, px, qty));
            assert_eq!(&copy, script.book());
        }
        assert!(script.last_trade().trade_id > 100);
    }
}
