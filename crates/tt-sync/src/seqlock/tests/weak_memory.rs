//! The cell as litmus programs for Miri, whose loads may return older values. They are ordinary tests, too.

use super::super::{Cell, cell, table};
use crate::sync::tests::race;

const LOOKS: usize = 4;

/// Each value is its number of stores, in each word.
#[test]
fn a_value_is_whole_and_never_goes_back() {
    let (mut writer, reader) = cell([0; 2]);
    assert_eq!(reader.load(), [0; 2]);
    let look = || {
        let mut last = 0;
        for (value, count) in (0..LOOKS).filter_map(|_| reader.cell.try_load()) {
            assert_eq!(value, [count; 2]);
            assert!(count >= last, "{count} after {last}");
            last = count;
        }
    };
    race(look, || (1..=2).for_each(|number| writer.store(&[number; 2])));
    assert_eq!(reader.load_counted(), ([2; 2], 2));
}

/// The version passes from its last number to 0 while a reader looks.
#[test]
fn a_value_is_whole_across_the_wrap() {
    let cell = Cell::new_from([0; 2], u64::MAX - 1);
    assert!(cell.try_load().is_some());
    let look = || {
        for ([first, second], _) in (0..LOOKS).filter_map(|_| cell.try_load()) {
            assert_eq!(first, second);
        }
    };
    race(look, || (1..=2).for_each(|number| cell.store(&[number; 2])));
    assert_eq!(cell.load(), ([2; 2], 1));
}

/// A reader that polls while the writer stores gets one of the two values.
#[test]
fn a_cell_of_a_table_has_the_value_before_or_after() {
    let (mut writer, reader) = table(1, [0; 2]);
    assert_eq!(reader.load(0), Some([0; 2]));
    let (seen, is_stored) = race(|| reader.load_counted(0), || writer.store(0, &[5; 2]));
    assert!(seen == Some(([0; 2], 0)) || seen == Some(([5; 2], 1)), "{seen:?}");
    assert!(is_stored);
    assert_eq!(reader.load(0), Some([5; 2]));
}
