//! The users with passwords.

use alloc::vec::Vec;
use core::hash::Hasher;

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;
use tt_model::ByteRange;

use super::UserId;
use super::key::UserKeys;
use crate::table::Table;

/// Table entries for each user: collisions could be measured by their time.
const ROOM_EACH: usize = 4;

/// The users, with an index that all workers share.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    /// All users, or one that no name matches once there is an index.
    pub(super) all: Vec<StaticUser>,
    /// The names of all users: one block, which a reload returns to the system.
    pub(super) names: Vec<u8>,
    pub(super) by_name: Table<u64, u32>,
    pub(super) by_hash: Table<u64, u32>,
    /// The seed of the index.
    pub(super) indexed_with: Option<u64>,
}

impl Default for Directory {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            names: Vec::new(),
            by_name: Table::new(0, 0),
            by_hash: Table::new(0, 0),
            indexed_with: None,
        }
    }
}

impl Directory {
    #[inline]
    pub(super) fn name(&self, user: &StaticUser) -> &[u8] {
        self.names.get(user.name.to_range()).unwrap_or_default()
    }

    pub(super) fn index(&mut self, names_seed: u64, decoy_seed: &[u8; 32]) {
        // The user of an earlier index that no name matches.
        self.all.retain(|user| !user.name.is_empty());
        let room = ROOM_EACH * self.all.len();
        self.by_name = Table::new(room, names_seed);
        self.by_hash = Table::new(room, names_seed.rotate_left(17));
        let seeds = NameSeeds::new(names_seed);
        for (index, user) in (0u32..).zip(&mut self.all) {
            let key = seeds.key(&self.names[user.name.to_range()]);
            if self.by_name.get(&key).is_none() {
                let stored = self.by_name.insert(key, index) && self.by_hash.insert(hash_key(&user.hash), index);
                debug_assert!(stored, "the tables have room for every user");
            }
            (user.quota_key, user.index) = (key, index);
        }
        if self.all.is_empty() {
            self.all.push(StaticUser {
                name: ByteRange::EMPTY,
                id: UserId(0),
                hash: [0; 32],
                quota_key: 0,
                index: 0,
                keys: UserKeys::of_no_user(decoy_seed),
            });
        }
        self.indexed_with = Some(names_seed);
    }
}

/// Seeds of the hashes of names.
#[derive(Debug)]
pub(super) struct NameSeeds {
    seed: u64,
    shared: SharedSeed,
}

impl NameSeeds {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, shared: SharedSeed::from_u64(seed.rotate_left(9)) }
    }

    pub(super) fn key(&self, name: &[u8]) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.seed, &self.shared);
        hasher.write(name);
        hasher.finish().max(1)
    }
}

#[derive(Clone, Debug)]
pub(super) struct StaticUser {
    /// The place of the name in [`Directory::names`].
    pub(super) name: ByteRange,
    pub(super) id: UserId,
    /// USERHASH of the name.
    pub(super) hash: [u8; 32],
    /// Key of the user's quota, set by [`Directory::index`].
    pub(super) quota_key: u64,
    /// The user's index there.
    pub(super) index: u32,
    pub(super) keys: UserKeys,
}

/// Returns the table key of a USERHASH.
pub(super) fn hash_key(hash: &[u8; 32]) -> u64 {
    hash.first_chunk().map_or(1, |first| u64::from_be_bytes(*first).max(1))
}
