//! From a venue's symbol to the instrument, at a known number of steps.

use crate::{Symbol, Venue};
use alloc::vec::Vec;
use tt_model::InstrumentId;

/// Open addressing with linear probing, at most half full; symbols are only added.
#[derive(Debug)]
pub(crate) struct SymbolTable {
    slots: Vec<Option<(Venue, Symbol, InstrumentId)>>,
    mask: usize,
}

impl SymbolTable {
    pub(crate) fn new(instruments: usize) -> Self {
        let len = (instruments.max(1) * 2).next_power_of_two();
        Self { slots: alloc::vec![None; len], mask: len - 1 }
    }

    /// Symbols come from the configuration, so the hash needs no secret.
    #[inline]
    fn start(&self, venue: Venue, symbol: &Symbol) -> usize {
        let words = symbol.words();
        let mixed = (words[0] ^ words[1].rotate_left(23) ^ words[2].rotate_left(41) ^ venue as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & self.mask
    }

    #[inline]
    pub(crate) fn find(&self, venue: Venue, symbol: &Symbol) -> Option<InstrumentId> {
        let mut at = self.start(venue, symbol);
        while let Some((other_venue, other, id)) = &self.slots[at] {
            if *other == *symbol && *other_venue == venue {
                return Some(*id);
            }
            at = (at + 1) & self.mask;
        }
        None
    }

    /// Adds a symbol that is not there; the caller keeps to the capacity.
    pub(crate) fn insert(&mut self, venue: Venue, symbol: Symbol, id: InstrumentId) {
        let mut at = self.start(venue, &symbol);
        while self.slots[at].is_some() {
            at = (at + 1) & self.mask;
        }
        self.slots[at] = Some((venue, symbol, id));
    }
}
