//! Sorting of short lists.

use core::cmp::Ordering;

/// Sorts `items` by `compare`, in place. Equal items keep their order.
///
/// For lists off the hot path. All types and orders share one copy of the algorithm, where the standard library's sorts
/// are compiled for each, 3 to 5 kB of code. In return each comparison is an indirect call. `n` items take in the order
/// of `n log n` comparisons and `n log² n` swaps.
///
/// ```
/// let mut names = ["ETH", "BTC", "ADA"];
/// tt_model::sort_short_by(&mut names, |a, b| a.cmp(b));
/// assert_eq!(names, ["ADA", "BTC", "ETH"]);
/// ```
pub fn sort_short_by<T>(items: &mut [T], compare: impl FnMut(&T, &T) -> Ordering) {
    let len = items.len();
    sort(&mut Short { items, compare }, 0, len);
}

/// Sorts `items` by `key`, in place. Equal items keep their order.
///
/// Like [`sort_short_by`]; `key` is called for each comparison.
///
/// ```
/// let mut names = ["three", "two", "four", "six"];
/// tt_model::sort_short_by_key(&mut names, |name| name.len());
/// assert_eq!(names, ["two", "six", "four", "three"]);
/// ```
pub fn sort_short_by_key<T, K: Ord>(items: &mut [T], mut key: impl FnMut(&T) -> K) {
    sort_short_by(items, |a, b| key(a).cmp(&key(b)));
}

/// A list of any type, which the algorithm knows by indices only.
trait List {
    fn is_less(&mut self, a: usize, b: usize) -> bool;
    fn swap(&mut self, a: usize, b: usize);
}

struct Short<'a, T, F> {
    items: &'a mut [T],
    compare: F,
}

impl<T, F: FnMut(&T, &T) -> Ordering> List for Short<'_, T, F> {
    fn is_less(&mut self, a: usize, b: usize) -> bool {
        (self.compare)(&self.items[a], &self.items[b]).is_lt()
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.items.swap(a, b);
    }
}

fn sort(list: &mut dyn List, from: usize, to: usize) {
    if to - from > 1 {
        let middle = from.midpoint(to);
        sort(list, from, middle);
        sort(list, middle, to);
        merge(list, from, middle, to);
    }
}

/// Merges two sorted neighbours, `from..middle` and `middle..to`, without memory for either.
fn merge(list: &mut dyn List, from: usize, middle: usize, to: usize) {
    if from == middle || middle == to || !list.is_less(middle, middle - 1) {
        return;
    }
    if to - from == 2 {
        return list.swap(from, middle);
    }
    // Cuts the longer part in half, and the other where the item at the cut belongs.
    let (left, right) = if middle - from > to - middle {
        let left = from.midpoint(middle);
        (left, first(middle, to, |at| !list.is_less(at, left)))
    } else {
        let right = middle.midpoint(to);
        (first(from, middle, |at| list.is_less(right, at)), right)
    };
    // Swaps left..middle and middle..right.
    reverse(list, left, middle);
    reverse(list, middle, right);
    reverse(list, left, right);
    let middle = left + (right - middle);
    merge(list, from, left, middle);
    merge(list, middle, right, to);
}

/// Returns the first index of `from..to` from which on `is_behind` is true; `to` if there is none.
fn first(mut from: usize, mut to: usize, mut is_behind: impl FnMut(usize) -> bool) -> usize {
    while from < to {
        let middle = from.midpoint(to);
        if is_behind(middle) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    from
}

fn reverse(list: &mut dyn List, mut from: usize, mut to: usize) {
    while to - from > 1 {
        to -= 1;
        list.swap(from, to);
        from += 1;
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use core::cmp::Reverse;
    use std::vec::Vec;

    use super::{sort_short_by, sort_short_by_key};
    use crate::SplitMix64;

    /// Numbers below `bound`, each with its place in the list.
    fn random_list(random: &mut SplitMix64, len: usize, bound: u64) -> Vec<(u64, usize)> {
        (0..len).map(|place| (random.below(bound), place)).collect()
    }

    #[test]
    fn sorts_as_the_standard_library_and_keeps_the_order_of_equal_items() {
        let mut random = SplitMix64::new(7);
        for len in (0..70).chain([255, 256, 257, 1_000]) {
            for bound in [1, 2, 10, u64::MAX] {
                let list = random_list(&mut random, len, bound);
                let (mut expected, mut by, mut by_key) = (list.clone(), list.clone(), list);
                expected.sort_by_key(|(number, _)| Reverse(*number));
                sort_short_by(&mut by, |a, b| b.0.cmp(&a.0));
                assert_eq!(by, expected, "{len} numbers below {bound}");
                expected.sort_by_key(|(number, place)| (*number, *place));
                sort_short_by_key(&mut by_key, |(number, _)| *number);
                assert_eq!(by_key, expected, "{len} numbers below {bound}");
            }
        }
    }

    #[test]
    fn compares_in_the_order_of_n_log_n_times() {
        let len = 1 << 14;
        for step in [1, len - 1, 4_001] {
            let mut list: Vec<usize> = (0..len).map(|place| place * step % len).collect();
            let mut compared = 0;
            sort_short_by(&mut list, |a, b| {
                compared += 1;
                a.cmp(b)
            });
            assert!(list.is_sorted());
            assert!(compared < 2 * len * 14, "{compared} comparisons");
        }
    }
}
