//! Positions in their slots, and which of them belong to an instrument.

use crate::mark::Position;
use alloc::vec::Vec;
use tt_model::InstrumentId;

/// No slot.
const NONE: u32 = u32::MAX;

/// Slots of positions. Those of an instrument are chained in the order of their slots, so that a mark price looks at no others.
#[derive(Debug)]
pub(crate) struct Positions {
    slots: Vec<Option<Position>>,
    /// The next slot of the same instrument.
    next: Vec<u32>,
    /// The first slot of each instrument.
    first: Vec<u32>,
}

impl Positions {
    pub(crate) fn new(slots: usize, instruments: usize) -> Self {
        Self { slots: alloc::vec![None; slots], next: alloc::vec![NONE; slots], first: alloc::vec![NONE; instruments] }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn get(&self, slot: usize) -> Option<&Position> {
        self.slots.get(slot)?.as_ref()
    }

    pub(crate) fn iter(&self) -> core::slice::Iter<'_, Option<Position>> {
        self.slots.iter()
    }

    /// The positions, whose instruments must stay as they are.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Position> {
        self.slots.iter_mut().flatten()
    }

    /// Puts `position` into a slot that there is, or empties it, and returns what was there.
    pub(crate) fn set(&mut self, slot: usize, position: Option<Position>) -> Option<Position> {
        let before = self.slots[slot];
        let instrument = |position: Option<Position>| position.map(|position| position.instrument);
        if instrument(before) != instrument(position) {
            if let Some(instrument) = instrument(before) {
                *self.link_before(instrument, slot) = self.next[slot];
            }
            if let Some(instrument) = instrument(position) {
                let link = self.link_before(instrument, slot);
                let after = *link;
                *link = slot as u32;
                self.next[slot] = after;
            }
        }
        self.slots[slot] = position;
        before
    }

    /// The link of the instrument's chain at which `slot` is, or belongs.
    fn link_before(&mut self, instrument: InstrumentId, slot: usize) -> &mut u32 {
        let mut at = NONE;
        let mut next = self.first[instrument.0 as usize];
        while (next as usize) < slot {
            at = next;
            next = self.next[next as usize];
        }
        if at == NONE { &mut self.first[instrument.0 as usize] } else { &mut self.next[at as usize] }
    }

    /// The positions of an instrument with their slots.
    #[inline]
    pub(crate) fn of(&self, instrument: InstrumentId) -> impl Iterator<Item = (usize, &Position)> {
        let mut next = self.first.get(instrument.0 as usize).map_or(NONE, |first| *first);
        core::iter::from_fn(move || {
            let slot = next as usize;
            let position = self.slots.get(slot)?.as_ref()?;
            next = self.next[slot];
            Some((slot, position))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Positions;
    use crate::mark::Position;
    use alloc::vec::Vec;
    use proptest::prelude::*;
    use tt_model::{Decimal, InstrumentId};

    const SLOTS: usize = 12;
    const INSTRUMENTS: u32 = 4;

    proptest! {
        #[test]
        fn a_chain_has_the_slots_of_its_instrument(
            steps in prop::collection::vec((0..SLOTS, prop::option::of(0..INSTRUMENTS), 1_i64..100), 1..200)
        ) {
            let mut positions = Positions::new(SLOTS, INSTRUMENTS as usize);
            let mut plain = [None; SLOTS];
            for (slot, instrument, lots) in steps {
                let position = instrument.map(|instrument| Position {
                    instrument: InstrumentId(instrument),
                    account: 0,
                    lots,
                    entry_px: Decimal::new(1, 0),
                });
                prop_assert_eq!(positions.set(slot, position), plain[slot]);
                plain[slot] = position;
                for instrument in (0..INSTRUMENTS).map(InstrumentId) {
                    let found: Vec<_> = positions.of(instrument).map(|(slot, position)| (slot, *position)).collect();
                    let is_of = |position: &Position| position.instrument == instrument;
                    let wanted: Vec<_> = plain.iter().enumerate()
                        .filter_map(|(slot, position)| position.filter(is_of).map(|position| (slot, position))).collect();
                    prop_assert_eq!(found, wanted);
                }
            }
        }
    }
}
