//! Reads the committed object for the [`Machine`]: code, relocations, maps.

use object::read::RelocationTarget;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

use crate::machine::{Machine, Table, handle};

/// Maps with the length of a value and the number of values; a hash has none.
const TABLES: [(&str, usize, usize); 9] = [
    ("port_kind", 65_536, 1),
    ("flows4", 64, 0),
    ("flows6", 64, 0),
    ("tallies", 32, 64),
    ("meters", 16, 16),
    ("hops", 24, 256),
    ("ifaces", 32, 64),
    ("reasons", 8, 32),
    ("meta", 56, 1),
];

pub(crate) fn machine() -> Machine {
    let tables = TABLES.iter().map(|(name, value_len, count)| Table {
        name: (*name).to_owned(),
        value_len: *value_len,
        values: vec![0; value_len * count],
        keys: name.starts_with("flows").then(Vec::new),
    });
    let bytes = tt_path::object();
    let file = object::File::parse(&*bytes).unwrap();
    let main = file.section_by_name("xdp").unwrap();
    let functions = file.section_by_name(".text").unwrap();
    let mut code = main.data().unwrap().to_vec();
    let functions_at = code.len() / 8;
    for (at, relocation) in main.relocations() {
        let RelocationTarget::Symbol(index) = relocation.target() else { panic!("a relocation without a symbol") };
        let symbol = file.symbol_by_index(index).unwrap();
        let (at, name) = (usize::try_from(at).unwrap(), symbol.name().unwrap());
        if let Some(table) = TABLES.iter().position(|table| table.0 == name) {
            let value = handle(table).to_le_bytes();
            code[at + 4..at + 8].copy_from_slice(&value[..4]);
            code[at + 12..at + 16].copy_from_slice(&value[4..]);
        } else {
            // A call: distance from the next instruction.
            let target = functions_at + usize::try_from(symbol.address()).unwrap() / 8;
            let distance = i32::try_from(target - (at / 8 + 1)).unwrap();
            code[at + 4..at + 8].copy_from_slice(&distance.to_le_bytes());
        }
    }
    code.extend(functions.data().unwrap());
    Machine::new(&code, tables.collect())
}
