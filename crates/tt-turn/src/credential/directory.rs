//! The users with passwords, in parts.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::Hasher;

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;
use foldhash::quality::FoldHasher as QualityHasher;
use tt_model::ByteRange;

use super::UserId;
use super::key::{UserKeys, UserSecret};
use super::user_hash;
use crate::realm::RealmId;
use crate::shared::Shared;
use crate::table::Table;

/// Table entries for each user: collisions could be measured by their time.
const ROOM_EACH: usize = 4;

/// Number of parts of the users. A reload replaces one after the other, so that only one of them is in memory twice.
pub const USER_PARTS: usize = 16;
/// Bits of a user's index within a part.
const INDEX_BITS: u32 = 28;
/// Seed of the hash that assigns names to parts. Operators choose the names: the parts need no secret.
const PARTS_SEED: u64 = 0x7061_7274;

/// Returns the number of the part with the user called `name`.
#[must_use]
pub fn user_part_of(name: &[u8]) -> usize {
    let mut hasher = QualityHasher::with_seed(PARTS_SEED, SharedSeed::global_fixed());
    hasher.write(name);
    (hasher.finish() % USER_PARTS as u64) as usize
}

/// Some users, those of one part, which [`Server::replace_users`](crate::Server::replace_users) puts in place of others.
#[derive(Clone, Debug)]
pub struct UserPart {
    pub(super) realm: RealmId,
    pub(super) number: usize,
    pub(super) users: Arc<Directory>,
}

impl UserPart {
    /// Makes a part of the `users` of the default realm that belong to it, each with a name, indexed for servers of `shared`.
    ///
    /// `realm` must be that of the configuration, and `decoy_seed` random and secret. See
    /// [`Secrets::add_user`](super::Secrets::add_user).
    #[must_use]
    pub fn new<'a>(
        number: usize,
        users: impl Iterator<Item = (&'a [u8], UserSecret<'a>)> + Clone,
        realm: &str,
        seeds: (&Shared, &[u8; 32]),
    ) -> Self {
        Self::of_realm((RealmId::DEFAULT, realm), number, users, seeds)
    }

    /// The same for any realm, with its number and its name.
    #[must_use]
    pub fn of_realm<'a>(
        (id, realm): (RealmId, &str),
        number: usize,
        users: impl Iterator<Item = (&'a [u8], UserSecret<'a>)> + Clone,
        (shared, decoy_seed): (&Shared, &[u8; 32]),
    ) -> Self {
        let own = users.filter(|(name, _)| user_part_of(name) == number);
        let mut part = Directory::default();
        part.all.reserve_exact(own.clone().count());
        part.names.reserve_exact(own.clone().map(|(name, _)| name.len()).sum());
        own.for_each(|(name, secret)| part.push(name, realm, keys(name, realm, secret, decoy_seed)));
        part.index(number, id.names_seed(shared.seed()), decoy_seed);
        Self { realm: id, number, users: Arc::new(part) }
    }
}

fn keys(name: &[u8], realm: &str, secret: UserSecret<'_>, unknown: &[u8; 32]) -> UserKeys {
    match secret {
        UserSecret::Password(password) => UserKeys::new(name, realm.as_bytes(), password),
        UserSecret::Md5Key(key) => UserKeys::of_md5_key(key, unknown),
    }
}

/// All users, in parts that the workers share.
#[derive(Clone, Debug, Default)]
pub(super) struct Users {
    pub(super) parts: [Arc<Directory>; USER_PARTS],
}

impl Users {
    /// Returns the user with the index of [`StaticUser::index`].
    #[inline]
    pub(super) fn at(&self, index: u32) -> Option<&StaticUser> {
        self.part_at(index)?.all.get((index & ((1 << INDEX_BITS) - 1)) as usize)
    }

    /// Returns the part with that user.
    #[inline]
    pub(super) fn part_at(&self, index: u32) -> Option<&Directory> {
        self.parts.get((index >> INDEX_BITS) as usize).map(Arc::as_ref)
    }

    /// Indexes the parts that have no index with this seed.
    pub(super) fn index(&mut self, names_seed: u64, decoy_seed: &[u8; 32]) {
        for (number, part) in self.parts.iter_mut().enumerate() {
            if part.indexed_with != Some(names_seed) {
                Arc::make_mut(part).index(number, names_seed, decoy_seed);
            }
        }
    }
}

/// The users of one part, with an index.
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
            by_name: Table::fixed(0, 0),
            by_hash: Table::fixed(0, 0),
            indexed_with: None,
        }
    }
}

impl Directory {
    #[inline]
    pub(super) fn name(&self, user: &StaticUser) -> &[u8] {
        self.names.get(user.name.to_range()).unwrap_or_default()
    }

    pub(super) fn push(&mut self, name: &[u8], realm: &str, keys: UserKeys) {
        self.indexed_with = None;
        let start = self.names.len() as u32;
        self.names.extend_from_slice(name);
        self.all.push(StaticUser {
            name: ByteRange::new(start, self.names.len() as u32),
            id: UserId::of(name),
            hash: user_hash(name, realm.as_bytes()),
            quota_key: 0,
            index: 0,
            keys,
        });
    }

    /// Returns the user with this name key, or some other one and false.
    #[inline]
    pub(super) fn named(&self, key: u64) -> Option<(&StaticUser, bool)> {
        let (index, is_found) = self.by_name.get_or(&key, self.decoy(key));
        Some((self.all.get(index as usize)?, is_found))
    }

    /// Returns some user's index, always the same for a key.
    #[inline]
    pub(super) fn decoy(&self, key: u64) -> u32 {
        (((key >> 32) * self.all.len() as u64) >> 32) as u32
    }

    /// Indexes the users of part `number`.
    fn index(&mut self, number: usize, names_seed: u64, decoy_seed: &[u8; 32]) {
        // The user of an earlier index that no name matches.
        self.all.retain(|user| !user.name.is_empty());
        let room = ROOM_EACH * self.all.len();
        self.by_name = Table::fixed(room, names_seed);
        self.by_hash = Table::fixed(room, names_seed.rotate_left(17));
        let seeds = NameSeeds::new(names_seed);
        let first = (number as u32) << INDEX_BITS;
        for (index, user) in (0u32..).zip(&mut self.all) {
            let key = seeds.key(&self.names[user.name.to_range()]);
            if self.by_name.get(&key).is_none() {
                let stored = self.by_name.insert(key, index) && self.by_hash.insert(hash_key(&user.hash), index);
                debug_assert!(stored, "the tables have room for every user");
            }
            (user.quota_key, user.index) = (key, first | index);
        }
        if self.all.is_empty() {
            self.all.push(StaticUser {
                name: ByteRange::EMPTY,
                id: UserId(0),
                hash: [0; 32],
                quota_key: 0,
                index: first,
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
        self.key_with(self.seed, name)
    }

    /// Returns the key of the user behind all time-limited names with this id, who is no static user.
    pub(super) fn limited_key(&self, id: &[u8]) -> u64 {
        self.key_with(!self.seed, id)
    }

    fn key_with(&self, seed: u64, name: &[u8]) -> u64 {
        let mut hasher = FoldHasher::with_seed(seed, &self.shared);
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
    /// The number of the part and the user's index there.
    pub(super) index: u32,
    pub(super) keys: UserKeys,
}

/// Returns the table key of a USERHASH.
pub(super) fn hash_key(hash: &[u8; 32]) -> u64 {
    hash.first_chunk().map_or(1, |first| u64::from_be_bytes(*first).max(1))
}
