//! The cell against torn reads: by loom's schedules, and by two real threads.

#[cfg(not(any(loom, shuttle)))]
mod weak_memory;

#[cfg(loom)]
use super::Cell;
use super::cell;
#[cfg(not(shuttle))]
use super::table;
#[cfg(loom)]
use crate::sync::Arc;

#[cfg(not(any(loom, shuttle)))]
#[test]
fn a_reader_sees_the_last_store() {
    let (mut writer, reader) = cell([1, 2]);
    assert_eq!(reader.load(), [1, 2]);
    writer.store(&[3, 4]);
    assert_eq!(reader.try_load(), Some([3, 4]));
    assert_eq!(writer.reader().load_counted(), ([3, 4], 1));
}

#[cfg(not(any(loom, shuttle)))]
#[test]
fn a_table_keeps_its_cells_apart() {
    let (mut writer, reader) = table(3, [0]);
    assert!(writer.store(1, &[7]));
    assert!(!writer.store(3, &[9]));
    let shown = [Some([0]), Some([7]), Some([0]), None];
    assert_eq!([0, 1, 2, 3].map(|i| reader.load(i)), shown);
    assert_eq!([0, 1, 2, 3].map(|i| writer.load(i)), shown, "the writer reads the same");
}

#[cfg(not(any(loom, shuttle)))]
#[test]
fn a_table_of_extreme_length_panics_and_an_extreme_index_is_outside() {
    for len in [usize::MAX, 1 << (usize::BITS - 1), 1 << (usize::BITS - 7)] {
        assert!(std::panic::catch_unwind(|| drop(table(len, [0; 7]))).is_err(), "{len}");
    }
    let (mut writer, reader) = table(0, [0; 7]);
    assert!(reader.is_empty());
    for index in [0, usize::MAX] {
        assert!(!writer.store(index, &[1; 7]));
        assert_eq!((writer.load(index), reader.load(index), reader.load_counted(index)), (None, None, None));
    }
}

#[cfg(not(any(loom, shuttle)))]
#[test]
fn a_cell_without_words_counts_its_stores() {
    let (mut writer, reader) = cell([]);
    writer.store(&[]);
    assert_eq!((reader.load(), reader.load_counted()), ([], ([], 1)));
}

/// Every value stored is a run of consecutive numbers; a torn one is not, and an older one after a newer goes back.
#[cfg(not(any(loom, shuttle)))]
#[test]
fn two_threads_never_see_a_torn_value() {
    const STORES: u64 = if cfg!(miri) { 100 } else { 200_000 };
    let (mut writer, reader) = cell([0, 1, 2, 3, 4, 5, 6]);
    let readers: std::vec::Vec<_> = (0..2)
        .map(|_| {
            let reader = reader.clone();
            std::thread::spawn(move || {
                let mut last = 0;
                while last < STORES {
                    let (value, count) = reader.load_counted();
                    assert_eq!(value, core::array::from_fn(|i| value[0] + i as u64));
                    assert_eq!(value[0], count);
                    assert!(count >= last);
                    last = count;
                    std::thread::yield_now();
                }
            })
        })
        .collect();
    for n in 1..=STORES {
        writer.store(&core::array::from_fn(|i| n + i as u64));
    }
    for reader in readers {
        reader.join().expect("a reader failed");
    }
}

#[cfg(loom)]
#[test]
fn loom_a_value_is_never_torn() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.check(|| {
        let (mut writer, reader) = cell([0, 0]);
        let writing = loom::thread::spawn(move || {
            writer.store(&[1, 1]);
            writer.store(&[2, 2]);
        });
        for _ in 0..2 {
            if let Some([a, b]) = reader.try_load() {
                assert_eq!(a, b);
            }
        }
        writing.join().expect("the writer failed");
        assert_eq!(reader.load(), [2, 2]);
    });
}

/// The version passes from its last number to nought while a reader looks.
#[cfg(loom)]
#[test]
fn loom_a_value_is_never_torn_across_the_wrap() {
    loom::model(|| {
        let cell = Arc::new(Cell::new_from([0, 0], u64::MAX - 1));
        let stored = Arc::clone(&cell);
        let writing = loom::thread::spawn(move || {
            stored.store(&[1, 1]);
            stored.store(&[2, 2]);
        });
        if let Some(([a, b], _)) = cell.try_load() {
            assert_eq!(a, b);
        }
        writing.join().expect("the writer failed");
        assert_eq!(cell.load(), ([2, 2], 1));
    });
}

/// Three stores and two readers: more than loom finishes.
#[cfg(shuttle)]
#[test]
fn shuttle_a_value_is_never_torn_and_never_goes_back() {
    shuttle::check_random(
        || {
            let (mut writer, reader) = cell([0; 3]);
            for _ in 0..2 {
                let reader = reader.clone();
                shuttle::thread::spawn(move || {
                    let mut last = 0;
                    for ([a, b, c], count) in (0..4).map(|_| reader.load_counted()) {
                        assert!(a == b && b == c && a == count && count >= last);
                        last = count;
                    }
                });
            }
            (1..=3).for_each(|number| writer.store(&[number; 3]));
        },
        20_000,
    );
}

#[cfg(loom)]
#[test]
fn loom_a_table_shows_its_last_store() {
    loom::model(|| {
        let (mut writer, reader) = table(1, [0]);
        let writing = loom::thread::spawn(move || writer.store(0, &[5]));
        let seen = reader.load(0);
        assert!(seen == Some([0]) || seen == Some([5]));
        assert!(writing.join().expect("the writer failed"));
        assert_eq!(reader.load(0), Some([5]));
    });
}
