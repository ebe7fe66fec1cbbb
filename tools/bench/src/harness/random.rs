//! Random order.

use tt_model::SplitMix64;

/// Returns `items` in random order.
pub fn shuffled<T: Copy>(random: &mut SplitMix64, items: &[T]) -> Vec<T> {
    let mut shuffled = items.to_vec();
    random.shuffle(&mut shuffled);
    shuffled
}
