//! Random order.

use fastrand::Rng;

/// Returns `items` in random order.
pub fn shuffled<T: Copy>(random: &mut Rng, items: &[T]) -> Vec<T> {
    let mut shuffled = items.to_vec();
    random.shuffle(&mut shuffled);
    shuffled
}
