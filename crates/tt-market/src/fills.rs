//! The newest own executions, each once.

use alloc::vec::Vec;
use tt_model::{InstrumentId, Nanos, OrderSide};
use tt_venue::Venue;
use tt_venue::event::{Fill, OrderId};

/// An own execution as the venue sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillState {
    /// The venue.
    pub venue: Venue,
    /// The instrument; `None` where the venue never named it.
    pub instrument: Option<InstrumentId>,
    /// The venue's identifier of the order.
    pub order_id: OrderId,
    /// Bought or sold; `None` if the venue never sent it.
    pub side: Option<OrderSide>,
    /// What was executed, in the venue's units.
    pub fill: Fill,
    /// The venue's time, Unix epoch.
    pub ts_event: Nanos,
}

impl FillState {
    /// One trade may execute two own orders.
    fn is_same(&self, other: &Self) -> bool {
        self.fill.trade_id.is(&other.fill.trade_id) && self.order_id.is(&other.order_id) && self.venue == other.venue
    }

    fn hash(&self) -> u32 {
        let (trade, order) = (self.fill.trade_id.words(), self.order_id.words());
        let mixed = trade[0] ^ trade[1].rotate_left(23) ^ order[0].rotate_left(41) ^ order[1].rotate_left(11);
        ((mixed ^ self.venue as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
    }
}

/// Slot of an execution in the ring, with its hash: the ring is looked at only where the hash is the same.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    hash: u32,
    /// One more than the place; zero for none.
    number: u32,
}

/// A ring of executions, and a table that finds them: open addressing, linear probing, deletion by shifting back. It
/// never grows; the oldest execution makes room.
#[derive(Debug)]
pub(crate) struct Fills {
    ring: Vec<FillState>,
    table: Vec<Place>,
    mask: usize,
    oldest: usize,
}

impl Fills {
    pub(crate) fn new(len_max: usize) -> Self {
        let len = (len_max.max(1) * 2).next_power_of_two();
        let table = alloc::vec![Place::default(); len];
        Self { ring: Vec::with_capacity(len_max), table, mask: len - 1, oldest: 0 }
    }

    /// The table's place from `hash` on that is empty or of which `is_it` says so.
    fn locate(&self, hash: u32, is_it: impl Fn(&Place) -> bool) -> usize {
        let mut at = hash as usize & self.mask;
        while self.table[at].number != 0 && !(self.table[at].hash == hash && is_it(&self.table[at])) {
            at = (at + 1) & self.mask;
        }
        at
    }

    /// Takes note of an execution; `false` where it came before. What the first message left out is filled in.
    pub(crate) fn note(&mut self, state: &FillState) -> bool {
        let hash = state.hash();
        let at = self.locate(hash, |place| self.ring[place.number as usize - 1].is_same(state));
        if let Some(number) = self.table[at].number.checked_sub(1) {
            let known = &mut self.ring[number as usize];
            known.instrument = known.instrument.or(state.instrument);
            known.side = known.side.or(state.side);
            known.fill.fee = known.fill.fee.or(state.fill.fee);
            known.fill.fee_asset = known.fill.fee_asset.or(state.fill.fee_asset);
            known.fill.is_maker = known.fill.is_maker.or(state.fill.is_maker);
            return false;
        }
        if self.ring.capacity() == 0 {
            return true;
        }
        if self.ring.len() < self.ring.capacity() {
            self.ring.push(*state);
            self.table[at] = Place { hash, number: self.ring.len() as u32 };
            return true;
        }
        let number = self.oldest as u32 + 1;
        let oldest = self.ring[self.oldest].hash();
        self.remove(self.locate(oldest, |place| place.number == number));
        self.ring[self.oldest] = *state;
        // The removal may have moved what stood before the empty place.
        let at = self.locate(hash, |_| false);
        self.table[at] = Place { hash, number };
        self.oldest = (self.oldest + 1) % self.ring.len();
        true
    }

    /// Empties a place of the table and moves back what had been pushed past it.
    fn remove(&mut self, mut hole: usize) {
        let mut at = hole;
        loop {
            self.table[hole] = Place::default();
            loop {
                at = (at + 1) & self.mask;
                let place = self.table[at];
                if place.number == 0 {
                    return;
                }
                let start = place.hash as usize & self.mask;
                // It may move if its own start does not lie between the hole and itself.
                if (at.wrapping_sub(start) & self.mask) >= (at.wrapping_sub(hole) & self.mask) {
                    self.table[hole] = place;
                    hole = at;
                    break;
                }
            }
        }
    }

    /// The executions, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &FillState> {
        let (new, old) = self.ring.split_at(self.oldest);
        old.iter().chain(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use tt_model::Decimal;

    fn state(trade: u64, order: u64) -> FillState {
        let id = |number: u64| OrderId::new(number.to_string().as_bytes()).unwrap();
        let one = Decimal::new(1, 0);
        let fill = Fill { trade_id: id(trade), px: one, qty: one, fee: None, fee_asset: None, is_maker: None };
        let venue = Venue::Kraken;
        FillState { venue, instrument: None, order_id: id(order), side: None, fill, ts_event: Nanos(trade) }
    }

    #[test]
    fn each_execution_is_kept_once_and_the_oldest_makes_room() {
        let mut fills = Fills::new(100);
        let mut seed = 5_u64;
        let mut kept: Vec<(u64, u64)> = Vec::new();
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (trade, order) = (seed >> 33 & 0xff, seed >> 50 & 1);
            let is_new = !kept.contains(&(trade, order));
            assert_eq!(fills.note(&state(trade, order)), is_new);
            if is_new {
                kept.push((trade, order));
                if kept.len() > 100 {
                    kept.remove(0);
                }
            }
        }
        let found: Vec<_> = fills.iter().map(|state| state.ts_event.0).collect();
        assert_eq!(found, kept.iter().map(|(trade, _)| *trade).collect::<Vec<_>>());
        let fee = Some(Decimal::new(-7, 2));
        let last = state(kept[99].0, kept[99].1);
        assert!(!fills.note(&FillState { fill: Fill { fee, ..last.fill }, ..last }));
        assert_eq!(fills.iter().last().unwrap().fill.fee, fee, "sent later");
    }
}
