//! From a venue's symbol to the instrument, at a known number of steps.

use alloc::vec::Vec;
use tt_model::InstrumentId;
use tt_venue::{Symbol, Venue};

/// Half a cache line: a slot never lies in two.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Slot(Option<(Venue, Symbol, InstrumentId)>);

const _: () = assert!(size_of::<Slot>() == 32);

/// Open addressing with linear probing, at most half full; symbols are only added.
#[derive(Debug)]
pub(crate) struct SymbolTable {
    slots: Vec<Slot>,
    mask: usize,
    /// What is left of 64 bits after the number of a slot.
    shift: u32,
}

impl SymbolTable {
    pub(crate) fn new(instruments: usize) -> Self {
        let len = (instruments.max(1) * 2).next_power_of_two();
        Self { slots: alloc::vec![Slot(None); len], mask: len - 1, shift: u64::BITS - len.trailing_zeros() }
    }

    /// Symbols come from the configuration, so the hash needs no secret.
    #[inline]
    fn start(&self, venue: Venue, symbol: &Symbol) -> usize {
        let words = symbol.words();
        let mixed = (words[0] ^ words[1].rotate_left(23) ^ words[2].rotate_left(41) ^ venue as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The highest bits alone depend on every byte of the symbol.
        (mixed >> self.shift) as usize
    }

    #[inline]
    pub(crate) fn find(&self, venue: Venue, symbol: &Symbol) -> Option<InstrumentId> {
        let mut at = self.start(venue, symbol);
        while let Some((other_venue, other, id)) = &self.slots[at].0 {
            if other.is(symbol) && *other_venue == venue {
                return Some(*id);
            }
            at = (at + 1) & self.mask;
        }
        None
    }

    /// Adds a symbol that is not there; the caller keeps to the capacity.
    pub(crate) fn insert(&mut self, venue: Venue, symbol: Symbol, id: InstrumentId) {
        let mut at = self.start(venue, &symbol);
        while self.slots[at].0.is_some() {
            at = (at + 1) & self.mask;
        }
        self.slots[at] = Slot(Some((venue, symbol, id)));
    }
}

#[cfg(test)]
mod tests {
    use super::SymbolTable;
    use alloc::format;
    use tt_model::InstrumentId;
    use tt_venue::{Symbol, Venue};

    /// Venues distinguish instruments by the first, middle or last characters.
    #[test]
    fn symbols_that_differ_anywhere_lie_apart() {
        const SYMBOLS: u32 = 1_000;
        let shapes: [fn(u32) -> alloc::string::String; 4] = [
            |number| format!("COIN{number:05}USDT"),
            |number| format!("{number:04}-PERPETUAL-FUTURE"),
            |number| format!("BTC-27DEC24-{number:04}-C"),
            |number| format!("X{number}"),
        ];
        for shape in shapes {
            let mut table = SymbolTable::new(SYMBOLS as usize);
            for number in 0..SYMBOLS {
                table.insert(Venue::Kraken, Symbol::new(shape(number).as_bytes()).unwrap(), InstrumentId(number));
            }
            for number in 0..SYMBOLS {
                let symbol = Symbol::new(shape(number).as_bytes()).unwrap();
                assert_eq!(table.find(Venue::Kraken, &symbol), Some(InstrumentId(number)));
            }
            // Half full and hashed well, runs of 1,000 random symbols stay below this by far.
            let longest = table.slots.split(|slot| slot.0.is_none()).map(<[_]>::len).max().unwrap_or(0);
            assert!(longest < 40, "{longest} neighbours with symbols like {}", shape(7));
        }
    }
}
