//! A queue in which sources take turns.

use std::collections::{HashMap, VecDeque};

/// Items by source. Each source's items leave in order, one source after another.
#[derive(Debug)]
pub(super) struct RoundRobin<T> {
    /// Sources with items, each once.
    turns: VecDeque<u128>,
    items: HashMap<u128, VecDeque<T>>,
}

impl<T> Default for RoundRobin<T> {
    fn default() -> Self {
        Self { turns: VecDeque::new(), items: HashMap::new() }
    }
}

impl<T> RoundRobin<T> {
    pub(super) fn push(&mut self, source: u128, item: T) {
        let items = self.items.entry(source).or_default();
        if items.is_empty() {
            self.turns.push_back(source);
        }
        items.push_back(item);
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let source = self.turns.pop_front()?;
        let items = self.items.get_mut(&source)?;
        let item = items.pop_front();
        if items.is_empty() {
            self.items.remove(&source);
        } else {
            self.turns.push_back(source);
        }
        item
    }

    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_with_many_items_delays_another_by_one() {
        let mut queue = RoundRobin::default();
        for number in 0..100 {
            queue.push(7, number);
        }
        queue.push(8, 1_000);
        queue.push(9, 2_000);
        let first: Vec<_> = (0..5).filter_map(|_| queue.pop()).collect();
        assert_eq!(first, [0, 1_000, 2_000, 1, 2]);
        queue.push(8, 1_001);
        let rest: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!((rest.len(), &rest[..3]), (98, &[3, 1_001, 4][..]));
        assert!(queue.is_empty() && queue.items.is_empty());
    }
}
