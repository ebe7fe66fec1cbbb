//! An index of records that contain their keys.

use foldhash::SharedSeed;

use super::{Key, Table};

/// The hash of a key, never zero. Keys that differ may have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag(u32);

impl Key for u32 {
    const EMPTY: Self = 0;
    /// A tag is a hash already.
    #[inline]
    fn hash(&self, _: u64, _: &SharedSeed) -> usize {
        *self as usize
    }
}

/// Numbers of records by the tags of their keys. The caller compares the keys, which only the records contain, so that a
/// bucket has 8 bytes.
#[derive(Debug)]
pub(crate) struct Index {
    table: Table<u32, u32>,
}

impl Index {
    /// Creates an index that grows up to `capacity` records, hashed with `seed`.
    pub(crate) fn new(capacity: usize, seed: u64) -> Self {
        Self { table: Table::new(capacity, seed) }
    }

    /// Returns the tag of `key`.
    #[inline]
    pub(crate) fn tag(&self, key: &impl Key) -> Tag {
        let hash = key.hash(self.table.seed, &self.table.shared_seed);
        Tag((hash as u32).max(1))
    }

    /// Prefetches the bucket of `tag`.
    #[inline]
    pub(crate) fn prefetch(&self, tag: Tag) {
        self.table.prefetch(&tag.0);
    }

    /// Returns the record with `tag` that passes `is`.
    #[inline]
    pub(crate) fn find(&self, tag: Tag, is: impl Fn(u32) -> bool) -> Option<u32> {
        let at = self.table.find(tag.0 as usize, &tag.0, |record| is(*record)).ok()?;
        Some(self.table.buckets[at].1)
    }

    /// Adds `record`, which is not in the index; returns `false` if the index is full.
    #[must_use]
    pub(crate) fn insert(&mut self, tag: Tag, record: u32) -> bool {
        self.table.move_some();
        let (Ok(at) | Err(at)) = self.table.find_in(self.table.region, tag.0 as usize, &tag.0, |_| false);
        self.table.put(at, tag.0, record)
    }

    /// Removes `record`; returns `false` if it is not in the index.
    pub(crate) fn remove(&mut self, tag: Tag, record: u32) -> bool {
        match self.table.find(tag.0 as usize, &tag.0, |found| *found == record) {
            Ok(at) => {
                self.table.take(at);
                true
            }
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Index, Tag};
    use proptest::prelude::*;
    use std::vec::Vec;

    proptest! {
        /// Few tags: most records share theirs with others.
        #[test]
        fn agrees_with_a_list_while_it_grows(operations in prop::collection::vec((0u8..8, 0u32..600), 0..3_000)) {
            let mut index = Index::new(700, 7);
            let mut model: Vec<(u32, u32)> = Vec::new();
            for (operation, record) in operations {
                let tag = record % 97 * 0x9E37 + 1;
                let known = model.iter().position(|known| *known == (tag, record));
                prop_assert_eq!(index.find(Tag(tag), |found| found == record), known.map(|_| record));
                match (operation < 5, known) {
                    (true, None) => {
                        prop_assert!(index.insert(Tag(tag), record));
                        model.push((tag, record));
                    }
                    (false, Some(at)) => {
                        prop_assert!(index.remove(Tag(tag), record));
                        model.swap_remove(at);
                    }
                    (true, Some(_)) => {}
                    (false, None) => prop_assert!(!index.remove(Tag(tag), record)),
                }
                prop_assert_eq!(index.table.len(), model.len());
            }
            for (tag, record) in &model {
                prop_assert_eq!(index.find(Tag(*tag), |found| found == *record), Some(*record));
            }
        }
    }

    #[test]
    fn a_full_index_takes_no_more() {
        let mut index = Index::new(3, 7);
        assert!((0..3).all(|record| index.insert(Tag(9), record)) && !index.insert(Tag(9), 3));
        assert!(index.remove(Tag(9), 1) && index.insert(Tag(9), 3) && !index.remove(Tag(9), 1));
        assert_eq!(
            [0, 1, 2, 3].map(|record| index.find(Tag(9), |found| found == record)),
            [Some(0), None, Some(2), Some(3)]
        );
    }

    #[test]
    fn tags_follow_the_seed_and_are_never_zero() {
        let (one, other) = (Index::new(8, 1), Index::new(8, 2));
        let same = (1u64..1_000).filter(|key| one.tag(key) == other.tag(key)).count();
        assert!(same < 3, "{same}");
        assert!((0u64..100_000).all(|key| one.tag(&key).0 != 0));
    }
}
